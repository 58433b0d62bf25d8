"""Rows started at the wrong place: a stride that is missing, another tensor's, or that of the columns."""

import re

from course_kernels.lab.check.mistakes import Mistake, Probe
from course_kernels.lab.check.trial import Trial

FLAT = Probe(lambda t: t.like(t.case.x) if t.case.gap else None)
NO_GAPS = "the same numbers in a matrix without gaps come out right."
NAME_BY_NAME = "Compare the order of the arguments in the launch with the kernel's own, name by name."


def gap(trial: Trial) -> dict | None:
    """The numbers of a matrix whose rows lie apart."""
    return {"stride": trial.columns + trial.case.gap, "columns_": trial.columns} if trial.case.gap else None


def divided(trial: Trial) -> dict | None:
    """Row numbers found by dividing by the stride."""
    words = gap(trial)
    for name, value in numbers(trial) if words else ():
        if value == words["stride"] and re.search(rf"//\s*{re.escape(name)}\b", trial.source.text):
            return words | {"name": name}
    return None


def borrowed(trial: Trial) -> dict | None:
    """A stride argument that holds the number of columns, in the address of a load."""
    words = gap(trial)
    for name, value in numbers(trial) if words else ():
        load = rf"(tl\.load\(|\b{trial.words['x_ptr']}\b).*\*\s*{re.escape(name)}\b"
        if value == trial.columns and "stride" in name and re.search(load, trial.source.text):
            return words | {"name": name, "value": value}
    return None


def exchanged(trial: Trial) -> dict | None:
    """The same, where the right number came to another argument."""
    words = borrowed(trial)
    given = words and words["stride"] in dict(numbers(trial)).values() and words["name"].startswith("x")
    return words if given else None


def numbers(trial: Trial):
    """The names and values of the first launch's numbers."""
    return trial.facts.launches[0]["numbers"].items() if trial.facts.launches else ()


def columns_for_rows(trial: Trial) -> list[str]:
    """The tensors whose stride(1) is passed, and whose stride(0) is not."""
    text = trial.source.text
    given = re.findall(r"\b(\w+)\.stride\(\s*(?:dim\s*=\s*)?(?:1|-1)\s*\)", text)
    return [t for t in given if not re.search(rf"\b{t}\.stride\(\s*(?:dim\s*=\s*)?(?:0|-2)\s*\)", text)]


ROWS = (
    Mistake(
        "row_stride",
        "An element's row is found by dividing by `‹name›`, the row stride of x, which counts what lies "
        "between the rows too.",
        "Of element number i the row is i // columns and the column i % columns; the stride belongs in the "
        "address only: ‹row› * ‹x_stride› + ‹lanes›.",
        when=divided,
        probes=(FLAT,),
        why=NO_GAPS
        + " Here a row starts ‹stride› elements after the one before it, and has ‹columns_› columns.",
    ),
    Mistake(
        "row_stride",
        "The strides have changed places in the launch: `‹name›` was given ‹value›, and x.stride(0) is "
        "‹stride›.",
        NAME_BY_NAME,
        when=exchanged,
        probes=(FLAT,),
        why=NO_GAPS,
    ),
    Mistake(
        "row_stride",
        "The row of x is found with `‹name›`, the stride of another tensor.",
        "Each tensor has a stride of its own: pass x.stride(0), and start the row at ‹x_start›.",
        when=borrowed,
        probes=(FLAT,),
        why=NO_GAPS,
    ),
    Mistake(
        "row_stride",
        "The kernel uses the number of columns as the row stride.",
        "Pass x.stride(0) to the kernel, and start the row at ‹x_start›.",
        when=gap,
        probes=(FLAT,),
        why=NO_GAPS
        + " Here a row starts ‹stride› elements after the one before it, and has ‹columns_› columns.",
    ),
)


def stride_of_columns(trial: Trial) -> bool:
    return "x" in columns_for_rows(trial)


# Where what each row gives equals what x, loaded from x_ptr + row + column, would give.
NOT_SCALED = (
    ("x.stride(1) is passed, the distance from one column to the next, which is 1: each row starts one "
     "element after the one before.",
     "Pass x.stride(0), the distance from one row to the next.", stride_of_columns),
    ("The row number is added as it is, so each row starts one element after the one before, not one row "
     "after it.",
     "Start the row at ‹x_start›.", None),
)  # fmt: skip
