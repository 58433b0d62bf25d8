"""The memory of a run: a region for each tensor, with its values, its counts, and a shadow.

The values live in the shadow. The real memory of a region holds only poison or decoys, and each load and
store of a kernel is redirected to the shadow. So only kernels can see the data, and what host code computes,
even while a kernel runs, is not a result.
"""

import ctypes
import math
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

MOST_ROOM = 1 << 20  # elements left free on either side of a tensor


@dataclass(eq=False)
class Region:
    """One tensor's memory: where it is, which elements are the tensor's, and how often each was used.

    `elements` marks, over the whole span, which positions are elements: with a row stride larger than the
    number of columns the gap between two rows is memory too, but not the tensor's.
    """

    name: str
    tensor: torch.Tensor
    elements: np.ndarray
    loads: np.ndarray
    stores: np.ndarray
    memory: np.ndarray  # bytes, the real thing
    shadow: np.ndarray  # bytes, the values that kernels see
    host: np.ndarray  # bytes, what is there for everyone else
    writer: np.ndarray  # who stored each element last: launch and program as one number, or −1
    given: bool  # an input of the function, not an allocation of its own
    outside: bool = False  # neither: made by other means than PyTorch's allocations, or before the call
    initialised: bool = True  # zeros and the like; False: poisoned until stored

    @property
    def base(self) -> int:
        return self.tensor.data_ptr()

    @property
    def distance(self) -> int:
        """Bytes from the real memory to the shadow."""
        return self.shadow.ctypes.data - self.base

    @property
    def itemsize(self) -> int:
        return self.tensor.element_size()

    @property
    def span(self) -> int:
        return len(self.elements)

    @property
    def row_stride(self) -> int:
        """Elements from the start of a row (along the last dimension) to the start of the next."""
        return max(1, self.tensor.stride(-2))

    def position(self, element: int, alone: bool = False) -> tuple[int, int]:
        """(row, column) of an offset from the base, in elements.

        What lies past the end belongs to the last row, at a column that it does not have, if other lanes of
        the access are inside; if none is (alone), to a row that the tensor does not have.
        """
        if self.tensor.dim() < 2:
            return 0, element
        row = element // self.row_stride
        if not alone:
            row = min(max(row, 0), math.prod(self.tensor.shape[:-1]) - 1)
        return row, element - row * self.row_stride

    def holds(self, tensor: torch.Tensor) -> bool:
        """True if a view of this region's dtype begins and ends in it: a view may reach past a tensor."""
        start = tensor.data_ptr() - self.base
        same = tensor.element_size() == self.itemsize and start % self.itemsize == 0
        return same and 0 <= start // self.itemsize <= self.span - span_of(tensor)

    def fill(self, view: torch.Tensor, number: float) -> None:
        """Give the elements of a view into this region a value, for kernels to see."""
        start = (view.data_ptr() - self.base) // self.itemsize
        values = torch.from_numpy(self.shadow).view(self.tensor.dtype)
        values.as_strided(view.shape, view.stride(), start).fill_(number)

    def values(self, tensor: torch.Tensor) -> np.ndarray:
        """What a view into this region holds, as kernels left it."""
        dtype = torch.empty(0, dtype=tensor.dtype).numpy().dtype
        flat = self.shadow.view(dtype)
        return _in_region(flat, tensor, self).copy()

    def times_stored(self, tensor: torch.Tensor) -> np.ndarray:
        """How often each element of a view into this region was stored."""
        return _in_region(self.stores, tensor, self)

    def times_loaded(self, tensor: torch.Tensor) -> np.ndarray:
        """How often each element of a view into this region was loaded."""
        return _in_region(self.loads, tensor, self)


def spanned(tensor: torch.Tensor) -> torch.Tensor:
    """All memory from a tensor's first element to its last, as one flat view."""
    return tensor.as_strided((span_of(tensor),), (1,))


