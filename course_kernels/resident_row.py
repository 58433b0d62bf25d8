"""Many programs share a row and keep it in registers: any width that fits on the whole chip, read 1, write 1.

A row is cut into slices, one for each of its programs. A program reads its slice once, publishes the slice's (m, d),
waits until its fellows have published theirs, merges them all, and writes its outputs from registers.

Waiting for another program is safe only if that program is running. So the launch is cooperative (all programs of
the grid run at once, or the launch fails), the grid is no larger than the GPU holds, and each team of programs
walks from row to row. The wait costs a trip through memory each way; to hide it, a team writes a row only after it
has asked for the next one, which arrives in shared memory meanwhile.
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

LOG2E = tl.constexpr(math.log2(math.e))
NOTHING = tl.constexpr(0)  # a slot nobody has written: as floats (0.0, 0.0), which no slice can give (d = 0 ⇒ m = −inf)
EMPTY = tl.constexpr(-8_388_608 << 32)  # the slot of an empty slice: the bits of (−inf, 0.0)


@triton.jit
def publish(slot_ptr, m, d, mask):
    """Write (m, d), two float32, as one 64-bit word: whoever reads it sees both or neither."""
    word = (m.to(tl.int32, bitcast=True).to(tl.int64) << 32) | (d.to(tl.int32, bitcast=True).to(tl.int64) & 0xFFFFFFFF)
    tl.atomic_xchg(slot_ptr, word, mask=mask, sem="relaxed")


# Not inlined: Triton prefetches the loads of a loop only if the loop holds no other loop.
@triton.jit(noinline=True)
def collect(slots_ptr, programs, expected, SLOTS: tl.constexpr):
    """Wait until all programs of a team have published, and merge what they found. Not expected: do not wait."""
    slot = tl.arange(0, SLOTS)
    mask = (slot < programs) & expected
    word = tl.load(slots_ptr + slot, mask=mask, other=EMPTY, volatile=True)
    while tl.sum((word == NOTHING).to(tl.int32), axis=0) > 0:
        word = tl.load(slots_ptr + slot, mask=mask, other=EMPTY, volatile=True)
    m = (word >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    d = word.to(tl.int32).to(tl.float32, bitcast=True)
    return tl.reduce((m, d), 0, merge)


@triton.jit
def resident_row_kernel(
    y_ptr, x_ptr, slots_ptr, y_stride, x_stride, rows, columns, slice_columns, programs,
    SLOTS: tl.constexpr, BLOCK: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    team = (tl.program_id(0) // programs).to(tl.int64)
    teams = tl.num_programs(0) // programs
    member = tl.program_id(0) % programs
    lane = tl.arange(0, BLOCK)
    column = member.to(tl.int64) * slice_columns + lane
    mask = (lane < slice_columns) & (column < columns)

    kept = tl.zeros((BLOCK,), tl.float32)
    m = 0.0
    d = 1.0
    # One turn more than the team has rows: each turn finishes the row before and starts its own.
    for row in tl.range(team, rows + teams, teams, num_stages=2):
        before = row - teams
        begun = row > team
        row_m = m
        row_d = d
        if SLOTS > 1:
            row_m, row_d = collect(slots_ptr + before * programs, programs, begun, SLOTS)
        if LOG:
            y = kept + ((m - row_m) - tl.log(row_d))
        else:
            y = kept * (tl.exp2((m - row_m) * LOG2E) / row_d)
        tl.store(y_ptr + before * y_stride + column, y, mask=mask & begun)

        x = tl.load(x_ptr + row * x_stride + column, mask=mask & (row < rows), other=float("-inf")).to(tl.float32)
        m = tl.max(x, axis=0)
        shifted = x - tl.where(m == float("-inf"), 0.0, m)  # an empty slice: exp(−inf), not exp(−inf + inf)
        numerator = tl.exp2(shifted * LOG2E)
        d = tl.sum(numerator, axis=0)
        kept = shifted if LOG else numerator
        if SLOTS > 1:
            publish(slots_ptr + row * programs + member, m, d, row < rows)
