"""What Python and Triton say, and what it means.

A beginner's mistakes end in exceptions whose texts are about the inside of Triton. `translate` reads such a
text together with the learner's line and says what is wrong, what to write, and which line to mend. It knows
the interpreter's texts and the compiler's alike.
"""

import ast
import difflib
import re
from dataclasses import dataclass

ECHO = 120  # the longest line of a learner's file that is shown
LIBRARIES = {"math": "math", "np": "numpy", "numpy": "numpy", "torch": "torch"}
# What other libraries call it, or what one might think that it is called: the name in triton.language.
ALIASES = {
    "amax": "max", "amin": "min", "larger": "maximum", "smaller": "minimum", "exponential": "exp",
    "logarithm": "log", "ln": "log", "power": "exp", "pow": "exp", "fmax": "maximum", "fmin": "minimum",
    "next_power_of_2": "constexpr", "size": "num_programs", "shape": "num_programs", "write": "store",
    "read": "load", "range_": "range", "pid": "program_id", "sqr": "sqrt", "fabs": "abs", "full_like": "full",
}  # fmt: skip
LAB = ("check", "hint", "solution", "progress", "show", "predict", "compare", "explain", "traffic", "ledger")
REDUCTIONS = ("max", "min", "sum", "argmax", "argmin", "prod", "amax", "amin", "nansum", "nanmax")


@dataclass
class Meaning:
    """What an exception means. mistake: its name. line: the line to mend, if it is not the one that
    raised.
    """

    mistake: str
    what: str
    next: str
    line: int | None = None


@dataclass
class Raised:
    """An exception, and where it was raised: text is "Type: message", line None if outside the file."""

    text: str
    line: int | None
    code: "Code"

    @property
    def source(self) -> str:
        """The whole statement that raised."""
        return self.code.statement(self.line) if self.line else ""

    @property
    def function(self):
        """The function of the file that the line is in, or None."""
        return self.code.function_at(self.line) if self.line else None

    @property
    def in_kernel(self) -> bool:
        return self.function is not None and is_jit(self.function)


class Code:
    """A learner's file, to look things up in; one that Python cannot read has lines and nothing else."""

    def __init__(self, text: str):
        self.lines = text.splitlines()
        try:
            self.tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            self.tree = ast.Module([], [])
        self.functions = {n.name: n for n in ast.walk(self.tree) if isinstance(n, ast.FunctionDef)}

    def line(self, number: int) -> str:
        return self.lines[number - 1].strip() if 0 < number <= len(self.lines) else ""

    def function_at(self, line: int):
        inside = [f for f in self.functions.values() if f.lineno <= line <= f.end_lineno]
        return max(inside, key=lambda f: f.lineno, default=None)

    def statement(self, line: int) -> str:
        """The text of the statement around a line; of an `if` or a loop, that line alone."""
        for node in ast.walk(self.tree):
            simple = isinstance(node, ast.stmt) and not hasattr(node, "body")
            if simple and node.lineno <= line <= node.end_lineno:
                return " ".join(part.strip() for part in self.lines[node.lineno - 1 : node.end_lineno])
        return self.line(line)

    def assigned(self, function, name: str) -> list[int]:
        """The lines on which a function gives a variable a value."""
        return sorted(
            n.lineno
            for n in ast.walk(function)
            if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
        )

    def call_of(self, name: str) -> int | None:
        """The line of the first plain call name(…)."""
        calls = (n for n in ast.walk(self.tree) if isinstance(n, ast.Call))
        plain = (n for n in calls if isinstance(n.func, ast.Name) and n.func.id == name)
        return min((n.lineno for n in plain), default=None)

    def first_with(self, pattern: str) -> int | None:
        """The first line in which the pattern is found."""
        return next((n for n, text in enumerate(self.lines, 1) if re.search(pattern, text)), None)

    def names(self, function) -> set[str]:
        """The names that mean something inside a function."""
        nodes = [] if function is None else list(ast.walk(function))
        local = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        local |= {n.arg for n in nodes if isinstance(n, ast.arg)}
        imported = {
            (alias.asname or alias.name).split(".")[0]
            for n in self.tree.body
            if isinstance(n, (ast.Import, ast.ImportFrom))
            for alias in n.names
        }
        top = {t.id for n in self.tree.body if isinstance(n, ast.Assign) for t in n.targets
               if isinstance(t, ast.Name)}  # fmt: skip
        return local | imported | top | set(self.functions)


