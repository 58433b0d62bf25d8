"""The pictures of the notebooks, each drawn from its arguments, so that other numbers give another picture.

Every function returns a Picture (or a Table, where it says so); its alt text is made from the same numbers.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from course_kernels.lab.core.gpus import GPU, GPUS, SHOWN, as_gpu, occupancy
from course_kernels.lab.show.drawing import (
    BLUE,
    CARD,
    GREEN,
    GREY,
    GRID,
    INK,
    MUTED,
    ORANGE,
    PURPLE,
    SHAPES,
    SKY,
    SMALL,
    TEXT,
    VERMILLION,
    Drawing,
    Scale,
    axes,
    count,
    powers,
    quantity,
    spread_labels,
    text_width,
    ticks,
)
from course_kernels.lab.show.picture import Picture, Table

WIDTH = 680
ITEMSIZE = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
LAUNCH_SECONDS = 5e-6  # a kernel launch costs 5 to 10 µs; work below that is ruled by it
EXP_SUM_FLOPS = 4  # an element: subtract, exp, add to the sum, divide (a comparison is no FLOP)

# Every contender keeps its colour and its marker in every picture.
LOOKS: dict[str, tuple[str, str]] = {
    "copy": (INK, "circle"),
    "torch": (ORANGE, "square"),
    "compile": (PURPLE, "triangle"),
    "eager": (GREY, "down"),
    "liger": (SKY, "diamond"),
    "quack": (SKY, "cross"),
    "prototype": (BLUE, "circle"),
    "fused_row": (BLUE, "circle"),
    "multi_row": (SKY, "square"),
    "packed_row": (SKY, "triangle"),
    "online": (ORANGE, "diamond"),
    "tiled": (GREEN, "diamond"),
    "split_row": (PURPLE, "cross"),
    "cluster_row": (ORANGE, "triangle"),
    "resident_row": (GREEN, "triangle"),
    "softmax": (INK, "square"),
}


def look(name: str) -> tuple[str, str]:
    """Colour and marker of a contender. The learner's own stand out: vermillion, a marker a version."""
    if name in LOOKS:
        return LOOKS[name]
    version = name.partition(" #")[2]
    return VERMILLION, SHAPES[(int(version) if version.isdigit() else 1) % len(SHAPES)]


# (a) ------------------------------------------------------------------------------------------------------


def row_and_lanes(columns: int, block: int | None = None, job: str = "softmax") -> Picture:
    """What one program does with its row: load under a mask into BLOCK lanes, store under the same mask.

    columns: the row's length N. block: the number of lanes, a power of two ≥ N; None: the smallest. job:
    "softmax", whose masked lanes hold −∞, or "copy", whose masked lanes hold nothing.
    """
    block = next_power_of_2(columns) if block is None else block
    if block < columns:
        raise ValueError(f"A block of {block} lanes cannot hold a row of {columns} columns.")
    spare = block - columns
    held = "−∞" if job == "softmax" else ""
    d = Drawing(WIDTH, 282)
    left, span = 110, WIDTH - 110 - 20
    cell = min(span / block, 40)
    size = 12.5 if cell >= 30 else 0  # write into the cells only where it can be read
    strips = [("row of x", 42, columns, SKY), ("lanes", 124, block, BLUE), ("row of y", 206, columns, ORANGE)]
    height = 36

    for name, y, cells, colour in strips:
        d.text(left - 12, y + 23, name, TEXT, "end")
        if cell >= 7:
            for i in range(cells):
                d.rect(left + i * cell, y, cell, height, fill=colour, stroke=CARD, width=1.5, opacity=0.35)
        else:
            d.rect(left, y, cells * cell, height, fill=colour, opacity=0.35)
        d.rect(left, y, cells * cell, height, stroke=colour, width=1.5)
    lanes_y = strips[1][1]
    if spare:
        x, w = left + columns * cell, spare * cell
        d.rect(x, lanes_y, w, height, fill=CARD, stroke=INK, width=1.5)
        d.hatch(x, lanes_y, w, height)
        if w >= 34 and not size:
            d.text(x + w / 2, lanes_y + 23, held, TEXT, "middle", bold=True, halo=True)
    for i in range(block if size else 0):
        x = left + (i + 0.5) * cell
        if i < columns:
            d.text(x, strips[0][1] + 23, f"x{_subscript(i)}", size, "middle")
            d.text(x, lanes_y + 23, str(i), size, "middle")
            d.text(x, strips[2][1] + 23, f"y{_subscript(i)}", size, "middle")
        else:
            d.text(x, lanes_y + 23, held, size, "middle", bold=True, halo=True)

    middle = left + min(columns * cell / 2, 90)
    for y, words in (
        (strips[0][1] + height, "tl.load, mask = column < N"),
        (lanes_y + height, "tl.store, same mask"),
    ):
        d.arrow(middle, y + 6, middle, y + 40)
        d.text(middle + 12, y + 27, words, SMALL, fill=INK, mono=True)
    if spare:
        x = left + (columns + spare / 2) * cell
        label = f"{spare:,} masked {'lane' if spare == 1 else 'lanes'}"
        half = text_width(label, SMALL) / 2
        d.text(min(x, WIDTH - half - 20), lanes_y - 22, label, SMALL, "middle")
        d.line(x, lanes_y - 16, x, lanes_y - 3, MUTED)
    d.text(left, 26, f"One program: a row of N = {columns:,} in BLOCK = {block:,} lanes", TEXT, bold=True)
    never = {
        "softmax": "In between, max, exp, sum and the division never leave the lanes' registers.",
        "copy": "A masked lane loads nothing and stores nothing.",
    }[job]
    d.text(left, 264, never, SMALL, fill=MUTED)
    holding = " and hold minus infinity" if held else ""
    masked = f"{spare:,} lanes past the row are masked{holding}. " if spare else ""
    alt = (
        f"A row of {columns:,} columns is loaded into {block:,} lanes of one program. {masked}"
        f"The first {columns:,} lanes are stored to a row of y."
    )
    return Picture(d.svg(alt), alt)


# (b) ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Region:
    """A range of columns in which something other than DRAM traffic rules, with its explanation."""

    name: str
    low: float
    high: float
    why: str


