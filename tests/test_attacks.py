"""Ways around the check that were tried, and must not work again."""

import os
import subprocess
import sys

import pytest

from course_kernels.lab import checking, grading, learner, stubs
from course_kernels.lab.files import solution_file
from stored import ROOT

PROBE = ROOT / "exercises" / ".probe-of-a-test"  # git ignores it
HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
KERNEL = stubs.solution_text("fused_softmax")
COPY = HEAD + (
    "@triton.jit\ndef copy(y_ptr, x_ptr, ys, xs, columns, BLOCK: tl.constexpr):\n"
    "    row = tl.program_id(0)\n    c = tl.arange(0, BLOCK)\n"
    "    x = tl.load(x_ptr + row * xs + c, mask=c < columns)\n"
    "    tl.store(y_ptr + row * ys + c, x, mask=c < columns)\n\n\n"
)
LAUNCH = (
    "copy[{grid}](y, {x}, y.stride(0), x.stride(0), x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))"
)

CHEATS = {
    "PyTorch works in the grid function": (
        "torch_work",
        COPY + "def fused_softmax(x):\n    y, z = torch.empty_like(x), torch.empty_like(x)\n\n"
        "    def grid(meta):\n        z.copy_(torch.softmax(x.float(), 1))\n        return (x.shape[0],)\n\n"
        f"    {LAUNCH.format(grid='grid', x='z')}\n    return y\n",
    ),
    "no launch for the compiler": (
        "compile",
        KERNEL.replace(
            "    softmax_kernel[",
            "    if type(softmax_kernel).__name__ == 'JITFunction':\n        return y\n    softmax_kernel[",
        ),
    ),
    "another kernel for the compiler": (
        "compile",
        KERNEL.replace(
            "def fused_softmax(x):",
            "@triton.jit\ndef other(y_ptr):\n    tl.store(y_ptr, 0.0)\n\n\ndef fused_softmax(x):",
        ).replace(
            "    softmax_kernel[",
            "    if 'Interpreted' not in type(other).__name__:\n        other[(1,)](y)\n        return y\n"
            "    softmax_kernel[",
        ),
    ),
    "the checker's objects through gc": (
        "out_of_place",
        "import gc\n" + KERNEL,
    ),
    "frames": (
        "out_of_place",
        KERNEL.replace("    return y", "    import sys\n    sys._getframe()\n    return y"),
    ),
    "the kernel's numbers as numpy": (
        "out_of_place",
        KERNEL.replace("    y = numerator /", "    numerator.handle\n    y = numerator /"),
    ),
    "the solution through another program": (
        "outside_world",
        "import subprocess\n"
        "done = subprocess.run(['cat', 'solutions/fused_softmax.py'], capture_output=True, text=True)\n"
        "exec(done.stdout)\n",
    ),
    "the answers kept by the tests": (
        "answer_opened",
        f"open({str(ROOT / 'tests' / 'answers' / 'fused_softmax.py')!r}).read()\n" + KERNEL,
    ),
    "a file written beside the course": (
        "outside_world",
        f"open({str(PROBE)!r}, 'w').write('')\n" + KERNEL,
    ),
    "a file removed": (
        "outside_world",
        f"import os\nos.remove({str(PROBE)!r})\n" + KERNEL,
    ),
    "a solution that was linked": (
        "outside_world",
        f"import os\nos.link({str(solution_file('fused_softmax'))!r}, '/tmp/linked-by-a-test.py')\n" + KERNEL,
    ),
}


@pytest.mark.parametrize("title", CHEATS)
def test_a_cheat_does_not_pass(title, tmp_path):
    mistake, text = CHEATS[title]
    PROBE.write_text("still here")
    (tmp_path / "answer.py").write_text(text)
    verdict = checking.judge("fused_softmax", str(tmp_path / "answer.py"), 1)
    assert (verdict.status, verdict.mistake) == ("fail", mistake), verdict.message
    assert PROBE.read_text() == "still here"