def is_jit(function) -> bool:
    """True if the function is decorated with triton.jit."""
    return any(re.search(r"\bjit\b", ast.unparse(d)) for d in function.decorator_list)


def prints_in_kernel(text: str) -> int | None:
    """The first line on which a kernel of this text prints, or None."""
    code = Code(text)
    return min(
        (
            node.lineno
            for function in code.functions.values()
            if is_jit(function)
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and re.fullmatch(r"(.*\.)?(device_)?print", ast.unparse(node.func))
        ),
        default=None,
    )


def echo(source: str) -> str:
    """A line of the learner's, as a message shows it."""
    source = printable(source).strip()
    return source if len(source) <= ECHO else source[: ECHO - 1] + "…"


def printable(text: str) -> str:
    """The text without terminal colours and control characters, newline and tab excepted."""
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]", "", text)


def translate(text: str, line: int | None, file_text: str) -> Meaning | None:
    """What "Type: message", raised on this line of the learner's file, means; None if it is not known."""
    raised = Raised(text, line, Code(file_text))
    for explain in EXPLAINERS:
        if (meaning := explain(raised)) is not None:
            return meaning
    for said, written, mistake, what, advice in TABLE:
        found = re.search(said, text, re.DOTALL)
        where = re.search(written, raised.source) if found and written else None
        if found and (where or not written):
            words = found.groupdict() | (where.groupdict() if where else {})
            return Meaning(mistake, fill(what, words), fill(advice, words))
    return None


def fill(text: str, words: dict) -> str:
    """The text with each ‹name› replaced by what a pattern found under that name."""
    for name, word in words.items():
        text = text.replace(f"‹{name}›", word or "")
    return text


# What needs more than a pattern. Each takes what was raised and returns a Meaning or None.


def reduction_axis(raised: Raised) -> Meaning | None:
    """tl.max(x, axis=1), tl.max(a, b), tl.sum(e, mask)."""
    found = re.search(
        r"axis (?P<axis>.*?) out of bounds for shape (?P<shape>.*)|invalid axis (?P<bad>-?\d+)\. Expected",
        raised.text,
        re.DOTALL,
    )
    call = re.search(r"\b(?P<f>max|min|sum|argmax|argmin|reduce|associative_scan|cumsum)\(", raised.source)
    name = f"tl.{call['f']}" if call else "The reduction"
    two = call and re.search(
        r"'(float|int|constexpr)' object has no attribute '(type|shape|dtype)'|`_semantic` argument",
        raised.text,
    )
    if not found and not (two and raised.in_kernel and re.search(r"\btl\.(max|min|sum)\(", raised.source)):
        return None
    axis = (found["axis"] or found["bad"]) if found else ""
    if re.fullmatch(r"-?\d+", axis.strip()):
        if found["shape"] and found["shape"].strip() == "[]":
            return Meaning(
                "not_a_tile",
                f"{name} is given a single number, which has no axis to reduce.",
                f"Leave {name} out here, or give it the tile. To compare two numbers, write tl.maximum(a, "
                f"b).",
            )
        return Meaning(
            "axis",
            f"{name} is given axis={axis.strip()}, and this tile has one axis, axis 0: in the kernel a row "
            f"is a "
            "line of lanes, not a matrix.",
            f"Write axis=0 in {name}.",
        )
    if call and call["f"] == "sum":
        return Meaning(
            "sum_reduces",
            "tl.sum takes one tile and the number of an axis; the second argument here is a tile.",
            "Write tl.sum(tile, axis=0). It takes no mask: masked lanes must hold 0 already, as exp(−∞) "
            "does.",
        )
    smaller = "minimum" if call and "min" in call["f"] else "maximum"
    return Meaning(
        "max_reduces",
        f"{name} takes one tile and reduces it to a number; here it is given two things to compare.",
        f"To compare two lane by lane, write tl.{smaller}(a, b); for one tile, {name}(x, axis=0).",
    )


