"""One program walking a long row in tiles, twice: what it reads from DRAM, and what L2 still holds."""

from __future__ import annotations

from dataclasses import dataclass

from course_kernels.lab.show.colours import EMPTY, INK, L2, READ, WRITTEN
from course_kernels.lab.show.drawing import SMALL, TEXT, WIDTH, Drawing
from course_kernels.lab.show.picture import Picture, Table

MOST = 64  # tiles that can be drawn


@dataclass(frozen=True)
class Visit:
    """One tile read by a tiled softmax: in which pass (1 or 2), which tile, how many elements of the row are
    in it, and whether it was still in the cache."""

    which_pass: int
    tile: int
    elements: int
    cached: bool


def tile_visits(columns: int, tile: int, backwards: bool = False, cached_tiles: int = 0) -> list[Visit]:
    """The tiles in the order a tiled softmax reads them: all for the statistics, all again for the outputs.

    cached_tiles: how many of the tiles read last the cache still holds (least recently used leaves first).
    """
    tiles = -(-columns // tile)
    second = range(tiles - 1, -1, -1) if backwards else range(tiles)
    recent: list[int] = []
    visits = []
    for which_pass, t in [(1, t) for t in range(tiles)] + [(2, t) for t in second]:
        visits.append(Visit(which_pass, t, min(columns - t * tile, tile), t in recent))
        recent = [*(r for r in recent if r != t), t][-cached_tiles:] if cached_tiles > 0 else []
    return visits


def reread(columns: int, kept: int, backwards: bool = False) -> int:
    """What a row's second read fetches from DRAM, in elements, if the cache still holds the `kept` read last.

    Forwards the row begins with what left the cache first, so a row longer than that is fetched whole.
    """
    if columns <= kept:
        return 0
    return columns - kept if backwards else columns


def walk_table(columns: int, tile: int, backwards: bool = False, cached_tiles: int = 0) -> Table:
    """What each pass of the whole walk reads from DRAM and from L2, and writes, in elements."""
    rows = []
    visits = tile_visits(columns, tile, backwards, cached_tiles)
    for number in (1, 2):
        dram, cached = (
            sum(v.elements for v in visits if v.which_pass == number and v.cached == c) for c in (False, True)
        )
        rows.append([f"pass {number}", dram, cached, columns if number == 2 else 0])
    return Table(rows, ["whole walk", "elements read from DRAM", "read from L2", "written"])


def tiles_walk(
    columns: int, tile: int, step: int | None = None, backwards: bool = False, cached_tiles: int = 0
) -> Picture:
    """One program walking its row tile by tile, twice. step: tiles read so far, of both passes; None: all."""
    if columns < 1 or tile < 1:
        raise ValueError("A row and a tile have at least one column.")
    tiles = -(-columns // tile)
    if tiles > MOST:
        raise ValueError(
            f"{tiles} tiles are too many to draw; take larger tiles, or a shorter row: {MOST} at most."
        )
    visits = tile_visits(columns, tile, backwards, cached_tiles)
    step = len(visits) if step is None else min(max(step, 0), len(visits))
    so_far, now = visits[:step], visits[step - 1] if step else None
    colours = {(v.which_pass, v.tile): L2 if v.cached else READ for v in so_far}
    colours |= {(3, v.tile): WRITTEN for v in so_far if v.which_pass == 2}
    d = Drawing(WIDTH, 346)
    left, span = 20, WIDTH - 40
    column_w = span / (tiles * tile)
    names = (
        "first pass: maximum and sum",
        "second pass: outputs" + (", from the end" if backwards else ""),
        "the row of y",
    )
    for which, (name, top, height) in enumerate(zip(names, (40, 128, 216), (44, 44, 30), strict=True), 1):
        d.text(left, top - 10, name, TEXT, bold=True)
        for t in range(tiles):
            x, w, used = left + t * tile * column_w, tile * column_w, min(columns - t * tile, tile) * column_w
            colour = colours.get((which, t))
            d.rect(x, top, used, height, colour or "none")
            if used < w - 0.01:
                d.hatch(x + used, top, w - used, height)
            if used >= 16 and w >= 24:
                d.text(x + used / 2, top + height / 2 + 5, t, SMALL, "middle", "#fff" if colour else INK)
            current = now is not None and (which, t) in (
                (now.which_pass, now.tile),
                (now.which_pass + 1, now.tile),
            )
            current = (
                current and (which < 3 or now.which_pass == 2) and not (which == 2 and now.which_pass == 1)
            )
            d.rect(x, top, w, height, stroke=INK if current else EMPTY, width=3 if current else 1)
    key = [("read from DRAM", READ), ("read from L2", L2), ("written", WRITTEN)]
    d.key(left, 276, key + [("masked lanes", None)] * bool(columns % tile))
    dram = sum(v.elements for v in so_far if not v.cached)
    cached = sum(v.elements for v in so_far if v.cached)
    written = sum(v.elements for v in so_far if v.which_pass == 2)
    # A meter of what has crossed the memory bus, and what a copy of the row would move.
    full = 3 * columns
    d.rect(left, 296, span, 12, stroke=EMPTY)
    d.rect(left, 296, span * dram / full, 12, READ)
    d.rect(left + span * dram / full, 296, span * written / full, 12, WRITTEN)
    d.line(left + span * 2 / 3, 292, left + span * 2 / 3, 312, INK, 2)
    d.text(left + span * 2 / 3 + 6, 290, "a copy of the row", SMALL)
    summary = (
        f"{columns:,} columns in {tiles} {'tile' if tiles == 1 else 'tiles'} of {tile:,}; so far read "
        f"{dram + cached:,} elements, {dram:,} of them from DRAM; written {written:,}"
    )
    d.text(left, 332, summary, SMALL + 0.5)
    alt = f"A program walks its row twice: {summary}. " + (
        f"Now at tile {now.tile} of the {'first' if now.which_pass == 1 else 'second'} pass." if now else ""
    )
    return Picture(d.svg(alt), alt)
