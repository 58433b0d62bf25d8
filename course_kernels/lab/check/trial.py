"""One answer under judgement, and what each input made of it: what the rows of mistakes look at."""

from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from course_kernels.lab.check.arithmetic import Arithmetic
from course_kernels.lab.check.source import Source
from course_kernels.lab.core.wording import number
from course_kernels.lab.run.cases import Case, Tweaks

EPSILON = 2.0**-23  # float32: twice the largest relative rounding error
INF = np.inf


class Judgement:
    """An exercise, a session with the learner's file, and the trials of the exercise's own cases so far."""

    def __init__(self, exercise, session):
        self.exercise, self.session = exercise, session
        self.trials: list[Trial] = []
        self.source = Source(Path(session.path).read_text(encoding="utf-8", errors="replace"))

    def run(self, cases: list[Case], masked_lanes=None, bare_lanes=None) -> list["Trial"]:
        """A trial of each case, up to the first that raised."""
        forced = masked_lanes is not None or bare_lanes is not None
        facts = self.session.run(cases, Tweaks(masked_lanes, bare_lanes) if forced else None)
        return [Trial(self, case, one, forced) for case, one in zip(cases, facts, strict=False)]

    @property
    def wrong(self) -> list["Trial"]:
        """The trials whose values are wrong."""
        return [t for t in self.trials if t.compared and len(t.bad)]


