"""The online recurrence: a row's maximum and the sum of its exponentials, both in one walk.

    m_j = max(m_{j−1}, x_j)
    d_j = d_{j−1} · exp(m_{j−1} − m_j) + exp(x_j − m_j)         (Milakov and Gimelshein, 2018)

Each time the maximum grows, the sum found so far is rescaled to the new one. The same step joins the
results of any two stretches of a row, in any order and grouping: it is associative, commutative, and (−inf,
0) changes nothing. So it joins lanes here, tiles in `tiled`, programs in `split_row` and `resident_row`.
"""

import math

import triton
import triton.language as tl

from .inputs import rows_and_columns
from .plan import INPUT, OUTPUT, Launch, Plan, planned

MAX_COLUMNS = 16_384  # the row stays in registers, and so do the partial results of its lanes


@triton.jit
def merge(m1, d1, m2, d2):
    """Join (maximum, sum of exponentials) of two stretches of a row; scalars or tensors of one shape."""
    m = tl.maximum(m1, m2)
    # Two empty stretches have m = −inf, and −inf − (−inf) is NaN: measure them from 0, and both sums stay 0.
    anchor = tl.where(m == float("-inf"), 0.0, m)
    return m, d1 * tl.exp(m1 - anchor) + d2 * tl.exp(m2 - anchor)


@triton.jit
def online_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=float("-inf"))
    if x.dtype != tl.float64:
        x = x.to(tl.float32)

    # One reduction where fused_row has two: each element x starts as the stretch (x, 1). A masked lane does,
    # too, as (−inf, 1): its 1 is multiplied by exp(−inf − m) = 0 when it meets an element.
    m, d = tl.reduce((x, tl.full((BLOCK,), 1.0, x.dtype)), 0, merge)

    tl.store(y_ptr + row * y_stride + column, tl.exp(x - m) * (1.0 / d), mask=mask)


@planned
def softmax(x):
    """Softmax of each row of a matrix, its maximum and sum found together.

    Args:
        x: (rows, columns), float16, bfloat16, float32 or float64, at most MAX_COLUMNS columns; any row
            stride.

    Returns:
        y: (rows, columns), contiguous, dtype and device of x.

    Raises:
        TypeError, ValueError: an input it does not take; the message says what to do.
    """
    rows, columns = rows_and_columns(x, MAX_COLUMNS)
    if x.numel() == 0:
        return Plan(x)
    block = triton.next_power_of_2(columns)
    warps = min(max(block // 256, 1), 32)
    numbers = columns, x.stride(0), columns
    return Plan(x, Launch(online_kernel, rows, (OUTPUT, INPUT), *numbers, BLOCK=block, num_warps=warps))


def steps(scores):
    """The recurrence by hand: the pair (m, d) after each of the scores, in plain Python floats.

    >>> [(m, round(d, 4)) for m, d in steps([2.0, 5.0, 3.0])]
    [(2.0, 1.0), (5.0, 1.0498), (5.0, 1.1851)]
    """
    m, d, seen = -math.inf, 0.0, []
    for score in scores:
        new_m = max(m, score)
        anchor = 0.0 if new_m == -math.inf else new_m
        d = d * math.exp(m - anchor) + math.exp(score - anchor)
        m = new_m
        seen.append((m, d))
    return seen
