"""A launch, prepared once: how a call comes to cost the CPU little more than the launch itself.

What a launcher works out, from its checks to the number of warps, depends on its input's shape, strides,
dtype, device and alignment, never on the values. So it is worked out for the first such input, and kept: a
plan. A later call finds the plan, allocates the output, and launches.

Triton, too, does work anew in each `kernel[grid](...)`: it binds arguments to names, and from their types
and alignment finds the binary compiled for them. It returns that binary, and `binary[grid](...)` launches
without any of this, as in Triton's own tutorial on softmax. A plan keeps it: what the choice of a binary
depends on is in the plan's key.
"""

import contextlib
import functools

import numpy
import torch
from triton import knobs
from triton.compiler import CompiledKernel
from triton.runtime import driver

OUTPUT, SCRATCH, INPUT, SECOND = range(4)  # the tensors of a call; SECOND is a second input
MOST_PLANS = 4_096  # of one function: a program that never sees a shape twice must not fill the memory
NO_CONTEXT = contextlib.nullcontext()


def planned(make):
    """Turn make(x, ...), which returns a Plan, into a function that carries it out and returns the output.

    make is called once for all x alike; from then on, y = f(x, ...) only launches. A second tensor may follow
    x. f.plan is make: one launcher returns another's plan where it gives way to it.
    """
    plans = {}

    @functools.wraps(make)
    def carry_out(x, *others, **options):
        key = (*_look(x), *map(_look, others), *options.items())
        plan = plans.get(key)
        if plan is None:
            if len(plans) >= MOST_PLANS:
                plans.clear()
            plan = plans[key] = make(x, *others, **options)
        return plan(x, *others)

    carry_out.plan = make
    return carry_out


def _look(x):
    """All that a plan may depend on. 16 bytes: what one load takes at most, and what Triton asks of an
    address."""
    if isinstance(x, torch.Tensor):
        return x.shape, x.stride(), x.dtype, x.device, x.data_ptr() % 16
    return (x,)


class Plan:
    """The launches of a call, and the memory they need."""

    def __init__(self, x, *launches, scratch=0, dtype=torch.float32, zeroed=False, otherwise=None):
        """
        Args:
            x: the input; its shape is the output's.
            launches: in their order; none if there is nothing to compute.
            scratch: elements of memory that the launches share. dtype: theirs. zeroed: they start as 0.
            otherwise: the plan to follow should the GPU refuse a cooperative launch.
        """
        self.launches, self.otherwise = launches, otherwise
        self.scratch, self.dtype = scratch, dtype
        self.allocate = torch.zeros if zeroed else torch.empty
        self.copies = False  # whether the launches are for a contiguous copy of the input
        self.give(x, x.shape)

    def give(self, x, shape):
        """Let the output have this shape, which may be that of another view of x. It is contiguous."""
        self.shape, self.strides = shape, torch.empty(shape, device="meta").stride()
        self.alike = x.shape == shape and x.stride() == self.strides  # then empty_like is the faster way
        return self

    def __call__(self, x, second=None, *_):
        if self.copies:
            x = x.contiguous()
            second = second.contiguous() if isinstance(second, torch.Tensor) else second
        y = torch.empty_like(x) if self.alike else x.new_empty_strided(self.shape, self.strides)
        scratch = self.scratch and self.allocate(self.scratch, dtype=self.dtype, device=x.device)
        with _context(x):
            try:
                for launch in self.launches:
                    launch((y, scratch, x, second))
            except RuntimeError as refusal:  # another process may hold a part of the GPU
                if self.otherwise is None or "cooperative" not in str(refusal):
                    raise
                return self.otherwise.give(x, self.shape)(x, second)
        return y


class Launch:
    """One launch, to be made again and again: kernel[(programs,)](*tensors, *numbers, **options)."""

    def __init__(self, kernel, programs, tensors, *numbers, **options):
        """
        Args:
            programs: how many.
            tensors: the kernel's first parameters, such as (OUTPUT, INPUT).
            numbers: those after them.
            options: its constexpr parameters, and Triton's own options (num_warps, ...), by name.
        """
        self.kernel, self.grid = kernel, (programs, 1, 1)
        self.tensors, self.numbers, self.options = tensors, numbers, options
        self.binary = None

    def __call__(self, tensors):
        if self.binary:
            stream = self.stream_of(self.device)
            self.binary(*[tensors[i].data_ptr() for i in self.tensors], *self.rest, stream=stream)
            return
        compiled = self.kernel[self.grid](*[tensors[i] for i in self.tensors], *self.numbers, **self.options)
        if isinstance(compiled, CompiledKernel):  # the interpreter returns none
            named = self.kernel.arg_names[len(self.tensors) + len(self.numbers) :]
            self.rest = *self.numbers, *(self.options[name] for name in named)
            self.stream_of, self.device = driver.active.get_current_stream, tensors[INPUT].get_device()
            self.binary = compiled[self.grid]


def _context(x):
    """The GPU that holds x, whichever is current. In the interpreter: no warnings by NumPy, such as of
    −inf − (−inf), which is a row's right answer."""
    if knobs.runtime.interpret:
        return numpy.errstate(all="ignore")
    if x.is_cuda and _gpus() > 1 and x.get_device() != torch.cuda.current_device():
        return torch.cuda.device(x.device)
    return NO_CONTEXT


_gpus = functools.cache(torch.cuda.device_count)
