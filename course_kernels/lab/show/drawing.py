"""Pictures as SVG text, in the course's one style: shapes, text, axes.

Matplotlib takes longer to draw a chart than a slider may take to answer, so the widgets draw with this, and
the figures of the notebooks too: one look, and a picture that says the same in a widget and beside it. Text
stays text, in Helvetica, Arial or Liberation Sans, whose letters are equally wide, so a label fits wherever
it is read. Coordinates are in SVG units, about one pixel each; y grows downwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape

INK = "#1f1f1f"
MUTED = "#595959"
GRID = "#e4e1d9"
CARD = "#fdfcf8"  # the paper that every picture is drawn on: readable in a light and in a dark theme
FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
MONO = "Menlo, Consolas, 'Liberation Mono', 'DejaVu Sans Mono', monospace"

# Okabe and Ito's palette, told apart with any kind of colour vision.
BLUE, ORANGE, GREEN, VERMILLION = "#0072b2", "#e69f00", "#009e73", "#d55e00"
PURPLE, SKY, YELLOW, GREY = "#cc79a7", "#56b4e9", "#f0e442", "#8a8a8a"

# Marker shapes repeat what the colours say.
SHAPES = ("circle", "square", "triangle", "diamond", "cross", "down")

TEXT = 14  # the size of ordinary text; nothing is smaller than SMALL
SMALL = 12.5


def text_width(text: str, size: float = TEXT, bold: bool = False) -> float:
    """About how wide Helvetica sets this text."""
    narrow, wide = "fijlrtI.,:;'!|()[] /", "mwMWGOQ@%+=<>÷×→−–"
    em = sum(0.31 if c in narrow else 0.82 if c in wide else 0.68 if c.isupper() else 0.56 for c in text)
    return em * size * (1.06 if bold else 1.0)


def count(value: float) -> str:
    """A number of columns or rows: 781, 50,257, 64K, 4M. K and M are powers of two, where they are exact."""
    value = int(value)
    for unit, letter in ((1 << 20, "M"), (1 << 10, "K")):
        if value >= unit and value % unit == 0:
            return f"{value // unit}{letter}"
    return f"{value:,}"


def quantity(value: float, unit: str) -> str:
    """A quantity with a prefix in steps of a thousand and three digits: 16.8 MB, 5.40 µs, 134 GB."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g} {unit}"
    prefixes = {-3: "n", -2: "µ", -1: "m", 0: "", 1: "k", 2: "M", 3: "G", 4: "T", 5: "P"}
    step = min(max(math.floor(math.log10(abs(value)) / 3 + 1e-12), -3), 5)
    scaled = value / 1000.0**step
    if abs(scaled) >= 999.5 and step < 5:
        step, scaled = step + 1, scaled / 1000
    whole = unit == "B" and step == 0
    text = f"{scaled:.{0 if whole or abs(scaled) >= 99.95 else 1 if abs(scaled) >= 9.995 else 2}f}"
    return f"{text} {prefixes[step]}{unit}"


