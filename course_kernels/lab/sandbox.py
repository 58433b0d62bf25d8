"""Run a learner's function on cases, inside the worker process, and report all that happened as JSON types.

This is the only module that runs next to the learner's code. It compares nothing: the expected values are
never in this process.
"""

import base64
import mmap
import os
import sys
import traceback
import types
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
import triton.language as tl

from course_kernels.lab import compiling
from course_kernels.lab import meter as metering
from course_kernels.lab.files import root

HIDDEN_PACKAGES = ("course_kernels", "solutions")
SOFTMAX_HOMES = (tl, tl.standard)
note = mmap.mmap(-1, 256)  # shared with the parent: which case is under way, should the worker die


class Refused(RuntimeError):
    """The learner's code did something that the exercise rules out; the first argument names the mistake."""


@dataclass(eq=False)
class Case:
    """An input for the learner's function.

    x: (rows, columns), or any shape for exercises of another kind; float32 or float16.
    gap: elements between the end of a row and the start of the next, so the row stride is columns + gap.
    about: what is special about it, as it stands in a message ("a row whose values are all negative").
    kind: the case's name in the exercise.
    """

    kind: str
    about: str
    x: np.ndarray
    gap: int = 0
    extra: dict = field(default_factory=dict)

    @property
    def shape(self) -> str:
        return " × ".join(str(n) for n in self.x.shape)


def encode(array: np.ndarray) -> dict:
    """A numpy array as JSON types."""
    return {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "data": base64.b64encode(array.tobytes()).decode(),
    }


def decode(message: dict) -> np.ndarray:
    """The numpy array that `encode` took."""
    flat = np.frombuffer(base64.b64decode(message["data"]), dtype=message["dtype"])
    return flat.reshape(message["shape"]).copy()


def load_entry(path: str, entry: str):
    """Import the learner's file as a module of its own and return the object named `entry`."""
    return named(load_module(path), entry)


def named(module, entry: str):
    """The object of that name in a learner's module."""
    if not hasattr(module, entry):
        raise Refused("entry_missing", entry)
    return getattr(module, entry)


def load_module(path: str):
    """Import the learner's file as a module of its own."""
    module = types.ModuleType("exercise")
    module.__file__ = path
    sys.modules["exercise"] = module
    text = Path(path).read_text(encoding="utf-8")
    # Without Python's bytecode cache: the file may change within a second.
    exec(compile(text, path, "exec"), module.__dict__)
    return module


def close_doors(path: str) -> None:
    """Keep the finished kernels and the solutions out of the learner's reach, in this process."""
    sys.dont_write_bytecode = True
    for name in [m for m in sys.modules if m.split(".")[0] in HIDDEN_PACKAGES]:
        del sys.modules[name]
    sys.meta_path.insert(0, _NoAnswers())
    own, base = os.path.realpath(path), root()
    closed = (str(base / "solutions") + os.sep, str(base / "course_kernels") + os.sep)
    lab = str(base / "course_kernels" / "lab") + os.sep

    def watch(event, arguments):
        if event == "open" and isinstance(arguments[0], (str, bytes)):
            target = os.path.realpath(os.fsdecode(arguments[0]))
            if target.startswith(closed) and target != own and not target.startswith(lab):
                raise Refused("answer_opened", os.path.relpath(target, base))

    sys.addaudithook(watch)
    for home in SOFTMAX_HOMES:
        home.softmax = _no_softmax


class _NoAnswers:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in HIDDEN_PACKAGES:
            raise Refused("answer_opened", name)


def _no_softmax(*args, **kwargs):
    raise Refused("library_softmax", "tl.softmax")


def run_cases(
    path: str, entry: str, cases: list[Case], tweaks: metering.Tweaks | None, adapt=None
) -> list[dict]:
    """Call the learner's function on each case under the meter; stops after a case that raises.

    adapt(function, x): how to call it, if not as function(x).

    Returns a dict a case: "error" (or None), "refused", "outputs", and what the meter saw.
    """
    close_doors(path)
    compiling.first_configuration()
    np.seterr(all="ignore")  # NaN and infinity are part of the cases
    try:
        function = load_entry(path, entry)
    except BaseException as error:
        return [{"error": describe(error, path), "at": "import"}]
    results = []
    for case in cases:
        progress(case)
        results.append(_run_case(path, function, case, tweaks, adapt))
        if results[-1]["error"]:
            break
    return results


def progress(case: Case) -> None:
    """Leave word of the case under way."""
    text = f"{case.shape}, {case.about}".encode()[:255]
    note[:] = text + b"\0" * (256 - len(text))


def place(x: np.ndarray, gap: int) -> torch.Tensor:
    """The array as a tensor whose rows are columns + gap elements apart."""
    if x.ndim != 2 or not gap:
        return torch.from_numpy(x.copy())
    rows, columns = x.shape
    storage = torch.full((rows * (columns + gap),), float("nan"), dtype=torch.from_numpy(x).dtype)
    view = storage.as_strided((rows, columns), (columns + gap, 1))
    view.copy_(torch.from_numpy(x))
    return view


