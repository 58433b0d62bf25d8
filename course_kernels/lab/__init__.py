"""The teaching tools around the kernels: the checker, the traffic meter, the compile report, the lesson's
parts.

    from course_kernels.lab import check, predict, compare, show

Imported in a notebook, it also registers the cell magic `%%exercise NAME` and starts the checker's processes,
so that they are warm by the time of the first check. Each name is loaded when it is first used.
"""

import importlib
import sys
import types

_NAMES = {
    "bench.results": ("runs",),
    "checking": ("check", "hint", "progress", "solution", "yours"),
    "core.gpus": ("GPUS", "find_gpu"),
    "counting": ("ledger", "traffic"),
    "curve": ("bandwidth", "explore", "recorded"),
    "lesson": ("compare", "explain", "predict", "show", "where_am_i"),
    "report": ("compile_report", "occupancy_explorer"),
    "show.chip": ("busy_multiprocessors", "row_and_lanes"),
    "show.merging": ("TREES", "merged"),
    "show.picture": ("Picture", "Table"),
    "show.plots": ("counted_and_seen", "exp_range", "reread_ceiling", "roofline", "timeline"),
    "show.widgets": ("merge_tree", "online_stepper", "tiles_walk", "traffic_bars"),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}
__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'course_kernels.lab' has no attribute {name!r}")
    module = importlib.import_module(f"course_kernels.lab.{_HOMES[name]}")
    value = globals()[name] = getattr(module, name)
    return value


class _Front(types.ModuleType):
    """`check` and `show` are a room each and a function each. An import of the room would bind its name here;
    whoever asks the front for the name wants the function."""

    def __setattr__(self, name, value):
        if not (name in _HOMES and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Front


def _in_notebook() -> None:
    if "IPython" not in sys.modules:
        return
    from IPython import get_ipython

    if get_ipython() is not None:
        from course_kernels.lab import magics

        magics.register(get_ipython())


_in_notebook()
