"""What the mistakes of a walk along a row, tile by tile, make of its maximum, its sum, and its softmax."""

from functools import cached_property

import numpy as np

from course_kernels.lab.check.arithmetic import Arithmetic
from course_kernels.lab.check.mistakes import Mistake
from course_kernels.lab.run.cases import Case

INF = np.inf
RESCALE = (
    "When the maximum grows, multiply the sum so far by exp(old maximum − new maximum), then add the "
    "tile's sum."
)
CARRY = "Carry the maximum and the sum from tile to tile: start from −∞ and 0, and update both for each tile."
MOST_TILES = 130  # among which a limit of the file's own is looked for


class Walks:
    """Pairs (maximum, sum), (rows, 1) each, that wrong walks find.

    x: (rows, columns) in float64, of more columns than a tile. tops, own: each tile's maximum and the sum
        against
    it. running, sums: the maximum of the tiles so far, and the tile's sum against that.
    """

    def __init__(self, x: np.ndarray, tile: int):
        self.x, self.tile, self.known = x, tile, {}
        self.tiles = [x[:, start : start + tile] for start in range(0, x.shape[1], tile)]
        self.tops = [part.max(axis=1, keepdims=True) for part in self.tiles]
        self.running = list(np.maximum.accumulate(np.stack(self.tops), axis=0))
        self.m = self.running[-1]
        with np.errstate(all="ignore"):
            self.own = [against(part, top) for part, top in zip(self.tiles, self.tops, strict=True)]
            self.sums = [against(part, top) for part, top in zip(self.tiles, self.running, strict=True)]

    def pair(self, key):
        """The pair of a wrong walk, once for all: key is a function of this object."""
        if key not in self.known:
            with np.errstate(all="ignore"):
                self.known[key] = key(self)
        return self.known[key]

    def carried(self, step):
        """The row's maximum, and the sum after step(sum, old maximum, new maximum, tile's sum, own sum)."""
        d = self.sums[0]
        for old, new, part, own in zip(
            self.running, self.running[1:], self.sums[1:], self.own[1:], strict=False
        ):
            d = step(d, old, new, part, own)
        return self.m, d

    def of(self, x: np.ndarray):
        """The right pair of some columns."""
        if not x.shape[1]:
            return np.full_like(self.m, -INF), np.zeros_like(self.m)
        top = x.max(axis=1, keepdims=True)
        return top, against(x, top)

    def first_tiles(self, number: int):
        """The pair of the first tiles alone; None if the row has no more. An empty tile adds nothing."""
        if number >= len(self.tiles):
            return None
        top = self.running[number - 1]
        own = zip(self.own[:number], self.tops[:number], strict=True)
        return top, sum(np.nan_to_num(d) * np.exp(m - top) for d, m in own)

    @cached_property
    def own_kept(self):
        """Each round keeps its own tile's maximum."""
        d = self.sums[0]
        for before, top, part in zip(self.tops, self.tops[1:], self.tiles[1:], strict=False):
            new = np.maximum(before, top)
            d = d * np.exp(before - new) + against(part, new)
        return self.tops[-1], d

    @cached_property
    def lanes(self):
        """Lanes that each keep a maximum and a sum of their own, the sums added as they are."""
        padding = len(self.tiles) * self.tile - self.x.shape[1]
        lanes = np.pad(self.x, ((0, 0), (0, padding)), constant_values=-INF).reshape(
            len(self.x), -1, self.tile
        )
        e = np.nan_to_num(np.exp(lanes - lanes.max(axis=1, keepdims=True)))
        return self.m, e.sum(axis=(1, 2))[:, None]


def against(part: np.ndarray, top: np.ndarray) -> np.ndarray:
    """The sum of exp(part − top) along each row."""
    return np.exp(part - top).sum(axis=1, keepdims=True)


def walk(name: str, what: str, advice: str, key) -> Mistake:
    """A row of mistakes. key: from Walks to the pair that it finds."""
    return Mistake(name, what, advice, predicts=lambda s: s.pair(key))


