"""The exercises, one file each, in the course's order: its brief, its cases, its mistakes, its hints."""

import importlib

_MODULES = (
    "copy_rows",
    "safe_softmax",
    "count_traffic",
    "fused_softmax",
    "break_padding",
    "log_softmax",
    "online_merge",
    "online_stats",
    "break_rescale",
    "tiled_softmax",
    "split_softmax",
)


def names() -> tuple[str, ...]:
    """The exercises' names in the course's order."""
    return _MODULES


def get(name: str):
    """The exercise of this name.

    Raises:
        KeyError: there is none; the message lists those there are.
    """
    if name not in _MODULES:
        raise KeyError(f"There is no exercise called {name!r}. There are: {', '.join(_MODULES)}.")
    return importlib.import_module(f"course_kernels.lab.exercises.{name}").EXERCISE
