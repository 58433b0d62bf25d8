"""bandwidth(("copy", "fused_row")): the curve of a lesson, measured on the GPU that is here, or recorded."""

from course_kernels import mode
from course_kernels.lab.bench.measure import results
from course_kernels.lab.show import figures
from course_kernels.lab.show.picture import Display, Stack, Table

WIDTHS = (64, 256, 1024, 4096, 8192, 16_384, 32_768)
BYTES = 1 << 30  # of one matrix: far larger than any L2


class Bandwidth(Display):
    """Records of several kernels over several widths, as a picture and a table.

    records: with kernel, rows, columns, gbps. source: where they come from, in words.
    """

    def __init__(self, records, kernels, source: str):
        self.records, self.kernels, self.source = list(records), list(kernels), source

    def share(self, kernel: str, columns: int) -> float | None:
        """The share of a copy's bandwidth, 0 to 1; None if the two were not measured at this width."""
        rate = {r.kernel: r.gbps for r in self.records if r.columns == columns}
        return rate[kernel] / rate["copy"] if kernel in rate and "copy" in rate else None

    def _stack(self) -> Stack:
        picture = figures.bandwidth_curve(self.records, self.kernels, self.source)
        columns = sorted({r.columns for r in self.records})
        rate = {(r.kernel, r.columns): r.gbps for r in self.records}
        rows = [[c, *(rate.get((k, c)) for k in self.kernels)] for c in columns]
        return Stack(picture, Table(rows, ["columns", *self.kernels], f"GB/s; {self.source}"))

    def html(self) -> str:
        return self._stack().html()

    def plain(self) -> str:
        return self._stack().plain()


def bandwidth(
    kernels=("copy", "torch", "eager", "fused_row"), columns=WIDTHS, dtype: str = "float32"
) -> Bandwidth:
    """Bandwidth against width: useful bytes, each counted once, over the time of a call.

    On a GPU each kernel is measured here, on matrices of 1 GiB (or an eighth of the GPU's memory, if that is
    less), the contenders taking turns and the L2 cache flushed before each run. Without one: results recorded
    on an H200.

    Args:
        kernels: "copy", "torch", "eager", "compile", or a kernel module's name. columns: widths. dtype: of x.
    """
    kernels = list(kernels)
    if mode.interpreting():
        kept = results.recorded(dtype=dtype)
        records = [r for r in kept if r.kernel in kernels and (r.columns in columns or len(columns) == 0)]
        return Bandwidth(records, [k for k in kernels if any(r.kernel == k for r in records)], kept.source)
    import torch

    from course_kernels.lab.bench import measure as bench

    size = min(BYTES, torch.cuda.get_device_properties(0).total_memory // 8)
    itemsize = getattr(torch, dtype).itemsize
    records = bench.compare(kernels, [(max(1, size // (n * itemsize)), n) for n in columns], dtype)
    return Bandwidth(records, kernels, f"measured here: {torch.cuda.get_device_name()}")
