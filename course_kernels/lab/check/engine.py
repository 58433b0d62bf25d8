"""From facts to a verdict, for exercises in which kernels make outputs from inputs.

In this order: did it run, did it stay inside its tensors, did kernels write every output, are the values
    right,
and only then what the traffic was. The first case that is not right is diagnosed by rows of mistakes.
"""

import numpy as np

from course_kernels.lab.check import bounds, cost, running, written
from course_kernels.lab.check.errors import check_error, stopped
from course_kernels.lab.check.finding import Evidence, Finding, Fits, Proven
from course_kernels.lab.check.mistakes import Mistake, Probe, fill
from course_kernels.lab.check.shown import drawn, shrink
from course_kernels.lab.check.trial import Judgement, Trial
from course_kernels.lab.core.wording import count
from course_kernels.lab.run.cases import Case, Stopped


def judged(exercise, session) -> list[str]:
    """What a right answer earned, a line each.

    Raises:
        Finding: the answer does not pass.
    """
    judgement = Judgement(exercise, session)
    try:
        return in_order(judgement)
    except Stopped as run:
        raise timed_out(judgement, stopped(run, judgement.source.text)) from None


def in_order(judgement: Judgement) -> list[str]:
    """The same; a run that did not come back ends it as it is."""
    exercise, session = judgement.exercise, judgement.session
    for make in (exercise.cases, exercise.large_cases):
        cases = make(session.rng) if make else []
        fresh = judgement.run(cases) if cases else []
        judgement.trials += fresh
        for trial in fresh:
            check_run(trial)
            check_values(trial)
        for trial in fresh:
            check_cost(trial)
    if exercise.more_cases and (cases := exercise.more_cases(judgement)):
        for trial in judgement.run(cases):
            check_run(trial)
            judgement.trials.append(trial)
            check_values(trial)
    return earned(judgement.trials)


def check_run(trial: Trial) -> None:
    """Raise a Finding unless the run was whole: outputs of the right kind, all written, all inside."""
    exercise, facts = trial.exercise, trial.facts
    imported = facts.message.get("at") != "import"
    if imported:
        first(exercise.run_rows, trial)
        if facts.error and not facts.message.get("refused") and not facts.error["rule"]:
            first(running.SHAPES, trial)
    check_error(facts, trial.case if imported else None, exercise)
    first(running.CHANGED, trial)
    if facts.faults:  # before all else: a stray store may hit anything, x too
        fault = bounds.Fault(trial)
        first((*exercise.bounds_rows, *bounds.ROWS), fault, fault.words)
    first(running.INPUTS, trial)
    for index in range(len(exercise.outputs)):
        output = written.Written(trial, index)
        first(written.ROWS, output, output.words)


def check_values(trial: Trial) -> None:
    """Raise a Finding if a value is wrong."""
    if len(trial.bad):
        raise diagnosed(trial)


def check_cost(trial: Trial) -> None:
    """Raise a Finding for right values at too high a price, or at none."""
    price = cost.Price(trial)
    first((*trial.exercise.cost_rows, *cost.ROWS), price, price.words)


def counted(exercise, session, rows: list[int], columns: int, dtype: str) -> list[dict]:
    """The traffic of the learner's kernel on random matrices, one for each number of rows.

    Raises:
        Finding: it did not run as it should.
    """
    rng = np.random.default_rng(0)
    cases = [Case("count", "random numbers", rng.normal(size=(n, columns)).astype(dtype)) for n in rows]
    trials = Judgement(exercise, session).run(cases)
    for trial in trials:
        check_run(trial)
    return [
        {
            "loads": t.facts.loads, "stores": t.facts.stores, "launches": t.facts.launches,
            "bytes": sum(row[3] for row in t.facts.traffic), "by_op": [tuple(row) for row in t.facts.traffic],
        }
        for t in trials
    ]  # fmt: skip


# Which row it is


def first(rows: tuple[Mistake, ...], trial: Trial, words: dict | None = None) -> None:
    """Raise the Finding of the first row that fits."""
    for row in rows:
        if (finding := tried(row, trial, words)) is not None:
            raise finding


