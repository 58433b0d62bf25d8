"""softmax and log_softmax of any tensor: which kernel, autograd, torch.compile.

| columns                    | kernel                  | reads | why the border is there              |
| -------------------------- | ----------------------- | ----- | ------------------------------------ |
| to 1,024                   | multi_row               | 1     | one row is little work for a program |
| to 32,768                  | fused_row               | 1     | past it, one row fills the registers |
|   not a power of two       | fused_row.body_and_tail | 1     | of a multiprocessor, and it idles    |
|   16-bit                   | packed_row              | 1     | while the row loads                  |
| to 67,584, float32 out of  | cluster_row             | 1     | past it, the programs of a cluster   |
|   alignment                |                         |       | do not hold a row                    |
| to 4,194,304 (16-bit:      | resident_row            | 1     | past it, one row fills the registers |
|   2,097,152)               |                         |       | of the GPU, and it idles while its   |
|                            |                         |       | programs wait for each other         |
| wider, or few rows, or     | split_row               | 2     | small chunks share out any number of |
|   nobody can wait          |                         |       | rows evenly                          |

"Out of alignment" is a width that is no multiple of 16: no load of 16 bytes fits into such rows. Then 16-bit
rows go to body_and_tail, to 20,480 columns, and float32 rows leave it at 24,576. "Nobody can wait": float64,
the interpreter, and GPUs that cannot hold a team of programs. Clusters came with Hopper (2022). log_softmax
goes from multi_row (to 16,384) to the kernels below, without fused_row, which is kept plain. tiled is there
to be read: from 65,536 columns on split_row, which does the same in smaller portions, is as fast or faster.

The borders were measured on an H200 (lab/recorded): each kernel is used where it was the fastest or within 3%
of it.
"""

import torch
import triton

from . import backward, cluster_row, fused_row, multi_row, packed_row, resident_row, split_row
from .inputs import check_dtype, check_place, since_hopper

SHORT = 1_024
FEW = 3 * 2**22  # elements, half as many again as a large GPU has registers: fewer do not fill a wait


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
    dim %= x.dim()
    return _run(x, dim, log) if _is_plain(x) else torch.ops.course_kernels.softmax(x, dim, log)


def _is_plain(x):
    """Whether nobody watches this call: no gradient, compiler, dispatch mode or torch.func transform. Then
    the operator's own cost, more than a small kernel's, can be saved.
    """
    return (
        not torch.compiler.is_compiling()
        and type(x) is torch.Tensor
        and not (x.requires_grad and torch.is_grad_enabled())
        and not torch._C._len_torch_dispatch_stack()
        and not torch._C._functorch.is_functorch_wrapped_tensor(x)
    )


def choose(rows, columns, itemsize, log, waits, clusters):
    """The function that takes a (rows, columns) matrix: the table above.

    Args:
        itemsize: bytes in an element.
        log: for log-softmax, which fused_row, kept plain, does not do.
        waits: whether programs can wait for each other here.
        clusters: whether they can be launched in clusters.
    """
    if columns <= SHORT:
        return multi_row.softmax
    aligned = columns % 16 == 0
    if itemsize == 2 and aligned and columns <= packed_row.MAX_COLUMNS:
        return packed_row.softmax
    if columns <= widest_fused_row(aligned, itemsize) and not log:
        power_of_two = columns == triton.next_power_of_2(columns)
        return fused_row.softmax if power_of_two else fused_row.body_and_tail
    if columns <= multi_row.MAX_COLUMNS:
        return multi_row.softmax
    if rows * columns >= FEW:
        if clusters and itemsize == 4 and not aligned and columns <= cluster_row.MAX_COLUMNS:
            return cluster_row.softmax
        if waits and columns <= resident_row.MAX_COLUMNS // (2 if itemsize == 2 else 1):
            return resident_row.softmax
    return split_row.softmax


def widest_fused_row(aligned, itemsize):
    """How wide a row may be for one program: less if each load is of one element, with a mask; and less still
    if widening 16-bit values takes instructions."""
    if aligned:
        return fused_row.MAX_COLUMNS
    return 20_480 if itemsize == 2 else 24_576


def _matrix(x, dim):
    """x as (rows, columns) with the columns side by side: a view where that is possible."""
    if dim != x.dim() - 1:
        x = x.movedim(dim, -1)
    if x.dim() != 2:
        x = x.reshape(-1, x.shape[-1])
    return x if x.stride(1) == 1 or x.shape[1] == 1 else x.contiguous()


def _like(y, x, dim):
    """The matrix y in the shape of x."""
    if dim != x.dim() - 1:
        return y.reshape(x.movedim(dim, -1).shape).movedim(-1, dim)
    return y.reshape(x.shape) if x.dim() != 2 else y


def _run(x, dim, log):
    check_dtype(x)
    check_place(x)
    if x.numel() == 0:
        return _empty_like(x, dim)
    matrix = _matrix(x, dim)
    can = resident_row.can_wait(x), since_hopper(x)
    function = choose(*matrix.shape, x.element_size(), log, *can)
    return _like(function(matrix, log=True) if log else function(matrix), x, dim)


@torch.library.custom_op("course_kernels::softmax", mutates_args=())
def _softmax(x: torch.Tensor, dim: int, log: bool) -> torch.Tensor:
    return _run(x, dim, log)


@torch.library.custom_op("course_kernels::softmax_backward", mutates_args=())
def _softmax_backward(dy: torch.Tensor, y: torch.Tensor, dim: int, log: bool) -> torch.Tensor:
    if y.numel() == 0:
        return _empty_like(y, dim)
    return _like(backward.softmax_backward(_matrix(y, dim), _matrix(dy, dim), log), y, dim)


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
