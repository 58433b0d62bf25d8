"""The kernels of the course One Load, One Store: a fused softmax in Triton, from one row to any row.

    from course_kernels import softmax
    y = softmax(x, dim=-1)

Importing the package first settles how Triton runs in this process (see `course_kernels.mode`):
compiled where there is a GPU, interpreted on the CPU where there is none.
"""

from course_kernels.mode import settle

settle()

__all__ = ["log_softmax", "softmax"]


def __getattr__(name: str):
    # Late, so that tools that need no kernel (the command line, say) start without importing them all.
    if name in __all__:
        from course_kernels import dispatch

        return getattr(dispatch, name)
    raise AttributeError(f"module 'course_kernels' has no attribute {name!r}")
