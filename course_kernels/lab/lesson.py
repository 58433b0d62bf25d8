"""The steps of a lesson: predict, compare, show, explain, and where this runs.

Nothing here raises for what a learner typed: a guess that cannot be read is kept as text and said to be so.
"""

from __future__ import annotations

import importlib
import math
import os
import platform
import re
import sys
from html import escape
from importlib import metadata

from course_kernels.lab.core.files import KERNELS
from course_kernels.lab.core.wording import cell, is_number, read_number
from course_kernels.lab.show.picture import PROSE, Display, Prose, Stack, Table, source_of

_predictions: dict[str, Prediction] = {}  # one a key, for as long as this process lives
HOW = ("counted", "computed", "compiled", "recorded", "measured here", "published")
SENTENCE = 6  # words: fewer is not yet an answer to a question


class Prediction(Display):
    """A question and the learner's guess: a number if it can be read as one, else text; None if not made."""

    def __init__(self, key, question, guess, unit, choices):
        self.key, self.question, self.unit = str(key), str(question), str(unit)
        self.choices = [str(choice) for choice in choices] if choices else None
        self.typed = guess
        self.guess, self.problem = self._read(guess)

    def _read(self, guess):
        if guess is None or (isinstance(guess, str) and not guess.strip()):
            return None, ""
        if self.choices:
            chosen = _choice(guess, self.choices)
            if chosen is not None:
                return chosen, ""
            listed = ", ".join(self.choices)
            return str(guess), f"That is none of the choices: {listed}. It is kept as you typed it."
        number = read_number(guess)
        if number is None and self.unit:
            problem = f"A number of {self.unit} was asked for; this is kept as text, without a ratio."
            return str(guess), problem
        return (guess if number is None else number), ""

    def _lines(self) -> list[str]:
        if self.guess is None:
            answer = "No prediction yet: write one in place of None and run the cell again. "
            answer += "A wrong one teaches more than none."
        else:
            answer = f"Your prediction: {self._guess_text()}. Kept; the figure comes next."
        choices = f"Choices: {', '.join(self.choices)}." if self.choices and self.guess is None else ""
        return [line for line in (self.question, choices, answer, self.problem) if line]

    def html(self) -> str:
        lines = "<br>".join(map(escape, self._lines()))
        return f'<div style="border-left:3px solid currentColor;padding:2px 12px;{PROSE}">{lines}</div>'

    def plain(self) -> str:
        return "\n".join(self._lines())

    def _guess_text(self) -> str:
        return f"{cell(self.guess)} {self.unit}".strip() if is_number(self.guess) else str(self.guess)


class Comparison(Display):
    """A guess beside a figure. ratio is the figure over the guess, None where there is none.

    how the figure was got, as it stands over it: one of HOW.
    """

    def __init__(self, prediction: Prediction | None, key: str, measured, note: str, how: str = "measured"):
        self.prediction, self.key, self.note, self.how = prediction, str(key), str(note), str(how)
        self.guess = prediction.guess if prediction else None
        self.unit = prediction.unit if prediction else ""
        number = read_number(measured)
        self.measured = _text(measured) if number is None else number
        self.ratio = None
        if number is not None and is_number(self.guess) and self.guess != 0 and math.isfinite(number):
            self.ratio = number / self.guess

    @property
    def verdict(self) -> str:
        """One sentence on how far apart the two are."""
        if self.guess is None:
            return f"There is no prediction for {self.key!r} yet, so there is nothing to hold this against."
        if self.ratio is None:
            if is_number(self.guess) and is_number(self.measured):
                return "As predicted." if self.guess == self.measured else "No ratio can be formed."
            if _same_text(self.guess, self.measured):
                return "As predicted."
            if self.prediction.choices:
                return "Not what was predicted: find out why before you go on."
            return "No ratio can be formed from that: judge for yourself how close it was."
        if self.ratio <= 0:
            return "The two differ in sign or one is zero, so their ratio says nothing."
        factor = max(self.ratio, 1 / self.ratio)
        if factor < 1.005:
            return "As predicted."
        if factor < 1.1:
            return f"Within {math.ceil((factor - 1) * 100 - 1e-9)}% of the prediction."
        if factor < 2:
            side = "above" if self.ratio > 1 else "below"
            return f"{self._figure} is {abs(self.ratio - 1):.0%} {side} the prediction."
        if self.ratio > 1:
            return f"{self._figure} is {factor:.3g} times the prediction."
        return f"The prediction was {factor:.3g} times {self._figure[0].lower()}{self._figure[1:]}."

    @property
    def _figure(self) -> str:
        return "The measurement" if self.how.startswith("measured") else f"The {self.how} figure"

    def parts(self) -> Stack:
        unit = f", {self.unit}" if self.unit else ""
        headers, line = [f"your prediction{unit}", f"{self.how}{unit}"], [self.guess, self.measured]
        if self.guess is None:
            line[0] = "none"
        if self.ratio is not None:
            headers.append(f"{self.how} ÷ predicted")
            line.append(f"{self.ratio:.3g}")
        caption = self.prediction.question if self.prediction else ""
        return Stack(Table([line], headers, caption), Prose(*filter(None, (self.verdict, self.note))))


