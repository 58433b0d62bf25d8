"""A cluster of programs shares a row and keeps it in registers: rows too wide for one program, and rows that
begin anywhere. Read 1, write 1.

The GPU schedules clusters as it does programs: the next row goes to whichever multiprocessors are free first,
so none has to keep the pace of the slowest, as in the teams of resident_row. In a cluster each thread finds
the maximum and the sum of its own values, and `cluster` merges them.

Memory is read fastest 16 bytes at a time, from addresses that 16 divides, and rows of 50,257 values of 2
bytes begin at any even address. So, as in `ragged_row`, the whole vectors inside a row are its body, and the
up to seven values before them and behind are its edges, one for each of the first threads. 16-bit values are
kept as they came, as in `packed_row`; of float32 the numerators are kept.

On an H200, shares of a copy: 0.97 to 0.99 at 65,536, 131,072 and 151,936 columns, 0.97 and (float32) 0.96 at
262,144; out of alignment 0.98 at bfloat16 50,257, 0.95 at float32 100,003. Fewer CTAs of more values a thread
are faster as long as the registers hold them: at bfloat16 131,072, 8 CTAs reach 0.85 where 4 reach 0.98 to
1.00. So the weak widths are those just past what 2, 4 or 8 CTAs hold: bfloat16 156,000 has 0.86.
"""

import math

import triton
import triton.language as tl
from triton import knobs

from . import split_row
from .cluster import merge_cluster, open_slots
from .inputs import rows_and_columns, since_hopper
from .packed_row import again
from .plan import INPUT, OUTPUT, Launch, Plan, planned

MAX_CTAS = 16
# Values that a thread can keep without spilling, and the warps of a CTA that were fastest with them
VALUES, WARPS = {2: 152, 4: 104}, {2: 8, 4: 16}
IN_FEWER_WARPS = {2: 76, 4: 104}  # values a thread in a row that does not need all these warps
MAX_COLUMNS = MAX_CTAS * 32 * 16 * VALUES[4]
LOG2E = tl.constexpr(math.log2(math.e))


