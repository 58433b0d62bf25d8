"""Softmax in PyTorch steps: each line is a kernel of its own, with a trip to memory before and after it.

    softmax(x)ᵢ = exp(xᵢ) / Σⱼ exp(xⱼ)        over each row of a (rows, columns) matrix

Any width, any float dtype; each step rounds to that dtype.
"""

import torch


def naive(x):
    """Softmax as the formula is written. It overflows: in float32, exp(x) is inf from x = 88.73 on.

    Args:
        x: (rows, columns), floating point.

    Returns:
        y: as x. NaN where exp overflows, or where a whole row underflows to a sum of 0.
    """
    numerator = torch.exp(x)
    denominator = numerator.sum(dim=1, keepdim=True)
    return numerator / denominator


def softmax(x):
    """Softmax with the row maximum subtracted first, so that no exponent is above 0.

    The same factor exp(−m) then multiplies numerator and denominator, and the quotient stays what it was.

    Args:
        x: (rows, columns), floating point.

    Returns:
        y: as x; each row sums to 1.
    """
    if x.numel() == 0:
        return torch.empty_like(x)  # a maximum of nothing does not exist
    maximum = x.amax(dim=1, keepdim=True)
    shifted = x - maximum
    numerator = torch.exp(shifted)
    denominator = numerator.sum(dim=1, keepdim=True)
    return numerator / denominator