def jit_missing(raised: Raised) -> Meaning | None:
    """A kernel, or a function that a kernel calls, without @triton.jit."""
    name = None
    if found := re.search(r"'function' object is not subscriptable", raised.text):
        launch = re.search(r"(\w+)\[", raised.source)
        name = launch and launch[1]
    elif found := re.search(r"Unsupported function referenced: <function (\w+)", raised.text):
        name = found[1]
    elif "`_semantic` argument" in raised.text and raised.function is not None and not raised.in_kernel:
        name = raised.function.name
    if name not in raised.code.functions:
        return None
    return Meaning(
        "jit_missing",
        f"`{name}` has no @triton.jit above it, so to Triton it is an ordinary Python function.",
        f"Write @triton.jit on the line above `def {name}`.",
        raised.code.functions[name].lineno,
    )


def bare_name(raised: Raised) -> Meaning | None:
    """load(…) after `from triton.language import load`: the interpreter finds tl's functions in tl only."""
    if "`_semantic` argument" not in raised.text or not raised.in_kernel:
        return None
    imported = {
        alias.asname or alias.name: alias.name
        for node in raised.code.tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("triton.language")
        for alias in node.names
    }
    for name in re.findall(r"(?<![\w.])(\w+)\(", raised.source):
        if name in imported or "*" in imported.values():
            real = imported.get(name, name)
            return Meaning(
                "tl_by_name",
                f"`{name}` is called without tl in front; without a GPU, Triton finds its functions in tl "
                "only.",
                f"Write tl.{real}(…), below `import triton.language as tl`.",
            )
    return None


def on_a_gpu_only(raised: Raised) -> Meaning | None:
    """libdevice is a GPU's library; in the interpreter its functions return None."""
    line = raised.code.first_with(r"\blibdevice\.\w+\(") if raised.in_kernel else None
    if line is None or "NoneType" not in raised.text:
        return None
    return Meaning(
        "libdevice",
        "libdevice is NVIDIA's library of functions for a GPU; without a GPU Triton cannot run it.",
        "Use tl's own function of that name, such as tl.exp or tl.log.",
        line,
    )


def no_grid(raised: Raised) -> Meaning | None:
    """kernel(…) without a grid."""
    if not re.search(r"no attribute 'grid_(idx|dim)'|Cannot call @triton.jit'd outside of the", raised.text):
        return None
    kernel = raised.function.name if raised.in_kernel else None
    called = re.search(r"(\w+)\(", raised.source) if not kernel else None
    kernel = kernel or (called[1] if called else "kernel")
    return Meaning(
        "kernel_called",
        f"`{kernel}` is called like a function; a kernel is launched, over a grid of programs.",
        f"Put the grid between the name and the arguments: {kernel}[(programs,)](…).",
        raised.code.call_of(kernel),
    )


def known_at_compile_time(raised: Raised) -> Meaning | None:
    """tl.arange and shapes of tiles want tl.constexpr."""
    if not re.search(r"must be of type tl\.constexpr|Shape element \d+ must have type", raised.text):
        return None
    function = raised.function
    arguments = function.args.args if function else []
    fixed = [a.arg for a in arguments if a.annotation and "constexpr" in ast.unparse(a.annotation)]
    plain = [a.arg for a in arguments if not a.annotation]
    used = [name for name in re.findall(r"\w+", raised.source.split("#")[0]) if name in plain]
    if not used:
        return Meaning(
            "not_constexpr",
            "The length of a tile must be known when the kernel is compiled; this one is computed in the "
            "kernel.",
            "Use a parameter that is declared tl.constexpr" + (f", such as {fixed[0]}." if fixed else "."),
        )
    if fixed:
        return Meaning(
            "not_constexpr",
            f"The length of a tile must be known when the kernel is compiled, and `{used[-1]}` is known only "
            "when it runs.",
            f"Use {fixed[0]}, which the signature declares tl.constexpr, and mask the lanes past the end.",
        )
    return Meaning(
        "not_constexpr",
        f"The length of a tile must be known when the kernel is compiled, and the signature does not say so "
        f"of "
        f"`{used[-1]}`.",
        f"In the signature, write {used[-1]}: tl.constexpr.",
        function.lineno,
    )


