"""A wrong softmax, on purpose: as course_kernels/fused_row.py, with 0 in its masked lanes (break_padding)."""

import torch
import triton
import triton.language as tl


@triton.jit
def padded_with_zero_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=0.0)  # the mistake
    numerator = tl.exp(x - tl.max(x, axis=0))
    denominator = tl.sum(numerator, axis=0)
    tl.store(y_ptr + row * y_stride + column, numerator / denominator, mask=mask)


def softmax(x):
    """x: (rows, columns), float32. Returns what looks like its softmax along each row."""
    rows, columns = x.shape
    y = torch.empty_like(x)
    block = triton.next_power_of_2(columns)
    padded_with_zero_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=block)
    return y
