"""What a file may use whose answer passes: its text is read, name by name, before it runs.

The learner's code shares a process with the meter, and no wall inside a Python process holds: who gets at its
frames, its garbage collector or its memory can change what is counted. So what passes is plain Python over a
few libraries, from which no name leads there. The rules are those of Zope's RestrictedPython: no names with
underscores, nothing that finds an attribute by a string, no attributes that hold frames or code; and modules
are reached by name only, so that each name can be looked up in the real module.
"""

import ast
import builtins
import importlib
import re
from types import ModuleType

from course_kernels.lab.run import in_kernel

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
    "numpy.linalg": set(), "numpy.random": set(), "numpy.typing": set(),
    "math": set(), "cmath": set(), "itertools": set(), "numbers": set(), "fractions": set(), "random": set(),
    "statistics": set(), "time": set(), "string": {"Formatter", "Template"},
    "functools": {"singledispatch", "singledispatchmethod", "update_wrapper", "wraps"},
    "typing": {"get_type_hints", "ForwardRef", "evaluate_forward_ref"},
    "collections": set(), "enum": set(), "collections.abc": set(), "dataclasses": {"make_dataclass"},
    "__future__": set(), "warnings": set(), "contextlib": {"redirect_stderr", "redirect_stdout"},
    "decimal": set(), "operator": {"attrgetter", "methodcaller"},
}  # fmt: skip
# These too may be imported, as many do from habit, but of them only this may be used.
LITTLE = {
    "sys": {"byteorder", "float_info", "maxsize", "platform", "version", "version_info"},
    **dict.fromkeys(("abc", "argparse", "copy", "json", "logging", "os", "os.path", "pathlib", "pprint", "re",
                     "textwrap", "timeit", "traceback", "types", "unittest"), set()),
}  # fmt: skip
LIBRARIES = {"torch", "triton", "numpy", "math", "builtins", "typing"}
STRANGE = {"importlib", "inspect", "io", "os", "posix", "shutil", "subprocess", "sys", "threading", "_thread"}
STARS = {"math", "typing", "triton.language"}  # of which everything may be imported at once
NAMES = {  # of Python's own
    "breakpoint", "compile", "delattr", "eval", "exec", "getattr", "globals", "help", "locals", "open",
    "setattr", "vars",
}  # fmt: skip
ATTRIBUTES = {
    "ag_await", "ag_code", "ag_frame", "apply_", "co_code", "cr_await", "cr_code", "cr_frame", "cr_origin",
    "cffi", "ctypes", "data_ptr", "dump", "f_back", "f_builtins", "f_code", "f_globals",
    "f_locals", "f_trace",
    "format_map", "from_buffer", "from_file", "gi_code", "gi_frame", "gi_yieldfrom", "handle", "map_", "set_",
    "mro", "share_memory_", "storage", "tb_frame", "tb_next", "tofile", "typed_storage", "untyped_storage",
}  # fmt: skip
LABELLED = {"__name__", "__doc__"}  # that may be asked of a class, whatever it is
PROPERTIES = {"property", "cached_property", "setter", "getter", "deleter"}
DUNDERS = {"__class__", "__doc__", "__file__", "__init__", "__name__", "__version__"}  # that may be read
METHODS = {  # that a class may define: others are what libraries ask an object for, such as its memory
    "__add__", "__bool__", "__call__", "__contains__", "__enter__", "__eq__", "__exit__", "__ge__",
    "__getitem__", "__gt__", "__hash__", "__init__", "__iter__", "__le__", "__len__", "__lt__", "__mul__",
    "__neg__", "__next__", "__post_init__", "__radd__", "__repr__", "__rmul__", "__str__", "__sub__",
    "__truediv__",
}  # fmt: skip
LABELS = {"__all__", "__author__", "__date__", "__license__", "__slots__", "__version__"}  # that may be given
NAMEDTUPLE = {"_asdict", "_fields", "_make", "_replace"}  # documented, in spite of the underscore


