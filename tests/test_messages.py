"""What a beginner's exceptions are told as: the mistake, the line to fix, and what to write.

Each row is the solution of fused_softmax with a few lines changed.
"""

import ast
import json
import re

import pytest
import triton

from course_kernels.lab import checking, exercises, lesson
from course_kernels.lab.check import errors, source
from course_kernels.lab.check.errors import translate
from course_kernels.lab.core import wording
from course_kernels.lab.exercises import stubs
from course_kernels.lab.run import forkserver
from tests.answers import tools

KERNEL = "fused_softmax"
MAX = "tl.max(x, axis=0)"
SUM = "tl.sum(numerator, axis=0)"
LOAD = 'x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf"))'
CAST = "    x = x.to(tl.float32)\n"
STORE = "tl.store(y_ptr + row * y_stride + column, y, mask=mask)"
LAUNCH = "softmax_kernel[(rows,)]("
IMPORT = "import torch\n"
NEWEST = tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 9)
TAKEN_SINCE_3_9 = {"numpy", "a method", "two comparisons"}


def imported(module):
    return (IMPORT, f"import {module}\nimport torch\n")


# title: (mistake, what stands on the line that the message names, a phrase of the message, edits)
INTERPRETED = {
    "axis 1": ("axis", "axis=1", "Write axis=0 in tl.max", [(MAX, "tl.max(x, axis=1)")]),
    "axis 1 of a sum": ("axis", "axis=1", "tl.sum", [(SUM, "tl.sum(numerator, axis=1)")]),
    "dim": ("keyword_name", "dim=0", "Write axis=0", [(MAX, "tl.max(x, dim=0)")]),
    "keepdim": ("keyword_name", "keepdim", "keep_dims", [(MAX, "tl.max(x, axis=0, keepdim=True)")]),
    "mask in a sum": ("keyword_name", "0, mask=mask)", "no mask", [(SUM, "tl.sum(numerator, 0, mask=mask)")]),
    "a mask for an axis": ("sum_reduces", "numerator, mask", "axis=0", [(SUM, "tl.sum(numerator, mask)")]),
    "max of two tiles": ("max_reduces", "tl.max(x, x)", "tl.maximum(a, b)", [(MAX, "tl.max(x, x)")]),
    "max of a number": ("max_reduces", "tl.max(0.0", "tl.maximum(a, b)", [(MAX, "tl.max(0.0, x)")]),
    "max of numbers": (
        "not_a_tile",
        "tl.max(m",
        "tl.maximum(a, b)",
        [("    numerator =", f"    m = {MAX}\n    numerator ="), (f"x - {MAX}", "x - tl.max(m, 0)")],
    ),
    "math": ("python_math", "math.exp", "Write tl.exp.", [imported("math"), ("tl.exp(", "math.exp(")]),
    "numpy": ("python_math", "np.exp", "Write tl.exp.", [imported("numpy as np"), ("tl.exp(", "np.exp(")]),
    "numpy's max": (
        "python_math",
        "np.max",
        "tl.max(x, axis=0)",
        [imported("numpy as np"), (MAX, "np.max(x)")],
    ),
    "torch": ("torch_in_kernel", "torch.exp", "Write tl.exp.", [("tl.exp(", "torch.exp(")]),
    "torch's max": ("torch_in_kernel", "torch.max", "tl.max(x, axis=0)", [(MAX, "torch.max(x)")]),
    "torch's dtype": ("torch_dtype", "torch.float32", "tl.float32", [("tl.float32", "torch.float32")]),
    "a method": (
        "torch_method",
        ".exp()",
        "Write tl.exp",
        [("tl.exp(x - tl.max(x, axis=0))", f"(x - {MAX}).exp()")],
    ),
    "float()": ("torch_method", "x.float()", ".to(tl.float32)", [("x.to(tl.float32)", "x.float()")]),
    "Python's max": ("python_reduction", "- max(x)", "tl.max(x, axis=0)", [(MAX, "max(x)")]),
    "Python's sum": ("python_reduction", "/ sum(", "tl.sum(numerator, axis=0)", [(SUM, "sum(numerator)")]),
    "a pointer indexed": ("indexed", "x_ptr[", "tl.load(", [(LOAD, "x = x_ptr[row * x_stride + column]")]),
    "a store indexed": ("indexed", "y_ptr[", "tl.store(", [(STORE, "y_ptr[row * y_stride + column] = y")]),
    "a tile cut": ("indexed", "[:columns]", "mask", [("/ tl.sum(", "[:columns] / tl.sum(")]),
    "no grid": (
        "kernel_called",
        "softmax_kernel(y,",
        "softmax_kernel[(programs,)]",
        [(LAUNCH, "softmax_kernel(")],
    ),
    "no jit": ("jit_missing", "def softmax_kernel", "@triton.jit", [("@triton.jit\n", "")]),
    "no jit and no grid": (
        "jit_missing",
        "def softmax_kernel",
        "@triton.jit",
        [("@triton.jit\n", ""), (LAUNCH, "softmax_kernel(")],
    ),
    "a number for a grid": ("grid_not_tuple", "[rows](", "[(rows,)]", [("[(rows,)]", "[rows]")]),
    "brackets, no comma": ("grid_not_tuple", "[(rows)](", "[(rows,)]", [("[(rows,)]", "[(rows)]")]),
    "a fraction of a grid": ("grid_not_whole", "rows / 1", "triton.cdiv", [("[(rows,)]", "[(rows / 1,)]")]),
    "store exchanged": (
        "store_arguments",
        "tl.store(y,",
        "address first",
        [(STORE, "tl.store(y, y_ptr + row * y_stride + column, mask=mask)")],
    ),
    "whole division": (
        "floor_division",
        "//",
        "Write / in place of //",
        [("numerator / tl", "numerator // tl")],
    ),
    "addresses stored": (
        "pointer_value",
        "tl.store",
        "Load first",
        [(STORE, "tl.store(y_ptr + row * y_stride + column, x_ptr + row * x_stride + column, mask=mask)")],
    ),
    "nothing loaded": (
        "pointer_value",
        "x.to(",
        "Load first",
        [(LOAD, "x = x_ptr + row * x_stride + column")],
    ),
    "arange of columns": (
        "not_constexpr",
        "tl.arange(0, columns)",
        "Use BLOCK",
        [("(0, BLOCK)", "(0, columns)")],
    ),
    "a plain BLOCK": (
        "not_constexpr",
        "def softmax_kernel",
        "BLOCK: tl.constexpr",
        [("BLOCK: tl.constexpr", "BLOCK")],
    ),
    "arange of three": (
        "arange_not_power_of_two",
        "tl.arange",
        "next_power_of_2",
        [("triton.next_power_of_2(", "3 * (")],
    ),
    "arange of one": ("tl_arguments", "tl.arange(BLOCK)", "tl.arange(0, BLOCK)", [("(0, BLOCK)", "(BLOCK)")]),
    "a tile to one address": (
        "scalar_address",
        "tl.store",
        "+ column",
        [(STORE, "tl.store(y_ptr + row * y_stride, y)")],
    ),
    "a place for a mask": (
        "scalar_address",
        "tl.load(x_ptr,",
        "Add the place",
        [(LOAD, "x = tl.load(x_ptr, row * x_stride + column, mask)")],
    ),
    "a variable of a branch": (
        "unset_variable",
        "x = a",
        "before that loop or branch",
        [(CAST, CAST + "    if columns < 0:\n        a = x\n    x = a\n")],
    ),
    "a misspelt function": ("exception", "tl.expp", "Did you mean tl.exp?", [("tl.exp(", "tl.expp(")]),
    "a torch name": ("exception", "tl.amax", "Did you mean tl.max?", [("tl.max(", "tl.amax(")]),
    "a function without tl": ("exception", "= exp(", "Write tl.exp.", [("tl.exp(", "exp(")]),
    "a misspelt variable": ("exception", "numerater", "`numerator`", [("numerator /", "numerater /")]),
    "tl.inf": ("exception", "tl.inf", 'float("inf")', [('float("inf")', "tl.inf")]),
    "no BLOCK": (
        "launch_arguments",
        "x.stride(0), columns)",
        "Add BLOCK=",
        [(", BLOCK=triton.next_power_of_2(columns))", ")")],
    ),
    "a misspelt BLOCK": ("launch_arguments", "BLOK=", "Write BLOCK=", [("BLOCK=triton", "BLOK=triton")]),
    "an argument missing": (
        "launch_arguments",
        "y.stride(0), columns, BLOCK",
        "x_stride",
        [("x.stride(0), columns", "columns")],
    ),
    "an argument too many": (
        "launch_arguments",
        "columns, rows",
        "too many",
        [("x.stride(0), columns", "x.stride(0), columns, rows")],
    ),
    "a stride without brackets": (
        "stride_not_called",
        "x.stride, columns",
        "x.stride(0)",
        [("x.stride(0), columns", "x.stride, columns")],
    ),
    "an argument of the entry": (
        "exception",
        None,
        "stub's `def`",
        [("fused_softmax(x)", "fused_softmax(x, eps)")],
    ),
    "a stride in the kernel": (
        "pointer_has_no_shape",
        ".stride(0)",
        "argument",
        [("row * x_stride", "row * x_ptr.stride(0)")],
    ),
    "a power": ("power", "**", "tl.exp(x)", [("tl.exp(x - tl.max(x, axis=0))", f"2.718 ** (x - {MAX})")]),
}
# The interpreter lets these pass, and the compiler does not: the mistake is "compile".
COMPILED = {
    "print": ("print(x)", "tl.device_print", [(STORE, f"print(x)\n    {STORE}")]),
    "a variable of a loop": (
        "x = a",
        "before that loop",
        [(CAST, CAST + "    for i in range(0, columns):\n        a = x\n    x = a\n")],
    ),
    "from int to float": (
        "d = 0",
        "Write d = 0.0.",
        [
            ("    y = ", f"    d = 0\n    for i in range(0, 1):\n        d += {SUM}\n    y = "),
            (f"/ {SUM}", "/ d"),
        ],
    ),
    "from number to tile": (
        "d = 0.0",
        "tl.zeros",
        [
            ("    y = ", "    d = 0.0\n    for i in range(0, 1):\n        d += numerator\n    y = "),
            (f"/ {SUM}", "/ tl.sum(d, axis=0)"),
        ],
    ),
    "math not imported": ("math.inf", 'float("inf")', [('float("inf")', "math.inf")]),
    "if on a tile": ("if x > 0", "tl.where", [(CAST, CAST + "    if x > 0:\n        x = x\n")]),
    "an import in a kernel": ("import math", "Remove the line", [(CAST, CAST + "    import math\n")]),
    "a list that grows": (
        "tiles.append",
        "running",
        [(CAST, CAST + "    tiles = []\n    tiles.append(x)\n")],
    ),
    "item()": ("columns.item()", "Leave .item() out", [("< columns", "< columns.item()")]),
    "two comparisons": ("0 <= column", "(a <= b) & (b < c)", [("mask = column", "mask = 0 <= column")]),
    "int()": ("int(columns)", "Leave int() out", [("< columns", "< int(columns)")]),
    "a global": (
        "y = EPS",
        "tl.constexpr",
        [("@triton.jit\n", "EPS = 0.0\n\n\n@triton.jit\n"), ("y = num", "y = EPS + num")],
    ),
    "numpy on numbers": (
        "np.ones",
        "triton.language",
        [imported("numpy as np"), ("y = num", "y = float(np.ones(1)[0]) * num")],
    ),
    "a keyword too many": ("rows=rows", "Leave rows= out", [("BLOCK=triton", "rows=rows, BLOCK=triton")]),
    "a helper without jit": (
        "def halved",
        "@triton.jit",
        [
            ("@triton.jit\n", "def halved(x):\n    return x * 1.0\n\n\n@triton.jit\n"),
            ("y = num", "y = halved(1.0) * num"),
        ],
    ),
}


