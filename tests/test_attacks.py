"""Ways around the check that were tried, and must not work again."""

import os
import subprocess
import sys
import textwrap
from xml.etree import ElementTree

import numpy as np
import pytest

from course_kernels.lab import checking, exercises, grading
from course_kernels.lab.core import progress
from course_kernels.lab.core.files import solution_file
from course_kernels.lab.exercises import stubs
from course_kernels.lab.run import forkserver, guard, landlock, limits, reader
from course_kernels.lab.run.cases import Case
from course_kernels.lab.run.session import Session
from stored import ROOT
from tests.answers import tools

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
    "a file written by PyTorch, past Python": (
        "torch_work",
        KERNEL.replace(
            "    rows, columns = x.shape",
            f"    torch.from_file({str(PROBE)!r}, shared=True, size=4, dtype=torch.uint8).fill_(0)\n"
            "    rows, columns = x.shape",
        ),
    ),
    "attributes by a string": (
        "out_of_place",
        KERNEL + "\n\nprint(getattr(fused_softmax, '__glo' + 'bals__'))\n",
    ),
    "attributes by a pattern": (
        "out_of_place",
        KERNEL + "\n\nmatch iter(()):\n    case object(__class__=kind):\n        pass\n",
    ),
    "attributes by a format": (
        "out_of_place",
        KERNEL + "\n\nprint('{0.__globals__}'.format(fused_softmax))\n",
    ),
    "attributes by functools": (
        "out_of_place",
        "from functools import update_wrapper as copy\n" + KERNEL + "\n\ncopy(softmax_kernel, print)\n",
    ),
    "the interpreter's modules through Triton": (
        "out_of_place",
        KERNEL + "\n\nprint(tl.extra.modules['gc'])\n",
    ),
    "a module under another name": (
        "out_of_place",
        KERNEL + "\n\nt = torch\nt.os.getpid()\n",
    ),
    "a function of Triton's replaced": (
        "out_of_place",
        KERNEL + "\n\ntl.static_assert = tl.load\n",
    ),
    "a file that turns itself into a right one": (
        "outside_world",
        f"import os\ntext = {KERNEL!r}\nopen(__file__, 'w').write(text)\nexec(text)\n",
    ),
    "a terminal written to": (
        "outside_world",
        "open('/dev/tty', 'w').write('passed')\n" + KERNEL,
    ),
    "a folder made": (
        "outside_world",
        f"import os\nos.mkdir({str(PROBE) + '-folder'!r})\n" + KERNEL,
    ),
    "the checker ended": (
        "outside_world",
        "import os\nos.kill(os.getppid(), 9)\n" + KERNEL,
    ),
    "PyTorch works in a hook of the launch": (
        "copied",
        COPY + "def work(y, x, *others, **more):\n    x.copy_(torch.softmax(x.float(), 1))\n\n\n"
        "copy.add_pre_run_hook(work)\n\n\ndef fused_softmax(x):\n    y = torch.empty_like(x)\n"
        f"    {LAUNCH.format(grid='(x.shape[0],)', x='x')}\n    return y\n",
    ),
    "PyTorch works in a number that the kernel compares": (
        "exception",
        COPY + "KEPT = []\n\n\nclass Columns(int):\n    def work(self, other):\n        x = KEPT[-1]\n"
        "        x.copy_(torch.softmax(x.float(), 1))\n        return int.__le__(self, other)\n\n"
        "    __le__ = __lt__ = __eq__ = __and__ = work\n    __hash__ = int.__hash__\n\n\n"
        "def fused_softmax(x):\n    y = torch.empty_like(x)\n    KEPT.append(x)\n    "
        + LAUNCH.format(grid="(x.shape[0],)", x="x").replace(
            "BLOCK=triton.next_power_of_2(x.shape[1])", "BLOCK=Columns(triton.next_power_of_2(x.shape[1]))"
        )
        + "\n    return y\n",
    ),
    "PyTorch fills the result, an element at a time": (
        "torch_work",
        COPY + "def fused_softmax(x):\n    y = torch.empty_like(x)\n"
        f"    {LAUNCH.format(grid='(x.shape[0],)', x='x')}\n    for i in range(y.numel()):\n"
        "        y.view(-1)[i].fill_(i)\n    return y\n",
    ),
    "values carried by fill_ to beyond a tensor": (
        "torch_work",
        COPY + "def fused_softmax(x):\n    t = torch.empty(1)\n"
        "    t.as_strided((2,), (1,), t.storage_offset()).fill_(x[0, 0])\n    return t\n",
    ),
    "a number filled in beyond a tensor": (
        "torch_work",
        COPY + "def fused_softmax(x):\n    t = torch.empty(1)\n"
        "    t.as_strided((2,), (1,), t.storage_offset()).fill_(0.5)\n    return t\n",
    ),
    "x made empty by an allocation into it": (
        "torch_work",
        KERNEL.replace("    return y", "    torch.zeros((0, columns), dtype=x.dtype, out=x)\n    return y"),
    ),
    "a view that ends outside its tensor": (
        "not_from_a_kernel",
        KERNEL.replace(
            "    return y",
            "    t = torch.empty(2, dtype=x.dtype)\n"
            "    return t.as_strided((rows, columns), (columns, 1), t.storage_offset())",
        ),
    ),
    "a result made by other means": (
        "not_from_a_kernel",
        "import numpy as np\n"
        + KERNEL.replace("torch.empty_like(x)", "torch.from_numpy(np.empty((rows, columns), np.float32))"),
    ),
    "a list for the kernel to fill": (
        "exception",
        KERNEL.replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, SEEN: tl.constexpr").replace(
            "BLOCK=triton", "SEEN=[], BLOCK=triton"
        ),
    ),
    "a list for the kernel to find": (
        "out_of_place",
        KERNEL.replace("@triton.jit", "SEEN = {}\n\n\n@triton.jit").replace(
            "    y = numerator /",
            "    if BLOCK < 0:\n        SEEN[0] = str(x)\n    y = numerator /",
        ),
    ),
    "a kernel that raises what it saw": (
        "exception",
        KERNEL.replace(
            "@triton.jit", "@triton.jit\ndef look(x_ptr):\n    {}[tl.load(x_ptr)]\n\n\n@triton.jit"
        ).replace(
            "    return y",
            "    try:\n        look[(1,)](x)\n    except Exception:\n        pass\n    return y",
        ),
    ),
    "an object that says where its memory is": (
        "out_of_place",
        KERNEL + "\n\nclass At:\n    def __array_interface__(self):\n        return {}\n",
    ),
    "a tensor that answers for itself": (
        "wrong_return",
        HEAD + "class Y(torch.Tensor):\n    def data_ptr(self):\n        return 0\n\n\n"
        + KERNEL[KERNEL.index("@triton.jit"):].replace("    return y", "    return y.as_subclass(Y)"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("title", CHEATS)
def test_a_cheat_does_not_pass(title, tmp_path):
    mistake, text = CHEATS[title]
    PROBE.write_text("still here")
    (tmp_path / "answer.py").write_text(text)
    verdict = checking.judge("fused_softmax", str(tmp_path / "answer.py"), 1)
    assert (verdict.status in ("fail", "error"), verdict.mistake) == (True, mistake), verdict.message
    assert PROBE.read_text() == "still here"


FORGED = """import json
import os
import struct

verdict = {"status": "pass", "mistake": None, "parts": {}, "earned": [], "printed": "", "how": "forged",
           "lesson": "", "has_kernel": False, "runs_on_gpu": False, "kernels": []}
answer = json.dumps({"value": verdict}).encode()
for line in range(3, 64):
    try:
        if "socket" in os.readlink(f"/proc/self/fd/{line}"):
            os.write(line, struct.pack("<Q", len(answer)) + answer)
    except OSError:
        pass
"""


def test_the_verdict_cannot_be_written_by_the_answer(tmp_path):
    """The line on which the judge's verdict goes out is not open where the learner's code runs."""
    (tmp_path / "answer.py").write_text(FORGED)
    verdict = checking.judge("fused_softmax", str(tmp_path / "answer.py"), 1)
    assert (verdict.status, verdict.mistake) == ("error", "entry_missing"), verdict.message


@pytest.mark.parametrize("record", ["{}", "[]", "3", '{"kind": "ok"}', '{"kind": "ok", "value": [{}]}'])
def test_a_forged_record_does_not_pass(tmp_path, record):
    """What is written in place of the report may be anything; the check then says so, and passes nothing."""
    (tmp_path / "answer.py").write_text(
        f"import os, struct\ndata = {record.encode()!r}\n"
        "for line in range(3, 64):\n    try:\n"
        "        os.write(line, struct.pack('<Q', len(data)) + data)\n    except OSError:\n        pass\n"
        "os._exit(0)\n"
    )
    assert checking.judge("fused_softmax", str(tmp_path / "answer.py"), 1).status in ("error", "fail")


ODD_EXCEPTIONS = {
    "its text raises": "class E(Exception):\n    def __str__(self):\n        raise self\n\n\nerror = E()",
    "its text is no text": "class E(Exception):\n    def __str__(self):\n        return 3\n\n\nerror = E()",
    "its text is huge": "error = Exception('x' * (50 << 20))",
    "its own cause": "error = Exception('mine')\nerror.__cause__ = error",
    "causes that lie": "class E(Exception):\n    __cause__ = property(lambda self: 1 / 0)\n\n\n"
    "error = E('mine')",
    "called like Triton's": "class InterpreterError(Exception):\n    pass\n\n\n"
    "error = InterpreterError('mine')\nerror.__cause__ = error",
    "a class without a name": "class M(type):\n    __name__ = property(lambda self: 1 / 0)\n\n\n"
    "class E(Exception, metaclass=M):\n    pass\n\n\nerror = E('mine')",
    "no memory, it says": "class E(MemoryError):\n    def __str__(self):\n        raise self\n\n\n"
    "error = E()",
    "a line that is none": "error = SyntaxError('odd', (__file__, 'x', 1, 'y'))",
    "a number too long to write": "error = SystemExit(10 ** 9999)",
}  # fmt: skip


@pytest.mark.parametrize("title", ODD_EXCEPTIONS)
@pytest.mark.parametrize("name", ["fused_softmax", "count_traffic"])
def test_an_odd_exception_still_gets_a_message(title, name, tmp_path):
    entry = "fused_softmax(x)" if name == "fused_softmax" else "eager_traffic(m, n)"
    (tmp_path / "answer.py").write_text(f"{ODD_EXCEPTIONS[title]}\n\n\ndef {entry}:\n    raise error\n")
    verdict = checking.judge(name, str(tmp_path / "answer.py"), 1)
    said = ("exception", "memory", "exit", "syntax_error", "out_of_place")
    assert verdict.status in ("error", "fail") and verdict.mistake in said
    assert "checker itself failed" not in verdict.message and "could not run" not in verdict.message
    assert len(verdict.message) < 3000 and verdict.seconds < 12, verdict.message


def test_an_exception_whose_text_fails_is_reported():
    def function():
        raise type("E", (Exception,), {"__str__": lambda self: 1 / 0})()

    outcome = limits.isolate(function, seconds=20)
    assert (outcome.kind, outcome.value) == ("raised", "E: its text could not be read")


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


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder that counts as a checkout, with this one's solutions, and a file for three exercises."""
    (tmp_path / "exercises").mkdir()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "solutions").symlink_to(ROOT / "solutions")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(exercises, "names", lambda: ("copy_rows", "safe_softmax", "fused_softmax"))
    for name in exercises.names():
        (tmp_path / "exercises" / f"{name}.py").write_text(stubs.solution_text(name))
    return tmp_path


def queue(path):
    path.unlink()
    os.mkfifo(path)


def folder(path):
    path.unlink()
    path.mkdir()


def endless(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def huge(path):
    path.write_text("#" * (2 << 20))


@pytest.mark.parametrize("spoil", [queue, folder, endless, huge])
def test_grade_survives_unreadable_answer(checkout, spoil):
    spoil(checkout / "exercises" / "safe_softmax.py")
    verdicts = {v.exercise: v for v in grading.grade(seed=1)}
    assert (verdicts["safe_softmax"].status, verdicts["safe_softmax"].mistake) == ("error", "no_file")
    assert verdicts["copy_rows"].status == verdicts["fused_softmax"].status == "pass"


def test_junit_report_drops_characters_xml_forbids(checkout, tmp_path):
    text = 'def safe_softmax(x):\n    raise ValueError("odd \\ud800 \\ufffe \\x00 \\x1b[31m text")\n'
    (checkout / "exercises" / "safe_softmax.py").write_text(text)
    verdict = checking.check("safe_softmax", seed=1)
    verdict.html().encode(), verdict.plain().encode()
    report = grading.junit([verdict]).encode()
    assert b"odd" in report and ElementTree.fromstring(report).get("errors") == "1"


def test_one_answer_cannot_end_the_grading_of_others(checkout):
    """Not the judge above it, nor the server above that, from which all the others are forked."""
    killer = (
        "import os, signal\n"
        "judge = os.getppid()\n"
        "server = int(open(f'/proc/{judge}/stat').read().rpartition(')')[2].split()[1])\n"
        "for process in (server, judge):\n    try:\n        os.kill(process, signal.SIGKILL)\n"
        "    except Exception:\n        pass\n"
    )
    (checkout / "exercises" / "copy_rows.py").write_text(killer + stubs.solution_text("copy_rows"))
    verdicts = {v.exercise: v for v in grading.grade(seed=1)}
    assert verdicts["copy_rows"].status != "pass"
    assert verdicts["safe_softmax"].status == verdicts["fused_softmax"].status == "pass"


@pytest.mark.parametrize("text", ["[" * 100_000, '{"exercises": {"fused_softmax": {"attempts": 1e999}}}'])
def test_a_damaged_progress_file_is_set_aside(checkout, text):
    (checkout / progress.FILE).write_text(text)
    assert progress.of("fused_softmax") == progress.EMPTY
    assert len(list((checkout / "exercises").glob("*.damaged-*"))) == 1


def test_a_folder_in_place_of_the_progress_file_stops_no_check(checkout):
    (checkout / progress.FILE).mkdir()
    assert checking.check("fused_softmax", seed=1).status == "pass"
    assert progress.of("fused_softmax") == progress.EMPTY


def test_an_infinite_count_does_not_break_the_progress_file(tmp_path, monkeypatch):
    (tmp_path / "exercises").mkdir()
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path)
    (tmp_path / progress.FILE).write_text('{"exercises": {"fused_softmax": {"attempts": 1e999}}}')
    assert progress.of("fused_softmax") == progress.EMPTY


def test_json_in_a_terminal_without_unicode():
    command = [sys.executable, "-m", "course_kernels.lab", "check", "fused_softmax", "--json", "--file"]
    command.append(str(solution_file("fused_softmax")))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    answer = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert answer.returncode == 0 and answer.stdout.startswith("{"), answer.stderr


@pytest.fixture
def linked(tmp_path):
    """A checkout, and another way to it through a symbolic link."""
    real, link = tmp_path / "real", tmp_path / "link"
    for folder in ("exercises", "notebooks", "solutions"):
        (real / folder).mkdir(parents=True)
    for name in ("fused_softmax", "copy_rows"):
        (real / "solutions" / f"{name}.py").write_text(solution_file(name).read_text())
    link.symlink_to(real)
    return real, link


@pytest.mark.parametrize("stand", ["real", "link", "elsewhere"])
def test_solutions_are_closed_behind_a_symbolic_link(linked, stand, monkeypatch):
    """The solutions are closed by whichever way one stands in the checkout, and opens them."""
    real, link = linked
    monkeypatch.chdir({"real": real, "link": link, "elsewhere": ROOT}[stand])
    forkserver.stop()  # so that the servers stand there as well
    try:
        for file in (real / "exercises" / "answer.py", link / "exercises" / "answer.py"):
            for way in (real, link):
                wanted = way / "solutions" / "copy_rows.py"
                file.write_text(f"open({str(wanted)!r}).read()\n" + KERNEL)
                verdict = checking.judge("fused_softmax", str(file), 1)
                assert verdict.mistake == "answer_opened", f"{way} from {file}: {verdict.message}"
            file.write_text(KERNEL)
            verdict = checking.judge("fused_softmax", str(file), 1)
            assert verdict.status == "pass", verdict.message
    finally:
        forkserver.stop()


@pytest.mark.skipif(not landlock.available(), reason="this Linux has no Landlock")
def test_landlock_stops_what_goes_around_python(tmp_path):
    """Without Python's hook: no closed file read, none written, no program started, nobody signalled."""
    (tmp_path / "exercises").mkdir()
    answer = tmp_path / "exercises" / "answer.py"
    answer.write_text("mine")
    target = str(tmp_path / "written")

    def tried():
        closed = guard.closed_folders(str(answer))
        landlock.restrict(closed, [str(answer)], [], programs=False)
        done = []
        for title, attempt in {
            "read": lambda: solution_file("copy_rows").read_text(),
            "write": lambda: open(target, "w"),
            "own": lambda: open(answer, "w"),
            "make": lambda: os.mkdir(target),
            "remove": lambda: os.remove(answer),
            "start": lambda: subprocess.run([sys.executable, "-c", ""]),
            "signal": lambda: os.kill(os.getppid(), 0),
        }.items():
            try:
                attempt()
                done.append(title)
            except OSError:
                pass
        assert answer.read_text() == "mine" and (ROOT / "README.md").read_text()
        return done

    outcome = limits.isolate(tried, seconds=20)
    assert outcome.kind == "ok", outcome.value
    assert set(outcome.value) <= {"signal"}  # which Linux can stop since 6.12


IN_PLACE = """
import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Optional

import numpy as np
import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import nn
from triton.language.extra import libdevice

LOG2E: tl.constexpr = tl.constexpr(math.log2(math.e))
DEVICE = triton.runtime.driver.active.get_active_torch_device()


class Module(nn.Module):
    def __init__(self, scale: Optional[float] = None):
        super().__init__()
        self.scale = scale or torch.finfo(torch.float32).max
        self._kept = np.float32(np.inf)

    def forward(self, x: torch.Tensor):
        return F.relu(x) + x.sum(dim=-1, keepdim=True)


@dataclass
class Launch:
    block: int
    BLOCK = 64

    @classmethod
    def default(cls):
        return cls(Launch.BLOCK)

    @property
    def warps(self) -> int:
        self.asked = True
        return max(self.block // 32, 1)

    def twice(self) -> "Launch":
        return Launch(2 * self.block)


class Wide(Launch):
    def twice(self):
        return Wide(4 * self.block)


def describe(launch: Launch, others: list[Launch] = ()):
    if isinstance(launch, (Wide, Launch)) and type(launch) is not Wide:
        return Launch.default().twice()
    return f"{launch.__class__.__name__} {type(launch).__name__} {Launch.__name__}"


@triton.autotune(configs=[triton.Config({"BLOCK": 64}, num_warps=4)], key=["columns"])
@triton.jit
def kernel(x_ptr, columns, BLOCK: tl.constexpr):
    tl.store(x_ptr, libdevice.exp(tl.math.exp2(1.0) * LOG2E).to(x_ptr.dtype.element_ty))


def softmax(input, eps=1e-6):
    print("{} of {:.3f}".format(input.shape, eps), f"{type(input).__name__} {torch.__version__}")
    return partial(torch.empty_like, input)()


if __name__ == "__main__":
    import os

    print(os.getpid(), getattr(torch, "pi"))
"""


def test_ordinary_python_is_in_place():
    assert reader.out_of_place(IN_PLACE) is reader.out_of_place_in_kernels(IN_PLACE) is None
    for name in exercises.names():
        assert reader.out_of_place(stubs.solution_text(name)) is None, name
        for text in tools.right(name).values():  # judged without the compiler in a plain run
            assert reader.out_of_place_in_kernels(text) is None, text


HONEST = {
    "the environment": """
        import os
        from pathlib import Path

        os.environ["TRITON_PRINT_AUTOTUNING"] = "1"
        print(os.getenv("HOME"), os.environ.get("DEBUG"), os.path.join("a", "b"), Path(__file__).parent / "x")
    """,
    "logging and warnings": """
        import logging
        import warnings

        logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
        logging.getLogger(__name__).info("%s", 3)
        warnings.warn("slow", stacklevel=2)
    """,
    "a test at import": """
        import time

        start = time.perf_counter()
        x = torch.randn(4, 10)
        torch.testing.assert_close(fused_softmax(x), torch.softmax(x, dim=1))
        assert torch.allclose(fused_softmax(x), torch.softmax(x, dim=1)), time.perf_counter() - start
        assert fused_softmax(x.to(getattr(torch, "float16"))).dtype == torch.float16
    """,
    "plots": """
        import matplotlib.pyplot as plt
        from IPython.display import display

        figure, (left, right) = plt.subplots(1, 2)
        left.plot([1, 2], label="mine")
        plt.rcParams["figure.dpi"] = 100
        plt.show()
        display(figure)
    """,
    "decorators and counters": """
        import functools
        from collections import namedtuple

        def counted(function):
            @functools.wraps(function)
            def wrapper(x):
                wrapper.calls += 1
                return function(x)

            wrapper.calls = 0
            return wrapper

        fused_softmax = counted(fused_softmax)
        assert namedtuple("Shape", "rows columns")(2, 3)._replace(rows=4).rows == 4
    """,
    "classes": """
        from dataclasses import dataclass
        from enum import Enum, auto

        class Mode(Enum):
            FAST = auto()

        @dataclass
        class Launch:
            warps: int = 4

        class Plan:
            made = 0

            def __init__(self, shape):
                self.shape, self._rows, self.__columns = shape, *shape
                self.dtype, self.run, self.launch = torch.float32, None, Launch()
                Plan.made += 1

            @classmethod
            def of(cls, x):
                plan = cls(x.shape)
                plan.launch.warps = plan._rows + plan.__columns
                return plan

        class Softmax(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.columns = x.shape[1]
                return x * 2

            @staticmethod
            def backward(ctx, gradient):
                return gradient * ctx.columns

        plan = Plan.of(torch.empty(2, 3))
        assert plan.launch.warps == 5 and type(plan) is Plan and plan.__class__.__name__ == "Plan"
        assert isinstance(Plan, type) and Mode(1) is Mode.FAST and Plan.made == 1
        x = torch.ones(2, 3, requires_grad=True)
        Softmax.apply(x).sum().backward()
        assert x.grad.max() == 3
    """,
}


@pytest.mark.parametrize("title", HONEST)
def test_honest_code_beside_the_kernel_passes(title, tmp_path):
    (tmp_path / "answer.py").write_text(KERNEL + textwrap.dedent(HONEST[title]))
    verdict = checking.judge("fused_softmax", str(tmp_path / "answer.py"), 1)
    assert verdict.status == "pass", verdict.message


WRITES = """
k, y, x = softmax_kernel, print, torch.empty(1)

class A:
    def f(self, other=None):
        self.run = y

"""


@pytest.mark.parametrize(
    "line",
    [
        "def f(self): self.run = y\nf(k)",
        "A.f(k)",
        "class B:\n    def __init__(self): self.run = y\nB.__init__(k)",
        "b = A\nb.f(k)",
        "class B(A): pass\nB.f(k)",
        "type(A()).f(k)",
        "A().__class__.f(k)",
        "list(map(A.f, [k]))",
        "setattr(k, 'run', y)",
        "k.run += 1",
        "for k.run in [y]: pass",
        "del x.grad",
        "type(x).to = 3",
        "tl.tensor.to = 3",
        "x.__class__.to = 3",
        "tl.float32.name = y",
        "x._base",
        "k._hash",
        "getattr(x, '_base')",
        "getattr(k, '__class__').run = y",
        "getattr(torch, 'os')",
        "getattr(k, 'handle')",
        "getattr('{}', 'format')",
        "import functools; functools.wraps(A)(k)",
        "from functools import wraps\nw = wraps\nw(A)(k)",
        "from functools import update_wrapper\nupdate_wrapper(k, A)",
        "type('At', (), {})",
        "t = type\nt('At', (), {})",
        "type(type)('At', (), {})",
        "type(A)('At', (), {})",
        "class M(type): pass",
        "class K(type(k)): pass\nK.run = y\nK(lambda x: x).kept",
        "import enum\nclass E(enum.Enum): A = 1\nE('At', {})",
        "from enum import Enum\nE = Enum\nE('At', {})",
        "import enum; enum.EnumMeta",
    ],
)
def test_what_a_text_cannot_tell_is_refused_as_it_happens(line, tmp_path):
    (tmp_path / "answer.py").write_text(KERNEL + WRITES + line + "\n")
    session = Session(str(tmp_path / "answer.py"), "fused_softmax", 1)
    (facts,) = session.run([Case("plain", "random numbers", np.ones((2, 3), np.float32))])
    assert facts.error is not None, "nothing was refused"
    refused = (facts.error["rule"] or [""])[0] == "out_of_place"
    assert refused or facts.error["type"] in ("TypeError", "AttributeError"), facts.error


@pytest.mark.parametrize(
    "line",
    [
        "import os; os.listdir()",
        "import os; os.fork()",
        "from os import fork",
        "import os; os.environ._data.clear()",
        "from pathlib import Path; Path('/proc/self/mem').open('rb')",
        "from pathlib import Path; Path('/proc/self/maps').read_text()",
        "import logging; logging.currentframe()",
        "import logging; logging.Formatter('{msg.__globals__}', style='{')",
        "import unittest; unittest.defaultTestLoader.loadTestsFromName('os.abort')",
        "import argparse; argparse.ArgumentParser()",
        "import timeit; timeit.timeit('import gc')",
        "import types; types.FunctionType",
        "import traceback; traceback.walk_tb",
        "import io; io.open",
        "import abc; abc.ABCMeta",
        "import torch\ndef getattr(x, name): return x\ngetattr(torch, 'os').os",
        "import triton\n@triton.jit\ndef k(x):\n    x._value",
        "import triton\n@triton.jit\ndef k(x):\n    x.to = 3",
        "import os as o\nprint(o)",
        "import sys; sys.modules",
        "import subprocess",
        "import triton\ntl = triton.language\ndef f(tl): return tl",
        "import triton\ntl = triton.language\nprint(tl)",
        "import triton\nt = triton",
        "import triton\nk = triton.knobs",
        "x.__class__ = y",
        "def f(self): self.__class__ = y",
        "import abc; abc.ABCMeta('At', (), {})",
        "import enum; enum.EnumMeta.mro()",
        "class A:\n    @property\n    def __array_interface__(self): pass",
        "class A:\n    def __torch_function__(self): pass",
        "import contextlib; contextlib.redirect_stdout(x)",
        *(
            "import triton\nimport triton.language as tl\nfrom functools import partial\nSEEN = {}\n" + lines
            for lines in (
                "@triton.jit\ndef k(x):\n    global SEEN",
                "@triton.jit\ndef k(x):\n    SEEN[0] = x",
                "@triton.jit\ndef k(x):\n    s = SEEN\n    s |= {0: x}",
                "@triton.jit\ndef k(x):\n    max(x, 0, key=SEEN.get)",
                "@triton.jit\ndef k(x):\n    str(x)",
                "def f(x): SEEN[0] = x\n@triton.jit\ndef k(x):\n    f(x)",
                "def f(x): SEEN[0] = x\nk = triton.jit(f)",
                "jit = triton.jit",
                "@triton.jit\n@partial\ndef k(x): pass",
                "def make(seen):\n    @triton.jit\n    def k(x):\n        seen.append(x)\n    return k",
                "LOG = SEEN.append\n@triton.jit\ndef k(x):\n    LOG(x)",
                "def print(x): SEEN[0] = x\n@triton.jit\ndef k(x):\n    print(x)",
                "def f():\n    global abs\n    abs = SEEN.get\n@triton.jit\ndef k(x):\n    abs(x)",
                "def make(abs):\n    @triton.jit\n    def k(x):\n        abs(x)\n    return k",
                "abs = 1\ndef make(abs):\n    @triton.jit\n    def k(x):\n        abs[0] = x\n    return k",
                "N = 1\ndef f():\n    global N\n    N = SEEN\n@triton.jit\ndef k(x):\n    N[0] = x",
                "from math import exp\nexp = SEEN.get\n@triton.jit\ndef k(x):\n    exp(x)",
                "for abs in [SEEN.get]: pass\n@triton.jit\ndef k(x):\n    abs(x)",
            )
        ),
        "from torch import os",
        "import torch; torch.os",
        "import torch; torch.utils._python_dispatch",
        "import torch; torch.UntypedStorage.from_file('x')",
        "import torch; torch.nn.functional.torch.os",
        "import numpy as np; np.ctypeslib",
        "import triton; triton.knobs",
        "import triton; triton.runtime.interpreter",
        "from triton.runtime import interpreter",
        "import triton.language as tl; tl.core.wraps",
        "import triton.language as tl; tl.core.builtin",
        "import triton; triton.constexpr_function",
        "import typing; typing.get_type_hints",
        "from torch import *",
        "from . import x",
        "x.handle",
        "(y for y in x).gi_frame",
        "__builtins__",
        "f.format(x)",
        "match x:\n    case D(y): pass",
        "def f():\n    global __name__",
        "__name__ = '__main__'",
        "if __name__ == '__main__':\n    pass\nelse:\n    import subprocess",
    ],
)
def test_text_that_leads_around_the_check_is_refused(line):
    assert reader.out_of_place(line) or reader.out_of_place_in_kernels(line)
