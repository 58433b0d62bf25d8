"""Join two stretches of a row: the maximum of each, and its sum of exponentials from there."""

import triton
import triton.language as tl


@triton.jit
def merge(m1, d1, m2, d2):
    """(m1, d1), (m2, d2): maximum and sum of two stretches; numbers or tiles. Returns (m, d) of both.

    An empty stretch is (−inf, 0): it changes nothing, and two of them stay empty.
    """
    # BEGIN SOLUTION: find the common maximum, and rescale both sums to it
    m = tl.maximum(m1, m2)
    anchor = tl.where(m == -float("inf"), 0.0, m)  # −inf − (−inf) is NaN
    return m, d1 * tl.exp(m1 - anchor) + d2 * tl.exp(m2 - anchor)
    # END SOLUTION
