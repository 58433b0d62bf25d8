"""Read a learner's file: does its text name what leads to the counting, or gets values out of a kernel?

The file is read as it was before the run, and an answer whose values are right passes only if nothing is
found. Its code shares a process with the meter, and no wall inside a Python process holds: who gets at its
frames, its garbage collector or its memory can change what is counted. So what passes is plain Python over
the modules listed here, and each name that it takes from one is looked up in the real module. What a text
cannot tell, such as which object is written to, is checked as it happens (`confine`).

A kernel is read more closely. The interpreter runs it as Python, and Python can do there what no GPU can: put
numbers into a list of the host's, or call back. The compiler would refuse that, but it never reads a branch
that a constexpr turns off. So a kernel names its own variables, other kernels, constants, a few of Python's
own functions, and what triton and math have.

The rules for host code are those of Zope's RestrictedPython.
"""

import ast
import builtins
import importlib
import re
from types import ModuleType

SILENT = {
    "IPython",
    "matplotlib",
    "pytest",
    "seaborn",
}  # stand-ins take their place (see `confine`): all is fine
# Modules, and what of them is out of bounds besides modules that are not listed here.
MODULES = {
    "torch": {"load", "save", "from_file", "compile", "import_ir_module", "import_ir_module_from_buffer"},
    "torch.nn": set(), "torch.nn.functional": set(), "torch.special": set(), "torch.linalg": set(),
    "torch.cuda": set(), "torch.version": set(), "torch.testing": set(), "torch.autograd": set(),
    "triton": {"compile", "constexpr_function"},
    "triton.language": {"constexpr_function"}, "triton.language.math": set(),
    "triton.language.extra": set(), "triton.language.extra.libdevice": set(),
    "triton.language.extra.cuda": set(), "triton.language.extra.cuda.libdevice": set(),
    "triton.language.standard": set(), "triton.runtime": set(),
    "triton.language.core": {"builtin", "constexpr_function"},
    "triton.testing": set(),
    "numpy": {"load", "save", "savez", "savez_compressed", "loadtxt", "savetxt", "genfromtxt", "fromfile",
              "fromregex", "memmap", "frompyfunc", "from_dlpack", "frombuffer", "info", "source"},
    "numpy.linalg": set(), "numpy.random": set(), "numpy.typing": set(), "numpy.testing": {"IgnoreException"},
    "math": set(), "cmath": set(), "itertools": set(), "numbers": set(), "fractions": set(), "random": set(),
    "statistics": set(), "time": set(), "datetime": set(), "string": {"Formatter", "Template"}, "re": set(),
    "functools": {"singledispatch", "singledispatchmethod"}, "bisect": set(), "heapq": set(),
    "typing": {"get_type_hints", "ForwardRef", "evaluate_forward_ref"}, "textwrap": set(),
    "collections": set(), "enum": set(), "collections.abc": set(), "dataclasses": {"make_dataclass"},
    "__future__": set(), "warnings": set(), "contextlib": {"redirect_stderr", "redirect_stdout"},
    "decimal": set(), "operator": {"attrgetter", "methodcaller"}, "pprint": set(), "copy": set(),
    "logging": {"BufferingFormatter", "Formatter", "PercentStyle", "StrFormatStyle", "StringTemplateStyle",
                "FileHandler", "currentframe"},
}  # fmt: skip
# Of these only the names listed may be used; those with none are imported from habit, and left unused.
PARTS = {
    "abc": {"ABC", "abstractmethod"},
    "io": {"BytesIO", "StringIO"},
    "json": {"dumps", "loads"},
    "os": {"cpu_count", "environ", "getcwd", "getenv", "getpid", "linesep", "name", "path", "sep"},
    "os.path": {"abspath", "basename", "dirname", "exists", "isdir", "isfile", "join", "splitext"},
    "pathlib": {"Path", "PosixPath", "PurePath", "PurePosixPath"},
    "sys": {"argv", "byteorder", "exit", "float_info", "maxsize", "platform", "version", "version_info"},
    "timeit": {"default_timer"},
    "traceback": {"format_exc", "print_exc"},
    "types": {"SimpleNamespace"},
    "unittest": {"TestCase"},
    "argparse": set(),
}  # fmt: skip
LIBRARIES = {"torch", "triton", "numpy", "math", "builtins", "typing"}
STRANGE = {"importlib", "inspect", "io", "os", "posix", "shutil", "subprocess", "sys", "threading", "_thread"}
STARS = {"math", "typing", "triton.language"}  # of which everything may be imported at once
NAMES = {  # of Python's own
    "breakpoint", "compile", "delattr", "eval", "exec", "globals", "help", "locals", "open", "vars",
}  # fmt: skip
ATTRIBUTES = {
    "ag_await", "ag_code", "ag_frame", "apply_", "co_code", "cr_await", "cr_code", "cr_frame", "cr_origin",
    "cffi", "ctypes", "data_ptr", "dump", "f_back", "f_builtins", "f_code", "f_globals", "f_locals",
    "f_trace", "format_map", "from_buffer", "from_file", "gi_code", "gi_frame", "gi_yieldfrom", "handle",
    "map_", "mro", "open", "read_bytes", "read_text", "set_", "share_memory_", "storage", "tb_frame",
    "tb_next", "tofile", "typed_storage", "untyped_storage", "write_bytes", "write_text",
}  # fmt: skip
NAMEDTUPLE = {"_asdict", "_fields", "_make", "_replace"}  # documented, in spite of the underscore
DUNDERS = {"__class__", "__doc__", "__file__", "__init__", "__name__", "__version__"}  # that may be read
METHODS = {  # that a class may define: others are what libraries ask an object for, such as its memory
    "__add__", "__bool__", "__call__", "__contains__", "__enter__", "__eq__", "__exit__", "__ge__",
    "__getitem__", "__gt__", "__hash__", "__init__", "__iter__", "__le__", "__len__", "__lt__", "__mul__",
    "__neg__", "__next__", "__post_init__", "__radd__", "__repr__", "__rmul__", "__str__", "__sub__",
    "__truediv__",
}  # fmt: skip
LABELS = {"__all__", "__author__", "__date__", "__license__", "__slots__", "__version__"}  # that may be given

