"""What the predictions of mistakes are made of."""

import numpy as np


class Arithmetic:
    """What predictions are made of: x in float64, and the exercise's own result for other numbers."""

    def __init__(self, exercise, case, tile: int):
        self.exercise, self.case, self.tile = exercise, case, tile
        self.x = case.x.astype(np.float64)
        self.rows, self.columns = self.x.shape

    def of(self, x: np.ndarray):
        """The exercise's result for x, the other inputs as they are."""
        return self.exercise.oracle(x, *self.case.more.values())

    @property
    def first_row(self):
        """The result of row 0 in every row."""
        result = self.of(self.case.x)
        parts = result if isinstance(result, tuple) else (result,)
        same = tuple(np.broadcast_to(part[:1], part.shape) for part in parts)
        return same if isinstance(result, tuple) else same[0]

    @property
    def windows(self) -> np.ndarray:
        """What is loaded at x_ptr + row + column; NaN, which says nothing, where rows lie apart."""
        if self.case.gap or self.columns < 2:
            return np.full(self.x.shape, np.nan)
        return np.lib.stride_tricks.sliding_window_view(self.x.ravel(), self.columns)[: self.rows]

    @property
    def walked(self) -> bool:
        """True if a row has more columns than a tile."""
        return 0 < self.tile < self.columns

    def reduced(self, values) -> np.ndarray | None:
        """A prediction for a result of one number a row; None where the result has another shape."""
        result = self.of(self.case.x)
        return None if isinstance(result, tuple) or result.shape != (self.rows,) else values(self.x)

    def part(self, columns: slice):
        """The result of some columns alone, if it is one number a row and the row is walked in tiles."""
        walked = self.walked and self.x[:, columns].shape[1]
        return self.reduced(lambda x: self.of(x[:, columns])) if walked else None
