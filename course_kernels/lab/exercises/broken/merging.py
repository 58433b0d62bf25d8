"""Call a learner's merge of two (maximum, sum) pairs inside kernels: pair by pair, and inside tl.reduce."""

import torch
import triton
import triton.language as tl
from triton.runtime.interpreter import InterpretedFunction

from course_kernels.lab.run.guard import Refused

combine = None  # the learner's merge: the compiler takes what tl.reduce combines with from a module only


@triton.jit
def pairs_kernel(m_ptr, d_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """Rows of x: m1, d1, m2, d2, each `columns` long. Writes their merge."""
    column = tl.arange(0, BLOCK)
    mask = column < columns
    base = x_ptr + column
    m1 = tl.load(base, mask=mask, other=0.0)
    d1 = tl.load(base + columns, mask=mask, other=1.0)
    m2 = tl.load(base + 2 * columns, mask=mask, other=0.0)
    d2 = tl.load(base + 3 * columns, mask=mask, other=1.0)
    m, d = combine(m1, d1, m2, d2)
    tl.store(m_ptr + column, m, mask=mask)
    tl.store(d_ptr + column, d, mask=mask)


@triton.jit
def triples_kernel(m_ptr, d_ptr, x_ptr, columns, BLOCK: tl.constexpr):
    """Rows of x: m1, d1, m2, d2, m3, d3. Writes (1 with 2) with 3, then 1 with (2 with 3)."""
    column = tl.arange(0, BLOCK)
    mask = column < columns
    base = x_ptr + column
    m1 = tl.load(base, mask=mask, other=0.0)
    d1 = tl.load(base + columns, mask=mask, other=1.0)
    m2 = tl.load(base + 2 * columns, mask=mask, other=0.0)
    d2 = tl.load(base + 3 * columns, mask=mask, other=1.0)
    m3 = tl.load(base + 4 * columns, mask=mask, other=0.0)
    d3 = tl.load(base + 5 * columns, mask=mask, other=1.0)
    m, d = combine(m1, d1, m2, d2)
    m, d = combine(m, d, m3, d3)
    tl.store(m_ptr + column, m, mask=mask)
    tl.store(d_ptr + column, d, mask=mask)
    m, d = combine(m2, d2, m3, d3)
    m, d = combine(m1, d1, m, d)
    tl.store(m_ptr + columns + column, m, mask=mask)
    tl.store(d_ptr + columns + column, d, mask=mask)


@triton.jit
def reduce_kernel(m_ptr, d_ptr, x_ptr, x_stride, columns, BLOCK: tl.constexpr):
    """(m, d) of row `program` of x, all lanes merged by tl.reduce."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf"))
    ones = tl.where(x == -float("inf"), 0.0, 1.0)  # a lane without a score is the empty stretch, (−inf, 0)
    m, d = tl.reduce((x, ones), 0, combine)
    tl.store(m_ptr + row, m)
    tl.store(d_ptr + row, d)


def either(merge, x):
    """Merge what x (float32) holds; returns (m, d).

    x: (4, pairs): the rows m1, d1, m2, d2; m and d are (pairs,). (6, triples): three pairs, merged in both
    groupings; m and d are (2, triples). Any other shape: rows of scores to reduce; m and d are (rows,).

    Raises:
        Refused: merge is no @triton.jit function.
    """
    if not isinstance(merge, (triton.JITFunction, InterpretedFunction)):
        raise Refused("not_jit", type(merge).__name__)
    global combine
    combine = merge
    rows, columns = x.shape
    shape = {4: (columns,), 6: (2, columns)}.get(rows, (rows,))
    m, d = (torch.empty(shape, dtype=x.dtype, device=x.device) for _ in range(2))
    block = triton.next_power_of_2(columns)
    if rows in (4, 6):
        (pairs_kernel if rows == 4 else triples_kernel)[(1,)](m, d, x, columns, BLOCK=block)
    else:
        reduce_kernel[(rows,)](m, d, x, x.stride(0), columns, BLOCK=block)
    return m, d
