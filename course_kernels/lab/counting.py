"""Count traffic: what PyTorch's operations read and write (`ledger`), and what any softmax here moves
(`traffic`).

Two counters meet here. A ledger watches the operations that PyTorch dispatches, and counts each one's
operands: a separate operation is a kernel of its own, so it reads all of its inputs from memory and writes
all of its outputs back. The meter (`meter.py`) watches a Triton kernel from inside, load by load. Both count
elements; neither knows a cache, so both predict what reaches DRAM only once the work has outgrown the cache.
"""

from dataclasses import asdict, dataclass, field
from functools import partial

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_kernels.lab.core.files import KERNELS
from course_kernels.lab.show.picture import Display, Prose, Stack, Table

# Names of PyTorch operations (aten), by what they do to memory.
ALLOCATIONS = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"}
FILLED = {
    "zeros",
    "zeros_like",
    "new_zeros",
    "ones",
    "ones_like",
    "new_ones",
    "full",
    "full_like",
    "new_full",
}
ANGLES = {"detach", "alias", "_unsafe_view", "lift", "lift_fresh"}  # views that are not marked as such
OVERWRITES = {"zero_", "fill_", "copy_", "uniform_", "normal_", "exponential_", "random_", "bernoulli_"}
SELECTS = {"index", "index_select", "gather", "embedding", "take"}  # read as much as they give, no more


@dataclass
class Operation:
    """One PyTorch operation: what went in and out, and the elements and bytes that it reads and writes."""

    name: str
    shapes: str
    reads: int
    writes: int
    bytes: int
    note: str = ""


class Recording(TorchDispatchMode):
    """While active, notes every operation that PyTorch dispatches."""

    def __init__(self):
        super().__init__()
        self.rows: list[Operation] = []
        self.allocated = 0  # bytes, all together
        self.peak = 0  # bytes, the most at one time
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first operation imports torch._dynamo, a second's wait for nothing

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = self.compute(operation, args, kwargs)
        self.rows.append(describe_operation(operation, args, kwargs, result))
        if not is_view(operation):
            self._note_storages(result)
        return result

    def compute(self, operation, args, kwargs):
        """Run the operation; for subclasses that must do something around it."""
        return operation(*args, **kwargs)

    def _note_storages(self, result) -> None:
        self._alive = {key: kept for key, kept in self._alive.items() if not kept[0].expired()}
        for tensor in _tensors(result):
            storage = tensor.untyped_storage()
            reference = StorageWeakRef(storage)
            if reference.cdata not in self._alive and not self._was_there(storage):
                self._alive[reference.cdata] = reference, storage.nbytes()
                self.allocated += storage.nbytes()
        self.peak = max(self.peak, sum(size for _, size in self._alive.values()))

    def _was_there(self, storage) -> bool:
        """True for the storage of a tensor that was passed in: an operation in place gives it back."""
        return storage._cdata in self._given

    _given: frozenset = frozenset()

    def given(self, *arguments) -> None:
        """The arguments' own memory is not the function's."""
        self._given = frozenset(t.untyped_storage()._cdata for t in _tensors(arguments))


def is_view(operation) -> bool:
    """True for an operation that only looks at a tensor from another angle."""
    return operation.is_view or _name(operation) in ANGLES


