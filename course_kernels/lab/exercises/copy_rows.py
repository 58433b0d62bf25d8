"""Exercise: the first kernel, a copy of a matrix, one program a row."""

import numpy as np

from course_kernels.lab.check.judge import Case, Finding
from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.rows import (
    ROW_NOT_SCALED,
    KernelExercise,
    fingerprints,
    large,
    row_stride,
    windows,
)
from course_kernels.lab.core.wording import number

COPYING = ("clone", "copy_", "_to_copy", "contiguous")


class CopyRows(KernelExercise):
    name = "copy_rows"
    notebook = "00_start_here"
    entry = "copy_rows"
    brief = "copy_rows(x) → y: a copy of x (rows, columns), one program a row, one load and one store."
    max_launches = 1
    fills = False
    hints = (
        Hint(
            "nothing works yet",
            "Three lines are missing. A mask, one True or False a lane: does the lane have a column? Then "
            "tl.load(addresses, mask=mask) and tl.store(addresses, values, mask=mask). An address is a "
            "pointer "
            "plus a number of elements.",
        ),
        Hint(
            "some rows are wrong, or the kernel leaves its tensor",
            "Row number `row` starts row * x_stride elements after x_ptr: the stride is the distance from "
            "one row "
            "to the next, which is more than the number of columns where rows lie apart. y has a stride of "
            "its own. "
            "Lanes whose column is not below `columns` must stay out of both the load and the store.",
        ),
        Hint(
            "the addresses are still wrong",
            "mask = column < columns, then x = tl.load(x_ptr + row * x_stride + column, mask=mask), then the "
            "store: "
            "the same with y_ptr and y_stride, x as its second argument, and the same mask.",
        ),
    )
    lesson = (
        "Every element crossed the memory bus twice, in and out, and no kernel that makes a new matrix of "
        "this size "
        "can do with less. So this kernel is the yardstick of the course: a softmax that moves no more than "
        "a copy "
        "has only its speed left to prove."
    )

    def expected(self, x):
        return (x.astype(np.float64),)

    def tolerance(self, case, wanted):
        return (np.zeros(wanted[0].shape),)  # a copy is exact

    def wrong(self, case, result, index):
        """A mask of the elements whose bits differ: −0 is not 0. One NaN is as good as another."""
        got, bits = result.values(index), f"u{case.x.itemsize}"
        return (got.view(bits) != case.x.view(bits)) & ~(np.isnan(got) & np.isnan(case.x))

    def cases(self, rng):
        def normal(rows, columns):
            return rng.normal(size=(rows, columns)).astype(np.float32)

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

    def large_cases(self, rng):
        return large(rng, (5_000, 40_000))

    def experiments(self):
        return [bits_changed, not_copied, fingerprints, row_stride]

    def check_cost(self, session, case, result):
        if result.widest_load == 1 and case.x.shape[1] > 1:
            raise Finding(
                "one_lane",
                "The values are right, and each load takes a single element: the lanes of the program stand "
                "idle.",
                f"The case: x is {case.shape}, {case.about}: {result.loads} loads of one element each.",
                "A load of a whole tile asks for neighbouring elements at once, and memory hands those out "
                "together; one element at a time takes as many trips.",
                "Use `column`, one address a lane: a single load covers the row.",
            )
        super().check_cost(session, case, result)

    def fingerprint_table(self, case, tile):
        x = case.x.astype(np.float64)
        same = np.broadcast_to
        table = [
            ("same_row", same(x[:1], x.shape), "Every row of the result is row 0 of x.",
             "Start the load at x_ptr + row * x_stride."),
            ("same_column", same(x[:, :1], x.shape),
             "Every column of the result is column 0 of x: the load takes one element a row.",
             "Add `column` to the address of the load: one address a lane."),
            ("row_not_scaled", windows(x, case.gap), ROW_NOT_SCALED, "Start the row at row * x_stride."),
            ("reversed", x[:, ::-1], "The columns are in reverse order.", "Load and store at + column, from "
             "0 up."),
            ("reversed", x[::-1], "The rows are in reverse order.", "Load and store the same row in each "
             "program."),
            ("rounded", x.astype(np.float16), "The values were rounded to float16 on the way.",
             "Store what was loaded; no conversion is needed."),
            ("addresses_stored", same(np.arange(x.shape[1]), x.shape),
             "The column numbers were stored, not the values.",
             "The second argument of tl.store is what tl.load returned."),
            ("mask_stored", np.ones(x.shape), "The mask was stored, not the values.",
             "The second argument of tl.store is what tl.load returned; the mask goes to mask=."),
            ("zeros_stored", np.zeros(x.shape), "Zeros were stored, not the values.",
             "The second argument of tl.store is what tl.load returned."),
        ]  # fmt: skip
        if 0 < tile < x.shape[1]:
            first = np.resize(np.arange(tile), x.shape[1])
            table.append(("same_tile", x[:, first], "Every tile of the result is the first tile of x.",
                          "Load at the tile's own columns, start + the lanes, as in the store."))  # fmt: skip
        if x.shape[0] == x.shape[1]:
            table.append(("transposed", x.T, "Rows and columns have changed places.", SWAPPED))
        return table

    def check_run(self, session, case, result):
        refused = result.message.get("refused")
        if refused in COPYING:
            error = result.error
            line = f" (line {error['line']}: `{error['source']}`)" if error and error["line"] else ""
            raise Finding(
                "torch_work",
                f"PyTorch made a copy{line}; here a kernel is to do that.",
                "",
                f"The operation was aten::{refused}, the work behind .clone(), .contiguous() and .to().",
                "Allocate y with torch.empty_like(x), and let the kernel fill it.",
            )
        super().check_run(session, case, result)

    def check_faults(self, session, case, result):
        """Rows and columns that changed places leave the tensor, unless the matrix is a square."""
        if result.faults:
            square = session.rng.normal(size=(16, 16)).astype(np.float32)
            again = session.run([Case("square", "a square matrix", square)])[0]
            inside = again.error is None and not again.faults and self.whole(again)
            if inside and self.near(case, again.values(0), square.T, 0).all():
                raise self.transposed(
                    case, "in one of two addresses: of a square matrix it gives the transpose"
                )
            # With both addresses swapped a square comes out right, each program copying a column of it.
            if inside and (again.x_loads == 1).all() and again.programs_by_launch == [16]:
                raise self.transposed(
                    case, "in both addresses: of a square matrix, each program takes a column"
                )
        super().check_faults(session, case, result)

    def transposed(self, case, where):
        return Finding(
            "transposed",
            "Rows and columns have changed places, and the kernel leaves the matrix.",
            f"The case: x is {case.shape}, {case.about}.",
            f"Proven: they changed places {where}.",
            SWAPPED,
        )


