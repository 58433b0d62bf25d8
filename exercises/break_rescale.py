"""An input on which a tiled softmax (tiles of 128) that never rescales its running sum is wrong."""

import torch


def break_rescale():
    """Returns x: (rows, columns), at most 64 × 1000, finite. The wrong kernel's outputs on it are wrong."""
    raise NotImplementedError("return a matrix on which a sum that is never rescaled shows")  # your code in place of this line
