"""What each colour means, in every picture, and how each contender looks.

Text and lines take the page's own colour, so that a picture reads in a light and in a dark theme. All other
colours have a contrast of at least 3 : 1 on white and on the dark theme's #111.
"""

from __future__ import annotations

INK = "currentColor"
PAPER = "var(--paper)"  # what lies under the picture; `Picture` sets it from the page's theme
MUTED = "muted"  # INK, three quarters opaque: `Drawing` and `plots` know how to write it
GRID = "#8a8a8a55"

READ, WRITTEN, L2, LAUNCH = "#0072b2", "#c46a00", "#00805f", "#7d7d7d"
EMPTY = LAUNCH  # lanes, slots and tiles that hold nothing
NOW = "#d1490c"  # what a reader should look at; also a kernel of the learner's own
ALARM = "#c8341b"
GOOD = L2

# Every contender, in the order of a legend: its colour and its marker (matplotlib's letters).
LOOKS: dict[str, tuple[str, str]] = {
    "copy": (INK, "o"),
    "torch": ("#d6336c", "s"),
    "eager": ("#98693a", "v"),
    "compile": ("#9a5bd6", "^"),
    "liger": ("#b04aa0", "D"),
    "quack": ("#6f7a12", "P"),
    "prototype": ("#7d7d7d", "o"),
    "softmax": ("#4f62d8", "s"),
    "fused_row": ("#0a84a5", "o"),
    "packed_row": ("#8f6f93", "^"),
    "multi_row": ("#2f8f8b", "s"),
    "online": ("#b23a3a", "D"),
    "tiled": ("#3f8a3a", "D"),
    "split_row": ("#8a4fc0", "P"),
    "cluster_row": ("#a8553f", "v"),
    "resident_row": ("#5c8a00", "^"),
}
OWN_MARKERS = "o^sDPv"  # a version of the learner's kernel each


def look(name: str) -> tuple[str, str]:
    """Colour and marker of a contender; a name that is not in LOOKS is the learner's, a marker a version."""
    if name in LOOKS:
        return LOOKS[name]
    version = name.partition(" #")[2]
    return NOW, OWN_MARKERS[(int(version) if version.isdigit() else 1) % len(OWN_MARKERS)]
