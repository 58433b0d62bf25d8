"""Exercise: the traffic of four kinds of softmax, as formulas in the number of rows and columns.

What is right is counted, not written down: the ledger counts PyTorch's five kernels, the meter three Triton
kernels, on small matrices. A learner's function is then read as a formula, a·mn + b·m + c·n + d, so that the
reply can set it beside the counted one.
"""

from dataclasses import dataclass
from fractions import Fraction

from course_kernels.lab.run.traffic import count_function
from course_kernels.lab.run import functions as plain
from course_kernels.lab.check.judge import Finding, Result, Session, check_error
from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.old import Exercise
from course_kernels.lab.core.wording import count

SMALL = ((3, 100), (1, 64), (2, 300), (1, 1), (2, 33))  # counted while the check runs


@dataclass(frozen=True)
class Formula:
    """a·mn + b·m + c·n + d."""

    mn: Fraction
    m: Fraction = Fraction(0)
    n: Fraction = Fraction(0)
    one: Fraction = Fraction(0)

    def at(self, m: int, n: int) -> Fraction:
        return self.mn * m * n + self.m * m + self.n * n + self.one

    def __str__(self) -> str:
        parts = [(self.mn, "mn"), (self.m, "m"), (self.n, "n"), (self.one, "")]
        terms = [_term(value, name) for value, name in parts if value]
        return (" + ".join(terms) or "0").replace("+ −", "− ")


@dataclass(frozen=True)
class Kind:
    """One of the four functions: what it counts, and how that is measured."""

    entry: str
    about: str
    measure: str  # a name that `traffic` knows, or a module of the harness
    why: str  # the sentence that says where the passes come from


KINDS = (
    Kind(
        "eager_traffic",
        "the five separate kernels",
        "course_kernels.eager",
        "Five kernels: maximum, subtract, exp, sum, divide. Each reads every tensor that it is given, whole, "
        "and writes the tensor that it makes; a maximum or a sum is one number a row.",
    ),
    Kind(
        "fused_traffic",
        "the fused kernel",
        "course_kernels.fused_row",
        "A row comes in once and goes out once; its maximum and its sum never leave the chip.",
    ),
    Kind(
        "safe_traffic",
        "safe softmax in three walks",
        "course_kernels.lab.exercises.broken.three_walks",
        "Each walk reads the whole row; only the last one writes. The maximum and the sum stay on chip.",
    ),
    Kind(
        "online_traffic",
        "online softmax in two walks",
        "course_kernels.tiled",
        "The first walk finds maximum and sum together, the second reads the row again and writes.",
    ),
)

WHY = {
    "six_passes": "Two passes of the eight are missing: either the reads of the maximum and of the sum, each "
    "of which goes through a whole matrix, or what subtract writes and exp reads back. PyTorch launches five "
    "kernels.",
    "swapped": "",
    "bytes": "",
    "one_shape": "",
    "per_element": "",
}
LOOK = "ledger(eager.softmax, x) lists every operation; traffic(name, rows, cols) counts a kernel."
NEXT = {
    "swapped": "Return (reads, writes), in this order.",
    "bytes": "Leave the size of an element out: how many bytes it has is a matter of the dtype.",
    "one_shape": "Write it with m and n, and let Python do the arithmetic.",
    "per_element": "Multiply by m · n.",
    "m_terms": "Ask of each kernel: does it read or write one number a row besides the matrix?",
}


