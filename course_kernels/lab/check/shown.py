"""The smallest case that shows a mistake, and how it is written down."""

from dataclasses import replace

import numpy as np

from course_kernels.lab.check.trial import Trial
from course_kernels.lab.core.wording import numbers, side_by_side

SHOWN = 6  # numbers of a row that a message shows
SHRUNK = (1, 2, 3, 4, 5, 7, 8, 16, 31)  # row lengths tried when looking for a small case


def shrink(trial: Trial, row: int, marked: bool = False) -> Trial:
    """A trial of one short row that still fails, if there is one; else the whole case.

    marked: with the NaN, or the infinities, that the row holds, of which a message speaks.
    """
    case, tile = trial.case, trial.facts.widest_load
    if case.more or case.x.ndim != 2:
        return trial
    x = case.x[row : row + 1]
    # Some mistakes need a second tile, or a third.
    widths = {n for n in (*SHRUNK, tile + 1, 2 * tile, 2 * tile + 1) if n < x.shape[1]}
    if marked:
        widths = {n for n in widths if odd_ones(x[:, :n]) == odd_ones(x)}
    about = f"cut from row {row} of: {case.about}" if len(case.x) > 1 else f"cut from: {case.about}"
    short = [replace(case, x=x[:, :n].copy(), gap=0, about=about) for n in (*sorted(widths), x.shape[1])]
    return next((t for t in trial.run(short) if t.compared and len(t.bad)), trial)


def odd_ones(x: np.ndarray) -> set[str]:
    """What x holds besides numbers: "nan", "inf", "-inf"."""
    return {str(value) for value in np.unique(x[~np.isfinite(x)].astype(np.float64))}


def drawn(trial: Trial) -> str:
    """The case, the row, the expected and the got, a few numbers of each."""
    case, row = trial.case, int(trial.bad[0]) if len(trial.bad) else 0
    place = f"; row {row}" if len(case.x) > 1 else ""
    lines = [f"The smallest case found: x is {case.shape} {trial.dtype}, {case.about}{place}:"]
    several = len(trial.names) > 1
    index = next((i for i, mask in enumerate(trial.wrong) if mask.any()), 0)
    wrong = trial.wrong[index].reshape(trial.rows, -1)[row]
    pairs = [
        (np.atleast_1d(wanted[row]), np.atleast_1d(values[row]))
        for wanted, values in zip(trial.expected, trial.values, strict=True)
    ]
    start = excerpt(case.x[row], wrong, *pairs[index])
    cut = slice(start, start + SHOWN)
    lines.append(f"  x        {numbers(case.x[row][cut])}{f' from column {start}' if start else ''}")
    for i, (wanted, got) in enumerate(pairs):
        demanded = not np.isnan(wanted).all() or trial.wrong[i][row].any()
        if i != index and not (several and demanded):
            continue
        name = f"{trial.names[i]} " if several else ""
        part = cut if len(wanted) == trial.columns else slice(0, SHOWN)
        expected, given = side_by_side(wanted[part], got[part], np.atleast_1d(trial.wrong[i][row])[part])
        lines += [f"  expected {name}{expected}", f"  got      {name}{given}"]
    return "\n".join(lines)


def excerpt(x: np.ndarray, wrong: np.ndarray, wanted: np.ndarray, got: np.ndarray) -> int:
    """The first column to show of a row: near a NaN that is to be seen, else near a value far off."""
    if len(x) <= SHOWN:
        return 0
    if np.isnan(x).any() or len(wrong) != len(x):  # one result for the whole row: show its largest value
        at = int(np.argmax(x))  # which takes NaN for the largest
    else:
        with np.errstate(all="ignore"):
            error = np.abs(got.astype(np.float64) - wanted) / np.maximum(np.abs(wanted), 1e-30)
        error = np.where(wrong, np.nan_to_num(error, nan=np.inf), -1.0)
        at = int(np.argmax(error >= min(error.max() / 2, 0.01)))
    return max(0, min(at - 1, len(x) - SHOWN))