# Kernels
WHOLE = ("triton", "math")  # modules with all that is in them
IN_KERNELS = {  # of Python's own
    "abs", "bool", "divmod", "enumerate", "float", "int", "isinstance", "len", "list", "max", "min", "pow",
    "print", "range", "reversed", "round", "sum", "tuple", "zip", "False", "None", "True",
}  # fmt: skip
MAKING_CONSTANTS = {  # besides what triton and math have
    "bool", "float", "int", "max", "min", "numpy.exp", "numpy.finfo", "numpy.float32", "numpy.float64",
    "numpy.int32", "numpy.log", "numpy.log2", "numpy.sqrt", "torch.finfo", "torch.iinfo", "tuple",
}  # fmt: skip
PLAIN = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.Compare, ast.BoolOp, ast.IfExp)
SCOPES = (ast.FunctionDef, ast.Lambda)
Found = list[tuple[int, str]]  # (line, what)


def out_of_place(text: str | bytes) -> tuple[int, str] | None:
    """(line, what) of the first thing in a file that may lead around the check; None if there is nothing.

    What only its kernels have no business with is for `out_of_place_in_kernels`. None too for a file that
    Python cannot read: it does not run either.
    """
    return min(read(text)[0], default=None)


def out_of_place_in_kernels(text: str | bytes) -> tuple[int, str] | None:
    """The same of kernels alone: what the compiler would refuse, had it read the whole of them."""
    return min(read(text)[1], default=None)


def read(text: str | bytes) -> tuple[Found, Found]:
    """What is out of place in the host code of a file, and what in its kernels."""
    try:
        tree = ast.parse(text)
        modules = _modules(tree)
        host = _Host(modules, guarded={"getattr", "hasattr"} - _given(tree))
        for statement in tree.body:
            if not _never_runs(statement):
                host.visit(statement)
        return host.found, _Kernels(tree, modules).found
    except RecursionError:
        return [(1, "expressions nested beyond what can be read")], []
    except (SyntaxError, ValueError, MemoryError):
        return [], []