def tried(row: Mistake, trial: Trial, words: dict | None = None) -> Finding | None:
    """The Finding of a row that is recognised by facts and probes, if it fits."""
    found = row.when(trial) if row.when else True
    if not found or not all(holds(probe, trial) for probe in row.probes):
        return None
    words = trial.words | (words or {}) | (found if isinstance(found, dict) else {})
    kind = Proven if row.probes else row.kind
    case = words.get("case", trial.about)
    return Finding(
        row.name, fill(row.what, words), case, kind(fill(row.why, words)), fill(row.next, words), row.status,
        words.get("at_row"),
    )  # fmt: skip


def holds(probe: Probe, trial: Trial) -> bool:
    """True if the run with one thing changed comes out as the probe says."""
    cases = probe.change(trial) if probe.change else trial.case
    if cases is None:
        return False
    cases = cases if isinstance(cases, list) else [cases]
    lanes = probe.masked_lanes(trial) if callable(probe.masked_lanes) else probe.masked_lanes
    trials = trial.run(cases, lanes, probe.bare_lanes)
    if probe.shows:
        return len(trials) == len(cases) and all(one.compared and probe.shows(one) for one in trials)
    return (len(trials) == len(cases) and all(one.right for one in trials)) == probe.right


def diagnosed(trial: Trial) -> Finding:
    """The Finding for wrong values: the row that fits, or what is known."""
    rows = trial.exercise.mistakes
    predicted = [row for row in rows if row.predicts]
    small = shrink(trial, int(trial.bad[0]))
    for row in rows:
        if not row.predicts:
            finding = tried(row, trial)
        else:  # all of them at once, where the last one stands
            finding = told(trial, predicted) if row is predicted[-1] else None
        if finding is None:
            continue
        if finding.case in ("", trial.about):
            finding.case = drawn(small if finding.row is None else shrink(trial, finding.row, marked=True))
        return finding
    return unknown(trial, small)


def unknown(trial: Trial, small: Trial) -> Finding:
    """What is known where no row fits."""
    tried = {t.case.about: not len(t.bad) for t in trial.judgement.trials if t.compared}
    poor = [about for about, is_right in tried.items() if not is_right]
    more = f", and for {len(poor) - 3} more" if len(poor) > 3 else ""
    start = "Right" if small.case is trial.case else "Before the cut: right"
    known = (
        f"{start} for {len(tried) - len(poor)} of {len(tried)} inputs; wrong for "
        f"{'; for '.join(poor[:3])}{more}."
    )
    return Finding(
        None, "The values are wrong, and no mistake that the check knows explains them.", drawn(small),
        Evidence(known),
        "Run your function on the small case above in a cell of its own, and print what it makes of one row "
        "after each step.",
    )  # fmt: skip


# What a mistake would give


def told(trial: Trial, rows: list[Mistake]) -> Finding | None:
    """The row whose prediction is the output, number for number."""
    same = [trial]
    # Once more without masked lanes, which may hide what the rest does.
    tile, columns = trial.facts.widest_load, trial.columns
    whole = columns // tile * tile if 0 < tile < columns else 64
    if columns > whole:
        same += wrong_again(trial, trial.like(trial.case.x[:, :whole]))
    possible = {row.name for row in recognised(trial, rows, telling=False)}
    for one in [*same, *trial.others]:
        found = recognised(one, rows)
        if one not in same:
            found = [row for row in found if row.name in possible]
        if one is trial or one not in same:
            found = [row for row in found if not contradicted(one, row.name, rows)]
        # Where several mistakes give the same here, the other wrong inputs decide, if a row says anything of
        # them.
        for other in trial.others:
            if other is not one and len({row.name for row in found}) > 1:
                names = {row.name for row in recognised(other, rows)}
                silent = {row.name for row in found} - {row.name for row, _ in predictions(other, found)}
                found = [row for row in found if row.name in names | silent] or found
        for row in found:
            if (finding := said(row, one, Fits())) is not None:
                return finding
    return in_one_tile(trial, rows)


def said(row: Mistake, trial: Trial, evidence: Evidence) -> Finding | None:
    """The Finding of a row whose prediction fits; None if its `when` rules it out."""
    found = row.when(trial) if row.when else True
    if not found:
        return None
    words = trial.words | (found if isinstance(found, dict) else {})
    return Finding(row.name, fill(row.what, words), "", evidence, fill(row.next, words))


