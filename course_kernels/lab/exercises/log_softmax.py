"""Exercise: the logarithm of the softmax, in one kernel, and exact far from 0."""

import numpy as np

from course_kernels.lab.check import generic
from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.kernels import KernelExercise
from course_kernels.lab.check.mistakes import Mistake, Probe
from course_kernels.lab.check.trial import EPSILON, Trial
from course_kernels.lab.core.wording import number
from course_kernels.lab.exercises import softmax
from course_kernels.lab.exercises.inputs import large_cases, random, softmax_cases
from course_kernels.lab.exercises.walks import Softmax
from course_kernels.lab.run.cases import Case


def tolerance(case: Case, wanted: tuple) -> np.ndarray:
    """How far the result may be off: an error of d's last digits is as large wherever log d is added."""
    if case.x.shape[1] == 1:  # 0 − log 1: there is nothing to round
        return np.zeros(wanted[0].shape)
    size = np.nan_to_num(np.abs(wanted[0]), posinf=0.0)
    return EPSILON * (16 + 2 * softmax.distance(case.x) + size) + softmax.half_rounding(case, wanted[0])


def cases(rng: np.random.Generator) -> list[Case]:
    # Rows near −1e7 before those at −1e30, where too many mistakes look alike.
    usual = softmax_cases(rng)
    odd = int(rng.choice([67, 83, 97, 113]))
    peaked = random(rng, 2, odd)
    peaked[:, int(rng.integers(odd))] = 30
    # Sums of about 1.05: their logarithm shows every digit that a float16 sum has lost.
    top = random(rng, 6, odd, 0.3) - 2.5
    top[:, int(rng.integers(odd))] = 5
    near = (np.rint(random(rng, 2, odd, 3.0)) - 1e7).astype(np.float32)
    spread = rng.uniform(-200, 0, (2, odd)).astype(np.float32)
    own = [
        Case("half_top", "float16, rows with one value above the rest, where the result is near 0",
             top.astype(np.float16)),
        Case("1e7", "rows near −1e7, where float32 has whole numbers only", near),
        Case("peaked", "rows with one value far above the rest, where the result is near 0", peaked),
        Case("spread", "a row that reaches 200 below its maximum", spread),
    ]  # fmt: skip
    return sorted(usual + own, key=lambda case: case.kind in ("far", "marked"))


class LogSoftmax(Softmax):
    """The same, with what exp and log make of x itself."""

    def naive(self, x):
        return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


FORMULA = "(x − m) − log d."
QUOTIENT = "The logarithm of a quotient is a difference: (x − m) − log d."
NATURAL = "Use tl.log, or multiply by ln 2 = 0.6931471805599453."
PREDICTED = (
    *(
        Mistake("epsilon_added",
                f"{epsilon:g} is added before the logarithm is taken, and that is what small probabilities "
                "become.".replace("-", "−"),
                "(x − m) − log d needs no such help: d is at least 1.",
                lambda s, epsilon=epsilon: np.log(s.e / s.d + epsilon))
        for epsilon in (1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5)
    ),
    Mistake("softmax_given",
            "The result is the softmax itself.", "Here its logarithm is asked for: (x − m) − log d.",
            lambda s: s.e / s.d),
    Mistake("no_denominator", "The result is x − m: the logarithm of the sum is missing.",
            "Subtract tl.log(d), d being the sum of exp(x − m).", lambda s: s.s + 0 * s.d),
    Mistake("no_logarithm",
            "The sum d is subtracted, not its logarithm.", "Subtract tl.log(d).", lambda s: s.s - s.d),
    Mistake("maximum_left_in", "log d is subtracted from x, from which the maximum was not.",
            "d was taken after subtracting the maximum, so subtract it here too: (x − m) − log d.",
            lambda s: s.x - np.log(s.d)),
    Mistake("sign",
            "log d is added; it should be subtracted.", "(x − m) − tl.log(d).", lambda s: s.s + np.log(s.d)),
    Mistake("negated",
            "The result has the wrong sign: it is −log softmax.", FORMULA, lambda s: np.log(s.d) - s.s),
    Mistake("base_two", "log2 stands where the natural logarithm should.",
            "Use tl.log, or multiply tl.log2(d) by ln 2 = 0.6931471805599453.", lambda s: s.s - np.log2(s.d)),
    Mistake("base_two",
            "2^(x − m) stands where e^(x − m) should.", softmax.BY_E, lambda s: s.s - np.log(s.d2)),
    Mistake("base_two",
            "Exponential and logarithm have base 2, and nothing converts them.", "Use tl.exp and tl.log.",
            lambda s: s.s - np.log2(s.d2)),
    Mistake("base_two",
            "The result is the logarithm to base 2.", NATURAL, lambda s: (s.s - np.log(s.d)) / np.log(2)),
    Mistake("mean", "The logarithm is that of the number of columns, not of the sum.",
            "Take tl.log of the sum of exp(x − m).", lambda s: s.s - np.log(s.columns)),
    Mistake("mean", "The logarithm is that of the mean of the exponentials, not of their sum.",
            "Do not divide by the number of columns: d = tl.sum(tl.exp(x - m), axis=0).",
            lambda s: s.s - np.log(s.d / s.columns)),
    Mistake("maximum_left_in",
            "The maximum is subtracted from x, and the sum is one of exp(x): it was left in there.",
            "Sum tl.exp(x - m).", lambda s: s.s - np.log(np.exp(s.x).sum(axis=1, keepdims=True))),
    Mistake("log_before_sum", "The logarithm is taken of each exponential, and the logarithms are summed.",
            "First the sum, then its logarithm: tl.log(tl.sum(tl.exp(x - m), axis=0)).",
            lambda s: s.s - s.s.sum(axis=1, keepdims=True)),
    Mistake("one_added", "1 is added to the sum before its logarithm is taken.",
            "The sum holds exp(0) = 1 already, from the largest value. Use tl.log(d).",
            lambda s: s.s - np.log1p(s.d)),
    softmax.zeros_after(lambda s: s.s - np.log(s.d + s.lanes)),
    Mistake("wrong_axis", "The sum runs down the columns instead of along the rows.", softmax.ALONG,
            lambda s: s.s - np.log(s.e.sum(axis=0))),
    Mistake("divided", "x − m is divided by log d.", QUOTIENT, lambda s: s.s / np.log(s.d)),
    Mistake("divided", "x − m is divided by d.", QUOTIENT, lambda s: s.s / s.d),
    generic.SAME_ROW,
    Mistake("copied", "The result is x itself.", "Compute between the load and the store.", lambda s: s.x),
    *generic.NOT_SCALED,
    Mistake(*softmax.MAXIMUM_WITH_ZERO,
            lambda s: (low := np.minimum(s.x, 0)) - np.log(np.exp(low).sum(axis=1, keepdims=True))),
    generic.ROUNDED_IN,
)  # fmt: skip


