"""The kernels of the course One Load, One Store: a fused softmax in Triton, from one row to any row.

    from course_kernels import softmax
    y = softmax(x, dim=-1)

Importing the package first settles how Triton runs in this process (see `course_kernels.mode`):
compiled where there is a GPU, interpreted on the CPU where there is none.
"""

import importlib
import sys
import types

from course_kernels.mode import settle

settle()

__all__ = ["cross_entropy", "log_softmax", "softmax"]


def __getattr__(name: str):
    # Late, so that tools that need no kernel (the command line, say) start without importing them all.
    if name in ("log_softmax", "softmax"):
        from course_kernels import dispatch

        return getattr(dispatch, name)
    raise AttributeError(f"module 'course_kernels' has no attribute {name!r}")


class _Package(types.ModuleType):
    """cross_entropy is a function and the module that holds it. The package's is the function, whichever was
    imported first: Python's import would put the module in its place."""

    @property
    def cross_entropy(self):
        return importlib.import_module("course_kernels.cross_entropy").cross_entropy

    @cross_entropy.setter
    def cross_entropy(self, module):
        pass


sys.modules[__name__].__class__ = _Package
