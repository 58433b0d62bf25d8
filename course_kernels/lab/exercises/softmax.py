"""What the softmax exercises share: the oracle, the tolerance, the cases, and the mistakes people make.

Each mistake is proven where that is possible: the learner's own kernel is run again with one thing changed,
and comes out right. Otherwise it is a fingerprint: the output is what that mistake gives, number for number.
"""

from dataclasses import replace

import numpy as np

from course_kernels.lab.check.judge import Case, Finding, Tweaks
from course_kernels.lab.check import addressing
from course_kernels.lab.check.rows import (
    EPSILON,
    ROW_NOT_SCALED,
    KernelExercise,
    fingerprints,
    large,
    row_stride,
    windows,
)
from course_kernels.lab.core.wording import count, grid, which

INF = np.inf


def softmax64(x: np.ndarray) -> np.ndarray:
    """Softmax of each row in float64; NaN and ±inf as torch.softmax has them."""
    x = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)


def log_softmax64(x: np.ndarray) -> np.ndarray:
    """Logarithm of the softmax of each row in float64, as (x − m) − log Σ exp(x − m)."""
    x = x.astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        shifted = x - x.max(axis=1, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def distance(x: np.ndarray) -> np.ndarray:
    """|x − m|, the rounding of which softmax magnifies; 0 where it is not finite."""
    x = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.abs(x - x.max(axis=1, keepdims=True)), nan=0.0, posinf=0.0, neginf=0.0)


def half_rounding(case: Case, wanted: np.ndarray) -> np.ndarray:
    """What rounding the result to float16 may add."""
    if case.x.dtype != np.float16:
        return np.zeros_like(wanted)
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.spacing(np.abs(wanted).astype(np.float16)).astype(np.float64)
    return np.nan_to_num(steps) / 2


