"""Launch a course kernel with a block and a number of warps chosen by hand."""

import torch

from course_kernels import fused_row as module


def fused_row(x, block, num_warps=4):
    """The fused kernel on x (rows, columns), without the limits that its own `softmax` sets."""
    y = torch.empty_like(x)
    module.fused_row_kernel[(x.shape[0],)](
        y, x, y.stride(0), x.stride(0), x.shape[1], BLOCK=block, num_warps=num_warps
    )
    return y
