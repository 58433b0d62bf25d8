"""Softmax of rows of any length: two walks along the row, tile by tile."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * x_stride
    y_ptr += row * y_stride
    lane = tl.arange(0, TILE)
    m = -float("inf")
    d = 0.0
    raise NotImplementedError("first walk: bring m and d up to date with each tile, as in online_stats")  # your code in place of this line
    raise NotImplementedError("second walk: load each tile again, and store its part of the result")  # your code in place of this line


def tiled_softmax(x):
    """x: (rows, columns), float32 or float16, any row stride, any number of columns. Returns its softmax.

    A tile holds at most 1024 columns, however long the row is. As in PyTorch, a NaN makes its whole row
    NaN.
    """
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, TILE=1024)
    return y
