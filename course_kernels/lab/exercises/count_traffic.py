"""Exercise: the traffic of four kinds of softmax, as formulas in the number of rows and columns.

What is right is counted, not written down: the ledger counts PyTorch's five kernels, the meter three Triton
kernels, on small matrices. A learner's function is then read as a formula, a·mn + b·m + c·n + d, so that the
reply can set it beside the counted one.
"""

import importlib
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from course_kernels.lab.check.errors import of_exception
from course_kernels.lab.check.exercise import Exercise, Hint
from course_kernels.lab.check.finding import Evidence, Finding
from course_kernels.lab.check.mistakes import Mistake, fill
from course_kernels.lab.core.wording import count

SMALL = ((3, 100), (1, 64), (2, 300), (1, 1), (2, 33))  # counted while the check runs
LARGE = ((4096, 1024), (4096, 4096), (1, 2**24))  # the sizes people talk about


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
        return (" + ".join(_term(value, name) for value, name in parts if value) or "0").replace("+ −", "− ")


@dataclass(frozen=True)
class Kind:
    """One of the four functions: what it counts, the module counted, and where the passes come from."""

    entry: str
    about: str
    module: str
    why: str


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


@dataclass(frozen=True)
class Answer:
    """What one of the learner's functions gave on all shapes, beside what was counted."""

    kind: Kind
    counted: tuple[Formula, Formula]
    shapes: list[tuple[int, int]]
    values: list

    @cached_property
    def wanted(self) -> list[tuple[int, int]]:
        return [tuple(int(f.at(m, n)) for f in self.counted) for m, n in self.shapes]

    @cached_property
    def wrong(self) -> list[int]:
        """The places of the shapes that it is wrong for."""
        pairs = zip(self.values, self.wanted, strict=True)
        return [i for i, (got, want) in enumerate(pairs) if tuple(got) != want]

    @cached_property
    def some(self) -> str:
        """A few shapes that it is right for."""
        agree = [shape for i, shape in enumerate(self.shapes) if i not in self.wrong]
        return ", ".join(f"{m} × {n}" for m, n in agree[:3])

    @cached_property
    def yours(self) -> tuple[Formula | None, Formula | None]:
        """The learner's reads and writes as formulas, None where they are none."""
        return tuple(formula(self.shapes, [value[k] for value in self.values]) for k in (0, 1))

    @cached_property
    def factor(self) -> float | None:
        """The one factor by which all numbers differ from the counted ones, or None."""
        factors = [
            mine / right
            for got, want in zip(self.values, self.wanted, strict=True)
            for mine, right in zip(got, want, strict=True)
        ]
        first = float(f"{factors[0]:.9g}")  # bytes as megabytes are rounded
        same = all(abs(factor - first) <= 1e-6 * abs(first) for factor in factors)
        return first if same and first not in (0, 1) else None

    @property
    def is_eager(self) -> bool:
        return self.kind.entry == "eager_traffic"

    @property
    def passes(self) -> tuple[Fraction, Fraction]:
        """How often all of the matrix is read, and written."""
        return self.yours[0].mn, self.yours[1].mn

    def differing(self, text) -> str:
        """text(word, mine, counted) of reads and writes, where they differ."""
        three = zip(("reads", "writes"), self.yours, self.counted, strict=True)
        return " and ".join(told for one in three if (told := text(*one)))


def bytes_of(a: Answer) -> dict | None:
    if a.factor in (4, 8) or (a.factor == 2 and a.is_eager):
        return {
            "unit": {2: "a 16-bit dtype", 4: "float32", 8: "float64"}[a.factor],
            "factor": f"{a.factor:.0f}",
        }
    return None


def row_terms(a: Answer) -> dict | None:
    """The passes are right, and the terms in m are not."""
    if not all(f.mn == c.mn and f.n == f.one == 0 for f, c in zip(a.yours, a.counted, strict=True)):
        return None

    def told(word, mine, counted):
        return mine.m != counted.m and f"the {word} hold {_term(mine.m, 'm') or 'no term in m'}"

    return {"terms": a.differing(told)}


def other_passes(a: Answer) -> dict:
    def told(word, mine, counted):
        return mine != counted and f"{_value(mine.mn)} {word} where {_value(counted.mn)} is counted"

    return {"passes": a.differing(told)}


