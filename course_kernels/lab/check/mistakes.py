"""What a mistake is: a row that says how it is recognised, what to say of it, and what to do."""

from collections.abc import Callable
from dataclasses import dataclass

from course_kernels.lab.check.finding import Evidence

Words = dict[str, object]


@dataclass(frozen=True)
class Probe:
    """Another run with one thing changed, and how it must come out.

    change: from a Trial to the case, or the list of cases, to run, or None where there is none; left out: the
        case itself.
    right: whether every one of them must come out right, or must not.
    shows: instead of `right`, what each run must show: from its Trial to True or False.
    masked_lanes, bare_lanes: a number forced into masked lanes, as in `run.meter.Tweaks`, or a function of
        the
        Trial that gives it.
    """

    change: Callable | None = None
    right: bool = True
    shows: Callable | None = None
    masked_lanes: float | Callable | None = None
    bare_lanes: float | None = None


@dataclass(frozen=True)
class Mistake:
    """One mistake that people make.

    A row is recognised by what it `predicts`, or by what the facts show (`when`) and what then changes when
    one thing is changed (`probes`).

    name: as the kept answers and the JSON have it.
    what, next: what is wrong, in one sentence, and what to do; ‹word› in them stands for what `when` found,
        or for one of the learner's own names (see `source.Own.words`).
    predicts: from the exercise's arithmetic (see `Exercise.arithmetic`) to the output that this mistake
        gives: an array, or one for each output, None where that output says nothing.
    when: from a Trial to the words for the text, or to True; to anything false where the row does not fit.
        The words "case" and "at_row" are for the Finding's own case and row.
    probes: runs that must come out as said. They make the evidence a proof.
    why: what was proven, or seen, or the reason. kind: what that is, where there are no probes.
    status: "fail", or "error" for what stopped a run.
    """

    name: str
    what: str
    next: str
    predicts: Callable | None = None
    when: Callable | None = None
    probes: tuple[Probe, ...] = ()
    why: str = ""
    kind: type[Evidence] = Evidence
    status: str = "fail"


def fill(text: str, words: Words) -> str:
    """The text with each ‹word› replaced by what it stands for."""
    for name, word in words.items():
        text = text.replace(f"‹{name}›", str(word))
    return text
