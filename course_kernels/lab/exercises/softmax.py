"""What the softmax exercises share: its oracle, its tolerance, and the mistakes that people make."""

import re
from dataclasses import replace

import numpy as np

from course_kernels.lab.check import generic, strides
from course_kernels.lab.check.finding import Seen
from course_kernels.lab.check.mistakes import Mistake, Probe
from course_kernels.lab.check.trial import EPSILON, Trial
from course_kernels.lab.core.wording import count, number, which
from course_kernels.lab.exercises.walks import RESCALE, TILES
from course_kernels.lab.run.cases import Case

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


def tolerance(case: Case, wanted: tuple) -> np.ndarray:
    """How far a softmax may be off: roundings of its sum, and of x − m."""
    if case.x.shape[1] == 1:  # exp(0) / exp(0): there is nothing to round
        return np.zeros(wanted[0].shape)
    # Each tile that a walk adds may round once more; a tile has 16 columns or more.
    relative = EPSILON * (16 + case.x.shape[1] / 32 + 2 * distance(case.x))
    return np.nan_to_num(wanted[0]) * relative + half_rounding(case, wanted[0]) + 2.0**-125


KEEP_DIGITS = "Subtract the maximum from x first; multiply by log2(e), for tl.exp2, after that."


# Predictions

BY_E = "Use tl.exp, or multiply by log2(e) = 1.4426950408889634 before tl.exp2."
NUMERATORS = "Divide tl.exp(x - m), the numerators."
ALONG = "Reduce along the axis of the columns: axis=1 in a tile of several rows."
IN_BOTH = "Take tl.exp(x - m) in both places."
MAXIMUM_WITH_ZERO = (
    "maximum_with_zero",
    "max(x, 0) is subtracted, as tl.maximum(x, 0) gives it lane by lane, not the row's maximum.",
    "tl.maximum compares lane by lane; the maximum of a tile is tl.max(x, axis=0).",
)


def zero_lanes(t: Trial) -> dict:
    lanes = 2 ** int(np.ceil(np.log2(t.columns))) - t.columns
    return {"count": count(lanes, "lane"), "hold": "hold" if lanes > 1 else "holds"}


def zeros_after(predicts) -> Mistake:
    """0 in the lanes past the row, put there after the maximum was subtracted."""
    return Mistake(
        "padding_zero",
        "‹count› past the row ‹hold› 0 where x − m should be, and exp(0) = 1 is added to the sum for each.",
        "Leave −∞ in those lanes, as other=-float('inf') puts it there: less m it is still −∞, and exp(−∞) "
        "adds 0.",
        predicts=predicts,
        when=zero_lanes,
    )


