"""PyTorch's operations: what each reads and writes, which only allocate, and a guard against all others.

A separate operation is a kernel of its own, so it reads all of its inputs from memory and writes all of its
outputs back. Elements are counted here as if there were no cache.
"""

from dataclasses import dataclass

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_kernels.lab.run.memory import apart

# Names of PyTorch operations (aten), by what they do to memory.
ALLOCATIONS = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted"}
FILLED = {
    "zeros",
    "zeros_like",
    "new_zeros",
    "ones",
    "ones_like",
    "new_ones",
    "full",
    "full_like",
    "new_full",
}
ANGLES = {"detach", "alias", "_unsafe_view", "lift", "lift_fresh"}  # views that are not marked as such
OVERWRITES = {"zero_", "fill_", "copy_", "uniform_", "normal_", "exponential_", "random_", "bernoulli_"}
SELECTS = {"index", "index_select", "gather", "embedding", "take"}  # read as much as they give, no more


FILLS = {"zero_", "fill_"}


@dataclass
class Operation:
    """One PyTorch operation: what went in and out, and the elements and bytes that it reads and writes."""

    name: str
    shapes: str
    reads: int
    writes: int
    bytes: int
    note: str = ""


class Recording(TorchDispatchMode):
    """While active, notes every operation that PyTorch dispatches."""

    def __init__(self):
        super().__init__()
        self.rows: list[Operation] = []
        self.allocated = 0  # bytes, all together
        self.peak = 0  # bytes, the most at one time
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first operation imports torch._dynamo, a second's wait for nothing

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = self.compute(operation, args, kwargs)
        self.rows.append(describe_operation(operation, args, kwargs, result))
        if not is_view(operation):
            self._note_storages(result)
        return result

    def compute(self, operation, args, kwargs):
        """Run the operation; for subclasses that must do something around it."""
        return operation(*args, **kwargs)

    def _note_storages(self, result) -> None:
        self._alive = {key: kept for key, kept in self._alive.items() if not kept[0].expired()}
        for tensor in tensors_of(result):
            storage = tensor.untyped_storage()
            reference = StorageWeakRef(storage)
            if reference.cdata not in self._alive and not self._was_there(storage):
                self._alive[reference.cdata] = reference, storage.nbytes()
                self.allocated += storage.nbytes()
        self.peak = max(self.peak, sum(size for _, size in self._alive.values()))

    def _was_there(self, storage) -> bool:
        """True for the storage of a tensor that was passed in: an operation in place gives it back."""
        return storage._cdata in self._given

    _given: frozenset = frozenset()

    def given(self, *arguments) -> None:
        """The arguments' own memory is not the function's."""
        self._given = frozenset(t.untyped_storage()._cdata for t in tensors_of(arguments))


def is_view(operation) -> bool:
    """True for an operation that only looks at a tensor from another angle."""
    return operation.is_view or name_of(operation) in ANGLES


def describe_operation(operation, args, kwargs, result) -> Operation:
    """Count one operation: every distinct element of its inputs read once, of its outputs written once."""
    name, schema = name_of(operation), operation._schema
    inputs, outputs = tensors_of((args, kwargs)), tensors_of(result)
    shapes = f"{_shapes(inputs)} → {_shapes(outputs)}" if inputs else _shapes(outputs)
    if is_view(operation):
        return Operation(name, shapes, 0, 0, 0, "a view: no traffic")
    if name in ALLOCATIONS:
        return Operation(name, shapes, 0, 0, 0, "an allocation: no traffic")
    read, written = {}, {}
    values = dict(zip((a.name for a in schema.arguments), args, strict=False)) | kwargs
    for argument in schema.arguments:
        for tensor in tensors_of(values.get(argument.name)):
            changes = argument.alias_info is not None and argument.alias_info.is_write
            if changes:
                written[_key(tensor)] = tensor
            if not changes or not (argument.kwarg_only or name in OVERWRITES):
                read[_key(tensor)] = tensor
    if name in FILLED:
        read = {}  # zeros_like asks its argument for a shape, not for values
    for returned, tensor in zip(schema.returns, _returned(result), strict=False):
        if returned.alias_info is None:
            written.update({_key(t): t for t in tensors_of(tensor)})
    note = ""
    if name in SELECTS:
        data, *indices = read.values()
        reads = [(sum(t.numel() for t in outputs), data.element_size())]
        reads += [(_elements(t), t.element_size()) for t in indices]
    else:
        reads = [(_elements(t), t.element_size()) for t in read.values()]
    writes = [(_elements(t), t.element_size()) for t in written.values()]
    if name in ("max", "min") and len(outputs) == 2:
        note = f"writes the places as well, as {str(outputs[1].dtype).removeprefix('torch.')}"
    return Operation(
        name,
        shapes,
        sum(n for n, _ in reads),
        sum(n for n, _ in writes),
        sum(n * size for n, size in reads + writes),
        note,
    )


def name_of(operation) -> str:
    return operation._schema.name.removeprefix("aten::")


def tensors_of(tree) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _returned(result) -> list:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _elements(tensor: torch.Tensor) -> int:
    """The distinct elements of a tensor: an expanded dimension repeats, it does not add."""
    count = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= size if stride or size == 0 else 1
    return count


def _key(tensor: torch.Tensor) -> tuple:
    return tensor.untyped_storage()._cdata, tensor.storage_offset(), tuple(tensor.shape), tensor.stride()


def _shapes(tensors: list[torch.Tensor]) -> str:
    return ", ".join(" × ".join(map(str, t.shape)) or "a number" for t in tensors) or "nothing"


class TorchWork(RuntimeError):
    """PyTorch was asked to do more than allocate."""


class AllocationOnly(TorchDispatchMode):
    """Lets PyTorch allocate and look at tensors from another angle, and nothing else.

    The name of the first operation that is refused stays in `refused`, even if the exception is caught.
    """

    def __init__(self, meter):
        super().__init__()
        self.meter = meter
        self.refused = ""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first operation imports torch._dynamo, a second's wait for nothing

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = name_of(operation)
        if name in ALLOCATIONS | FILLED and kwargs.get("out") is None:
            made = operation(*args, **kwargs)
            if made.device.type != "cpu":
                raise RuntimeError(
                    f"A tensor was made on {made.device}, and the check gives x on the CPU. Make it "
                    "where x is: device=x.device."
                )
            room = apart(made)
            if name in FILLED:
                room.copy_(made)
            self.meter.allocated(room, initialised=name in FILLED)
            return room
        if name in FILLS and self.may_fill(*args):
            region = self.meter.region_of(args[0])
            region.fill(args[0], args[1] if len(args) > 1 else 0)
            region.initialised = True
            return args[0]
        if operation.is_view or name in ("detach", "alias", "_unsafe_view"):
            return operation(*args, **kwargs)
        self.refused = self.refused or name
        raise TorchWork(name)

    def may_fill(self, tensor: torch.Tensor, number: float = 0) -> bool:
        """True for a plain number, into scratch that no kernel has stored to: what else is a result."""
        region = self.meter.region_of(tensor)
        own = region is not None and not region.given and not region.outside and region.holds(tensor)
        return own and isinstance(number, (int, float)) and not region.stores.any()
