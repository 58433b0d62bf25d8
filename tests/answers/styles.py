"""Right answers as different people write them: habits of style that no check may trip over."""

RIGHT: dict[str, dict[str, str]] = {
    "copy_rows": {
        "dataclass of launch options": '''"""My copy kernel."""
from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
from triton import language as tl


@dataclass(frozen=True)
class Launch:
    BLOCK: int
    num_warps: int = 4


def options(columns: int) -> Launch:
    block = triton.next_power_of_2(columns)
    return Launch(BLOCK=block, num_warps=8 if block > 4096 else 4)


@triton.jit
def copy_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    tl.store(y_ptr + row * y_stride + column, tl.load(x_ptr + row * x_stride + column, mask=inside), mask=inside)


def copy_rows(x: torch.Tensor) -> torch.Tensor:
    assert x.ndim == 2, f"expected a matrix, got {x.ndim} dimensions"
    rows, columns = x.shape
    y = torch.empty_like(x)
    launch = options(columns)
    copy_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=launch.BLOCK, num_warps=launch.num_warps)
    return y
''',
        "asdict of a dataclass": """import dataclasses
import torch
import triton
import triton.language as tl


@dataclasses.dataclass
class Config:
    BLOCK: int = 1024
    num_warps: int = 4

    @classmethod
    def of(cls, columns):
        return cls(BLOCK=triton.next_power_of_2(columns))


@triton.jit
def copy_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask)
    tl.store(y_ptr + row * y_stride + column, x, mask=mask)


def copy_rows(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    copy_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, **dataclasses.asdict(Config.of(columns)))
    return y
""",
        "sys imported, a test below main": """import sys
import torch
import triton
import triton.language as tl

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def copy_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask)
    tl.store(y_ptr + row * y_stride + column, x, mask=mask)


def copy_rows(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    copy_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y


if __name__ == "__main__":
    x = torch.randn(7, 33, device=DEVICE)
    y = copy_rows(x)
    torch.testing.assert_close(x, y)
    print("ok", y.shape, file=sys.stderr)
""",
        "a column axis in the grid, walrus, lambda": """import torch, triton
import triton.language as tl

@triton.jit
def copy_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask)
    tl.store(y_ptr + row * y_stride + column, x, mask=mask)

def copy_rows(x):
    y = torch.empty_like(x)
    if (rows := x.size(0)) == 0 or (columns := x.size(1)) == 0:
        return y
    grid = lambda meta: (rows, triton.cdiv(columns, meta["BLOCK"]))
    copy_kernel[grid](y, x, y.stride(0), x.stride(0), columns, BLOCK=256)
    return y
""",
        "persistent loop": """import torch
import triton
import triton.language as tl



@triton.jit
def copy_kernel(y_ptr, x_ptr, y_stride, x_stride, rows, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    mask = column < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * x_stride + column, mask=mask)
        tl.store(y_ptr + row * y_stride + column, x, mask=mask)


def copy_rows(x):
    rows, columns = x.shape
    y = x.new_empty(rows, columns)
    programs = min(rows, 64)
    copy_kernel[(programs,)](y, x, *y.stride()[:1], *x.stride()[:1], rows, columns, BLOCK=triton.next_power_of_2(columns))
    return y
""",
        "block pointers": """import torch
import triton
import triton.language as tl



@triton.jit
def copy_kernel(y_ptr, x_ptr, y_stride, x_stride, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    src = tl.make_block_ptr(x_ptr, shape=(rows, columns), strides=(x_stride, 1), offsets=(row, 0), block_shape=(1, BLOCK), order=(1, 0))
    dst = tl.make_block_ptr(y_ptr, shape=(rows, columns), strides=(y_stride, 1), offsets=(row, 0), block_shape=(1, BLOCK), order=(1, 0))
    tl.store(dst, tl.load(src, boundary_check=(1,)), boundary_check=(1,))


def copy_rows(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    copy_kernel[(rows,)](y, x, y.stride(0), x.stride(0), rows, columns, BLOCK=triton.next_power_of_2(columns))
    return y
""",
        "numpy and typing and warnings": """import math
import warnings
from typing import Tuple, Optional

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask)
    tl.store(y_ptr + row * y_stride + column, x, mask=mask)


def block_for(columns: int) -> int:
    if columns > 1 << 16:
        warnings.warn("a long row")
    return 2 ** math.ceil(math.log2(columns)) if columns > 1 else 1


def shape_of(x: torch.Tensor) -> Tuple[int, int]:
    m, n = x.shape
    return int(np.int64(m)), int(n)


def copy_rows(x: torch.Tensor, out: Optional[torch.Tensor] = None) -> torch.Tensor:
    rows, columns = shape_of(x)
    y = torch.empty((rows, columns), dtype=x.dtype, device=x.device) if out is None else out
    copy_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=block_for(columns))
    return y
""",
        "returns a view of a padded buffer": """import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    tl.store(y_ptr + row * y_stride + column, tl.load(x_ptr + row * x_stride + column, mask=mask), mask=mask)


def copy_rows(x):
    rows, columns = x.shape
    y = torch.empty((rows, columns + 3), dtype=x.dtype, device=x.device)[:, :columns]
    copy_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
""",
    },
    "safe_softmax": {
        "operators and sub_": '''import torch
from torch import Tensor


def safe_softmax(x: Tensor) -> Tensor:
    """x - max, exp, sum, div"""
    m = torch.max(x, dim=-1, keepdim=True)[0]
    e = (x - m).exp_()
    return e.div_(e.sum(-1, keepdim=True))
''',
        "values, float32, pow": """import math
import torch


def rowmax(x):
    return x.max(dim=1, keepdim=True).values


def safe_softmax(x):
    # en français : on travaille en float32
    z = x.to(torch.float32)
    z = z - rowmax(z)
    num = torch.pow(math.e, z)
    den = torch.sum(num, dim=1, keepdim=True)
    return (num / den).to(x.dtype)
""",
        "broadcast with None, type_as, print": """import torch
import time

VERBOSE = False


def safe_softmax(x: "torch.Tensor"):
    t0 = time.perf_counter()
    maximum, _ = x.float().max(1)
    shifted = x.float() - maximum[:, None]
    numerator = shifted.exp()
    out = numerator / numerator.sum(1)[:, None]
    if VERBOSE:
        print(f"took {time.perf_counter() - t0:.3f} s")
    print("shape:", tuple(x.shape))
    return out.type_as(x)
""",
        "row by row with stack": """import torch


def one(row):
    e = torch.exp(row - row.max())
    return e / e.sum()


def safe_softmax(x):
    return torch.stack([one(row) for row in x])
""",
        "einops style unsqueeze, no_grad": """import torch


@torch.no_grad()
def safe_softmax(x):
    m = x.max(dim=1).values.unsqueeze(1)
    e = torch.exp(torch.sub(x, m))
    s = torch.einsum("ij->i", e).unsqueeze(-1)
    return torch.div(e, s)
""",
    },
    "count_traffic": {
        "namedtuple": """from collections import namedtuple

Traffic = namedtuple("Traffic", "reads writes")


def eager_traffic(m, n):
    steps = {
        "max": (m * n, m),
        "sub": (m * n + m, m * n),
        "exp": (m * n, m * n),
        "sum": (m * n, m),
        "div": (m * n + m, m * n),
    }
    return Traffic(sum(r for r, _ in steps.values()), sum(w for _, w in steps.values()))


def fused_traffic(m, n):
    return Traffic(m * n, m * n)


def safe_traffic(m, n):
    return Traffic(3 * m * n, m * n)


def online_traffic(m, n):
    return Traffic(2 * m * n, m * n)
""",
        "a NamedTuple class and Enum": """import enum
import functools
import operator
import typing


class Step(enum.Enum):
    MAX = 1
    SUB = 2


class Traffic(typing.NamedTuple):
    reads: int
    writes: int

    def __add__(self, other):
        return Traffic(self.reads + other.reads, self.writes + other.writes)


def eager_traffic(m: int, n: int) -> Traffic:
    size = m * n
    each = [Traffic(size, m), Traffic(size + m, size), Traffic(size, size), Traffic(size, m), Traffic(size + m, size)]
    return functools.reduce(operator.add, each)


def walks(k):
    def traffic(m, n):
        return k * m * n, m * n
    return traffic


fused_traffic, safe_traffic, online_traffic = (walks(k) for k in (1, 3, 2))
""",
        "numpy sums, list returned": """import numpy as np
from itertools import chain


def eager_traffic(m, n):
    r = np.array([m * n, m * n + m, m * n, m * n, m * n + m])
    w = np.array([m, m * n, m * n, m, m * n])
    return [int(r.sum()), int(w.sum())]


fused_traffic = lambda m, n: (m * n, m * n)
safe_traffic = lambda m, n: (m * n * 3, m * n)


def online_traffic(m, n):
    reads = sum(chain([m * n], [m * n]))
    return reads, m * n
""",
        "numpy integers": """import numpy as np


def eager_traffic(m, n):
    return np.int64(5 * m * n + 2 * m), np.int64(3 * m * n + 2 * m)


def fused_traffic(m, n):
    return (m * n,) * 2


def safe_traffic(m, n):
    return np.array([3 * m * n, m * n])


def online_traffic(m, n):
    return 2.0 * m * n, m * n
""",
        "dict by match": """def _count(kind, m, n):
    match kind:
        case "eager":
            return 5 * m * n + 2 * m, 3 * m * n + 2 * m
        case "fused":
            return m * n, m * n
        case "safe":
            return 3 * m * n, m * n
        case "online":
            return 2 * m * n, m * n
        case _:
            raise ValueError(kind)


def eager_traffic(m, n): return _count("eager", m, n)
def fused_traffic(m, n): return _count("fused", m, n)
def safe_traffic(m, n): return _count("safe", m, n)
def online_traffic(m, n): return _count("online", m, n)


def test_all():
    assert eager_traffic(1, 1) == (7, 5)
    assert fused_traffic(2, 3) == (6, 6)
""",
    },
    "fused_softmax": {
        "lru_cache around a config helper": '''import functools
import torch
import triton
import triton.language as tl


@functools.lru_cache(maxsize=None)
def config(columns: int) -> dict:
    """Launch options for a width."""
    BLOCK = triton.next_power_of_2(columns)
    num_warps = 4
    if BLOCK >= 2048:
        num_warps = 8
    if BLOCK >= 4096:
        num_warps = 16
    return {"BLOCK": BLOCK, "num_warps": num_warps}


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, **config(columns))
    return y
''',
        "the Triton tutorial's persistent kernel": """import torch

import triton
import triton.language as tl
from triton.runtime import driver


@triton.jit
def softmax_kernel(output_ptr, input_ptr, input_row_stride, output_row_stride, n_rows, n_cols, BLOCK_SIZE: tl.constexpr,
                   num_stages: tl.constexpr):
    # starting row of the program
    row_start = tl.program_id(0)
    row_step = tl.num_programs(0)
    for row_idx in tl.range(row_start, n_rows, row_step, num_stages=num_stages):
        # The stride represents how much we need to increase the pointer to advance 1 row
        row_start_ptr = input_ptr + row_idx * input_row_stride
        col_offsets = tl.arange(0, BLOCK_SIZE)
        input_ptrs = row_start_ptr + col_offsets
        mask = col_offsets < n_cols
        row = tl.load(input_ptrs, mask=mask, other=-float('inf'))
        row_minus_max = row - tl.max(row, axis=0)
        numerator = tl.exp(row_minus_max.to(tl.float32))
        denominator = tl.sum(numerator, axis=0)
        softmax_output = numerator / denominator
        output_row_start_ptr = output_ptr + row_idx * output_row_stride
        output_ptrs = output_row_start_ptr + col_offsets
        tl.store(output_ptrs, softmax_output, mask=mask)


def fused_softmax(x):
    n_rows, n_cols = x.shape
    BLOCK_SIZE = triton.next_power_of_2(n_cols)
    num_warps = 8
    num_stages = 2
    y = torch.empty_like(x)
    num_programs = min(128, n_rows)
    softmax_kernel[(num_programs, 1, 1)](y, x, x.stride(0), y.stride(0), n_rows, n_cols, BLOCK_SIZE, num_stages, num_warps=num_warps)
    return y
""",
        "heuristics": """import torch
import triton
import triton.language as tl


@triton.heuristics({
    "BLOCK": lambda args: triton.next_power_of_2(args["columns"]),
    "num_warps": lambda args: 8 if args["columns"] > 2048 else 4,
})
@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns)
    return y
""",
        "autotune": """import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({}, num_warps=w) for w in (1, 2, 4, 8)],
    key=["columns"],
)
@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
""",
        "own combine functions, CRLF": """import torch
import triton
import triton.language as tl



@triton.jit
def larger(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask)
    x = tl.where(mask, x.to(tl.float32), -float("inf"))
    m = tl.reduce(x, 0, larger)
    e = tl.exp(x - m)
    d = tl.reduce(e, 0, add)
    tl.store(y_ptr + row * y_stride + column, (e / d).to(y_ptr.dtype.element_ty), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
""".replace("\n", "\r\n"),
        "tabs and a BOM": "\ufeff"
        + """import torch
import triton
import triton.language as tl



@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)  # 行
    column = tl.arange(0, BLOCK)  # столбец
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask, -float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, 0), mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, triton.next_power_of_2(columns))
    return y
""".replace("    ", "\t"),
        "own decorator with wraps": """from functools import wraps
import torch
import triton
import triton.language as tl


def checked(fn):
    @wraps(fn)
    def inner(x, *args, **kwargs):
        if x.dtype not in (torch.float32, torch.float16):
            raise TypeError(f"{fn.__name__} takes float32 or float16, not {x.dtype}")
        assert x.dim() == 2
        assert x.stride(-1) == 1
        return fn(x, *args, **kwargs)
    return inner


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


@checked
def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
""",
        "the device's properties, a try": """import torch
import triton
import triton.language as tl

try:
    DEVICE = triton.runtime.driver.active.get_active_torch_device()
except Exception:
    DEVICE = torch.device("cpu")


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    if torch.cuda.is_available():
        sms = torch.cuda.get_device_properties(x.device).multi_processor_count
    else:
        sms = 1
    assert sms >= 1
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
""",
        "other names for all modules, 2-D tiles": """import torch as th
import triton as tr
from triton import jit, cdiv, next_power_of_2
import triton.language as L

NEG_INF = L.constexpr(float("-inf"))


@jit
def k(Y, X, sy, sx, M, N, R: L.constexpr, B: L.constexpr):
    r = L.program_id(0) * R + L.arange(0, R)
    c = L.arange(0, B)
    ok = (r < M)[:, None] & (c < N)[None, :]
    x = L.load(X + r[:, None] * sx + c[None, :], ok, other=NEG_INF).to(L.float32)
    x = L.where((r < M)[:, None], x, 0.0)
    e = L.exp(x - L.max(x, 1)[:, None])
    L.store(Y + r[:, None] * sy + c[None, :], e / L.sum(e, 1, keep_dims=True), ok)


def fused_softmax(x):
    M, N = x.size()
    y = th.empty_like(x)
    R = 4 if N <= 1024 else 1
    k[(cdiv(M, R),)](y, x, y.stride(0), x.stride(0), M, N, R, next_power_of_2(N))
    return y
""",
        "device assert, debug print off, static assert, multiple_of": '''import torch
import triton
import triton.language as tl



@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr, DEBUG: tl.constexpr = False):
    """One row."""
    tl.static_assert(BLOCK & (BLOCK - 1) == 0)
    row = tl.program_id(0)
    column = tl.max_contiguous(tl.arange(0, BLOCK), BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf"), eviction_policy="evict_first").to(tl.float32)
    if DEBUG:
        tl.device_print("row", row)
    e = tl.exp(x - tl.max(x, axis=0))
    d = tl.sum(e, axis=0)
    tl.device_assert(d > 0, "empty") if DEBUG else None
    y = tl.fdiv(e, d)
    tl.store(y_ptr + row * y_stride + column, y, mask=mask, cache_modifier=".cs")


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
''',
        "triton.language under a name of its own": """import torch
import triton

tl = triton.language


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
""",
        "triton.language.constexpr annotation": """import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: triton.language.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
""",
        "quoted constexpr": """import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: "tl.constexpr"):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
""",
        "another alias than tl": """import torch
import triton
import triton.language as ttl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: ttl.constexpr):
    row = ttl.program_id(0)
    column = ttl.arange(0, BLOCK)
    mask = column < columns
    x = ttl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(ttl.float32)
    e = ttl.exp(x - ttl.max(x, axis=0))
    ttl.store(y_ptr + row * y_stride + column, e / ttl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
""",
        "__all__ and __author__": """__all__ = ["fused_softmax"]
__author__ = "me"
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
""",
        "os and sys imported, and not used": """import os
import sys
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
""",
        "two underscores for what is not needed": """import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    for _, __ in enumerate(range(2)):
        pass
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
""",
        "self.__class__": """import torch
import triton
import triton.language as tl


class Config:
    __slots__ = ("BLOCK", "_warps")

    def __init__(self, columns):
        self.BLOCK = triton.next_power_of_2(columns)
        self._warps = 4

    def __repr__(self):
        return f"{self.__class__.__name__}({self.BLOCK})"


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    config = Config(columns)
    print(config)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=config.BLOCK)
    return y
""",
        "autograd function with ctx": """import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        rows, columns = x.shape
        y = torch.empty_like(x)
        softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return y * (dy - (y * dy).sum(1, keepdim=True))


def fused_softmax(x):
    return Softmax.apply(x)
""",
        "log of the sum, apart": """import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    z = x - tl.max(x, axis=0)
    lse = tl.log(tl.sum(tl.exp(z), axis=0))
    tl.store(y_ptr + row * y_stride + column, tl.exp(z - lse), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
""",
        "a namedtuple of options": """import torch
from collections import namedtuple
import triton
import triton.language as tl


Opt = namedtuple("Opt", ["num_warps", "num_stages"], defaults=[4, 2])


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns), **Opt()._asdict())
    return y
""",
        "the output printed": """import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    print(y)
    return y
""",
        "tested while it is imported": """import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y


x = torch.randn(4, 5)
print(fused_softmax(x).sum(dim=1))
assert torch.allclose(fused_softmax(x), torch.softmax(x, dim=1))
""",
        "docstrings and comments in many languages": '''import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    """softmax of a row

    x_ptr: where x lies
    """
    row = tl.program_id(0)
    # это строка
    pid = row  # 行番号
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
''',
        "two loads by halves": """import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, HALF: tl.constexpr):
    row = tl.program_id(0)
    a = tl.arange(0, HALF)
    b = HALF + tl.arange(0, HALF)
    xa = tl.load(x_ptr + row * x_stride + a, mask=a < columns, other=-float("inf")).to(tl.float32)
    xb = tl.load(x_ptr + row * x_stride + b, mask=b < columns, other=-float("inf")).to(tl.float32)
    m = tl.maximum(tl.max(xa, 0), tl.max(xb, 0))
    ea, eb = tl.exp(xa - m), tl.exp(xb - m)
    d = tl.sum(ea, 0) + tl.sum(eb, 0)
    tl.store(y_ptr + row * y_stride + a, ea / d, mask=a < columns)
    tl.store(y_ptr + row * y_stride + b, eb / d, mask=b < columns)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, HALF=max(1, triton.next_power_of_2(columns) // 2))
    return y
""",
        "a scalar block of at least 16, warps from a formula": """import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=max(16, triton.next_power_of_2(columns)), num_warps=max(1, min(16, 2 ** ((columns // 256).bit_length()))), num_stages=1)
    return y
""",
        "tl.static_range": """import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, rows, columns, BLOCK: tl.constexpr, R: tl.constexpr):
    column = tl.arange(0, BLOCK)
    mask = column < columns
    for r in tl.static_range(R):
        row = tl.program_id(0) * R + r
        if row < rows:
            x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
            e = tl.exp(x - tl.max(x, axis=0))
            tl.store(y_ptr + row * y_stride + column, e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(triton.cdiv(rows, 2),)](y, x, y.stride(0), x.stride(0), rows, columns, BLOCK=triton.next_power_of_2(columns), R=2)
    return y
""",
        "strides as tuples": """import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_strides, x_strides, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_strides[0] + column * x_strides[1], mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_strides[0] + column * y_strides[1], e / tl.sum(e, axis=0), mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(), x.stride(), columns, BLOCK=triton.next_power_of_2(columns))
    return y
""",
    },
    "break_padding": {
        "numpy generator": """import numpy as np
import torch


def break_padding():
    rng = np.random.default_rng(0)
    return torch.from_numpy(-1 - rng.random((4, 37)))
""",
        "a list, ones, manual_seed": """import torch


def break_padding():
    torch.manual_seed(0)
    x = -torch.rand(2, 7, dtype=torch.float64) * 5 - 2
    print(x)
    return x
""",
        "numpy array itself": """import numpy as np
def break_padding():
    return np.full((1, 5), -3.0)
""",
    },
    "log_softmax": {
        "constexpr globals, log2, exp2": """import math
import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(math.log2(math.e))
LN2 = tl.constexpr(math.log(2))


@triton.jit
def kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    z = x - tl.max(x, axis=0)
    d = tl.sum(tl.exp2(z * LOG2E), axis=0)
    tl.store(y_ptr + row * y_stride + column, z - tl.log2(d) * LN2, mask=mask)


def log_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))
    return y
""",
        "helper jit, keep_dims, partial": """from functools import partial
from contextlib import nullcontext
import torch
import triton
import triton.language as tl


@triton.jit
def _log_softmax(x, axis: tl.constexpr):
    z = x - tl.max(x, axis=axis, keep_dims=True)
    return z - tl.log(tl.sum(tl.exp(z), axis=axis, keep_dims=True))


@triton.jit
def kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    tl.store(y_ptr + row * y_stride + column, _log_softmax(x, 0), mask=mask)


def log_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    launch = partial(kernel[(rows,)], BLOCK=triton.next_power_of_2(columns), num_warps=4)
    with nullcontext():
        launch(y, x, y.stride(0), x.stride(0), columns)
    return y
""",
        "zeros, numel, x.device.type check": """import torch
import triton
import triton.language as tl


@triton.jit
def kernel(y_ptr, x_ptr, y_stride, x_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    shifted = x - tl.max(x, axis=0)
    d = tl.sum(tl.exp(shifted), axis=0)
    tl.store(y_ptr + row * y_stride + column, shifted - tl.log(d), mask=mask)


def log_softmax(x):
    assert x.device.type in ("cuda", "cpu")
    assert x.is_cuda or not x.is_cuda
    y = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        return y
    rows = x.numel() // x.shape[1]
    BLOCK, *_ = (triton.next_power_of_2(x.shape[1]),)
    num_warps = min(max(BLOCK // 256, 1), 8)
    kernel[rows,](y, x, y.stride(0), x.stride(0), x.shape[1], BLOCK=BLOCK, num_warps=num_warps)
    return y
""",
    },
    "online_merge": {
        "where by which is larger": """import triton
import triton.language as tl


@triton.jit
def merge(m1, d1, m2, d2):
    bigger = m1 > m2
    hi = tl.where(bigger, m1, m2)
    lo = tl.where(bigger, m2, m1)
    dhi = tl.where(bigger, d1, d2)
    dlo = tl.where(bigger, d2, d1)
    gap = tl.where(lo == -float("inf"), -float("inf"), lo - hi)
    return hi, dhi + dlo * tl.exp(gap)
""",
        "helpers and annotations, main": '''"""Merge."""
from __future__ import annotations
import torch
import triton
import triton.language as tl

NEG: tl.constexpr = tl.constexpr(float("-inf"))


@triton.jit
def scale(m, to):
    return tl.where(m == to, 1.0, tl.exp(m - to))


@triton.jit
def merge(m1, d1, m2, d2):
    """merge two stretches"""
    m = tl.maximum(m1, m2)
    d = d1 * scale(m1, m) + d2 * scale(m2, m)
    return (m, d)


@triton.jit
def demo(out, x, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    m, d = tl.reduce((v, v * 0 + 1), 0, merge)
    tl.store(out, m)
    tl.store(out + 1, d)


if __name__ == "__main__":
    x = torch.randn(16)
    out = torch.empty(2)
    demo[(1,)](out, x, 16)
    print(out, x.max(), torch.exp(x - x.max()).sum())
''',
        "abs of the difference": """import triton
from triton import language as tl

@triton.jit
def merge(m1, d1, m2, d2):
    delta = m1 - m2
    delta = tl.where(m1 == m2, 0.0, delta)
    s = tl.exp(-tl.abs(delta))
    m = tl.maximum(m1, m2)
    d = tl.where(delta > 0, d1 + d2 * s, d1 * s + d2)
    return m, d
""",
    },
    "online_stats": {
        "while loop, lanes": """import torch
import triton
import triton.language as tl

@triton.jit
def stats_kernel(m_ptr, d_ptr, x_ptr, x_stride, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    x_ptr += row * x_stride
    m = tl.full((), float("-inf"), tl.float32)
    d = tl.full((), 0, tl.float32)
    start = 0
    while start < columns:
        offs = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + offs, offs < columns, other=float("-inf")).to(tl.float32)
        m_old = m
        m = tl.maximum(m, tl.max(x, 0))
        a = m
        if m == float("-inf"):
            a = 0.0
        d = d * tl.exp(m_old - a) + tl.sum(tl.exp(x - a), 0)
        start += TILE
    tl.store(m_ptr + row, m)
    tl.store(d_ptr + row, d)


def online_stats(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows, columns = x.shape
    m, d = (x.new_empty(rows, dtype=torch.float32) for _ in range(2))
    stats_kernel[(rows,)](m, d, x, x.stride(0), columns, TILE=128)
    return m, d
""",
        "tl.reduce of pairs, stats stacked in one tensor": """import torch
import triton
import triton.language as tl
from collections import defaultdict, OrderedDict

@triton.jit
def merge(m1, d1, m2, d2):
    m = tl.maximum(m1, m2)
    a = tl.where(m == -float("inf"), 0.0, m)
    return m, d1 * tl.exp(m1 - a) + d2 * tl.exp(m2 - a)


@triton.jit
def stats_kernel(s_ptr, s_stride, x_ptr, x_stride, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    m = tl.full([TILE], -float("inf"), tl.float32)
    d = tl.zeros([TILE], dtype=tl.float32)
    for start in tl.range(0, columns, TILE):
        inside = start + lane < columns
        x = tl.load(x_ptr + row * x_stride + start + lane, mask=inside, other=-float("inf")).to(tl.float32)
        m, d = merge(m, d, x, tl.where(x == -float("inf"), 0.0, 1.0))
    m, d = tl.reduce((m, d), 0, merge)
    tl.store(s_ptr + row, m)
    tl.store(s_ptr + s_stride + row, d)


def online_stats(x):
    options = defaultdict(lambda: 256)
    stats = torch.empty(2, len(x), dtype=torch.float32, device=x.device)
    stats_kernel[(len(x),)](stats, stats.stride(0), x, x.stride(0), x.shape[-1], TILE=options["TILE"])
    return stats[0], stats[1]
""",
        "namedtuple returned, unbind": """import torch
import triton
import triton.language as tl
from typing import NamedTuple


class Stats(NamedTuple):
    m: torch.Tensor
    d: torch.Tensor


@triton.jit
def stats_kernel(m_ptr, d_ptr, x_ptr, x_stride, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    d = 0.0
    for start in range(0, columns, TILE):
        column = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf")).to(tl.float32)
        new_m = tl.maximum(m, tl.max(x, axis=0))
        safe = tl.where(new_m == -float("inf"), 0.0, new_m)
        alpha = tl.exp(m - safe)
        d *= alpha
        d += tl.sum(tl.exp(x - safe), axis=0)
        m = new_m
    tl.store(m_ptr + row, m)
    tl.store(d_ptr + row, d)


def online_stats(x):
    rows, columns = x.shape
    kw = dict(dtype=torch.float32, device=x.device)
    result = Stats(*[torch.full((rows,), v, **kw) for v in (float("-inf"), 0.0)])
    stats_kernel[(rows,)](*result, x, x.stride(0), columns, TILE=min(256, triton.next_power_of_2(columns)))
    return result
""",
    },
    "break_rescale": {
        "arange view": """import torch
def break_rescale():
    return torch.arange(0, 300).view(1, -1) / 50
""",
        "cat, a dict of parts": """import torch
from itertools import accumulate, repeat


def break_rescale():
    first, second = torch.zeros(2, 128), torch.ones(2, 128) * 4
    steps = list(accumulate(repeat(0.01, 128)))
    x = torch.cat((first, second + torch.tensor(steps)), dim=1)
    x[0, 3] = -1
    return x
""",
    },
    "tiled_softmax": {
        "two kernels' helpers, tuple, star-args": """import torch
import triton
import triton.language as tl


@triton.jit
def load_tile(ptr, start, columns, TILE: tl.constexpr):
    column = start + tl.arange(0, TILE)
    mask = column < columns
    return column, mask, tl.load(ptr + column, mask=mask, other=-float("inf")).to(tl.float32)


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    xr, yr = x_ptr + row * x_stride, y_ptr + row * y_stride
    m, d = -float("inf"), 0.0
    for start in range(0, columns, TILE):
        column, mask, x = load_tile(xr, start, columns, TILE)
        m_new = tl.maximum(m, tl.max(x, 0))
        a = tl.where(m_new == -float("inf"), 0.0, m_new)
        d = d * tl.exp(m - a) + tl.sum(tl.exp(x - a), 0)
        m = m_new
    inv = 1.0 / d
    for start in range(0, columns, TILE):
        column, mask, x = load_tile(xr, start, columns, TILE)
        tl.store(yr + column, tl.exp(x - m) * inv, mask)


def tiled_softmax(*args):
    (x,) = args
    rows, columns = x.shape
    y = torch.empty_like(x)
    strides = (t.stride(0) for t in (y, x))
    softmax_kernel[(rows,)](y, x, *strides, columns, TILE=512)
    return y
""",
        "number of tiles in cdiv": """import torch
import triton
import triton.language as tl

MAX_TILE = 1024


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, TILE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    src = x_ptr + row * x_stride + tl.arange(0, TILE)
    dst = y_ptr + row * y_stride + tl.arange(0, TILE)
    tiles = tl.cdiv(columns, TILE)
    m = tl.full([1], float("-inf"), tl.float32)
    d = tl.zeros([1], tl.float32)
    for i in range(tiles):
        left = columns - i * TILE
        x = tl.load(src + i * TILE, mask=tl.arange(0, TILE) < left, other=float("-inf")).to(tl.float32)
        nm = tl.maximum(m, tl.max(x, axis=0, keep_dims=True))
        ref = tl.where(nm == float("-inf"), tl.zeros_like(nm), nm)
        d = tl.fma(d, tl.exp(m - ref), tl.sum(tl.exp(x - ref), axis=0, keep_dims=True))
        m = nm
    lse = m + tl.log(d)
    for i in range(tiles):
        left = columns - i * TILE
        x = tl.load(src, mask=tl.arange(0, TILE) < left, other=float("-inf")).to(tl.float32)
        tl.store(dst, tl.exp(x - m) / d, mask=tl.arange(0, TILE) < left)
        src += TILE
        dst += TILE


def tiled_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    TILE = min(MAX_TILE, max(16, triton.next_power_of_2(columns)))
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, TILE=TILE)
    return y
""",
        "persistent, num_stages, 2 rows": """import torch
import triton
import triton.language as tl

@triton.jit
def k(y_ptr, x_ptr, ys, xs, rows, columns, TILE: tl.constexpr, STAGES: tl.constexpr):
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        m = -float("inf")
        d = 0.0
        for s in tl.range(0, columns, TILE, num_stages=STAGES):
            c = s + tl.arange(0, TILE)
            x = tl.load(x_ptr + row * xs + c, c < columns, -float("inf")).to(tl.float32)
            n = max(m, tl.max(x, 0))
            a = tl.where(n == -float("inf"), 0.0, n)
            d = d * tl.exp(m - a) + tl.sum(tl.exp(x - a), 0)
            m = n
        for s in tl.range(0, columns, TILE, num_stages=STAGES):
            c = s + tl.arange(0, TILE)
            x = tl.load(x_ptr + row * xs + c, c < columns, -float("inf")).to(tl.float32)
            tl.store(y_ptr + row * ys + c, tl.exp(x - m) / d, c < columns)

def tiled_softmax(x):
    M, N = x.shape
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    grid = lambda META: (min(M, 132),)
    k[grid](y, x, y.stride(0), x.stride(0), M, N, TILE=1024, STAGES=3, num_warps=8)
    return y
""",
        "log-sum-exp in the second walk": """import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(y_ptr, x_ptr, y_stride, x_stride, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    d = 0.0
    for start in range(0, columns, TILE):
        column = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf")).to(tl.float32)
        new_m = tl.maximum(m, tl.max(x, axis=0))
        anchor = tl.where(new_m == -float("inf"), 0.0, new_m)
        d = d * tl.exp(m - anchor) + tl.sum(tl.exp(x - anchor), axis=0)
        m = new_m
    log_d = tl.log(d)
    for start in range(0, columns, TILE):
        column = start + tl.arange(0, TILE)
        mask = column < columns
        x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(y_ptr + row * y_stride + column, tl.exp(x - m - log_d), mask=mask)


def tiled_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, TILE=1024)
    return y
""",
    },
    "split_softmax": {
        "scratch as one tensor, views, enumerate": """import math
import torch
import triton
import triton.language as tl

CHUNK = 1024


@triton.jit
def partials(p_ptr, x_ptr, x_stride, columns, rows, chunks, C: tl.constexpr):
    row, chunk = tl.program_id(0), tl.program_id(1)
    column = chunk * C + tl.arange(0, C)
    x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf")).to(tl.float32)
    m = tl.max(x, axis=0)
    d = tl.sum(tl.exp(x - tl.where(m == -float("inf"), 0.0, m)), axis=0)
    here = p_ptr + row * chunks + chunk
    tl.store(here, m)
    tl.store(here + rows * chunks, d)


@triton.jit
def finish(y_ptr, p_ptr, x_ptr, y_stride, x_stride, columns, rows, chunks, C: tl.constexpr, P: tl.constexpr):
    row, chunk = tl.program_id(0), tl.program_id(1)
    each = tl.arange(0, P)
    m = tl.load(p_ptr + row * chunks + each, mask=each < chunks, other=-float("inf"))
    d = tl.load(p_ptr + rows * chunks + row * chunks + each, mask=each < chunks, other=0.0)
    top = tl.max(m, axis=0)
    total = tl.sum(d * tl.exp(m - top), axis=0)
    column = chunk * C + tl.arange(0, C)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    tl.store(y_ptr + row * y_stride + column, tl.exp(x - top) / total, mask=mask)


def split_softmax(x):
    rows, columns = x.shape
    chunks = math.ceil(columns / CHUNK)
    y = torch.empty_like(x)
    scratch = x.new_empty((2, rows, chunks), dtype=torch.float32)
    grid = (rows, chunks)
    for i, kernel in enumerate((partials, finish)):
        if i == 0:
            kernel[grid](scratch, x, x.stride(0), columns, rows, chunks, C=CHUNK)
        else:
            kernel[grid](y, scratch, x, y.stride(0), x.stride(0), columns, rows, chunks, C=CHUNK, P=triton.next_power_of_2(chunks))
    return y
""",
        "flat grid": """import torch
import triton
import triton.language as tl


@triton.jit
def chunk_kernel(m_ptr, d_ptr, x_ptr, x_stride, columns, chunks, CHUNK: tl.constexpr):
    pid = tl.program_id(0)
    row = pid // chunks
    chunk = pid % chunks
    column = chunk * CHUNK + tl.arange(0, CHUNK)
    x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf")).to(tl.float32)
    m = tl.max(x, axis=0)
    anchor = tl.where(m == -float("inf"), 0.0, m)
    tl.store(m_ptr + pid, m)
    tl.store(d_ptr + pid, tl.sum(tl.exp(x - anchor), axis=0))


@triton.jit
def finish_kernel(y_ptr, m_ptr, d_ptr, x_ptr, y_stride, x_stride, columns, chunks, CHUNK: tl.constexpr):
    pid = tl.program_id(0)
    row = pid // chunks
    chunk = pid % chunks
    m = -float("inf")
    for c in range(chunks):
        m = tl.maximum(m, tl.load(m_ptr + row * chunks + c))
    d = 0.0
    for c in range(chunks):
        d += tl.load(d_ptr + row * chunks + c) * tl.exp(tl.load(m_ptr + row * chunks + c) - m)
    column = chunk * CHUNK + tl.arange(0, CHUNK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    tl.store(y_ptr + row * y_stride + column, tl.exp(x - m) / d, mask=mask)


def split_softmax(x, CHUNK=1024):
    (rows, columns), device = x.shape, x.device
    chunks = -(-columns // CHUNK)
    y = torch.empty_like(x)
    m, d = [torch.empty(rows * chunks, dtype=torch.float32, device=device) for _ in "md"]
    args = x.stride(0), columns, chunks
    chunk_kernel[rows * chunks,](m, d, x, *args, CHUNK)
    finish_kernel[rows * chunks,](y, m, d, x, y.stride(0), *args, CHUNK)
    return y
""",
    },
}
