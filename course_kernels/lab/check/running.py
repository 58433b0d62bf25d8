"""What is wrong with a run: it raised, changed the meter, stored into an input, or programs raced."""

from course_kernels.lab.check.finding import Counted
from course_kernels.lab.check.mistakes import Mistake, Probe
from course_kernels.lab.check.trial import Trial
from course_kernels.lab.core.wording import count


def odd_width(trial: Trial) -> dict | None:
    error = trial.facts.error
    if "power of 2" in error["text"] or not trial.columns & (trial.columns - 1):
        return None  # the first is said better where Triton's own words are explained
    return {"columns": trial.columns, "error": f"{error['type']}: {error['text'][:200]}"}


SHAPES = (
    Mistake(
        "power_of_two_only",
        "It works for row lengths that are powers of two, and raises for others.",
        "Round the row length up with triton.next_power_of_2, and mask the lanes past the row.",
        when=odd_width,
        probes=(Probe(lambda t: t.like(t.case.x[:, :64])),),
        why="64 of the ‹columns› columns come out right; all of them end in ‹error›",
    ),
)

CHANGED = (
    Mistake(
        "checker_changed",
        "The file replaces a part of Triton's interpreter, and the check counts there.",
        "Leave Triton as it is and write the kernel.",
        when=lambda t: not t.facts.intact and {"case": ""},
    ),
)


def stored_into(trial: Trial) -> tuple[str, int] | None:
    """The first input that was stored into, and how many elements of it."""
    return next(((name, n) for name, n in trial.facts.stores_of.items() if n), None)


def input_overwritten(trial: Trial) -> dict | None:
    if (found := stored_into(trial)) is None:
        return None
    return {"input": found[0], "elements": count(found[1], "element")}


def exchanged(trial: Trial) -> dict | None:
    found = stored_into(trial)
    return input_overwritten(trial) if found and not trial.facts.loads_of[found[0]].any() else None


def race(trial: Trial) -> dict | None:
    if not trial.facts.races:
        return None
    kernel, program, other = trial.facts.races[0]
    return {"kernel": kernel, "program": program_name(program), "other": other}


def program_name(program) -> str:
    """A program's number, or its place in the grid: "3", "(3, 1)"."""
    program = tuple(program)
    while len(program) > 1 and not program[-1]:
        program = program[:-1]
    return str(program) if len(program) > 1 else str(program[0])


INPUTS = (
    Mistake(
        "arguments_exchanged",
        "The kernel stores into ‹input› and never loads from it: ‹input› and ‹y› have changed places.",
        "Compare the order of the arguments in the launch with the kernel's own, name by name.",
        when=exchanged,
        why="‹elements› of ‹input› stored, none loaded.",
        kind=Counted,
    ),
    Mistake(
        "input_overwritten",
        "The kernel stores into its input ‹input›, which belongs to the caller.",
        "Allocate the output with torch.empty_like(x) and store there.",
        when=input_overwritten,
        why="‹elements› of ‹input› stored to.",
        kind=Counted,
    ),
    Mistake(
        "race",
        "Program ‹program› of ‹kernel› loads what another program of the same launch stored.",
        "Let a second launch read it: a launch begins when the one before it has ended.",
        when=race,
        why="It was stored by program number ‹other›. The interpreter runs programs one after another; a GPU "
        "runs them side by side, in any order, and the value may not be there yet.",
    ),
)
