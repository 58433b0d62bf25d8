"""softmax and log_softmax of any tensor: which kernel, autograd, torch.compile, torch.func.

| columns                    | kernel                  | reads | why the border is there              |
| -------------------------- | ----------------------- | ----- | ------------------------------------ |
| to 1,024                   | multi_row               | 1     | one row is little work for a program |
|   16-bit, not divided by 4 | ragged_row              | 1     | multi_row reads them one by one      |
| to 32,768                  | fused_row               | 1     | past it, one row fills the registers |
|   not a power of two       | fused_row.body_and_tail | 1     | of a multiprocessor, and it idles    |
|   16-bit                   | packed_row              | 1     | while the row loads                  |
| to 425,984 (16-bit:        | cluster_row             | 1     | past it, a cluster has too few       |
|   311,296), and rows out   |                         |       | values on their way                  |
|   of alignment to 851,968  |                         |       |                                      |
| to 4,194,304 (16-bit:      | resident_row            | 1     | past it, one row fills the registers |
|   2,097,152)               |                         |       | of the GPU, and it idles while its   |
|                            |                         |       | programs wait for each other         |
| wider, or few rows, or     | split_row               | 2     | small chunks share out any number of |
|   nobody can wait          |                         |       | rows evenly                          |

"Out of alignment" is a width that 16 does not divide: Triton, which is told no more of a width than that,
then loads value by value. cluster_row does not, so it takes such rows from 1,024 columns on (float32: from
16,384). Clusters came with Hopper (2022), and cannot take a matrix whose rows begin elsewhere between vectors
of 16 bytes than the output's. There, rows out of alignment go to body_and_tail (to 20,480 columns of 16 bits,
24,576 of float32), wide ones to resident_row. "Nobody can wait": float64, the interpreter, and GPUs that
cannot hold a team of programs. "Few rows": beyond cluster_row, fewer than 12M elements. log_softmax goes from
multi_row (to 16,384) to the kernels below, without fused_row, which is kept plain. tiled is there to be read:
from 65,536 columns on split_row, which does the same in smaller portions, is as fast or faster. Along another
dimension than the innermost one, all is column's.

The borders were measured in float32 and bfloat16 on an H200 (lab/recorded): each kernel is used where it was
the fastest or within 3% of it. float64 was not measured: its borders are where the compiler would begin to
spill, at half the widths.
"""

import operator

import torch
import triton
from torch.autograd import forward_ad

from . import (
    backward,
    cluster_row,
    column,
    column_backward,
    fused_row,
    multi_row,
    packed_row,
    ragged_row,
    resident_row,
    split_row,
)
from .inputs import DTYPES, check_dtype, check_place, name, since_hopper
from .plan import Plan, planned

SHORT = 1_024
WIDEST_CLUSTER = {2: 311_296, 4: 425_984}  # of many rows, by bytes in an element; wider, teams are faster
FEW = 3 * 2**22  # elements, half as many again as a large GPU has registers: fewer do not fill a wait


def softmax(x, dim=-1, dtype=None):
    """Softmax along one dimension, as torch.softmax.

    Args:
        x: any shape and strides; float16, bfloat16 (arithmetic in float32), float32 or float64. Where its
            dimensions before `dim`, or those behind, cannot be seen as one, it is copied first.
        dim: the dimension whose values sum to 1.
        dtype: convert x to this first; one of the four.

    Returns:
        y: shape and device of x, contiguous, dtype of x (or `dtype`). Differentiable, twice and forwards too;
            works under torch.compile(fullgraph=True) and torch.func.

    Raises:
        TypeError: x is no tensor, or of a dtype it does not take; dim is no whole number.
        IndexError: a dimension that x does not have.
    """
    return _along(x, dim, dtype, False)


def log_softmax(x, dim=-1, dtype=None):
    """The logarithm of softmax along one dimension, as torch.log_softmax: (x − m) − log d, never log of a
    quotient.

    Takes, gives and raises what `softmax` does.
    """
    return _along(x, dim, dtype, True)


def _along(x, dim, dtype, log):
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"softmax takes a tensor, not {type(x).__name__}: pass torch.tensor(...).")
    if type(dim) is not int:
        dim = _whole(dim)
    if dtype is not None and dtype is not x.dtype:
        if dtype not in DTYPES:
            raise TypeError(f"softmax gives {', '.join(map(name, DTYPES))}, not {name(dtype)}.")
        x = x.to(dtype)
    dims = x.dim()
    if not -dims <= dim < dims:
        if dims == 0 and dim in (-1, 0):
            return _along(x.reshape(1), 0, None, log).reshape(())
        raise IndexError(f"Dimension {dim} is out of range: the tensor has {dims}, {-dims} to {dims - 1}.")
    return _call(_Softmax, forward, torch.ops.course_kernels.softmax, x, dim % dims, log)


