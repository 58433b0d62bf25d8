"""A row on several GPUs: softmax and cross-entropy of a matrix whose columns are split across processes.

A vocabulary of 256,000 columns for long sequences does not stay on one GPU, so tensor parallelism gives each
process some columns of every row. To gather a row would send all of it. But (m, d) says all that a stretch of
a row has to tell, and the merge that joins lanes, tiles and programs joins processes as well:

    1. each process finds (m, d) of its own columns                       reads its part once
    2. all-reduce, maximum:   m = max of all m                            one number a row
    3. all-reduce, sum:       d = sum of all d · exp(own m − m)           one number a row
    4. each process writes its own columns of the result                  reads its part again, writes it once

The maximum must come first: only with it known are the sums measured from the same point, so that they can be
added. Softmax's gradient needs a third number a row, the sum of y·dy. A loss needs its target's score, which
one process has; its gradient needs nothing more.

The merge is that of Milakov and Gimelshein ("Online normalizer calculation for softmax", 2018), which they
use within one GPU. Cross-entropy in this manner is Megatron-LM's (Shoeybi et al., 2019; its code,
`tensor_parallel/cross_entropy.py`): there, every process has equally many columns, so each knows from its
rank which are its own, and the sums are taken after the maximum is known, in a second walk. Here shards may
differ, or be empty. So each process says with its maxima how many columns it has; and its sums, measured from
its own maxima, are found in the first walk and rescaled, which spares one read.
"""

import math

import torch
import torch.distributed as dist
import triton
import triton.language as tl

from . import backward, split_row
from .inputs import rows_and_columns

REDUCTIONS = ("mean", "sum", "none")


@triton.jit
def chunk_of(program, columns, chunks, CHUNK: tl.constexpr):
    """Which elements a program takes: (row, columns, mask)."""
    column = (program % chunks).to(tl.int64) * CHUNK + tl.arange(0, CHUNK)
    return (program // chunks).to(tl.int64), column, column < columns


@triton.jit
def m_and_d_kernel(m_ptr, d_ptr, x_ptr, x_stride, columns, chunks, CHUNK: tl.constexpr):
    program = tl.program_id(0)
    row, column, mask = chunk_of(program, columns, chunks, CHUNK)
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=float("-inf")).to(m_ptr.dtype.element_ty)
    m = tl.max(x, axis=0)
    tl.store(m_ptr + program, m)
    # A chunk that is all −inf counts as empty, (−inf, 0): −inf − (−inf) would be NaN.
    tl.store(d_ptr + program, tl.sum(tl.exp(x - tl.where(m == float("-inf"), 0.0, m)), axis=0))


@triton.jit
def softmax_kernel(
    y_ptr, x_ptr, m_ptr, d_ptr, y_stride, x_stride, columns, chunks, CHUNK: tl.constexpr, LOG: tl.constexpr
):
    # Backwards: the last chunks read are still in the cache.
    row, column, mask = chunk_of(tl.num_programs(0) - 1 - tl.program_id(0), columns, chunks, CHUNK)
    m = tl.load(m_ptr + row)
    d = tl.load(d_ptr + row)
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=float("-inf")).to(m.dtype)
    if LOG:
        y = (x - m) - tl.log(d)
    else:
        y = tl.exp(x - m) * (1.0 / d)
    tl.store(y_ptr + row * y_stride + column, y, mask=mask)


@triton.jit
def softmax_gradient_kernel(
    dx_ptr, y_ptr, dy_ptr, total_ptr, dx_stride, y_stride, dy_stride, columns, chunks,
    CHUNK: tl.constexpr, LOG: tl.constexpr,
):  # fmt: skip
    row, column, mask = chunk_of(tl.num_programs(0) - 1 - tl.program_id(0), columns, chunks, CHUNK)
    total = tl.load(total_ptr + row)
    y = tl.load(y_ptr + row * y_stride + column, mask=mask, other=0.0).to(total.dtype)
    dy = tl.load(dy_ptr + row * dy_stride + column, mask=mask, other=0.0).to(total.dtype)
    tl.store(dx_ptr + row * dx_stride + column, backward.gradient(y, dy, total, LOG), mask=mask)


