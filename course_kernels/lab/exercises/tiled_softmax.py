"""Exercise: softmax of rows of any length, tile by tile."""

from functools import partial

from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.kernels import KernelExercise
from course_kernels.lab.exercises.inputs import large_cases, tile_cases
from course_kernels.lab.exercises.softmax import KEEP_DIGITS, SOFTMAX, softmax64, tolerance
from course_kernels.lab.exercises.walks import Softmax

LONG_CALLS = (
    {"shape": [2, 2500], "dtype": "float32", "gap": 12},
    {"shape": [2, 4096], "dtype": "float16"},
)

EXERCISE = KernelExercise(
    name="tiled_softmax",
    notebook="05_tiling_long_rows",
    entry="tiled_softmax",
    brief=(
        "tiled_softmax(x) → y: the softmax of each row of x (rows, columns), for rows of any length, in "
        "tiles of at most 1024 columns; each element is loaded twice and stored once."
    ),
    hints=(
        Hint(
            "it is not clear where to begin",
            "The row no longer fits on chip, so it is walked twice. What must be known about the whole row "
            "before the first result can be written? The first walk finds that, and is the loop of "
            "online_stats.",
        ),
        Hint(
            "the values are wrong in long rows only",
            "Three places to look at: both loops must reach the last, partial tile, range(0, columns, TILE); "
            "the sum must be rescaled when the maximum grows; and the second walk must use the row's m and "
            "d, not the tile's.",
        ),
        Hint(
            "it is still wrong",
            "First walk, each tile: new_m = tl.maximum(m, tl.max(x, axis=0)); anchor = tl.where(new_m == "
            "-float('inf'), 0.0, new_m); d = d * tl.exp(m - anchor) + tl.sum(tl.exp(x - anchor), axis=0); m "
            "= new_m. Second walk: load the tile again and store tl.exp(x - m) / d.",
        ),
    ),
    lesson=(
        "Two loads and one store an element: at most two thirds of the speed of a copy once rows outgrow the "
        "cache, and no more can be had from one program a row that has nowhere to keep it. Attention kernels "
        "escape the second walk only because they use each tile at once, and rescale what they made of it "
        "when the maximum grows."
    ),
    oracle=softmax64,
    tolerance=tolerance,
    cases=partial(tile_cases, tile=1024),
    large_cases=large_cases(18_000, 40_000),
    traffic=lambda case: (2 * case.x.size, case.x.size),
    max_tile=1024,
    arithmetic=Softmax,
    mistakes=SOFTMAX,
    fewer_loads=(
        "Two walks are enough: the first finds the maximum and the sum together, by rescaling the sum when "
        "the maximum grows (as online_stats does); the second writes the result."
    ),
    keep_digits=KEEP_DIGITS,
    compile_calls=LONG_CALLS,
    gpu_shapes=((64, 40000, "float32"), (300, 5001, "float32"), (64, 65536, "float16")),
)
