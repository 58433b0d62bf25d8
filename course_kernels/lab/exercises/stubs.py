"""Stubs are made from the solutions: what stands between # BEGIN SOLUTION and # END SOLUTION is taken out.

A solution file reads

    # BEGIN SOLUTION: load the row, with −inf in the masked lanes
    ...
    # END SOLUTION

and the stub has `raise NotImplementedError("load the row, …")` in that place, so that a stub that is run says
what is missing.
"""

import re
from pathlib import Path

from course_kernels.lab.core.files import exercise_file, solution_file, trouble, write_atomically

BLOCK = re.compile(
    r"^(?P<indent>[ ]*)# BEGIN SOLUTION: (?P<todo>.*)\n(?P<body>(?:.*\n)*?)[ ]*# END SOLUTION\n", re.MULTILINE
)


def stub_text(solution: str) -> str:
    """The stub of a solution's text. ValueError if the marks are missing or do not match."""
    blocks, begins, ends = (
        len(BLOCK.findall(solution)),
        *map(solution.count, ("# BEGIN SOLUTION", "# END SOLUTION")),
    )
    if not blocks == begins == ends or not blocks:
        raise ValueError("Each '# BEGIN SOLUTION: what to do' needs an '# END SOLUTION' below it.")

    def replace(match: re.Match) -> str:
        todo = match["todo"].strip()
        return f'{match["indent"]}raise NotImplementedError("{todo}")  # your code in place of this line\n'

    return BLOCK.sub(replace, solution)


def solution_text(name: str) -> str:
    """The solution without the marks, as a learner reads it."""
    text = solution_file(name).read_text(encoding="utf-8")
    return re.sub(r"^[ ]*# (BEGIN|END) SOLUTION.*\n", "", text, flags=re.MULTILINE)


def stub(name: str) -> str:
    """The stub of an exercise."""
    return stub_text(solution_file(name).read_text(encoding="utf-8"))


def same_code(one: str, other: str) -> bool:
    """True if two texts differ in blank lines and spaces at line ends at most."""

    def lines(text):
        return [line.rstrip() for line in text.splitlines() if line.strip()]

    return lines(one) == lines(other)


def is_stub(name: str, text: str) -> bool:
    """True if the text is the exercise's stub, untouched, or empty."""
    return not text.strip() or same_code(text, stub(name))


def standing(exercise, path: str) -> tuple[str, str | None, dict] | None:
    """(status, mistake, parts of the message) of a file that is not to be run; None for an answer."""
    file, name = Path(path), exercise.name
    if not file.exists():
        how = f"Run its cell in {exercise.notebook}, or `python -m course_kernels.lab stubs`."
        return "todo", None, {"what": f"{name} has no file yet: {path} does not exist.", "next": how}
    if found := trouble(path):
        return "error", "no_file", {"what": found, "next": "Put the answer there as a text file."}
    text = file.read_text(encoding="utf-8", errors="replace")
    if not text.strip():
        return "todo", None, {"what": "The file is empty.", "next": exercise.brief}
    if is_stub(name, text):
        what = "The file is still the stub, as it was handed out."
        return "todo", None, {"what": what, "next": exercise.brief}
    return None


def write_all() -> list[str]:
    """Write exercises/NAME.py from every solution whose file is missing; returns the names written."""
    from course_kernels.lab import exercises

    written = []
    for name in exercises.names():
        if not exercise_file(name).exists():
            write_atomically(exercise_file(name), stub(name))
            written.append(name)
    return written