def each_element(a: Answer) -> dict:
    reads, writes = ((_value(n), "" if n == 1 else "s") for n in a.passes)
    return {"each": f"{reads[0]} read{reads[1]} and {writes[0]} write{writes[1]} for each element"}


LOOK = "ledger(eager.softmax, x) lists every operation; traffic(name, rows, cols) counts a kernel."
WITH_M_AND_N = "Write it with m and n, and let Python do the arithmetic."
NO_SIZES = "Leave the size of an element out: how many bytes it has is a matter of the dtype."
# The first that fits is told. A row without a reason of its own gives the function's.
MISTAKES = (
    Mistake(
        "bytes",
        "these are bytes of ‹unit›, ‹factor› times the count; elements are asked for.",
        NO_SIZES,
        when=bytes_of,
        why=" ",
    ),
    Mistake(
        "bytes",
        "each number is ‹factor› times the count; elements are asked for, each of them.",
        NO_SIZES,
        when=lambda a: a.factor and not a.factor.is_integer() and {"factor": f"{a.factor:.4g}"},
        why=" ",
    ),
    Mistake(
        "one_shape",
        "it is right for some shapes (‹some›) and not for others.",
        WITH_M_AND_N,
        when=lambda a: None in a.yours and a.some and {"some": a.some},
        why=" ",
    ),
    Mistake(None, "the numbers are no formula in m · n, m and n.", LOOK, when=lambda a: None in a.yours),
    Mistake(
        "swapped",
        "reads and writes are the wrong way round.",
        "Return (reads, writes), in this order.",
        when=lambda a: a.yours == a.counted[::-1],
        why=" ",
    ),
    Mistake(
        "rows_for_columns",
        "rows and columns are exchanged: m is the number of rows.",
        LOOK,
        when=lambda a: a.yours == tuple(Formula(f.mn, f.n, f.m, f.one) for f in a.counted),
    ),
    Mistake(
        "per_element",
        "these are accesses for each element; those of the whole matrix are asked for.",
        "Multiply by m · n.",
        when=lambda a: a.yours == tuple(Formula(Fraction(0), one=f.mn) for f in a.counted),
        why=" ",
    ),
    Mistake(
        "one_shape",
        "the same numbers come back whatever m and n are‹where›.",
        WITH_M_AND_N,
        when=lambda a: (
            all(f == Formula(Fraction(0), one=f.one) for f in a.yours)
            and {"where": f", right for {a.some} only" if a.some else ""}
        ),
        why=" ",
    ),
    Mistake(
        "m_terms",
        "the passes over the matrix are right; of maxima and sums, one number a row each, ‹terms›.",
        "Ask of each kernel: does it read or write one number a row besides the matrix?",
        when=row_terms,
    ),
    Mistake(
        "passes",
        "the passes do not agree with ‹about›: for each element ‹passes›.",
        LOOK,
        when=lambda a: not a.is_eager and other_passes(a),
    ),
    Mistake(
        "fused_count",
        "this is the count of one fused kernel; here each step is a kernel of its own.",
        LOOK,
        when=lambda a: a.passes == (1, 1),
    ),
    Mistake(
        "six_passes",
        "six passes over the matrix is a popular count, and two short.",
        LOOK,
        when=lambda a: sum(a.passes) == 6,
        why="Two passes of the eight are missing: either the reads of the maximum and of the sum, each of "
        "which goes through a whole matrix, or what subtract writes and exp reads back. PyTorch launches "
        "five kernels.",
    ),
    Mistake(
        "reductions_full",
        "maximum and sum are counted as whole matrices; they are one number a row.",
        LOOK,
        when=lambda a: a.passes in ((5, 5), (7, 3), (7, 5)),
    ),
    Mistake(
        "passes",
        "some passes over the matrix are missing: ‹each›, where 5 and 3 are counted.",
        LOOK,
        when=lambda a: sum(a.passes) < 8 and each_element(a),
    ),
    Mistake("passes", "‹each›, where 5 and 3 are counted.", LOOK, when=each_element),
)