def edited(edits):
    text = stubs.solution_text(KERNEL)
    for old, new in edits:
        assert old in text, f"{old!r} is not in the solution"
        text = text.replace(old, new, 1)
    return text


def judged(tmp_path, text, name=KERNEL, **options):
    path = tmp_path / "answer.py"
    path.write_text(text)
    job = {"name": name, "path": str(path), "seed": 1} | options
    return forkserver.submit("interpret", "course_kernels.lab.exercises.jobs:judge_file", **job).result(60)


def assert_told(parts, text, on_line, phrase):
    """The message names the line that holds `on_line`, and says `phrase`."""
    message = "\n".join(parts.values())
    assert phrase in message, message
    assert "Fix that line" not in message and "numpy calls, an `if`" not in message
    if on_line is not None:
        number = next(n for n, line in enumerate(text.splitlines(), 1) if on_line in line)
        assert re.search(rf"(At|is) line {number}: `", parts["case"]), parts["case"]


def skip_where_triton_takes_it(title):
    if title in TAKEN_SINCE_3_9 and NEWEST:
        pytest.skip("Triton takes this since 3.9")


@pytest.mark.versions
@pytest.mark.parametrize("title", INTERPRETED)
def test_an_exception_is_told_with_its_line_and_a_next_step(tmp_path, title):
    skip_where_triton_takes_it(title)
    mistake, on_line, phrase, edits = INTERPRETED[title]
    text = edited(edits)
    report = judged(tmp_path, text)
    assert (report["status"], report["mistake"]) == ("error", mistake), report["parts"]
    assert_told(report["parts"], text, on_line, phrase)


