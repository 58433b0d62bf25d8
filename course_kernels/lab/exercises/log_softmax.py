"""Exercise: the logarithm of the softmax, in one kernel, and exact far from 0."""

from dataclasses import replace

import numpy as np

from course_kernels.lab.check.judge import Case, Finding
from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.rows import EPSILON, ROW_NOT_SCALED, windows
from course_kernels.lab.exercises.softmax import (
    NO_ZERO_AFTER,
    SoftmaxExercise,
    distance,
    half_rounding,
    lanes_of_zero,
    log_softmax64,
    no_maximum,
    softmax64,
)


class LogSoftmax(SoftmaxExercise):
    name = "log_softmax"
    notebook = "03_one_row_one_program"
    entry = "log_softmax"
    brief = (
        "log_softmax(x) → y: (x − m) − log d for each row of x (rows, columns), where m is its maximum and d "
        "the sum "
        "of exp(x − m); one program a row, one load and one store."
    )
    max_launches = 1
    keep_digits = (
        "Subtract the maximum from x before anything else: (x − m) − tl.log(d). In x − (m + log d) the sum m "
        "+ log d "
        "is rounded to the steps that float32 has at the size of m."
    )
    hints = (
        Hint(
            "nothing works yet",
            "Write log(exp(x − m) / d) with the rules of the logarithm: the exponential and the logarithm "
            "cancel in one "
            "part of it, and what is left needs one tl.log a row.",
        ),
        Hint(
            "a result is −∞, or digits are missing in rows far from 0",
            "Two orders of the same formula are wrong in float32. The logarithm of the finished quotient "
            "fails where "
            "the quotient was rounded to 0. And m + log d loses log d where m is large. Which order keeps x "
            "− m "
            "together?",
        ),
        Hint(
            "it is still wrong",
            "shifted = x - tl.max(x, axis=0), then d = tl.sum(tl.exp(shifted), axis=0), then y = shifted - "
            "tl.log(d).",
        ),
    )
    lesson = (
        "The traffic is that of softmax: MN in, MN out. What changed is the order of three operations, and "
        "with it "
        "every digit that survives: x − m is exact or nearly so, log d is a small number, and their "
        "difference loses "
        "nothing. This is the form inside a classification loss, where a probability that was rounded to 0 "
        "would cost "
        "an infinite loss."
    )

    def expected(self, x):
        return (log_softmax64(x),)

    def naive(self, x):
        return x - np.log(np.exp(x).sum(axis=1, keepdims=True))

    def tolerance(self, case, wanted):
        if case.x.shape[1] == 1:  # 0 − log 1: there is nothing to round
            return (np.zeros(wanted[0].shape),)
        # An error of d's last digits is as large wherever log d is added, also where the result is near 0.
        size = np.nan_to_num(np.abs(wanted[0]), posinf=0.0)
        return (EPSILON * (16 + 2 * distance(case.x) + size) + half_rounding(case, wanted[0]),)

    def cases(self, rng):
        # Rows near −1e7 before those at −1e30, where too many mistakes look alike.
        return sorted(super().cases(rng), key=lambda case: case.kind in ("far", "marked"))

    def more_cases(self, rng, normal):
        odd = int(rng.choice([67, 83, 97, 113]))
        peaked = normal(2, odd)
        peaked[:, int(rng.integers(odd))] = 30
        # Sums of about 1.05: their logarithm shows every digit that a float16 sum has lost.
        top = normal(6, odd, 0.3) - 2.5
        top[:, int(rng.integers(odd))] = 5
        return [
            Case("half_top", "float16, rows with one value above the rest, where the result is near 0",
                 top.astype(np.float16)),
            Case("1e7", "rows near −1e7, where float32 has whole numbers only",
                 (np.rint(normal(2, odd, 3.0)) - 1e7).astype(np.float32)),
            Case("peaked", "rows with one value far above the rest, where the result is near 0", peaked),
            Case("spread", "a row that reaches 200 below its maximum",
                 rng.uniform(-200, 0, (2, odd)).astype(np.float32)),
        ]  # fmt: skip

    def experiments(self):
        usual = super().experiments()
        return [rounded_quotient if e is no_maximum else e for e in usual] + [infinity_hidden]

    def fingerprint_table(self, case, tile):
        x = case.x.astype(np.float64)
        with np.errstate(all="ignore"):
            m = x.max(axis=1, keepdims=True)
            s = x - m
            d = np.exp(s).sum(axis=1, keepdims=True)
            d2 = np.exp2(s).sum(axis=1, keepdims=True)
            quotient = np.exp(s) / d
            low = np.minimum(x, 0)
            lanes = 2 ** int(np.ceil(np.log2(x.shape[1]))) - x.shape[1]  # past the row, in the usual block
            return [
                ("epsilon_added", np.log(quotient + epsilon),
                 f"{epsilon:g} is added before the logarithm is taken, and that is what small probabilities "
                 "become.",
                 "(x − m) − log d needs no such help: d is at least 1.")
                for epsilon in (1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5)
            ] + [
                ("softmax_given", softmax64(case.x), "The result is the softmax itself.",
                 "Here its logarithm is asked for: (x − m) − log d."),
                ("no_denominator", s + 0 * d, "The result is x − m: the logarithm of the sum is missing.",
                 "Subtract tl.log(d), d being the sum of exp(x − m)."),
                ("no_logarithm", s - d, "The sum d is subtracted, not its logarithm.", "Subtract tl.log(d)."),
                ("maximum_left_in", x - np.log(d), "log d is subtracted from x, from which the maximum was "
                 "not.",
                 "d was taken after subtracting the maximum, so subtract it here too: (x − m) − log d."),
                ("sign", s + np.log(d), "log d is added; it is to be subtracted.", "(x − m) − tl.log(d)."),
                ("negated", np.log(d) - s, "The result has the wrong sign: it is −log softmax.",
                 "(x − m) − log d."),
                ("base_two", s - np.log2(d), "log2 stands where the natural logarithm should.",
                 "Use tl.log, or multiply tl.log2(d) by ln 2 = 0.6931471805599453."),
                ("base_two", s - np.log(d2), "2^(x − m) stands where e^(x − m) should.",
                 "Use tl.exp, or multiply by log2(e) = 1.4426950408889634 before tl.exp2."),
                ("base_two", s - np.log2(d2), "Exponential and logarithm have base 2, and nothing converts "
                 "them.",
                 "Use tl.exp and tl.log."),
                ("base_two", (s - np.log(d)) / np.log(2), "The result is the logarithm to base 2.",
                 "Use tl.log, or multiply by ln 2 = 0.6931471805599453."),
                ("mean", s - np.log(x.shape[1]), "The logarithm is that of the number of columns, not of the "
                 "sum.",
                 "Take tl.log of the sum of exp(x − m)."),
                ("mean", s - np.log(d / x.shape[1]), "The logarithm is that of the mean of the exponentials, "
                 "not of their sum.",
                 "Do not divide by the number of columns: d = tl.sum(tl.exp(x - m), axis=0)."),
                ("maximum_left_in", s - np.log(np.exp(x).sum(axis=1, keepdims=True)),
                 "The maximum is taken off x, and the sum is one of exp(x): it was left in there.",
                 "Sum tl.exp(x - m)."),
                ("log_before_sum", s - s.sum(axis=1, keepdims=True),
                 "The logarithm is taken of each exponential, and the logarithms are summed.",
                 "First the sum, then its logarithm: tl.log(tl.sum(tl.exp(x - m), axis=0))."),
                ("one_added", s - np.log1p(d), "1 is added to the sum before its logarithm is taken.",
                 "The sum holds exp(0) = 1 already, from the largest value. Use tl.log(d)."),
                ("padding_zero", s - np.log(d + lanes), lanes_of_zero(lanes), NO_ZERO_AFTER),
                ("wrong_axis", s - np.log(np.exp(s).sum(axis=0)),
                 "The sum runs down the columns instead of along the rows.",
                 "Reduce along the axis of the columns: axis=1 in a tile of several rows."),
                ("divided", s / np.log(d), "x − m is divided by log d.",
                 "The logarithm of a quotient is a difference: (x − m) − log d."),
                ("divided", s / d, "x − m is divided by d.",
                 "The logarithm of a quotient is a difference: (x − m) − log d."),
                ("same_row", np.broadcast_to((s - np.log(d))[:1], x.shape), "Every row of the result is that "
                 "of row 0.",
                 "Use tl.program_id(0) in the address of the load."),
                ("copied", x, "The result is x itself.", "Compute between the load and the store."),
                ("row_not_scaled", log_softmax64(windows(x, case.gap)), ROW_NOT_SCALED,
                 "Start the row at x_ptr + row * x_stride."),
                ("maximum_with_zero", low - np.log(np.exp(low).sum(axis=1, keepdims=True)),
                 "From each value the larger one of it and 0 is taken off, as tl.maximum(x, 0) gives it, not "
                 "the row's maximum.",
                 "tl.maximum compares lane by lane; the maximum of a tile is tl.max(x, axis=0)."),
                ("half_precision", log_softmax64(case.x.astype(np.float16)),
                 "x is rounded to float16 on its way in, and with it goes what 11 bits cannot hold.",
                 "Convert to tl.float32, not to tl.float16."),
            ]  # fmt: skip


