"""The checker itself: nothing a learner writes can take it down, and its outer shape is a contract."""

import json
import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

from course_kernels.lab import checking, exercises, grading
from course_kernels.lab.core import progress as learning
from course_kernels.lab.core.files import solution_file
from course_kernels.lab.exercises import stubs
from course_kernels.lab.run import forkserver
from course_kernels.lab.run import kernels as sandbox
from course_kernels.lab.run.meter import Meter
from course_kernels.lab.run.operations import AllocationOnly
from stored import ROOT
from tests.answers import tools

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"


def judge(tmp_path, text, name="fused_softmax"):
    path = tmp_path / "answer.py"
    path.write_text(text)
    return checking.judge(name, str(path), 1)


def body(line):
    return f"{HEAD}def fused_softmax(x):\n    {line}\n    return x\n"


@pytest.mark.versions
@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        ("import time; time.sleep(1000)", "timeout"),
        ("import ctypes; ctypes.string_at(0)", "crash"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "crash"),
        ("import os; os._exit(0)", "exit"),
        ("raise SystemExit(3)", "exit"),
        ("y = bytearray(10 << 30)", "memory"),
        ("y = torch.empty(10 << 30, dtype=torch.uint8)", "memory"),
        ("print('x' * (100 << 20)); raise ValueError('after 100 MB')", "exception"),
        ("import sys; sys.stdout.close(); sys.stderr.close(); raise ValueError('closed')", "exception"),
        ("def f(): f()\n    f()", "exception"),
        ("torch.empty_like(x, device='meta')", "exception"),
        (
            "import threading; threading.Thread(target=lambda: __import__('time').sleep(99)).start(); 1 / 0",
            "exception",
        ),
        ("raise KeyboardInterrupt", "exception"),
    ],
)
def test_what_goes_wrong_ends_in_a_sentence(tmp_path, line, mistake):
    verdict = judge(tmp_path, body(line))
    assert (verdict.status, verdict.mistake) == ("error", mistake), verdict.message
    assert "Traceback" not in verdict.message and "course_kernels/lab" not in verdict.message
    assert verdict.message.endswith(".") or "`" in verdict.message
    # And the next check finds everything in order.
    after = checking.judge("fused_softmax", str(solution_file("fused_softmax")), 1)
    assert after.status == "pass", after.message


@pytest.mark.versions
@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ("x_ptr + row * x_stride", "x_ptr + row * x_stride.to(tl.int64)", "x_stride"),
        ("column < columns", "column < columns.to(tl.int64)", "columns"),
    ],
)
def test_what_compiles_until_an_argument_is_1(tmp_path, old, new, name):
    """For x of one column the stride and the length are 1, and Triton compiles 1 as a plain number."""
    text = stubs.solution_text("fused_softmax")
    assert old in text
    verdict = judge(tmp_path, text.replace(old, new))
    assert (verdict.status, verdict.mistake) == ("fail", "compile"), verdict.message
    assert f"`{name}` is 1 there" in verdict.parts["what"] and "constexpr" in verdict.parts["why"]
    assert "tl.program_id(0).to(tl.int64)" in verdict.parts["next"] and "At line" in verdict.parts["case"]
    cast = text.replace("row = tl.program_id(0)", "row = tl.program_id(0).to(tl.int64)")
    assert judge(tmp_path, cast).status == "pass"


def test_an_import_that_ends_the_process(tmp_path):
    verdict = judge(tmp_path, "import os\nos._exit(1)\n")
    assert (verdict.status, verdict.mistake) == ("error", "exit")
    assert "imported" in verdict.message


def test_a_file_that_is_not_python(tmp_path):
    path = tmp_path / "answer.py"
    path.write_bytes(b"\xff\xfe\x00 not text")
    assert checking.judge("fused_softmax", str(path), 1).status == "error"


def test_prints_are_shown_but_bounded(tmp_path):
    verdict = judge(tmp_path, body("print('looking at', x.shape)\n    print('y' * 10**6)"))
    assert "looking at torch.Size" in verdict.printed
    assert len(verdict.printed) <= 5000


def test_fresh_inputs_each_time(tmp_path):
    path = tmp_path / "answer.py"
    path.write_text(body("raise ValueError(f'{x.shape[1]} columns')"))
    said = {checking.judge("fused_softmax", str(path), seed).message for seed in range(6)}
    assert len(said) > 1, "six seeds, and always the same row length"


def test_host_code_sees_no_data(tmp_path):
    """Outside a launch the input's memory holds decoys, so that host code cannot compute the result."""
    text = HEAD + (
        "from ctypes import *\n\n\ndef fused_softmax(x):\n"
        "    n = x.numel()\n    a = (c_float * n).from_address(x.data_ptr())\n"
        "    raise ValueError(f'saw {list(a[:3])}')\n"
    )
    one, other = judge(tmp_path, text).message, judge(tmp_path, text).message
    assert "saw" in one and one == other  # the same seed: decoys, but reproducible