@pytest.mark.versions
@pytest.mark.parametrize("title", COMPILED)
def test_a_rejected_kernel_is_told_with_its_line_and_a_next_step(tmp_path, title):
    skip_where_triton_takes_it(title)
    on_line, phrase, edits = COMPILED[title]
    text = edited(edits)
    path = tmp_path / "answer.py"
    path.write_text(text)
    verdict = checking.judge(KERNEL, str(path), 1)
    assert (verdict.status, verdict.mistake) == ("fail", "compile"), verdict.message
    assert_told(verdict.parts, text, on_line, phrase)
    assert "T4" not in verdict.message, "it fails on every GPU alike"


def test_a_statement_over_several_lines_is_read_whole(tmp_path):
    text = edited([(MAX, "tl.max(\n        x,\n        axis=1,\n    )")])
    report = judged(tmp_path, text)
    assert report["mistake"] == "axis" and "tl.max" in report["parts"]["what"]


def test_an_unknown_text_is_shown_as_it_is():
    assert translate("ValueError: something that nobody foresaw", 1, "x = 1\n") is None


BROKEN = """
class Silent(Exception):
    def __str__(self):
        raise ValueError("no text")


def fused_softmax(x):
    raise Silent
"""


def test_silent_and_loud_exceptions_are_shown_safely(tmp_path):
    report = judged(tmp_path, BROKEN)
    assert report["mistake"] == "exception" and "At line 8" in report["parts"]["case"]
    line = "raise ValueError('\\x1b[31mred\\x07 and\\tthe rest')  # " + "long " * 60
    loud = f"def fused_softmax(x):\n    {line}\n"
    report = judged(tmp_path, loud)
    message = "\n".join(report["parts"].values())
    assert "red and the rest" in message and "\x1b" not in json.dumps(report)
    assert "long " * 30 not in message and "…`" in message


