"""Matplotlib in the course's style: figures in the page's own colours, and their SVG.

pyplot stays out of it: no figure is left open, no backend is chosen.
"""

from __future__ import annotations

import io
import math
import re
import sys
import threading
from functools import wraps

from course_kernels.lab.core.wording import size
from course_kernels.lab.show.colours import INK
from course_kernels.lab.show.drawing import SMALL, TEXT, WIDTH, wrap

# Matplotlib wants colours it can compute with; `to_svg` puts the page's in their place.
STAND_INS = {"#010203": "currentColor", "#fdfefd": "var(--paper)"}
BLACK, WHITE = STAND_INS
FAINT, SOFT = 0.18, 0.75  # opacity of gridlines, of what is said by the way
STYLE = {
    "font.size": SMALL,
    "text.color": BLACK,
    "axes.labelcolor": BLACK,
    "axes.labelsize": TEXT,
    "axes.edgecolor": BLACK,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": BLACK,
    "grid.alpha": FAINT,
    "xtick.color": BLACK,
    "ytick.color": BLACK,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "figure.facecolor": WHITE,
    "lines.linewidth": 2,
    "svg.fonttype": "none",  # text stays text, set in the page's fonts
}


_drawing = threading.RLock()


def styled(function):
    """Run a function that draws under the course's style, one drawing at a time."""

    @wraps(function)
    def run(*args, **kwargs):
        import matplotlib

        with _drawing, matplotlib.rc_context(STYLE):
            return function(*args, **kwargs)

    return run


