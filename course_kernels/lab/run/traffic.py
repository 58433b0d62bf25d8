"""Count what a softmax moves: PyTorch's operations by the recording, kernels by the meter.

Both count elements. Neither knows a cache, so both predict what reaches DRAM only for matrices many times as
large as the cache. A large shape is counted on fewer rows and extended, once three row counts are seen to lie
on a line.
"""

import importlib
from dataclasses import asdict

import numpy as np
import torch

from course_kernels import mode
from course_kernels.lab.run.meter import Launch, Meter
from course_kernels.lab.run.operations import ALLOCATIONS, Recording, is_view, name_of, tensors_of

IN_FULL_ELEMENTS, IN_FULL_PROGRAMS = 1 << 20, 600  # up to here a shape is metered as it is, in about a second
MOST_ELEMENTS, MOST_PROGRAMS = 1 << 25, 20_000  # and beyond this it is not: a minute, a gigabyte


def count_module(name: str, rows: int, cols: int, dtype: str) -> dict:
    """Count a kernel module's softmax, or PyTorch's; the fields of a Traffic, or {"refused": why}."""
    try:
        answer = count_function(softmax_of(name), rows, cols, dtype)
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


def softmax_of(name: str):
    if name == "torch":
        return lambda x: torch.softmax(x, dim=1)
    module = importlib.import_module(f"course_kernels.{name}")
    if not hasattr(module, "softmax"):
        raise ValueError(f"course_kernels/{name}.py defines no softmax.")
    return module.softmax


def count_function(fn, rows: int, cols: int, dtype: str) -> dict:
    """Count a function of one matrix in this process; the fields of a Traffic."""
    if not mode.interpreting():
        counts = extended(
            lambda row_counts: [_recorded(fn, n, cols, dtype) for n in row_counts], None, rows, cols
        )
        if not counts["loads"] and rows * cols:
            raise ValueError(
                "PyTorch dispatched nothing that reads: if the function launches a kernel, it can be metered "
                "only where kernels are interpreted. Save it as an exercise's answer and name that, or set "
                "TRITON_INTERPRET=1 and start Python again."
            )
        return counts
    return extended(
        lambda row_counts, of=None: [_metered(fn, n, cols, dtype, of) for n in row_counts],
        lambda n: _planned(fn, n, cols, dtype),
        rows,
        cols,
    )


def matrix(rows: int, cols: int, dtype: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(rows, cols, generator=generator).to(getattr(torch, dtype))


def _recorded(fn, rows: int, cols: int, dtype: str) -> dict:
    x, recording = matrix(rows, cols, dtype).to(mode.device()), Recording()
    recording.given(x)
    with recording:
        fn(x)
    return _sums(recording) | {"launches": []}


def _sums(recording: Recording) -> dict:
    """What all operations of a recording move."""
    return {
        "loads": sum(row.reads for row in recording.rows),
        "stores": sum(row.writes for row in recording.rows),
        "bytes": sum(row.bytes for row in recording.rows),
        "by_op": [(row.name, row.reads, row.writes, row.bytes) for row in recording.rows if row.bytes],
    }


def _metered(fn, rows: int, cols: int, dtype: str, of: int | None = None) -> dict:
    """One call under the meter and the ledger together; of `of` rows, only the first ones' programs, if it is
    given.

    Raises:
        _Bent: a grid that is not so many programs a row.
    """

    class FirstRows(Meter):
        def launch(self, function, original, args, grid, warmup, kwargs):
            grid = _grid(function, args, grid, kwargs)
            if grid[0] % of:
                raise _Bent
            grid = (grid[0] // of * rows, *grid[1:])
            return super().launch(function, original, args, grid, warmup, kwargs)

    meter = FirstRows() if of else Meter()
    x = matrix(of or rows, cols, dtype)
    recording = _Metered(meter)
    with meter, np.errstate(all="ignore"):  # a kernel may compute with the poison of what it never wrote
        meter.give("x", x)
        with recording:
            y = fn(x)
    sums = _sums(recording)
    return {
        "loads": sums["loads"] + meter.loads(),
        "stores": sums["stores"] + meter.stores(),
        "bytes": sums["bytes"] + meter.bytes(),
        "by_op": sums["by_op"] + meter.by_tensor({"y": y}),
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
        for tensor in tensors_of(result):
            if tensor.numel() and self.meter.region_of(tensor) is None:
                self.meter.allocated(tensor, initialised=name_of(operation) not in ALLOCATIONS)
        return result


def _planned(fn, rows: int, cols: int, dtype: str) -> list[dict]:
    """The launches of one call, without running them: name, grid and integer arguments of each."""

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


def extended(count, plan, rows: int, cols: int) -> dict:
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
