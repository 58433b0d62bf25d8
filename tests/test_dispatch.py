"""softmax and log_softmax of any tensor: shapes, strides, gradients, torch.compile; in the interpreter."""

import warnings

import numpy
import pytest
import torch

import course_kernels
from course_kernels import (
    cluster_row,
    column,
    dispatch,
    fused_row,
    log_softmax,
    mode,
    multi_row,
    packed_row,
    ragged_row,
    resident_row,
    softmax,
    split_row,
)

pytestmark = pytest.mark.skipif(not mode.interpreting(), reason="tests/gpu has the same for compiled kernels")

PAIRS = ((softmax, torch.softmax), (log_softmax, torch.log_softmax))
both = pytest.mark.parametrize("ours, theirs", PAIRS, ids=("softmax", "log_softmax"))


def check(ours, theirs, x, dim):
    y = ours(x, dim)
    expected = theirs(x.double(), dim)
    assert y.shape == x.shape and y.dtype == x.dtype and y.device == x.device
    assert y.stride() == expected.stride()
    rtol = {torch.float64: 1e-13, torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}[x.dtype]
    torch.testing.assert_close(y.double(), expected, rtol=rtol, atol=rtol / 10, equal_nan=True)


@both
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.float16, torch.bfloat16), ids=str)
def test_shapes_and_dims(ours, theirs, dtype):
    for shape in ((7,), (3, 5), (2, 3, 4), (2, 1, 3, 6), (4, 1)):
        x = torch.randn(shape).to(dtype)
        for dim in range(-len(shape), len(shape)):
            check(ours, theirs, x, dim)


@both
def test_a_scalar(ours, theirs):
    x = torch.tensor(3.0)
    assert ours(x).shape == ()
    assert ours(x).item() == theirs(x, 0).item() == ours(x, 0).item()


@both
def test_strides(ours, theirs):
    x = torch.randn(6, 8, 10)
    views = (
        x.transpose(0, 2),
        x.permute(1, 2, 0),
        x[:, ::2, 1::3],
        x[:, :1].expand(6, 8, 10),
        x[..., :1].expand(6, 8, 10),
    )
    for view in views:
        for dim in (0, 1, 2):
            check(ours, theirs, view, dim)


@both
def test_empty(ours, theirs):
    for shape, dim in (((0, 4), 1), ((4, 0), 1), ((4, 0), 0), ((0,), 0), ((2, 0, 3), 1)):
        assert ours(torch.zeros(shape), dim).shape == shape


def test_columns_longer_than_a_tile():
    """Cut into chunks, one of them all −inf, for one column or a few, in each direction."""
    for shape in ((1, 1500, 3), (2, 700, 33)):
        x = torch.randn(shape)
        x[0, :600, 0] = float("-inf")
        x[0, 5, -1] = float("nan")
        assert len(column.softmax.plan(x).launches) == 3
        check(softmax, torch.softmax, x, 1)
        check(log_softmax, torch.log_softmax, x, 1)
        x[0, 5, -1] = 0.0
        y, dy = torch.softmax(x, 1), torch.randn(shape)
        dx = dispatch.gradient(y, dy, 1, False)
        torch.testing.assert_close(dx, y * (dy - (y * dy).sum(1, keepdim=True)))


