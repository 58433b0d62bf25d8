"""The gradient of softmax and of log-softmax, from the output y and its gradient dy: read 2, write 1.

    softmax:      dx = y · (dy − Σ y·dy)
    log-softmax:  dx = dy − exp(y) · Σ dy

Each sum runs along the row: the same shape of work as the forward pass, with one sum in place of (m, d). So
there are the same three ways to do it: rows that fit one program, rows shared by a team that waits, rows in
two launches.
"""

import math

import torch
import triton
import triton.language as tl

from . import split_row
from .inputs import rows_and_columns
from .plan import INPUT, OUTPUT, SCRATCH, SECOND, Launch, Plan, planned
from .resident_row import can_wait, collect, programs_at_once, publish, stages

LOG2E = tl.constexpr(math.log2(math.e))
WIDEST_ROW = 16_384  # columns that one program takes whole; of float64 half as many, or it spills
WIDEST_TEAM = 524_288  # columns that a team takes


@triton.jit
def summand(y, dy, LOG: tl.constexpr):
    """What is summed along the row."""
    return dy if LOG else y * dy


@triton.jit
def gradient(y, dy, total, LOG: tl.constexpr):
    """dx, from the row's total."""
    return dy - tl.exp2(y * LOG2E) * total if LOG else y * (dy - total)


@triton.jit
def rows_kernel(
    dx_ptr, y_ptr, dy_ptr, dx_stride, y_stride, dy_stride, rows, columns,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < columns)
    y = tl.load(y_ptr + row * y_stride + column, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + row * dy_stride + column, mask=mask, other=0.0)
    if y.dtype != tl.float64:
        y = y.to(tl.float32)
        dy = dy.to(tl.float32)
    total = tl.sum(summand(y, dy, LOG), axis=1, keep_dims=True)
    tl.store(dx_ptr + row * dx_stride + column, gradient(y, dy, total, LOG), mask=mask)