def rounded_quotient(exercise, session, case, result):
    """log(exp(x − m) / d): −inf, or a few digits only, where the quotient is too small for float32."""
    finding = no_maximum(exercise, session, case, result)
    if finding is not None:
        return finding
    got, wanted = result.values(0).astype(np.float64), exercise.expected(case.x)[0]
    wrong = exercise.wrong(case, result, 0)
    # Below e^−87 a float32 loses digits, below e^−103 it is 0.
    if not np.isfinite(wanted[wrong]).any() or not (wanted[wrong] < -70).all():
        return None
    narrow = np.maximum(case.x.astype(np.float64), np.nanmax(case.x, axis=1, keepdims=True) - 60.0)
    if not exercise.right(session, [replace(case, x=narrow.astype(case.x.dtype))]):
        return None
    row, column = np.argwhere(wrong & np.isfinite(wanted))[0]
    lost = "−∞" if np.isneginf(got[row, column]) else f"{got[row, column]:.6g}".replace("-", "−")
    right = f"{wanted[row, column]:.6g}".replace("-", "−")
    return Finding(
        "log_of_quotient",
        f"The logarithm is taken of a quotient that was rounded: far below the maximum the result is {lost}, "
        "and "
        f"should be {right}.",
        "",
        "Proven: with x kept within 60 of the row's maximum, your kernel is right. Further down exp(x − m) "
        "is 0 in "
        "float32, or has few digits left, and the logarithm cannot bring them back.",
        "The logarithm of exp(x − m) is x − m: leave that part out of exp and log, and subtract tl.log(d).",
    )


def infinity_hidden(exercise, session, case, result):
    """A finite number where the logarithm of 0 belongs."""
    got, wanted = result.values(0).astype(np.float64), exercise.expected(case.x)[0]
    hidden = np.isneginf(wanted) & np.isfinite(got)
    if not hidden.any() or not hidden[exercise.wrong(case, result, 0)].all():
        return None
    row, column = np.argwhere(hidden)[0]
    return Finding(
        "infinity_hidden",
        f"Where x is −∞ the probability is 0 and its logarithm −∞; row {row} has {got[row, column]:.4g} in "
        "column "
        f"{column}.".replace("-", "−"),
        "",
        "Everything else in these rows is right.",
        "Let −∞ pass: (x − m) − log d gives it by itself.",
    )


EXERCISE = LogSoftmax()
