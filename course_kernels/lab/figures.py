"""For older notebooks: the pictures under the name they had."""

from course_kernels.lab.show.bandwidth import Region, bandwidth_curve, regions  # noqa: F401
from course_kernels.lab.show.chip import busy_multiprocessors, multiprocessor, row_and_lanes  # noqa: F401
from course_kernels.lab.show.merging import *  # noqa: F403
from course_kernels.lab.show.plots import *  # noqa: F403
from course_kernels.lab.show.tiles import reread, tile_visits, tiles_walk  # noqa: F401
from course_kernels.lab.show.traffic import *  # noqa: F403