@triton.jit
def team_kernel(
    dx_ptr, y_ptr, dy_ptr, slots_ptr, dx_stride, y_stride, dy_stride, rows, columns, programs,
    SLOTS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    # As resident_row_kernel: a team walks from row to row, and finishes each one turn late.
    team = (tl.program_id(0) // programs).to(tl.int64)
    teams = tl.num_programs(0) // programs
    member = tl.program_id(0) % programs
    first = tl.minimum(member * BLOCK, columns - BLOCK)
    lane = tl.arange(0, BLOCK)
    own = lane >= member * BLOCK - first
    dx_ptr += first
    y_ptr += first
    dy_ptr += first

    y = tl.zeros((BLOCK,), y_ptr.dtype.element_ty)
    dy = tl.zeros((BLOCK,), dy_ptr.dtype.element_ty)
    for row in tl.range(team, rows + teams, teams, num_stages=STAGES):
        before = row - teams
        begun = row > team
        _, total = collect(slots_ptr + before * programs, programs, begun, SLOTS)
        dx = gradient(y.to(tl.float32), dy.to(tl.float32), total, LOG)
        tl.store(dx_ptr + before * dx_stride + lane, dx, mask=own & begun)

        y = tl.load(y_ptr + row * y_stride + lane, mask=row < rows, other=0.0)
        dy = tl.load(dy_ptr + row * dy_stride + lane, mask=row < rows, other=0.0)
        part = tl.where(own, summand(y.to(tl.float32), dy.to(tl.float32), LOG), 0.0)
        # Pairs (1, d) merge by adding their d.
        publish(
            slots_ptr + row * programs + member,
            tl.full((), 1.0, tl.float32),
            tl.sum(part, axis=0),
            row < rows,
        )


@triton.jit
def chunk_kernel(
    part_ptr, y_ptr, dy_ptr, y_stride, dy_stride, columns, chunks, CHUNK: tl.constexpr, LOG: tl.constexpr
):
    program = tl.program_id(0)
    row = (program // chunks).to(tl.int64)
    column = (program % chunks).to(tl.int64) * CHUNK + tl.arange(0, CHUNK)
    mask = column < columns
    wide = part_ptr.dtype.element_ty
    y = tl.load(y_ptr + row * y_stride + column, mask=mask, other=0.0).to(wide)
    dy = tl.load(dy_ptr + row * dy_stride + column, mask=mask, other=0.0).to(wide)
    tl.store(part_ptr + program, tl.sum(summand(y, dy, LOG), axis=0))


@triton.jit
def finish_kernel(
    dx_ptr, part_ptr, y_ptr, dy_ptr, dx_stride, y_stride, dy_stride, columns, chunks,
    CHUNK: tl.constexpr, CHUNKS: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    program = tl.num_programs(0) - 1 - tl.program_id(0)  # backwards, as in split_row
    row = (program // chunks).to(tl.int64)
    chunk = tl.arange(0, CHUNKS)
    total = tl.sum(tl.load(part_ptr + row * chunks + chunk, mask=chunk < chunks, other=0.0), axis=0)
    column = (program % chunks).to(tl.int64) * CHUNK + tl.arange(0, CHUNK)
    mask = column < columns
    y = tl.load(y_ptr + row * y_stride + column, mask=mask, other=0.0).to(total.dtype)
    dy = tl.load(dy_ptr + row * dy_stride + column, mask=mask, other=0.0).to(total.dtype)
    tl.store(dx_ptr + row * dx_stride + column, gradient(y, dy, total, LOG), mask=mask)


@planned
def softmax_backward(y, dy, log=False):
    """The gradient of each row of a softmax.

    Args:
        y: (rows, columns), the output of softmax (or of log-softmax, with log), any float dtype of
            `inputs.DTYPES`. dy: (rows, columns), the gradient of a loss by y; dtype of y. log: y is a log-
            softmax.

    Returns:
        dx: (rows, columns), contiguous, dtype and device of y. Neither input is written.

    Raises:
        TypeError, ValueError: an input it does not take; the message says what to do.
    """
    rows, columns = rows_and_columns(y)
    rows_and_columns(dy)
    if dy.shape != y.shape or dy.dtype != y.dtype:
        raise ValueError(f"y and dy differ: {tuple(y.shape)} {y.dtype} and {tuple(dy.shape)} {dy.dtype}.")
    if y.numel() == 0:
        return Plan(y)
    if columns <= WIDEST_ROW // (2 if y.element_size() == 8 else 1):
        return by_rows(y, dy, log)
    plan = by_teams(y, dy, log) if columns <= WIDEST_TEAM and can_wait(y) else None
    return plan or by_chunks(y, dy, log)


def by_rows(y, dy, log):
    rows, columns = y.shape
    block = triton.next_power_of_2(columns)
    each = max(1, 1024 // block)
    return Plan(
        y,
        Launch(
            rows_kernel, triton.cdiv(rows, each), (OUTPUT, INPUT, SECOND),
            columns, y.stride(0), dy.stride(0), rows, columns,
            ROWS=each, BLOCK=block, LOG=log, num_warps=min(max(each * block // 512, 1), 32),
        ),
    )  # fmt: skip


def by_teams(y, dy, log):
    """None where the GPU does not hold a whole team."""
    rows, columns = y.shape
    copied_ahead = stages(y, dy)
    # 64 values a thread take 128 registers; of 16 bits, kept so, 80. Loads of one value each have room for
    # 32.
    block, warps = (8_192, 8) if copied_ahead == 2 else (4_096, 8)
    registers = 128 if y.element_size() == 4 and copied_ahead == 2 else 80
    programs = triton.cdiv(columns, block)
    shared = 2 * block * y.element_size()
    teams = min(rows, programs_at_once(y.device.index, warps, shared, registers) // programs)
    if teams == 0:
        return None
    launch = Launch(
        team_kernel, teams * programs, (OUTPUT, INPUT, SECOND, SCRATCH),
        columns, y.stride(0), dy.stride(0), rows, columns, programs,
        SLOTS=triton.next_power_of_2(programs), BLOCK=block, STAGES=copied_ahead, LOG=log,
        num_warps=warps, maxnreg=registers, launch_cooperative_grid=True,
    )  # fmt: skip
    slots = dict(scratch=rows * programs, dtype=torch.int64, zeroed=True)
    return Plan(y, launch, **slots, otherwise=by_chunks(y, dy, log))


def by_chunks(y, dy, log):
    rows, columns = y.shape
    chunk = split_row.chunk_size(rows, columns)
    chunks = triton.cdiv(columns, chunk)
    wide = torch.float64 if y.dtype == torch.float64 else torch.float32
    options = dict(CHUNK=chunk, LOG=log, num_warps=min(max(chunk // 512, 1), 16))
    numbers = y.stride(0), dy.stride(0), columns, chunks
    first = Launch(chunk_kernel, rows * chunks, (SCRATCH, INPUT, SECOND), *numbers, **options)
    options["CHUNKS"] = triton.next_power_of_2(chunks)
    tensors = (OUTPUT, SCRATCH, INPUT, SECOND)
    second = Launch(finish_kernel, rows * chunks, tensors, columns, *numbers, **options)
    return Plan(y, first, second, scratch=rows * chunks, dtype=wide)
