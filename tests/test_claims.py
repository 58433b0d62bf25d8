"""Each sentence that depends on a figure stands where it is said to, and the newest figures bear it out."""

import importlib
import pkgutil

import claims
import nbformat
import pytest

from course_kernels.lab import exercises
from course_kernels.lab.questions import QUESTIONS
from stored import ROOT, is_checkout, stored_files

ALL = [
    claim
    for module in pkgutil.iter_modules(claims.__path__)
    for claim in importlib.import_module(f"claims.{module.name}").CLAIMS
]


def text_of(where: str) -> str:
    """All that a reader sees there; notebooks and README as git has them staged."""
    kind, _, name = where.partition(" ")
    if kind == "question":
        question = QUESTIONS[name]
        return "\n".join([question.asked, *question.weak, *question.strong, *question.strongest])
    if kind == "lesson":
        return exercises.get(name).lesson
    text = stored_files(where)[where] if is_checkout() else (ROOT / where).read_text(encoding="utf-8")
    if where.endswith(".ipynb"):
        return "\n\n".join(cell.source for cell in nbformat.reads(text, as_version=4).cells)
    return text


def plain(text: str) -> str:
    return " ".join(text.replace("**", "").split())


@pytest.mark.parametrize("claim", ALL, ids=lambda claim: f"{claim.where}: {claim.sentence[:60]}")
def test_a_sentence_stands_and_the_newest_figures_bear_it_out(claim):
    standing = plain(claim.sentence) in plain(text_of(claim.where))
    assert standing, f"{claim.where} no longer says “{claim.sentence}”: change its row in tests/claims"
    try:
        against = list(claim.against())
    except LookupError as missing:
        against = f"that the newest runs do not say: {missing}"
    assert not against, f"{claim.where} says “{claim.sentence}”. Against it stands {against}"


def test_a_sentence_that_the_figures_contradict_is_named():
    false = claims.Claim("README.md", "One Load, One Store", lambda: [(64, 0.2)])
    with pytest.raises(AssertionError, match="One Load, One Store.*0.2"):
        test_a_sentence_stands_and_the_newest_figures_bear_it_out(false)


def test_a_sentence_that_was_rewritten_is_named():
    gone = claims.Claim("README.md", "A sentence that nobody wrote", list)
    with pytest.raises(AssertionError, match="no longer says “A sentence that nobody wrote”"):
        test_a_sentence_stands_and_the_newest_figures_bear_it_out(gone)
