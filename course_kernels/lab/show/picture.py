"""What the lessons show: pictures with alt text, tables, source text, and several of them in one output.

Each displays itself in any front end (classic, JupyterLab, Colab, VS Code, nbconvert) in a light and a dark
theme, and has a text twin for where there is no page at all.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from html import escape
from itertools import zip_longest
from pathlib import Path

from course_kernels.lab.core.wording import cell, is_number
from course_kernels.lab.show.drawing import MONO

PROSE = "margin:6px 0;max-width:75ch"
CARD = "max-width:100%;overflow-x:auto;margin:6px 0;color:inherit"


class Display:
    """Something that shows itself: subclasses give html() and plain(), or parts()."""

    def parts(self) -> Stack:
        raise NotImplementedError

    def html(self) -> str:
        return self.parts().html()

    def plain(self) -> str:
        return self.parts().plain()

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html(), "text/plain": self.plain()}

    def __repr__(self) -> str:
        return self.plain()


class Picture(Display):
    """A picture in the page's own colours; where the page is too narrow to read it, it scrolls.

    figure: a matplotlib figure or SVG text. alt: what the picture shows, in words, for whoever does not see
    it; TypeError without it. The same figure gives the same bytes, always.
    """

    def __init__(self, figure, alt: str | None = None):
        if not isinstance(alt, str) or not alt.strip():
            raise TypeError(
                "A picture needs alt text: Picture(fig, alt='what a reader who cannot see it should know')."
            )
        self.alt = " ".join(alt.split())
        if not isinstance(figure, str):
            from course_kernels.lab.show.matplot import to_svg

            figure = to_svg(figure, self.alt)
        self.svg = figure

    def html(self) -> str:
        return f'<div style="{CARD}">{self.svg}</div>'

    def plain(self) -> str:
        return f"[picture: {self.alt}]"

    def standalone(self, paper: str = "#ffffff", ink: str = "#1f1f1f") -> str:
        """The SVG for a file of its own, with ground and ink that a page would give it."""
        svg = self.svg.replace("var(--paper)", paper).replace("currentColor", ink)
        end = svg.index(">", svg.index("<svg")) + 1
        return svg[:end] + f'<rect width="100%" height="100%" rx="6" fill="{paper}"/>' + svg[end:]


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
        columns = list(zip_longest(*rows))
        # One column, one precision: 526 beside 4,248, not 525.8.
        coarse = [any(is_number(c) and abs(c) >= 1000 for c in column) for column in columns]
        self.rows = [[cell(c, coarse[i]) for i, c in enumerate(row)] for row in rows]
        self.right = [
            any(map(is_number, column)) or all(_looks_numeric(cell(c)) for c in column) for column in columns
        ] or [False] * len(self.headers)

    def html(self) -> str:
        style = "padding:3px 12px;vertical-align:top;color:inherit;white-space:normal;border:0"

        def row(tag, cells, more=""):
            scope = ' scope="col"' if tag == "th" else ""
            written = (
                f'<{tag}{scope} style="{style}{more};text-align:{"right" if right else "left"}">'
                f"{escape(text)}</{tag}>"
                for text, right in zip(cells, self.right, strict=True)
            )
            return f"<tr>{''.join(written)}</tr>"

        body = "".join(
            row("td", cells, ";font-weight:bold" if i == self.mark else "")
            for i, cells in enumerate(self.rows)
        )
        caption = (
            f'<caption style="caption-side:top;text-align:left;color:inherit;padding:4px 12px">'
            f"{escape(self.caption)}</caption>"
            if self.caption
            else ""
        )
        return (
            '<div style="max-width:100%;overflow-x:auto"><table style="border-collapse:collapse;border:0;'
            f'color:inherit;font-size:14px;margin:6px 0;font-variant-numeric:tabular-nums">{caption}<thead>'
            f"{row('th', self.headers, ';border-bottom:1px solid currentColor')}</thead>"
            f"<tbody>{body}</tbody></table></div>"
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
        return "".join(f'<p style="{PROSE}">{escape(p)}</p>' for p in self.paragraphs)

    def plain(self) -> str:
        return "\n\n".join(self.paragraphs)


class Source(Display):
    """Source text from a file, highlighted."""

    def __init__(self, text: str, path: str, first_line: int = 1):
        self.text = text.rstrip("\n")
        self.path = path
        self.first_line = first_line
        self.last_line = first_line + self.text.count("\n")

    @property
    def caption(self) -> str:
        return f"{self.path}, lines {self.first_line} to {self.last_line}"

    def html(self) -> str:
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import PythonLexer

        # Colours in the tags: no style sheet to miss. "default" is too pale on white, and most styles are
        # unreadable in the other theme; these six hues have 4.5 : 1 on white and 3.6 : 1 on #111.
        code = highlight(
            self.text, PythonLexer(stripnl=False), HtmlFormatter(noclasses=True, nowrap=True, style=_style())
        )
        pre = (
            "margin:0;padding:6px 10px;background:transparent;color:inherit;white-space:pre;overflow-x:auto;"
            f"line-height:1.4;font-size:13px;font-family:{MONO};border-left:3px solid currentColor"
        )
        return (
            f'<figure style="margin:6px 0;max-width:100%"><figcaption style="padding:2px 0;color:inherit">'
            f'{escape(self.caption)}</figcaption><pre style="{escape(pre)}">{code}</pre></figure>'
        )

    def plain(self) -> str:
        return f"# {self.caption}\n{self.text}"


def source_of(thing) -> Display:
    """The source of a function, a class, a module or a @triton.jit kernel; or that there is none."""
    target = thing
    for _ in range(4):  # a kernel, perhaps autotuned: the Python function is inside, under .fn
        if inspect.isfunction(target) or inspect.isclass(target) or inspect.ismodule(target):
            break
        target = getattr(target, "fn", target)
    target = inspect.unwrap(target) if callable(target) else target
    try:
        file = inspect.getsourcefile(target)
        lines, first = inspect.getsourcelines(target)
    except (TypeError, OSError):
        name = getattr(thing, "__name__", None) or type(thing).__name__
        return Prose(f"There is no source file for {name}: it was made while running, or it is not Python.")
    root, path = Path(__file__).resolve().parents[3], Path(file or "?")
    inside = path.resolve().is_relative_to(root)
    return Source(
        "".join(lines), path.resolve().relative_to(root).as_posix() if inside else path.name, max(first, 1)
    )


def _style():
    from pygments import token
    from pygments.style import Style

    class Readable(Style):
        background_color = "transparent"
        styles = {
            token.Comment: "italic #757575",
            token.Keyword: "bold #9a4fd0",
            token.Name.Decorator: "#b04aa0",
            token.Name.Function: "#0a7ea4",
            token.Number: "#b5560a",
            token.String: "#3f8a3a",
            token.Operator.Word: "bold #9a4fd0",
        }

    return Readable


def _looks_numeric(text: str) -> bool:
    return text[:1] in tuple("0123456789–−∞") and not any(c.isalpha() for c in text.split()[0])
