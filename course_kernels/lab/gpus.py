"""For notebooks: the names of `course_kernels.lab.core.gpus`."""

from course_kernels.lab.core.gpus import *  # noqa: F403
