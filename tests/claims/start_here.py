"""Notebook 00 and its exercise, the README, and the question of a copy."""

from claims import Claim, outside, records, shares
from course_kernels.lab.core.gpus import SHOWN
from course_kernels.lab.run.traffic import count_module

NOTEBOOK = "notebooks/00_start_here.ipynb"


def power_of_two(columns: int) -> bool:
    return columns & (columns - 1) == 0


def fused_below_nine_tenths():
    def within(columns):
        return power_of_two(columns) and 512 <= columns <= 32_768

    return outside(shares("fused_row"), 0.9, 1.1, within)


def fused_never_near_a_copy():
    best = max(shares("fused_row").values())
    return [] if best >= 0.95 else [("best", best)]


def behind_a_rival_on_wide_rows():
    """(columns, rival, its share, the course's) where one of the three is not below the course."""
    ours, found = shares("softmax"), []
    for rival in ("torch", "compile", "liger"):
        for columns, share in shares(rival).items():
            if columns > 32_768 and power_of_two(columns) and share >= ours[columns]:
                found.append((columns, rival, share, ours[columns]))
    return found


def not_one_load_and_one_store():
    count = count_module("fused_row", 20, 1000, "float32")
    moved = count["loads"], count["stores"]
    return [] if moved == (20_000, 20_000) else [moved]


CLAIMS = (
    Claim(
        NOTEBOOK,
        "runs at more than nine tenths of a memory copy's speed on an H200, on rows of 512, 1,024 and so on "
        "to 32,768 columns",
        fused_below_nine_tenths,
    ),
    Claim(
        "README.md",
        "runs at more than nine tenths of a memory copy's speed (on an H200, rows of 512 to 32,768 columns, "
        "powers of two)",
        fused_below_nine_tenths,
    ),
    Claim(
        "README.md",
        "the course's softmax is within a twentieth of the copy up to 32K columns",
        lambda: outside(shares("softmax"), 0.95, 1.05, lambda n: power_of_two(n) and n <= 32_768),
    ),
    Claim(
        "README.md",
        "and above PyTorch's, torch.compile's and Liger's beyond",
        behind_a_rival_on_wide_rows,
    ),
    Claim(
        "README.md",
        "five separate kernels stay below a quarter of the copy",
        lambda: outside(shares("eager"), 0, 0.25),
    ),
    Claim(
        "README.md",
        "compiles the kernel for T4, A100, L4, H200 and B200",
        lambda: {"T4", "A100", "L4", "H200", "B200"} ^ {name.partition("-")[0] for name in SHOWN},
    ),
    Claim(NOTEBOOK, "Each element is loaded once and stored once", not_one_load_and_one_store),
    Claim(
        NOTEBOOK,
        "on matrices far larger than L2, a softmax can be no faster than the best copy",
        lambda: outside(shares("softmax"), 0, 1.03),
    ),
    Claim(
        NOTEBOOK,
        "The published figure counts every tick of the memory bus. DRAM spends some of them on itself",
        lambda: outside({n: record.gbps for n, record in records("copy").items()}, 0, 0.99 * 4800),
    ),
    Claim(
        NOTEBOOK,
        "comes, at its best widths, within a few per cent of it",
        fused_never_near_a_copy,
    ),
)
