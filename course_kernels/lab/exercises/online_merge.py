"""Exercise: the merge of two (maximum, sum of exponentials) pairs, as tl.reduce uses it."""

import importlib
from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from course_kernels.lab.check.errors import check_error
from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.finding import Finding, Proven, Seen
from course_kernels.lab.check.messages import rows
from course_kernels.lab.check.mistakes import Mistake, Probe
from course_kernels.lab.check.values import Trial, ValueExercise
from course_kernels.lab.core.wording import number, numbers
from course_kernels.lab.run.cases import Case

INF = np.inf
RESCALE = "Both sums must be measured from the common maximum: d1 · exp(m1 − m) + d2 · exp(m2 − m)."
LARGER = "m is tl.maximum(m1, m2)."
ORDINARY = "Ordinary pairs come out right."


HARNESS = "course_kernels.lab.exercises.broken.merging"


def either(merge, x):
    """How the learner's merge is called: inside kernels that the checker brings along."""
    return importlib.import_module(HARNESS).either(merge, x)


def run(session, cases: list[Case]) -> list:
    # Imported now: beside the learner's code nothing of the course can be.
    session.adapt = importlib.import_module(HARNESS).either
    return session.run(cases)


# Cases: x holds the rows m1, d1, m2, d2, and m3, d3 for triples; else it is rows of scores to reduce


def cases(rng: np.random.Generator) -> list[Case]:
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