def _modules(tree: ast.Module) -> dict[str, str]:
    """The listed modules, by the names that the file knows them by, be it through `tl = triton.language`."""
    modules = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                known = alias.name if alias.asname else alias.name.split(".")[0]
                if known.split(".")[0] not in SILENT:
                    modules[alias.asname or known] = known
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (whole := f"{node.module}.{alias.name}") in MODULES or whole in PARTS:
                    modules[alias.asname or alias.name] = whole
    renamed = {}
    for line in tree.body:
        name, module = _renaming(line, modules)
        if module and name not in modules and name not in _given(tree, {id(n) for n in ast.walk(line)}):
            renamed[name] = module
    return modules | renamed


def _renaming(line, modules: dict[str, str]) -> tuple[str, str]:
    """(name, module) of a line such as `tl = triton.language`; empty for any other."""
    if isinstance(line, ast.Assign) and len(line.targets) == 1 and isinstance(line.targets[0], ast.Name):
        root, *names = _chain(line.value) or [""]
        whole = ".".join([modules.get(root, ""), *names])
        if names and whole in MODULES:
            return line.targets[0].id, whole
    return "", ""


class _Host(ast.NodeVisitor):
    """What a file may not name outside of its kernels, nor in them."""

    def __init__(self, modules: dict[str, str], guarded: set[str]):
        self.modules, self.guarded, self.found = modules, guarded, []

    def note(self, node, what: str) -> None:
        self.found.append((getattr(node, "lineno", 1), what))

    def generic_visit(self, node):
        # Whatever kind of node it is, the names that it gives; a method may be called __init__ or the like.
        fields = ("arg", "asname", "rest", "id") + (() if isinstance(node, ast.FunctionDef) else ("name",))
        reads = isinstance(getattr(node, "ctx", None), ast.Load)
        for name in [getattr(node, field, None) for field in fields] + list(getattr(node, "names", ())):
            if not isinstance(name, str) or not _dunder(name):
                continue
            label = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and name in LABELS
            if not label and not (reads and name in DUNDERS):
                self.note(node, name)
        super().generic_visit(node)

    def visit_Assign(self, node):
        name, module = _renaming(node, self.modules)
        if not module or self.modules.get(name) != module:
            self.generic_visit(node)

    def visit_FunctionDef(self, node):
        if _dunder(node.name) and node.name not in METHODS:
            self.note(node, node.name)
        self.generic_visit(node)

    def visit_Import(self, node):
        for alias in node.names:
            if (
                alias.name not in MODULES
                and alias.name not in PARTS
                and alias.name.split(".")[0] not in SILENT
            ):
                self.note(node, f"import {alias.name}")
        self.generic_visit(node)

    def visit_ImportFrom(self, node):
        home = node.module or ""
        for alias in node.names:
            whole = f"{home}.{alias.name}"
            if node.level or not (home in MODULES or home in PARTS or home.split(".")[0] in SILENT):
                self.note(node, f"from {'.' * node.level}{home} import")
            elif alias.name == "*":
                if home not in STARS:
                    self.note(node, f"from {home} import *")
            elif whole not in MODULES and whole not in PARTS and not fine(home, alias.name):
                self.note(node, f"from {home} import {alias.name}")
        self.generic_visit(node)

    def visit_Name(self, node):
        if node.id in NAMES:
            self.note(node, node.id)
        elif node.id in self.modules and isinstance(node.ctx, ast.Load):
            self.note(node, f"{node.id} as a value")  # under another name it could not be followed
        self.generic_visit(node)

    def visit_Attribute(self, node):
        root, *names = _chain(node) or [""]
        writes = not isinstance(node.ctx, ast.Load)
        if root in self.modules:
            if writes or not _is_in_bounds(self.modules[root], names):
                self.note(node, ".".join([root, *names]))
            return
        if node.attr in ATTRIBUTES or (_dunder(node.attr) and (writes or node.attr not in DUNDERS)):
            self.note(node, f".{node.attr}")
        if node.attr == "format" and not _plain_format(node.value):
            self.note(node, ".format")
        self.generic_visit(node)

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id in self.guarded and node.args:
            if (_chain(node.args[0]) or [""])[0] in self.modules:  # getattr(torch, name): see `confine`
                node.args[0] = ast.copy_location(ast.Constant(None), node.args[0])
        self.generic_visit(node)

    def visit_MatchClass(self, node):
        if node.patterns or node.kwd_attrs:  # they look attributes up, by names in strings
            self.note(node, f"case {ast.unparse(node)}")
        self.generic_visit(node)


