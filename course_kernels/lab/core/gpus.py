"""Published figures of the GPUs in this course, and the occupancy that a compiled kernel reaches on each.

Nothing here is measured. Bandwidths and FLOP rates are the vendor's peak figures: a kernel that copies memory
reaches about nine tenths of the bandwidth.

Sources, all NVIDIA's:
- bandwidth, float32 rate, SMs, L2: the T4, A100, L4, H100, H200, HGX B200 data sheets and the papers on their
  architectures, SXM parts where there is a choice. L2 of the H200 and the B200 is what the driver reports.
- limits per SM: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
- allocation rules: cuda_occupancy.h of the CUDA toolkit.
"""

from __future__ import annotations

from dataclasses import dataclass

KiB = 1024
MiB = 1024 * KiB

WARP = 32  # threads
REGISTER_UNIT = 256  # registers; a warp is given a multiple of this (cudaOccRegAllocationGranularity)
SM_PARTITIONS = 4  # each holds a quarter of the registers (cudaOccSubPartitionsPerMultiprocessor)
MAX_REGISTERS_PER_THREAD = 255
MAX_WARPS_PER_PROGRAM = 32  # 1024 threads


@dataclass(frozen=True)
class GPU:
    """One GPU, as its vendor describes it.

    Units: gbps in 10^9 bytes a second, tflops in 10^12 float32 operations a second (no tensor cores),
    l2_bytes and shared_per_sm in bytes, registers_per_sm in 32-bit registers. "Programs" are Triton's name
    for what CUDA calls blocks.
    """

    name: str
    capability: tuple[int, int]
    gbps: float
    tflops: float
    sms: int
    l2_bytes: int
    max_warps_per_sm: int
    max_programs_per_sm: int
    shared_per_sm: int
    shared_reserved: int  # bytes the system takes for every program, on top of its own
    shared_unit: int  # bytes; shared memory is given in multiples of this
    registers_per_sm: int = 65536

    @property
    def max_threads_per_sm(self) -> int:
        return self.max_warps_per_sm * WARP

    @property
    def ridge(self) -> float:
        """Arithmetic intensity, in FLOP a byte, at which float32 arithmetic and memory take equally long."""
        return self.tflops * 1e12 / (self.gbps * 1e9)

    def least_seconds(self, bytes_moved: float, flops: float = 0.0) -> float:
        """The least time in which this much traffic and arithmetic can be done: the slower of the two."""
        return max(bytes_moved / (self.gbps * 1e9), flops / (self.tflops * 1e12))


def _hopper_like(name, capability, gbps, tflops, sms, l2_bytes):
    return GPU(name, capability, gbps, tflops, sms, l2_bytes, 64, 32, 228 * KiB, KiB, 128)


GPUS: dict[str, GPU] = {
    g.name: g
    for g in (
        GPU("T4", (7, 5), 320, 8.1, 40, 4 * MiB, 32, 16, 64 * KiB, 0, 256),
        GPU("A100-40GB", (8, 0), 1555, 19.5, 108, 40 * MiB, 64, 32, 164 * KiB, KiB, 128),
        GPU("A100-80GB", (8, 0), 2039, 19.5, 108, 40 * MiB, 64, 32, 164 * KiB, KiB, 128),
        GPU("L4", (8, 9), 300, 30.3, 58, 48 * MiB, 48, 24, 100 * KiB, KiB, 128),
        _hopper_like("H100", (9, 0), 3350, 67, 132, 50 * MiB),
        _hopper_like("H200", (9, 0), 4800, 67, 132, 60 * MiB),
        _hopper_like("B200", (10, 0), 8000, 75, 148, 126 * MiB),
    )
}

# The five that a table shows when there is room for one of each kind.
SHOWN = ("T4", "L4", "A100-40GB", "H200", "B200")


def find_gpu(name: str) -> GPU | None:
    """The GPU meant by "H200", or by the driver's "NVIDIA A100-SXM4-80GB"; None if it is not listed."""
    words = name.upper().replace("-", " ").replace("NVIDIA", " ").split()
    if any(word.startswith("A100") for word in words):
        return GPUS["A100-80GB" if any(word.startswith("80GB") for word in words) else "A100-40GB"]
    for gpu in GPUS.values():
        if gpu.name in words:
            return gpu
    return None


def as_gpu(gpu: GPU | str) -> GPU:
    """The GPU itself, from itself or from its name. ValueError, naming those known, otherwise."""
    if isinstance(gpu, GPU):
        return gpu
    found = find_gpu(str(gpu))
    if found is None:
        raise ValueError(f"No figures for a GPU called {gpu!r}. Known: {', '.join(GPUS)}.")
    return found


@dataclass(frozen=True)
class Occupancy:
    """How many programs of one kernel an SM holds at a time.

    share is warps_per_sm over the most the SM can hold, 0 to 1. limited_by is what ran out first:
    "warps", "registers", "shared memory" or "programs"; of several that run out together, the first in this
    order. With programs_per_sm 0 the kernel cannot start on this GPU at all.
    """

    programs_per_sm: int
    warps_per_sm: int
    share: float
    limited_by: str


def occupancy(gpu: GPU | str, registers_per_thread: int, shared_bytes: int, num_warps: int) -> Occupancy:
    """What cudaOccupancyMaxActiveBlocksPerMultiprocessor answers, from a kernel's figures alone.

    registers_per_thread as ptxas reports it; shared_bytes a program, static and dynamic together; num_warps a
    program. ValueError for figures no kernel can have. The rules are those of cuda_occupancy.h: a warp's
    registers are rounded up to 256, each quarter of an SM holds a quarter of the registers, and shared memory
    is rounded up, with 1 KiB a program for the system from compute capability 8 on.
    """
    gpu = as_gpu(gpu)
    if not 1 <= num_warps <= MAX_WARPS_PER_PROGRAM:
        raise ValueError(f"A program has 1 to {MAX_WARPS_PER_PROGRAM} warps, not {num_warps}.")
    if not 0 <= registers_per_thread <= MAX_REGISTERS_PER_THREAD:
        most = MAX_REGISTERS_PER_THREAD
        raise ValueError(f"A thread has 0 to {most} registers, not {registers_per_thread}.")
    if shared_bytes < 0:
        raise ValueError(f"Shared memory is 0 bytes or more, not {shared_bytes}.")

    limits = {"warps": gpu.max_warps_per_sm // num_warps}
    if registers_per_thread:
        registers_per_warp = _round_up(registers_per_thread * WARP, REGISTER_UNIT)
        warps = gpu.registers_per_sm // SM_PARTITIONS // registers_per_warp * SM_PARTITIONS
        limits["registers"] = warps // num_warps
    shared = _round_up(shared_bytes + gpu.shared_reserved, gpu.shared_unit)
    if shared:
        limits["shared memory"] = gpu.shared_per_sm // shared
    limits["programs"] = gpu.max_programs_per_sm

    limited_by = min(limits, key=limits.get)  # the first of the smallest
    programs = limits[limited_by]
    warps = programs * num_warps
    return Occupancy(programs, warps, warps / gpu.max_warps_per_sm, limited_by)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
