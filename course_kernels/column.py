"""Softmax along a dimension that is not the innermost one, without a transposed copy: tiles of columns.

The values of such a column lie far apart, but those of neighbouring columns lie side by side. So a program
takes a tile of neighbouring columns: it loads a piece of each row, 128 bytes where it can, and reduces down
the tile. A tensor of any shape is seen as (outer, length, inner), with the softmax along the middle.

A tile that fits on chip is kept there, as `fused_row` keeps a row: read 1, write 1. Longer columns are cut
into chunks, as `split_row` cuts rows: one launch finds each chunk's (m, d) for each column, a small one
merges those, and a third one writes. Read 2, write 1.
"""

import math

import torch
import triton
import triton.language as tl

from .inputs import outer_length_inner, since_hopper
from .online import merge
from .packed_row import again
from .plan import INPUT, OUTPUT, SCRATCH, Launch, Plan, planned

MAX_LENGTH = 1_024  # of a column that is kept on chip (float64: half): beyond, a tile would be too narrow
ENOUGH_PROGRAMS = 128  # as many as large GPUs have multiprocessors
LOG2E = tl.constexpr(math.log2(math.e))


@triton.jit
def wide(x):
    """x in the dtype of all arithmetic."""
    return x if x.dtype == tl.float64 else x.to(tl.float32)


