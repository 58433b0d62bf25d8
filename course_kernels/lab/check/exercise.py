"""What every exercise has."""

from dataclasses import dataclass

from course_kernels.lab.check.judge import Session


@dataclass(frozen=True)
class Hint:
    """One step of help: the symptom it is for, and the help."""

    symptom: str
    text: str


class Exercise:
    """One exercise. Subclasses say how it is judged.

    name, notebook: where it is. entry: what the file must define. brief: one sentence on what to write.
    hints: three steps, the last nearly the answer. lesson: a short explanation, shown after a pass.
    adapt: how to call the entry on a case, if not as entry(x).
    """

    name: str
    notebook: str
    entry: str
    brief: str
    hints: tuple[Hint, Hint, Hint]
    lesson: str
    how = "Run in the interpreter on small inputs"
    adapt = None
    adapt_name: str | None = None  # the same as "module:function", for the compile worker
    compile_calls: tuple[dict, ...] = ()  # shapes to compile for; empty: nothing to compile
    library_advice = "Load the row, take tl.max and tl.sum yourself."
    translations: tuple[tuple[str, str, str, str], ...] = ()  # as judge.TRANSLATIONS, tried first
    refusals: dict[str, tuple] = {}  # what the worker ruled out, as the arguments of a Finding
    gpu_shapes: tuple[tuple[int, int, str], ...] = ()  # (rows, columns, dtype) to run on a GPU

    def judge(self, session: Session) -> list[str]:
        """What a right answer earned, a line each.

        Raises:
            Finding: the answer does not pass.
        """
        raise NotImplementedError
