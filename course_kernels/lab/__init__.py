"""The teaching tools around the kernels: the checker, the traffic meter, the compile report, the lesson's
parts.

    from course_kernels.lab import check, predict, compare, show

Imported in a notebook, it also registers the cell magic `%%exercise NAME` and starts the checker's processes,
so that they are warm by the time of the first check. Each name is loaded when it is first used.
"""

import importlib

_HOMES = {
    "bandwidth": "curve",
    "check": "checking",
    "compare": "lesson",
    "compile_report": "report",
    "explain": "lesson",
    "explore": "show.widgets",
    "hint": "checking",
    "ledger": "counting",
    "merge_tree": "show.widgets",
    "occupancy_explorer": "show.widgets",
    "online_stepper": "show.widgets",
    "Picture": "show.picture",
    "predict": "lesson",
    "progress": "checking",
    "recorded": "bench.results",
    "show": "lesson",
    "solution": "checking",
    "Table": "show.picture",
    "tiles_walk": "show.widgets",
    "traffic": "counting",
    "traffic_bars": "show.widgets",
    "where_am_i": "lesson",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'course_kernels.lab' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"course_kernels.lab.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def _in_notebook() -> None:
    import sys

    if "IPython" not in sys.modules:
        return
    from IPython import get_ipython

    if get_ipython() is not None:
        from course_kernels.lab import magics

        magics.register(get_ipython())


_in_notebook()
