"""Exercise: softmax in PyTorch steps, safe for scores of any size."""

from dataclasses import replace

import numpy as np

from course_kernels.lab.run import functions as plain
from course_kernels.lab.check.judge import Case, Finding, Result, Session, check_error, dtype_name
from course_kernels.lab.check.messages import rows
from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.old import Exercise
from course_kernels.lab.check.shown import SHOWN, excerpt
from course_kernels.lab.exercises.inputs import large
from course_kernels.lab.exercises.softmax import INF, distance, softmax64
from course_kernels.lab.core.wording import count, numbers, side_by_side

SMALL = ((1, 1), (1, 2), (2, 1), (1, 3), (2, 2), (2, 3), (3, 3))  # shapes tried when looking for a small case
COARSE = 2.0**-11  # how near an output must be to what a mistake predicts: a few roundings are no evidence
DIM = "x.amax(dim=1, keepdim=True) and numerator.sum(dim=1, keepdim=True) run along the rows."
KEEPDIM = (
    "keepdim_forgotten",
    "Without keepdim=True, {} has the shape (rows,), and PyTorch lines it up with the columns.",
    "Write keepdim=True: the shape is then (rows, 1), one number beside each row.",
)


class SafeSoftmax(Exercise):
    name = "safe_softmax"
    notebook = "01_eager_softmax"
    entry = "safe_softmax"
    brief = (
        "safe_softmax(x) → y: the softmax of each row of x (rows, columns) in PyTorch steps, no library "
        "softmax, x left as it is."
    )
    how = "Run in PyTorch on small inputs"
    library_advice = (
        "Take the maximum, the exponential, the sum and the quotient yourself: amax, exp, sum, /."
    )
    translations = rows("""
said return_types.max
max_returns_pair: x.max(dim=1) returns two tensors, the values and their places.
→ Write x.max(dim=1, keepdim=True).values, or x.amax(dim=1, keepdim=True).
""")
    hints = (
        Hint(
            "the result holds NaN where the scores are large",
            "exp(x) leaves float32 just past 88. What may be taken off every score of a row without changing "
            "the quotient, so that the largest exponent is 0?",
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
    )
    lesson = (
        "Taking a constant off a row multiplies numerator and denominator by the same factor, so nothing "
        "changes; the row maximum is the constant that keeps every exponent at or below 0. Each of these "
        "lines is a kernel of its own on a GPU, and carries the whole matrix to memory and back. The next "
        "notebook counts those trips."
    )

    # Cases

    def cases(self, rng: np.random.Generator) -> list[Case]:
        def normal(rows, columns, scale=2.0, shift=0.0):
            return (rng.normal(size=(rows, columns)) * scale + shift).astype(np.float32)

        odd = int(rng.choice([29, 37, 53, 67]))
        marked = normal(7, odd)
        marked[0, rng.integers(odd)] = np.nan
        marked[5, 0] = marked[6, -1] = np.nan
        marked[1, rng.integers(odd)] = INF
        marked[2, :] = -INF
        marked[3, rng.permutation(odd)[: odd // 2]] = -INF
        apart = normal(4, odd) + np.array([[200.0], [-200.0], [0.0], [-3e4]], np.float32)
        spread = np.stack([np.linspace(-1e4, 0, odd), np.linspace(60, -40, odd), np.linspace(-90, 85, odd)])
        low = np.stack([np.full(odd, -1e30), np.full(odd, -1e38 * rng.uniform(2.5, 3.3))]).astype(np.float32)
        half = normal(4, 60) + np.array([[0.0], [30.0], [-40.0], [300.0]], np.float32)
        return [
            Case("plain", "random numbers around 0", normal(3, odd)),
            Case("square", "a square matrix of random numbers", normal(6, 6)),
            Case("high", "large scores, where exp(x) overflows", normal(2, odd, 2.0, 200.0)),
            Case("low", "scores far below 0, where exp(x) underflows", normal(2, odd, 2.0, -300.0)),
            Case("apart", "rows that lie far from each other", apart),
            Case("spread", "rows whose scores lie far from each other", spread.astype(np.float32)),
            Case("lowest", "rows at −1e30 and below −2e38", low),
            Case("again", "other numbers in a shape that came before", normal(3, odd)),
            Case("row", "a single row", normal(1, odd)),
            Case("column", "a single column", normal(5, 1, 50.0)),
            Case("gap", "rows that do not follow each other directly in memory", normal(4, odd), gap=5),
            Case("half", "float16", half.astype(np.float16)),
            Case("marked", "rows with a NaN, with +∞, with −∞ only, with some −∞, and a plain one", marked),
            *large(rng, (5_000, 40_000), rows=(100, 300)),
        ]

    def wrong(self, case: Case, result: Result) -> np.ndarray:
        """A mask of the wrong elements."""
        wanted = softmax64(case.x)
        got = result.values(0).astype(np.float64)
        with np.errstate(invalid="ignore"):
            near = np.abs(got - wanted) <= tolerance(case, wanted)
        return ~(near | (np.isnan(got) & np.isnan(wanted)))

    # The judgement

    def run(self, session: Session, cases: list[Case]) -> list[Result]:
        return [
            Result(message)
            for message in session.call(lambda: plain.run_steps(session.path, self.entry, cases))
        ]

    def judge(self, session: Session) -> list[str]:
        cases = self.cases(session.rng)
        results = self.run(session, cases)
        for case, result in zip(cases, results, strict=False):
            self.check_run(session, case, result)
            if self.wrong(case, result).any():
                raise self.diagnose(session, case, result, cases, results)
        for case, result in zip(cases, results, strict=True):
            self.check_pytorch(case, result)
        return self.earned(cases, results)

    def check_run(self, session: Session, case: Case, result: Result) -> None:
        """Raise a Finding unless the call gave a tensor of the right kind and left x as it was."""
        if result.error and not result.error["rule"] and "must match the size" in result.error["text"]:
            self.check_keepdim(session, case, result)
        check_error(result, case, self)
        at = f"The case: x is {case.shape} {dtype_name(case)}, {case.about}."
        if result.x_changed:
            raise Finding(
                "input_overwritten",
                "x is changed by the call, and it belongs to the caller.",
                at,
                "An operation whose name ends in _ (sub_, exp_, div_), or -= and /=, writes into its tensor.",
                "Make a new tensor: x - maximum in place of x -= maximum.",
            )
        (output,) = result.outputs
        if not output["tensor"]:
            raise Finding(
                "wrong_return",
                f"The function returns {_article(output['type'])}; it should return y, a tensor.",
                at,
                next="End it with return and the quotient.",
            )
        if output["shape"] != list(case.x.shape):
            shape = tuple(output["shape"])
            raise Finding(
                "wrong_shape",
                f"y has the shape {shape}; it should have that of x, {case.x.shape}.",
                at,
                next="Each element of x has one of y: numerator / denominator has the shape of the "
                "numerator.",
            )
        if output["dtype"] != str(case.x.dtype):
            raise Finding(
                "wrong_dtype",
                f"y is {output['dtype']}; for this input it should be {case.x.dtype}.",
                at,
                next="Computing in a wider dtype is fine; end with .to(x.dtype).",
            )

    def check_pytorch(self, case: Case, result: Result) -> None:
        """Raise a Finding if something else than PyTorch did the work, or nothing did in this call."""
        if result.exponentials < case.x.size:
            raise Finding(
                "not_pytorch",
                f"PyTorch took {count(result.exponentials, 'exponential')} in this call, and x has "
                f"{count(case.x.size, 'element')}.",
                f"The case: x is {case.shape} {dtype_name(case)}, {case.about}.",
                "The values left PyTorch (numpy(), tolist()) and were worked on elsewhere."
                if result.numpy
                else "The result was kept from an earlier call, or made without torch.exp.",
                "Take torch.exp of the shifted scores on every call.",
            )
        at = f"The case: x is {case.shape} {dtype_name(case)}, {case.about}."
        if result.x_numpy:
            raise Finding(
                "not_pytorch",
                "x is handed over to numpy, and the exercise is to work in PyTorch's steps.",
                at,
                "What is computed outside PyTorch no GPU does, and nothing here can count.",
                "Leave out x.numpy(); torch has amax, exp, sum and the division.",
            )
        if result.origin == "elsewhere":
            raise Finding(
                "not_pytorch",
                "The result was not made from the exponentials that PyTorch took in this call.",
                at,
                "Every operation on this call's tensors was followed from x, and none of them leads to what "
                "is returned.",
                "Return the quotient of what torch.exp gave and its sum.",
            )
        if result.origin == "mixed":
            raise Finding(
                "not_pytorch",
                "Numbers that PyTorch did not compute in this call take part in the result.",
                at,
                "A tensor of several numbers was made from a list or an array, or kept from an earlier call.",
                "Compute from x alone.",
            )
        if result.origin == "changed":
            raise Finding(
                "not_pytorch",
                "Something else than a PyTorch operation of this call wrote into its tensors.",
                at,
                "A tensor's values changed between two operations: through numpy, another thread, or its "
                "raw memory.",
                "Let PyTorch's operations alone make the result.",
            )

    def check_keepdim(self, session: Session, case: Case, result: Result) -> None:
        """Sizes that do not match: the square matrix, where they do, shows which dimension was dropped."""
        square = [c for c in self.cases(np.random.default_rng(0)) if c.kind == "square"]
        (again,) = self.run(session, square)
        if again.error or not self.whole(again, square[0]):
            return
        for mistake, what, advice, guess in mistakes():
            if mistake == "keepdim_forgotten" and self.matches(square, [again], guess):
                line = result.error["line"]
                raise Finding(
                    mistake,
                    what,
                    f"The case: x is {case.shape}, {case.about}; "
                    + (f"line {line}: `{result.error['source']}`." if line else "")
                    + f" PyTorch says: {result.error['text'].splitlines()[0]}",
                    f"Proven on a {square[0].shape} matrix, where the sizes happen to match: there nothing "
                    "raises, and the values are silently wrong.",
                    advice,
                )

    def whole(self, result: Result, case: Case) -> bool:
        return result.outputs[0]["tensor"] and result.outputs[0]["shape"] == list(case.x.shape)

    def matches(self, cases: list[Case], results: list[Result], guess) -> bool:
        """True if a guess at the mistake predicts the output of every float32 case, where it has no mask; and
        is wrong itself somewhere."""
        evidence = False
        for case, result in zip(cases, results, strict=False):
            if case.x.dtype != np.float32 or result.error or not self.whole(result, case):
                continue
            got = result.values(0).astype(np.float64)
            with np.errstate(all="ignore"):
                predicted = guess(case.x)
                if predicted is None:
                    return False
                open_question = np.broadcast_to(np.ma.getmaskarray(predicted), got.shape)
                predicted = np.broadcast_to(np.ma.getdata(predicted), got.shape).astype(np.float64)
                near = np.abs(got - predicted) <= COARSE * np.abs(predicted) + 1e-30
                near |= open_question
                if not (near | (got == predicted) | (np.isnan(got) & np.isnan(predicted))).all():
                    return False
                right = softmax64(case.x)
                off = ~(np.abs(predicted - right) <= tolerance(case, right)) & ~np.isnan(right)
                evidence |= (off & ~open_question).any()
        return evidence

    def diagnose(self, session, case, result, cases, results) -> Finding:
        shown = self.show(*self.smallest(session, case, result))
        for mistake, what, advice, guess in mistakes():
            if self.matches(cases, results, guess):
                return Finding(
                    mistake,
                    what,
                    shown,
                    "On every input, the result is number for number what that gives.",
                    advice,
                )
        for found in (swallowed, epsilon, clamped, far_from_zero, imprecise, floored):
            if finding := found(self, case, result):
                finding.case = shown
                return finding
        self.check_pytorch(case, result)
        for mistake, what, advice, guess in mistakes():
            if np.isfinite(result.values(0)).all() and self.matches([case], [result], guess):
                if case.x.dtype == np.float32:
                    why = "On this input the result is number for number what that gives; others are right."
                    return Finding(mistake, what, shown, why, advice)
        pairs = [(c, r) for c, r in zip(cases, results, strict=False) if not r.error and self.whole(r, c)]
        poor = [c.about for c, r in pairs if self.wrong(c, r).any()]
        return Finding(
            None,
            "The values are wrong, and no mistake that the check knows explains them.",
            shown,
            f"Right for {len(pairs) - len(poor)} of {len(pairs)} inputs; wrong for {'; for '.join(poor[:3])}"
            + (f", and for {len(poor) - 3} more." if len(poor) > 3 else "."),
            "Take the small case above into a cell, and print maximum, numerator and denominator with their "
            "shapes.",
        )

    def smallest(self, session, case: Case, result: Result) -> tuple[Case, Result]:
        """A corner of the case that is still wrong, its wrong row first; or the case."""
        rows = np.flatnonzero(self.wrong(case, result).any(axis=1))
        order = [int(rows[0]), *(r for r in range(len(case.x)) if r != rows[0])]
        corners = [
            replace(case, x=case.x[order][:r, :c].copy(), gap=0, about=f"cut from: {case.about}")
            for r, c in SMALL
            if r <= case.x.shape[0] and c <= case.x.shape[1]
        ]
        for small, again in zip(corners, self.run(session, corners), strict=False):
            if again.error is None and self.whole(again, small) and self.wrong(small, again).any():
                return small, again
        return case, result

    def show(self, case: Case, result: Result) -> str:
        """The case, a row of it, the expected and the got."""
        wrong = self.wrong(case, result)
        row = int(np.argwhere(wrong)[0, 0])
        wanted, got = softmax64(case.x)[row], result.values(0)[row]
        start = excerpt(case.x[row], wrong[row], wanted, got)
        cut = slice(start, start + SHOWN)
        lines = [f"The smallest case found: x is {case.shape} {dtype_name(case)}, {case.about}; row {row}:"]
        if len(case.x) > 1:
            other = 1 if row == 0 else 0
            lines.append(f"  row {other} of x {numbers(case.x[other][cut])}")
        lines.append(f"  x          {numbers(case.x[row][cut])}" + (f" from column {start}" if start else ""))
        expected, got = side_by_side(wanted[cut], got[cut], wrong[row][cut])
        lines += [f"  expected   {expected}", f"  got        {got}"]
        return "\n".join(lines)

    def earned(self, cases: list[Case], results: list[Result]) -> list[str]:
        case, result = cases[0], results[0]
        moving = [row for row in result.operations if row["bytes"]]
        reads, writes = (sum(row[key] for row in moving) / case.x.size for key in ("reads", "writes"))
        return [
            f"{len(cases)} inputs, {sum(len(c.x) for c in cases)} rows, right as far as each dtype allows.",
            f"PyTorch ran {len(moving)} operations for it, {', '.join(row['name'] for row in moving)}: for "
            f"each element of x, {reads:.3g} elements read and {writes:.3g} written.",
        ]

    # Counting, for traffic("safe_softmax", …)

    def count(self, path: str, row_counts, columns: int, dtype: str) -> list[dict]:
        """What the learner's file reads and writes on matrices of these many rows."""
        session = Session(path, self.entry, 0)
        shapes = [(rows, columns) for rows in row_counts]
        cases = [
            Case("count", "random numbers", session.rng.normal(size=shape).astype(dtype)) for shape in shapes
        ]
        results = self.run(session, cases)
        for case, result in zip(cases, results, strict=False):
            check_error(result, case, self)
        keys = ("name", "reads", "writes", "bytes")
        counted = [
            [tuple(row[key] for key in keys) for row in result.operations if row["bytes"]]
            for result in results
        ]
        return [
            dict(
                zip(
                    ("loads", "stores", "bytes"),
                    (sum(row[i] for row in rows) for i in (1, 2, 3)),
                    strict=True,
                )
            )
            | {"by_op": rows, "launches": []}
            for rows in counted
        ]


def tolerance(case: Case, wanted: np.ndarray) -> np.ndarray:
    """How far each element may be off.

    float32: some roundings, and that of x − m, which exp turns into a relative error. float16 rounds after
    each of the four steps if PyTorch is left to it, so the same with its 11 bits; a numerator below 2⁻¹⁴
    keeps fewer.
    """
    wanted = np.nan_to_num(wanted)
    if case.x.shape[1] == 1:  # exp(0) / exp(0): there is nothing to round
        return np.zeros_like(wanted)
    if case.x.dtype == np.float16:
        columns = case.x.shape[1]
        return wanted * 2.0**-11 * (8 + 2 * distance(case.x)) + 2.0**-23 + wanted * columns * 2.0**-24
    return wanted * 2.0**-23 * (16 + 2 * distance(case.x)) + 2.0**-125


def mistakes():
    """(mistake, sentence, advice, guess): what each mistake gives on x, in float32; None where it raises."""

    def steps(shift=None, divisor=None, raised=np.exp):
        def guess(x):
            numerator = raised(x - (shift(x) if shift else x.max(axis=1, keepdims=True)))
            return numerator / (divisor(numerator, x) if divisor else numerator.sum(axis=1, keepdims=True))

        return guess

    def by_mean(x):
        # A mean is rounded, each library in its own way. In a row of huge scores all hangs on that; in one of
        # large scores, all but what overflows or vanishes.
        largest = np.abs(x).max(axis=1, keepdims=True)
        guess = steps(lambda x: x.mean(axis=1, keepdims=True))(x)
        open_question = (largest > 1e6) | (largest > 1e3) & np.isfinite(guess) & (guess != 0)
        return np.ma.array(guess, mask=open_question)

    def square(guess):
        # Sizes must match for it not to raise: a square matrix, a single row or column.
        return lambda x: guess(x) if len({*x.shape, 1}) == 2 else None

    def top(x):
        return x.max(axis=1)

    def total(numerator, x):
        return numerator.sum(axis=1)

    one = "Each row has a maximum of its own: x.amax(dim=1, keepdim=True)."
    maximum = "Take x.amax(dim=1, keepdim=True) off first; it changes nothing but the size of the exponents."
    return [
        ("no_maximum", "Nothing is taken off the scores before the exponential, so it overflows, or its sum "
                       "is 0.",
         maximum, steps(lambda x: np.float32(0))),
        (
            "no_maximum",
            "Nothing is taken off the scores before the exponential, so the sum under the logarithm "
            "overflows, or is 0.",
            maximum,
            lambda x: np.exp(x - np.log(np.exp(x).sum(axis=1, keepdims=True))),
        ),
        ("maximum_of_abs", "The largest |x| is taken off, where the largest x should be: a row of large "
                           "negative "
         "scores is pushed further down, until every exponential is 0.", one,
         steps(lambda x: np.abs(x).max(axis=1, keepdims=True))),
        ("minimum", "The row's minimum is taken off, so the largest exponent grows where it should be "
                    "0.", one,
         steps(lambda x: x.min(axis=1, keepdims=True))),
        ("mean_taken_off", "The row's mean is taken off: the largest score may still lie far above it.", one,
         by_mean),
        ("sum_taken_off", "The row's sum is taken off, where its maximum should be.", one,
         steps(lambda x: x.sum(axis=1, keepdims=True))),
        ("first_element", "The row's first element is taken off, and larger ones may follow.", one,
         steps(lambda x: x[:, :1])),
        ("maximum_starts_at_zero", "The maximum never comes out below 0: a row of large negative scores "
                                   "keeps them.",
         one, steps(lambda x: np.maximum(x.max(axis=1, keepdims=True), np.float32(0)))),
        ("global_max", "One maximum is taken for the whole matrix: the rows far below it come out as exp(x − "
                       "m) = 0, "
         "and so does their sum.", one, steps(lambda x: x.max())),
        ("global_max", "One maximum and one sum are taken for the whole matrix.", DIM,
         steps(lambda x: x.max(), lambda e, x: e.sum())),
        ("global_sum", "One sum is taken for the whole matrix, so a row no longer sums to 1.", DIM,
         steps(None, lambda e, x: e.sum())),
        ("maximum_wrong_dim", "The maximum runs down the columns (dim=0) instead of along the rows.", DIM,
         steps(lambda x: x.max(axis=0, keepdims=True))),
        ("sum_wrong_dim", "The sum runs down the columns (dim=0) instead of along the rows.", DIM,
         steps(None, lambda e, x: e.sum(axis=0, keepdims=True))),
        ("wrong_axis", "Maximum and sum run down the columns (dim=0) instead of along the rows.", DIM,
         steps(lambda x: x.max(axis=0, keepdims=True), lambda e, x: e.sum(axis=0, keepdims=True))),
        ("wrong_axis", "The sum runs down the columns (dim=0), and one maximum serves the whole matrix.", DIM,
         steps(lambda x: x.max(), lambda e, x: e.sum(axis=0, keepdims=True))),
        ("wrong_axis", "The sum runs down the columns (dim=0), and nothing is taken off.", DIM,
         steps(lambda x: np.float32(0), lambda e, x: e.sum(axis=0, keepdims=True))),
        (KEEPDIM[0], KEEPDIM[1].format("the maximum"), KEEPDIM[2], square(steps(top))),
        (KEEPDIM[0], KEEPDIM[1].format("the sum"), KEEPDIM[2], square(steps(None, total))),
        (KEEPDIM[0], KEEPDIM[1].format("each of maximum and sum"), KEEPDIM[2], square(steps(top, total))),
        (KEEPDIM[0], KEEPDIM[1].format("the sum"), KEEPDIM[2],
         square(steps(lambda x: x.max(), total))),
        (KEEPDIM[0], KEEPDIM[1].format("the sum"), KEEPDIM[2],
         square(steps(lambda x: np.float32(0), total))),
        ("not_divided", "The numerators are right, but nothing divides them by their sum.",
         "Divide by numerator.sum(dim=1, keepdim=True).", steps(None, lambda e, x: np.float32(1))),
        ("mean", "The numerators are divided by the number of columns, not by their sum.",
         "Divide by numerator.sum(dim=1, keepdim=True).", steps(None, lambda e, x: np.float32(x.shape[1]))),
        ("sum_of_inputs", "The numerators are divided by the sum of x, not by the sum of the exponentials.",
         "Sum what torch.exp gave.", steps(None, lambda e, x: x.sum(axis=1, keepdims=True))),
        ("divided_by_maximum", "The numerators are divided by the largest of them, which is 1, not by their "
                               "sum.",
         "Divide by numerator.sum(dim=1, "
         "keepdim=True).", steps(None, lambda e, x: e.max(axis=1, keepdims=True))),
        ("no_exponential", "x − m is divided by its sum: the exponential is missing.", "Take torch.exp of x "
                                                                                       "− m.",
         steps(None, None, lambda v: v)),
        ("base_two", "The exponential has base 2: 2^(x − m) stands where e^(x − m) should.", "Use torch.exp.",
         steps(None, None, np.exp2)),
        ("sign", "The exponent has the wrong sign: m − x stands where x − m should.", "Take torch.exp(x - "
                                                                                      "maximum).",
         steps(None, None, lambda v: np.exp(-v))),
        ("log_given", "The result is the logarithm of the softmax.", "Here the softmax itself is asked for.",
         lambda x: x - x.max(axis=1, keepdims=True)
         - np.log(np.exp(x - x.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True))),
        ("copied", "The result is x itself.", "Return the quotient.", lambda x: x),
    ]  # fmt: skip


def swallowed(exercise, case, result):
    """A NaN that should have reached the output."""
    missing = np.isnan(softmax64(case.x)) & ~np.isnan(result.values(0))
    if not missing.any() or np.isfinite(case.x).all():
        return None
    row = int(np.flatnonzero(missing.any(axis=1))[0])
    what = "a NaN" if np.isnan(case.x[row]).any() else "+∞" if (case.x[row] == INF).any() else "only −∞"
    return Finding(
        "nan_swallowed",
        f"Row {row} of the case holds {what}, and the result hides it: the whole row should be NaN, as "
        "torch.softmax has it.",
        evidence="A softmax that turns bad input into plausible numbers hides the fault from whoever looks for "
        "it.",
        next="Leave out nan_to_num, where and clamp; NaN then spreads by itself.",
    )


def epsilon(exercise, case, result):
    """A small constant added to the sum."""
    if case.x.dtype != np.float32 or not np.isfinite(case.x).all():
        return None
    x, y = case.x.astype(np.float64), result.values(0).astype(np.float64)
    numerator = np.exp(x - x.max(axis=1, keepdims=True))
    largest = x.argmax(axis=1)[:, None]
    with np.errstate(all="ignore"):
        # The largest numerator is 1, so its output is 1 / (sum + constant).
        added = 1 / np.take_along_axis(y, largest, 1) - numerator.sum(axis=1, keepdims=True)
        constant = float(np.median(added))
        fits = (
            np.abs(y * (numerator.sum(axis=1, keepdims=True) + constant) - numerator)
            <= 1e-5 * numerator + 1e-30
        )
    # The same constant in every row; what is rounded differs from row to row.
    same = bool(np.abs(added - constant).max() <= 0.05 * constant + 5e-7)
    if not np.isfinite(constant) or not 0 < constant < 1 or not fits.all() or not same:
        return None
    return Finding(
        "epsilon_added",
        f"About {constant:.1g} is added to the sum, and the rows no longer sum to 1.",
        evidence="The largest score contributes exp(0) = 1, so the sum is never below 1: there is no 0 to guard "
        "against.",
        next="Divide by the sum as it is.",
    )


def floored(exercise, case, result):
    """Rows near the end of float32, where a finite number was taken to lie below all others."""
    wrong = exercise.wrong(case, result).any(axis=1)
    if case.kind != "lowest" or np.isfinite(result.values(0)[wrong]).any():
        return None
    return Finding(
        "maximum_starts_finite",
        "Rows far below 0 come out as NaN: some number of the file lies above their maximum, and every "
        "exponential is 0.",
        evidence="Likely a bound under the maximum, such as clamp(min=−1e30): float32 goes down to −3.4e38.",
        next="Take the maximum as it is.",
    )


def far_from_zero(exercise, case, result):
    """Something rounded at the size of x, where x is large; right where it is small."""
    far = float(np.abs(case.x).max()) if np.isfinite(case.x).all() else 0.0
    if case.x.dtype != np.float32 or far < 50:
        return None
    wanted, got = softmax64(case.x), result.values(0).astype(np.float64)
    with np.errstate(all="ignore"):
        off = np.nanmax(np.abs(got - wanted) / (wanted + 1e-5))  # below it float16 has still fewer digits
    if np.isnan(got).any() or off > 4 * float(np.finfo(np.float32).eps) * far:
        return None
    return Finding(
        "lost_digits",
        f"Digits are lost in rows far from 0: the result is off by up to {off:.1g} of its size.",
        evidence=f"Near {far:.0f} the numbers of float32 are {np.spacing(np.float32(far)):.1g} apart, and "
        "what is added to x, or to its maximum, is rounded to such steps: likely the maximum plus the "
        "logarithm of the sum.",
        next="Subtract the maximum from x first, and nothing else with it.",
    )


def imprecise(exercise, case, result):
    """Right to a few digits."""
    if case.x.dtype != np.float32 or not np.isfinite(case.x).all():
        return None
    wanted, got = softmax64(case.x), result.values(0).astype(np.float64)
    with np.errstate(all="ignore"):
        off = np.nanmax(np.abs(got - wanted) / (wanted + 1e-5))  # below it float16 has still fewer digits
    if np.isnan(got).any() or not 1e-6 < off < 0.02:
        return None
    return Finding(
        "imprecise",
        f"The values are right to a few digits only: they are off by up to {off:.1g} of their size.",
        evidence="float32 holds seven digits. A detour through a 16-bit dtype, or rounding, leaves about three.",
        next="Compute in the dtype of x or a wider one.",
    )


def clamped(exercise, case, result):
    """Different scores of a row that come out equal."""
    if case.x.dtype != np.float32 or not np.isfinite(case.x).all():
        return None
    wrong = exercise.wrong(case, result)
    for row in np.flatnonzero(wrong.any(axis=1)):
        x, y = case.x[row], result.values(0)[row]
        for value in np.unique(y[y > 0]):
            low, high = x[y == value].min(), x[y == value].max()
            if high - low > 1.5:  # rounding alone may make closer scores equal
                return Finding(
                    "clamped",
                    "Different scores come out equal, as if something cut the scores off at a bound.",
                    evidence=f"Likely a clamp: in row {row} of the case, {numbers([low, high])} both give "
                    f"{value:.4g}.",
                    next="Taking the row maximum off keeps exp in range by itself; leave the bounds out.",
                )
    return None


def _article(kind: str) -> str:
    return "nothing" if kind == "NoneType" else f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind}"


EXERCISE = SafeSoftmax()
