"""Every kept answer gets its verdict: wrong ones are refused by the name of their mistake, right ones pass.

A plain run judges each answer on inputs of its own that are the same every time, so that a failure says
something of the change under test; fused_softmax, the course's first real kernel, gets ten of them.
ANSWER_SEEDS=50 looks for rarer faults: it draws fifty fresh seeds for every answer, and names the one that
failed.
"""

import os
import secrets
import zlib

import pytest
import triton

from course_kernels.lab import checking, exercises
from course_kernels.lab.run import forkserver
from tests.answers import styles, tools

FRESH = "ANSWER_SEEDS" in os.environ
SEEDS = int(os.environ.get("ANSWER_SEEDS", "1"))
WRONG = [(name, title) for name in exercises.names() for title in tools.titles(name, "wrong")]
RIGHT = [(name, title) for name in exercises.names() for title in tools.titles(name, "right")]
SLOW = {"timeout", "waits_for_programs"}  # judged once, whatever the number of seeds


def seeds(path, count):
    if FRESH:
        return [secrets.randbits(32) for _ in range(count)]
    return [zlib.crc32(f"{os.path.basename(path)}, {number}".encode()) for number in range(count)]


def label(value):
    return str(value)


def judged(name, path, count, seconds=15):
    """The judge's reports on several seeds; without the compiler, which has no say in a wrong answer."""
    judge = "course_kernels.lab.exercises.jobs:judge_file"
    jobs = {
        seed: forkserver.submit("interpret", judge, name=name, path=path, seed=seed, seconds=seconds)
        for seed in seeds(path, count)
    }
    return {seed: job.result(200) for seed, job in jobs.items()}


@pytest.mark.versions
@pytest.mark.parametrize(("name", "title"), WRONG, ids=label)
def test_a_wrong_answer_is_refused_by_name(name, title, tmp_path):
    path = tools.write(tmp_path, name, "wrong", title)
    expected = tools.expected(name, title)
    if expected == "compile":
        (seed,) = seeds(path, 1)
        reports = {seed: vars(checking.judge(name, path, seed))}
    else:
        reports = judged(name, path, 1, seconds=4) if expected in SLOW else judged(name, path, SEEDS)
    for seed, report in reports.items():
        said = f"seed {seed}: {report['parts']}"
        assert report["status"] in ("fail", "error"), f"accepted with seed {seed}"
        # Two names where Triton's versions differ: what tl.maximum makes of a NaN.
        names = expected if isinstance(expected, tuple) else (expected,)
        assert report["mistake"] in names, said
        assert len(report["parts"]["what"]) > 20, "a refusal says what is wrong"


@pytest.mark.versions
@pytest.mark.parametrize(("name", "title"), RIGHT, ids=label)
def test_a_right_answer_passes(name, title, tmp_path):
    if title == "block pointers" and tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 9):
        pytest.skip("Triton took this away in 3.9")
    path = tools.write(tmp_path, name, "right", title)
    if title in styles.RIGHT.get(name, {}) and not FRESH:
        # The solution's kernel in other clothes: compiling it again would take half a second of each.
        (report,) = judged(name, path, 1).values()
        assert report["status"] == "pass", report["parts"]
        return
    for seed in seeds(path, SEEDS):
        verdict = checking.judge(name, path, seed)
        assert verdict.status == "pass", f"seed {seed}: {verdict.message}"


@pytest.mark.versions
@pytest.mark.parametrize("name", exercises.names())
def test_the_solution_passes(name):
    from course_kernels.lab.core.files import solution_file

    path = str(solution_file(name))
    (seed,) = seeds(path, 1)
    verdict = checking.judge(name, path, seed)
    assert verdict.status == "pass", f"seed {seed}: {verdict.message}"
    assert verdict.earned and verdict.lesson, "a pass says what it earned"


@pytest.mark.versions
@pytest.mark.parametrize("name", exercises.names())
def test_the_stub_is_not_done_yet(name, tmp_path):
    from course_kernels.lab.exercises import stubs

    (tmp_path / "stub.py").write_text(stubs.stub(name))
    verdict = checking.judge(name, str(tmp_path / "stub.py"), 0)
    assert (verdict.status, verdict.mistake) == ("todo", None)
    # Half-way: a stub with a line added is still not done, and is no failure.
    (tmp_path / "begun.py").write_text(stubs.stub(name) + "\nANSWER = 42\n")
    begun = checking.judge(name, str(tmp_path / "begun.py"), 0)
    assert (begun.status, begun.mistake) == ("todo", None), begun.message


# A dozen of each kind of mistake, and every right answer, on ten seeds.
TEN = [
    "padding with 0",
    "padding with -1e9",
    "padding with nothing",
    "no maximum",
    "mask with <=",
    "columns for the row stride",
    "half the grid",
    "a fixed block",
    "float16 arithmetic",
    "a NaN made 0",
    "reads the row twice",
    "exp2 without the scale",
    "x made contiguous",
]


@pytest.mark.parametrize("title", TEN)
def test_fused_softmax_wrong_on_ten_seeds(title, tmp_path):
    reports = judged("fused_softmax", tools.write(tmp_path, "fused_softmax", "wrong", title), 10)
    assert {r["mistake"] for r in reports.values()} == {tools.expected("fused_softmax", title)}


@pytest.mark.parametrize("title", tools.answers("fused_softmax").RIGHT)
def test_fused_softmax_right_on_ten_seeds(title, tmp_path):
    reports = judged("fused_softmax", tools.write(tmp_path, "fused_softmax", "right", title), 10)
    assert {r["status"] for r in reports.values()} == {"pass"}, reports


def test_there_are_enough_answers_and_most_are_named():
    named = [pair for pair in WRONG if tools.expected(*pair) is not None]
    assert len(WRONG) >= 80
    assert len(RIGHT) >= 35
    assert len(named) >= 0.9 * len(WRONG)