def regions(rows_at: Callable[[int], int], low: int, high: int, dtype: str, gpu: GPU | str) -> list[Region]:
    """The regions of a curve over widths low…high on a GPU; rows_at(columns) gives the matrix's rows."""
    gpu, itemsize = as_gpu(gpu), ITEMSIZE[dtype]
    registers = gpu.registers_per_sm * 4  # bytes

    def traffic(columns):
        return 2 * rows_at(columns) * columns * itemsize

    kinds = [
        (
            "launch-bound",
            lambda c: traffic(c) / (gpu.gbps * 1e9) < LAUNCH_SECONDS,
            f"Input and output cross the memory in less than a launch, {LAUNCH_SECONDS * 1e6:.0f} µs, takes.",
        ),
        (
            "fits in L2",
            lambda c: traffic(c) <= gpu.l2_bytes,
            f"Input and output together fit in the {gpu.l2_bytes / 2**20:.0f} MiB of L2; what is written may "
            "never reach DRAM.",
        ),
        (
            "one block spills",
            lambda c: next_power_of_2(c) * 4 >= registers,
            f"The padded row in float32 needs all {registers // 1024} KiB of registers or more, so a "
            "program that holds it in one block spills.",
        ),
        (
            "second read from DRAM",
            lambda c: c * itemsize * gpu.sms > gpu.l2_bytes,
            f"One row on each of {gpu.sms} multiprocessors outgrows L2: a kernel that reads its row twice "
            "reads it twice from DRAM, and 2/3 of a copy is its ceiling.",
        ),
    ]
    grid = sorted({low, high, *(round(low * (high / low) ** (i / 400)) for i in range(401))})
    found = []
    for name, holds, why in kinds:
        inside = [columns for columns in grid if holds(columns)]
        if inside:
            found.append(Region(name, inside[0], inside[-1], why))
    return found


