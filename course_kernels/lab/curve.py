"""Bandwidth against width: the curve of a lesson, the table of what was recorded, and the width explorer."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from course_kernels import mode
from course_kernels.lab.bench import results
from course_kernels.lab.show.bandwidth import BandwidthPlot
from course_kernels.lab.show.explorer import Explorer, LiveExplorer, RecordedExplorer
from course_kernels.lab.show.picture import Display, Stack, Table

WIDTHS = (64, 256, 1024, 4096, 8192, 16_384, 32_768)
BYTES = 1 << 30  # of one matrix: far larger than any L2
OWN = ("fused_softmax", "tiled_softmax")  # exercises whose answer is a contender once it has passed


class Bandwidth(Display):
    """Records of several kernels over several widths, as a picture and a table.

    records: with kernel, rows, columns, gbps. source: where they come from, in words. share_of_copy: whether
    the picture shows the share of a copy in place of GB/s.
    """

    def __init__(self, records, kernels, source: str, share_of_copy: bool = False):
        self.records, self.kernels, self.source = list(records), list(kernels), source
        self.share_of_copy = share_of_copy

    @property
    def how(self) -> str:
        """ "recorded" or "measured here", for `compare`."""
        return self.source.partition(":")[0]

    def share(self, kernel: str, columns: int) -> float | None:
        """The share of a copy's bandwidth, 0 to 1; None if the two were not measured at this width."""
        rate = {r.kernel: r.gbps for r in self.records if r.columns == columns}
        return rate[kernel] / rate["copy"] if kernel in rate and "copy" in rate else None

    def figure(self):
        """The curve as a matplotlib Figure, to restyle or to save: curve.figure().savefig("curve.png")."""
        return self._plot().figure

    def _plot(self) -> BandwidthPlot:
        return BandwidthPlot(self.records, self.kernels, self.source, share=self.share_of_copy)

    def parts(self) -> Stack:
        columns = sorted({r.columns for r in self.records})
        rate = {(r.kernel, r.columns): r.gbps for r in self.records}
        rows = [[c, *(rate.get((k, c)) for k in self.kernels)] for c in columns]
        table = Table(rows, ["columns", *self.kernels], f"GB/s; {self.source}")
        return Stack(self._plot().picture(), table)


class Recorded(results.Recorded, Display):
    """Records of one run, as a sequence that shows itself as a table, a line a matrix, GB/s."""

    def parts(self) -> Stack:
        cells = {(r.rows, r.columns, r.dtype, r.kernel): r.gbps for r in self.records}
        matrices = sorted({key[:3] for key in cells}, key=lambda s: (s[2], s[1], s[0]))
        rows = [[*matrix, *(cells.get((*matrix, kernel)) for kernel in self.kernels)] for matrix in matrices]
        return Stack(Table(rows, ["rows", "columns", "dtype", *self.kernels], f"GB/s; {self.source}"))


def recorded(*args, **kwargs) -> Recorded:
    found = results.recorded(*args, **kwargs)
    return Recorded(found.run, found.records)


recorded.__doc__ = results.recorded.__doc__


def bandwidth(
    kernels=("copy", "torch", "eager", "fused_row"),
    columns=WIDTHS,
    dtype: str = "float32",
    share_of_copy: bool = False,
) -> Bandwidth:
    """Bandwidth against width: useful bytes, each counted once, over the time of a call.

    On a GPU each kernel is measured here, on matrices of 1 GiB (or an eighth of the GPU's memory, if that is
    less), the contenders taking turns and the L2 cache flushed before each run. Without one: results recorded
    on an H200.

    Args:
        kernels: "copy", "torch", "eager", "compile", or a kernel module's name. columns: widths. dtype: of x.
        share_of_copy: draw the share of a copy in place of GB/s.

    Raises:
        ValueError: no contender of this name; the message names those there are.
    """
    kernels = [kernels] if isinstance(kernels, str) else list(kernels)
    known = list(dict.fromkeys(r.kernel for r in results.recorded(dtype=None, table=None)))
    for kernel in kernels:
        if isinstance(kernel, str) and kernel not in known:
            raise ValueError(f"No contender is called {kernel!r}. There are: {', '.join(known)}.")
    if mode.interpreting():
        kept = results.recorded(dtype=dtype)
        records = [r for r in kept if r.kernel in kernels and (r.columns in columns or len(columns) == 0)]
        there = [k for k in kernels if any(r.kernel == k for r in records)]
        return Bandwidth(records, there, kept.source, share_of_copy)
    import torch

    from course_kernels.lab.bench import measure

    size = min(BYTES, torch.cuda.get_device_properties(0).total_memory // 8)
    itemsize = getattr(torch, dtype).itemsize
    records = measure.compare(kernels, [(max(1, size // (n * itemsize)), n) for n in columns], dtype)
    return Bandwidth(records, kernels, f"measured here: {torch.cuda.get_device_name()}", share_of_copy)


def explore(*yours, live: bool | None = None, measure: Callable | None = None, **values) -> Explorer:
    """The width explorer: bandwidth against the width of a row, for a copy, PyTorch and the course's kernels.

    On a GPU each move of the slider measures there and adds its points; a button sweeps all widths. Without
    one it shows recorded results, labelled so, and scales them to other GPUs, labelled as a prediction.

    yours: functions x → y of your own to measure as well, such as fused_softmax; those whose exercise has
    passed are there anyway. live: False for recorded results in spite of a GPU. measure: in place of the
    benchmark, (name or function, rows, columns, dtype, seconds) → record. values: what is shown first:
    columns=781, dtype="bfloat16", shapes="4096 rows", unit="share of a copy".
    """
    if measure is None and live is not False and mode.device() == "cuda":
        from course_kernels.lab.bench import measure as bench

        def measure(kernel, rows, columns, dtype, seconds):
            return bench.measure(kernel, rows, columns, dtype, seconds=seconds)

        own = _passed
    else:
        own = dict
    if measure is None:
        return RecordedExplorer(**values)
    return LiveExplorer(measure, lambda: {**own(), **{f.__name__: f for f in yours}}, _gpu(), **values)


def _gpu() -> tuple[str, int, bool]:
    import torch

    if not torch.cuda.is_available():
        return "this machine", 12 << 30, True
    # A T4 (compute capability 7.5) has no bfloat16 arithmetic.
    modern = torch.cuda.get_device_capability() >= (8, 0)
    return torch.cuda.get_device_name(), torch.cuda.get_device_properties(0).total_memory, modern


def _passed() -> dict[str, Callable]:
    """The learner's own kernels as their files are now, of the exercises that have passed."""
    from course_kernels.lab.core import progress
    from course_kernels.lab.core.files import exercise_file

    found = {}
    for name in OWN:
        path = exercise_file(name)
        if path.exists():
            found[name] = _yours(name, path.read_text(encoding="utf-8"), progress.of(name)["passed"])
    return {name: function for name, function in found.items() if function is not None}


@lru_cache(maxsize=32)
def _yours(name: str, text: str, passed: str | None) -> Callable | None:
    from course_kernels.lab.checking import yours

    return yours(name, None)  # once for each text, so that an unchanged kernel is compiled once
