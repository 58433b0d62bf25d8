"""Show traffic: what PyTorch's operations read and write (`ledger`), what a softmax moves (`traffic`)."""

from dataclasses import dataclass, field
from pathlib import Path

import torch

from course_kernels.lab import exercises
from course_kernels.lab.check.errors import stopped
from course_kernels.lab.check.finding import Finding
from course_kernels.lab.core.files import KERNELS, exercise_file
from course_kernels.lab.exercises import stubs
from course_kernels.lab.run import forkserver
from course_kernels.lab.run.cases import Stopped
from course_kernels.lab.run.operations import Recording
from course_kernels.lab.run.traffic import count_function, extended
from course_kernels.lab.show.picture import Display, Prose, Stack, Table


class Ledger(Display):
    """The PyTorch operations of one call.

    rows: an `Operation` each, in order; views and allocations too, with no traffic. reads, writes: elements,
    over all rows. bytes: read and written. allocated: bytes of memory that the call asked for, all together.
    peak: the most of them held at one time, the result among them. launches: the operations that move
    anything, each a kernel of its own on a GPU. result: what the call returned.
    """

    def __init__(self, recording: Recording, result=None):
        self.rows = recording.rows
        self.allocated, self.peak = recording.allocated, recording.peak
        self.reads = sum(row.reads for row in self.rows)
        self.writes = sum(row.writes for row in self.rows)
        self.bytes = sum(row.bytes for row in self.rows)
        self.launches = sum(row.bytes > 0 for row in self.rows)
        self.result = result

    def _display(self) -> Stack:
        notes = any(row.note for row in self.rows)
        rows = [
            [row.name, row.shapes, row.reads, row.writes, row.bytes] + ([row.note] if notes else [])
            for row in self.rows
        ]
        rows.append(["together", "", self.reads, self.writes, self.bytes] + ([""] if notes else []))
        headers = ["operation", "shapes", "reads", "writes", "bytes"] + (["note"] if notes else [])
        table = Table(
            rows, headers, "Elements that each PyTorch operation reads and writes", mark=len(rows) - 1
        )
        text = (
            f"It asked for {self.allocated:,} bytes of memory in all, and held {self.peak:,} at one time. "
            "Each operation is assumed to read its inputs once and to write its outputs once."
        )
        if not self.launches:
            text = "PyTorch moved nothing. A Triton kernel does not show here; traffic() meters it."
        return Stack(table, Prose(text))

    def html(self) -> str:
        return self._display().html()

    def plain(self) -> str:
        return self._display().plain()


def ledger(fn, *args, **kwargs) -> Ledger:
    """Call fn(*args, **kwargs) and list each PyTorch operation that it dispatches, with what it reads and
    writes.

    The count is the traffic of separate kernels without a cache: each operation reads every element of its
    inputs and writes every element of its outputs once. A Triton kernel that fn launches is not a PyTorch
    operation, and does not show.

    Raises:
        TypeError: fn cannot be called. Whatever fn raises, as it is.
    """
    if not callable(fn):
        raise TypeError(f"ledger(fn, *args) calls a function; {type(fn).__name__} cannot be called.")
    recording = Recording()
    recording.given(args, kwargs)
    with recording:
        result = fn(*args, **kwargs)
    return Ledger(recording, result)


# Traffic of a named softmax, or of a function of one matrix

PYTORCH = {"torch": "torch.softmax", "eager": "course_kernels.eager.softmax"}
DTYPES = ("float16", "bfloat16", "float32", "float64")
SECONDS = 120


@dataclass(repr=False)
class Traffic(Display):
    """What a softmax of a (rows, cols) matrix moves.

    loads, stores: elements. bytes: loaded and stored. by_op: (what, loads, stores, bytes) for each operation
    of PyTorch, or for each tensor that kernels touch. how: how it was counted.
    """

    name: str
    rows: int
    cols: int
    dtype: str
    loads: int
    stores: int
    bytes: int
    by_op: list = field(default_factory=list)
    how: str = ""

    def json(self) -> dict:
        """The contract of `traffic --json`."""
        return {"loads": self.loads, "stores": self.stores, "bytes": self.bytes}

    def _display(self) -> Stack:
        size = max(1, self.rows * self.cols)
        rows = [list(row) + [(row[1] + row[2]) / size] for row in self.by_op]
        total = ["together", self.loads, self.stores, self.bytes, (self.loads + self.stores) / size]
        caption = f"{self.name}, {self.rows:,} × {self.cols:,} {self.dtype}: elements loaded and stored"
        headers = ["what", "loads", "stores", "bytes", "for each element of x"]
        return Stack(Table([*rows, total], headers, caption, mark=len(rows)), Prose(self.how))

    def html(self) -> str:
        return self._display().html()

    def plain(self) -> str:
        return self._display().plain()


