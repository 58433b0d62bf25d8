"""Recorded benchmark results: what a learner without a GPU explores, and what live results are held against.

Each file in the folder `recorded/` is one run on one GPU (`bench` explains its fields). A curve never mixes
two runs: absolute figures move by a few per cent from machine to machine.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

FOLDER = Path(__file__).parent / "recorded"

# Families of shapes, so that a curve over widths changes one thing only.
TABLES = {
    "large": "2^28 elements (2^29 of 16 bits), far more than L2 holds",
    "4096 rows": "4096 rows, so the matrix grows with the width",
    "few rows": "fewer rows than the GPU has multiprocessors",
}
ONE_GIB = 1 << 30


@dataclass(frozen=True)
class Record:
    """One measurement. gbps: 10^9 useful bytes a second; spread: interquartile range over median, or None."""

    kernel: str
    op: str
    columns: int
    rows: int
    dtype: str
    gbps: float
    share_of_copy: float | None
    microseconds: float
    spread: float | None = None
    timing: str = "events"
    note: str | None = None
    shape: str | None = None  # of the tensor, and the softmax's dimension, where that is not the innermost
    dim: int | None = None


@dataclass(frozen=True)
class Run:
    """One file: the GPU, the versions, the day, and the records."""

    name: str
    gpu: str
    torch: str
    triton: str
    date: str
    sms: int
    l2_bytes: int
    peak_gbps: float | None
    command: str
    records: tuple[Record, ...]
    raw: dict  # the file as it is, with whatever else was recorded (counters, for one)

    @property
    def source(self) -> str:
        """Where the figures come from, for a caption."""
        torch = self.torch.split("+")[0]
        return f"recorded: {self.gpu}, torch {torch}, triton {self.triton}, {self.date}"


class Recorded(Sequence):
    """Records of one run. source says where they come from."""

    def __init__(self, run: Run, records: Sequence[Record]):
        self.run = run
        self.records = tuple(records)

    @property
    def source(self) -> str:
        return self.run.source

    def __len__(self):
        return len(self.records)

    def __getitem__(self, index):
        return self.records[index]

    @property
    def kernels(self) -> list[str]:
        return list(dict.fromkeys(r.kernel for r in self.records))


@lru_cache(maxsize=1)
def runs() -> tuple[Run, ...]:
    """Every recorded run, the one to show first: the newest, a survey after a run of the course's own
    kernels."""
    found = [_read(path) for path in sorted(FOLDER.glob("*.json"))]
    return tuple(sorted(found, key=lambda run: (run.date, "survey" not in run.name), reverse=True))


def recorded(
    kernel: str | None = None,
    dtype: str | None = "float32",
    table: str | None = "large",
    op: str = "forward",
    run: str | None = None,
    timing: str = "events",
) -> Recorded:
    """Recorded results of one run, in order of columns.

    kernel: one name, or None for all. dtype: a name, or None for all. table: a family of shapes from
    TABLES, or None for all. op: "forward" or "backward". run: part of a file's name, or None for the newest
    run that has such results. timing: "events" or "graph". ValueError for a family or a run that does not
    exist; an empty result is empty, not an error.
    """
    if table is not None and table not in TABLES:
        raise ValueError(
            f"No table {table!r}. There are: {', '.join(map(repr, TABLES))}, or None for all shapes."
        )
    candidates = [r for r in runs() if run is None or run in r.name]
    if not candidates:
        raise ValueError(
            f"No recorded run {run!r}. There are: {', '.join(r.name for r in runs()) or 'none'}."
        )
    for candidate in candidates:
        chosen = [
            r
            for r in candidate.records
            if (kernel is None or r.kernel == kernel)
            and (dtype is None or r.dtype == dtype)
            and (table is None or _belongs(r, table, candidate.sms))
            and r.op == op
            and r.timing == timing
        ]
        if chosen:
            return Recorded(candidate, sorted(chosen, key=lambda r: (r.columns, r.rows)))
    return Recorded(candidates[0], ())


def _belongs(record: Record, table: str, sms: int) -> bool:
    few = record.rows < min(sms, 64)
    if table == "few rows":
        return few
    # As many rows as make about 1 GiB (half of it for a backward pass, which has three matrices).
    itemsize = 4 if record.dtype == "float32" else 2
    large = 0.45 < record.rows * record.columns * itemsize / ONE_GIB <= 1.0001
    return not few and (large if table == "large" else record.rows == 4096 and not large)


def _read(path: Path) -> Run:
    raw = json.loads(path.read_text())
    known = {field.name for field in fields(Record)}
    records = tuple(
        Record(**{"op": "forward", **{key: value for key, value in record.items() if key in known}})
        for record in raw["records"]
    )
    header = ("gpu", "torch", "triton", "date", "sms", "l2_bytes", "peak_gbps", "command")
    return Run(name=path.stem, records=records, raw=raw, **{key: raw.get(key) for key in header})
