"""Compile kernels with the real compiler, with or without a GPU, and read what came out.

Triton's wheel brings ptxas, so a laptop can compile for any NVIDIA GPU. A stand-in driver with one "device"
an architecture takes the GPU's place; each launch then compiles once for every architecture, with the types,
alignments and constants of the real call, and runs nothing.
"""

import atexit
import importlib
import os
import re
import subprocess
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
import triton
import triton.language as tl
from triton.compiler.errors import CompilationError
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from course_kernels import mode
from course_kernels.lab.core import gpus
from course_kernels.lab.run.cases import strides
from course_kernels.lab.run.driver import ARCHITECTURES, StandIn, first_configuration
from course_kernels.lab.run.guard import close_doors
from course_kernels.lab.run.limits import isolate
from course_kernels.lab.run.loading import describe, load_entry
from course_kernels.lab.run.memory import apart

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


class Recorder:
    """While active, every launch in this process compiles for the architectures and runs nothing."""

    def __init__(self, architectures=tuple(ARCHITECTURES)):
        self.driver = StandIn([])
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
    """A job in compile mode: call the entry on tensors of these shapes, compiling what it launches.

    path: a file, or the name of a module.
    calls: [{"shape", "dtype", "gap", "more", "options", "architectures"}], all but the first two if wanted.
    more: further arguments in order, each a number or a dict of "shape", "dtype" and "gap". options: by name.
    adapt: "module:function", if the entry is called as function(entry, *inputs).
    Returns {"compiled": [Compiled as dict], "error": a sentence or ""}.
    """
    outcome = isolate(lambda: _compile_calls(path, entry, calls, adapt, architectures), seconds=SECONDS)
    if outcome.kind == "ok":
        return outcome.value
    ended = {"timeout": f"did not end within {SECONDS} seconds", "memory": "ran out of memory"}
    what = ended.get(outcome.kind, "ended early")
    return {"compiled": [], "error": f"Compiling {what}. {outcome.value or ''}".strip()}


def _compile_calls(path, entry, calls, adapt, architectures) -> dict:
    of_a_learner, error = path.endswith(".py"), ""
    with Recorder(architectures or tuple(ARCHITECTURES)) as recorder:
        try:
            call = _named(*adapt.split(":")) if adapt else None  # before the guard hides the checker
            if of_a_learner:
                close_doors(path, compiling=True)
                recorder.architectures = []  # what the file launches while it is imported is its own affair
                function = load_entry(path, entry, compiling=True)
            else:
                mode.compile_only = True
                function = _named(path, entry)
            for spec in calls:
                recorder.use(spec.get("architectures") or architectures or ARCHITECTURES)
                recorder.call = f"{' × '.join(map(str, spec['shape']))} {spec['dtype']}"
                inputs = [_argument(one) for one in (spec, *spec.get("more", ()))]
                call(function, *inputs) if call else function(*inputs, **spec.get("options", {}))
        except Exception as raised:
            if of_a_learner:
                found = describe(raised, path)
                where = f" (line {found['line']})" if found["line"] else ""
                error = f"{found['type']}: {found['text']}{where}"
            else:  # a module's own refusal is a sentence
                error = str(raised)
    return {"compiled": [asdict(c) for c in recorder.compiled], "error": error}


def _named(module: str, name: str):
    return getattr(importlib.import_module(module), name)


def _argument(spec):
    """A tensor of the shape, its values not set; a number as it is."""
    if not isinstance(spec, dict):
        return spec
    shape, dtype = spec["shape"], getattr(torch, spec["dtype"])
    # Placed as where it is interpreted: a file that looks at the place finds no difference.
    return apart(torch.empty_strided(shape, strides(shape, spec.get("gap", 0)), dtype=dtype, device="meta"))


def warm_up() -> None:
    """Compile something small, so that LLVM is set up before the first fork; a few tenths of a second."""
    # A cache of its own: were this kernel found in the learner's, LLVM would not be set up.
    # Compilations under way may still write there when the server ends: no error of anyone's.
    cache = tempfile.TemporaryDirectory(prefix="course-lab-", ignore_cleanup_errors=True)
    atexit.register(cache.cleanup)
    os.environ["TRITON_CACHE_DIR"] = cache.name
    with Recorder((90,)) as recorder:  # one is enough to set up what all of them use
        _normalize[(1,)](torch.empty(100), 100, BLOCK=128)
    assert not any(c.error for c in recorder.compiled), recorder.compiled


@triton.jit
def _normalize(x_ptr, columns, BLOCK: tl.constexpr):
    """What most kernels use, to warm up with."""
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + column, mask=column < columns, other=0.0)
    tl.store(x_ptr + column, x / tl.sum(x, axis=0), mask=column < columns)
