"""For notebooks: the names of `course_kernels.lab.bench.results`."""

from course_kernels.lab.bench.results import *  # noqa: F403
