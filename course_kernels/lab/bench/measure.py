"""The benchmark: every kernel of the course and its peers, as a share of a copy of as many bytes.

`python -m course_kernels.lab bench` runs it from a shell, `bench.run(...)` from Python. The contenders take
turns, the copy among them, and the L2 cache is flushed before each turn. Both write this JSON, as are the
files in `lab/recorded/`:

    gpu, sms, l2_bytes, peak_gbps   the GPU's name, multiprocessors, L2 size in bytes, data sheet bandwidth in
                                    GB/s (null where it is not known)
    torch, triton, date, command    versions, ISO date, and the command that gave this file
    records                         a list of
        kernel         "copy", "torch", "eager", "compile", "liger", "quack", "softmax" (the dispatcher), a
                       course module's name, or "prototype" (survey only)
        op             "forward", "backward", or "along": softmax along a dimension that is not the innermost
        columns, rows  the matrix; along a dimension: its length, and how many there are of it
        shape, dim     along a dimension: the tensor, as "64x512x2048", and which; else null
        dtype          "float32", "bfloat16", "float16"
        gbps           bytes that must move (each input read once, each output written once) over time, in
                       10**9 bytes a second
        share_of_copy  gbps over that of "copy" (`y.copy_(x)`) in the same run; null where no copy was timed
        microseconds   the median time of one call
        spread         (upper − lower quartile) / median of the timings; null where it was not recorded
        timing         "events": CUDA events around each call, L2 flushed before it, so the launch counts;
                       "graph": many calls replayed from a CUDA graph, so that it does not
        note           a few words or null
    calls                           optional: CPU time of a call, a list of {kernel, columns, rows, dtype,
                                    microseconds}; "launch" is one bare kernel[grid](...) of Triton
    liger, quack                    optional: the versions of those that took part
    counters                        optional: DRAM traffic from Nsight Compute, a list of {kernel, columns,
                                    rows, dtype, read_mb, written_mb}, in 10**6 bytes
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import math
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

import torch
import triton

from course_kernels.lab.bench.results import Record
from course_kernels.lab.core.files import KERNELS as COURSE

PEERS = ("torch", "eager", "compile", "liger", "quack")
PACKAGES = {"liger": "liger-kernel", "quack": "quack-kernels"}
KERNELS = ("copy", *PEERS, "softmax", *COURSE)
WIDTHS = tuple(2**k for k in range(6, 23))
BYTES = 2**30  # of input, so that the L2 cache holds next to nothing of it
SMALL = 2**26  # bytes in and out, below which launching takes a share worth showing: these also get a graph
# Past this share of a copy, a result is a mistake until explained. (A gradient reads more than it writes, and
# may well pass it.)
TOO_GOOD = 1.02
TOO_FAST = "above a copy: cached, or not all was done?"


def available(kernel: str) -> bool:
    """Whether a contender can run here: a peer that is not installed, or does not start, cannot.

    Raises:
        ValueError: there is no such contender.
    """
    try:
        _forward(kernel)
    except ImportError:
        return False
    except Exception as error:
        if kernel not in PEERS:
            raise
        # What it needs is here in a version that it does not know.
        warnings.warn(f"{kernel} is installed but does not start: {error!r}. It is left out.", stacklevel=2)
        return False
    return True


def _forward(kernel: str, dim: int = -1) -> Callable:
    """The function x -> y of a contender: on matrices, or along another dimension for those that can."""
    if kernel == "torch":
        return lambda x: torch.softmax(x, dim=dim)
    if kernel == "compile":
        torch._dynamo.reset()  # one program, many widths: it would stop compiling after the eighth
        return torch.compile(lambda x: torch.softmax(x, dim=dim), dynamic=False)
    if kernel == "softmax":
        from course_kernels import softmax

        return softmax if dim == -1 else lambda x: softmax(x, dim)
    if dim != -1:
        raise ValueError(f"{kernel} takes the innermost dimension only.")
    if kernel == "liger":
        from liger_kernel.transformers.functional import liger_softmax

        return liger_softmax
    if kernel == "quack":
        from quack import softmax

        return softmax
    if kernel in (*COURSE, "eager"):
        return importlib.import_module(f"course_kernels.{kernel}").softmax
    raise ValueError(f"No contender is called {kernel!r}; there are {', '.join(KERNELS)}.")


def _backward(kernel: str) -> Callable:
    """The function (y, dy) -> dx of a contender: the gradient alone, on matrices."""
    if kernel == "torch":
        return lambda y, dy: torch._softmax_backward_data(dy, y, 1, y.dtype)
    if kernel == "compile":
        torch._dynamo.reset()
        return torch.compile(lambda y, dy: y * (dy - (y * dy).sum(1, keepdim=True)), dynamic=False)
    if kernel == "softmax":
        from course_kernels.backward import softmax_backward

        return softmax_backward
    raise ImportError(f"{kernel} has no gradient to time alone.")


class Contender:
    """One function on its inputs, ready to be called again and again."""

    def __init__(self, kernel, function, op, inputs, nbytes):
        self.kernel, self.function, self.op, self.inputs, self.nbytes = kernel, function, op, inputs, nbytes
        self.times: list[float] = []  # microseconds

    def __call__(self, *inputs):
        return self.function(*(inputs or self.inputs))


def contender(
    kernel: str | Callable, op: str, x: torch.Tensor, dy: torch.Tensor | None = None, dim: int = -1
) -> Contender:
    """A contender by its name, or a function x -> y, on these inputs.

    Args:
        op: "forward", "backward" (x is then the output of a softmax, and dy its gradient) or "along".
        dim: for "along", the dimension.

    Raises:
        ImportError, ValueError: it is not installed, or does not do this.
    """
    name = kernel if isinstance(kernel, str) else kernel.__name__
    size = x.numel() * x.element_size()
    if name == "copy":
        y = torch.empty_like(x)
        return Contender(name, lambda x, *_: y.copy_(x), op, (x,), 2 * size)
    if op == "backward":
        return Contender(name, _backward(kernel), op, (x, dy), 3 * size)
    function = _forward(kernel, dim) if isinstance(kernel, str) else kernel
    return Contender(name, function, op, (x,), 2 * size)


def inputs(shape: tuple[int, ...], dtype: str, op: str = "forward") -> tuple:
    """(x, None) with random scores x; for "backward", a softmax and a random gradient."""
    x = torch.randn(shape, device="cuda").to(getattr(torch, dtype))
    return (torch.softmax(x, 1), torch.randn_like(x)) if op == "backward" else (x, None)


def _flush() -> torch.Tensor:
    """A buffer that displaces all of the L2 cache when it is written, and takes so long to write that the CPU
    has launched the call by then: or a slow launch would be timed as a slow kernel."""
    size = max(4 * torch.cuda.get_device_properties().L2_cache_size, 2**30)
    return torch.empty(min(size, torch.cuda.mem_get_info()[0] // 4), dtype=torch.int8, device="cuda")


def _race(contenders: list[Contender], seconds: float, least: int = 7, most: int = 60) -> None:
    """Time the contenders in turns, the cache flushed before each, for about this long in all."""
    for contender in contenders:  # compile, and warm up
        contender()
        contender()
    flush = _flush()
    end = time.perf_counter() + seconds
    for turn in range(most):
        pairs = []
        for contender in contenders:
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flush.zero_()
            start.record()
            contender()
            stop.record()
            pairs.append((contender, start, stop))
        torch.cuda.synchronize()
        for contender, start, stop in pairs:
            contender.times.append(start.elapsed_time(stop) * 1e3)
        if turn + 1 >= least and time.perf_counter() > end:
            break


def _replay(contender: Contender, shape, dtype) -> None:
    """Time a contender in a CUDA graph of many calls on as many inputs, together twice as large as the cache.

    A flush inside the graph would be timed with it.
    """
    count = min(max(8, 2 * torch.cuda.get_device_properties().L2_cache_size // contender.nbytes), 200)
    copies = [tuple(m for m in inputs(shape, dtype, contender.op) if m is not None) for _ in range(count)]
    contender(*copies[0])
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    outputs = []  # kept, so that each call writes memory of its own
    with torch.cuda.graph(graph):
        for each in copies:
            if contender.kernel == "copy":
                outputs.append(torch.empty_like(each[0]).copy_(each[0]))
            else:
                outputs.append(contender(*each))
    for _ in range(9):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        stop.record()
        torch.cuda.synchronize()
        contender.times.append(start.elapsed_time(stop) * 1e3 / count)


def _records(contenders, shape, dtype, timing, dim=None) -> list[Record]:
    columns = shape[-1 if dim is None else dim]
    rows = math.prod(shape) // columns
    rates = {c.kernel: c.nbytes / statistics.median(c.times) / 1e3 for c in contenders if c.times}
    records = []
    for c in contenders:
        if not c.times:
            continue
        share = rates[c.kernel] / rates["copy"] if "copy" in rates else None
        middle = statistics.median(c.times)
        low, _, high = statistics.quantiles(c.times, n=4)
        records.append(
            Record(
                kernel=c.kernel,
                op=c.op,
                columns=columns,
                rows=rows,
                dtype=dtype,
                gbps=round(rates[c.kernel], 1),
                share_of_copy=None if share is None else round(share, 4),
                microseconds=round(middle, 2),
                spread=round((high - low) / middle, 4),
                timing=timing,
                note=TOO_FAST if share and share > TOO_GOOD and c.op == "forward" else None,
                shape=None if dim is None else "x".join(map(str, shape)),
                dim=dim,
            )
        )
    return records


def _need_gpu() -> None:
    from course_kernels import mode

    if mode.interpreting():
        raise RuntimeError(
            "The benchmark needs an NVIDIA GPU, and this process has none: it interprets kernels on the CPU. "
            "Results recorded on an H200 are in course_kernels/lab/recorded."
        )


def compare(
    kernels: Iterable[str | Callable],
    shapes: Iterable[tuple],
    dtype: str = "float32",
    op: str = "forward",
    seconds: float = 0.15,
    graphs: bool = False,
    progress: Callable[[str], None] | None = None,
) -> list[Record]:
    """Time contenders against each other, and against a copy, on each of the shapes.

    A contender that refuses a shape (too wide, too large) is left out there. Where it takes part and gives an
    answer unlike PyTorch's, its record says so.

    Args:
        kernels: names out of KERNELS, or functions x -> y of your own. A copy is timed anyway.
        shapes: (rows, columns) of each matrix; for "along", (shape, dim) of each tensor.
        dtype: "float32", "bfloat16", "float16".
        op: "forward", "backward" (the gradient alone, from y and dy), or "along" another dimension than the
            innermost.
        seconds: to spend on each shape, without compilation.
        graphs: also time small matrices in a CUDA graph.
        progress: called with a short text before each shape.

    Raises:
        RuntimeError: there is no GPU.
    """
    _need_gpu()
    kernels = [k for k in kernels if not isinstance(k, str) or k == "copy" or available(k)]
    records = []
    for shape in shapes:
        shape, dim = shape if op == "along" else (shape, None)
        if progress:
            progress(f"{op} {dtype} {' × '.join(f'{n:,}' for n in shape)}")
        x, dy = inputs(shape, dtype, op)
        contenders, wrong = [], set()
        for kernel in dict.fromkeys(["copy", *kernels]):
            try:
                one = contender(kernel, op, x, dy, -1 if dim is None else dim)
                if one.kernel != "copy" and _is_wrong(one, x, dy, 1 if dim is None else dim):
                    wrong.add(one.kernel)
                contenders.append(one)
            except (ImportError, ValueError, TypeError, RuntimeError, AssertionError, torch.OutOfMemoryError):
                torch.cuda.empty_cache()
        _race(contenders, seconds)
        timed = _records(contenders, shape, dtype, "events", dim)
        if graphs and dim is None and contenders[0].nbytes <= SMALL:
            for one in contenders:
                one.times = []
                try:
                    _replay(one, shape, dtype)
                except RuntimeError:  # cannot be captured
                    torch.cuda.synchronize()
            timed += _records(contenders, shape, dtype, "graph")
        asked = {k if isinstance(k, str) else k.__name__ for k in kernels}
        for record in timed:
            if record.kernel in asked:
                note = "wrong values" if record.kernel in wrong else record.note
                records.append(Record(**{**asdict(record), "note": note}))
        del contenders, x, dy
    return records


def _is_wrong(contender, x, dy, dim) -> bool:
    """Whether its answer on these inputs is not PyTorch's, by a wide margin; compiles it too."""
    y = contender()
    if contender.op == "backward":
        expected = torch._softmax_backward_data(dy, x, 1, x.dtype)
    else:
        expected = torch.softmax(x, dim)
    # In place: these are large. NaN is not below the bound, so it counts as wrong.
    scale = expected.abs().max().item()
    return not expected.sub_(y).abs_().max().item() <= (2e-5 if x.dtype == torch.float32 else 2e-2) * scale