@triton.jit
def loss_gradient_kernel(
    dx_ptr, x_ptr, m_ptr, d_ptr, hit_ptr, scale_ptr, dx_stride, x_stride, columns, chunks, CHUNK: tl.constexpr
):
    # dx = (softmax(x) − 1 at the target) · scale, where scale is the gradient of the row's own loss
    row, column, mask = chunk_of(tl.num_programs(0) - 1 - tl.program_id(0), columns, chunks, CHUNK)
    m = tl.load(m_ptr + row)
    d = tl.load(d_ptr + row)
    scale = tl.load(scale_ptr + row)
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=float("-inf")).to(m.dtype)
    share = tl.exp(x - m) * (1.0 / d)
    dx = (share - tl.where(column == tl.load(hit_ptr + row), 1.0, 0.0)) * scale
    dx = tl.where(scale == 0.0, 0.0, dx)  # an ignored row has no gradient, whatever it holds
    tl.store(dx_ptr + row * dx_stride + column, dx, mask=mask)


def softmax(x, group=None):
    """Softmax of whole rows, from and to this process's columns of them.

    Every process of the group calls it, with the same number of rows and the same dtype; and where one goes
    backward, all do, because the gradient, too, is found together: one number a row. That the numbers of rows
    differ could only be known by one more exchange, so it is not looked for: gloo ends a process that gets a
    message of another size (a line on stderr says "collective mismatch") or waits until the group's time
    limit. So do the others where one process raises or is killed: with gloo they get a RuntimeError; NCCL's
    watchdog ends them.

    Args:
        x: (..., columns), the columns of this process, which may be of any number, 0 too: the shards of all
            processes, in the order of their ranks, make the matrix. float16, bfloat16 (arithmetic in
            float32), float32 or float64; on a GPU for NCCL, on the CPU for gloo. Or a DTensor, sharded along
            its last dimension.
        group: the torch.distributed process group that shares the rows; None for all processes. A DTensor
            brings its own.

    Returns:
        y: this process's columns of the softmax; shape and dtype of x. A DTensor laid out as x, for a
            DTensor. Differentiable, once.

    Raises:
        TypeError, ValueError: an input it does not take.
        RuntimeError: there is no process group; or an exchange with the other processes failed.
    """
    return _along_rows(x, group, log=False)


def log_softmax(x, group=None):
    """The logarithm of softmax of whole rows, (x − m) − log d; takes, gives and raises what `softmax`
    does."""
    return _along_rows(x, group, log=True)


def cross_entropy(x, target, group=None, *, ignore_index=-100, reduction="mean"):
    """Cross-entropy of whole rows, log d + m − x[target], from this process's columns of the logits: what
    `cross_entropy` of the whole matrix gives.

    Two small exchanges, of M numbers for M rows and of M + 1 (2M for reduction "none"). None in the backward
    pass, which reads x again: x must not be changed before it. What is said at `softmax` about calling it
    together holds here.

    Args:
        x: (..., columns), the columns of this process, as for `softmax`: they are the last dimension, where
            torch's function has them second. Where a DTensor's rows are sharded too, the loss is that of the
            rows of this process.
        target: (...), int64 or int32: each row's column in the whole matrix; the same in all processes.
        group: as for `softmax`.
        ignore_index: rows with this target have loss and gradient 0, and are not counted in a mean.
        reduction: "mean" over the rows that count, "sum", or "none".

    Returns:
        loss: the same in all processes, a scalar, or (...) for "none"; dtype of x. Differentiable, once.

    Raises:
        TypeError, ValueError, RuntimeError: as `softmax`; target of another shape or dtype.
        IndexError: a target that is neither a column of the matrix nor ignore_index, on the CPU. On a GPU,
            which is not waited for, the row's loss and gradient are NaN, and so is a mean.
    """
    if reduction not in REDUCTIONS:
        raise ValueError(f'reduction is "mean", "sum" or "none", not {reduction!r}.')
    x, group, _ = _own_columns(x, group)
    if hasattr(target, "device_mesh"):
        target = target.to_local()
    if target.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"target holds column numbers, int64 or int32; this one is {target.dtype}.")
    if target.shape != x.shape[:-1]:
        raise ValueError(
            f"target has a column number for each row, {tuple(x.shape[:-1])}; this one is "
            f"{tuple(target.shape)}."
        )
    if target.device != x.device:
        raise ValueError(f"x is on {x.device}, target on {target.device}.")
    loss = _CrossEntropy.apply(_matrix(x), target.reshape(-1).long(), group, ignore_index, reduction)
    return loss.reshape(target.shape) if reduction == "none" else loss


