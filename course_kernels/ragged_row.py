"""Short rows of 16-bit values that begin anywhere: whole vectors inside, and two edges.

Memory is read fastest 16 bytes at a time, from addresses that 16 divides. Rows of 777 values of 2 bytes begin
at any even address, so `multi_row` must read them value by value. But inside such a row there are 96 vectors
of 8 values that do begin where they should. They are the body; up to 7 values before them and up to 7 behind
are the edges, read one by one. Read 1, write 1.
"""

import math

import torch
import triton
import triton.language as tl

from . import multi_row
from .inputs import rows_and_columns
from .plan import INPUT, OUTPUT, Launch, Plan, planned

MAX_COLUMNS = 1_024
DTYPES = (torch.float16, torch.bfloat16)
LOG2E = tl.constexpr(math.log2(math.e))
VECTOR = tl.constexpr(8)  # values of 2 bytes in one of 16


@triton.jit
def ragged_row_kernel(
    y_ptr, x_ptr, y_stride, x_stride, rows, columns,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    before = (VECTOR - row * x_stride % VECTOR) % VECTOR  # values before the first vector, (ROWS,)
    x_body = tl.multiple_of(row * x_stride + before, VECTOR)[:, None]
    y_body = tl.multiple_of(row * y_stride + before, VECTOR)[:, None]
    row = row[:, None]
    before = before[:, None]
    vectors = tl.maximum(columns - before, 0) // VECTOR
    behind = before + vectors * VECTOR

    lane = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (lane // VECTOR < vectors)  # the same for all values of a vector
    x_body = x_ptr + x_body + lane
    y_body = y_ptr + y_body + lane

    lane = tl.arange(0, 2 * VECTOR)[None, :]  # half of them before the body, half behind
    column = tl.where(lane < VECTOR, lane, behind + lane - VECTOR)
    outside = (row < rows) & (column < columns) & ((lane >= VECTOR) | (lane < before))

    body = tl.load(x_body, mask=inside, other=float("-inf")).to(tl.float32)
    edges = tl.load(x_ptr + row * x_stride + column, mask=outside, other=float("-inf")).to(tl.float32)
    m = tl.maximum(tl.max(body, axis=1, keep_dims=True), tl.max(edges, axis=1, keep_dims=True))
    body -= m
    edges -= m
    body_numerator = tl.exp2(body * LOG2E)
    edges_numerator = tl.exp2(edges * LOG2E)
    d = tl.sum(body_numerator, axis=1, keep_dims=True) + tl.sum(edges_numerator, axis=1, keep_dims=True)
    if LOG:
        body -= tl.log(d)
        edges -= tl.log(d)
    else:
        body = body_numerator * (1.0 / d)
        edges = edges_numerator * (1.0 / d)
    tl.store(y_body, body, mask=inside)
    tl.store(y_ptr + row * y_stride + column, edges, mask=outside)


@planned
def softmax(x, log=False):
    """Softmax of each row of a matrix of 16-bit values.

    Falls back on `multi_row` where a row of y would not begin at the same place between vectors as that of x.

    Args:
        x: (rows, columns), float16 or bfloat16, at most MAX_COLUMNS columns; any row stride. log: give the
            logarithm of the softmax, (x − m) − log d, instead.

    Returns:
        y: (rows, columns), contiguous, dtype and device of x.

    Raises:
        TypeError, ValueError: an input it does not take; the message says what to do.
    """
    rows, columns = rows_and_columns(x, MAX_COLUMNS, DTYPES)
    if x.data_ptr() % 16 or (x.stride(0) - columns) % 8 or columns < 16:
        return multi_row.softmax.plan(x, log)
    if x.numel() == 0:
        return Plan(x)
    block = triton.next_power_of_2(columns)
    rows_each = max(1, 1_024 // block)
    return Plan(
        x,
        Launch(
            ragged_row_kernel, triton.cdiv(rows, rows_each), (OUTPUT, INPUT),
            columns, x.stride(0), rows, columns,
            ROWS=rows_each, BLOCK=block, LOG=log, num_warps=1,
        ),
    )  # fmt: skip
