"""Bandwidth against width: drawn once for a set of records; a cursor is laid over it for a width."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from course_kernels.lab.core.gpus import GPU, as_gpu
from course_kernels.lab.core.wording import size
from course_kernels.lab.show.chip import next_power_of_2
from course_kernels.lab.show.colours import INK, NOW, look
from course_kernels.lab.show.drawing import SMALL, WIDTH, Drawing, text_width
from course_kernels.lab.show.matplot import (
    BLACK,
    SOFT,
    WHITE,
    aside,
    name_lines,
    new_plot,
    paint,
    power_ticks,
    put,
    styled,
    swatch,
    to_svg,
)
from course_kernels.lab.show.picture import Picture
from course_kernels.lab.show.traffic import LAUNCH_SECONDS, itemsize

SECOND_READ = "second read from DRAM"


@dataclass(frozen=True)
class Region:
    """A range of columns in which something other than DRAM traffic rules, with its explanation."""

    name: str
    low: float
    high: float
    why: str


def regions(rows_at: Callable[[int], int], low: int, high: int, dtype: str, gpu: GPU | str) -> list[Region]:
    """The regions of a curve over widths low…high on a GPU; rows_at(columns) gives the matrix's rows."""
    gpu, each = as_gpu(gpu), itemsize(dtype)
    registers = gpu.registers_per_sm * 4  # bytes

    def traffic(columns):
        return 2 * rows_at(columns) * columns * each

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
            SECOND_READ,
            lambda c: c * each * gpu.sms > gpu.l2_bytes,
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


def aligned(record) -> bool:
    """Whether each row starts where 16 bytes can be loaded at once. Other widths lie below their neighbours,
    and a line through both would zigzag."""
    return record.columns * itemsize(getattr(record, "dtype", "float32")) % 16 == 0


class Plot:
    """A plot of records, drawn once. Subclasses give figure, alt(at) and cursor(drawing, at)."""

    marks: list[Region] = []

    def __init__(self, records, kernels, source, share):
        self.source, self.share = source, share
        self.copy = {_matrix(r): r.gbps for r in records if r.kernel == "copy"}
        self.write = "{:.0%}".format if share else "{:,.0f}".format
        self.points: dict[str, list[tuple]] = {}  # kernel → (record, its value) pairs, in order of columns
        for name in kernels if kernels is not None else dict.fromkeys(r.kernel for r in records):
            mine = sorted((r for r in records if r.kernel == name), key=lambda r: (r.columns, r.rows))
            points = [(r, value) for r in mine if (value := self._value(r))]
            if points:
                self.points[name] = points
        if not self.points:
            raise ValueError("There is nothing to draw: no record of these kernels.")
        self._svg = ""

    def _value(self, record) -> float:
        """GB/s, or the share of a copy; 0 where there is none."""
        copy = self.copy.get(_matrix(record), 0) if self.share else 1
        return record.gbps / copy if copy else 0

    def _new(self, height, left, right, top):
        """(figure, axes) for `height` units of axes, titled, and the source below."""
        notes = textwrap.wrap(self.source, 96)
        below = 50 + 18 * len(notes)
        title = "Share of a copy's bandwidth" if self.share else "GB/s (useful bytes, in and out)"
        figure, axes = new_plot(top + height + below, left, right, top, below, title)
        for i, line in enumerate(reversed(notes)):
            put(figure, 8, top + height + below - 8 - 17 * i, line, alpha=SOFT)
        return figure, axes

    def place(self, x: float, y: float) -> tuple[float, float]:
        """Where a point of the axes is in the SVG."""
        px, py = self.figure.axes[0].transData.transform((x, y))
        return px, self.figure.get_figheight() * 72 - py

    def picture(self, at=None) -> Picture:
        """The plot, with a cursor at a width or a matrix."""
        alt = " ".join(self.alt(at).split())
        self._svg = self._svg or to_svg(self.figure, alt)
        d = Drawing(WIDTH, 0)
        if at:
            self.cursor(d, at)
        head, _, rest = self._svg.partition('aria-label="')
        body = rest[rest.index('"') :].removesuffix("</svg>")
        return Picture(f'{head}aria-label="{escape(alt)}{body}{"".join(d.parts)}</svg>', alt)