def recognised(trial: Trial, rows: list[Mistake], telling: bool = True) -> list[Mistake]:
    """The rows that predict the outputs; telling: and that are wrong here."""
    found = []
    for row, guesses in predictions(trial, rows):
        # NaN tells nothing: much leads there. Nor does what is not demanded, such as the m beside a NaN.
        tells = not telling or any(
            (~trial.close(guess, trial.expected[i], i) & ~np.isnan(guess) & trial.wrong[i]).any()
            for i, guess in guesses
        )
        if tells and all(trial.near(guess, i).all() for i, guess in guesses):
            found.append(row)
    return found


def predictions(trial: Trial, rows: list[Mistake]):
    """(row, [(output, its prediction)]) of the rows that predict anything here."""
    for row in rows:
        with np.errstate(all="ignore"):
            guess = row.predicts(trial.arithmetic)
        if guess is None:
            continue
        guesses = enumerate(guess if isinstance(guess, tuple) else (guess,))
        guesses = [(i, np.asarray(g)) for i, g in guesses if g is not None]
        guesses = [(i, g) for i, g in guesses if not np.isnan(g).all()]
        if guesses:
            yield row, guesses


def contradicted(trial: Trial, mistake: str, rows: list[Mistake]) -> bool:
    """True if other plain inputs came out wrong too, and none of them as the mistake would have it."""
    rows = [row for row in rows if row.name == mistake]
    plain = [
        t for t in trial.others
        if t is not trial and t.dtype == "float32" and not t.case.gap and t.columns > 1
        and t.finite and np.abs(t.case.x).max() < 40
    ]  # fmt: skip
    return bool(plain) and not any(recognised(t, rows, telling=False) for t in plain)


# What a walk of several tiles mixes with its rescaling.
ONE_TILE = ("sign", "no_exponential", "sum_of_inputs")


def in_one_tile(trial: Trial, rows: list[Mistake]) -> Finding | None:
    """The same in one tile, and with numbers in the masked lanes: −∞ there may make NaN of all else."""
    tile = trial.facts.widest_load
    # A second row, since in one of them the terms of a sum may all but cancel: no two ways of adding agree.
    for row in trial.bad[:2] if tile else ():
        x = trial.case.x[row : row + 1]
        small = trial.like(x[:, : min(64, tile)])
        # Near a constant row, or far from 0, too much is 0 or 1 whatever is wrong.
        if not np.abs(small.x).max() < 40 or np.ptp(small.x) < 1:
            continue
        tries = [(small, None, "In a row of one tile")]
        if 64 < tile < trial.columns:
            tries.insert(0, (trial.like(x[:, :tile]), None, "In a row of one tile"))
        if trial.facts.fills:
            for number in (0.0, float(small.x.max())):
                tries.append((small, number, f"With {number:.4g} in the masked lanes".replace("-", "−")))
        for case, lanes, where in tries:
            for again in wrong_again(trial, case, lanes):
                for found in recognised(again, rows):
                    if found.name in ONE_TILE or tile >= trial.columns:
                        return said(found, again, Fits(where))
    return None


def wrong_again(trial: Trial, case, masked_lanes=None) -> list[Trial]:
    """[its trial], or nothing if the case did not run to its end, or came out right."""
    return [t for t in trial.run(case, masked_lanes) if t.compared and len(t.bad)]


def timed_out(judgement: Judgement, finding: Finding) -> Finding:
    """What a run that did not end is called, if the exercise has a row for it."""
    for row in judgement.exercise.timeout_rows if finding.mistake == "timeout" else ():
        if row.when(judgement):
            evidence = row.kind(row.why)
            return Finding(row.name, finding.what, finding.case, evidence, row.next, row.status)
    return finding


def earned(trials: list[Trial]) -> list[str]:
    """What a right answer earned: how many inputs, and what was moved."""
    largest = max(trials, key=lambda trial: trial.case.x.size)
    facts, elements = largest.facts, largest.case.x.size
    loads, stores, per = facts.loads / elements, facts.stores / elements, ""
    if stores < 0.1:
        stores, per = facts.stores / largest.rows, " for each row"
    moved = (
        f"{loads:.3g} load{_s(loads)}{' for each element,' if per else ' and'} {stores:.3g} store{_s(stores)}"
    )
    return [
        f"{len(trials)} inputs, {sum(trial.rows for trial in trials)} rows, right to the last digits that "
        "float32 "
        "allows.",
        f"Traffic, metered on {largest.case.shape}: {moved}{per or ' for each element'}, "
        f"{count(len(facts.launches), 'launch', 'launches')}.",
    ]


def _s(number: float) -> str:
    return "" if abs(number - 1) < 0.005 else "s"