class CountTraffic(Exercise):
    name = "count_traffic"
    notebook = "02_counting_traffic"
    entry = "eager_traffic"
    brief = (
        "eager_traffic(m, n), fused_traffic(m, n), safe_traffic(m, n), online_traffic(m, n) → (reads, "
        "writes), each in elements of an m × n matrix."
    )
    how = "Counted on small matrices: PyTorch's operations by the ledger, Triton kernels by the meter"
    hints = (
        Hint(
            "you do not know what counts as a read",
            "Take one kernel at a time. It reads every tensor that it is given, whole, and writes every "
            "tensor that it makes, whole; nothing stays on chip from one kernel to the next. "
            "ledger(eager.softmax, x) shows the list.",
        ),
        Hint(
            "your eager count is close, and not right",
            "The maximum and the sum are m numbers each. Two kernels write them, and two others read them: "
            "subtract reads the maximum beside its matrix, divide the sum.",
        ),
        Hint(
            "you want the formulas",
            "eager: (5·m·n + 2·m, 3·m·n + 2·m). fused: each element once in, once out. safe: as many reads "
            "as walks, one write. online: one walk less.",
        ),
    )
    lesson = (
        "Eight passes over the matrix for five kernels, two for one: that ratio of about four is all of what "
        "fusion can give, and it is a count, not a promise of time. The terms in m are a thousandth of it "
        "for a row of a thousand; they are here because counting is exact. Where a row does not fit on chip, "
        "fused means three accesses an element at best, and the online recurrence is what brings four down "
        "to three."
    )

    def judge(self, session: Session) -> list[str]:
        shapes = self.shapes(session.rng)
        message = session.call(lambda: plain.run_formulas(session.path, [k.entry for k in KINDS], shapes))
        if message["error"]:
            check_error(Result({"error": message["error"]}), None, self)
        right = {kind.entry: self.measured(kind) for kind in KINDS}
        unfinished = []
        for kind in KINDS:
            answer = message["answers"][kind.entry]
            if answer["error"] and answer["error"]["type"] == "NotImplementedError":
                unfinished.append(kind.entry)
                continue
            if answer["error"]:
                check_error(Result({"error": answer["error"]}), None, self)
            self.compare(kind, right[kind.entry], shapes, answer["values"])
        if unfinished:
            done = [kind.entry for kind in KINDS if kind.entry not in unfinished]
            raise Finding(
                "todo",
                f"Not done yet: {', '.join(unfinished)}.",
                f"Right so far: {', '.join(done)}." if done else "",
                status="todo",
            )
        return self.earned(right)

    def shapes(self, rng) -> list[tuple[int, int]]:
        """The small ones, which are counted, random ones, and the sizes people talk about."""
        random = [(int(rng.integers(2, 5000)), int(rng.integers(2, 5000))) for _ in range(4)]
        return [*SMALL, *random, (4096, 1024), (4096, 4096), (1, 2**24)]

    def measured(self, kind: Kind) -> tuple[Formula, Formula]:
        """(reads, writes) as formulas through the counts on the small matrices."""
        import importlib

        softmax = importlib.import_module(kind.measure).softmax
        counted = [count_function(softmax, m, n, "float32") for m, n in SMALL]
        formulas = tuple(formula(SMALL, [one[key] for one in counted]) for key in ("loads", "stores"))
        assert None not in formulas, f"{kind.entry}: the counts are no formula in m and n"
        return formulas

    def compare(self, kind: Kind, right: tuple[Formula, Formula], shapes, values) -> None:
        """Raise a Finding unless the learner's numbers agree with the formulas on every shape."""
        odd = next((i for i, value in enumerate(values) if isinstance(value, str)), None)
        if odd is not None:
            raise Finding(
                "wrong_return",
                f"{kind.entry}{shapes[odd]} returns {values[odd]}; it should return two numbers, (reads, "
                "writes).",
                next="End it with `return reads, writes`.",
            )
        wanted = [tuple(int(f.at(m, n)) for f in right) for m, n in shapes]
        bad = [i for i, (got, want) in enumerate(zip(values, wanted, strict=True)) if tuple(got) != want]
        if not bad:
            return
        i = bad[0]
        (m, n), got, want = shapes[i], values[i], wanted[i]
        yours = tuple(formula(shapes, [value[k] for value in values]) for k in (0, 1))
        mistake, what = self.name_mistake(kind, right, yours, shapes, values, wanted)
        case = (
            f"The case: m = {m}, n = {n}. Counted: {count(want[0], 'read')} and {count(want[1], 'write')}. "
            f"Your function: "
            f"{_number(got[0])} and {_number(got[1])}."
        )
        if None not in yours:
            case += f" As a formula, yours is ({yours[0]}, {yours[1]})."
        raise Finding(
            mistake, f"{kind.entry}: {what}", case, WHY.get(mistake, kind.why), NEXT.get(mistake, LOOK)
        )

    def name_mistake(self, kind, right, yours, shapes, values, wanted) -> tuple[str | None, str]:
        """(mistake, the sentence) for numbers that disagree; yours: as formulas, None where they are none."""
        factor = _factor(values, wanted)
        if factor in (4, 8) or (factor == 2 and kind.entry == "eager_traffic"):
            unit = {2: "a 16-bit dtype", 4: "float32", 8: "float64"}[factor]
            return (
                "bytes",
                f"these are bytes of {unit}, {factor:.0f} times the count; elements are asked for.",
            )
        if factor is not None and not factor.is_integer():
            return (
                "bytes",
                f"each number is {factor:.4g} times the count; elements are asked for, each of them.",
            )
        agree = [size for size, mine, want in zip(shapes, values, wanted, strict=True) if tuple(mine) == want]
        some = ", ".join(f"{m} × {n}" for m, n in agree[:3])
        if None in yours:
            if agree:
                return "one_shape", f"it is right for some shapes ({some}) and not for others."
            return None, "the numbers are no formula in m · n, m and n."
        if yours == right[::-1]:
            return "swapped", "reads and writes are the wrong way round."
        if yours == tuple(Formula(f.mn, f.n, f.m, f.one) for f in right):
            return "rows_for_columns", "rows and columns are exchanged: m is the number of rows."
        if all(f.mn == f.m == f.n == 0 for f in yours):
            if all(f.one == r.mn for f, r in zip(yours, right, strict=True)):
                return (
                    "per_element",
                    "these are accesses for each element; those of the whole matrix are asked for.",
                )
            where = f", right for {some} only" if agree else ""
            return "one_shape", f"the same numbers come back whatever m and n are{where}."
        if all(f.mn == r.mn and f.n == f.one == 0 for f, r in zip(yours, right, strict=True)):
            return "m_terms", self.m_terms(yours, right)
        if kind.entry == "eager_traffic":
            return self.name_eager(*yours)
        passes = " and ".join(
            f"{_value(mine.mn)} {word} where {_value(counted.mn)} is counted"
            for word, mine, counted in zip(("reads", "writes"), yours, right, strict=True)
            if mine != counted
        )
        return "passes", f"the passes do not agree with {kind.about}: for each element {passes}."

    def m_terms(self, yours, right) -> str:
        told = " and ".join(
            f"the {word} count {_term(mine.m, 'm') or 'none'}"
            for word, mine, counted in zip(("reads", "writes"), yours, right, strict=True)
            if mine.m != counted.m
        )
        return f"the passes over the matrix are right; of maxima and sums, one number a row each, {told}."

    def name_eager(self, reads: Formula, writes: Formula) -> tuple[str, str]:
        each = " and ".join(
            f"{_value(f.mn)} {word}{'' if f.mn == 1 else 's'}"
            for f, word in ((reads, "read"), (writes, "write"))
        )
        each += " for each element"
        if reads.mn == writes.mn == 1:
            return (
                "fused_count",
                "this is the count of one fused kernel; here each step is a kernel of its own.",
            )
        if reads.mn + writes.mn == 6:
            return "six_passes", "six passes over the matrix is a popular count, and two short."
        if (reads.mn, writes.mn) in ((5, 5), (7, 3), (7, 5)):
            return (
                "reductions_full",
                "maximum and sum are counted as whole matrices; they are one number a row.",
            )
        if reads.mn + writes.mn < 8:
            return "passes", f"some passes over the matrix are missing: {each}, where 5 and 3 are counted."
        return "passes", f"{each}, where 5 and 3 are counted."

    def earned(self, right: dict) -> list[str]:
        told = [f"{kind.about}: ({right[kind.entry][0]}, {right[kind.entry][1]})" for kind in KINDS]
        m, n = 4096, 1024
        eager, fused = (sum(f.at(m, n) for f in right[entry]) for entry in ("eager_traffic", "fused_traffic"))
        times = float(eager / fused)
        return [
            f"Agrees with what was counted: {'; '.join(told)}.",
            f"At {m} × {n}: {int(eager):,} elements against {int(fused):,}, {times:.3f} times as many.",
        ]


