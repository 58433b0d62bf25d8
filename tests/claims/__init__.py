"""Sentences of the course that depend on a figure, each with the data that it speaks of.

One module for each notebook, and one for the README; each has a tuple CLAIMS. tests/test_claims.py collects
them all. A claim reads the newest recorded run, so a run that makes a sentence false fails there, by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from course_kernels.lab.bench.results import Record, Run, recorded, runs


@dataclass(frozen=True)
class Claim:
    """where: a file ("notebooks/00_start_here.ipynb", "README.md"), "question KEY" or "lesson NAME".

    sentence: as it stands there; line breaks and ** do not matter, and part of a sentence will do. against:
    returns what speaks against it, an empty list if nothing does.
    """

    where: str
    sentence: str
    against: Callable[[], Sequence]


def records(kernel: str, table: str = "large", dtype: str = "float32", **how) -> dict[int, Record]:
    """Columns → record, from the newest run that has such results; never empty."""
    found = {record.columns: record for record in recorded(kernel, dtype, table, **how)}
    if not found:
        raise LookupError(f"nothing is recorded of {kernel!r} in the table {table!r} for {dtype}")
    return found


def shares(kernel: str, table: str = "large", dtype: str = "float32", **how) -> dict[int, float]:
    """Columns → share of a copy in the same run."""
    return {columns: record.share_of_copy for columns, record in records(kernel, table, dtype, **how).items()}


def outside(values: dict, low: float, high: float, where: Callable = lambda key: True) -> list:
    """The (key, value) pairs that are not within [low, high], of the keys that `where` takes."""
    chosen = {key: value for key, value in values.items() if where(key)}
    if not chosen:
        raise LookupError("no recorded width is left to decide by")
    return [(key, value) for key, value in chosen.items() if not low <= value <= high]


def counters(kernel: str) -> tuple[Run, dict[tuple[int, int], tuple[float, float]]]:
    """The newest run with hardware counters of this kernel, and (rows, columns) → passes of a float32 matrix
    (read from DRAM, written to it)."""
    for run in runs():
        seen = {}
        for count in run.raw.get("counters", []):
            if count["kernel"] == kernel and count["dtype"] == "float32":
                one = count["rows"] * count["columns"] * 4 / 1e6
                place = count["rows"], count["columns"]
                seen[place] = count["read_mb"] / one, count["written_mb"] / one
        if seen:
            return run, seen
    raise LookupError(f"no counters are recorded of {kernel!r}")
