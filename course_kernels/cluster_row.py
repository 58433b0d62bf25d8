"""A cluster of programs shares a row and keeps it in registers: rows a little too wide for one program.

On GPUs since Hopper (2022), up to eight programs can be launched as a cluster: they run at the same time, and
a barrier makes them wait for each other. So a row is cut into slices, one for each program of a cluster. Each
reads its slice once, finds its (m, d), and leaves it in memory for the others; behind the barrier all merge
what they find there, and write their outputs from registers. Read 1, write 1.

Triton writes such a cluster as one program whose tiles are shared out: of a tile with CTAS rows (a CTA is
what CUDA calls a program), CTA number i holds row i. A reduction along a row stays inside one CTA.

On an H200 (figures: lab/recorded) it pays for rows out of alignment: 32,769 columns 0.93 of a copy, 50,257
columns 0.85, where resident_row, which cannot load ahead there, has 0.82. For other rows the two are level,
at 0.92. QuACK reaches 0.97 at 65,536: its programs leave their results in each other's shared memory, which
Triton 3.6 cannot address. Here they go through the L2 cache, and the compiled code waits for three trips to
it: MEMBAR.ALL.GPU, the barrier, and loads past the L1 cache.
"""

import math

import torch
import triton
import triton.language as tl
from triton import knobs

from . import split_row
from .inputs import rows_and_columns, since_hopper
from .online import merge
from .plan import INPUT, OUTPUT, SCRATCH, Launch, Plan, planned

MAX_SLICE = 8_448  # 132 values for each of 64 threads: more do not fit in registers
MAX_COLUMNS = 8 * MAX_SLICE  # larger clusters exist, but are slower than no cluster
LEAST = 256  # elements in a piece: four for each thread, as in large pieces, so that all have one layout
LOG2E = tl.constexpr(math.log2(math.e))
COMPILED = tl.constexpr(not knobs.runtime.interpret)


@triton.jit
def cluster_barrier():
    """Wait for all CTAs of the cluster; each sees what the others had written before."""
    if COMPILED:  # in the interpreter the whole cluster is one program
        tl.inline_asm_elementwise(
            "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; mov.u32 $0, 0;",
            "=r,~{memory}", [], dtype=tl.int32, is_pure=False, pack=1,
        )  # fmt: skip


@triton.jit
def cluster_row_kernel(
    y_ptr, x_ptr, parts_ptr, y_stride, x_stride, columns,
    CTAS: tl.constexpr, SIZES: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    y_ptr += row * y_stride
    m_ptr = parts_ptr + row * (2 * CTAS)
    d_ptr = m_ptr + CTAS
    cta = tl.arange(0, CTAS)[:, None]

    # A row in pieces, as in body_and_tail, each of them shared out: (CTAS, size)
    at = ()
    x = ()
    start = 0
    for i in tl.static_range(len(SIZES)):
        column = start + cta * SIZES[i] + tl.arange(0, SIZES[i])[None, :]
        start += CTAS * SIZES[i]
        if i + 1 < len(SIZES):  # only the last piece may pass the end of the row
            piece = tl.load(x_ptr + column)
        else:
            piece = tl.load(x_ptr + column, mask=column < columns, other=float("-inf"))
        at = at + (column,)
        x = x + (piece.to(m_ptr.dtype.element_ty),)

    # Each CTA's own maximum and sum, (CTAS, 1). A slice that is all −inf counts as empty, (−inf, 0).
    m = tl.max(x[0], axis=1, keep_dims=True)
    for i in tl.static_range(1, len(SIZES)):
        m = tl.maximum(m, tl.max(x[i], axis=1, keep_dims=True))
    anchor = tl.where(m == float("-inf"), 0.0, m)
    d = tl.zeros((CTAS, 1), m.dtype)
    y = ()
    for i in tl.static_range(len(SIZES)):
        numerator = tl.exp2((x[i] - anchor) * LOG2E)
        d += tl.sum(numerator, axis=1, keep_dims=True)
        y = y + (x[i] - anchor if LOG else numerator,)

    row_m = m
    row_d = d
    if CTAS > 1:
        tl.store(m_ptr + cta, m)
        tl.store(d_ptr + cta, d)
        cluster_barrier()
        row_m = float("-inf")
        row_d = 0.0
        for other in tl.static_range(CTAS):  # volatile: from the cache that all multiprocessors share
            their_m = tl.load(m_ptr + other, volatile=True)
            row_m, row_d = merge(row_m, row_d, their_m, tl.load(d_ptr + other, volatile=True))

    # From m, not from the anchor: an empty slice gets exp(−inf) = 0 and keeps its zeros
    scale = tl.exp2((m - row_m) * LOG2E) / row_d
    shift = (m - row_m) - tl.log(row_d)
    for i in tl.static_range(len(SIZES)):
        out = y[i] + shift if LOG else y[i] * scale
        if i + 1 < len(SIZES):
            tl.store(y_ptr + at[i], out)
        else:
            tl.store(y_ptr + at[i], out, mask=at[i] < columns)


@planned
def softmax(x, log=False):
    """Softmax of each row of a matrix, a cluster of programs a row.

    Falls back on `split_row` on a GPU without clusters.

    Args:
        x: (rows, columns), float16, bfloat16, float32 or float64, at most MAX_COLUMNS columns; any row
            stride. log: give the logarithm of the softmax, (x − m) − log d, instead.

    Returns:
        y: (rows, columns), contiguous, dtype and device of x.

    Raises:
        TypeError, ValueError: an input it does not take; the message says what to do.
    """
    rows, columns = rows_and_columns(x, MAX_COLUMNS)
    if not has_clusters(x):
        return split_row.softmax.plan(x, log)
    if x.numel() == 0:
        return Plan(x)
    ctas, sizes = pieces(columns)
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    launch = Launch(
        cluster_row_kernel, rows, (OUTPUT, INPUT, SCRATCH), columns, x.stride(0), columns,
        CTAS=ctas, SIZES=sizes, LOG=log, num_ctas=ctas,
        # About 128 values a thread, 40 registers for all else: few warps, with many loads each on the way
        num_warps=2, maxnreg=168,
    )  # fmt: skip
    return Plan(x, launch, scratch=rows * 2 * ctas, dtype=wide)


def has_clusters(x):
    """Whether programs can be launched in clusters where x is. In the interpreter one stands for all."""
    return knobs.runtime.interpret or since_hopper(x)


def pieces(columns):
    """(CTAS, sizes): slices of at most MAX_SLICE, in up to three powers of two, so that few lanes idle."""
    ctas = min(triton.next_power_of_2(triton.cdiv(columns, MAX_SLICE)), 8)
    sizes, rest = [], columns
    while rest > 0:
        each = triton.cdiv(rest, ctas)
        size = triton.next_power_of_2(each)
        if len(sizes) < 2 and size > each + each // 4:  # the last piece is rounded up, and may idle by 1/4
            size = triton.next_power_of_2(rest // ctas + 1) // 2
        size = max(size, LEAST)
        sizes.append(size)
        rest -= ctas * size
    return ctas, tuple(sizes)
