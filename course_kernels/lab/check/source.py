"""The one reader of a learner's file: its lines, its functions, and what each kernel calls its things.

It reads text and never runs it, so it is as good for a file that does not run. Advice is written with the
names that it finds, so that a learner can paste what a message says.
"""

import ast
import re

CREATED = r"\btorch\.(empty|zeros|ones|full|tensor)"  # how a launch's output comes about


class Source:
    """A learner's file, to look things up in; one that Python cannot read has lines and nothing else."""

    def __init__(self, text: str):
        self.text = text
        self.lines = text.splitlines()
        try:
            self.tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            self.tree = ast.Module([], [])
        self.functions = {n.name: n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef)}

    def line(self, number: int) -> str:
        """The text of a line, without its indent; empty if there is none of that number."""
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""

    def statement(self, line: int) -> str:
        """The text of the statement around a line; of an `if` or a loop, that line alone."""
        for node in ast.walk(self.tree):
            simple = isinstance(node, ast.stmt) and not hasattr(node, "body")
            if simple and node.lineno <= line <= node.end_lineno:
                return " ".join(part.strip() for part in self.lines[node.lineno - 1 : node.end_lineno])
        return self.line(line)

    def function_at(self, line: int) -> ast.FunctionDef | None:
        """The innermost function around a line."""
        inside = [f for f in self.functions.values() if f.lineno <= line <= f.end_lineno]
        return max(inside, key=lambda f: f.lineno, default=None)

    def kernels(self) -> list[ast.FunctionDef]:
        """The functions below @triton.jit."""
        return [function for function in self.functions.values() if is_jit(function)]

    def first_with(self, pattern: str) -> int | None:
        """The first line in which the pattern is found."""
        return next((n for n, text in enumerate(self.lines, 1) if re.search(pattern, text)), None)

    def names(self, function: ast.FunctionDef | None) -> set[str]:
        """The names that mean something inside a function, or at the file's top."""
        nodes = [] if function is None else list(ast.walk(function))
        inside = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        inside |= {n.arg for n in nodes if isinstance(n, ast.arg)}
        top = {t.id for n in self.tree.body if isinstance(n, ast.Assign) for t in n.targets
               if isinstance(t, ast.Name)}  # fmt: skip
        return inside | top | set(self.imported()) | set(self.functions)

    def imported(self) -> dict[str, str]:
        """What the file imports at its top, by the name it knows it by: "triton.language.load"."""
        found = {}
        for node in self.tree.body:
            if isinstance(node, ast.Import):
                found |= {(a.asname or a.name).split(".")[0]: a.name for a in node.names}
            elif isinstance(node, ast.ImportFrom):
                found |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        return found

    def launch(self, kernel: str) -> dict[str, str]:
        """The text of what the first launch of a kernel gives for each of its parameters."""
        function = self.functions.get(kernel)
        for call in ast.walk(self.tree) if function else ():
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Subscript)):
                continue
            if isinstance(call.func.value, ast.Name) and call.func.value.id == kernel:
                given = dict(zip(parameters(function), map(ast.unparse, call.args), strict=False))
                return given | {k.arg: ast.unparse(k.value) for k in call.keywords if k.arg}
        return {}

    def constant(self, text: str) -> int | None:
        """The whole number that an expression's text stands for: written out, or a constant of the file."""
        given = re.findall(rf"^{re.escape(text)}(?:\s*:[^=]*)?\s*=\s*(?:tl\.constexpr\()?(\d+)\b",
                           self.text, re.MULTILINE)  # fmt: skip
        text = given[-1] if given else text
        return int(text) if text.isdecimal() else None

    def own(self, kernel: ast.FunctionDef | None) -> "Own":
        """What a kernel calls its things; of none, what the file's first kernel does."""
        if kernel is None or not is_jit(kernel):
            kernel = next(iter(self.kernels()), None)
        return Own(self, kernel)


