"""Cross-entropy in the interpreter, against float64 PyTorch; compiled, on a CPU, for every GPU of the course.

What only a GPU shows is in tests/gpu.
"""

import importlib
import json
import os
import subprocess
import sys
import types
import unittest
import warnings

import pytest
import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from course_kernels import cross_entropy, loss_mean, mode, resident_row, wide_loss
from course_kernels.online import merge

module = importlib.import_module("course_kernels.cross_entropy")

pytestmark = [
    pytest.mark.skipif(not mode.interpreting(), reason="tests/gpu has the same for compiled kernels"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # numpy's, on inf − inf
]

# The interpreter rounds bfloat16 towards zero, a GPU to nearest: a whole unit here, half of one there.
ROUNDING = {torch.float32: 2**-24, torch.float16: 2**-11, torch.bfloat16: 2**-7, torch.float64: 2**-53}
every_dtype = pytest.mark.parametrize("dtype", ROUNDING, ids=str)
# One width or more for each kernel: short rows, one row, walk and chunks, one chunk and a little
WIDTHS = (1, 2, 3, 17, 100, 1024, 1025, 2049, 5001, 32_769)
# Short rows; one row (without a gradient: walked along); chunks, which float64 takes from fewer columns on
every_way = pytest.mark.parametrize(
    "columns, dtype", ((100, torch.float32), (1500, torch.float32), (4500, torch.float64)), ids=str
)


@pytest.fixture(autouse=True)
def poisoned(monkeypatch):
    """Every torch.empty holds NaN (integers: the largest), so that what a kernel does not write is seen."""
    empty = torch.empty

    def poison(*args, **kwargs):
        y = empty(*args, **kwargs)
        return y.fill_(float("nan") if y.is_floating_point() else torch.iinfo(y.dtype).max)

    monkeypatch.setattr(torch, "empty", poison)


def scores(rows, columns, dtype=torch.float32, seed=0):
    return (torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * 3).to(dtype)


def targets(rows, columns, ignore_index=-100):
    """At both edges, and one row ignored if there are three."""
    target = torch.randint(0, columns, (rows,), generator=torch.Generator().manual_seed(columns))
    target[0] = columns - 1
    target[-1] = 0
    if rows > 2:
        target[1] = ignore_index
    return target


def oracle(x, target, smoothing=0.0, z_loss=0.0, reduction="mean", ignore_index=-100, weights=None):
    """(loss, gradient of the loss, or of Σ weights · loss) in float64."""
    x = x.detach().double().clone().requires_grad_()
    loss = F.cross_entropy(x, target, reduction="none", ignore_index=ignore_index, label_smoothing=smoothing)
    if smoothing:  # the same to be derived, without the rounding of PyTorch's sum of gradients along the row
        score = x.gather(1, target.clamp(0, x.shape[1] - 1)[:, None])[:, 0]
        smooth = x.logsumexp(1) - (1 - smoothing) * score - smoothing * x.mean(1)
        smooth = torch.where(target == ignore_index, 0.0, smooth)
        loss = loss.detach() + (smooth - smooth.detach()).nan_to_num()
    if z_loss:
        loss = loss + z_loss * x.logsumexp(1) ** 2 * (target != ignore_index)
    if reduction != "none":
        loss = loss.sum()
    if reduction == "mean":
        loss = loss / (target != ignore_index).sum()
    total = loss if weights is None else (loss * weights).sum()
    return loss.detach(), torch.autograd.grad(total, x)[0]


def check(x, target, smoothing=0.0, z_loss=0.0, reduction="mean", ignore_index=-100):
    """Loss without and with a gradient, and the gradient, to the rounding of dtype and of distances."""
    weights = torch.linspace(0.5, 2, len(target)).double() if reduction == "none" else None
    expected, gradient = oracle(x, target, smoothing, z_loss, reduction, ignore_index, weights)
    options = dict(label_smoothing=smoothing, z_loss=z_loss, reduction=reduction, ignore_index=ignore_index)
    before = x.clone()
    only = cross_entropy(x, target, **options)
    leaf = x.clone().requires_grad_()
    loss = cross_entropy(leaf, target, **options)
    (dx,) = torch.autograd.grad(loss if weights is None else (loss.double() * weights).sum(), leaf)
    assert torch.equal(x.isnan(), before.isnan()) and torch.equal(x.nan_to_num(), before.nan_to_num())

    unit = 2**-50 if x.dtype == torch.float64 else 2**-22
    rounding = ROUNDING[x.dtype]
    size = x.double().abs().nan_to_num(0, 0, 0).amax(1)
    size = (size + 16) * (1 + 2 * z_loss * size)
    size = size if reduction == "none" else size.amax() if reduction == "mean" else size.sum()
    for y in (only, loss):
        assert y.shape == expected.shape and y.dtype == x.dtype
        bound = size * unit * 4 + expected.abs().nan_to_num(0, 0, 0) * rounding * 2
        assert same(y, expected, bound).all(), (y, expected)
    assert dx.shape == x.shape and dx.dtype == x.dtype
    wide = x.double()
    distance = (wide - wide.amax(1, keepdim=True)).abs().nan_to_num(0, 0, 0)
    magnitude = gradient.abs().nan_to_num(0)
    weight = {"mean": 1 / (target != ignore_index).sum(), "sum": 1.0, "none": weights}[reduction]
    weight = torch.as_tensor(weight).double().reshape(-1, 1) * (1 + 2 * z_loss * (size.amax() + 16))
    bound = magnitude * (2 * rounding + unit * (2 * distance + 16))
    # p − 1 is as exact as p; a small share may be less than the smallest number of float16.
    bound += weight * (4 * unit + torch.finfo(x.dtype).smallest_normal * 2)
    wrong = ~same(dx, gradient, bound)
    assert not wrong.any(), f"{int(wrong.any(1).sum())} rows of the gradient differ"


def same(y, expected, bound):
    y = y.double()
    return ((y - expected).abs() <= bound) | (y.isnan() & expected.isnan()) | (y == expected)


@every_dtype
@pytest.mark.parametrize("columns", WIDTHS)
def test_widths(columns, dtype):
    """Each width with another reduction, every other one with label smoothing and z-loss."""
    i = WIDTHS.index(columns)
    extra = ((0.0, 0.0), (0.1, 1e-3), (0.3, 0.0), (0.0, 1e-2))[i % 4]
    check(scores(4, columns, dtype), targets(4, columns), *extra, reduction=("mean", "sum", "none")[i % 3])


@every_way
@pytest.mark.parametrize("smoothing, z_loss", ((0.0, 0.0), (0.25, 0.0), (1.0, 0.0), (0.0, 0.1), (0.1, 1e-4)))
def test_label_smoothing_and_z_loss(columns, dtype, smoothing, z_loss):
    check(scores(3, columns, dtype), targets(3, columns), smoothing, z_loss)


def exposing(columns, dtype):
    """Rows and targets, each of which a known mistake gets wrong."""
    x = scores(11, columns, dtype)
    target = targets(11, columns)
    x[0] -= 1000  # padding with 0 wins the maximum
    x[1] += 1000  # exp overflows without the maximum taken off
    x[2] = -1e30 + 0 * x[2]  # below any "large negative" padding
    x[3, 1:] = -1e4  # the target lies 10,000 below the maximum: the logarithm of a quotient is −inf
    x[4] = torch.linspace(-50, 50, columns)  # the maximum grows all the way: a sum never rescaled
    x[5] = torch.linspace(50, -50, columns)
    x[6, columns - 1] = 80.0  # all of the weight in the last, partial tile
    x[7] += 1e7  # (m + log d) − x[t] loses all digits
    x[8] = 0.0
    x[9] = 80.0 * torch.nn.functional.one_hot(target[9], columns)  # a loss of 0, a gradient of p − 1 = 0
    return x, target


@every_way
def test_rows_that_expose_a_mistake(columns, dtype):
    x, target = exposing(columns, dtype)
    check(x, target, reduction="none")
    check(x[8:], target[8:], smoothing=0.1)


@every_way
@pytest.mark.parametrize("smoothing", (0.0, 0.1))
def test_nan_and_infinities_as_torch(columns, dtype, smoothing):
    """A NaN stays in its row; −inf beside numbers is exact; a row of nothing but −inf is NaN."""
    x = scores(8, columns, dtype)
    target = torch.full((8,), columns // 2)
    x[0, 3] = float("nan")
    x[1, columns - 1] = float("nan")
    x[2] = float("inf")
    x[3] = float("-inf")
    x[4, : columns // 2] = float("-inf")
    x[5, columns // 2 + 1 :] = float("-inf")
    x[6, columns // 2] = float("-inf")  # the target's own: a loss of +inf
    expected, gradient = oracle(x, target, smoothing, reduction="none", weights=torch.ones(8))
    leaf = x.clone().requires_grad_()
    loss = cross_entropy(leaf, target, label_smoothing=smoothing, reduction="none")
    (dx,) = torch.autograd.grad(loss.sum(), leaf)
    assert torch.equal(loss.isnan(), expected.isnan()) and torch.equal(loss.isinf(), expected.isinf())
    assert same(loss, expected, 1e-5 * expected.abs() + 1e-6).all()
    if smoothing == 0.0:  # with it PyTorch multiplies 0 · inf, and has NaN for gradients that exist
        assert same(dx, gradient, 1e-5 * gradient.abs().nan_to_num(0) + 1e-8).all()
    assert dx[:4].isnan().all() and not dx[[4, 5, 7]].isnan().any()


@every_way
def test_ignored_rows(columns, dtype):
    x = scores(4, columns, dtype)
    for ignore_index in (-100, 0, columns - 1, -(2**40), 2**40):
        check(x, targets(4, columns, ignore_index), ignore_index=ignore_index)
        check(x, targets(4, columns, ignore_index), 0.1, 1e-3, "none", ignore_index)
    leaf = x.clone().requires_grad_()
    loss = cross_entropy(leaf, torch.full((4,), -100))
    assert loss.isnan()  # the mean of no rows, as in PyTorch
    assert torch.autograd.grad(loss, leaf)[0].eq(0).all()


@every_way
def test_a_target_out_of_range_touches_no_memory_and_is_seen(monkeypatch, columns, dtype):
    target = torch.tensor([1, columns, 2, -1, 2**40])
    x = scores(5, columns, dtype)
    with pytest.raises(IndexError, match=f"Target {columns} of row 1 is out of range: there are {columns}"):
        cross_entropy(x, target)
    # On a GPU nobody looks: NaN in its row, and in no other.
    monkeypatch.setattr(module, "check_targets", lambda *what: None)
    leaf = x.clone().requires_grad_()
    loss = cross_entropy(leaf, target, reduction="none")
    (dx,) = torch.autograd.grad(loss.sum(), leaf)
    good = torch.tensor([True, False, True, False, False])
    assert torch.equal(loss.isnan(), ~good) and torch.equal(dx.isnan().all(1), ~good)
    assert not dx[good].isnan().any()
    expected = F.cross_entropy(x[good].double(), target[good], reduction="none")
    torch.testing.assert_close(loss[good].double(), expected, rtol=1e-6, atol=1e-6)
    assert cross_entropy(x, target).isnan()


def test_refusals_are_sentences():
    x, target = scores(4, 5), torch.zeros(4, dtype=torch.int64)
    for wrong in (torch.int64, torch.bool, torch.complex64):
        with pytest.raises(TypeError, match="takes logits of float16, bfloat16, float32, float64; these are"):
            cross_entropy(x.to(wrong), target)
    with pytest.raises(TypeError, match="number of a column, int64 or int32, not float32"):
        cross_entropy(x, torch.softmax(x, 1))
    for shape in ((5,), (4, 1), ()):
        with pytest.raises(ValueError, match="want a target for each row"):
            cross_entropy(x, torch.zeros(shape, dtype=torch.int64))
    with pytest.raises(ValueError, match="want a target for each row"):
        cross_entropy(torch.tensor(1.0), torch.tensor(0))
    for smoothing in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="a share, from 0 to 1"):
            cross_entropy(x, target, label_smoothing=smoothing)
    with pytest.raises(ValueError, match='"mean", "sum", "none"'):
        cross_entropy(x, target, reduction="average")
    with pytest.raises(ValueError, match="0 columns"):
        cross_entropy(x[:, :0], target)


def test_no_rows():
    x, target = torch.zeros(0, 5, requires_grad=True), torch.zeros(0, dtype=torch.int64)
    assert cross_entropy(x, target).isnan()
    assert cross_entropy(x, target, reduction="sum") == 0
    assert cross_entropy(x, target, reduction="none").shape == (0,)


def opinfo_samples(dtype):
    try:
        import expecttest  # noqa: F401
    except ImportError:  # PyTorch's own tests want it; its samples do not
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase
        sys.modules["expecttest"] = stand_in
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    (info,) = (op for op in op_db if op.name == "nn.functional.cross_entropy")
    return info.sample_inputs("cpu", dtype, requires_grad=True)


@every_dtype
def test_pytorchs_own_samples(dtype):
    """Every sample of PyTorch's OpInfo whose arguments are taken; the others are refused in a sentence."""
    taken = 0
    for sample in opinfo_samples(dtype):
        x, (target,), options = sample.input.detach(), sample.args, dict(sample.kwargs)
        if target.is_floating_point():
            with pytest.raises(TypeError, match="number of a column"):
                cross_entropy(x, target)
            continue
        if options.pop("weight", None) is not None:
            continue
        taken += 1
        ours, theirs = x.clone().requires_grad_(), x.double().clone().requires_grad_()
        loss = cross_entropy(ours, target, **options)
        expected = F.cross_entropy(theirs, target, **options)
        assert loss.shape == expected.shape and loss.dtype == dtype
        tolerance = dict(rtol=ROUNDING[dtype] * 8, atol=ROUNDING[dtype] * 8, equal_nan=True)
        torch.testing.assert_close(loss.double(), expected, **tolerance)
        loss.sum().backward()
        expected.sum().backward()
        torch.testing.assert_close(ours.grad.double(), theirs.grad, **tolerance)
    assert taken >= 8


def test_strides_and_shapes():
    x = scores(6, 40)
    wide = scores(6, 5003)
    for view in (x[:, 3:30], x[::2], x.t(), x[:, ::3], x[:1].expand(4, 40), wide[:, 1:], wide[::2, 3:5000]):
        check(view, targets(*view.shape))
    many = torch.randn(2, 7, 3, 4)
    target = torch.randint(0, 7, (2, 3, 4))
    for reduction in ("mean", "none"):
        ours, theirs = many.clone().requires_grad_(), many.clone().requires_grad_()
        loss = cross_entropy(ours, target.int(), reduction=reduction)
        expected = F.cross_entropy(theirs, target, reduction=reduction)
        torch.testing.assert_close(loss, expected)
        (loss**2).sum().backward()
        (expected**2).sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad)
    one = torch.randn(9)
    torch.testing.assert_close(cross_entropy(one, torch.tensor(4)), F.cross_entropy(one, torch.tensor(4)))
    spread = torch.zeros(6, dtype=torch.int64)[::2]
    torch.testing.assert_close(cross_entropy(x[:3], spread), F.cross_entropy(x[:3], spread))


@pytest.mark.parametrize("columns", (7, 1100, 1030))
def test_gradcheck(columns):
    x = scores(3, columns, torch.float64).requires_grad_()
    target = targets(3, columns)
    some = columns > 100  # at many columns, along random directions
    for options in (dict(), dict(label_smoothing=0.2, z_loss=0.01), dict(reduction="none")):
        assert torch.autograd.gradcheck(
            lambda x, options=options: cross_entropy(x, target, **options), (x,), fast_mode=some
        )


def test_a_gradient_is_not_changed_by_the_next_one():
    """With a graph that is kept, dx must stay as it is: each scale makes a matrix of its own."""
    x, target = scores(3, 50).requires_grad_(), targets(3, 50)
    loss = cross_entropy(x, target)
    one = torch.autograd.grad(loss, x, retain_graph=True)[0]
    kept = one.clone()
    two = torch.autograd.grad(loss, x, torch.tensor(2.0), retain_graph=True)[0]
    three = torch.autograd.grad(loss, x, torch.tensor(3.0))[0]
    assert torch.equal(one, kept)
    torch.testing.assert_close(two, 2 * kept)
    torch.testing.assert_close(three, 3 * kept)


def test_a_second_derivative_is_refused():
    x = scores(3, 50).requires_grad_()
    (dx,) = torch.autograd.grad(cross_entropy(x, targets(3, 50)), x, create_graph=True)
    with pytest.raises(RuntimeError):
        dx.sum().backward()


def test_accumulated_gradients():
    x, target = scores(3, 50).requires_grad_(), targets(3, 50)
    for _ in range(2):
        (cross_entropy(x, target) + 0.5 * cross_entropy(x, target, reduction="sum")).backward()
    theirs = x.detach().clone().requires_grad_()
    (2 * F.cross_entropy(theirs, target) + F.cross_entropy(theirs, target, reduction="sum")).backward()
    torch.testing.assert_close(x.grad, theirs.grad)


@every_way
def test_in_place_only_on_request(columns, dtype):
    reduction = {100: "none", 1500: "mean", 4500: "sum"}[columns]
    leaf, target = scores(3, columns, dtype).requires_grad_(), targets(3, columns)
    logits = leaf * 1
    values = logits.detach().clone()
    loss = cross_entropy(logits, target, reduction=reduction)
    assert torch.equal(logits, values)
    (expected,) = torch.autograd.grad(loss.sum(), leaf)

    logits = leaf * 1
    cross_entropy(logits.detach(), target, inplace=True)  # no gradient is wanted: nothing to write
    assert torch.equal(logits, values)
    loss = cross_entropy(logits, target, reduction=reduction, inplace=True)
    assert not torch.equal(logits, values)
    torch.testing.assert_close(torch.autograd.grad(loss.sum(), leaf)[0], expected)


def test_in_place_never_harms_another():
    leaf, target = scores(3, 50).requires_grad_(), targets(3, 50)
    with pytest.raises(ValueError, match="leaf"):
        cross_entropy(leaf, target, inplace=True)
    logits = leaf * 1
    other = (logits**2).sum()  # keeps the logits for its own gradient
    loss = cross_entropy(logits, target, inplace=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (loss + other).backward()
    with pytest.raises(ValueError, match="overlap"):
        cross_entropy((leaf * 1)[:1].expand(3, 50), target, inplace=True)
    with pytest.raises(ValueError, match="side by side"):
        cross_entropy((scores(50, 3).requires_grad_() * 1).t(), target, inplace=True)


def test_compile_without_a_graph_break():
    """Traced, not turned into code: there is no need of a C++ compiler."""

    def step(x, target):
        return cross_entropy(x * 2, target, label_smoothing=0.1), cross_entropy(x, target, reduction="none")

    x, target = scores(3, 40).requires_grad_(), targets(3, 40)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    for ours, theirs in zip(compiled(x, target), step(x, target), strict=True):
        torch.testing.assert_close(ours, theirs)
        (dx,) = torch.autograd.grad(ours.sum(), x, retain_graph=True)
        (expected,) = torch.autograd.grad(theirs.sum(), x, retain_graph=True)
        torch.testing.assert_close(dx, expected)


def test_torch_func():
    x, target = scores(3, 40), targets(3, 40)
    ours = torch.func.grad(lambda x: cross_entropy(x, target))(x)
    torch.testing.assert_close(ours, torch.func.grad(lambda x: F.cross_entropy(x, target))(x))


def test_many_rows_are_counted_and_summed_in_parts():
    rows = 4 * loss_mean.EACH + 5
    check(scores(rows, 2), targets(rows, 2))


def test_two_calls_agree():
    x, target = scores(3, 5001), targets(3, 5001)
    assert torch.equal(cross_entropy(x, target), cross_entropy(x, target))


@pytest.mark.skipif(
    tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 9),
    reason="Triton 3.9 interprets no scalar mask on a block (tests/gpu runs this compiled)",
)
@pytest.mark.parametrize("columns, stride, align", ((96, 96, 1), (80, 88, 1), (77, 85, 8)))
@pytest.mark.parametrize("rows, teams", ((1, 1), (5, 2)))
@pytest.mark.parametrize("smoothing, z_loss", ((0.0, 0.0), (0.2, 1e-3)))
def test_teams(monkeypatch, rows, columns, stride, align, teams, smoothing, z_loss):
    """Three programs share a row. In the interpreter none can wait, so they run twice: what the first run
    leaves in the slots, the second finds there."""

    def whatever_is_there(slots_ptr, programs, expected, SLOTS):
        slot = tl.arange(0, SLOTS)
        word = tl.load(slots_ptr + slot, mask=(slot < programs) & expected, other=resident_row.EMPTY)
        m = (word >> 32).to(tl.int32).to(tl.float32, bitcast=True)
        return tl.reduce((m, word.to(tl.int32).to(tl.float32, bitcast=True)), 0, merge)

    monkeypatch.setattr(wide_loss, "collect", whatever_is_there)
    x = scores(rows, stride)[:, :columns]
    x[0, :40] = float("-inf")  # a slice that holds nothing
    target = targets(rows, columns)
    slots = torch.zeros(2, rows, 3, dtype=torch.int64)
    for _ in range(2):
        loss, dx = torch.empty(rows), torch.empty(rows, columns)
        wide_loss.team_loss_kernel[(3 * teams,)](
            loss, dx, slots, x, x, target, columns, stride, rows, columns, -100, 3,
            ALIGN=align, SLOTS=4, BLOCK=32, EVEN=columns == 96, STAGES=1,
            COUNTS=0, SMOOTHING=smoothing, Z_LOSS=z_loss,
        )  # fmt: skip
    expected, gradient = oracle(x[1:], target[1:], smoothing, z_loss, "none", weights=torch.ones(rows - 1))
    torch.testing.assert_close(loss[1:].double(), expected, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(dx[1:].double(), gradient, rtol=1e-5, atol=1e-7)
    if not smoothing:  # with it, −inf makes the loss infinite
        expected, gradient = oracle(x[:1], target[:1], 0.0, z_loss, "none", weights=torch.ones(1))
        torch.testing.assert_close(loss[:1].double(), expected, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(dx[:1].double(), gradient, rtol=1e-5, atol=1e-7)


LAUNCH = """
import importlib
import json
import sys

import torch
from course_kernels import loss_mean, resident_row
from course_kernels.lab.run.compiler import Recorder

module = importlib.import_module("course_kernels.cross_entropy")
architecture = int(sys.argv[1])
resident_row.can_wait = lambda x: x.dtype != torch.float64
resident_row.programs_at_once = lambda *what: 1000
loss_mean.since_hopper = lambda x: architecture >= 90
half = torch.float16 if architecture == 75 else torch.bfloat16

with Recorder([architecture]) as recorder:
    for rows, columns in json.loads(sys.argv[2]):
        target = torch.zeros(rows, dtype=torch.int64)
        for dtype in (torch.float32, half):
            x = torch.empty(rows, columns, dtype=dtype)
            for extra in (0.0, 0.1):
                for differentiate in (False, True):
                    recorder.call = f"{columns} {dtype} {extra} {differentiate}"
                    module.launch(x, target, -100, extra, extra, "mean", differentiate, False)
    loss_mean.scale(torch.empty(8, 5000), torch.ones(()))
print(json.dumps([(c.kernel, c.call, c.stack, c.error) for c in recorder.compiled]))
"""
KERNELS = {
    "count_kernel",
    "sum_kernel",
    "scale_kernel",
    "short_losses_kernel",
    "row_loss_kernel",
    "walk_loss_kernel",
    "chunk_gradient_kernel",
    "team_loss_kernel",
}


@pytest.mark.parametrize("architecture", (75, 80, 89, 90, 100))
def test_every_kernel_compiles_and_rows_kept_in_registers_fit_there(architecture):
    shapes = [(64, 250), (64, 4096), (4, 131_072), (300, 128_256)]
    if architecture == 90:
        shapes += [(300, 32_000), (300, 50_257), (300, 151_936)]
    done = subprocess.run(
        [sys.executable, "-c", LAUNCH, str(architecture), json.dumps(shapes)],
        env={**os.environ, "TRITON_INTERPRET": "0", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    made = json.loads(done.stdout)
    assert [(kernel, call, error) for kernel, call, _, error in made if error] == []
    assert {kernel for kernel, *_ in made} == KERNELS
    if architecture == 90:
        assert [(kernel, call, stack) for kernel, call, stack, _ in made if stack > 32] == []
