"""Exercise: an input that exposes a running sum that is never rescaled."""

import numpy as np

from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.exercises.breaking import BreakExercise, Cause

TILE = 128  # of the wrong kernel


class BreakRescale(BreakExercise):
    name = "break_rescale"
    notebook = "04_online_max_and_sum"
    entry = "break_rescale"
    brief = (
        "break_rescale() → x: a matrix of at most 64 × 1000 finite numbers on which a kernel that never "
        "rescales its running sum is wrong."
    )
    wrong_kernel = "never_rescaled"
    right_kernel = "tiled"
    flaw = "never rescales its sum"
    hints = (
        Hint(
            "you do not know where to begin",
            f"The wrong kernel walks along the row in tiles of {TILE}. Within a tile it is right. What would "
            "have to change from one tile to the next for the old sum to be wrong?",
        ),
        Hint(
            "your row has several tiles, and still comes out right",
            "The sum so far was taken against the maximum so far. It is wrong only if a later tile holds a "
            "larger value than all before it.",
        ),
        Hint(
            "you want to see one that works",
            f"A row of more than {TILE} values that rise: torch.arange(256.0)[None] / 50, say, or zeros with "
            "one 5 at the end.",
        ),
    )
    lesson = (
        "d is a sum of exponentials measured from m. When m grows, every term of d is measured from the "
        "wrong place by the same factor, exp(old − new), and one multiplication mends all of them. A row "
        "whose maximum lies in its first tile never needs it. With random numbers and two tiles that is "
        "every second row, and a test with few rows can miss the bug."
    )

    def shown(self, row: np.ndarray) -> str:
        tops = self.tops(row)
        at = int(np.flatnonzero(tops[1:] > tops[0])[0]) + 1  # the first tile that beats the first one
        before = tops[:at].max()
        wrong, right = self.sums(row)
        last = min(len(row), (at + 1) * TILE) - 1
        gap = f"{_number(before)} − {_number(tops[at], inside=True)}"
        factor = float(np.exp(before - tops[at]))
        return (
            f"the maximum grows after the first tile, from {_number(before)} to {_number(tops[at])} in the "
            f"tile of columns {at * TILE} to {last}. The sum so far should have been multiplied by "
            f"exp({gap}) = {_number(factor)}, and was not: the sum came out as {_number(wrong)}, and should "
            f"be {_number(right)}."
        )

    def hidden(self, x: np.ndarray) -> Cause:
        columns = x.shape[1]
        if columns <= TILE:
            return Cause(
                f"The kernel's tiles hold {TILE} columns and your rows have {columns}: one tile, so no sum "
                "is ever carried over.",
                "one_tile",
                "Each row is a single tile.",
                f"Make the rows longer than {TILE}.",
            )
        growth = [np.maximum.accumulate(tops)[-1] - tops[0] for tops in map(self.tops, x)]
        if max(growth) <= 0:
            return Cause(
                f"In every row the largest value is among the first {TILE} columns (or equal to one there). "
                "The maximum never grows from tile to tile, and a sum that needs no rescaling is right "
                "without it.",
                "maximum_first",
                "The maximum comes in the first tile.",
                f"Put the largest value of a row after column {TILE - 1}.",
            )
        return Cause(
            f"The maximum grows by at most {max(growth):.2g} after the first tile, so the factor that is "
            f"missing is exp(−{max(growth):.2g}): no further from 1 than the roundings of a right kernel "
            f"may be.",
            "grows_too_little",
            "The maximum hardly grows.",
            "Let a later value be larger by 1 or more.",
        )

    def tops(self, row: np.ndarray) -> np.ndarray:
        """The maximum of each tile."""
        return np.array(
            [row[start : start + TILE].max() for start in range(0, len(row), TILE)], dtype=np.float64
        )

    def sums(self, row: np.ndarray) -> tuple[float, float]:
        """(the sum that is never rescaled, the right one)."""
        row = row.astype(np.float64)
        running = np.maximum.accumulate(self.tops(row))
        tiles = [row[start : start + TILE] for start in range(0, len(row), TILE)]
        wrong = sum(float(np.exp(tile - top).sum()) for tile, top in zip(tiles, running, strict=True))
        return wrong, float(np.exp(row - row.max()).sum())


def _number(value: float, inside: bool = False) -> str:
    text = f"{value:.5g}".replace("-", "−")
    return f"({text})" if inside and value < 0 else text


EXERCISE = BreakRescale()
