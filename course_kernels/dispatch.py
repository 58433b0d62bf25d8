"""softmax and log_softmax of any tensor: which kernel, autograd, torch.compile.

| columns                    | kernel                  | reads | why the border is there              |
| -------------------------- | ----------------------- | ----- | ------------------------------------ |
| to 1,024                   | multi_row               | 1     | one row is little work for a program |
| to 32,768 (16-bit: 20,480) | fused_row               | 1     | past it, one row fills the registers |
|   not a power of two:      | fused_row.body_and_tail | 1     | of a multiprocessor, and it idles    |
|                            |                         |       | while the row loads                  |
| to 2,097,152               | resident_row            | 1     | past it, one row fills the registers |
|                            |                         |       | of the GPU, and it idles while its   |
|                            |                         |       | programs wait for each other         |
| wider, or few rows         | split_row               | 2     | small chunks share out few rows best |
| many rows, no waiting      | tiled                   | 2     | a program a row keeps the GPU busy   |

"No waiting": float64, the interpreter, and GPUs that cannot hold a team of programs. log_softmax goes from
multi_row (to 16,384) to resident_row: fused_row is kept plain.

The borders were measured on an H200 (lab/recorded): each kernel is used where it was the fastest or within
2% of it.
"""

import torch
import triton

from . import backward, fused_row, multi_row, resident_row, split_row, tiled
from .inputs import check_dtype, check_place

SHORT = 1_024
FULL = 256  # programs, below which a large GPU is not busy everywhere


def softmax(x, dim=-1):
    """Softmax along one dimension, as torch.softmax.

    Args:
        x: any shape and strides; float16, bfloat16 (arithmetic in float32), float32 or float64. dim: the
            dimension whose values sum to 1. Another than the last, or one whose elements do not lie side by
            side, costs a copy first.

    Returns:
        y: shape, dtype and device of x. Differentiable, twice too; works under torch.compile(fullgraph=True).

    Raises:
        TypeError: a dtype it does not take.
        IndexError: a dimension that x does not have.
    """
    return _along(x, dim, False)


def log_softmax(x, dim=-1):
    """The logarithm of softmax along one dimension, as torch.log_softmax: (x − m) − log d, never log of a
    quotient.

    Takes, gives and raises what `softmax` does.
    """
    return _along(x, dim, True)


def _along(x, dim, log):
    if x.dim() == 0:
        return _along(x.reshape(1), dim, log).reshape(())
    if not -x.dim() <= dim < x.dim():
        raise IndexError(
            f"Dimension {dim} is out of range: the tensor has {x.dim()}, -{x.dim()} to {x.dim() - 1}."
        )
    return torch.ops.course_kernels.softmax(x, dim % x.dim(), log)


def choose(rows, columns, itemsize, log, waits):
    """The function that takes a (rows, columns) matrix: the table above.

    Args:
        itemsize: bytes in an element.
        log: for log-softmax, which fused_row, kept plain, does not do.
        waits: whether programs can wait for each other here.
    """
    if columns <= SHORT:
        return multi_row.softmax
    power_of_two = columns == triton.next_power_of_2(columns)
    if columns <= (20_480 if itemsize == 2 else fused_row.MAX_COLUMNS) and not log:
        if not power_of_two:
            return fused_row.body_and_tail
        return multi_row.softmax if itemsize == 2 else fused_row.softmax  # its exp2 shows with 16-bit inputs
    if columns <= multi_row.MAX_COLUMNS:
        return multi_row.softmax
    programs = rows * triton.cdiv(columns, resident_row.block_size(columns))
    if waits and columns <= resident_row.MAX_COLUMNS and programs >= FULL:
        return resident_row.softmax
    return tiled.softmax if rows >= FULL else split_row.softmax


def _matrix(x, dim):
    """x as (rows, columns) with the columns side by side: a view where that is possible."""
    x = x.movedim(dim, -1)
    x = x.reshape(-1, x.shape[-1])
    return x if x.shape[1] == 1 or x.stride(1) == 1 else x.contiguous()


@torch.library.custom_op("course_kernels::softmax", mutates_args=())
def _softmax(x: torch.Tensor, dim: int, log: bool) -> torch.Tensor:
    check_dtype(x)
    check_place(x)
    if x.numel() == 0:
        return _empty_like(x, dim)
    matrix = _matrix(x, dim)
    function = choose(*matrix.shape, x.element_size(), log, resident_row.can_wait(x))
    y = function(matrix, log=True) if log else function(matrix)
    return y.reshape(x.movedim(dim, -1).shape).movedim(-1, dim)


@torch.library.custom_op("course_kernels::softmax_backward", mutates_args=())
def _softmax_backward(dy: torch.Tensor, y: torch.Tensor, dim: int, log: bool) -> torch.Tensor:
    if y.numel() == 0:
        return _empty_like(y, dim)
    dx = backward.softmax_backward(_matrix(y, dim), _matrix(dy, dim), log)
    return dx.reshape(y.movedim(dim, -1).shape).movedim(-1, dim)


@_softmax.register_fake
def _(x, dim, log):
    return _empty_like(x, dim)


@_softmax_backward.register_fake
def _(dy, y, dim, log):
    return _empty_like(y, dim)


def _empty_like(x, dim):
    """As the operators lay out their results: `dim` innermost."""
    return x.new_empty(x.movedim(dim, -1).shape).movedim(-1, dim)


def _save(ctx, inputs, output):
    _, ctx.dim, ctx.log = inputs
    ctx.save_for_backward(output)


def _first_gradient(ctx, dy):
    (y,) = ctx.saved_tensors
    return torch.ops.course_kernels.softmax_backward(dy, y, ctx.dim, ctx.log), None, None


def _save_backward(ctx, inputs, output):
    dy, y, ctx.dim, ctx.log = inputs
    ctx.save_for_backward(dy, y)


def _second_gradient(ctx, g):
    """The gradients of dx by dy and by y, in PyTorch operations, so that they can be derived again."""
    dy, y = ctx.saved_tensors
    if ctx.log:
        p = y.exp()
        g_p = (g * p).sum(ctx.dim, keepdim=True)
        return g - g_p, -g * p * dy.sum(ctx.dim, keepdim=True), None, None
    g_y = (g * y).sum(ctx.dim, keepdim=True)
    dy_y = (dy * y).sum(ctx.dim, keepdim=True)
    return y * (g - g_y), g * (dy - dy_y) - dy * g_y, None, None


_softmax.register_autograd(_first_gradient, setup_context=_save)
_softmax_backward.register_autograd(_second_gradient, setup_context=_save_backward)
