"""Copy a matrix, row by row: one program a row, one load, one store."""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)  # which row is mine
    column = tl.arange(0, BLOCK)  # one lane a column; BLOCK is a power of two, so a few lanes are too many
    raise NotImplementedError("say which lanes have a column, load the row of x there, store it to the row of y")  # your code in place of this line


def copy_rows(x):
    """x: (rows, columns), float32 or float16, any row stride. Returns y, a copy of it."""
    rows, columns = x.shape
    y = torch.empty_like(x)
    copy_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