@both
def test_no_warning_reaches_the_screen(ours, theirs):
    x = torch.tensor([[float("-inf"), float("-inf")], [float("inf"), 1e38], [float("nan"), -1e38]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dim in (0, 1):
            check(ours, theirs, x, dim)


@both
def test_dtype_converts_first(ours, theirs):
    x = torch.randn(3, 5) * 10
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        for source in (x, x.bfloat16(), x.int()):
            y = ours(source, 0, dtype=dtype)
            assert y.dtype == dtype
            torch.testing.assert_close(y, theirs(source, 0, dtype=dtype))
    a = x.clone().requires_grad_()
    ours(a, dtype=torch.float64)[0, 0].backward()
    assert a.grad.dtype == torch.float32


@both
def test_nan_and_infinities(ours, theirs):
    x = torch.randn(5, 40)
    x[0, 1], x[1, 2], x[2], x[3, :39] = float("nan"), float("inf"), float("-inf"), float("-inf")
    check(ours, theirs, x, 1)


@both
def test_refusals_are_sentences(ours, theirs):
    x = torch.zeros(2, 3)
    for dtype in (torch.int32, torch.bool, torch.complex64):
        with pytest.raises(TypeError, match="float16, bfloat16, float32, float64"):
            ours(x.to(dtype))
    for nothing in (None, [1.0, 2.0], 1.0):
        with pytest.raises(TypeError, match="takes a tensor, not (NoneType|list|float): pass torch.tensor"):
            ours(nothing)
    for dim in (None, 1.0, True, "x", [1]):
        with pytest.raises(TypeError, match="dim is one dimension's number, such as -1 for the last; not"):
            ours(x, dim)
    for dtype in (torch.int32, "float32"):
        with pytest.raises(TypeError, match="gives float16, bfloat16, float32, float64, not"):
            ours(x, dtype=dtype)
    with pytest.raises(IndexError, match="out of range"):
        ours(x, dim=2)
    assert ours(x, numpy.int64(1)).shape == x.shape


def test_log_softmax_far_from_zero():
    x = torch.randn(3, 50) - 1e7
    check(log_softmax, torch.log_softmax, x, 1)


@pytest.mark.parametrize(
    "rows, columns, itemsize, log, expected, without_clusters, without_waits",
    (
        (100_000, 64, 4, False, *3 * (multi_row,)),
        (100_000, 1024, 2, True, *3 * (multi_row,)),
        (100_000, 777, 4, False, *3 * (multi_row,)),
        (100_000, 1000, 2, False, *3 * (multi_row,)),
        (100_000, 777, 2, False, *3 * (ragged_row,)),
        (100_000, 1_777, 2, True, cluster_row, multi_row, multi_row),
        (10_000, 65_536, 2, True, cluster_row, resident_row, split_row),
        (400, 2**18 + 2**17, 2, False, resident_row, resident_row, split_row),
        (400, 393_217, 2, False, cluster_row, resident_row, split_row),
        (400, 2**19, 4, False, resident_row, resident_row, split_row),
        (100_000, 100, 2, False, *3 * (multi_row,)),
        (10_000, 8192, 4, False, *3 * (fused_row,)),
        (10_000, 8192, 2, False, *3 * (packed_row,)),
        (10_000, 8192, 2, True, *3 * (packed_row,)),
        (10_000, 32_768, 4, False, *3 * (fused_row,)),
        (10_000, 32_768, 2, False, *3 * (packed_row,)),
        (10_000, 32_768, 4, True, cluster_row, resident_row, split_row),
        (10_000, 32_749, 4, False, cluster_row, resident_row, split_row),
        (10_000, 20_001, 4, True, cluster_row, resident_row, split_row),
        (10_000, 32_749, 2, False, cluster_row, resident_row, split_row),
        (10_000, 65_537, 4, False, cluster_row, resident_row, split_row),
        (10_000, 65_536, 4, False, cluster_row, resident_row, split_row),
        (10_000, 65_536, 2, False, cluster_row, resident_row, split_row),
        (128, 2**22, 4, False, resident_row, resident_row, split_row),
        (128, 2**22, 2, False, *3 * (split_row,)),
        (10_000, 65_536, 8, False, resident_row, resident_row, split_row),
        (10_000, 16_384, 8, False, *3 * (fused_row,)),
        (10_000, 8192, 8, True, *3 * (multi_row,)),
        (10_000, 16_384, 8, True, resident_row, resident_row, split_row),
        (1, 128_256, 4, False, cluster_row, split_row, split_row),
        (32, 128_256, 4, False, cluster_row, split_row, split_row),
        (2, 2**22, 4, False, *3 * (split_row,)),
    ),
)
def test_the_table(rows, columns, itemsize, log, expected, without_clusters, without_waits):
    def choose(waits, clusters):
        return dispatch.choose(rows, columns, itemsize, log, waits, clusters)

    assert choose(True, True) is expected.softmax
    assert choose(True, False) is without_clusters.softmax
    assert choose(False, False) is without_waits.softmax


def test_a_row_past_a_power_of_two_is_body_and_tail():
    assert dispatch.choose(10_000, 8193, 4, False, True, True) is fused_row.body_and_tail
    assert dispatch.choose(10_000, 8193, 2, False, True, False) is fused_row.body_and_tail


def test_every_choice_takes_its_shape():
    """No border sends a row to a kernel that refuses it."""
    limits = {
        multi_row.softmax: multi_row.MAX_COLUMNS,
        ragged_row.softmax: ragged_row.MAX_COLUMNS,
        fused_row.softmax: fused_row.MAX_COLUMNS,
        fused_row.body_and_tail: fused_row.MAX_COLUMNS,
        packed_row.softmax: packed_row.MAX_COLUMNS,
        cluster_row.softmax: cluster_row.MAX_COLUMNS,
        resident_row.softmax: resident_row.MAX_COLUMNS,
    }
    near = [
        n + d
        for n in (1, *(2**k for k in range(4, 24)), 20_480, 24_576, 50_257, 311_296, 425_984, 851_968)
        for d in (-1, 0, 1)
        if n + d > 0
    ]
    for columns in near:
        for rows in (1, 300, 100_000):
            for itemsize in (2, 4, 8):
                for log in (False, True):
                    for waits, clusters in ((False, False), (False, True), (True, False), (True, True)):
                        chosen = dispatch.choose(rows, columns, itemsize, log, waits, clusters)
                        assert not (chosen in (packed_row.softmax, ragged_row.softmax) and itemsize != 2)
                        assert columns <= limits.get(chosen, columns)
                        assert not (log and chosen in (fused_row.softmax, fused_row.body_and_tail))


@both
def test_gradients_match(ours, theirs):
    x = torch.randn(3, 4, 5)
    for dim in (0, 1, 2):
        a, b = x.clone().requires_grad_(), x.clone().requires_grad_()
        weights = torch.randn(3, 4, 5)
        (ours(a, dim) * weights).sum().backward()
        (theirs(b, dim) * weights).sum().backward()
        torch.testing.assert_close(a.grad, b.grad)


@both
def test_gradcheck_twice(ours, theirs):
    x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    for dim in (0, 1):
        assert torch.autograd.gradcheck(lambda t: ours(t, dim), (x,))  # noqa: B023
        assert torch.autograd.gradgradcheck(lambda t: ours(t, dim), (x,))  # noqa: B023


@both
def test_torch_func(ours, theirs):
    """grad, jvp, vmap and what is built of them; forward-mode autograd too."""
    x = torch.randn(3, 4, dtype=torch.float64)
    t = torch.randn(3, 4, dtype=torch.float64)
    for dim in (0, 1):

        def f(function, z, dim=dim):
            return (function(z, dim) ** 2).sum()

        mine, right = (lambda z: f(ours, z)), (lambda z: f(theirs, z))
        for transform in (torch.func.grad, torch.func.hessian, torch.func.jacrev, torch.func.jacfwd):
            torch.testing.assert_close(transform(mine)(x), transform(right)(x))
        jvp = [torch.func.jvp(lambda z, g=g, dim=dim: g(z, dim), (x,), (t,)) for g in (ours, theirs)]
        torch.testing.assert_close(*jvp)
        for batch in (0, 1):
            batched = [torch.func.vmap(lambda z, g=g: g(z, 0), batch)(x) for g in (ours, theirs)]
            torch.testing.assert_close(*batched)
            batched = [
                torch.func.vmap(torch.func.grad(lambda z, g=g: (g(z, 0) ** 2).sum()), batch)(x)
                for g in (ours, theirs)
            ]
            torch.testing.assert_close(*batched)
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, t)
            tangents = [torch.autograd.forward_ad.unpack_dual(g(dual, dim)).tangent for g in (ours, theirs)]
        torch.testing.assert_close(*tangents)


@pytest.mark.parametrize("log", (False, True), ids=("softmax", "log_softmax"))
def test_opcheck(log):
    x = torch.randn(3, 5, 2, requires_grad=True)
    y = torch.rand(3, 5, 2, requires_grad=True)
    for dim in (1, 2):
        torch.library.opcheck(torch.ops.course_kernels.softmax.default, (x, dim, log))
        torch.library.opcheck(torch.ops.course_kernels.softmax_backward.default, (x, y, dim, log))


def test_compile_without_a_graph_break():
    def loss(x):
        return (softmax(x * 2, dim=-1) ** 2).sum() + log_softmax(x, dim=0)[0, 0]

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    a, b = (torch.randn(4, 9, generator=torch.Generator().manual_seed(0)).requires_grad_() for _ in range(2))
    compiled(a).backward()
    ((torch.softmax(b * 2, -1) ** 2).sum() + torch.log_softmax(b, 0)[0, 0]).backward()
    torch.testing.assert_close(a.grad, b.grad)


def test_the_shortcut_gives_way_where_it_must():
    x = torch.randn(2, 3)
    assert dispatch._is_plain(x)
    assert not dispatch._is_plain(x.clone().requires_grad_())
    with torch.no_grad():
        assert dispatch._is_plain(x.clone().requires_grad_())

    class Seen(torch.utils._python_dispatch.TorchDispatchMode):
        names = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.names.append(function.__name__)
            return function(*args, **(kwargs or {}))

    with Seen():
        softmax(x)
    assert any("softmax" in name for name in Seen.names)


def test_the_package_hands_them_out():
    assert course_kernels.softmax is dispatch.softmax and course_kernels.log_softmax is dispatch.log_softmax
