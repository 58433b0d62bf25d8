"""Launch plans on the CPU: which kernel, with which arguments, for which input. A stand-in plays the GPU."""

import types
import weakref

import pytest
import torch
import triton

from course_kernels import (
    backward,
    column,
    column_backward,
    dispatch,
    mode,
    multi_row,
    plan,
    ragged_row,
    resident_row,
    split_row,
)

pytestmark = pytest.mark.skipif(not mode.interpreting(), reason="without a GPU")
F32, BF16, F64 = torch.float32, torch.bfloat16, torch.float64


class OnGPU:
    """What a launcher asks of a tensor, for one on a GPU that is not here."""

    is_cuda = True
    device = torch.device("cuda", 0)

    def __init__(self, *shape, dtype=F32, strides=None, address=0):
        self.meta = torch.empty_strided(
            shape, strides or torch.empty(shape, device="meta").stride(), dtype=dtype, device="meta"
        )
        self.address = address

    def data_ptr(self):
        return self.address

    def view(self, shape):
        view = self.meta.view(shape)
        return OnGPU(*view.shape, dtype=view.dtype, strides=view.stride(), address=self.address)

    def contiguous(self):
        return OnGPU(*self.meta.shape, dtype=self.meta.dtype)

    def __getattr__(self, name):
        return getattr(self.meta, name)


@pytest.fixture(autouse=True)
def h200(monkeypatch):
    """132 multiprocessors, clusters, and programs that may wait."""
    properties = types.SimpleNamespace(
        multi_processor_count=132,
        regs_per_multiprocessor=65_536,
        max_threads_per_multi_processor=2_048,
        shared_memory_per_multiprocessor=233_472,
    )
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda *_: properties)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
    resident_row.programs_at_once.cache_clear()
    for module in (resident_row, backward):
        monkeypatch.setattr(module, "can_wait", lambda x: x.dtype != F64)
    yield
    resident_row.programs_at_once.cache_clear()


def launches(x, dim=-1, log=False):
    """[(kernel, programs)] of a softmax of x along dim."""
    made = dispatch.forward.plan(x, dim % x.dim(), log)
    return [(launch.kernel.__name__, launch.grid[0]) for launch in made.launches]


def named(launch):
    """A launch's numbers and options by the names of the kernel's parameters."""
    names = launch.kernel.arg_names[len(launch.tensors) :]
    return dict(zip(names, launch.numbers, strict=False)) | launch.options


@pytest.mark.parametrize(
    "x, dim, kernels",
    (
        (OnGPU(100_000, 64), -1, ["multi_row_kernel"]),
        (OnGPU(100_000, 1000, dtype=BF16), -1, ["multi_row_kernel"]),
        (OnGPU(100_000, 777, dtype=BF16), -1, ["ragged_row_kernel"]),
        (OnGPU(10_000, 4096), -1, ["fused_row_kernel"]),
        (OnGPU(10_000, 4097), -1, ["body_and_tail_kernel"]),
        (OnGPU(10_000, 4096, dtype=BF16), -1, ["packed_row_kernel"]),
        (OnGPU(1, 128_256), -1, ["cluster_row_kernel"]),
        (OnGPU(1, 1_000_000), -1, ["chunk_kernel", "finish_kernel"]),
        (OnGPU(10, 40_000, dtype=F64), -1, ["chunk_kernel", "finish_kernel"]),
        (OnGPU(20, 50, 64), -1, ["multi_row_kernel"]),
        (OnGPU(5), 0, ["multi_row_kernel"]),
        (OnGPU(64, 512, 2048), 1, ["column_kernel"]),
        (OnGPU(8, 16, 128, 4096), 2, ["column_kernel"]),
        (OnGPU(4096, 4096), 0, ["chunk_kernel", "merge_kernel", "finish_kernel"]),
        (OnGPU(1024, 2), 0, ["column_kernel"]),
        (OnGPU(700, 64), 0, ["chunk_kernel", "merge_kernel", "finish_kernel"]),
        (OnGPU(4096, 1), 0, ["fused_row_kernel"]),
        (OnGPU(0, 7), 1, []),
        (OnGPU(7, 0, 3), 1, []),
    ),
    ids=lambda v: f"{tuple(v.shape)} {v.dtype}" if isinstance(v, OnGPU) else None,
)
def test_the_kernel_for_an_input(x, dim, kernels):
    assert [kernel for kernel, _ in launches(x, dim)] == kernels


def test_the_output_is_laid_out_as_pytorch_s():
    for shape, dim in (((6, 8, 10), 0), ((6, 8, 10), 1), ((6, 8, 10), 2), ((4, 1), 0)):
        made = dispatch.forward.plan(OnGPU(*shape), dim, False)
        assert (made.shape, made.strides) == (torch.Size(shape), torch.empty(shape).stride())


def test_only_what_no_stride_can_join_is_copied():
    def copies(x, dim):
        return dispatch.forward.plan(x, dim, False).copies

    whole = OnGPU(6, 8, 64)
    assert not any(copies(whole, dim) for dim in (0, 1, 2))
    apart = OnGPU(6, 8, 64, strides=(1024, 64, 1))  # a gap behind each of the six
    assert [copies(apart, dim) for dim in (0, 1, 2)] == [False, False, True]
    assert copies(OnGPU(8, 64, strides=(1, 8)), 0) and copies(OnGPU(8, 64, strides=(1, 8)), 1)
    assert not copies(OnGPU(100, 64, strides=(0, 1)), 1)  # one row, a hundred times


