"""A wrong softmax, on purpose: as course_kernels/tiled.py, its sum never rescaled (break_rescale)."""

import torch
import triton
import triton.language as tl

TILE = 128


@triton.jit
def never_rescaled_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    m = -float("inf")
    d = 0.0
    for start in range(0, columns, TILE):
        column = start + lane
        x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf"))
        m = tl.maximum(m, tl.max(x, axis=0))
        d = d + tl.sum(tl.exp(x - m), axis=0)  # the mistake: the old d still stands for the old maximum
    for start in range(0, columns, TILE):
        column = start + lane
        mask = column < columns
        x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf"))
        tl.store(y_ptr + row * y_stride + column, tl.exp(x - m) / d, mask=mask)


def softmax(x):
    """x: (rows, columns), float32. Returns what looks like its softmax along each row."""
    rows, columns = x.shape
    y = torch.empty_like(x)
    never_rescaled_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, TILE=TILE)
    return y
