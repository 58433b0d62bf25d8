"""Where a program's work sits: its lanes, the multiprocessors of a chip, the warp slots of one of them."""

from __future__ import annotations

from course_kernels.lab.core.gpus import GPU, as_gpu, occupancy
from course_kernels.lab.core.wording import quantity
from course_kernels.lab.show.colours import ALARM, EMPTY, INK, MUTED, READ, WRITTEN
from course_kernels.lab.show.drawing import SMALL, TEXT, WIDTH, Drawing, text_width
from course_kernels.lab.show.picture import Picture

LANES = "#4f62d8"


def row_and_lanes(columns: int, block: int | None = None, job: str = "softmax") -> Picture:
    """What one program does with its row: load under a mask into BLOCK lanes, store under the same mask.

    columns: the row's length N. block: the number of lanes, a power of two ≥ N; None: the smallest. job:
    "softmax", whose masked lanes hold −∞, or "copy", whose masked lanes hold nothing.
    """
    block = next_power_of_2(columns) if block is None else block
    if block < columns:
        raise ValueError(f"A block of {block} lanes cannot hold a row of {columns} columns.")
    spare = block - columns
    held = "−∞" if job == "softmax" else ""
    d = Drawing(WIDTH, 282)
    left, height = 110, 36
    cell = min((WIDTH - left - 20) / block, 40)
    written = cell >= 30  # write into the cells only where it can be read
    rows = [
        ("row of x", 42, columns, READ),
        ("lanes", 124, block, LANES),
        ("row of y", 206, columns, WRITTEN),
    ]
    for name, y, cells, colour in rows:
        d.text(left - 12, y + 23, name, TEXT, "end")
        live = min(cells, columns)
        d.rect(left, y, live * cell, height, fill=colour, opacity=0.3)
        for i in range(1, live if cell >= 7 else 0):
            d.line(left + i * cell, y, left + i * cell, y + height, "var(--paper)", 1.5)
        d.rect(left, y, cells * cell, height, stroke=colour, width=1.5)
        letter = {"row of x": "x", "row of y": "y"}.get(name, "")
        for i in range(live if written else 0):
            label = f"{letter}{_subscript(i)}" if letter else str(i)
            d.text(left + (i + 0.5) * cell, y + 23, label, SMALL, "middle")
    lanes_y = rows[1][1]
    if spare:
        x, w = left + columns * cell, spare * cell
        d.hatch(x, lanes_y, w, height)
        d.rect(x, lanes_y, w, height, stroke=INK, width=1.5)
        places = [(i + 0.5) * cell for i in range(spare)] if written else [w / 2] if w >= 34 else []
        for place in places:
            d.text(x + place, lanes_y + 23, held, SMALL if written else TEXT, "middle", bold=True, halo=True)
        label = f"{spare:,} masked {'lane' if spare == 1 else 'lanes'}"
        at = min(x + w / 2, WIDTH - text_width(label, SMALL) / 2 - 20)
        d.text(at, lanes_y - 22, label, SMALL, "middle")
        d.line(x + w / 2, lanes_y - 16, x + w / 2, lanes_y - 3, MUTED)
    middle = left + min(columns * cell / 2, 90)
    for y, words in ((42, "tl.load, mask = column < N"), (lanes_y, "tl.store, same mask")):
        d.arrow(middle, y + height + 6, middle, y + height + 40)
        d.text(middle + 12, y + height + 27, words, SMALL, mono=True)
    d.text(left, 26, f"One program: a row of N = {columns:,} in BLOCK = {block:,} lanes", TEXT, bold=True)
    never = {
        "softmax": "In between, max, exp, sum and the division never leave the lanes' registers.",
        "copy": "A masked lane loads nothing and stores nothing.",
    }[job]
    d.text(left, 264, never, SMALL, fill=MUTED)
    holding = " and hold minus infinity" if held else ""
    masked = f"{spare:,} lanes past the row are masked{holding}. " if spare else ""
    alt = (
        f"A row of {columns:,} columns is loaded into {block:,} lanes of one program. {masked}"
        f"The first {columns:,} lanes are stored to a row of y."
    )
    return Picture(d.svg(alt), alt)