class SoftmaxExercise(KernelExercise):
    """Softmax of each row. widths: ordinary row lengths; long: one that does not fit a usual block."""

    long = 1500
    rows_in_long = 2
    keep_digits = "Subtract the maximum from x first; multiply by log2(e), for tl.exp2, after that."
    nan_output = 0  # which output a NaN must reach
    nan_rule = "the whole row should be NaN, as PyTorch has it"

    def expected(self, x):
        return (softmax64(x),)

    def naive(self, x):
        """What exp without the maximum gives, in the dtype of x."""
        e = np.exp(x)
        return e / e.sum(axis=1, keepdims=True)

    def tolerance(self, case, wanted):
        if case.x.shape[1] == 1:  # exp(0) / exp(0): there is nothing to round
            return (np.zeros(wanted[0].shape),)
        # Each tile that a walk adds may round once more; a tile has 16 columns or more.
        relative = EPSILON * (16 + case.x.shape[1] / 32 + 2 * distance(case.x))
        return (np.nan_to_num(wanted[0]) * relative + half_rounding(case, wanted[0]) + 2.0**-125,)

    def cases(self, rng):
        def normal(rows, columns, scale=2.0, shift=0.0):
            return (rng.normal(size=(rows, columns)) * scale + shift).astype(np.float32)

        odd = int(rng.choice([67, 83, 97, 113]))
        long = self.long + int(rng.integers(1, 60))
        rising = np.sort(normal(self.rows_in_long, long, 6.0), axis=1)
        rising[1:] = rising[1:, ::-1]
        # x − m needs more than float16's 11 bits, and so does a sum of this many terms.
        half = rng.uniform(0, 4, size=(3, int(rng.integers(900, 1000)))).astype(np.float16)
        half[:, 7] = 7
        marked = normal(7, odd)
        marked[0, rng.integers(odd)] = np.nan
        marked[5, 0] = marked[6, -1] = np.nan
        marked[1, rng.integers(odd)] = INF
        marked[2, :] = -INF
        marked[3, rng.permutation(odd)[: odd // 2]] = -INF
        far = np.stack(  # no row near the one before it
            [
                np.full(odd, -1e30),
                np.linspace(-1e4, 0, odd),
                np.full(odd, -1e30),
                np.linspace(-40, 60, odd),
                np.full(odd, -1e38 * rng.uniform(3.385, 3.4)),  # at the end of float32, below any floor
            ]
        ).astype(np.float32)
        cases = [
            Case(
                "plain",
                "random numbers around 0, and a row length that is not a power of two",
                normal(3, odd),
            ),
            Case("power", "random numbers, and a row length that is a power of two", normal(2, 64)),
            Case("negative", "rows whose values are all negative", normal(3, odd, 1.0, -50.0)),
            Case("high", "rows of large values, where exp(x) overflows", normal(2, odd, 2.0, 200.0)),
            Case("low", "rows far below 0, where exp(x) underflows", normal(2, odd, 2.0, -300.0)),
            Case("gap", "rows that do not follow each other directly in memory", normal(4, odd), gap=5),
            Case("many", "more rows than columns", normal(19, 6)),
            Case("column", "a single column", normal(5, 1)),
            Case("rising", "a long row of rising values, then falling ones", rising),
            Case("half", "float16, many columns and one larger value", half),
            Case("far", "rows at −1e30 and below −3e38, and a row with a spread of 1e4", far),
            Case("marked", "rows with a NaN, with +∞, with −∞ only, with some −∞, and a plain one", marked),
        ]
        return cases + self.more_cases(rng, normal)

    def large_cases(self, rng):
        return large(rng, (5_000, 40_000))

    def more_cases(self, rng, normal) -> list[Case]:
        return []

    def experiments(self):
        return [
            not_a_number_swallowed,
            output_read_back,
            half_precision,
            padding,
            where_exchanged,
            lost_digits,
            no_maximum,
            epsilon_added,
            infinite_results,
            fingerprints,
            small_made_zero,
            row_stride,
            rows_mixed,
            infinite_tile,
            starting_maximum,
            old_maximum,
            half_numbers,
            rescaling,
            not_the_maximum,
            the_sum,
        ]

    def fingerprint_table(self, case: Case, tile: int) -> list[tuple[str, np.ndarray, str, str]]:
        """(mistake, what it would give, the sentence, what to do) for mistakes that leave a known output."""
        x = case.x.astype(np.float64)
        with np.errstate(all="ignore"):
            m = x.max(axis=1, keepdims=True)
            e = np.exp(x - m)
            d = e.sum(axis=1, keepdims=True)
            low = np.exp(np.minimum(x, 0))
            lanes = 2 ** int(np.ceil(np.log2(x.shape[1]))) - x.shape[1]  # past the row, in the usual block
            table = [
                ("not_divided", e, "The numerators are right, but nothing divides them by their sum.",
                 "Divide by tl.sum(numerator, axis=0)."),
                ("base_two", np.exp2(x - m) / np.exp2(x - m).sum(axis=1, keepdims=True),
                 "The exponential has base 2: 2^(x − m) stands where e^(x − m) should.",
                 "Use tl.exp, or multiply by log2(e) = 1.4426950408889634 before tl.exp2."),
                ("mixed_bases", np.exp2(x - m) / d, "The numerators are powers of 2, and their sum is one of "
                 "powers of e.",
                 "Use tl.exp in both places."),
                ("mixed_bases", e / np.exp2(x - m).sum(axis=1, keepdims=True),
                 "The numerators are powers of e, and their sum is one of powers of 2.",
                 "Use tl.exp in both places."),
                ("sign", np.exp(m - x) / d, "The numerators have the wrong sign: m − x stands where x − m "
                 "should.",
                 "Take tl.exp(x - m)."),
                ("wrong_axis", np.exp(x - x.max(axis=0)) / np.exp(x - x.max(axis=0)).sum(axis=0),
                 "The maximum and the sum run down the columns instead of along the rows.",
                 "Reduce along the axis of the columns."),
                ("same_row", np.broadcast_to((e / d)[:1], x.shape),
                 "Every row of the result is the softmax of row 0.",
                 "Use tl.program_id(0) in the address of the load."),
                ("row_not_scaled", softmax64(windows(x, case.gap)), ROW_NOT_SCALED,
                 "Start the row at x_ptr + row * x_stride."),
                ("clamped_at_zero", np.exp(np.maximum(x, 0) - np.maximum(m, 0))
                 / np.exp(np.maximum(x, 0) - np.maximum(m, 0)).sum(axis=1, keepdims=True),
                 "Negative values of x were made 0 before the softmax, as tl.maximum(x, 0) does.",
                 "The maximum of a tile is one number: tl.max(x, axis=0)."),
                ("no_exponential", x / x.sum(axis=1, keepdims=True),
                 "x is divided by its sum: the exponential is missing.",
                 "Divide tl.exp(x - tl.max(x, axis=0)) by its sum."),
                ("mean", e / x.shape[1], "The numerators are divided by the number of columns, not by their "
                 "sum.",
                 "Divide by tl.sum(numerator, axis=0)."),
                ("no_exponential", (x - m) / (x - m).sum(axis=1, keepdims=True),
                 "x − m is divided by its sum: the exponential is missing.", "Take tl.exp of x − m."),
                ("no_exponential", x / d, "x itself is divided by the sum of the exponentials.",
                 "Divide tl.exp(x - m), the numerators."),
                ("no_exponential", (x - m) / d, "x − m is divided by the sum of the exponentials.",
                 "Divide tl.exp(x - m), the numerators."),
                ("half_precision", softmax64(case.x.astype(np.float16)),
                 "x is rounded to float16 on its way in, and with it goes what 11 bits cannot hold.",
                 "Convert to tl.float32, not to tl.float16."),
                ("maximum_with_zero", low / low.sum(axis=1, keepdims=True),
                 "From each value the larger one of it and 0 is taken off, as tl.maximum(x, 0) gives it, "
                 "not the row's maximum.",
                 "tl.maximum compares lane by lane; the maximum of a tile is tl.max(x, axis=0)."),
                ("sum_of_inputs", e / x.sum(axis=1, keepdims=True),
                 "The numerators are divided by the sum of x, not by the sum of the exponentials.",
                 "Sum what tl.exp gave."),
                ("log_given", x - m - np.log(d), "The result is the logarithm of the softmax.",
                 "Here the softmax itself is asked for."),
                ("maximum_left_in", np.exp(x) / d,
                 "The sum is one of exp(x − m), and the numerators are exp(x): the maximum was left in.",
                 "Take tl.exp(x - m) in both places."),
                ("maximum_left_in", e / np.exp(x).sum(axis=1, keepdims=True),
                 "The numerators are exp(x − m), the sum is one of exp(x): there the maximum was left in.",
                 "Take tl.exp(x - m) in both places."),
                ("wrong_axis", e / e.sum(axis=0), "The sum runs down the columns instead of along the rows.",
                 "Reduce along the axis of the columns."),
                ("padding_zero", e / (d + lanes), lanes_of_zero(lanes), NO_ZERO_AFTER),
                ("one_added", e / (1 + d), "1 is added to the sum of the exponentials.",
                 "The sum holds exp(0) = 1 already, from the largest value. Divide by the sum as it is."),
                ("copied", x, "The result is x itself.", "Compute between the load and the store."),
                ("sign", np.exp(m - x) / np.exp(m - x).sum(axis=1, keepdims=True),
                 "The exponent has the wrong sign: m − x stands where x − m should.", "Take tl.exp(x - m)."),
            ]  # fmt: skip
            if 0 < tile < x.shape[1]:
                table += self.tile_fingerprints(x, tile)
        return table

    def tile_fingerprints(self, x: np.ndarray, tile: int) -> list:
        """What the mistakes of a walk in tiles give."""
        m = x.max(axis=1, keepdims=True)
        table = [(mistake, np.exp(x - m) / d * np.exp(m - top), what, advice)
                 for mistake, top, d, what, advice in wrong_walks(x, tile)
                 if mistake != "sum_of_last_tile"]  # the same softmax as that of last_tile_only  # fmt: skip
        parts = [x[:, s : s + tile] for s in range(0, x.shape[1], tile)]
        tops = np.maximum.accumulate([part.max(axis=1, keepdims=True) for part in parts])
        early = [np.exp(part - top) for part, top in zip(parts, tops, strict=True)]
        sums = [
            np.exp(x[:, : tile * i + tile] - top).sum(axis=1, keepdims=True) for i, top in enumerate(tops)
        ]
        d = np.exp(x - m).sum(axis=1, keepdims=True)
        own = [np.exp(part - part.max(axis=1, keepdims=True)) for part in parts]
        alone = [np.exp(part - m) / e.sum(axis=1, keepdims=True) for part, e in zip(parts, own, strict=True)]
        last = np.pad(np.exp(parts[-1] - m) / d,
                      ((0, 0), (0, tile - parts[-1].shape[1])))  # fmt: skip
        return table + [
            ("normalised_early", np.hstack([e / total for e, total in zip(early, sums, strict=True)]),
             "The result is stored in the first walk, when the maximum and the sum are those of the tiles "
             "so far.", TWO_WALKS),
            ("normalised_early", np.hstack(early) / d,
             "The numerators are taken in the first walk, against the maximum of the tiles so far.",
             TWO_WALKS),
            ("normalised_early", np.hstack(early),
             "The numerators are stored in the first walk, against the maximum of the tiles so far, and "
             "nothing divides them.", TWO_WALKS),
            ("own_maximum", np.hstack(own) / d,
             "The sum is right, but each tile's numerators are taken against the tile's own maximum.",
             "Subtract the maximum of the row, m, in the second walk too: tl.exp(x - m) / d."),
            ("own_sum", np.hstack(alone),
             "The numerators are right, but each tile's are divided by the sum of that tile alone.",
             "Divide by the sum of the row, d."),
            ("not_reloaded", np.tile(last, (1, len(parts)))[:, : x.shape[1]],
             "Every tile of the result is made from the last tile of x: that is what x still holds after "
             "the first walk.", "Load the tile again in the second walk."),
            ("tiles_alone", np.concatenate([softmax64(part) for part in parts], axis=1),
             "Each tile is normalised on its own, as if it were a row.",
             "Carry the maximum and the sum from tile to tile; normalise in a second walk, when both are "
             "final."),
            ("same_tile", np.tile(softmax64(x)[:, :tile], (1, len(parts)))[:, : x.shape[1]],
             "Each tile of the result is that of the first tile.",
             "In the second walk load and store at the tile's own columns, start + the lanes."),
        ]  # fmt: skip


def tile_cases(rng: np.random.Generator, tile: int, infinity: bool = True) -> list[Case]:
    """Rows for walks in tiles: short ones, and of several tiles, if a tile is a power of two up to `tile`.

    infinity: with a row that holds +∞.
    """

    def normal(rows, columns, scale=2.0, shift=0.0):
        return (rng.normal(size=(rows, columns)) * scale + shift).astype(np.float32)

    def odd(tiles):  # a few whole tiles and a part of one
        return tiles * tile + int(rng.integers(3, tile // 5))

    short = int(rng.choice([67, 83, 97, 113]))
    rising = np.sort(normal(2, odd(1), 6.0), axis=1)
    rising[1] = rising[1, ::-1]
    last = normal(1, odd(2), 1.0, -300.0)
    last[:, -2:] = -270, -271
    # A sum of this many terms needs more than float16's 11 bits, and so does x − m.
    half = rng.uniform(0, 4, size=(1, odd(1))).astype(np.float16)
    half[:, -2] = 7
    # Several short rows too: one sum alone may happen to be near a number of 11 bits.
    halves = rng.uniform(0, 4, size=(4, short)).astype(np.float16)
    far = np.stack(
        [
            np.full(short, -1e30),
            np.linspace(-1e4, 0, short),
            np.linspace(-40, 60, short),
            np.full(short, -1e38 * rng.uniform(3.385, 3.4)),  # at the end of float32, below any floor
        ]
    )
    # Two empty tiles or more, and no exp(x) of the rest is above 0: nothing may be measured from 0 there.
    # Six tiles in each of several rows: for scratch whose rows are taken to be a power of two apart.
    holes = normal(3, odd(5), 2.0, -200.0)
    holes[0, : 2 * tile] = holes[1, tile : 2 * tile] = holes[2, 2 * tile :] = -INF
    lost = normal(3, odd(1))
    lost[:2, :tile] = -INF
    lost[0] = -INF
    lost[1, int(rng.integers(tile))] = np.nan
    lost[2, int(rng.integers(tile + 1, lost.shape[1]))] = np.nan
    marked = normal(6 if infinity else 5, short)
    marked[0, int(rng.integers(short))] = np.nan
    marked[1] = -INF
    marked[2:3, rng.permutation(short)[: short // 2]] = -INF
    marked[3, 0] = marked[4, -1] = np.nan
    marked[5:, int(rng.integers(short))] = INF
    plus = "one with +∞, " if infinity else ""
    return [
        Case("walk", f"a row longer than {2 * tile}, and no multiple of a power of two", normal(1, odd(2))),
        Case("rising", f"a row of more than {tile} rising values, then one of falling values", rising),
        Case("last", "a negative row whose largest values are the last two", last),
        Case("whole", f"{2 * tile} columns, a multiple of the tile", normal(1, 2 * tile)),
        Case(
            "walk_gap", "long rows that do not follow each other directly in memory", normal(2, odd(1)), gap=7
        ),
        Case("half", "float16, many columns and one larger value near the end", half),
        Case("halves", "float16, short rows", halves),
        Case("short", "short rows of random numbers", normal(2, short)),
        Case("negative", "a row whose values are all negative", normal(1, short, 1.0, -50.0)),
        Case("high", "a row of large values, where exp(x) overflows", normal(1, short, 2.0, 200.0)),
        Case("low", "a row far below 0, where exp(x) underflows", normal(1, short, 2.0, -300.0)),
        Case("gap", "rows that do not follow each other directly in memory", normal(3, short), gap=5),
        Case("many", "more rows than columns", normal(6, 4)),
        Case("column", "a single column", normal(2, 1)),
        Case("far", "rows at −1e30 and below −3e38, and a row with a spread of 1e4", far.astype(np.float32)),
        Case("holes", "long rows far below 0, with −∞ at the start, in the middle, or at the end", holes),
        Case("lost", f"a row of −∞ only, and rows with a NaN, one among {tile} times −∞, one late", lost),
        Case("marked", f"rows with a NaN, with −∞ only, with some −∞, {plus}all of them short", marked),
    ]


RESCALE = (
    "When the maximum grows, multiply the sum so far by exp(old maximum − new maximum), "
    "then add the tile's sum."
)


TWO_WALKS = (
    "Let the first walk find m and d and store nothing; in a second one load each tile again, and store "
    "exp(x − m) / d."
)


def wrong_walks(x: np.ndarray, tile: int) -> list[tuple[str, np.ndarray, np.ndarray, str, str]]:
    """What the mistakes of a walk in tiles make of each row: (mistake, maximum, sum, sentence, what to do).

    x: (rows, columns) in float64; the maximum and the sum are (rows, 1).
    """
    tiles = [x[:, s : s + tile] for s in range(0, x.shape[1], tile)]
    tops = [t.max(axis=1, keepdims=True) for t in tiles]
    running = np.maximum.accumulate(np.stack(tops), axis=0)
    sums = [np.exp(t - r).sum(axis=1, keepdims=True) for t, r in zip(tiles, running, strict=True)]
    local = [np.exp(t - top).sum(axis=1, keepdims=True) for t, top in zip(tiles, tops, strict=True)]
    m = running[-1]

    def walk(step):
        d = sums[0]
        for i in range(1, len(tiles)):
            d = step(d, running[i - 1], running[i], sums[i], local[i])
        return d

    def pair(part):
        top = part.max(axis=1, keepdims=True) if part.shape[1] else np.full_like(m, -INF)
        return top, np.exp(part - top).sum(axis=1, keepdims=True)

    # The tile's own maximum kept at the end of each round.
    kept = sums[0]
    for before, top, tile_ in zip(tops, tops[1:], tiles[1:], strict=False):
        new = np.maximum(before, top)
        kept = kept * np.exp(before - new) + np.exp(tile_ - new).sum(axis=1, keepdims=True)

    # Lanes that each keep a maximum and a sum of their own.
    padded = np.pad(x, ((0, 0), (0, len(tiles) * tile - x.shape[1])), constant_values=-INF)
    lanes = padded.reshape(len(x), len(tiles), tile)
    lane_sums = np.nan_to_num(np.exp(lanes - lanes.max(axis=1, keepdims=True))).sum(axis=(1, 2))[:, None]
    whole = x.shape[1] // tile * tile
    ends = [
        (
            "tiles_left_out",
            running[k - 1],
            # An empty tile's own sum is NaN here, and adds nothing.
            sum(
                np.nan_to_num(own) * np.exp(top - running[k - 1])
                for own, top in zip(local[:k], tops[:k], strict=True)
            ),
            f"Only the first {k} tiles, or chunks, of {len(tiles)} count: {k} is a limit of your file, not "
            "of the row.",
            "Let the number of tiles, or chunks, follow from the number of columns.",
        )
        for k in range(3, len(tiles))
    ]
    carry = (
        "Carry the maximum and the sum from tile to tile: start from −∞ and 0, and update both for each tile."
    )
    return [
        ("never_rescaled", m, walk(lambda d, old, new, s, own: d + s),
         "The running sum is never rescaled when the maximum grows.", RESCALE),
        ("rescaled_backwards", m, walk(lambda d, old, new, s, own: d * np.exp(new - old) + s),
         "The running sum is rescaled the wrong way: by exp(new − old) instead of exp(old − new).", RESCALE),
        ("rescaled_twice", m, walk(lambda d, old, new, s, own: (d + s) * np.exp(old - new)),
         "The tile's own sum is rescaled too, though it was taken against the new maximum already.", RESCALE),
        ("rescaled_backwards", m, sum(own * np.exp(m - top) for own, top in zip(local, tops, strict=True)),
         "The parts' sums are rescaled the wrong way: by exp(m − own maximum) instead of exp(own maximum − "
         "m).", RESCALE),
        ("tile_not_rescaled", m, walk(lambda d, old, new, s, own: d * np.exp(old - new) + own),
         "The tile's sum is taken against the tile's own maximum, and added to a sum taken against the "
         "larger one of "
         "the row.", "Take the tile's exponentials against the new running maximum: tl.exp(x - new_m)."),
        ("tile_sums_added", m, np.sum(local, axis=0),
         "Each part's sum is taken against its own maximum, and the sums are added as they are.",
         "A sum against maximum m₁ counts for exp(m₁ − m) of one against m: rescale each before adding."),
        ("lanes_not_merged", m, lane_sums,
         "The lanes' sums are added as they are, though each was taken against its own lane's maximum.",
         "Before the sum over the lanes, multiply each lane's d by exp(its m − the row's m)."),
        *ends,  # before the next: what leaves out a partial tile in any row fails with fewer tiles already
        ("last_tile_dropped", *pair(x[:, :whole]), "The last, partial tile is left out of the maximum and "
         "the sum.",
         "Let the loop run to the end of the row: range(0, columns, TILE), with a mask."),
        ("first_tile_only", *pair(tiles[0]), "Only the first tile counts.", carry),
        ("last_tile_only", *pair(tiles[-1]), "Only the last tile counts: each tile replaces what was there.",
         carry),
        ("sum_of_last_tile", m, np.exp(tiles[-1] - m).sum(axis=1, keepdims=True),
         "The sum holds the last tile only; the maximum is the row's.", carry),
        ("maximum_of_last_tile", tops[-1], np.exp(x - tops[-1]).sum(axis=1, keepdims=True),
         "The maximum is that of the last tile, not that of the row.",
         "Keep the larger one: m = tl.maximum(m, tl.max(x, axis=0))."),
        ("maximum_of_last_tile", tops[-1], kept,
         "The maximum that a round keeps is its own tile's; in the end it is that of the last tile.",
         "Keep the larger one at the end of each round: m = new_m."),
        ("last_maximum_lost", running[max(len(tiles) - 2, 0)], np.exp(x - m).sum(axis=1, keepdims=True),
         "The last tile counts in the sum, and not in the maximum that is used afterwards.",
         "Keep the new maximum at the end of every round, the last one too: m = new_m."),
        ("first_tile_dropped", *pair(x[:, tile:]), "The first tile is left out of the maximum and the sum.",
         "Let the loop begin at 0: range(0, columns, TILE)."),
    ]  # fmt: skip


def lanes_of_zero(lanes: int) -> str:
    """The sentence for 0 in the lanes past the row, put there after the maximum was taken off."""
    return (
        f"{count(lanes, 'lane')} past the row {'hold' if lanes > 1 else 'holds'} 0 where x − m should be "
        "taken, and exp(0) = 1 is added to the sum for each."
    )


NO_ZERO_AFTER = (
    "Leave −∞ in those lanes, as other=-float('inf') puts it there: less m it is still −∞, and exp(−∞) adds "
    "0."
)


# The experiments: each gets the failing case and its result, and returns a Finding or None.


def padding(exercise, session, case, result):
    """Masked lanes that hold something else than −inf."""
    fills = set(result.fills)
    if not fills - {-INF} or not exercise.right(session, [case], Tweaks(masked_lanes=-INF)):
        return None
    fill = next(iter(fills - {-INF}))
    if fill is None:
        return Finding(
            "padding_missing",
            "Masked lanes hold no defined value: tl.load has a mask, but no other=.",
            "",
            "Proven: with −∞ forced into the masked lanes, your kernel is right. (Here they hold NaN, on a "
            "GPU whatever the register held.)",
            "Add other=-float('inf') to the load.",
        )
    row = int(exercise.wrong_rows(case, result)[0])
    top = float(np.nanmax(case.x[row].astype(np.float64)))
    effect = (
        f"row {row}, whose largest value is {top:.4g}, came out with a maximum of {fill:g}"
        if fill > top
        else f"each such lane adds exp({fill:g} − m) to the sum of row {row}"
    )
    return Finding(
        "padding_zero" if fill == 0 else "padding_finite",
        f"Masked lanes were loaded as {fill:g}; {effect}.".replace("-", "−"),
        "",
        "Proven: with −∞ forced into the masked lanes, your kernel is right.",
        "Load the masked lanes as −∞: other=-float('inf'). It is never the maximum, and exp(−∞) adds 0.",
    )


def no_maximum(exercise, session, case, result):
    """exp(x) without the maximum taken off."""
    x = case.x.astype(np.float64)
    if not np.isfinite(x).all():
        return None
    shifted = replace(case, x=(x - x.max(axis=1, keepdims=True)).astype(case.x.dtype))
    if np.abs(x.max(axis=1)).min() < 20 or not exercise.right(session, [shifted]):
        return None
    with np.errstate(all="ignore"):
        naive = exercise.naive(case.x.astype(np.float32))
    got = np.concatenate([result.values(i).ravel() for i in range(len(exercise.outputs))])
    if np.isfinite(got).all() and not exercise.matches(case, result, naive):
        return None
    bad = exercise.wrong_rows(case, result)
    top = float(x[bad].max())
    # Far below 0 a maximum that starts from 0 gives the same; far above it does not.
    if top < 0 and not any(np.isfinite(c.x).all() and c.x.max() > 80 for c, _ in session.wrong):
        return None
    return Finding(
        "no_maximum",
        "The row maximum is not taken off before the exponential"
        + (", so exp overflows." if top > 80 else ", so exp underflows." if top < -80 else "."),
        "",
        "Proven: with the maximum already taken off the input, your kernel is right. "
        + (f"Here x reaches {top:.4g}, and float32's exp ends at 88.7." if top > 80 else
           "Here every exp(x) is 0 in float32, and so is their sum." if top < -80 else
           f"Here the largest x is {top:.4g}.".replace("-", "−")),
        "Take exp(x − tl.max(x, axis=0)): subtracting a constant from a row changes nothing else.",
    )  # fmt: skip


def epsilon_added(exercise, session, case, result):
    """A small constant added to the sum."""
    if case.x.dtype != np.float32 or not np.isfinite(case.x).all() or len(exercise.outputs) > 1:
        return None
    x = case.x.astype(np.float64)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    total = e.sum(axis=1)
    got, wanted = result.values(0).astype(np.float64), exercise.expected(case.x)[0]
    logarithm = bool((wanted <= 0).all())
    with np.errstate(all="ignore"):
        y = np.exp(got) if logarithm else got
        # The largest numerator is 1, so its output is 1 / (sum + constant).
        added = 1 / np.take_along_axis(y, x.argmax(axis=1)[:, None], 1)[:, 0] - total
        constant, error = float(np.median(added)), 8 * EPSILON * total
        fits = (np.abs(added - constant) <= error) & (
            np.abs(y * (total + constant)[:, None] - e) <= 1e-4 * e + 1e-30
        ).all(axis=1)
    if not fits.all() or not EPSILON / 4 < constant < 0.2 or constant < error.min() / 16:
        return None
    where = "in the logarithm: tl.log(d)" if logarithm else "as it is"
    return Finding(
        "epsilon_added",
        f"About {constant:.1g} is added to the sum"
        + (" before its logarithm is taken." if logarithm else ", and the rows no longer sum to 1."),
        "",
        "The largest value contributes exp(0) = 1, so the sum is never below 1: there is no 0 to guard "
        "against. Likely the constant was put there for that.",
        f"Use the sum {where}.",
    )


def lost_digits(exercise, session, case, result):
    """Rounding at the size of x, where the maximum could have been subtracted before."""
    x = case.x.astype(np.float64)
    if not np.isfinite(x).all():
        return None
    # Without the maximum some of these cases would come out infinite, or NaN.
    # (Scaled numbers near the end of float32 overflow, whatever else is right.)
    finite = [r for c, r in session.wrong if np.isfinite(c.x).all() and np.abs(c.x).max() < 1e37]
    if not all(np.isfinite(r.values(i)).all() for r in finite for i in range(len(exercise.outputs))):
        return None
    bad = exercise.wrong_rows(case, result)
    m = x[bad].max(axis=1, keepdims=True)
    worst = 0.0
    for index in range(len(exercise.outputs)):
        got = result.values(index).astype(np.float64)[bad].reshape(len(bad), -1)
        wanted = exercise.expected(case.x)[index][bad].reshape(len(bad), -1)
        error = np.abs(got - wanted)
        if not (error <= 8 * EPSILON * np.abs(m) * np.maximum(1, np.abs(wanted))).all():
            return None
        worst = max(worst, float(error.max()))
    shifted = replace(case, x=(x - x.max(axis=1, keepdims=True)).astype(case.x.dtype))
    if np.abs(m).min() < 8 or not exercise.right(session, [shifted]):
        return None
    top = float(m[0, 0])
    return Finding(
        "lost_digits",
        f"Digits are lost in rows far from 0: the result is off by up to {worst:.2g} in a row whose maximum "
        f"is {top:.6g}.".replace("-", "−"),
        "",
        "Proven: with the maximum already taken off the input, your kernel is right. Near "
        f"{top:.6g} the numbers of float32 are {float(np.spacing(np.float32(abs(top)))):.2g} apart, and what "
        "is added to "
        "x, or multiplied with it, is rounded to such steps.".replace("-", "−"),
        exercise.keep_digits,
    )


def half_precision(exercise, session, case, result):
    """float16 arithmetic."""
    if case.x.dtype != np.float16:
        return None
    if not exercise.right(session, [replace(case, x=case.x.astype(np.float32))]):
        return None
    return Finding(
        "half_precision",
        "With float16 input some of the arithmetic is float16 too, and its 11 bits are not enough for it.",
        "",
        "Proven: the same numbers as float32 come out right.",
        "Convert right after the load, x = tl.load(…).to(tl.float32), and to no other dtype after that: "
        "tl.store rounds to the output's dtype by itself.",
    )


def not_a_number_swallowed(exercise, session, case, result):
    """A NaN or +inf that does not reach the output, or a −inf row made into numbers."""
    x = case.x.astype(np.float64)
    if np.isfinite(x).all():
        return None
    bad = exercise.wrong_rows(case, result)
    wanted = exercise.expected(case.x)[exercise.nan_output].reshape(len(x), -1)
    got = result.values(exercise.nan_output).astype(np.float64).reshape(len(x), -1)
    for row in bad:
        what = "a NaN" if np.isnan(x[row]).any() else "+∞" if (x[row] == INF).any() else "only −∞"
        if np.isnan(wanted[row]).all() and not np.isnan(got[row]).all():
            return Finding(
                "nan_swallowed",
                f"Row {row} holds {what}, and the result hides it: {exercise.nan_rule}.",
                "",
                "A softmax that turns bad input into plausible numbers hides the fault from whoever looks "
                "for it.",
                addressing.guard(session)
                or "Remove the tl.where or the comparison that replaces these values, or skips a tile that "
                "holds "
                "them; NaN then spreads by itself.",
            )
    clean = [i for i in bad if np.isfinite(wanted[i]).all()]
    spread = [i for i in clean if np.isnan(got[i]).any()]
    if spread and np.isfinite(x[spread[0]]).all():
        return Finding(
            "nan_spreads",
            f"Row {spread[0]} holds ordinary numbers, and came out as NaN: another row's NaN reached it.",
            "",
            "Every row stands alone; a reduction ran over more than one row.",
            "Reduce along the columns of one row only.",
        )
    return None


def infinite_tile(exercise, session, case, result):
    """−inf − (−inf), in a tile or a lane that holds nothing else."""
    infinite = np.isneginf(case.x).any(axis=1)
    bad = exercise.wrong_rows(case, result)
    if not infinite[bad].any():
        return empty_tile(exercise, session, case, result)
    if not any(np.isnan(result.values(i)[bad]).any() for i in range(len(exercise.outputs))):
        return None
    low = np.where(np.isneginf(case.x), np.nanmin(np.where(np.isfinite(case.x), case.x, 0)) - 2000, case.x)
    if not exercise.right(session, [replace(case, x=low.astype(case.x.dtype))]):
        return None
    if (finding := stand_in_kept(exercise, session, case)) is not None:
        return finding
    return Finding(
        "infinity_minus_infinity",
        f"A part of the row that holds only −∞ spoils the whole row ({which('row', bad)}): exp(−∞ − (−∞)) "
        f"is NaN.",
        "",
        "Proven: with a very low number in place of each −∞, your kernel is right.",
        MEASURE_FROM_0,
    )


MEASURE_FROM_0 = (
    "While a maximum is still −∞, there is nothing to measure from it: use 0 in its place in the exponent, "
    "tl.where(m == -float('inf'), 0.0, m). Then exp(−∞ − 0) is 0."
)


def stand_in_kept(exercise, session, case):
    """The 0 that stands in for a maximum of −inf, kept as the maximum: no harm where all are above."""
    lowest = np.nanmin(np.where(np.isfinite(case.x), case.x, np.inf))
    if not exercise.right(session, [replace(case, x=case.x - lowest + 1)]):
        return None
    return Finding(
        "stand_in_kept",
        "Where a tile, chunk or lane is empty, the 0 that stands in for its maximum is kept as the maximum, "
        "and every number of the row is below it.",
        "",
        "Proven: the same row with its numbers moved above 0 comes out right, and so it does with a very low "
        "number in place of −∞. Measured from 0, every exponential is 0 here, and so is their sum.",
        "The 0 belongs in the exponents only. Keep the maximum itself, which is still −∞ there: "
        "anchor = tl.where(m == -float('inf'), 0.0, m) for the exponents, and m as it was for the next step.",
    )


def empty_tile(exercise, session, case, result):
    """The same, in a tile, chunk or lane that holds only padding."""
    bad = exercise.wrong_rows(case, result)
    values = [result.values(i)[bad].reshape(len(bad), -1) for i in range(len(exercise.outputs))]
    if not np.isfinite(case.x[bad]).all() or not all(np.isnan(np.hstack(values)).any(axis=1)):
        return None
    low = float(np.nanmin(np.where(np.isfinite(case.x), case.x, 0))) - 2000
    if not exercise.right(session, [replace(case, x=case.x[bad])], Tweaks(masked_lanes=low)):
        return None
    if (finding := stand_in_kept(exercise, session, replace(case, x=case.x[bad]))) is not None:
        return finding
    return Finding(
        "infinity_minus_infinity",
        "A part of the work that holds only padding (a tile, a chunk or a lane past the end of the row) "
        "spoils the whole "
        "row: there exp(−∞ − (−∞)) is NaN.",
        "",
        "Proven: with a very low number in place of −∞ in the masked lanes, your kernel is right.",
        MEASURE_FROM_0,
    )


def starting_maximum(exercise, session, case, result):
    """A running maximum that starts at a number."""
    bad = exercise.wrong_rows(case, result)
    x = case.x[bad].astype(np.float64)
    m = x.max(axis=1, keepdims=True)
    if not np.isfinite(x).all() or m.max() >= 0:
        return None
    if not exercise.right(session, [replace(case, x=(x - m + 1).astype(case.x.dtype))]):
        return None
    if np.isfinite([result.values(i)[bad] for i in range(len(exercise.outputs))]).all() and m.max() < -1e6:
        return None  # against too high a maximum nothing would be left of these rows
    ramp = np.linspace(-200, 1, 64, dtype=case.x.dtype)[None]
    up, down = (exercise.right(session, [replace(case, x=row, gap=0)]) for row in (1 - ramp[:, ::-1], ramp))
    if up and not down:
        return Finding(
            "absolute_maximum",
            "The largest |x| is taken off before the exponential, where the largest x belongs.",
            "",
            "Proven: a row from 0 to 201 comes out right, and one from −200 to 1 does not: less 200, every "
            "exponential is 0 in float32.",
            "Take off tl.max(x, axis=0), without tl.abs.",
        )
    zero = m.max() > -1e6
    return Finding(
        "maximum_starts_at_zero" if zero else "maximum_starts_finite",
        "The maximum comes out too high for rows that are all negative: it starts from 0, or a lane holds 0."
        if zero
        else "The maximum comes out too high for rows far below 0: it starts from a finite number, and these "
        "rows lie "
        "below it.",
        "",
        "Proven: the same rows moved above 0 come out right, and softmax does not change when a row is "
        "moved.",
        "Start the running maximum at −∞, and load masked lanes as −∞.",
    )


def old_maximum(exercise, session, case, result):
    """Exponentials against the maximum before the tile: the first tile's sum is infinite."""
    bad = exercise.wrong_rows(case, result)
    if not np.isfinite(case.x[bad]).all() or np.abs(case.x[bad]).max() > 40:
        return None
    small = replace(case, x=case.x[bad], gap=0)
    hole = small.x.copy()
    hole[:, 0] = -INF
    # So low that such lanes add nothing, and finite: −∞ − (−∞) would be NaN.
    again, holed = (
        session.run([replace(small, x=x)], Tweaks(masked_lanes=-3e38))[0] for x in (small.x, hole)
    )
    if any(one.error or not exercise.whole(one) for one in (again, holed)):
        return None
    if again.values(0).any() or not np.isnan(holed.values(0)).all():
        return None
    return Finding(
        "old_maximum",
        "The sum of the exponentials is infinite, though no exp(x) of this row is.",
        "",
        "Proven: every result is 0, and NaN as soon as one value is −∞, as with exp(−∞ − (−∞)). A tile's "
        "exponentials are taken against the maximum before that tile, which for the first one is −∞.",
        "First the new maximum, then exp(x − new maximum). " + RESCALE,
    )


def unwritten_scratch(exercise, session, case, result):
    """What was loaded before it was stored."""
    if not result.unwritten:
        return None
    kernel, program, number = result.unwritten[0]
    grids = ", then ".join(f"{launch['kernel']} over {grid(launch)}" for launch in result.launches)
    return Finding(
        "scratch_unwritten",
        f"{kernel} loads from memory that nothing has stored to yet.",
        "",
        f"Seen: its program {program[0]} loads {count(number, 'such element')}. torch.empty "
        "does not clear "
        f"what it allocates; here it holds NaN. The launches were {grids}.",
        "Let the earlier launch have a program for every chunk of every row, and store and load each result "
        "at the same "
        "address.",
    )


def half_scratch(exercise, session, case, result):
    """Partial results kept in 16 bits."""
    kept = {"float16", "bfloat16"} & set(result.scratch_dtypes)
    if not kept:
        return None
    got, wanted = result.values(0).astype(np.float64), exercise.expected(case.x)[0]
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.nanmax(np.abs(got - wanted) / np.maximum(np.abs(wanted), 1e-30))
    if not error < 0.3:
        return None
    return Finding(
        "half_scratch",
        f"Partial results are kept in {kept.pop()}, and what is lost there is lost for the whole row.",
        "",
        f"Likely: the result is off by up to {error:.2g} of its value, and 11 bits keep {2.0**-11:.1g}.",
        "Allocate the tensors for the partial maxima and sums with dtype=torch.float32, whatever the dtype "
        "of x.",
    )


def rescaling(exercise, session, case, result):
    """A running sum that goes wrong when the maximum grows along the row."""
    if case.x.shape[1] < 2 or not np.isfinite(case.x).all():
        return None
    falling = -np.sort(-case.x, axis=1)
    if not exercise.right(session, [replace(case, x=falling)]):
        return None
    return Finding(
        "rescaling",
        "The sum goes wrong when the maximum grows on the way along the row.",
        "",
        "Proven: with each row sorted so that its largest value comes first, your kernel is right.",
        "When the maximum grows, multiply the sum so far by exp(old maximum − new maximum).",
    )


def output_read_back(exercise, session, case, result):
    """Values parked in a float16 output, and rounded there."""
    loaded = sum(loads for name, loads, _, _ in result.traffic if name.startswith("result"))
    if case.x.dtype != np.float16 or not loaded:
        return None
    if not exercise.right(session, [replace(case, x=case.x.astype(np.float32))]):
        return None
    return Finding(
        "output_read_back",
        f"{count(loaded, 'element')} of {exercise.outputs[0]} {'are' if loaded > 1 else 'is'} read back "
        f"after "
        f"being stored there, in float16: what passes through {exercise.outputs[0]} is rounded to 11 bits.",
        "",
        "Proven: the same numbers as float32 come out right.",
        f"Keep in a variable what is needed again, or take it from x anew; store {exercise.outputs[0]} "
        f"once, when "
        "it is final.",
    )


def half_numbers(exercise, session, case, result):
    """float16 arithmetic on float32 input: results, or numerators, that are all numbers of float16."""
    index = len(exercise.outputs) - 1
    seen = [
        (c, r.values(index)) for c, r in session.wrong if c.x.dtype == np.float32 and np.isfinite(c.x).all()
    ]
    if case.x.dtype != np.float32 or exercise.dtype_of(index, case.x) != "float32":
        return None
    results = np.concatenate([np.zeros(0), *(got.ravel() for _, got in seen)]).astype(np.float64)
    if exercise.outputs == ("y",):
        with np.errstate(all="ignore"):
            quotients = [(got / got.max(axis=1, keepdims=True)).ravel() for _, got in seen]
    else:
        quotients = []
    for values, what in (
        (results, "every result"),
        (np.concatenate([np.zeros(0), *quotients]), "every numerator"),
    ):
        values = values[(np.abs(values) > 1e-4) & (np.abs(values) < 2048) & (values != np.rint(values))]
        near = np.abs(values.astype(np.float16).astype(np.float64) - values) <= 4 * EPSILON * np.abs(values)
        if len(values) >= 12 and near.all():
            return Finding(
                "half_precision",
                f"The input is float32, and {what} is a number of float16: the arithmetic has its 11 bits.",
                "",
                f"Seen: {len(values):,} of {len(values):,} that are larger than 0.0001. By chance one in "
                "five hundred would be.",
                "Leave out .to(tl.float16), or make it .to(tl.float32).",
            )
    return None


def small_made_zero(exercise, session, case, result):
    """Small results replaced by 0."""
    if exercise.outputs != ("y",) or not np.isfinite(case.x).all():
        return None
    got, wanted = result.values(0), exercise.expected(case.x)[0]
    wrong = exercise.wrong(case, result, 0)
    largest = wanted[wrong].max()
    if got[wrong].any() or (got[wanted > largest] == 0).any() or not 1e-30 < largest < 1e-3:
        return None
    return Finding(
        "small_made_zero",
        f"Small results are made 0: those up to {largest:.2g}, at least.",
        "",
        "Seen: every result that is wrong is 0, and every larger one is right.",
        "Store tl.exp(x - m) / d as it is; float32 holds numbers down to 1e−38.",
    )


def rows_mixed(exercise, session, case, result):
    """Rows that are right alone and wrong together."""
    if len(case.x) < 2 or not np.isfinite(case.x).all():
        return None
    if case.gap and exercise.right(session, [replace(case, gap=0)]):
        return None  # a matter of strides
    rows = [replace(case, x=case.x[i : i + 1].copy(), gap=0) for i in range(len(case.x))]
    if not exercise.right(session, rows):
        return None
    level = replace(case, x=case.x - case.x.max(axis=1, keepdims=True), gap=0)
    if exercise.right(session, [level]):
        return Finding(
            "global_max",
            "One maximum serves several rows, and the rows far below it are lost.",
            "",
            "Proven: each row alone comes out right, and so do all together once each has the maximum 0.",
            "Each row has a maximum of its own: in a tile of several rows, tl.max(x, axis=1).",
        )
    return Finding(
        "rows_mixed",
        "The rows get into each other's results.",
        "",
        "Proven: each row alone comes out right, and together they do not. Likely one reduction runs over "
        "several rows, or something is carried from a row to the next.",
        "In a tile of several rows reduce with axis=1; where a program does one row after the other, begin "
        "each with its own m and d.",
    )


def not_the_maximum(exercise, session, case, result):
    """Something else of the row taken off before the exponential, such as its mean."""
    if exercise.outputs != ("y",):
        return None
    near = np.linspace(0, 3, 64, dtype=np.float32)
    rows = {
        "level": np.stack([near + 200, near - 300]),
        "one": np.where(np.arange(64) == 40, 100, 0)[None],
        "half": np.where(np.arange(64) % 2 == 1, 100, 0)[None],
    }
    right = {
        name: exercise.right(session, [replace(case, x=x.astype(np.float32), gap=0)])
        for name, x in rows.items()
    }
    if not right["level"] or right["one"]:
        return None
    mean = right["half"]
    return Finding(
        "mean_taken_off" if mean else "not_the_maximum",
        ("The row's mean is taken off" if mean else "Something else than the row's maximum is taken off")
        + " before the exponential: where the largest value lies far above it, exp overflows.",
        "",
        "Proven: rows of nearly equal values come out right at 200 and at −300; a row of zeros with one "
        "100 does not" + (", and one that is half 0, half 100, does." if mean else "."),
        "Take off tl.max(x, axis=0): then no exponent is above 0.",
    )


def the_sum(exercise, session, case, result):
    """The row's sum taken off before the exponential, in place of its maximum."""
    if exercise.outputs != ("y",):
        return None
    ramp = np.linspace(-0.5, 0.5, 64, dtype=np.float32)
    rows = {"sum 0": ramp, "sum −16": ramp[28:36] - 2, "sum −128": ramp - 2}
    right = {
        name: exercise.right(session, [replace(case, x=x[None].astype(case.x.dtype), gap=0)])
        for name, x in rows.items()
    }
    if not (right["sum 0"] and right["sum −16"]) or right["sum −128"]:
        return None
    return Finding(
        "sum_taken_off",
        "The row's sum is taken off before the exponential, where its maximum belongs.",
        "",
        "Proven: of rows of nearly equal values, 64 around 0 come out right, and so do 8 around −2; 64 "
        "around −2, whose sum is −128, do not: exp(126) is more than float32 holds.",
        "Take off tl.max(x, axis=0): then no exponent is above 0.",
    )


def where_exchanged(exercise, session, case, result):
    """tl.where(mask, a, b) with a and b exchanged: lanes past the row count, and the others do not."""
    row = int(exercise.wrong_rows(case, result)[0])
    if not result.fills or not (result.x_loads > 0).all() or not np.abs(case.x).max() < 40:
        return None  # far from 0 an exponential may be 0, or ∞, whatever is wrong
    if len(exercise.wrong_rows(case, result)) < len(case.x):
        return None
    small = replace(case, x=case.x[row : row + 1].copy(), gap=0)

    def outputs(x, fill):
        again = session.run([replace(small, x=x)], Tweaks(masked_lanes=fill))[0]
        whole = again.error is None and exercise.whole(again)
        return [again.values(i) for i in range(len(exercise.outputs))] if whole else None

    empty = exercise.expected(np.full(small.x.shape, -INF, small.x.dtype))
    first = outputs(small.x, -INF)
    if first is None or not all((np.isnan(a) | (a == b)).all() for a, b in zip(first, empty, strict=True)):
        return None
    marked = small.x.copy()
    marked[0, 0] = np.nan
    advice = "tl.where(condition, a, b) takes a where the condition holds: tl.where(mask, x, -float('inf'))."
    second = outputs(marked, 0.0)
    if second is not None and not any(np.isnan(a).any() for a in second):
        return Finding(
            "where_exchanged",
            "The lanes that have a column are made −∞, and those past the row keep what they hold: the two "
            "values "
            "of a tl.where are exchanged.",
            "",
            "Proven: with −∞ in the masked lanes your kernel sees a row of −∞ only, and with 0 there not "
            "even a NaN "
            "in x reaches the result.",
            advice,
        )
    # The same with the numerators: each of the row's own is 0, and the sum is one of masked lanes.
    low, zero = outputs(small.x, -3e38), outputs(small.x, 0.0)
    if exercise.outputs != ("y",) or not (empty[0] != empty[0]).all() or low is None or zero is None:
        return None
    if np.isnan(low[0]).all() and (zero[0] == 0).all():
        return Finding(
            "where_exchanged",
            "The numerators of the row are made 0, and those past the row are what is summed: the two "
            "values of a "
            "tl.where are exchanged.",
            "",
            "Proven: with −∞ in the masked lanes every result is 0 / 0, with 0 there every result is 0.",
            "tl.where(condition, a, b) takes a where the condition holds: tl.where(mask, numerator, 0.0).",
        )
    return None


def infinite_results(exercise, session, case, result):
    """Everything ∞: the maximum is still −∞ in the end, or the sum still 0."""
    bad, got = exercise.wrong_rows(case, result), result.values(0)
    if exercise.outputs != ("y",) or not np.isfinite(case.x).all() or not (got[bad] == INF).any():
        return None
    x = np.array([[0, -1, -2, -3, -4, -5, -500, -INF]], case.x.dtype)
    if exercise.expected(x)[0][0, 7] != 0:
        return None  # no softmax
    again = session.run([replace(case, x=x, gap=0)])[0]
    if again.error or not exercise.whole(again):
        return None
    values = again.values(0)[0]
    if (values[:7] == INF).all() and np.isnan(values[7]):
        return Finding(
            "maximum_not_kept",
            "Every result is ∞: where it is computed the maximum is still −∞, as it started.",
            "",
            "Proven: in a row with a −∞, and with a value 500 below the rest, only the −∞ comes out as NaN "
            "and the "
            "rest as ∞, as exp(x − (−∞)) does.",
            "At the end of each round keep the new maximum: m = new_m.",
        )
    if (values[:6] == INF).all() and np.isnan(values[6:]).all():
        return Finding(
            "sum_not_kept",
            "Every result is ∞: the numerators are divided by a sum that is still 0.",
            "",
            "Proven: in a row with numerators that are 0, these come out as NaN and the rest as ∞, as 0 / "
            "0 and "
            "1 / 0 do.",
            "Add each tile's exponentials to the sum, and keep it: d = …",
        )
    return None