def loop_carried(raised: Raised) -> Meaning | None:
    """A variable that changes its type in a loop or between two branches."""
    found = re.search(
        r"Loop-carried variable (\w+) has initial type (.+?) but is re-assigned to (.+?) in loop", raised.text
    ) or re.search(
        r"[Mm]ismatched type for (\w+) between then block \((.+?)\) and else block \((.+?)\)", raised.text
    )
    if not found:
        return None
    name, before, after = found.groups()
    lines = raised.code.assigned(raised.function, name) if raised.function else []
    line = max((n for n in lines if n < raised.line), default=None) if raised.line else None
    if "<" in after and "<" not in before:
        what = f"`{name}` starts as one number and becomes a tile in the loop; it must keep one type."
        advice = (
            f"Reduce what is added, with tl.sum or tl.max, if `{name}` should stay a number; else start it "
            f"as a "
            f"tile, {name} = tl.zeros([BLOCK], tl.float32) or tl.full."
        )
    elif before.startswith("int") and after.startswith("fp"):
        text = raised.code.line(line) if line else ""
        number = re.search(rf"\b{name} = (-?\d+)\b", text)
        what = f"`{name}` starts as a whole number and becomes a floating-point number in the loop."
        advice = f"Write {name} = {number[1] if number else '0'}.0."
    else:
        what = f"`{name}` changes its type, from {before} to {after}; it must keep one."
        advice = f"Give `{name}` the later type from the start, with .to(…) or dtype=."
    return Meaning("compile", what, advice, line)


def unknown_name(raised: Raised) -> Meaning | None:
    """NameError and AttributeError for a module's name: a variable of one branch, or the nearest name."""
    unset = re.search(
        r"cannot access local variable '(\w+)'|local variable '(\w+)' referenced before", raised.text
    )
    found = re.search(r"NameError\W+(?:name ')?(\w+)'? is not defined", raised.text)
    name = (unset[1] or unset[2]) if unset else found[1] if found else None
    own = [a.arg for a in raised.function.args.args] if raised.function is not None else []
    if unset and f"{name}_ptr" in own and re.match(rf"{name} = tl\.load\(\s*{name}\b", raised.source):
        return Meaning(
            "unset_variable",
            f"`{name}` is what this line makes, so it cannot be loaded from: it has no value yet.",
            f"The pointer is called `{name}_ptr`: {name} = tl.load({name}_ptr + …).",
        )
    if name and raised.function is not None and raised.code.assigned(raised.function, name):
        return Meaning(
            "unset_variable" if unset or not raised.in_kernel else "compile",
            f"`{name}` gets its value only inside a loop, inside a branch, or further down, and is used here "
            "without one.",
            f"Give `{name}` a value before that loop or branch, of the same type and shape. What was loaded "
            f"in "
            "one loop is gone in the next: load it again there.",
        )
    if found:
        return Meaning("exception", *undefined(name, raised))
    module = re.search(r"module '([\w.]+)' has no attribute '(\w+)'", raised.text)
    if not module:
        return None
    written, name = module[1].replace("triton.language", "tl"), module[2]
    if name == "inf":
        return Meaning("exception", f"{written} has no `inf`.", 'Write float("inf"), or -float("inf").')
    return Meaning("exception", f"There is no {written}.{name}.", nearest_in(module[1], written, name))


def undefined(name: str, raised: Raised) -> tuple[str, str]:
    """(what is wrong, what to do) for a name that nothing defines."""
    what = f"`{name}` is not defined here."
    if name in LAB:
        return what, f"{name}(…) belongs to the notebook: call it in a cell of its own, below this one."
    if name == "math" and re.search(r"\bmath\.inf\b", raised.source):
        return what, 'For infinity write float("inf"), or -float("inf"): it needs no import.'
    if name in LIBRARIES or name in ("triton", "tl"):
        if raised.in_kernel and name in LIBRARIES:
            return what, f"A kernel needs no {LIBRARIES[name]}: tl, triton.language, has what works on tiles."
        module = {"np": "numpy as np", "tl": "triton.language as tl"}.get(name, name)
        return what, f"Put import {module} at the top of the file."
    near = difflib.get_close_matches(name, sorted(raised.code.names(raised.function)), 1)
    if near:
        return what, f"Did you mean `{near[0]}`?"
    if raised.in_kernel and ALIASES.get(name, name) in language():
        return what, f"Write tl.{ALIASES.get(name, name)}."
    return what, f"Give `{name}` a value above this line, or pass it in as an argument."


def nearest_in(module: str, written: str, name: str) -> str:
    """What to do where a module has no such name."""
    there = language() if module == "triton.language" else names_of(module)
    known = ALIASES.get(name)
    near = [known] if known in there else difflib.get_close_matches(name, sorted(there), 1)
    return f"Did you mean {written}.{near[0]}?" if near else f"Look for another function of {written}."