def test_warnings_are_not_what_the_code_printed(tmp_path):
    warn = "    import warnings\n\n    warnings.warn('look here')\n    y = torch"
    text = edited([(CAST, CAST + "    z = tl.log(x * 0.0 - 1.0)\n"), ("    y = torch", warn)])
    report = judged(tmp_path, text)
    assert report["status"] == "pass", report["parts"]
    assert "arning" not in report["printed"]


def test_a_pass_shows_its_prints_and_what_they_cost(tmp_path):
    path = tmp_path / "answer.py"
    path.write_text(edited([(STORE, f'tl.device_print("x", x)\n    {STORE}')]))
    verdict = checking.judge(KERNEL, str(path), 1)
    assert verdict.status == "pass", verdict.message
    assert "<details>" in verdict.html() and "Your code printed" in verdict.plain()
    assert "costs registers" in verdict.html() and "line 17" in verdict.plain()
    host = "import triton\n\n\n@triton.jit\ndef kernel():\n    pass\n\n\ndef f():\n    print('host')\n"
    assert source.prints_in_kernel(host) is None


def test_a_stub_is_said_once(tmp_path):
    path = tmp_path / "answer.py"
    path.write_text(stubs.stub(KERNEL))
    text = checking.judge(KERNEL, str(path), 1).plain()
    assert text.count("not done yet") == 1 and "interpreter" not in text


