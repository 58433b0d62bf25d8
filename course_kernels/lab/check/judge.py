"""Judge a learner's file: run it on cases, compare with float64, and say what is wrong.

This runs in a process forked for one check. The learner's code runs in children of this process
(`Session.run`); the expected values are not there, and the verdict is made here. What such a child reports
is the word of a process that the learner's code shares, so the file is read first (`allowed`): what passes
has no way to the checker's objects.
"""

import re
import textwrap
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from course_kernels.lab.check.translations import Code, Meaning, echo, translate
from course_kernels.lab.core.files import trouble
from course_kernels.lab.core.wording import numbers
from course_kernels.lab.run import compiler as compiling
from course_kernels.lab.run import limits as isolation
from course_kernels.lab.run import reader as allowed
from course_kernels.lab.run import session as one_file
from course_kernels.lab.run.cases import SECONDS, Case, Stopped, Tweaks, encode
from course_kernels.lab.run.session import Facts as Result

NOTHING = {"compiled": [], "error": ""}


@dataclass
class Finding(Exception):
    """Why an answer does not pass.

    mistake: the mistake's name, or None where nothing fits. status: "fail", "error" or "todo".
    what: what is wrong, in one sentence. case: the smallest case that shows it. why: what was proven or is
    the likely cause. next: what to try.
    """

    mistake: str | None
    what: str
    case: str = ""
    why: str = ""
    next: str = ""
    status: str = "fail"

    def __str__(self) -> str:
        return "\n".join(part for part in self.parts().values() if part)

    def parts(self) -> dict:
        """The text in its parts, in the order in which they are read."""
        return {"what": self.what, "case": self.case, "why": self.why, "next": self.next}


@dataclass
class Report:
    """What a check found: a Finding, or what a right answer earned (lines of text)."""

    status: str
    mistake: str | None = None
    parts: dict = field(default_factory=dict)
    earned: list = field(default_factory=list)
    printed: str = ""
    how: str = "Run in the interpreter on small inputs"
    lesson: str = ""
    has_kernel: bool = False
    runs_on_gpu: bool = False
    kernels: list = field(default_factory=list)


class Session(one_file.Session):
    """A session whose runs end in a Finding where the learner's code did not come back."""

    def call(self, function):
        try:
            return super().call(function)
        except Stopped as stopped:
            raise did_not_come_back(stopped) from None

    def run(self, cases: list[Case], tweaks: Tweaks | None = None) -> list[Result]:
        try:
            return super().run(cases, tweaks)
        except Stopped as stopped:
            raise did_not_come_back(stopped) from None


def did_not_come_back(stopped: Stopped) -> Finding:
    """What is said of a run whose process ended without an answer."""
    case = f"The case under way: {stopped.case}." if stopped.case else IMPORTING
    if stopped.kind == "changed":
        return Finding("checker_changed", "The file changed how the check counts.", next=LEAVE_ALONE)
    if stopped.kind == "timeout":
        return Finding(
            "timeout",
            f"Your code did not end within {stopped.seconds:.0f} seconds and was stopped.",
            case,
            "A loop that does not move forward is the usual reason.",
            "In each loop, check that the loop variable grows and that the end is reached.",
            "error",
        )
    if stopped.kind == "memory":
        return Finding(*MEMORY, case=case, status="error")
    if stopped.kind == "signal":
        return Finding(
            "crash",
            f"Your code ended the process it ran in (signal {stopped.code}); the notebook is unharmed.",
            case,
            next="Reading or writing memory through a raw address does this. Use tl.load and tl.store.",
            status="error",
        )
    if stopped.kind == "exit":
        return Finding(*EXIT, case, next=EXIT_ADVICE, status="error")
    return Finding("exception", f"The check could not run your file: {stopped.text}", case, status="error")


IMPORTING = "It happened while the file was being imported."
EXIT = ("exit", "Your code ended the Python process before it returned a result.")
EXIT_ADVICE = "Remove exit(), quit() or os._exit() from the file."
LEAVE_ALONE = "Leave Triton and the check as they are, and write the kernel."
MEMORY = (
    "memory",
    f"Your code asked for more memory than a check allows ({isolation.MEMORY_BYTES >> 30} GB).",
)


