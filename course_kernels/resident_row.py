"""Many programs share a row and keep it in registers: any width the chip can hold, read 1, write 1.

A row is cut into slices, one for each program of a team. A program reads its slice once, publishes the
slice's (m, d), waits until its fellows have published theirs, merges them all, and writes its outputs from
registers.

Waiting for another program is safe only if that program is running. So the launch is cooperative (all
programs of the grid run at once, or the launch fails), the grid is no larger than the GPU holds, and each
team walks from row to row. The wait costs a trip through memory each way. To hide it, a team writes a row
only after it has asked for the next one, which arrives in shared memory meanwhile.

Where its limits lie, on an H200 (figures: lab/recorded):
- About 0.92 of a copy, not 1. With all multiprocessors reading at once, 22 of the 132 are given a third more
  bandwidth: with equal shares of one kernel they end after 385 µs, the others after 510. A program that
  takes whichever row is next makes use of that (fused_row: 0.98); a team goes at the pace of its slowest
  member. Equal shares alone cost 5%; waiting costs the rest.
- From half a million columns on few teams are left, and when one waits, little else runs: 0.88 at 1M columns,
  0.72 at 4M, where one row takes half the registers of the chip. Nsight Compute counts each element read and
  written once there, and DRAM idle in between. A kernel that read each chunk twice, the second time from the
  cache, left out the wait, and reached 0.78: its limit is the cache, at 95% of its throughput.
- Rows out of alignment, such as 100,003 columns, 0.80; of 16 bits, 0.56. No load of 16 bytes fits into such
  rows, so none is made ahead. Loads that began up to 12 bytes before the row, at the last full word, were
  tried: with the masks that they need, they reached 0.72.
"""

import functools
import math

import torch
import triton
import triton.language as tl
from triton import knobs

from . import split_row
from .inputs import rows_and_columns
from .online import merge
from .plan import INPUT, OUTPUT, SCRATCH, Launch, Plan, planned

MAX_COLUMNS = 4_194_304  # beyond, one row fills the chip, nothing hides the wait, and split_row is as fast
LOG2E = tl.constexpr(math.log2(math.e))
# A slot nobody has written: as (m, d) it would be (0.0, 0.0), but only m = −inf has d = 0
NOTHING = tl.constexpr(0)
EMPTY = tl.constexpr(-8_388_608 << 32)  # the slot of an empty slice: the bits of (−inf, 0.0)


@triton.jit
def publish(slot_ptr, m, d, mask):
    """Write (m, d), two float32, as one 64-bit word: whoever reads it sees both or neither."""
    word = (m.to(tl.int32, bitcast=True).to(tl.int64) << 32) | (
        d.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF
    )
    tl.atomic_xchg(slot_ptr, word, mask=mask, sem="relaxed")


# Not inlined: Triton prefetches the loads of a loop only if the loop holds no other loop.
@triton.jit(noinline=True)
def collect(slots_ptr, programs, expected, SLOTS: tl.constexpr):
    """Wait until all programs of a team have published, and merge what they found. Not expected: do not
    wait."""
    # At most 32 slots at a time, a thread each: every warp sees them all, and none waits for another warp.
    WARP: tl.constexpr = 32 if SLOTS > 32 else SLOTS
    m = tl.full((WARP,), float("-inf"), tl.float32)
    d = tl.zeros((WARP,), tl.float32)
    missing = 1
    while missing > 0:
        m = tl.full((WARP,), float("-inf"), tl.float32)
        d = tl.zeros((WARP,), tl.float32)
        nothing = tl.zeros((WARP,), tl.int32)
        for start in tl.static_range(0, SLOTS, WARP):
            slot = start + tl.arange(0, WARP)
            word = tl.load(slots_ptr + slot, mask=(slot < programs) & expected, other=EMPTY, volatile=True)
            nothing += (word == NOTHING).to(tl.int32)
            their_m = (word >> 32).to(tl.int32).to(tl.float32, bitcast=True)
            their_d = word.to(tl.int32).to(tl.float32, bitcast=True)
            m, d = merge(m, d, their_m, their_d)
        missing = tl.sum(nothing, axis=0)
    return tl.reduce((m, d), 0, merge)


