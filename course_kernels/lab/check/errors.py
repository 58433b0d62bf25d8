"""From an exception, a compiler's message, or a run that did not come back, to what a learner is told.

A beginner's mistakes end in exceptions whose texts are about the inside of Triton. `translate` reads such a
text together with the learner's file, and says what is wrong, what to write, and which line to fix. It knows
the interpreter's texts and the compiler's alike; most of them stand in `messages`.
"""

import ast
import difflib
import re
import sys
import textwrap
from dataclasses import dataclass, field

from course_kernels.lab.check import messages
from course_kernels.lab.check.finding import Evidence, Finding, Likely
from course_kernels.lab.check.mistakes import fill
from course_kernels.lab.check.source import Own, Source, assigned, is_jit, parameters
from course_kernels.lab.core.wording import echo

NOTEBOOK = (
    "check",
    "hint",
    "solution",
    "progress",
    "show",
    "predict",
    "compare",
    "explain",
    "traffic",
    "ledger",
)
KEYWORDS = ("mask", "other", "axis", "keep_dims", "dtype", "eviction_policy")  # of tl's functions
SYNTAX = ("SyntaxError", "IndentationError", "TabError")


@dataclass
class Meaning:
    """What an exception means. mistake: its name. line: the line to fix, if it is not the one that raised."""

    mistake: str
    what: str
    next: str
    line: int | None = None


@dataclass
class Raised:
    """An exception, and where it was raised: text is "Type: message", line None if outside the file."""

    text: str
    line: int | None
    source: Source
    max_tile: int | None = None  # the exercise's limit
    statement: str = field(init=False)  # the whole statement that raised
    own: Own = field(init=False)

    def __post_init__(self):
        self.statement = self.source.statement(self.line) if self.line else ""
        self.function = self.source.function_at(self.line) if self.line else None
        self.in_kernel = self.function is not None and is_jit(self.function)
        self.own = self.source.own(self.function)

    def search(self, pattern: str) -> re.Match | None:
        """Where the exception's text holds a pattern."""
        return re.search(pattern, self.text, re.DOTALL)


def translate(text: str, line: int | None, file_text: str, exercise=None) -> Meaning | None:
    """What "Type: message", raised on this line of the learner's file, means; None if it is not known."""
    raised = Raised(text, line, Source(file_text), getattr(exercise, "max_tile", None))
    readings = [lambda r, row=row: read(row, r) for row in getattr(exercise, "translations", ())]
    readings += [*EXPLAINERS, *(lambda r, row=row: read(row, r) for row in messages.ROWS)]
    return next(filter(None, (reading(raised) for reading in readings)), None)


def read(row: messages.Row, raised: Raised) -> Meaning | None:
    """What a row of the table makes of an exception."""
    said = raised.search(row.said)
    code = re.search(row.code, raised.statement) if said else None
    if not code or row.inside not in (None, raised.in_kernel):
        return None
    words = {"function": raised.function.name if raised.function is not None else "?"}
    words |= said.groupdict("") | code.groupdict("")
    line = raised.source.first_with(fill(row.line, words)) if row.line else None
    if row.line and line is None:
        return None
    if line:
        words |= re.search(fill(row.line, words), raised.source.lines[line - 1]).groupdict("")
    words = raised.own.words() | place_words(raised) | found_words(raised, words) | words
    return Meaning(row.mistake, fill(row.what, words), fill(row.next, words), line)


def found_words(raised: Raised, found: dict) -> dict[str, str]:
    """What a text says of the names that a row's patterns found."""
    near = difflib.get_close_matches(found.get("k", ""), KEYWORDS, 1)
    return {
        "near": f"Did you mean {near[0]}=?" if near else f"Leave {found.get('k', '')}= out.",
        "torch": "sum" if found.get("f") == "sum" else f"a{found.get('f', '')}",
        "power": power_of_two(raised),
        "message": raised.text.partition(": ")[2],
    }


