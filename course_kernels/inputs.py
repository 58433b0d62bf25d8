"""What every kernel here asks of its input, said once, so that each kernel file holds only its own idea."""

import functools

import torch
from triton import knobs

from course_kernels import mode

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def name(dtype):
    """A dtype as one writes it: "float32"."""
    return str(dtype).removeprefix("torch.")


def check_dtype(x, dtypes=DTYPES):
    """Raise a TypeError that names the dtypes taken, unless x has one of them."""
    if x.dtype not in dtypes:
        raise TypeError(f"softmax takes {', '.join(map(name, dtypes))}; this tensor is {name(x.dtype)}.")


def check_place(x):
    """Raise a ValueError when x lies where the kernels of this process cannot reach it."""
    if x.device.type == "cpu" and not knobs.runtime.interpret and not mode.compile_only:
        raise ValueError(
            "The tensor is on the CPU, but kernels are compiled for the GPU here: pass x.cuda()."
        )


def rows_and_columns(x, most_columns=None, dtypes=DTYPES):
    """The shape (rows, columns) of a matrix that a kernel can take as it is.

    Args:
        x: (rows, columns), one of `dtypes`; rows may lie any distance apart, columns side by side.
        most_columns: the widest row the caller takes; None for any width.

    Raises:
        TypeError: another dtype.
        ValueError: not a matrix, columns not side by side, a row too wide, or memory out of reach.
    """
    check_dtype(x, dtypes)
    if x.dim() != 2:
        raise ValueError(f"This kernel takes a matrix (rows, columns), not the shape {tuple(x.shape)}.")
    rows, columns = x.shape
    if columns > 1 and x.stride(1) != 1:
        raise ValueError(
            f"The columns of a row must lie side by side (last stride 1, not {x.stride(1)}): "
            "pass x.contiguous()."
        )
    if most_columns is not None and columns > most_columns:
        raise ValueError(
            f"A row of {columns:,} columns is too wide for this kernel, which takes at most "
            f"{most_columns:,}. course_kernels.softmax picks a kernel for any width."
        )
    check_place(x)
    return rows, columns


def outer_length_inner(x):
    """The shape (outer, length, inner) of a tensor that a kernel can take as it is, columns along the middle.

    Raises:
        TypeError: a dtype not in DTYPES.
        ValueError: another number of dimensions, neighbours not side by side, or memory out of reach.
    """
    check_dtype(x)
    if x.dim() != 3 or (x.shape[2] > 1 and x.stride(2) != 1):
        raise ValueError(
            f"This kernel takes (outer, length, inner) with last stride 1, not the shape {tuple(x.shape)} "
            f"with strides {tuple(x.stride())}."
        )
    check_place(x)
    return tuple(x.shape)


def since_hopper(x):
    """Whether x is on a GPU with what came with Hopper (2022): clusters, and launches that begin early."""
    return x.is_cuda and _generation(x.device) >= 9


@functools.cache  # it is asked at each call, and never changes
def _generation(device):
    return torch.cuda.get_device_capability(device)[0]
