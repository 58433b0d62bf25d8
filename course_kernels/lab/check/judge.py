"""Old names, until nobody imports them."""

from course_kernels.lab.check.errors import check_error  # noqa: F401
from course_kernels.lab.check.finding import Finding, Report  # noqa: F401
from course_kernels.lab.core.wording import numbers  # noqa: F401
from course_kernels.lab.run.cases import Case, Tweaks, encode  # noqa: F401
from course_kernels.lab.run.session import Facts as Result  # noqa: F401
from course_kernels.lab.run.session import Session  # noqa: F401


def dtype_name(case) -> str:
    return str(case.x.dtype)