def place_words(raised: Raised) -> dict[str, str]:
    """The tl.load or tl.store that raised: its address, the value stored, and how to reduce that."""
    own, line = raised.own, raised.line or 0
    call = next((c for c in own.loads + own.stores if c.lineno <= line <= c.end_lineno and c.args), None)
    if call is None:
        return {}
    value = ast.unparse(call.args[1]) if len(call.args) > 1 else own.tile or "x"
    made = "\n".join(n for n in raised.source.lines if re.match(rf"\s*{re.escape(value)} *[-+*/]?=[^=]", n))
    keeps = "max" if "max" in made or value == own.tile else "sum"
    return {
        "address": ast.unparse(call.args[0]),
        "value": value,
        "reduced": f"tl.{keeps}({value}, axis=0)",
        "place": own.address(own.pointer(call.args[0]) or "x_ptr"),
    }


def power_of_two(raised: Raised) -> str:
    """What to do about a length that is no power of two."""
    length = re.search(r"tl\.arange\(\s*0\s*,\s*([^)]*)\)", raised.statement)
    name = length[1].strip() if length else ""
    number = raised.source.constant(raised.own.arguments.get(name, name))
    limit = f" of at most {raised.max_tile}" if raised.max_tile else ""
    if number:
        power = min(1 << (number - 1).bit_length(), raised.max_tile or number * 2)
        written = f"{name}={power}" if name.isidentifier() else f"tl.arange(0, {power})"
        return f"Write {written}, a power of two{limit}, and mask the lanes past the row."
    if limit:
        return f"Give a tile a fixed width, a power of two{limit}, and mask the lanes past the row."
    return "Round the number of columns up with triton.next_power_of_2 and mask the lanes past the row."


# What needs more than a row. Each takes what was raised and returns a Meaning or None.


def bare_name(raised: Raised) -> Meaning | None:
    """load(…) after `from triton.language import load`: the interpreter finds tl's functions in tl only."""
    if not raised.in_kernel or not raised.search("`_semantic` argument"):
        return None
    imported = {
        n: whole for n, whole in raised.source.imported().items() if whole.startswith("triton.language.")
    }
    for name in re.findall(r"(?<![\w.])(\w+)\(", raised.statement):
        if name in imported or "*" in imported:
            return Meaning(
                "tl_by_name",
                f"`{name}` is called without tl in front; without a GPU, Triton finds its functions in tl "
                "only.",
                f"Write tl.{imported.get(name, name).split('.')[-1]}(…), below "
                "`import triton.language as tl`.",
            )
    return None


def known_at_compile_time(raised: Raised) -> Meaning | None:
    """tl.arange and shapes of tiles want tl.constexpr."""
    if not raised.search(r"must be of type tl\.constexpr|Shape element \d+ must have type"):
        return None
    must = "The length of a tile must be known when the kernel is compiled"
    words = re.findall(r"\w+", raised.statement.split("#")[0])
    fixed, plain = raised.own.fixed, [p for p in parameters(raised.function) if p not in raised.own.fixed]
    used = [name for name in words if name in plain]
    if fixed:
        # The one of nearly the same name, such as CHUNKS for chunks.
        alike = difflib.get_close_matches((used or words)[-1].upper(), [f.upper() for f in fixed], 1, 0)
        nearest = next((f for f in fixed if f.upper() == alike[0]), fixed[0]) if alike else fixed[0]
    if not used:
        near = next((f for w in words for f in fixed if f.upper() == w.upper()), nearest if fixed else None)
        return Meaning(
            "not_constexpr",
            f"{must}; this one is computed in the kernel.",
            "Use a parameter that is declared tl.constexpr" + (f", such as {near}." if near else "."),
        )
    if fixed:
        return Meaning(
            "not_constexpr",
            f"{must}, and `{used[-1]}` is known only when it runs.",
            f"Use {nearest}, which the signature declares tl.constexpr, and mask the lanes past the end.",
        )
    return Meaning(
        "not_constexpr",
        f"{must}, and the signature does not say so of `{used[-1]}`.",
        f"In the signature, write {used[-1]}: tl.constexpr.",
        raised.function.lineno,
    )