def bits_changed(exercise, session, case, result):
    """Numbers that are equal, but not the same: −0 made 0, or the smallest ones made 0."""
    wrong, got = exercise.wrong(case, result, 0), result.values(0)
    with np.errstate(invalid="ignore"):
        tiny = np.abs(case.x) < np.finfo(case.x.dtype).tiny
        if not tiny[wrong].all() or not (got[wrong] == 0).all():
            return None
    zero = (case.x[wrong] == 0).all()
    return Finding(
        "bits_changed",
        "−0 comes out as 0: something is computed between the load and the store."
        if zero
        else "The smallest numbers come out as 0: something is computed between the load and the store.",
        "",
        "A copy leaves every bit as it is. Adding 0 does not: −0 + 0 is 0." if zero else "",
        "Store what was loaded, as it is.",
    )


def not_copied(exercise, session, case, result):
    """Ordinary numbers are copied; what is infinite, or NaN, is replaced."""
    wrong, got = exercise.wrong(case, result, 0), result.values(0)
    if np.isfinite(case.x[wrong]).any():
        return None
    pairs = zip(case.x[wrong], got[wrong], strict=True)
    changed = sorted({f"{number(x)} comes out as {number(y)}" for x, y in pairs})
    return Finding(
        "values_replaced",
        f"{'; '.join(changed[:3])}: something between the load and the store replaces it.",
        "",
        "Seen: every other number of this input is copied. A copy has nothing to guard against; lanes past "
        "the row are kept out of the store by its mask.",
        "Store what was loaded, as it is.",
    )


SWAPPED = "The stride belongs to the row: x_ptr + row * x_stride + column."

EXERCISE = CopyRows()
