"""An input on which a softmax kernel that loads its masked lanes as 0 is wrong."""

import torch


def break_padding():
    """Returns x: (rows, columns), at most 64 × 1000, finite. The wrong kernel's outputs on it are wrong."""
    # BEGIN SOLUTION: return a matrix on which padding with 0 shows
    return torch.full((1, 5), -3.0)  # 5 columns leave 3 masked lanes, and every value is below 0
    # END SOLUTION