@triton.jit
def resident_row_kernel(
    y_ptr, x_ptr, slots_ptr, y_stride, x_stride, rows, columns, programs,
    SLOTS: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr, STAGES: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    team = (tl.program_id(0) // programs).to(tl.int64)
    teams = tl.num_programs(0) // programs
    member = tl.program_id(0) % programs

    # The last slice ends where the row ends. What it shares with the slice before, it reads but does not own:
    # so no load has a mask across its lanes. (EVEN: it shares nothing.)
    first = member * BLOCK if EVEN else tl.minimum(member * BLOCK, columns - BLOCK)
    lane = tl.arange(0, BLOCK)
    own = lane >= member * BLOCK - first
    x_ptr += first
    y_ptr += first

    m = 0.0
    kept = tl.zeros((BLOCK,), tl.float32)
    # Each turn finishes the row of the turn before, and starts its own: so there is one turn more than rows.
    for row in tl.range(team, rows + teams, teams, num_stages=STAGES):
        before = row - teams
        begun = row > team
        row_m, row_d = collect(slots_ptr + before * programs, programs, begun, SLOTS)
        if LOG:
            y = kept + ((m - row_m) - tl.log(row_d))
        else:
            y = kept * (tl.exp2((m - row_m) * LOG2E) / row_d)
        tl.store(y_ptr + before * y_stride + lane, y, mask=begun if EVEN else own & begun)

        x = tl.load(x_ptr + row * x_stride + lane, mask=row < rows, other=0.0).to(tl.float32)
        if not EVEN:
            x = tl.where(own, x, float("-inf"))
        m = tl.max(x, axis=0)
        shifted = x - tl.where(m == float("-inf"), 0.0, m)  # a slice that is all −inf is empty, not NaN
        numerator = tl.exp2(shifted * LOG2E)
        publish(slots_ptr + row * programs + member, m, tl.sum(numerator, axis=0), row < rows)
        kept = shifted if LOG else numerator


@planned
def softmax(x, log=False):
    """Softmax of each row of a matrix, a team of programs a row.

    Falls back on `split_row` where it cannot run: in the interpreter (one program at a time), on a GPU that
    does not hold a whole team, for float64, and for rows of fewer than 4,096 columns.

    Args:
        x: (rows, columns), float16, bfloat16, float32 or float64, at most MAX_COLUMNS columns; any row
            stride. log: give the logarithm of the softmax, (x − m) − log d, instead.

    Returns:
        y: (rows, columns), contiguous, dtype and device of x.

    Raises:
        TypeError, ValueError: an input it does not take; the message says what to do.
    """
    rows, columns = rows_and_columns(x, MAX_COLUMNS)
    block = block_size(columns)
    even = columns % block == 0
    copied_ahead = stages(x)
    # 128 values a thread and 40 registers for all else; where masks take more, 64 and 64.
    values, registers = (128, 168)
    if copied_ahead == 1 or (not even and x.element_size() == 4 and block < 16_384):
        values, registers = (64, 128)
        if log and x.element_size() == 2:  # here the compiler keeps an address for each value as well
            values, registers = (128, 255)
    warps = block // (32 * values)
    teams = 0
    if can_wait(x) and rows > 0 and columns >= block:
        programs = triton.cdiv(columns, block)
        at_once = programs_at_once(x.device.index, warps, block * x.element_size(), registers)
        teams = min(rows, at_once // programs)
    if teams == 0:
        return split_row.softmax.plan(x, log)
    launch = Launch(
        resident_row_kernel, teams * programs, (OUTPUT, INPUT, SCRATCH),
        columns, x.stride(0), rows, columns, programs,
        SLOTS=triton.next_power_of_2(programs), BLOCK=block, EVEN=even, STAGES=copied_ahead, LOG=log,
        num_warps=warps, maxnreg=registers, launch_cooperative_grid=True,
    )  # fmt: skip
    slots = dict(scratch=rows * programs, dtype=torch.int64, zeroed=True)
    return Plan(x, launch, **slots, otherwise=split_row.softmax.plan(x, log))


def block_size(columns):
    """Elements in a slice. A small team waits less, a small slice is read twice less often: so as few as make
    a team of at most 32, within bounds."""
    return min(max(triton.next_power_of_2(triton.cdiv(columns, 32)), 4_096), 16_384)


def stages(*matrices):
    """2, so that the next row is copied to shared memory ahead of time, if that copy can take 16 bytes at
    once; else 1.

    Triton knows that it can from addresses, strides and widths divisible by 16. Copies of 4 bytes each are
    slower than plain loads.
    """
    numbers = [n for x in matrices for n in (x.data_ptr(), x.stride(0), x.shape[1])]
    return 2 if all(n % 16 == 0 for n in numbers) else 1


def can_wait(x):
    """Whether a program may wait for another here, with two float32 in one word of memory."""
    return x.dtype != torch.float64 and x.is_cuda and not knobs.runtime.interpret


@functools.cache
def programs_at_once(device, warps, shared, registers):
    """How many programs of `warps` warps, with `shared` bytes of shared memory each, the GPU holds at one
    time."""
    gpu = torch.cuda.get_device_properties(device)
    threads = 32 * warps
    return gpu.multi_processor_count * min(
        gpu.regs_per_multiprocessor // (threads * registers),
        gpu.max_threads_per_multi_processor // threads,
        # 1 KB is the system's, a little is for reductions
        gpu.shared_memory_per_multiprocessor // (shared + 2_048),
    )
