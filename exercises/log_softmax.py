"""Logarithm of the softmax of each row, without ever taking the logarithm of a rounded quotient."""

import torch
import triton
import triton.language as tl


@triton.jit
def log_softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    raise NotImplementedError("from x − m and d, the sum of its exponentials, make (x − m) − log d")  # your code in place of this line
    tl.store(y_ptr + row * y_stride + column, y, mask=mask)


def log_softmax(x):
    """x: (rows, columns), float32 or float16, any row stride. Returns y, its log-softmax along each row.

    As in PyTorch, a NaN makes its whole row NaN.
    """
    rows, columns = x.shape
    y = torch.empty_like(x)
    log_softmax_kernel[(rows,)](
        y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns)
    )
    return y
