"""Run answers that are not kernels: PyTorch steps, formulas, an input to find.

Like `kernels`, this runs next to the learner's code, reports JSON types, and compares nothing.
"""

import ctypes
import math
from dataclasses import asdict

import numpy as np
import torch
from torch.utils._pytree import tree_leaves

from course_kernels.lab.run.cases import Case, begin, encode
from course_kernels.lab.run.guard import Refused, close_doors
from course_kernels.lab.run.kernels import place
from course_kernels.lab.run.limits import name_of
from course_kernels.lab.run.loading import describe, load_entry, load_module, named
from course_kernels.lab.run.operations import Recording

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
    """Records the operations and refuses those that are a softmax; `refused` remembers, whoever catches.

    It also follows where values come from, memory by memory. descent: 1 for what was made from x, 2 for what
    was made from an exponential of that. foreign: memory that holds several numbers which no recorded
    operation made, or that was made from such. changed: True once something else than a recorded operation
    wrote into memory of the function's own.
    """

    refused = ""
    wrote = False  # into an argument of the function
    changed = False

    def __init__(self):
        super().__init__()
        self.descent: dict[int, int] = {}
        self.foreign: set[int] = set()
        self.contents: dict[int, tuple] = {}  # the memory, kept alive, and its bytes after the last operation

    def compute(self, operation, args, kwargs):
        name = operation._schema.name.removeprefix("aten::")
        if name in LIBRARY or "attention" in name:
            self.refused = self.refused or LIBRARY.get(name, f"aten::{name}")
            raise Refused("library_softmax", self.refused)
        self.wrote = self.wrote or any(self._writes(operation, args, kwargs))
        operands = _storages((args, kwargs))
        for key, storage in operands.items():
            self._look(key, storage)
        level = max((self.descent.get(key, 0) for key in operands), default=0)
        foreign = any(key in self.foreign for key in operands)
        if level and name in EXPONENTIALS:
            level = 2
        result = operation(*args, **kwargs)
        made = _storages(result)
        for key, storage in made.items():
            self.descent[key] = max(level, self.descent.get(key, 0))
            if foreign:
                self.foreign.add(key)
            self.contents[key] = storage, _content(storage)
        return result

    def given(self, *arguments):
        super().given(*arguments)
        for key, storage in _storages(arguments).items():
            self.descent[key], self.contents[key] = 1, (storage, _content(storage))

    def _look(self, key: int, storage) -> None:
        """Note memory that appears from elsewhere, or was written to by something else."""
        if key not in self.contents:
            self.contents[key] = storage, _content(storage)
            if storage.nbytes() > 8:  # one number is a constant
                self.foreign.add(key)
        elif self.contents[key][1] != _content(storage):
            self.changed = True

    def origin(self, returned) -> str:
        """How the result came about: "steps", or what speaks against it: "elsewhere", "mixed", "changed"."""
        if type(returned) is not torch.Tensor or returned.layout != torch.strided or not returned.numel():
            return "steps"
        ((key, storage),) = _storages(returned).items()
        self._look(key, storage)
        if self.descent.get(key, 0) < 2:
            return "elsewhere"
        return "changed" if self.changed else "mixed" if key in self.foreign else "steps"

    def _writes(self, operation, args, kwargs):
        for argument, value in zip(operation._schema.arguments, args, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write:
                yield self._was_there(value.untyped_storage())
        if isinstance(out := kwargs.get("out"), torch.Tensor):
            yield self._was_there(out.untyped_storage())


def _storages(tree) -> dict:
    """The memory of every tensor in a tree, by its address."""
    storages = (leaf.untyped_storage() for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor))
    return {storage._cdata: storage for storage in storages}


def _content(storage) -> bytes:
    return ctypes.string_at(storage.data_ptr(), storage.nbytes()) if storage.nbytes() else b""


def run_steps(path: str, entry: str, cases: list[Case]) -> list[dict]:
    """Call a PyTorch function on each case; stops after one that raises.

    Returns a dict a case: "error" (or None), "outputs", "x_changed", "operations" (each as an `Operation`),
    "exponentials" (elements raised by PyTorch), "numpy" (True if a tensor's values were handed out of
    PyTorch), "x_numpy" (True if those of x were, as an array), "origin" (as `_Steps.origin`).
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
        begin(case)
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
        x_numpy = any(method != "tolist" and key == x.untyped_storage()._cdata for method, key in handed_out)
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
                "operations": [asdict(row) for row in steps.rows],
                "exponentials": sum(row.writes for row in steps.rows if row.name in EXPONENTIALS),
                "numpy": numpy_used,
                "x_numpy": x_numpy,
                "origin": steps.origin(returned),
            }
        )
        if error:
            break
    return results


def _note_calls(method: str, calls: list) -> None:
    original = getattr(torch.Tensor, method)

    def noted(*args, **kwargs):
        calls.append((method, args[0].untyped_storage()._cdata))
        return original(*args, **kwargs)

    setattr(torch.Tensor, method, noted)


def tensor_message(value) -> dict:
    """A returned value as JSON types; other things than tensors by their type's name."""
    if type(value) is not torch.Tensor:  # a subclass may say what it likes of its values
        return {"tensor": False, "type": name_of(value)}
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
        return f"one {name_of(returned)}" if returned is not None else "nothing"
    if len(returned) != 2:
        return f"{len(returned)} values"
    try:
        numbers = [float(value) for value in returned]
    except (TypeError, ValueError, OverflowError):
        return " and ".join(name_of(value) for value in returned)
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
