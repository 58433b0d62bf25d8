"""The steps of a lesson: predict, compare, show, explain, and where this runs.

Nothing here raises for what a learner typed: a guess that cannot be read is kept as text and said to be so.
"""

from __future__ import annotations

import inspect
import math
import os
import platform
import re
import sys
from html import escape
from importlib import metadata
from pathlib import Path

from course_kernels.lab.show.picture import CARD_STYLE, INK, Display, Prose, Stack, Table, cell_text

_predictions: dict[str, Prediction] = {}  # one a key, for as long as this process lives
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
            if chosen is None:
                problem = (
                    f"That is none of the choices: {', '.join(self.choices)}. It is kept as you typed it."
                )
                return str(guess), problem
            return chosen, ""
        number = as_number(guess)
        if number is None and self.unit:
            return str(
                guess
            ), f"A number of {self.unit} was asked for; this is kept as text, without a ratio."
        return (guess if number is None else number), ""

    def html(self) -> str:
        answer = (
            f"Your prediction: <b>{escape(self._guess_text())}</b>. Kept; the measurement comes next."
            if self.guess is not None
            else "No prediction yet: write one in place of <code>None</code> and run the cell again. "
            "A wrong one teaches more than none."
        )
        problem = f"<br>{escape(self.problem)}" if self.problem else ""
        choices = (
            f"<br>Choices: {escape(', '.join(self.choices))}." if self.choices and self.guess is None else ""
        )
        return (
            '<div style="border-left:3px solid currentColor;padding:2px 12px;margin:6px 0;max-width:75ch">'
            f"{escape(self.question)}{choices}<br>{answer}{problem}</div>"
        )

    def plain(self) -> str:
        lines = [self.question]
        if self.guess is None:
            lines += [f"Choices: {', '.join(self.choices)}."] if self.choices else []
            lines.append("No prediction yet: write one in place of None and run the cell again.")
        else:
            lines.append(f"Your prediction: {self._guess_text()}")
        return "\n".join(lines + ([self.problem] if self.problem else []))

    def _guess_text(self) -> str:
        is_number = isinstance(self.guess, (int, float)) and not isinstance(self.guess, bool)
        return f"{cell_text(self.guess)} {self.unit}".strip() if is_number else str(self.guess)


class Comparison(Display):
    """A guess beside a measurement. ratio is measured over guess, None where there is none.

    how: "measured", "counted", "computed" or "published", as it stands over the figure.
    """

    def __init__(self, prediction: Prediction | None, key: str, measured, note: str, how: str = "measured"):
        self.prediction, self.key, self.note, self.how = prediction, str(key), str(note), str(how)
        self.guess = prediction.guess if prediction else None
        self.unit = prediction.unit if prediction else ""
        number = as_number(measured)
        self.measured = _text(measured) if number is None else number
        self.ratio = None
        if number is not None and _is_number(self.guess) and self.guess != 0 and math.isfinite(number):
            self.ratio = number / self.guess

    @property
    def verdict(self) -> str:
        """One sentence on how far apart the two are."""
        if self.guess is None:
            return f"There is no prediction for {self.key!r} yet, so there is nothing to hold this against."
        if self.ratio is None:
            if _is_number(self.guess) and _is_number(self.measured):
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
        return "The measurement" if self.how == "measured" else f"The {self.how} figure"

    def _table(self) -> Table:
        unit = f", {self.unit}" if self.unit else ""
        headers = [f"your prediction{unit}", f"{self.how}{unit}", f"{self.how} ÷ predicted"]
        guess = "none" if self.guess is None else self.guess
        ratio = None if self.ratio is None else f"{self.ratio:.3g}"
        caption = self.prediction.question if self.prediction else ""
        return Table([[guess, self.measured, ratio]], headers, caption)

    def html(self) -> str:
        return self._stack().html()

    def plain(self) -> str:
        return self._stack().plain()

    def _stack(self) -> Stack:
        return Stack(self._table(), Prose(*filter(None, (self.verdict, self.note))))


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


def compare(key, measured, note="", how="measured") -> Comparison:
    """The prediction kept under key beside what was measured, with their ratio. A missing one is said.

    how the figure was got: "measured", "counted", "computed", "published" or "compiled".
    """
    return Comparison(_predictions.get(str(key)), str(key), measured, note, how)


