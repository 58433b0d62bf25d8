"""From the losses of the rows to one number, and nobody waits for the GPU.

The mean is over the rows that are not ignored. How many those are must be known before the gradient is
written, and only the GPU knows. Asking it would stop the CPU until all that was launched before has run. So
a small launch counts them first, and the rows' own launch reads its result. A last one sums the losses.
Since Hopper (2022) a launch may begin while the one before it still runs (see `split_row`).
"""

import copy

import torch
import triton
import triton.language as tl

from .inputs import since_hopper
from .plan import INPUT, Launch, _context, planned

# The tensors of a call: plan.Launch asks for the input's place
X = INPUT
TARGET, LOSS, DX, COUNTS, LOSSES, SUMS, PARTS, SLOTS = range(X + 1, X + 9)
EACH = 8_192  # rows that one program counts or sums


@triton.jit
def count_kernel(counts_ptr, target_ptr, rows, ignore_index, each, BLOCK: tl.constexpr, EARLY: tl.constexpr):
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
    first = tl.program_id(0) * each
    last = tl.minimum(first + each, rows)
    count = tl.zeros((BLOCK,), tl.int32)
    for start in range(first, last, BLOCK):
        row = start + tl.arange(0, BLOCK)
        target = tl.load(target_ptr + row, mask=row < last, other=0)
        count += ((target != ignore_index) & (row < last)).to(tl.int32)
    tl.store(counts_ptr + tl.program_id(0), tl.sum(count, axis=0))


@triton.jit
def sum_kernel(sums_ptr, losses_ptr, n, each, BLOCK: tl.constexpr, EARLY: tl.constexpr):
    if EARLY:
        tl.extra.cuda.gdc_wait()
    first = tl.program_id(0) * each
    last = tl.minimum(first + each, n)
    total = tl.zeros((BLOCK,), losses_ptr.dtype.element_ty)
    for start in range(first, last, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(losses_ptr + i, mask=i < last, other=0.0)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit
def scale_kernel(
    dx_ptr, scale_ptr, dx_stride, scale_stride, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """dx times what the loss counts for in the end. That is 1 as a rule; then nothing is read or written."""
    for first in range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS):
        row = first + tl.arange(0, ROWS)[:, None].to(tl.int64)
        scale = tl.load(scale_ptr + row * scale_stride, mask=row < rows, other=1.0)
        if tl.max((scale != 1.0).to(tl.int32)) > 0:
            for start in range(0, columns, BLOCK):
                column = start + tl.arange(0, BLOCK)[None, :]
                mask = (row < rows) & (column < columns)
                dx = tl.load(dx_ptr + row * dx_stride + column, mask=mask, other=0.0)
                tl.store(dx_ptr + row * dx_stride + column, dx.to(scale.dtype) * scale, mask=mask)


class LossPlan:
    """The launches of a loss and the memory they need; as plan.Plan, with more than one result."""

    def __init__(self, x, reduction, differentiate, inplace):
        """
        Args:
            x: (rows, columns). reduction: "mean", "sum", or "rows" for each row's loss, not rounded.
            differentiate: whether the gradient is wanted too. inplace: in the memory of x.
        """
        self.rows, self.columns = x.shape
        self.reduction = reduction
        self.dx = X if inplace else DX
        self.dx_stride = x.stride(0) if inplace else self.columns
        self.losses = LOSSES
        self.wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        self.early = since_hopper(x) and reduction != "rows"
        self.counts = 0  # parts that the rows are counted in; 0: nobody asks
        self.launches, self.memory = [], {}
        self.otherwise = None  # the plan to follow should the GPU refuse a cooperative launch
        self.need(LOSSES, self.rows, self.wide)
        if differentiate and not inplace:
            self.need(DX, (self.rows, self.columns), x.dtype)

    def copy(self):
        """A plan that goes another way from here."""
        other = copy.copy(self)
        other.launches, other.memory = list(self.launches), dict(self.memory)
        return other

    def need(self, tensor, shape, dtype, allocate=torch.empty):
        self.memory[tensor] = allocate, shape, dtype

    def add(self, kernel, programs, tensors, *numbers, **options):
        tensors = [self.dx if tensor == DX else tensor for tensor in tensors]
        self.launches.append(Launch(kernel, programs, tensors, *numbers, **options))

    def count(self, ignore_index):
        """Count the rows for the mean, before their own launch."""
        if self.reduction != "mean":
            return
        self.counts = min(triton.next_power_of_2(triton.cdiv(self.rows, EACH)), 64)
        self.need(COUNTS, self.counts, torch.int32)
        self.add(
            count_kernel, self.counts, (COUNTS, TARGET),
            self.rows, ignore_index, triton.cdiv(self.rows, self.counts),
            BLOCK=1024, EARLY=self.early, num_warps=8,
        )  # fmt: skip

    def sum(self, dtype):
        """Sum the losses, after the rows' launch: in parts, if they are many."""
        if self.reduction == "rows":
            return
        self.need(LOSS, (), dtype)
        options = dict(BLOCK=1024, EARLY=self.early, num_warps=8)
        if self.early:
            options["launch_pdl"] = True
        parts, n = LOSSES, self.rows
        if n > 4 * EACH:
            programs = triton.cdiv(n, EACH)
            self.need(SUMS, programs, self.wide)
            self.add(sum_kernel, programs, (SUMS, LOSSES), n, EACH, **options)
            parts, n = SUMS, programs
        self.add(sum_kernel, 1, (LOSS, parts), n, n, **options)

    def __call__(self, x, target, *_):
        """(loss, dx); dx is None if none was asked for."""
        tensors = [None] * (SLOTS + 1)
        tensors[X], tensors[TARGET] = x, target
        for tensor, (allocate, shape, dtype) in self.memory.items():
            tensors[tensor] = allocate(shape, dtype=dtype, device=x.device)
        with _context(x):
            try:
                for launch in self.launches:
                    launch(tensors)
            except RuntimeError as refusal:  # another process may hold a part of the GPU
                if self.otherwise is None or "cooperative" not in str(refusal):
                    raise
                return self.otherwise(x, target)
        return tensors[LOSSES if self.reduction == "rows" else LOSS], tensors[DX]


class ScalePlan:
    """The launch of scale_kernel for matrices alike."""

    def __init__(self, dx, factor):
        rows, columns = dx.shape
        block = min(triton.next_power_of_2(columns), 4_096)
        each = max(1, 1_024 // block)
        self.launch = Launch(
            scale_kernel, min(triton.cdiv(rows, each), 1_024), (X, TARGET),
            dx.stride(0), factor.stride(0) if factor.dim() else 0, rows, columns,
            ROWS=each, BLOCK=block, num_warps=4,
        )  # fmt: skip

    def __call__(self, dx, factor):
        with _context(dx):
            self.launch([None] * X + [dx, factor])


@planned
def scale(dx, factor):
    """Multiply dx, (rows, columns), by factor, a scalar or (rows,), in its own memory."""
    return ScalePlan(dx, factor)
