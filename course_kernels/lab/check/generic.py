"""Mistakes of any kernel that works row by row, in the words of the exercise's own result and padding.

They ask only for what every exercise has: its oracle, and what a masked lane must hold (`fill`).
"""

import re
from dataclasses import replace

import numpy as np

from course_kernels.lab.check import strides
from course_kernels.lab.check.finding import Seen
from course_kernels.lab.check.mistakes import Mistake, Probe
from course_kernels.lab.check.trial import EPSILON, INF, Trial
from course_kernels.lab.core.wording import count, number

# NaN and infinity


def hidden_nan(t: Trial) -> dict | None:
    """A row of which the result should be NaN, and is not."""
    if t.finite:
        return None
    wanted = t.expected[t.exercise.nan_output].reshape(t.rows, -1)
    got = t.values[t.exercise.nan_output].reshape(t.rows, -1)
    for row in t.bad:
        if np.isnan(wanted[row]).all() and not np.isnan(got[row]).all():
            x = t.case.x[row]
            held = "a NaN" if np.isnan(x).any() else "+∞" if (x == INF).any() else "only −∞"
            return {"at_row": int(row), "held": held, "nan_rule": t.exercise.nan_rule}
    return None


def guarded_nan(t: Trial) -> dict | None:
    """The same, where an `if` skips a tile of −∞, and NaN with it."""
    if (words := hidden_nan(t)) is not None:
        for line, text in enumerate(t.source.lines, 1):
            if re.match(r"\s*if .*[<>].*inf", text, re.IGNORECASE):
                return words | {"line": line, "text": text.strip()}
    return None


def spread_nan(t: Trial) -> dict | None:
    """A row of ordinary numbers that came out as NaN, beside rows that are none."""
    if t.finite:
        return None
    index = t.exercise.nan_output
    wanted, got = (part.reshape(t.rows, -1) for part in (t.expected[index], t.values[index]))
    spread = [i for i in t.bad if np.isfinite(wanted[i]).all() and np.isnan(got[i]).any()]
    plain = [int(i) for i in spread if np.isfinite(t.case.x[i]).all()]
    return {"at_row": plain[0]} if plain else None


HIDDEN = "Row ‹at_row› holds ‹held›, and the result hides it: ‹nan_rule›."
FAULT = "A result that turns bad input into plausible numbers hides the fault from whoever looks for it."
NAN = (
    Mistake(
        "nan_swallowed",
        HIDDEN,
        "Likely line ‹line›: `‹text›` skips NaN too, since every comparison with NaN is false. Take the "
        "guard out, and use 0 where the maximum is −∞: anchor = tl.where(new_m == -float('inf'), 0.0, "
        "new_m), then tl.exp(m - anchor) and tl.exp(x - anchor). A tile of −∞ then adds 0, and NaN spreads "
        "by itself.",
        when=guarded_nan,
        why=FAULT,
    ),
    Mistake(
        "nan_swallowed",
        HIDDEN,
        "Remove the tl.where or the comparison that replaces these values, or skips a tile that holds them; "
        "NaN then spreads by itself.",
        when=hidden_nan,
        why=FAULT,
    ),
    Mistake(
        "nan_spreads",
        "Row ‹at_row› holds ordinary numbers, and came out as NaN: another row's NaN reached it.",
        "Reduce along the columns of one row only.",
        when=spread_nan,
        why="Every row stands alone; a reduction ran over more than one row.",
    ),
)
# What a maximum leaves out, where nothing after it lets the NaN through again.
NAN_IN_A_MAXIMUM = Mistake(
    "nan_swallowed",
    HIDDEN,
    "tl.max and tl.maximum leave a NaN out: add tl.sum(tl.where(‹tile› == ‹tile›, 0.0, ‹tile›), axis=0), "
    "which is 0 unless the row holds one.",
    when=lambda t: re.search(r"tl\.(max|min)(imum)?\(", t.source.text) and hidden_nan(t),
    why=FAULT,
)

# float16

AS_FLOAT32 = Probe(lambda t: replace(t.case, x=t.case.x.astype(np.float32)) if t.dtype == "float16" else None)


