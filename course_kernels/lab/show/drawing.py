"""Drawings as SVG text, for what has no axes: lanes, tiles, trees, chips.

Text stays text, in Helvetica, Arial or Liberation Sans, whose letters are equally wide, so a label fits
wherever it is read. Coordinates are in SVG units, about one pixel each; y grows downwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from html import escape

from course_kernels.lab.show.colours import EMPTY, INK, MUTED, PAPER

WIDTH = 680
FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
MONO = "Menlo, Consolas, 'Liberation Mono', 'DejaVu Sans Mono', monospace"
TEXT = 14  # the size of ordinary text; nothing is smaller than SMALL
SMALL = 12.5


def text_width(text: str, size: float = TEXT, bold: bool = False) -> float:
    """About how wide Helvetica sets this text."""
    narrow, wide = "fijlrtI.,:;'!|()[] /", "mwMWGOQ@%+=<>÷×→−–"
    em = sum(0.31 if c in narrow else 0.82 if c in wide else 0.68 if c.isupper() else 0.56 for c in text)
    return em * size * (1.06 if bold else 1.0)


@dataclass
class Drawing:
    """A picture being drawn. Every method adds one thing on top of what is there."""

    width: float
    height: float
    parts: list[str] = field(default_factory=list)

    def rect(self, x, y, w, h, fill="none", stroke="none", width=1.0, radius=0.0, opacity=1.0):
        size = {"width": max(w, 0), "height": max(h, 0), "rx": radius or None}
        self._add("rect", x=x, y=y, **size, fill=fill, stroke=stroke, stroke_width=width, opacity=opacity)

    def line(self, x1, y1, x2, y2, stroke=INK, width=1.0, dash=""):
        self.polyline([(x1, y1), (x2, y2)], stroke, width, dash)

    def polyline(self, points, stroke=INK, width=2.0, dash=""):
        style = {"stroke_width": width, "stroke_dasharray": dash or None, "stroke_linejoin": "round"}
        self._add("polyline", points=_points(points), fill="none", stroke=stroke, **style)

    def polygon(self, points, fill=INK):
        self._add("polygon", points=_points(points), fill=fill)

    def ring(self, x, y, stroke=INK, radius=7.0):
        self._add("circle", cx=x, cy=y, r=radius, fill="none", stroke=stroke, stroke_width=2)

    def arrow(self, x1, y1, x2, y2, stroke=INK, width=1.5, head=6.0):
        """A line from (x1, y1) that ends in a head at (x2, y2)."""
        angle = math.atan2(y2 - y1, x2 - x1)
        back = [(x2 - head * math.cos(angle + t), y2 - head * math.sin(angle + t)) for t in (0.5, -0.5)]
        neck = x2 - head * 0.7 * math.cos(angle), y2 - head * 0.7 * math.sin(angle)
        self.line(x1, y1, *neck, stroke, width)
        self.polygon([(x2, y2), *back], stroke)

    def text(
        self, x, y, text, size=TEXT, anchor="start", fill=INK, bold=False, mono=False, halo=False, opacity=1.0
    ):
        """Text whose baseline starts, is centred or ends at (x, y): anchor start, middle, end."""
        style = {
            "text_anchor": None if anchor == "start" else anchor,
            "font_weight": "bold" if bold else None,
            "font_family": MONO if mono else None,
        }
        if halo:  # the paper's colour round the letters, where they lie on something
            style |= {"paint_order": "stroke", "stroke": PAPER, "stroke_width": 4, "stroke_linejoin": "round"}
        self._add("text", str(text), x=x, y=y, font_size=size, fill=fill, opacity=opacity, **style)

    def key(self, x, y, entries):
        """Swatches with words: (words, colour) pairs from left to right, hatched where there is no colour."""
        for words, colour in entries:
            if colour:
                self.rect(x, y - 12, 14, 14, fill=colour)
            else:
                self.rect(x, y - 12, 14, 14, stroke=EMPTY)
                self.hatch(x, y - 12, 14, 14)
            self.text(x + 20, y, words, SMALL)
            x += 20 + text_width(words, SMALL) + 18

    def hatch(self, x, y, w, h, stroke=EMPTY, gap=6.0):
        """Diagonal lines inside a rectangle: the sign for lanes and tiles that hold nothing."""
        for i in range(1, int((w + h) / gap) + 1):
            d = i * gap
            x1, y1 = (x + d, y) if d <= w else (x + w, y + d - w)
            x2, y2 = (x, y + d) if d <= h else (x + d - h, y + h)
            self.line(x1, y1, x2, y2, stroke)

    def svg(self, alt: str) -> str:
        """The picture as one <svg> element. alt is what a screen reader says in its place."""
        return wrap("".join(self.parts), self.width, self.height, alt)

    def _add(self, tag, text=None, **attributes):
        if attributes.get("opacity") == 1:
            del attributes["opacity"]
        if attributes.get("fill") == MUTED:
            attributes |= {"fill": INK, "fill_opacity": 0.75}
        if attributes.get("stroke") == MUTED:
            attributes |= {"stroke": INK, "stroke_opacity": 0.6}
        written = "".join(
            f' {name.replace("_", "-")}="{escape(value) if isinstance(value, str) else _number(value)}"'
            for name, value in attributes.items()
            if value is not None
        )
        self.parts.append(f"<{tag}{written}/>" if text is None else f"<{tag}{written}>{escape(text)}</{tag}>")


@dataclass(frozen=True)
class Scale:
    """Maps values low…high to positions start…stop."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / ((self.high - self.low) or 1.0) * (self.stop - self.start)


def wrap(body: str, width: float, height: float, alt: str, zoom: float = 1) -> str:
    """SVG elements as one <svg> that takes its text's colour from the page and never shrinks past reading.

    width, height: of the drawing, in its own units; zoom: pixels a unit.

    --paper is the page's ground in JupyterLab, VS Code and Colab, for what must cover something.
    """
    paper = "var(--jp-layout-color0,var(--vscode-editor-background,var(--colab-primary-surface-color,#fff)))"
    w, h = _number(width), _number(height)
    least = min(width * zoom, 600)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {w} {h}" width="{_number(width * zoom)}" height="{_number(height * zoom)}" role="img" '
        f'aria-label="{escape(alt)}" font-family="{FONT}" fill="currentColor" '
        f'style="--paper:{paper};max-width:100%;min-width:{least:g}px;height:auto">{body}</svg>'
    )


def _points(points) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