def calls(
    kernels: Iterable[str],
    shapes: Iterable[tuple[int, int]],
    dtype: str = "float32",
    progress: Callable[[str], None] | None = None,
) -> list[dict]:
    """What a call costs on the CPU, in microseconds: best of five times 200 calls that the GPU keeps up with.

    Args:
        kernels: names out of KERNELS, or "launch": one bare kernel[grid](...) of Triton.
        shapes: (rows, columns), small ones, or the CPU waits for the GPU.

    Returns:
        As `calls` in the form that stands at the top of this file. Who refuses a shape is left out there.

    Raises:
        RuntimeError: there is no GPU.
    """
    _need_gpu()
    found = []
    for rows, columns in shapes:
        if progress:
            progress(f"calls {dtype} {rows:,} × {columns:,}")
        x, _ = inputs((rows, columns), dtype)
        for kernel in kernels:
            try:
                call = _launch(x) if kernel == "launch" else contender(kernel, "forward", x)
                best = min(_cpu_seconds(call, 200) for _ in range(6))  # the first of them compiles
            except (ImportError, ValueError, TypeError, RuntimeError, AssertionError):
                continue
            cost = dict(microseconds=round(best / 200 * 1e6, 1))
            found.append(dict(kernel=kernel, columns=columns, rows=rows, dtype=dtype) | cost)
    return found