def read_back(t: Trial) -> dict | None:
    """Elements of an output that were loaded again."""
    loaded = sum(loads for name, loads, _, _ in t.facts.traffic if name.startswith("result"))
    return {"elements": count(loaded, "element"), "are": "are" if loaded > 1 else "is"} if loaded else None


def half_numbers(t: Trial, values: list[np.ndarray]) -> dict | None:
    """Values of float32 input that are all numbers of float16."""
    last = t.exercise.outputs[-1]
    if t.dtype != "float32" or last.dtype(t.case) != "float32" or not values:
        return None
    values = np.concatenate([one.ravel() for one in values]).astype(np.float64)
    values = values[(np.abs(values) > 1e-4) & (np.abs(values) < 2048) & (values != np.rint(values))]
    near = np.abs(values.astype(np.float16).astype(np.float64) - values) <= 4 * EPSILON * np.abs(values)
    return {"number": f"{len(values):,}"} if len(values) >= 12 and near.all() else None


def seen_values(t: Trial) -> list[np.ndarray]:
    """The last output of every wrong trial of float32 numbers, none of them infinite."""
    return [one.values[-1] for one in t.others if one.dtype == "float32" and one.finite]


def half_row(values, what: str) -> Mistake:
    """float16 arithmetic on float32 input: results, or what they are made of, have 11 bits."""
    return Mistake(
        "half_precision",
        f"The input is float32, and {what} is a number of float16: the arithmetic has its 11 bits.",
        "Leave out .to(tl.float16), or make it .to(tl.float32).",
        when=lambda t: half_numbers(t, values(t)),
        why="‹number› of ‹number› that are larger than 0.0001. By chance one in five hundred would be.",
        kind=Seen,
    )


READ_BACK = Mistake(
    "output_read_back",
    "‹elements› of ‹y› ‹are› read back after being stored there, in float16: what passes through ‹y› is "
    "rounded to 11 bits.",
    "Keep in a variable what is needed again, or take it from x anew; store ‹y› once, when it is final.",
    when=read_back,
    probes=(AS_FLOAT32,),
    why="the same numbers as float32 come out right.",
)
HALF = Mistake(
    "half_precision",
    "With float16 input some of the arithmetic is float16 too, and its 11 bits are not enough for it.",
    "Convert right after the load, ‹tile› = tl.load(…).to(tl.float32), and to no other dtype after that: "
    "tl.store rounds to the output's dtype by itself.",
    probes=(AS_FLOAT32,),
    why="the same numbers as float32 come out right.",
)
HALF_RESULTS = half_row(seen_values, "every result")

# Masked lanes


def other_fill(t: Trial) -> float | None | str:
    """What masked lanes hold in place of the exercise's fill; "" where nothing is wrong with them."""
    others = [fill for fill in t.facts.fills if fill != t.exercise.fill]
    return others[0] if others and t.exercise.fill is not None else ""


def no_fill(t: Trial) -> bool:
    return other_fill(t) is None


def filled(t: Trial, effect) -> dict | None:
    found = other_fill(t)
    if found in ("", None):
        return None
    return {"number": number(found), "effect": effect(t, found)}


def counts_too(t: Trial, fill: float) -> str:
    """What a wrong fill does, for any result."""
    row = int(t.bad[0])
    return f"such lanes take part in the result of row {row}, as if x held {number(fill)} there"


def padding(effect=counts_too) -> tuple[Mistake, ...]:
    """Masked lanes that hold something else. effect: from (trial, number) to what that does."""
    forced = (Probe(masked_lanes=lambda t: t.exercise.fill),)
    proof = "with ‹fill› forced into the masked lanes, your kernel is right."
    rows = [
        Mistake(
            "padding_missing",
            "Masked lanes hold no defined value: tl.load has a mask, but no other=.",
            "Add other=‹fill_code› to the load.",
            when=no_fill,
            probes=forced,
            why=proof + " (Here they hold NaN, on a GPU whatever the register held.)",
        )
    ]
    for name, fits in (("padding_zero", lambda fill: fill == 0), ("padding_finite", lambda fill: True)):
        rows.append(
            Mistake(
                name,
                "Masked lanes were loaded as ‹number›; ‹effect›.",
                "Load the masked lanes as ‹fill›, which changes nothing: other=‹fill_code›.",
                when=lambda t, fits=fits: (
                    (fill := other_fill(t)) not in ("", None) and fits(fill) and filled(t, effect)
                ),
                probes=forced,
                why=proof,
            )
        )
    return tuple(rows)


