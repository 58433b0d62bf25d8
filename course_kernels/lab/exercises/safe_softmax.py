"""Exercise: softmax in PyTorch steps, safe for scores of any size."""

from dataclasses import replace

import numpy as np

from course_kernels.lab.check import steps as pytorch
from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.finding import Evidence, Finding, Likely, Proven
from course_kernels.lab.check.generic import FAULT, HIDDEN, hidden_nan
from course_kernels.lab.check.messages import rows
from course_kernels.lab.check.mistakes import Mistake
from course_kernels.lab.check.shown import SHOWN, excerpt
from course_kernels.lab.check.values import Trial, ValueExercise, finding, predicted
from course_kernels.lab.core.wording import number, numbers, side_by_side
from course_kernels.lab.exercises.inputs import large, random
from course_kernels.lab.exercises.softmax import EPSILON_ADDED, INF, distance, softmax64
from course_kernels.lab.run.cases import Case

SMALL = ((1, 1), (1, 2), (2, 1), (1, 3), (2, 2), (2, 3), (3, 3))  # shapes tried when looking for a small case


# Cases, and what is right


def cases(rng: np.random.Generator) -> list[Case]:
    odd = int(rng.choice([29, 37, 53, 67]))
    marked = random(rng, 7, odd)
    marked[0, rng.integers(odd)] = np.nan
    marked[5, 0] = marked[6, -1] = np.nan
    marked[1, rng.integers(odd)] = INF
    marked[2, :] = -INF
    marked[3, rng.permutation(odd)[: odd // 2]] = -INF
    apart = random(rng, 4, odd) + np.array([[200.0], [-200.0], [0.0], [-3e4]], np.float32)
    spread = np.stack([np.linspace(-1e4, 0, odd), np.linspace(60, -40, odd), np.linspace(-90, 85, odd)])
    low = np.stack([np.full(odd, -1e30), np.full(odd, -1e38 * rng.uniform(2.5, 3.3))]).astype(np.float32)
    half = random(rng, 4, 60) + np.array([[0.0], [30.0], [-40.0], [300.0]], np.float32)
    return [
        Case("plain", "random numbers around 0", random(rng, 3, odd)),
        Case("square", "a square matrix of random numbers", random(rng, 6, 6)),
        Case("high", "large scores, where exp(x) overflows", random(rng, 2, odd, 2.0, 200.0)),
        Case("low", "scores far below 0, where exp(x) underflows", random(rng, 2, odd, 2.0, -300.0)),
        Case("apart", "rows that lie far from each other", apart),
        Case("spread", "rows whose scores lie far from each other", spread.astype(np.float32)),
        Case("lowest", "rows at −1e30 and below −2e38", low),
        Case("again", "other numbers in a shape that came before", random(rng, 3, odd)),
        Case("row", "a single row", random(rng, 1, odd)),
        Case("column", "a single column", random(rng, 5, 1, 50.0)),
        Case("gap", "rows that do not follow each other directly in memory", random(rng, 4, odd), gap=5),
        Case("half", "float16", half.astype(np.float16)),
        Case("marked", "rows with a NaN, with +∞, with −∞ only, with some −∞, and a plain one", marked),
        *large(rng, (5_000, 40_000), rows=(100, 300)),
    ]


def tolerance(case: Case, wanted: np.ndarray) -> np.ndarray:
    """How far each element may be off.

    float32: some roundings, and that of x − m, which exp turns into a relative error. float16 rounds after
    each of the four steps if PyTorch is left to it, so the same with its 11 bits; a numerator below 2⁻¹⁴
    keeps fewer.
    """
    wanted, columns = np.nan_to_num(wanted), case.x.shape[1]
    if columns == 1:  # exp(0) / exp(0): there is nothing to round
        return np.zeros_like(wanted)
    if case.x.dtype == np.float16:
        return wanted * 2.0**-11 * (8 + 2 * distance(case.x)) + 2.0**-23 + wanted * columns * 2.0**-24
    return wanted * 2.0**-23 * (16 + 2 * distance(case.x)) + 2.0**-125


def wrong(case: Case, outputs) -> np.ndarray:
    """A mask of the wrong elements."""
    wanted, got = softmax64(case.x), outputs[0]
    with np.errstate(invalid="ignore"):
        near = np.abs(got - wanted) <= tolerance(case, wanted)
    return ~(near | (np.isnan(got) & np.isnan(wanted)))


def check_run(trial: Trial) -> None:
    """The usual, and sizes that do not match: the square matrix shows which dimension was dropped."""
    error = trial.facts.error
    if error and not error["rule"] and "must match the size" in error["text"]:
        check_keepdim(trial, error)
    pytorch.check_run(trial)


def check_keepdim(trial: Trial, error: dict) -> None:
    """The square matrix, where the sizes match, shows which dimension was dropped."""
    square = next(c for c in cases(np.random.default_rng(0)) if c.kind == "square")
    (again,) = trial.run(square)
    for row in MISTAKES if again.facts.error is None and pytorch.whole(again) else ():
        if row.name == "keepdim_forgotten" and predicted(row, [again]):
            line = f"line {error['line']}: `{error['source']}`." if error["line"] else ""
            said = error["text"].splitlines()[0]
            why = Proven(
                f"on a {square.shape} matrix, where the sizes happen to match, nothing raises, and the "
                "values are wrong in just this way."
            )
            at = f"The case: x is {trial.case.shape}, {trial.case.about}; {line} PyTorch says: {said}"
            raise Finding(row.name, row.what, at, why, row.next)


# The text of a case


def smallest(trial: Trial) -> Trial:
    """A corner of the case that is still wrong, its wrong row first; or the case."""
    case, row = trial.case, int(trial.bad[0])
    order = [row, *(r for r in range(trial.rows) if r != row)]
    corners = [
        replace(case, x=case.x[order][:r, :c].copy(), gap=0, about=f"cut from: {case.about}")
        for r, c in SMALL
        if r <= case.x.shape[0] and c <= case.x.shape[1]
    ]
    wrong = (t for t in trial.run(corners) if t.facts.error is None and pytorch.whole(t) and t.wrong.any())
    return next(wrong, trial)


def show(trial: Trial) -> str:
    """The case, a row of it, the expected and the got."""
    case, row = trial.case, int(trial.bad[0])
    wanted, got, wrong = trial.wanted[row], trial.facts.values(0)[row], trial.wrong[row]
    start = excerpt(case.x[row], wrong, wanted, got)
    cut = slice(start, start + SHOWN)
    lines = [f"The smallest case found: x is {case.shape} {trial.dtype}, {case.about}; row {row}:"]
    if trial.rows > 1:
        other = 1 if row == 0 else 0
        lines.append(f"  row {other} of x {numbers(case.x[other][cut])}")
    lines.append(f"  x          {numbers(case.x[row][cut])}" + (f" from column {start}" if start else ""))
    expected, got = side_by_side(wanted[cut], got[cut], wrong[cut])
    return "\n".join([*lines, f"  expected   {expected}", f"  got        {got}"])


def unexplained(trial: Trial, shown: str) -> Finding:
    """Not PyTorch's work, or a mistake that this input alone shows, or none that is known."""
    pytorch.check_pytorch(trial)
    if trial.dtype == "float32" and np.isfinite(trial.got).all():
        for row in MISTAKES:
            if row.predicts and predicted(row, [trial]):
                return finding(row, {}, shown, "Others are right; on this input")
    trials = [t for t in trial.trials if not t.facts.error and pytorch.whole(t)]
    poor = [t.case.about for t in trials if not t.right]
    more = f", and for {len(poor) - 3} more" if len(poor) > 3 else ""
    known = f"Right for {len(trials) - len(poor)} of {len(trials)} inputs; "
    known += f"wrong for {'; for '.join(poor[:3])}{more}."
    advice = (
        "Take the small case above into a cell; print maximum, numerator and denominator with their shapes."
    )
    what = "The values are wrong, and no mistake that the check knows explains them."
    return Finding(None, what, shown, Evidence(known), advice)


# Mistakes that leave a known output: what each gives on x, in float32; None where it would raise


def steps(shift=None, divisor=None, raised=np.exp):
    """The four steps with another thing subtracted, another divisor, or another exponential."""

    def predicts(x):
        numerator = raised(x - (shift or row_top)(x))
        return numerator / (divisor(numerator, x) if divisor else numerator.sum(axis=1, keepdims=True))

    return predicts


def by_mean(x):
    """A mean is rounded, each library in its own way. In a row of huge scores all hangs on that; in one of
    large scores, all but what overflows or vanishes.
    """
    largest = np.abs(x).max(axis=1, keepdims=True)
    guess = steps(lambda x: x.mean(axis=1, keepdims=True))(x)
    return np.ma.array(guess, mask=(largest > 1e6) | (largest > 1e3) & np.isfinite(guess) & (guess != 0))


def nothing(x):
    return np.float32(0)


def row_top(x):
    return x.max(axis=1, keepdims=True)


def matrix_top(x):
    return x.max()


def columns_top(x):
    return x.max(axis=0, keepdims=True)


def columns_sum(e, x):
    return e.sum(axis=0, keepdims=True)


def dropped(what: str, shift=None, divisor=None) -> Mistake:
    """keepdim=True forgotten: sizes match in a square matrix, a single row or a single column only."""
    guess = steps(shift, divisor)
    return Mistake(
        "keepdim_forgotten",
        f"Without keepdim=True, {what} has the shape (rows,), and PyTorch lines it up with the columns.",
        "Write keepdim=True: the shape is then (rows, 1), one number beside each row.",
        lambda x: guess(x) if len({*x.shape, 1}) == 2 else None,
    )


def flat_top(x):
    return x.max(axis=1)


def flat_sum(e, x):
    return e.sum(axis=1)


DIM = "x.amax(dim=1, keepdim=True) and numerator.sum(dim=1, keepdim=True) run along the rows."
OWN = "Each row has a maximum of its own: x.amax(dim=1, keepdim=True)."
MAXIMUM = "Subtract x.amax(dim=1, keepdim=True) first; it changes nothing but the size of the exponents."
DIVIDE = "Divide by numerator.sum(dim=1, keepdim=True)."
PREDICTED = (
    Mistake(
        "no_maximum",
        "Nothing is subtracted from the scores before the exponential, so it overflows, or its sum is 0.",
        MAXIMUM,
        steps(nothing),
    ),
    Mistake(
        "no_maximum",
        "Nothing is subtracted from the scores before the exponential, so the sum under the logarithm "
        "overflows, or is 0.",
        MAXIMUM,
        lambda x: np.exp(x - np.log(np.exp(x).sum(axis=1, keepdims=True))),
    ),
    Mistake(
        "maximum_of_abs",
        "The largest |x| is subtracted, where the largest x should be: a row of large negative scores is "
        "pushed further down, until every exponential is 0.",
        OWN,
        steps(lambda x: np.abs(x).max(axis=1, keepdims=True)),
    ),
    Mistake(
        "minimum",
        "The row's minimum is subtracted, so the largest exponent grows where it should be 0.",
        OWN,
        steps(lambda x: x.min(axis=1, keepdims=True)),
    ),
    Mistake(
        "mean_taken_off",
        "The row's mean is subtracted: the largest score may still lie far above it.",
        OWN,
        by_mean,
    ),
    Mistake(
        "sum_taken_off",
        "The row's sum is subtracted, where its maximum should be.",
        OWN,
        steps(lambda x: x.sum(axis=1, keepdims=True)),
    ),
    Mistake(
        "first_element",
        "The row's first element is subtracted, and larger ones may follow.",
        OWN,
        steps(lambda x: x[:, :1]),
    ),
    Mistake(
        "maximum_starts_at_zero",
        "The maximum never comes out below 0: a row of large negative scores keeps them.",
        OWN,
        steps(lambda x: np.maximum(x.max(axis=1, keepdims=True), np.float32(0))),
    ),
    Mistake(
        "global_max",
        "One maximum is taken for the whole matrix: the rows far below it come out as exp(x − m) = 0, and so "
        "does their sum.",
        OWN,
        steps(matrix_top),
    ),
    Mistake(
        "global_max",
        "One maximum and one sum are taken for the whole matrix.",
        DIM,
        steps(matrix_top, lambda e, x: e.sum()),
    ),
    Mistake(
        "global_sum",
        "One sum is taken for the whole matrix, so a row no longer sums to 1.",
        DIM,
        steps(None, lambda e, x: e.sum()),
    ),
    Mistake(
        "maximum_wrong_dim",
        "The maximum runs down the columns (dim=0) instead of along the rows.",
        DIM,
        steps(columns_top),
    ),
    Mistake(
        "sum_wrong_dim",
        "The sum runs down the columns (dim=0) instead of along the rows.",
        DIM,
        steps(None, columns_sum),
    ),
    Mistake(
        "wrong_axis",
        "Maximum and sum run down the columns (dim=0) instead of along the rows.",
        DIM,
        steps(columns_top, columns_sum),
    ),
    Mistake(
        "wrong_axis",
        "The sum runs down the columns (dim=0), and one maximum serves the whole matrix.",
        DIM,
        steps(matrix_top, columns_sum),
    ),
    Mistake(
        "wrong_axis",
        "The sum runs down the columns (dim=0), and nothing is subtracted.",
        DIM,
        steps(nothing, columns_sum),
    ),
    dropped("the maximum", flat_top),
    dropped("the sum", None, flat_sum),
    dropped("each of maximum and sum", flat_top, flat_sum),
    dropped("the sum", matrix_top, flat_sum),
    dropped("the sum", nothing, flat_sum),
    Mistake(
        "not_divided",
        "The numerators are right, but nothing divides them by their sum.",
        DIVIDE,
        steps(None, lambda e, x: np.float32(1)),
    ),
    Mistake(
        "mean",
        "The numerators are divided by the number of columns, not by their sum.",
        DIVIDE,
        steps(None, lambda e, x: np.float32(x.shape[1])),
    ),
    Mistake(
        "sum_of_inputs",
        "The numerators are divided by the sum of x, not by the sum of the exponentials.",
        "Sum what torch.exp gave.",
        steps(None, lambda e, x: x.sum(axis=1, keepdims=True)),
    ),
    Mistake(
        "divided_by_maximum",
        "The numerators are divided by the largest of them, which is 1, not by their sum.",
        DIVIDE,
        steps(None, lambda e, x: e.max(axis=1, keepdims=True)),
    ),
    Mistake(
        "no_exponential",
        "x − m is divided by its sum: the exponential is missing.",
        "Take torch.exp of x − m.",
        steps(None, None, lambda v: v),
    ),
    Mistake(
        "base_two",
        "The exponential has base 2: 2^(x − m) stands where e^(x − m) should.",
        "Use torch.exp.",
        steps(None, None, np.exp2),
    ),
    Mistake(
        "sign",
        "The exponent has the wrong sign: m − x stands where x − m should.",
        "Take torch.exp(x - maximum).",
        steps(None, None, lambda v: np.exp(-v)),
    ),
    Mistake(
        "log_given",
        "The result is the logarithm of the softmax.",
        "Here the softmax itself is asked for.",
        lambda x: x - row_top(x) - np.log(np.exp(x - row_top(x)).sum(axis=1, keepdims=True)),
    ),
    Mistake("copied", "The result is x itself.", "Return the quotient.", lambda x: x),
)


# Mistakes that show in the values of one case


def cut_off(trial: Trial) -> dict | None:
    """Different scores of a row that come out equal."""
    for row in trial.bad if trial.dtype == "float32" and trial.finite else ():
        x, y = trial.case.x[row], trial.got[row]
        for value in np.unique(y[y > 0]):
            same = x[y == value]
            if np.ptp(same) > 1.5:  # rounding alone may make closer scores equal
                both = numbers([same.min(), same.max()])
                return {"at_row": int(row), "both": both, "value": number(value, 4)}
    return None


def error_of(trial: Trial) -> float | None:
    """The largest relative error, if all is finite and float32."""
    if trial.dtype != "float32" or not trial.finite or np.isnan(trial.got).any():
        return None
    # Below 1e-5 float16 has still fewer digits.
    return float(np.nanmax(np.abs(trial.got - trial.wanted) / (trial.wanted + 1e-5)))


def far_from_zero(trial: Trial) -> dict | None:
    """Something rounded at the size of x, where x is large; right where it is small."""
    far, off = float(np.abs(trial.case.x).max()), error_of(trial)
    if off is None or far < 50 or off > 4 * float(np.finfo(np.float32).eps) * far:
        return None
    return {"off": f"{off:.1g}", "far": f"{far:.0f}", "steps": f"{np.spacing(np.float32(far)):.1g}"}


def few_digits(trial: Trial) -> dict | None:
    off = error_of(trial)
    return {"off": f"{off:.1g}"} if off is not None and 1e-6 < off < 0.02 else None


def floored(trial: Trial) -> bool:
    """Rows near the end of float32, where a finite number was taken to lie below all others."""
    return trial.case.kind == "lowest" and not np.isfinite(trial.got[trial.bad]).any()


MISTAKES = (
    *PREDICTED,
    Mistake(
        "nan_swallowed",
        HIDDEN,
        "Leave out nan_to_num, where and clamp; NaN then spreads by itself.",
        when=hidden_nan,
        why=FAULT,
    ),
    EPSILON_ADDED,
    Mistake(
        "clamped",
        "Different scores come out equal, as if something cut the scores off at a bound.",
        "Subtracting the row maximum keeps exp in range by itself; leave the bounds out.",
        when=cut_off,
        why="a clamp or a bound; in row ‹at_row› of the case ‹both› both give ‹value›.",
        kind=Likely,
    ),
    Mistake(
        "lost_digits",
        "Digits are lost in rows far from 0: the result is off by up to ‹off› of its size.",
        "Subtract the maximum from x first, and nothing else with it.",
        when=far_from_zero,
        why="near ‹far› the numbers of float32 are ‹steps› apart, and what is added to x, or to its maximum, "
        "is rounded to such steps: the maximum plus the logarithm of the sum, perhaps.",
        kind=Likely,
    ),
    Mistake(
        "imprecise",
        "The values are right to a few digits only: they are off by up to ‹off› of their size.",
        "Compute in the dtype of x or a wider one.",
        when=few_digits,
        why="float32 holds seven digits. A detour through a 16-bit dtype, or rounding, leaves about three.",
    ),
    Mistake(
        "maximum_starts_finite",
        "Rows far below 0 come out as NaN: some number of the file lies above their maximum, and every "
        "exponential is 0.",
        "Take the maximum as it is.",
        when=floored,
        why="a bound under the maximum, such as clamp(min=-1e30): float32 goes down to −3.4e38.",
        kind=Likely,
    ),
)


EXERCISE = ValueExercise(
    name="safe_softmax",
    notebook="01_eager_softmax",
    entry="safe_softmax",
    brief=(
        "safe_softmax(x) → y: the softmax of each row of x (rows, columns) in PyTorch steps, no library "
        "softmax, x left as it is."
    ),
    how="Run in PyTorch on small inputs",
    library_advice="Take the maximum, the exponential, the sum and the quotient yourself: amax, exp, sum, /.",
    translations=rows("""
said return_types.max
max_returns_pair: x.max(dim=1) returns two tensors, the values and their places.
→ Write x.max(dim=1, keepdim=True).values, or x.amax(dim=1, keepdim=True).
"""),
    cases=cases,
    run=pytorch.run,
    oracle=lambda case: (softmax64(case.x),),
    wrong=wrong,
    check_run=check_run,
    check_right=pytorch.check_pytorch,
    show=show,
    smallest=smallest,
    earned=pytorch.earned,
    unexplained=unexplained,
    arithmetic=lambda case: case.x,
    telling=lambda trial: trial.dtype == "float32" and not trial.facts.error and pytorch.whole(trial),
    coarse=2.0**-11,  # a few roundings are no evidence
    where="On every input",
    mistakes=MISTAKES,
    nan_rule="the whole row should be NaN, as torch.softmax has it",
    count=lambda *matrices: pytorch.traffic(EXERCISE, *matrices),
    hints=(
        Hint(
            "the result holds NaN where the scores are large",
            "exp(x) leaves float32 just past 88. What may be subtracted from every score of a row without "
            "changing the quotient, so that the largest exponent is 0?",
        ),
        Hint(
            "PyTorch says that sizes must match, or a square matrix comes out wrong",
            "x.amax(dim=1) has the shape (rows,). Subtracting needs (rows, 1), one number beside each row: "
            "keepdim=True keeps that second dimension.",
        ),
        Hint(
            "some rows are right and others are not",
            "Four lines: maximum = x.amax(dim=1, keepdim=True); numerator = torch.exp(x - maximum); "
            "denominator = numerator.sum(dim=1, keepdim=True); return numerator / denominator. Each row has "
            "a maximum and a sum of its own.",
        ),
    ),
    lesson=(
        "Subtracting a constant from a row multiplies numerator and denominator by the same factor, so "
        "nothing changes; the row maximum is the constant that keeps every exponent at or below 0. Each of "
        "these steps is a kernel of its own on a GPU: each reads the whole matrix from memory, and all but "
        "the two reductions write a whole matrix back. The next notebook counts those trips."
    ),
)
