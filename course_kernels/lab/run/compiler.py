"""Compile kernels with the real compiler, with or without a GPU, and read what came out.

Triton's wheel brings ptxas, so a laptop can compile for any NVIDIA GPU. A stand-in driver with one "device"
an architecture takes the GPU's place; each launch then compiles once for every architecture, with the types,
alignments and constants of the real call, and runs nothing.
"""

import atexit
import os
import re
import subprocess
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler.errors import CompilationError
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from course_kernels.lab.core import gpus
from course_kernels.lab.run.meter import apart

# The architectures of the course, and a GPU of each whose limits the occupancy is counted for.
ARCHITECTURES = {75: "T4", 80: "A100-80GB", 89: "L4", 90: "H200", 100: "B200"}
SECONDS = 60
# Besides an exercise's own calls, for one architecture: an argument that equals 1 becomes a plain number.
SMALL_CALLS = (
    {"shape": [1, 1], "dtype": "float32", "architectures": [80]},
    {"shape": [3, 5], "dtype": "float32", "architectures": [80]},
)


@dataclass
class Compiled:
    """What the compiler made of one kernel for one architecture.

    registers: 32-bit registers a thread. stack: bytes a thread in local memory; above 0 it spilled.
    shared: bytes of shared memory a program. occupancy: the share of the SM's warps that can be resident.
    call: the shape and dtype of x that it was compiled for.
    ones: the arguments that were 1, and so plain numbers for the compiler.
    error: the compiler's message, empty if it compiled; line and source: where, in the kernel's file.
    """

    kernel: str
    architecture: int
    gpu: str
    call: str = ""
    ones: list[str] = field(default_factory=list)
    registers: int = 0
    stack: int = 0
    shared: int = 0
    num_warps: int = 0
    occupancy: float = 0.0
    programs_per_sm: int = 0
    limited_by: str = ""
    error: str = ""
    line: int | None = None
    source: str = ""


class _Driver:
    """Stands in for a GPU: device i is the i-th architecture."""

    def __init__(self, architectures):
        self.architectures = architectures
        self.device = 0

    def get_current_device(self):
        return self.device

    def get_current_stream(self, device=None):
        return 0

    def get_current_target(self):
        return GPUTarget("cuda", self.architectures[self.device], 32)

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")

    @property
    def utils(self):
        return self

    def get_device_properties(self, device=None):
        """A small GPU's: what launch code asks for when it sizes its grid."""
        return {
            "multiprocessor_count": 4,
            "max_shared_mem": 65536,
            "max_num_regs": 65536,
            "warpSize": 32,
            "sm_clock_rate": 1_000_000,
            "mem_clock_rate": 1_000_000,
            "mem_bus_width": 256,
        }

    def get_benchmarker(self):
        return lambda *args, **kwargs: [0.0, 0.0, 0.0]


_tune = Autotuner.run


def real_gpu() -> None:
    """Undo what stands in for a GPU, in a process that is to use the one that is here."""
    Autotuner.run = _tune
    driver.reset_active()


def first_configuration() -> None:
    """Let `@triton.autotune` take its first configuration: without a GPU there is nothing to time."""

    def run(self, *args, **kwargs):
        config = self.configs[0]
        self.best_config = config
        return self.fn.run(*args, **(kwargs | config.all_kwargs()))

    Autotuner.run = run
    driver.set_active(_Driver(list(ARCHITECTURES)))


class Recorder:
    """While active, every launch in this process compiles for the architectures and runs nothing."""

    def __init__(self, architectures=tuple(ARCHITECTURES)):
        self.driver = _Driver([])
        self.use(architectures)
        self.compiled: list[Compiled] = []
        self.call = ""

    def use(self, architectures) -> None:
        """Compile for these from here on."""
        self.architectures = self.driver.architectures = list(architectures)

    def __enter__(self):
        first_configuration()
        driver.set_active(self.driver)
        original = self.original = JITFunction.run

        def run(function, *args, grid, warmup, **kwargs):
            for device in range(len(self.architectures)):
                self.driver.device = device
                self._compile(function, original, args, grid, kwargs)

        JITFunction.run = run
        return self

    def __exit__(self, *_):
        JITFunction.run = self.original

    def _compile(self, function, original, args, grid, kwargs) -> None:
        architecture = self.architectures[self.driver.device]
        report = Compiled(function.__name__, architecture, ARCHITECTURES.get(architecture, ""), self.call)
        given = dict(zip(function.arg_names, args, strict=False)) | kwargs
        report.ones = [
            p.name
            for p in function.params
            if not p.is_constexpr and type(given.get(p.name)) is int and given[p.name] == 1
        ]
        try:
            kernel = original(function, *args, grid=grid, warmup=True, **kwargs)
            report.num_warps = kernel.metadata.num_warps
            report.shared = kernel.metadata.shared
            report.registers, report.stack = resources(kernel.asm["cubin"])
            if report.gpu:
                held = gpus.occupancy(report.gpu, report.registers, report.shared, report.num_warps)
                report.occupancy, report.programs_per_sm = held.share, held.programs_per_sm
                report.limited_by = held.limited_by
                if not held.programs_per_sm:
                    report.error = (
                        f"A {report.gpu} cannot hold even one program of it: {held.limited_by} run out."
                    )
        except Exception as error:  # any refusal of the compiler is an answer
            report.error, report.line, report.source = explain(error, function)
        if asdict(report) not in [asdict(c) for c in self.compiled]:
            self.compiled.append(report)