def compile_exercise(name: str, path: str) -> dict:
    """A job for the compiling server: {"status", "mistake", "parts", "compiled"} of the file's kernels."""
    from course_kernels.lab import exercises as specs

    exercise = specs.get(name)
    if found := trouble(path):
        return {"status": "error", "mistake": "no_file", "parts": {"what": found}, "compiled": []}
    calls = list(exercise.compile_calls)
    calls += compiling.SMALL_CALLS if calls and not exercise.adapt else ()  # a harness's kernels need none
    report = compiling.compile_file(path, exercise.entry, calls, exercise.adapt_name) if calls else NOTHING
    finding = compile_findings(report, Path(path).read_text(encoding="utf-8", errors="replace"))
    if finding is None and (found := allowed.out_of_place_in_kernels(Path(path).read_bytes())):
        finding = out_of_place(
            *found,
            "The compiler has not read it, since a constexpr leaves that branch out; the interpreter may.",
            "A kernel uses its arguments, constants, other kernels, and what tl has.",
        )
    if finding is None:
        return {"status": "pass", "mistake": None, "parts": {}, "compiled": report["compiled"]}
    return {"status": "fail", "mistake": finding.mistake, "parts": finding.parts(), "compiled": []}


def judge_file(name: str, path: str, seed: int, seconds: float = SECONDS) -> dict:
    """A job for the interpreting server: judge the file as an answer to the exercise; see `Report`."""
    from course_kernels.lab import exercises as specs
    from course_kernels.lab.exercises import stubs

    warnings.simplefilter("ignore")  # numpy's and Triton's would stand among what the learner printed
    exercise = specs.get(name)
    session = Session(path, exercise.entry, seed, seconds, exercise.adapt)
    try:
        if not Path(path).exists():
            raise Finding(
                "todo",
                f"{name} has no file yet: {path} does not exist.",
                next=f"Run its cell in {exercise.notebook}, or `python -m course_kernels.lab stubs`.",
                status="todo",
            )
        if found := trouble(path):
            raise Finding("no_file", found, next="Put the answer there as a text file.", status="error")
        text = Path(path).read_bytes()  # before it runs: it may change itself
        if stubs.is_stub(name, text.decode(errors="replace")):
            what = "The file is the stub still, as it was handed out."
            raise Finding("todo", what, next=exercise.brief, status="todo")
        earned = exercise.judge(session)
        if found := allowed.out_of_place(text):
            raise out_of_place(
                *found,
                "What passes is plain Python over torch, triton, numpy, math and some of Python's own "
                "modules, so that nothing in it can change how it is checked.",
                "Give an object its values when it is made, or keep them in variables of their own."
                if found[1].endswith("= …")
                else 'Leave it out, or put it below `if __name__ == "__main__":`, which the check does not '
                "run; in a notebook, into another cell.",
            )
    except Finding as finding:
        report = Report(finding.status, finding.mistake, finding.parts(), printed=session.printed)
        report.how = "" if finding.status == "todo" else exercise.how
        report.mistake = None if finding.status == "todo" else finding.mistake
        return vars(report)
    return vars(
        Report(
            "pass",
            earned=earned,
            printed=session.printed,
            how=exercise.how,
            lesson=exercise.lesson,
            has_kernel=bool(exercise.compile_calls),
            runs_on_gpu=bool(exercise.gpu_shapes),
            kernels=[] if exercise.adapt else sorted(session.kernels),  # a harness's are not the learner's
        )
    )


# What can be wrong whatever the exercise


def out_of_place(line: int, what: str, why: str, advice: str) -> Finding:
    """For a file that is right and uses what no exercise needs."""
    said = f"The values are right, but the file uses `{what}` (line {line}), which no exercise needs."
    return Finding("out_of_place", said, why=why, next=advice)


