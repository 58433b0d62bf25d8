"""The loss of one row and its gradient: the formulas that the kernels of cross_entropy share.

    lse  = m + log d                       m the largest score of the row, d = Σ exp(x − m)
    loss = lse − x[t]                      minus the logarithm of the target's softmax
         − ε · (mean(x) − x[t])            label smoothing: the share ε of the target goes to all columns
         + z · lse²                        z-loss, which keeps lse near 0 (PaLM, Chowdhery et al., 2022)
    dx   = p · (1 + 2 z lse) − ε / columns − (1 − ε) [column = t]         p = exp(x − m) / d

For the loss, a walk along the row must find three numbers: m, d and, with label smoothing, the excess
Σ (x − x[t]).
"""

import math

import triton
import triton.language as tl

from .packed_row import COMPILED, again

LOG2E = tl.constexpr(math.log2(math.e))


@triton.jit
def wide(x):
    """x in the dtype of all arithmetic."""
    return x if x.dtype == tl.float64 else x.to(tl.float32)


@triton.jit
def once_more(x):
    """x, hidden from the compiler so that 16-bit values stay packed, and are widened anew where needed."""
    return again(x) if x.dtype.primitive_bitwidth == 16 else x


@triton.jit
def barrier():
    """Let all that this program has stored be there before what it stores next.

    tl.debug_barrier, but for one thing: Triton makes no loads ahead in a loop that holds that one.
    """
    if COMPILED:
        tl.inline_asm_elementwise(
            "bar.sync 0; mov.u32 $0, 0;", "=r,~{memory}", [], dtype=tl.int32, is_pure=False, pack=1
        )


@triton.jit
def share_of_a_row(counts_ptr, dtype, COUNTS: tl.constexpr, EARLY: tl.constexpr):
    """What each row counts for: 1, or in a mean 1 / rows that are not ignored, counted in COUNTS parts."""
    share = tl.full((), 1.0, dtype)
    if COUNTS > 0:
        if EARLY:
            tl.extra.cuda.gdc_wait()  # until the launch that counts has ended
        share = 1.0 / tl.sum(tl.load(counts_ptr + tl.arange(0, COUNTS)), axis=0).to(dtype)
    return share


@triton.jit
def origin(score):
    """What the excess is measured from: the target's score, so that little is rounded; 0 if that is −inf."""
    return tl.where(score == float("-inf"), 0.0, score)


@triton.jit
def judge(
    m, d, score, excess, target, columns, ignore_index, share, SMOOTHING: tl.constexpr, Z_LOSS: tl.constexpr
):
    """(loss, weight, factor) of a row: dx = exp(x − m) · factor, less what `gradient` takes from it.

    An ignored row has loss 0 and weight 0. A target that names no column has NaN for both: nothing is read or
    written there, and nobody overlooks it.
    """
    log_d = tl.log(d)
    loss = log_d - (score - m)
    weight = share
    factor = share / d
    if SMOOTHING > 0:
        loss -= SMOOTHING * (excess / columns)
    if Z_LOSS > 0:
        loss += Z_LOSS * (m + log_d) * (m + log_d)
        factor *= 1.0 + 2.0 * Z_LOSS * (m + log_d)
    ignored = target == ignore_index
    known = tl.where((target >= 0) & (target < columns), 1.0, float("nan"))
    loss = tl.where(ignored, 0.0, loss * known) * share  # if all are ignored, 0 · inf: NaN, as in PyTorch
    weight = tl.where(ignored, 0.0, weight * known)
    factor = tl.where(ignored, 0.0, factor * known)
    return loss, weight, factor


@triton.jit
def gradient(numerator, weight, factor, columns, SMOOTHING: tl.constexpr):
    """dx of every column but the target's."""
    dx = numerator * factor
    if SMOOTHING > 0:
        dx -= weight * SMOOTHING / columns
    return dx


@triton.jit
def target_gradient(score, m, weight, factor, columns, SMOOTHING: tl.constexpr):
    """dx of the target's column, where the target's own share goes off."""
    dx = gradient(tl.exp2((score - m) * LOG2E), weight, factor, columns, SMOOTHING)
    return dx - weight * (1.0 - SMOOTHING)