@triton.jit
def cluster_row_kernel(
    y_ptr, x_ptr, y_stride, x_stride, columns,
    CTAS: tl.constexpr, WARPS: tl.constexpr, VECTOR: tl.constexpr, STEPS: tl.constexpr, WHOLE: tl.constexpr,
    EDGES: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    slots = open_slots(CTAS, WARPS)
    PACKED: tl.constexpr = VECTOR == 8
    THREADS: tl.constexpr = CTAS * WARPS * 32
    row = tl.program_id(0).to(tl.int64)
    thread = tl.arange(0, CTAS)[:, None] * (WARPS * 32) + tl.arange(0, WARPS * 32)[None, :]
    lane = tl.arange(0, VECTOR)[None, None, :]

    before = 0  # values before the first vector
    if EDGES:
        before = ((VECTOR - row * x_stride % VECTOR) % VECTOR).to(tl.int32)
    vectors = tl.maximum(columns - before, 0) // VECTOR
    x_body = x_ptr + tl.multiple_of(row * x_stride + before, VECTOR)
    y_body = y_ptr + tl.multiple_of(row * y_stride + before, VECTOR)

    # Each thread's own maximum, (CTAS, 32 · WARPS)
    m = tl.full((CTAS, WARPS * 32), float("-inf"), tl.float32)
    if EDGES:
        column = tl.where(thread < VECTOR, thread, before + vectors * VECTOR + thread - VECTOR)
        outside = (column < columns) & tl.where(thread < VECTOR, thread < before, thread < 2 * VECTOR)
        edge = tl.load(x_ptr + row * x_stride + column, mask=outside, other=float("-inf")).to(tl.float32)
        m = edge
    x = ()
    for i in tl.static_range(STEPS):
        vector = (i * THREADS + thread)[:, :, None]
        if i < WHOLE:  # all vectors lie inside the row
            piece = tl.load(x_body + vector * VECTOR + lane)
        else:
            piece = tl.load(x_body + vector * VECTOR + lane, mask=vector < vectors, other=float("-inf"))
        m = tl.maximum(m, tl.max(piece.to(tl.float32), axis=2))
        x = x + (piece,)

    # And its sum. A thread whose values are all −inf counts as empty, (−inf, 0).
    d = tl.zeros((CTAS, WARPS * 32), tl.float32)
    anchor = tl.where(m == float("-inf"), 0.0, m)
    y = ()
    for i in tl.static_range(STEPS):
        piece = again(x[i]) if PACKED else x[i]
        shifted = piece.to(tl.float32) - anchor[:, :, None]
        numerator = tl.exp2(shifted * LOG2E)
        d += tl.sum(numerator, axis=2)
        y = y + (piece if PACKED else shifted if LOG else numerator,)
    if EDGES:
        d += tl.exp2((edge - anchor) * LOG2E)

    row_m, row_d = merge_cluster(m, d, slots, CTAS, WARPS)

    if EDGES:
        if LOG:
            out = (edge - row_m) - tl.log(row_d)
        else:
            out = tl.exp2((edge - row_m) * LOG2E) / row_d
        tl.store(y_ptr + row * y_stride + column, out, mask=outside)
    # From m, not from the anchor: a thread without values gets exp(−inf) = 0 and keeps its zeros
    scale = (tl.exp2((m - row_m) * LOG2E) / row_d)[:, :, None]
    shift = ((m - row_m) - tl.log(row_d))[:, :, None]
    row_m = row_m[:, :, None]
    log_d = (tl.log(row_d) if LOG else tl.log2(row_d))[:, :, None]
    for i in tl.static_range(STEPS):
        if PACKED:
            shifted = again(y[i]).to(tl.float32) - row_m
            out = shifted - log_d if LOG else tl.exp2(shifted * LOG2E - log_d)
        else:
            out = y[i] + shift if LOG else y[i] * scale
        vector = (i * THREADS + thread)[:, :, None]
        if i < WHOLE:
            tl.store(y_body + vector * VECTOR + lane, out)
        else:
            tl.store(y_body + vector * VECTOR + lane, out, mask=vector < vectors)


@planned
def softmax(x, log=False):
    """Softmax of each row of a matrix, a cluster of programs a row.

    Falls back on `split_row` where it does not fit.

    Args:
        x: (rows, columns), float16, bfloat16, float32 or float64, at most MAX_COLUMNS columns; any row
            stride. log: give the logarithm of the softmax, (x − m) − log d, instead.

    Returns:
        y: (rows, columns), contiguous, dtype and device of x.

    Raises:
        TypeError, ValueError: an input it does not take; the message says what to do.
    """
    rows, columns = rows_and_columns(x, MAX_COLUMNS)
    if not (has_clusters(x) and fits(x)):
        return split_row.softmax.plan(x, log)
    if x.numel() == 0:
        return Plan(x)
    ctas, warps, registers = cluster(rows, columns, x.element_size())
    vector = 16 // x.element_size()
    # Triton sees from numbers that 16 divides that vectors are aligned; else it is told, by way of the edges
    edges = columns % 16 > 0 or x.stride(0) % 16 > 0
    threads = ctas * warps * 32
    launch = Launch(
        cluster_row_kernel, rows, (OUTPUT, INPUT), columns, x.stride(0), columns,
        CTAS=ctas, WARPS=warps, VECTOR=vector, STEPS=triton.cdiv(columns // vector, threads),
        WHOLE=(columns - edges * (vector - 1)) // vector // threads, EDGES=edges, LOG=log,
        num_ctas=ctas, num_warps=warps, maxnreg=registers,
    )  # fmt: skip
    return Plan(x, launch)


def has_clusters(x):
    """Whether programs can be launched in clusters where x is. In the interpreter one stands for all."""
    return knobs.runtime.interpret or since_hopper(x)


def fits(x):
    """Whether the rows of x begin at the same places between vectors of 16 bytes as those of y."""
    vector = 16 // x.element_size()
    return x.element_size() <= 4 and x.data_ptr() % 16 == 0 and (x.stride(0) - x.shape[1]) % vector == 0


def cluster(rows, columns, itemsize):
    """(CTAS, warps of each, registers a thread): as few as hold the row, of many values a thread; but where
    few rows leave multiprocessors idle, more."""
    values, warps = VALUES[itemsize], WARPS[itemsize]
    if columns > MAX_CTAS * warps * 32 * values:
        warps = 16
    while warps > 1 and columns <= warps * 16 * IN_FEWER_WARPS[itemsize]:
        warps //= 2
    ctas = triton.next_power_of_2(triton.cdiv(columns, warps * 32 * values))
    while ctas < MAX_CTAS and rows * ctas < 512 and columns > ctas * 4096:
        ctas, warps = 2 * ctas, 8
    if itemsize == 4:
        return ctas, warps, 128 if warps == 16 else 168
    each = columns // (ctas * warps * 32)
    return ctas, warps, 128 if each > 92 or warps == 16 else 96 if each > 68 else 80