def judge(exercise: Exercise, session) -> list[str]:
    """What was counted, if the learner's formulas agree with it."""
    from course_kernels.lab.run import functions

    rng = session.rng
    random = [(int(rng.integers(2, 5000)), int(rng.integers(2, 5000))) for _ in range(4)]
    shapes = [*SMALL, *random, *LARGE]
    entries = [kind.entry for kind in KINDS]
    message = session.call(lambda: functions.run_formulas(session.path, entries, shapes))
    if message["error"]:
        raise of_exception(message["error"], "", exercise)
    counted = {kind.entry: measured(kind) for kind in KINDS}
    unfinished = []
    for kind in KINDS:
        answer = message["answers"][kind.entry]
        if answer["error"] and answer["error"]["type"] == "NotImplementedError":
            unfinished.append(kind.entry)
        elif answer["error"]:
            raise of_exception(answer["error"], "", exercise)
        else:
            compare(kind, counted[kind.entry], shapes, answer["values"])
    if unfinished:
        done = [entry for entry in entries if entry not in unfinished]
        case = f"Right so far: {', '.join(done)}." if done else ""
        raise Finding("todo", f"Not done yet: {', '.join(unfinished)}.", case, status="todo")
    return earned(counted)


def measured(kind: Kind) -> tuple[Formula, Formula]:
    """(reads, writes) as formulas through the counts on the small matrices."""
    from course_kernels.lab.run.traffic import count_function

    softmax = importlib.import_module(kind.module).softmax
    counted = [count_function(softmax, m, n, "float32") for m, n in SMALL]
    formulas = tuple(formula(SMALL, [one[key] for one in counted]) for key in ("loads", "stores"))
    assert None not in formulas, f"{kind.entry}: the counts are no formula in m and n"
    return formulas


def compare(kind: Kind, counted: tuple[Formula, Formula], shapes, values) -> None:
    """Raise a Finding unless the learner's numbers agree with the formulas on every shape."""
    odd = next((i for i, value in enumerate(values) if isinstance(value, str)), None)
    if odd is not None:
        what = f"{kind.entry}{shapes[odd]} returns {values[odd]}; "
        what += "it should return two numbers, (reads, writes)."
        raise Finding("wrong_return", what, next="End it with `return reads, writes`.")
    answer = Answer(kind, counted, shapes, values)
    if not answer.wrong:
        return
    i = answer.wrong[0]
    (m, n), got, want = shapes[i], values[i], answer.wanted[i]
    case = f"The case: m = {m}, n = {n}. Counted: {count(want[0], 'read')} and {count(want[1], 'write')}. "
    case += f"Your function: {_number(got[0])} and {_number(got[1])}."
    if None not in answer.yours:
        case += f" As a formula, yours is ({answer.yours[0]}, {answer.yours[1]})."
    row, found = next((row, found) for row in MISTAKES if (found := row.when(answer)))
    words = {"about": kind.about} | (found if isinstance(found, dict) else {})
    why = Evidence((row.why or kind.why).strip())
    raise Finding(row.name, f"{kind.entry}: {fill(row.what, words)}", case, why, row.next)


def earned(counted: dict) -> list[str]:
    told = [f"{kind.about}: ({counted[kind.entry][0]}, {counted[kind.entry][1]})" for kind in KINDS]
    m, n = LARGE[0]
    eager, fused = (sum(f.at(m, n) for f in counted[entry]) for entry in ("eager_traffic", "fused_traffic"))
    return [
        f"Agrees with what was counted: {'; '.join(told)}.",
        f"At {m} × {n}: {int(eager):,} elements against {int(fused):,}, {float(eager / fused):.3f} times as "
        "many.",
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


EXERCISE = Exercise(
    name="count_traffic",
    notebook="02_counting_traffic",
    entry="eager_traffic",
    brief=(
        "eager_traffic(m, n), fused_traffic(m, n), safe_traffic(m, n), online_traffic(m, n) → (reads, "
        "writes), each in elements of an m × n matrix."
    ),
    judged=judge,
    how="Counted on small matrices: PyTorch's operations by the ledger, Triton kernels by the meter",
    hints=(
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
            "eager: (5 * m * n + 2 * m, 3 * m * n + 2 * m). fused: each element once in, once out. safe: as "
            "many reads as walks, one write. online: one walk less.",
        ),
    ),
    lesson=(
        "Eight passes over the matrix for five kernels, two for one: by the count, fusing saves three passes "
        "of every four. That is a count of accesses, not a promise of time. The terms in m are a thousandth "
        "of it for a row of a thousand; they are here because counting is exact. One program that walks a "
        "row too long to keep on chip needs three accesses an element at least, two reads and a write, and "
        "the online recurrence is what brings four down to three. Several programs that share the row, each "
        "keeping its part on chip, are back at two: notebook 05."
    ),
)
