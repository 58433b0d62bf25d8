"""The kernels in Triton's interpreter, against float64 PyTorch. What only a GPU shows is in tests/gpu."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import triton

import course_kernels
from course_kernels import (
    backward,
    cluster,
    cluster_row,
    eager,
    fused_row,
    multi_row,
    online,
    packed_row,
    resident_row,
    split_row,
    tiled,
)
from course_kernels.lab import mode

pytestmark = [
    pytest.mark.skipif(not mode.interpreting(), reason="tests/gpu has the same for compiled kernels"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # numpy's, on inf − inf
]

KERNELS = {
    "fused_row": fused_row.softmax,
    "body_and_tail": fused_row.body_and_tail,
    "multi_row": multi_row.softmax,
    "online": online.softmax,
    "tiled": tiled.softmax,
    "split_row": split_row.softmax,
    "cluster_row": cluster_row.softmax,
}
IN_REGISTERS = {"fused_row", "body_and_tail", "multi_row", "online", "cluster_row"}
WITH_LOG = {name: KERNELS[name] for name in ("multi_row", "tiled", "split_row", "cluster_row")}
# The interpreter rounds bfloat16 towards zero, a GPU to nearest: a whole unit here, half of one there.
ROUNDING = {torch.float32: 2**-24, torch.float16: 2**-11, torch.bfloat16: 2**-7, torch.float64: 2**-53}
every_kernel = pytest.mark.parametrize("softmax", KERNELS.values(), ids=KERNELS)


@pytest.fixture(autouse=True)
def poisoned(monkeypatch):
    """Memory that is allocated and not set holds NaN (integers: the largest), so that what a kernel does not
    write is seen."""

    def poisoned(allocate):
        def poison(*args, **kwargs):
            y = allocate(*args, **kwargs)
            return y.fill_(float("nan") if y.is_floating_point() else torch.iinfo(y.dtype).max)

        return poison

    for place, name in ((torch, "empty"), (torch, "empty_like"), (torch.Tensor, "new_empty_strided")):
        monkeypatch.setattr(place, name, poisoned(getattr(place, name)))


def check(y, x, log=False):
    """y is softmax(x), each element to the rounding that its dtype and distance from the maximum allow."""
    assert y.shape == x.shape and y.dtype == x.dtype and y.is_contiguous()
    wide = x.double()
    expected = (torch.log_softmax if log else torch.softmax)(wide, 1)
    distance = (wide - wide.amax(1, keepdim=True)).abs().nan_to_num(0.0, 0.0, 0.0)
    unit = 2**-53 if x.dtype == torch.float64 else 2**-24
    rounding = ROUNDING[x.dtype]
    if log:
        bound = unit * (distance + 16) * 4 + rounding * expected.nan_to_num(0.0, 0.0, 0.0).abs()
    else:
        # exp(x − m) is off by the rounding of x − m, as a share of itself; a sum of n terms adds a little.
        bound = expected.nan_to_num(0.0) * (rounding + unit * (2 * distance + 16)) + torch.finfo(x.dtype).tiny
    same = ((y.double() - expected).abs() <= bound) | (y.isnan() & expected.isnan()) | (y == expected)
    assert same.all(), f"rows {(~same).any(1).nonzero().flatten().tolist()} differ from the oracle"


def scores(rows, columns, dtype=torch.float32, seed=0):
    return (torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)) * 3).to(dtype)


@every_kernel
@pytest.mark.parametrize("columns", (1, 2, 3, 17, 64, 127, 257))
def test_widths(softmax, columns):
    x = scores(5, columns)
    check(softmax(x), x)


@every_kernel
@pytest.mark.parametrize("dtype", ROUNDING, ids=str)
def test_dtypes(softmax, dtype):
    x = scores(4, 100, dtype)
    check(softmax(x), x)


@every_kernel
def test_one_column_is_exactly_one(softmax):
    assert torch.equal(softmax(torch.tensor([[-1e30], [0.0], [3e38]])), torch.ones(3, 1))


def exposing(columns=100):
    """Twelve rows, each of which a known mistake gets wrong."""
    x = scores(12, columns)
    x[0] -= 1000  # padding with 0 wins the maximum
    x[1] += 1000  # exp overflows without the maximum taken off
    x[2] = -1e30 + 0 * x[2]  # below any "large negative" padding
    x[3, 1:] = -1e4  # one score against a spread of 10,000
    x[4] = torch.linspace(-50, 50, columns)  # the maximum grows all the way: a sum never rescaled
    x[5] = torch.linspace(50, -50, columns)
    x[6, columns - 1] = 80.0  # all of the weight in the last, partial tile
    x[7, : columns - 4] = float("-inf")
    x[8, 1:] = float("-inf")
    x[9, : columns - 1] = float("-inf")
    x[10] = 3.0e38
    x[11] = 0.0
    return x


@every_kernel
def test_rows_that_expose_a_mistake(softmax):
    x = exposing()
    check(softmax(x), x)


def not_numbers():
    x = scores(7, 70)
    x[0, 3] = float("nan")
    x[1, 69] = float("nan")
    x[2, :] = float("nan")
    x[3, 0] = float("inf")
    x[4, :] = float("-inf")
    x[5, :64] = float("-inf")
    x[5, 66] = float("nan")
    return x


@every_kernel
def test_nan_and_infinities_as_torch(softmax):
    x = not_numbers()
    y = softmax(x)
    check(y, x)
    assert y[:5].isnan().all() and not y[6].isnan().any()


@pytest.mark.parametrize("dtype", packed_row.DTYPES, ids=str)
def test_packed_rows(dtype):
    """All of the above for the kernel that takes only 16 bits."""
    for columns in (1, 2, 3, 17, 64, 127, 257, 1088, 2049, 3000):
        x = scores(5, columns, dtype)
        x[1, : columns - 1] = float("-inf")
        check(packed_row.softmax(x), x)
        check(packed_row.softmax(x, log=True), x, log=True)
    x = exposing().clamp(-6e4, 6e4).to(dtype)
    check(packed_row.softmax(x), x)
    x = not_numbers().to(dtype)
    check(packed_row.softmax(x), x)
    x = scores(6, 200, dtype)
    for view in (x[:, 10:75], x[::2, 3:40], x[2:3].expand(4, 200)):
        before = x.clone()
        check(packed_row.softmax(view), view)
        assert torch.equal(x, before)
    assert packed_row.softmax(x[:0]).shape == (0, 200) and packed_row.softmax(x[:, :0]).shape == (6, 0)
    with pytest.raises(TypeError, match="takes float16, bfloat16; this tensor is float32"):
        packed_row.softmax(x.float())
    with pytest.raises(ValueError, match=f"at most {packed_row.MAX_COLUMNS:,}"):
        packed_row.softmax(torch.zeros(1, packed_row.MAX_COLUMNS + 1, dtype=dtype))


def near_powers(most):
    widths = {n + d for k in range(18) for n in (2**k, 3 * 2**k, 5 * 2**k, 7 * 2**k) for d in (-1, 0, 1)}
    return sorted(n for n in widths if 0 < n <= most)


def test_the_pieces_of_a_packed_row():
    """Whatever the width, all columns have a lane, and few lanes have none."""
    for columns in near_powers(packed_row.MAX_COLUMNS):
        body, tail = packed_row.pieces(columns)
        assert all(n == triton.next_power_of_2(n) and n >= 2 for n in (body, tail))  # two to a register
        assert columns <= body + tail <= max(1.7 * columns, columns + 4)
        assert body + tail <= 32_770


def test_a_cluster_holds_the_row():
    """As few CTAs as hold it, but more where few rows would leave multiprocessors idle."""
    for columns in near_powers(cluster_row.MAX_COLUMNS):
        for itemsize in (2, 4):
            for rows in (1, 40, 100_000):
                ctas, warps, registers = cluster_row.cluster(rows, columns, itemsize)
                threads = ctas * warps * 32
                vector = 16 // itemsize
                each = triton.cdiv(columns // vector, threads) * vector
                assert each <= cluster_row.VALUES[itemsize], (columns, itemsize, rows)
                assert ctas * warps <= cluster.MAX_WARPS and registers * warps * 32 <= 65_536
    assert cluster_row.cluster(10_000, 65_536, 2) == (2, 8, 128)
    assert cluster_row.cluster(10_000, 65_536, 4) == (2, 16, 128)
    assert cluster_row.cluster(1, 65_536, 4) == (16, 8, 168)
    assert cluster_row.cluster(10_000, 1_025, 2) == (1, 1, 80)


@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16), ids=str)
@pytest.mark.parametrize("columns", (1_027, 2_048))
def test_threads_of_a_cluster_that_hold_nothing(columns, dtype, monkeypatch):
    monkeypatch.setattr(cluster_row, "cluster", lambda *what: (2, 2, 128))
    softmax = cluster_row.softmax.plan  # anew: plans of other tests are for other clusters
    x = scores(6, columns)
    x[0, 8:] = float("-inf")  # all but the first thread
    x[1, : columns - 1] = float("-inf")
    x[2] = float("-inf")
    x[3, : columns // 2] = float("-inf")
    x[3] -= 1000  # exp(0 − (−1000)) is infinite, and 0 · inf is NaN
    x[4, 8:] = float("-inf")
    x[4] += 1000
    x[5, 700] = float("nan")
    x = x.to(dtype)
    check(softmax(x)(x), x)
    check(softmax(x, log=True)(x), x, log=True)


def test_rows_that_begin_elsewhere_than_those_of_the_output_are_left_to_split_row():
    wide = scores(5, 1_030)
    for view in (wide[:, :1_027], wide[:, 1:1_028], wide[1:, :1_026]):
        assert not cluster_row.fits(view)
        plan = cluster_row.softmax.plan(view)
        assert [launch.kernel.__name__ for launch in plan.launches] == ["chunk_kernel", "finish_kernel"]
        check(cluster_row.softmax(view), view)
    assert cluster_row.fits(wide) and cluster_row.fits(wide[:, :1_026])


@every_kernel
def test_any_row_stride(softmax):
    x = scores(6, 200)
    for view in (x[:, 10:75], x[::2, 3:40], x[2:3].expand(4, 200), x.t().contiguous().t()[:1, :]):
        if view.stride(1) == 1:
            check(softmax(view), view)


@every_kernel
def test_empty(softmax):
    for shape in ((0, 5), (5, 0), (0, 0)):
        y = softmax(scores(*shape))
        assert y.shape == shape and y.dtype == torch.float32


@every_kernel
def test_the_input_is_not_written_and_two_calls_agree(softmax):
    x = scores(3, 90)
    before = x.clone()
    assert torch.equal(softmax(x), softmax(x))
    assert torch.equal(x, before)


@every_kernel
def test_what_a_kernel_does_not_take(softmax):
    for dtype in (torch.int64, torch.bool, torch.complex64):
        with pytest.raises(TypeError, match="float16, bfloat16, float32, float64"):
            softmax(torch.zeros(2, 3, dtype=dtype))
    with pytest.raises(ValueError, match="matrix"):
        softmax(torch.zeros(3))
    with pytest.raises(ValueError, match="side by side"):
        softmax(torch.zeros(3, 4).t())


@pytest.mark.parametrize("name", sorted(IN_REGISTERS))
def test_a_row_too_wide(name):
    modules = {"body_and_tail": fused_row, "fused_row": fused_row, "multi_row": multi_row, "online": online}
    module = (modules | {"cluster_row": cluster_row})[name]
    with pytest.raises(ValueError, match=f"at most {module.MAX_COLUMNS:,}"):
        KERNELS[name](torch.zeros(1, module.MAX_COLUMNS + 1))


@pytest.mark.parametrize("columns", (4097, 8193))
def test_tiles_and_chunks_that_hold_one_column(columns):
    x = scores(2, columns)
    x[1, : columns - 1] = float("-inf")  # all tiles but the last are empty
    check(tiled.softmax(x), x)
    check(split_row.softmax(x), x)


def test_a_chunk_that_is_empty_in_a_row_that_is_not():
    x = scores(3, 3 * split_row.SMALLEST_CHUNK)
    x[0, split_row.SMALLEST_CHUNK : 2 * split_row.SMALLEST_CHUNK] = float("-inf")
    x[1] = float("-inf")
    check(split_row.softmax(x), x)


@pytest.mark.parametrize("softmax", WITH_LOG.values(), ids=WITH_LOG)
@pytest.mark.parametrize("dtype", ROUNDING, ids=str)
def test_log(softmax, dtype):
    x = scores(5, 300, dtype)
    if dtype in (torch.float32, torch.float64):
        x[1] -= 1e7  # the log of a quotient, or (x − (m + log d)), loses all digits here
    x[2, 5] = 60.0  # quotients that underflow
    check(softmax(x, log=True), x, log=True)


def test_more_rows_than_a_grid_dimension_but_the_first_holds():
    x = scores(70_000, 2)
    check(multi_row.softmax(x), x)


@pytest.mark.skipif(
    tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 9),
    reason="Triton 3.9 interprets no scalar mask on a block (tests/gpu runs this compiled)",
)
@pytest.mark.parametrize("rows, columns", ((1, 64), (5, 128), (2, 32), (7, 1)))
@pytest.mark.parametrize("programs", (1, 2, 3))
@pytest.mark.parametrize("even", (False, True), ids=("uneven", "even"))
@pytest.mark.parametrize("log", (False, True), ids=("softmax", "log_softmax"))
def test_the_loop_of_resident_row(monkeypatch, rows, columns, programs, log, even):
    """Teams of one program, which have nobody to wait for, walk all rows in the interpreter too."""
    import triton.language as tl

    words = torch.zeros(rows, dtype=torch.int64)

    def alone(slots_ptr, programs, expected, SLOTS):
        if not expected:
            return tl.full((), float("-inf"), tl.float32), tl.full((), 0.0, tl.float32)
        word = tl.load(slots_ptr)
        m = (word >> 32).to(tl.int32).to(tl.float32, bitcast=True)
        return m, word.to(tl.int32).to(tl.float32, bitcast=True)

    monkeypatch.setattr(resident_row, "collect", alone)
    x = scores(rows, columns)
    y = torch.empty(rows, columns)
    resident_row.resident_row_kernel[(programs,)](
        y, x, words, columns, columns, rows, columns, 1, SLOTS=1, BLOCK=columns, EVEN=even, STAGES=1, LOG=log
    )
    check(y, x, log)


def test_resident_row_falls_back_here():
    x = scores(2, 5000)
    check(resident_row.softmax(x), x)


def test_eager():
    x = scores(4, 50)
    check(eager.softmax(x), x)
    check(eager.naive(x), x)
    assert eager.naive(torch.full((1, 2), 100.0)).isnan().all()
    check(eager.softmax(torch.tensor([[1000.0, 1001.0]])), torch.tensor([[1000.0, 1001.0]]))
    assert eager.softmax(torch.zeros(0, 4)).shape == (0, 4)


def test_the_recurrence_by_hand():
    assert [(m, round(d, 4)) for m, d in online.steps([2.0, 5.0, 3.0])] == [(2, 1), (5, 1.0498), (5, 1.1851)]
    assert online.steps([float("-inf"), 1.0]) == [(float("-inf"), 0.0), (1.0, 1.0)]


def test_merge_is_associative_with_an_identity():
    """Merged in any grouping, ten stretches of a row give the same pair, empty stretches among them."""
    import triton.language as tl

    @triton.jit
    def merge_kernel(out_ptr, pairs_ptr):
        m, d = online.merge(
            tl.load(pairs_ptr), tl.load(pairs_ptr + 1), tl.load(pairs_ptr + 2), tl.load(pairs_ptr + 3)
        )
        tl.store(out_ptr, m)
        tl.store(out_ptr + 1, d)

    def merge(a, b):
        out = torch.full((2,), float("nan"))
        pairs = torch.tensor([*a, *b])
        merge_kernel[(1,)](out, pairs)
        return tuple(out.tolist())

    empty = (float("-inf"), 0.0)
    assert merge(empty, empty) == empty
    assert merge(empty, (3.0, 2.0)) == (3.0, 2.0) == merge((3.0, 2.0), empty)
    a, b, c = (-4.0, 1.5), (2.0, 3.0), (60.0, 1.0)
    left, right = merge(merge(a, b), c), merge(a, merge(b, c))
    assert left[0] == right[0] == 60.0 and left[1] == pytest.approx(right[1], rel=1e-6)
    assert merge(a, b) == pytest.approx(merge(b, a))


@pytest.mark.parametrize("log", (False, True), ids=("softmax", "log_softmax"))
@pytest.mark.parametrize("columns", (1, 100, 1025, 20_000))
@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.float16), ids=str)
def test_gradient(columns, dtype, log):
    """One program a row up to 16,384 columns, two launches past it."""
    x = scores(3, columns, torch.float64)
    y = (torch.log_softmax if log else torch.softmax)(x, 1).to(dtype)
    dy = scores(3, columns, dtype, seed=1)
    before = y.clone(), dy.clone()
    dx = backward.softmax_backward(y, dy, log)
    wide, d = y.double(), dy.double()
    expected = (
        d - wide.exp() * d.sum(1, keepdim=True) if log else wide * (d - (wide * d).sum(1, keepdim=True))
    )
    size = d.abs() + wide.exp() * d.abs().sum(1, keepdim=True) if log else wide * (d.abs() + d.abs().amax())
    unit = 2**-52 if dtype == torch.float64 else 2**-22
    bound = size * unit * 8 + expected.abs() * ROUNDING[dtype] + torch.finfo(dtype).tiny
    assert ((dx.double() - expected).abs() <= bound).all()
    assert torch.equal(y, before[0]) and torch.equal(dy, before[1])


def test_gradient_of_nothing_and_of_a_mismatch():
    assert backward.softmax_backward(torch.zeros(0, 3), torch.zeros(0, 3)).shape == (0, 3)
    with pytest.raises(ValueError, match="differ"):
        backward.softmax_backward(torch.zeros(2, 3), torch.zeros(2, 4))


LAUNCH = """
import json
import sys

