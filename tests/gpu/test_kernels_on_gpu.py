"""The kernels compiled, on a GPU: what the interpreter cannot show. Oracle: float64 PyTorch."""

import pytest
import torch

import course_kernels
from course_kernels import (
    backward,
    cluster_row,
    column,
    dispatch,
    fused_row,
    multi_row,
    online,
    packed_row,
    ragged_row,
    resident_row,
    split_row,
    tiled,
)

pytestmark = pytest.mark.gpu

MODULES = (fused_row, packed_row, multi_row, ragged_row, online, tiled, split_row, cluster_row, resident_row)
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
ROUNDING = {torch.float32: 2**-23, torch.bfloat16: 2**-8, torch.float16: 2**-10, torch.float64: 2**-52}


def poison(nbytes=2**28):
    """Leave NaN in the memory that the next outputs are allocated from."""
    torch.full((nbytes // 4,), float("nan"), device="cuda")


def close(y, x, log=False):
    """y against the oracle, some rows at a time, to the rounding that x and its spread allow."""
    smallest = torch.finfo(y.dtype).tiny  # exponentials below the smallest normal number may come out as 0
    for some, x_some in zip(y.split(256), x.split(256), strict=True):
        wide = x_some.double()
        expected = (torch.log_softmax if log else torch.softmax)(wide, 1)
        spread = (wide - wide.amax(1, keepdim=True)).abs().nan_to_num(0, 0, 0)
        arithmetic = 2**-52 if y.dtype == torch.float64 else 2**-23
        if log:
            bound = (spread + 16) * arithmetic * 4 + expected.abs().nan_to_num(0, 0, 0) * ROUNDING[y.dtype]
        else:
            bound = expected.nan_to_num(0) * (ROUNDING[y.dtype] + (8 + 2 * spread) * arithmetic) + smallest
        same = (some.double() - expected).abs() <= bound
        same |= some.isnan() & expected.isnan()
        same |= some.double() == expected  # infinities
        assert same.all(), (
            f"row {(~same).any(1).nonzero()[0].item()} differs, shape {tuple(x.shape)}, {y.dtype}"
        )


def scores(rows, columns, dtype, shift=0.0):
    """Rows with a common shift, one of them peaked, one with −inf in places."""
    x = torch.randn(rows, columns, device="cuda", dtype=torch.float64) * 3 + shift
    x[0] *= 4
    if rows > 1 and columns > 1:
        x[1, : columns // 2] = float("-inf")
    return x.to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__.split(".")[-1])
def test_every_kernel_at_many_widths(module, dtype):
    if module in (packed_row, ragged_row) and dtype not in module.DTYPES:
        with pytest.raises(TypeError, match="takes float16, bfloat16"):
            module.softmax(scores(5, 64, dtype))
        return
    limit = getattr(module, "MAX_COLUMNS", 2**21)
    for columns in (
        1,
        2,
        3,
        63,
        64,
        781,
        1000,
        1024,
        1025,
        4096,
        4097,
        8193,
        12672,
        16384,
        32768,
        50257,
        131073,
    ):
        if columns <= limit:
            x = scores(5, columns, dtype)
            poison()
            close(module.softmax(x), x)
            if module not in (fused_row, online):
                poison()
                close(module.softmax(x, log=True), x, log=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_dispatcher_at_many_widths(dtype):
    for columns in (
        1,
        64,
        1023,
        1025,
        2049,
        4160,
        8193,
        16385,
        20481,
        24577,
        32768,
        32769,
        50257,
        65536,
        151936,
    ):
        for log in (False, True):
            x = scores(300, columns, dtype, shift=-1000.0 if dtype != torch.float16 else 0.0)
            poison()
            y = (course_kernels.log_softmax if log else course_kernels.softmax)(x)
            close(y, x, log)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16), ids=str)
def test_slices_that_hold_nothing(dtype):
    """Forty random widths, with a row that is −inf but for one score: most slices of it are empty."""
    draw = torch.Generator().manual_seed(7)
    for columns in torch.randint(20_481, 400_000, (40,), generator=draw).tolist() + [
        *(24_577, 32_769, 36_865, 40_961, 65_544, 65_545, 73_728),
        *(151_936, 201_088, 262_208),
    ]:
        x = torch.randn(300, columns, device="cuda").to(dtype)
        x[7] = float("-inf")
        x[7, columns - 1] = -3.0
        x[8] = float("-inf")
        x[9, columns // 2] = float("nan")
        x[10, 0] = float("inf")
        poison()
        close(course_kernels.softmax(x), x)


def test_two_calls_are_bit_identical():
    for columns in (1000, 8193, 65_536, 100_001, 131_072, 151_936):
        x = torch.randn(300, columns, device="cuda")
        assert torch.equal(course_kernels.softmax(x), course_kernels.softmax(x))


def test_more_than_two_to_the_31_elements():
    rows, columns = 2**21 + 3, 1025  # 2.15e9 elements
    x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
    y = course_kernels.softmax(x)
    close(y[-300:], x[-300:])
    del y
    wide = torch.randn(5, 2**29 + 64, device="cuda", dtype=torch.bfloat16)[
        :, :70_000
    ]  # row × stride past 2³¹
    close(resident_row.softmax(wide), wide)
    close(tiled.softmax(wide), wide)


def test_one_very_long_row():
    x = torch.randn(1, 2**24 + 5, device="cuda")
    close(course_kernels.softmax(x), x)
    close(tiled.softmax(x), x)


def test_more_rows_than_grid_y_could_hold():
    x = torch.randn(70_000, 33, device="cuda")
    for module in (fused_row, multi_row, tiled, split_row):
        close(module.softmax(x), x)


def test_the_row_stays_resident_in_one_launch():
    """At a width for teams, on this GPU, the team kernel runs: not the fallback. So with clusters."""
    x = torch.randn(600, 65_536, device="cuda")
    for module, kernel in ((resident_row, "resident_row_kernel"), (cluster_row, "cluster_row_kernel")):
        if module is cluster_row and not cluster_row.has_clusters(x):
            continue
        module.softmax(x)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
            module.softmax(x)
            torch.cuda.synchronize()
        names = " ".join(event.key for event in seen.key_averages())
        assert kernel in names and "finish_kernel" not in names


def test_results_left_for_others_are_read_only_when_there():
    """Few rows in many programs, again and again on fresh values: one that did not wait reads old results."""
    for rows, columns in ((1, 128_256), (3, 40_000), (40, 50_257)):
        for attempt in range(50):
            x = torch.randn(rows, columns, device="cuda") + attempt
            poison(2**22)
            close(split_row.softmax(x), x)
            if columns <= cluster_row.MAX_COLUMNS:
                close(cluster_row.softmax(x), x)


def test_graph_capture():
    """Every kernel that the dispatcher picks, and the gradients'."""
    cases = [(64, 1000), (64, 777), (300, 8192), (300, 8193), (300, 32_768), (300, 50_257), (300, 65_536)]
    cases += [(300, 131_072), (300, 100_003), (2, 100_000), (64, 9, 40), (2, 3000, 40), (128, 1000, 64)]
    for shape in cases:
        for dtype in (torch.float32, torch.bfloat16):
            x = torch.randn(shape, device="cuda").to(dtype)
            dy = torch.randn_like(x)
            for _ in range(2):  # once to compile, once to launch what was kept
                dispatch.gradient(course_kernels.softmax(x, 1), dy, 1, False)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = course_kernels.softmax(x, 1)
                dx = dispatch.gradient(y, dy, 1, False)
            for _ in range(3):
                x.copy_(torch.randn_like(x))
                y.fill_(float("nan"))
                dx.fill_(float("nan"))
                graph.replay()
                as_rows = [t.movedim(1, -1).reshape(-1, shape[1]) for t in (y, x, dx, dy)]
                close(*as_rows[:2])
                close_gradient(as_rows[2], as_rows[0], as_rows[3], False)


def test_four_streams_at_once():
    shapes = ((64, 1000), (300, 50_257), (300, 131_072), (1, 128_256), (300, 65_536), (4, 3000, 40))
    inputs = [torch.randn(shape, device="cuda") for shape in shapes for _ in range(4)]
    for x in inputs:
        course_kernels.softmax(x, 1)
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in range(4)]
    results = []
    for i, x in enumerate(inputs * 5):
        with torch.cuda.stream(streams[i % 4]):
            results.append(course_kernels.softmax(x, 1))
    torch.cuda.synchronize()
    for x, y in zip(inputs * 5, results, strict=True):
        close(*[t.movedim(1, -1).reshape(-1, t.shape[1]) for t in (y, x)])


def spoil(x, draw):
    """Put −inf, +inf or NaN into some places, and sometimes into all of a row or all but one place of it."""
    flat = x.view(-1)

    def places(count):
        return torch.randint(flat.numel(), (count,), generator=draw).cuda()

    pattern = torch.randint(6, (), generator=draw).item()
    if pattern in (1, 5):
        flat[places(flat.numel() // 3)] = float("-inf")
    if pattern in (2, 5):
        flat[places(1)] = float("nan")
    if pattern in (3, 5):
        flat[places(1)] = float("inf")
    if pattern == 4:
        x[0] = float("-inf")
        if x.dim() > 1:
            x[0, -1] = 2.0


@pytest.mark.parametrize("seed", range(20))
def test_random_shapes_strides_dtypes_and_patterns(seed):
    """400 in all, every dim, against float64."""
    draw = torch.Generator().manual_seed(seed)

    def number(below):
        return torch.randint(below, (), generator=draw).item()

    for _ in range(20):
        dtype = DTYPES[number(4)]
        dims = 1 + number(4)
        most = (400_000, 3_000, 100, 40)[dims - 1]
        shape = [1 + number(most) if number(4) else 1 + number(8) for _ in range(dims)]
        x = (torch.randn(shape, generator=draw) * (1 + number(8)) + (number(3) - 1) * 50).cuda().to(dtype)
        spoil(x, draw)
        way = number(5)
        if way == 1:
            x = x.transpose(0, -1)
        elif way == 2:
            x = x[..., :: 1 + number(3)]
        elif way == 3:
            x = x[(slice(number(2), None),) * dims]
        elif way == 4:
            x = torch.cat([x, x], -1)[..., : x.shape[-1]]  # rows further apart than they are long
        for dim in range(dims):
            for log in (False, True):
                poison(2**22)
                y = (course_kernels.log_softmax if log else course_kernels.softmax)(x, dim)
                assert y.stride() == torch.empty(y.shape, device="meta").stride()
                if x.numel():
                    close(*[t.movedim(dim, -1).reshape(-1, t.shape[dim]) for t in (y, x)], log)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_columns(dtype):
    """On chip and in chunks, few and many, whole tiles and not; the gradient as well."""
    for shape in ((3, 5, 7), (1, 1024, 640), (2, 777, 1000), (1, 5000, 33), (1, 70_000, 3), (500, 30, 2)):
        for log in (False, True):
            x = scores(shape[0] * shape[1], shape[2], dtype).view(shape)
            poison()
            y = column.softmax(x, log)
            dy = torch.randn(shape, device="cuda").to(dtype)
            poison()
            dx = dispatch.gradient(y, dy, 1, log)
            as_rows = [t.movedim(1, -1).reshape(-1, shape[1]) for t in (y, x, dx, dy)]
            close(*as_rows[:2], log)
            close_gradient(as_rows[2], as_rows[0], as_rows[3], log)


def test_a_plan_is_kept_for_inputs_alike_alone():
    """Same shape, another alignment, stride, dtype or layout: another compiled kernel, and right values."""
    for columns in (777, 1000, 4096, 8193, 32_768, 65_536):
        base = torch.randn(40 * (columns + 16) + 64, device="cuda")
        for dtype in (torch.float32, torch.bfloat16):
            memory = base.to(dtype)
            for offset in (0, 1, 4, 8, 0, 3):
                for gap in (0, 1, 16):
                    x = memory[offset:].as_strided((40, columns), (columns + gap, 1))
                    for _ in range(2):
                        close(course_kernels.softmax(x), x)


def test_another_current_device():
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs; this machine has one")
    for columns in (1000, 8193, 20_001, 65_536, 131_072):
        x = torch.randn(300, columns, device="cuda:1")
        y = course_kernels.softmax(x)
        assert y.device == x.device
        close(y, x)


def close_gradient(dx, y, dy, log):
    """dx against float64, to the rounding that the sizes of its terms allow."""
    wide, dwide = y.double(), dy.double()
    if log:
        total = dwide.sum(1, keepdim=True)
        expected = dwide - wide.exp() * total
        size = dwide.abs() + wide.exp() * dwide.abs().sum(1, keepdim=True)
    else:
        total = (wide * dwide).sum(1, keepdim=True)
        expected = wide * (dwide - total)
        size = wide * (dwide.abs() + (wide * dwide).abs().sum(1, keepdim=True))
    dtype = dx.dtype
    bound = size * 2**-18 + expected.abs() * ROUNDING[dtype] + torch.finfo(dtype).tiny
    assert ((dx.double() - expected).abs() <= bound).all(), tuple(y.shape)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16), ids=str)
@pytest.mark.parametrize("log", (False, True), ids=("softmax", "log_softmax"))
def test_gradients(log, dtype):
    for rows, columns in ((3, 5), (300, 1000), (300, 16_385), (300, 65_536), (300, 100_001), (2, 600_001)):
        x = torch.randn(rows, columns, device="cuda").to(dtype)
        y = (torch.log_softmax if log else torch.softmax)(x, 1)
        dy = torch.randn(rows, columns, device="cuda").to(dtype)
        y_before, dy_before = y.clone(), dy.clone()
        poison()
        close_gradient(backward.softmax_backward(y, dy, log), y, dy, log)
        assert torch.equal(y, y_before) and torch.equal(dy, dy_before)


def test_compile_without_a_graph_break():
    def loss(x):
        return (course_kernels.softmax(x * 2.0, dim=-1) ** 2).sum(), course_kernels.log_softmax(x, dim=0)

    x = torch.randn(64, 1000, device="cuda", requires_grad=True)
    compiled = torch.compile(loss, fullgraph=True)
    value, logs = compiled(x)
    torch.testing.assert_close(value, (torch.softmax(x * 2.0, -1) ** 2).sum())
    torch.testing.assert_close(logs, torch.log_softmax(x, 0))
    (gradient,) = torch.autograd.grad(value, x)
    (expected,) = torch.autograd.grad((torch.softmax(x * 2.0, -1) ** 2).sum(), x)
    torch.testing.assert_close(gradient, expected)


def test_gradcheck_and_opcheck():
    x = torch.randn(4, 37, dtype=torch.float64, device="cuda", requires_grad=True)
    for function in (course_kernels.softmax, course_kernels.log_softmax):
        assert torch.autograd.gradcheck(function, (x,))
        assert torch.autograd.gradgradcheck(function, (x,))
    torch.library.opcheck(torch.ops.course_kernels.softmax.default, (x.float(), 1, False))


def test_a_tensor_on_the_cpu_is_refused_in_a_sentence():
    with pytest.raises(ValueError, match="on the CPU"):
        course_kernels.softmax(torch.randn(3, 5))