PREDICTED = (
    Mistake("not_divided", "The numerators are right, but nothing divides them by their sum.",
            "Divide what is stored by the sum of the exponentials.", lambda s: s.e),
    Mistake("base_two", "The exponential has base 2: 2^(x − m) stands where e^(x − m) should.", BY_E,
            lambda s: s.e2 / s.d2),
    Mistake("mixed_bases", "The numerators are powers of 2, and their sum is one of powers of e.",
            "Use tl.exp in both places.", lambda s: s.e2 / s.d),
    Mistake("mixed_bases", "The numerators are powers of e, and their sum is one of powers of 2.",
            "Use tl.exp in both places.", lambda s: s.e / s.d2),
    Mistake("sign",
            "The numerators have the wrong sign: m − x stands where x − m should.", "Take tl.exp(x - m).",
            lambda s: np.exp(-s.s) / s.d),
    Mistake("wrong_axis", "The maximum and the sum run down the columns instead of along the rows.", ALONG,
            lambda s: np.exp(s.x - s.x.max(axis=0)) / np.exp(s.x - s.x.max(axis=0)).sum(axis=0)),
    generic.SAME_ROW,
    *generic.NOT_SCALED,
    Mistake("clamped_at_zero",
            "Negative values of x were made 0 before the softmax, as tl.maximum(x, 0) does.",
            "The maximum of a tile is one number: tl.max(x, axis=0).", lambda s: s.of(np.maximum(s.x, 0))),
    Mistake("no_exponential", "x is divided by its sum: the exponential is missing.",
            "Divide tl.exp(x - tl.max(x, axis=0)) by its sum.", lambda s: s.ratio(s.x)),
    Mistake("mean", "The numerators are divided by the number of columns, not by their sum.",
            "Divide by the sum of the exponentials.", lambda s: s.e / s.columns),
    Mistake("no_exponential",
            "x − m is divided by its sum: the exponential is missing.", "Take tl.exp of x − m.",
            lambda s: s.ratio(s.s)),
    Mistake("no_exponential",
            "x itself is divided by the sum of the exponentials.", NUMERATORS, lambda s: s.x / s.d),
    Mistake("no_exponential",
            "x − m is divided by the sum of the exponentials.", NUMERATORS, lambda s: s.s / s.d),
    generic.ROUNDED_IN,
    Mistake(*MAXIMUM_WITH_ZERO, lambda s: s.ratio(np.exp(np.minimum(s.x, 0)))),
    Mistake("sum_of_inputs",
            "The numerators are divided by the sum of x, not by the sum of the exponentials.",
            "Sum what tl.exp gave.", lambda s: s.e / s.x.sum(axis=1, keepdims=True)),
    Mistake("log_given",
            "The result is the logarithm of the softmax.", "Here the softmax itself is asked for.",
            lambda s: s.s - np.log(s.d)),
    Mistake("maximum_left_in",
            "The sum is one of exp(x − m), and the numerators are exp(x): the maximum was left in.",
            IN_BOTH, lambda s: np.exp(s.x) / s.d),
    Mistake("maximum_left_in",
            "The numerators are exp(x − m), the sum is one of exp(x): there the maximum was left in.",
            IN_BOTH, lambda s: s.e / np.exp(s.x).sum(axis=1, keepdims=True)),
    Mistake("wrong_axis", "The sum runs down the columns instead of along the rows.", ALONG,
            lambda s: s.e / s.e.sum(axis=0)),
    zeros_after(lambda s: s.e / (s.d + s.lanes)),
    Mistake("one_added", "1 is added to the sum of the exponentials.",
            "The sum holds exp(0) = 1 already, from the largest value. Divide by the sum as it is.",
            lambda s: s.e / (1 + s.d)),
    Mistake("copied", "The result is x itself.", "Compute between the load and the store.", lambda s: s.x),
    Mistake("sign",
            "The exponent has the wrong sign: m − x stands where x − m should.", "Take tl.exp(x - m).",
            lambda s: s.ratio(np.exp(-s.s))),
)  # fmt: skip
# What else shows a mistake


def padded(t: Trial, fill: float) -> str:
    """What a finite number in the masked lanes does to a softmax."""
    row = int(t.bad[0])
    top = float(np.nanmax(t.x[row]))
    if fill > top:
        return (
            f"row {row}, whose largest value is {number(top, 4)}, came out with a maximum of {number(fill)}"
        )
    return f"each such lane adds exp({number(fill)} − m) to the sum of row {row}"


def shifted(t: Trial) -> Case:
    """The case with each row's maximum subtracted."""
    return t.like(t.x - t.top, t.case.gap)


def lost_digits(t: Trial) -> dict | None:
    """Rounding at the size of x, where the maximum could have been subtracted before."""
    if not t.finite:
        return None
    # Without the maximum some of these cases would come out infinite, or NaN.
    # (Scaled numbers near the end of float32 overflow, whatever else is right.)
    usual = [other for other in t.others if other.finite and np.abs(other.case.x).max() < 1e37]
    if not all(np.isfinite(values).all() for other in usual for values in other.values):
        return None
    m, worst = t.top[t.bad], 0.0
    for values, wanted in zip(t.values, t.expected, strict=True):
        got, wanted = (part.astype(np.float64)[t.bad].reshape(len(t.bad), -1) for part in (values, wanted))
        error = np.abs(got - wanted)
        if not (error <= 8 * EPSILON * np.abs(m) * np.maximum(1, np.abs(wanted))).all():
            return None
        worst = max(worst, float(error.max()))
    top = float(m[0, 0])
    return np.abs(m).min() >= 8 and {
        "worst": number(worst, 2), "top": number(top, 6), "keep_digits": t.exercise.keep_digits,
        "steps": number(np.spacing(np.float32(abs(top))), 2),
    }  # fmt: skip


