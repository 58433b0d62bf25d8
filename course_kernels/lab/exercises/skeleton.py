"""The files of a new exercise, made so that they work at once: a kernel that sums each row.

What is the exercise's own stands in three of them; `write` says which.
"""

import json
import re
import secrets

from course_kernels.lab import exercises
from course_kernels.lab.core.files import exercise_file, root, solution_file, write_atomically
from course_kernels.lab.exercises import stubs

SOLUTION = '''"""TODO one sentence: what the kernel makes of each row."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(y_ptr, x_ptr, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    # BEGIN SOLUTION: TODO what the learner writes, in one sentence
    x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=0.0).to(tl.float32)
    tl.store(y_ptr + row, tl.sum(x, axis=0))
    # END SOLUTION


def NAME(x):
    """x: (rows, columns), float32 or float16, any row stride. Returns y: (rows,), TODO what it holds."""
    rows, columns = x.shape
    y = torch.empty(rows, dtype=x.dtype, device=x.device)
    row_kernel[(rows,)](y, x, x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
'''

EXERCISE = '''"""Exercise: TODO one sentence."""

import numpy as np

from course_kernels.lab.check import generic
from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.kernels import KernelExercise, Output, one_a_row
from course_kernels.lab.check.mistakes import Mistake
from course_kernels.lab.exercises.inputs import large_cases, row_cases


def oracle(x):
    """The right result, (rows,), in float64."""
    return x.astype(np.float64).sum(axis=1)


def tolerance(case, wanted):
    """How far each element of the result may be off: here, as the terms of a sum of float32 are rounded."""
    x = np.nan_to_num(np.abs(case.x.astype(np.float64)), posinf=0.0)
    rounding = 2.0**-11 if case.x.dtype == np.float16 else 2.0**-20
    return rounding * x.sum(axis=1)


# What is wrong with answers to this exercise alone; `check.mistakes` says what else a row can hold.
# `generic.ANY` has the mistakes of any kernel that works row by row, or makes one number of a row.
OWN = (
    Mistake(
        "squares_summed",
        what="The result is the sum of the squares.",
        next="Sum the values as they are.",
        predicts=lambda s: (s.x**2).sum(axis=1),
    ),
)

EXERCISE = KernelExercise(
    name="NAME",
    notebook="NOTEBOOK",
    entry="NAME",
    brief="NAME(x) → y: TODO, for each row of x (rows, columns), one program a row.",
    hints=(
        Hint("nothing works yet", "TODO what to think about first."),
        Hint("some rows are wrong", "TODO which lines to look at."),
        Hint("it is still wrong", "TODO nearly the answer."),
    ),
    lesson="TODO what a right answer has shown, in two or three sentences.",
    oracle=oracle,
    tolerance=tolerance,
    cases=row_cases,
    large_cases=large_cases(5_000, 40_000),
    outputs=(Output("y", one_a_row),),
    traffic=lambda case: (case.x.size, case.x.shape[0]),  # elements loaded, and stored, at most
    max_launches=1,
    fill=0.0,  # what a masked lane must hold: 0 for a sum, -np.inf for a maximum, np.inf for a minimum
    nan_rule="its result should be NaN",
    mistakes=(*OWN, *generic.ANY),
)
'''

ANSWERS = '''"""Answers to NAME: wrong ones with the mistake that must be named, and unusual right ones."""

# title: (the mistake's name, [(what the solution says, what stands there instead)]);
# in place of the list, the text of a whole file.
WRONG = {
    "padding with -1": ("padding_finite", [("other=0.0", "other=-1.0")]),
    "squares": ("squares_summed", [("tl.sum(x,", "tl.sum(x * x,")]),
    "columns for the row stride": ("row_stride", [("row * x_stride", "row * columns")]),
    "always row 0": ("same_row", [("x_ptr + row * x_stride", "x_ptr")]),
    "no mask": ("load_mask", [("mask=column < columns, other=0.0", "")]),
}

# title: a whole file.
RIGHT = {}
'''


def write(name: str, notebook: str = "", after: str = "") -> list[str]:
    """Write the files of a new exercise. Returns what was made, and what is left to do, a line each.

    notebook: where its two cells are added, at the end. after: the exercise that it follows in the course.

    Raises:
        ValueError: the name is no name for a function, or is taken; the notebook or `after` is not there.
    """
    notebook, after = (
        notebook or exercises.get(exercises.names()[-1]).notebook,
        after or exercises.names()[-1],
    )
    cells = root() / "notebooks" / f"{notebook}.ipynb"
    lab = root() / "course_kernels" / "lab" / "exercises"
    files = {
        solution_file(name): SOLUTION,
        lab / f"{name}.py": EXERCISE,
        root() / "tests" / "answers" / f"{name}.py": ANSWERS,
    }
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(f"{name!r} is no name for an exercise: write lower-case letters, digits and _.")
    if taken := [str(file.relative_to(root())) for file in files if file.exists()]:
        raise ValueError(f"{taken[0]} is there already.")
    if not cells.exists() or after not in exercises.names():
        raise ValueError(f"There is no {f'exercise called {after}' if cells.exists() else cells}.")
    for file, text in files.items():
        write_atomically(file, text.replace("NAME", name).replace("NOTEBOOK", notebook))
    stub = stubs.stub(name)
    write_atomically(exercise_file(name), stub)
    index = lab / "__init__.py"
    listed = index.read_text(encoding="utf-8").replace(
        f'    "{after}",\n', f'    "{after}",\n    "{name}",\n'
    )
    write_atomically(index, listed)
    add_cells(cells, f"%%exercise {name}\n{stub}".rstrip("\n"), f'check("{name}")')
    return [
        *(str(file.relative_to(root())) for file in files),
        f"exercises/{name}.py: the stub, which scripts/refresh_stubs.py makes from the solution",
        f"notebooks/{notebook}.ipynb: two cells at its end, for you to move",
        f"course_kernels/lab/exercises/__init__.py: listed after {after}",
        "It sums each row, and passes. Next:",
        f"python -m course_kernels.lab check {name} --file solutions/{name}.py",
    ]


def add_cells(path, *sources: str) -> None:
    """Add code cells at the end of a notebook."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for source in sources:
        cell = {"cell_type": "code", "execution_count": None, "id": secrets.token_hex(4), "metadata": {}}
        notebook["cells"].append(cell | {"outputs": [], "source": source.splitlines(keepends=True)})
    write_atomically(path, json.dumps(notebook, ensure_ascii=False, indent=1) + "\n")
