"""Exercise: an input that exposes a running sum that is never rescaled."""

import numpy as np

from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.mistakes import Mistake
from course_kernels.lab.core.wording import number
from course_kernels.lab.exercises.breaking import Breaking

TILE = 128  # of the wrong kernel


def maxima(row: np.ndarray) -> np.ndarray:
    """The maximum of each tile."""
    return np.array([row[s : s + TILE].max() for s in range(0, len(row), TILE)], dtype=np.float64)


def sums(row: np.ndarray) -> tuple[float, float]:
    """(the sum that is never rescaled, the right one)."""
    row = row.astype(np.float64)
    running = np.maximum.accumulate(maxima(row))
    tiles = [row[start : start + TILE] for start in range(0, len(row), TILE)]
    wrong = sum(float(np.exp(tile - top).sum()) for tile, top in zip(tiles, running, strict=True))
    return wrong, float(np.exp(row - row.max()).sum())


def shown(row: np.ndarray) -> str:
    tops = maxima(row)
    at = int(np.flatnonzero(tops[1:] > tops[0])[0]) + 1  # the first tile that beats the first one
    before, after = tops[:at].max(), tops[at]
    wrong, right = map(number, sums(row))
    gap = f"{number(before)} − {number(after) if after >= 0 else f'({number(after)})'}"
    return (
        f"the maximum grows after the first tile, from {number(before)} to {number(after)} in the tile of "
        f"columns {at * TILE} to {min(len(row), (at + 1) * TILE) - 1}. The sum so far should have been "
        f"multiplied by exp({gap}) = {number(np.exp(before - after))}, and was not: the sum came out as "
        f"{wrong}, and should be {right}."
    )


def growth(x: np.ndarray) -> float:
    """The most by which a row's maximum grows after its first tile."""
    return max(tops.max() - tops[0] for tops in map(maxima, x))


EXERCISE = Breaking(
    name="break_rescale",
    notebook="04_online_max_and_sum",
    entry="break_rescale",
    brief=(
        "break_rescale() → x: a matrix of at most 64 × 1000 finite numbers on which a kernel that never "
        "rescales its running sum is wrong."
    ),
    wrong_kernel="never_rescaled",
    right_kernel="tiled",
    flaw="never rescales its sum",
    shown=shown,
    hidden=(
        Mistake(
            "one_tile",
            "Each row is a single tile.",
            f"Make the rows longer than {TILE}.",
            when=lambda x: {"columns": x.shape[1]} if x.shape[1] <= TILE else None,
            why=f"The kernel's tiles hold {TILE} columns and your rows have ‹columns›: one tile, so no sum "
            "is ever carried over.",
        ),
        Mistake(
            "maximum_first",
            "The maximum comes in the first tile.",
            f"Put the largest value of a row after column {TILE - 1}.",
            when=lambda x: {} if growth(x) <= 0 else None,
            why=f"In every row the largest value is among the first {TILE} columns (or equal to one there). "
            "The maximum never grows from tile to tile, and a sum that needs no rescaling is right without "
            "it.",
        ),
        Mistake(
            "grows_too_little",
            "The maximum hardly grows.",
            "Let a later value be larger by 1 or more.",
            when=lambda x: {"growth": number(growth(x), 2)},
            why="The maximum grows by at most ‹growth› after the first tile, so the factor that is missing "
            "is exp(−‹growth›): no further from 1 than the roundings of a right kernel may be.",
        ),
    ),
    hints=(
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
    ),
    lesson=(
        "d is a sum of exponentials measured from m. When m grows, every term of d is measured from the "
        "wrong place by the same factor, exp(old − new), and one multiplication fixes all of them. A row "
        "whose maximum lies in its first tile never needs it. With random numbers and two tiles that is "
        "every second row, and a test with few rows can miss the bug."
    ),
)
