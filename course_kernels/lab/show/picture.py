"""What the lessons show: pictures with alt text, tables, and several of them in one output.

Each displays itself in any front end (classic, JupyterLab, Colab, VS Code, nbconvert) in a light and a dark
theme, and has a text twin for where there is no page at all.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterable, Sequence
from html import escape
from itertools import zip_longest

from course_kernels.lab.show.drawing import CARD, GRID, INK, MUTED

CARD_STYLE = (
    f"background:{CARD};color:{INK};border:1px solid {GRID};border-radius:6px;padding:8px;"
    "display:inline-block;max-width:100%;box-sizing:border-box"
)

# Matplotlib figures in the same style; use it as `with plt.rc_context(STYLE): ...`.
STYLE = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica", "Arial", "Liberation Sans", "DejaVu Sans"],
    "font.size": 11,
    "figure.facecolor": CARD,
    "axes.facecolor": CARD,
    "savefig.facecolor": CARD,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "lines.linewidth": 2,
    "svg.hashsalt": "one load, one store",
    "svg.fonttype": "path",  # letters as shapes: the same picture whichever fonts are there
}


class Display:
    """Something that shows itself: subclasses give html() and plain()."""

    def html(self) -> str:
        raise NotImplementedError

    def plain(self) -> str:
        raise NotImplementedError

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html(), "text/plain": self.plain()}

    def __repr__(self) -> str:
        return self.plain()


class Picture(Display):
    """A picture on an off-white card, which reads in a light and in a dark theme.

    figure: a matplotlib figure (it is closed once drawn) or SVG text. alt: what the picture shows, in
    words, for whoever does not see it; TypeError without it. The same figure gives the same bytes, always.
    """

    def __init__(self, figure, alt: str | None = None):
        if not isinstance(alt, str) or not alt.strip():
            raise TypeError(
                "A picture needs alt text: Picture(fig, alt='what a reader who cannot see it should know')."
            )
        self.alt = " ".join(alt.split())
        self.svg = figure if isinstance(figure, str) else _figure_to_svg(figure)

    def html(self) -> str:
        # An image, not inline SVG: the ids inside two pictures of one page cannot then be taken for each
        # other.
        data = base64.b64encode(self.svg.encode()).decode()
        return (
            f'<div style="{CARD_STYLE}"><img alt="{escape(self.alt)}" src="data:image/svg+xml;base64,{data}" '
            'style="max-width:100%;height:auto;display:block;background:transparent"></div>'
        )

    def plain(self) -> str:
        return f"[picture: {self.alt}]"


def _figure_to_svg(figure) -> str:
    import matplotlib
    from matplotlib import pyplot

    keys = ("svg.hashsalt", "svg.fonttype", "savefig.facecolor")
    with matplotlib.rc_context({key: STYLE[key] for key in keys}):
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    pyplot.close(figure)  # or the notebook shows it a second time, as a bitmap
    svg = out.getvalue()
    return svg[svg.index("<svg") :]


class Table(Display):
    """A table that takes its colours from the page.

    rows: sequences of cells; headers: one a column; caption: a sentence above. Numbers are written with
    thousands separators and at most four digits after the leading one, and stand on the right; anything
    else is text. mark: the index of a row to set in bold, or None.
    """

    def __init__(
        self, rows: Iterable[Sequence], headers: Sequence[str], caption: str = "", mark: int | None = None
    ):
        rows = [list(row) for row in rows]
        self.headers = [str(header) for header in headers]
        self.caption = caption
        self.mark = mark
        self.rows = [[cell_text(cell) for cell in row] for row in rows]
        columns = list(zip_longest(*rows))
        self.right = [
            any(_is_number(cell) for cell in column)
            or all(_looks_numeric(cell_text(cell)) for cell in column)
            for column in columns
        ] or [False] * len(self.headers)

    def html(self) -> str:
        line = "border:0;border-bottom:1px solid currentColor"
        cell = "padding:3px 12px;vertical-align:top;color:inherit;white-space:normal"

        def row(tag, cells, style):
            written = (
                f'<{tag} {_scope(tag)}style="{cell};{style};text-align:{"right" if right else "left"}">'
                f"{escape(text)}</{tag}>"
                for text, right in zip(cells, self.right, strict=True)
            )
            return f"<tr>{''.join(written)}</tr>"

        body = "".join(
            row("td", cells, "border:0;font-weight:bold" if i == self.mark else "border:0")
            for i, cells in enumerate(self.rows)
        )
        caption = (
            f'<caption style="caption-side:top;text-align:left;color:inherit;padding:4px 12px">'
            f"{escape(self.caption)}</caption>"
            if self.caption
            else ""
        )
        return (
            '<table style="border-collapse:collapse;border:0;color:inherit;font-size:14px;margin:6px 0;'
            f'font-variant-numeric:tabular-nums">{caption}'
            f"<thead>{row('th', self.headers, line)}</thead><tbody>{body}</tbody></table>"
        )

    def plain(self) -> str:
        grid = [self.headers, *self.rows]
        widths = [max(len(row[i]) for row in grid) for i in range(len(self.headers))]

        def write(row):
            cells = (
                text.rjust(width) if right else text.ljust(width)
                for text, width, right in zip(row, widths, self.right, strict=True)
            )
            return "  ".join(cells).rstrip()

        lines = [write(self.headers), "  ".join("-" * width for width in widths), *map(write, self.rows)]
        return "\n".join(([self.caption] if self.caption else []) + lines)


class Stack(Display):
    """Several displays, one below the other, in one output."""

    def __init__(self, *items: Display):
        self.items = items

    def html(self) -> str:
        return "<div>" + "".join(f"<div>{item.html()}</div>" for item in self.items) + "</div>"

    def plain(self) -> str:
        return "\n\n".join(item.plain() for item in self.items)


class Prose(Display):
    """Paragraphs of plain text."""

    def __init__(self, *paragraphs: str):
        self.paragraphs = paragraphs

    def html(self) -> str:
        return "".join(f'<p style="margin:6px 0;max-width:75ch">{escape(p)}</p>' for p in self.paragraphs)

    def plain(self) -> str:
        return "\n\n".join(self.paragraphs)


def cell_text(cell) -> str:
    """How a table writes a value: 33,570,816; 0.8438; 4,167; – for None."""
    if cell is None:
        return "–"
    if isinstance(cell, bool) or not _is_number(cell):
        return str(cell)
    if float(cell).is_integer() and abs(cell) < 1e15:
        return f"{int(cell):,}".replace("-", "−")
    if not math.isfinite(cell):
        return {math.inf: "∞", -math.inf: "−∞"}.get(float(cell), "NaN")
    if abs(cell) >= 1000:
        return f"{cell:,.0f}".replace("-", "−")
    return f"{cell:.4g}".replace("-", "−") if abs(cell) >= 1e-4 else f"{cell:.3e}".replace("-", "−")


def _is_number(cell) -> bool:
    return isinstance(cell, (int, float)) and not isinstance(cell, bool)


def _looks_numeric(text: str) -> bool:
    return text[:1] in tuple("0123456789–−∞") and not any(c.isalpha() for c in text.split()[0])


def _scope(tag: str) -> str:
    return 'scope="col" ' if tag == "th" else ""
