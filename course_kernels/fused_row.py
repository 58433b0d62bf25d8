"""One program, one row: softmax with one load and one store.

The row is read once, stays in registers while its maximum, its exponentials and their sum are found, and is
written once: 2MN elements of traffic for an M × N matrix, against 8MN + 4M for the five steps of `eager`.
The limit is the size of a register file: the whole row must fit on chip.
"""

import math

import torch
import triton
import triton.language as tl

from .inputs import rows_and_columns
from .plan import INPUT, OUTPUT, Launch, Plan, planned

MAX_COLUMNS = 32_768  # beyond, a row of float32 no longer fits in one program's registers and spills
LOG2E = tl.constexpr(math.log2(math.e))


@triton.jit
def fused_row_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # 64 bits: row * stride passes 2**31 in large matrices
    column = tl.arange(0, BLOCK)  # BLOCK is a power of two, so the last lanes may lie past the row
    mask = column < columns

    # A lane past the row holds −inf: it never is the maximum, and exp(−inf) adds 0 to the sum.
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=float("-inf"))
    if x.dtype != tl.float64:
        x = x.to(tl.float32)  # 16-bit inputs: all arithmetic in float32, from here to the store

    numerator = tl.exp(x - tl.max(x, axis=0))
    denominator = tl.sum(numerator, axis=0)

    # One division a row, not one an element.
    tl.store(y_ptr + row * y_stride + column, numerator * (1.0 / denominator), mask=mask)


@planned
def softmax(x):
    """Softmax of each row of a matrix, one program a row.

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
        return Plan(x)  # nothing to do, and a grid of 0 programs is an error
    block = triton.next_power_of_2(columns)
    # As fused_row_kernel[(rows,)](y, x, columns, x.stride(0), columns, BLOCK=..., num_warps=...) on a new y,
    # worked out once for all x of this kind.
    return Plan(
        x,
        Launch(
            fused_row_kernel, rows, (OUTPUT, INPUT), columns, x.stride(0), columns,
            BLOCK=block, num_warps=warps(block, x.element_size()),
        ),
    )  # fmt: skip


def warps(block, itemsize):
    """How many warps, of 32 threads, share a row of `block` elements: 8 a thread (16-bit: 32), more in a
    wide row."""
    elements = 8 if itemsize >= 4 else 32
    return min(max(block // (32 * elements), 1), 16)


@triton.jit
def body_and_tail_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BODY: tl.constexpr, TAIL: tl.constexpr):
    """As above, for a row just wider than a power of two: 8,193 columns are 8,192 and 1, not half of
    16,384."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    y_ptr += row * y_stride
    body = tl.arange(0, BODY)  # all inside the row, so without a mask
    tail = BODY + tl.arange(0, TAIL)
    mask = tail < columns

    x_body = tl.load(x_ptr + body)
    x_tail = tl.load(x_ptr + tail, mask=mask, other=float("-inf"))
    if x_body.dtype != tl.float64:
        x_body = x_body.to(tl.float32)
        x_tail = x_tail.to(tl.float32)

    maximum = tl.maximum(tl.max(x_body, axis=0), tl.max(x_tail, axis=0))
    # Exp(x) is 2**(x · log2 e), which saves a few instructions
    body_numerator = tl.exp2((x_body - maximum) * LOG2E)
    tail_numerator = tl.exp2((x_tail - maximum) * LOG2E)
    reciprocal = 1.0 / (tl.sum(body_numerator, axis=0) + tl.sum(tail_numerator, axis=0))

    tl.store(y_ptr + body, body_numerator * reciprocal)
    tl.store(y_ptr + tail, tail_numerator * reciprocal, mask=mask)


@planned
def body_and_tail(x):
    """Softmax as `softmax`, for widths that are not a power of two; takes and gives the same."""
    rows, columns = rows_and_columns(x, MAX_COLUMNS)
    if x.numel() == 0:
        return Plan(x)
    body = triton.next_power_of_2(columns + 1) // 2  # the largest power of two that fits
    tail = triton.next_power_of_2(max(columns - body, 1))
    num_warps = warps(body, x.element_size())
    # With 64 registers a thread, two programs of 16 warps fit a multiprocessor; 48 values fit in those.
    few = (body + tail) // (32 * num_warps) <= 48 and x.dtype != torch.float64
    return Plan(
        x,
        Launch(
            body_and_tail_kernel, rows, (OUTPUT, INPUT), columns, x.stride(0), columns,
            BODY=body, TAIL=tail, num_warps=num_warps, maxnreg=64 if few else 128,
        ),
    )  # fmt: skip
