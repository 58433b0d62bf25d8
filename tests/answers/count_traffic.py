"""Answers to count_traffic: wrong ones with the mistake that must be named, and unusual right ones."""

EAGER_R = "reads = m * n + (m * n + m) + m * n + m * n + (m * n + m)"
EAGER_W = "writes = m + m * n + m * n + m + m * n"
EAGER = "return reads, writes"
FUSED = "return m * n, m * n"
SAFE = "return 3 * m * n, m * n"
ONLINE = "return 2 * m * n, m * n"

WRONG = {
    "bytes of float32": ("bytes", [(EAGER, "return 4 * reads, 4 * writes")]),
    "bytes of float16": ("bytes", [(EAGER, "return 2 * reads, 2 * writes")]),
    "megabytes": ("bytes", [(EAGER, "return reads * 4 / 1e6, writes * 4 / 1e6")]),
    "bytes in the fused one": ("bytes", [(FUSED, "return 4 * m * n, 4 * m * n")]),
    "bytes in the online one": ("bytes", [(ONLINE, "return 8 * m * n, 4 * m * n")]),
    "six passes, three and three": (
        "six_passes",
        [(EAGER_R, "reads = 3 * m * n"), (EAGER_W, "writes = 3 * m * n")],
    ),
    "six passes, four and two": (
        "six_passes",
        [(EAGER_R, "reads = 4 * m * n"), (EAGER_W, "writes = 2 * m * n")],
    ),
    "six passes with the rows' terms": (
        "six_passes",
        [(EAGER_R, "reads = 4 * m * n + 2 * m"), (EAGER_W, "writes = 2 * m * n + 2 * m")],
    ),
    "no terms in m": ("m_terms", [(EAGER_R, "reads = 5 * m * n"), (EAGER_W, "writes = 3 * m * n")]),
    "no terms in m, writes": ("m_terms", [(EAGER_W, "writes = 3 * m * n")]),
    "no terms in m, reads": ("m_terms", [(EAGER_R, "reads = 5 * m * n")]),
    "one term in m": ("m_terms", [(EAGER_R, "reads = 5 * m * n + m"), (EAGER_W, "writes = 3 * m * n + m")]),
    "the maximum's places counted": ("m_terms", [(EAGER_W, "writes = 3 * m * n + 3 * m")]),
    "terms in n": (
        "rows_for_columns",
        [(EAGER_R, "reads = 5 * m * n + 2 * n"), (EAGER_W, "writes = 3 * m * n + 2 * n")],
    ),
    "the fused count": ("fused_count", [(EAGER, FUSED)]),
    "reductions as matrices": (
        "reductions_full",
        [(EAGER_R, "reads = 7 * m * n"), (EAGER_W, "writes = 5 * m * n")],
    ),
    "reductions written as matrices": ("reductions_full", [(EAGER_W, "writes = 5 * m * n")]),
    "each kernel reads once, writes once": (
        "reductions_full",
        [(EAGER_R, "reads = 5 * m * n"), (EAGER_W, "writes = 5 * m * n")],
    ),
    "sum and divide in one": (
        "passes",
        [(EAGER_R, "reads = 4 * m * n + 2 * m"), (EAGER_W, "writes = 3 * m * n + 2 * m")],
    ),
    "no maximum taken": ("passes", [(EAGER_R, "reads = 3 * m * n + m"), (EAGER_W, "writes = 2 * m * n + m")]),
    "swapped": ("swapped", [(EAGER, "return writes, reads")]),
    "swapped in safe": ("swapped", [(SAFE, "return m * n, 3 * m * n")]),
    "swapped in online": ("swapped", [(ONLINE, "return m * n, 2 * m * n")]),
    "for 4096 × 1024 only": ("one_shape", [(EAGER, "return 20979712, 12591104")]),
    "a table of shapes": (
        "one_shape",
        [(EAGER, "return {(3, 100): (1506, 906), (4096, 1024): (20979712, 12591104)}.get((m, n), (1, 1))")],
    ),
    "passes": ("per_element", [(SAFE, "return 3, 1")]),
    "passes of the fused one": ("per_element", [(FUSED, "return 1, 1")]),
    "the fused one with a scratch": ("passes", [(FUSED, "return 2 * m * n, 2 * m * n")]),
    "the fused one writes its sums": ("m_terms", [(FUSED, "return m * n, m * n + 2 * m")]),
    "safe reads twice": ("passes", [(SAFE, "return 2 * m * n, m * n")]),
    "safe writes its numerators": ("passes", [(SAFE, "return 3 * m * n, 2 * m * n")]),
    "online reads once": ("passes", [(ONLINE, "return m * n, m * n")]),
    "online as safe": ("passes", [(ONLINE, "return 3 * m * n, m * n")]),
    "the paper's accesses": ("wrong_return", [(ONLINE, "return 3 * m * n")]),
    "one number": ("wrong_return", [(EAGER, "return reads + writes")]),
    "nothing returned": ("wrong_return", [(FUSED, "m * n, m * n")]),
    "three numbers": ("wrong_return", [(EAGER, "return reads, writes, reads + writes")]),
    "text": ("wrong_return", [(SAFE, "return '3mn', 'mn'")]),
    "infinite": ("wrong_return", [(SAFE, "return float('inf'), m * n")]),
    "integer overflow": (
        "one_shape",
        [(EAGER, "import numpy as np\n    return np.int32(reads % 2**24), writes")],
    ),
    "a name missing": ("exception", [(ONLINE, "return 2 * m * k, m * k")]),
    "renamed": ("entry_missing", [("def online_traffic(", "def online(")]),
    "three arguments": ("exception", [("def safe_traffic(m, n)", "def safe_traffic(m, n, size)")]),
    "the counter imported": (
        "answer_opened",
        [("def eager_traffic", "from course_kernels.lab.counting import traffic\n\n\ndef eager_traffic")],
    ),
    "the solution read": (
        "answer_opened",
        [("def eager_traffic", "exec(open('solutions/count_traffic.py').read())\n\n\ndef eager_traffic")],
    ),
}