def test_a_figure_says_how_it_was_got(monkeypatch):
    monkeypatch.setattr(lesson, "_predictions", {})
    lesson.predict("k", "How many?", 5)
    assert "published ÷ predicted" in lesson.compare("k", 20, how="published").plain()
    assert "The published figure is 4 times" in lesson.compare("k", 20, how="published").verdict
    assert "measured ÷ predicted" in lesson.compare("k", 20, how="measured").plain()
    assert "computed ÷ predicted" in lesson.compare("k", 20).plain(), "nothing was measured"


# (exercise, a kept wrong answer, the part of the message, what must stand there, what must not)
TOLD = [
    ("fused_softmax", "not divided", "case", "float32, cut from row 0 of: random numbers", None),
    ("fused_softmax", "x made float16", "case", "expected [", r"expected (\[.*\])\n  got      \1"),
    ("fused_softmax", "1e-6 added", "case", "expected [", r"expected (\[.*\])\n  got      \1"),
    ("fused_softmax", "padding with nothing", "why", "Here they hold NaN", "puts 0"),
    ("fused_softmax", "half the grid", "what", "A row of y was never written: row 2 of 3.", None),
    ("fused_softmax", "a grid of one", "what", "Rows of y were never written: rows 1 and 2 of 3.", None),
    ("fused_softmax", "a grid of one", "why", "The grid was (1,).", "grids"),
    ("fused_softmax", "x.stride(1) for x", "what", "x.stride(1) is passed", "as it is"),
    ("fused_softmax", "y.stride(1) for y", "next", "Pass y.stride(0)", "row times"),
    ("fused_softmax", "numerators parked in the output", "what", "elements of y are read back", "arithmetic"),
    ("fused_softmax", "the values of tl.where exchanged", "next", "tl.where(mask, x, -float('inf'))", "tile"),
    ("fused_softmax", "reads the row twice", "why", "elements loaded", None),
    ("online_stats", "a guard that skips NaN", "case", "NaN", None),
    ("online_stats", "a guard that skips NaN", "next", "use 0 where the maximum is −∞", "Remove"),
    ("online_stats", "m is a tile", "next", "reduce the tile first: tl.max(m, axis=0)", None),
    ("tiled_softmax", "a late NaN made 0", "case", "NaN", None),
    ("tiled_softmax", "two launches", "next", "in a single launch", "Two walks"),
    ("tiled_softmax", "an all −inf row made 0", "next", "Remove the tl.where", "Likely line"),
    ("split_softmax", "each chunk on its own", "what", "chunk", r"\btile"),
    ("split_softmax", "each chunk on its own", "next", "In the second launch", "walk"),
    ("split_softmax", "scratch lanes not masked", "what", "the tensor given as m_ptr", "scratch"),
    ("split_softmax", "stored at the chunk", "what", "the tensor given as m_ptr", "scratch"),
    ("split_softmax", "no other= for the sums", "what", "the tensor given as d_ptr has a mask", "scratch"),
    ("split_softmax", "no other= for the chunks", "what", "m_ptr and that from", "scratch"),
    ("split_softmax", "three reads, with atomics", "why", "in 3 launches", "There were"),
    ("safe_softmax", "nothing returned", "what", "returns nothing", "NoneType"),
    ("safe_softmax", "a numpy array returned", "what", "returns a NumPy array", "ndarray"),
    ("online_merge", "math.exp", "next", "tl.exp", "kin"),
    ("count_traffic", "no terms in m", "what", "the reads hold no term in m", "none"),
    ("break_padding", "just too large", "why", "no more than the roundings of a right", "float32 can tell"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "title", "part", "said", "unsaid"), TOLD)
def test_a_wrong_answer_is_told_in_these_words(tmp_path, name, title, part, said, unsaid):
    report = judged(tmp_path, tools.wrong_text(name, title), name)
    told = report["parts"][part]
    assert said in told, report["parts"]
    assert unsaid is None or not re.search(unsaid, told), told


