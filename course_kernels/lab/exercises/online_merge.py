"""Exercise: the merge of two (maximum, sum of exponentials) pairs, as tl.reduce uses it."""

from dataclasses import replace

import numpy as np

from course_kernels.lab.exercises.broken import merging
from course_kernels.lab.check.judge import Case, Finding, Result, Session, check_error, numbers
from course_kernels.lab.check.messages import rows
from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.old import Exercise

INF = np.inf
COARSE = 2.0**-14  # how near an output must be to what a mistake predicts
RESCALE = "Both sums must be measured from the common maximum: d1 · exp(m1 − m) + d2 · exp(m2 − m)."
RETURN = ("wrong_return", "merge should return two values, (m, d).", "End it with `return m, d`.")
LARGER = "m is tl.maximum(m1, m2)."


class OnlineMerge(Exercise):
    name = "online_merge"
    notebook = "04_online_max_and_sum"
    entry = "merge"
    brief = (
        "merge(m1, d1, m2, d2) → (m, d), a @triton.jit function: maximum and sum of exponentials of two "
        "stretches of a row, joined."
    )
    adapt = staticmethod(merging.either)
    adapt_name = "course_kernels.lab.exercises.broken.merging:either"
    compile_calls = (
        {"shape": [4, 100], "dtype": "float32"},
        {"shape": [3, 1000], "dtype": "float32"},
    )
    refusals = {
        "not_jit": (
            "merge is a plain Python function, and tl.reduce takes a @triton.jit function.",
            "Write @triton.jit on the line above def merge.",
        )
    }
    translations = rows("""
said not iterable|setting an array element with a sequence|to unpack|cannot unpack
wrong_return: merge should return two values, (m, d).
→ End it with `return m, d`.

said out of bounds for shape
max_reduces: tl.max takes one tile and finds its largest element; here two tiles are to be compared lane by
  lane.
→ Use tl.maximum(m1, m2).

said converted to Python scalars
python_math: A function of Python's math takes one number, and merge is called with whole tiles.
→ Use Triton's own: tl.exp, tl.log.

said positional argument
wrong_arguments: merge is called with four arguments, (m1, d1, m2, d2).
→ Keep the stub's line def merge(m1, d1, m2, d2).
""")
    hints = (
        Hint(
            "you do not know where to begin",
            "Both sums count exponentials, each from its own maximum. Before they can be added they must be "
            "measured from the same place. Which, and by what factor does a sum change when its place moves "
            "from m1 to m?",
        ),
        Hint(
            "ordinary pairs are right, and −∞ gives NaN",
            "An empty stretch has m = −∞, and −∞ − (−∞) is NaN. Where the common maximum is −∞ there is "
            "nothing to rescale: use 0 in its place in the exponents.",
        ),
        Hint(
            "you want the three lines",
            "m = tl.maximum(m1, m2); anchor = tl.where(m == -float('inf'), 0.0, m); return m, d1 * tl.exp(m1 "
            "- anchor) + d2 * tl.exp(m2 - anchor).",
        ),
    )
    lesson = (
        "Any grouping and any order give the same pair, and (−∞, 0) changes nothing. That is all a reduction "
        "asks for, so the same three lines join lanes inside tl.reduce, tiles along a row, programs that "
        "share a row, and GPUs that share a model."
    )

    # Cases

    def cases(self, rng: np.random.Generator) -> list[Case]:
        def pairs(m1, m2):
            m1, m2 = np.broadcast_arrays(np.asarray(m1, np.float32), np.asarray(m2, np.float32))
            d1, d2 = (rng.uniform(1, 60, size=m1.shape) for _ in range(2))
            x = np.stack([m1, d1, m2, d2]).astype(np.float32)
            x[1][np.isneginf(m1)] = x[3][np.isneginf(m2)] = 0
            return x

        count = int(rng.integers(9, 14))
        near = rng.normal(size=(2, count)) * 3
        near[1, 0] = near[0, 0]
        apart = rng.choice([-1e30, -9e3, -400, -150, 0, 150, 400, 9e3, 1e30], size=(2, count))
        apart[:, 0] = -1e30  # lower than any number that is taken for −∞
        some = np.where(rng.random(count) < 0.5, rng.normal(size=count) * 50, -1e4)
        three = np.concatenate(
            [pairs(*rng.normal(size=(2, count)) * 5), pairs(rng.normal(size=count) * 5, 0)[:2]]
        )
        for lane, empty in enumerate(([0], [2], [4], [0, 2], [2, 4], [0, 4], [0, 2, 4])):
            for row in empty:
                three[row, lane], three[row + 1, lane] = -INF, 0
        lost = pairs(*np.zeros((2, 6)))
        for lane, pair in enumerate(((np.nan, 1), (1, np.nan), (INF, np.nan))):
            lost[:2, lane] = lost[2:, lane + 3] = pair
        length = int(rng.integers(11, 16))
        scores = (rng.normal(size=(5, length)) * 4).astype(np.float32)
        scores[1].sort()
        scores[2] = -np.sort(-scores[2]) + 300
        scores[3, rng.permutation(length)[: length // 2]] = -INF
        scores[4, :] = -INF
        return [
            Case("pairs", "two ordinary pairs", pairs(*near)),
            Case("high", "maxima around 200, where exp(m) overflows", pairs(*near + 200)),
            Case("low", "maxima around −300, where exp(m) is 0", pairs(*near - 300)),
            Case("apart", "maxima far from each other", pairs(*apart)),
            Case("left", "an empty stretch, (−∞, 0), on the left", pairs(-INF, some)),
            Case("right", "an empty stretch, (−∞, 0), on the right", pairs(some, -INF)),
            Case("both", "two empty stretches, (−∞, 0)", pairs(np.full(3, -INF), -INF)),
            Case("nan", "pairs that hold a NaN", lost),
            Case("triples", "three pairs, merged in both groupings", three),
            Case("rows", "rows of scores, merged lane by lane in tl.reduce", scores),
        ]

    # The judgement

    def judge(self, session: Session) -> list[str]:
        cases = self.cases(session.rng)
        results = session.run(cases)
        for case, result in zip(cases, results, strict=False):
            check_error(result, case, self)
            if not result.intact:
                raise Finding(
                    "checker_changed",
                    "The file replaces a part of Triton's interpreter, and the check counts there.",
                    next="Leave Triton as it is and write the merge.",
                )
            if wrong(case, result).any():
                raise self.diagnose(session, case, result, cases, results)
        pairs = sum(case.x.shape[1] for case in cases if len(case.x) == 4)
        triples, rows = cases[-2].x.shape[1], cases[-1].x.shape[0]
        return [
            f"{pairs} pairs right to float32's last digits, with (−∞, 0) on either side and on both.",
            f"{triples} triples: the same pair from both groupings. {rows} rows reduced with tl.reduce, lane "
            "by lane.",
        ]

    def diagnose(self, session, case, result, cases, results) -> Finding:
        shown = show(case, result)
        pairs = [(c, r) for c, r in zip(cases, results, strict=False) if len(c.x) == 4 and not r.error]
        finite = [(c, r) for c, r in pairs if np.isfinite(c.x).all()]
        if all(not wrong(c, r).any() for c, r in finite):
            return self.empty_stretches(case, result, shown)
        if self.right_alone(session, case, result):
            return Finding(
                "branch_on_tile",
                "merge is called on whole tiles too, and an if, or Python's max, cannot decide for all lanes "
                "at once.",
                shown,
                "Proven: this pair on its own, as a tile of one lane, comes out right.",
                "Let each lane choose: tl.maximum(m1, m2), and tl.where(condition, a, b).",
            )
        for mistake, what, advice, guess in mistakes():
            if all(matches(c, r, guess) for c, r in finite):
                return Finding(
                    mistake,
                    what,
                    shown,
                    "On every ordinary pair, the result is number for number what that gives.",
                    advice,
                )
        if all(one_of_equals(c, r)[wrong(c, r)].all() for c, r in finite):
            return Finding(
                "equal_maxima",
                "Where the two maxima are equal, one of the sums is lost.",
                shown,
                "Proven: of the ordinary pairs, those of equal maxima come out wrong and no others.",
                "With m1 = m2 both stretches count in full: d1 + d2. " + RESCALE,
            )
        if (least := least_factor(finite)) is not None:
            return Finding(
                "exponent_clipped",
                f"The stretch with the smaller maximum always counts for about {least:.2g} of its sum or "
                "more, however far below it lies.",
                shown,
                f"Seen in every pair whose maxima are more than 100 apart: d is too large by {least:.2g} "
                f"times the other sum. Likely the exponent is kept above {np.log(least):.3g}.".replace(
                    "-", "−"
                ),
                "Leave m1 − m and m2 − m as they are: exp of a very low number is 0, and that is right.",
            )
        if self.right_higher_up(session, case, result):
            return Finding(
                "floor_for_infinity",
                "Pairs far below 0 come out wrong: a very low number stands somewhere in place of −∞.",
                shown,
                "Proven: with both maxima moved up to about 0, which changes no sum, the pair comes out "
                "right.",
                "Scores may lie below any number you choose; only −float('inf') lies below all of them.",
            )
        if np.all(off(case, result) < 1e-3):
            return Finding(
                "imprecise",
                "The sums are right to a few digits only; float32 holds seven.",
                shown,
                f"The pair is off by {off(case, result).max():.1g} of its size, and other mistakes change "
                "more than that.",
                "Keep large numbers out of the exponent: m1 − m first, and nothing added to it.",
            )
        turned = replace(case, x=case.x[[2, 3, 0, 1]]) if len(case.x) == 4 else None
        if turned is not None:
            (again,) = session.run([turned])
            if again.error is None and not same(again, result):
                return Finding(
                    "not_commutative",
                    "The order matters: merge(1, 2) and merge(2, 1) give different pairs.",
                    shown,
                    "Proven: with the two sides exchanged, other numbers come out.",
                    "Treat both sides alike. " + RESCALE,
                )
        return Finding(
            None,
            "The merged pair is wrong, and no mistake that the check knows explains it.",
            shown,
            next="Work the pair above out by hand: the common maximum, then each sum times exp(its maximum − "
            "the common one).",
        )

    def right_higher_up(self, session: Session, case: Case, result: Result) -> bool:
        """True if only pairs far below 0 are wrong, and are right once their larger maximum is 0."""
        low = np.flatnonzero(wrong(case, result))
        if len(case.x) != 4 or not np.isfinite(case.x).all() or case.x[0::2, low].max() > -1e3:
            return False
        x = case.x[:, low].copy()
        x[0::2] -= x[0::2].max(axis=0)
        moved = replace(case, x=x)
        (again,) = session.run([moved])
        return again.error is None and not wrong(moved, again).any()

    def right_alone(self, session: Session, case: Case, result: Result) -> bool:
        """True if each pair that came out wrong is right as a tile of one lane."""
        if len(case.x) != 4:
            return False
        single = [replace(case, x=case.x[:, [i]].copy()) for i in np.flatnonzero(wrong(case, result))]
        again = session.run(single)
        return len(again) == len(single) and not any(
            r.error or wrong(c, r).any() for c, r in zip(single, again, strict=True)
        )

    def empty_stretches(self, case: Case, result: Result, shown: str) -> Finding:
        """Ordinary pairs are right; something with −∞, a NaN, or a grouping, is not."""
        if case.kind == "nan":
            return Finding(
                "nan_swallowed",
                "A pair that holds a NaN is merged, and the result hides it: d should be NaN.",
                shown,
                "A softmax that turns bad input into plausible numbers hides the fault from whoever looks "
                "for it.",
                "Remove the tl.where or the comparison that replaces the NaN; it then spreads by itself.",
            )
        if np.isneginf(case.x).any():
            nan = any(np.isnan(result.values(i)).any() for i in (0, 1))
            if nan:
                return Finding(
                    "infinity_minus_infinity",
                    "An empty stretch, (−∞, 0), turns the pair into NaN.",
                    shown,
                    "Ordinary pairs come out right. Here an exponent is −∞ − (−∞), which is NaN; NaN times 0 "
                    "is NaN too.",
                    "While the common maximum is −∞ there is nothing to rescale: use 0 in its place in the "
                    "exponents, tl.where(m == -float('inf'), 0.0, m).",
                )
            return Finding(
                "empty_not_neutral",
                "An empty stretch, (−∞, 0), changes the pair that it is merged with, or two of them do not "
                "stay empty.",
                shown,
                "Ordinary pairs come out right.",
                "(−∞, 0) holds nothing: merged with (m, d) it gives (m, d), and with itself (−∞, 0).",
            )
        return Finding(
            "not_associative",
            "Pairs come out right, and several of them merged one after the other do not.",
            shown,
            "tl.reduce merges in any grouping, so what merge returns must be good as its argument again.",
            "Return m and d in this order, both as they are.",
        )


def expected(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(m, d) in float64, in the shape that `merging.either` gives."""
    x = x.astype(np.float64)
    if len(x) in (4, 6):
        m, d = joined(x[0::2], x[1::2])
        return (np.stack([m, m]), np.stack([d, d])) if len(x) == 6 else (m, d)
    return joined(x.T, np.where(np.isneginf(x.T), 0.0, 1.0))


def joined(m: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pair of all stretches along the first axis."""
    top = m.max(axis=0)
    with np.errstate(invalid="ignore"):
        terms = d * np.exp(m - np.where(np.isneginf(top), 0.0, top))
    return top, terms.sum(axis=0)


def tolerance(x: np.ndarray) -> np.ndarray:
    """How far d may be off: some roundings a step, and that of m1 − m, which exp turns into a relative
    error."""
    x = x.astype(np.float64)
    m, d = (x[0::2], x[1::2]) if len(x) in (4, 6) else (x.T, np.where(np.isneginf(x.T), 0.0, 1.0))
    top = m.max(axis=0)
    top = np.where(np.isneginf(top), 0.0, top)
    gap = np.where(np.isneginf(m), 0.0, top - m)
    allowed = (d * np.exp(m - top) * 2.0**-23 * (8 + 2 * len(m) + 2 * gap)).sum(axis=0) + 2.0**-120
    return np.stack([allowed, allowed]) if len(x) == 6 else allowed


def wrong(case: Case, result: Result) -> np.ndarray:
    """A mask of the wrong pairs."""
    m, d = expected(case.x)
    got_m, got_d = (result.values(i).astype(np.float64) for i in (0, 1))
    if case.kind == "nan":  # d carries it on; what m is then makes no difference
        return ~np.isnan(got_d)
    with np.errstate(invalid="ignore"):
        return (got_m != m) | ~(np.abs(got_d - d) <= tolerance(case.x))


def off(case: Case, result: Result) -> np.ndarray:
    """By how much each pair is off, as a share of what is expected."""
    with np.errstate(all="ignore"):
        shares = [np.abs(result.values(i) - want) / np.abs(want) for i, want in enumerate(expected(case.x))]
    return np.nan_to_num(np.maximum(*shares), nan=np.inf)


def one_of_equals(case: Case, result: Result) -> np.ndarray:
    """Where the two maxima are equal, and d is one of the two sums."""
    m1, d1, m2, d2 = case.x
    d = result.values(1)
    return (m1 == m2) & (np.isclose(d, d1) | np.isclose(d, d2))


def least_factor(pairs) -> float | None:
    """The share of the smaller stretch's sum that is added to the other's, if all pairs far apart say one."""
    shares = []
    for case, result in pairs:
        m1, d1, m2, d2 = case.x.astype(np.float64)
        far = np.abs(m1 - m2) > 100
        high, low = np.where(m1 > m2, (d1, d2), (d2, d1))
        shares.append(((result.values(1) - high) / low)[far])
    shares = np.concatenate(shares)
    with np.errstate(all="ignore"):
        alike = len(shares) > 1 and np.ptp(shares) <= 0.1 * shares.min()
    return float(np.median(shares)) if alike and 0 < shares.min() and shares.max() < 0.5 else None


def matches(case: Case, result: Result, guess) -> bool:
    """True if a guess at the mistake predicts the pairs of the case."""
    with np.errstate(all="ignore"):
        for got, predicted in zip((result.values(0), result.values(1)), guess(*case.x), strict=True):
            got, predicted = got.astype(np.float64), predicted.astype(np.float64)
            near = np.abs(got - predicted) <= COARSE * np.abs(predicted) + 1e-30
            if not (near | (got == predicted) | (np.isnan(got) & np.isnan(predicted))).all():
                return False
    return True


def same(one: Result, other: Result) -> bool:
    """True if two results hold about the same pairs."""
    return all(
        np.allclose(
            one.values(i).astype(np.float64), other.values(i).astype(np.float64), 1e-4, 1e-30, equal_nan=True
        )
        for i in (0, 1)
    )


def mistakes():
    """(mistake, the sentence, what to do, the guess): what each mistake gives, from m1, d1, m2, d2."""

    def with_maximum(d):
        return lambda m1, d1, m2, d2: (np.maximum(m1, m2), d(m1, d1, m2, d2, np.maximum(m1, m2)))

    def with_m(m):
        def guess(m1, d1, m2, d2):
            top = m(m1, m2)
            return top, d1 * np.exp(m1 - top) + d2 * np.exp(m2 - top)

        return guess

    def right(m1, d1, m2, d2):
        m = np.maximum(m1, m2)
        return m, d1 * np.exp(m1 - m) + d2 * np.exp(m2 - m)

    exp, one = np.exp, "Only one of the two sums is rescaled to the common maximum."
    taken = "One stretch's sum is taken as 1, as if it were a single score: its own d does not come in."
    return [
        (
            "never_rescaled",
            "The sums are added as they are, though each is measured from its own maximum.",
            RESCALE,
            with_maximum(lambda m1, d1, m2, d2, m: d1 + d2),
        ),
        ("one_side_rescaled", one, RESCALE, with_maximum(lambda m1, d1, m2, d2, m: d1 * exp(m1 - m) + d2)),
        ("one_side_rescaled", one, RESCALE, with_maximum(lambda m1, d1, m2, d2, m: d1 + d2 * exp(m2 - m))),
        (
            "one_side_rescaled",
            "The first sum is rescaled to m2, even where m1 is the larger.",
            RESCALE,
            with_maximum(lambda m1, d1, m2, d2, m: d1 * exp(m1 - m2) + d2),
        ),
        (
            "one_side_rescaled",
            "The second sum is rescaled to m1, even where m2 is the larger.",
            RESCALE,
            with_maximum(lambda m1, d1, m2, d2, m: d1 + d2 * exp(m2 - m1)),
        ),
        (
            "sign",
            "The exponents have the wrong sign: exp(m − m1) makes a sum larger where it should shrink.",
            RESCALE,
            with_maximum(lambda m1, d1, m2, d2, m: d1 * exp(m - m1) + d2 * exp(m - m2)),
        ),
        (
            "exchanged",
            "Each sum is rescaled with the other one's maximum.",
            RESCALE,
            with_maximum(lambda m1, d1, m2, d2, m: d1 * exp(m2 - m) + d2 * exp(m1 - m)),
        ),
        (
            "sum_taken_as_one",
            taken,
            RESCALE,
            with_maximum(lambda m1, d1, m2, d2, m: d1 * exp(m1 - m) + exp(m2 - m)),
        ),
        (
            "sum_taken_as_one",
            taken,
            RESCALE,
            with_maximum(lambda m1, d1, m2, d2, m: exp(m1 - m) + d2 * exp(m2 - m)),
        ),
        (
            "sum_taken_as_one",
            "Neither stretch's sum comes in: each is taken as a single score.",
            RESCALE,
            with_maximum(lambda m1, d1, m2, d2, m: exp(m1 - m) + exp(m2 - m)),
        ),
        (
            "base_two",
            "The factors have base 2, and the sums hold powers of e.",
            "Use tl.exp.",
            with_maximum(lambda m1, d1, m2, d2, m: d1 * np.exp2(m1 - m) + d2 * np.exp2(m2 - m)),
        ),
        (
            "no_maximum",
            "The sums are carried back to exp(m1) and exp(m2), which overflow.",
            RESCALE,
            with_maximum(lambda m1, d1, m2, d2, m: (d1 * exp(m1) + d2 * exp(m2)) / exp(m)),
        ),
        (
            "no_maximum",
            "The sums are carried back to exp(m1) and exp(m2), which overflow.",
            RESCALE,
            with_maximum(lambda m1, d1, m2, d2, m: (d1 * exp(m1) + d2 * exp(m2)) * exp(-m)),
        ),
        (
            "no_maximum",
            "The sums are multiplied by exp(m1) and exp(m2); the maximum is not taken off.",
            RESCALE,
            with_maximum(lambda m1, d1, m2, d2, m: d1 * exp(m1) + d2 * exp(m2)),
        ),
        (
            "larger_sum",
            "The larger of the two sums is kept, and the other one is lost.",
            RESCALE,
            with_maximum(lambda m1, d1, m2, d2, m: np.maximum(d1, d2)),
        ),
        (
            "larger_sum",
            "The sum of the stretch with the larger maximum is kept, and the other one is lost.",
            RESCALE,
            with_maximum(lambda m1, d1, m2, d2, m: np.where(m1 >= m2, d1, d2)),
        ),
        (
            "sums_multiplied",
            "The rescaled sums are multiplied; they are to be added.",
            RESCALE,
            with_maximum(lambda m1, d1, m2, d2, m: d1 * exp(m1 - m) * d2 * exp(m2 - m)),
        ),
        (
            "maxima_added",
            "m is m1 + m2; the maximum of both stretches is the larger one.",
            LARGER,
            with_m(lambda m1, m2: m1 + m2),
        ),
        (
            "maxima_added",
            "m is m1 + m2; the maximum of both stretches is the larger one.",
            LARGER,
            lambda m1, d1, m2, d2: (m1 + m2, right(m1, d1, m2, d2)[1]),
        ),
        (
            "maxima_added",
            "m is m1 + m2, and d is d1 + d2: neither is how two stretches join.",
            LARGER + " " + RESCALE,
            lambda m1, d1, m2, d2: (m1 + m2, d1 + d2),
        ),
        ("minimum", "m is the smaller of the two maxima.", LARGER, with_m(np.minimum)),
        (
            "minimum",
            "m is the smaller of the two maxima.",
            LARGER,
            lambda m1, d1, m2, d2: (np.minimum(m1, m2), right(m1, d1, m2, d2)[1]),
        ),
        ("not_commutative", "m is m2, whichever is larger.", LARGER, with_m(lambda m1, m2: m2)),
        (
            "not_commutative",
            "m is m2, whichever is larger.",
            LARGER,
            lambda m1, d1, m2, d2: (m2, right(m1, d1, m2, d2)[1]),
        ),
        ("not_commutative", "m is m1, whichever is larger.", LARGER, with_m(lambda m1, m2: m1)),
        (
            "not_commutative",
            "m is m1, whichever is larger.",
            LARGER,
            lambda m1, d1, m2, d2: (m1, right(m1, d1, m2, d2)[1]),
        ),
        (
            "swapped",
            "The pair comes back in the wrong order: (d, m) where (m, d) is asked for.",
            "End it with `return m, d`.",
            lambda m1, d1, m2, d2: right(m1, d1, m2, d2)[::-1],
        ),
    ]


def show(case: Case, result: Result) -> str:
    """The first wrong pair: what went in, the expected and the got."""
    bad = np.argwhere(wrong(case, result))[0]
    (m, d), got = expected(case.x), [result.values(i) for i in (0, 1)]
    at = tuple(int(i) for i in bad)
    lines = [f"The case: {case.about}."]
    if len(case.x) in (4, 6):
        for i in range(len(case.x) // 2):
            lines.append(f"  (m{i + 1}, d{i + 1})  {numbers(case.x[2 * i : 2 * i + 2, at[-1]])}")
        if len(case.x) == 6:
            lines[0] = (
                f"The case: three pairs, merged as {('(1 with 2) with 3', '1 with (2 with 3)')[at[0]]}."
            )
    else:
        lines.append(f"  row       {numbers(case.x[at[0]], 15)}")
    pairs = [m[at], d[at]], [got[0][at], got[1][at]]
    wanted, came = map(numbers, pairs)
    if wanted == came:  # the difference is further back
        wanted, came = (f"[{one[0]:.9g}, {one[1]:.9g}]".replace("-", "−") for one in pairs)
    lines += [f"  expected  {wanted}", f"  got       {came}"]
    return "\n".join(lines)


EXERCISE = OnlineMerge()