def language() -> set[str]:
    return names_of("triton.language")


def names_of(module: str) -> set[str]:
    """The public names of a module that is imported already."""
    import sys

    return {name for name in dir(sys.modules.get(module, None)) if not name.startswith("_")}


def call_arguments(raised: Raised) -> Meaning | None:
    """Arguments that are missing, given twice, too many, or called otherwise."""
    missing = re.search(
        r"TypeError\W+(?:(\w+)\(\) )?missing (?:a|\d+) required (?:positional |keyword-only )?arguments?: "
        r"(.+)",
        raised.text,
    )
    twice = re.search(r"(\w+)\(\) got multiple values for argument '(\w+)'", raised.text)
    many = re.search(r"(\w+)\(\) takes (?:from \d+ to )?(\d+) positional arguments? but (\d+)", raised.text)
    other = re.search(r"(?:(\w+)\(\) )?got an unexpected keyword argument '(\w+)'", raised.text)
    found = missing or twice or many or other
    if not found:
        return None
    name = found[1] or ""
    function = raised.code.functions.get(name)
    if function is None:
        return library_arguments(raised, missing, other)
    signature = f"{name}({', '.join(a.arg for a in function.args.args)})"
    launched = is_jit(function)
    calls = "launch" if launched else "call"
    mistake = "launch_arguments" if launched else "exception"
    if missing:
        names = re.sub(r"[^\w, ].*", "", missing[2].replace("'", "").replace(" and ", ", ")).strip(" ,")
        given = re.findall(r"(\w+)=", raised.source)
        last = names.split(", ")[-1]
        near = difflib.get_close_matches(last, [g for g in given if g not in signature], 1)
        if near:
            return Meaning(
                mistake,
                f"The {calls} of `{name}` gives {near[0]}=, and the parameter is called {last}.",
                f"Write {last}=.",
            )
        if not raised.line:
            return Meaning(
                mistake,
                f"`{name}` asks for {names}, and the check does not pass that.",
                "Keep the stub's `def` line as it was.",
            )
        advice = (
            f"Compare the {calls}, argument by argument, with {signature}: the first that differs is missing."
        )
        if names == last and last.isupper():
            advice = f"Add {last}= to the {calls}."
        return Meaning(mistake, f"The {calls} of `{name}` leaves out an argument; {names} gets none.", advice)
    if twice:
        what = (
            f"The {calls} of `{name}` has too many arguments before {twice[2]}=: one of them lands in its "
            "place."
        )
    elif many:
        what = f"`{name}` takes {many[2]} arguments and is given {many[3]}."
    else:
        what = f"`{name}` has no parameter called {other[2]}."
    if not raised.line:
        return Meaning(mistake, what, "Keep the stub's `def` line as it was.")
    return Meaning(mistake, what, f"Compare the {calls}, argument by argument, with {signature}.")


def library_arguments(raised: Raised, missing, other) -> Meaning | None:
    """The same for functions of Triton."""
    if not raised.in_kernel or re.search(r"\b(torch|np|numpy|math)\.\w+\(", raised.source):
        return None
    name = (missing or other)[1] if missing or other else ""
    call = f"tl.{name}" if name else "This function"
    if missing:
        names = missing[2].replace("'", "").strip(' )"')
        advice = {
            "arange": "Give it the start and the end: tl.arange(0, BLOCK).",
            "program_id": "tl.program_id(0) is this program's place along the grid's first axis.",
            "zeros": "Write tl.zeros([BLOCK], dtype=tl.float32).",
        }.get(name or (re.search(r"tl\.(\w+)\(", raised.source) or " x")[1], f"Give it {names}.")
        return Meaning("tl_arguments", f"{call} is called without {names}.", advice)
    if not other:
        return None
    word = other[2]
    if word in ("dim", "dims", "ax"):
        return Meaning("keyword_name", f"Triton says axis=, not {word}=.", "Write axis=0.")
    if word in ("keepdim", "keepdims"):
        return Meaning(
            "keyword_name",
            f"Triton has no {word}=; its own is keep_dims=.",
            f"Leave {word} out: the result is one number, and it joins with a tile as it is.",
        )
    if word == "mask":
        return Meaning(
            "keyword_name",
            f"{call} takes no mask: by then the masked lanes must hold what does no harm.",
            "Leave mask out here; choose other= of the tl.load so that those lanes do not count.",
        )
    keywords = ("mask", "other", "axis", "keep_dims", "dtype", "eviction_policy")
    near = difflib.get_close_matches(word, keywords, 1)
    advice = f"Did you mean {near[0]}=?" if near else f"Leave {word}= out."
    return Meaning("keyword_name", f"{call} has no argument {word}=.", advice)


