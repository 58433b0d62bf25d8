"""From the cell to the file and back: nothing typed is lost, and a stub never replaces an answer."""

import os
import random
import signal
import subprocess
import sys
import time

import nbformat
import pytest

from course_kernels.lab import exercises, magics
from course_kernels.lab.core import progress
from course_kernels.lab.core.files import save_with_history, write_atomically
from course_kernels.lab.exercises import stubs
from stored import ROOT, stored_files


class Shell:
    """What the magic needs of IPython."""

    def __init__(self):
        self.names, self.next_input = {}, None

    def push(self, names):
        self.names.update(names)

    def set_next_input(self, text, replace):
        self.next_input = text


@pytest.fixture
def cell(tmp_path, monkeypatch):
    """run(name, text) → what the magic said; the folder is a course of its own."""
    (tmp_path / "exercises").mkdir()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "solutions").symlink_to(ROOT / "solutions")
    monkeypatch.chdir(tmp_path)
    shell, said = Shell(), []
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    monkeypatch.setattr(magics, "_say", said.append)

    def run(name, text):
        magics.exercise(name, text)
        return said[-1]

    run.shell, run.folder = shell, tmp_path / "exercises"
    return run


def history(folder):
    return sorted(p.read_text() for p in (folder / ".history").glob("*.py"))


def test_a_cell_is_saved_and_imported(cell):
    said = cell("fused_softmax", "def fused_softmax(x):\n    return x\n")
    assert (cell.folder / "fused_softmax.py").read_text() == "def fused_softmax(x):\n    return x\n"
    assert cell.shell.names["fused_softmax"](3) == 3
    assert "Saved" in said and 'check("fused_softmax")' in said


def test_every_replaced_version_is_kept(cell):
    for number in range(4):
        cell("fused_softmax", f"ANSWER = {number}\n")
    assert history(cell.folder) == [f"ANSWER = {n}\n" for n in range(3)]
    cell("fused_softmax", "ANSWER = 3\n")  # the same again: nothing to keep
    assert len(history(cell.folder)) == 3


def test_a_stub_cell_never_replaces_an_answer(cell):
    cell("fused_softmax", "ANSWER = 7\n")
    said = cell("fused_softmax", stubs.stub("fused_softmax"))
    assert (cell.folder / "fused_softmax.py").read_text() == "ANSWER = 7\n"
    assert cell.shell.names["ANSWER"] == 7
    assert "was loaded" in said
    assert cell.shell.next_input == "%%exercise fused_softmax\nANSWER = 7\n"


def test_a_stub_cell_is_still_a_stub_after_an_editor_touched_it(cell):
    cell("fused_softmax", "ANSWER = 7\n")
    cell("fused_softmax", stubs.stub("fused_softmax").replace("\n", "  \n") + "\n\n")
    assert (cell.folder / "fused_softmax.py").read_text() == "ANSWER = 7\n"


def test_an_answer_edited_in_the_file_survives_the_cell(cell):
    cell("fused_softmax", "ANSWER = 'from the cell'\n")
    (cell.folder / "fused_softmax.py").write_text("ANSWER = 'from an editor'\n")
    cell("fused_softmax", "ANSWER = 'the cell again'\n")
    assert "ANSWER = 'from an editor'\n" in history(cell.folder)


def test_broken_code_is_saved_all_the_same(cell):
    said = cell("fused_softmax", "def fused_softmax(x:\n")
    assert (cell.folder / "fused_softmax.py").read_text() == "def fused_softmax(x:\n"
    assert "line 1" in said
    said = cell("fused_softmax", "import no_such_package\n")
    assert "no_such_package" in said


def test_an_unknown_name_saves_nothing(cell):
    said = cell("fused_sofmax", "ANSWER = 1\n")
    assert "fused_softmax" in said and not list(cell.folder.glob("*.py"))


def test_a_kernel_from_a_cell_runs(cell):
    import torch

    cell("fused_softmax", stubs.solution_text("fused_softmax"))
    x = torch.randn(3, 10)
    torch.testing.assert_close(cell.shell.names["fused_softmax"](x), torch.softmax(x, dim=1))
    # A second version is the one that runs: the source is read anew.
    cell(
        "fused_softmax",
        stubs.solution_text("fused_softmax").replace("numerator / tl.sum", "2 * numerator / tl.sum"),
    )
    torch.testing.assert_close(cell.shell.names["fused_softmax"](x), 2 * torch.softmax(x, dim=1))


