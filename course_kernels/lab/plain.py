"""Run exercises whose answer is no kernel: PyTorch steps, formulas, an input to find.

Like `sandbox.py`, this runs next to the learner's code, reports JSON types, and compares nothing.
"""

import math
from dataclasses import asdict

import numpy as np
import torch

from course_kernels.lab.counting import Recording
from course_kernels.lab.sandbox import (
    Case,
    Refused,
    close_doors,
    describe,
    encode,
    load_entry,
    load_module,
    named,
    place,
    progress,
)

# aten's names of what does a softmax, or its hard part, in one call; and how people call it.
LIBRARY = {
    "_softmax": "torch.softmax",
    "softmax": "torch.softmax",
    "_safe_softmax": "torch.softmax",
    "_log_softmax": "torch.log_softmax",
    "log_softmax": "torch.log_softmax",
    "logsumexp": "torch.logsumexp",
    "logcumsumexp": "torch.logcumsumexp",
    "_sparse_softmax": "torch.sparse.softmax",
    "_masked_softmax": "torch's masked softmax",
}
EXPONENTIALS = {"exp", "exp_", "exp2", "exp2_", "special_exp2", "pow", "pow_"}


class _Steps(Recording):
    """Records the operations and refuses those that are a softmax; `refused` remembers, whoever catches."""

    refused = ""
    wrote = False  # into an argument of the function

    def compute(self, operation, args, kwargs):
        name = operation._schema.name.removeprefix("aten::")
        if name in LIBRARY or "attention" in name:
            self.refused = self.refused or LIBRARY.get(name, f"aten::{name}")
            raise Refused("library_softmax", self.refused)
        self.wrote = self.wrote or any(self._writes(operation, args, kwargs))
        return operation(*args, **kwargs)

    def _writes(self, operation, args, kwargs):
        for argument, value in zip(operation._schema.arguments, args, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write:
                yield self._was_there(value.untyped_storage())
        if isinstance(out := kwargs.get("out"), torch.Tensor):
            yield self._was_there(out.untyped_storage())


def run_steps(path: str, entry: str, cases: list[Case]) -> list[dict]:
    """Call a PyTorch function on each case; stops after one that raises.

    Returns a dict a case: "error" (or None), "outputs", "x_changed", "operations" (as `counting.Operation`),
    "exponentials" (elements raised by PyTorch), "numpy" (True if a tensor's values were handed out of
    PyTorch).
    """
    close_doors(path)
    np.seterr(all="ignore")
    handed_out = []
    for method in ("numpy", "tolist", "__array__"):
        _note_calls(method, handed_out)
    try:
        function = load_entry(path, entry)
    except BaseException as error:
        return [{"error": describe(error, path), "at": "import"}]
    results = []
    for case in cases:
        progress(case)
        x = place(case.x, case.gap)
        untouched = case.x.tobytes()
        steps, returned, error = _Steps(), None, None
        steps.given(x)
        handed_out.clear()
        try:
            with steps:
                returned = function(x)
        except BaseException as raised:
            error = describe(raised, path)
        numpy_used = bool(handed_out)
        if steps.refused:
            error = (error or {"type": "", "text": "", "line": None, "source": ""}) | {
                "rule": ["library_softmax", steps.refused]
            }
        results.append(
            {
                "error": error,
                "kind": case.kind,
                "outputs": [tensor_message(returned)],
                "x_changed": steps.wrote or x.detach().numpy().tobytes() != untouched,
                "x_loads": None,
                "operations": [asdict(row) for row in steps.rows],
                "exponentials": sum(row.writes for row in steps.rows if row.name in EXPONENTIALS),
                "numpy": numpy_used,
            }
        )
        if error:
            break
    return results


def _note_calls(method: str, calls: list) -> None:
    original = getattr(torch.Tensor, method)

    def noted(*args, **kwargs):
        calls.append(method)
        return original(*args, **kwargs)

    setattr(torch.Tensor, method, noted)


def tensor_message(value) -> dict:
    """A returned value as JSON types; other things than tensors by their type's name."""
    if not isinstance(value, torch.Tensor):
        return {"tensor": False, "type": type(value).__name__}
    if value.layout != torch.strided or value.is_complex():
        return {"tensor": False, "type": f"{value.dtype} tensor"}
    dtype = str(value.dtype).removeprefix("torch.")
    values = value.detach().resolve_neg().cpu()
    values = values.float() if dtype == "bfloat16" else values
    return {"tensor": True, "shape": list(value.shape), "dtype": dtype, "values": encode(values.numpy())}


def run_formulas(path: str, entries: list[str], shapes: list[tuple[int, int]]) -> dict:
    """Call each of the functions on each (m, n); {entry: {"error"} or {"values": what each call gave}}.

    A value is a list of numbers, or the type's name where it is something else.
    """
    close_doors(path)
    try:
        module = load_module(path)
    except BaseException as error:
        return {"error": describe(error, path)}
    answers = {}
    for entry in entries:
        try:
            function = named(module, entry)
            answers[entry] = {"values": [_numbers(function(m, n)) for m, n in shapes], "error": None}
        except BaseException as error:
            answers[entry] = {"values": [], "error": describe(error, path)}
    return {"error": None, "answers": answers}


def _numbers(returned) -> list[float] | str:
    if isinstance(returned, torch.Tensor):
        returned = returned.tolist()
    if isinstance(returned, np.ndarray):
        returned = returned.tolist()
    if not isinstance(returned, (tuple, list)):
        return f"one {type(returned).__name__}" if returned is not None else "nothing"
    if len(returned) != 2:
        return f"{len(returned)} values"
    try:
        numbers = [float(value) for value in returned]
    except (TypeError, ValueError):
        return " and ".join(type(value).__name__ for value in returned)
    return numbers if all(map(math.isfinite, numbers)) else "numbers that are not finite"


def run_input(path: str, entry: str) -> dict:
    """Call a function of no arguments that makes an input; {"error", "output"} as `tensor_message`."""
    close_doors(path)
    try:
        function = load_entry(path, entry)
        made = function()
        if isinstance(made, (np.ndarray, list)) and np.asarray(made).dtype.kind in "fiub":
            made = torch.as_tensor(np.asarray(made))
        return {"error": None, "output": tensor_message(made)}
    except BaseException as error:
        return {"error": describe(error, path), "output": None}