def no_maximum(t: Trial) -> dict | None:
    """Infinite results, or those of exp(x) itself, in rows far from 0."""
    if not t.finite or np.abs(t.top).min() < 20:
        return None
    with np.errstate(all="ignore"):
        naive = t.arithmetic.naive(t.case.x.astype(np.float32))
        guesses = naive if isinstance(naive, tuple) else (naive,)
        if all(np.isfinite(v).all() for v in t.values) and not all(
            t.near(g, i).all() for i, g in enumerate(guesses)
        ):
            return None
    top = float(t.x[t.bad].max())
    # Far below 0 a maximum that starts from 0 gives the same; far above it does not.
    if top < 0 and not any(other.finite and other.case.x.max() > 80 for other in t.others):
        return None
    return {
        "so": ", so exp overflows" if top > 80 else ", so exp underflows" if top < -80 else "",
        "here": f"Here x reaches {number(top, 4)}, and float32's exp ends at 88.7." if top > 80
        else "Here every exp(x) is 0 in float32, and so is their sum." if top < -80
        else f"Here the largest x is {number(top, 4)}.",
    }  # fmt: skip


def epsilon(t: Trial) -> dict | None:
    """A small constant added to the sum: it shows in the result of each row's largest value."""
    if t.dtype != "float32" or not t.finite:
        return None
    e = np.exp(t.x - t.top)
    total, logarithm = e.sum(axis=1), bool((t.wanted <= 0).all())
    with np.errstate(all="ignore"):
        y = np.exp(t.got) if logarithm else t.got
        # The largest numerator is 1, so its output is 1 / (sum + constant).
        added = 1 / np.take_along_axis(y, t.x.argmax(axis=1)[:, None], 1)[:, 0] - total
        constant, error = float(np.median(added)), 8 * EPSILON * total
        near = (np.abs(y * (total + constant)[:, None] - e) <= 1e-4 * e + 1e-30).all(axis=1)
        fits = (np.abs(added - constant) <= error) & near
    if not fits.all() or not EPSILON / 4 < constant < 0.2 or constant < error.min() / 16:
        return None
    return {
        "constant": f"{constant:.1g}",
        "so": " before its logarithm is taken" if logarithm else ", and the rows no longer sum to 1",
        "use": "in the logarithm: tl.log(d)" if logarithm else "as it is",
    }


def small_made_zero(t: Trial) -> dict | None:
    """Every result that is wrong is 0, and every larger one is right."""
    if not t.finite:
        return None
    got, wanted, wrong = t.got, t.wanted, t.wrong[0]
    largest = wanted[wrong].max()
    zero = got[wrong].any() or (got[wanted > largest] == 0).any()
    return not zero and 1e-30 < largest < 1e-3 and {"largest": f"{largest:.2g}".replace("-", "−")}


def where_row(t: Trial) -> Case:
    return t.like(t.case.x[t.bad[0]])


def like_empty(t: Trial) -> bool:
    """The outputs are those of a row of nothing but −∞."""
    with np.errstate(all="ignore"):
        empty = t.exercise.oracle(np.full(t.case.x.shape, -INF, t.case.x.dtype))
    parts = zip(t.values, empty if isinstance(empty, tuple) else (empty,), strict=True)
    return all((np.isnan(got) | (got == wanted)).all() for got, wanted in parts)


def marked_row(t: Trial) -> Case:
    x = t.case.x[t.bad[0]].copy()
    x[0] = np.nan
    return t.like(x)


