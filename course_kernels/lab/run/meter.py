"""The meter: count every element a Triton kernel loads and stores, and keep it inside its tensors.

It works in the interpreter (see `hooks`). While a `Meter` is active, each access is looked up in the regions
of memory it knows (the inputs, and what PyTorch allocates), counted there element by element, and dropped if
it falls outside all of them.
"""

import inspect
import math
from dataclasses import dataclass, field

import numpy as np
import torch
import triton.language as tl
from torch.utils._python_dispatch import _disable_current_modes
from triton.runtime import interpreter

from course_kernels.lab.run import hooks
from course_kernels.lab.run.cases import Tweaks
from course_kernels.lab.run.memory import Memory, Region

PROGRAMS = 1 << 40  # more than a launch can have
MAX_FAULTS = 20  # out-of-bounds accesses kept; one is enough to explain, a few show the pattern


@dataclass
class Fault:
    """An access outside every tensor: what, where, by which program; shape: that of the nearest tensor."""

    operation: str  # "load" or "store"
    kernel: str
    program: tuple[int, int, int]
    tensor: str
    row: int
    column: int
    lanes: int
    shape: tuple = ()


@dataclass
class Launch:
    """One kernel launch: its grid, and its arguments by name.

    numbers: the integers, constexprs and options among them. tensors: the names of the regions.
    collisions: (region, element, program, other program) of stores by programs of different rows of an input
    to the same element; only the first few, and none after an atomic operation.
    """

    kernel: str
    grid: tuple[int, int, int] = (0, 0, 0)
    numbers: dict = field(default_factory=dict)
    tensors: dict = field(default_factory=dict)
    collisions: list = field(default_factory=list)