import torch
from course_kernels import backward, cluster_row, column, column_backward, fused_row, inputs
from course_kernels import multi_row, online, packed_row, ragged_row, resident_row, sharded, split_row, tiled
from course_kernels.lab.compiling import Recorder

architecture = int(sys.argv[1])
inputs.check_place = lambda x: None  # nothing runs, so tensors may lie on the CPU
for module in (resident_row, backward):
    module.can_wait = lambda x: x.dtype != torch.float64
    module.programs_at_once = lambda *what: 1000
for module in (cluster_row, column, column_backward, split_row):
    module.since_hopper = lambda x: architecture >= 90
half = torch.float16 if architecture == 75 else torch.bfloat16
torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)

with Recorder([architecture]) as recorder:

    def launch(function, columns, dtypes, log=(False, True)):
        for dtype in dtypes:
            shape = (200, columns, 64) if function is columns_and_gradient else (4, columns)
            if function is cluster_row.softmax:
                shape = (600, columns)  # few rows are for other clusters
            x = torch.empty(shape, dtype=dtype)
            recorder.call = f"{columns} {str(dtype).removeprefix('torch.')}"
            for one in log:
                function(x, log=True) if one else function(x)

    def gradient(y, log=False):
        backward.softmax_backward(y, torch.empty_like(y), log)

    def columns_and_gradient(x, log=False):
        column.softmax(x, log)
        column_backward.softmax_backward(x, x, log)

    def shard(x, log=False):
        x.requires_grad_()
        (sharded.log_softmax if log else sharded.softmax)(x).sum().backward()
        sharded.cross_entropy(x, torch.zeros(4, dtype=torch.int64)).backward()

    every = (torch.float32, half)
    for module, columns in json.loads(sys.argv[2]):
        plain = module in ("fused_row", "online", "fused_row.body_and_tail")
        name, _, entry = module.partition(".")
        own = {"backward": gradient, "column": columns_and_gradient, "sharded": shard}
        function = own[name] if name in own else getattr(globals()[name], entry or "softmax")
        own = {"packed_row": (half,), "ragged_row": (half,)}
        dtypes = own.get(name, every)
        launch(function, columns, dtypes, (False,) if plain else (False, True))
