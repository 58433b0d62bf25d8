"""What a fork server is asked to do with an exercise: judge an answer, compile it, run it on a GPU.

A job's module is imported before the fork, so everything that a check needs is imported here.
"""

import warnings
from pathlib import Path

from course_kernels.lab import exercises
from course_kernels.lab.check.errors import compile_findings, out_of_place, stopped
from course_kernels.lab.check.exercise import Exercise
from course_kernels.lab.check.finding import Finding, Report
from course_kernels.lab.check.gpu import judged_on_gpu
from course_kernels.lab.core.files import trouble
from course_kernels.lab.exercises import stubs
from course_kernels.lab.run import compiler, reader
from course_kernels.lab.run.cases import SECONDS, Stopped
from course_kernels.lab.run.session import Session

EXERCISES = {name: exercises.get(name) for name in exercises.names()}


def judge_file(name: str, path: str, seed: int, seconds: float = SECONDS) -> dict:
    """The fields of a `Report` on an answer; in interpret mode."""
    warnings.simplefilter("ignore")  # numpy's and Triton's would stand among what the learner printed
    exercise = EXERCISES.get(name) or exercises.get(name)
    session = Session(path, exercise.entry, seed, seconds, exercise.adapt)
    try:
        earned = judged(exercise, session)
    except Finding as finding:
        report = Report(
            finding.status, finding.mistake, finding.parts(), printed=session.printed, how=exercise.how
        )
        if finding.status == "todo":
            report.mistake, report.how = None, ""
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


def judged(exercise: Exercise, session: Session) -> list[str]:
    """What a right answer earned, a line each.

    Raises:
        Finding: the answer does not pass.
    """
    if found := stubs.standing(exercise, session.path):
        status, mistake, parts = found
        raise Finding(mistake or "todo", parts["what"], next=parts["next"], status=status)
    text = Path(session.path).read_bytes()  # before it runs: it may change itself
    try:
        earned = exercise.judge(session)
    except Stopped as run:
        raise stopped(run, text.decode(errors="replace")) from None
    if found := reader.out_of_place(text):
        raise out_of_place(
            *found,
            "What passes is plain Python over torch, triton, numpy, math and some of Python's own modules, "
            "so that nothing in it can change how it is checked.",
            "Give an object its values when it is made, or keep them in variables of their own."
            if found[1].endswith("= …")
            else 'Leave it out, or put it below `if __name__ == "__main__":`, which the check does not run; '
            "in a notebook, into another cell.",
        )
    return earned


def compile_file(name: str, path: str) -> dict:
    """{"status", "mistake", "parts", "compiled"} of the file's kernels; in compile mode."""
    exercise = EXERCISES.get(name) or exercises.get(name)
    if found := trouble(path):
        return {"status": "error", "mistake": "no_file", "parts": {"what": found}, "compiled": []}
    calls = list(exercise.compile_calls)
    calls += compiler.SMALL_CALLS if calls and not exercise.adapt else ()  # a harness's kernels need none
    report = compiler.compile_file(path, exercise.entry, calls, exercise.adapt_name) if calls else {}
    finding = compile_findings(report, Path(path).read_text(encoding="utf-8", errors="replace"))
    if finding is None and (found := reader.out_of_place_in_kernels(Path(path).read_bytes())):
        finding = out_of_place(
            *found,
            "The compiler has not read it, since a constexpr leaves that branch out; the interpreter may.",
            "A kernel uses its arguments, constants, other kernels, and what tl has.",
        )
    if finding is None:
        return {"status": "pass", "mistake": None, "parts": {}, "compiled": report.get("compiled", [])}
    return {"status": "fail", "mistake": finding.mistake, "parts": finding.parts(), "compiled": []}


def judge_on_gpu(name: str, path: str, seed: int) -> dict:
    """{"status", "mistake", "parts", "earned", "gpu"} of the kernel on this machine's GPU; compile mode."""
    return judged_on_gpu(exercises.get(name), path, seed)