def describe_operation(operation, args, kwargs, result) -> Operation:
    """Count one operation: every distinct element of its inputs read once, of its outputs written once."""
    name, schema = _name(operation), operation._schema
    inputs, outputs = _tensors((args, kwargs)), _tensors(result)
    shapes = f"{_shapes(inputs)} → {_shapes(outputs)}" if inputs else _shapes(outputs)
    if is_view(operation):
        return Operation(name, shapes, 0, 0, 0, "a view: no traffic")
    if name in ALLOCATIONS:
        return Operation(name, shapes, 0, 0, 0, "an allocation: no traffic")
    read, written = {}, {}
    values = dict(zip((a.name for a in schema.arguments), args, strict=False)) | kwargs
    for argument in schema.arguments:
        for tensor in _tensors(values.get(argument.name)):
            changes = argument.alias_info is not None and argument.alias_info.is_write
            if changes:
                written[_key(tensor)] = tensor
            if not changes or not (argument.kwarg_only or name in OVERWRITES):
                read[_key(tensor)] = tensor
    if name in FILLED:
        read = {}  # zeros_like asks its argument for a shape, not for values
    for returned, tensor in zip(schema.returns, _returned(result), strict=False):
        if returned.alias_info is None:
            written.update({_key(t): t for t in _tensors(tensor)})
    note = ""
    if name in SELECTS:
        data, *indices = read.values()
        reads = [(sum(t.numel() for t in outputs), data.element_size())]
        reads += [(_elements(t), t.element_size()) for t in indices]
    else:
        reads = [(_elements(t), t.element_size()) for t in read.values()]
    writes = [(_elements(t), t.element_size()) for t in written.values()]
    if name in ("max", "min") and len(outputs) == 2:
        note = f"writes the places as well, as {str(outputs[1].dtype).removeprefix('torch.')}"
    return Operation(
        name,
        shapes,
        sum(n for n, _ in reads),
        sum(n for n, _ in writes),
        sum(n * size for n, size in reads + writes),
        note,
    )


def _name(operation) -> str:
    return operation._schema.name.removeprefix("aten::")


def _tensors(tree) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _returned(result) -> list:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _elements(tensor: torch.Tensor) -> int:
    """The distinct elements of a tensor: an expanded dimension repeats, it does not add."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= size if stride or size == 0 else 1
    return count


def _key(tensor: torch.Tensor) -> tuple:
    return tensor.untyped_storage()._cdata, tensor.storage_offset(), tuple(tensor.shape), tensor.stride()


def _shapes(tensors: list[torch.Tensor]) -> str:
    return ", ".join(" × ".join(map(str, t.shape)) or "a number" for t in tensors) or "nothing"


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
        text = f"It asked for {self.allocated:,} bytes of memory in all, and held {self.peak:,} at one time."
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
IN_FULL_ELEMENTS, IN_FULL_PROGRAMS = 1 << 20, 600  # up to here a shape is metered as it is, in about a second
MOST_ELEMENTS, MOST_PROGRAMS = 1 << 25, 20_000  # and beyond this it is not: a minute, a gigabyte
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
        seen to
            lie on a line; `how` says so.
        dtype: of the matrix: "float16", "bfloat16", "float32" or "float64".

    Raises:
        KeyError: no such name; the message lists those there are.
        ValueError: a shape or dtype that it does not take, or a file that does not run; the message says what
            to do.
    """
    rows, cols, dtype = _checked(rows, cols, dtype)
    name = _as_name(name_or_fn)
    if name is None:
        return Traffic(_title(name_or_fn), rows, cols, dtype, **count_here(name_or_fn, rows, cols, dtype))
    from course_kernels.lab import exercises as specs
    from course_kernels.lab.run import forkserver as zygote

    if name in KERNELS or name in PYTORCH:
        job = "count_module"
    elif name in specs.names():
        job = "count_exercise"
    else:
        known = ", ".join((*PYTORCH, *KERNELS))
        raise KeyError(
            f"There is no softmax called {name!r}. There are: {known}; and the exercises: "
            f"{', '.join(specs.names())}."
        )
    arguments = {"name": name, "rows": rows, "cols": cols, "dtype": dtype}
    if job == "count_exercise":
        from course_kernels.lab.core.files import exercise_file

        arguments["path"] = str(exercise_file(name))
    answer = zygote.submit("interpret", f"course_kernels.lab.counting:{job}", **arguments).result(SECONDS)
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


# Jobs for the interpreting server


def count_module(name: str, rows: int, cols: int, dtype: str) -> dict:
    """Count a kernel module's softmax, or PyTorch's; the fields of a Traffic, or {"refused": why}."""
    try:
        answer = count_here(_softmax_of(name), rows, cols, dtype)
        return answer | {"how": answer["how"] + _handed_over(name, answer["how"])}
    except (TypeError, ValueError) as error:
        return {"refused": f"{name} does not take {rows:,} × {cols:,} {dtype}: {error}"}