RACE = (
    HEAD
    + """@triton.jit
def kernel(y_ptr, m_ptr, d_ptr, x_ptr, ys, xs, columns, CHUNK: tl.constexpr, P: tl.constexpr):
    row, chunk, n = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    c = chunk * CHUNK + tl.arange(0, CHUNK)
    x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    m = tl.max(x, axis=0)
    a = tl.where(m == -float("inf"), 0.0, m)
    tl.store(m_ptr + row * n + chunk, m)
    tl.store(d_ptr + row * n + chunk, tl.sum(tl.exp(x - a), axis=0))
    if chunk == n - 1:
        i = tl.arange(0, P)
        mm = tl.load(m_ptr + row * n + i, mask=i < n, other=-float("inf"))
        dd = tl.load(d_ptr + row * n + i, mask=i < n, other=0.0)
        top = tl.max(mm, 0)
        total = tl.sum(dd * tl.exp(mm - top), 0)
        for s in range(0, columns, CHUNK):
            c = s + tl.arange(0, CHUNK)
            x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=0.0).to(tl.float32)
            tl.store(y_ptr + row * ys + c, tl.exp(x - top) / total, mask=c < columns)


def split_softmax(x):
    rows, columns = x.shape
    n = triton.cdiv(columns, 1024)
    y = torch.empty_like(x)
    m, d = torch.empty((2, rows, n), dtype=torch.float32, device=x.device)
    kernel[(rows, n)](
        y, m, d, x, y.stride(0), x.stride(0), columns, CHUNK=1024, P=triton.next_power_of_2(n)
    )
    return y
"""
)


@pytest.mark.versions
def test_a_race_between_programs_does_not_pass(tmp_path):
    (tmp_path / "answer.py").write_text(RACE)
    verdict = checking.judge("split_softmax", str(tmp_path / "answer.py"), 1)
    assert (verdict.status, verdict.mistake) == ("fail", "race"), verdict.message


@pytest.mark.versions
def test_odd_files_that_are_right_pass(tmp_path):
    for name, data in {
        "bom": b"\xef\xbb\xbf" + KERNEL.encode(),
        "windows": KERNEL.replace("\n", "\r\n").encode(),
        "latin": b"# -*- coding: latin-1 -*-\n# \xe9\n"
        + KERNEL.replace("−", "-").encode("latin-1", "replace"),
        "tutorial": KERNEL.replace(
            "def fused_softmax(x):",
            "DEVICE = triton.runtime.driver.active.get_active_torch_device()\n"
            "SMS = triton.runtime.driver.active.utils.get_device_properties(0)['multiprocessor_count']\n\n\n"
            "def fused_softmax(x):",
        ).encode(),
    }.items():
        (tmp_path / f"{name}.py").write_bytes(data)
        verdict = checking.judge("fused_softmax", str(tmp_path / f"{name}.py"), 1)
        assert verdict.status == "pass", f"{name}: {verdict.message}"


def test_one_answer_cannot_change_another_while_grading(tmp_path, monkeypatch):
    (tmp_path / "exercises").mkdir()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "solutions").symlink_to(ROOT / "solutions")
    monkeypatch.chdir(tmp_path)
    for name in ("safe_softmax", "fused_softmax"):
        (tmp_path / "exercises" / f"{name}.py").write_text(stubs.stub(name))
    target = tmp_path / "exercises" / "fused_softmax.py"
    (tmp_path / "exercises" / "copy_rows.py").write_text(
        f"text = {KERNEL!r}\nopen({str(target)!r}, 'w').write(text)\n" + stubs.solution_text("copy_rows")
    )
    verdicts = {v.exercise: v for v in grading.grade(seed=1)}
    assert verdicts["fused_softmax"].status == "todo"
    assert "<testsuite" in grading.junit(list(verdicts.values()))


def test_numbers_that_are_none_do_not_break_the_progress_file(tmp_path, monkeypatch):
    (tmp_path / "exercises").mkdir()
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / learner.FILE).write_text('{"exercises": {"fused_softmax": {"attempts": 1e999}}}')
    assert learner.of("fused_softmax") == learner.EMPTY


def test_json_in_a_terminal_without_unicode():
    command = [sys.executable, "-m", "course_kernels.lab", "check", "fused_softmax", "--json", "--file"]
    command.append(str(solution_file("fused_softmax")))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert answer.returncode == 0 and answer.stdout.startswith("{"), answer.stderr
