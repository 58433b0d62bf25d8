"""For notebooks: the names of `course_kernels.lab.show.figures`."""

from course_kernels.lab.show.figures import *  # noqa: F403
