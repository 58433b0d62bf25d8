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

from course_kernels.lab.check import errors
from course_kernels.lab.check import finding as ff
from course_kernels.lab.check.errors import check_error, compile_findings, out_of_place
from course_kernels.lab.core.files import trouble
from course_kernels.lab.core.wording import numbers
from course_kernels.lab.run import compiler as compiling
from course_kernels.lab.run import limits as isolation
from course_kernels.lab.run import reader as allowed
from course_kernels.lab.run import session as one_file
from course_kernels.lab.run.cases import SECONDS, Case, Stopped, Tweaks, encode
from course_kernels.lab.run.session import Facts as Result

NOTHING = {}


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
            raise errors.stopped(stopped, Path(self.path).read_text(errors='replace')) from None

    def run(self, cases: list[Case], tweaks: Tweaks | None = None) -> list[Result]:
        try:
            return super().run(cases, tweaks)
        except Stopped as stopped:
            raise errors.stopped(stopped, Path(self.path).read_text(errors='replace')) from None


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
    except (Finding, ff.Finding) as finding:
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


def dtype_name(case: Case) -> str:
    return str(case.x.dtype)


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
