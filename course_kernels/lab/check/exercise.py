"""What every exercise is: data, and the function that judges an answer to it."""

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Hint:
    """One step of help: the symptom it is for, and the help."""

    symptom: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """One exercise.

    name, notebook: where it is. entry: what the file must define. brief: one sentence on what to write.
    hints: three steps, the last nearly the answer. lesson: a short explanation, shown after a pass.
    judged: from (exercise, session) to what a right answer earned, a line each; raises a Finding otherwise.
    how: how it was judged, as the verdict says it.
    adapt: how to call the entry on a case, if not as entry(x); adapt_name is the same as "module:function",
        for the process that compiles.
    compile_calls: shapes to compile for; empty: nothing to compile. gpu_shapes: (rows, columns, dtype) to run
        on a GPU.
    library_advice: what to do in place of a library's function.
    translations: rows of `check.messages`, tried before all others.
    refusals: {rule that a run holds: (what, next)}.
    """

    name: str
    notebook: str
    entry: str
    brief: str
    hints: tuple[Hint, Hint, Hint]
    lesson: str
    judged: Callable | None = None
    how: str = "Run in the interpreter on small inputs"
    adapt: Callable | None = None
    adapt_name: str | None = None
    compile_calls: tuple[dict, ...] = ()
    gpu_shapes: tuple[tuple[int, int, str], ...] = ()
    library_advice: str = "Load the row, take tl.max and tl.sum yourself."
    translations: tuple = ()
    refusals: dict[str, tuple] = field(default_factory=dict)

    def judge(self, session) -> list[str]:
        """What a right answer earned, a line each.

        Raises:
            Finding: the answer does not pass.
        """
        return self.judged(self, session)
