"""Exercises that ask for an input: one on which a kernel that is wrong on purpose shows it.

The wrong kernel and a right one run on the learner's matrix. If they differ, the reply shows a row of both
and says what property of it did that; if they agree, it says why this input hides the bug.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from course_kernels.lab.check.errors import of_exception
from course_kernels.lab.check.exercise import Exercise
from course_kernels.lab.check.finding import Evidence, Finding
from course_kernels.lab.check.messages import rows
from course_kernels.lab.check.mistakes import Mistake, fill
from course_kernels.lab.core.wording import count, numbers
from course_kernels.lab.exercises.softmax import softmax64
from course_kernels.lab.run.cases import decode

MOST_ROWS, MOST_COLUMNS = 64, 1000
ASK = f"Return a matrix of at most {MOST_ROWS} × {MOST_COLUMNS} finite numbers."
TRANSLATIONS = rows("""
said positional argument
wrong_arguments: The function is called without arguments.
→ Keep the stub's line: no arguments between the brackets.

said Torch not compiled with CUDA
device_named: The file asks for the GPU by name, and the check runs on the CPU.
→ Leave device="cuda" out: a few numbers need no GPU.
""")


def judge(exercise: "Breaking", session) -> list[str]:
    """What the input shows, a line each. Raises a Finding if it shows nothing."""
    x = made(exercise, session)
    wrong = outputs(f"course_kernels.lab.exercises.broken.{exercise.wrong_kernel}", x)
    right = outputs(f"course_kernels.{exercise.right_kernel}", x)
    errors = relative_error(wrong, x)
    row = int(np.argmax(errors.max(axis=1)))
    start = max(0, min(int(np.argmax(errors[row])) - 2, x.shape[1] - 6))
    cut = slice(start, start + 6)
    picture = [
        f"x is {x.shape[0]} × {x.shape[1]}; row {row}{f' from column {start}' if start else ''}:",
        f"  x            {numbers(x[row][cut])}",
        f"  right kernel {numbers(right[row][cut])}, the row sums to {right[row].sum():.6g}",
        f"  wrong kernel {numbers(wrong[row][cut])}, the row sums to {wrong[row].sum():.6g}",
    ]
    broken = int((errors > tolerance(x)).any(axis=1).sum())
    if not broken:
        cause, words = next((m, found) for m in exercise.hidden if (found := m.when(x)) is not None)
        what = f"On your input the kernel that {exercise.flaw} is right. {fill(cause.what, words)}"
        why = Evidence(fill(cause.why, words))
        raise Finding(cause.name, what, "\n".join(picture), why, fill(cause.next, words))
    return [
        f"It shows in {broken} of {count(len(x), 'row')}. {picture[0]}",
        *(line.strip() for line in picture[1:]),
        f"What did it: {exercise.shown(x[row])}",
    ]


@dataclass(frozen=True, kw_only=True)
class Breaking(Exercise):
    """An exercise whose answer is an input.

    wrong_kernel: a module of `exercises.broken`. right_kernel: a module of course_kernels.
    flaw: what is wrong with the wrong one, as in "the kernel that …".
    shown: from a row that comes out wrong to the sentence that says what in it did that.
    hidden: rows for inputs on which nothing shows, the last one for all that is left. Their `when` takes x.
    """

    wrong_kernel: str
    right_kernel: str
    flaw: str
    shown: Callable[[np.ndarray], str]
    hidden: tuple[Mistake, ...]
    judged: Callable = judge
    how: str = "Both kernels ran in the interpreter on your input"
    translations: tuple = TRANSLATIONS


def made(exercise: "Breaking", session) -> np.ndarray:
    """The learner's matrix as float32, (rows, columns). Raises a Finding if it is not one to use."""
    from course_kernels.lab.run import functions

    message = session.call(lambda: functions.run_input(session.path, exercise.entry))
    if message["error"]:
        raise of_exception(message["error"], "", exercise)
    output = message["output"]
    if not output["tensor"]:
        kind = "nothing" if output["type"] == "NoneType" else f"an object of type {output['type']}"
        what = f"{exercise.entry}() returns {kind}; it should return x, a tensor."
        raise Finding("wrong_return", what, next=ASK)
    shape = tuple(output["shape"])
    if len(shape) != 2 or 0 in shape:
        what = f"x has the shape {shape}; it should be (rows, columns), with at least one of each."
        advice = "For a single row write two pairs of brackets: torch.tensor([[1.0, 2.0, 3.0]])."
        raise Finding("wrong_shape", what, next=advice)
    if shape[0] > MOST_ROWS or shape[1] > MOST_COLUMNS:
        what = f"x is {shape[0]} × {shape[1]}, which is more than is needed."
        raise Finding("too_large", what, next=ASK)
    with np.errstate(over="ignore"):
        x = decode(output["values"]).astype(np.float32)
    if not np.isfinite(x).all():
        row, column = np.argwhere(~np.isfinite(x))[0]
        what = (
            f"x[{row}, {column}] is not a finite float32 number; there even a right softmax gives NaN or 0."
        )
        raise Finding(
            "not_finite", what, "", Evidence("An infinity or a NaN would prove nothing about this bug."), ASK
        )
    return x


def outputs(module: str, x: np.ndarray) -> np.ndarray:
    """What a kernel makes of x."""
    import torch

    with np.errstate(all="ignore"):
        y = importlib.import_module(module).softmax(torch.from_numpy(x.copy()))
    return y.numpy().astype(np.float64)


def relative_error(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """How far each element of y is from the softmax of x, as a share of it; ∞ for a NaN."""
    wanted = softmax64(x)
    error = np.abs(y - wanted) / (wanted + 2.0**-100)
    return np.where(np.isnan(y), np.inf, error)


def tolerance(x: np.ndarray) -> np.ndarray:
    """The relative error that a right float32 kernel may have: roundings, that of x − m among them."""
    x = x.astype(np.float64)
    roundings = 2.0**-23 * (16 + 2 * (x.max(axis=1, keepdims=True) - x))
    return roundings + np.where(softmax64(x) < 2.0**-120, np.inf, 0)