def check_error(result: Result, case: Case | None, exercise) -> None:
    """Raise a Finding for a run that raised or that used what is ruled out."""
    refused = result.message.get("refused")
    where = f"The case under way: {case.shape} {dtype_name(case)}, {case.about}." if case else ""
    error = result.error
    if refused:
        line = f" (line {error['line']}: `{error['source']}`)" if error and error["line"] else ""
        if refused in ("clone", "copy_", "_to_copy", "contiguous"):
            raise Finding(
                "copies_input",
                f"PyTorch made a copy of a tensor{line}: a trip to memory and back that the kernel does not "
                f"need.",
                where,
                f"The operation was aten::{refused}, the work behind .contiguous(), .to(), .float() and "
                f".clone().",
                "Give the kernel the row stride, x.stride(0), and let it load the rows where they are; "
                "convert a loaded tile with .to(tl.float32).",
            )
        raise Finding(
            "torch_work",
            f"PyTorch did part of the work: aten::{refused}{line}.",
            where,
            "In this exercise PyTorch may allocate (torch.empty_like and its kin); a kernel does the rest.",
            "Move that step into the kernel.",
        )
    if not error:
        return
    place = at_line(error["line"], error["source"])
    if error["rule"]:
        rule, *rest = error["rule"]
        if found := _import_of(error, rule):
            raise Finding(*found)
        raise Finding(*_rule(rule, rest, exercise))
    if error["type"] == "NotImplementedError" and "raise" in error["source"]:  # not a library's own
        todo = textwrap.shorten(error["text"], 300)
        what = f"Still to do: {todo}." if todo else "Something is still to do."
        raise Finding("todo", what.replace("..", "."), place, status="todo")
    if error["type"] in ("SyntaxError", "IndentationError", "TabError"):
        what = f"Python cannot read the file: {error['text']}."
        cell = "Lines that begin with % or ! are the notebook's, not Python's: put them into another cell."
        magic = error["source"].lstrip().startswith(("%", "!"))
        raise Finding("syntax_error", what, place, next=cell if magic else "", status="error")
    if error["type"] == "SystemExit":
        raise Finding(*EXIT, f"{place} {where}".strip(), next=EXIT_ADVICE, status="error")
    if error["type"] == "MemoryError" or "can't allocate memory" in error["text"]:
        raise Finding(*MEMORY, case=f"{place} {where}".strip(), status="error")
    for phrase, mistake, what, advice in exercise.translations:
        if phrase in error["text"]:
            at = f"{place if error['line'] else ''} {where}".strip()
            raise Finding(mistake, what, at, next=advice, status="error")
    plain = re.sub(r"\[[^\[\]]{60,}(\]|$)", "[…]", error["text"])  # a tile's numbers tell nothing here
    said = f"{error['type']}: {textwrap.shorten(plain, 300) or 'no message'}"
    meaning = translate(f"{error['type']}: {error['text']}", error["line"], error.get("file", ""))
    if meaning is not None:
        raise Finding(
            meaning.mistake,
            meaning.what,
            f"{mend(meaning, error['line'], place, error.get('file', ''))} {where}".strip(),
            f"Python says: {textwrap.shorten(said, 160)}",
            meaning.next,
            "error",
        )
    raise Finding(
        "exception",
        f"Your code raised {said}",
        f"{place} {where}".strip(),
        next="Mend that line and check again." if error["line"] else "",
        status="error",
    )


def _import_of(error: dict, rule: str) -> tuple | None:
    """An import that did what the rule forbids, for a reason of its own; None if it was no import."""
    code = Code(error.get("file", ""))
    line = code.statement(error["line"]) if error["line"] else ""
    if not re.match(r"(import|from) ", line) or rule not in ("outside_world", "answer_opened"):
        return None
    lab = "course_kernels.lab" in line
    if rule == "answer_opened" and not lab:
        return None
    what = (
        "The file imports the lab; check, hint and show belong outside of it."
        if lab
        else "The file imports a module that touches files or programs, which the check has closed."
    )
    return (
        rule,
        what,
        at_line(error["line"], echo(line)),
        "The check runs the file alone, with torch, triton, numpy and Python's own modules.",
        "Move that line, and what uses it, to another cell of the notebook, or below "
        '`if __name__ == "__main__":`, which the check does not run.',
        "error",
    )


def at_line(line: int | None, source: str) -> str:
    """Where it was raised, as a sentence."""
    return f"At line {line}: `{source}`." if line else "It was raised outside your file."


def mend(meaning: Meaning, line: int | None, place: str, text: str) -> str:
    """Where it was raised, and which line to mend, if that is another one."""
    if not meaning.line or meaning.line == line:
        return place
    other = f"The line to mend is line {meaning.line}: `{echo(Code(text).line(meaning.line))}`."
    return f"{other} It showed at line {line}." if line else other


