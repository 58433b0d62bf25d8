"""check("fused_softmax"): judge a learner's file and show what came out.

The way of a check: the file goes to the interpreting server, where the judge runs it on small inputs under
the meter, and at the same time to the compiling server, where the real compiler takes it. If both are content
and there is a GPU, it runs there too. Nothing of the learner's is executed in this process.
"""

import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path

from course_kernels import mode
from course_kernels.lab import exercises
from course_kernels.lab.check.source import prints_in_kernel
from course_kernels.lab.core import progress as state
from course_kernels.lab.core.files import exercise_file
from course_kernels.lab.exercises import stubs
from course_kernels.lab.run import forkserver
from course_kernels.lab.show import verdict as look
from course_kernels.lab.show.picture import Display, Prose, Source, Stack, Table

SECONDS = 600  # the longest to wait for a check: far more than the limits of its runs, on any machine


@dataclass(repr=False)
class Verdict(Display):
    """What a check found.

    status: "pass", "fail", "todo" or "error". mistake: the mistake's name, or None. message: the whole text.
    seconds: how long the check took. parts: the message in its parts: what, case, why, next. remark: what is
    worth knowing about an answer that passes.
    """

    exercise: str
    status: str
    mistake: str | None
    message: str
    seconds: float
    parts: dict = field(default_factory=dict)
    earned: list = field(default_factory=list)
    compiled: list = field(default_factory=list)
    lesson: str = ""
    printed: str = ""
    how: str = ""
    remark: str = ""

    def json(self) -> dict:
        """The contract of `check --json`."""
        return {
            "exercise": self.exercise,
            "status": self.status,
            "mistake": self.mistake,
            "message": self.message,
            "seconds": round(self.seconds, 3),
        }

    def plain(self) -> str:
        return look.as_text(self, self.table())

    def html(self) -> str:
        return look.as_html(self, self.table())

    def table(self) -> Table | None:
        """Registers, spills and occupancy of the first call compiled, a row an architecture; None without."""
        if not self.compiled:
            return None
        from course_kernels.lab.report import compiled_table

        first = [row for row in self.compiled if row["call"] == self.compiled[0]["call"]]
        return compiled_table(first, f"What the real compiler made of it for {first[0]['call']}")


def check(name: str, file: str | None = None, seed: int | None = None) -> Verdict:
    """Check an answer: exercises/NAME.py, or another file.

    Args:
        name: the exercise, as in `exercises/`.
        file: the file to judge, if it is not the learner's own in exercises/.
        seed: for the random inputs; fresh ones each time if it is left out.

    Raises:
        KeyError: no exercise of this name. FileNotFoundError: a file was named, and it is not there.
    """
    if name not in exercises.names():
        exercises.get(name)  # raises, and names those there are
    if file is not None and not Path(file).is_file():
        raise FileNotFoundError(f"{file} is no file." if Path(file).exists() else f"There is no file {file}.")
    path = str(Path(file).resolve() if file else exercise_file(name))
    verdict = judge(name, path, secrets.randbits(32) if seed is None else seed)
    if file is None:
        state.note_attempt(name, verdict.status)
    return verdict


