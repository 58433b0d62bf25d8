"""Call a learner's merge of two (maximum, sum) pairs inside kernels: pair by pair, and inside tl.reduce."""

import torch
import triton
import triton.language as tl


@triton.jit
def pairs_kernel(m_ptr, d_ptr, x_ptr, columns, merge: tl.constexpr, BLOCK: tl.constexpr):
    """Row r of x holds m1, d1, m2, d2, each `columns` long; writes their merge."""
    column = tl.arange(0, BLOCK)
    mask = column < columns
    base = x_ptr + column
    m1 = tl.load(base, mask=mask, other=0.0)
    d1 = tl.load(base + columns, mask=mask, other=1.0)
    m2 = tl.load(base + 2 * columns, mask=mask, other=0.0)
    d2 = tl.load(base + 3 * columns, mask=mask, other=1.0)
    m, d = merge(m1, d1, m2, d2)
    tl.store(m_ptr + column, m, mask=mask)
    tl.store(d_ptr + column, d, mask=mask)


@triton.jit
def reduce_kernel(m_ptr, d_ptr, x_ptr, x_stride, columns, merge: tl.constexpr, BLOCK: tl.constexpr):
    """(m, d) of row `program` of x, all lanes merged by tl.reduce."""
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf"))
    ones = tl.where(x == -float("inf"), 0.0, 1.0)
    m, d = tl.reduce((x, ones), 0, merge.value)
    tl.store(m_ptr + row, m)
    tl.store(d_ptr + row, d)


def merge_pairs(merge, x):
    """x: (4, pairs) float32, the rows m1, d1, m2, d2. Returns (m, d), each (pairs,)."""
    columns = x.shape[1]
    m, d = (torch.empty(columns, dtype=x.dtype, device=x.device) for _ in range(2))
    pairs_kernel[(1,)](
        m,
        d,
        x,
        columns,
        merge=tl.constexpr(merge) if not isinstance(merge, triton.JITFunction) else merge,
        BLOCK=triton.next_power_of_2(columns),
    )
    return m, d


def reduce_rows(merge, x):
    """x: (rows, columns) float32. Returns (m, d), each (rows,): every row's maximum and sum."""
    rows, columns = x.shape
    m, d = (torch.empty(rows, dtype=x.dtype, device=x.device) for _ in range(2))
    reduce_kernel[(rows,)](
        m,
        d,
        x,
        x.stride(0),
        columns,
        merge=tl.constexpr(merge) if not isinstance(merge, triton.JITFunction) else merge,
        BLOCK=triton.next_power_of_2(columns),
    )
    return m, d


def either(merge, x):
    """Rows of four are pairs to merge; anything else is to be reduced."""
    return merge_pairs(merge, x) if x.shape[0] == 4 else reduce_rows(merge, x)