RIGHT = {
    "lists and floats": """def eager_traffic(m, n):
    return [5.0 * m * n + 2 * m, 6 * m * n / 2 + 2 * m]


def fused_traffic(m, n):
    return [m * n * 4 / 4, float(m * n)]


def safe_traffic(m, n):
    return (3 * m * n, 2 * m * n / 2)


def online_traffic(m, n):
    return 2 * m * n, m * n
""",
    "summed over a table of kernels": """KERNELS = {"max": (1, 0, 0, 1), "sub": (1, 1, 1, 0), "exp": (1, 0, 1, 0), "sum": (1, 0, 0, 1), "div": (1, 1, 1, 0)}


def eager_traffic(m, n):
    reads = sum(a * m * n + b * m for a, b, _, _ in KERNELS.values())
    return reads, sum(c * m * n + d * m for _, _, c, d in KERNELS.values())


def walks(k):
    return lambda m, n: (k * m * n, m * n)


fused_traffic, safe_traffic, online_traffic = walks(1), walks(3), walks(2)
""",
    "numpy and torch numbers": """import numpy as np
import torch


def eager_traffic(m, n):
    return np.int64(m) * (5 * n + 2), np.float64(m * (3 * n + 2))


def fused_traffic(m, n):
    return torch.tensor([m * n, m * n])


def safe_traffic(m, n):
    return np.array([3, 1]) * m * n


def online_traffic(m, n):
    return torch.tensor(2 * m * n), torch.tensor(m * n)
""",
    "prints its steps": """def eager_traffic(m, n):
    print("five kernels", m, n)
    size = m * n
    return 5 * size + 2 * m, 3 * size + 2 * m


def fused_traffic(m, n):
    return (m * n,) * 2


def safe_traffic(m, n, walks=3):
    return walks * m * n, m * n


def online_traffic(m, n):
    reads, writes = safe_traffic(m, n, walks=2)
    return reads, writes
""",
}
