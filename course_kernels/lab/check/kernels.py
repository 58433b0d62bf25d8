"""Exercises in which kernels make outputs from inputs: what such an exercise is made of."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from course_kernels.lab.check import engine
from course_kernels.lab.check.exercise import Exercise
from course_kernels.lab.check.mistakes import Mistake
from course_kernels.lab.run.cases import Case


def shape_of_x(case: Case) -> tuple[int, ...]:
    return case.x.shape


def dtype_of_x(case: Case) -> str:
    return str(case.x.dtype)


def one_a_row(case: Case) -> tuple[int, ...]:
    """The shape of a result of one number a row."""
    return case.x.shape[:1]


def float32(case: Case) -> str:
    """The dtype of a result that is float32 whatever the dtype of x."""
    return "float32"


@dataclass(frozen=True)
class Output:
    """One of the tensors that an entry returns: its name, and its shape and dtype for a case."""

    name: str
    shape: Callable[[Case], tuple[int, ...]] = shape_of_x
    dtype: Callable[[Case], str] = dtype_of_x


def once_each(case: Case) -> tuple[int, int]:
    """Traffic of a kernel that loads each element of x once, and stores as many."""
    return case.x.size, case.x.size


@dataclass(frozen=True, kw_only=True)
class KernelExercise(Exercise):
    """An exercise that `check.engine` judges.

    oracle: the right outputs from the inputs, float64: an array, or a tuple of one for each output.
    tolerance: from (case, wanted outputs) to how far each element of each output may be off.
    cases: from a random generator to fresh inputs, the plain ones first; each is there for a mistake.
    large_cases: inputs of sizes that no constant in a file can know; they run when the others are right.
    more_cases: from a Judgement to inputs made for this very file.
    outputs: what the entry returns, in order.
    wrong: for what `tolerance` cannot say: from (trial, masks of wrong elements) to such masks.
    traffic: from a case to the most elements that may be loaded, and stored; None: `cost_rows` say all of it.
    max_launches, max_tile: limits on launches, and on the columns of one load; None: no limit.
    fill: what a masked lane must hold in order to change nothing; None: it never matters.
    arithmetic: from (case, tile width) to what the mistakes' `predicts` take.
    mistakes: how values go wrong, in the order in which they are tried; rows that predict outputs are
        compared together, where the last of them stands.
    run_rows, bounds_rows, cost_rows: rows tried before the engine's own, where the run, the addresses or the
        traffic is not as it should be. timeout_rows: the same after a run that did not end; of a Judgement.
    fewer_loads: the advice where too much is loaded. keep_digits: where digits are lost far from 0.
    nan_output, nan_rule: which output a NaN must reach, and how that is said.
    """

    oracle: Callable
    tolerance: Callable
    cases: Callable[[np.random.Generator], list[Case]]
    large_cases: Callable | None = None
    more_cases: Callable | None = None
    outputs: tuple[Output, ...] = (Output("y"),)
    wrong: Callable | None = None
    traffic: Callable[[Case], tuple[int, int]] | None = once_each
    max_launches: int | None = None
    max_tile: int | None = None
    fill: float | None = -np.inf
    arithmetic: Callable | None = None
    mistakes: tuple[Mistake, ...] = ()
    run_rows: tuple[Mistake, ...] = ()
    bounds_rows: tuple[Mistake, ...] = ()
    cost_rows: tuple[Mistake, ...] = ()
    timeout_rows: tuple[Mistake, ...] = ()
    fewer_loads: str = "Load once and keep what was loaded in a variable."
    keep_digits: str = ""
    nan_output: int = 0
    nan_rule: str = "the whole row should be NaN, as PyTorch has it"
    judged: Callable = engine.judged
    compile_calls: tuple[dict, ...] = (
        {"shape": [4, 1000], "dtype": "float32", "gap": 24},
        {"shape": [4, 1024], "dtype": "float16"},
    )
    gpu_shapes: tuple[tuple[int, int, str], ...] = (
        (4096, 1024, "float32"), (4096, 781, "float32"), (1823, 4096, "float16"),
    )  # fmt: skip

    def count(self, path: str, rows: list[int], columns: int, dtype: str) -> list[dict]:
        """The traffic of an answer, for each number of rows: see `engine.counted`."""
        from course_kernels.lab.run.session import Session

        return engine.counted(self, Session(path, self.entry, 0, adapt=self.adapt), rows, columns, dtype)