def formula(shapes, counts) -> Formula | None:
    """a·mn + b·m + c·n + d through the counts of these shapes, exactly; None if there is none."""
    rows = [
        [Fraction(v) for v in (m * n, m, n, 1)] + [Fraction(c)]
        for (m, n), c in zip(shapes, counts, strict=True)
    ]
    done = []
    for column in range(4):
        pivot = next((row for row in rows if row[column]), None)
        if pivot is None:
            return None
        rows.remove(pivot)
        pivot = [value / pivot[column] for value in pivot]
        rows, done = ([_minus(row, pivot, column) for row in part] for part in (rows, done))
        done.append(pivot)
    if any(row[4] for row in rows):
        return None
    found = Formula(*(row[4] for row in done))
    return found if max(value.denominator for value in vars(found).values()) <= 10**6 else None


def _minus(row, pivot, column):
    return [a - row[column] * b for a, b in zip(row, pivot, strict=True)]


def _factor(values, wanted) -> float | None:
    """The one factor by which all numbers differ from the counted ones, or None."""
    factors = [
        mine / count
        for got, want in zip(values, wanted, strict=True)
        for mine, count in zip(got, want, strict=True)
    ]
    first = float(f"{factors[0]:.9g}")  # bytes as megabytes are rounded
    same = all(abs(factor - first) <= 1e-6 * abs(first) for factor in factors)
    return first if same and first not in (0, 1) else None


def _term(value: Fraction, name: str) -> str:
    if not value:
        return ""
    number = _value(abs(value))
    text = name if number == "1" and name else f"{number}{name}"
    return f"−{text}" if value < 0 else text


def _value(value: Fraction) -> str:
    return f"{int(value):,}" if value.denominator == 1 else f"{float(value):.4g}"


def _number(value: float) -> str:
    return f"{int(value):,}" if float(value).is_integer() else f"{value:.6g}"


EXERCISE = CountTraffic()
