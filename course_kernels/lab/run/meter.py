"""The meter: count every element a Triton kernel loads and stores, and keep it inside its tensors.

It works in the interpreter, where each load and store is a numpy call with the address of every lane. While
`Meter` is active, each access is looked up in the regions of memory it knows (the inputs, and what PyTorch
allocates), counted there element by element, and dropped if it falls outside all of them.

The values live in a shadow: the real memory of a region holds only poison or decoys, and each load and store
of a kernel is sent to the shadow. So only kernels can see the data, and what host code computes, be it while
a kernel runs, is not a result.
"""

import ctypes
import inspect
import math
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
import triton.language as tl
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from triton.runtime import interpreter

from course_kernels.lab.counting import ALLOCATIONS, FILLED

FILLS = {"zero_", "fill_"}
PROGRAMS = 1 << 40  # more than a launch can have
MOST_ROOM = 1 << 20  # elements left free on either side of a tensor
MAX_FAULTS = 20  # out-of-bounds accesses kept; one is enough to explain, a few show the pattern


class TorchWork(RuntimeError):
    """PyTorch was asked to do more than allocate."""


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

    def position(self, element: int, alone: bool = False) -> tuple[int, int]:
        """(row, column) of an offset from the base, in elements.

        What lies past the end belongs to the last row, at a column that it does not have, if other lanes of
        the access are inside; if none is (alone), to a row that the tensor does not have.
        """
        if self.tensor.dim() < 2:
            return 0, element
        rows, stride = self.tensor.shape[0], max(1, self.tensor.stride(0))
        row = element // stride if alone else min(max(element // stride, 0), rows - 1)
        return row, element - row * stride

    def holds(self, tensor: torch.Tensor) -> bool:
        """True if a view of this region's dtype begins and ends in it: a view may reach past a tensor."""
        start = tensor.data_ptr() - self.base
        same = tensor.element_size() == self.itemsize and start % self.itemsize == 0
        return same and 0 <= start // self.itemsize <= self.span - _span(tensor)

    def fill(self, view: torch.Tensor, number: float) -> None:
        """Give the elements of a view into this region a value, for kernels to see."""
        start = (view.data_ptr() - self.base) // self.itemsize
        values = torch.from_numpy(self.shadow).view(self.tensor.dtype)
        values.as_strided(view.shape, view.stride(), start).fill_(number)

    def values(self, tensor: torch.Tensor) -> np.ndarray:
        """What a view into this region holds, as kernels left it."""
        dtype = torch.empty(0, dtype=tensor.dtype).numpy().dtype
        flat = self.shadow.view(dtype)
        return _strided(flat, tensor, self).copy()

    def times_stored(self, tensor: torch.Tensor) -> np.ndarray:
        """How often each element of a view into this region was stored."""
        return _strided(self.stores, tensor, self)

    def times_loaded(self, tensor: torch.Tensor) -> np.ndarray:
        """How often each element of a view into this region was loaded."""
        return _strided(self.loads, tensor, self)


def spanned(tensor: torch.Tensor) -> torch.Tensor:
    """All memory from a tensor's first element to its last, as one flat view."""
    return tensor.as_strided((_span(tensor),), (1,))