def where_possible(t: Trial) -> bool:
    """Masked lanes, all rows wrong; far from 0 an exponential may be 0, or ∞, whatever is wrong."""
    all_loaded = bool(t.facts.fills) and (t.facts.x_loads > 0).all()
    return all_loaded and np.abs(t.case.x).max() < 40 and len(t.bad) == t.rows


WHERE = "The two values of a tl.where are exchanged: "
EMPTY = Probe(where_row, shows=like_empty, masked_lanes=-INF)
WHERE_EXCHANGED = Mistake(
    "where_exchanged",
    WHERE + "the lanes that have a column are made −∞, and those past the row keep what they hold.",
    "tl.where(condition, a, b) takes a where the condition holds: tl.where(‹masked›, ‹tile›, -float('inf')).",
    when=where_possible,
    probes=(
        EMPTY,
        Probe(marked_row, shows=lambda o: not any(np.isnan(v).any() for v in o.values), masked_lanes=0.0),
    ),
    why="with −∞ in the masked lanes your kernel sees a row of −∞ only, and with 0 there not even a NaN in x "
    "reaches the result.",
)
WHERE_OF_NUMERATORS = Mistake(
    "where_exchanged",
    WHERE + "the numerators of the row are made 0, and those past the row are what is summed.",
    "tl.where(condition, a, b) takes a where the condition holds: tl.where(‹masked›, numerator, 0.0).",
    when=where_possible,
    probes=(
        EMPTY,
        Probe(where_row, shows=lambda o: np.isnan(o.got).all(), masked_lanes=-3e38),
        Probe(where_row, shows=lambda o: (o.got == 0).all(), masked_lanes=0.0),
    ),
    why="with −∞ in the masked lanes every result is 0 / 0, with 0 there every result is 0.",
)
LOST_DIGITS = Mistake(
    "lost_digits",
    "Digits are lost in rows far from 0: the result is off by up to ‹worst› in a row whose maximum is ‹top›.",
    "‹keep_digits›",
    when=lost_digits,
    probes=(Probe(shifted),),
    why="with the maximum already subtracted from the input, your kernel is right. Near ‹top› the numbers of "
    "float32 are ‹steps› apart, and what is added to x, or multiplied with it, is rounded to such steps.",
)
NO_MAXIMUM = Mistake(
    "no_maximum",
    "The row maximum is not subtracted before the exponential‹so›.",
    "Take exp(x − tl.max(x, axis=0)): subtracting a constant from a row changes nothing else.",
    when=no_maximum,
    probes=(Probe(shifted),),
    why="with the maximum already subtracted from the input, your kernel is right. ‹here›",
)
EPSILON_ADDED = Mistake(
    "epsilon_added",
    "About ‹constant› is added to the sum‹so›.",
    "Use the sum ‹use›.",
    when=epsilon,
    why="The largest value contributes exp(0) = 1, so the sum is never below 1: there is no 0 to guard "
    "against. Likely the constant was put there for that.",
)


def odd_row(t: Trial) -> Case:
    return t.like([[0, -1, -2, -3, -4, -5, -500, -INF]])


def infinite_results(t: Trial) -> bool:
    return t.finite and bool((t.values[0][t.bad] == INF).any())


