"""An input on which a softmax kernel that loads its masked lanes as 0 is wrong."""

import torch


def break_padding():
    """Returns x: (rows, columns), at most 64 × 1000, finite. The wrong kernel's outputs on it are wrong."""
    raise NotImplementedError("return a matrix on which padding with 0 shows")  # your code in place of this line