def test_an_unknown_exercise_is_named():
    with pytest.raises(KeyError, match="fused_softmax"):
        checking.check("no_such_exercise")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        checking.check("fused_softmax", file=str(tmp_path / "none.py"))


def test_a_missing_exercise_is_not_done_yet(tmp_path):
    verdict = checking.judge("fused_softmax", str(tmp_path / "none.py"), 1)
    assert verdict.status == "todo"


def test_the_message_has_its_parts_in_order(tmp_path):
    path = tools.write(tmp_path, "fused_softmax", "wrong", "padding with 0")
    verdict = checking.judge("fused_softmax", path, 1)
    what, case, why, after = (verdict.parts[key] for key in ("what", "case", "why", "next"))
    assert verdict.message.index(what) < verdict.message.index(case) < verdict.message.index(why)
    assert verdict.message.index(why) < verdict.message.index(after)
    assert "expected" in case and "got" in case and "Proven" in why
    assert what in verdict.plain() and "Not yet" in verdict.html()


def test_the_servers_start_again_when_they_died():
    server = forkserver.start("interpret")
    server.process.kill()
    server.process.wait()
    assert checking.judge("fused_softmax", str(solution_file("fused_softmax")), 1).status == "pass"


def shell(*arguments, cwd=ROOT):
    command = [sys.executable, "-m", "course_kernels.lab", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


@pytest.mark.versions
def test_check_from_the_shell(tmp_path):
    passed = shell("check", "fused_softmax", "--file", str(solution_file("fused_softmax")), "--json")
    answer = json.loads(passed.stdout)
    assert passed.returncode == 0
    assert list(answer) == ["exercise", "status", "mistake", "message", "seconds"]
    assert (answer["exercise"], answer["status"], answer["mistake"]) == ("fused_softmax", "pass", None)

    wrong = tools.write(tmp_path, "fused_softmax", "wrong", "no maximum")
    failed = shell("check", "fused_softmax", "--file", wrong, "--json")
    assert failed.returncode == 1
    assert json.loads(failed.stdout)["mistake"] == "no_maximum"

    (tmp_path / "stub.py").write_text(stubs.stub("fused_softmax"))
    todo = shell("check", "fused_softmax", "--file", str(tmp_path / "stub.py"), "--json")
    assert todo.returncode == 1 and json.loads(todo.stdout)["status"] == "todo"

    for misuse in (
        ["check", "nothing"],
        ["check", "fused_softmax", "--file", "no/such/file.py"],
        ["check"],
        ["nonsense"],
    ):
        refused = shell(*misuse)
        assert refused.returncode == 2, misuse
        assert refused.stderr and "Traceback" not in refused.stderr


def test_list_and_doctor_from_the_shell():
    rows = json.loads(shell("list", "--json").stdout)
    assert [row["exercise"] for row in rows] == list(exercises.names())
    doctor = shell("doctor", "--json")
    assert doctor.returncode == 0, doctor.stdout
    assert all(finding["ok"] for finding in json.loads(doctor.stdout))


def test_a_pipe_that_closes_early_is_no_error():
    command = [sys.executable, "-m", "course_kernels.lab", "traffic", "eager", "--rows", "2", "--cols", "8"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, cwd=ROOT) as child:
        child.stdout.close()
        said = child.stderr.read()
    assert (said, child.returncode) == ("", 141)


def test_ctrl_c_stops_with_a_word():
    command = [sys.executable, "-m", "course_kernels.lab", "grade"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as child:
        assert "copy_rows" in child.stdout.readline()
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=60)
    assert (child.returncode, said) == (130, "Stopped.\n")


def test_what_cannot_be_written_is_said(tmp_path):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "course_kernels.lab", "list"]
        listed = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert (listed.returncode, listed.stderr) == (2, "It could not be written: No space left on device.\n")
    for place in (tmp_path, tmp_path / "nowhere" / "grades.xml"):
        graded = shell("grade", "--junit", str(place))
        assert graded.returncode == 2 and "--junit names a file" in graded.stderr
        assert graded.stdout == "", "said before the checks, not after"


def test_grading_names_the_file_that_is_missing(course, monkeypatch):
    (course / "exercises" / "copy_rows.py").symlink_to(course / "exercises" / "copy_rows.py")
    verdicts = []
    returned = grading.grade(verdicts.append, seed=1)
    assert [v.exercise for v in verdicts] == [v.exercise for v in returned] == list(exercises.names())
    assert all(v.status in ("todo", "error") for v in verdicts)
    assert all(f"exercises/{v.exercise}.py" in v.message for v in verdicts)