class Own:
    """A kernel's own names, each None, or empty, where the kernel has no such thing.

    fixed: its tl.constexpr parameters. lanes: the last variable made from tl.arange that is no tile and no
    mask, and row that of tl.program_id. columns: what the lanes are compared with. mask: that comparison's
    variable. tile: what the first tl.load gives. loaded, stored: the pointers, in order. strides: the row
    stride of each pointer, as the launch passes it.
    """

    def __init__(self, source: Source, kernel: ast.FunctionDef | None):
        self.kernel, self.source = kernel, source
        nodes = sorted(
            (n for n in ast.walk(kernel) if hasattr(n, "lineno")) if kernel else (),
            key=lambda n: (n.lineno, n.col_offset),
        )
        self.arguments = source.launch(kernel.name) if kernel else {}
        self.fixed = [
            a.arg for a in _arguments(kernel) if a.annotation and "constexpr" in ast.unparse(a.annotation)
        ] if kernel else []  # fmt: skip
        self.row = self.lanes = self.columns = self.mask = self.tile = None
        self.spread: set[str] = set()  # names that hold a column a lane
        for node in nodes:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self._assigned(node.targets[0].id, node.value)
            if isinstance(node, ast.Compare) and self.spread & _names(node.left):
                self.columns = self.columns or ast.unparse(node.comparators[0])
        calls = [n for n in nodes if isinstance(n, ast.Call)]
        self.loads, self.stores = ([c for c in calls if _function(c) == name] for name in ("load", "store"))
        self.loaded, self.stored = (
            list(dict.fromkeys(p for c in some if c.args and (p := self.pointer(c.args[0]))))
            for some in (self.loads, self.stores)
        )
        self.moved = {
            n.target.id for n in nodes if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)
        }
        self.strides = {}
        for pointer in self.pointers:
            tensor = self.arguments.get(pointer, "?")
            passed = (
                n
                for n, text in self.arguments.items()
                if text in (f"{tensor}.stride(0)", f"{tensor}.stride()[0]")
            )
            named = (
                n for n in parameters(kernel) if n in (f"{_stem(pointer)}_stride", f"stride_{_stem(pointer)}")
            )
            self.strides[pointer] = next(passed, None) or next(named, None)

    def _assigned(self, name: str, value: ast.expr) -> None:
        text = ast.unparse(value)
        if "program_id(" in text:
            self.row = self.row or name
        elif "tl.load(" in text:
            self.tile = self.tile or name
        elif "arange(" in text or self.spread & _names(value):
            if any(isinstance(n, ast.Compare) for n in ast.walk(value)):
                self.mask = self.mask or name
            elif not self.tile or self.tile not in _names(value):
                self.spread.add(name)
                self.lanes = name

    @property
    def pointers(self) -> list[str]:
        """The parameters that are pointers: loaded from, stored to, called *_ptr, or given a tensor."""
        used = [*self.loaded, *self.stored] if hasattr(self, "loaded") else []
        return [
            name
            for name in parameters(self.kernel)
            if name in used or name.endswith("_ptr") or self._given(name, r"\b{}\.(stride|shape|dtype)\b")
        ]

    def _given(self, name: str, pattern: str) -> bool:
        """True if the file holds the pattern, with what the launch gives for a parameter in it."""
        given = re.escape(self.arguments.get(name, "?"))
        return bool(re.search(pattern.replace("{}", given), self.source.text, re.MULTILINE))

    def pointer(self, address: ast.expr) -> str | None:
        """The pointer that an address is made of."""
        names = sorted(
            (n for n in ast.walk(address) if isinstance(n, ast.Name)), key=lambda n: (n.lineno, n.col_offset)
        )
        known = [n.id for n in names if n.id in self.pointers]
        return known[0] if known else names[0].id if names else None

    def address(self, pointer: str) -> str:
        """An address of a whole row, or of a row's one number, in the kernel's own names."""
        stride = self.strides.get(pointer)
        if self.row and not stride and pointer in self.stored:
            return f"{pointer} + {self.row}"
        start = f"{self.row} * {stride}" if self.row and stride and pointer not in self.moved else ""
        return " + ".join(part for part in (pointer, start, self.lanes or "column") if part)

    @property
    def masked(self) -> str:
        """A mask, in the kernel's own names."""
        return self.mask or f"{self.lanes or 'column'} < {self.columns or 'columns'}"

    def load(self) -> str:
        """A tl.load of this kernel's input, as it might be written."""
        made = [p for p in self.pointers if self._given(p, rf"^\s*{{}} = {CREATED}")]
        choices = self.loaded or [p for p in self.pointers if p not in {*made, *self.stored}]
        return f"tl.load({self.address(next(iter(choices), 'x_ptr'))}, mask={self.masked})"

    def store(self) -> str:
        """A tl.store into this kernel's output, as it might be written."""
        choices = [p for p in self.stored if p in self.pointers] or [
            p for p in self.pointers if p not in self.loaded
        ]
        pointer = next(iter(choices), "y_ptr")
        mask = f", mask={self.masked}" if self.strides.get(pointer) or not self.stored else ""
        return f"tl.store({self.address(pointer)}, y{mask})"

    def words(self) -> dict[str, str]:
        """The names that a message may use: ‹load›, ‹lanes› and so on."""
        return {
            "load": self.load(), "store": self.store(), "lanes": self.lanes or "column",
            "masked": self.masked, "tile": self.tile or "x",
            "block": next(iter(self.fixed), "BLOCK"), "columns": self.columns or "columns",
        }  # fmt: skip


def is_jit(function: ast.FunctionDef) -> bool:
    """True if the function is decorated with triton.jit."""
    return any(re.search(r"\bjit\b", ast.unparse(d)) for d in function.decorator_list)


def parameters(function: ast.FunctionDef | None) -> list[str]:
    """The names of a function's parameters, in order."""
    return [a.arg for a in _arguments(function)] if function else []


def prints_in_kernel(text: str) -> int | None:
    """The first line on which a kernel of this text prints, or None."""
    calls = [n for k in Source(text).kernels() for n in ast.walk(k) if isinstance(n, ast.Call)]
    return min((c.lineno for c in calls if re.fullmatch(r"(.*\.)?(device_)?print", ast.unparse(c.func))),
               default=None)  # fmt: skip


def assigned(function: ast.FunctionDef, name: str) -> list[int]:
    """The lines on which a function gives a variable a value."""
    names = (n for n in ast.walk(function) if isinstance(n, ast.Name) and n.id == name)
    return sorted(n.lineno for n in names if isinstance(n.ctx, ast.Store))


def _arguments(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _function(call: ast.Call) -> str:
    return ast.unparse(call.func).removeprefix("tl.")


def _stem(pointer: str) -> str:
    return pointer.removesuffix("_ptr")
