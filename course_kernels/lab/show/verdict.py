"""How a verdict looks, on a page and in a shell. A verdict is plain data: see `lab.checking.Verdict`."""

from __future__ import annotations

from html import escape

from course_kernels.lab.core.wording import printable
from course_kernels.lab.show.picture import PROSE, Table

WORDS = {"pass": "Passed", "fail": "Not yet", "todo": "Not done yet", "error": "It did not run"}
COLOURS = {
    "pass": "#00734f",
    "fail": "#b84700",
    "todo": "#666666",
    "error": "#bb2e10",
}  # white on them: 4.5 : 1
LABELS = {"what": "", "case": "", "why": "Why: ", "next": "Next: "}
MOST_PRINTED = 800  # characters


def as_text(verdict, table: Table | None) -> str:
    """The verdict for a shell. table: what the compiler made of the kernel, if there is one."""
    lines = [f"{verdict.exercise}: {WORDS[verdict.status].lower()}", verdict.message]
    if table:
        lines.append(table.plain())
    if said := _printed(verdict):
        lines.append(f"Your code printed:\n{said.rstrip()}")
    return "\n\n".join(line for line in [*lines, verdict.remark, verdict.lesson, verdict.how] if line)


def as_html(verdict, table: Table | None) -> str:
    """The verdict for a page."""
    colour = COLOURS[verdict.status]
    badge = f"background:{colour};color:#fff;border-radius:4px;padding:2px 8px;font-weight:bold"
    name = f"<code>{escape(verdict.exercise)}</code>"
    body = [f'<p style="margin:4px 0"><span style="{badge}">{WORDS[verdict.status]}</span> {name}</p>']
    body += [_part(key, verdict.parts[key]) for key in LABELS if verdict.parts.get(key)]
    body += [_paragraph(line) for line in verdict.earned]
    if verdict.lesson:
        body.append(_paragraph(verdict.lesson))
    if table:
        body.append(
            f"<details open><summary>{escape(table.caption)}</summary>{_bare(table).html()}</details>"
        )
    if said := _printed(verdict):
        body.append(f"<details><summary>What your code printed</summary><pre>{escape(said)}</pre></details>")
    if verdict.remark:
        body.append(_paragraph(verdict.remark))
    body.append(f'<p style="margin:6px 0;opacity:0.75;font-size:90%">{escape(verdict.how)}</p>')
    return f'<div style="border-left:4px solid {colour};padding:4px 12px;color:inherit">{"".join(body)}</div>'


def _part(key: str, text: str) -> str:
    if "\n" in text:  # lines that stand below each other: numbers, source
        style = "margin:6px 0;white-space:pre-wrap;background:none;color:inherit"
        style += ";word-break:normal;overflow-wrap:anywhere"  # not Jupyter's break-all
        return f'<pre style="{style}">{escape(text)}</pre>'
    label = f"<b>{LABELS[key]}</b>" if LABELS[key] else ""
    return _paragraph(text, "font-weight:bold" if key == "what" else "", label)


def _paragraph(text: str, style: str = "", label: str = "") -> str:
    return f'<p style="{PROSE};{style}">{label}{escape(text)}</p>'


def _printed(verdict) -> str:
    text = printable(verdict.printed[:MOST_PRINTED])
    return text + " …" * (len(verdict.printed) > MOST_PRINTED) if text.strip() else ""


def _bare(table: Table) -> Table:
    return Table(table.rows, table.headers, mark=table.mark)
