"""How many elements four kinds of softmax read and write, for an m × n matrix (m rows of n columns).

Each function returns (reads, writes), in elements: how often something is fetched from memory, and stored
there.
"""


def eager_traffic(m, n):
    """Five separate kernels, as PyTorch launches them: maximum, subtract, exponential, sum, divide."""
    # BEGIN SOLUTION: add up what each of the five kernels reads and writes
    reads = m * n + (m * n + m) + m * n + m * n + (m * n + m)
    writes = m + m * n + m * n + m + m * n
    return reads, writes
    # END SOLUTION


def fused_traffic(m, n):
    """One kernel that keeps each row on chip from its load to its store."""
    # BEGIN SOLUTION: say what is left to read and to write
    return m * n, m * n
    # END SOLUTION


def safe_traffic(m, n):
    """One kernel for rows too long to keep: a walk for the maximum, one for the sum, one for the outputs."""
    # BEGIN SOLUTION: count the walks
    return 3 * m * n, m * n
    # END SOLUTION


def online_traffic(m, n):
    """The same with maximum and sum found in one walk, and a second walk for the outputs."""
    # BEGIN SOLUTION: count the walks
    return 2 * m * n, m * n
    # END SOLUTION