class _Kernels:
    """What the file's kernels have no business with."""

    def __init__(self, tree: ast.Module, modules: dict[str, str]):
        self.tree, self.modules, self.found = tree, modules, []
        self.kernels = self.find()
        inside = {id(n) for kernel in self.kernels for n in ast.walk(kernel)}
        known = self.imported | IN_KERNELS | {kernel.name for kernel in self.kernels}
        constants = self.constants()
        known = (known - _given(tree, inside)) | constants
        for node in ast.walk(tree):
            if isinstance(node, ast.Global):  # what reaches out
                known -= set(node.names)
            elif isinstance(node, ast.FunctionDef) and id(node) not in inside:
                if any(id(n) in inside for n in ast.walk(node)):  # what a kernel is made in
                    known -= _given(node, inside) - {kernel.name for kernel in self.kernels}
        for kernel in self.kernels:
            self.look(kernel, known)

    def of_whole(self, module: str) -> bool:
        return module.split(".")[0] in WHOLE

    def find(self) -> list[ast.FunctionDef]:
        """The functions that @triton.jit stands above; the name is noted wherever else it stands."""
        jits = {f"{known}.jit" for known, module in self.modules.items() if module.split(".")[0] == "triton"}
        self.imported = set()  # of what triton and math have
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and self.of_whole(node.module or ""):
                self.imported |= {alias.asname or alias.name for alias in node.names}
                jits |= {alias.asname or alias.name for alias in node.names if alias.name == "jit"}
        kernels, decorators = [], set()
        for function in (node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)):
            names = [ast.unparse(d.func if isinstance(d, ast.Call) else d) for d in function.decorator_list]
            if jits & set(names):
                kernels.append(function)
                decorators |= {id(n) for d in function.decorator_list for n in ast.walk(d)}
                if names[-1] not in jits:  # what it gives triton.jit is another function than this text
                    self.found.append((function.lineno, f"@{names[-1]} below @triton.jit"))
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name | ast.Attribute) and id(node) not in decorators:
                if isinstance(node.ctx, ast.Load) and ast.unparse(node) in jits:
                    self.found.append((node.lineno, f"{ast.unparse(node)} other than as a decorator"))
        return kernels

    def constants(self) -> set[str]:
        """Names that the file gives nothing but constants: numbers, text, dtypes, tl.constexpr of such."""
        given: dict[str, bool] = {}
        functions = [node for node in ast.walk(self.tree) if isinstance(node, SCOPES)]
        inside = {id(n) for function in functions for n in ast.walk(function) if n is not function}
        for node in ast.walk(self.tree):
            if id(node) in inside:
                continue
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in (n for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)):
                    given[target.id] = given.get(target.id, True) and self.is_plain(node.value, given)
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                given.setdefault(node.id, False)  # given by a loop, a with or the like
        return {name for name, plain in given.items() if plain}

    def is_plain(self, node, given: dict[str, bool]) -> bool:
        """True for an expression that makes a constant."""
        if isinstance(node, ast.Name):
            return node.id in self.imported or given.get(node.id, False)
        if isinstance(node, ast.Attribute):  # of a module, or of what was called
            return ast.unparse(node).split(".")[0] in self.modules or self.is_plain(node.value, given)
        if isinstance(node, ast.Call):
            root, *names = ast.unparse(node.func).split(".")
            module = self.modules.get(root, root)
            if not (self.of_whole(module) or root in self.imported):
                if ".".join([module, *names]) not in MAKING_CONSTANTS:
                    return False
            return all(self.is_plain(n, given) for n in [*node.args, *(k.value for k in node.keywords)])
        parts = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
        return isinstance(node, PLAIN) and all(self.is_plain(n, given) for n in parts)

    def look(self, kernel: ast.FunctionDef, known: set[str]) -> None:
        """Note what a kernel names besides its own variables, what is known, and what is in the modules."""
        body = [node for statement in kernel.body for node in ast.walk(statement)]
        scopes = [node for node in (kernel, *body) if isinstance(node, SCOPES)]
        own = {n.arg for scope in scopes for n in ast.walk(scope.args) if isinstance(n, ast.arg)}
        own |= {n.id for n in body if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
        own |= {node.name for node in body if isinstance(node, ast.FunctionDef)}
        roots = {id(node.value) for node in body if isinstance(node, ast.Attribute)}
        whole = {name for name, module in self.modules.items() if self.of_whole(module)}
        for node in body:
            if isinstance(node, ast.Global | ast.Nonlocal | ast.Import | ast.ImportFrom | ast.ClassDef):
                self.found.append((node.lineno, ast.unparse(node).split("\n")[0]))
            elif isinstance(node, ast.Attribute):
                if not isinstance(node.ctx, ast.Load):
                    self.found.append((node.lineno, f".{node.attr} = … in a kernel"))
                elif node.attr.startswith("_"):
                    self.found.append((node.lineno, f".{node.attr} in a kernel"))
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in own | known:
                if not (node.id in whole and id(node) in roots):
                    self.found.append((node.lineno, f"{node.id} in a kernel"))


def _given(tree: ast.AST, inside: set[int] = frozenset()) -> set[str]:
    """Names given to something outside some nodes, be it to an argument: `max` may be the file's own."""
    definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler
    names = set()
    for node in ast.walk(tree):
        if id(node) in inside:
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, definitions) and node is not tree:
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] not in WHOLE:
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def _never_runs(statement) -> bool:
    """True for `if __name__ == "__main__":`, since the check imports the file under another name."""
    return (
        isinstance(statement, ast.If)
        and not statement.orelse
        and ast.unparse(statement.test) in ("__name__ == '__main__'", "'__main__' == __name__")
    )