print(json.dumps([(c.kernel, c.call, c.stack, c.error, c.shared) for c in recorder.compiled]))
"""


def launched(architecture, launches):
    """(kernel, "columns dtype", stack bytes a thread, error, shared bytes) of what launchers would run on it.

    The real compiler, for a GPU that need not be here, in a process that is not the interpreter's.
    """
    done = subprocess.run(
        [sys.executable, "-c", LAUNCH, str(architecture), json.dumps(launches)],
        env={**os.environ, "TRITON_INTERPRET": "0", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def kernels_of_the_package():
    """Every function of the package that is launched: a kernel by its name. Those of cross_entropy compile in
    its own tests."""
    own = ("cross_entropy.py", "loss_mean.py", "wide_loss.py")
    paths = Path(course_kernels.__file__).parent.glob("*.py")
    texts = "".join(path.read_text() for path in paths if path.name not in own)
    return set(re.findall(r"^def (\w*kernel)\(", texts, re.MULTILINE))


@pytest.mark.parametrize("architecture", (75, 80, 89, 90, 100))
def test_every_kernel_compiles(architecture):
    launches = [
        ("fused_row", 4096),
        ("fused_row.body_and_tail", 4160),
        ("multi_row", 250),
        ("ragged_row", 777),
        ("column", 100),
        ("column", 1500),
        ("online", 4096),
        ("tiled", 16_384),
        ("split_row", 131_072),
        ("packed_row", 8256),
        ("resident_row", 131_072),
        ("resident_row", 100_003),
        ("cluster_row", 32_769),
        ("backward", 4096),
        ("backward", 131_072),
        ("backward", 4_194_304),
        ("sharded", 32_000),
    ]
    made = launched(architecture, launches)
    assert [(kernel, call, error) for kernel, call, _, error, _ in made if error] == []
    kernels = {kernel for kernel, *_ in made}
    assert kernels == kernels_of_the_package() - (set() if architecture >= 90 else {"cluster_row_kernel"})


def test_rows_kept_in_registers_fit_there():
    """At widths just past a border, too: a short tail once cost a cluster nine tenths of its speed.

    resident_row may spill a little where masks take registers too: at multiples of 16 that are no power of 2.
    """
    clusters = [("cluster_row", n) for n in (1_778, 25_001, 38_912, 50_257, 151_936)]
    packed = [("packed_row", n) for n in (4096, 12_672, 16_448, 24_576, 32_768)]
    teams = [("resident_row", n) for n in (50_257, 65_537, 100_003, 131_072, 2_097_152)]
    made = launched(90, clusters + packed + teams)
    kernels = {"cluster_row_kernel", "packed_row_kernel", "resident_row_kernel"}
    assert {kernel for kernel, *_ in made} == kernels
    assert [(kernel, call, stack) for kernel, call, stack, *_ in made if stack > 32] == []


def test_in_a_cluster_each_value_stays_with_its_thread():
    """The cluster counts the bytes that its warps send. Were a tile spread otherwise, by way of shared
    memory, warps would send twice, or not at all."""
    made = launched(90, [("cluster_row", n) for n in (65_544, 131_072, 210_001)])
    assert {kernel for kernel, *_ in made} == {"cluster_row_kernel"}
    assert [(call, error, shared) for *_, call, _, error, shared in made if error or shared] == []
