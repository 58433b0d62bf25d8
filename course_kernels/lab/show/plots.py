"""The plots of the lessons that have axes, drawn by matplotlib; `bandwidth` has the curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from course_kernels.lab.core.gpus import GPU, SHOWN, as_gpu
from course_kernels.lab.core.wording import number, quantity
from course_kernels.lab.show.colours import LAUNCH, NOW, READ, WRITTEN
from course_kernels.lab.show.drawing import TEXT, WIDTH
from course_kernels.lab.show.matplot import (
    BLACK,
    SOFT,
    WHITE,
    aside,
    beside,
    ground,
    name_lines,
    new_plot,
    no_ticks,
    power_ticks,
    put,
    styled,
    swatches,
)
from course_kernels.lab.show.picture import Picture
from course_kernels.lab.show.tiles import reread
from course_kernels.lab.show.traffic import (
    LAUNCH_SECONDS,
    Operation,
    fused_operations,
    itemsize,
    separately,
    softmax_intensity,
)


@styled
def counted_and_seen(bars: Sequence[tuple], source: str = "") -> Picture:
    """Counted traffic beside what hardware counters saw at DRAM, two bars a matrix, in passes.

    bars: (matrix, a note, counted (reads, writes), seen (reads, writes)), the pairs in passes: multiples of
    the whole matrix. source: where the counters come from.
    """
    if not bars:
        raise ValueError("There is nothing to draw: no matrix.")
    title = "Passes over the matrix: counted, and seen at DRAM"
    figure, axes = new_plot(
        96 + 92 * len(bars), left=84, right=96, top=44, bottom=66, title=title, note=source
    )
    swatches(figure, WIDTH - 170, 22, (("read", READ), ("written", WRITTEN)))
    told, lines = [], []
    for i, (name, note, *pairs) in enumerate(bars):
        axes.text(0, i - 0.42, f"{name}   ", fontweight="bold", fontsize=TEXT)
        axes.annotate(note, (0, i - 0.42), (9 * len(name) + 12, 0), textcoords="offset points", alpha=SOFT)
        for k, (which, (reads, writes)) in enumerate(zip(("counted", "seen"), pairs, strict=True)):
            y = i - 0.2 + 0.31 * k
            axes.barh(y, reads, 0.26, color=READ)
            axes.barh(y, writes, 0.26, reads, color=WRITTEN)
            beside(axes, reads + writes, y, f"{reads:.2f} + {writes:.2f}")
            lines.append((y, which))
            told.append(f"{name} {which}: {reads:.2f} read, {writes:.2f} written")
    axes.set_yticks(*zip(*lines, strict=True))
    axes.set_ylim(len(bars) - 0.4, -0.65)
    axes.set_xlabel("passes")
    axes.grid(axis="x")
    axes.grid(visible=False, axis="y")
    alt = f"Traffic in passes over the matrix. {'; '.join(told)}. {source}"
    return Picture(figure, alt)


@styled
def roofline(gpus: Sequence[GPU | str] = SHOWN, points: Mapping[str, float] | None = None) -> Picture:
    """Rooflines of real GPUs, from published figures, with kernels at their arithmetic intensities.

    points: name → FLOP a byte; None: the fused and the eager softmax in float32.
    """
    if points is None:
        points = {"eager softmax": softmax_intensity(8), "fused softmax": softmax_intensity(2)}
    chosen = [as_gpu(gpu) for gpu in gpus]
    if not chosen:
        raise ValueError("A roofline needs at least one GPU.")
    note = (
        "published peaks; a circle is where a GPU's arithmetic becomes the limit, a diamond a kernel's bound"
    )
    figure, axes = new_plot(440, right=112, title="float32 TFLOP/s, at most", note=note)
    low = 10 ** math.floor(math.log10(min([0.1, *(v * 0.9 for v in points.values())])))
    high = 400
    hues = (NOW, "#9a5bd6", "#3f8a3a", "#0a84a5", "#98693a", "#b04aa0", "#4f62d8")
    for i, gpu in enumerate(chosen):
        colour, memory = hues[i % len(hues)], gpu.gbps * 1e-3  # TB/s, so TFLOP/s at one FLOP a byte
        axes.plot([low, gpu.ridge, high], [memory * low, gpu.tflops, gpu.tflops], color=colour)
        axes.plot(gpu.ridge, gpu.tflops, "o", color=colour, markersize=7)
        for intensity in points.values():
            axes.plot(intensity, memory * intensity, "D", color=colour, markersize=5)
    for name, intensity in points.items():
        axes.axvline(intensity, color=BLACK, linewidth=1.2, dashes=(4, 3), zorder=1)
        axes.annotate(
            f"{name}, {intensity:.3g}", (intensity, 0), (6, 8 + 18 * list(points).index(name)),
            xycoords=("data", "axes fraction"), textcoords="offset points", bbox=ground(),
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=(low, high), xlabel="arithmetic intensity (FLOP a byte)")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(no_ticks())
    ends = [(high, gpu.tflops, gpu.name, hues[i % len(hues)], "") for i, gpu in enumerate(chosen)]
    name_lines(axes, ends, crowd=[])
    ridges = ", ".join(f"{g.name} {g.ridge:.0f}" for g in chosen)
    where = ", ".join(f"{n} at {v:.3g}" for n, v in points.items())
    alt = (
        f"Rooflines on logarithmic axes. Kernels in FLOP a byte: {where}. The roof turns flat at: {ridges}. "
        "Kernels left of that point are bound by memory."
    )
    return Picture(figure, alt)


@styled
def reread_ceiling(kept: int, title: str = "", points: Sequence[tuple] = ()) -> Picture:
    """The share of a copy's bandwidth that read twice, write once can reach, against the width of a row.

    kept: elements of each row that the cache holds between the two reads; above 0. points: measured
    (columns, share of a copy) pairs to draw below the bound.
    """
    if kept < 1:
        raise ValueError("A cache that keeps nothing of a row has no curve: every row is read twice.")
    note = "counted: the whole cache holds x, and what was read last leaves last; a bound, not a promise"
    figure, axes = new_plot(
        360, right=112, top=56, title=title or "Two reads and a write, at most", note=note
    )
    put(figure, 8, 44, "share of a copy's bandwidth", alpha=SOFT)
    low, high = kept / 8, kept * 64
    ends = []
    for name, backwards, colour, dashes in (
        ("forwards", False, NOW, (5, 2)),
        ("backwards", True, "#9a5bd6", ()),
    ):
        widths = sorted({kept, kept + 1, *(round(kept * 2 ** (i / 8)) for i in range(-24, 49))})
        shares = [2 * w / (2 * w + reread(w, kept, backwards)) for w in widths]
        axes.plot(widths, shares, color=colour, dashes=dashes or (None, None), linewidth=2.4)
        ends.append((widths[-1], shares[-1] - 0.02 + 0.04 * backwards, name, colour, ""))
    if points:
        axes.plot(*zip(*sorted(points), strict=True), "o", color=BLACK, markersize=6)
    axes.axhline(2 / 3, color=BLACK, alpha=SOFT, linewidth=1, dashes=(2, 4))
    axes.axvline(kept, color=BLACK, alpha=SOFT, linewidth=1, dashes=(5, 3))
    aside(axes, low, 2 / 3, "2/3: both reads from DRAM", (4, -16))
    aside(axes, kept, 0, f"the cache keeps {kept:,} columns of a row", (8, 10))
    axes.set_xscale("log", base=2)
    axes.set(xlim=(low, high), ylim=(0, 1.08), xlabel="columns", yticks=(0, 0.25, 0.5, 0.75, 1))
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    power_ticks(axes.xaxis, low, high, 2)
    name_lines(axes, ends, crowd=[])
    twice = 4 * kept / (4 * kept + reread(2 * kept, kept, backwards=True))
    alt = (
        f"{title or 'Two reads and a write'}: the most they can reach, as a share of a copy. Up to {kept:,} "
        "columns, all of it. Past that a second walk forwards falls at once to 2/3; backwards it slopes down "
        f"to 2/3, {twice:.0%} at {2 * kept:,} columns."
    )
    return Picture(figure, alt)


@styled
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
    gpu, each = as_gpu(gpu), itemsize(dtype)
    lanes = {
        "separate kernels": separately(rows, columns, operations),
        "fused": fused_operations(rows, columns),
    }
    title = f"{rows:,} × {columns:,} {dtype} on {gpu.name}, the least time"
    figure, axes = new_plot(270, left=24, right=30, top=58, bottom=58, title=title)
    swatches(figure, WIDTH - 250, 22, (("launch", LAUNCH), ("read", READ), ("write", WRITTEN)))
    ends = {
        name: sum(launch_seconds + gpu.least_seconds((r + w) * each) for _, r, w in kernels)
        for name, kernels in lanes.items()
    }
    longest = max(ends.values()) * 1e6
    for lane, (name, kernels) in enumerate(lanes.items()):
        now = 0.0  # µs
        for kernel, reads, writes in kernels:
            begin = now
            times = (launch_seconds, gpu.least_seconds(reads * each), gpu.least_seconds(writes * each))
            for seconds, colour in zip(times, (LAUNCH, READ, WRITTEN), strict=True):
                axes.barh(lane, seconds * 1e6, 0.34, now, color=colour)
                now += seconds * 1e6
            axes.barh(lane, now - begin, 0.34, begin, fill=False, edgecolor=WHITE, linewidth=2)
            if (now - begin) / longest * (WIDTH - 54) > 7 * len(kernel):
                at = (begin + now) / 2, lane + 0.17
                axes.annotate(kernel, at, (0, -15), textcoords="offset points", ha="center")
        axes.text(0, lane - 0.24, f"{name}: {quantity(ends[name], 's')}", fontsize=TEXT)
    axes.set(xlabel="time (µs)", yticks=(), ylim=(1.5, -0.5), xlim=(0, longest))
    alt = (
        f"Timeline for {rows:,} by {columns:,} {dtype} on {gpu.name}, least times: "
        f"{len(lanes['separate kernels'])} separate kernels "
        f"({', '.join(o[0] for o in lanes['separate kernels'])}) take "
        f"{quantity(ends['separate kernels'], 's')}, one fused kernel {quantity(ends['fused'], 's')}."
    )
    return Picture(figure, alt)


@styled
def exp_range(
    limits: Mapping[str, tuple[float, float]], scores: Mapping[str, Sequence[float]] | None = None
) -> Picture:
    """Where exp(x) is neither 0 nor infinite, a bar a dtype; and rows of scores above, as points.

    limits: dtype → (smallest x with exp(x) > 0, largest x with exp(x) finite). scores: name → finite scores.
    """
    scores = dict(scores or {})
    if not limits:
        raise ValueError("A range of exp needs at least one dtype.")
    every = [0.0, *(v for some in (*limits.values(), *scores.values()) for v in some)]
    reach = max(max(every), -min(every)) * 1.25
    names = [*scores, *limits]
    figure, axes = new_plot(
        110 + 44 * len(names), left=150, right=16, top=40, title="Where exp(x) is a number"
    )
    for line, row in enumerate(scores.values()):
        axes.plot(row, [line] * len(row), "D", color=NOW, markersize=8, clip_on=False)
        axes.vlines(row, line, len(names) - 0.5, color=NOW, linewidth=1.2, linestyles=(0, (4, 3)), zorder=2)
        right = max(row) < 0.6 * reach
        aside(axes, max(row) if right else min(row), line, ", ".join(map(number, row)),
               (10 if right else -10, -4), ha="left" if right else "right")  # fmt: skip
    for line, (low, high) in enumerate(limits.values(), len(scores)):
        axes.barh(line, 2 * reach, 0.5, -reach, color=LAUNCH, alpha=0.16)
        axes.barh(line, high - low, 0.5, low, color=READ)
        inside = high - low > 0.6 * reach  # a wide bar holds its own numbers
        gap = 7 if inside else -7
        style = {"va": "center", "fontweight": "bold", "color": "#ffffff" if inside else BLACK}
        for edge, sign, words in ((low, 1, "exp(x) = 0"), (high, -1, "exp(x) = ∞")):
            axes.annotate(
                number(round(edge, 1)), (edge, line), (gap * sign, 0), textcoords="offset points",
                ha="left" if gap * sign > 0 else "right", **style,
            )  # fmt: skip
            if reach - abs(edge) > 0.42 * reach:
                axes.text(-sign * reach * 0.99, line, words, va="center", ha="left" if sign > 0 else "right",
                          bbox=ground())  # fmt: skip
    axes.set(xlabel="score x", xlim=(-reach, reach), ylim=(len(names) - 0.5, -0.5))
    axes.set_yticks(range(len(names)), names)
    axes.xaxis.set_major_formatter(lambda v, _: number(v))
    axes.grid(axis="x")
    axes.grid(visible=False, axis="y")
    ranges = "; ".join(f"{name} from {number(a)} to {number(b)}" for name, (a, b) in limits.items())
    rows = "".join(f" Scores {name}: {', '.join(map(number, row))}." for name, row in scores.items())
    alt = f"The scores x for which exp(x) is neither 0 nor infinite: {ranges}.{rows}"
    return Picture(figure, alt)
