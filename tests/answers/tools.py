"""Make files of the answers in this folder."""

import importlib
from pathlib import Path

from course_kernels.lab.exercises import stubs
from tests.answers import styles


def answers(name):
    return importlib.import_module(f"tests.answers.{name}")


def right(name):
    """{title: text} of an exercise's kept right answers."""
    return answers(name).RIGHT | styles.RIGHT.get(name, {})


def wrong_text(name, title):
    """The text of a wrong answer: the solution with the edits made, each of which must fit."""
    edits = answers(name).WRONG[title][1]
    if isinstance(edits, str):
        return edits
    text = stubs.solution_text(name)
    for old, new in edits:
        assert old in text, f"{name}, {title}: {old!r} is not in the solution"
        text = text.replace(old, new)
    return text


def write(folder, name, kind, title):
    """The answer as a file in the folder; its path."""
    text = wrong_text(name, title) if kind == "wrong" else right(name)[title]
    path = Path(folder) / f"{kind}-{''.join(c if c.isalnum() else '_' for c in title)}.py"
    path.write_text(text)
    return str(path)


def titles(name, kind):
    """The titles of an exercise's kept answers of a kind: "wrong" or "right"."""
    return list(answers(name).WRONG if kind == "wrong" else right(name))


def expected(name, title):
    """The mistake that a wrong answer must be told."""
    return answers(name).WRONG[title][0]