SAVER = """
import sys
from pathlib import Path
from course_kernels.lab.core import progress
from course_kernels.lab.core.files import save_with_history
path = Path("exercises/fused_softmax.py")
number = int(sys.argv[1])
print("ready", flush=True)
while True:
    number += 1
    save_with_history(path, f"ANSWER = {number}\\n" + "#" * 20000 + "\\n# end\\n")
    progress.note_attempt("fused_softmax", "fail")
    print(number, flush=True)
"""


def test_kill_at_any_moment_loses_nothing(cell, monkeypatch):
    """Saves and progress writes, killed dozens of times: what was saved is there, whole, or in the
    history.
    """
    folder = cell.folder
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    last, rng = 0, random.Random(7)
    for _ in range(25):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(last)],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=folder.parent,
        )
        assert process.stdout.readline() == "ready\n"
        time.sleep(rng.uniform(0.0, 0.08))  # a few saves, also on a busy machine
        process.send_signal(signal.SIGKILL)
        done = [int(line) for line in process.communicate()[0].split() if line.isdigit()]
        last = done[-1] if done else last
        path = folder / "fused_softmax.py"
        if last == 0 and not path.exists():
            continue
        text = path.read_text()
        assert text.endswith("# end\n"), "half a file"
        number = int(text.split()[2])
        assert number >= last
        kept = {int(p.read_text().split()[2]) for p in (folder / ".history").glob("*.py")}
        assert set(range(1, number)) <= kept | {number}, "a version is gone"
        attempts = progress.of("fused_softmax")["attempts"]
        assert attempts >= number - 1 - 25 and not list(folder.glob("*.damaged-*"))
        last = number
    assert last > 5


def test_full_disk_leaves_the_old_answer(tmp_path, monkeypatch):
    path = tmp_path / "answer.py"
    write_atomically(path, "old\n")

    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError):
        save_with_history(path, "new\n")
    assert path.read_text() == "old\n"
    assert not list(tmp_path.glob(".answer.py.*"))


# Stubs, cells and solutions


def test_a_stub_names_what_to_do_and_keeps_the_rest():
    for name in exercises.names():
        solution, stub = stubs.solution_text(name), stubs.stub(name)
        assert "SOLUTION" not in stub and "SOLUTION" not in solution
        assert "raise NotImplementedError(" in stub
        assert "raise NotImplementedError(" not in solution
        compile(stub, name, "exec")
        assert f"def {exercises.get(name).entry}(" in stub or name == "count_traffic"


def test_marks_that_do_not_match_are_refused():
    for text in ("x = 1\n", "# BEGIN SOLUTION: a\nx = 1\n", "x = 1\n# END SOLUTION\n"):
        with pytest.raises(ValueError, match="END SOLUTION"):
            stubs.stub_text(text)


def test_exercises_are_the_stubs(untouched_exercises):
    for name in exercises.names():
        assert (untouched_exercises / f"{name}.py").read_text() == stubs.stub(name), (
            f"exercises/{name}.py has drifted from solutions/{name}.py: run scripts/refresh_stubs.py"
        )


def test_notebook_cells_are_the_stubs():
    found = []
    for path, text in stored_files("notebooks/*.ipynb").items():
        for cell in nbformat.reads(text, as_version=4).cells:
            if cell.source.startswith("%%exercise"):
                head, _, body = cell.source.partition("\n")
                name = head.split()[1]
                found.append(name)
                assert exercises.get(name).notebook in path
                assert body.rstrip("\n") == stubs.stub(name).rstrip("\n"), (
                    f"{path}: run scripts/refresh_stubs.py"
                )
    if found:
        assert sorted(found) == sorted(exercises.names()), "every exercise has its cell, once"


def test_every_exercise_has_a_brief_three_hints_and_a_lesson():
    for name in exercises.names():
        exercise = exercises.get(name)
        assert len(exercise.hints) == 3 and exercise.brief and exercise.lesson
        assert all(len(h.text) > 40 and h.symptom for h in exercise.hints)
