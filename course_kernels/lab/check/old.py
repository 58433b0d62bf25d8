"""Exercises that are classes still; goes away with the last of them."""

from course_kernels.lab.check.exercise import Hint


class Exercise:
    """One exercise. Subclasses say how it is judged; see `check.exercise.Exercise`."""

    name: str
    notebook: str
    entry: str
    brief: str
    hints: tuple[Hint, Hint, Hint]
    lesson: str
    how = "Run in the interpreter on small inputs"
    adapt = None
    adapt_name: str | None = None
    compile_calls: tuple[dict, ...] = ()
    library_advice = "Load the row, take tl.max and tl.sum yourself."
    translations: tuple[tuple[str, str, str, str], ...] = ()
    refusals: dict[str, tuple] = {}
    gpu_shapes: tuple[tuple[int, int, str], ...] = ()
