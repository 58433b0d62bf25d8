"""Judge a learner's file: run it on cases, compare with float64, and say what is wrong.

This runs in a process forked for one check. The learner's code runs in children of this process
(`Session.run`), so it can neither see the expected values nor change the verdict.
"""

import math
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from course_kernels.lab import compiling, isolation, sandbox
from course_kernels.lab.meter import Tweaks
from course_kernels.lab.sandbox import Case, decode, encode

NOTHING = {"compiled": [], "error": ""}
SECONDS = 15  # for one run of the learner's code over all cases; a right answer takes well under one


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


class Result:
    """What one case gave; see `sandbox.run_cases`."""

    def __init__(self, message: dict):
        self.message = message
        self.error = message["error"]
        if self.error and "outputs" not in message:
            return
        for key, value in message.items():
            setattr(self, key, value)
        self.x_loads = decode(self.x_loads) if self.x_loads else np.zeros(0, np.int32)

    def values(self, index: int) -> np.ndarray:
        return decode(self.outputs[index]["values"])

    def stored(self, index: int) -> np.ndarray:
        return decode(self.outputs[index]["stored"])


class Session:
    """One learner's file under judgement."""

    def __init__(self, path: str, entry: str, seed: int, seconds: float = SECONDS, adapt=None):
        self.path, self.entry, self.seconds, self.adapt = path, entry, seconds, adapt
        self.rng = np.random.default_rng(seed)
        self.printed = ""

    def run(self, cases: list[Case], tweaks: Tweaks | None = None) -> list[Result]:
        """Results for the cases, up to the first that raised. Raises a Finding if the process did not
        survive.
        """
        sandbox.note[:] = b"\0" * 256
        outcome = isolation.isolate(
            lambda: sandbox.run_cases(self.path, self.entry, cases, tweaks, self.adapt), seconds=self.seconds
        )
        self.survived(outcome)
        return [Result(message) for message in outcome.value]

    def call(self, function):
        """`function()` in a child under the limits; its JSON value. Raises a Finding if it did not
        survive.
        """
        sandbox.note[:] = b"\0" * 256
        outcome = isolation.isolate(function, seconds=self.seconds)
        self.survived(outcome)
        return outcome.value

    def survived(self, outcome: isolation.Outcome) -> None:
        self.printed = self.printed or outcome.printed
        if outcome.kind == "ok":
            return
        at = bytes(sandbox.note).rstrip(b"\0").decode(errors="replace")
        case = f"The case under way: {at}." if at else "It happened while the file was being imported."
        if outcome.kind == "timeout":
            raise Finding(
                "timeout",
                f"Your code did not end within {self.seconds:.0f} seconds and was stopped.",
                case,
                "A loop that does not move forward is the usual reason.",
                "In each loop, check that the loop variable grows and that the end is reached.",
                "error",
            )
        if outcome.kind == "memory":
            raise Finding(*MEMORY, case=case, status="error")
        if outcome.kind == "signal":
            raise Finding(
                "crash",
                f"Your code ended the process it ran in (signal {outcome.code}); the notebook is unharmed.",
                case,
                next="Reading or writing memory through a raw address does this. Use tl.load and tl.store.",
                status="error",
            )
        if outcome.kind == "exit":
            raise Finding(*EXIT, case, next=EXIT_ADVICE, status="error")
        raise Finding(
            "exception", f"The check could not run your file: {outcome.value}", case, status="error"
        )


EXIT = ("exit", "Your code ended the Python process before it returned a result.")
EXIT_ADVICE = "Remove exit(), quit() or os._exit() from the file."
MEMORY = (
    "memory",
    f"Your code asked for more memory than a check allows ({isolation.MEMORY_BYTES >> 30} GB).",
)
# What Triton says, and what it means. Matched against the message of an exception.
TRANSLATIONS = (
    (
        "power of 2",
        "arange_not_power_of_two",
        "tl.arange takes a length that is a power of two, and this one is not.",
        "Round the number of columns up with triton.next_power_of_2 and mask the lanes past the row.",
    ),
    (
        "exceeds triton maximum tensor numel",
        "block_too_large",
        "A block may hold at most 2**20 elements, and this one is larger.",
        "Walk the row in tiles.",
    ),
    (
        "`other` cannot be provided without `mask`",
        "load_mask",
        "tl.load has an other=, but no mask=: it would load past the end of the row.",
        "Give tl.load the mask column < columns.",
    ),
    (
        "Torch not compiled with CUDA",
        "device_named",
        "The file asks for the GPU by name, and the check runs on the CPU first.",
        'Make tensors with device=x.device, or torch.empty_like(x), in place of device="cuda".',
    ),
    (
        "Cannot call @triton.jit'd outside of the scope of a kernel",
        "kernel_called",
        "A kernel was called like a function.",
        "Launch it over a grid: kernel[(programs,)](arguments).",
    ),
)


