"""What the softmax exercises share: the oracle, the tolerance, the cases, and the mistakes people make.

Each mistake is proven where that is possible: the learner's own kernel is run again with one thing changed, and
comes out right. Otherwise it is a fingerprint: the output is what that mistake gives, number for number.
"""

from dataclasses import replace

import numpy as np

from course_kernels.lab.judge import Case, Finding, Tweaks
from course_kernels.lab.specs.kernel import EPSILON, KernelExercise

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
    return np.nan_to_num(np.abs(wanted), posinf=0.0) * 2.0**-11 + 2.0**-25


class SoftmaxExercise(KernelExercise):
    """Softmax of each row. widths: ordinary row lengths; long: one that does not fit a usual block."""

    long = 1500
    rows_in_long = 2

    def expected(self, x):
        return (softmax64(x),)

    def tolerance(self, case, wanted):
        relative = EPSILON * (16 + 2 * distance(case.x))
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
        marked = normal(5, odd)
        marked[0, rng.integers(odd)] = np.nan
        marked[1, rng.integers(odd)] = INF
        marked[2, :] = -INF
        marked[3, rng.permutation(odd)[: odd // 2]] = -INF
        far = np.stack(
            [np.full(odd, -1e30), normal(1, odd, 1.0)[0] * 0 - 1e30, np.linspace(-1e4, 0, odd), np.linspace(-40, 60, odd)]
        ).astype(np.float32)
        cases = [
            Case("plain", "random numbers around 0, and a row length that is not a power of two", normal(3, odd)),
            Case("power", "random numbers, and a row length that is a power of two", normal(2, 64)),
            Case("negative", "rows whose values are all negative", normal(3, odd, 1.0, -50.0)),
            Case("high", "rows of large values, where exp(x) overflows", normal(2, odd, 2.0, 200.0)),
            Case("low", "rows far below 0, where exp(x) underflows", normal(2, odd, 2.0, -300.0)),
            Case("gap", "rows that do not follow each other directly in memory", normal(4, odd), gap=5),
            Case("many", "more rows than columns", normal(19, 6)),
            Case("column", "a single column", normal(5, 1)),
            Case("rising", "a long row of rising values, then falling ones", rising),
            Case("half", "float16, many columns and one larger value", half),
            Case("far", "rows at −1e30, and a row with a spread of 1e4", far),
            Case("marked", "rows with a NaN, with +∞, with −∞ only, with some −∞, and a plain one", marked),
        ]
        return cases + self.more_cases(rng, normal)

    def more_cases(self, rng, normal) -> list[Case]:
        return []

    def experiments(self):
        return [
            not_a_number_swallowed,
            half_precision,
            padding,
            no_maximum,
            fingerprints,
            row_stride,
            infinite_tile,
            starting_maximum,
            rescaling,
        ]

    def shape_trouble(self, session, case, result):
        if "power of 2" in result.error["text"]:
            return  # said better by the translation
        odd = case.x.shape[1] & (case.x.shape[1] - 1)
        if odd and self.right(session, [replace(case, x=case.x[:, :64].copy(), gap=0)]):
            raise Finding(
                "power_of_two_only",
                "It works for row lengths that are powers of two, and raises for others.",
                f"With 64 of the {case.x.shape[1]} columns it is right; with all of them: {result.error['type']}: "
                f"{result.error['text'][:200]}",
                next="Round the row length up with triton.next_power_of_2, and mask the lanes past the row.",
            )

    def fingerprint_table(self, case: Case, tile: int) -> list[tuple[str, np.ndarray, str, str]]:
        """(mistake, what it would give, the sentence, what to do) for mistakes that leave a known output."""
        x = case.x.astype(np.float64)
        with np.errstate(all="ignore"):
            m = x.max(axis=1, keepdims=True)
            e = np.exp(x - m)
            d = e.sum(axis=1, keepdims=True)
            table = [
                ("not_divided", e, "The numerators are right, but nothing divides them by their sum.",
                 "Divide by tl.sum(numerator, axis=0)."),
                ("base_two", np.exp2(x - m) / np.exp2(x - m).sum(axis=1, keepdims=True),
                 "The exponential has base 2: 2^(x − m) stands where e^(x − m) should.",
                 "Use tl.exp, or multiply by log2(e) = 1.4426950408889634 before tl.exp2."),
                ("wrong_axis", np.exp(x - x.max(axis=0)) / np.exp(x - x.max(axis=0)).sum(axis=0),
                 "The maximum and the sum run down the columns instead of along the rows.",
                 "Reduce along the axis of the columns."),
                ("same_row", np.broadcast_to((e / d)[:1], x.shape),
                 "Every row of the result is the softmax of row 0.",
                 "Use tl.program_id(0) in the address of the load."),
                ("mean", e / x.shape[1], "The numerators are divided by the number of columns, not by their sum.",
                 "Divide by tl.sum(numerator, axis=0)."),
                ("no_exponential", (x - m) / (x - m).sum(axis=1, keepdims=True),
                 "x − m is divided by its sum: the exponential is missing.", "Take tl.exp of x − m."),
                ("sum_of_inputs", e / x.sum(axis=1, keepdims=True),
                 "The numerators are divided by the sum of x, not by the sum of the exponentials.",
                 "Sum what tl.exp gave."),
                ("log_given", x - m - np.log(d), "The result is the logarithm of the softmax.",
                 "Here the softmax itself is asked for."),
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
        e = np.exp(x - m)
        starts = range(0, x.shape[1], tile)
        tiles = [x[:, s : s + tile] for s in starts]
        tops = [t.max(axis=1, keepdims=True) for t in tiles]
        running = np.maximum.accumulate(np.stack(tops), axis=0)
        sums = [np.exp(t - r).sum(axis=1, keepdims=True) for t, r in zip(tiles, running, strict=True)]
        local = [np.exp(t - top).sum(axis=1, keepdims=True) for t, top in zip(tiles, tops, strict=True)]

        def walk(factor):
            d = sums[0]
            for i in range(1, len(tiles)):
                d = d * factor(running[i - 1], running[i]) + sums[i]
            return d

        whole = x.shape[1] // tile * tile
        rescale = "Multiply the running sum by exp(old maximum − new maximum) before adding the tile's sum."
        return [
            ("never_rescaled", e / walk(lambda old, new: 1.0),
             "The running sum is never rescaled when the maximum grows.", rescale),
            ("rescaled_backwards", e / walk(lambda old, new: np.exp(new - old)),
             "The running sum is rescaled the wrong way: by exp(new − old) instead of exp(old − new).", rescale),
            ("tile_sums_added", e / np.sum(local, axis=0),
             "Each tile's sum is taken against its own maximum, and the sums are added as they are.", rescale),
            ("last_tile_dropped", e / e[:, :whole].sum(axis=1, keepdims=True) if whole else e * np.nan,
             "The last, partial tile is left out of the sum.",
             "Let the loop run to the end of the row: range(0, columns, TILE), with a mask."),
            ("last_tile_only", np.concatenate(
                [np.exp(t - top) / l for t, top, l in zip(tiles, tops, local, strict=True)], axis=1),
             "Each tile is normalised on its own, as if it were a row.",
             "Carry the maximum and the sum from tile to tile; normalise in a second walk."),
        ]  # fmt: skip


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
            "Proven: with −∞ forced into the masked lanes, your kernel is right. (The interpreter puts 0 there, a GPU "
            "whatever the register held.)",
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
        plain = np.exp(case.x.astype(np.float32))
        naive = plain / plain.sum(axis=1, keepdims=True)
    got = result.values(0)
    if not (np.isnan(got).any() or np.isinf(got).any() or exercise.matches(case, result, naive)):
        return None
    over = x.max() > 0
    return Finding(
        "no_maximum",
        f"The row maximum is not taken off before the exponential, so exp {'overflows' if over else 'underflows'}.",
        "",
        f"Proven: with the maximum already taken off the input, your kernel is right. Here x reaches {x.max():.4g}, "
        "and float32's exp ends at 88.7." if over else
        "Proven: with the maximum already taken off the input, your kernel is right. Here every exp(x) is 0 in float32, "
        "and so is their sum.",
        "Take exp(x − tl.max(x, axis=0)): subtracting a constant from a row changes nothing else.",
    )  # fmt: skip


def half_precision(exercise, session, case, result):
    """float16 arithmetic."""
    if case.x.dtype != np.float16:
        return None
    if not exercise.right(session, [replace(case, x=case.x.astype(np.float32))]):
        return None
    return Finding(
        "half_precision",
        "With float16 input the arithmetic is float16 too, and its 11 bits are not enough for it.",
        "",
        "Proven: the same numbers as float32 come out right.",
        "Convert right after the load, x = tl.load(…).to(tl.float32); tl.store rounds to the output's dtype by itself.",
    )


def not_a_number_swallowed(exercise, session, case, result):
    """A NaN or +inf that does not reach the output, or a −inf row made into numbers."""
    x = case.x.astype(np.float64)
    if np.isfinite(x).all():
        return None
    bad = exercise.wrong_rows(case, result)
    wanted = exercise.expected(case.x)[0].reshape(len(x), -1)
    got = result.values(0).astype(np.float64).reshape(len(x), -1)
    for row in bad:
        what = "a NaN" if np.isnan(x[row]).any() else "+∞" if (x[row] == INF).any() else "only −∞"
        if np.isnan(wanted[row]).all() and not np.isnan(got[row]).all():
            return Finding(
                "nan_swallowed",
                f"Row {row} holds {what}, and the result hides it: the whole row should be NaN, as torch.softmax has it.",
                "",
                "A softmax that turns bad input into plausible numbers hides the fault from whoever looks for it.",
                "Remove the tl.where or the comparison that replaces these values; NaN then spreads by itself.",
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
    if not np.isneginf(case.x).any():
        return None
    low = np.where(np.isneginf(case.x), np.nanmin(np.where(np.isfinite(case.x), case.x, 0)) - 2000, case.x)
    if not exercise.right(session, [replace(case, x=low.astype(case.x.dtype))]):
        return None
    return Finding(
        "infinity_minus_infinity",
        "A part of the row that holds only −∞ turns the whole row into NaN: exp(−∞ − (−∞)) is NaN.",
        "",
        "Proven: with a very low number in place of each −∞, your kernel is right.",
        "While the running maximum is still −∞, there is nothing to rescale: use 0 for it in the exponent "
        "(tl.where(m == -float('inf'), 0.0, m)).",
    )


def starting_maximum(exercise, session, case, result):
    """A running maximum that starts at a number."""
    x = case.x.astype(np.float64)
    if not np.isfinite(x).all() or x.max() > 0 or np.ptp(x) > 80:
        return None
    if not exercise.right(session, [replace(case, x=(x - x.min() + 1).astype(case.x.dtype))]):
        return None
    return Finding(
        "maximum_starts_at_zero",
        "The maximum comes out too high for rows that are all negative: it starts from 0, or a lane holds 0.",
        "",
        "Proven: the same row moved above 0 comes out right, and softmax does not change when a row is moved.",
        "Start the running maximum at −∞, and load masked lanes as −∞.",
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


def row_stride(exercise, session, case, result):
    """The number of columns taken for the row stride, where that stays inside the tensor."""
    if not case.gap or not exercise.right(session, [replace(case, gap=0)]):
        return None
    columns = case.x.shape[1]
    return Finding(
        "row_stride",
        "The kernel takes the number of columns for the row stride.",
        "",
        f"Proven: the same numbers in a matrix without gaps come out right. Here a row starts {columns + case.gap} "
        f"elements after the one before it, and has {columns} columns.",
        "Pass x.stride(0) to the kernel and start the row at x_ptr + row * x_stride.",
    )


def fingerprints(exercise, session, case, result):
    """Mistakes that leave a known output."""
    pairs = [(case, result)]
    if case.x.shape[1] > 64:  # once more without masked lanes, which may hide what the rest does
        cut = replace(case, x=case.x[:, :64].copy(), gap=0)
        again = session.run([cut])
        if again[0].error is None and exercise.whole(again[0]) and exercise.wrong_rows(cut, again[0]) is not None:
            pairs.append((cut, again[0]))
    for case, result in pairs:
        for mistake, guess, what, advice in exercise.fingerprint_table(case, result.widest_load):
            if not np.isnan(guess).all() and exercise.matches(case, result, guess):
                return Finding(mistake, what, "", "The output is, number for number, what that gives.", advice)
    return None