def apart(like: torch.Tensor) -> torch.Tensor:
    """A tensor like it, its values not set, in memory with nothing near it.

    A row that is not there, before the first or after the last, then lies in no other tensor by chance.
    """
    if not like.numel():
        return like
    span = _span(like)
    room = 64 * (64 + min(2 * span, MOST_ROOM) // 64)  # a multiple of 64 keeps the alignment
    return torch.empty(room + span + room, dtype=like.dtype).as_strided(like.shape, like.stride(), room)


def _span(tensor: torch.Tensor) -> int:
    """The elements from a tensor's first to its last, with those between that are not its own."""
    reach = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return 1 + reach if tensor.numel() else 0


def _strided(flat: np.ndarray, tensor: torch.Tensor, region: Region) -> np.ndarray:
    start = (tensor.data_ptr() - region.base) // region.itemsize
    strides = [s * flat.itemsize for s in tensor.stride()]
    return np.lib.stride_tricks.as_strided(flat[start:], tuple(tensor.shape), strides)


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


@dataclass
class Tweaks:
    """Changes made under a running kernel, to prove what is wrong: if it then comes out right, that was it.

    masked_lanes: the value that a masked lane of a load from an input gets, whatever `other=` says.
    bare_lanes: the same for a load from elsewhere that has no `other=`.
    """

    masked_lanes: float | None = None
    bare_lanes: float | None = None


class Meter:
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

    current: "Meter | None" = None

    def __init__(self, tweaks: Tweaks | None = None):
        self.tweaks = tweaks or Tweaks()
        self.regions: list[Region] = []
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
        install()
        Meter.current = self
        return self

    def __exit__(self, *_) -> None:
        Meter.current = None

    # Memory

    def give(self, name: str, tensor: torch.Tensor, decoy=None, outside: bool = False) -> torch.Tensor:
        """Make `tensor` an input: kernels see its values; its memory holds the decoy's.

        outside: it is scratch that the meter did not see being made.
        """
        region = self._add(name, tensor, given=not outside)
        region.outside = outside
        region.shadow[:] = region.memory
        if decoy is not None:
            region.host[:] = _bytes(decoy)
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
        tensor, span = tensor.detach(), _span(tensor)  # of its own: a tensor may be given other memory
        memory = _bytes(tensor, span)
        elements = np.zeros(span, dtype=bool)
        region = Region(
            name, tensor, elements, np.zeros(span, np.int32), np.zeros(span, np.int32),
            memory, memory.copy(), memory.copy(), np.full(span, -1, np.int64), given,
        )  # fmt: skip
        if span:
            _strided(elements, tensor, region)[...] = True
        self.regions.append(region)
        return region

    def region_of(self, tensor: torch.Tensor) -> Region | None:
        """The region that a tensor, or a view, lies in."""
        return self._region_at(tensor.data_ptr())

    def _region_at(self, address: int) -> Region | None:
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
        if region.tensor.dim() == 2:
            stride = max(1, region.tensor.stride(0))
            rows = np.unique(elements // stride)
            columns = elements - (elements // stride) * stride
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
            region = self._region_at(_first(pointers.data, active))
            self.bare.add(region.name if region else "")
            fill = math.nan if self.tweaks.bare_lanes is None else self.tweaks.bare_lanes
            if other is None:
                other = _full(pointers.data.shape, fill, numpy_type, element)
        return original(builder, _pointers(moved, pointers), _mask(allowed), other, *rest)

    def _from_input(self, addresses: np.ndarray, active: np.ndarray) -> bool:
        address = _first(addresses, active)
        region = self._region_at(address)
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


class AllocationOnly(TorchDispatchMode):
    """Lets PyTorch allocate and look at tensors from another angle, and nothing else.

    The name of the first operation that is refused stays in `refused`, even if the exception is caught.
    """

    def __init__(self, meter: Meter):
        super().__init__()
        self.meter = meter
        self.refused = ""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first operation imports torch._dynamo, a second's wait for nothing

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = operation._schema.name.removeprefix("aten::")
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


# The hooks

_HOOKS = {
    "create_masked_load": Meter.load,
    "create_masked_store": Meter.store,
    "create_atomic_rmw": Meter.atomic,
    "create_atomic_cas": Meter.compare_and_swap,
}
_installed: dict[str, object] = {}


def install() -> None:
    """Put the hooks into Triton's interpreter, once; without an active Meter they change nothing."""
    if _installed:
        return
    for name, hook in _HOOKS.items():
        _installed[name] = _hook(getattr(interpreter.InterpreterBuilder, name), hook)
        setattr(interpreter.InterpreterBuilder, name, _installed[name])
    original_run = interpreter.InterpretedFunction.run

    def run(function, *args, grid, warmup, **kwargs):
        if Meter.current is None or warmup:
            return original_run(function, *args, grid=grid, warmup=warmup, **kwargs)
        return Meter.current.launch(function, original_run, args, grid, warmup, kwargs)

    _installed["run"] = interpreter.InterpretedFunction.run = run
    # Of a number and a NaN, tl.maximum and tl.minimum give the number: on a GPU, and here since Triton 3.8.
    builder = interpreter.InterpreterBuilder
    builder.create_maxnumf = lambda self, left, right: self.binary_op(left, right, np.fmax)
    builder.create_minnumf = lambda self, left, right: self.binary_op(left, right, np.fmin)
    interpreter.ReduceOps.generic_reduce = _in_halves(interpreter.ReduceOps.generic_reduce)
    interpreter._patch_lang_tensor = _scalars_as_numbers(interpreter._patch_lang_tensor)


def intact() -> bool:
    """False if something replaced the hooks since they were installed."""
    now = {name: getattr(interpreter.InterpreterBuilder, name) for name in _HOOKS}
    now["run"] = interpreter.InterpretedFunction.run
    return now == _installed


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


def _hook(original, hook):
    def hooked(builder, *args):
        if Meter.current is None:
            return original(builder, *args)
        return hook(Meter.current, original, builder, *args)

    return hooked


def _scalars_as_numbers(original):
    """Let a scalar be a bound of range(): Triton 3.6 takes the int of an array of one; numpy 2.5 has none."""

    def patch(tensor, scope):
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.squeeze()))

    return patch


def _in_halves(original):
    """tl.reduce with a function of one's own, neighbours joined with whole arrays at a time.

    The interpreter goes from element to element, a millisecond each: minutes for a long row. A GPU joins in a
    tree as well. What does not work on arrays is left to the interpreter.
    """

    def generic_reduce(reduction, input):
        try:
            return _reduce_in_halves(reduction, input)
        except Exception:
            return original(reduction, input)

    return generic_reduce


def _reduce_in_halves(reduction, input) -> list:
    values, axis = reduction.unravel(input, reduction.axis)
    arrays = [np.moveaxis(value.handle.data, axis, -1) for value in values]
    while arrays[0].shape[-1] > 1:
        sides = [
            reduction.to_tensor(array[..., side::2], value.dtype)
            for side in (0, 1)
            for array, value in zip(arrays, values, strict=True)
        ]
        joined = reduction.combine_fn.fn(*sides)
        joined = joined if isinstance(joined, tuple) else (joined,)
        shape = sides[0].handle.data.shape
        arrays = [np.broadcast_to(one.handle.data, shape) for one in joined]
    arrays = [array[..., 0] for array in arrays]
    if reduction.axis is None:
        arrays = [
            array.reshape([1] * len(input[0].shape)) if reduction.keep_dims else array.item()
            for array in arrays
        ]
    elif reduction.keep_dims:
        arrays = [np.expand_dims(array, axis) for array in arrays]
    return [reduction.to_tensor(array, value.dtype) for array, value in zip(arrays, values, strict=True)]


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


def _bytes(tensor: torch.Tensor, span: int | None = None) -> np.ndarray:
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
    return np.tile(_bytes(pattern), span)
