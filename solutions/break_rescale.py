"""An input on which a tiled softmax (tiles of 128) that never rescales its running sum is wrong."""

import torch


def break_rescale():
    """Returns x: (rows, columns), at most 64 × 1000, finite. The wrong kernel's outputs on it are wrong."""
    # BEGIN SOLUTION: return a matrix on which a sum that is never rescaled shows
    return torch.linspace(0, 5, 256)[None]  # two tiles, and the second one holds the larger values
    # END SOLUTION
