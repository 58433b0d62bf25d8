"""One learner's file, run apart: cases in, facts out, and an exception where the code did not come back."""

import numpy as np

from course_kernels.lab.run import cases as _cases
from course_kernels.lab.run import kernels, limits
from course_kernels.lab.run.cases import SECONDS, Case, Stopped, Tweaks, decode


class Facts:
    """What one case gave; its attributes are the keys of `kernels.run_cases` or `functions.run_steps`.

    error: None, or what was raised. Where the file could not be imported there is nothing besides it.
    loads, stores: elements, over all tensors. loads_of: {input: how often each of its elements was loaded}.
    stores_of: {input: elements stored to}. x_loads, x_stores: the same of the first input.
    """

    def __init__(self, message: dict):
        self.message = message
        try:
            self.error = message["error"]
            if self.error and "outputs" not in message:
                return
            metered = {"outputs", "loads_of", "stores_of", "faults", "races", "fills"}
            if "launches" in message and not metered <= message.keys():
                raise KeyError
        except (KeyError, TypeError):
            raise Stopped("changed") from None
        for key, value in message.items():
            setattr(self, key, value)
        self.loads_of = {name: decode(loads) for name, loads in message.get("loads_of", {}).items()}
        self.stores_of = message.get("stores_of", {})
        self.x_loads = self.loads_of.get("x", np.zeros(0, np.int32))
        self.x_stores = self.stores_of.get("x", 0)

    def values(self, index: int) -> np.ndarray:
        """The values of an output."""
        return decode(self.outputs[index]["values"])

    def stored(self, index: int) -> np.ndarray:
        """How often each element of an output was stored."""
        return decode(self.outputs[index]["stored"])


class Session:
    """One learner's file: run it as often as it takes.

    entry: the function's name. seed: for `rng`, from which cases are drawn. seconds: for each run.
    adapt(function, *inputs): how to call it, if not as function(*inputs).
    printed: what the code printed, in the first run that printed. kernels: the names of those launched.
    """

    def __init__(self, path: str, entry: str, seed: int, seconds: float = SECONDS, adapt=None):
        self.path, self.entry, self.seconds, self.adapt = path, entry, seconds, adapt
        self.rng = np.random.default_rng(seed)
        self.printed = ""
        self.kernels: set[str] = set()

    def run(self, cases: list[Case], tweaks: Tweaks | None = None) -> list[Facts]:
        """The facts of each case, up to the first that raised.

        Raises:
            Stopped: the process did not come back.
        """
        messages = self.call(
            lambda: kernels.run_cases(self.path, self.entry, cases, tweaks or Tweaks(), self.adapt)
        )
        facts = [Facts(message) for message in messages]
        for message in messages:
            self.kernels.update(launch["kernel"] for launch in message.get("launches", ()))
        return facts

    def call(self, function):
        """`function()` in a child process under the limits; its JSON value.

        Raises:
            Stopped: the process did not come back.
        """
        _cases.begin(None)
        outcome = limits.isolate(function, seconds=self.seconds)
        self.printed = self.printed or outcome.printed
        if outcome.kind != "ok":
            text = str(outcome.value or "")
            raise Stopped(outcome.kind, _cases.under_way(), outcome.code, text, self.seconds)
        return outcome.value