def as_number(value) -> int | float | None:
    """value as a number, from 3, "1,024", "4x", "2.5 %" or a tensor of one element; None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, str):
        text = value.strip().replace(",", "").replace("_", "").replace("−", "-").rstrip("×x% ").strip()
        try:
            number = float(text)
        except ValueError:
            return None
        return int(number) if number.is_integer() and abs(number) < 2**53 else number
    try:
        value = value.item() if hasattr(value, "item") else value
        number = float(value)
    except Exception:  # whatever an unknown object does when it is asked to be a number
        return None
    return int(number) if isinstance(value, int) else number


# --------------------------------------------------------------------------------------------------------


class Source(Display):
    """Source text from a file, highlighted."""

    def __init__(self, text: str, path: str, first_line: int):
        self.text = text.rstrip("\n")
        self.path = path
        self.first_line = first_line
        self.last_line = first_line + self.text.count("\n")

    @property
    def caption(self) -> str:
        return f"{self.path}, lines {self.first_line} to {self.last_line}"

    def html(self) -> str:
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import PythonLexer

        # Colours in the tags, on paper of their own: no style sheet to miss, and readable in either theme.
        code = highlight(
            self.text,
            PythonLexer(stripnl=False),
            HtmlFormatter(noclasses=True, nowrap=True, style="tango"),
        )
        pre = (
            f"margin:0;padding:4px;background:transparent;color:{INK};overflow-x:auto;white-space:pre;"
            "line-height:1.4;font-size:13px;"
            "font-family:Menlo,Consolas,'Liberation Mono','DejaVu Sans Mono',monospace"
        )
        return (
            f'<figure style="margin:6px 0;max-width:100%"><figcaption style="padding:2px 0;color:inherit">'
            f"{escape(self.caption)}</figcaption>"
            f'<div style="{CARD_STYLE};min-width:60ch"><pre style="{pre}">{code}</pre></div></figure>'
        )

    def plain(self) -> str:
        return f"# {self.caption}\n{self.text}"


def show(obj) -> Display:
    """The source of a function, a class, a module or a @triton.jit kernel, read from its file.

    Returns what displays itself: the source, highlighted, under its path and line numbers. Something
    without a source file gets a sentence that says so.
    """
    target = obj
    for _ in range(4):  # a kernel, perhaps autotuned: the Python function is inside, under .fn
        if inspect.isfunction(target) or inspect.isclass(target) or inspect.ismodule(target):
            break
        target = getattr(target, "fn", target)
    target = inspect.unwrap(target) if callable(target) else target
    try:
        file = inspect.getsourcefile(target)
        lines, first = inspect.getsourcelines(target)
    except (TypeError, OSError):
        name = getattr(obj, "__name__", None) or type(obj).__name__
        return Prose(f"There is no source file for {name}: it was made while running, or it is not Python.")
    return Source("".join(lines), _short_path(file), max(first, 1))


def _short_path(file: str | None) -> str:
    root = Path(__file__).resolve().parents[2]
    path = Path(file or "?")
    try:
        return path.resolve().relative_to(root).as_posix()
    except ValueError:
        return path.name  # a notebook's cell, or a package from elsewhere


# --------------------------------------------------------------------------------------------------------


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
        asked = f'<p style="margin:6px 0"><b>An interviewer asks:</b> {escape(self.question.asked)}</p>'
        if not self.opened:
            return f'<div style="max-width:75ch">{asked}<p style="margin:6px 0">{self._invitation}</p></div>'
        own = f'<p style="margin:6px 0"><b>You:</b> {escape(self.yours.strip())}</p>'
        answers = "".join(
            f'<p style="margin:8px 0"><b>{grade.capitalize()}.</b> “{escape(answer)}”'
            f"<br><i>{escape(why)}</i></p>"
            for grade, answer, why in self.question.answers()
        )
        return (
            f'<div style="max-width:75ch">{asked}{own}<details open><summary style="cursor:pointer">'
            f"How an interviewer would grade three answers</summary>{answers}</details></div>"
        )

    def plain(self) -> str:
        parts = [f"An interviewer asks: {self.question.asked}"]
        if not self.opened:
            return "\n\n".join([*parts, self._invitation])
        parts.append(f"You: {self.yours.strip()}")
        parts += [
            f"{grade.capitalize()}. “{answer}”\n  {why}" for grade, answer, why in self.question.answers()
        ]
        return "\n\n".join(parts)


def explain(key, yours="") -> Display:
    """An interviewer's question. The model answers open once `yours` holds a sentence at least."""
    from course_kernels.lab.questions import QUESTIONS

    question = QUESTIONS.get(str(key))
    if question is None:
        return Prose(f"There is no question {key!r}. There are: {', '.join(QUESTIONS)}.")
    return Explanation(str(key), question, "" if yours is None else str(yours))


# --------------------------------------------------------------------------------------------------------


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


def _is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
