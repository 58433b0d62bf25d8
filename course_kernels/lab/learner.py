"""For notebooks: the names of `course_kernels.lab.progress`."""

from course_kernels.lab.progress import *  # noqa: F403
