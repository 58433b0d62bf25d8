"""The loss of rows wider than one program holds.

Without a gradient nothing has to be kept: `walk_loss_kernel` walks along the row with the online recurrence,
and any row is read once. With it, a row's exponentials must wait for the row's d. A team of programs keeps
them in registers, as in `resident_row`: logits read once, gradient written once. Where nobody can wait (few
rows, float64, the interpreter), a row is walked in chunks, and `chunk_gradient_kernel` reads it again.

Rows out of alignment: 50,257 columns of 16 bits start anywhere, and a load of 16 bytes only at multiples of
16 bytes. So the loads of 16 bytes start at the first such place in the row, and the few columns before it and
after the last one are read apart.
"""

import torch
import triton
import triton.language as tl

from . import resident_row, split_row
from .loss_mean import COUNTS, DX, LOSSES, PARTS, SLOTS, TARGET, X
from .online import merge
from .resident_row import collect, publish
from .row_loss import LOG2E, barrier, gradient, judge, origin, share_of_a_row, target_gradient, wide

WIDEST_TEAM = 524_288  # columns that a team takes
FEW = 3 * 2**22  # elements, half as many again as a large GPU has registers: fewer do not fill a wait
ENOUGH_ROWS = 512  # from here on, one program a row keeps the GPU busy


@triton.jit
def absorb(m, d, excess, x, live, start, SMOOTHING: tl.constexpr):
    """The online recurrence in each lane of (m, d): a thread holds whole columns of a tile."""
    new = tl.maximum(m, tl.max(x, axis=0))
    anchor = tl.where(new == float("-inf"), 0.0, new)
    d = d * tl.exp2((m - anchor) * LOG2E) + tl.sum(tl.exp2((x - anchor[None, :]) * LOG2E), axis=0)
    if SMOOTHING > 0:
        excess += tl.sum(tl.where(live, x - start, 0.0), axis=0)
    return new, d, excess


