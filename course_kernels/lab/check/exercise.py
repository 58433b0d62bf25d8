"""What an exercise is: data, and the few functions that its data need."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from course_kernels.lab.check.mistakes import Mistake
from course_kernels.lab.run.cases import Case


@dataclass(frozen=True)
class Hint:
    """One step of help: the symptom it is for, and the help."""

    symptom: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """One exercise.

    name, notebook: where it is. entry: what the file must define. brief: one sentence on what to write.
    hints: three steps, the last nearly the answer. lesson: a short explanation, shown after a pass.
    judged: from (exercise, session) to what a right answer earned, a line each; raises a Finding otherwise.
    how: how it was judged, as the verdict says it.
    adapt: how to call the entry on a case, if not as entry(x); adapt_name is the same as "module:function", for
        the process that compiles.
    compile_calls: shapes to compile for; empty: nothing to compile. gpu_shapes: (rows, columns, dtype) to run on
        a GPU.
    library_advice: what to do in place of a library's function.
    translations: (phrase of an exception, mistake, what, next), tried before all others.
    refusals: what the run ruled out, as the arguments of a Finding.
    """

    name: str
    notebook: str
    entry: str
    brief: str
    hints: tuple[Hint, Hint, Hint]
    lesson: str
    judged: Callable | None = None
    how: str = "Run in the interpreter on small inputs"
    adapt: Callable | None = None
    adapt_name: str | None = None
    compile_calls: tuple[dict, ...] = ()
    gpu_shapes: tuple[tuple[int, int, str], ...] = ()
    library_advice: str = "Load the row, take tl.max and tl.sum yourself."
    translations: tuple[tuple[str, str, str, str], ...] = ()
    refusals: dict[str, tuple] = field(default_factory=dict)

    def judge(self, session) -> list[str]:
        """What a right answer earned, a line each.

        Raises:
            Finding: the answer does not pass.
        """
        return self.judged(self, session)


def shape_of_x(case: Case) -> tuple[int, ...]:
    return case.x.shape


def dtype_of_x(case: Case) -> str:
    return str(case.x.dtype)


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
    """An exercise in which kernels make outputs from inputs, judged by `check.engine`.

    oracle: the right outputs from the inputs, float64: an array, or a tuple of one for each output.
    tolerance: from (case, wanted outputs) to how far each element of each output may be off.
    cases: from a random generator to fresh inputs, the plain ones first; each is there for a mistake.
    large_cases: inputs of sizes that no constant in a file can know; they run when the others are right.
    more_cases: from (exercise's session, trials so far) to inputs made for this very file.
    outputs: what the entry returns, in order. wrong: for what `tolerance` cannot say: from (trial, index) to the
        mask of wrong elements.
    traffic: from a case to the most elements that may be loaded, and stored.
    max_launches, max_tile: limits on launches, and on the columns of one load; None: no limit.
    fill: what a masked lane must hold in order to change nothing; None: it never matters.
    arithmetic: from (case, tile width) to what the mistakes' `predicts` take.
    mistakes: how values go wrong, in the order in which they are tried.
    run_rows, bounds_rows, cost_rows: rows tried before the engine's own, where the run, the addresses or the
        traffic is not as it should be.
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
    traffic: Callable[[Case], tuple[int, int]] = once_each
    max_launches: int | None = None
    max_tile: int | None = None
    fill: float | None = -np.inf
    arithmetic: Callable | None = None
    mistakes: tuple[Mistake, ...] = ()
    run_rows: tuple[Mistake, ...] = ()
    bounds_rows: tuple[Mistake, ...] = ()
    cost_rows: tuple[Mistake, ...] = ()
    fewer_loads: str = "Load once and keep what was loaded in a variable."
    keep_digits: str = ""
    nan_output: int = 0
    nan_rule: str = "the whole row should be NaN, as PyTorch has it"
    compile_calls: tuple[dict, ...] = (
        {"shape": [4, 1000], "dtype": "float32", "gap": 24},
        {"shape": [4, 1024], "dtype": "float16"},
    )
    gpu_shapes: tuple[tuple[int, int, str], ...] = (
        (4096, 1024, "float32"), (4096, 781, "float32"), (1823, 4096, "float16"),
    )  # fmt: skip
