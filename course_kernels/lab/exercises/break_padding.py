"""Exercise: an input on which a kernel that pads with 0 is wrong."""

import numpy as np

from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.mistakes import Mistake
from course_kernels.lab.core.wording import count, number
from course_kernels.lab.exercises.breaking import Breaking


def effect(row: np.ndarray) -> tuple[int, float, float, float]:
    """(masked lanes, maximum, what the lanes add to the sum, right sum), on the wrong kernel's scale."""
    row = row.astype(np.float64)
    lanes, top = masked_lanes(len(row)), float(row.max())
    found = max(top, 0.0)
    return lanes, top, lanes * float(np.exp(-found)), float(np.exp(row - found).sum())


def masked_lanes(columns: int) -> int:
    """The lanes past the row in a block of a power of two."""
    return (1 << (columns - 1).bit_length()) - columns


def shown(row: np.ndarray) -> str:
    lanes, top, added, total = effect(row)
    past = f"The {count(lanes, 'lane')} past the row held 0"
    if top < 0:
        return (
            f"every value of the row is below 0 (the largest is {number(top, 4)}). {past}, so the kernel "
            "took 0 for the maximum, and each such lane added exp(0 − 0) = 1 to a sum that should have been "
            f"{number(total, 4)} on that scale."
        )
    return (
        f"the row's maximum, {number(top, 4)}, is not far above 0. {past}. Each added exp(0 − "
        f"{number(top, 4)}) = {number(added / lanes, 3)} to a sum that should have been {number(total, 4)}."
    )


def no_lane(x: np.ndarray) -> dict | None:
    columns = x.shape[1]
    return None if masked_lanes(columns) else {"columns": columns, "lanes": count(columns, "lane")}


def vanishing(x: np.ndarray) -> dict:
    lanes, top, added, total = effect(x[int(np.argmin(x.max(axis=1)))])
    return {
        "top": number(top, 4), "lanes": count(lanes, "lane"), "add": "add" if lanes > 1 else "adds",
        "added": number(added, 2), "total": number(total, 4), "share": number(added / total, 1),
    }  # fmt: skip


EXERCISE = Breaking(
    name="break_padding",
    notebook="03_one_row_one_program",
    entry="break_padding",
    brief=(
        "break_padding() → x: a matrix of at most 64 × 1000 finite numbers on which a kernel that pads with "
        "0 is wrong."
    ),
    wrong_kernel="padded_with_zero",
    right_kernel="fused_row",
    flaw="pads with 0",
    shown=shown,
    hidden=(
        Mistake(
            "no_masked_lanes",
            "No lane is masked.",
            "Take a row length that is not a power of two.",
            when=no_lane,
            why="‹columns› is a power of two, so the block has ‹lanes›, none of them masked: what the masked "
            "lanes hold cannot matter.",
        ),
        Mistake(
            "maximum_far_above_zero",
            "Every row has a maximum far above 0, and exp(0 − m) vanishes.",
            "Make a row whose maximum is small, or below 0.",
            when=vanishing,
            why="The lowest maximum of a row is ‹top›. The ‹lanes› past the row ‹add› ‹added› to its sum of "
            "‹total›. That is ‹share› of it, no more than the roundings of a right kernel may add up to.",
        ),
    ),
    hints=(
        Hint(
            "you do not know where to begin",
            "The wrong kernel differs from the right one in its masked lanes only. How many of them are "
            "there for a row of 5, and for a row of 8?",
        ),
        Hint(
            "your row has masked lanes, and still comes out right",
            "Each masked lane adds exp(0 − m) to the sum, where m is the maximum that the kernel found. "
            "Which rows make that number large, and which make it vanish?",
        ),
        Hint(
            "you want to see one that works",
            "A row whose length is not a power of two and whose values are all negative: the kernel then "
            "finds a maximum of 0, and every masked lane adds exp(0 − 0) = 1. torch.full((1, 5), -3.0), say.",
        ),
    ),
    lesson=(
        "A masked lane still takes part in tl.max and tl.sum. Padded with 0 it adds exp(0 − m) to the sum: "
        "nothing to speak of when the maximum is 40, everything when the row is negative. A test on large "
        "positive numbers, or on row lengths that are powers of two, never sees it. −∞ adds exp(−∞) = 0 "
        "whatever the row holds."
    ),
)