# Rows


def together(t: Trial) -> bool:
    """Several rows, and it is no matter of strides."""
    return t.rows > 1 and t.finite and not (t.case.gap and t.rights(t.like(t.case.x)))


ALONE = Probe(lambda t: [t.like(t.case.x[i : i + 1]) for i in range(t.rows)])
ROWS_MIXED = Mistake(
    "rows_mixed",
    "The rows get into each other's results.",
    "In a tile of several rows reduce with axis=1; where a program does one row after the other, begin each "
    "anew.",
    when=together,
    probes=(ALONE,),
    why="each row alone comes out right, and together they do not. Likely one reduction runs over several "
    "rows, or something is carried from a row to the next.",
)
SAME_ROW = Mistake(
    "same_row",
    "Every row of the result is that of row 0.",
    "Use tl.program_id(0) in the address of the load: ‹x_address›.",
    predicts=lambda s: s.first_row,
)
NOT_SCALED = tuple(
    Mistake("row_not_scaled", what, advice, predicts=lambda s: s.of(s.windows), when=when)
    for what, advice, when in strides.NOT_SCALED
)
ROUNDED_IN = Mistake(
    "half_precision",
    "x is rounded to float16 on its way in, and with it goes what 11 bits cannot hold.",
    "Convert to tl.float32, not to tl.float16.",
    predicts=lambda s: s.of(s.case.x.astype(np.float16)),
)


# Results of one number a row


def other(name: str, what: str, advice: str, values) -> Mistake:
    """Something else of each row in place of the result."""
    return Mistake(name, what, advice, predicts=lambda s: s.reduced(values))


