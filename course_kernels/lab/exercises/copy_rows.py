"""Exercise: the first kernel, a copy of a matrix, one program a row."""

from dataclasses import replace
from functools import partial

import numpy as np

from course_kernels.lab.check import generic, strides
from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.finding import Seen
from course_kernels.lab.check.kernels import KernelExercise
from course_kernels.lab.check.mistakes import Mistake, Probe
from course_kernels.lab.check.trial import Trial
from course_kernels.lab.core.wording import number
from course_kernels.lab.exercises.inputs import large_cases, random
from course_kernels.lab.run.cases import Case


def oracle(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


def exact(case: Case, wanted: tuple) -> np.ndarray:
    return np.zeros(wanted[0].shape)


def wrong(trial: Trial, masks: list) -> list:
    """The elements whose bits differ: −0 is not 0. One NaN is as good as another."""
    got, x = trial.values[0], trial.case.x
    if got.dtype != x.dtype:
        return masks
    bits = f"u{x.itemsize}"
    return [(got.view(bits) != x.view(bits)) & ~(np.isnan(got) & np.isnan(x))]


def cases(rng: np.random.Generator) -> list[Case]:
    normal = partial(random, rng, scale=1.0)
    odd = int(rng.choice([67, 83, 97, 113]))
    marked = normal(2, odd)
    marked[0, rng.permutation(odd)[:3]] = np.nan, np.inf, -np.inf
    small = normal(2, odd)
    small[0, rng.permutation(odd)[:8]] = -0.0
    small[1] *= np.float32(1e-39)
    return [
        Case("plain", "random numbers, and a row length that is not a power of two", normal(3, odd)),
        Case("power", "a row length that is a power of two", normal(2, 64)),
        Case("gap", "rows that do not follow each other directly in memory", normal(4, odd), gap=5),
        Case("many", "more rows than columns", normal(19, 6)),
        Case("column", "a single column", normal(5, 1)),
        Case("row", "a single row", normal(1, odd)),
        Case("long", "rows longer than 1024", normal(2, 1024 + int(rng.integers(1, 200)))),
        Case("half", "float16", normal(3, odd).astype(np.float16)),
        Case("half_gap", "float16, with rows that lie apart", normal(3, odd).astype(np.float16), gap=3),
        Case("marked", "a row with a NaN, an ∞ and a −∞", marked),
        Case("small", "a row with −0 here and there, and a row of the smallest numbers there are", small),
    ]


# Numbers that are equal, but not the same


def tiny_lost(t: Trial) -> dict | None:
    """Only the smallest numbers are wrong, and come out as 0. zero: those are −0."""
    wrong, x = t.wrong[0], t.case.x
    with np.errstate(invalid="ignore"):
        tiny = np.abs(x) < np.finfo(x.dtype).tiny
    lost = tiny[wrong].all() and (t.values[0][wrong] == 0).all()
    return {"zero": bool((x[wrong] == 0).all())} if lost else None


def replaced(t: Trial) -> dict | None:
    """Ordinary numbers are copied; what is infinite, or NaN, is replaced."""
    wrong = t.wrong[0]
    if np.isfinite(t.case.x[wrong]).any():
        return None
    pairs = zip(t.case.x[wrong], t.values[0][wrong], strict=True)
    return {"changed": "; ".join(sorted({f"{number(x)} comes out as {number(y)}" for x, y in pairs})[:3])}


AS_IT_IS = "Store what was loaded, as it is."
CHANGED = (
    Mistake(
        "bits_changed",
        "−0 comes out as 0: something is computed between the load and the store.",
        AS_IT_IS,
        when=lambda t: (found := tiny_lost(t)) and found["zero"],
        why="A copy leaves every bit as it is. Adding 0 does not: −0 + 0 is 0.",
    ),
    Mistake(
        "bits_changed",
        "The smallest numbers come out as 0: something is computed between the load and the store.",
        AS_IT_IS,
        when=tiny_lost,
    ),
    Mistake(
        "values_replaced",
        "‹changed›: something between the load and the store replaces it.",
        AS_IT_IS,
        when=replaced,
        why="every other number of this input is copied. A copy has nothing to guard against; lanes past the "
        "row are kept out of the store by its mask.",
        kind=Seen,
    ),
)

# What was stored in place of the row

SECOND = "The second argument of tl.store is what tl.load returned"
SWAPPED = "The stride belongs to the row: ‹x_address›."
PREDICTED = (
    replace(generic.SAME_ROW, what="Every row of the result is row 0 of x.",
                                   next="Start the load at ‹x_start›."),
    Mistake("same_column", "Every column of the result is column 0 of x: the load takes one element a row.",
            "Add `‹lanes›` to the address of the load: one address a lane.",
            lambda s: np.broadcast_to(s.x[:, :1], s.x.shape)),
    *generic.NOT_SCALED,
    Mistake("reversed", "The columns are in reverse order.", "Load and store at + ‹lanes›, from 0 up.",
            lambda s: s.x[:, ::-1]),
    Mistake("reversed", "The rows are in reverse order.", "Load and store the same row in each program.",
            lambda s: s.x[::-1]),
    Mistake("rounded",
            "The values were rounded to float16 on the way.",
            "Store what was loaded; no conversion is needed.",
            lambda s: s.x.astype(np.float16)),
    Mistake("addresses_stored", "The column numbers were stored, not the values.", f"{SECOND}.",
            lambda s: np.broadcast_to(np.arange(s.columns), s.x.shape)),
    Mistake("mask_stored", "The mask was stored, not the values.", f"{SECOND}; the mask goes to mask=.",
            lambda s: np.ones(s.x.shape)),
    Mistake("zeros_stored",
            "Zeros were stored, not the values.", f"{SECOND}.", lambda s: np.zeros(s.x.shape)),
    Mistake("same_tile", "Every tile of the result is the first tile of x.",
            "Load at the tile's own columns, start + the lanes, as in the store.",
            lambda s: s.x[:, np.resize(np.arange(s.tile), s.columns)] if s.walked else None),
    Mistake("transposed", "Rows and columns have changed places.", SWAPPED,
            lambda s: s.x.T if s.rows == s.columns else None),
)  # fmt: skip

# Rows and columns that changed places leave the tensor, unless the matrix is a square


def square(t: Trial) -> Case:
    x = np.random.default_rng(t.rows).normal(size=(16, 16)).astype(np.float32)
    return replace(t.case, about="a square matrix", x=x, gap=0)


def transposed(o: Trial) -> bool:
    return not o.facts.faults and bool(o.near(o.case.x.T, 0).all())


def by_columns(o: Trial) -> bool:
    """With both addresses swapped a square comes out right, each program copying a column of it."""
    return not o.facts.faults and bool((o.facts.x_loads == 1).all()) and o.facts.programs_by_launch == [16]


def changed_places(shows, where: str) -> Mistake:
    return Mistake(
        "transposed",
        "Rows and columns have changed places, and the kernel leaves the matrix.",
        SWAPPED,
        probes=(Probe(square, shows=shows),),
        why=f"they changed places in {where}.",
    )


BOUNDS = (
    changed_places(transposed, "one of two addresses: of a square matrix it gives the transpose"),
    changed_places(by_columns, "both addresses: of a square matrix, each program takes a column"),
)


def copied(t: Trial) -> dict | None:
    """A copy that PyTorch made."""
    refused, error = t.facts.message.get("refused"), t.facts.error
    line = f" (line {error['line']}: `{error['source']}`)" if error and error["line"] else ""
    known = refused in ("clone", "copy_", "_to_copy", "contiguous")
    return {"operation": refused, "line": line, "case": ""} if known else None


BY_TORCH = Mistake(
    "torch_work",
    "PyTorch made a copy‹line›; here a kernel does that.",
    "Allocate y with torch.empty_like(x), and let the kernel fill it.",
    when=copied,
    why="The operation was aten::‹operation›, the work behind .clone(), .contiguous() and .to().",
)
ONE_LANE = Mistake(
    "one_lane",
    "The values are right, and each load takes a single element: the lanes of the program stand idle.",
    "Use `‹lanes›`, one address a lane: a single load covers the row.",
    when=lambda p: p.facts.widest_load == 1 < p.columns,
    why="A load of a whole tile asks for neighbouring elements at once, and memory hands those out together; "
    "one element at a time takes as many trips.",
)

EXERCISE = KernelExercise(
    name="copy_rows",
    notebook="00_start_here",
    entry="copy_rows",
    brief=("copy_rows(x) → y: a copy of x (rows, columns), one program a row, one load and one store."),
    hints=(
        Hint(
            "nothing works yet",
            "Three lines are missing. A mask, one True or False a lane: does the lane have a column? Then "
            "tl.load(addresses, mask=mask) and tl.store(addresses, values, mask=mask). An address is a "
            "pointer plus a number of elements.",
        ),
        Hint(
            "some rows are wrong, or the kernel leaves its tensor",
            "Row number `row` starts row * x_stride elements after x_ptr: the stride is the distance from "
            "one row to the next, which is more than the number of columns where rows lie apart. y has a "
            "stride of its own. Lanes whose column is not below `columns` must stay out of both the load and "
            "the store.",
        ),
        Hint(
            "the addresses are still wrong",
            "mask = column < columns, then x = tl.load(x_ptr + row * x_stride + column, mask=mask), then the "
            "store: the same with y_ptr and y_stride, x as its second argument, and the same mask.",
        ),
    ),
    lesson=(
        "Every element was loaded once and stored once. A kernel that needs each element of its input, and "
        "writes as many, can do with no less. So this kernel is the yardstick of the course: a softmax that "
        "moves no more than a copy has only its speed left to prove."
    ),
    oracle=oracle,
    tolerance=exact,
    wrong=wrong,
    cases=cases,
    large_cases=large_cases(5_000, 40_000),
    max_launches=1,
    fill=None,
    mistakes=(*CHANGED, *PREDICTED, *strides.ROWS),
    run_rows=(BY_TORCH,),
    bounds_rows=BOUNDS,
    cost_rows=(ONE_LANE,),
)