def traffic(name_or_fn, rows: int, cols: int, dtype: str = "float32") -> Traffic:
    """What a softmax moves, counted element by element.

    Args:
        name_or_fn: a kernel module of course_kernels ("fused_row"; see KERNELS), "torch" (torch.softmax, one
            fused operation), "eager" (the separate steps), the name of an exercise (the learner's own file),
            or a function of one matrix.
        rows, cols: the shape. A large one is counted on fewer rows and extended, once three row counts are
            seen to lie on a line; `how` says so.
        dtype: of the matrix: "float16", "bfloat16", "float32" or "float64".

    Raises:
        KeyError: no such name; the message lists those there are.
        ValueError: a shape or dtype that it does not take, or a file that does not run; the message says what
            to do.
    """
    rows, cols, dtype = _checked(rows, cols, dtype)
    name = _as_name(name_or_fn)
    if name is None:
        return Traffic(_title(name_or_fn), rows, cols, dtype, **count_function(name_or_fn, rows, cols, dtype))
    arguments = {"name": name, "rows": rows, "cols": cols, "dtype": dtype}
    if name in KERNELS or name in PYTORCH:
        job = "course_kernels.lab.run.traffic:count_module"
    elif name in exercises.names():
        job = "course_kernels.lab.counting:count_exercise"
        arguments["path"] = str(exercise_file(name))
    else:
        raise KeyError(
            f"There is no softmax called {name!r}. There are: {', '.join((*PYTORCH, *KERNELS))}; and the "
            f"exercises: {', '.join(exercises.names())}."
        )
    answer = forkserver.submit("interpret", job, **arguments).result(SECONDS)
    if "refused" in answer:
        raise ValueError(answer["refused"])
    answer["by_op"] = [tuple(row) for row in answer["by_op"]]
    return Traffic(name, rows, cols, dtype, **answer)


def _checked(rows, cols, dtype) -> tuple[int, int, str]:
    sizes = []
    for name, size in (("rows", rows), ("cols", cols)):
        if isinstance(size, bool) or not hasattr(size, "__index__") or int(size) < 0:
            raise ValueError(f"{name} is a whole number from 0 up; {size!r} is not.")
        sizes.append(int(size))
    dtype = str(dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise ValueError(f"dtype is one of {', '.join(DTYPES)}; {dtype!r} is not.")
    return *sizes, dtype


def _as_name(thing) -> str | None:
    """The name that `traffic` knows a thing by; None for a function to be called here."""
    if isinstance(thing, str):
        return thing
    if thing in (torch.softmax, torch.nn.functional.softmax):
        return "torch"
    home = getattr(thing, "__module__", None) or getattr(thing, "__name__", "")
    package, _, module = str(home).rpartition(".")
    named_softmax = not callable(thing) or getattr(thing, "__name__", "") == "softmax"
    if package == "course_kernels" and module in (*KERNELS, "eager") and named_softmax:
        return module
    if type(thing).__name__ == "module":
        return getattr(thing, "__name__", "?").rpartition(".")[2]
    if not callable(thing):
        raise ValueError(
            "traffic takes the name of a softmax or a function of one matrix; this is "
            f"{type(thing).__name__}."
        )
    return None


def _title(fn) -> str:
    return getattr(fn, "__qualname__", None) or type(fn).__name__


def count_exercise(name: str, path: str, rows: int, cols: int, dtype: str) -> dict:
    """A job: count the learner's own file; the fields of a Traffic, or {"refused": why}."""
    exercise = exercises.get(name)
    if not hasattr(exercise, "count"):
        why = f"{name} turns no matrix into another, so there is no traffic of its own to count."
        return {"refused": why}
    if dtype not in ("float16", "float32"):
        return {"refused": f"The exercises take float32 and float16, not {dtype}."}
    if found := stubs.standing(exercise, path):
        status, _, parts = found
        undone = f"{name} is not done yet, so there is nothing to count: fill in exercises/{name}.py first."
        return {"refused": undone if status == "todo" else parts["what"]}
    try:
        return extended(lambda row_counts: exercise.count(path, row_counts, cols, dtype), None, rows, cols)
    except Stopped as run:
        why = stopped(run, Path(path).read_text(encoding="utf-8", errors="replace"))
    except (Finding, ValueError) as finding:
        why = finding
    return {"refused": f"exercises/{name}.py could not be counted. {why}"}