@dataclass
class Drawing:
    """A picture being drawn. Every method adds one thing on top of what is there."""

    width: float
    height: float
    parts: list[str] = field(default_factory=list)

    def rect(self, x, y, w, h, fill="none", stroke="none", width=1.0, radius=0.0, dash="", opacity=1.0):
        self._add(
            "rect", x=x, y=y, width=max(w, 0), height=max(h, 0), rx=radius or None, fill=fill,
            stroke=stroke, stroke_width=width, stroke_dasharray=dash or None, opacity=_less_than_one(opacity),
        )  # fmt: skip

    def line(self, x1, y1, x2, y2, stroke=INK, width=1.0, dash="", opacity=1.0):
        self._add(
            "line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, stroke_width=width,
            stroke_dasharray=dash or None, opacity=_less_than_one(opacity),
        )  # fmt: skip

    def polyline(self, points, stroke=INK, width=2.0, dash="", fill="none", opacity=1.0):
        self._add(
            "polyline", points=" ".join(f"{_number(x)},{_number(y)}" for x, y in points), fill=fill,
            stroke=stroke, stroke_width=width, stroke_dasharray=dash or None, stroke_linejoin="round",
            opacity=_less_than_one(opacity),
        )  # fmt: skip

    def marker(self, x, y, shape="circle", size=5.0, fill=INK, stroke=CARD, width=1.5):
        if shape == "circle":
            self._add("circle", cx=x, cy=y, r=size, fill=fill, stroke=stroke, stroke_width=width)
            return
        s = size * 1.15
        corners = {
            "square": [(-s, -s), (s, -s), (s, s), (-s, s)],
            "triangle": [(0, -1.25 * s), (1.15 * s, 0.85 * s), (-1.15 * s, 0.85 * s)],
            "down": [(0, 1.25 * s), (1.15 * s, -0.85 * s), (-1.15 * s, -0.85 * s)],
            "diamond": [(0, -1.4 * s), (1.4 * s, 0), (0, 1.4 * s), (-1.4 * s, 0)],
            "cross": [(-s, -0.4 * s), (-0.4 * s, -0.4 * s), (-0.4 * s, -s), (0.4 * s, -s),
                      (0.4 * s, -0.4 * s),
                      (s, -0.4 * s), (s, 0.4 * s), (0.4 * s, 0.4 * s), (0.4 * s, s), (-0.4 * s, s),
                      (-0.4 * s, 0.4 * s), (-s, 0.4 * s)],
        }[shape]  # fmt: skip
        points = " ".join(f"{_number(x + dx)},{_number(y + dy)}" for dx, dy in corners)
        self._add("polygon", points=points, fill=fill, stroke=stroke, stroke_width=width)

    def arrow(self, x1, y1, x2, y2, stroke=INK, width=1.5, dash="", head=6.0):
        """A line from (x1, y1) that ends in a head at (x2, y2)."""
        angle = math.atan2(y2 - y1, x2 - x1)
        back = [(x2 - head * math.cos(angle + t), y2 - head * math.sin(angle + t)) for t in (0.5, -0.5)]
        self.line(
            x1, y1, x2 - head * 0.7 * math.cos(angle), y2 - head * 0.7 * math.sin(angle), stroke, width, dash
        )
        self._add(
            "polygon",
            points=" ".join(f"{_number(x)},{_number(y)}" for x, y in [(x2, y2), *back]),
            fill=stroke,
        )

    def text(
        self, x, y, text, size=TEXT, anchor="start", fill=INK, bold=False, mono=False, turn=0, halo=False
    ):
        """Text whose baseline starts, is centred or ends at (x, y): anchor start, middle, end."""
        self._add(
            "text", text=str(text), x=x, y=y, font_size=size, fill=fill,
            text_anchor=None if anchor == "start" else anchor,
            font_weight="bold" if bold else None, font_family=MONO if mono else None,
            transform=f"rotate({turn} {_number(x)} {_number(y)})" if turn else None,
            paint_order="stroke" if halo else None, stroke=CARD if halo else None,
            stroke_width=4 if halo else None, stroke_linejoin="round" if halo else None,
        )  # fmt: skip

    def hatch(self, x, y, w, h, stroke=GREY, gap=6.0, width=1.0):
        """Diagonal lines inside a rectangle: the sign for lanes and tiles that hold nothing."""
        steps = int((w + h) / gap) + 1
        for i in range(1, steps):
            d = i * gap
            x1, y1 = (x + d, y) if d <= w else (x + w, y + d - w)
            x2, y2 = (x, y + d) if d <= h else (x + d - h, y + h)
            self.line(x1, y1, x2, y2, stroke, width)

    def svg(self, alt: str) -> str:
        """The picture as one <svg> element. alt is what a screen reader says in its place."""
        w, h = _number(self.width), _number(self.height)
        label = escape(" ".join(alt.split()))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}" '
            f'role="img" aria-label="{label}" font-family="{FONT}" style="max-width:100%;height:auto">'
            f'<rect width="{w}" height="{h}" fill="{CARD}"/>' + "".join(self.parts) + "</svg>"
        )

    def _add(self, tag, text=None, **attributes):
        given = {name.replace("_", "-"): value for name, value in attributes.items() if value is not None}
        written = "".join(
            f' {name}="{escape(value) if isinstance(value, str) else _number(value)}"'
            for name, value in given.items()
        )
        self.parts.append(f"<{tag}{written}/>" if text is None else f"<{tag}{written}>{escape(text)}</{tag}>")


@dataclass(frozen=True)
class Scale:
    """Maps values low…high to positions start…stop, linearly or by logarithm."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log(low), math.log(high), math.log(value)
        return self.start + (value - low) / ((high - low) or 1.0) * (self.stop - self.start)

    def holds(self, value: float) -> bool:
        return math.isfinite(value) and self.low <= value <= self.high and (value > 0 or not self.log)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round values from low to high, about this many of them."""
    span = (high - low) or 1.0
    rough = span / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, int(math.floor(high / step + 1e-9)) + 1)]


def powers(low: float, high: float, base: int = 10) -> list[float]:
    """The powers of base from low to high."""
    first, last = math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9)
    return [float(base) ** i for i in range(first, last + 1)]


def axes(drawing: Drawing, x: Scale, y: Scale, x_label: str, y_label: str, x_ticks, y_ticks) -> None:
    """Gridlines, tick labels and axis labels round the box of two scales. Ticks are (value, label) pairs."""
    left, right, bottom, top = x.start, x.stop, y.start, y.stop
    for value, label in y_ticks:
        drawing.line(left, y(value), right, y(value), GRID)
        drawing.text(left - 8, y(value) + 4.5, label, SMALL, "end", MUTED)
    for value, label in x_ticks:
        drawing.line(x(value), bottom, x(value), bottom + 5, MUTED)
        drawing.text(x(value), bottom + 19, label, SMALL, "middle", MUTED)
    drawing.line(left, bottom, right, bottom, MUTED)
    drawing.text((left + right) / 2, bottom + 40, x_label, TEXT, "middle")
    drawing.text(left, top - 12, y_label, TEXT)


def spread_labels(wanted: list[float], gap: float, low: float, high: float) -> list[float]:
    """Positions near the wanted ones, at least gap apart and inside low…high, if there is room."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed: list[float] = []
    for i in order:  # downwards: none closer than gap to the one before
        placed.append(max(wanted[i], placed[-1] + gap) if placed else max(wanted[i], low))
    limit = high
    for k in range(len(placed) - 1, -1, -1):  # and back up from the bottom edge
        placed[k] = min(placed[k], limit)
        limit = placed[k] - gap
    result = [0.0] * len(wanted)
    for i, position in zip(order, placed, strict=True):
        result[i] = position
    return result


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _less_than_one(opacity: float) -> float | None:
    return opacity if opacity < 1 else None