def out_of_place(text: str | bytes) -> tuple[int, str] | None:
    """(line, what) of the first thing in a file that no exercise needs and that may lead around the check.

    None too for a file that Python cannot read: it does not run either.
    """
    return min(_read(text).found, default=None)


def out_of_place_in_kernels(text: str | bytes) -> tuple[int, str] | None:
    """The same of kernels alone: what the compiler would refuse, had it read the whole of them."""
    return min(_read(text).in_kernels, default=None)


def _read(text: str | bytes) -> "_Reader":
    reader = _Reader()
    try:
        reader.visit(ast.parse(text))
    except RecursionError:
        reader.note(None, "expressions nested beyond what can be read")
    except (SyntaxError, ValueError, MemoryError):
        pass
    return reader


class _Reader(ast.NodeVisitor):
    def __init__(self):
        self.modules: dict[str, str] = {}  # by the name that the file knows it by
        self.found: list[tuple[int, str]] = []
        self.in_kernels: list[tuple[int, str]] = []
        self.wraps: set[str] = set()  # what functools.wraps is called in the file
        self.own: set[int] = set()  # ids of nodes: `self.name`, where self is the method's own object
        self.classes: set[str] = set()  # that have such methods; and the ids of nodes that may name them
        self.called: set[int] = set()
        self.enums: set[str] = set()  # Enum and the like, and the file's classes made of them

    def note(self, node, what: str) -> None:
        self.found.append((getattr(node, "lineno", 1), what))

    def visit_Module(self, node):
        # Imports first: a function may use what is imported below it.
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import):
                for alias in inner.names:
                    known = alias.name if alias.asname else alias.name.split(".")[0]
                    self.modules[alias.asname or known] = known
            elif isinstance(inner, ast.ImportFrom):
                for alias in inner.names:
                    if f"{inner.module}.{alias.name}" in MODULES:
                        self.modules[alias.asname or alias.name] = f"{inner.module}.{alias.name}"
                    elif inner.module == "enum":
                        self.enums.add(alias.asname or alias.name)
                    elif f"{inner.module}.{alias.name}" == "functools.wraps":
                        self.wraps.add(alias.asname or alias.name)
        self.modules |= self.renamed(node)
        self.find_methods(node)
        self.in_kernels = in_kernel.out_of_place(node, self.modules)
        for statement in node.body:
            if not _never_runs(statement):
                self.visit(statement)

    def find_methods(self, tree) -> None:
        """What a method does to `self` it does to an object of the file's own: unless the method is called
        through its class, on something else. So such a class may be called, inherited from, named where a
        type is asked for, and asked for what is no such method."""
        methods = {
            node: [m for m in node.body if isinstance(m, ast.FunctionDef) and _takes_self(m)]
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
        }
        names = {m.name for found in methods.values() for m in found}
        for node in methods:
            self.enums |= {node.name for b in node.bases if self.is_enum(b)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                uses = [n for m in methods[node] for n in ast.walk(m) if _of_self(n)]
                self.own |= {id(n) for n in uses}
                if uses or any(isinstance(b, ast.Name) and b.id in self.classes for b in node.bases):
                    self.classes.add(node.name)
                self.called |= {id(d) for d in node.decorator_list}
                self.called |= {id(b) for b in node.bases if not (isinstance(b, ast.Name) and b.id == "type")}
            elif isinstance(node, ast.Call):
                # With more arguments a type, or an Enum, makes a class, with any names in it.
                makes = self.is_enum(node.func) or ast.unparse(node.func) == "type"
                if not isinstance(node.func, ast.Call) and not (makes and len(node.args + node.keywords) > 1):
                    self.called.add(id(node.func))
                if isinstance(node.func, ast.Name) and node.func.id == "isinstance" and len(node.args) == 2:
                    self.called |= _types(node.args[1])
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Call):
                if node.attr in LABELLED or (isinstance(node.value, ast.Name) and node.attr not in names):
                    self.called.add(id(node.value))
            elif isinstance(node, ast.Attribute) and node.attr in LABELLED:
                self.called.add(id(node.value))  # self.__class__.__name__
            elif isinstance(node, ast.For | ast.comprehension):
                self.called |= {id(node.iter)} if self.is_enum(node.iter) else set()
            elif isinstance(node, ast.Compare):
                self.called |= {id(n) for n in (node.left, *node.comparators)}
            for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
                if annotation is not None:
                    self.called |= _types(annotation)

    def is_enum(self, node) -> bool:
        """True for what the enum module has, and for the file's own classes of it."""
        chain = _chain(node)
        return bool(chain) and (
            (len(chain) == 1 and chain[0] in self.enums) or (self.modules.get(chain[0]) == "enum")
        )

    def renamed(self, tree) -> dict[str, str]:
        """Modules that `tl = triton.language` gives a name, where nothing else gives it another."""
        given = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
        given += [n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)]
        found = {}
        for line in tree.body:
            if (
                isinstance(line, ast.Assign)
                and len(line.targets) == 1
                and isinstance(line.targets[0], ast.Name)
            ):
                name, module = line.targets[0].id, self.module_of(_chain(line.value))
                if module and given.count(name) == 1 and name not in self.modules:
                    found[name] = module
        return found

    def module_of(self, chain: list[str]) -> str | None:
        """The listed module that a chain of at least two names stands for."""
        if len(chain) < 2 or chain[0] not in self.modules:
            return None
        whole = ".".join([self.modules[chain[0]], *chain[1:]])
        return whole if whole in MODULES else None

    def visit_Assign(self, node):
        target = node.targets[0]
        if (
            isinstance(target, ast.Name)
            and self.modules.get(target.id)
            and self.module_of(_chain(node.value))
        ):
            return  # see `renamed`
        self.generic_visit(node)

    def visit_FunctionDef(self, node):
        if node.name.startswith("__") and node.name.strip("_") and node.name not in METHODS:
            self.note(node, node.name)
        # @wraps(fn) above a function writes to that new function only; called otherwise, to anything.
        decorator = node.decorator_list[0] if len(node.decorator_list) == 1 else None
        if isinstance(decorator, ast.Call) and len(decorator.args) == 1 and not decorator.keywords:
            chain = _chain(decorator.func)
            whole = ".".join([self.modules.get(chain[0], chain[0]), *chain[1:]]) if chain else ""
            if whole == "functools.wraps" or whole in self.wraps:
                decorator.func = ast.copy_location(ast.Constant(None), decorator.func)
        self.generic_visit(node)

    def generic_visit(self, node):
        # Whatever kind of node it is, the names that it gives; a method may be called __init__ or the like.
        fields = ("arg", "asname", "rest", "id") + (() if isinstance(node, ast.FunctionDef) else ("name",))
        names = [getattr(node, field, None) for field in fields] + list(getattr(node, "names", ()))
        reads = isinstance(getattr(node, "ctx", None), ast.Load)
        for name in names:
            if not isinstance(name, str) or not name.startswith("__") or not name.strip("_"):
                continue
            label = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and name in LABELS
            if not label and not (reads and name in DUNDERS):
                self.note(node, name)
        super().generic_visit(node)

    def visit_Import(self, node):
        for alias in node.names:
            if alias.name not in MODULES and alias.name not in LITTLE:
                self.note(node, f"import {alias.name}")
        self.generic_visit(node)

    def visit_ImportFrom(self, node):
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            if not node.level and (whole == "functools.wraps" or alias.name in LITTLE.get(node.module, ())):
                continue
            if node.level or node.module not in MODULES:
                self.note(node, f"from {'.' * node.level}{node.module or ''} import")
            elif alias.name == "*":
                if node.module not in STARS:
                    self.note(node, f"from {node.module} import *")
            elif whole not in MODULES and not _fine(node.module, alias.name):
                self.note(node, f"from {node.module} import {alias.name}")
        self.generic_visit(node)

    def visit_Name(self, node):
        if node.id in NAMES or (node.id in self.wraps and isinstance(node.ctx, ast.Load)):
            self.note(node, node.id)
        elif node.id in self.modules and isinstance(node.ctx, ast.Load):
            self.note(node, f"{node.id} as a value")  # under another name it could not be followed
        elif node.id == "type" and id(node) not in self.called:
            self.note(node, "type as a value")
        elif (
            node.id in self.classes | self.enums
            and isinstance(node.ctx, ast.Load)
            and id(node) not in self.called
        ):
            self.note(node, f"the class {node.id} as a value")
        self.generic_visit(node)

    def visit_Attribute(self, node):
        chain = _chain(node)
        root, names = (chain[0], chain[1:]) if chain else ("", [])
        writes = not isinstance(node.ctx, ast.Load)
        if root in self.modules:
            shown = f"{root}.{'.'.join(names)}"
            alone = self.modules[root] == "enum" and id(node) not in self.called and len(names) == 1
            if writes or alone or not self.leads_to_something_fine(self.modules[root], names):
                self.note(node, shown)
            return
        own = id(node) in self.own
        if (writes and (not own or node.attr.startswith("__"))) or _inner(node.attr, own):
            self.note(node, f".{node.attr}" + (" = …" if writes and not _inner(node.attr, own) else ""))
        if node.attr == "__class__" and not writes and id(node) not in self.called:
            self.note(node, ".__class__ as a value")
        if node.attr == "format" and not _plain_format(node.value):
            self.note(node, ".format")
        self.generic_visit(node)

    def leads_to_something_fine(self, module: str, names: list[str]) -> bool:
        while names and f"{module}.{names[0]}" in MODULES:
            module, names = f"{module}.{names[0]}", names[1:]
        if not names:
            return False  # a module as a value
        return _fine(module, names[0]) and not any(_inner(name) for name in names[1:])

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id == "type" and id(node) not in self.called:
            self.note(node, "type(…) as a value")
        self.generic_visit(node)

    def visit_MatchClass(self, node):
        if node.patterns or node.kwd_attrs:  # they look attributes up, by names in strings
            self.note(node, f"case {ast.unparse(node)}")
        self.generic_visit(node)


