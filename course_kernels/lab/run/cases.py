"""What goes into a run (cases, tweaks, arrays as JSON types), what is under way, and how a run may stop."""

import base64
import mmap
from dataclasses import dataclass, field

import numpy as np

SECONDS = 15  # for one run of the learner's code over all cases; a right answer takes well under one
_under_way = mmap.mmap(-1, 256)  # shared with the parent process, should the one that runs the cases die


@dataclass(eq=False)
class Case:
    """One call of the learner's function: `function(x, *more.values())`.

    kind: the case's name in the exercise.
    about: what is special about it, as it stands in a message ("a row whose values are all negative").
    x: the first input, an array of any shape and dtype.
    gap: elements between the end of a row of x and the start of the next; the row stride is columns + gap.
    more: the further inputs by name, in the order of the call: arrays, or plain numbers such as k=5.
    gaps: the row gaps of those, by name; 0 where there is none.
    """

    kind: str
    about: str
    x: np.ndarray
    gap: int = 0
    more: dict = field(default_factory=dict)
    gaps: dict = field(default_factory=dict)

    @property
    def shape(self) -> str:
        """The shape of x, as a message writes it: "3 × 100"."""
        return " × ".join(str(n) for n in self.x.shape)

    def arrays(self) -> dict[str, tuple[np.ndarray, int]]:
        """{name: (array, row gap)} of every input that lies in memory; the first is called x."""
        more = {name: (v, self.gaps.get(name, 0)) for name, v in self.more.items() if np.ndim(v)}
        return {"x": (self.x, self.gap)} | more


@dataclass
class Tweaks:
    """Changes made under a running kernel, to prove what is wrong: if it then comes out right, that was it.

    masked_lanes: the value that a masked lane of a load from an input gets, whatever `other=` says.
    bare_lanes: the same for a load from elsewhere that has no `other=`.
    """

    masked_lanes: float | None = None
    bare_lanes: float | None = None


class Stopped(Exception):
    """The process of a run ended without an answer.

    kind: "timeout", "memory", "signal", "exit" or "raised", as in `limits.Outcome`; or "changed", if the
    answer is not of the form that the meter gives.
    case: the case under way, as a message writes it; empty while the file was being imported.
    code: the signal's number, or the exit status. text: what was raised. seconds: the time limit.
    """

    def __init__(self, kind: str, case: str = "", code: int = 0, text: str = "", seconds: float = SECONDS):
        super().__init__(kind)
        self.kind, self.case, self.code, self.text, self.seconds = kind, case, code, text, seconds


def strides(shape: tuple[int, ...], gap: int = 0) -> tuple[int, ...]:
    """Strides in elements of an array whose rows (its last dimension) lie `gap` elements apart."""
    steps, step = [], 1
    for place, size in enumerate(reversed(shape)):
        steps.append(step)
        step *= size
        if place == 0 and len(shape) > 1:
            step += gap
    return tuple(reversed(steps))


def encode(array: np.ndarray) -> dict:
    """A numpy array as JSON types."""
    return {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "data": base64.b64encode(array.tobytes()).decode(),
    }


def decode(message: dict) -> np.ndarray:
    """The numpy array that `encode` took."""
    flat = np.frombuffer(base64.b64decode(message["data"]), dtype=message["dtype"])
    return flat.reshape(message["shape"]).copy()


def begin(case: Case | None) -> None:
    """Leave word of the case that begins now; None: none yet."""
    text = f"{case.shape}, {case.about}".encode()[:256] if case else b""
    _under_way[:] = text.ljust(256, b"\0")


def under_way() -> str:
    """The case that was under way last, as a message writes it; empty if there was none."""
    return bytes(_under_way).rstrip(b"\0").decode(errors="replace")