def _along_rows(x, group, log):
    own, group, like_x = _own_columns(x, group)
    return like_x(_Softmax.apply(_matrix(own), group, log).reshape(own.shape))


def _own_columns(x, group):
    """(this process's columns, their group, a function that lays out a result as x): what a DTensor and a
    plain tensor have in common."""
    if not (dist.is_available() and dist.is_initialized()):
        raise RuntimeError(
            "There is no process group: call torch.distributed.init_process_group in every process first "
            "(torchrun starts them)."
        )
    if not hasattr(x, "device_mesh"):
        if x.dim() == 0:
            raise ValueError("x has the shape (rows, columns); this tensor is a single number.")
        if dist.get_rank(group) < 0:
            raise ValueError("This process is not one of the group's.")
        return x, group, lambda y: y

    from torch.distributed.tensor import DTensor, Shard  # half a second or more: only for who has one

    last = [i for i, part in enumerate(x.placements) if part.is_shard(x.dim() - 1)]
    others = [part for i, part in enumerate(x.placements) if i not in last]
    if len(last) != 1 or type(x.placements[last[0]]) is not Shard or any(p.is_partial() for p in others):
        raise ValueError(f"The DTensor must be sharded once along its last dimension, not {x.placements}.")
    if group is not None:
        raise ValueError("A DTensor brings its own process group: leave out `group`.")

    def like_x(y):
        strides = torch.empty(x.shape, device="meta").stride()
        return DTensor.from_local(
            y, x.device_mesh, x.placements, run_check=False, shape=x.shape, stride=strides
        )

    return x.to_local(), x.device_mesh.get_group(last[0]), like_x


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group, log):
        own_m, own_d = local_m_and_d(x)
        (m,) = _all_reduce(dist.ReduceOp.MAX, group, own_m)
        (d,) = _all_reduce(dist.ReduceOp.SUM, group, rescaled(own_d, own_m, m))
        y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        _launch(softmax_kernel, x, y, x, m, d, y.stride(0), x.stride(0), LOG=log)
        ctx.save_for_backward(y)
        ctx.group, ctx.log = group, log
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        dy = _matrix(dy)
        _, chunks = _cut(y)
        parts = torch.empty((y.shape[0], chunks), dtype=_wide(y), device=y.device)
        _launch(backward.chunk_kernel, y, parts, y, dy, y.stride(0), dy.stride(0), LOG=ctx.log)
        (total,) = _all_reduce(dist.ReduceOp.SUM, ctx.group, parts.sum(1))
        dx = torch.empty(y.shape, dtype=y.dtype, device=y.device)
        strides = dx.stride(0), y.stride(0), dy.stride(0)
        _launch(softmax_gradient_kernel, y, dx, y, dy, total, *strides, LOG=ctx.log)
        return dx, None, None


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, target, group, ignore_index, reduction):
        columns = x.shape[1]
        rank = dist.get_rank(group)
        own_m, own_d = local_m_and_d(x)
        # A slot for each process's number of columns, as two numbers: a float32 is exact to 2**24 only.
        widths = own_m.new_zeros(dist.get_world_size(group), 2)
        widths[rank, 0], widths[rank, 1] = divmod(columns, 2**20)
        m, widths = _all_reduce(dist.ReduceOp.MAX, group, own_m, widths)
        widths = widths[:, 0].long() * 2**20 + widths[:, 1].long()

        kept = target != ignore_index
        outside = kept & ((target < 0) | (target >= widths.sum()))
        if not x.is_cuda and outside.any():  # in all processes alike: nobody waits for one that has raised
            wrong = target[outside][0].item()
            raise IndexError(f"Target {wrong} is no column: the matrix has {widths.sum():,}.")
        # The target's column among those of this process, or −1
        first = widths[:rank].sum()
        hit = torch.where(kept & (target >= first) & (target < first + columns), target - first, -1)
        below = torch.zeros_like(m)  # how far the target's score lies below the maximum: m − x[target]
        if columns:
            score = x.gather(1, hit.clamp(min=0)[:, None])[:, 0].to(m.dtype)
            below = torch.where(hit >= 0, m - score, below)
        if reduction != "none":
            below = below.sum(0, keepdim=True)  # only its sum is needed, so only that is sent

        own_d = rescaled(own_d, own_m, m)
        d, below = _all_reduce(dist.ReduceOp.SUM, group, own_d, below)
        loss = torch.where(kept, d.log(), 0.0).masked_fill(outside, math.nan)
        loss = loss + below if reduction == "none" else loss.sum() + below[0]
        # The gradient of what is returned by the row's own loss
        scale = kept.to(m.dtype).masked_fill(outside, math.nan)
        if reduction == "mean":
            count = kept.sum()
            loss, scale = loss / count, scale / count.clamp(min=1)
        ctx.save_for_backward(x, m, d, hit, scale)
        return loss.to(x.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dloss):
        x, m, d, hit, scale = ctx.saved_tensors
        dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        scale = scale * dloss  # a scalar, or a number for each row
        _launch(loss_gradient_kernel, x, dx, x, m, d, hit, scale, dx.stride(0), x.stride(0))
        return dx, None, None, None, None


