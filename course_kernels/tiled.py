"""One program walks a row tile by tile: any width, read 2, write 1.

Past some width a row no longer fits on chip. Then it is walked twice: once for its maximum and sum, by the
online recurrence, and once to write the outputs. At 3MN elements of traffic it reaches at most 2/3 of a
copy once rows leave the cache. The second walk goes backwards, because the end of the row is what the cache
still holds.
"""

import triton
import triton.language as tl

from .inputs import rows_and_columns
from .online import merge
from .plan import INPUT, OUTPUT, Launch, Plan, planned

TILE = 4_096


@triton.jit
def tiled_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, TILE: tl.constexpr, LOG: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    y_ptr += row * y_stride
    lane = tl.arange(0, TILE)
    wide = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32

    # Each lane keeps the (m, d) of its own column of tiles; the lanes meet once, at the end.
    m = tl.full((TILE,), float("-inf"), wide)
    d = tl.zeros((TILE,), wide)
    for start in range(0, columns, TILE):
        column = start + lane
        x = tl.load(x_ptr + column, mask=column < columns, other=float("-inf")).to(wide)
        m, d = merge(m, d, x, 1.0)
    row_m = tl.max(m, axis=0)
    # The merge, all lanes at once
    d = tl.sum(d * tl.exp(m - tl.where(row_m == float("-inf"), 0.0, row_m)), axis=0)

    tiles = tl.cdiv(columns, TILE)
    for back in range(0, tiles):
        column = (tiles - 1 - back) * TILE + lane
        mask = column < columns
        x = tl.load(x_ptr + column, mask=mask, other=float("-inf")).to(wide)
        if LOG:
            y = (x - row_m) - tl.log(d)
        else:
            y = tl.exp(x - row_m) * (1.0 / d)
        tl.store(y_ptr + column, y, mask=mask)


@planned
def softmax(x, log=False):
    """Softmax of each row of a matrix of any width, tile by tile.

    Args:
        x: (rows, columns), float16, bfloat16, float32 or float64; any row stride.
        log: give the logarithm of the softmax, (x − m) − log d, instead.

    Returns:
        y: (rows, columns), contiguous, dtype and device of x.

    Raises:
        TypeError, ValueError: an input it does not take; the message says what to do.
    """
    rows, columns = rows_and_columns(x)
    if x.numel() == 0:
        return Plan(x)
    tile = min(TILE, triton.next_power_of_2(columns))
    return Plan(
        x,
        Launch(
            tiled_kernel, rows, (OUTPUT, INPUT), columns, x.stride(0), columns,
            TILE=tile, LOG=log, num_warps=min(max(tile // 256, 1), 16),
        ),
    )  # fmt: skip