def test_rows_of_a_view_are_taken_where_they_lie():
    (launch,) = dispatch.forward.plan(OnGPU(6, 8, 64, strides=(1024, 128, 1)), 2, False).launches
    numbers = named(launch)
    assert numbers["rows"] == 48 and numbers["x_stride"] * numbers["UNIT"] == 128
    assert numbers["y_stride"] * numbers["UNIT"] == 64 and numbers["columns"] * numbers["UNIT"] == 64


@pytest.mark.parametrize("columns, unit", ((64, 16), (1000, 8), (100, 4), (250, 2), (777, 1)))
def test_rows_and_strides_are_counted_in_what_divides_them(columns, unit):
    (launch,) = multi_row.softmax.plan(OnGPU(1_000, columns)).launches
    numbers = named(launch)
    assert numbers["UNIT"] == unit and numbers["columns"] * unit == numbers["x_stride"] * unit == columns
    (apart,) = multi_row.softmax.plan(OnGPU(1_000, columns, strides=(columns + 1, 1))).launches
    assert named(apart)["UNIT"] == 1


def test_ragged_rows_must_begin_where_those_of_the_output_do():
    def kernel(**where):
        return ragged_row.softmax.plan(OnGPU(100, 777, dtype=BF16, **where)).launches[0].kernel.__name__

    assert kernel() == kernel(strides=(777 + 8, 1)) == "ragged_row_kernel"
    assert kernel(strides=(780, 1)) == kernel(address=2) == "multi_row_kernel"


@pytest.mark.parametrize("dtype", (F32, BF16, F64), ids=str)
@pytest.mark.parametrize("shape", ((1, 1024, 65_536), (3, 5, 7), (50_000, 8, 4), (2, 700, 1), (1, 10**6, 3)))
@pytest.mark.parametrize("log", (False, True))
def test_tiles_of_columns_cover_the_tensor(shape, dtype, log):
    outer, length, inner = shape
    x = OnGPU(*shape, dtype=dtype)
    for made in (column.softmax.plan(x, log), column_backward.softmax_backward.plan(x, x, log)):
        first, *rest = made.launches
        options = named(first)
        across = triton.cdiv(inner, options["INNER"])
        if rest:
            chunks, pieces = (triton.cdiv(length, n) for n in (options["CHUNK"], named(rest[1])["ROWS"]))
            programs = [launch.grid[0] for launch in made.launches]
            merging = triton.cdiv(inner, min(options["INNER"], 8))
            assert programs == [outer * chunks * across, outer * merging, outer * pieces * across]
            parts = outer * chunks * inner
            assert made.scratch == (2 * parts if first.kernel is column.chunk_kernel else parts)
            assert made.dtype == (F64 if dtype == F64 else F32)
            assert options["EARLY"] and all(launch.options["launch_pdl"] for launch in rest)
        else:
            assert options["LENGTH"] >= length
            assert first.grid[0] == triton.cdiv(outer, options["OUTER"]) * across
        held = options["INNER"] * options.get("LENGTH", options.get("CHUNK")) * options.get("OUTER", 1)
        assert held * x.element_size() <= 128 * 2**10  # half of a multiprocessor's registers


def test_a_plan_is_made_once_for_inputs_alike():
    made = []

    @plan.planned
    def count(x, log=False):
        made.append((x.shape, log))
        return plan.Plan(x)

    x = torch.zeros(4, 8)
    for same in (x, torch.ones(4, 8), x.clone()):
        count(same)
        count(same)
    assert len(made) == len({t.data_ptr() % 16 for t in (x, x.clone())})
    for other in (x.double(), torch.zeros(8, 4), torch.zeros(4, 16)[:, :8], torch.zeros(33)[1:].view(4, 8)):
        before = len(made)
        count(other)
        count(other)
        assert len(made) == before + 1
    before = len(made)
    count(x, True)
    count(x, True)
    assert len(made) == before + 1 and made[-1] == (x.shape, True)


def test_plans_hold_no_tensor_and_do_not_pile_up(monkeypatch):
    monkeypatch.setattr(plan, "MOST_PLANS", 3)
    sizes = []

    @plan.planned
    def make(x):
        sizes.append(x.shape[0])
        return plan.Plan(x)

    for n in (1, 2, 3, 1, 4, 4, 1):
        x = torch.zeros(n)
        gone = weakref.ref(x)
        make(x)
        del x
        assert gone() is None
    assert sizes == [1, 2, 3, 4, 1]  # the fourth threw the first three away


def test_a_refused_team_gives_way_to_two_launches():
    """Another process may hold a part of the GPU."""

    class Refused:
        def __call__(self, tensors):
            raise RuntimeError("Triton Error [CUDA]: too many blocks in cooperative launch")

    x = torch.randn(3, 5000)
    made = plan.Plan(x, Refused(), otherwise=split_row.softmax.plan(x, False))
    torch.testing.assert_close(made(x), torch.softmax(x, 1))
    with pytest.raises(RuntimeError, match="cooperative"):
        plan.Plan(x, Refused())(x)
