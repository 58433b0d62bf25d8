"""The base of every widget: controls beside a picture and a table that follow them.

Only ipywidgets' own controls (7.7 and 8), with pictures as SVG text in an HTML value: nothing is fetched,
nothing depends on a plotting extension, and the keyboard works as it does for any slider. Each has a static
twin, the same picture and table, which is what nbconvert, a saved page and a front end without widgets show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import contextmanager
from html import escape

from course_kernels.lab.core.wording import read_number
from course_kernels.lab.show.picture import Display, Picture, Prose, Stack

VIEW = "application/vnd.jupyter.widget-view+json"


class Interactive(Display):
    """A picture and a table with controls. Subclasses give values, controls() and draw(**values).

    values: name → the value shown first. controls(w): name → an ipywidgets control, w being that module.
    draw(**values): what to show, a Picture first, or a ValueError, whose sentence is shown while the last
    good picture stays, faded.
    """

    LEAST_HEIGHT = ""  # of what is below the picture, so that the page does not jump

    def __init__(self, **values):
        self.values = values
        self._box = None
        self._setting = False

    def controls(self, w) -> Mapping:
        raise NotImplementedError

    def draw(self, **values) -> list[Display]:
        raise NotImplementedError

    def parts(self) -> Stack:
        """The same picture and table without controls, for the values as they are now."""
        try:
            return Stack(*self.draw(**self.values))
        except ValueError as problem:
            return Stack(Prose(str(problem)))

    def widget(self):
        """The controls with the picture and the table, as one ipywidgets box; made when first asked for."""
        if self._box is None:
            import ipywidgets as w

            self._controls = self.controls(w)
            self._problem, self._picture = w.HTML(), w.HTML()
            self._rest = w.HTML(layout=w.Layout(min_height=self.LEAST_HEIGHT or None))
            self._box = w.VBox([*self.arrange(w, self._controls), self._problem, self._picture, self._rest])
            for name, control in self._controls.items():
                control.observe(lambda change, name=name: self._moved(name, change["new"]), names="value")
            self.redraw()
        return self._box

    def arrange(self, w, controls) -> list:
        """The rows of controls above the picture: sliders and fields have a row each, the rest shares one."""
        short = (w.Dropdown, w.Checkbox, w.BoundedIntText)
        long = [c for c in controls.values() if not isinstance(c, short)]
        others = [c for c in controls.values() if isinstance(c, short)]
        return [*long, w.HBox(others, layout=w.Layout(flex_flow="row wrap"))] if others else long

    def _moved(self, name, value) -> None:
        if not self._setting:
            self.changed(name, value)

    def changed(self, name: str, value) -> None:
        self.values[name] = value
        self.redraw()

    @contextmanager
    def quietly(self):
        """Set controls in here without their change being taken for the learner's."""
        self._setting = True
        try:
            yield
        finally:
            self._setting = False

    def redraw(self) -> None:
        if self._box is None:
            return  # nobody has asked for a widget
        try:
            shown = self.draw(**self.values)
        except ValueError as problem:  # something typed cannot be drawn
            self.say(str(problem), "alert")
            if "opacity" not in self._picture.value[:40]:
                self._picture.value = f'<div style="opacity:0.25">{self._picture.value}</div>'
            return
        self._problem.value = ""
        self._picture.value = "".join(item.html() for item in shown if isinstance(item, Picture))
        rest = "".join(item.html() for item in shown if not isinstance(item, Picture))
        self._rest.value = f'<div role="status" aria-live="polite" style="line-height:1.4">{rest}</div>'

    def say(self, words: str, role: str = "status") -> None:
        """A line between the controls and the picture."""
        self._problem.value = f'<p role="{role}" style="margin:4px 0"><b>{escape(words)}</b></p>'

    def _repr_mimebundle_(self, include=None, exclude=None):
        bundle = {"text/html": self.html(), "text/plain": self.plain()}
        if not _someone_is_there():
            return bundle
        try:
            box = self.widget()
        except ImportError:  # no ipywidgets: the static twin is all there is
            return bundle
        if box.model_id:
            bundle[VIEW] = {"version_major": 2, "version_minor": 0, "model_id": box.model_id}
        return bundle


def _someone_is_there() -> bool:
    """False where a program runs the notebook, as nbconvert does: it answers no input().

    Its page gets the static twin alone, and no widget state, for which a saved page would go to the network.
    """
    from IPython import get_ipython

    kernel = getattr(get_ipython(), "kernel", None)
    return getattr(kernel, "_allow_stdin", True)


def _row(w, width="auto"):
    return {"style": {"description_width": "110px"}, "layout": w.Layout(width=width, max_width="640px")}


def slider(w, description, options, value, **more):
    """A slider over a list of values; options are (label, value) pairs."""
    return w.SelectionSlider(description=description, options=options, value=value, **_row(w), **more)


def steps(w, description, value, most):
    return w.IntSlider(description=description, min=0, max=most, value=min(value, most), **_row(w))


def choice(w, description, options, value):
    beside = {"layout": w.Layout(width="auto", max_width="300px"), "style": {"description_width": "60px"}}
    return w.Dropdown(description=description, options=options, value=value, **beside)


def box(w, description, value):
    wide = w.Layout(width="auto", margin="0 14px 0 0")
    return w.Checkbox(description=description, value=value, indent=False, layout=wide)


def scores_field(w, value):
    """A field for scores; a change counts once Enter is pressed or the field is left."""
    return w.Text(
        description="scores", value=value, continuous_update=False, placeholder="2, 5, 3 and Enter", **_row(w)
    )


def closest(options, value):
    """The option nearest to a value, by ratio."""
    return min(options, key=lambda option: abs(math.log(option / max(value, 1))))


def read_scores(text: str, most: int) -> list[float]:
    """Scores as a learner types them: "2, 5, 3" or "2 5 -inf". ValueError says what is wrong with them."""
    words = str(text).replace(";", ",").replace(",", " ").strip("[]() ").split()
    if not words:
        raise ValueError("Type some scores, such as 2, 5, 3.")
    if len(words) > most:
        raise ValueError(f"{len(words)} scores are too many to draw; {most} at most.")
    scores = []
    for word in words:
        number = read_number(word.replace("∞", "inf"))
        if number is None or math.isnan(number) or number == math.inf:
            raise ValueError(f"{word!r} is not a score: use numbers such as 2, −0.5 or -inf.")
        scores.append(float(number))
    return scores


def write_scores(scores) -> str:
    """Scores given as text or as numbers, as the field shows them."""
    if isinstance(scores, str):
        return scores
    return ", ".join(f"{score:g}" if isinstance(score, (int, float)) else str(score) for score in scores)
