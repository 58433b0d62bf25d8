"""Softmax of each row in PyTorch steps, safe for scores of any size."""

import torch


def safe_softmax(x):
    """x: (rows, columns), float32 or float16. Returns y, its softmax along each row; shape and dtype of x.

    As in PyTorch, a NaN makes its whole row NaN. torch.softmax and torch.logsumexp
    would do all of this; here it is built from its steps.
    """
    raise NotImplementedError("subtract the row maximum, exponentiate, sum each row, divide")  # your code in place of this line