def launched_wrongly(raised: Raised) -> Meaning | None:
    """x.stride without brackets, and a keyword that the kernel does not have: to be mended at the launch."""
    if re.search(r"'?(builtin_function_or_method|method)'? object has no attribute", raised.text):
        line = raised.code.first_with(r"\.(stride|size|numel|dim)\s*[,)]")
        if line:
            return Meaning(
                "stride_not_called",
                "An argument of the launch is a function and not a number: its brackets are missing.",
                "In the launch write x.stride(0), not x.stride.",
                line,
            )
    if found := re.search(r"[Kk]eyword argument (\w+) was specified but unrecogni[sz]ed", raised.text):
        return Meaning(
            "launch_arguments",
            f"The launch gives {found[1]}=, and the kernel has no parameter of that name.",
            f"Leave {found[1]}= out, or add {found[1]} to the kernel's signature.",
            raised.code.first_with(rf"\b{found[1]}="),
        )
    return None


def library_in_kernel(raised: Raised) -> Meaning | None:
    """math.exp, np.exp, torch.exp on a tile."""
    if not raised.in_kernel and "Unsupported function referenced" in raised.text:
        return called_somewhere(raised)
    call = re.search(r"\b(math|np|numpy|torch)\.(\w+)\(", raised.source)
    if not (raised.in_kernel and call) or "is not defined" in raised.text:
        return None
    return other_library(call[1], call[2])


def called_somewhere(raised: Raised) -> Meaning | None:
    """The compiler names the function and not the line: look for it in the kernels."""
    for function in filter(is_jit, raised.code.functions.values()):
        for line in range(function.lineno, function.end_lineno + 1):
            if call := re.search(r"\b(math|np|numpy|torch)\.(\w+)\(", raised.code.line(line)):
                meaning = other_library(call[1], call[2])
                meaning.line = line
                return meaning
    return None


def other_library(alias: str, name: str) -> Meaning:
    own = name if name in REDUCTIONS[:5] else ALIASES.get(name, name)
    mistake = "torch_in_kernel" if alias == "torch" else "python_math"
    what = f"{alias}.{name} cannot work on a tile: inside a kernel there are Triton's functions only."
    if own in REDUCTIONS:
        return Meaning(mistake, what, f"Write tl.{own}(x, axis=0).")
    if own in language():
        return Meaning(mistake, what, f"Write tl.{own}.")
    return Meaning(mistake, what, "Look for its like in triton.language, or leave it out.")


EXPLAINERS = (
    reduction_axis,
    jit_missing,
    bare_name,
    on_a_gpu_only,
    no_grid,
    known_at_compile_time,
    loop_carried,
    unknown_name,
    call_arguments,
    launched_wrongly,
    library_in_kernel,
)