def _launch(x):
    """The cheapest launch in Triton's usual way: all values given, nothing allocated."""
    from course_kernels.fused_row import MAX_COLUMNS, fused_row_kernel

    (rows, columns), y = x.shape, torch.empty_like(x)
    if columns > MAX_COLUMNS:
        raise ValueError
    block = triton.next_power_of_2(columns)
    return lambda: fused_row_kernel[(rows,)](y, x, columns, columns, columns, BLOCK=block, num_warps=4)


def _cpu_seconds(call, times) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(times):
        call()
    took = time.perf_counter() - start
    torch.cuda.synchronize()
    return took


def measure(
    kernel: str | Callable, rows: int, columns: int, dtype: str = "float32", seconds: float = 0.5
) -> Record:
    """Time one contender, in turns with a copy, on one shape: as `compare`, for a single point.

    Raises:
        RuntimeError: there is no GPU, or the contender refuses this shape; the message says which.
    """
    _need_gpu()
    x, _ = inputs((rows, columns), dtype)
    contenders = [contender("copy", "forward", x)]
    if kernel != "copy":
        contenders.append(contender(kernel, "forward", x))
    _race(contenders, seconds, least=3)
    return _records(contenders, (rows, columns), dtype, "events")[-1]


def run(
    widths: Iterable[int] = WIDTHS,
    kernels: Iterable[str] = KERNELS,
    dtypes: Iterable[str] = ("float32",),
    ops: Iterable[str] = ("forward",),
    rows: int | None = None,
    shapes: Iterable[tuple[int, int]] = (),
    seconds: float = 0.15,
    graphs: bool = True,
    command: str = "bench.run",
    progress: Callable[[str], None] | None = None,
) -> dict:
    """The whole benchmark, in the form that stands at the top of this file.

    Args:
        widths: columns. rows: of each matrix; None: as many as make 1 GiB.
        shapes: further (rows, columns).
        kernels, dtypes, ops, seconds, graphs, progress: as in `compare`.
        command: how this was called, for the record.
    """
    _need_gpu()
    records = []
    for op in ops:
        for dtype in dtypes:
            size = getattr(torch, dtype).itemsize * (2 if op == "backward" else 1)
            all_shapes = [(rows or max(1, BYTES // (size * n)), n) for n in widths] + list(shapes)
            records += compare(kernels, all_shapes, dtype, op, seconds, graphs, progress)
    return header(command) | {"records": [asdict(record) for record in records]}


def header(command: str) -> dict:
    """The GPU, the versions (of peers too, where they are installed) and the day."""
    from course_kernels.lab.core.gpus import find_gpu

    gpu = torch.cuda.get_device_properties()
    known = find_gpu(gpu.name)
    return {
        "gpu": gpu.name,
        "sms": gpu.multi_processor_count,
        "l2_bytes": gpu.L2_cache_size,
        "peak_gbps": known.gbps if known else None,
        "torch": torch.__version__,
        "triton": triton.__version__,
        **{peer: number for peer in PACKAGES if (number := _version(PACKAGES[peer]))},
        "date": datetime.date.today().isoformat(),
        "command": command,
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def to_text(result: dict) -> str:
    """JSON with a line for each record, so that two runs can be compared line by line."""
    parts = []
    for key, value in result.items():
        if isinstance(value, list):
            lines = ",\n".join("  " + json.dumps(item, ensure_ascii=False) for item in value)
            parts.append(f" {json.dumps(key)}: [\n{lines}\n ]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def draw(result: dict, path: str | Path) -> None:
    """A picture of the run: share of a copy against width, a panel for each operation and dtype."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    records = [r for r in result["records"] if r["timing"] == "events" and r["kernel"] != "copy"]
    records = [r for r in records if r["op"] != "along"]  # those are no curve over widths
    panels = list(dict.fromkeys((r["op"], r["dtype"]) for r in records))
    figure, axes = pyplot.subplots(len(panels), 1, figsize=(9, 4 * len(panels)), squeeze=False)
    for (op, dtype), axis in zip(panels, axes[:, 0], strict=True):
        mine = [r for r in records if (r["op"], r["dtype"]) == (op, dtype)]
        for kernel in dict.fromkeys(r["kernel"] for r in mine):
            points = sorted((r["columns"], r["share_of_copy"]) for r in mine if r["kernel"] == kernel)
            axis.plot(*zip(*points, strict=True), marker="o", markersize=3, label=kernel)
        axis.axhline(1, color="gray", linewidth=1, linestyle="dashed")
        axis.set(xscale="log", xlabel="columns", ylabel="share of a copy", title=f"{op}, {dtype}", ylim=0)
        axis.set_xscale("log", base=2)
        axis.legend(fontsize="small")
    figure.suptitle(f"{result['gpu']}, torch {result['torch']}, triton {result['triton']}, {result['date']}")
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m course_kernels.lab bench",
        description="Measure softmax kernels on this GPU, as a share of a copy of the same bytes.",
    )
    names = dict(nargs="+", metavar="NAME")
    parser.add_argument("--widths", nargs="+", type=int, default=list(WIDTHS), metavar="N", help="columns")
    parser.add_argument("--rows", type=int, metavar="M", help="rows (default: as many as make 1 GiB)")
    parser.add_argument(
        "--shapes", nargs="+", default=[], metavar="MxN", help="further shapes, rows x columns"
    )
    parser.add_argument("--kernels", default=list(KERNELS), help=", ".join(KERNELS), **names)
    parser.add_argument("--dtypes", default=["float32"], help="float32, bfloat16, float16", **names)
    parser.add_argument("--ops", default=["forward"], help="forward, backward", **names)
    parser.add_argument("--seconds", type=float, default=0.15, help="to spend on each shape")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result to FILE")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw it (.svg, .png)")
    options = parser.parse_args(argv)
    try:
        shapes = [tuple(int(n) for n in shape.lower().split("x")) for shape in options.shapes]
        for kernel in options.kernels:
            if kernel not in KERNELS:
                parser.error(f"no contender is called {kernel!r}; there are {', '.join(KERNELS)}")
        if any(len(shape) != 2 for shape in shapes):
            raise ValueError
    except ValueError:
        parser.error("a shape is ROWSxCOLUMNS, such as 32x128256")
    try:
        result = run(
            options.widths,
            options.kernels,
            options.dtypes,
            options.ops,
            options.rows,
            shapes,
            options.seconds,
            command="python -m course_kernels.lab bench " + " ".join(argv),
            progress=Progress(
                (len(options.widths) + len(shapes)) * len(options.dtypes) * len(options.ops), sys.stderr
            ),
        )
    except RuntimeError as problem:
        print(problem, file=sys.stderr)
        return 1
    for record in result["records"]:
        share = "" if record["share_of_copy"] is None else f"{record['share_of_copy']:7.1%}"
        print(
            f"{record['op']:8} {record['dtype']:8} {record['rows']:>9,} × {record['columns']:<10,} "
            f"{record['kernel']:12} {record['gbps']:7.0f} GB/s {share} {record['timing']:6} "
            f"{record['note'] or ''}"
        )
    if options.json:
        options.json.write_text(to_text(result), encoding="utf-8")
    if options.picture:
        draw(result, options.picture)
    return 0


class Progress:
    """A bar on one line of a stream: call it before each of `total` steps."""

    def __init__(self, total, stream):
        self.total, self.stream, self.done = total, stream, 0

    def __call__(self, text):
        filled = 30 * self.done // max(1, self.total)
        self.done += 1
        bar = "█" * filled + "░" * (30 - filled)
        self.stream.write(f"\r{bar} {self.done}/{self.total}  {text:<44}" + "\n" * (self.done == self.total))
        self.stream.flush()