def judge(name: str, path: str, seed: int) -> Verdict:
    """Run the stages and put their answers together.

    Everything that needs torch or triton happens in the servers, so a check from the shell starts at once.
    """
    started = time.monotonic()
    if found := stubs.standing(exercises.get(name), path):  # told without a server, and without torch
        status, mistake, parts = found
        return Verdict(name, status, mistake, "\n".join(parts.values()), time.monotonic() - started, parts)
    deadline = started + SECONDS
    compiling = None
    try:
        job = {"name": name, "path": path}
        judging = forkserver.submit(
            "interpret", "course_kernels.lab.exercises.jobs:judge_file", **job, seed=seed
        )
        compiling = forkserver.submit("compile", "course_kernels.lab.exercises.jobs:compile_file", **job)
        report = judging.result(deadline - time.monotonic())
        compiled, how = [], report["how"]
        if report["status"] == "pass" and report["has_kernel"]:
            answer = compiling.result(deadline - time.monotonic())
            compiled = answer.pop("compiled")
            how += ", compiled for five GPUs"
            report |= answer
            compiling = None
            others = {row["kernel"] for row in compiled} - set(report["kernels"])
            if report["status"] == "pass" and report["kernels"] and others:
                report |= {"status": "fail", "mistake": "compile", "parts": _another_path(others)}
            if report["status"] == "pass" and not mode.interpreting() and report["runs_on_gpu"]:
                ran = forkserver.submit(
                    "compile", "course_kernels.lab.exercises.jobs:judge_on_gpu", **job, seed=seed
                )
                answer = ran.result(deadline - time.monotonic())
                how += f", run on this {answer['gpu']}"
                answer["earned"] = report["earned"] + answer["earned"]
                report |= answer
    except forkserver.WorkerError as error:
        report = {"status": "error", "mistake": None, "parts": {"what": str(error)}, "printed": ""}
        compiled, how = [], ""
    finally:
        if compiling is not None:
            compiling.cancel()
    passed = report["status"] == "pass"
    earned, parts = report["earned"] if passed else [], report["parts"]
    lines = [parts.get(key, "") for key in ("what", "case", "why", "next")] + earned
    seconds = time.monotonic() - started
    return Verdict(
        name,
        report["status"],
        report["mistake"],
        "\n".join(line for line in lines if line),
        seconds,
        parts,
        earned,
        compiled if passed else [],
        report["lesson"] if passed else "",
        report["printed"],
        f"{how}, in {seconds:.1f} s." if how else "",
        remark_on_prints(path) if passed else "",
    )


def remark_on_prints(path: str) -> str:
    """A sentence about a print in a kernel, if the file has one."""
    line = prints_in_kernel(Path(path).read_text(encoding="utf-8", errors="replace"))
    if line is None:
        return ""
    return (
        f"The kernel prints (line {line}). On a GPU a print costs registers and time, in every program: take "
        "it out when you have seen enough."
    )


def _another_path(kernels: set[str]) -> dict:
    return {
        "what": f"The kernel {sorted(kernels)[0]} was launched for the real compiler, and never in the "
        "interpreter.",
        "next": "Launch the same kernels each time the function is called, whatever the mode.",
    }


def hint(name: str):
    """The next hint for an exercise; each call gives one more, and the first ones stay."""

    exercise = exercises.get(name)
    shown = state.note_hint(name, len(exercise.hints))
    lines = [f"{i}. If {h.symptom}: {h.text}" for i, h in enumerate(exercise.hints[:shown], 1)]
    left = len(exercise.hints) - shown
    lines.append(
        f"({left} more: call hint again.)" if left else f'(No more hints. solution("{name}") comes next.)'
    )
    return Prose(*lines)


def solution(name: str, anyway: bool = False):
    """The solution's source: after a pass or three attempts, or at once with anyway=True."""

    exercises.get(name)
    done = state.of(name)
    if not anyway and not done["passed"] and done["attempts"] < state.ATTEMPTS_BEFORE_SOLUTION:
        left = state.ATTEMPTS_BEFORE_SOLUTION - done["attempts"]
        return Prose(
            f"The solution opens after a pass, or after {left} more attempt{'s' if left > 1 else ''}. "
            f'hint("{name}") helps until then, and solution("{name}", anyway=True) opens it now: reading is '
            "a way to learn too."
        )
    return Source(stubs.solution_text(name), f"solutions/{name}.py")


def yours(name: str, otherwise):
    """The learner's own function of an exercise that has passed, as its file is now; else `otherwise`."""
    from course_kernels.lab.run.loading import load_entry

    path = exercise_file(name)
    if name not in exercises.names() or not path.exists() or not state.of(name)["passed"]:
        return otherwise
    try:
        return load_entry(str(path), exercises.get(name).entry)
    except Exception:  # changed since it passed, and it does not run: the check says why
        return otherwise


def progress():
    """A table: every exercise, its attempts and hints, when it passed, and what is next."""

    states = {name: state.of(name) for name in exercises.names()}
    rows = [
        [name, exercises.get(name).notebook, s["attempts"], s["hints"], s["passed"] or "not yet"]
        for name, s in states.items()
    ]
    table = Table(rows, ["exercise", "notebook", "attempts", "hints", "passed"])
    left = [name for name, s in states.items() if not s["passed"]]
    text = f"Next: {left[0]}, in {exercises.get(left[0]).notebook}." if left else "All exercises are passed."
    return Stack(table, Prose(text))