class BandwidthPlot(Plot):
    """A line a contender over the widths, the copy as the roof.

    records: objects with kernel, columns, gbps (10^9 useful bytes a second) and, if they have one, spread
    (interquartile range over median, drawn as a bar). kernels: which, in this order; None: all. source: where
    the figures come from. marks: regions above the plot. share: the share of a copy in place of GB/s.
    ValueError if nothing is left to draw.
    """

    def __init__(self, records, kernels=None, source="", marks=(), share=False):
        super().__init__(records, kernels, source, share)
        widths = [r.columns for points in self.points.values() for r, _ in points]
        self.low, self.high = min(widths), max(widths)
        if self.low == self.high:
            self.low, self.high = max(self.low // 2, 1), self.high * 2
        self.marks = [m for m in marks if m.high > m.low and m.high > self.low and m.low < self.high]
        # A line goes through the aligned widths; the others stand beside it, hollow.
        self.lines = {k: [p for p in points if aligned(p[0])] or points for k, points in self.points.items()}
        self.figure = self._draw()

    @styled
    def _draw(self):
        longest = max(map(len, self.points))
        top = 50 + 21 * len(self.marks) + 14 * bool(self.marks)
        figure, axes = self._new(290, 62, max(104, 32 + 7.5 * longest), top)
        step = (self.high / self.low) ** 0.02
        peak = max(y for points in self.points.values() for _, y in points)
        axes.set_xscale("log", base=2)
        axes.set(xlim=(self.low / step, self.high * step), ylim=(0, peak * 1.06), xlabel="columns")
        power_ticks(axes.xaxis, self.low, self.high)
        axes.yaxis.set_major_formatter(lambda y, _: self.write(y))
        self._mark(axes, top)
        for order, (name, points) in enumerate(self.points.items()):
            colour, marker = look(name)
            style = {"color": paint(colour), "marker": marker, "markersize": 6.5, "clip_on": False}
            style |= {"zorder": 4 - order * 0.01, "linewidth": 3 if colour == NOW else 1.8}
            dash = (0, (5, 3)) if name == "copy" else "-"
            onward, beside = self.lines[name], [p for p in points if p not in self.lines[name]]
            axes.plot(*_xy(onward), **style, linestyle=dash, markeredgecolor=WHITE, markeredgewidth=0.8)
            if beside:
                hollow = {"markerfacecolor": "none", "markeredgewidth": 1.4, "linestyle": "none"}
                axes.plot(*_xy(beside), **style | hollow)
            for r, y in points:
                half = (getattr(r, "spread", None) or 0) / 2 * y
                if half > 0.01 * peak:
                    axes.vlines(r.columns, max(y - half, 0), y + half, style["color"], linewidth=2)
        if self.lines != self.points:
            words = "hollow: rows that are no multiple of 16 bytes"
            put(figure, WIDTH - 8, 22, words, ha="right", alpha=SOFT)
        ends = [(*_xy(line[-1:]), name, *look(name)) for name, line in self.lines.items()]
        ends = [(x[0], y[0], *more) for x, y, *more in ends]
        crowd = [point for line in self.lines.values() for point in _along(line)]
        name_lines(axes, ends, crowd)
        return figure

    def _mark(self, axes, top) -> None:
        over = axes.get_xaxis_transform()
        for i, mark in enumerate(self.marks):
            low, high = max(mark.low, self.low), min(mark.high, self.high)
            height = 1 + (top - 52 - 21 * i) / 290
            style = {"color": BLACK, "transform": over, "clip_on": False}
            axes.axvspan(low, high, color=BLACK, alpha=0.06, linewidth=0)
            axes.plot([low, high], [height, height], **style, alpha=0.6, linewidth=3)
            late = math.log(low / self.low) > 0.75 * math.log(self.high / self.low)
            axes.annotate(
                mark.name, (high if late else low, height), (0, 5), xycoords=over, textcoords="offset points",
                ha="right" if late else "left", annotation_clip=False,
            )  # fmt: skip
            if mark.name == SECOND_READ and "copy" in self.lines:
                roof = [(r.columns, y * 2 / 3) for r, y in self.lines["copy"] if r.columns >= mark.low]
                if len(roof) > 1:
                    axes.plot(*zip(*roof, strict=True), color=BLACK, alpha=SOFT, linewidth=1.2, dashes=(2, 3))
                    aside(axes, *roof[len(roof) // 2], "2/3 of copy", (0, -16), ha="center")

    def alt(self, at=None) -> str:
        here = at or self.high
        nearest = {n: min(points, key=lambda p: _octaves(p, here)) for n, points in self.points.items()}
        closest = min(_octaves(p, here) for p in nearest.values())
        values = [f"{n} {self.write(p[1])}" for n, p in nearest.items() if _octaves(p, here) < closest + 0.02]
        marked = f"Marked: {', '.join(m.name for m in self.marks)}. " if self.marks else ""
        what = "Share of a copy's bandwidth" if self.share else "Bandwidth in GB/s"
        return (
            f"{what} against columns, {size(self.low)} to {size(self.high)}, for {', '.join(self.points)}. "
            f"Near {here:,} columns: {', '.join(values)}. {marked}{self.source}"
        )

    def cursor(self, d, at) -> None:
        """A line at a width, and a ring round what was measured there."""
        low, high = self.figure.axes[0].get_ylim()
        (x, bottom), (_, top) = self.place(at, low), self.place(at, high)
        d.line(x, top, x, bottom, INK, 1.2, "5 3")
        label = f"{at:,} columns"
        half = text_width(label, SMALL, bold=True) / 2
        d.text(min(max(x, half + 4), WIDTH - half - 4), top - 4, label, SMALL, "middle", bold=True, halo=True)
        for name, points in self.points.items():
            for r, y in points:
                if r.columns == at:
                    d.ring(*self.place(at, y), look(name)[0])


def bandwidth_curve(
    records: Sequence,
    kernels: Sequence[str] | None = None,
    source: str = "",
    marks: Sequence[Region] = (),
    at: int | None = None,
    share: bool = False,
) -> Picture:
    """Bandwidth against width as a picture, with a cursor at a width; the rest as in BandwidthPlot."""
    return BandwidthPlot(records, kernels, source, marks, share).picture(at)


class MatrixPlot(Plot):
    """The bandwidth of contenders on a few matrices, unlike in rows and columns."""

    def __init__(self, records, kernels=None, source="", share=False):
        super().__init__(records, kernels, source, share)
        self.matrices = sorted({(r.columns, r.rows) for points in self.points.values() for r, _ in points})
        self.figure = self._draw()

    @styled
    def _draw(self):
        figure, axes = self._new(30 + 26 * len(self.matrices), 140, 20, 62)
        x = 8
        for kernel, points in self.points.items():
            colour, marker = look(kernel)
            style = {"marker": marker, "linestyle": "none", "color": paint(colour), "markersize": 8}
            lines = [self.matrices.index((r.columns, r.rows)) for r, _ in points]
            axes.plot([y for _, y in points], lines, **style, markeredgecolor=WHITE, clip_on=False)
            swatch(figure, x, 41, **style)
            put(figure, x + 16, 45, kernel)
            x += 34 + 7.2 * len(kernel)
        axes.set_yticks(range(len(self.matrices)), [f"{rows:,} × {size(c)}" for c, rows in self.matrices])
        axes.set(ylim=(len(self.matrices) - 0.5, -0.5), xlabel="share of a copy" if self.share else "GB/s")
        axes.set_xlim(left=0)
        axes.grid(axis="x")
        axes.xaxis.set_major_formatter(lambda v, _: self.write(v))
        return figure

    def alt(self, at=None) -> str:
        rows, columns = at or self.matrices[-1][::-1]
        values = [f"{k} {self.write(y)}" for k, points in self.points.items()
                  for r, y in points if (r.rows, r.columns) == (rows, columns)]  # fmt: skip
        what = "Share of a copy's bandwidth" if self.share else "Bandwidth in GB/s"
        return f"{what} on matrices of few rows. {rows:,} × {columns:,}: {', '.join(values)}. {self.source}"

    def cursor(self, d, at) -> None:
        """A frame round the line of one (rows, columns)."""
        if at[::-1] in self.matrices:
            _, y = self.place(0, self.matrices.index(at[::-1]))
            d.rect(4, y - 12, WIDTH - 14, 24, "none", INK, 1.4, 5)


def _matrix(record) -> tuple:
    return record.rows, record.columns, record.dtype


def _octaves(point, columns) -> float:
    return abs(math.log(point[0].columns / columns))


def _xy(points) -> tuple[list, list]:
    return [r.columns for r, _ in points], [y for _, y in points]


def _along(points) -> list[tuple[float, float]]:
    """Places on the line through these points, so that no name is put on it."""
    parts = [k / 8 for k in range(8)]
    return [
        (a.columns ** (1 - t) * b.columns**t, u + (v - u) * t)
        for (a, u), (b, v) in zip(points, points[1:], strict=False)
        for t in parts
    ]