def predict(key, question, guess=None, unit="", choices=None) -> Prediction:
    """Ask for a prediction and keep it under key until this process ends.

    guess: what the learner thinks; None until there is one. unit: of the number asked for; choices: the
    answers to choose from. Running it again with None keeps an earlier guess.
    """
    key = str(key)
    prediction = Prediction(key, question, guess, unit, choices)
    earlier = _predictions.get(key)
    if prediction.guess is None and earlier is not None and earlier.guess is not None:
        prediction = Prediction(key, question, earlier.typed, unit, choices)
    _predictions[key] = prediction
    return prediction


def compare(key, measured, note="", how="") -> Comparison:
    """The prediction kept under key beside a figure, with their ratio. A missing prediction is said.

    how the figure was got: one of HOW. Left out, the note's source says it ("recorded: NVIDIA H200, …",
    "measured here: …"); without one the figure was computed in the cell.
    """
    if not how:
        source = re.search(rf"\b({'|'.join(HOW)}):", str(note), re.IGNORECASE)
        how = source[1].lower() if source else "computed"
    return Comparison(_predictions.get(str(key)), str(key), measured, note, how)


def show(thing) -> Display:
    """The source of a function, a class, a module or a @triton.jit kernel, read from its file.

    A kernel module may be named: show("fused_row"). Something without a source file gets a sentence that says
    so.
    """
    if isinstance(thing, str) and thing in (*KERNELS, "eager", "dispatch"):
        thing = importlib.import_module(f"course_kernels.{thing}")
    return source_of(thing)


class Explanation(Display):
    """An interviewer's question; with the learner's own answer also the model answers. opened says which."""

    def __init__(self, key: str, question, yours: str):
        self.key, self.question, self.yours = key, question, yours
        self.opened = len(re.findall(r"\w+", yours)) >= SENTENCE

    @property
    def _invitation(self) -> str:
        if self.yours.strip():
            return "That is a start. Write at least a whole sentence, and three graded answers open here."
        return (
            "Write your answer between the quotation marks and run the cell: three graded answers open then."
        )

    def html(self) -> str:
        asked = f'<p style="{PROSE}"><b>An interviewer asks:</b> {escape(self.question.asked)}</p>'
        if not self.opened:
            return f"{asked}{Prose(self._invitation).html()}"
        answers = "".join(
            f'<p style="{PROSE}"><b>{grade.capitalize()}.</b> “{escape(answer)}”<br><i>{escape(why)}</i></p>'
            for grade, answer, why in self.question.answers()
        )
        return (
            f'{asked}<p style="{PROSE}"><b>You:</b> {escape(self.yours.strip())}</p><details open>'
            '<summary style="cursor:pointer">How an interviewer would grade three answers</summary>'
            f"{answers}</details>"
        )

    def plain(self) -> str:
        asked = f"An interviewer asks: {self.question.asked}"
        if not self.opened:
            return f"{asked}\n\n{self._invitation}"
        graded = [f"{g.capitalize()}. “{answer}”\n  {why}" for g, answer, why in self.question.answers()]
        return "\n\n".join([asked, f"You: {self.yours.strip()}", *graded])


def explain(key, yours="") -> Display:
    """An interviewer's question. The model answers open once `yours` holds a sentence at least."""
    from course_kernels.lab.questions import QUESTIONS

    question = QUESTIONS.get(str(key))
    if question is None:
        return Prose(f"There is no question {key!r}. There are: {', '.join(QUESTIONS)}.")
    return Explanation(str(key), question, "" if yours is None else str(yours))


def where_am_i() -> Table:
    """Mode, GPU and versions: what every result on this page depends on."""
    rows = []
    try:
        from course_kernels import mode

        interpreting = mode.interpreting()
        rows.append(["mode", "interpreted on the CPU" if interpreting else "compiled for the GPU"])
    except Exception as problem:  # the mode explains itself in one sentence
        rows.append(["mode", str(problem)])
    rows += _gpu_rows()
    rows.append(["CPU", f"{os.cpu_count()} cores, {platform.machine()}"])
    rows.append(["Python", platform.python_version()])
    for package in ("torch", "triton", "numpy", "IPython", "ipywidgets"):
        rows.append([package, _version(package)])
    return Table(rows, ["what", "here"], "Where this notebook runs")


def _gpu_rows() -> list[list[str]]:
    from course_kernels.lab.core.gpus import find_gpu

    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return [["GPU", "none: figures of real GPUs on these pages are recorded, and say so"]]
    device = torch.cuda.get_device_properties(torch.cuda.current_device())
    l2 = getattr(device, "L2_cache_size", 0)
    rows = [
        ["GPU", device.name],
        ["multiprocessors", f"{device.multi_processor_count}"],
        ["memory", f"{device.total_memory / 2**30:.0f} GiB"],
    ]
    if l2:
        rows.append(["L2 cache", f"{l2 / 2**20:.0f} MiB"])
    published = find_gpu(device.name)
    if published:
        rows.append(["memory bandwidth, published", f"{published.gbps:,.0f} GB/s"])
    return rows


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _choice(guess, choices: list[str]) -> str | None:
    wanted = str(guess).strip().casefold()
    exact = [choice for choice in choices if choice.strip().casefold() == wanted]
    begins = [choice for choice in choices if choice.strip().casefold().startswith(wanted)]
    return exact[0] if exact else begins[0] if len(begins) == 1 else None


def _same_text(a, b) -> bool:
    return str(a).strip().casefold() == str(b).strip().casefold()


def _text(value) -> str:
    try:
        return str(value)
    except Exception:  # an object that cannot even say what it is
        return f"a {type(value).__name__}"