WALKS = (
    walk("never_rescaled", "The running sum is never rescaled when the maximum grows.", RESCALE,
         lambda w: w.carried(lambda d, old, new, part, own: d + part)),
    walk("rescaled_backwards",
         "The running sum is rescaled the wrong way: by exp(new − old) instead of exp(old − new).", RESCALE,
         lambda w: w.carried(lambda d, old, new, part, own: d * np.exp(new - old) + part)),
    walk("rescaled_twice",
         "The tile's own sum is rescaled too, though it was taken against the new maximum already.",
         RESCALE, lambda w: w.carried(lambda d, old, new, part, own: (d + part) * np.exp(old - new))),
    walk("rescaled_backwards",
         "The parts' sums are rescaled the wrong way: by exp(m − own maximum) instead of exp(own maximum − "
         "m).", RESCALE,
         lambda w: (w.m, sum(d * np.exp(w.m - top) for d, top in zip(w.own, w.tops, strict=True)))),
    walk("tile_not_rescaled",
         "The tile's sum is taken against the tile's own maximum, and added to a sum taken against the "
         "larger one of the row.",
         "Take the tile's exponentials against the new running maximum: tl.exp(x - new_m).",
         lambda w: w.carried(lambda d, old, new, part, own: d * np.exp(old - new) + own)),
    walk("tile_sums_added",
         "Each part's sum is taken against its own maximum, and the sums are added as they are.",
         "A sum against maximum m₁ counts for exp(m₁ − m) of one against m: rescale each before adding.",
         lambda w: (w.m, np.sum(w.own, axis=0))),
    walk("lanes_not_merged",
         "The lanes' sums are added as they are, though each was taken against its own lane's maximum.",
         "Before the sum over the lanes, multiply each lane's d by exp(its m − the row's m).",
         lambda w: w.lanes),
    # Before the next: what leaves out a partial tile in any row fails with fewer tiles already.
    *(walk("tiles_left_out",
           f"Only the first {k} tiles, or chunks, count: {k} is a limit of your file, not of the row.",
           "Let the number of tiles, or chunks, follow from the number of columns.",
           lambda w, k=k: w.first_tiles(k))
      for k in range(3, MOST_TILES)),
    walk("last_tile_dropped", "The last, partial tile is left out of the maximum and the sum.",
         "Let the loop run to the end of the row: range(0, ‹columns›, ‹block›), with a mask.",
         lambda w: w.of(w.x[:, : w.x.shape[1] // w.tile * w.tile])),
    walk("first_tile_only", "Only the first tile counts.", CARRY, lambda w: w.of(w.tiles[0])),
    walk("last_tile_only", "Only the last tile counts: each tile replaces what was there.", CARRY,
         lambda w: w.of(w.tiles[-1])),
    walk("sum_of_last_tile", "The sum holds the last tile only; the maximum is the row's.", CARRY,
         lambda w: (w.m, against(w.tiles[-1], w.m))),
    walk("maximum_of_last_tile", "The maximum is that of the last tile, not that of the row.",
         "Keep the larger one: m = tl.maximum(m, tl.max(x, axis=0)).",
         lambda w: (w.tops[-1], against(w.x, w.tops[-1]))),
    walk("maximum_of_last_tile",
         "The maximum that a round keeps is its own tile's; in the end it is that of the last "
         "tile.", "Keep the larger one at the end of each round: m = new_m.", lambda w: w.own_kept),
    walk("last_maximum_lost",
         "The last tile counts in the sum, and not in the maximum that is used afterwards.",
         "Keep the new maximum at the end of every round, the last one too: m = new_m.",
         lambda w: (w.running[max(len(w.tiles) - 2, 0)], against(w.x, w.m))),
    walk("first_tile_dropped", "The first tile is left out of the maximum and the sum.",
         "Let the loop begin at 0: range(0, ‹columns›, ‹block›).", lambda w: w.of(w.x[:, w.tile :])),
)  # fmt: skip


# A softmax made from such a pair


class Softmax(Arithmetic):
    """x, its maximum m, the exponentials e of x − m and their sum d; and what walks in tiles make of them."""

    def __init__(self, exercise, case: Case, tile: int):
        super().__init__(exercise, case, tile)
        x = self.x
        with np.errstate(all="ignore"):
            self.m = x.max(axis=1, keepdims=True)
            self.s = x - self.m
            self.e, self.e2 = np.exp(self.s), np.exp2(self.s)
            self.d, self.d2 = (e.sum(axis=1, keepdims=True) for e in (self.e, self.e2))
        self.lanes = (
            2 ** int(np.ceil(np.log2(self.columns))) - self.columns
        )  # past the row, in the usual block

    @cached_property
    def walks(self) -> Walks:
        return Walks(self.x, self.tile)

    def naive(self, x: np.ndarray):
        """What exp without the maximum gives, in the dtype of x."""
        e = np.exp(x)
        return e / e.sum(axis=1, keepdims=True)

    def pair(self, key):
        """The result made from the maximum and the sum that a wrong walk finds; None without a walk."""
        found = self.walks.pair(key) if self.walked else None
        return None if found is None else self.e / found[1] * np.exp(self.m - found[0])

    def ratio(self, e: np.ndarray):
        """e divided by its sum along the row."""
        return e / e.sum(axis=1, keepdims=True)

    def tiles(self, make):
        """make(part, running maximum, first column) of each tile, side by side; None without a walk."""
        if not self.walked:
            return None
        parts = zip(self.walks.tiles, self.walks.running, range(0, self.columns, self.tile), strict=True)
        return np.hstack([make(part, top, start) for part, top, start in parts])

    def repeated(self, tile: np.ndarray):
        """One tile's result in all tiles."""
        padded = np.pad(tile, ((0, 0), (0, self.tile - tile.shape[1])))
        return np.tile(padded, (1, len(self.walks.tiles)))[:, : self.columns]


def own_top(part: np.ndarray) -> np.ndarray:
    return part.max(axis=1, keepdims=True)


TWO_WALKS = (
    "Let the first walk find m and d and store nothing; in a second one load each tile again, and "
    "store exp(x − m) / d."
)
# A sum of the last tile alone gives the same softmax as last_tile_only.
TILES = (
    *(row for row in WALKS if row.name != "sum_of_last_tile"),
    Mistake("normalised_early",
            "The result is stored in the first walk, when the maximum and the sum are those of the tiles so "
            "far.",
            TWO_WALKS, lambda s: s.tiles(lambda part, top, start: np.exp(part - top)
            / np.exp(s.x[:, : start + s.tile] - top).sum(axis=1, keepdims=True))),
    Mistake("normalised_early",
            "The numerators are taken in the first walk, against the maximum of the tiles so far.",
            TWO_WALKS, lambda s: s.tiles(lambda part, top, start: np.exp(part - top) / s.d)),
    Mistake("normalised_early",
            "The numerators are stored in the first walk, against the maximum of the tiles so far, and "
            "nothing divides them.",
            TWO_WALKS, lambda s: s.tiles(lambda part, top, start: np.exp(part - top))),
    Mistake("own_maximum",
            "The sum is right, but each tile's numerators are taken against the tile's own maximum.",
            "Subtract the maximum of the row, m, in the second walk too: tl.exp(x - m) / d.",
            lambda s: s.tiles(lambda part, top, start: np.exp(part - own_top(part)) / s.d)),
    Mistake("own_sum", "The numerators are right, but each tile's are divided by the sum of that tile alone.",
            "Divide by the sum of the row, d.", lambda s: s.tiles(lambda part, top, start: np.exp(part - s.m)
            / np.exp(part - own_top(part)).sum(axis=1, keepdims=True))),
    Mistake("not_reloaded",
            "Every tile of the result is made from the last tile of x: that is what x still holds after the "
            "first walk.",
            "Load the tile again in the second walk.",
            lambda s: s.repeated(np.exp(s.walks.tiles[-1] - s.m) / s.d) if s.walked else None),
    Mistake("tiles_alone", "Each tile is normalised on its own, as if it were a row.",
            "Carry the maximum and the sum from tile to tile; normalise in a second walk, when both are "
            "final.",
            lambda s: s.tiles(lambda part, top, start: s.ratio(np.exp(part - own_top(part))))),
    Mistake("same_tile", "Each tile of the result is that of the first tile.",
            "In the second walk load and store at the tile's own columns, start + the lanes.",
            lambda s: s.repeated((s.e / s.d)[:, : s.tile]) if s.walked else None),
)  # fmt: skip