def loop_carried(raised: Raised) -> Meaning | None:
    """A variable that changes its type in a loop or between two branches."""
    found = raised.search(
        r"Loop-carried variable (\w+) has initial type (.+?) but is re-assigned to (.+?) in loop"
    ) or raised.search(r"[Mm]ismatched type for (\w+) between then block \((.+?)\) and else block \((.+?)\)")
    if not found:
        return None
    name, before, after = found.groups()
    lines = assigned(raised.function, name) if raised.function else []
    line = max((n for n in lines if n < raised.line), default=None) if raised.line else None
    started = re.search(rf"\b{name} = ([^#]*)", raised.source.line(line)) if line else None
    value = started[1].strip() if started else "0"
    if "<" in after and "<" not in before:
        low = "inf" in value
        block = raised.own.words()["block"]
        tile = f"tl.full([{block}], {value}, tl.float32)" if low else f"tl.zeros([{block}], tl.float32)"
        what = f"`{name}` starts as one number and becomes a tile in the loop; it must keep one type."
        advice = (
            f"If `{name}` should stay a number, reduce what joins it, with tl.{'max' if low else 'sum'}; "
            f"if each lane should keep its own, start it as a tile: {name} = {tile}."
        )
    elif before.startswith("int") and after.startswith("fp"):
        what = f"`{name}` starts as a whole number and becomes a floating-point number in the loop."
        advice = f"Write {name} = {value if re.fullmatch(r'-?[0-9]+', value) else 0}.0."
    else:
        what = f"`{name}` changes its type, from {before} to {after}; it must keep one."
        advice = f"Give `{name}` the later type from the start, with .to(…) or dtype=."
    return Meaning("compile", what, advice, line)


def unknown_name(raised: Raised) -> Meaning | None:
    """NameError and AttributeError for a module's name: a variable of one branch, or the nearest name."""
    unset = raised.search(r"(?:cannot access local|local) variable '(\w+)'")
    found = raised.search(r"NameError\W+(?:name ')?(\w+)'? is not defined")
    name = (unset or found)[1] if unset or found else None
    pointer = f"{name}_ptr" in parameters(raised.function)
    if unset and pointer and re.match(rf"{name} = tl\.load\(\s*{name}\b", raised.statement):
        return Meaning(
            "unset_variable",
            f"`{name}` is what this line makes, so it cannot be loaded from: it has no value yet.",
            f"The pointer is called `{name}_ptr`: {name} = tl.load({name}_ptr + …).",
        )
    if name and raised.function is not None and assigned(raised.function, name):
        return Meaning(
            "unset_variable" if unset or not raised.in_kernel else "compile",
            f"`{name}` gets its value only inside a loop, inside a branch, or further down, "
            "and is used here without one.",
            f"Give `{name}` a value before that loop or branch, of the same type and shape. "
            "What was loaded in one loop is gone in the next: load it again there.",
        )
    if found:
        return Meaning("exception", f"`{name}` is not defined here.", undefined(name, raised))
    module = raised.search(r"module '([\w.]+)' has no attribute '(\w+)'")
    if not module:
        return None
    written, name = module[1].replace("triton.language", "tl"), module[2]
    if name == "inf":
        return Meaning("exception", f"{written} has no `inf`.", 'Write float("inf"), or -float("inf").')
    near = nearest(name, names_of(module[1]))
    advice = f"Did you mean {written}.{near}?" if near else f"Look for another function of {written}."
    return Meaning("exception", f"There is no {written}.{name}.", advice)


