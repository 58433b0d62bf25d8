"""Run a learner's function on cases, inside the worker process, and report all that happened as JSON types.

This is the only module that runs next to the learner's code. It compares nothing: the expected values are
never in this process.
"""

import __future__

import ast
import os
import re
import sys
import traceback
import types
import zlib
from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from triton.runtime import jit

from course_kernels.lab.check.translations import echo, printable
from course_kernels.lab.run import compiler as compiling
from course_kernels.lab.run import meter as metering
from course_kernels.lab.run.cases import Case, begin, encode, strides
from course_kernels.lab.run.guard import Refused, close_doors
from course_kernels.lab.run.limits import name_of, text_of

MOST_OUTPUTS = 100  # that are looked at, of what a function returns
DEEPEST = 100  # exceptions that are followed, from one to the one behind it


def load_entry(path: str, entry: str, compiling: bool = False):
    """Import the learner's file as a module of its own and return the object named `entry`.

    compiling: kernels compute nothing here, so a test that the file makes of them while it is imported has no
    meaning; a statement that raises is left out.
    """
    return named(load_module(path, compiling), entry)


def named(module, entry: str):
    """The object of that name in a learner's module."""
    if not hasattr(module, entry):
        raise Refused("entry_missing", entry)
    return getattr(module, entry)


def load_module(path: str, compiling: bool = False):
    """Import the learner's file as a module of its own."""
    module = types.ModuleType("exercise")
    module.__file__ = path
    sys.modules["exercise"] = module
    text = Path(path).read_bytes()  # Python reads the marks at a file's start, as it does in an import
    # Without Python's bytecode cache: the file may change within a second.
    whole = compile(text, path, "exec")
    if not compiling:
        exec(whole, module.__dict__)
        return module
    flags = [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names]
    flags = sum({flag for flag in flags if flag & whole.co_flags})
    for statement in ast.parse(text).body:
        with suppress(Exception):
            exec(compile(ast.Module([statement], []), path, "exec", flags), module.__dict__)
    return module


_written = jit._normalize_ty


def any_alias() -> None:
    """Let a kernel's parameters be declared by any name that triton.language has in the file.

    Triton's interpreter reads the declarations as text, and knows "tl.constexpr" only.
    """

    def normalize(declared):
        if isinstance(declared, str) and re.fullmatch(
            r"""['"]?([\w.]+\.)?constexpr['"]?""", declared.strip()
        ):
            return "constexpr"
        return _written(declared)

    jit._normalize_ty = normalize


def run_cases(path: str, entry: str, cases: list[Case], tweaks: metering.Tweaks, adapt=None) -> list[dict]:
    """Call the learner's function on each case under the meter; stops after a case that raises.

    adapt(function, *inputs): how to call it, if not as function(*inputs).

    Returns a dict a case: "error" (or None), "refused", "outputs", and what the meter saw.
    """
    close_doors(path)
    compiling.first_configuration()
    any_alias()
    np.seterr(all="ignore")  # NaN and infinity are part of the cases
    try:
        function = load_entry(path, entry)
    except BaseException as error:
        return [{"error": describe(error, path), "at": "import"}]
    results = []
    for case in cases:
        begin(case)
        results.append(_run_case(path, function, case, tweaks, adapt))
        if results[-1]["error"]:
            break
    return results


def place(x: np.ndarray, gap: int = 0) -> torch.Tensor:
    """The array as a tensor whose rows lie `gap` elements apart, with no other tensor near it."""
    values = torch.from_numpy(x)
    tensor = metering.apart(values.new_empty_strided(x.shape, strides(x.shape, gap)))
    if gap and tensor.is_floating_point():
        metering.spanned(tensor).fill_(float("nan"))  # what lies between the rows
    return tensor.copy_(values)


def _decoy(x: np.ndarray, gap: int) -> torch.Tensor:
    """Other numbers of the same kind, for whoever looks without a kernel.

    They say nothing of x, and are the same whenever the case is.
    """
    rng = np.random.default_rng(zlib.crc32(x.tobytes()))
    if x.dtype.kind == "f":
        other = rng.normal(size=x.shape)
    else:
        low, high = (int(x.min()), int(x.max())) if x.size else (0, 0)
        other = rng.integers(low, high + 1, size=x.shape)
    return metering.spanned(place(other.astype(x.dtype), gap))


