"""Maximum and sum of exponentials of each row, both found in one walk along it, tile by tile."""

import torch
import triton
import triton.language as tl


@triton.jit
def stats_kernel(m_ptr, d_ptr, x_ptr, x_stride, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")  # the maximum of the columns seen so far
    d = 0.0  # the sum of their exponentials, exp(x − m)
    for start in range(0, columns, TILE):
        column = start + tl.arange(0, TILE)
        # BEGIN SOLUTION: load the tile, and bring m and d up to date with it
        x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf")).to(
            tl.float32
        )
        new_m = tl.maximum(m, tl.max(x, axis=0))
        # As long as all is −inf there is nothing to measure from, and −inf − (−inf) would be NaN.
        anchor = tl.where(new_m == -float("inf"), 0.0, new_m)
        d = d * tl.exp(m - anchor) + tl.sum(tl.exp(x - anchor), axis=0)
        m = new_m
        # END SOLUTION
    tl.store(m_ptr + row, m)
    tl.store(d_ptr + row, d)


def online_stats(x):
    """x: (rows, columns), float32 or float16, any row stride, any number of columns.

    Returns (m, d), both (rows,) float32: each row's maximum, and the sum of its exp(x − m). A row of nothing
    but −inf has m = −inf and d = 0; a NaN makes its row's d NaN. A tile holds at most 256 columns.
    """
    rows, columns = x.shape
    m = torch.empty(rows, dtype=torch.float32, device=x.device)
    d = torch.empty(rows, dtype=torch.float32, device=x.device)
    stats_kernel[(rows,)](m, d, x, x.stride(0), columns, TILE=256)
    return m, d
