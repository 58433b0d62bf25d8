"""The hooks into Triton's interpreter, by which a meter sees each launch, load, store and atomic operation.

In the interpreter each load and store is a numpy call with the address of every lane. Without an active meter
the hooks change nothing. Some repairs of the interpreter stand here as well, so that it gives what a GPU
gives, and in time.
"""

import numpy as np
from triton.runtime import interpreter, jit

active = None  # the meter under which kernels run now, or None

# Method of the interpreter's builder → method of the meter: (original, builder, *arguments) → result
_METHODS = {
    "create_masked_load": "load",
    "create_masked_store": "store",
    "create_atomic_rmw": "atomic",
    "create_atomic_cas": "compare_and_swap",
}
_installed: dict[str, object] = {}


def install() -> None:
    """Put the hooks and the repairs into Triton's interpreter, once."""
    if _installed:
        return
    builder = interpreter.InterpreterBuilder
    for name, method in _METHODS.items():
        _installed[name] = _hook(getattr(builder, name), method)
        setattr(builder, name, _installed[name])
    original_run = interpreter.InterpretedFunction.run

    def run(function, *args, grid, warmup, **kwargs):
        if active is None or warmup:
            return original_run(function, *args, grid=grid, warmup=warmup, **kwargs)
        return active.launch(function, original_run, args, grid, warmup, kwargs)

    _installed["run"] = interpreter.InterpretedFunction.run = run
    # Of a number and a NaN, tl.maximum and tl.minimum give the number: on a GPU, and here since Triton 3.8.
    builder.create_maxnumf = lambda self, left, right: self.binary_op(left, right, np.fmax)
    builder.create_minnumf = lambda self, left, right: self.binary_op(left, right, np.fmin)
    interpreter.ReduceOps.generic_reduce = _in_halves(interpreter.ReduceOps.generic_reduce)
    interpreter._patch_lang_tensor = _scalars_as_numbers(interpreter._patch_lang_tensor)
    jit._normalize_ty = _any_alias(jit._normalize_ty)


def intact() -> bool:
    """False if something replaced the hooks since they were installed."""
    now = {name: getattr(interpreter.InterpreterBuilder, name) for name in _METHODS}
    now["run"] = interpreter.InterpretedFunction.run
    return now == _installed


def _hook(original, method: str):
    def hooked(builder, *args):
        if active is None:
            return original(builder, *args)
        return getattr(active, method)(original, builder, *args)

    return hooked


def _any_alias(original):
    """Let a kernel's parameters be declared by any name that triton.language has in the file.

    The interpreter reads the declarations as text, and knows "tl.constexpr" only.
    """

    def normalize(declared):
        written = declared.strip().strip("'\"") if isinstance(declared, str) else ""
        return "constexpr" if written.split(".")[-1] == "constexpr" else original(declared)

    return normalize


def _scalars_as_numbers(original):
    """Let a scalar be a bound of range(): Triton 3.6 takes the int of an array of one; numpy 2.5 has none."""

    def patch(tensor, scope):
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.squeeze()))

    return patch


def _in_halves(original):
    """tl.reduce with a function of one's own, neighbours joined with whole arrays at a time.

    The interpreter goes from element to element, a millisecond each: minutes for a long row. A GPU joins them
    in a tree too. What does not work on arrays is left to the interpreter.
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