class Trial:
    """One case and its facts. forced: with numbers forced into masked lanes."""

    def __init__(self, judgement: Judgement, case: Case, facts, forced: bool = False):
        self.judgement, self.exercise, self.source = judgement, judgement.exercise, judgement.source
        self.case, self.facts, self.forced = case, facts, forced

    # Its input

    @property
    def rows(self) -> int:
        return self.case.x.shape[0]

    @property
    def columns(self) -> int:
        return self.case.x.shape[1]

    @property
    def dtype(self) -> str:
        return str(self.case.x.dtype)

    @cached_property
    def x(self) -> np.ndarray:
        """The first input in float64."""
        return self.case.x.astype(np.float64)

    @cached_property
    def top(self) -> np.ndarray:
        """The largest value of each row of x, (rows, 1)."""
        return self.x.max(axis=1, keepdims=True)

    @cached_property
    def finite(self) -> bool:
        return bool(np.isfinite(self.case.x).all())

    @property
    def about(self) -> str:
        """The case in one sentence."""
        return f"The case: x is {self.case.shape} {self.dtype}, {self.case.about}."

    def like(self, x: np.ndarray, gap: int = 0) -> Case:
        """This case with other numbers, in its dtype."""
        return replace(self.case, x=np.atleast_2d(x).astype(self.case.x.dtype), gap=gap)

    # What came out

    @cached_property
    def names(self) -> list[str]:
        """The outputs' names."""
        return [output.name for output in self.exercise.outputs]

    @cached_property
    def expected(self) -> tuple[np.ndarray, ...]:
        """The right outputs, in float64."""
        with np.errstate(all="ignore"):
            wanted = self.exercise.oracle(self.case.x, *self.case.more.values())
        return wanted if isinstance(wanted, tuple) else (wanted,)

    @property
    def whole(self) -> bool:
        """True if there are values to compare, of the right shape."""
        outputs = self.facts.outputs
        return len(outputs) == len(self.names) and all(
            "values" in output and tuple(output["shape"]) == wanted.shape
            for output, wanted in zip(outputs, self.expected, strict=True)
        )

    @property
    def compared(self) -> bool:
        """True if the case ran to its end, and there are values to compare."""
        return self.facts.error is None and self.whole

    @cached_property
    def values(self) -> list[np.ndarray]:
        """The outputs as they were stored."""
        return [self.facts.values(i) for i in range(len(self.names))]

    @property
    def got(self) -> np.ndarray:
        """The first output, in float64."""
        return self.values[0].astype(np.float64)

    @property
    def wanted(self) -> np.ndarray:
        """The first output as it should be."""
        return self.expected[0]

    @cached_property
    def wrong(self) -> list[np.ndarray]:
        """For each output a mask of the elements that are wrong."""
        masks = []
        allowed = self.exercise.tolerance(self.case, self.expected)
        allowed = allowed if isinstance(allowed, tuple) else (allowed,)
        for values, wanted, most in zip(self.values, self.expected, allowed, strict=True):
            got = values.astype(np.float64)
            with np.errstate(invalid="ignore"):
                near = np.abs(got - wanted) <= most
            masks.append(~(near | (got == wanted) | (np.isnan(got) & np.isnan(wanted))))
        return self.exercise.wrong(self, masks) if self.exercise.wrong else masks

    @cached_property
    def bad(self) -> np.ndarray:
        """The rows with a wrong element in any output."""
        rows = np.zeros(self.rows, dtype=bool)
        for mask in self.wrong:
            rows |= mask.reshape(self.rows, -1).any(axis=1)
        return np.flatnonzero(rows)

    @property
    def right(self) -> bool:
        """True if nothing is wrong with it."""
        facts = self.facts
        clean = facts.error is None and not facts.message["refused"] and self.whole
        return clean and (self.forced or not facts.faults) and not len(self.bad)

    # What else the kernel makes of it

    def run(self, cases: Case | list[Case], masked_lanes=None, bare_lanes=None) -> list["Trial"]:
        """Trials of other cases with the same file."""
        cases = [cases] if isinstance(cases, Case) else cases
        return self.judgement.run(cases, masked_lanes, bare_lanes)

    def rights(self, cases: Case | list[Case], masked_lanes=None, bare_lanes=None) -> bool:
        """True if all these cases come out right."""
        cases = [cases] if isinstance(cases, Case) else cases
        trials = self.run(cases, masked_lanes, bare_lanes)
        return len(trials) == len(cases) and all(trial.right for trial in trials)

    @property
    def others(self) -> list["Trial"]:
        """All trials of the exercise's own cases that came out wrong."""
        return self.judgement.wrong

    # What a prediction is compared with

    @cached_property
    def arithmetic(self):
        """What the rows' `predicts` take."""
        return (self.exercise.arithmetic or Arithmetic)(self.exercise, self.case, self.facts.widest_load)

    def near(self, guess: np.ndarray, index: int) -> np.ndarray:
        """Where an output is, to about float32's accuracy, as good as equal to a guess."""
        return self.close(self.values[index], guess, index)

    def close(self, got: np.ndarray, guess: np.ndarray, index: int) -> np.ndarray:
        """The same of any numbers in place of what came out."""
        dtype = self.exercise.outputs[index].dtype(self.case)
        got, coarse = got.astype(np.float64), 2.0**-9 if dtype == "float16" else 2.0**-14
        with np.errstate(invalid="ignore", over="ignore"):
            guess = np.asarray(guess).astype(dtype).astype(np.float64)  # what overflows there is infinite
            close = np.isfinite(guess) & (np.abs(got - guess) <= coarse * np.abs(guess) + 1e-30)
        return close | (got == guess) | (np.isnan(got) & np.isnan(guess))

    # What the learner calls it

    @cached_property
    def words(self) -> dict[str, str]:
        """The learner's own names, for the text of a row: see `source.Own.words`; and the exercise's."""
        return self.named(self.facts.launches[0]["kernel"] if self.facts.launches else None)

    def named(self, kernel: str | None) -> dict[str, str]:
        """The same of one of the file's kernels."""
        own = self.source.own(self.source.functions.get(kernel))
        given = next((one["tensors"] for one in self.facts.launches if one["kernel"] == kernel), {})
        regions = {"x": "x", "y": (self.facts.outputs or [{}])[0].get("region")}
        words = own.words() | {"outputs": ", ".join(self.names), "y": self.names[0], "row": own.row or "row"}
        for tensor, region in regions.items():
            pointer = next((name for name, it in given.items() if it == region), f"{tensor}_ptr")
            stride = own.strides.get(pointer) or f"{pointer.removesuffix('_ptr')}_stride"
            start = f"{pointer} + {words['row']} * {stride}"
            words |= {f"{tensor}_ptr": pointer, f"{tensor}_stride": stride, f"{tensor}_start": start,
                      f"{tensor}_address": f"{start} + {words['lanes']}"}  # fmt: skip
        words["columns"] = self.columns_name(kernel, words["columns"])
        fill = self.exercise.fill
        code = (
            "0.0"
            if fill == 0
            else "-float('inf')"
            if fill == -INF
            else "float('inf')"
            if fill == INF
            else f"{fill}"
        )
        return words | {"fill": number(fill or 0), "fill_code": code,
                        "and_other": "" if fill is None else f", and other={code}"}  # fmt: skip

    def columns_name(self, kernel: str | None, compared: str) -> str:
        """The kernel's name for the number of columns; compared: what its lanes are compared with."""
        launch = next((one["numbers"] for one in self.facts.launches if one["kernel"] == kernel), {})
        plain = [name for name, value in launch.items() if value == self.columns and "stride" not in name]
        own = compared.split()[0]
        return own if own in plain or not plain else plain[0]