def apart(like: torch.Tensor) -> torch.Tensor:
    """A tensor like it, its values not set, in memory with nothing near it.

    A row that is not there, before the first or after the last, then lies in no other tensor by chance.
    """
    if not like.numel():
        return like
    span = span_of(like)
    room = 64 * (64 + min(2 * span, MOST_ROOM) // 64)  # a multiple of 64 keeps the alignment
    return torch.empty(room + span + room, dtype=like.dtype).as_strided(like.shape, like.stride(), room)


def span_of(tensor: torch.Tensor) -> int:
    """The elements from a tensor's first to its last, with those between that are not its own."""
    reach = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return 1 + reach if tensor.numel() else 0


def _in_region(flat: np.ndarray, tensor: torch.Tensor, region: Region) -> np.ndarray:
    start = (tensor.data_ptr() - region.base) // region.itemsize
    strides = [s * flat.itemsize for s in tensor.stride()]
    return np.lib.stride_tricks.as_strided(flat[start:], tuple(tensor.shape), strides)


def bytes_of(tensor: torch.Tensor, span: int | None = None) -> np.ndarray:
    """The memory itself, as bytes, of a tensor's first `span` elements; of as many as it has, without one."""
    span = tensor.numel() if span is None else span
    size = span * tensor.element_size()
    if not size:
        return np.zeros(0, np.uint8)
    return np.frombuffer((ctypes.c_ubyte * size).from_address(tensor.data_ptr()), dtype=np.uint8)


def _poison(dtype: torch.dtype, span: int) -> np.ndarray:
    if dtype.is_floating_point:
        pattern = torch.full((1,), math.nan, dtype=dtype)
    elif dtype == torch.bool:
        pattern = torch.ones(1, dtype=dtype)
    else:
        pattern = torch.full((1,), torch.iinfo(dtype).min + 1, dtype=dtype)
    return np.tile(bytes_of(pattern), span)


class Memory:
    """All regions of one run, the inputs first."""

    def __init__(self):
        self.regions: list[Region] = []

    def give(self, name: str, tensor: torch.Tensor, decoy=None, outside: bool = False) -> torch.Tensor:
        """Make `tensor` an input: kernels see its values; its memory holds the decoy's.

        outside: it is scratch that the meter did not see being made.
        """
        region = self._add(name, tensor, given=not outside)
        region.outside = outside
        region.shadow[:] = region.memory
        if decoy is not None:
            region.host[:] = bytes_of(decoy)
            region.memory[:] = region.host
        return tensor

    def allocated(self, tensor: torch.Tensor, initialised: bool) -> None:
        """Note a tensor that PyTorch made during the run; unless initialised, it is poisoned with NaN."""
        region = self._add(f"scratch {sum(not r.given for r in self.regions) + 1}", tensor, given=False)
        region.initialised = initialised
        region.host[:] = _poison(tensor.dtype, region.span)
        region.shadow[:] = region.memory if initialised else region.host
        region.memory[:] = region.host

    def _add(self, name: str, tensor: torch.Tensor, given: bool) -> Region:
        tensor, span = tensor.detach(), span_of(tensor)  # of its own: a tensor may be given other memory
        memory = bytes_of(tensor, span)
        elements = np.zeros(span, dtype=bool)
        region = Region(
            name, tensor, elements, np.zeros(span, np.int32), np.zeros(span, np.int32),
            memory, memory.copy(), memory.copy(), np.full(span, -1, np.int64), given,
        )  # fmt: skip
        if span:
            _in_region(elements, tensor, region)[...] = True
        self.regions.append(region)
        return region

    def region_of(self, tensor: torch.Tensor) -> Region | None:
        """The region that a tensor, or a view, lies in."""
        return self.region_at(tensor.data_ptr())

    def region_at(self, address: int) -> Region | None:
        """The region that an address lies in."""
        for region in self.regions:
            if region.base <= address < region.base + region.span * region.itemsize:
                return region
        return None

    @contextmanager
    def values_in_place(self):
        """Meanwhile the values are in the real memory, for one operation of PyTorch's own."""
        for region in self.regions:
            region.memory[:] = region.shadow
        try:
            yield
        finally:
            for region in self.regions:
                region.shadow[:] = region.memory
                region.memory[:] = region.host
