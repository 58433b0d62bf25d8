"""Exercise: softmax in one kernel, one program a row."""

from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.kernels import KernelExercise
from course_kernels.lab.exercises.inputs import large_cases, softmax_cases
from course_kernels.lab.exercises.softmax import KEEP_DIGITS, SOFTMAX, softmax64, tolerance
from course_kernels.lab.exercises.walks import Softmax

EXERCISE = KernelExercise(
    name="fused_softmax",
    notebook="03_one_row_one_program",
    entry="fused_softmax",
    brief=(
        "fused_softmax(x) → y: the softmax of each row of x (rows, columns), one program a row, one load and "
        "one store."
    ),
    hints=(
        Hint(
            "nothing works yet",
            "The kernel has four lines to it: load the row, take its maximum off and exponentiate, sum, "
            "divide and store. tl.max(x, axis=0) and tl.sum(x, axis=0) reduce a tile to one number.",
        ),
        Hint(
            "negative rows are wrong, or a row's sum is too small",
            "Look at the masked lanes. What should a lane hold that must not win the maximum, and must add "
            "nothing to the sum of exponentials? Say it in other=.",
        ),
        Hint(
            "some rows or some columns are wrong",
            "x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float('inf')).to(tl.float32), "
            "then numerator = tl.exp(x - tl.max(x, axis=0)), and tl.store(y_ptr + row * y_stride + column, "
            "numerator / tl.sum(numerator, axis=0), mask=mask).",
        ),
    ),
    lesson=(
        "The row crossed the memory bus twice: in once, out once. Everything between happened in registers, "
        "which is why the eight passes of the five separate kernels became two. The masked lanes held −∞, "
        "the one value that never wins a maximum and adds nothing to a sum of exponentials."
    ),
    oracle=softmax64,
    tolerance=tolerance,
    cases=softmax_cases,
    large_cases=large_cases(5_000, 40_000),
    max_launches=1,
    arithmetic=Softmax,
    mistakes=SOFTMAX,
    keep_digits=KEEP_DIGITS,
)
