"""The pair (m, d): its merge, the trees that merges make, and the online recurrence step by step."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from course_kernels.lab.core.wording import decimals, number
from course_kernels.lab.show.colours import EMPTY, GOOD, INK, MUTED, NOW, READ
from course_kernels.lab.show.drawing import SMALL, TEXT, WIDTH, Drawing, Scale
from course_kernels.lab.show.picture import Picture, Table

Pair = tuple[float, float]  # m, d
IDENTITY: Pair = (-math.inf, 0.0)
TREES = ("balanced", "left to right", "right to left", "shuffled")


def merge(a: Pair, b: Pair) -> Pair:
    """Two partial results (m, d) as one. The identity is (−inf, 0)."""
    m = max(a[0], b[0])
    if m == -math.inf:
        return m, a[1] + b[1]  # exp(−inf − (−inf)) is NaN
    return m, a[1] * math.exp(a[0] - m) + b[1] * math.exp(b[0] - m)


def leaf(score: float) -> Pair:
    """The partial result of one score: itself and exp(0) = 1; of −inf: the identity."""
    return IDENTITY if score == -math.inf else (float(score), 1.0)


def merge_tree(scores: Sequence[float], shape: str = "balanced", seed: int = 0) -> Picture:
    """The merges that lead from single scores to the row's (m, d), as a tree of one of the shapes in TREES.

    scores: 1 to 8 numbers. seed: which shuffled tree. Whatever the shape, the root is the same.
    """
    scores = [float(score) for score in scores]
    if not 1 <= len(scores) <= 8:
        raise ValueError(f"A tree of 1 to 8 scores can be read; these are {len(scores)}.")
    if shape not in TREES:
        raise ValueError(f"No shape {shape!r}. There are: {', '.join(TREES)}.")
    nodes, root = _build_tree(scores, shape, seed)
    depth = root["level"]
    node_w, node_h, gap = 72.0, 42, 66
    step = min(110.0, (WIDTH - 40) / len(scores))
    d = Drawing(WIDTH, 96 + gap * depth + node_h)
    start = (WIDTH - step * len(scores)) / 2 + step / 2
    for node in nodes:
        node["px"], node["py"] = start + step * node["x"], 46 + gap * (depth - node["level"])
    for node in nodes:
        for child in node["children"]:
            # Across at the parent's height, then straight down: no line meets another box.
            middle = node["py"] + node_h / 2
            d.polyline([(node["px"], middle), (child["px"], middle), (child["px"], child["py"])], MUTED, 1.5)
            m, below = node["pair"][0], child["pair"][0]
            factor = math.exp(below - m) if math.isfinite(m) else 1.0
            if factor != 1:  # what the child's sum is multiplied by on its way up
                d.text(child["px"] + 5, child["py"] - 5, f"× {factor:.3g}", SMALL, fill=NOW, halo=True)
    for node in nodes:
        left, is_root = node["px"] - node_w / 2, node is root
        colour = GOOD if is_root else READ if node["children"] else EMPTY
        d.rect(left, node["py"], node_w, node_h, "var(--paper)", radius=6)
        d.rect(left, node["py"], node_w, node_h, colour, opacity=0.2, radius=6)
        d.rect(left, node["py"], node_w, node_h, stroke=colour, width=2 if is_root else 1.3, radius=6)
        m, total = node["pair"]
        d.text(node["px"], node["py"] + 17, f"m {number(m)}", 13, "middle", bold=is_root)
        d.text(node["px"], node["py"] + 34, f"d {decimals(total)}", 13, "middle", bold=is_root)
    m, total = root["pair"]
    d.text(WIDTH / 2, 24, f"{shape}: {len(scores) - 1} merges, depth {depth}", TEXT, "middle", bold=True)
    words = "single scores are the leaves, (x, 1); on its way up a sum d is multiplied by exp(m − new m)"
    d.text(WIDTH / 2, d.height - 12, words, SMALL, "middle", MUTED)
    alt = (
        f"A {shape} tree of merges over the scores {', '.join(map(number, scores))}, depth {depth}. "
        f"At its root: m {number(m)}, d {decimals(total)}."
    )
    return Picture(d.svg(alt), alt)


def _build_tree(scores, shape, seed):
    """(all nodes, the root): dicts of pair, children, x (in leaves) and level (0 for a leaf)."""
    nodes = [
        {"pair": leaf(s), "children": [], "span": (i, i), "x": float(i), "level": 0}
        for i, s in enumerate(scores)
    ]
    front, rng = list(nodes), random.Random(seed)

    def join(i):
        a, b = front[i], front[i + 1]
        span = (a["span"][0], b["span"][1])
        level = max(a["level"], b["level"]) + 1
        pair = merge(a["pair"], b["pair"])
        nodes.append({"pair": pair, "children": [a, b], "span": span, "x": sum(span) / 2, "level": level})
        front[i : i + 2] = [nodes[-1]]

    while len(front) > 1:
        if shape == "left to right":
            join(0)
        elif shape == "right to left":
            join(len(front) - 2)
        elif shape == "shuffled":
            join(rng.randrange(len(front) - 1))
        else:
            for i in range(len(front) // 2):
                join(i)
    return nodes, front[0]


def merged(scores: Sequence[float], shape: str = "balanced", seed: int = 0) -> tuple[float, float, int]:
    """(m, d) at the root of such a tree, and its depth."""
    _, root = _build_tree([float(score) for score in scores], shape, seed)
    return *root["pair"], root["level"]


def tree_table(scores: Sequence[float], shape: str = "balanced", seed: int = 0) -> Table:
    """(m, d) at the root of each of the TREES, all digits of d; `shape` in bold."""
    rows = []
    for other in TREES:
        m, d, depth = merged(scores, other, seed)
        rows.append([other, depth, number(m), repr(d)])
    return Table(
        rows, ["shape", "depth", "m at the root", "d at the root, all digits"], mark=TREES.index(shape)
    )


def recurrence(scores: Sequence[float]) -> list[tuple[float, float, float, float]]:
    """The online recurrence, unrolled: (score, m after it, the factor exp(m before − m), d after it) a
    score."""
    m, d = IDENTITY
    steps = []
    for score in map(float, scores):
        after = max(m, score)
        factor = 1.0 if after == -math.inf else math.exp(m - after)
        m, d = merge((m, d), leaf(score))
        steps.append((score, m, factor, d))
    return steps


def recurrence_table(scores: Sequence[float], step: int | None = None) -> Table:
    """The recurrence step by step, as a table. step: how many scores have been read; None: all."""
    steps = recurrence(scores)
    step = len(steps) if step is None else step
    rows = [["start", None, "−∞", None, "0"]]
    rows += [
        [f"{i}", number(x), number(m), decimals(f), decimals(d)] for i, (x, m, f, d) in enumerate(steps, 1)
    ]
    headers = ["step", "score x", "m = max(m, x)", "old d times", "d"]
    return Table(rows[: step + 1], headers, mark=step)


def recurrence_picture(scores: Sequence[float], step: int | None = None) -> Picture:
    """The scores as bars, those read so far filled, with the running maximum and the running sum."""
    scores = [float(score) for score in scores]
    if not scores:
        raise ValueError("There is no score to draw.")
    steps = recurrence(scores)
    step = len(scores) if step is None else min(max(step, 0), len(scores))
    finite = [s for s in scores if math.isfinite(s)] or [0.0]
    low, high = min(0.0, *finite), max(0.0, *finite)
    pad = (high - low or 1.0) * 0.16
    d = Drawing(WIDTH, 330)
    y = Scale(low - (pad if low < 0 else 0), high + pad, 196, 44)
    left = 60
    slot = min((WIDTH - 150) / len(scores), 90)
    end = left + slot * len(scores)
    d.text(8, 22, "score", TEXT)
    d.line(left, y(0), end, y(0), MUTED)
    for i, score in enumerate(scores):
        middle, read, now = left + (i + 0.5) * slot, i < step, i == step - 1
        tip = y(score) if math.isfinite(score) else y.start
        top, bottom = min(tip, y(0)), max(tip, y(0))
        if math.isfinite(score):
            bar = (middle - slot * 0.3, top, slot * 0.6, max(bottom - top, 1.5))
            if read:
                d.rect(*bar, READ, opacity=1.0 if now else 0.5)
            d.rect(*bar, stroke=READ if read else EMPTY, width=1.2)
        if slot >= 34:
            at = top - 6 if score >= 0 else bottom + 15
            d.text(middle, at, number(score), SMALL, "middle", bold=now, halo=True)
    m, total = (steps[step - 1][1], steps[step - 1][3]) if step else IDENTITY
    level = [(left + (i + edge) * slot, steps[i][1]) for i in range(step) for edge in (0, 1)]
    d.polyline([(px, y(value)) for px, value in level if math.isfinite(value)], NOW, 2.5)
    if math.isfinite(m):
        d.line(left + step * slot, y(m), end, y(m), NOW, 1.2, "2 4")
        d.text(end + 8, y(m) + 5, f"m = {number(m)}", TEXT, bold=True)
    # The sum as a strip of its terms, each relative to the maximum so far: a new maximum shrinks all before.
    strip = Scale(0, max(max((s[3] for s in steps), default=1.0), 1.0), left, WIDTH - 96)
    d.text(left, 240, "d, the sum of exp(x − m) over the scores read so far", TEXT)
    position = left
    for i in range(step):
        term = math.exp(scores[i] - m) if math.isfinite(m) and scores[i] != -math.inf else 0.0
        w, now = strip(term) - left, i == step - 1
        d.rect(position, 250, w, 30, READ, opacity=1.0 if now else 0.5)
        d.rect(position, 250, w, 30, stroke="var(--paper)", width=1.5)
        if w > 30:
            d.text(position + w / 2, 270, f"{term:.3g}", SMALL, "middle", "#fff" if now else INK)
        position += w
    d.line(left, 280, strip.stop, 280, MUTED)
    d.text(position + 8, 271, f"d = {decimals(total)}", TEXT, bold=True, halo=True)
    read = f"{step} of {len(scores)} scores read"
    factor = f"; the old sum was multiplied by {decimals(steps[step - 1][2])}" if step > 1 else ""
    d.text(left, 312, read + factor, SMALL, fill=MUTED)
    alt = (
        f"Online softmax over the scores {', '.join(map(number, scores))}: {read}, "
        f"m {number(m)}, d {decimals(total)}{factor}."
    )
    return Picture(d.svg(alt), alt)