class Meter(Memory):
    """Counts the loads and stores of the kernels launched while it is active (`with meter:`).

    Attributes:
        regions: every tensor's memory, inputs first.
        launches: one `Launch` a kernel launch.
        faults: accesses outside every tensor; such lanes are dropped.
        fills: the values that masked lanes of floating-point loads from inputs were given; None for
        "nothing".
        widest_load: the most different columns of an input that one load took.
        unwritten: (kernel, program, elements) of loads from an allocation that nothing had stored to yet.
        races: (kernel, program, the program that stored) of loads of what another program of the same launch
            had stored: on a GPU it may not have, yet. After an atomic operation a program may know better.
        bare: tensors loaded with masked lanes and no `other=`; such lanes hold NaN here, anything on a GPU.
        programs: for each (input, row), the programs that loaded from it.
    """

    def __init__(self, tweaks: Tweaks | None = None):
        super().__init__()
        self.tweaks = tweaks or Tweaks()
        self.launches: list[Launch] = []
        self.faults: list[Fault] = []
        self.fills: set = set()
        self.widest_load = 0
        self.unwritten: list[tuple] = []
        self.races: list[tuple] = []
        self.bare: set[str] = set()
        self.synchronised: set[int] = set()  # programs of this launch that have done an atomic operation
        self.programs: dict[tuple[str, int], set] = {}
        self.running = ""
        self.broken: BaseException | None = None  # what a kernel raised, also if the host catches it

    def __enter__(self) -> "Meter":
        hooks.install()
        hooks.active = self
        return self

    def __exit__(self, *_) -> None:
        hooks.active = None

    # Launches

    def launch(self, function, original, args, grid, warmup, kwargs):
        """Run one kernel launch."""
        names = dict(zip(function.arg_names, args, strict=False)) | kwargs
        numbers = {k: int(v) for k, v in names.items() if isinstance(v, (int, np.integer))}
        launch = Launch(function.__name__, numbers=numbers)
        self.launches.append(launch)
        self.running = launch.kernel
        self.synchronised.clear()
        if callable(grid):  # host code: still only to allocate
            known = {name: value for name, value in names.items() if name in function.arg_names}
            grid = grid(inspect.getcallargs(function.fn, **known))
        with _disable_current_modes():
            for value in names.values():
                if isinstance(value, torch.Tensor) and value.numel() and self.region_of(value) is None:
                    self.give(f"a tensor from outside, {launch.kernel}", value, outside=True)
            launch.tensors = {
                name: region.name
                for name, value in names.items()
                if isinstance(value, torch.Tensor) and value.numel() and (region := self.region_of(value))
            }
            try:
                returned = original(function, *args, grid=grid, warmup=warmup, **kwargs)
                for name, value in names.items():  # afterwards: Triton's own words come first
                    if name in function.arg_names and not _is_argument(value):
                        raise TypeError(
                            f"The argument {name} of {launch.kernel} is a {type(value).__name__}. A kernel "
                            "takes tensors, numbers, strings, dtypes, tuples of them, and other kernels."
                        )
                return returned
            except BaseException as error:
                self.broken = error
                raise
            finally:
                launch.grid = tuple(getattr(interpreter.interpreter_builder, "grid_dim", (0, 0, 0)))

    # Accesses

    def access(self, operation: str, addresses: np.ndarray, active: np.ndarray, size: int):
        """Count one access of a program, `size` bytes at each address.

        Returns the lanes that may go on, active and inside a tensor; and the addresses, sent to the shadow.
        """
        allowed = np.zeros(addresses.shape, dtype=bool)
        moved = np.array(addresses, order="C")
        if not active.any():
            return allowed, moved
        flat, lanes = addresses.reshape(-1).astype(np.int64), np.flatnonzero(active.reshape(-1))
        inside, sent = allowed.reshape(-1), moved.reshape(-1)
        for region in self.regions:
            offset = flat[lanes] - region.base
            hit = (offset >= 0) & (offset < region.span * region.itemsize)
            if not hit.any():
                continue
            # More than one for a lane where a pointer was cast to a wider dtype.
            element = (offset[hit] // region.itemsize)[:, None] + np.arange(-(-size // region.itemsize))
            good = region.elements[np.minimum(element, region.span - 1)] & (element < region.span)
            good = good.all(axis=1) & (offset[hit] % region.itemsize == 0)
            hit_lanes = lanes[hit]
            inside[hit_lanes[good]] = True
            sent[hit_lanes[good]] = (flat[hit_lanes[good]] + region.distance).astype(sent.dtype)
            element = element[good].reshape(-1)
            np.add.at(region.loads if operation == "load" else region.stores, element, 1)
            if operation == "store":
                if not region.given and len(self.launches[-1].collisions) < MAX_FAULTS:
                    self._note_collision(region, element)
                region.writer[element] = self._program_number()
            elif len(element) and region.given:
                self._note_load(region, element)
            elif len(element) and len(self.unwritten) + len(self.races) < MAX_FAULTS:
                self._note_scratch_load(region, element)
        outside = lanes[~inside[lanes]]
        if len(outside) and len(self.faults) < MAX_FAULTS:
            self._note_fault(operation, flat[outside], alone=not inside[lanes].any())
        return allowed, moved

    def _note_load(self, region: Region, elements: np.ndarray) -> None:
        if region.tensor.dim() >= 2:
            rows, columns = np.divmod(elements, region.row_stride)
            rows = np.unique(rows)
        else:
            rows, columns = [0], elements
        if columns.max() - columns.min() >= self.widest_load:  # else it cannot be the widest
            self.widest_load = max(self.widest_load, len(np.unique(columns)))
        for row in rows:
            self.programs.setdefault((region.name, int(row)), set()).add(
                (len(self.launches), interpreter.interpreter_builder.grid_idx)
            )

    def _note_scratch_load(self, region: Region, elements: np.ndarray) -> None:
        program = tuple(int(i) for i in interpreter.interpreter_builder.grid_idx)
        never = int((region.stores[elements] == 0).sum())
        if never and not region.initialised:
            self.unwritten.append((self.running, program, never))
        number, writers = self._program_number(), region.writer[elements]
        of_this_launch = writers // PROGRAMS == number // PROGRAMS
        others = writers[of_this_launch & (writers != number)]
        if len(others) and number not in self.synchronised:
            self.races.append((self.running, program, int(others[0] % PROGRAMS)))

    def _note_collision(self, region: Region, elements: np.ndarray) -> None:
        number, writers = self._program_number(), region.writer[elements]
        others = (writers // PROGRAMS == number // PROGRAMS) & (writers != number)
        if number in self.synchronised or not others.any():
            return
        first = int(np.argmax(others))
        here = tuple(map(int, interpreter.interpreter_builder.grid_idx))
        there = self._program_at(int(writers[first] % PROGRAMS))
        mine, its = self._rows_of(here), self._rows_of(there)
        if mine and its and not mine & its:
            self.launches[-1].collisions.append((region.name, int(elements[first]), here, there))

    def _rows_of(self, program: tuple) -> set:
        """The rows of inputs that a program of this launch has loaded from."""
        return {row for row, programs in self.programs.items() if (len(self.launches), program) in programs}

    def _program_at(self, number: int) -> tuple[int, int, int]:
        width, height, _ = interpreter.interpreter_builder.grid_dim
        return number % width, number // width % height, number // (width * height)

    def _program_number(self) -> int:
        """The launch and the program under way as one number."""
        x, y, z = interpreter.interpreter_builder.grid_idx
        width, height, _ = interpreter.interpreter_builder.grid_dim
        return len(self.launches) * PROGRAMS + int(x + width * (y + height * z))

    def _note_fault(self, operation: str, addresses: np.ndarray, alone: bool) -> None:
        address = int(addresses[0])

        def distance(region: Region) -> int:
            return max(region.base - address, address - (region.base + region.span * region.itemsize), 0)

        near = min((r for r in self.regions if r.span), key=distance, default=None)
        row, column = (0, 0) if near is None else near.position((address - near.base) // near.itemsize, alone)
        program = tuple(int(i) for i in interpreter.interpreter_builder.grid_idx)
        name = "no tensor" if near is None else near.name
        shape = () if near is None else tuple(near.tensor.shape)
        self.faults.append(Fault(operation, self.running, program, name, row, column, len(addresses), shape))

    def load(self, original, builder, pointers, mask, other, *rest):
        active = np.broadcast_to(mask.data, pointers.data.shape)
        element = pointers.get_element_ty()
        numpy_type = interpreter._get_np_dtype(element)
        allowed, moved = self.access("load", pointers.data, active, _width(pointers))
        floating = np.issubdtype(numpy_type, np.floating)
        bare = floating and other is None and not active.all()
        if floating and not allowed.all() and self._from_input(pointers.data, active):
            if not active.all():
                self.fills.update(
                    [None] if bare else _few(np.broadcast_to(other.data, active.shape)[~active])
                )
            if self.tweaks.masked_lanes is not None:  # what lies outside counts as masked
                other = _full(pointers.data.shape, self.tweaks.masked_lanes, numpy_type, element)
        if bare:
            region = self.region_at(_first(pointers.data, active))
            self.bare.add(region.name if region else "")
            fill = math.nan if self.tweaks.bare_lanes is None else self.tweaks.bare_lanes
            if other is None:
                other = _full(pointers.data.shape, fill, numpy_type, element)
        return original(builder, _pointers(moved, pointers), _mask(allowed), other, *rest)

    def _from_input(self, addresses: np.ndarray, active: np.ndarray) -> bool:
        address = _first(addresses, active)
        region = self.region_at(address)
        if region is not None:
            return region.given
        given = [r for r in self.regions if r.given and r.span]
        return any(r.base <= address < r.base + 2 * r.span * r.itemsize for r in given)

    def store(self, original, builder, pointers, value, mask, *rest):
        active = np.broadcast_to(mask.data, pointers.data.shape)
        allowed, moved = self.access("store", pointers.data, active, _width(pointers))
        return original(builder, _pointers(moved, pointers), value, _mask(allowed), *rest)

    def atomic(self, original, builder, kind, pointers, value, mask, *rest):
        self.synchronised.add(self._program_number())
        active = np.broadcast_to(mask.data, pointers.data.shape)
        allowed, moved = self.access("load", pointers.data, active, _width(pointers))
        self.access("store", pointers.data, allowed, _width(pointers))
        return original(builder, kind, _pointers(moved, pointers), value, _mask(allowed), *rest)

    def compare_and_swap(self, original, builder, pointers, *rest):
        self.synchronised.add(self._program_number())
        active = np.ones(pointers.data.shape, dtype=bool)
        allowed, moved = self.access("load", pointers.data, active, _width(pointers))
        self.access("store", pointers.data, allowed, _width(pointers))
        if not allowed.all():
            raise IndexError("tl.atomic_cas outside every tensor")
        return original(builder, _pointers(moved, pointers), *rest)

    # Sums

    def loads(self) -> int:
        """Elements loaded, over all tensors."""
        return sum(int(r.loads.sum()) for r in self.regions)

    def stores(self) -> int:
        """Elements stored, over all tensors."""
        return sum(int(r.stores.sum()) for r in self.regions)

    def bytes(self) -> int:
        """Bytes loaded and stored, over all tensors."""
        return sum(int(r.loads.sum() + r.stores.sum()) * r.itemsize for r in self.regions)

    def by_tensor(self, results: dict[str, object]) -> list[tuple[str, int, int, int]]:
        """(tensor, elements loaded, elements stored, bytes) for each that kernels touched.

        results: what the function returned, by name, so that a result is called by its name.
        """
        known = {
            id(self.region_of(t)): name
            for name, t in results.items()
            if isinstance(t, torch.Tensor) and t.numel()
        }
        touched = [
            (known.get(id(r), r.name), int(r.loads.sum()), int(r.stores.sum()), r.itemsize)
            for r in self.regions
        ]
        return [
            (name, loads, stores, (loads + stores) * size)
            for name, loads, stores, size in touched
            if loads + stores
        ]


def _is_argument(value) -> bool:
    """True for what a kernel can be given on a GPU; not for a class of the file's own that passes for it."""
    if type(value) is tuple:
        return all(map(_is_argument, value))
    if type(value) is tl.constexpr:
        return _is_argument(value.value)
    libraries = (torch.Tensor, torch.dtype, np.generic, tl.dtype, interpreter.InterpretedFunction)
    home = type(value).__module__.split(".")[0]
    return type(value) in (bool, int, float, str, type(None)) or (
        isinstance(value, libraries) and home in ("numpy", "torch", "triton")
    )


def _width(pointers) -> int:
    """The bytes that a pointer's load or store takes."""
    return np.dtype(interpreter._get_np_dtype(pointers.get_element_ty())).itemsize


def _pointers(addresses: np.ndarray, like) -> "interpreter.TensorHandle":
    return interpreter.TensorHandle(addresses, like.dtype)


def _mask(allowed: np.ndarray) -> "interpreter.TensorHandle":
    return interpreter.TensorHandle(allowed, tl.int1)


def _first(addresses: np.ndarray, active: np.ndarray) -> int:
    """The address of the first active lane; of the first lane, where all are masked."""
    return int(addresses.reshape(-1)[np.argmax(active.reshape(-1))])


def _full(shape, value: float, numpy_type, element) -> "interpreter.TensorHandle":
    return interpreter.TensorHandle(np.full(shape, value, dtype=numpy_type), element)


def _few(values: np.ndarray) -> list:
    few = np.unique(values)[:3]
    return [float(v) for v in few if not math.isnan(v)] or [math.nan]