def _dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and bool(name.strip("_"))


def _is_in_bounds(module: str, names: list[str]) -> bool:
    while names and (whole := f"{module}.{names[0]}") and (whole in MODULES or whole in PARTS):
        module, names = whole, names[1:]
    if not names:
        return False  # a module as a value
    inner = any(name in ATTRIBUTES or name.startswith("_") and name not in DUNDERS for name in names)
    return not inner and fine(module, names[0])


def fine(module: str, name: str) -> bool:
    """True if a module's attribute is in bounds, and no module."""
    if module.split(".")[0] in SILENT or name in PARTS.get(module, ()):
        return True
    if module not in MODULES or name in MODULES[module] or (name.startswith("_") and name not in DUNDERS):
        return False
    try:
        found = getattr(importlib.import_module(module), name, None)
    except Exception:  # not here: importing it will fail for the learner too
        return True
    if isinstance(found, (ModuleType, dict)) or any(found is getattr(builtins, name) for name in NAMES):
        return False
    home = getattr(found, "__module__", None)
    if not isinstance(home, str) or module.split(".")[0] not in LIBRARIES:
        return not isinstance(home, str) or home.split(".")[0] not in STRANGE
    return home.split(".")[0] in LIBRARIES  # not what the library has from elsewhere itself


def _chain(node) -> list[str]:
    """["torch", "nn", "functional"] for torch.nn.functional; empty if it does not begin with a name."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) else []


def _plain_format(text) -> bool:
    """True for a string, written out, whose fields look up no attributes."""
    if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
        return False
    return not any(
        re.search(r"[.\[_]", field.split(":")[0]) for field in re.findall(r"\{([^{}]*)", text.value)
    )
