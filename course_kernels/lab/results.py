"""For older notebooks: recorded results under the name they had."""

from course_kernels.lab.bench.results import *  # noqa: F403
from course_kernels.lab.curve import recorded  # noqa: F401
