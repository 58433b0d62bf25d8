"""Exercises judged by values alone: each case's numbers beside the right ones, and rows that name a mistake.

What is wrong is named by the first row of the exercise's table that fits: one that predicts every output, or
one that sees what it is about and whose probes come out as they must.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from course_kernels.lab.check.exercise import Exercise
from course_kernels.lab.check.finding import Finding, Fits, Proven
from course_kernels.lab.check.mistakes import Mistake, fill
from course_kernels.lab.check.trial import Judgement
from course_kernels.lab.check.trial import Trial as MeteredTrial


def judge(exercise: "ValueExercise", session) -> list[str]:
    """What a right answer earned; raises the Finding for the first case that is wrong."""
    trials = Trial.of(Judgement(exercise, session), exercise.cases(session.rng))
    for one in trials:
        exercise.check_run(one)
        if one.wrong.any():
            raise diagnose(one)
    for one in trials:
        exercise.check_right(one)
    return exercise.earned(trials)


@dataclass(frozen=True, kw_only=True)
class ValueExercise(Exercise):
    """An exercise whose answer is called on cases, and judged by what it returns.

    cases: from a random generator to fresh inputs. run: from (session, cases) to the facts of each.
    oracle: from a case to the right outputs, in float64.
    wrong: from (case, outputs) to the mask of what is wrong.
    check_run: raises a Finding for a run that gave nothing to compare.
    check_right: raises a Finding for right values that were got in a way that does not count.
    telling: from a Trial to True, if a prediction must hold for it.
    arithmetic: from a case to what the rows' `predicts` take.
    coarse: how near an output must be to a prediction, as a share of it.
    where: on what the predictions hold, as in "On every input". mistakes: the rows, in the order of trying.
    show: from a Trial to the text of its case. smallest: from a Trial to one on a smaller case, wrong too.
    unexplained: from (trial, text of the case) to the Finding where no row fits.
    nan_output, nan_rule: which output a NaN must reach, and how that is said.
    count: from (path, numbers of rows, columns, dtype) to an answer's traffic; None: it has none.
    """

    cases: Callable
    run: Callable
    oracle: Callable
    wrong: Callable
    check_run: Callable
    show: Callable
    earned: Callable
    unexplained: Callable
    arithmetic: Callable
    telling: Callable
    coarse: float
    where: str
    mistakes: tuple[Mistake, ...]
    check_right: Callable = lambda trial: None
    smallest: Callable = lambda trial: trial
    nan_output: int = 0
    nan_rule: str = "the whole row should be NaN, as PyTorch has it"
    count: Callable | None = None
    judged: Callable = judge


class Trial(MeteredTrial):
    """One case, and what the learner's function made of it. trials: all of one run, this one among them."""

    trials: list["Trial"]

    @classmethod
    def of(cls, judgement: Judgement, cases: list) -> list["Trial"]:
        """A run of the cases, up to the first that raised."""
        facts = judgement.exercise.run(judgement.session, cases)
        trials = [cls(judgement, case, one) for case, one in zip(cases, facts, strict=False)]
        for one in trials:
            one.trials = trials
        return trials

    def run(self, cases) -> list["Trial"]:
        """Another run, of other cases."""
        return Trial.of(self.judgement, cases if isinstance(cases, list) else [cases])

    @cached_property
    def expected(self) -> tuple[np.ndarray, ...]:
        """The right outputs, in float64."""
        return self.exercise.oracle(self.case)

    @cached_property
    def values(self) -> tuple[np.ndarray, ...]:
        """The outputs, in float64."""
        return tuple(self.facts.values(i).astype(np.float64) for i in range(len(self.facts.outputs)))

    @cached_property
    def wrong(self) -> np.ndarray:
        """A mask of what is wrong."""
        return self.exercise.wrong(self.case, self.values)

    @cached_property
    def bad(self) -> np.ndarray:
        """The rows in which anything is wrong."""
        return np.flatnonzero(self.wrong.reshape(len(self.wrong), -1).any(axis=1))

    @property
    def right(self) -> bool:
        return self.facts.error is None and not self.wrong.any()


def diagnose(trial: Trial) -> Finding:
    """The Finding for wrong values."""
    exercise = trial.exercise
    shown = exercise.show(exercise.smallest(trial))
    for row in exercise.mistakes:
        if (words := recognised(row, trial)) is not None:
            return finding(row, words, shown, exercise.where)
    return exercise.unexplained(trial, shown)


def finding(row: Mistake, words: dict, shown: str, where: str) -> Finding:
    """A row's Finding."""
    kind = Proven if row.probes else row.kind
    evidence = Fits(where) if row.predicts else kind(fill(row.why, words))
    return Finding(row.name, fill(row.what, words), shown, evidence, fill(row.next, words), row.status)


def recognised(row: Mistake, trial: Trial) -> dict | None:
    """The words for a row's text, if the row fits; else None."""
    words = row.when(trial) if row.when else {}
    if words is None or words is False:
        return None
    if row.predicts and not predicted(row, [t for t in trial.trials if trial.exercise.telling(t)]):
        return None
    for probe in row.probes:
        cases = probe.change(trial)
        again = trial.run(cases) if cases else []
        if not again or len(again) < len(cases) or any(t.right != probe.right for t in again):
            return None
    return words if isinstance(words, dict) else {}


def predicted(row: Mistake, trials: list[Trial]) -> bool:
    """True if a row predicts the outputs of all these trials, and what it predicts is wrong in one of them.

    A masked element of a prediction says nothing; no prediction at all is one that does not hold.
    """
    wrong = False
    for trial in trials:
        exercise, values = trial.exercise, trial.values
        with np.errstate(all="ignore"):
            guess = row.predicts(exercise.arithmetic(trial.case))
            if guess is None:
                return False
            guesses = guess if isinstance(guess, tuple) else (guess,)
            guesses = [
                np.ma.asarray(one) + np.zeros_like(got) for got, one in zip(values, guesses, strict=True)
            ]
            silent = np.ma.getmaskarray(guesses[-1])
            plain = tuple(map(np.ma.getdata, guesses))
            for got, one in zip(values, plain, strict=True):
                if not (fits(got, one, exercise.coarse) | silent).all():
                    return False
            off = exercise.wrong(trial.case, plain) & ~np.isnan(trial.expected[-1])
            wrong |= bool((off & ~silent).any())
    return wrong


def fits(got: np.ndarray, guess: np.ndarray, coarse: float) -> np.ndarray:
    """Where an output is as good as equal to a guess; NaN and NaN are, too."""
    guess = np.asarray(guess, dtype=np.float64)
    near = np.abs(got - guess) <= coarse * np.abs(guess) + 1e-30
    return near | (got == guess) | (np.isnan(got) & np.isnan(guess))
