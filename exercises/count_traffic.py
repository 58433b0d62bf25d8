"""How many elements four kinds of softmax read and write, for an m × n matrix (m rows of n columns).

Each function returns (reads, writes), in elements: how often something is fetched from memory, and stored
there.
"""


def eager_traffic(m, n):
    """Five separate kernels, as PyTorch launches them: maximum, subtract, exponential, sum, divide."""
    raise NotImplementedError("add up what each of the five kernels reads and writes")  # your code in place of this line


def fused_traffic(m, n):
    """One kernel that keeps each row on chip from its load to its store."""
    raise NotImplementedError("say what is left to read and to write")  # your code in place of this line


def safe_traffic(m, n):
    """One kernel for rows too long to keep: a walk for the maximum, one for the sum, one for the outputs."""
    raise NotImplementedError("count the walks")  # your code in place of this line


def online_traffic(m, n):
    """The same with maximum and sum found in one walk, and a second walk for the outputs."""
    raise NotImplementedError("count the walks")  # your code in place of this line