@pytest.mark.versions
def test_nothing_lies_near_a_tensor():
    """A row before the first or after the last is outside all of the learner's tensors, always."""
    meter = Meter()
    x = sandbox.place(np.ones((4, 100), np.float32), gap=5)
    with meter, AllocationOnly(meter):
        meter.give("x", x)
        for dtype in (torch.float32, torch.float16, torch.int8, torch.float64):
            torch.empty_like(x, dtype=dtype), torch.zeros(4, dtype=dtype), x.new_empty_strided((2, 3), (7, 2))
    ends = sorted((r.base, r.base + r.span * r.itemsize) for r in meter.regions)
    assert len(ends) == 13
    for (start, end), (following, _) in pairwise(ends):
        assert following - end >= 2 * (end - start)
    assert all(region.base % 64 == 0 for region in meter.regions)  # as PyTorch's own
    zeros = [r for r in meter.regions if r.initialised and not r.given]
    assert len(zeros) == 4 and not any(region.values(region.tensor).any() for region in zeros)


@triton.jit
def in_pairs(y_ptr, x_ptr, columns):
    lane = tl.arange(0, 4)
    pairs = (x_ptr + 2 * lane).to(tl.pointer_type(tl.int64), bitcast=True)
    tl.store(y_ptr + lane, tl.load(pairs, mask=2 * lane < columns, other=0))


@pytest.mark.versions
@pytest.mark.parametrize(("columns", "loads", "faults"), [(8, 8, 0), (7, 6, 1)])
def test_a_wide_load_counts_every_element_that_it_takes(columns, loads, faults):
    """Two float32 by one load of 64 bits are two; and both must lie in the tensor."""
    meter = Meter()
    x = sandbox.place(np.ones((1, columns), np.float32), gap=0)
    with meter, AllocationOnly(meter):
        meter.give("x", x)
        y = torch.empty(4, dtype=torch.int64)
        in_pairs[(1,)](y, x, columns)
    assert (meter.loads(), meter.stores(), len(meter.faults)) == (loads, 4, faults)
    kept = meter.region_of(y).values(y).view(np.float32)[:loads]
    assert (kept == 1).all()


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A folder that counts as a checkout, with this one's solutions."""
    (tmp_path / "exercises").mkdir()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "solutions").symlink_to(ROOT / "solutions")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_hints_progress_and_the_solution(course):
    assert "opens after a pass, or after 3 more" in checking.solution("fused_softmax").plain()
    assert "tl.max" in checking.solution("fused_softmax", anyway=True).plain()
    assert checking.hint("fused_softmax").plain().startswith("1. If")
    assert "2. If" in checking.hint("fused_softmax").plain()
    (course / "exercises" / "fused_softmax.py").write_text(tools.wrong_text("fused_softmax", "no maximum"))
    for _ in range(3):
        assert checking.check("fused_softmax").status == "fail"
    assert "tl.max" in checking.solution("fused_softmax").plain()
    (course / "exercises" / "fused_softmax.py").write_text(stubs.solution_text("fused_softmax"))
    assert checking.check("fused_softmax").status == "pass"
    state = learning.of("fused_softmax")
    assert (state["attempts"], state["hints"]) == (4, 2) and state["passed"]
    assert "copy_rows" in checking.progress().plain()


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"exercises": 3}', '{"exercises": {"a": 1}}', "\x00\xff"])
def test_a_damaged_progress_file_is_set_aside(course, damage):
    file = course / learning.FILE
    file.write_text(damage, encoding="latin-1")
    assert learning.of("fused_softmax") == learning.EMPTY
    learning.note_attempt("fused_softmax", "fail")
    assert learning.of("fused_softmax")["attempts"] == 1
    assert [p.read_text(encoding="latin-1") for p in file.parent.glob("*.damaged-*")] == [damage]


def test_a_stub_that_was_checked_is_no_attempt(course):
    (course / "exercises" / "fused_softmax.py").write_text(stubs.stub("fused_softmax"))
    assert checking.check("fused_softmax").status == "todo"
    assert learning.of("fused_softmax")["attempts"] == 0


def test_a_check_waits_for_nothing_it_does_not_need(tmp_path):
    """A check of a stub neither compiles nor runs it."""
    (tmp_path / "stub.py").write_text(stubs.stub("fused_softmax"))
    checking.judge("fused_softmax", str(tmp_path / "stub.py"), 1)
    started = time.monotonic()
    checking.judge("fused_softmax", str(tmp_path / "stub.py"), 1)
    assert time.monotonic() - started < 20  # far above what it takes: only a hang would reach it