def undefined(name: str, raised: Raised) -> str:
    """What to do about a name that nothing defines."""
    known = raised.source.names(raised.function)
    if name in NOTEBOOK:
        return f"{name}(…) belongs to the notebook: call it in a cell of its own, below this one."
    if name == "math" and re.search(r"\bmath\.inf\b", raised.statement):
        return 'For infinity write float("inf"), or -float("inf"): it needs no import.'
    if name in messages.LIBRARIES and raised.in_kernel:
        library = messages.LIBRARIES[name]
        return f"A kernel needs no {library}: tl, triton.language, has what works on tiles."
    if name in messages.LIBRARIES or name in ("triton", "tl"):
        module = {"np": "numpy as np", "tl": "triton.language as tl"}.get(name, name)
        return f"Put import {module} at the top of the file."
    if len(name) > 1 and set(name) <= known:
        return f"A product is written with a *: {' * '.join(name)}."
    if near := difflib.get_close_matches(name, sorted(known), 1):
        return f"Did you mean `{near[0]}`?"
    if raised.in_kernel and (own := messages.ALIASES.get(name, name)) in names_of("triton.language"):
        return f"Write tl.{own}."
    if re.search(rf"(?<![\w.]){name}\(", raised.statement):
        jit = " with @triton.jit above it," if raised.in_kernel else ""
        return f"Define `{name}` in this file,{jit} before it is called: each file is checked on its own."
    return f"Give `{name}` a value above this line, or pass it in as an argument."


def nearest(name: str, there: set[str]) -> str | None:
    """The name that was meant, among those there are."""
    if messages.ALIASES.get(name) in there:
        return messages.ALIASES[name]
    return next(iter(difflib.get_close_matches(name, sorted(there), 1)), None)


def names_of(module: str) -> set[str]:
    """The public names of a module that is imported already."""
    return {name for name in dir(sys.modules.get(module, None)) if not name.startswith("_")}