def _never_runs(statement) -> bool:
    """True for `if __name__ == "__main__":`, since the check imports the file under another name."""
    return (
        isinstance(statement, ast.If)
        and not statement.orelse
        and ast.unparse(statement.test) in ("__name__ == '__main__'", "'__main__' == __name__")
    )


def _takes_self(method: ast.FunctionDef) -> bool:
    """True for a method whose `self` is its object, and stays so: no other decorator than a property's, and
    nothing else by that name inside."""
    args = method.args.posonlyargs + method.args.args
    plain = all(ast.unparse(d).split(".")[-1] in PROPERTIES for d in method.decorator_list)
    if not (args and args[0].arg == "self" and plain):
        return False
    others = [n for n in ast.walk(method) if n is not args[0]]
    names = [n for n in others if isinstance(n, ast.Name) and n.id == "self"]
    given = not all(isinstance(n.ctx, ast.Load) for n in names)
    return not given and not any(
        "self" in (getattr(n, field, None) for field in ("arg", "name", "rest", "asname")) for n in others
    )


def _types(node) -> set[int]:
    """The ids of what names types, as in `int | float` or `tuple[int, ...]`; none where more is done."""
    parts = list(ast.walk(node))
    plain = (ast.Name, ast.Attribute, ast.Tuple, ast.List, ast.Subscript, ast.BinOp, ast.Constant)
    if not all(isinstance(n, (*plain, ast.operator, ast.expr_context)) for n in parts):
        return set()
    return {id(n) for n in parts}


def _of_self(node) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _inner(name: str, own: bool = False) -> bool:
    """True for an attribute that holds what is inside something; own: an attribute of `self`."""
    if name in ATTRIBUTES:
        return True
    if name in NAMEDTUPLE:
        return False
    return name.startswith("__" if own else "_") and name not in DUNDERS


def _fine(module: str, name: str) -> bool:
    """True if a module's attribute is in bounds, and no module."""
    if name in LITTLE.get(module, ()):
        return True
    if module not in MODULES or name in MODULES[module] or _inner(name):
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