def far_below(t: Trial) -> dict | None:
    """Wrong only where the probability is small: below e^−87 a float32 loses digits, below e^−103 it is 0."""
    wrong, wanted = t.wrong[0], t.wanted
    if not np.isfinite(wanted[wrong]).any() or not (wanted[wrong] < -70).all():
        return None
    place = tuple(np.argwhere(wrong & np.isfinite(wanted))[0])
    return {"got": number(t.got[place], 6), "wanted": number(wanted[place], 6)}


def narrowed(t: Trial) -> Case:
    """x kept within 60 of the row's maximum."""
    return t.like(np.maximum(t.x, np.nanmax(t.case.x, axis=1, keepdims=True) - 60.0), t.case.gap)


def hidden_infinity(t: Trial) -> dict | None:
    """A finite number where the logarithm of 0 belongs, and nothing else wrong."""
    hidden = np.isneginf(t.wanted) & np.isfinite(t.got)
    if not hidden.any() or not hidden[t.wrong[0]].all():
        return None
    row, column = np.argwhere(hidden)[0]
    return {"at_row": int(row), "column": column, "got": number(t.got[row, column], 4)}


LOG_OF_QUOTIENT = Mistake(
    "log_of_quotient",
    "The logarithm is taken of a quotient that was rounded: far below the maximum the result is ‹got›, and "
    "should be ‹wanted›.",
    "The logarithm of exp(x − m) is x − m: leave that part out of exp and log, and subtract tl.log(d).",
    when=far_below,
    probes=(Probe(narrowed),),
    why="with x kept within 60 of the row's maximum, your kernel is right. Further down exp(x − m) is 0 in "
    "float32, or has few digits left, and the logarithm cannot bring them back.",
)
INFINITY_HIDDEN = Mistake(
    "infinity_hidden",
    "Where x is −∞ the probability is 0 and its logarithm −∞; row ‹at_row› has ‹got› in column ‹column›.",
    "Let −∞ pass: (x − m) − log d gives it by itself.",
    when=hidden_infinity,
    why="Everything else in these rows is right.",
)

EXERCISE = KernelExercise(
    name="log_softmax",
    notebook="03_one_row_one_program",
    entry="log_softmax",
    brief=(
        "log_softmax(x) → y: (x − m) − log d for each row of x (rows, columns), where m is its maximum and d "
        "the sum of exp(x − m); one program a row, one load and one store."
    ),
    hints=(
        Hint(
            "nothing works yet",
            "Write log(exp(x − m) / d) with the rules of the logarithm: the exponential and the logarithm "
            "cancel in one part of it, and what is left needs one tl.log a row.",
        ),
        Hint(
            "a result is −∞, or digits are missing in rows far from 0",
            "Two orders of the same formula are wrong in float32. The logarithm of the finished quotient "
            "fails where the quotient was rounded to 0. And m + log d loses log d where m is large. Which "
            "order keeps x − m together?",
        ),
        Hint(
            "it is still wrong",
            "shifted = x - tl.max(x, axis=0), then d = tl.sum(tl.exp(shifted), axis=0), then y = shifted - "
            "tl.log(d).",
        ),
    ),
    lesson=(
        "The traffic is that of softmax: MN in, MN out. What changed is the order of three operations, and "
        "with it every digit that survives: x − m is exact or nearly so, log d is a small number, and their "
        "difference loses nothing. This is the form inside a classification loss, where a probability that "
        "was rounded to 0 would cost an infinite loss."
    ),
    oracle=softmax.log_softmax64,
    tolerance=tolerance,
    cases=cases,
    large_cases=large_cases(5_000, 40_000),
    max_launches=1,
    arithmetic=LogSoftmax,
    mistakes=(
        *softmax.FIRST, softmax.WHERE_OF_NUMERATORS, softmax.LOST_DIGITS, softmax.NO_MAXIMUM, LOG_OF_QUOTIENT,
        softmax.EPSILON_ADDED, *PREDICTED, *softmax.LAST, softmax.OLD_MAXIMUM, *softmax.HALVES,
        softmax.RESCALING, *softmax.NOT_THE_MAXIMUM, INFINITY_HIDDEN,
    ),
    keep_digits=(
        "Subtract the maximum from x before anything else: (x − m) − tl.log(d). In x − (m + log d) the sum m "
        "+ log d is rounded to the steps that float32 has at the size of m."
    ),
)  # fmt: skip