# title: (exercise, mistake, the part of the message, what stands there, what must not, edits of the solution)
OWN = {
    "Python's max on a tensor": (
        "safe_softmax", "python_reduction", "next", "x.amax(dim=1, keepdim=True)", r"tl\.",
        [("x.amax(dim=1, keepdim=True)", "max(x)")],
    ),
    "a maximum for each lane": (
        "online_stats", "scalar_address", "next", "tl.max(m, axis=0)", "y_stride|zeros",
        [("tl.maximum(m, tl.max(x, axis=0))", "tl.maximum(m, x)")],
    ),
    "a store to the pointer alone": (
        KERNEL, "scalar_address", "next", "tl.store(y_ptr + row * y_stride + column, …)", "x_ptr",
        [(STORE, "tl.store(y_ptr, y)")],
    ),
    "a store exchanged, other names": (
        KERNEL, "store_arguments", "next", "tl.store(out + line * out_stride + lane, y, mask=inside)", "y_",
        [(STORE, "tl.store(y, y_ptr + row * y_stride + column, mask=mask)"), ("column", "lane"),
         ("lanes", "columns"), ("y_ptr", "out"), ("y_stride", "out_stride"), ("row", "line"),
         ("mask", "inside"), ("inside=", "mask=")],
    ),
    "a number where its constexpr belongs": (
        "split_softmax", "not_constexpr", "next", "such as CHUNKS.", None,
        [("tl.arange(0, CHUNKS)", "tl.arange(0, chunks)")],
    ),
    "a tile of 200": (
        "online_stats", "arange_not_power_of_two", "next", "TILE=256, a power of two of at most 256", "up",
        [("256", "200")],
    ),
    "a function of another exercise": (
        "online_stats", "exception", "next", "Define `merge` in this file", "a value",
        [("new_m = tl.maximum(m, tl.max(x, axis=0))", "new_m, d = merge(m, d, tl.max(x, axis=0), 1.0)")],
    ),
    "whole numbers into exp": (
        KERNEL, "whole_numbers", "case", "The line to fix is line 14: `x = x.to(tl.int32)`", None,
        [("x.to(tl.float32)", "x.to(tl.int32)")],
    ),
    "a product without its sign": (
        "count_traffic", "syntax_error", "next", "5 * m * n", None,
        [("return reads, writes", "return 5mn + 2m, 3mn + 2m")],
    ),
    "a product of letters": (
        "count_traffic", "exception", "next", "m * n", "Did you mean",
        [("return reads, writes", "return 5 * mn, 3 * mn")],
    ),
}  # fmt: skip


@pytest.mark.parametrize("title", OWN)
def test_advice_is_made_of_the_learners_names_and_the_exercises_limits(tmp_path, title):
    name, mistake, part, said, unsaid, edits = OWN[title]
    text = stubs.solution_text(name)
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    report = judged(tmp_path, text, name)
    assert report["mistake"] == mistake, report["parts"]
    told = report["parts"][part]
    assert said in told and (unsaid is None or not re.search(unsaid, told)), report["parts"]


def test_a_number_that_becomes_a_tile_is_told_what_to_start_as():
    text = stubs.solution_text("online_stats")
    line = next(n for n, source in enumerate(text.splitlines(), 1) if "tl.maximum" in source)
    for name, start in (
        ("m", 'm = tl.full([TILE], -float("inf"), tl.float32)'),
        ("d", "d = tl.zeros([TILE]"),
    ):
        said = f"Loop-carried variable {name} has initial type fp32 but is re-assigned to <['256'], fp32> in "
        said += "loop"
        assert start in translate(said, line, text).next


def test_a_timeout_is_told_by_what_the_file_holds():
    def told(text):
        why, advice = errors.slow(source.Source(text))
        return f"{why} {advice}"

    assert "line 2: `while True:`" in told("def f(x):\n    while True:\n        pass\n")
    launch = "@triton.jit\ndef k(x):\n    pass\n\n\ndef f(x):\n    k[(x.numel(),)](x)\n"
    assert "line 7" in told(launch) and "one after another" in told(launch) and "loop" not in told(launch)
    assert "loop" not in told("def f(x):\n    time.sleep(60)\n")


