"""Many programs share a row, in two launches: any width, read 2, write 1, made for few long rows.

With one program a row, one long row keeps one multiprocessor busy and the rest of the GPU idle. Here a row
is cut into chunks. The first launch gives each chunk's (m, d); the second merges those of its row, and
writes the outputs. Between the two launches lies the only wait for all programs that every GPU has.

A launch takes a few microseconds, as long as a short row itself. So since Hopper (2022) the second launch may
begin while the first still runs: it reads its x, and waits for the (m, d) only then.

On an H200 one row of 16M float32 reaches 0.67 of a copy: three trips of 64 MB, of which the cache (60 MB)
saves little, are 2/3. One row of 128,256, in a CUDA graph, reaches 0.59; 0.46 if the second launch waits for
the end of the first.
"""

import torch
import triton
import triton.language as tl

from .inputs import rows_and_columns, since_hopper
from .online import merge
from .plan import INPUT, OUTPUT, SCRATCH, Launch, Plan, planned

SMALLEST_CHUNK, LARGEST_CHUNK = 2_048, 8_192  # elements
ENOUGH_PROGRAMS = 2_048  # enough for the largest GPU to be busy everywhere, all the time
MAX_CHUNKS = 262_144  # a program of the second launch reads the results of all chunks of its row at once


@triton.jit
def chunk_kernel(
    parts_ptr, x_ptr, x_stride, columns, chunks, parts, CHUNK: tl.constexpr, EARLY: tl.constexpr
):
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()  # the next launch may begin once all programs of this one have
    program = tl.program_id(0)
    row = (program // chunks).to(tl.int64)
    column = (program % chunks).to(tl.int64) * CHUNK + tl.arange(0, CHUNK)
    x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=float("-inf"))
    x = x.to(parts_ptr.dtype.element_ty)

    m = tl.max(x, axis=0)
    # A chunk that is all −inf counts as empty, (−inf, 0): its neighbours may hold numbers.
    d = tl.sum(tl.exp(x - tl.where(m == float("-inf"), 0.0, m)), axis=0)
    tl.store(parts_ptr + program, m)  # first all m, then all d
    tl.store(parts_ptr + parts + program, d)


@triton.jit
def finish_kernel(
    y_ptr, parts_ptr, x_ptr, y_stride, x_stride, columns, chunks, parts,
    CHUNK: tl.constexpr, CHUNKS: tl.constexpr, LOG: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    # Backwards: the last chunks read are still in the cache
    program = tl.num_programs(0) - 1 - tl.program_id(0)
    row = (program // chunks).to(tl.int64)

    column = (program % chunks).to(tl.int64) * CHUNK + tl.arange(0, CHUNK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=float("-inf"))
    x = x.to(parts_ptr.dtype.element_ty)

    if EARLY:
        tl.extra.cuda.gdc_wait()  # until the first launch has ended, and all its (m, d) can be seen
    chunk = tl.arange(0, CHUNKS)
    part = parts_ptr + row * chunks + chunk
    m = tl.load(part, mask=chunk < chunks, other=float("-inf"))
    d = tl.load(part + parts, mask=chunk < chunks, other=0.0)
    m, d = tl.reduce((m, d), 0, merge)

    if LOG:
        y = (x - m) - tl.log(d)
    else:
        y = tl.exp(x - m) * (1.0 / d)
    # Nobody reads y here: let it leave the cache first, and x stay.
    tl.store(y_ptr + row * y_stride + column, y, mask=mask, eviction_policy="evict_first")


@planned
def softmax(x, log=False):
    """Softmax of each row of a matrix of any width, many programs a row.

    Args:
        x: (rows, columns), float16, bfloat16, float32 or float64; any row stride.
        log: give the logarithm of the softmax, (x − m) − log d, instead.

    Returns:
        y: (rows, columns), contiguous, dtype and device of x.

    Raises:
        TypeError, ValueError: an input it does not take; the message says what to do.
    """
    rows, columns = rows_and_columns(x, MAX_CHUNKS * LARGEST_CHUNK)
    if x.numel() == 0:
        return Plan(x)
    chunk = chunk_size(rows, columns)
    chunks = triton.cdiv(columns, chunk)
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    parts = rows * chunks
    early = since_hopper(x)
    options = dict(CHUNK=chunk, EARLY=early, num_warps=min(max(chunk // 512, 1), 8))
    numbers = x.stride(0), columns, chunks, parts
    first = Launch(chunk_kernel, parts, (SCRATCH, INPUT), *numbers, **options)
    if early:
        options["launch_pdl"] = True  # programmatic dependent launch: CUDA's name for it
    options |= dict(CHUNKS=triton.next_power_of_2(chunks), LOG=log)
    second = Launch(finish_kernel, parts, (OUTPUT, SCRATCH, INPUT), columns, *numbers, **options)
    return Plan(x, first, second, scratch=2 * parts, dtype=wide)


def chunk_size(rows, columns):
    """Elements in a chunk, a power of two: as many as still give the GPU enough programs to share out."""
    chunk = triton.next_power_of_2(max(1, rows * columns // ENOUGH_PROGRAMS))
    return min(max(chunk, SMALLEST_CHUNK), LARGEST_CHUNK)