@triton.jit
def walk_loss_kernel(
    loss_ptr, parts_ptr, counts_ptr, x_ptr, target_ptr, x_stride, columns, ignore_index, chunk, chunks,
    WHOLE: tl.constexpr, ALIGN: tl.constexpr, DEPTH: tl.constexpr, LANES: tl.constexpr, STAGES: tl.constexpr,
    COUNTS: tl.constexpr, SMOOTHING: tl.constexpr, Z_LOSS: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """The loss of a row (WHOLE: the chunk is the row), or the (m, d, excess) of each chunk."""
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
    program = tl.program_id(0)
    row = (program // chunks).to(tl.int64)
    target = tl.load(target_ptr + row)
    hit = (target >= 0) & (target < columns)
    score = wide(tl.load(x_ptr + row * x_stride + target, mask=hit, other=0.0))
    start = origin(score)

    begin = row * x_stride + (program % chunks).to(tl.int64) * chunk
    end = tl.minimum(begin + chunk, row * x_stride + columns)
    first = begin
    if ALIGN > 1:
        first = (begin + (ALIGN - 1)) // ALIGN * ALIGN
    tile = tl.arange(0, DEPTH)[:, None] * LANES + tl.arange(0, LANES)[None, :]
    last = first + (end - first) // (DEPTH * LANES) * (DEPTH * LANES)

    m = tl.full((LANES,), float("-inf"), score.dtype)
    d = tl.zeros((LANES,), score.dtype)
    excess = tl.zeros((LANES,), score.dtype)
    for at in tl.range(first, last, DEPTH * LANES, num_stages=STAGES):  # full tiles, without a mask
        x = wide(tl.load(x_ptr + at + tile))
        m, d, excess = absorb(m, d, excess, x, True, start, SMOOTHING)
    live = last + tile < end
    x = wide(tl.load(x_ptr + last + tile, mask=live, other=float("-inf")))
    m, d, excess = absorb(m, d, excess, x, live, start, SMOOTHING)

    # The lanes meet once, and with them the columns before the first full load
    before = begin + tl.arange(0, ALIGN)
    live = before < tl.minimum(first, end)
    x = wide(tl.load(x_ptr + before, mask=live, other=float("-inf")))
    row_m = tl.maximum(tl.max(m, axis=0), tl.max(x, axis=0))
    anchor = tl.where(row_m == float("-inf"), 0.0, row_m)
    row_d = tl.sum(d * tl.exp2((m - anchor) * LOG2E), axis=0) + tl.sum(tl.exp2((x - anchor) * LOG2E), axis=0)
    row_excess = tl.sum(excess, axis=0) + tl.sum(tl.where(live, x - start, 0.0), axis=0)

    if WHOLE:
        share = share_of_a_row(counts_ptr, row_m.dtype, COUNTS, EARLY)
        loss, _, _ = judge(
            row_m, row_d, score, row_excess, target, columns, ignore_index, share, SMOOTHING, Z_LOSS
        )
        tl.store(loss_ptr + row, loss)
    else:
        parts = tl.num_programs(0)
        tl.store(parts_ptr + program, row_m)
        tl.store(parts_ptr + parts + program, row_d)
        tl.store(parts_ptr + 2 * parts + program, row_excess)


@triton.jit
def chunk_gradient_kernel(
    loss_ptr, dx_ptr, parts_ptr, counts_ptr, x_ptr, target_ptr, dx_stride, x_stride, columns, ignore_index,
    chunk, chunks, parts,
    CHUNK: tl.constexpr, CHUNKS: tl.constexpr, GRADIENT: tl.constexpr,
    COUNTS: tl.constexpr, SMOOTHING: tl.constexpr, Z_LOSS: tl.constexpr,
):  # fmt: skip
    """Merge the chunks of a row: one program a row, or with GRADIENT one a chunk, which it reads again."""
    program = tl.num_programs(0) - 1 - tl.program_id(0)  # backwards, as in split_row
    each = tl.num_programs(0) // (parts // chunks)
    row = (program // each).to(tl.int64)
    member = program % each
    dx_ptr += row * dx_stride
    x_ptr += row * x_stride
    target = tl.load(target_ptr + row)
    hit = (target >= 0) & (target < columns)
    # Only the program that writes the target's column reads it: if dx takes the place of x, in good time.
    mine = tl.where(hit, target // chunk, 0) == member if GRADIENT else True
    score = wide(tl.load(x_ptr + target, mask=hit & mine, other=0.0))

    c = tl.arange(0, CHUNKS)
    part = row * chunks + c
    their_m = tl.load(parts_ptr + part, mask=c < chunks, other=float("-inf"))
    their_d = tl.load(parts_ptr + parts + part, mask=c < chunks, other=0.0)
    m, d = tl.reduce((their_m, their_d), 0, merge)
    excess = 0.0
    if SMOOTHING > 0:
        excess = tl.sum(tl.load(parts_ptr + 2 * parts + part, mask=c < chunks, other=0.0), axis=0)
    share = share_of_a_row(counts_ptr, m.dtype, COUNTS, False)
    loss, weight, factor = judge(m, d, score, excess, target, columns, ignore_index, share, SMOOTHING, Z_LOSS)
    tl.store(loss_ptr + row, loss, mask=mine)
    if GRADIENT:
        column = member.to(tl.int64) * chunk + tl.arange(0, CHUNK)
        x = wide(tl.load(x_ptr + column, mask=column < columns, other=float("-inf")))
        dx = gradient(tl.exp2((x - m) * LOG2E), weight, factor, columns, SMOOTHING)
        tl.store(dx_ptr + column, dx, mask=column < columns, eviction_policy="evict_first")
        barrier()
        there = target_gradient(score, m, weight, factor, columns, SMOOTHING)
        tl.store(dx_ptr + target, there, mask=hit & mine & (target != ignore_index))


@triton.jit
def cut(base, columns, member, ALIGN: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """A row that starts at `base`, cut for a team: (where this member's slice starts, how many of its lanes
    belong to the member before, columns before the first full load, columns in full loads).

    The last slice ends where the full loads end, so that no load has a mask across its lanes.
    """
    first = base
    body = columns
    if ALIGN > 1:
        first = (base + (ALIGN - 1)) // ALIGN * ALIGN
        body = ((base + columns) // ALIGN * ALIGN - first).to(tl.int32)
    at = member * BLOCK if EVEN else tl.minimum(member * BLOCK, body - BLOCK)
    return first + at, member * BLOCK - at, (first - base).to(tl.int32), body


@triton.jit
def edges(columns, head, body, member, ALIGN: tl.constexpr):
    """The columns around the full loads, and which lanes hold one: the first member sees to them."""
    edge = tl.arange(0, 2 * ALIGN)
    column = tl.where(edge < ALIGN, edge, columns - 2 * ALIGN + edge)
    live = tl.where(edge < ALIGN, column < head, column >= head + body)
    return column, live & (member == 0)


@triton.jit
def team_loss_kernel(
    loss_ptr, dx_ptr, slots_ptr, counts_ptr, x_ptr, target_ptr, dx_stride, x_stride, rows, columns,
    ignore_index, programs,
    ALIGN: tl.constexpr, SLOTS: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr, STAGES: tl.constexpr,
    COUNTS: tl.constexpr, SMOOTHING: tl.constexpr, Z_LOSS: tl.constexpr,
):  # fmt: skip
    """As resident_row_kernel: a team walks from row to row, and finishes each one turn late."""
    team = (tl.program_id(0) // programs).to(tl.int64)
    teams = tl.num_programs(0) // programs
    member = tl.program_id(0) % programs
    share = share_of_a_row(counts_ptr, tl.float32, COUNTS, False)
    lane = tl.arange(0, BLOCK)

    # What a turn leaves to the next one
    m = 0.0
    score = 0.0
    target = tl.full((), -1, tl.int64)
    kept = tl.zeros((BLOCK,), tl.float32)
    kept_edge = tl.zeros((2 * ALIGN,), tl.float32)
    for row in tl.range(team, rows + teams, teams, num_stages=STAGES):
        before = row - teams
        begun = row > team
        row_m, row_d = collect(slots_ptr + before * programs, programs, begun, SLOTS)
        excess = 0.0
        if SMOOTHING > 0:
            _, excess = collect(slots_ptr + (rows + before) * programs, programs, begun, SLOTS)
        loss, weight, factor = judge(
            row_m, row_d, score, excess, target, columns, ignore_index, share, SMOOTHING, Z_LOSS
        )
        scale = tl.exp2((m - row_m) * LOG2E) * factor
        base = before * dx_stride
        at, shared, head, body = cut(base, columns, member, ALIGN, BLOCK, EVEN)
        dx = gradient(kept, weight, scale, columns, SMOOTHING)
        tl.store(dx_ptr + at + lane, dx, mask=begun if EVEN else (lane >= shared) & begun)
        if ALIGN > 1:
            column, live = edges(columns, head, body, member, ALIGN)
            dx = gradient(kept_edge, weight, scale, columns, SMOOTHING)
            tl.store(dx_ptr + base + column, dx, mask=live & begun)
        # Whoever owns the target's column writes it anew, and the loss.
        hit = (target >= 0) & (target < columns)
        inner = hit & (target >= head) & (target < head + body)
        mine = begun & (tl.where(inner, (target - head) // BLOCK, 0) == member)
        barrier()
        tl.store(loss_ptr + before, loss, mask=mine)
        there = target_gradient(score, row_m, weight, factor, columns, SMOOTHING)
        tl.store(dx_ptr + base + target, there, mask=mine & hit & (target != ignore_index))

        more = row < rows
        base = row * x_stride
        at, shared, head, body = cut(base, columns, member, ALIGN, BLOCK, EVEN)
        target = tl.load(target_ptr + row, mask=more, other=-1)
        x = wide(tl.load(x_ptr + at + lane, mask=more, other=0.0))
        score = wide(tl.load(x_ptr + base + target, mask=(target >= 0) & (target < columns), other=0.0))
        part = 0.0
        if SMOOTHING > 0:
            part = tl.sum(tl.where(lane >= shared, x - origin(score), 0.0), axis=0)
        if not EVEN:
            x = tl.where(lane >= shared, x, float("-inf"))
        m = tl.max(x, axis=0)
        if ALIGN > 1:
            column, live = edges(columns, head, body, member, ALIGN)
            x_edge = wide(tl.load(x_ptr + base + column, mask=live & more, other=float("-inf")))
            m = tl.maximum(m, tl.max(x_edge, axis=0))
            if SMOOTHING > 0:
                part += tl.sum(tl.where(live, x_edge - origin(score), 0.0), axis=0)
        anchor = tl.where(m == float("-inf"), 0.0, m)  # a slice that is all −inf is empty, not NaN
        kept = tl.exp2((x - anchor) * LOG2E)
        d = tl.sum(kept, axis=0)
        if ALIGN > 1:
            kept_edge = tl.exp2((x_edge - anchor) * LOG2E)
            d += tl.sum(kept_edge, axis=0)
        publish(slots_ptr + row * programs + member, m, d, more)
        if SMOOTHING > 0:  # pairs (1, part) merge by adding their parts
            one = tl.full((), 1.0, tl.float32)
            publish(slots_ptr + (rows + row) * programs + member, one, part, more)


def add(plan, x, ignore_index, differentiate, formula, options):
    """Add the launches for a matrix of logits to a plan."""
    if not differentiate:
        chunks = triton.cdiv(ENOUGH_ROWS, x.shape[0]) if x.shape[0] < ENOUGH_ROWS else 1
        by_chunks(plan, x, ignore_index, False, triton.cdiv(x.shape[1], chunks), formula, options)
    elif not by_teams(plan, x, ignore_index, formula):
        by_chunks(plan, x, ignore_index, True, split_row.chunk_size(*x.shape), formula, options)


def full_loads(x, *strides):
    """How many elements a load of 16 bytes takes, if rows that far apart have room for it somewhere; else 1.

    1, too, where all rows start at such a place, and end at one: there is nothing to find then.
    """
    each = 16 // x.element_size()
    columns = x.shape[1]
    if all(n % 16 == 0 for n in (x.data_ptr(), columns, *strides)):
        return 1
    # Rows of x and of dx must start at equal distances from such a place.
    alike = x.data_ptr() % 16 == 0 and all((stride - columns) % each == 0 for stride in strides)
    return each if alike else 1


def by_chunks(plan, x, ignore_index, differentiate, chunk, formula, options):
    rows, columns = x.shape
    warps = 4
    lanes = (
        16 // x.element_size() * 32 * warps
    )  # a load of 16 bytes for each thread, DEPTH of them for a tile
    chunk = min(max(triton.next_power_of_2(chunk), 4 * lanes), triton.next_power_of_2(columns))
    chunks = triton.cdiv(columns, chunk)
    whole = chunks == 1 and not differentiate
    align = full_loads(x, x.stride(0))
    copied_ahead = resident_row.can_wait(x) and (align > 1 or resident_row.stages(x) == 2)
    counts = COUNTS if plan.counts else X
    walk = formula if whole else formula | dict(COUNTS=0)
    plan.need(PARTS, 0 if whole else 3 * rows * chunks, plan.wide)
    plan.add(
        walk_loss_kernel, rows * chunks, (LOSSES, PARTS, counts, X, TARGET),
        x.stride(0), columns, ignore_index, columns if whole else chunk, chunks,
        WHOLE=whole, ALIGN=align, DEPTH=4, LANES=lanes, STAGES=4 if copied_ahead else 1,
        num_warps=warps, **walk, **(options if whole else dict(EARLY=False)),
    )  # fmt: skip
    if not whole:
        plan.add(
            chunk_gradient_kernel, rows * (chunks if differentiate else 1),
            (LOSSES, DX if differentiate else X, PARTS, counts, X, TARGET),
            plan.dx_stride, x.stride(0), columns, ignore_index, chunk, chunks, rows * chunks,
            CHUNK=chunk if differentiate else 1, CHUNKS=triton.next_power_of_2(chunks),
            GRADIENT=differentiate, num_warps=min(max(chunk // 512, 1), 8) if differentiate else 4, **formula,
        )  # fmt: skip


def by_teams(plan, x, ignore_index, formula):
    """True if the plan is for a team; False where nobody can wait, or too few rows hide the wait."""
    rows, columns = x.shape
    block = resident_row.block_size(columns)
    if not resident_row.can_wait(x) or rows * columns < FEW or not block < columns <= WIDEST_TEAM:
        return False
    align = full_loads(x, x.stride(0), plan.dx_stride)
    copied_ahead = 2 if align > 1 else resident_row.stages(x)
    even = columns % block == 0 and align == 1
    values, registers = values_and_registers(even, copied_ahead, x.element_size())
    warps = block // (32 * values)
    programs = triton.cdiv(columns, block)
    at_once = resident_row.programs_at_once(x.device.index, warps, block * x.element_size(), registers)
    teams = min(rows, at_once // programs)
    if teams == 0:
        return False
    plan.otherwise = plan.copy()
    by_chunks(plan.otherwise, x, ignore_index, True, split_row.chunk_size(*x.shape), formula, {})
    plan.otherwise.sum(x.dtype)
    words = 2 if formula["SMOOTHING"] else 1
    plan.need(SLOTS, (words, rows, programs), torch.int64, torch.zeros)
    plan.add(
        team_loss_kernel, teams * programs, (LOSSES, DX, SLOTS, COUNTS if plan.counts else X, X, TARGET),
        plan.dx_stride, x.stride(0), rows, columns, ignore_index, programs,
        ALIGN=align, SLOTS=triton.next_power_of_2(programs), BLOCK=block, EVEN=even, STAGES=copied_ahead,
        num_warps=warps, maxnreg=registers, launch_cooperative_grid=True, **formula,
    )  # fmt: skip
    return True


def values_and_registers(even, copied_ahead, itemsize):
    """Of each thread in a team, as in resident_row; where masks take registers too, fewer values."""
    return (64, 128) if copied_ahead == 1 or (not even and itemsize == 4) else (128, 168)