def call_arguments(raised: Raised) -> Meaning | None:
    """Arguments of the file's own functions that are missing, given twice, too many, or called otherwise."""
    missing = raised.search(
        r"(?:(\w+)\(\) )?missing (?:a|\d+) required (?:positional |keyword-only )?arguments?: (.+)"
    )
    twice = raised.search(r"(\w+)\(\) got multiple values for argument '(\w+)'")
    many = raised.search(r"(\w+)\(\) takes (?:from \d+ to )?(\d+) positional arguments? but (\d+)")
    other = raised.search(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'")
    found = missing or twice or many or other
    function = raised.source.functions.get(found[1]) if found else None
    if function is None:
        return None
    name, launched = function.name, is_jit(function)
    signature = f"{name}({', '.join(parameters(function))})"
    calls = "launch" if launched else "call"
    mistake = "launch_arguments" if launched else "exception"
    advice = f"Compare the {calls}, argument by argument, with {signature}."
    if missing:
        names = re.sub(r"[^\w, ].*", "", missing[2].replace("'", "").replace(" and ", ", ")).strip(" ,")
        last = names.split(", ")[-1]
        given = [g for g in re.findall(r"(\w+)=", raised.statement) if g not in signature]
        if near := difflib.get_close_matches(last, given, 1):
            what = f"The {calls} of `{name}` gives {near[0]}=, and the parameter is called {last}."
            advice = f"Write {last}=."
        elif not raised.line:
            what = f"`{name}` asks for {names}, and the check does not pass that."
        else:
            what = f"The {calls} of `{name}` leaves out an argument; {names} gets none."
            advice = f"{advice[:-1]}: the first that differs is missing."
            advice = f"Add {last}= to the {calls}." if names == last and last.isupper() else advice
    elif twice:
        what = f"The {calls} of `{name}` has too many arguments before {twice[2]}=: one lands in its place."
    elif many:
        what = f"`{name}` takes {many[2]} arguments and is given {many[3]}."
    else:
        what = f"`{name}` has no parameter called {other[2]}."
    return Meaning(mistake, what, advice if raised.line else "Keep the stub's `def` line as it was.")


def library_in_kernel(raised: Raised) -> Meaning | None:
    """math.exp, np.exp, torch.exp on a tile."""
    line = None
    pattern = rf"\b({'|'.join(messages.LIBRARIES)})\.(\w+)\("
    call = re.search(pattern, raised.statement) if raised.in_kernel else None
    if not raised.in_kernel and raised.search("Unsupported function referenced"):
        # The compiler names the function and not the line: look for it in the kernels.
        numbers = (n for k in raised.source.kernels() for n in range(k.lineno, k.end_lineno + 1))
        line = next((n for n in numbers if re.search(pattern, raised.source.line(n))), None)
        call = re.search(pattern, raised.source.line(line)) if line else None
    if not call or raised.search("is not defined"):
        return None
    alias, name = call.groups()
    own = name if name in messages.REDUCTIONS else messages.ALIASES.get(name, name)
    advice = "Look for its like in triton.language, or leave it out."
    if own in names_of("triton.language"):
        advice = f"Write tl.{own}(x, axis=0)." if own in messages.REDUCTIONS else f"Write tl.{own}."
    return Meaning(
        "torch_in_kernel" if alias == "torch" else "python_math",
        f"{alias}.{name} cannot work on a tile: inside a kernel there are Triton's functions only.",
        advice,
        line,
    )


EXPLAINERS = (
    bare_name, known_at_compile_time, loop_carried, unknown_name, call_arguments, library_in_kernel,
)  # fmt: skip


# From what a run reported to a Finding


def check_error(facts, case, exercise) -> None:
    """Raise a Finding for a run that raised or that used what is ruled out.

    facts: `.error` and `.message` of the run. case: the one under way, or None.
    """
    importing = facts.message.get("at") == "import"
    where = (
        f"The case under way: {case.shape} {case.x.dtype}, {case.about}." if case and not importing else ""
    )
    error = facts.error
    if refused := facts.message.get("refused"):
        raise pytorch_worked(refused, error, where)
    if error:
        raise of_exception(error, where, exercise)


def of_exception(error: dict, where: str, exercise) -> Finding:
    """The Finding for an exception, as `run` describes it."""
    place, text = at_line(error["line"], error["source"]), error["text"]
    if error["rule"]:
        rule, *rest = error["rule"]
        return imported(error, rule) or broken_rule(rule, rest, exercise)
    if error["type"] == "NotImplementedError" and "raise" in error["source"]:  # not a library's own
        todo = textwrap.shorten(text, 300)
        what = f"Still to do: {todo}." if todo else "Something is still to do."
        return Finding("todo", what.replace("..", "."), place, status="todo")
    at = f"{place} {where}".strip()
    if error["type"] == "SystemExit":
        return stopped_as("exit", at)
    if error["type"] == "MemoryError" or "can't allocate memory" in text:
        return stopped_as("memory", at)
    plain = re.sub(r"\[[^\[\]]{60,}(\]|$)", "[…]", text)  # a tile's numbers tell nothing here
    said = f"{error['type']}: {textwrap.shorten(plain, 300) or 'no message'}"
    meaning = translate(f"{error['type']}: {text}", error["line"], error.get("file", ""), exercise)
    if meaning is None:
        advice = "Fix that line and check again." if place else ""
        at = at or "It was raised outside your file."
        return Finding("exception", f"Your code raised {said}", at, next=advice, status="error")
    at = f"{fix_line(meaning, error['line'], place, error.get('file', ''))} {where}".strip()
    why = "" if error["type"] in SYNTAX else f"Python says: {textwrap.shorten(said, 160)}"
    return Finding(meaning.mistake, meaning.what, at, Evidence(why), meaning.next, "error")


def pytorch_worked(operation: str, error: dict | None, where: str) -> Finding:
    """PyTorch did what a kernel should do."""
    line = f" (line {error['line']}: `{error['source']}`)" if error and error["line"] else ""
    copied = operation in ("clone", "copy_", "_to_copy", "contiguous")
    mistake, what, why, advice = messages.COPIES if copied else messages.TORCH_WORK
    words = {"operation": operation, "line": line}
    return Finding(mistake, fill(what, words), where, Evidence(fill(why, words)), advice)


def imported(error: dict, rule: str) -> Finding | None:
    """An import that did what the rule forbids, for a reason of its own; None if it was no import."""
    line = Source(error.get("file", "")).statement(error["line"]) if error["line"] else ""
    lab = "course_kernels.lab" in line
    if not re.match(r"(import|from) ", line) or rule not in ("outside_world", "answer_opened"):
        return None
    if rule == "answer_opened" and not lab:
        return None
    what, why, advice = messages.LAB_IMPORTED if lab else messages.WORLD_IMPORTED
    return Finding(rule, what, at_line(error["line"], echo(line)), Evidence(why), advice, "error")


def broken_rule(rule: str, rest: list, exercise) -> Finding:
    """What the run refused to do."""
    what, advice = exercise.refusals.get(rule) or messages.RULES[rule]
    words = {
        "it": rest[0] if rest else "the answer", "brief": exercise.brief, "name": exercise.name,
        "library_advice": exercise.library_advice,
    }  # fmt: skip
    status = "error" if rule == "entry_missing" else "fail"
    return Finding(rule, fill(what, words), next=fill(advice, words), status=status)


def out_of_place(line: int, what: str, why: str, advice: str) -> Finding:
    """For a file that is right and uses what no exercise needs."""
    said = f"The values are right, but the file uses `{what}` (line {line}), which no exercise needs."
    return Finding("out_of_place", said, evidence=Evidence(why), next=advice)


def at_line(line: int | None, source: str) -> str:
    """Where it was raised, as a sentence; empty outside the file."""
    return f"At line {line}: `{source}`." if line else ""


def fix_line(meaning: Meaning, line: int | None, place: str, text: str) -> str:
    """Where it was raised, and which line to fix, if that is another one."""
    if not meaning.line or meaning.line == line:
        return place
    other = f"The line to fix is line {meaning.line}: `{echo(Source(text).line(meaning.line))}`."
    return f"{other} It showed at line {line}." if line else other


# Runs that did not come back


def stopped(run, text: str) -> Finding:
    """The Finding for a run that ended without an answer (`run.session.Stopped`); text: the file's."""
    case = (
        f"The case under way: {run.case}." if run.case else "It happened while the file was being imported."
    )
    if run.kind == "timeout":
        why, advice = slow(Source(text))
        what = f"Your code did not end within {run.seconds:.0f} seconds and was stopped."
        return Finding("timeout", what, case, why, advice, "error")
    return stopped_as(run.kind, case, {"code": run.code, "raised": run.text})


def stopped_as(kind: str, case: str, words: dict | None = None) -> Finding:
    mistake, what, advice = messages.STOPPED[kind]
    if kind == "changed":
        return Finding(mistake, what, next=advice)
    return Finding(mistake, fill(what, words or {}), case, next=advice, status="error")


def slow(source: Source) -> tuple[Evidence, str]:
    """(the likely reason, what to do) for a file that did not end in time."""
    for kernel in source.kernels():
        for loop in (node for node in ast.walk(kernel) if isinstance(node, ast.For)):
            body = "\n".join(map(ast.unparse, loop.body))
            if "tl.load" in body and re.fullmatch(r"(tl\.)?range\((\w+, )?\w+\)", ast.unparse(loop.iter)):
                return one_by_one(source, source.own(kernel), loop, body)
    loops = [n for n in ast.walk(source.tree) if isinstance(n, ast.While | ast.For)]
    if loops:
        loop = next((n for n in loops if isinstance(n, ast.While)), loops[0])
        why = Likely(f"line {loop.lineno}: `{echo(source.line(loop.lineno))}` does not come to its end.")
        return why, "Check that each loop moves forward, and that its end is reached."
    launch = source.first_with(r"\w\[.*\]\(")
    if launch:
        why = (
            f"line {launch}: `{echo(source.line(launch))}`. Without a GPU the programs run one after another."
        )
        return Likely(
            why
        ), "Launch no more programs than the work needs: one for each row, where each takes a row."
    return (
        Evidence(),
        "Remove what waits, such as time.sleep or input, and what calls itself again and again.",
    )


def one_by_one(source: Source, own: Own, loop: ast.For, body: str) -> tuple[Evidence, str]:
    """The same for a loop of a kernel that goes one column at a time."""
    variable, tile, end = ast.unparse(loop.target), own.words()["block"], ast.unparse(loop.iter.args[-1])
    why = f"line {loop.lineno}: `{source.line(loop.lineno)}`, which goes on by 1 in each round: "
    why += "as many rounds as a row has columns, tens of thousands in some rows here."
    whole = any(re.search(rf"\b{name}\b", body) for name in ("arange", *own.spread))
    if whole:
        return Likely(
            why
        ), f"Each round is for a whole tile, so the step is missing: range(0, {end}, {tile})."
    advice = (
        f"Let the lanes take many columns at once: {variable} + tl.arange(0, {tile}), with a step of {tile}."
    )
    return Likely(why), advice


# Why the compiler rejects a kernel


def compile_findings(report: dict, text: str = "") -> Finding | None:
    """Why the compiler rejects a kernel that the interpreter ran; None if it does not.

    report: as `run.compiler.compile_file` gives it, {} if there was nothing to compile. text: the file's.
    """
    failed = [c for c in report.get("compiled", ()) if c["error"]]
    if not failed:
        if not report or report["compiled"] and not report["error"]:
            return None
        what, advice = messages.NOT_THROUGH if report["error"] else messages.NOT_LAUNCHED
        why = f"It says: {report['error']}" if report["error"] else ""
        return Finding("compile", what, evidence=Evidence(why), next=advice)
    first = failed[0]
    source = echo(first["source"])
    place = at_line(first["line"], source) or (f"At `{source}`." if source else "")
    said = f"The compiler says: {first['error']}"
    names = plain_numbers(first, report["compiled"])
    if names and ".item(" not in first["source"]:
        return equals_one(first, names, place, said)
    meaning = translate(first["error"], first["line"], text)
    target = rejected_by(first, report["compiled"])
    if meaning is None:
        what = f"The kernel {first['kernel']} gives the right values in the interpreter, "
        what += f"but does not compile for {target}."
        return Finding("compile", what, place, Evidence(said), messages.INTERPRETER_FORGIVES)
    why = f"The interpreter lets it pass, and the kernel does not compile for {target}. "
    why += textwrap.shorten(said, 200)
    place = fix_line(meaning, first["line"], place, text)
    return Finding("compile", meaning.what, place, Evidence(why), meaning.next)


def rejected_by(first: dict, compiled: list[dict]) -> str:
    """The GPU that a kernel does not compile for, or "a GPU", if it is all of them."""
    same = [c for c in compiled if c["call"] == first["call"] and c["kernel"] == first["kernel"]]
    # What a kernel refers to is looked up once, before it is compiled for the first GPU.
    if all(c["error"] for c in same) or "Unsupported function referenced" in first["error"]:
        return "a GPU"
    return f"a {first['gpu']} (compute capability {first['architecture'] / 10})"


def plain_numbers(failed: dict, compiled: list[dict]) -> list[str]:
    """The arguments whose being 1 is why a kernel did not compile; none if that was not the reason."""
    named = [name for name in failed["ones"] if re.search(rf"\b{name}\b", failed["source"])]
    if any(re.search(rf"\b{name}\.\w", failed["source"]) for name in named):
        return named
    others = [set(c["ones"]) for c in compiled if c["kernel"] == failed["kernel"] and not c["error"]]
    new = [name for name in failed["ones"] if others and all(name not in ones for ones in others)]
    return [name for name in named if name in new] or new


def equals_one(failed: dict, names: list[str], place: str, said: str) -> Finding:
    """A kernel that compiles as long as an argument is not 1."""
    several = len(names) > 1
    words = {
        "names": " and ".join(f"`{name}`" for name in names), "first": names[0], "call": failed["call"],
        "kernel": failed["kernel"], "are": "are 1" if several else "is 1",
        "number": "plain numbers" if several else "a plain number", "said": textwrap.shorten(said, 200),
    }  # fmt: skip
    what, why, cast, advice = messages.EQUALS_ONE
    advice = cast if ".to(" in failed["source"] else advice
    return Finding("compile", fill(what, words), place, Evidence(fill(why, words)), fill(advice, words))


__all__ = [
    "Meaning", "check_error", "compile_findings", "fill", "fix_line", "out_of_place", "stopped", "translate",
]  # fmt: skip