INFINITE_RESULTS = (
    Mistake(
        "maximum_not_kept",
        "Every result is ∞: where it is computed the maximum is still −∞, as it started.",
        "At the end of each round keep the new maximum: m = new_m.",
        when=infinite_results,
        probes=(Probe(odd_row, shows=lambda o: (o.got[0, :7] == INF).all() and np.isnan(o.got[0, 7])),),
        why="in a row with a −∞, and with a value 500 below the rest, only the −∞ comes out as NaN and the "
        "rest as ∞, as exp(x − (−∞)) does.",
    ),
    Mistake(
        "sum_not_kept",
        "Every result is ∞: the numerators are divided by a sum that is still 0.",
        "Add each tile's exponentials to the sum, and keep it: d = …",
        when=infinite_results,
        probes=(
            Probe(odd_row, shows=lambda o: (o.got[0, :6] == INF).all() and np.isnan(o.got[0, 6:]).all()),
        ),
        why="in a row with numerators that are 0, these come out as NaN and the rest as ∞, as 0 / 0 and 1 / "
        "0 do.",
    ),
)
SMALL_MADE_ZERO = Mistake(
    "small_made_zero",
    "Small results are made 0: those up to ‹largest›, at least.",
    "Store tl.exp(x - m) / d as it is; float32 holds numbers down to 1e−38.",
    when=small_made_zero,
    why="every result that is wrong is 0, and every larger one is right.",
    kind=Seen,
)
GLOBAL_MAX = Mistake(
    "global_max",
    "One maximum serves several rows, and the rows far below it are lost.",
    "Each row has a maximum of its own: in a tile of several rows, tl.max(x, axis=1).",
    when=generic.together,
    probes=(generic.ALONE, Probe(lambda t: t.like(t.x - t.top))),
    why="each row alone comes out right, and so do all together once each has the maximum 0.",
)

# −∞ − (−∞)


def below_all(t: Trial) -> float:
    """A number far below all of x."""
    return float(np.nanmin(np.where(np.isfinite(t.case.x), t.case.x, 0))) - 2000


def lowered(t: Trial) -> Case:
    """A very low number in place of each −∞."""
    return t.like(np.where(np.isneginf(t.case.x), below_all(t), t.case.x), t.case.gap)


def raised(t: Trial, rows=slice(None)) -> Case:
    """The numbers of these rows moved above 0."""
    x = t.case.x[rows]
    lowest = np.nanmin(np.where(np.isfinite(x), x, INF))
    return t.like(x - lowest + 1, t.case.gap)


def infinite_part(t: Trial) -> dict | None:
    """NaN in a row with some −∞."""
    infinite = np.isneginf(t.case.x).any(axis=1)[t.bad].any()
    return infinite and any(np.isnan(v[t.bad]).any() for v in t.values) and {"rows": which("row", t.bad)}


def padded_part(t: Trial) -> bool:
    """NaN in every wrong row, all of finite numbers."""
    if not np.isfinite(t.case.x[t.bad]).all():
        return False
    return bool(np.isnan(np.hstack([v[t.bad].reshape(len(t.bad), -1) for v in t.values])).any(axis=1).all())


BAD_LOW = Probe(lambda t: t.like(t.case.x[t.bad], t.case.gap), masked_lanes=below_all)
MEASURE_FROM_0 = (
    "While a maximum is still −∞, there is nothing to measure from it: use 0 in its place in the exponent, "
    "tl.where(m == -float('inf'), 0.0, m). Then exp(−∞ − 0) is 0."
)


def stand_in(when, low: Probe, moved: Probe) -> Mistake:
    """The 0 that stands in for a maximum of −inf, kept as the maximum: no harm where all are above."""
    return Mistake(
        "stand_in_kept",
        "Where a tile, chunk or lane is empty, the 0 that stands in for its maximum is kept as the maximum, "
        "and every number of the row is below it.",
        "The 0 belongs in the exponents only. Keep the maximum itself, which is still −∞ there: anchor = "
        "tl.where(m == -float('inf'), 0.0, m) for the exponents, and m as it was for the next step.",
        when=when,
        probes=(low, moved),
        why="the same row with its numbers moved above 0 comes out right, and so it does with a very low "
        "number in place of −∞. Measured from 0, every exponential is 0 here, and so is their sum.",
    )


INFINITE_PARTS = (
    stand_in(infinite_part, Probe(lowered), Probe(raised)),
    Mistake(
        "infinity_minus_infinity",
        "A part of the row that holds only −∞ spoils the whole row (‹rows›): exp(−∞ − (−∞)) is NaN.",
        MEASURE_FROM_0,
        when=infinite_part,
        probes=(Probe(lowered),),
        why="with a very low number in place of each −∞, your kernel is right.",
    ),
    stand_in(padded_part, BAD_LOW, Probe(lambda t: raised(t, t.bad))),
    Mistake(
        "infinity_minus_infinity",
        "A part of the work that holds only padding (a tile, a chunk or a lane past the end of the row) "
        "spoils the whole row: there exp(−∞ − (−∞)) is NaN.",
        MEASURE_FROM_0,
        when=padded_part,
        probes=(BAD_LOW,),
        why="with a very low number in place of −∞ in the masked lanes, your kernel is right.",
    ),
)