def compile_exercise(name: str, path: str) -> dict:
    """A job for the compiling server: {"status", "mistake", "parts", "compiled"} of the file's kernels."""
    from course_kernels.lab import specs

    exercise = specs.get(name)
    calls = list(exercise.compile_calls)
    report = compiling.compile_file(path, exercise.entry, calls, exercise.adapt_name) if calls else NOTHING
    finding = compile_findings(report)
    if finding is None:
        return {"status": "pass", "mistake": None, "parts": {}, "compiled": report["compiled"]}
    return {"status": "fail", "mistake": finding.mistake, "parts": finding.parts(), "compiled": []}


def judge_file(name: str, path: str, seed: int, seconds: float = SECONDS) -> dict:
    """A job for the interpreting server: judge the file as an answer to the exercise; see `Report`."""
    from course_kernels.lab import specs, stubs

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
        if stubs.is_stub(name, Path(path).read_text(encoding="utf-8", errors="replace")):
            raise Finding("todo", f"{name} is not done yet.", next=exercise.brief, status="todo")
        earned = exercise.judge(session)
    except Finding as finding:
        report = Report(finding.status, finding.mistake, finding.parts(), printed=session.printed)
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
        )
    )


# What can be wrong whatever the exercise


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
    line = f"line {error['line']}: `{error['source']}`" if error["line"] else "outside your file"
    if error["rule"]:
        rule, *rest = error["rule"]
        raise Finding(*_rule(rule, rest, exercise))
    if error["type"] == "NotImplementedError":
        raise Finding("todo", f"Not done yet: {error['text']}", f"At {line}.", status="todo")
    if error["type"] in ("SyntaxError", "IndentationError", "TabError"):
        raise Finding(
            "syntax_error", f"Python cannot read the file: {error['text']}.", f"At {line}.", status="error"
        )
    if error["type"] == "SystemExit":
        raise Finding(*EXIT, f"At {line}. {where}".strip(), next=EXIT_ADVICE, status="error")
    if error["type"] == "MemoryError" or "can't allocate memory" in error["text"]:
        raise Finding(*MEMORY, case=f"At {line}. {where}".strip(), status="error")
    for phrase, mistake, what, advice in (*exercise.translations, *TRANSLATIONS):
        if phrase in error["text"]:
            raise Finding(mistake, what, f"At {line}. {where}".strip(), next=advice, status="error")
    text = textwrap.shorten(error["text"], 300) or "no message"
    raise Finding(
        "exception",
        f"Your code raised {error['type']}: {text}",
        f"At {line}. {where}".strip(),
        next="Mend that line and check again.",
        status="error",
    )


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


def numbers(values, most: int = 6) -> str:
    """A few numbers, as a message writes them."""
    values = list(np.asarray(values).reshape(-1))
    text = ", ".join(_number(v) for v in values[:most])
    return f"[{text}{', …' if len(values) > most else ''}]"


def _number(value) -> str:
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    return f"{value:.5g}".replace("-", "−")


def compile_findings(report: dict) -> Finding | None:
    """What the real compiler has against a kernel that the interpreter ran; None if nothing."""
    failed = [c for c in report["compiled"] if c["error"]]
    if not failed:
        if report["error"]:
            return Finding(
                "compile",
                "The kernel runs in the interpreter, but the real compiler did not get through it.",
                why=f"It says: {report['error']}",
                next="Use only tl functions on tensors inside the kernel.",
            )
        return None
    first = failed[0]
    every = len({c["architecture"] for c in failed}) == len(compiling.ARCHITECTURES)
    target = "a GPU" if every else f"a {first['gpu']} (compute capability {first['architecture'] / 10})"
    place = f"Line {first['line']}: `{first['source']}`." if first["line"] else ""
    return Finding(
        "compile",
        f"The kernel {first['kernel']} gives the right values in the interpreter, but does not compile for "
        f"{target}.",
        place or (f"At `{first['source']}`." if first["source"] else ""),
        f"The compiler says: {first['error']}",
        "The interpreter is Python and forgives what a GPU cannot do: numpy calls, an `if` on a whole tile, "
        "a loop "
        "variable that changes its type.",
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
