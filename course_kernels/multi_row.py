"""One program, several short rows: the tile of `fused_row`, with a second dimension.

A row of 64 elements keeps two warps busy with one element each, and most of a program's life is its launch.
Several rows in one program give every thread a few elements to load at once. Read 1, write 1.
"""

import math

import triton
import triton.language as tl

from .inputs import rows_and_columns
from .plan import INPUT, OUTPUT, Launch, Plan, planned

MAX_COLUMNS = 16_384
LOG2E = tl.constexpr(math.log2(math.e))


@triton.jit
def multi_row_kernel(
    y_ptr,
    x_ptr,
    y_stride,
    x_stride,
    rows,
    columns,
    UNIT: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    LOG: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    columns *= UNIT  # multiples of UNIT, as Triton sees here: so it loads UNIT values at once
    x_stride *= UNIT
    y_stride *= UNIT
    mask = (row < rows) & (column < columns)
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=float("-inf"))  # (ROWS, BLOCK)
    if x.dtype != tl.float64:
        x = x.to(tl.float32)

    shifted = x - tl.max(x, axis=1, keep_dims=True)
    numerator = tl.exp2(shifted * LOG2E)  # what a GPU computes is 2**x: exp(x) is 2**(x · log2 e)
    denominator = tl.sum(numerator, axis=1, keep_dims=True)
    if LOG:
        y = shifted - tl.log(denominator)
    else:
        y = numerator * (1.0 / denominator)
    tl.store(y_ptr + row * y_stride + column, y, mask=mask)


@planned
def softmax(x, log=False):
    """Softmax of each row of a matrix, several rows a program.

    Args:
        x: (rows, columns), float16, bfloat16, float32 or float64, at most MAX_COLUMNS columns; any row
            stride. log: give the logarithm of the softmax, (x − m) − log d, instead.

    Returns:
        y: (rows, columns), contiguous, dtype and device of x.

    Raises:
        TypeError, ValueError: an input it does not take; the message says what to do.
    """
    rows, columns = rows_and_columns(x, MAX_COLUMNS)
    if x.numel() == 0:
        return Plan(x)
    block = triton.next_power_of_2(columns)
    rows_each, warps = tile(block, x.element_size())
    unit = math.gcd(columns, x.stride(0), 16)
    return Plan(
        x,
        Launch(
            multi_row_kernel, triton.cdiv(rows, rows_each), (OUTPUT, INPUT),
            columns // unit, x.stride(0) // unit, rows, columns // unit,
            UNIT=unit, ROWS=rows_each, BLOCK=block, LOG=log, num_warps=warps,
        ),
    )  # fmt: skip


def tile(block, itemsize):
    """(rows, warps) of a program, for rows of `block` elements: 1,024 elements or one row, 32 bytes a
    thread."""
    rows = max(1, 1024 // block)
    return rows, min(max(rows * block * itemsize // (32 * 32), 1), 16)
