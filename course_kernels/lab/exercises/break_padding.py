"""Exercise: an input on which a kernel that pads with 0 is wrong."""

import numpy as np

from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.exercises.breaking import BreakExercise, Cause
from course_kernels.lab.core.wording import count


class BreakPadding(BreakExercise):
    name = "break_padding"
    notebook = "03_one_row_one_program"
    entry = "break_padding"
    brief = (
        "break_padding() → x: a matrix of at most 64 × 1000 finite numbers on which a kernel that pads with "
        "0 is wrong."
    )
    wrong_kernel = "padded_with_zero"
    right_kernel = "fused_row"
    flaw = "pads with 0"
    hints = (
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
            "finds a maximum of 0, and every masked lane adds exp(0 − 0) = 1. torch.full((1, 5), −3.0), say.",
        ),
    )
    lesson = (
        "A masked lane still takes part in tl.max and tl.sum. Padded with 0 it adds exp(0 − m) to the sum: "
        "nothing to speak of when the maximum is 40, everything when the row is negative. A test on large "
        "positive numbers, or on row lengths that are powers of two, never sees it. −∞ adds exp(−∞) = 0 "
        "whatever the row holds."
    )

    def shown(self, row: np.ndarray) -> str:
        lanes, top, added, total = self.effect(row)
        if top < 0:
            return _signs(
                f"every value of the row is below 0 (the largest is {top:.4g}). The {count(lanes, 'lane')} "
                f"past the "
                "row held 0, so the kernel took 0 for the maximum, and each such lane added exp(0 − 0) = 1 "
                f"to a sum that should have been {total:.4g} on that scale."
            )
        return _signs(
            f"the row's maximum, {top:.4g}, is not far above 0, and the {count(lanes, 'lane')} past the "
            f"row held 0. "
            f"Each added exp(0 − {top:.4g}) = {added / lanes:.3g} to a sum that should have been {total:.4g}."
        )

    def hidden(self, x: np.ndarray) -> Cause:
        columns = x.shape[1]
        lanes = _block(columns) - columns
        if not lanes:
            return Cause(
                f"{columns} is a power of two, so the block has {count(columns, 'lane')}, none of them "
                f"masked: "
                "what the masked lanes hold cannot matter.",
                "no_masked_lanes",
                "No lane is masked.",
                "Take a row length that is not a power of two.",
            )
        low = x[int(np.argmin(x.max(axis=1)))]
        _, top, added, total = self.effect(low)
        return Cause(
            _signs(
                f"The lowest maximum of a row is {top:.4g}. The {count(lanes, 'lane')} past the row "
                f"{'add' if lanes > 1 else 'adds'} {added:.2g} to its sum of {total:.4g}. That is "
                f"{added / total:.1g} of it, no more than the roundings of a right kernel may add up to."
            ),
            "maximum_far_above_zero",
            "Every row has a maximum far above 0, and exp(0 − m) vanishes.",
            "Make a row whose maximum is small, or below 0.",
        )

    def effect(self, row: np.ndarray) -> tuple[int, float, float, float]:
        """(masked lanes, maximum, what the lanes add to the sum, right sum), on the wrong kernel's scale."""
        row = row.astype(np.float64)
        lanes, top = _block(len(row)) - len(row), float(row.max())
        found = max(top, 0.0)
        return lanes, top, lanes * float(np.exp(-found)), float(np.exp(row - found).sum())


def _block(columns: int) -> int:
    return 1 << (columns - 1).bit_length()


def _signs(text: str) -> str:
    return text.replace(" -", " −").replace("(-", "(−").replace("e-", "e−")


EXERCISE = BreakPadding()
