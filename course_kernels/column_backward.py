"""The gradient of softmax along a dimension that is not the innermost one: read 2, write 1.

    softmax:      dx = y · (dy − Σ y·dy)
    log-softmax:  dx = dy − exp(y) · Σ dy

The same tiles as in `column`, of y and of dy; each sum runs down a column. Columns too long for a tile are
cut into chunks: one launch adds up each chunk, a small one adds those up, and a third one reads y and dy
again and writes.
"""

import math

import torch
import triton
import triton.language as tl

from .backward import gradient, summand
from .column import ENOUGH_PROGRAMS, wide
from .inputs import outer_length_inner, since_hopper
from .plan import INPUT, OUTPUT, SCRATCH, SECOND, Launch, Plan, planned

MAX_LENGTH = 512  # of a column that is kept on chip, twice: y and dy


@triton.jit
def column_kernel(
    dx_ptr, y_ptr, dy_ptr, y_outer, y_row, dy_outer, dy_row, outer, length, inner,
    UNIT: tl.constexpr, OUTER: tl.constexpr, LENGTH: tl.constexpr, INNER: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    inner *= UNIT  # as in column: so that Triton loads UNIT values at once
    tiles = tl.cdiv(inner, INNER)
    o = (tl.program_id(0) // tiles).to(tl.int64) * OUTER + tl.arange(0, OUTER)[:, None, None]
    row = tl.arange(0, LENGTH)[None, :, None].to(tl.int64)
    i = (tl.program_id(0) % tiles) * INNER + tl.arange(0, INNER)[None, None, :]
    mask = (o < outer) & (row < length) & (i < inner)
    y = tl.load(y_ptr + o * (y_outer * UNIT) + row * (y_row * UNIT) + i, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + o * (dy_outer * UNIT) + row * (dy_row * UNIT) + i, mask=mask, other=0.0)

    total = tl.sum(summand(wide(y), wide(dy), LOG), axis=1, keep_dims=True)
    dx = gradient(wide(y), wide(dy), total, LOG)
    tl.store(dx_ptr + (o * length + row) * inner + i, dx, mask=mask)


@triton.jit
def chunk_kernel(
    parts_ptr, y_ptr, dy_ptr, y_outer, y_row, dy_outer, dy_row, length, inner, chunks,
    UNIT: tl.constexpr, CHUNK: tl.constexpr, INNER: tl.constexpr, LOG: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()  # the next launch may begin: see split_row
    inner *= UNIT
    tiles = tl.cdiv(inner, INNER)
    chunk = tl.program_id(0) // tiles
    o = (chunk // chunks).to(tl.int64)
    row = ((chunk % chunks) * CHUNK + tl.arange(0, CHUNK)[:, None]).to(tl.int64)
    i = (tl.program_id(0) % tiles) * INNER + tl.arange(0, INNER)[None, :]
    mask = (row < length) & (i < inner)
    y = tl.load(y_ptr + o * (y_outer * UNIT) + row * (y_row * UNIT) + i, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + o * (dy_outer * UNIT) + row * (dy_row * UNIT) + i, mask=mask, other=0.0)
    part = tl.sum(summand(wide(y), wide(dy), LOG), axis=0, keep_dims=True)
    tl.store(parts_ptr + chunk.to(tl.int64) * inner + i, part, mask=i < inner)


@triton.jit
def total_kernel(
    parts_ptr, y_ptr, inner, chunks, SOME: tl.constexpr, INNER: tl.constexpr, EARLY: tl.constexpr
):
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    tiles = tl.cdiv(inner, INNER)
    o = (tl.program_id(0) // tiles).to(tl.int64)
    i = (tl.program_id(0) % tiles) * INNER + tl.arange(0, INNER)[None, :]
    first = parts_ptr + o * chunks * inner + i
    total = tl.zeros((1, INNER), parts_ptr.dtype.element_ty)
    for start in range(0, chunks, SOME):
        chunk = start + tl.arange(0, SOME)[:, None]
        some = tl.load(first + chunk * inner, mask=(chunk < chunks) & (i < inner), other=0.0)
        total += tl.sum(some, axis=0, keep_dims=True)
    tl.store(first, total, mask=i < inner)  # in the place of the first chunk's


@triton.jit
def finish_kernel(
    dx_ptr, parts_ptr, y_ptr, dy_ptr, y_outer, y_row, dy_outer, dy_row, length, inner, pieces, chunks,
    UNIT: tl.constexpr, ROWS: tl.constexpr, INNER: tl.constexpr, LOG: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    inner *= UNIT
    tiles = tl.cdiv(inner, INNER)
    program = tl.num_programs(0) - 1 - tl.program_id(0)  # backwards, as in column
    piece = program // tiles
    o = (piece // pieces).to(tl.int64)
    row = ((piece % pieces) * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
    i = (program % tiles) * INNER + tl.arange(0, INNER)[None, :]
    mask = (row < length) & (i < inner)
    y = tl.load(y_ptr + o * (y_outer * UNIT) + row * (y_row * UNIT) + i, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + o * (dy_outer * UNIT) + row * (dy_row * UNIT) + i, mask=mask, other=0.0)

    if EARLY:
        tl.extra.cuda.gdc_wait()
    total = tl.load(parts_ptr + o * chunks * inner + i, mask=i < inner, other=0.0)
    dx = gradient(wide(y), wide(dy), total, LOG)
    tl.store(dx_ptr + (o * length + row) * inner + i, dx, mask=mask, eviction_policy="evict_first")


@planned
def softmax_backward(y, dy, log=False):
    """The gradient of a softmax along the middle dimension.

    Args:
        y: (outer, length, inner), the output of softmax (or of log-softmax, with log); last stride 1. dy: the
            gradient of a loss by y; shape and dtype of y, last stride 1. log: y is a log-softmax.

    Returns:
        dx: (outer, length, inner), contiguous, dtype and device of y.

    Raises:
        TypeError, ValueError: an input it does not take.
    """
    outer, length, inner = outer_length_inner(y)
    outer_length_inner(dy)
    if dy.shape != y.shape or dy.dtype != y.dtype:
        raise ValueError(f"y and dy differ: {tuple(y.shape)} {y.dtype} and {tuple(dy.shape)} {dy.dtype}.")
    if y.numel() == 0:
        return Plan(y)
    itemsize = y.element_size()
    strides = y.stride(0), y.stride(1), dy.stride(0), dy.stride(1)
    unit = math.gcd(inner, *strides, 16)
    strides = tuple(stride // unit for stride in strides)
    columns = min(triton.next_power_of_2(inner), 128 // itemsize)
    tiles = triton.cdiv(inner, columns)
    rows = triton.next_power_of_2(length)
    values = 32 if itemsize <= 4 else 16  # a thread, of y and of dy

    def warps(n):
        return min(max(n // (32 * values), 1), 16)

    if length <= MAX_LENGTH and (outer * tiles >= ENOUGH_PROGRAMS or rows * columns <= 4_096):
        outers = max(1, min(1_024 // (rows * columns), triton.next_power_of_2(outer)))
        launch = Launch(
            column_kernel, triton.cdiv(outer, outers) * tiles, (OUTPUT, INPUT, SECOND),
            *strides, outer, length, inner // unit,
            UNIT=unit, OUTER=outers, LENGTH=rows, INNER=columns, LOG=log,
            num_warps=warps(outers * rows * columns),
        )  # fmt: skip
        return Plan(y, launch)
    chunk = 4 * 32 * values // columns  # four warps
    piece = max(1, chunk // 4)  # rows of a tile of the last launch
    chunks, pieces = triton.cdiv(length, chunk), triton.cdiv(length, piece)
    few = min(columns, 8)  # columns that one program of the second launch merges
    early = since_hopper(y)
    options = dict(INNER=columns, EARLY=early, num_warps=4)
    again = options | ({"launch_pdl": True} if early else {})
    return Plan(
        y,
        Launch(
            chunk_kernel, outer * tiles * chunks, (SCRATCH, INPUT, SECOND),
            *strides, length, inner // unit, chunks,
            UNIT=unit, CHUNK=chunk, LOG=log, **options,
        ),
        Launch(
            total_kernel, outer * triton.cdiv(inner, few), (SCRATCH, INPUT), inner, chunks,
            SOME=min(triton.next_power_of_2(chunks), 256), **again | dict(INNER=few),
        ),
        Launch(
            finish_kernel, outer * tiles * pieces, (OUTPUT, SCRATCH, INPUT, SECOND),
            *strides, length, inner // unit, pieces, chunks,
            UNIT=unit, ROWS=piece, LOG=log, **again,
        ),
        scratch=outer * chunks * inner,
        dtype=torch.float64 if itemsize == 8 else torch.float32,
    )  # fmt: skip
