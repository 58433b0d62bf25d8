"""Exercises that ask for an input: one on which a kernel that is wrong on purpose shows it.

The wrong kernel and a right one run on the learner's matrix. If they differ, the reply shows a row of both
and says what property of it did that; if they agree, it says why this input hides the bug.
"""

import importlib
from dataclasses import dataclass

import numpy as np

from course_kernels.lab.run import functions as plain
from course_kernels.lab.check.judge import Finding, Result, Session, check_error
from course_kernels.lab.check.old import Exercise
from course_kernels.lab.exercises.softmax import softmax64
from course_kernels.lab.core.wording import count, numbers

MOST_ROWS, MOST_COLUMNS = 64, 1000


@dataclass
class Cause:
    """Why an input shows the bug, or hides it. mistake: the name, where it hides it. next: what to change."""

    why: str
    mistake: str = ""
    what: str = ""
    next: str = ""


class BreakExercise(Exercise):
    """Subclasses name the kernels, and say what in a row did it (`shown`) or why nothing shows (`hidden`)."""

    wrong_kernel: str  # a module of course_kernels.lab.exercises.broken
    right_kernel: str  # a module of course_kernels
    flaw: str  # what is wrong with the wrong one, as in "the kernel that …"
    translations = (
        (
            "positional argument",
            "wrong_arguments",
            "The function is called without arguments.",
            "Keep the stub's line: no arguments between the brackets.",
        ),
        (
            "Torch not compiled with CUDA",
            "device_named",
            "The file asks for the GPU by name, and the check runs on the CPU.",
            'Leave device="cuda" out: a few numbers need no GPU.',
        ),
    )
    how = "Both kernels ran in the interpreter on your input"

    def shown(self, row: np.ndarray) -> str:
        """What property of this row, which comes out wrong, did it."""
        raise NotImplementedError

    def hidden(self, x: np.ndarray) -> Cause:
        """Why all rows of x come out right."""
        raise NotImplementedError

    def judge(self, session: Session) -> list[str]:
        x = self.input(session)
        wrong, right = (
            self.outputs(f"course_kernels.{module}", x)
            for module in (f"lab.exercises.broken.{self.wrong_kernel}", self.right_kernel)
        )
        errors = relative_error(wrong, x)
        row = int(np.argmax(errors.max(axis=1)))
        start = max(0, min(int(np.argmax(errors[row])) - 2, x.shape[1] - 6))
        cut = slice(start, start + 6)
        place = f" from column {start}" if start else ""
        picture = [
            f"x is {x.shape[0]} × {x.shape[1]}; row {row}{place}:",
            f"  x            {numbers(x[row][cut])}",
            f"  right kernel {numbers(right[row][cut])}, the row sums to {right[row].sum():.6g}",
            f"  wrong kernel {numbers(wrong[row][cut])}, the row sums to {wrong[row].sum():.6g}",
        ]
        allowed = tolerance(x)
        if not (errors > allowed).any():
            cause = self.hidden(x)
            raise Finding(
                cause.mistake,
                f"On your input the kernel that {self.flaw} is right. {cause.what}",
                "\n".join(picture),
                cause.why,
                cause.next,
            )
        broken = int((errors > allowed).any(axis=1).sum())
        return [
            f"It shows in {broken} of {count(len(x), 'row')}. {picture[0]}",
            *(line.strip() for line in picture[1:]),
            f"What did it: {self.shown(x[row])}",
        ]

    def input(self, session: Session) -> np.ndarray:
        """The learner's matrix as float32, (rows, columns). Raises a Finding if it is not one to use."""
        message = session.call(lambda: plain.run_input(session.path, self.entry))
        if message["error"]:
            check_error(Result({"error": message["error"]}), None, self)
        output = message["output"]
        ask = f"Return a matrix of at most {MOST_ROWS} × {MOST_COLUMNS} finite numbers."
        if not output["tensor"]:
            kind = "nothing" if output["type"] == "NoneType" else f"an object of type {output['type']}"
            raise Finding(
                "wrong_return", f"{self.entry}() returns {kind}; it should return x, a tensor.", next=ask
            )
        shape = tuple(output["shape"])
        if len(shape) != 2 or 0 in shape:
            raise Finding(
                "wrong_shape",
                f"x has the shape {shape}; it should be (rows, columns), with at least one of each.",
                next="For a single row write two pairs of brackets: torch.tensor([[1.0, 2.0, 3.0]]).",
            )
        if shape[0] > MOST_ROWS or shape[1] > MOST_COLUMNS:
            raise Finding(
                "too_large", f"x is {shape[0]} × {shape[1]}, which is more than is needed.", next=ask
            )
        with np.errstate(over="ignore"):
            x = Result({"error": None, "outputs": [output], "x_loads": None}).values(0).astype(np.float32)
        if not np.isfinite(x).all():
            row, column = np.argwhere(~np.isfinite(x))[0]
            raise Finding(
                "not_finite",
                f"x[{row}, {column}] is not a finite float32 number, and there even a right softmax gives "
                "NaN or 0.",
                why="An infinity or a NaN would prove nothing about this bug.",
                next=ask,
            )
        return x

    def outputs(self, module: str, x: np.ndarray) -> np.ndarray:
        """What a kernel makes of x."""
        import torch

        with np.errstate(all="ignore"):
            return (
                importlib.import_module(module).softmax(torch.from_numpy(x.copy())).numpy().astype(np.float64)
            )


def relative_error(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """How far each element of y is from the softmax of x, as a share of it; ∞ for a NaN."""
    wanted = softmax64(x)
    error = np.abs(y - wanted) / (wanted + 2.0**-100)
    return np.where(np.isnan(y), np.inf, error)


def tolerance(x: np.ndarray) -> np.ndarray:
    """The relative error that a right float32 kernel may have: roundings, that of x − m among them."""
    x = x.astype(np.float64)
    return 2.0**-23 * (16 + 2 * (x.max(axis=1, keepdims=True) - x)) + np.where(
        softmax64(x) < 2.0**-120, np.inf, 0
    )