def _handed_over(name: str, how: str) -> str:
    """A sentence for a module whose own kernel did not run: what was counted is another's."""
    if name == "resident_row" and "resident_row_kernel" not in how:
        return (
            " This is split_row's traffic: resident_row's programs wait for each other, which the "
            "interpreter, running one after another, cannot do. On a GPU its own kernel reads each element "
            "once."
        )
    return ""


def _softmax_of(name: str):
    import importlib

    if name == "torch":
        return lambda x: torch.softmax(x, dim=1)
    module = importlib.import_module(f"course_kernels.{name}")
    if not hasattr(module, "softmax"):
        raise ValueError(f"course_kernels/{name}.py defines no softmax.")
    return module.softmax


def count_exercise(name: str, path: str, rows: int, cols: int, dtype: str) -> dict:
    """Count the learner's own file; the fields of a Traffic, or {"refused": why}."""
    from pathlib import Path

    from course_kernels.lab import exercises as specs
    from course_kernels.lab.check.judge import Finding
    from course_kernels.lab.check.rows import KernelExercise
    from course_kernels.lab.exercises import stubs

    exercise = specs.get(name)
    count = getattr(exercise, "count", None)
    if isinstance(exercise, KernelExercise):
        count = partial(_count_kernels, exercise)
    if count is None:
        return {
            "refused": f"{name} turns no matrix into another, so there is no traffic of its own to count."
        }
    if dtype not in ("float16", "float32"):
        return {"refused": f"The exercises take float32 and float16, not {dtype}."}
    if not Path(path).exists() or stubs.is_stub(
        name, Path(path).read_text(encoding="utf-8", errors="replace")
    ):
        return {
            "refused": f"{name} is not done yet, so there is nothing to count: fill in exercises/{name}.py "
            "first."
        }
    try:
        return _extended(lambda row_counts: count(path, row_counts, cols, dtype), None, rows, cols)
    except (Finding, ValueError) as finding:
        return {"refused": f"exercises/{name}.py could not be counted. {finding}"}


def _count_kernels(exercise, path: str, row_counts, cols: int, dtype: str) -> list[dict]:
    from course_kernels.lab.check.judge import Case, Session

    session = Session(path, exercise.entry, 0, adapt=exercise.adapt)
    cases = [Case("count", "random numbers", _matrix(n, cols, dtype).numpy()) for n in row_counts]
    results = session.run(cases)
    for case, result in zip(cases, results, strict=False):
        exercise.check_run(session, case, result)
    return [
        {
            "loads": result.loads,
            "stores": result.stores,
            "bytes": sum(row[3] for row in result.traffic),
            "by_op": [tuple(row) for row in result.traffic],
            "launches": result.launches,
        }
        for result in results
    ]


# Counting


def count_here(fn, rows: int, cols: int, dtype: str) -> dict:
    """Count a function of one matrix in this process; the fields of a Traffic."""
    from course_kernels import mode

    if not mode.interpreting():
        counts = _extended(
            lambda row_counts: [_recorded(fn, n, cols, dtype) for n in row_counts], None, rows, cols
        )
        if not counts["loads"] and rows * cols:
            raise ValueError(
                "PyTorch dispatched nothing that reads: if the function launches a kernel, it can be metered "
                "only where kernels are interpreted. Save it as an exercise's answer and name that, or set "
                "TRITON_INTERPRET=1 and start Python again."
            )
        return counts
    return _extended(
        lambda row_counts, of=None: [_metered(fn, n, cols, dtype, of) for n in row_counts],
        lambda n: _planned(fn, n, cols, dtype),
        rows,
        cols,
    )


