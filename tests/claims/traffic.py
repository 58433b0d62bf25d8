"""Notebook 02, its exercise and its questions."""

import numpy as np
import torch

from claims import Claim, counters, outside, records, shares
from course_kernels import eager
from course_kernels.lab.core.gpus import GPUS
from course_kernels.lab.counting import ledger
from course_kernels.lab.show.traffic import eager_operations

NOTEBOOK = "notebooks/02_counting_traffic.ipynb"
SMALL, MIDDLE, LARGE, WIDE = (4096, 1024), (4096, 4096), (16384, 16384), (4096, 65536)
LISTED = ("max", "subtract", "exp", "sum", "divide", "eager", "torch", "fused_row")


def passes(kernel: str, matrix: tuple[int, int], reads: tuple, writes: tuple) -> list:
    """What the counters saw, unless it is within these two ranges."""
    read, written = counters(kernel)[1][matrix]
    fits = reads[0] <= read <= reads[1] and writes[0] <= written <= writes[1]
    return [] if fits else [(kernel, *matrix, read, written)]


def through_l2() -> list:
    """The cases that refute: agreement on a matrix many times as large as L2, and fewer writes on one that
    is not."""
    confirmed = passes("eager", LARGE, (4.85, 5.15), (2.85, 3.15))
    return [*confirmed, *passes("eager", SMALL, (0, 5.2), (0, 0.5)), *partly_written()]


def partly_written() -> list:
    return passes("eager", MIDDLE, (4.85, 5.15), (0.2, 2.7))


def line(timing: str = "events") -> tuple[float, float]:
    """(µs at 0 columns, µs a column) of eager softmax on 4096 rows, as the notebook fits it."""
    times = {n: r.microseconds for n, r in records("eager", "4096 rows", timing=timing).items() if n <= 1024}
    slope, start = np.polyfit(list(times), list(times.values()), 1)
    return start, slope


def tripled() -> list:
    times = {n: record.microseconds for n, record in records("eager", "4096 rows").items()}
    ratio = times[768] / times[256]
    return [] if 1.1 < ratio < 2.7 else [ratio]


def launches_of_a_large_matrix() -> list:
    """Share that five launches have of the time, where it is 2% or more."""
    launches = line()[0]
    long = {n: launches / record.microseconds for n, record in records("eager").items()}
    return outside(long, 0, 0.02)


def launch_cost() -> list:
    alone, in_graph = line()[0] / 5, line("graph")[0] / 5
    return [] if 1 < in_graph < alone < 10 else [(alone, in_graph)]


def torch_over_eager() -> dict[int, float]:
    fused, separate = shares("torch"), shares("eager")
    return {n: fused[n] / separate[n] for n in fused.keys() & separate.keys()}


def ratio_is_four() -> list:
    ratios = torch_over_eager()
    narrow = max(value for n, value in ratios.items() if n <= 2048)
    wide = min(value for n, value in ratios.items() if n >= 4096)
    return [] if narrow > 4.2 and wide < 3.8 else [(narrow, wide)]


def narrow_rows_are_no_worse() -> list:
    eager_shares = shares("eager")
    return [] if eager_shares[64] < 0.9 * eager_shares[1024] else [(64, eager_shares[64])]


def formula_and_ledger_differ() -> list:
    found = []
    for m, n in ((64, 1000), (7, 33)):
        book, steps = ledger(eager.softmax, torch.zeros(m, n)), eager_operations(m, n)
        counted = book.reads, book.writes
        formula = sum(step[1] for step in steps), sum(step[2] for step in steps)
        if not counted == formula == (5 * m * n + 2 * m, 3 * m * n + 2 * m):
            found.append((m, n, counted, formula))
    return found


def in_place(x: torch.Tensor) -> torch.Tensor:
    y = x - x.amax(dim=1, keepdim=True)
    y.exp_()
    y /= y.sum(dim=1, keepdim=True)
    return y


def in_place_moves_or_holds_other() -> list:
    x = torch.zeros(64, 1000)
    apart, same_room = ledger(eager.softmax, x), ledger(in_place, x)
    moved = apart.reads == same_room.reads and apart.writes == same_room.writes
    return [] if moved and same_room.peak < 0.5 * apart.peak else [(same_room.reads, same_room.peak)]


def fused_holds_or_moves_more() -> list:
    book = ledger(torch.softmax, torch.zeros(64, 1000), 1)
    return [] if book.launches == 1 and book.reads == book.writes == 64_000 else [book.rows]


def ridges(flop: int, times: float = 1) -> list:
    """GPUs whose ridge is less than this many times the intensity of a fused softmax in float32."""
    return [gpu.name for gpu in GPUS.values() if gpu.ridge < times * flop / 8]


def unlike_the_tutorial() -> list:
    """GB/s that the tutorial's page published once: fused, torch; 4096 rows."""
    published = {256: (511.2, 689.7), 1024: (1035.0, 1068.9), 2176: (1253.6, 960.7), 4096: (1404.7, 1314.0)}
    ahead = {fused > built_in for fused, built_in in published.values()}
    return [] if ahead == {True, False} else [published]