def _rule(rule: str, rest: list, exercise) -> tuple:
    if rule in exercise.refusals:
        return exercise.refusals[rule]
    if rule == "entry_missing":
        return (
            "entry_missing",
            f"The file defines no `{rest[0]}`.",
            "",
            "",
            f"Keep the name and the arguments of the stub: {exercise.brief}",
            "error",
        )
    if rule == "outside_world":
        return (
            "outside_world",
            f"The file {rest[0]}; an exercise computes, and needs neither files nor other programs.",
            "",
            "",
            "Leave that out, and check again.",
        )
    if rule == "library_softmax":
        return (
            "library_softmax",
            f"{rest[0]} does the work here; the exercise is to write it.",
            "",
            "",
            exercise.library_advice,
        )
    return (
        "answer_opened",
        f"The file opens {rest[0] if rest else 'the answer'}, where the finished code is.",
        "",
        "",
        f'Write it here; to read the answer, solution("{exercise.name}", anyway=True) shows it.',
    )


def dtype_name(case: Case) -> str:
    return str(case.x.dtype)


def compile_findings(report: dict, text: str = "") -> Finding | None:
    """What the real compiler has against a kernel that the interpreter ran; None if nothing.

    text: the learner's file.
    """
    failed = [c for c in report["compiled"] if c["error"]]
    if not failed:
        if not report["compiled"] and not report["error"] and report is not NOTHING:
            return Finding(
                "compile",
                "The kernel ran in the interpreter, and nothing was launched for the real compiler.",
                next="Launch the same kernel each time the function is called, whatever the mode.",
            )
        if report["error"]:
            return Finding(
                "compile",
                "The kernel runs in the interpreter, but the real compiler did not get through it.",
                why=f"It says: {report['error']}",
                next="Use only tl functions on tensors inside the kernel.",
            )
        return None
    first = failed[0]
    same_call = [c for c in report["compiled"] if c["call"] == first["call"]]
    every = all(c["error"] for c in same_call if c["kernel"] == first["kernel"])
    # What a kernel refers to is looked up once, before it is compiled for the first GPU.
    every = every or "Unsupported function referenced" in first["error"]
    target = "a GPU" if every else f"a {first['gpu']} (compute capability {first['architecture'] / 10})"
    place = f"At `{echo(first['source'])}`." if first["source"] else ""
    if first["line"]:
        place = at_line(first["line"], echo(first["source"]))
    said = f"The compiler says: {first['error']}"
    if names := compiling.plain_numbers(first, report["compiled"]):
        return _equals_one(first, names, place, said)
    meaning = translate(first["error"], first["line"], text)
    if meaning is not None:
        return Finding(
            "compile",
            meaning.what,
            mend(meaning, first["line"], place, text),
            f"The interpreter lets it pass, and the kernel does not compile for {target}. "
            f"{textwrap.shorten(said, 200)}",
            meaning.next,
        )
    return Finding(
        "compile",
        f"The kernel {first['kernel']} gives the right values in the interpreter, but does not compile for "
        f"{target}.",
        place,
        said,
        "The interpreter is Python and forgives what a GPU cannot do: numpy calls, an `if` on a whole tile, "
        "a loop variable that changes its type.",
    )


def _equals_one(failed: dict, names: list[str], place: str, said: str) -> Finding:
    """A kernel that compiles as long as an argument is not 1."""
    these = " and ".join(f"`{name}`" for name in names)
    one, number = ("are 1", "plain numbers") if len(names) > 1 else ("is 1", "a plain number")
    cast = ".to(" in failed["source"]
    return Finding(
        "compile",
        f"The kernel {failed['kernel']} does not compile for x of {failed['call']}: {these} {one} there.",
        place,
        f"Triton compiles an argument that equals 1 as {number}, a constexpr, and 1 has no .to, no .dtype "
        f"and no .shape. The interpreter lets it pass. {textwrap.shorten(said, 200)}",
        "Cast something that is never an argument: row = tl.program_id(0).to(tl.int64), and row * stride is "
        f"as wide as row is. Or write tl.cast({names[0]}, tl.int64), which takes a number as well."
        if cast
        else "Use such an argument in arithmetic and comparisons, where a number does as well.",
    )


__all__ = [
    "Case",
    "Finding",
    "Report",
    "Result",
    "Session",
    "Tweaks",
    "check_error",
    "encode",
    "judge_file",
    "numbers",
]