def bandwidth_curve(
    records: Sequence,
    kernels: Sequence[str] | None = None,
    source: str = "",
    marks: Sequence[Region] = (),
    at: int | None = None,
    joined: bool = True,
) -> Picture:
    """Bandwidth against width, a line a contender, with the copy as the roof.

    records: objects with kernel, columns, gbps (10^9 useful bytes a second) and, if they have one, spread
    (interquartile range over median, drawn as a bar). kernels: which, in this order; None: all. source: where
    the figures come from. marks: regions above the plot. at: a width to mark. joined: False for
    shapes that differ in more than their width: points without lines.
    """
    lines = _lines(records, kernels)
    if not lines:
        raise ValueError("There is nothing to draw: no record of these kernels.")
    widths = sorted({r.columns for points in lines.values() for r in points} | ({at} if at else set()))
    low, high = widths[0], widths[-1]
    if low == high:
        low, high = max(low // 2, 1), high * 2
    shown = [m for m in marks if m.high > m.low and m.high > low and m.low < high]
    top = 62 + 21 * len(shown)
    height = 344 + top
    d = Drawing(WIDTH, height)
    margin = max(104.0, *(28 + text_width(name, SMALL + 0.5) for name in lines))  # for the names at the right
    left, right, bottom = 62, WIDTH - margin, height - 66
    x = Scale(low, high, left + 8, right - 8, log=True)
    peak = max(r.gbps for points in lines.values() for r in points)
    y = Scale(0, peak * 1.08, bottom, top)

    for i, mark in enumerate(shown):
        x1, x2 = x(max(mark.low, low)), x(min(mark.high, high))
        line = 42 + 21 * i
        d.rect(x1, top, max(x2 - x1, 3), bottom - top, fill=GREY, opacity=0.09)
        d.line(x1, line + 4, max(x2, x1 + 3), line + 4, MUTED, 3)
        words = text_width(mark.name, SMALL)
        start = x1 if x1 + words <= right + 90 else WIDTH - 10 - words
        d.text(start, line - 1, mark.name, SMALL, fill=INK)
    x_ticks = _width_ticks(low, high)
    axes(d, x, y, "columns", "", x_ticks, [(v, f"{v:,.0f}") for v in ticks(0, y.high, 5)])
    d.text(8, 20, "GB/s (useful bytes, in and out)", TEXT)

    if "copy" in lines and any(m.name.startswith("second read") for m in shown):
        second = next(m for m in shown if m.name.startswith("second read"))
        roof = [(x(r.columns), y(r.gbps * 2 / 3)) for r in lines["copy"] if r.columns >= second.low]
        if len(roof) > 1:
            d.polyline(roof, INK, 1.2, "2 4")
            d.text(roof[0][0] + 4, roof[0][1] - 6, "2/3 of copy", SMALL, fill=MUTED, halo=True)
    if at and low <= at <= high:
        d.line(x(at), top - 6, x(at), bottom, INK, 1.2, "5 3")
        label = f"{at:,} columns"
        half = text_width(label, SMALL, True) / 2
        d.text(min(max(x(at), half + 4), WIDTH - half - 4), top - 11, label, SMALL, "middle", bold=True)

    hollow = False
    for name, points in reversed(lines.items()):
        colour, shape = look(name)
        onward = [r for r in points if not _out_of_alignment(r)] or points
        if joined:
            path = [(x(r.columns), y(r.gbps)) for r in onward]
            d.polyline(path, colour, 3 if colour == VERMILLION else 1.8, "6 4" if name == "copy" else "")
        for r in points:
            half = (getattr(r, "spread", None) or 0) / 2 * r.gbps
            lowest, highest = y(max(r.gbps - half, 0)), y(min(r.gbps + half, y.high))
            if lowest - highest > 2:
                d.line(x(r.columns), lowest, x(r.columns), highest, colour, 2)
            chosen = r.columns == at
            size = 6 if chosen else 3.6
            if r in onward:
                d.marker(x(r.columns), y(r.gbps), shape, size, colour, INK if chosen else CARD)
            else:
                d.marker(x(r.columns), y(r.gbps), shape, size, CARD, colour, 1.6)
                hollow = True

    ends = {name: points[-1] for name, points in lines.items()}
    wanted = [y(r.gbps) for r in ends.values()]
    for (name, r), at_y in zip(ends.items(), spread_labels(wanted, 17, top, bottom), strict=True):
        colour, shape = look(name)
        d.line(x(r.columns) + 5, y(r.gbps), right + 2, at_y, colour, 0.8, opacity=0.6)
        d.marker(right + 9, at_y, shape, 4.5, colour)
        d.text(right + 18, at_y + 4.5, name, SMALL + 0.5)
    notes = [source] if source else []
    if hollow:
        notes.append("hollow: rows whose length is no multiple of 16 bytes")
    d.text(8, height - 8, "; ".join(notes), SMALL, fill=MUTED)

    here = at or high
    nearest = {n: min(points, key=lambda r: abs(math.log(r.columns / here))) for n, points in lines.items()}
    closest = min(abs(math.log(r.columns / here)) for r in nearest.values())
    nearest = {n: r for n, r in nearest.items() if abs(math.log(r.columns / here)) < closest + 0.02}
    alt = (
        f"Bandwidth in GB/s against columns, {count(low)} to {count(high)}, for {', '.join(lines)}. "
        f"Near {here:,} columns: " + ", ".join(f"{n} {r.gbps:,.0f}" for n, r in nearest.items()) + ". "
        + (f"Marked: {', '.join(m.name for m in shown)}. " if shown else "")
        + source
    )  # fmt: skip
    return Picture(d.svg(alt), alt)


def _out_of_alignment(record) -> bool:
    """Whether rows start where 16 bytes cannot be loaded at once: such widths lie below their neighbours, and
    a line through both would zigzag."""
    return record.columns * ITEMSIZE[getattr(record, "dtype", "float32")] % 16 != 0


def _lines(records, kernels):
    lines: dict[str, list] = {}
    for name in kernels if kernels is not None else dict.fromkeys(r.kernel for r in records):
        points = sorted((r for r in records if r.kernel == name and r.gbps > 0), key=lambda r: r.columns)
        if points:
            lines[name] = points
    return lines


def _width_ticks(low, high):
    """Every second or third power of two, named as the learner knows them: 256, 1K, 64K, 1M."""
    all_powers = powers(low, high, 2)
    step = 1 if len(all_powers) <= 8 else 2 if len(all_powers) <= 14 else 3
    return [(v, count(v)) for v in all_powers if round(math.log2(v)) % step == 0]


# (c) ------------------------------------------------------------------------------------------------------

Operation = tuple[str, float, float]  # name, elements read, elements written


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


def fused_operations(rows: int, columns: int) -> list[Operation]:
    """What a fused softmax reads and writes, in elements: each once."""
    return [("fused", rows * columns, rows * columns)]


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
    gpu, itemsize = as_gpu(gpu), ITEMSIZE[dtype]
    separate = list(eager_operations(rows, columns) if operations is None else operations)
    fused = fused_operations(rows, columns)
    total = _total(separate)
    entries = [
        *(("", *operation) for operation in separate),
        ("total", "all of them", *total),
        ("total", "fused", *fused[0][1:]),
    ]
    d = Drawing(WIDTH, 108 + 32 * len(entries))
    left, right = 112, WIDTH - 176
    x = Scale(0, max(sum(total), sum(fused[0][1:]), 1) * itemsize, left, right)

    d.text(8, 24, f"{rows:,} × {columns:,} {dtype}", TEXT, bold=True)
    for k, (words, colour) in enumerate((("read", BLUE), ("written", ORANGE))):
        d.rect(left + 250 + 90 * k, 13, 14, 14, fill=colour)
        d.text(left + 270 + 90 * k, 25, words, SMALL)
    d.text(WIDTH - 8, 25, f"at least, {gpu.name}", SMALL, "end", MUTED)
    line = 44
    for kind, name, reads, writes in entries:
        if kind:
            line += 8 if name == "all of them" else 0
        bold = bool(kind)
        d.text(left - 10, line + 15, name, TEXT, "end", bold=bold)
        moved = (reads + writes) * itemsize
        d.rect(left, line, x(reads * itemsize) - left, 20, fill=BLUE)
        d.rect(x(reads * itemsize), line, x(moved) - x(reads * itemsize), 20, fill=ORANGE)
        d.text(x(moved) + 8, line + 15, quantity(moved, "B"), TEXT, bold=bold)
        d.text(WIDTH - 8, line + 15, quantity(gpu.least_seconds(moved), "s"), TEXT, "end", bold=bold)
        line += 32
    ratio = sum(total) / max(sum(fused[0][1:]), 1)
    d.text(8, line + 20, f"Separately: {ratio:.3f} times the traffic of the fused kernel.", SMALL + 0.5)
    bound = f"Times are bytes ÷ {gpu.gbps:,.0f} GB/s, the published peak: a bound, not a promise."
    d.text(8, line + 40, bound, SMALL, fill=MUTED)
    per_operation = ", ".join(f"{n} {quantity((r + w) * itemsize, 'B')}" for n, r, w in separate)
    alt = (
        f"Traffic of softmax on {rows:,} by {columns:,} {dtype}: {per_operation}; together "
        f"{quantity(sum(total) * itemsize, 'B')}, "
        f"at least {quantity(gpu.least_seconds(sum(total) * itemsize), 's')} on {gpu.name}. "
        f"Fused {quantity(sum(fused[0][1:]) * itemsize, 'B')}, {ratio:.2f} times less."
    )
    return Picture(d.svg(alt), alt)


def _total(operations: Sequence[Operation]) -> tuple[float, float]:
    return sum(o[1] for o in operations), sum(o[2] for o in operations)


def counted_and_seen(bars: Sequence[tuple], source: str = "") -> Picture:
    """Counted traffic beside what hardware counters saw at DRAM, two bars a matrix, in passes.

    bars: (matrix, a note, counted (reads, writes), seen (reads, writes)), the pairs in passes: multiples of
    the whole matrix. source: where the counters come from.
    """
    if not bars:
        raise ValueError("There is nothing to draw: no matrix.")
    step, top = 92, 64
    base = top + step * len(bars) - 18
    d = Drawing(WIDTH, base + 72)
    x = Scale(0, max(max(sum(c), sum(s)) for _, _, c, s in bars) * 1.02, 100, WIDTH - 96)
    d.text(8, 24, "Passes over the matrix: counted, and seen at DRAM", TEXT, bold=True)
    for k, (words, colour) in enumerate((("read", BLUE), ("written", ORANGE))):
        d.rect(WIDTH - 170 + 78 * k, 13, 13, 13, colour)
        d.text(WIDTH - 152 + 78 * k, 24, words, SMALL)
    for v in ticks(0, x.high, 8):
        d.line(x(v), top - 20, x(v), base, GRID)
        d.text(x(v), base + 19, short(v), SMALL, "middle", MUTED)
    d.line(x.start, base, x.stop, base, MUTED)
    d.text((x.start + x.stop) / 2, base + 38, "passes", TEXT, "middle")
    told = []
    for i, (name, note, *pairs) in enumerate(bars):
        line = top + step * i
        d.text(8, line - 4, name, TEXT, bold=True, halo=True)
        d.text(8 + text_width(name, TEXT, True) + 14, line - 4, note, SMALL, fill=MUTED, halo=True)
        for k, (which, (reads, writes)) in enumerate(zip(("counted", "seen"), pairs, strict=True)):
            y = line + 6 + 28 * k
            d.text(x.start - 10, y + 16, which, SMALL + 0.5, "end")
            d.rect(x.start, y, x(reads) - x.start, 22, BLUE)
            d.rect(x(reads), y, x(reads + writes) - x(reads), 22, ORANGE)
            d.text(x(reads + writes) + 8, y + 16, f"{reads:.2f} + {writes:.2f}", SMALL, halo=True)
            told.append(f"{name} {which}: {reads:.2f} read, {writes:.2f} written")
    d.text(8, d.height - 8, source, SMALL, fill=MUTED)
    alt = f"Traffic in passes over the matrix. {'; '.join(told)}. {source}"
    return Picture(d.svg(alt), alt)


# (d) ------------------------------------------------------------------------------------------------------


def softmax_intensity(elements_moved: float = 2, itemsize: int = 4) -> float:
    """FLOP a byte of a softmax that moves this many elements for each one: 2 fused, 8 in separate kernels."""
    return EXP_SUM_FLOPS / (elements_moved * itemsize)


def roofline(gpus: Sequence[GPU | str] = SHOWN, points: Mapping[str, float] | None = None) -> Picture:
    """Rooflines of real GPUs, from published figures, with kernels at their arithmetic intensities.

    points: name → FLOP a byte; None: the fused and the eager softmax in float32.
    """
    if points is None:
        points = {"eager softmax": softmax_intensity(8), "fused softmax": softmax_intensity(2)}
    chosen = [as_gpu(gpu) for gpu in gpus]
    if not chosen:
        raise ValueError("A roofline needs at least one GPU.")
    d = Drawing(WIDTH, 440)
    x_low = 10 ** math.floor(math.log10(min([0.1, *(v * 0.9 for v in points.values())])))
    x = Scale(x_low, 400, 64, WIDTH - 112, log=True)
    low = min(gpu.gbps * 1e9 * x_low for gpu in chosen)
    high = max(gpu.tflops * 1e12 for gpu in chosen)
    y = Scale(10 ** math.floor(math.log10(low)), high * 1.9, 440 - 72, 42, log=True)
    axes(
        d, x, y, "arithmetic intensity (FLOP a byte)", "",
        [(v, f"{v:g}") for v in powers(x.low, x.high)],
        [(v, f"{v / 1e12:g}") for v in powers(y.low, y.high)],
    )  # fmt: skip
    d.text(8, 22, "float32 TFLOP/s, at most", TEXT)
    colours = [VERMILLION, ORANGE, GREEN, BLUE, PURPLE, SKY, INK]
    heights = spread_labels([y(gpu.tflops * 1e12) for gpu in chosen], 17, 30, 440 - 72)
    for i, (gpu, at_y) in enumerate(zip(chosen, heights, strict=True)):
        colour = colours[i % len(colours)]
        flat = y(gpu.tflops * 1e12)
        d.polyline([(x.start, y(gpu.gbps * 1e9 * x_low)), (x(gpu.ridge), flat), (x.stop, flat)], colour, 2)
        d.marker(x(gpu.ridge), flat, "circle", 4, colour)
        d.line(x.stop, flat, x.stop + 10, at_y, colour, 0.8)
        d.text(x.stop + 14, at_y + 4.5, gpu.name, SMALL + 0.5)
    best = max(chosen, key=lambda g: g.gbps)
    for intensity in points.values():
        d.line(x(intensity), y.start, x(intensity), y.stop, INK, 1.4, "5 3")
        d.marker(x(intensity), y(best.gbps * 1e9 * intensity), "diamond", 5, INK)
    for k, (name, intensity) in enumerate(points.items()):
        label = f"{name}, {intensity:.3g}"
        fits = x(intensity) + 6 + text_width(label) < x.stop
        at_x, anchor = (x(intensity) + 6, "start") if fits else (x(intensity) - 6, "end")
        d.text(at_x, y.start - 12 - 19 * k, label, SMALL + 0.5, anchor, halo=True)
    ridges = ", ".join(f"{g.name} {g.ridge:.0f}" for g in chosen)
    d.text(
        8, 432, "published peaks; a circle is where a GPU's arithmetic becomes the limit", SMALL, fill=MUTED
    )
    where = ", ".join(f"{n} at {v:.3g}" for n, v in points.items())
    alt = (
        f"Rooflines on logarithmic axes. Kernels in FLOP a byte: {where}. The roof turns flat at: {ridges}. "
        "Kernels left of that point are bound by memory."
    )
    return Picture(d.svg(alt), alt)


# (e), (h) -------------------------------------------------------------------------------------------------

Pair = tuple[float, float]  # m, d
IDENTITY: Pair = (-math.inf, 0.0)


def merge(a: Pair, b: Pair) -> Pair:
    """Two partial results (m, d) as one. The identity is (−inf, 0)."""
    m = max(a[0], b[0])
    if m == -math.inf:
        return m, a[1] + b[1]  # exp(−inf − (−inf)) is NaN
    return m, a[1] * math.exp(a[0] - m) + b[1] * math.exp(b[0] - m)


def leaf(score: float) -> Pair:
    """The partial result of one score: itself and exp(0) = 1; of −inf: the identity."""
    return IDENTITY if score == -math.inf else (float(score), 1.0)


TREES = ("balanced", "left to right", "right to left", "shuffled")


def merge_tree(scores: Sequence[float], shape: str = "balanced", seed: int = 0) -> Picture:
    """The merges that lead from single scores to the row's (m, d), as a tree of one of the shapes in TREES.

    scores: 1 to 8 numbers. seed: which shuffled tree. Whatever the shape, the root is the same.
    """
    scores = [float(score) for score in scores]
    if not 1 <= len(scores) <= 8:
        raise ValueError(f"A tree of 1 to 8 scores can be read; these are {len(scores)}.")
    if shape not in TREES:
        raise ValueError(f"No shape {shape!r}. There are: {', '.join(TREES)}.")
    nodes, root = _build_tree(scores, shape, seed)
    depth = max(node["level"] for node in nodes)
    node_w, node_h, gap = 72.0, 42, 60
    step = min(110.0, (WIDTH - 40) / len(scores))
    d = Drawing(WIDTH, 96 + gap * depth + node_h)
    start = (WIDTH - step * len(scores)) / 2 + step / 2
    for node in nodes:
        node["px"], node["py"] = start + step * node["x"], 46 + gap * (depth - node["level"])
    for node in nodes:
        for child in node["children"]:
            # Across at the parent's height, then straight down: no line meets another box.
            level = node["py"] + node_h / 2
            path = [(node["px"], level), (child["px"], level), (child["px"], child["py"])]
            d.polyline(path, MUTED, 1.5)
    for node in nodes:
        top, left = node["py"], node["px"] - node_w / 2
        colour = GREEN if node is root else SKY if node["children"] else GREY
        d.rect(left, top, node_w, node_h, CARD, radius=6)
        d.rect(left, top, node_w, node_h, colour, opacity=0.22, radius=6)
        d.rect(left, top, node_w, node_h, stroke=colour, width=2 if node is root else 1.3, radius=6)
        m, total = node["pair"]
        d.text(node["px"], top + 17, f"m {short(m)}", 13, "middle", bold=node is root)
        d.text(node["px"], top + 34, f"d {_decimals(total)}", 13, "middle", bold=node is root)
    m, total = root["pair"]
    d.text(WIDTH / 2, 24, f"{shape}: {len(scores) - 1} merges, depth {depth}", TEXT, "middle", bold=True)
    d.text(WIDTH / 2, d.height - 12, "single scores are the leaves, (x, 1); every line upwards is a merge",
    SMALL,
           "middle", MUTED)  # fmt: skip
    alt = (
        f"A {shape} tree of merges over the scores {', '.join(short(s) for s in scores)}, depth {depth}. "
        f"At its root: m {short(m)}, d {_decimals(total)}."
    )
    return Picture(d.svg(alt), alt)


def _build_tree(scores, shape, seed):
    nodes = [
        {"pair": leaf(score), "children": [], "span": (i, i), "x": float(i), "level": 0}
        for i, score in enumerate(scores)
    ]
    front, rng = list(nodes), random.Random(seed)

    def join(i):
        a, b = front[i], front[i + 1]
        span = (a["span"][0], b["span"][1])
        level = max(a["level"], b["level"]) + 1
        pair = merge(a["pair"], b["pair"])
        node = {"pair": pair, "children": [a, b], "span": span, "x": sum(span) / 2, "level": level}
        nodes.append(node)
        front[i : i + 2] = [node]

    while len(front) > 1:
        if shape == "left to right":
            join(0)
        elif shape == "right to left":
            join(len(front) - 2)
        elif shape == "shuffled":
            join(rng.randrange(len(front) - 1))
        else:
            for i in range(len(front) // 2):
                join(i)
    return nodes, front[0]


def merged(scores: Sequence[float], shape: str = "balanced", seed: int = 0) -> tuple[float, float, int]:
    """(m, d) at the root of such a tree, and its depth."""
    nodes, root = _build_tree([float(score) for score in scores], shape, seed)
    return *root["pair"], max(node["level"] for node in nodes)


def recurrence(scores: Sequence[float]) -> list[tuple[float, float, float, float]]:
    """The online recurrence, unrolled: (score, m after it, the factor exp(m before − m), d after it) a
    score."""
    m, d = IDENTITY
    steps = []
    for score in map(float, scores):
        after = max(m, score)
        factor = 1.0 if after == -math.inf else math.exp(m - after)
        m, d = merge((m, d), leaf(score))
        steps.append((score, m, factor, d))
    return steps


def recurrence_table(scores: Sequence[float], step: int | None = None) -> Table:
    """The recurrence step by step, as a table. step: how many scores have been read; None: all."""
    steps = recurrence(scores)
    step = len(steps) if step is None else step
    rows = [["start", None, "−∞", None, "0"]]
    rows += [
        [f"{i}", short(x), short(m), _decimals(f), _decimals(d)] for i, (x, m, f, d) in enumerate(steps, 1)
    ]
    headers = ["step", "score x", "m = max(m, x)", "old d times", "d"]
    return Table(rows[: step + 1], headers, mark=step)


def recurrence_picture(scores: Sequence[float], step: int | None = None) -> Picture:
    """The scores as bars, those read so far filled, with the running maximum and the running sum."""
    scores = [float(score) for score in scores]
    if not scores:
        raise ValueError("There is no score to draw.")
    steps = recurrence(scores)
    step = len(scores) if step is None else min(max(step, 0), len(scores))
    finite = [s for s in scores if math.isfinite(s)] or [0.0]
    low, high = min(0.0, *finite), max(0.0, *finite)
    pad = (high - low or 1.0) * 0.16
    d = Drawing(WIDTH, 330)
    y = Scale(low - (pad if low < 0 else 0), high + pad, 196, 44)
    left, width = 60, WIDTH - 150
    slot = min(width / len(scores), 90)
    labels = slot >= 34
    d.text(8, 22, "score", TEXT)
    for v in ticks(y.low, y.high, 4):
        d.line(left, y(v), left + slot * len(scores), y(v), GRID)
        d.text(left - 8, y(v) + 4, f"{v:g}".replace("-", "−"), SMALL, "end", MUTED)
    d.line(left, y(0), left + slot * len(scores), y(0), MUTED)
    for i, score in enumerate(scores):
        mid = left + (i + 0.5) * slot
        read, now = i < step, i == step - 1
        tip = y(score) if math.isfinite(score) else y.start
        top, bottom = min(tip, y(0)), max(tip, y(0))
        if math.isfinite(score):
            d.rect(mid - slot * 0.3, top, slot * 0.6, max(bottom - top, 1.5), BLUE if now else SKY if read
            else CARD,
                   BLUE if read else GREY, 1.2, opacity=1.0 if now or not read else 0.8)  # fmt: skip
        if labels:
            d.text(
                mid,
                top - 6 if score >= 0 else bottom + 15,
                short(score),
                SMALL,
                "middle",
                bold=now,
                halo=True,
            )
    if step:
        level = [(left + (i + edge) * slot, steps[i][1]) for i in range(step) for edge in (0, 1)]
        d.polyline([(px, y(m)) for px, m in level if math.isfinite(m)], VERMILLION, 2.5)
        m = steps[step - 1][1]
        if math.isfinite(m):
            end = left + slot * len(scores)
            d.line(left + step * slot, y(m), end, y(m), VERMILLION, 1.2, "2 4")
            d.text(end + 8, y(m) + 5, f"m = {short(m)}", TEXT, bold=True)
    total = steps[step - 1][3] if step else 0.0
    # The sum as a strip of its terms, each relative to the maximum so far: a new maximum shrinks all before
    # it.
    scale = max(max((s[3] for s in steps), default=1.0), 1.0)
    strip = Scale(0, scale, left, WIDTH - 96)
    d.text(left, 240, "d, the sum of exp(x − m) over the scores read so far", TEXT)
    position = left
    m = steps[step - 1][1] if step else -math.inf
    for i in range(step):
        term = math.exp(scores[i] - m) if math.isfinite(m) and scores[i] != -math.inf else 0.0
        w = strip(term) - left
        d.rect(position, 250, w, 30, BLUE if i == step - 1 else SKY, CARD, 1)
        if w > 26:
            d.text(position + w / 2, 270, f"{term:.3g}", SMALL, "middle", CARD if i == step - 1 else INK)
        position += w
    d.line(left, 280, strip.stop, 280, MUTED)
    d.text(position + 8, 271, f"d = {_decimals(total)}", TEXT, bold=True, halo=True)
    read = f"{step} of {len(scores)} scores read"
    factor = f"; the old sum was multiplied by {_decimals(steps[step - 1][2])}" if step > 1 else ""
    d.text(left, 312, read + factor, SMALL, fill=MUTED)
    alt = (
        f"Online softmax over the scores {', '.join(map(short, scores))}: {read}, "
        f"m {short(m)}, d {_decimals(total)}{factor}."
    )
    return Picture(d.svg(alt), alt)


# (f) ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Visit:
    """One tile read by a tiled softmax: which pass (1 or 2), which tile, and whether it was still in the
    cache."""

    which_pass: int
    tile: int
    cached: bool


def tile_visits(columns: int, tile: int, backwards: bool = False, cached_tiles: int = 0) -> list[Visit]:
    """The tiles in the order a tiled softmax reads them: all for the statistics, all again for the outputs.

    cached_tiles: how many of the tiles read last the cache still holds (least recently used leaves first).
    """
    tiles = -(-columns // tile)
    second = range(tiles - 1, -1, -1) if backwards else range(tiles)
    order = [(1, t) for t in range(tiles)] + [(2, t) for t in second]
    recent: list[int] = []
    visits = []
    for which_pass, t in order:
        visits.append(Visit(which_pass, t, t in recent))
        recent = [*(r for r in recent if r != t), t][-cached_tiles:] if cached_tiles > 0 else []
    return visits


def tiles_walk(
    columns: int, tile: int, step: int | None = None, backwards: bool = False, cached_tiles: int = 0
) -> Picture:
    """One program walking its row tile by tile, twice. step: tiles read so far, of both passes; None: all."""
    if columns < 1 or tile < 1:
        raise ValueError("A row and a tile have at least one column.")
    tiles = -(-columns // tile)
    if tiles > 64:
        raise ValueError(
            f"{tiles} tiles are too many to draw; take larger tiles, or a shorter row: 64 at most."
        )
    visits = tile_visits(columns, tile, backwards, cached_tiles)
    step = len(visits) if step is None else min(max(step, 0), len(visits))
    d = Drawing(WIDTH, 300)
    left, span = 20, WIDTH - 40
    column_w = span / (tiles * tile)
    done = {(v.which_pass, v.tile): v for v in visits[:step]}
    now = visits[step - 1] if step else None
    names = {
        1: "first pass: maximum and sum",
        2: "second pass: outputs" + (", from the end" if backwards else ""),
    }
    for which_pass, top in ((1, 56), (2, 156)):
        d.text(left, top - 12, names[which_pass], TEXT, bold=True)
        for t in range(tiles):
            x, w = left + t * tile * column_w, tile * column_w
            visit = done.get((which_pass, t))
            current = now is not None and (which_pass, t) == (now.which_pass, now.tile)
            colour = CARD if visit is None else GREEN if visit.cached else BLUE
            d.rect(x, top, w, 44, colour, GREY, 1, opacity=1)
            used = min(columns - t * tile, tile)
            if used < tile:
                d.rect(x + used * column_w, top, (tile - used) * column_w, 44, CARD)
                d.hatch(x + used * column_w, top, (tile - used) * column_w, 44)
            if w >= 24:
                d.text(x + min(w, used * column_w) / 2, top + 27, t, SMALL, "middle",
                       CARD if visit else INK) if used * column_w >= 16 else None  # fmt: skip
            d.rect(x, top, w, 44, stroke=INK if current else GREY, width=3 if current else 1)
            if current:
                d.marker(x + w / 2, top + 54, "triangle", 6, INK, INK)
    d.rect(left, 234, 14, 14, BLUE)
    d.text(left + 20, 246, "read from DRAM", SMALL)
    d.rect(left + 146, 234, 14, 14, GREEN)
    d.text(left + 166, 246, "read from L2", SMALL)
    if columns % tile:
        d.rect(left + 266, 234, 14, 14, stroke=GREY)
        d.hatch(left + 266, 234, 14, 14)
        d.text(left + 286, 246, "masked lanes", SMALL)
    dram = sum(_used(columns, tile, v.tile) for v in visits[:step] if not v.cached)
    cached = sum(_used(columns, tile, v.tile) for v in visits[:step] if v.cached)
    written = sum(_used(columns, tile, v.tile) for v in visits[:step] if v.which_pass == 2)
    summary = (
        f"{columns:,} columns in {tiles} {'tile' if tiles == 1 else 'tiles'} of {tile:,}; so far read "
        f"{dram + cached:,} elements, {dram:,} of them from DRAM; written {written:,}"
    )
    d.text(left, 282, summary, SMALL + 0.5)
    alt = f"A program walks its row twice: {summary}. " + (
        f"Now at tile {now.tile} of the {'first' if now.which_pass == 1 else 'second'} pass." if now else ""
    )
    return Picture(d.svg(alt), alt)


def _used(columns: int, tile: int, t: int) -> int:
    return min(columns - t * tile, tile)


def reread(columns: int, kept: int, backwards: bool = False) -> int:
    """What a row's second read fetches from DRAM, in elements, if the cache still holds the `kept` read last.

    Forwards the row begins with what left the cache first, so a row longer than that is fetched whole.
    """
    if columns <= kept:
        return 0
    return columns - kept if backwards else columns


def reread_ceiling(kept: int, title: str = "") -> Picture:
    """The share of a copy's bandwidth that read twice, write once can reach, against the width of a row.

    kept: elements of each row that the cache holds between the two reads; above 0.
    """
    if kept < 1:
        raise ValueError("A cache that keeps nothing of a row has no curve: every row is read twice.")
    d = Drawing(WIDTH, 360)
    left, right, top, bottom = 62, WIDTH - 128, 66, 294
    x, y = Scale(kept / 8, kept * 64, left + 8, right, log=True), Scale(0, 1.08, bottom, top)
    axes(
        d, x, y, "columns", "", [(v, count(v)) for v in powers(x.low, x.high, 2)[::2]],
        [(v, f"{v:.0%}") for v in (0, 0.25, 0.5, 0.75, 1)],
    )  # fmt: skip
    d.text(8, 22, title or "Two reads and a write, at most", TEXT, bold=True)
    d.text(8, 44, "share of a copy's bandwidth", SMALL)
    d.line(left, y(2 / 3), right, y(2 / 3), INK, 1.2, "2 4")
    d.text(left + 12, y(2 / 3) + 18, "2/3: both reads from DRAM", SMALL, fill=MUTED)
    d.line(x(kept), y(0), x(kept), y(1.08), MUTED, 1.2, "5 3")
    d.text(x(kept) + 8, bottom - 12, f"the cache keeps {kept:,} columns of a row", SMALL, fill=MUTED)
    walks = [("forwards", False, BLUE, "square", 9), ("backwards", True, GREEN, "circle", -9)]
    for name, backwards, colour, shape, aside in walks:
        widths = sorted({kept, kept + 1, *(round(kept * 2 ** (i / 8)) for i in range(-24, 49))})
        shares = [(w, 2 * w / (2 * w + reread(w, kept, backwards))) for w in widths]
        d.polyline([(x(w), y(v)) for w, v in shares if w >= x.low], colour, 2.5)
        for w, v in shares:
            if w in (2 * kept, 4 * kept, 16 * kept):
                d.marker(x(w), y(v), shape, 4.5, colour)
        end = y(shares[-1][1])
        d.line(right + 2, end, right + 12, end + aside, colour, 0.8)
        d.marker(right + 19, end + aside, shape, 4.5, colour)
        d.text(right + 29, end + aside + 4.5, name, SMALL + 0.5)
    note = "counted: the whole cache holds x, and what was read last leaves last; a bound, not a promise"
    d.text(8, 352, note, SMALL, fill=MUTED)
    twice = 4 * kept / (4 * kept + reread(2 * kept, kept, backwards=True))
    alt = (
        f"{title or 'Two reads and a write'}: the most they can reach, as a share of a copy. Up to {kept:,} "
        "columns, all of it. Past that a second walk forwards falls at once to 2/3; backwards it slopes down "
        f"to 2/3, {twice:.0%} at {2 * kept:,} columns."
    )
    return Picture(d.svg(alt), alt)


def busy_multiprocessors(programs: int, gpu: GPU | str = "H200", title: str = "") -> Picture:
    """A GPU's multiprocessors, those filled that a launch of this many programs gives work to."""
    gpu = as_gpu(gpu)
    busy = min(programs, gpu.sms)
    across, cell = 33, 18
    lines = -(-gpu.sms // across)
    d = Drawing(WIDTH, 76 + lines * (cell + 2))
    what = "program" if programs == 1 else "programs"
    words = f"{programs:,} {what}: {busy} of {gpu.sms} multiprocessors of {gpu.name} have work"
    d.text(8, 24, title or words, TEXT, bold=True)
    for i in range(gpu.sms):
        left, top = 8 + i % across * (cell + 2), 40 + i // across * (cell + 2)
        d.rect(left, top, cell, cell, BLUE if i < busy else CARD, BLUE if i < busy else GREY, 1)
    share = f"{busy / gpu.sms:.{1 if busy < gpu.sms / 100 else 0}%}"
    rest = "" if busy == gpu.sms else "; the rest waits"
    d.text(8, d.height - 10, f"{share} of the chip asks for memory{rest}", SMALL, fill=MUTED)
    return Picture(d.svg(words), words)


# (g) ------------------------------------------------------------------------------------------------------


def timeline(
    rows: int,
    columns: int,
    dtype: str = "float32",
    gpu: GPU | str = "H200",
    launch_seconds: float = LAUNCH_SECONDS,
    operations: Sequence[Operation] | None = None,
) -> Picture:
    """Five separate kernels and one fused kernel on the same time axis: launches, reads and writes.

    Times are launch_seconds for a launch and bytes over published bandwidth for the rest: a bound, not a
    measurement.
    """
    gpu, itemsize = as_gpu(gpu), ITEMSIZE[dtype]
    separate = list(eager_operations(rows, columns) if operations is None else operations)
    lanes = [("separate kernels", separate), ("fused", fused_operations(rows, columns))]

    def seconds_of(ops):
        return sum(launch_seconds + gpu.least_seconds((r + w) * itemsize) for _, r, w in ops)

    ends = {name: seconds_of(ops) for name, ops in lanes}
    d = Drawing(WIDTH, 286)
    left = 24
    x = Scale(0, max(ends.values()), left, WIDTH - 30)
    d.text(left, 24, f"{rows:,} × {columns:,} {dtype} on {gpu.name}, the least time", TEXT, bold=True)
    for (name, ops), top in zip(lanes, (66, 158), strict=True):
        d.text(left, top - 10, f"{name}: {quantity(ends[name], 's')}", TEXT)
        now = 0.0
        for op, reads, writes in ops:
            parts = [(launch_seconds, GREY), (gpu.least_seconds(reads * itemsize), BLUE),
                     (gpu.least_seconds(writes * itemsize), ORANGE)]  # fmt: skip
            begin = now
            for seconds, colour in parts:
                d.rect(x(now), top, x(now + seconds) - x(now), 30, colour)
                now += seconds
            d.rect(x(begin), top, x(now) - x(begin), 30, stroke=CARD, width=2)
            wide = x(now) - x(begin)
            if wide >= text_width(op, SMALL) + 4:
                d.text((x(begin) + x(now)) / 2, top + 46, op, SMALL, "middle")
    for k, (words, colour) in enumerate((("launch", GREY), ("read", BLUE), ("write", ORANGE))):
        d.rect(WIDTH - 236 + 78 * k, 30, 13, 13, colour)
        d.text(WIDTH - 218 + 78 * k, 41, words, SMALL)
    base = 226
    d.line(left, base, x.stop, base, MUTED)
    for v in ticks(0, x.high, 6):
        d.line(x(v), base, x(v), base + 5, MUTED)
        if x(v) <= x.stop - 2:
            d.text(x(v), base + 19, f"{v * 1e6:g}", SMALL, "middle", MUTED)
    d.text((left + x.stop) / 2, base + 44, "time (µs)", TEXT, "middle")
    alt = (
        f"Timeline for {rows:,} by {columns:,} {dtype} on {gpu.name}, least times: "
        f"{len(separate)} separate kernels ({', '.join(o[0] for o in separate)}) take "
        f"{quantity(ends['separate kernels'], 's')}, one fused kernel "
        f"{quantity(ends['fused'], 's')}."
    )
    return Picture(d.svg(alt), alt)


# registers and occupancy ----------------------------------------------------------------------------------


def multiprocessor(
    gpu: GPU | str, registers: int, spilled: int, shared: int, num_warps: int, title: str = ""
) -> Picture:
    """One SM's warp slots, filled with as many programs of a compiled kernel as fit at a time.

    registers: 32-bit registers a thread; spilled: bytes a thread in local memory; shared: bytes a program.
    """
    gpu = as_gpu(gpu)
    held = occupancy(gpu, registers, shared, num_warps)
    d = Drawing(WIDTH, 250)
    d.text(20, 26, title or f"One multiprocessor of a {gpu.name}", TEXT, bold=True)
    across, cell, top = 16, 24, 44
    for slot in range(gpu.max_warps_per_sm):
        x, y = 20 + slot % across * (cell + 2), top + slot // across * (cell + 2)
        shade = (BLUE, SKY)[slot // num_warps % 2] if slot < held.warps_per_sm else CARD
        d.rect(x, y, cell, cell, shade, GREY if shade == CARD else BLUE, 1)
    programs = "program" if held.programs_per_sm == 1 else "programs"
    words = (
        f"{held.warps_per_sm} of {gpu.max_warps_per_sm} warp slots: "
        f"{held.programs_per_sm} {programs} of {num_warps}"
    )
    d.text(20, top + 4 * (cell + 2) + 20, words, SMALL + 0.5)
    shades = "neighbouring programs in two shades; an empty slot hides no latency"
    d.text(20, top + 4 * (cell + 2) + 40, shades, SMALL, fill=MUTED)
    left = 470
    limits = {"warps": "warp slots", "programs": "the number of programs"}
    facts = [
        ("registers a thread", f"{registers} of 255"),
        ("spilled a thread", f"{spilled} bytes" if spilled else "nothing"),
        ("shared memory", quantity(shared, "B")),
        ("occupancy", f"{held.share:.0%}"),
        ("limited by", limits.get(held.limited_by, held.limited_by)),
    ]
    for i, (name, value) in enumerate(facts):
        alarm = (name == "spilled a thread" and spilled) or (name == "occupancy" and not held.programs_per_sm)
        d.text(left, top + 14 + 36 * i, name, SMALL, fill=MUTED)
        d.text(left, top + 31 + 36 * i, value, TEXT + 1, bold=True, fill="#a33c00" if alarm else INK)
    spills = f"{spilled} bytes a thread spilled" if spilled else "nothing spilled"
    alt = (
        f"{title or gpu.name}: {registers} registers a thread, {spills}, {words}; "
        f"occupancy {held.share:.0%}, limited by {held.limited_by}."
    )
    return Picture(d.svg(alt), alt)


# exp and its dtypes ---------------------------------------------------------------------------------------


def exp_range(
    limits: Mapping[str, tuple[float, float]], scores: Mapping[str, Sequence[float]] | None = None
) -> Picture:
    """Where exp(x) is neither 0 nor infinite, a bar a dtype; and rows of scores above, as points.

    limits: dtype → (smallest x with exp(x) > 0, largest x with exp(x) finite). scores: name → finite scores.
    """
    scores = dict(scores or {})
    if not limits:
        raise ValueError("A range of exp needs at least one dtype.")
    every = [
        0.0,
        *(v for pair in limits.values() for v in pair),
        *(v for row in scores.values() for v in row),
    ]
    reach = max(max(every), -min(every)) * 1.2
    step, top = 44, 52
    base = top + step * (len(scores) + len(limits)) + 6
    d = Drawing(WIDTH, base + 54)
    x = Scale(-reach, reach, 150, WIDTH - 16)
    d.text(8, 24, "Where exp(x) is a number", TEXT, bold=True)
    for v in ticks(-reach, reach, 7):
        d.line(x(v), top - 12, x(v), base, GRID)
        d.line(x(v), base, x(v), base + 5, MUTED)
        d.text(x(v), base + 19, short(v), SMALL, "middle", MUTED)
    d.line(x.start, base, x.stop, base, MUTED)
    d.text((x.start + x.stop) / 2, base + 40, "score x", TEXT, "middle")
    bars = top + step * len(scores)
    for k, (name, (low, high)) in enumerate(limits.items()):
        line = bars + step * k
        d.text(x.start - 12, line + 16, name, TEXT, "end")
        d.rect(x.start, line, x.stop - x.start, 22, GREY, opacity=0.13)
        d.rect(x(low), line, x(high) - x(low), 22, BLUE)
    for i, row in enumerate(scores.values()):
        for v in row:
            d.line(x(v), top + step * i + 11, x(v), base, ORANGE, 1.5, "4 3")
            d.marker(x(v), top + step * i + 11, "diamond", 6, ORANGE, INK, 1)
    line = top
    for name, row in scores.items():
        d.text(x.start - 12, line + 16, name, SMALL + 0.5, "end")
        label, edge = ", ".join(map(short, row)), max(row)
        fits = x(edge) + 12 + text_width(label, SMALL) < x.stop
        at_x, anchor = (x(edge) + 12, "start") if fits else (x(min(row)) - 12, "end")
        d.text(at_x, line + 16, label, SMALL, anchor, halo=True)
        line += step
    for low, high in limits.values():
        left, right = f"{low:.1f}".replace("-", "−"), f"{high:.1f}"
        inside = x(high) - x(low) > 160  # a wide bar holds its own numbers
        ink, gap = (CARD, 7) if inside else (INK, -7)
        d.text(x(low) + gap, line + 16, left, SMALL, "start" if inside else "end", ink, bold=True)
        d.text(x(high) - gap, line + 16, right, SMALL, "end" if inside else "start", ink, bold=True)
        room = 0 if inside else text_width(left, SMALL, True) + 12
        for words, at_x, anchor, free in (
            ("exp(x) = 0", x.start + 6, "start", x(low) - x.start - room),
            ("exp(x) = ∞", x.stop - 6, "end", x.stop - x(high) - room),
        ):
            if free > text_width(words, SMALL) + 12:
                d.text(at_x, line + 16, words, SMALL, anchor, INK, halo=True)
        line += step
    ranges = "; ".join(f"{name} from {short(low)} to {short(high)}" for name, (low, high) in limits.items())
    rows = "".join(f" Scores {name}: {', '.join(map(short, row))}." for name, row in scores.items())
    alt = f"The scores x for which exp(x) is neither 0 nor infinite: {ranges}.{rows}"
    return Picture(d.svg(alt), alt)


# ----------------------------------------------------------------------------------------------------------


def next_power_of_2(value: int) -> int:
    """The smallest power of two ≥ value."""
    return 1 << max(int(value) - 1, 0).bit_length()


def gpu_names() -> list[str]:
    """The GPUs whose published figures the pictures can use."""
    return list(GPUS)


def _subscript(i: int) -> str:
    return str(i).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def short(value: float) -> str:
    """A score as a label: up to five digits, ∞ and −∞."""
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    return f"{value:.5g}".replace("-", "−")


def _decimals(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) and (value == 0 or abs(value) >= 5e-5) else f"{value:.2e}"
