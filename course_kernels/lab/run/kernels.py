"""Run a learner's kernels on cases, and report all that happened as JSON types.

This runs next to the learner's code, in its process; so does `functions`. Neither compares anything: the
expected values are never in this process.
"""

import zlib
from collections import Counter
from dataclasses import asdict

import numpy as np
import torch

from course_kernels.lab.run import driver, hooks
from course_kernels.lab.run.cases import Case, Tweaks, begin, encode, strides
from course_kernels.lab.run.guard import close_doors
from course_kernels.lab.run.limits import name_of
from course_kernels.lab.run.loading import describe, load_entry
from course_kernels.lab.run.memory import apart, spanned
from course_kernels.lab.run.meter import Meter
from course_kernels.lab.run.operations import AllocationOnly

MOST_OUTPUTS = 100  # that are looked at, of what a function returns


def run_cases(path: str, entry: str, cases: list[Case], tweaks: Tweaks, adapt=None) -> list[dict]:
    """Call the learner's function on each case under the meter; stops after a case that raises.

    adapt(function, *inputs): how to call it, if not as function(*inputs).

    Returns a dict a case: "error" (or None), "refused", "outputs", and what the meter saw.
    """
    close_doors(path)
    driver.first_configuration()
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
    tensor = apart(values.new_empty_strided(x.shape, strides(x.shape, gap)))
    if gap and tensor.is_floating_point():
        spanned(tensor).fill_(float("nan"))  # what lies between the rows
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
    return spanned(place(other.astype(x.dtype), gap))


def _run_case(path: str, function, case: Case, tweaks, adapt) -> dict:
    meter = Meter(tweaks)
    arrays = case.arrays()
    tensors = {name: place(array, gap) for name, (array, gap) in arrays.items()}
    as_given = {name: tensor.detach() for name, tensor in tensors.items()}  # whatever becomes of the inputs
    inputs = [tensors.get(name, value) for name, value in ({"x": case.x} | case.more).items()]
    guard = AllocationOnly(meter)
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
    result["intact"] = hooks.intact()
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