def busy_multiprocessors(programs: int, gpu: GPU | str = "H200", title: str = "") -> Picture:
    """A GPU's multiprocessors, those filled that a launch of this many programs gives work to."""
    gpu = as_gpu(gpu)
    busy = min(programs, gpu.sms)
    across, cell = 33, 18
    d = Drawing(WIDTH, 76 - (-gpu.sms // across) * (cell + 2))
    what = "program" if programs == 1 else "programs"
    words = f"{programs:,} {what}: {busy} of {gpu.sms} multiprocessors of {gpu.name} have work"
    d.text(8, 24, title or words, TEXT, bold=True)
    for i in range(gpu.sms):
        left, top = 8 + i % across * (cell + 2), 40 + i // across * (cell + 2)
        d.rect(left, top, cell, cell, LANES if i < busy else "none", LANES if i < busy else EMPTY)
    share = f"{busy / gpu.sms:.{1 if busy < gpu.sms / 100 else 0}%}"
    rest = "" if busy == gpu.sms else "; the rest waits"
    d.text(8, d.height - 10, f"{share} of the chip asks for memory{rest}", SMALL, fill=MUTED)
    return Picture(d.svg(words), words)


def multiprocessor(
    gpu: GPU | str, registers: int, spilled: int, shared: int, num_warps: int, title: str = ""
) -> Picture:
    """One SM's warp slots, filled with as many programs of a compiled kernel as fit at a time.

    registers: 32-bit registers a thread; spilled: bytes a thread in local memory; shared: bytes a program.
    """
    gpu = as_gpu(gpu)
    held = occupancy(gpu, registers, shared, num_warps)
    d = Drawing(WIDTH, 250)
    d.text(20, 26, title or f"One multiprocessor of a {gpu.name}", TEXT, bold=True)
    across, pitch, top = 16, 26, 44
    for slot in range(gpu.max_warps_per_sm):
        x, y = 20 + slot % across * pitch, top + slot // across * pitch
        filled = slot < held.warps_per_sm
        d.rect(x, y, 24, 24, LANES if filled else "none", "none" if filled else EMPTY)
        if filled:  # which program the warp belongs to
            d.text(x + 12, y + 17, slot // num_warps, SMALL, "middle", "#fff")
    programs = "program" if held.programs_per_sm == 1 else "programs"
    words = (
        f"{held.warps_per_sm} of {gpu.max_warps_per_sm} warp slots: "
        f"{held.programs_per_sm} {programs} of {num_warps}"
    )
    d.text(20, top + 4 * pitch + 20, words, SMALL + 0.5)
    said = "each number is a program; an empty slot hides no latency"
    d.text(20, top + 4 * pitch + 40, said, SMALL, fill=MUTED)
    if spilled:
        spills = f"It spills: {spilled:,} bytes a thread."
        d.text(20, top + 4 * pitch + 64, spills, TEXT, fill=ALARM, bold=True)
    limits = {"warps": "warp slots", "programs": "the number of programs"}
    facts = [
        ("registers a thread", f"{registers} of 255", False),
        ("spilled a thread", f"{spilled:,} bytes" if spilled else "nothing", spilled),
        ("shared memory", quantity(shared, "B"), False),
        ("occupancy", f"{held.share:.0%}", not held.programs_per_sm),
        ("limited by", limits.get(held.limited_by, held.limited_by), False),
    ]
    for i, (name, value, alarm) in enumerate(facts):
        d.text(470, top + 14 + 36 * i, name, SMALL, fill=MUTED)
        d.text(470, top + 31 + 36 * i, value, TEXT + 1, bold=True, fill=ALARM if alarm else INK)
    spills = f"{spilled} bytes a thread spilled" if spilled else "nothing spilled"
    alt = (
        f"{title or gpu.name}: {registers} registers a thread, {spills}, {words}; "
        f"occupancy {held.share:.0%}, limited by {held.limited_by}."
    )
    return Picture(d.svg(alt), alt)


def next_power_of_2(value: int) -> int:
    """The smallest power of two ≥ value."""
    return 1 << max(int(value) - 1, 0).bit_length()


def _subscript(i: int) -> str:
    return str(i).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))