def stretches(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(m, d) of what is merged, along the first axis, in float64."""
    x = x.astype(np.float64)
    return (x[0::2], x[1::2]) if len(x) in (4, 6) else (x.T, np.where(np.isneginf(x.T), 0.0, 1.0))


def oracle(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """(m, d) in float64, in the shape that `merging.either` gives."""
    m, d = stretches(case.x)
    top = m.max(axis=0)
    with np.errstate(invalid="ignore"):
        total = (d * np.exp(m - np.where(np.isneginf(top), 0.0, top))).sum(axis=0)
    return (np.stack([top, top]), np.stack([total, total])) if len(case.x) == 6 else (top, total)


def tolerance(x: np.ndarray) -> np.ndarray:
    """How far d may be off: some roundings a step, and that of m1 − m, which exp magnifies."""
    m, d = stretches(x)
    top = m.max(axis=0)
    top = np.where(np.isneginf(top), 0.0, top)
    gap = np.where(np.isneginf(m), 0.0, top - m)
    allowed = (d * np.exp(m - top) * 2.0**-23 * (8 + 2 * len(m) + 2 * gap)).sum(axis=0) + 2.0**-120
    return np.stack([allowed, allowed]) if len(x) == 6 else allowed


def wrong(case: Case, outputs) -> np.ndarray:
    """A mask of the wrong pairs."""
    (m, d), (got_m, got_d) = oracle(case), outputs
    if case.kind == "nan":  # d carries it on; what m is then makes no difference
        return ~np.isnan(got_d)
    with np.errstate(invalid="ignore"):
        return (got_m != m) | ~(np.abs(got_d - d) <= tolerance(case.x))


def check_run(trial: Trial) -> None:
    check_error(trial.facts, trial.case, trial.exercise)
    if not trial.facts.intact:
        raise Finding(
            "checker_changed",
            "The file replaces a part of Triton's interpreter, and the check counts there.",
            next="Leave Triton as it is and write the merge.",
        )


def show(trial: Trial) -> str:
    """The first wrong pair: what went in, the expected and the got."""
    x, at = trial.case.x, tuple(int(i) for i in np.argwhere(trial.wrong)[0])
    lines = [f"The case: {trial.case.about}."]
    if len(x) in (4, 6):
        for i in range(len(x) // 2):
            lines.append(f"  (m{i + 1}, d{i + 1})  {numbers(x[2 * i : 2 * i + 2, at[-1]])}")
    else:
        lines.append(f"  row       {numbers(x[at[0]], 15)}")
    if len(x) == 6:
        lines[0] = f"The case: three pairs, merged as {('(1 with 2) with 3', '1 with (2 with 3)')[at[0]]}."
    wanted, came = [one[at] for one in trial.expected], [one[at] for one in trial.values]
    digits = 9 if numbers(wanted) == numbers(came) else 5  # the difference may be further back
    lines += [f"  expected  {numbers(wanted, digits=digits)}", f"  got       {numbers(came, digits=digits)}"]
    return "\n".join(lines)


def earned(trials: list[Trial]) -> list[str]:
    pairs = sum(t.case.x.shape[1] for t in trials if len(t.case.x) == 4)
    triples, scores = trials[-2].case.x.shape[1], len(trials[-1].case.x)
    return [
        f"{pairs} pairs right to float32's last digits, with (−∞, 0) on either side and on both.",
        f"{triples} triples: the same pair from both groupings. {scores} rows reduced with tl.reduce, lane "
        "by lane.",
    ]


def unexplained(trial: Trial, shown: str) -> Finding:
    return Finding(
        None,
        "The merged pair is wrong, and no mistake that the check knows explains it.",
        shown,
        next="Work the pair above out by hand: the common maximum, then each sum times exp(its maximum − the "
        "common one).",
    )


# What the rows look at


def is_ordinary(trial: Trial) -> bool:
    """True for pairs of finite numbers."""
    return len(trial.case.x) == 4 and not trial.facts.error and bool(np.isfinite(trial.case.x).all())


def ordinary(trial: Trial) -> list[Trial]:
    return [t for t in trial.trials if is_ordinary(t)]


def ordinary_right(trial: Trial) -> bool:
    return all(t.right for t in ordinary(trial))


def is_empty(trial: Trial) -> bool:
    """True if ordinary pairs are right, and all that is wrong holds an empty stretch."""
    x = trial.case.x.T if trial.case.kind == "rows" else trial.case.x
    x = x[:, np.atleast_2d(trial.wrong).any(axis=0)]
    return ordinary_right(trial) and bool(np.isneginf(x).any(axis=0).all())


def lanes_alone(trial: Trial) -> list[Case]:
    """Each pair that came out wrong, as a tile of one lane."""
    if len(trial.case.x) != 4:
        return []
    return [replace(trial.case, x=trial.case.x[:, [i]].copy()) for i in np.flatnonzero(trial.wrong)]


def moved_up(trial: Trial) -> list[Case]:
    """The wrong pairs, where only pairs far below 0 are wrong, with their larger maximum at 0."""
    low = np.flatnonzero(trial.wrong)
    if not is_ordinary(trial) or trial.case.x[0::2, low].max() > -1e3:
        return []
    x = trial.case.x[:, low].copy()
    x[0::2] -= x[0::2].max(axis=0)
    return [replace(trial.case, x=x)]


def only_equal_maxima(trial: Trial) -> bool:
    """True if all ordinary pairs that are wrong have equal maxima, and one of the two sums for d."""
    for one in ordinary(trial):
        m1, d1, m2, d2 = one.case.x
        lost = (m1 == m2) & (np.isclose(one.values[1], d1) | np.isclose(one.values[1], d2))
        if not lost[one.wrong].all():
            return False
    return True


def least_factor(trial: Trial) -> dict | None:
    """The share of the smaller stretch's sum that is added to the other's, if all pairs far apart say one."""
    shares = []
    for one in ordinary(trial):
        m1, d1, m2, d2 = one.case.x.astype(np.float64)
        high, low = np.where(m1 > m2, (d1, d2), (d2, d1))
        shares.append(((one.values[1] - high) / low)[np.abs(m1 - m2) > 100])
    shares = np.concatenate(shares)
    with np.errstate(all="ignore"):
        alike = len(shares) > 1 and np.ptp(shares) <= 0.1 * shares.min()
    if not alike or not 0 < shares.min() or not shares.max() < 0.5:
        return None
    least = float(np.median(shares))
    return {"least": number(least, 2), "exponent": number(np.log(least), 3)}


def rough(trial: Trial) -> dict | None:
    """By how much each pair is off, if that is little."""
    with np.errstate(all="ignore"):
        off = [np.abs(g - w) / np.abs(w) for g, w in zip(trial.values, trial.expected, strict=True)]
    off = np.nan_to_num(np.maximum(*off), nan=np.inf)
    return {"off": f"{off.max():.1g}"} if np.all(off < 1e-3) else None


def order_matters(trial: Trial) -> bool:
    """True if the two sides exchanged give another pair."""
    if len(trial.case.x) != 4:
        return False
    (again,) = trial.run(replace(trial.case, x=trial.case.x[[2, 3, 0, 1]]))
    return again.facts.error is None and not all(
        np.allclose(one, other, 1e-4, 1e-30, equal_nan=True)
        for one, other in zip(again.values, trial.values, strict=True)
    )


def arithmetic(case: Case) -> SimpleNamespace:
    """What the predictions are made of; d is the right sum where m is the larger maximum."""
    m1, d1, m2, d2 = case.x
    m = np.maximum(m1, m2)
    d = d1 * np.exp(m1 - m) + d2 * np.exp(m2 - m)
    return SimpleNamespace(m1=m1, d1=d1, m2=m2, d2=d2, m=m, d=d)


def sums(name: str, what: str, d, advice: str = RESCALE) -> Mistake:
    """A row for a sum that is wrong, while m is right."""
    return Mistake(name, what, advice, lambda p: (p.m, d(p)))


def maxima(name: str, what: str, m) -> tuple[Mistake, Mistake]:
    """Rows for an m that is wrong, with both sums measured from it, or from the right one."""

    def measured_from_it(p):
        return m(p), p.d1 * np.exp(p.m1 - m(p)) + p.d2 * np.exp(p.m2 - m(p))

    return Mistake(name, what, LARGER, measured_from_it), Mistake(name, what, LARGER, lambda p: (m(p), p.d))


exp = np.exp
ONE_SIDE = "Only one of the two sums is rescaled to the common maximum."
AS_ONE = "One stretch's sum is taken as 1, as if it were a single score: its own d does not come in."
BACK = "The sums are carried back to exp(m1) and exp(m2), which overflow."
MISTAKES = (
    Mistake(
        "nan_swallowed",
        "A pair that holds a NaN is merged, and the result hides it: d should be NaN.",
        "Remove the tl.where or the comparison that replaces the NaN; it then spreads by itself.",
        when=lambda t: ordinary_right(t) and t.case.kind == "nan",
        why="A softmax that turns bad input into plausible numbers hides the fault from whoever looks for "
        "it.",
    ),
    Mistake(
        "infinity_minus_infinity",
        "An empty stretch, (−∞, 0), turns the pair into NaN.",
        "While the common maximum is −∞ there is nothing to rescale: use 0 in its place in the exponents, "
        "tl.where(m == -float('inf'), 0.0, m).",
        when=lambda t: is_empty(t) and any(np.isnan(one).any() for one in t.values),
        why=f"{ORDINARY} Here an exponent is −∞ − (−∞), which is NaN; NaN times 0 is NaN too.",
    ),
    Mistake(
        "empty_not_neutral",
        "An empty stretch, (−∞, 0), changes the pair that it is merged with, or two of them do not stay "
        "empty.",
        "(−∞, 0) holds nothing: merged with (m, d) it gives (m, d), and with itself (−∞, 0).",
        when=is_empty,
        why=ORDINARY,
    ),
    Mistake(
        "not_associative",
        "Pairs come out right, and several of them merged one after the other do not.",
        "Return m and d in this order, both as they are.",
        when=ordinary_right,
        why="tl.reduce merges in any grouping, so what merge returns must be good as its argument again.",
    ),
    Mistake(
        "branch_on_tile",
        "merge is called on whole tiles too, and an if, or Python's max, cannot decide for all lanes at "
        "once.",
        "Let each lane choose: tl.maximum(m1, m2), and tl.where(condition, a, b).",
        probes=(Probe(lanes_alone),),
        why="this pair on its own, as a tile of one lane, comes out right.",
    ),
    sums(
        "never_rescaled",
        "The sums are added as they are, though each is measured from its own maximum.",
        lambda p: p.d1 + p.d2,
    ),
    sums("one_side_rescaled", ONE_SIDE, lambda p: p.d1 * exp(p.m1 - p.m) + p.d2),
    sums("one_side_rescaled", ONE_SIDE, lambda p: p.d1 + p.d2 * exp(p.m2 - p.m)),
    sums(
        "one_side_rescaled",
        "The first sum is rescaled to m2, even where m1 is the larger.",
        lambda p: p.d1 * exp(p.m1 - p.m2) + p.d2,
    ),
    sums(
        "one_side_rescaled",
        "The second sum is rescaled to m1, even where m2 is the larger.",
        lambda p: p.d1 + p.d2 * exp(p.m2 - p.m1),
    ),
    sums(
        "sign",
        "The exponents have the wrong sign: exp(m − m1) makes a sum larger where it should shrink.",
        lambda p: p.d1 * exp(p.m - p.m1) + p.d2 * exp(p.m - p.m2),
    ),
    sums(
        "exchanged",
        "Each sum is rescaled with the other one's maximum.",
        lambda p: p.d1 * exp(p.m2 - p.m) + p.d2 * exp(p.m1 - p.m),
    ),
    sums("sum_taken_as_one", AS_ONE, lambda p: p.d1 * exp(p.m1 - p.m) + exp(p.m2 - p.m)),
    sums("sum_taken_as_one", AS_ONE, lambda p: exp(p.m1 - p.m) + p.d2 * exp(p.m2 - p.m)),
    sums(
        "sum_taken_as_one",
        "Neither stretch's sum comes in: each is taken as a single score.",
        lambda p: exp(p.m1 - p.m) + exp(p.m2 - p.m),
    ),
    sums(
        "base_two",
        "The factors have base 2, and the sums hold powers of e.",
        lambda p: p.d1 * np.exp2(p.m1 - p.m) + p.d2 * np.exp2(p.m2 - p.m),
        "Use tl.exp.",
    ),
    sums("no_maximum", BACK, lambda p: (p.d1 * exp(p.m1) + p.d2 * exp(p.m2)) / exp(p.m)),
    sums("no_maximum", BACK, lambda p: (p.d1 * exp(p.m1) + p.d2 * exp(p.m2)) * exp(-p.m)),
    sums(
        "no_maximum",
        "The sums are multiplied by exp(m1) and exp(m2); the maximum is not subtracted.",
        lambda p: p.d1 * exp(p.m1) + p.d2 * exp(p.m2),
    ),
    sums(
        "larger_sum",
        "The larger of the two sums is kept, and the other one is lost.",
        lambda p: np.maximum(p.d1, p.d2),
    ),
    sums(
        "larger_sum",
        "The sum of the stretch with the larger maximum is kept, and the other one is lost.",
        lambda p: np.where(p.m1 >= p.m2, p.d1, p.d2),
    ),
    sums(
        "sums_multiplied",
        "The rescaled sums are multiplied; they are to be added.",
        lambda p: p.d1 * exp(p.m1 - p.m) * p.d2 * exp(p.m2 - p.m),
    ),
    *maxima(
        "maxima_added",
        "m is m1 + m2; the maximum of both stretches is the larger one.",
        lambda p: p.m1 + p.m2,
    ),
    Mistake(
        "maxima_added",
        "m is m1 + m2, and d is d1 + d2: neither is how two stretches join.",
        f"{LARGER} {RESCALE}",
        lambda p: (p.m1 + p.m2, p.d1 + p.d2),
    ),
    *maxima("minimum", "m is the smaller of the two maxima.", lambda p: np.minimum(p.m1, p.m2)),
    *maxima("not_commutative", "m is m2, whichever is larger.", lambda p: p.m2),
    *maxima("not_commutative", "m is m1, whichever is larger.", lambda p: p.m1),
    Mistake(
        "swapped",
        "The pair comes back in the wrong order: (d, m) where (m, d) is asked for.",
        "End it with `return m, d`.",
        lambda p: (p.d, p.m),
    ),
    Mistake(
        "equal_maxima",
        "Where the two maxima are equal, one of the sums is lost.",
        f"With m1 = m2 both stretches count in full: d1 + d2. {RESCALE}",
        when=only_equal_maxima,
        why="of the ordinary pairs, those of equal maxima come out wrong and no others.",
        kind=Seen,
    ),
    Mistake(
        "exponent_clipped",
        "The stretch with the smaller maximum always counts for about ‹least› of its sum or more, however "
        "far below it lies.",
        "Leave m1 − m and m2 − m as they are: exp of a very low number is 0, and that is right.",
        when=least_factor,
        why="in every pair whose maxima are more than 100 apart, d is too large by ‹least› times the other "
        "sum. Likely the exponent is kept above ‹exponent›.",
        kind=Seen,
    ),
    Mistake(
        "floor_for_infinity",
        "Pairs far below 0 come out wrong: a very low number stands somewhere in place of −∞.",
        "Scores may lie below any number you choose; only -float('inf') lies below all of them.",
        probes=(Probe(moved_up),),
        why="with both maxima moved up to about 0, which changes no sum, the pair comes out right.",
    ),
    Mistake(
        "imprecise",
        "The sums are right to a few digits only; float32 holds seven.",
        "Keep large numbers out of the exponent: m1 − m first, and nothing added to it.",
        when=rough,
        why="The pair is off by ‹off› of its size, and other mistakes change more than that.",
    ),
    Mistake(
        "not_commutative",
        "The order matters: merge(1, 2) and merge(2, 1) give different pairs.",
        f"Treat both sides alike. {RESCALE}",
        when=order_matters,
        why="with the two sides exchanged, other numbers come out.",
        kind=Proven,
    ),
)


EXERCISE = ValueExercise(
    name="online_merge",
    notebook="04_online_max_and_sum",
    entry="merge",
    brief=(
        "merge(m1, d1, m2, d2) → (m, d), a @triton.jit function: maximum and sum of exponentials of two "
        "stretches of a row, joined."
    ),
    adapt=either,
    adapt_name=f"{HARNESS}:either",
    compile_calls=(
        {"shape": [4, 100], "dtype": "float32"},
        {"shape": [3, 1000], "dtype": "float32"},
    ),
    refusals={
        "not_jit": (
            "merge is a plain Python function, and tl.reduce takes a @triton.jit function.",
            "Write @triton.jit on the line above def merge.",
        )
    },
    translations=rows("""
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
"""),
    cases=cases,
    run=run,
    oracle=oracle,
    wrong=wrong,
    check_run=check_run,
    show=show,
    earned=earned,
    unexplained=unexplained,
    arithmetic=arithmetic,
    telling=is_ordinary,
    coarse=2.0**-14,
    where="On every ordinary pair",
    mistakes=MISTAKES,
    hints=(
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
            "m = tl.maximum(m1, m2); anchor = tl.where(m == -float('inf'), 0.0, m); "
            "return m, d1 * tl.exp(m1 - anchor) + d2 * tl.exp(m2 - anchor).",
        ),
    ),
    lesson=(
        "Any grouping and any order give the same pair, and (−∞, 0) changes nothing. That is all a reduction "
        "asks for, so the same three lines join lanes inside tl.reduce, tiles along a row, programs that "
        "share a row, and GPUs that share a model."
    ),
)