def test_a_file_without_a_line_is_called_empty(tmp_path):
    path = tmp_path / "answer.py"
    path.write_text("\n")
    verdict = checking.judge(KERNEL, str(path), 1)
    assert verdict.status == "todo" and "empty" in verdict.message and "stub" not in verdict.message


def code_in(text):
    """The calls of dotted names, and the statements that hold them, in a text."""
    for found in re.finditer(r"(?:return |\b\w+ = )?\b(?:tl|torch|triton|np|x|numerator)\.\w+\(", text):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        yield text[found.start() : end].removeprefix("return ")


@pytest.mark.parametrize("name", exercises.names())
def test_code_in_hints_and_lessons_can_be_pasted(name):
    exercise = exercises.get(name)
    for text in (*(hint.text for hint in exercise.hints), exercise.lesson):
        for code in code_in(text):
            assert code.isascii(), code
            ast.parse(code)


MANY = re.compile(
    r"(?<![\d.,×−-] )(?<![\d.,])\b1 (elements|launches|rows|columns|lanes|programs|reads|stores)\b"
)


@pytest.mark.parametrize("name", ["copy_rows", "tiled_softmax", "split_softmax"])
def test_a_count_of_one_has_a_singular_noun(tmp_path, name):
    """Over the answers that are refused for what they move or where they reach."""
    counted = "extra_loads extra_stores extra_launches extra_scratch rows_unwritten out_of_bounds load_mask"
    counted += " input_overwritten store_mask grid_axes_exchanged"
    titles = [
        title for title in tools.titles(name, "wrong") if tools.expected(name, title) in counted.split()
    ]
    assert len(titles) >= 4
    for title in titles:
        message = "\n".join(judged(tmp_path, tools.wrong_text(name, title), name)["parts"].values())
        assert not MANY.search(message) and "scratch 1" not in message, message


STEP = "range(0, columns, TILE)"
ONE_BY_ONE = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(y_ptr, x_ptr, ys, xs, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    for i in range(columns):
        m = tl.maximum(m, tl.load(x_ptr + row * xs + i).to(tl.float32))


def tiled_softmax(x):
    y = torch.empty_like(x)
    while True:
        kernel[(x.shape[0],)](y, x, y.stride(0), x.stride(0), x.shape[1], TILE=1024)
"""


def test_a_timeout_names_the_loop_without_a_step(tmp_path):
    text = stubs.solution_text("tiled_softmax").replace(STEP, "range(0, columns)")
    report = judged(tmp_path, text, "tiled_softmax", seconds=3)
    assert report["mistake"] == "timeout"
    assert "for start in range(0, columns):" in report["parts"]["why"]
    assert "the step is missing: range(0, columns, TILE)" in report["parts"]["next"]
    report = judged(tmp_path, ONE_BY_ONE, "tiled_softmax", seconds=2)
    assert report["mistake"] == "timeout"
    assert "i + tl.arange(0, TILE)" in report["parts"]["next"], report["parts"]


def test_numbers_are_written_with_their_nouns():
    assert [wording.count(n, "row") for n in (0, 1, 2, 1024)] == ["0 rows", "1 row", "2 rows", "1,024 rows"]
    assert wording.count(1, "launch", "launches") == "1 launch"
    assert wording.which("row", [3]) == "row 3"
    assert wording.which("row", [1, 2]) == "rows 1 and 2"
    assert wording.which("row", range(9)) == "rows 0, 1, 2, 3, 4 and 4 more"
    one, two = {"grid": (3, 1, 1)}, {"grid": (3, 2, 1)}
    assert wording.grids([one]) == "The grid was (3,)."
    assert wording.grids([one, two]) == "The grids were (3,), then (3, 2)."
    assert wording.numbers([1.0, -1e-5, float("nan"), -float("inf")]) == "[1, −1e−05, NaN, −∞]"
    assert wording.numbers([1 + 2**-20], digits=9) == "[1.00000095]"


def test_a_pass_counts_stores_by_the_row_where_there_are_few(tmp_path):
    earned = "\n".join(judged(tmp_path, stubs.solution_text("online_stats"), "online_stats")["earned"])
    assert "1 load for each element, 2 stores for each row, 1 launch." in earned