def _whole(dim):
    """dim as an int: what Python takes as an index, but not True."""
    try:
        if isinstance(dim, bool):
            raise TypeError
        return operator.index(dim)
    except TypeError:
        raise TypeError(f"dim is one dimension's number, such as -1 for the last; not {dim!r}.") from None


def choose(rows, columns, itemsize, log, waits, clusters):
    """The function that takes a (rows, columns) matrix: the table above.

    Args:
        itemsize: bytes in an element.
        log: for log-softmax, which fused_row, kept plain, does not do.
        waits: whether programs can wait for each other here.
        clusters: whether they can be launched in clusters, and cluster_row.fits the matrix.
    """
    if columns <= SHORT:
        return ragged_row.softmax if itemsize == 2 and columns % 4 else multi_row.softmax
    aligned = columns % 16 == 0
    if clusters and suits_a_cluster(rows, columns, itemsize, log):
        return cluster_row.softmax
    if itemsize == 2 and aligned and columns <= packed_row.MAX_COLUMNS:
        return packed_row.softmax
    if columns <= widest_fused_row(aligned, itemsize) and not log:
        power_of_two = columns == triton.next_power_of_2(columns)
        return fused_row.softmax if power_of_two else fused_row.body_and_tail
    if columns <= multi_row.MAX_COLUMNS // (2 if itemsize == 8 else 1):
        return multi_row.softmax
    if rows * columns >= FEW and waits and columns <= resident_row.MAX_COLUMNS // (2 if itemsize == 2 else 1):
        return resident_row.softmax
    return split_row.softmax


def suits_a_cluster(rows, columns, itemsize, log):
    """Whether cluster_row is the fastest, of rows wider than SHORT."""
    if itemsize == 8 or columns > cluster_row.MAX_COLUMNS:
        return False
    if columns % 16 != 0:
        return itemsize == 2 or columns > multi_row.MAX_COLUMNS
    one_program = multi_row.MAX_COLUMNS if log and itemsize == 4 else fused_row.MAX_COLUMNS
    return columns > one_program and (columns <= WIDEST_CLUSTER[itemsize] or rows * columns < FEW)


def widest_fused_row(aligned, itemsize):
    """How wide a row may be for one program: less for float64, which would spill; less if each load is of one
    element, with a mask; and less still if widening 16-bit values takes instructions."""
    if itemsize == 8:
        return fused_row.MAX_COLUMNS // 2
    if aligned:
        return fused_row.MAX_COLUMNS
    return 20_480 if itemsize == 2 else 24_576


@planned
def forward(x, dim, log):
    """The softmax of x along dim, 0 ≤ dim < x.dim(), when nobody watches. Result: contiguous."""
    check_dtype(x)
    check_place(x)
    if x.numel() == 0:
        return Plan(x)
    view, copies = _as_columns(x, dim)
    if view.dim() == 3:
        plan = column.softmax.plan(view, log)
    else:
        can = resident_row.can_wait(x), since_hopper(x) and cluster_row.fits(view)
        function = choose(*view.shape, x.element_size(), log, *can)
        plan = function.plan(view, log) if log else function.plan(view)
    plan.copies = copies
    return plan.give(view if copies else x, x.shape)


@planned
def gradient(y, dy, dim, log):
    """The gradient of x, from y = softmax(x) and its gradient, when nobody watches."""
    if y.numel() == 0:
        return Plan(y)
    views = [_as_columns(t, dim) for t in (y, dy)]
    copies = any(copies for _, copies in views)
    if copies:
        views = [_as_columns(t.contiguous(), dim) for t in (y, dy)]
    (y_view, _), (dy_view, _) = views
    if y_view.dim() == 3:
        plan = column_backward.softmax_backward.plan(y_view, dy_view, log)
    else:
        plan = backward.softmax_backward.plan(y_view, dy_view, log)
    plan.copies = copies
    return plan.give(y_view if copies else y, y.shape)


def _as_columns(x, dim):
    """x as (rows, columns), or as (outer, length, inner) if dim is not innermost, last stride 1; and whether
    that is a view of a copy, not of x."""
    outer, inner = x.shape[:dim].numel(), x.shape[dim + 1 :].numel()
    shape = (outer, x.shape[dim]) if inner == 1 else (outer, x.shape[dim], inner)
    try:
        view = x.view(shape)
        if view.shape[-1] == 1 or view.stride(-1) == 1:
            return view, False
    except RuntimeError:  # dimensions that no stride can join
        pass
    return x.contiguous().view(shape), True