REDUCTIONS = (
    other("minimum_given",
          "The result is each row's smallest value.", "tl.max gives the largest.", lambda x: x.min(axis=1)),
    other("maximum_given",
          "The result is each row's largest value.", "tl.max gives the largest.", lambda x: x.max(axis=1)),
    other("sum_given", "The result is each row's sum.", "tl.sum adds the lanes up.", lambda x: x.sum(axis=1)),
    other("mean_given", "The result is each row's mean.", "Leave out the division by the number of columns.",
          lambda x: x.mean(axis=1)),
    other("place_given", "The result is the column of the largest value, not the value.",
          "tl.max gives the value; tl.argmax gives its place.", lambda x: x.argmax(axis=1)),
    other("absolute_value",
          "The signs of x are lost on the way: the result is that of |x|.", "Leave out tl.abs.",
          lambda x: np.abs(x).max(axis=1)),
    other("first_column_only", "The result is the first value of each row.",
          "Load a lane for each column, ‹x_address›, and reduce the whole tile.", lambda x: x[:, 0]),
    other("last_column_only",
          "The result is the last value of each row.", "Reduce the whole tile.", lambda x: x[:, -1]),
    other("counted", "The result is the number of columns.", "Reduce the values, not the mask.",
          lambda x: np.full(len(x), x.shape[1])),
    other("addresses_stored",
          "The result is the last column's number.", "Reduce what tl.load gave, not the lanes.",
          lambda x: np.full(len(x), x.shape[1] - 1)),
    other("zeros_stored",
          "The result is 0 in every row.", "Store what the reduction gave.", lambda x: np.zeros(len(x))),
    Mistake("negated", "The result has the wrong sign.", "Leave out the minus sign.",
            predicts=lambda s: s.reduced(lambda x: -s.of(x))),
    Mistake("negated", "x enters with the wrong sign.", "Reduce x itself, not -x.",
            predicts=lambda s: s.reduced(lambda x: s.of(-x))),
    Mistake("over_all_rows", "Every row has the result of all rows together.",
            "Reduce along the columns of one row only: axis=1 in a tile of several rows.",
            predicts=lambda s: s.reduced(lambda x: np.full(len(x), s.of(x.reshape(1, -1))[0]))),
    Mistake("starts_at_zero",
            "The result is never below 0: the running result starts at 0, or a lane holds 0.",
            "Start at ‹fill›, which changes nothing: ‹fill_code›.",
            predicts=lambda s: s.reduced(lambda x: np.maximum(s.of(x), 0))),
    Mistake("clamped_at_zero", "The result is never above 0: something compares with 0.",
            "Start at ‹fill›, which changes nothing: ‹fill_code›.",
            predicts=lambda s: s.reduced(lambda x: np.minimum(s.of(x), 0))),
    Mistake("last_column_dropped", "The last column is left out.", "The mask is ‹lanes› < ‹columns›.",
            predicts=lambda s: s.reduced(lambda x: s.of(x[:, :-1])) if s.columns > 1 else None),
    Mistake("last_tile_dropped", "The last, partial tile is left out.",
            "Let the loop run to the end of the row, range(0, ‹columns›, ‹block›), with a mask.",
            predicts=lambda s: s.part(slice(0, s.columns // s.tile * s.tile)) if s.walked else None),
    Mistake("first_tile_only", "Only the first tile counts.", "Carry the result from tile to tile.",
            predicts=lambda s: s.part(slice(0, s.tile))),
    Mistake("last_tile_only", "Only the last tile counts: each tile replaces what was there.",
            "Carry the result from tile to tile.",
            predicts=lambda s: s.part(slice((s.columns - 1) // s.tile * s.tile, None)) if s.walked else None),
    Mistake("first_tile_dropped",
            "The first tile is left out.", "Let the loop begin at 0: range(0, ‹columns›, ‹block›).",
            predicts=lambda s: s.part(slice(s.tile, None)) if s.walked else None),
    Mistake("first_column_dropped", "The first column is left out.", "Columns are counted from 0.",
            predicts=lambda s: s.reduced(lambda x: s.of(x[:, 1:])) if s.columns > 1 else None),
)  # fmt: skip


def factor_of(t: Trial) -> float | None:
    """What every result of a trial is multiplied by, if it is the same for all of them."""
    use = np.isfinite(t.wanted) & (np.abs(t.wanted) > 1e-3)
    if not t.finite or use.sum() < 3:
        return None
    ratio = t.got[use] / t.wanted[use]
    factor, near = float(np.median(ratio)), 2.0**-8 if t.dtype == "float16" else 2.0**-14
    same = np.isfinite(factor) and (np.abs(ratio - factor) <= near * abs(factor)).all()
    return factor if same and abs(factor) > 1e-6 else None


def scaled(t: Trial) -> dict | None:
    """Every result is the same multiple of what it should be, and not in one row alone: there any wrong sum
    does that."""
    factor = factor_of(t)
    if factor is None:
        return None
    others = [factor_of(other) for other in t.others if other is not t and other.dtype == t.dtype]
    again = any(other is not None and abs(other - factor) <= 2.0**-12 * abs(factor) for other in others)
    return {"factor": number(factor, 4)} if len(t.bad) > 1 or again else None


SCALED = Mistake(
    "scaled",
    "Every result is ‹factor› × what it should be.",
    "Look for a constant factor: a sum that is halved, or a division that is done twice.",
    when=scaled,
    why="the factor is the same for every element of this input.",
    kind=Seen,
)

# For any exercise; one whose result is another number of each row has REDUCTIONS too.
ANY = (
    NAN_IN_A_MAXIMUM, *NAN, READ_BACK, HALF, *padding(), NOT_SCALED[0], SAME_ROW, NOT_SCALED[1], ROUNDED_IN,
    *REDUCTIONS,
    SCALED,
    *strides.ROWS, ROWS_MIXED, HALF_RESULTS,
)  # fmt: skip
