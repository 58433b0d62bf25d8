"""Exercises in PyTorch's steps: each operation is recorded, and where the result comes from is followed."""

from course_kernels.lab.check.errors import check_error
from course_kernels.lab.check.finding import Evidence, Finding
from course_kernels.lab.check.trial import Judgement
from course_kernels.lab.check.values import Trial
from course_kernels.lab.core.wording import count
from course_kernels.lab.run.cases import Case


def run(session, cases: list[Case]) -> list:
    from course_kernels.lab.run import functions
    from course_kernels.lab.run.session import Facts

    return [
        Facts(one) for one in session.call(lambda: functions.run_steps(session.path, session.entry, cases))
    ]


# A run that gave nothing to compare, or was not PyTorch's

NEW_TENSOR = "An operation whose name ends in _ (sub_, exp_, div_), or -= and /=, writes into its tensor."


def check_run(trial: Trial) -> None:
    """Raise a Finding unless the call gave a tensor of the right kind and left x as it was."""
    case, facts, at = trial.case, trial.facts, trial.about
    check_error(facts, case, trial.exercise)
    (output,) = facts.outputs
    if facts.x_changed:
        what = "x is changed by the call, and it belongs to the caller."
        advice = "Make a new tensor: x - maximum in place of x -= maximum."
        raise Finding("input_overwritten", what, at, Evidence(NEW_TENSOR), advice)
    if not output["tensor"]:
        what = f"The function returns {_article(output['type'])}; it should return y, a tensor."
        raise Finding("wrong_return", what, at, next="End it with return and the quotient.")
    if tuple(output["shape"]) != case.x.shape:
        what = f"y has the shape {tuple(output['shape'])}; it should have that of x, {case.x.shape}."
        advice = "Each element of x has one of y: numerator / denominator has the shape of the numerator."
        raise Finding("wrong_shape", what, at, next=advice)
    if output["dtype"] != trial.dtype:
        what = f"y is {output['dtype']}; for this input it should be {trial.dtype}."
        advice = "Computing in a wider dtype is fine; end with .to(x.dtype)."
        raise Finding("wrong_dtype", what, at, next=advice)


def _article(kind: str) -> str:
    return {"NoneType": "nothing", "ndarray": "a NumPy array"}.get(
        kind, f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind}"
    )


def whole(trial: Trial) -> bool:
    output = trial.facts.outputs[0]
    return output["tensor"] and tuple(output["shape"]) == trial.case.x.shape


# How values come about: (what the run reports, what is wrong, why, what to do)
NOT_PYTORCH = (
    (
        lambda f: f.x_numpy,
        "x is handed over to numpy, and the exercise is to work in PyTorch's steps.",
        "What is computed outside PyTorch no GPU does, and nothing here can count.",
        "Leave out x.numpy(); torch has amax, exp, sum and the division.",
    ),
    (
        lambda f: f.origin == "elsewhere",
        "The result was not made from the exponentials that PyTorch took in this call.",
        "Every operation on this call's tensors was followed from x, and none of them leads to what is "
        "returned.",
        "Return the quotient of what torch.exp gave and its sum.",
    ),
    (
        lambda f: f.origin == "mixed",
        "Numbers that PyTorch did not compute in this call take part in the result.",
        "A tensor of several numbers was made from a list or an array, or kept from an earlier call.",
        "Compute from x alone.",
    ),
    (
        lambda f: f.origin == "changed",
        "Something else than a PyTorch operation of this call wrote into its tensors.",
        "A tensor's values changed between two operations: through numpy, another thread, or its raw memory.",
        "Let PyTorch's operations alone make the result.",
    ),
)


def check_pytorch(trial: Trial) -> None:
    """Raise a Finding if something else than PyTorch did the work, or nothing did in this call."""
    facts, size = trial.facts, trial.case.x.size
    if facts.exponentials < size:
        what = f"PyTorch took {count(facts.exponentials, 'exponential')} in this call, and x has "
        what += f"{count(size, 'element')}."
        why = "The result was kept from an earlier call, or made without torch.exp."
        if facts.numpy:
            why = "The values left PyTorch (numpy(), tolist()) and were worked on elsewhere."
        advice = "Take torch.exp of the shifted scores on every call."
        raise Finding("not_pytorch", what, trial.about, Evidence(why), advice)
    for reported, what, why, advice in NOT_PYTORCH:
        if reported(facts):
            raise Finding("not_pytorch", what, trial.about, Evidence(why), advice)


def earned(trials: list[Trial]) -> list[str]:
    first = trials[0]
    moving = [row for row in first.facts.operations if row["bytes"]]
    reads, writes = (sum(row[key] for row in moving) / first.case.x.size for key in ("reads", "writes"))
    return [
        f"{len(trials)} inputs, {sum(t.rows for t in trials)} rows, right as far as each dtype allows.",
        f"PyTorch ran {len(moving)} operations for it, {', '.join(row['name'] for row in moving)}: for each "
        f"element of x, {reads:.3g} elements read and {writes:.3g} written.",
    ]


def traffic(exercise, path: str, row_counts, columns: int, dtype: str) -> list[dict]:
    """What the learner's file reads and writes on matrices of these many rows."""
    from course_kernels.lab.run.session import Session

    session = Session(path, exercise.entry, 0)
    fresh = [
        Case("count", "random numbers", session.rng.normal(size=(n, columns)).astype(dtype))
        for n in row_counts
    ]
    counted = []
    for trial in Trial.of(Judgement(exercise, session), fresh):
        check_error(trial.facts, trial.case, exercise)
        moving = [row for row in trial.facts.operations if row["bytes"]]
        totals = (sum(row[key] for row in moving) for key in ("reads", "writes", "bytes"))
        by_op = [tuple(row[key] for key in ("name", "reads", "writes", "bytes")) for row in moving]
        counted.append(
            dict(zip(("loads", "stores", "bytes"), totals, strict=True)) | {"by_op": by_op, "launches": []}
        )
    return counted