# (what the exception says, what stands in the line, mistake, what is wrong, what to do); the first two are
# regular expressions, and ‹name› stands for what one of them found under that name.
TABLE = (
    (
        "power of 2",
        "",
        "arange_not_power_of_two",
        "tl.arange takes a length that is a power of two, and this one is not.",
        "Round the number of columns up with triton.next_power_of_2 and mask the lanes past the row.",
    ),
    (
        "exceeds triton maximum tensor numel",
        "",
        "block_too_large",
        "A block may hold at most 2**20 elements, and this one is larger.",
        "Walk the row in tiles.",
    ),
    (
        "`other` cannot be provided without `mask`",
        "",
        "load_mask",
        "tl.load has an other=, but no mask=: it would load past the end of the row.",
        "Give tl.load the mask column < columns.",
    ),
    (
        "Torch not compiled with CUDA|Found no NVIDIA driver",
        "",
        "device_named",
        "The file asks for the GPU by name, and the check runs on the CPU first.",
        'Make tensors with device=x.device, or torch.empty_like(x), in place of device="cuda".',
    ),
    (
        r"'torch\.dtype' object has no attribute",
        "",
        "torch_dtype",
        "A kernel does not know PyTorch's dtypes; it has its own.",
        "Write tl.float32 in place of torch.float32.",
    ),
    (
        r"'tensor' object has no attribute '(?P<a>float|half|double|type_as|astype)'",
        "",
        "torch_method",
        "A tile is not a PyTorch tensor and has no .‹a›().",
        "Write .to(tl.float32).",
    ),
    (
        r"'tensor' object has no attribute '(?P<a>stride|size)'|list index out of range",
        r"\.(stride|size)\(|\.shape\[",
        "pointer_has_no_shape",
        "Inside the kernel a tensor is only the address of its first element: it has no shape and no "
        "strides.",
        "Pass the number in as an argument, as x.stride(0) is.",
    ),
    (
        r"of type 'tensor' has no len",
        "",
        "pointer_has_no_shape",
        "Inside the kernel a tensor is only an address, or a tile: it has no len().",
        "Pass the number of columns in as an argument.",
    ),
    (
        r"has no attribute 'to_tensor'|'tensor' object has no attribute",
        r"(?<!\btl)\.(?P<f>exp|log|sqrt|abs|exp2|log2|maximum|minimum|max|sum)\(",
        "torch_method",
        "A tile is not a PyTorch tensor: .‹f›() is not called on it.",
        "Write tl.‹f›(…).",
    ),
    (
        r"'tensor' object has no attribute '(?P<a>\w+)'",
        "",
        "torch_method",
        "A tile is not a PyTorch tensor and has no .‹a›.",
        "Look for a function of triton.language, tl, that does it.",
    ),
    (
        r"not iterable|requires at least 2 values|ambiguous",
        r"(?<![\w.])(?P<f>max|min|sum)\(",
        "python_reduction",
        "‹f›() here is Python's own, which goes through a list; a tile is not one.",
        "Write tl.‹f›(x, axis=0).",
    ),
    (
        r"not iterable",
        r"^for \w+ in (?!range|tl\.)",
        "walks_over_tile",
        "A kernel cannot go through the lanes of a tile one by one; each operation is for all of them.",
        "Leave the loop out and write the operation once, on the tile.",
    ),
    (
        r"not iterable|only length-1|only 0-dim|not support item assignment|__setitem__|`_semantic` argument|"
        r"unsupported tensor index",
        r"^(?P<t>\w+)\[[^\]]*\]\s*[-+*/]?=(?!=)",
        "indexed",
        "‹t›[…] = … does not store: in a kernel a pointer is an address, and a tile has no places to write "
        "to.",
        "Store with tl.store(y_ptr + row * y_stride + column, y, mask=mask); to change some lanes of a "
        "tile, use "
        "tl.where.",
    ),
    (
        r"not iterable|only length-1|only 0-dim|unsupported tensor index|`_semantic` argument|subscript",
        r"(?P<t>\w+)\s*\[",
        "indexed",
        "‹t›[…] does not load: in a kernel a pointer is an address, and a tile cannot be taken apart.",
        "Load with tl.load(x_ptr + row * x_stride + column, mask=mask), and choose lanes with a mask.",
    ),
    (
        r"object of type '\w+' has no len\(\)|object is not iterable",
        r"(?P<k>\w+)\[\(?(?P<g>[^\[\],]*?)\)?\]\(",
        "grid_not_tuple",
        "The grid of a launch is a tuple, one number an axis; this one is a number alone.",
        "Write ‹k›[(‹g›,)](…): the comma makes it a tuple.",
    ),
    (
        r"'(?P<t>float|NoneType|str|Tensor)' object cannot be interpreted as an integer",
        r"\]\(",
        "grid_not_whole",
        "The grid of a launch holds whole numbers, and here it holds a ‹t›.",
        "Count the programs with triton.cdiv(a, b) or with //, not with /.",
    ),
    (
        r"Unsupported ptr type .* in `tl\.store`",
        "",
        "store_arguments",
        "tl.store takes the address first and the value second; here the first is no address.",
        "Write tl.store(y_ptr + row * y_stride + column, y, mask=mask).",
    ),
    (
        r"Unsupported ptr type .* in `tl\.load`",
        "",
        "load_arguments",
        "tl.load needs addresses, and what it is given here are numbers.",
        "Begin with the pointer: tl.load(x_ptr + row * x_stride + column, mask=mask).",
    ),
    (
        r"unexpected type (fp|bf)\d+",
        r"//",
        "floor_division",
        "// divides whole numbers, and these are floating-point numbers.",
        "Write / in place of //.",
    ),
    (
        r"cannot cast (\[+ *\d{9,}|pointer)|'pointer_type' object has no attribute|"
        r"invalid operands of type pointer",
        "",
        "pointer_value",
        "These are addresses, not the numbers that are stored there: nothing was loaded.",
        "Load first: x = tl.load(x_ptr + row * x_stride + column, mask=mask).",
    ),
    (
        r"Mask argument cannot be block type|Value argument cannot be block type",
        r"tl\.(?P<f>load|store)\(\s*\w+_ptr\s*,",
        "scalar_address",
        "The pointer is given alone, and what follows the comma is not taken for a place in the row.",
        "Add the place to the pointer: tl.‹f›(x_ptr + row * x_stride + column, …).",
    ),
    (
        r"(?P<w>Mask|Value) argument cannot be block type if pointer argument is not a block",
        r"tl\.(?P<f>load|store)",
        "scalar_address",
        "The address in tl.‹f› is a single one, and it is used for a whole tile.",
        "Add the lanes to the address, … + row * y_stride + column. If one number belongs there, reduce the "
        "tile first: tl.max(x, axis=0), tl.sum(e, axis=0).",
    ),
    (
        "is not string|f-string|device_print",
        r"\bprint\(",
        "print_in_kernel",
        "print in a kernel takes a text first, and the compiler will not have a tile there.",
        'Write tl.device_print("x", x), and take it out when you have seen enough: a print costs registers.',
    ),
    (
        r"Cannot access global variable (?P<g>\w+)",
        "",
        "global_variable",
        "The kernel reads the global variable ‹g›, which may have changed by the time it runs.",
        "Write the number in the kernel, pass it in as an argument, or define ‹g› = tl.constexpr(…).",
    ),
    (
        "simultaneous multiple comparison",
        "",
        "compile",
        "a <= b < c compares twice at once, which the compiler does not do.",
        "Write (a <= b) & (b < c).",
    ),
    (
        "[Bb]oolean value of Tensor|truth value of an array|unsupported chained boolean|logical_and",
        r"\b(and|or|not)\b",
        "compile",
        "`and`, `or` and `not` are for single values, and this is a tile.",
        "Use &, | and ~ with each comparison in brackets: (a < b) & (c < d).",
    ),
    (
        "[Bb]oolean value of Tensor|truth value of an array",
        "",
        "compile",
        "A decision is taken once for the whole program, and the condition here is a tile with an answer a "
        "lane.",
        "Write tl.where(condition, a, b), which chooses lane by lane.",
    ),
    (
        r"[Ii]ncompatible dimensions at index \d+: (?P<a>\d+) and (?P<b>\d+)",
        "",
        "tile_lengths",
        "Two tiles of different lengths meet: ‹a› lanes and ‹b›.",
        "Make both from the same tl.arange.",
    ),
    (
        r"\*\* or pow\(\)|__r?pow__",
        "",
        "power",
        "Triton does not raise a number to a tile.",
        "Write tl.exp(x) for e to the x, and tl.exp2(x) for 2 to the x.",
    ),
    (
        r"cannot convert (?P<t>\S+) of type <class 'str'>",
        "",
        "number_as_text",
        "‹t› stands here as a text, not as a number.",
        'Take the quotation marks off, and for infinity write float("inf").',
    ),
    (
        r"(int|float|bool)\(\) argument must be",
        r"(?<![\w.])(?P<f>int|float|bool)\(",
        "python_conversion",
        "‹f›() is Python's, and a value in a kernel is known only when it runs.",
        "Leave ‹f›() out, or convert with .to(tl.float32) or .to(tl.int32).",
    ),
    (
        r"program_id axis must be 0, 1, or 2",
        "",
        "program_id_axis",
        "A grid has the axes 0, 1 and 2, and no other.",
        "Write tl.program_id(0).",
    ),
    (
        r"comprehensions",
        "",
        "compile",
        "Inside a kernel there are no lists built by a loop.",
        "Write the loop out, and keep one number or one tile in a variable.",
    ),
    (
        r"RecursionError",
        "",
        "exception",
        "A function calls itself without end.",
        "Look for a function that calls its own name.",
    ),
)