def plain_numbers(failed: dict, compiled: list[dict]) -> list[str]:
    """The arguments whose being 1 is why a kernel did not compile; none if that was not the reason."""
    named = [name for name in failed["ones"] if re.search(rf"\b{name}\b", failed["source"])]
    if any(re.search(rf"\b{name}\.\w", failed["source"]) for name in named):
        return named
    others = [set(c["ones"]) for c in compiled if c["kernel"] == failed["kernel"] and not c["error"]]
    new = [name for name in failed["ones"] if others and all(name not in ones for ones in others)]
    return [name for name in named if name in new] or new


def resources(cubin: bytes) -> tuple[int, int]:
    """(registers, stack bytes) a thread, as cuobjdump reads them from a compiled kernel."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run(
            [tool, "-res-usage", file.name], capture_output=True, text=True, check=True
        ).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", text)
    return int(found[1]), int(found[2])


def explain(error: Exception, function) -> tuple[str, int | None, str]:
    """(the compiler's message in one line, the line in the kernel's file, that line's text)."""
    line, source = None, ""
    if isinstance(error, CompilationError) and error.src and hasattr(error.node, "lineno"):
        source = error.src.split("\n")[error.node.lineno - 1].strip()
        if error.src == function.src:  # else the error is in a function that the kernel calls
            line = def_line(function) + error.node.lineno - 1
    inner = error
    while isinstance(inner, CompilationError) and inner.__cause__ is not None:
        inner = inner.__cause__
    text = inner.error_message if isinstance(inner, CompilationError) else str(inner)
    text = text or str(inner) or type(inner).__name__
    return re.sub(r"\s+", " ", text).strip()[:400], line, source


def def_line(function) -> int:
    """The line of a kernel's `def` in its file, below its decorators."""
    above = next((i for i, line in enumerate(function.raw_src) if line.strip().startswith("def ")), 0)
    return function.starting_line_number + above


def compile_file(
    path: str, entry: str, calls: list[dict], adapt: str | None = None, architectures=None
) -> dict:
    """A job for the compile server: call the entry on tensors of these shapes, compiling what it launches.

    calls: [{"shape", "dtype", "gap", "architectures"}], the last two if wanted.
    Returns {"compiled": [Compiled as dict], "error": a sentence or ""}.
    """
    from course_kernels.lab.run.limits import isolate

    outcome = isolate(lambda: _compile_calls(path, entry, calls, adapt, architectures), seconds=SECONDS)
    if outcome.kind == "ok":
        return outcome.value
    what = {"timeout": f"did not end within {SECONDS} seconds", "memory": "ran out of memory"}.get(
        outcome.kind
    )
    return {"compiled": [], "error": f"Compiling {what or 'ended early'}. {outcome.value or ''}".strip()}


def _compile_calls(path, entry, calls, adapt, architectures) -> dict:
    import importlib

    from course_kernels.lab.run.kernels import close_doors, describe, load_entry

    with Recorder(architectures or tuple(ARCHITECTURES)) as recorder:
        try:
            call = None
            if adapt:
                module, name = adapt.split(":")
                call = getattr(importlib.import_module(module), name)
            if path.endswith(".py"):
                close_doors(path, compiling=True)
                recorder.architectures = []  # what the file launches while it is imported is its own affair
                function = load_entry(path, entry, compiling=True)
            else:
                function = getattr(importlib.import_module(path), entry)
                # Nothing is run here, so tensors may lie on the CPU. The process ends with this call.
                importlib.import_module("course_kernels.inputs").check_place = lambda x: None
            for spec in calls:
                x = _tensor(spec)
                recorder.use(spec.get("architectures") or architectures or ARCHITECTURES)
                recorder.call = f"{' × '.join(map(str, spec['shape']))} {spec['dtype']}"
                call(function, x) if call else function(x, **spec.get("options", {}))
        except Exception as error:
            reported = (
                describe(error, path)
                if path.endswith(".py")
                else {"text": str(error), "type": "", "line": None}
            )
            where = f" (line {reported['line']})" if reported["line"] else ""
            return {
                "compiled": [asdict(c) for c in recorder.compiled],
                "error": f"{reported['type']}: {reported['text']}{where}",
            }
    return {"compiled": [asdict(c) for c in recorder.compiled], "error": ""}


def _tensor(spec: dict):
    import torch

    shape, gap = spec["shape"], spec.get("gap", 0)
    strides = (shape[1] + gap, 1) if len(shape) == 2 else torch.empty(shape, device="meta").stride()
    # Placed as where it is interpreted: a file that looks at the place finds no difference.
    return apart(torch.empty_strided(shape, strides, dtype=getattr(torch, spec["dtype"]), device="meta"))


def warm_up() -> None:
    """Compile something small, so that LLVM is set up before the first fork; a few tenths of a second."""
    from course_kernels.lab.exercises import broken as harness

    # A cache of its own: were this kernel found in the learner's, LLVM would not be set up.
    # Compilations under way may still write there when the server ends: no error of anyone's.
    cache = tempfile.TemporaryDirectory(prefix="course-lab-", ignore_cleanup_errors=True)
    atexit.register(cache.cleanup)
    os.environ["TRITON_CACHE_DIR"] = cache.name
    with Recorder() as recorder:
        harness.warm_up()
    assert not any(c.error for c in recorder.compiled), recorder.compiled