def _matrix(rows: int, cols: int, dtype: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(rows, cols, generator=generator).to(getattr(torch, dtype))


def _recorded(fn, rows: int, cols: int, dtype: str) -> dict:
    from course_kernels import mode

    book = ledger(fn, _matrix(rows, cols, dtype).to(mode.device()))
    by_op = [(row.name, row.reads, row.writes, row.bytes) for row in book.rows if row.bytes]
    return {"loads": book.reads, "stores": book.writes, "bytes": book.bytes, "by_op": by_op, "launches": []}


def _metered(fn, rows: int, cols: int, dtype: str, of: int | None = None) -> dict:
    """One call under the meter and the ledger together; of `of` rows, only the first ones' programs, if it is
    given.

    Raises:
        _Bent: a grid that is not so many programs a row.
    """
    from course_kernels.lab.run.meter import Meter

    class FirstRows(Meter):
        def launch(self, function, original, args, grid, warmup, kwargs):
            grid = _grid(function, args, grid, kwargs)
            if grid[0] % of:
                raise _Bent
            grid = (grid[0] // of * rows, *grid[1:])
            return super().launch(function, original, args, grid, warmup, kwargs)

    meter = FirstRows() if of else Meter()
    x = _matrix(of or rows, cols, dtype)
    recording = _Metered(meter)
    with meter, np.errstate(all="ignore"):  # a kernel may compute with the poison of what it never wrote
        meter.give("x", x)
        with recording:
            y = fn(x)
    by_op = [(row.name, row.reads, row.writes, row.bytes) for row in recording.rows if row.bytes]
    by_op += meter.by_tensor({"y": y})
    return {
        "loads": meter.loads() + sum(row.reads for row in recording.rows),
        "stores": meter.stores() + sum(row.writes for row in recording.rows),
        "bytes": meter.bytes() + sum(row.bytes for row in recording.rows),
        "by_op": by_op,
        "launches": [asdict(launch) for launch in meter.launches],
    }


class _Metered(Recording):
    """A recording beside a meter, which must know every tensor and shows values to kernels only."""

    def __init__(self, meter):
        super().__init__()
        self.meter = meter

    def compute(self, operation, args, kwargs):
        if is_view(operation):
            return operation(*args, **kwargs)
        with self.meter.values_in_place():
            result = operation(*args, **kwargs)
        for tensor in _tensors(result):
            if tensor.numel() and self.meter.region_of(tensor) is None:
                self.meter.allocated(tensor, initialised=_name(operation) not in ALLOCATIONS)
        return result


def _planned(fn, rows: int, cols: int, dtype: str) -> list[dict]:
    """The launches of one call, without running them: name, grid and integer arguments of each."""
    from course_kernels.lab.run.meter import Launch, Meter

    class Plan(Meter):
        def launch(self, function, original, args, grid, warmup, kwargs):
            names = dict(zip(function.arg_names, args, strict=False)) | kwargs
            numbers = {k: int(v) for k, v in names.items() if isinstance(v, int)}
            self.launches.append(Launch(function.__name__, _grid(function, args, grid, kwargs), numbers))

    plan = Plan()
    with plan:
        fn(torch.empty(rows, cols, dtype=getattr(torch, dtype)))
    return [asdict(launch) for launch in plan.launches]


def _grid(function, args, grid, kwargs) -> tuple[int, int, int]:
    names = dict(zip(function.arg_names, args, strict=False)) | kwargs
    grid = grid(names) if callable(grid) else grid
    return (*grid, 1, 1)[:3]


def _extended(count, plan, rows: int, cols: int) -> dict:
    """Counts for the whole shape: as it is if that is quick, else from three row counts that lie on a line.

    count(row counts): the counts for each. plan(rows): the launches at that many rows, or None if they cannot
    be had without running them.
    """
    if rows <= 8:
        return _whole(count, rows, cols)
    if plan and not count((1,))[0]["launches"]:
        plan = None  # PyTorch's operations only: one count of rows is as good as another
    launches = plan(rows) if plan else []
    programs = _programs(launches) if plan else rows
    if rows * cols <= IN_FULL_ELEMENTS and programs <= IN_FULL_PROGRAMS:
        return _whole(count, rows, cols)
    for few in _candidates(rows):
        samples = (few, few + 1, few + 3)
        launched = [plan(n) for n in samples] if launches else []
        if launches and not _same_kind((*samples, rows), (*launched, launches)):
            continue  # the launch changes its shape between here and there, in blocks or chunks, say
        work = sum(_programs(one) for one in launched) if launches else sum(samples)
        if sum(samples) >= rows or work > MOST_PROGRAMS // 8 or sum(samples) * cols > MOST_ELEMENTS:
            break
        line = _line(samples, count(samples), rows)
        if line is not None:
            return _told(
                line,
                f"Counted on {_and(samples)} rows of {cols:,}, which lie on a line, and extended along it to "
                f"{rows:,} rows.",
            )
    if launches and rows * cols <= MOST_ELEMENTS:
        try:
            line = _line((2, 3, 5), count((2, 3, 5), rows), rows)
        except _Bent:
            line = None
        if line is not None:
            return _told(
                line,
                f"Launched on the whole shape; the programs of its first {_and((2, 3, 5))} rows were "
                f"counted, which lie on a line, and extended along it to {rows:,} rows.",
            )
    return _whole(count, rows, cols, programs)


def _and(numbers) -> str:
    texts = [n if isinstance(n, str) else f"{n:,}" for n in numbers]
    return " and ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def _whole(count, rows: int, cols: int, programs: int = 0) -> dict:
    if rows * cols > MOST_ELEMENTS or programs > MOST_PROGRAMS:
        raise ValueError(
            f"{rows:,} × {cols:,} is more than can be counted here element by element, and smaller shapes do "
            "not tell for certain what it moves. Take fewer rows or columns."
        )
    (answer,) = count((rows,))
    return _told(answer, "Counted on the whole shape.")


def _told(answer: dict, how: str) -> dict:
    """The answer with a sentence on how it was counted, and by which kernels."""
    names = list(dict.fromkeys(launch["kernel"] for launch in answer.pop("launches")))
    metered = f"Metered load by load in the interpreter: {_and(names)}."
    return answer | {"how": f"{how} {metered if names else 'By the operations that PyTorch dispatched.'}"}


def _candidates(rows: int) -> list[int]:
    few, found = 2, []
    while few < rows:
        found.append(few)
        few *= 2
    # Launches often change at half a power of two; just under the shape itself they have changed.
    return found + [n for n in (rows // 2 + 1, rows // 4 + 1) if n > 2]


def _programs(launches: list[dict]) -> int:
    return sum(launch["grid"][0] * launch["grid"][1] * launch["grid"][2] for launch in launches)


def _same_kind(row_counts, launches) -> bool:
    """True if launches at these row counts differ only in numbers that grow evenly with the rows."""
    if len({tuple(launch["kernel"] for launch in one) for one in launches}) != 1:
        return False
    for together in zip(*launches, strict=True):
        for name in together[0]["numbers"]:
            if not _on_line(row_counts, [one["numbers"].get(name, 0) for one in together]):
                return False
    return True


def _on_line(xs, ys) -> bool:
    (x1, x2, *more_x), (y1, y2, *more_y) = xs, ys
    return all((y - y1) * (x2 - x1) == (y2 - y1) * (x - x1) for x, y in zip(more_x, more_y, strict=True))


def _line(samples, counts, rows) -> dict | None:
    """The counts at `rows`, if those of the three samples lie on a line; else None."""
    if not _same_kind(samples, [one["launches"] for one in counts]):
        return None
    names = [tuple(row[0] for row in one["by_op"]) for one in counts]
    if len(set(names)) != 1:
        return None

    def at(values):
        if not _on_line(samples, values):
            raise _Bent
        (n1, n2, _), (v1, v2, _) = samples, values
        return v1 + (v2 - v1) * (rows - n1) // (n2 - n1)

    try:
        answer = {key: at([one[key] for one in counts]) for key in ("loads", "stores", "bytes")}
        answer["by_op"] = [
            (name, *(at([one["by_op"][i][k] for one in counts]) for k in (1, 2, 3)))
            for i, name in enumerate(names[0])
        ]
    except _Bent:
        return None
    return answer | {"launches": counts[0]["launches"]}


class _Bent(Exception):
    """Three counts that do not lie on a line."""