# Where the maximum starts, and what is subtracted


def all_negative(t: Trial) -> bool:
    """Wrong rows of numbers below 0. Against too high a maximum nothing is left of rows far below it."""
    if not np.isfinite(t.x[t.bad]).all() or t.top[t.bad].max() >= 0:
        return False
    return not (np.isfinite([v[t.bad] for v in t.values]).all() and t.top[t.bad].max() < -1e6)


RAMP = np.linspace(-200, 1, 64)
ABOVE_0 = Probe(lambda t: t.like(t.x[t.bad] - t.top[t.bad] + 1, t.case.gap))
MOVED = "the same rows moved above 0 come out right, and softmax does not change when a row is moved."
STARTING_MAXIMUM = (
    Mistake(
        "absolute_maximum",
        "The largest |x| is subtracted before the exponential, where the largest x belongs.",
        "Subtract tl.max(x, axis=0), without tl.abs.",
        when=all_negative,
        probes=(ABOVE_0, Probe(lambda t: t.like(1 - RAMP[::-1])), Probe(lambda t: t.like(RAMP), right=False)),
        why="a row from 0 to 201 comes out right, and one from −200 to 1 does not: less 200, every "
        "exponential is 0 in float32.",
    ),
    Mistake(
        "maximum_starts_at_zero",
        "The maximum comes out too high for rows that are all negative: it starts from 0, or a lane holds 0.",
        "Start the running maximum at −∞, and load masked lanes as −∞.",
        when=lambda t: all_negative(t) and t.top[t.bad].max() > -1e6,
        probes=(ABOVE_0,),
        why=MOVED,
    ),
    Mistake(
        "maximum_starts_finite",
        "The maximum comes out too high for rows far below 0: it starts from a finite number, and these rows "
        "lie below it.",
        "Start the running maximum at −∞, and load masked lanes as −∞.",
        when=all_negative,
        probes=(ABOVE_0,),
        why=MOVED,
    ),
)


def ordinary(t: Trial) -> bool:
    return bool(np.isfinite(t.case.x[t.bad]).all() and np.abs(t.case.x[t.bad]).max() <= 40)


def with_hole(t: Trial) -> Case:
    x = t.case.x[t.bad].copy()
    x[:, 0] = -INF
    return t.like(x)


OLD_MAXIMUM = Mistake(
    "old_maximum",
    "The sum of the exponentials is infinite, though no exp(x) of this row is.",
    "First the new maximum, then exp(x − new maximum). " + RESCALE,
    when=ordinary,
    # So low that such lanes add nothing, and finite: −∞ − (−∞) would be NaN.
    probes=(
        Probe(lambda t: t.like(t.case.x[t.bad]), shows=lambda o: not o.got.any(), masked_lanes=-3e38),
        Probe(with_hole, shows=lambda o: np.isnan(o.got).all(), masked_lanes=-3e38),
    ),
    why="every result is 0, and NaN as soon as one value is −∞, as with exp(−∞ − (−∞)). A tile's "
    "exponentials are taken against the maximum before that tile, which for the first one is −∞.",
)


def numerators(t: Trial) -> list[np.ndarray]:
    """What was divided, up to a factor a row."""
    with np.errstate(all="ignore"):
        return [got / got.max(axis=1, keepdims=True) for got in generic.seen_values(t)]


def walks_along(t: Trial) -> bool:
    """The row is taken in parts: by a loop, a scan, or several launches."""
    parts = re.search(r"^\s+(for|while) |associative_scan|tl\.reduce", t.source.text, re.MULTILINE)
    return t.columns > 1 and t.finite and bool(parts or len(t.facts.launches) > 1)