CLAIMS = (
    Claim(NOTEBOOK, "reads 5MN + 2M, writes 3MN + 2M.", formula_and_ledger_differ),
    Claim("question 02-count", "reads 5MN + 2M, writes 3MN + 2M", formula_and_ledger_differ),
    Claim(
        NOTEBOOK,
        "The counters confirm the ledger, reads and writes, within a few per cent.",
        lambda: passes("eager", LARGE, (4.85, 5.15), (2.85, 3.15)),
    ),
    Claim(
        NOTEBOOK,
        "The reads agree, and the writes never happened.",
        lambda: passes("eager", SMALL, (4.85, 5.15), (0, 0.2)),
    ),
    Claim(NOTEBOOK, "Some of the writes had to leave, some were still inside", partly_written),
    Claim(NOTEBOOK, "What DRAM delivers it predicts only for matrices many times as large", through_l2),
    Claim(
        NOTEBOOK,
        "Hardware counters agree with the count on matrices many times as large as L2. Below, writes stay",
        through_l2,
    ),
    Claim(
        "question 02-count",
        "Hardware counters agree with the count on matrices many times as large as L2; on smaller ones "
        "writes stay in the cache",
        through_l2,
    ),
    Claim(
        NOTEBOOK,
        "The figures below were recorded on an H200, kernel by kernel",
        lambda: [kernel for kernel in LISTED if not {SMALL, MIDDLE, LARGE} <= counters(kernel)[1].keys()],
    ),
    Claim(NOTEBOOK, "Working in place saves the room and not one trip", in_place_moves_or_holds_other),
    Claim(NOTEBOOK, "the ledger shows one operation, and takes it for two passes", fused_holds_or_moves_more),
    Claim(NOTEBOOK, "From 256 columns to 768 the traffic triples, and the time does not.", tripled),
    Claim(NOTEBOOK, "What is left at 0 columns there is the GPU's own part", launch_cost),
    Claim(NOTEBOOK, "popular accounts say 5 to 10 µs", lambda: outside({"µs": line()[0] / 5}, 1, 10)),
    Claim(NOTEBOOK, "They stay below it at every width.", lambda: outside(shares("eager"), 0, 0.249)),
    Claim(
        NOTEBOOK,
        "from 1,024 columns on they move at three quarters of its rate or a little more",
        lambda: outside({n: 4 * s for n, s in shares("eager").items()}, 0.7, 0.84, lambda n: n >= 1024),
    ),
    Claim(NOTEBOOK, "five of them take a hundredth of this time", launches_of_a_large_matrix),
    Claim(
        NOTEBOOK,
        "the counters saw no more than was counted",
        lambda: passes("eager", LARGE, (0, 5.05), (0, 3.05)),
    ),
    Claim(NOTEBOOK, "most of all on narrow rows", narrow_rows_are_no_worse),
    Claim(NOTEBOOK, "The measured ratio is not four", ratio_is_four),
    Claim(
        NOTEBOOK,
        "a fused kernel that keeps up with the copy gains *more* than four",
        lambda: outside(shares("eager"), 0, 0.249),
    ),
    Claim(
        NOTEBOOK,
        "From some width on, `torch.softmax` stays far below the copy.",
        lambda: outside(shares("torch"), 0, 0.9, lambda n: n >= 4096),
    ),
    Claim(
        NOTEBOOK,
        "On the widest rows `torch.softmax` reads the matrix three times",
        lambda: passes("torch", WIDE, (2.7, 3.2), (0.9, 1.1)),
    ),
    Claim(
        NOTEBOOK,
        "At 16384 × 16384 it reads once, and is still well below the copy",
        lambda: [
            *passes("torch", LARGE, (0.95, 1.1), (0.9, 1.1)),
            *outside(shares("torch"), 0, 0.92, lambda n: n == 16_384),
        ],
    ),
    Claim(
        NOTEBOOK,
        "Several cooks, each with a part of the row on his counter, need not",
        lambda: passes("softmax", WIDE, (0.9, 1.1), (0.9, 1.1)),
    ),
    Claim(
        "lesson count_traffic",
        "Several programs that share the row, each keeping its part on chip, are back at two",
        lambda: passes("softmax", WIDE, (0.9, 1.1), (0.9, 1.1)),
    ),
    Claim(
        NOTEBOOK,
        "Both softmaxes are far to the left, on every GPU, by more than a factor of ten",
        lambda: ridges(4, 10),
    ),
    Claim(
        NOTEBOOK,
        "Set `flop = 20` above and look again: closer, still left of every bend.",
        lambda: ridges(20),
    ),
    Claim(
        NOTEBOOK,
        "softmax does half an operation for each byte. GPUs could do about ten",
        lambda: outside({gpu.name: gpu.ridge for gpu in GPUS.values()}, 9, 110),
    ),
    Claim(
        "question 02-bound",
        "GPUs can do about ten operations or more for each byte they move.",
        lambda: outside({gpu.name: gpu.ridge for gpu in GPUS.values()}, 9, 110),
    ),
    Claim(
        "question 02-promise",
        "shows it behind the built-in at some widths and ahead at others",
        unlike_the_tutorial,
    ),
    Claim(
        "question 02-promise",
        "for a large matrix if the separate kernels keep the memory less busy than a copy does",
        lambda: outside(shares("eager"), 0, 0.245, lambda n: n >= 1024),
    ),
)
