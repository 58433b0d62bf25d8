"""A loss needs one number a row: the softmax is never written. And its gradient comes in the same launch.

    loss = log Σ exp(x − m) + m − x[target]        dx = softmax(x) − one-hot(target)

PyTorch writes a log-softmax, reads it for the loss, and reads it again for the gradient. Here the logits are
read once; while they are still on chip, the gradient is written in the same launch, once. Logits that nobody
derives are read, and no matrix is written at all.

Rows that one program holds are here; wider ones in `wide_loss`, the formulas in `row_loss`, the mean over the
rows in `loss_mean`.
"""

import torch
import triton
import triton.language as tl
from triton import knobs

from . import loss_mean, multi_row, packed_row, wide_loss
from .inputs import DTYPES, check_place, name
from .loss_mean import COUNTS, DX, LOSSES, TARGET, LossPlan, X
from .plan import planned
from .row_loss import (
    LOG2E,
    barrier,
    gradient,
    judge,
    once_more,
    origin,
    share_of_a_row,
    target_gradient,
    wide,
)

SHORT = 1_024  # columns; up to here a program takes several rows
REDUCTIONS = ("mean", "sum", "none")


@triton.jit
def short_losses_kernel(
    loss_ptr, dx_ptr, counts_ptr, x_ptr, target_ptr, dx_stride, x_stride, rows, columns, ignore_index,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, COUNTS: tl.constexpr, SMOOTHING: tl.constexpr,
    Z_LOSS: tl.constexpr, GRADIENT: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()  # as in split_row
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < columns)
    x_ptr += row * x_stride
    x = wide(tl.load(x_ptr + column, mask=mask, other=float("-inf")))
    target = tl.load(target_ptr + row, mask=row < rows, other=-1)
    hit = (target >= 0) & (target < columns)
    score = wide(tl.load(x_ptr + target, mask=hit, other=0.0))

    m = tl.max(x, axis=1, keep_dims=True)
    numerator = tl.exp2((x - m) * LOG2E)
    d = tl.sum(numerator, axis=1, keep_dims=True)
    excess = tl.sum(tl.where(mask, x - origin(score), 0.0), axis=1, keep_dims=True) if SMOOTHING > 0 else 0.0

    share = share_of_a_row(counts_ptr, x.dtype, COUNTS, EARLY)
    loss, weight, factor = judge(m, d, score, excess, target, columns, ignore_index, share, SMOOTHING, Z_LOSS)
    tl.store(loss_ptr + row, loss, mask=row < rows)
    if GRADIENT:
        dx_ptr += row * dx_stride
        tl.store(dx_ptr + column, gradient(numerator, weight, factor, columns, SMOOTHING), mask=mask)
        barrier()  # then the target's column anew: dearer were a comparison for each element
        there = target_gradient(score, m, weight, factor, columns, SMOOTHING)
        tl.store(dx_ptr + target, there, mask=hit & (target != ignore_index))


@triton.jit
def row_loss_kernel(
    loss_ptr, dx_ptr, counts_ptr, x_ptr, target_ptr, dx_stride, x_stride, columns, ignore_index,
    BODY: tl.constexpr, TAIL: tl.constexpr, COUNTS: tl.constexpr, SMOOTHING: tl.constexpr,
    Z_LOSS: tl.constexpr, EARLY: tl.constexpr,
):  # fmt: skip
    """One program, one row, loss and gradient. It is kept as it came: 16 bits packed, as in packed_row."""
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    dx_ptr += row * dx_stride
    target = tl.load(target_ptr + row)
    hit = (target >= 0) & (target < columns)
    body = tl.arange(0, BODY)
    tail = BODY + tl.arange(0, TAIL)
    x_body = tl.load(x_ptr + body, mask=body < columns, other=float("-inf"))
    x_tail = tl.load(x_ptr + tail, mask=tail < columns, other=float("-inf"))
    score = wide(tl.load(x_ptr + target, mask=hit, other=0.0))

    m = tl.maximum(tl.max(wide(x_body), axis=0), tl.max(wide(x_tail), axis=0))
    x_body = once_more(x_body)
    x_tail = once_more(x_tail)
    d = tl.sum(tl.exp2((wide(x_body) - m) * LOG2E), axis=0)
    d += tl.sum(tl.exp2((wide(x_tail) - m) * LOG2E), axis=0)
    excess = 0.0
    if SMOOTHING > 0:
        x_body = once_more(x_body)
        x_tail = once_more(x_tail)
        excess = tl.sum(tl.where(body < columns, wide(x_body) - origin(score), 0.0), axis=0)
        excess += tl.sum(tl.where(tail < columns, wide(x_tail) - origin(score), 0.0), axis=0)

    share = share_of_a_row(counts_ptr, m.dtype, COUNTS, EARLY)
    loss, weight, factor = judge(m, d, score, excess, target, columns, ignore_index, share, SMOOTHING, Z_LOSS)
    tl.store(loss_ptr + row, loss)

    x_body = once_more(x_body)
    x_tail = once_more(x_tail)
    body_numerator = tl.exp2((wide(x_body) - m) * LOG2E)
    tail_numerator = tl.exp2((wide(x_tail) - m) * LOG2E)
    tl.store(dx_ptr + body, gradient(body_numerator, weight, factor, columns, SMOOTHING), mask=body < columns)
    tl.store(dx_ptr + tail, gradient(tail_numerator, weight, factor, columns, SMOOTHING), mask=tail < columns)
    barrier()
    there = target_gradient(score, m, weight, factor, columns, SMOOTHING)
    tl.store(dx_ptr + target, there, mask=hit & (target != ignore_index))


