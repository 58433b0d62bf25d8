"""What the text of a kernel may name, so that nothing it loads gets out but by its stores.

Triton's interpreter runs a kernel as Python, and Python can do in it what no GPU can: put numbers into a list
of the host's, or call back. The compiler would refuse that, but it never reads a branch that a constexpr
turns off. So the whole text is read: a kernel names its own variables, other kernels, constants, a few of
Python's own functions, and what triton and math have.
"""

import ast

MODULES = ("triton", "math")  # with all that is in them
BUILTINS = {
    "abs", "bool", "divmod", "enumerate", "float", "int", "isinstance", "len", "list", "max", "min", "pow",
    "print", "range", "reversed", "round", "sum", "tuple", "zip", "False", "None", "True",
}  # fmt: skip
CALLED = {  # besides what triton and math have, in the making of a constant
    "bool", "float", "int", "max", "min", "numpy.exp", "numpy.finfo", "numpy.float32", "numpy.float64",
    "numpy.int32", "numpy.log", "numpy.log2", "numpy.sqrt", "torch.finfo", "torch.iinfo", "tuple",
}  # fmt: skip
PLAIN = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.Compare, ast.BoolOp, ast.IfExp)
SCOPES = (ast.FunctionDef, ast.Lambda)


def out_of_place(tree: ast.Module, modules: dict[str, str]) -> list[tuple[int, str]]:
    """[(line, what)] of what a kernel of the file has no business with.

    modules: the modules of the file, by the name that it knows them by.
    """
    jits = {f"{known}.jit" for known, module in modules.items() if module.split(".")[0] == "triton"}
    imported = set()  # of what triton and math have
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES:
            imported |= {alias.asname or alias.name for alias in node.names}
            jits |= {alias.asname or alias.name for alias in node.names if alias.name == "jit"}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    kernels, decorators, found = [], set(), []
    for function in functions:
        names = [ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in function.decorator_list]
        if jits & set(names):
            kernels.append(function)
            decorators |= {id(n) for d in function.decorator_list for n in ast.walk(d)}
            if names[-1] not in jits:  # what it gives triton.jit is another function than this text
                found.append((function.lineno, f"@{names[-1]} below @triton.jit"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in decorators:
            if ast.unparse(node) in jits and isinstance(node.ctx, ast.Load):
                found.append((node.lineno, f"{ast.unparse(node)} other than as a decorator"))

    constants = _constants(tree, modules, imported)
    known = imported | BUILTINS | {kernel.name for kernel in kernels} | constants
    known -= _given(tree, kernels) - constants
    for function in functions:  # what a kernel is made in, and what reaches out with `global`
        if function not in kernels and any(kernel in ast.walk(function) for kernel in kernels):
            known -= _given(function, kernels) - {kernel.name for kernel in kernels}
    known -= {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    for kernel in kernels:
        found += _of(kernel, known, {k for k, m in modules.items() if m.split(".")[0] in MODULES})
    return found


def _given(tree: ast.AST, kernels: list) -> set[str]:
    """Names given to something outside the kernels, be it to an argument: `max` may be the file's own."""
    inside = {id(n) for kernel in kernels for n in ast.walk(kernel)}
    names = set()
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif node is not tree and isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler
        ):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] not in MODULES:
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def _constants(tree: ast.Module, modules: dict[str, str], imported: set[str]) -> set[str]:
    """Names that the file gives nothing but constants: numbers, text, dtypes, tl.constexpr of such."""
    given: dict[str, bool] = {}
    inside = {id(n) for f in ast.walk(tree) if isinstance(f, SCOPES) for n in ast.walk(f) if n is not f}

    def is_plain(node) -> bool:
        if isinstance(node, ast.Name):
            return node.id in imported or given.get(node.id, False)
        if isinstance(node, ast.Attribute):  # of a module, or of what was called
            chain = ast.unparse(node).split(".")
            return chain[0] in modules or is_plain(node.value)
        if isinstance(node, ast.Call):
            root, *names = ast.unparse(node.func).split(".")
            module = modules.get(root, root)
            mine = module.split(".")[0] in MODULES or root in imported
            if not mine and ".".join([module, *names]) not in CALLED:
                return False
            return all(map(is_plain, [*node.args, *(k.value for k in node.keywords)]))
        return isinstance(node, PLAIN) and all(
            map(is_plain, (n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)))
        )

    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and id(node) not in inside:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in (n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)):
                given[target.id] = given.get(target.id, True) and is_plain(node.value)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load) and id(node) not in inside:
            given.setdefault(node.id, False)  # given by a loop, a with or the like
    return {name for name, plain in given.items() if plain}


def _of(kernel: ast.FunctionDef, known: set[str], modules: set[str]) -> list[tuple[int, str]]:
    """What one kernel's body names besides its own variables, what is known, and what is in the modules."""
    body = [node for statement in kernel.body for node in ast.walk(statement)]
    own = {arg.arg for node in (kernel, *body) if isinstance(node, SCOPES) for arg in _arguments(node.args)}
    own |= {node.id for node in body if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
    own |= {node.name for node in body if isinstance(node, ast.FunctionDef)}
    roots = {id(node.value) for node in body if isinstance(node, ast.Attribute)}
    found = []
    for node in body:
        if isinstance(node, ast.Global | ast.Nonlocal | ast.Import | ast.ImportFrom | ast.ClassDef):
            found.append((node.lineno, ast.unparse(node).split("\n")[0]))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in own | known:
            if not (node.id in modules and id(node) in roots):
                found.append((node.lineno, f"{node.id} in a kernel"))
    return found


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    several = [a for a in (arguments.vararg, arguments.kwarg) if a]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *several]
