"""Write the README's table of figures and its picture from the newest recorded run; a test holds the table
and the run together.

python scripts/readme_figures.py
"""

from pathlib import Path

from course_kernels.lab.bench.results import recorded
from course_kernels.lab.show.bandwidth import bandwidth_curve

README = Path(__file__).resolve().parent.parent / "README.md"
PICTURE = README.parent / "docs" / "images" / "bandwidth.svg"
DRAWN = ("copy", "softmax", "liger", "compile", "torch", "eager")
START, END = "<!-- figures: written by scripts/readme_figures.py -->\n", "<!-- end of figures -->"
WIDTHS = (256, 1024, 4096, 16384, 65536, 262144, 1048576)
TITLES = {
    "copy": "a copy",
    "softmax": "**this course**",
    "quack": "QuACK",
    "liger": "Liger",
    "compile": "`torch.compile`",
    "torch": "`torch.softmax`",
    "eager": "five kernels, eager",
}


def table() -> str:
    """The table in Markdown: a line for each width, a column for each kernel, GB/s."""
    results = recorded()
    gbps = {(r.kernel, r.columns): r.gbps for r in results}
    kernels = [kernel for kernel in TITLES if kernel in results.kernels]
    lines = ["| columns | " + " | ".join(TITLES[kernel] for kernel in kernels) + " |"]
    lines.append("| ---: |" + " ---: |" * len(kernels))
    for width in WIDTHS:
        found = [gbps.get((kernel, width)) for kernel in kernels]
        cells = " | ".join("–" if value is None else f"{value:,.0f}" for value in found)
        lines.append(f"| {width:,} | {cells} |")
    caption = (
        "GB/s of useful bytes (each input read once, each output written once), float32, 2^28 elements; "
        f"{results.source}. A dash: not measured, or refused by that kernel."
    )
    return "\n".join(lines) + f"\n\n{caption}\n"


def with_figures(readme: str) -> str:
    """The README's text with its table written anew."""
    before, rest = readme.split(START)
    after = rest.split(END)[1]
    return before + START + table() + END + after


def picture() -> str:
    """The curves as SVG, on a ground of their own, so that they read in a dark theme too."""
    results = recorded()
    records = [r for r in results if r.columns & (r.columns - 1) == 0]
    drawn = [kernel for kernel in DRAWN if kernel in results.kernels]
    return bandwidth_curve(records, drawn, results.source).standalone()


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    README.write_text(with_figures(README.read_text(encoding="utf-8")), encoding="utf-8")