@planned
def launch(x, target, ignore_index, smoothing, z_loss, reduction, differentiate, inplace):
    """(loss, dx): the launches for a matrix of logits, checked before. dx is None unless `differentiate`."""
    rows, columns = x.shape
    plan = LossPlan(x, reduction, differentiate, inplace)
    plan.count(ignore_index)
    formula = dict(COUNTS=plan.counts, SMOOTHING=smoothing, Z_LOSS=z_loss)
    options = dict(EARLY=plan.early)
    if plan.early and plan.counts:
        options["launch_pdl"] = True
    tensors = (LOSSES, DX if differentiate else X, COUNTS if plan.counts else X, X, TARGET)
    strides = (plan.dx_stride, x.stride(0))
    if columns <= SHORT:
        block = triton.next_power_of_2(columns)
        each, warps = multi_row.tile(block, x.element_size())
        plan.add(
            short_losses_kernel, triton.cdiv(rows, each), tensors,
            *strides, rows, columns, ignore_index,
            ROWS=each, BLOCK=block, GRADIENT=differentiate, num_warps=warps, **formula, **options,
        )  # fmt: skip
    elif differentiate and columns <= packed_row.MAX_COLUMNS and x.element_size() <= 4:
        body, tail = packed_row.pieces(columns)
        if x.element_size() == 2:  # as in packed_row
            options |= dict(num_warps=max(body // 2048, 1), maxnreg=64 if body > 16_384 else 80)
        else:
            options |= dict(num_warps=min(max(body // 256, 1), 16))
        plan.add(
            row_loss_kernel, rows, tensors, *strides, columns, ignore_index,
            BODY=body, TAIL=tail, **formula, **options,
        )  # fmt: skip
    else:
        wide_loss.add(plan, x, ignore_index, differentiate, formula, options)
    plan.sum(x.dtype)
    return plan


def cross_entropy(
    x, target, *, ignore_index=-100, label_smoothing=0.0, z_loss=0.0, reduction="mean", inplace=False
):
    """Cross-entropy of logits and target classes, as torch.nn.functional.cross_entropy.

    Args:
        x: the logits, (columns,), (rows, columns) or (rows, columns, ...), float16, bfloat16 (arithmetic in
            float32), float32 or float64; any strides. Columns that do not lie side by side cost a copy first.
        target: the number of the right column for each row, int64 or int32, in the shape of x without its
            columns.
        ignore_index: rows with this target have loss 0 and gradient 0, and do not count in a mean.
        label_smoothing: the share of the target, 0 to 1, that goes to all columns alike.
        z_loss: adds z_loss · (log Σ exp(x))² to the loss of each row (Chowdhery et al., PaLM, 2022).
        reduction: "mean" over the rows not ignored, "sum", or "none" for a loss for each row.
        inplace: let the gradient take the place of the logits, whose values are lost then. That saves a
            matrix of memory where a gradient is computed; it has no effect elsewhere, and none under
            torch.compile.

    Returns:
        loss: a scalar, or with "none" the shape of target; dtype of x. Differentiable once: the gradient is
        computed in the launch that computes the loss, and held until backward().

        A target that is neither a column nor ignore_index raises an IndexError on the CPU. On a GPU, where a
        look at its value would make every call wait, the row's loss and gradient are NaN, and so is a mean.
        Nothing is read or written out of bounds.

    Raises:
        TypeError, ValueError: an input it does not take; the message says what to do.
    """
    check(x, target, label_smoothing, reduction)
    if inplace and x.is_leaf and x.requires_grad:
        raise ValueError("inplace=True would overwrite a leaf that requires grad: a parameter, not logits.")
    shape = target.shape
    if x.dim() > 2:
        x = x.movedim(1, -1).flatten(0, -2)
    elif x.dim() == 1:
        x = x[None]
    if x.stride(1) != 1 and x.shape[1] > 1:
        if inplace:
            raise ValueError("inplace=True takes logits whose columns lie side by side; these do not.")
        x = x.contiguous()
    if inplace and x.shape[0] > 1 and x.stride(0) < x.shape[1]:
        raise ValueError("inplace=True takes rows of their own memory each; these overlap.")
    target = target.reshape(-1).long()
    if x.shape[0] == 0:
        nothing = x.sum(1).reshape(shape)
        return nothing if reduction == "none" else getattr(nothing, reduction)()  # the mean of nothing is NaN

    # float16 has no room for a factor of 1 / rows in a gradient: there backward multiplies it in, last.
    by_rows = reduction == "none" or (reduction == "mean" and x.dtype == torch.float16)
    loss = compute(
        x, target, ignore_index, label_smoothing, z_loss, "rows" if by_rows else reduction, inplace
    )
    if reduction == "none":
        return loss.to(x.dtype).reshape(shape)
    return (loss.sum() / (target != ignore_index).sum()).to(x.dtype) if by_rows else loss


def check(x, target, label_smoothing, reduction):
    """Raise an error that says what to do, unless cross_entropy takes these. Does not look at values."""
    if x.dtype not in DTYPES:
        taken = ", ".join(map(name, DTYPES))
        raise TypeError(f"cross_entropy takes logits of {taken}; these are {name(x.dtype)}.")
    if target.dtype not in (torch.int64, torch.int32):
        raise TypeError(
            f"A target is the number of a column, int64 or int32, not {name(target.dtype)}. Shares of all "
            "classes are not taken as targets; label_smoothing may do."
        )
    if x.dim() == 0 or target.shape != x.shape[:1] * (x.dim() > 1) + x.shape[2:]:
        raise ValueError(
            f"Logits (rows, columns, ...) want a target for each row, (rows, ...): the logits are "
            f"{tuple(x.shape)}, the target {tuple(target.shape)}."
        )
    if x.shape[min(x.dim() - 1, 1)] == 0:
        raise ValueError("Logits of 0 columns have no class that a target could name.")
    if target.device != x.device:
        raise ValueError(f"The logits are on {x.device}, the target on {target.device}: move one of them.")
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"label_smoothing is a share, from 0 to 1, not {label_smoothing}.")
    if reduction not in REDUCTIONS:
        raise ValueError(f'reduction is one of "mean", "sum", "none", not {reduction!r}.')


def check_targets(target, columns, ignore_index):
    """On the CPU, where it costs no wait: raise an IndexError for a target that names no column."""
    wrong = (target < 0) | (target >= columns)
    wrong &= target != ignore_index
    if wrong.any():
        row = int(wrong.nonzero()[0])
        raise IndexError(
            f"Target {int(target[row])} of row {row} is out of range: there are {columns} columns, 0 to "
            f"{columns - 1}, and rows to ignore have {ignore_index}."
        )


def compute(x, target, ignore_index, smoothing, z_loss, reduction, inplace):
    """The loss of a matrix, watched by autograd where it is to be derived."""
    options = ignore_index, float(smoothing), float(z_loss), reduction
    if x.requires_grad and torch.is_grad_enabled():
        return Loss.apply(x, target, *options, inplace and not torch.compiler.is_compiling())[0]
    return run(x, target, *options, False, False)[0]


def run(x, target, *options):
    """(loss, dx) of a matrix, as an operator only where somebody watches that cannot see through a launch."""
    if not is_plain(x):
        return operator(x, target, *options[:-1])
    check_place(x)
    if knobs.runtime.interpret:
        check_targets(target, x.shape[1], options[0])
    return launch(x, target, *options)


def is_plain(x):
    return (
        not torch.compiler.is_compiling()
        and type(x) is torch.Tensor
        and not torch._C._len_torch_dispatch_stack()
        and not torch._C._functorch.is_functorch_wrapped_tensor(x)
    )


@torch.library.custom_op("course_kernels::cross_entropy", mutates_args=())
def operator(
    x: torch.Tensor,
    target: torch.Tensor,
    ignore_index: int,
    smoothing: float,
    z_loss: float,
    reduction: str,
    differentiate: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    loss, dx = run(x, target, ignore_index, smoothing, z_loss, reduction, differentiate, False)
    return loss, x.new_empty(0) if dx is None else dx


@operator.register_fake
def _(x, target, ignore_index, smoothing, z_loss, reduction, differentiate):
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    loss = x.new_empty(x.shape[0], dtype=wide) if reduction == "rows" else x.new_empty(())
    return loss, x.new_empty(x.shape if differentiate else 0)


class Loss(torch.autograd.Function):
    """The loss, with its gradient computed beside it and held for backward."""

    @staticmethod
    def forward(x, target, ignore_index, smoothing, z_loss, reduction, inplace):
        loss, dx = run(x, target, ignore_index, smoothing, z_loss, reduction, True, inplace)
        if not inplace:
            return loss, dx
        torch.autograd.graph.increment_version(
            x
        )  # whoever kept the logits for a gradient of their own hears of it
        return loss, None

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.set_materialize_grads(False)
        x, inplace = inputs[0], inputs[-1]
        if not inplace:
            ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(x if inplace else output[1])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, scale, _):
        """dx · scale. In a training step scale is 1, and the memory of dx is free for it."""
        if scale is None:
            return (None,) * 7
        (dx,) = ctx.saved_tensors
        if not is_plain(dx) or torch._C._autograd._get_current_graph_task_keep_graph():
            column = scale[:, None] if scale.dim() else scale
            dx = (dx * column).to(dx.dtype)
        else:
            loss_mean.scale(dx, scale)
        return dx, *(None,) * 6