def local_m_and_d(x):
    """The maximum of each row of x and the sum of its exponentials measured from it, (m, d).

    Args:
        x: (rows, columns), the columns of this process.

    Returns:
        m, d: (rows,), float32, or float64 for such an x; (−inf, 0) where a row holds no number above −inf.
    """
    rows, columns = x.shape
    _, chunks = _cut(x)
    if columns == 0:  # an empty shard: the identity of the merge
        return x.new_full((rows,), -math.inf, dtype=_wide(x)), x.new_zeros(rows, dtype=_wide(x))
    m, d = torch.empty((2, rows, chunks), dtype=_wide(x), device=x.device)
    _launch(m_and_d_kernel, x, m, d, x, x.stride(0))
    row_m = m.amax(1)
    return row_m, rescaled(d, m, row_m[:, None]).sum(1)


def rescaled(d, m, new_m):
    """d, sums of exponentials measured from m, as measured from new_m; (rows,) or (rows, parts) each."""
    # Where all is −inf, from 0: −inf − (−inf) is NaN. A NaN or +inf of a row is in d, as NaN, and stays.
    return d * torch.exp(m - new_m.masked_fill(new_m == -math.inf, 0.0))


def _all_reduce(op, group, *parts):
    """Exchange some small tensors of one dtype with the group's other processes, as one message."""
    message = torch.cat([part.reshape(-1) for part in parts])
    if message.numel():
        try:
            dist.all_reduce(message, op=op, group=group)
        except RuntimeError as error:
            raise RuntimeError(
                "The exchange with the group's other processes failed. Did one die, raise an error, leave "
                "out a call, or pass another number of rows or another dtype? The backend's words: "
                + str(error).partition("\n")[0]
            ) from error
    reduced = message.split([part.numel() for part in parts])
    return [own.reshape(part.shape) for own, part in zip(reduced, parts, strict=True)]


def _cut(x):
    """(elements in a chunk, chunks in a row)."""
    chunk = split_row.chunk_size(*x.shape)
    return chunk, triton.cdiv(x.shape[1], chunk)


def _launch(kernel, x, *arguments, **options):
    """Launch a kernel whose programs take a chunk each of a matrix like x; its last arguments are x's
    columns and chunks."""
    chunk, chunks = _cut(x)
    if x.numel():
        with torch.cuda.device_of(x):
            kernel[(x.shape[0] * chunks,)](
                *arguments, x.shape[1], chunks,
                CHUNK=chunk, num_warps=min(max(chunk // 512, 1), 8), **options,
            )  # fmt: skip


def _wide(x):
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def _matrix(x):
    """x as (rows, columns), the columns side by side: a view where that is possible."""
    x = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    x = x if x.stride(1) == 1 or x.shape[1] == 1 else x.contiguous()
    rows_and_columns(x)  # raises if no kernel takes it
    return x