@triton.jit
def column_kernel(
    y_ptr, x_ptr, x_outer, x_row, outer, length, inner,
    UNIT: tl.constexpr, OUTER: tl.constexpr, LENGTH: tl.constexpr, INNER: tl.constexpr,
    PACKED: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    inner *= UNIT  # multiples of UNIT, as Triton sees here: so it loads UNIT values at once
    tiles = tl.cdiv(inner, INNER)
    o = (tl.program_id(0) // tiles).to(tl.int64) * OUTER + tl.arange(0, OUTER)[:, None, None]
    row = tl.arange(0, LENGTH)[None, :, None]
    i = (tl.program_id(0) % tiles) * INNER + tl.arange(0, INNER)[None, None, :]
    mask = (o < outer) & (row < length) & (i < inner)
    at = o * (x_outer * UNIT) + row.to(tl.int64) * (x_row * UNIT) + i
    x = tl.load(x_ptr + at, mask=mask, other=float("-inf"))  # (OUTER, LENGTH, INNER)

    m = tl.max(wide(x), axis=1, keep_dims=True)
    if PACKED:  # 16-bit values stay packed, and are widened anew each time: see packed_row
        x = again(x)
    d = tl.sum(tl.exp2((wide(x) - m) * LOG2E), axis=1, keep_dims=True)
    if PACKED:
        x = again(x)
    if LOG:
        y = (wide(x) - m) - tl.log(d)
    else:
        y = tl.exp2((wide(x) - m) * LOG2E) * (1.0 / d)
    tl.store(y_ptr + (o * length + row) * inner + i, y, mask=mask)


@triton.jit
def chunk_kernel(
    parts_ptr, x_ptr, x_outer, x_row, length, inner, chunks, parts,
    UNIT: tl.constexpr, CHUNK: tl.constexpr, INNER: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()  # the next launch may begin: see split_row
    inner *= UNIT
    tiles = tl.cdiv(inner, INNER)
    chunk = tl.program_id(0) // tiles  # counted through: chunks of the first o, of the second, ...
    o = (chunk // chunks).to(tl.int64)
    row = (chunk % chunks) * CHUNK + tl.arange(0, CHUNK)[:, None]
    i = (tl.program_id(0) % tiles) * INNER + tl.arange(0, INNER)[None, :]
    at = o * (x_outer * UNIT) + row.to(tl.int64) * (x_row * UNIT) + i
    x = wide(tl.load(x_ptr + at, mask=(row < length) & (i < inner), other=float("-inf")))  # (CHUNK, INNER)

    m = tl.max(x, axis=0, keep_dims=True)
    # A column that is all −inf here counts as empty, (−inf, 0): other chunks of it may hold numbers.
    d = tl.sum(tl.exp2((x - tl.where(m == float("-inf"), 0.0, m)) * LOG2E), axis=0, keep_dims=True)
    part = parts_ptr + chunk.to(tl.int64) * inner + i
    tl.store(part, m, mask=i < inner)
    tl.store(part + parts, d, mask=i < inner)


@triton.jit
def merge_kernel(
    parts_ptr, x_ptr, inner, chunks, parts,
    SOME: tl.constexpr, INNER: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()  # until all (m, d) of the first launch can be seen
    tiles = tl.cdiv(inner, INNER)
    o = (tl.program_id(0) // tiles).to(tl.int64)
    i = (tl.program_id(0) % tiles) * INNER + tl.arange(0, INNER)[None, :]
    first = parts_ptr + o * chunks * inner + i
    m = tl.full((1, INNER), float("-inf"), parts_ptr.dtype.element_ty)
    d = tl.zeros((1, INNER), parts_ptr.dtype.element_ty)
    for start in range(0, chunks, SOME):
        chunk = start + tl.arange(0, SOME)[:, None]
        mask = (chunk < chunks) & (i < inner)
        some_m = tl.load(first + chunk * inner, mask=mask, other=float("-inf"))
        some_d = tl.load(first + parts + chunk * inner, mask=mask, other=0.0)
        their_m = tl.max(some_m, axis=0, keep_dims=True)
        anchor = tl.where(their_m == float("-inf"), 0.0, their_m)
        their_d = tl.sum(some_d * tl.exp2((some_m - anchor) * LOG2E), axis=0, keep_dims=True)
        m, d = merge(m, d, their_m, their_d)
    tl.store(first, m, mask=i < inner)  # in the place of the first chunk's, which is merged by now
    tl.store(first + parts, d, mask=i < inner)


@triton.jit
def finish_kernel(
    y_ptr, parts_ptr, x_ptr, x_outer, x_row, length, inner, pieces, chunks, parts,
    UNIT: tl.constexpr, ROWS: tl.constexpr, INNER: tl.constexpr, LOG: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    inner *= UNIT
    tiles = tl.cdiv(inner, INNER)
    program = tl.num_programs(0) - 1 - tl.program_id(0)  # backwards: the end of x is still in the cache
    piece = program // tiles
    o = (piece // pieces).to(tl.int64)
    row = (piece % pieces) * ROWS + tl.arange(0, ROWS)[:, None]
    i = (program % tiles) * INNER + tl.arange(0, INNER)[None, :]
    mask = (row < length) & (i < inner)
    at = o * (x_outer * UNIT) + row.to(tl.int64) * (x_row * UNIT) + i
    x = tl.load(x_ptr + at, mask=mask, other=float("-inf"))  # (ROWS, INNER)

    if EARLY:
        tl.extra.cuda.gdc_wait()
    part = parts_ptr + o * chunks * inner + i
    m = tl.load(part, mask=i < inner, other=0.0)
    d = tl.load(part + parts, mask=i < inner, other=1.0)
    if LOG:
        y = (wide(x) - m) - tl.log(d)
    else:
        y = tl.exp2((wide(x) - m) * LOG2E) * (1.0 / d)
    tl.store(y_ptr + (o * length + row) * inner + i, y, mask=mask, eviction_policy="evict_first")


@planned
def softmax(x, log=False):
    """Softmax along the middle dimension.

    Args:
        x: (outer, length, inner), float16, bfloat16, float32 or float64; last stride 1, the others any. log:
            give the logarithm of the softmax, (x − m) − log d, instead.

    Returns:
        y: (outer, length, inner), contiguous, dtype and device of x.

    Raises:
        TypeError, ValueError: an input it does not take; the message says what to do.
    """
    outer, length, inner = outer_length_inner(x)
    if x.numel() == 0:
        return Plan(x)
    itemsize = x.element_size()
    unit = math.gcd(inner, x.stride(0), x.stride(1), 16)
    strides = x.stride(0) // unit, x.stride(1) // unit
    columns, threads = tile(length, inner, itemsize)
    tiles = triton.cdiv(inner, columns)
    rows = triton.next_power_of_2(length)
    if length <= MAX_LENGTH // (2 if itemsize == 8 else 1) and (
        outer * tiles >= ENOUGH_PROGRAMS or rows * columns <= 4_096
    ):
        outers = max(1, min(2_048 // (rows * columns), triton.next_power_of_2(outer)))
        launch = Launch(
            column_kernel, triton.cdiv(outer, outers) * tiles, (OUTPUT, INPUT),
            *strides, outer, length, inner // unit,
            UNIT=unit, OUTER=outers, LENGTH=rows, INNER=columns, LOG=log, **threads(outers * rows * columns),
        )  # fmt: skip
        return Plan(x, launch)

    chunk = 4 * 32 * (64 if itemsize <= 4 else 32) // columns  # four warps, 64 registers a thread for values
    rows = max(1, chunk // 4)  # of a tile of the last launch
    chunks, pieces = triton.cdiv(length, chunk), triton.cdiv(length, rows)
    parts = outer * chunks * inner
    few = min(columns, 8)  # columns that one program of the second launch merges
    early = since_hopper(x)
    options = dict(INNER=columns, EARLY=early, num_warps=4)
    again = options | ({"launch_pdl": True} if early else {})
    return Plan(
        x,
        Launch(
            chunk_kernel, outer * tiles * chunks, (SCRATCH, INPUT),
            *strides, length, inner // unit, chunks, parts,
            UNIT=unit, CHUNK=chunk, **options,
        ),
        Launch(
            merge_kernel, outer * triton.cdiv(inner, few), (SCRATCH, INPUT), inner, chunks, parts,
            SOME=min(triton.next_power_of_2(chunks), 256), **again | dict(INNER=few),
        ),
        Launch(
            finish_kernel, outer * tiles * pieces, (OUTPUT, SCRATCH, INPUT),
            *strides, length, inner // unit, pieces, chunks, parts,
            UNIT=unit, ROWS=rows, LOG=log, **again,
        ),
        scratch=2 * parts,
        dtype=torch.float64 if itemsize == 8 else torch.float32,
    )  # fmt: skip


def tile(length, inner, itemsize):
    """(columns of a tile, options of a launch for a tile of n elements), as measured on an H200."""
    short = length <= 256
    nbytes = 128 if not short else 64 if itemsize == 2 else 256
    packed = itemsize == 2 and not short

    def threads(n):
        values = 128 if packed else 64 if itemsize <= 4 else 32  # of each thread
        options = dict(PACKED=packed, num_warps=min(max(n // (32 * values), 1), 16))
        return options | (dict(maxnreg=128) if packed else {})

    return min(triton.next_power_of_2(inner), nbytes // itemsize), threads