def _call(function, kernels, operation, x, *rest):
    """Compute it the fastest way that serves whoever watches: torch.compile, torch.func, autograd, nobody."""
    if torch.compiler.is_compiling():
        return operation(x, *rest)
    if torch._C._functorch.is_functorch_wrapped_tensor(x) or forward_ad._current_level >= 0:
        return function.apply(x, *rest)
    return (kernels if _is_plain(x) else operation)(x, *rest)


def _is_plain(x):
    """Whether nobody watches this call: no gradient, no dispatch mode. Then an operator's own cost, more than
    a small kernel's, can be saved."""
    return (
        type(x) is torch.Tensor
        and not (x.requires_grad and torch.is_grad_enabled())
        and not torch._C._len_torch_dispatch_stack()
        and not x.is_neg()
    )


@torch.library.custom_op("course_kernels::softmax", mutates_args=())
def _softmax(x: torch.Tensor, dim: int, log: bool) -> torch.Tensor:
    return forward(x, dim, log)


@torch.library.custom_op("course_kernels::softmax_backward", mutates_args=())
def _softmax_backward(dy: torch.Tensor, y: torch.Tensor, dim: int, log: bool) -> torch.Tensor:
    return gradient(y, dy, dim, log)


@_softmax.register_fake
def _(x, dim, log):
    return x.new_empty(x.shape)


@_softmax_backward.register_fake
def _(dy, y, dim, log):
    return y.new_empty(y.shape)


@_softmax.register_vmap
def _(info, in_dims, x, dim, log):
    return torch.ops.course_kernels.softmax(x.movedim(in_dims[0], 0), dim + 1, log), 0


@_softmax_backward.register_vmap
def _(info, in_dims, dy, y, dim, log):
    dy, y = (
        t.expand(info.batch_size, *t.shape) if at is None else t.movedim(at, 0)
        for t, at in zip((dy, y), in_dims[:2], strict=True)
    )
    return torch.ops.course_kernels.softmax_backward(dy, y, dim + 1, log), 0


class _Softmax(torch.autograd.Function):
    """What torch.func asks for in place of an operator; its gradient is the operator's too."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, dim, log):
        return torch.ops.course_kernels.softmax(x, dim, log)

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.dim, ctx.log = inputs
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        operation = torch.ops.course_kernels.softmax_backward
        return _call(_Gradient, operation, operation, dy, y, ctx.dim, ctx.log), None, None

    @staticmethod
    def jvp(ctx, t, *_):
        (y,) = ctx.saved_tensors
        if ctx.log:
            return t - (y.exp() * t).sum(ctx.dim, keepdim=True)
        return y * (t - (y * t).sum(ctx.dim, keepdim=True))


class _Gradient(torch.autograd.Function):
    """The gradient as a function of dy and y; its own derivatives in PyTorch operations, so that they can be
    derived again."""

    generate_vmap_rule = True

    @staticmethod
    def forward(dy, y, dim, log):
        return torch.ops.course_kernels.softmax_backward(dy, y, dim, log)

    @staticmethod
    def setup_context(ctx, inputs, output):
        dy, y, ctx.dim, ctx.log = inputs
        ctx.save_for_backward(dy, y)
        ctx.save_for_forward(dy, y)

    @staticmethod
    def backward(ctx, g):
        dy, y = ctx.saved_tensors
        if ctx.log:
            p = y.exp()
            g_p = (g * p).sum(ctx.dim, keepdim=True)
            return g - g_p, -g * p * dy.sum(ctx.dim, keepdim=True), None, None
        g_y = (g * y).sum(ctx.dim, keepdim=True)
        dy_y = (dy * y).sum(ctx.dim, keepdim=True)
        return y * (g - g_y), g * (dy - dy_y) - dy * g_y, None, None

    @staticmethod
    def jvp(ctx, t_dy, t_y, *_):
        dy, y = ctx.saved_tensors
        t_dy = torch.zeros_like(dy) if t_dy is None else t_dy
        t_y = torch.zeros_like(y) if t_y is None else t_y
        if ctx.log:
            p = y.exp()
            return t_dy - p * (t_y * dy.sum(ctx.dim, keepdim=True) + t_dy.sum(ctx.dim, keepdim=True))
        moved = (t_y * dy + y * t_dy).sum(ctx.dim, keepdim=True)
        return t_y * (dy - (y * dy).sum(ctx.dim, keepdim=True)) + y * (t_dy - moved)


_softmax.register_autograd(_Softmax.backward, setup_context=_Softmax.setup_context)
_softmax_backward.register_autograd(_Gradient.backward, setup_context=_Gradient.setup_context)