RESCALING = Mistake(
    "rescaling",
    "The sum goes wrong when the maximum grows on the way along the row.",
    "When the maximum grows, multiply the sum so far by exp(old maximum − new maximum).",
    when=walks_along,
    probes=(Probe(lambda t: t.like(-np.sort(-t.case.x, axis=1), t.case.gap)),),
    why="with each row sorted so that its largest value comes first, your kernel is right.",
)


def of32(rows):
    """The case with these rows, in float32."""
    return lambda t: replace(t.case, x=np.atleast_2d(rows).astype(np.float32), gap=0)


NEAR = np.linspace(0, 3, 64)
LEVEL = of32([NEAR + 200, NEAR - 300])
ONE_HIGH = of32(np.where(np.arange(64) == 40, 100, 0))
HALF_HIGH = of32(np.where(np.arange(64) % 2 == 1, 100, 0))
SUBTRACTED = "before the exponential: where the largest value lies far above it, exp overflows."
LEVEL_ROWS = (
    "rows of nearly equal values come out right at 200 and at −300; a row of zeros with one 100 does not"
)
EVEN = np.linspace(-0.5, 0.5, 64)
NOT_THE_MAXIMUM = (
    Mistake(
        "mean_taken_off",
        f"The row's mean is subtracted {SUBTRACTED}",
        "Subtract tl.max(x, axis=0): then no exponent is above 0.",
        probes=(Probe(LEVEL), Probe(ONE_HIGH, right=False), Probe(HALF_HIGH)),
        why=f"{LEVEL_ROWS}, and one that is half 0, half 100, does.",
    ),
    Mistake(
        "not_the_maximum",
        f"Something else than the row's maximum is subtracted {SUBTRACTED}",
        "Subtract tl.max(x, axis=0): then no exponent is above 0.",
        probes=(Probe(LEVEL), Probe(ONE_HIGH, right=False)),
        why=f"{LEVEL_ROWS}.",
    ),
    Mistake(
        "sum_taken_off",
        "The row's sum is subtracted before the exponential, where its maximum belongs.",
        "Subtract tl.max(x, axis=0): then no exponent is above 0.",
        probes=(
            Probe(lambda t: t.like(EVEN)),
            Probe(lambda t: t.like(EVEN[28:36] - 2)),
            Probe(lambda t: t.like(EVEN - 2), right=False),
        ),
        why="of rows of nearly equal values, 64 around 0 come out right, and so do 8 around −2; 64 around "
        "−2, whose sum is −128, do not: exp(126) is more than float32 holds.",
    ),
)

PLACE = Mistake(
    "place_subtracted",
    "The place of the row's maximum is subtracted, as tl.argmax gives it, not the maximum.",
    "Subtract tl.max(‹tile›, axis=0).",
    when=lambda t: "argmax" in t.source.text,
    probes=(
        Probe(of32(np.linspace(0, 120, 128))),
        Probe(ONE_HIGH),
        Probe(of32(np.where(np.arange(64) == 0, 100, 0)), right=False),
    ),
    why="a row that rises to 120 in its column 127 comes out right, and a row of zeros with one 100 does "
    "in column 40, and does not in column 0.",
)

FIRST = (*generic.NAN, generic.READ_BACK, generic.HALF, *generic.padding(padded), WHERE_EXCHANGED)
LAST = (*strides.ROWS, GLOBAL_MAX, generic.ROWS_MIXED, *INFINITE_PARTS, *STARTING_MAXIMUM)
HALVES = (generic.HALF_RESULTS, generic.half_row(numerators, "every numerator"))
SOFTMAX = (
    *FIRST, WHERE_OF_NUMERATORS, LOST_DIGITS, PLACE, NO_MAXIMUM, EPSILON_ADDED, *INFINITE_RESULTS, *PREDICTED,
    *TILES, SMALL_MADE_ZERO, *LAST, OLD_MAXIMUM, *HALVES, RESCALING, *NOT_THE_MAXIMUM,
    generic.SCALED,
)  # fmt: skip