def new_plot(height, left=70, right=20, top=40, bottom=66, title="", note=""):
    """(figure, axes): a figure of WIDTH × height units with axes inside these margins, a title above, a note
    below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
    box = (left / WIDTH, bottom / height, (WIDTH - left - right) / WIDTH, (height - top - bottom) / height)
    axes = figure.add_axes(box)
    put(figure, 8, 22, title, fontsize=TEXT, fontweight="bold")
    put(figure, 8, height - 8, note, alpha=SOFT)
    return figure, axes


def put(figure, x, y, words, **style):
    """Text on the figure, its baseline at (x, y) units from the top left corner."""
    height = figure.get_figheight() * 72
    return figure.text(x / WIDTH, 1 - y / height, words, va="baseline", **style) if words else None


def swatches(figure, x, y, entries):
    """A legend in one row: (words, colour) pairs."""
    from matplotlib.patches import Rectangle

    height = figure.get_figheight() * 72
    for words, colour in entries:
        where = (x / WIDTH, 1 - (y + 1) / height)
        figure.add_artist(
            Rectangle(where, 13 / WIDTH, 13 / height, facecolor=colour, transform=figure.transFigure)
        )
        put(figure, x + 19, y, words)
        x += 38 + 7 * len(words)


def swatch(figure, xs, y, **look):
    """A marker, or a short line, of a legend at these places: units from the top left corner."""
    from matplotlib.lines import Line2D

    width, height = figure.get_size_inches() * 72
    xs = xs if isinstance(xs, list) else [xs]
    ys = [1 - y / height] * len(xs)
    figure.add_artist(Line2D([x / width for x in xs], ys, transform=figure.transFigure, **look))


def to_svg(figure, alt: str, zoom: float = 4 / 3) -> str:
    """A figure as SVG in the page's colours. zoom: pixels a point; this module's figures are in pixels."""
    import matplotlib

    patch = figure.patch
    ours = patch.get_facecolor() == matplotlib.colors.to_rgba(WHITE)
    out, shown = io.StringIO(), patch.get_visible()
    patch.set_visible(shown and not ours)
    with _drawing, matplotlib.rc_context({"svg.hashsalt": alt, "svg.fonttype": "none" if ours else "path"}):
        figure.savefig(out, format="svg", dpi=72, metadata={"Date": None, "Creator": None})
    patch.set_visible(shown)
    if not ours and "matplotlib.pyplot" in sys.modules:  # or the notebook shows it a second time, as a bitmap
        sys.modules["matplotlib.pyplot"].close(figure)
    svg = out.getvalue()
    svg = svg[svg.index('<g id="figure_1"') : svg.rindex("</svg>")]
    for stand_in, colour in STAND_INS.items():
        svg = svg.replace(stand_in, colour)
    svg = re.sub(r'<g id="\w+(\.\w+)*">', "<g>", svg)
    svg = re.sub(r"font-family: [^;\"]*;? ?| transform=\"rotate\(-0 [^)]*\)\"", "", svg)
    svg = re.sub(r"\s*\n\s*", " ", svg)
    width, height = figure.get_size_inches() * 72
    body = f'<g style="stroke-linejoin:round">{svg}</g>'
    return wrap(body, width, height, " ".join(alt.split()), 1 if ours else zoom)


def power_ticks(axis, low: float, high: float, least: int = 1) -> None:
    """Every second or third power of two between low and high, named as the learner knows them: 64K, 1M."""
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    step = max(least, -(-(last - first + 1) // 8))
    values = [2.0**i for i in range(first, last + 1) if i % step == 0]
    axis.set_ticks(values, [size(v) for v in values])
    axis.set_minor_locator(no_ticks())


def no_ticks():
    from matplotlib.ticker import NullLocator

    return NullLocator()


def ground():
    """The box of a text that lies over lines: the paper shows through."""
    return {"facecolor": WHITE, "edgecolor": "none", "alpha": 0.85, "pad": 1.5}


def name_lines(axes, ends, crowd) -> None:
    """Name each line beside its last point, as near to its height as there is room.

    ends: (x, y, name, colour, marker) of each line; crowd: (x, y) points no name should lie on. In the
    margin a name has its marker; among the lines, where a marker would look like data, it has their colour.
    """
    height = axes.get_figure().get_figheight() * 72
    edge = axes.transAxes.transform((1, 0))[0]
    taken = [tuple(p) for p in axes.transData.transform(crowd)] if len(crowd) else []
    boxes: list[tuple] = []
    for x, y, name, colour, marker in sorted(ends, key=lambda end: (-end[0], -end[1])):
        px, py = axes.transData.transform((x, y))
        width = 24 + 7.2 * len(name)
        left = min(px + 8, WIDTH - width)

        beside = [b for a, b in taken if left < a < left + width]
        stacked = [(b, d) for a, b, c, d in boxes if a < left + width and left < c]

        def cost(shift, py=py, beside=beside, stacked=stacked):
            low, high = py + shift - 8, py + shift + 8
            meets = sum(1 for b, d in stacked if b < high and low < d)
            hits = sum(1 for b in beside if low < b < high)
            out = low < 40 or high > height - 30
            return abs(shift) * (3 if shift > 0 else 1) + 200 * meets + 12 * hits + 500 * out

        middle = py + min((s * k for k in range(0, 121, 3) for s in (-1, 1)), key=cost)
        boxes.append((left, middle - 8, left + width, middle + 8))
        margin = left > edge - 12
        style = {} if margin else {"color": paint(colour), "fontweight": "bold"}
        at = (left + 16 if margin else left + 2, middle)
        axes.annotate(name, at, xycoords="figure pixels", va="center", zorder=6, **style)
        if margin:
            look = {"marker": marker, "markersize": 8} if marker else {"linewidth": 4}
            xs = [left + 7] if marker else [left, left + 12]
            swatch(axes.get_figure(), xs, height - middle, color=paint(colour), **look)


def paint(colour: str) -> str:
    """A colour of the course as matplotlib takes it."""
    return BLACK if colour == INK else colour


def aside(axes, x, y, words, offset, **style):
    axes.annotate(words, (x, y), offset, textcoords="offset points", alpha=SOFT, bbox=ground(), **style)


def beside(axes, x, y, words):
    axes.annotate(words, (x, y), (8, 0), textcoords="offset points", va="center")
