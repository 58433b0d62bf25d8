"""Exercise: a row's maximum and sum of exponentials in one walk."""

from dataclasses import replace

import numpy as np

from course_kernels.lab.check import generic
from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.kernels import KernelExercise, Output, float32, one_a_row
from course_kernels.lab.check.mistakes import Mistake, Probe
from course_kernels.lab.check.shown import drawn
from course_kernels.lab.check.trial import EPSILON, Trial
from course_kernels.lab.core.wording import number
from course_kernels.lab.exercises import softmax
from course_kernels.lab.exercises.inputs import large_cases, tile_cases
from course_kernels.lab.exercises.walks import RESCALE, WALKS, Softmax
from course_kernels.lab.run.cases import Case

INF = np.inf
TILE = 256  # the most columns of a tile


def stats64(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(m, d) of each row in float64: its maximum and Σ exp(x − m); (−inf, 0) for a row of −inf only."""
    x = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        m = x.max(axis=1)
        d = np.exp(x - np.where(m == -np.inf, 0.0, m)[:, None]).sum(axis=1)
    return m, d


def tolerance(case: Case, wanted: tuple) -> tuple:
    """m is exact; each tile may round d once more, and exp(x − m) is small where x − m is rounded most."""
    m, d = wanted
    return np.zeros(m.shape), np.nan_to_num(d) * EPSILON * (16 + case.x.shape[1] / 16)


def wrong(trial: Trial, masks: list) -> list:
    """With a NaN or +∞ in the row d is NaN, and nothing depends on m."""
    return [masks[0] & ~np.isnan(trial.expected[1]), masks[1]]


def cases(rng: np.random.Generator) -> list[Case]:
    # Whatever stands in for −∞ in an exponent must not stay in a row that lies below it.
    low = rng.normal(size=(3, 3 * TILE + int(rng.integers(3, TILE // 5)))) - 9
    low[0, : 2 * TILE] = low[1, TILE : 2 * TILE] = low[2, 2 * TILE :] = -INF
    about = "long rows of negative numbers, with −∞ at the start, in the middle, or at the end"
    # No +∞: what a sum of exp(x − ∞) should be is a matter of taste.
    return [*tile_cases(rng, TILE, infinity=False), Case("empty", about, low.astype(np.float32))]


class Stats(Softmax):
    """m and d as (rows,), and what walks make of them."""

    def __init__(self, exercise, case: Case, tile: int):
        super().__init__(exercise, case, tile)
        with np.errstate(all="ignore"):
            self.m, self.d = self.of(self.x)
            self.s = self.x - self.m[:, None]
            self.e, self.e2 = np.exp(self.s), np.exp2(self.s)

    def naive(self, x):
        return x.max(axis=1), np.exp(x).sum(axis=1)

    def pair(self, key):
        found = self.walks.pair(key) if self.walked else None
        return None if found is None else (found[0][:, 0], found[1][:, 0])

    def both(self, m: float, d: float):
        """These numbers in every row."""
        return np.full(self.rows, m), np.full(self.rows, d)

    def shared(self, group: int):
        """One maximum for each group of rows."""
        if self.rows < 2:
            return None
        tops = [self.m[i : i + group].max() for i in range(0, self.rows, group)]
        tops = np.repeat(tops, group)[: self.rows]
        return tops, np.exp(self.x - tops[:, None]).sum(axis=1)

    def walk(self, step):
        """(m, d) after step(d, old maximum, new maximum, tile's maximum, tile's sum) for each tile."""
        if not self.tile:
            return None
        m, d = np.full(self.rows, -INF), np.zeros(self.rows)
        for start in range(0, self.columns, self.tile):
            part = self.x[:, start : start + self.tile]
            top = part.max(axis=1)
            new = np.maximum(m, top)
            d = step(d, m, new, top, np.exp(part - new[:, None]).sum(axis=1))
            m = new
        return m, d


def last_sum(s: Stats):
    """The sum of the last tile alone, against its own maximum."""
    last = s.x[:, (s.columns - 1) // s.tile * s.tile :]
    return np.exp(last - last.max(axis=1, keepdims=True)).sum(axis=1)


OVER_ROWS = (
    "maximum_over_rows",
    "All rows of a program get the same maximum, the largest value of its whole tile.",
    "Reduce along the columns, one maximum a row: tl.max(x, axis=1).",
)
TWICE = "Start from m = −∞ and d = 0, and let the walk add every tile; or let it begin at the second one."
PREDICTED = (
    Mistake("maximum_starts_at_zero",
            "The maximum of rows that are all negative comes out as 0: it starts from 0.",
            "Start the running maximum at −∞.",
            lambda s: (top := np.maximum(s.m, 0), np.exp(s.x - top[:, None]).sum(axis=1))),
    Mistake("no_maximum", "d is the sum of exp(x): the maximum is not subtracted.", "Sum exp(x − m).",
            lambda s: (s.m, np.exp(s.x).sum(axis=1))),
    Mistake("swapped", "m and d have changed places.", "Return m, d: first the maximum, then the sum.",
            lambda s: (s.d, s.m)),
    Mistake("log_given",
            "d is the logarithm of the sum.", "Return the sum itself.", lambda s: (s.m, np.log(s.d))),
    Mistake("log_given", "d is m + log of the sum.", "Return the sum of exp(x − m) itself.",
            lambda s: (None, s.m + np.log(s.d))),
    Mistake("inverted", "d is one divided by the sum.", "Return the sum itself.", lambda s: (s.m, 1 / s.d)),
    Mistake("base_two",
            "2^(x − m) stands where e^(x − m) should.", softmax.BY_E, lambda s: (s.m, s.e2.sum(axis=1))),
    Mistake("sum_of_inputs", "d is the sum of x itself.", "Sum exp(x − m).", lambda s: (s.m, s.x.sum(axis=1))),
    Mistake("no_exponential", "d is the sum of x − m: the exponential is missing.", "Sum tl.exp(x - m).",
            lambda s: (s.m, s.s.sum(axis=1))),
    Mistake("mean",
            "d is the mean of the exponentials.", "Return their sum.", lambda s: (s.m, s.e.mean(axis=1))),
    Mistake("counted",
            "d is the number of columns.", "Sum exp(x − m).", lambda s: (s.m, np.full(s.rows, s.columns))),
    generic.SAME_ROW,
    Mistake("maximum_only", "m is right, and d stays 0.", "Add each tile's exponentials to d.",
            lambda s: (s.m, np.zeros(s.rows))),
    Mistake("sign", "The exponent has the wrong sign: m − x stands where x − m should.", "Sum tl.exp(x - m).",
            lambda s: (s.m, np.exp(-s.s).sum(axis=1))),
    *generic.NOT_SCALED,
    generic.ROUNDED_IN,
    Mistake("maximum_not_stored", "d is right, and m comes out as −∞, where it started.",
            "Store the maximum that the walk found.", lambda s: (np.full(s.rows, -INF), s.d)),
    *(Mistake(*OVER_ROWS, lambda s, group=group: s.shared(group)) for group in (2, 4, 8, 16)),
    Mistake("tile_skipped", "A tile that brings no new maximum is never added to d.",
            "Add every tile's exponentials; what depends on a new maximum is the factor of the old sum only.",
            lambda s: s.walk(
                lambda d, old, new, top, own: np.where(top > old, d * np.exp(old - new) + own, d))),
    Mistake("sum_reset", "A tile of nothing but −∞ sets d to 0, and what was summed before it is lost.",
            "Such a tile adds 0 to d and leaves d and m as they are.",
            lambda s: s.walk(
                lambda d, old, new, top, own: np.where(top == -INF, 0, d * np.exp(old - new) + own))),
    Mistake("counted_twice",
            "The first tile counts twice: d holds it already when the walk begins, and the walk adds it "
            "again.",
            TWICE, lambda s: (s.m, s.d + s.e[:, : s.tile].sum(axis=1)) if s.tile else None),
    Mistake("counted_twice",
            "The first element counts twice: d starts at 1, which is its exponential, and the walk adds it "
            "again.",
            "Start from m = −∞ and d = 0.", lambda s: (s.m, s.d + s.e[:, 0]) if s.tile else None),
    Mistake("maximum_not_kept",
            "m comes out as −∞, where it started, and d is the sum of the last tile alone.",
            "At the end of each round keep the new maximum: m = new_m.",
            lambda s: (np.full(s.rows, -INF), last_sum(s)) if s.walked else None),
    *WALKS,
)  # fmt: skip


# The number that stands in for −∞ in the exponents


def hole_and_tile(t: Trial) -> list[Case]:
    """A row with a tile of −∞ and one of −5, and a row of the tile of −∞ alone."""
    tile = t.facts.widest_load
    hole = np.full((1, 2 * tile), -5, np.float32)
    hole[:, :tile] = -INF
    return [replace(t.case, x=x, gap=0) for x in (hole, hole[:, :tile].copy())]


def kept_number(t: Trial) -> dict | None:
    """The number that becomes m where a tile is all −∞."""
    if not t.facts.widest_load or not np.isneginf(t.case.x[t.bad]).any():
        return None
    kept = [float(o.got[0]) for o in t.run(hole_and_tile(t)) if o.compared]
    kept = [m for m in kept if np.isfinite(m) and m != -5]
    return {"kept": number(kept[0]), "low": number(low(kept[0])), "low_": low(kept[0])} if kept else None


def low(kept: float) -> float:
    """A number below it."""
    return min(2 * kept, 0) - 5


def all_low(t: Trial) -> Case | None:
    """A row of nothing but a number below the one that is kept."""
    return replace(t.case, x=np.full((1, 8), kept_number(t)["low_"], np.float32), gap=0)


STAND_IN = Mistake(
    "stand_in_kept",
    "Where a tile is all −∞, m becomes ‹kept›: the number that stands in for −∞ in the exponents is kept as "
    "the maximum.",
    "Give the stand-in a variable of its own, for the exponents only: anchor = tl.where(new_m == "
    "-float('inf'), 0.0, new_m). What is carried on and stored is new_m.",
    when=kept_number,
    probes=(Probe(all_low),),
    why="a row of nothing but ‹low› comes out right, so m does start at −∞; and after a tile of −∞ it is "
    "‹kept›.",
)


# Where the maximum starts, and what the exponentials are measured from


def far_below(t: Trial) -> bool:
    finite = np.isfinite(t.x[t.bad]).all() and t.top[t.bad].max() <= -1e6
    return bool(finite) and not t.values[1][t.bad].any()


LOW_START = Mistake(
    "maximum_starts_finite",
    "Rows far below 0 get a sum of 0: their exponentials are measured from a finite number that lies above "
    "them.",
    "Start the running maximum at −∞, and let nothing keep it, or what is subtracted, above a number.",
    when=far_below,
    probes=(Probe(lambda t: t.like(t.x[t.bad] - t.top[t.bad], t.case.gap)),),
    why="the same rows moved up to 0 come out right, and a sum of exp(x − m) does not change when a row is "
    "moved.",
)


def tiles_of(*steps: float):
    """A row of four tiles, each of one number."""
    return lambda t: replace(t.case, x=np.repeat(np.float32([steps]), t.facts.widest_load, axis=1), gap=0)


def infinite(t: Trial) -> bool:
    return not np.isfinite(t.values[1]).any()


RISING, ALL_HIGH = Probe(tiles_of(0, 60, 120, 180)), Probe(tiles_of(180, 180, 180, 180), shows=infinite)
OTHER_ANCHOR = (
    Mistake(
        "old_maximum",
        "The tile's exponentials are taken against the maximum before the tile, and rescaled afterwards: "
        "where the tile lies far above it, they are ∞ already, and far below, all 0.",
        "First the new maximum, then exp(x − new maximum). " + RESCALE,
        when=lambda t: t.facts.widest_load,
        probes=(RISING, ALL_HIGH),
        why="four tiles of 0, 60, 120 and 180 come out right, and four of 180 do not: the first one is "
        "measured from 0.",
    ),
    Mistake(
        "first_tile_anchor",
        "All exponentials are taken against the maximum of the first tile: where that is −∞, or far below "
        "the row's, they are ∞ or NaN.",
        "Measure each tile from the maximum of all tiles up to it. " + RESCALE,
        when=lambda t: t.facts.widest_load,
        probes=(
            Probe(tiles_of(180, 0, 0, 0)),
            Probe(tiles_of(0, 60, 60, 60)),
            Probe(tiles_of(0, 60, 120, 180), shows=infinite),
            Probe(tiles_of(0, 180, 180, 180), shows=infinite),
        ),
        why="tiles of 180, 0, 0, 0 come out right, and so do 0, 60, 60, 60; 0, 180, 180, 180 do not.",
    ),
)


def infinite_sum(t: Trial) -> bool:
    return t.finite and np.abs(t.case.x).max() <= 40 and bool(np.isinf(t.values[1]).all())


OLD_MAXIMUM = Mistake(
    "old_maximum",
    "d is ∞: the tile's exponentials are taken against the maximum before the tile, which starts at −∞.",
    "First the new maximum, then exp(x − new maximum). " + RESCALE,
    when=infinite_sum,
    # So low that such lanes add nothing, and finite; the wrong sign would still make them infinite.
    probes=(
        Probe(lambda t: t.like(t.case.x[:, : t.facts.widest_load]),
              shows=lambda o: np.isinf(o.values[1]).all(), masked_lanes=lambda t: float(t.case.x.min())),
    ),
    why="it is ∞ also where the masked lanes hold a value of the row, and no exp(x) of this row is.",
)  # fmt: skip


# Rows of −∞


def only_infinite(t: Trial) -> dict | None:
    """Only rows of nothing but −∞ are wrong."""
    if not np.isneginf(t.case.x[t.bad]).all():
        return None
    m, d = (float(values[t.bad[0]]) for values in t.values)
    return {"m": number(m, 4), "d": number(d, 4), "finite": np.isfinite(m)}


def other_rows(t: Trial) -> Case | list:
    others = np.delete(t.case.x, t.bad, axis=0)
    return t.like(others, t.case.gap) if len(others) else []


INFINITE_ROW = (
    Mistake(
        "maximum_starts_finite",
        "For a row of nothing but −∞ the maximum comes out as ‹m›: the running maximum starts there.",
        "Start the running maximum at −∞.",
        when=lambda t: (words := only_infinite(t)) and words["finite"] and words,
        probes=(Probe(other_rows),),
        why="the other rows of this input are right. A row whose values all lie below that number would get "
        "it for its maximum, and a sum of 0.",
    ),
    Mistake(
        "infinite_row",
        "For a row of nothing but −∞ m comes out as ‹m›, d as ‹d›; they should be −∞ and 0.",
        "Start from −∞ and 0, and let neither change while all is −∞.",
        when=only_infinite,
        probes=(Probe(other_rows),),
        why="the other rows of this input are right. (−∞, 0) is the pair that changes nothing when it is "
        "merged, and a part of a row that is all −∞ is such a row.",
    ),
)


def elsewhere(row: Mistake) -> Mistake:
    """A NaN that is hidden in another input; here it may be what −∞ − (−∞) gave."""

    def when(t: Trial) -> dict | None:
        found = ((other, row.when(other)) for other in t.others)
        other, words = next(((o, w) for o, w in found if w), (None, None))
        return words and {**words, "case": drawn(other)}

    return replace(row, when=when)


def converted(t: Trial) -> dict | None:
    """PyTorch converts a tensor after a launch."""
    if t.facts.message.get("refused") != "_to_copy" or not t.facts.launches:
        return None
    error = t.facts.error
    return {"line": f" (line {error['line']}: `{error['source']}`)" if error else ""}


CONVERTED = Mistake(
    "wrong_dtype",
    "PyTorch converts a tensor after the kernel has run‹line›.",
    "Allocate m and d with dtype=torch.float32, whatever the dtype of x, and return them as they are.",
    when=converted,
    why="What was stored in another dtype is rounded, or too large for it, before that.",
)


EXERCISE = KernelExercise(
    name="online_stats",
    notebook="04_online_max_and_sum",
    entry="online_stats",
    brief=(
        "online_stats(x) → (m, d): for each row of x (rows, columns) its maximum and the sum of exp(x − m), "
        "both (rows,) float32, found in one walk along the row in tiles of at most 256 columns, each element "
        "loaded once. A row of nothing but −∞ has m = −∞ and d = 0, the pair that changes nothing when it is "
        "merged."
    ),
    hints=(
        Hint(
            "it is not clear how to do it in one walk",
            "Before a tile, d is a sum of exp(x − m) with the old m. With a larger maximum each term would "
            "have been smaller by the same factor, so the whole sum can be corrected by one multiplication. "
            "By what factor?",
        ),
        Hint(
            "d is too large or too small when the maximum grows, or NaN where a tile is −∞",
            "Three steps a tile: the new maximum; the old sum times exp(old maximum − new maximum); plus the "
            "tile's sum against the new maximum. Only where the new maximum is still −∞ must both exponents "
            "be measured from another number, say 0.",
        ),
        Hint(
            "it is still wrong",
            "new_m = tl.maximum(m, tl.max(x, axis=0)), then anchor = tl.where(new_m == -float('inf'), 0.0, "
            "new_m), then d = d * tl.exp(m - anchor) + tl.sum(tl.exp(x - anchor), axis=0), then m = new_m.",
        ),
    ),
    lesson=(
        "One walk instead of two: the second one was only needed because the maximum was not known yet, and "
        "a sum taken against too small a maximum is wrong by a factor that is known later. The same step "
        "merges lanes, tiles, programs and GPUs, because it does not ask in what order or grouping the parts "
        "arrive."
    ),
    oracle=stats64,
    tolerance=tolerance,
    wrong=wrong,
    cases=cases,
    large_cases=large_cases(5_000, 12_000),
    outputs=(Output("m", one_a_row, float32), Output("d", one_a_row, float32)),
    traffic=lambda case: (case.x.size, 2 * case.x.shape[0]),
    max_tile=TILE,
    arithmetic=Stats,
    mistakes=(
        STAND_IN, LOW_START, *softmax.FIRST, softmax.LOST_DIGITS, *OTHER_ANCHOR, softmax.NO_MAXIMUM,
        *PREDICTED, *softmax.LAST, generic.HALF_RESULTS, softmax.RESCALING, OLD_MAXIMUM, *INFINITE_ROW,
        *map(elsewhere, generic.NAN),
    ),
    run_rows=(CONVERTED,),
    fewer_loads=(
        "A second walk is not needed: when a tile brings a larger maximum, the sum found so far can be "
        "rescaled, by exp(old maximum − new maximum)."
    ),
    keep_digits="Keep m as it is in x, and subtract it before you multiply by log2(e) for tl.exp2.",
    nan_output=1,
    nan_rule="d should be NaN, so that the softmax made from it is",
    compile_calls=(
        {"shape": [4, 1000], "dtype": "float32", "gap": 24},
        {"shape": [4, 2048], "dtype": "float16"},
    ),
)  # fmt: skip
