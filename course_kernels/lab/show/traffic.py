"""What softmax reads and writes, kernel by kernel, as numbers and as bars."""

from __future__ import annotations

from collections.abc import Sequence

from course_kernels.lab.core.gpus import GPU, as_gpu
from course_kernels.lab.core.wording import quantity
from course_kernels.lab.show.colours import MUTED, READ, WRITTEN
from course_kernels.lab.show.drawing import SMALL, TEXT, WIDTH, Drawing, Scale
from course_kernels.lab.show.picture import Picture, Table

Operation = tuple[str, float, float]  # name, elements read, elements written
LAUNCH_SECONDS = 5e-6  # a round figure for one launch, its timing included; notebook 02 measures it
EXP_SUM_FLOPS = 4  # an element: subtract, exp, add to the sum, divide (a comparison is no FLOP)


def itemsize(dtype: str) -> int:
    """The bytes of an element."""
    return {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}[dtype]


def eager_operations(rows: int, columns: int) -> list[Operation]:
    """What the five kernels of an eager softmax read and write, in elements: 5MN + 2M and 3MN + 2M
    together."""
    m, mn = rows, rows * columns
    return [
        ("max", mn, m),
        ("subtract", mn + m, mn),
        ("exp", mn, mn),
        ("sum", mn, m),
        ("divide", mn + m, mn),
    ]


def separately(rows: int, columns: int, operations: Sequence[Operation] | None) -> list[Operation]:
    """The separate kernels' operations; those of eager softmax where none are given."""
    return list(eager_operations(rows, columns) if operations is None else operations)


def fused_operations(rows: int, columns: int) -> list[Operation]:
    """What a fused softmax reads and writes, in elements: each once."""
    return [("fused", rows * columns, rows * columns)]


def softmax_intensity(elements_moved: float = 2, itemsize: int = 4) -> float:
    """FLOP a byte of a softmax that moves this many elements for each one: 2 fused, 8 in separate kernels."""
    return EXP_SUM_FLOPS / (elements_moved * itemsize)


def _with_totals(rows, columns, operations, together, fused) -> list[Operation]:
    separate = separately(rows, columns, operations)
    total = (together, sum(o[1] for o in separate), sum(o[2] for o in separate))
    return [*separate, total, (fused, *fused_operations(rows, columns)[0][1:])]


def traffic_table(rows: int, columns: int, dtype: str = "float32") -> Table:
    """Elements and bytes of each kernel of an eager softmax, of all five, and of the fused one."""
    lines = [
        [name, int(r), int(w), quantity((r + w) * itemsize(dtype), "B")]
        for name, r, w in _with_totals(rows, columns, None, "all five", "fused")
    ]
    return Table(lines, ["operation", "elements read", "elements written", "traffic"])


def traffic_bars(
    rows: int,
    columns: int,
    dtype: str = "float32",
    gpu: GPU | str = "H200",
    operations: Sequence[Operation] | None = None,
) -> Picture:
    """Traffic by operation, read and written, and the least time it takes at a GPU's published bandwidth.

    operations: (name, elements read, elements written) of the separate kernels; None: those of eager softmax.
    The fused kernel is drawn below them.
    """
    gpu, each = as_gpu(gpu), itemsize(dtype)
    entries = _with_totals(rows, columns, operations, "all of them", "fused")
    *separate, (_, *total), (_, *fused) = entries
    d = Drawing(WIDTH, 108 + 32 * len(entries))
    left, right = 112, WIDTH - 176
    x = Scale(0, max(sum(total), sum(fused), 1) * each, left, right)
    d.text(8, 24, f"{rows:,} × {columns:,} {dtype}", TEXT, bold=True)
    d.key(left + 230, 24, (("read", READ), ("written", WRITTEN)))
    d.text(WIDTH - 8, 24, f"at least, {gpu.name}", SMALL, "end", MUTED)
    line = 44
    for i, (name, reads, writes) in enumerate(entries):
        line += 8 if i == len(separate) else 0
        bold = i >= len(separate)
        moved = (reads + writes) * each
        d.text(left - 10, line + 15, name, TEXT, "end", bold=bold)
        d.rect(left, line, x(reads * each) - left, 20, READ)
        d.rect(x(reads * each), line, x(moved) - x(reads * each), 20, WRITTEN)
        d.text(x(moved) + 8, line + 15, quantity(moved, "B"), TEXT, bold=bold)
        d.text(WIDTH - 8, line + 15, quantity(gpu.least_seconds(moved), "s"), TEXT, "end", bold=bold)
        line += 32
    ratio = sum(total) / max(sum(fused), 1)
    d.text(8, line + 20, f"Separately: {ratio:.3f} times the traffic of the fused kernel.", SMALL + 0.5)
    bound = f"Times are bytes ÷ {gpu.gbps:,.0f} GB/s, the published peak: a bound, not a promise."
    d.text(8, line + 40, bound, SMALL, fill=MUTED)
    per_operation = ", ".join(f"{n} {quantity((r + w) * each, 'B')}" for n, r, w in separate)
    alt = (
        f"Traffic of softmax on {rows:,} by {columns:,} {dtype}: {per_operation}; together "
        f"{quantity(sum(total) * each, 'B')}, at least "
        f"{quantity(gpu.least_seconds(sum(total) * each), 's')} on {gpu.name}. "
        f"Fused {quantity(sum(fused) * each, 'B')}, {ratio:.2f} times less."
    )
    return Picture(d.svg(alt), alt)