def _run_case(path: str, function, case: Case, tweaks, adapt) -> dict:
    meter = metering.Meter(tweaks)
    x = place(case.x, case.gap)
    guard = metering.AllocationOnly(meter)
    result = {"error": None, "kind": case.kind}
    with meter:
        # A decoy: other numbers of the same kind are there for whoever looks without a kernel.
        decoy = case.x[::-1].copy() if case.x.shape[0] > 1 else np.flip(case.x).copy()
        decoy = place(
            np.where(np.isfinite(decoy), decoy * decoy.dtype.type(0.37), 1).astype(case.x.dtype), case.gap
        )
        span = case.x.size + case.gap * max(0, case.x.shape[0] - 1) if case.x.ndim == 2 else case.x.size
        meter.give("x", x, decoy.as_strided((span,), (1,)) if span else None)
        try:
            with guard:
                returned = function(x) if adapt is None else adapt(function, x)
        except BaseException as error:
            returned, result["error"] = None, describe(error, path)
    result["refused"] = guard.refused
    result["intact"] = metering.intact()
    outputs = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    result["outputs"] = [_output(meter, value) for value in outputs]
    source = meter.regions[0]
    result |= {
        "tuple": isinstance(returned, (tuple, list)),
        "x_loads": encode(metering._strided(source.loads, x, source).astype(np.int32)) if span else None,
        "x_stores": int(source.stores.sum()),
        "loads": meter.loads(),
        "stores": meter.stores(),
        "traffic": meter.by_tensor({f"result {i}": value for i, value in enumerate(outputs, 1)}),
        "scratch_loads": sum(int(r.loads.sum()) for r in meter.regions if not r.given),
        "launches": [asdict(launch) for launch in meter.launches],
        "faults": [asdict(fault) for fault in meter.faults],
        "fills": list(meter.fills),
        "widest_load": meter.widest_load,
        "programs_a_row": max(map(len, meter.programs.values()), default=0),
        "programs_by_launch": _programs_by_launch(meter),
        "unwritten": meter.unwritten,
        "races": meter.races,
        "bare": sorted(meter.bare),
        "scratch_dtypes": _scratch_dtypes(meter, {output.get("region") for output in result["outputs"]}),
    }
    return result


def _scratch_dtypes(meter, outputs: set) -> list[str]:
    """The dtypes of what was allocated besides the outputs."""
    scratch = [region for region in meter.regions if not region.given and region.name not in outputs]
    return sorted({str(region.tensor.dtype).removeprefix("torch.") for region in scratch})


def _programs_by_launch(meter) -> list[int]:
    """For each launch that loaded from an input: the most of its programs that loaded from the same row."""
    most: dict[int, int] = {}
    for programs in meter.programs.values():
        for launch, count in Counter(number for number, _ in programs).items():
            most[launch] = max(most.get(launch, 0), count)
    return [most[launch] for launch in sorted(most)]


def _output(meter, value) -> dict:
    if not isinstance(value, torch.Tensor):
        return {"tensor": False, "type": type(value).__name__}
    region = meter.region_of(value) if value.numel() else None
    message = {
        "tensor": True,
        "shape": list(value.shape),
        "dtype": str(value.dtype).removeprefix("torch."),
        "given": bool(region and region.given),
        "known": region is not None or value.numel() == 0,
        "region": region.name if region else "",
    }
    if region is not None and value.dtype != torch.bfloat16:
        message["values"] = encode(region.values(value))
        message["stored"] = encode(region.times_stored(value).astype(np.int32))
    return message


def describe(error: BaseException, path: str) -> dict:
    """An exception as the learner should see it: its type, its message, and the line of their own file."""
    while type(error).__name__ == "InterpreterError" and error.__cause__ is not None:
        error = error.__cause__  # the interpreter wraps what the kernel raised
    rule = error
    while rule is not None and not isinstance(rule, (Refused, metering.TorchWork)):
        rule = rule.__cause__ or rule.__context__
    message = {"type": type(error).__name__, "text": str(error), "line": None, "source": "", "rule": None}
    if isinstance(rule, Refused):
        message["rule"] = list(rule.args)
    lines = Path(path).read_text(errors="replace").splitlines()
    if isinstance(error, SyntaxError) and error.filename == path:
        message |= {"line": error.lineno, "text": error.msg}
    else:
        frames = traceback.extract_tb(error.__traceback__)
        own = [
            f.lineno for f in frames if os.path.realpath(f.filename) == os.path.realpath(path) and f.lineno
        ]
        message["line"] = own[-1] if own else None
    if message["line"] and message["line"] <= len(lines):
        message["source"] = lines[message["line"] - 1].strip()
    return message