def _run_case(path: str, function, case: Case, tweaks, adapt) -> dict:
    meter = metering.Meter(tweaks)
    arrays = case.arrays()
    tensors = {name: place(array, gap) for name, (array, gap) in arrays.items()}
    as_given = {name: tensor.detach() for name, tensor in tensors.items()}  # whatever becomes of the inputs
    inputs = [tensors.get(name, value) for name, value in ({"x": case.x} | case.more).items()]
    guard = metering.AllocationOnly(meter)
    result = {"error": None, "kind": case.kind}
    with meter:
        for name, (array, gap) in arrays.items():
            meter.give(name, tensors[name], _decoy(array, gap))
        given = dict(zip(arrays, meter.regions, strict=True))
        try:
            with guard:
                returned = function(*inputs) if adapt is None else adapt(function, *inputs)
                if meter.broken is not None:
                    raise meter.broken
        except BaseException as error:
            returned, result["error"] = None, describe(error, path)
    result["refused"] = guard.refused
    result["intact"] = metering.intact()
    outputs = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    result["outputs"] = [_output(meter, value) for value in outputs[:MOST_OUTPUTS]]
    result |= {
        "tuple": isinstance(returned, (tuple, list)),
        "loads_of": {name: encode(region.times_loaded(as_given[name])) for name, region in given.items()},
        "stores_of": {name: int(region.stores.sum()) for name, region in given.items()},
        "loads": meter.loads(),
        "stores": meter.stores(),
        "traffic": meter.by_tensor(
            {f"result {i}": v for i, v in enumerate(outputs, 1) if type(v) is torch.Tensor}
        ),
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
    if type(value) is not torch.Tensor:  # a subclass may answer for its memory and its shape as it likes
        return {"tensor": False, "type": name_of(value)}
    region = meter.region_of(value) if value.numel() else None
    if region is not None and (region.outside or not region.holds(value)):
        region = None
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
        message["stored"] = encode(region.times_stored(value))
    return message


def describe(error: BaseException, path: str) -> dict:
    """An exception as the learner should see it: its type, its message, the line of their own file, and that
    file's text.
    """
    chain = [error]  # from the outside in: the interpreter wraps what a kernel raised, a call at a time
    while name_of(chain[-1]) == "InterpreterError" and (inner := _behind(chain[-1])) and len(chain) < DEEPEST:
        chain.append(inner)
    error = rule = chain[-1]
    for _ in range(DEEPEST):  # an exception may be its own cause
        if rule is None or isinstance(rule, (Refused, metering.TorchWork)):
            break
        rule = _behind(rule)
    text = printable(text_of(error))
    message = {"type": name_of(error), "text": text, "line": None, "source": "", "rule": None}
    if isinstance(rule, Refused):
        message["rule"] = list(rule.args)
    message["file"] = Path(path).read_text(errors="replace") if os.path.exists(path) else ""
    lines = message["file"].splitlines()
    if isinstance(error, SyntaxError) and error.filename == path:
        line = error.lineno if type(error.lineno) is int else None
        message |= {"line": line, "text": printable(text_of(error.msg))}
    else:  # the innermost frame that is the learner's; an inner link may have none
        message["line"] = next(filter(None, (_own_line(link, path) for link in reversed(chain))), None)
    if message["line"] and message["line"] <= len(lines):
        message["source"] = echo(lines[message["line"] - 1])
    return message


def _behind(error: BaseException) -> BaseException | None:
    """The exception that led to this one, by Python's own slots, which a learner's class cannot rename."""
    slots = BaseException.__dict__
    return slots["__cause__"].__get__(error) or slots["__context__"].__get__(error)


def _own_line(error: BaseException, path: str) -> int | None:
    """The last line of the learner's file in an exception's traceback."""
    own = os.path.realpath(path)
    for frame in reversed(traceback.extract_tb(BaseException.__dict__["__traceback__"].__get__(error))):
        if frame.lineno and os.path.realpath(frame.filename) == own:
            return frame.lineno
    return None
