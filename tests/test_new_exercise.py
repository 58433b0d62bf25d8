"""A new exercise: the command's files work as they are, and generic mistakes are named in its own words."""

import json
import subprocess
import sys

import pytest

from course_kernels.lab import exercises
from course_kernels.lab.check import bounds, cost, generic, running, written
from tests.answers import tools

# What a contributor changes in the files of a new exercise, from a row's sum to its maximum.
NAN = "tl.sum(tl.where(x == x, 0.0, x), axis=0)"  # tl.max leaves a NaN out
SOLUTION = {"other=0.0": 'other=-float("inf")', "tl.sum(x, axis=0)": f"tl.max(x, axis=0) + {NAN}"}
EXERCISE = {
    ".sum(axis=1)\n\n\ndef": ".max(axis=1)\n\n\ndef",
    "return rounding * x.sum(axis=1)": "return 0 * x.sum(axis=1)",
    "fill=0.0": "fill=-np.inf",
}
X = 'x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf")).to(tl.float32)'
Y = f"tl.store(y_ptr + row, tl.max(x, axis=0) + {NAN})"
FILL = 'other=-float("inf")'
LAUNCH = "row_kernel[(rows,)](y, x, x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))"
TILED = LAUNCH.replace("triton.next_power_of_2(columns)", "32")


def walk(step, columns="range(0, columns, BLOCK)", start='-float("inf")'):
    """A walk in tiles in place of the load and the store."""
    load = X.replace("+ column, ", "+ start + column, ").replace(
        "column < columns", "start + column < columns"
    )
    loop = f"m = {start}\n    for start in {columns}:\n        {load}\n        {step}"
    return [(X, loop), (Y, "tl.store(y_ptr + row, m)"), (LAUNCH, TILED)]


VALUES = "tl.where(column < columns, x, 0.0)"


def store(value):
    """Another value in place of the maximum."""
    return [(Y, f"tl.store(y_ptr + row, {value})")]


KEEP = f"m = tl.maximum(m, tl.max(x, axis=0)) + {NAN}"
WRONG = {
    "padding with 0": ("padding_zero", [(FILL, "other=0.0")]),
    "padding with -100": ("padding_finite", [(FILL, "other=-100.0")]),
    "padding with nothing": ("padding_missing", [(", " + FILL, "")]),
    "no mask": ("load_mask", [(f"mask=column < columns, {FILL}", "")]),
    "mask with <=": ("mask_off_by_one", [("column < columns", "column <= columns")]),
    "columns for the row stride": ("row_stride", [("row * x_stride", "row * columns")]),
    "x.stride(1)": ("row_not_scaled", [("x.stride(0)", "x.stride(1)")]),
    "always row 0": ("same_row", [("x_ptr + row * x_stride", "x_ptr")]),
    "the smallest": ("minimum_given", store("-tl.max(-tl.where(column < columns, x, float('inf')), axis=0)")),
    "the sum": ("sum_given", store(f"tl.sum({VALUES}, axis=0)")),
    "the mean": ("mean_given", store(f"tl.sum({VALUES}, axis=0) / columns")),
    "the place": ("place_given", store("tl.argmax(x, axis=0).to(tl.float32)")),
    "the largest size": ("absolute_value", store(f"tl.max(tl.abs({VALUES}), axis=0)")),
    "the first value": ("first_column_only", store("tl.sum(tl.where(column == 0, x, 0.0), axis=0)")),
    "the last value": ("last_column_only", store("tl.sum(tl.where(column == columns - 1, x, 0.0), axis=0)")),
    "the columns counted": ("counted", store("tl.sum(tl.where(column < columns, 1.0, 0.0), axis=0)")),
    "the last column's number": (
        "addresses_stored", store("tl.max(tl.where(column < columns, column, 0), axis=0)"),
    ),
    "zeros": ("zeros_stored", store("0.0 * tl.max(tl.where(x == x, 0.0, x), axis=0)")),
    "a minus sign": ("negated", store("-tl.max(x, axis=0)")),
    "the maximum with 0": ("starts_at_zero", store("tl.max(tl.maximum(x, 0.0), axis=0)")),
    "the minimum with 0": ("clamped_at_zero", store("tl.max(tl.minimum(x, 0.0), axis=0)")),
    "twice the maximum": ("scaled", store("2.0 * tl.max(x, axis=0)")),
    "the last column left out": ("last_column_dropped", [("column < columns", "column < columns - 1")]),
    "the first column left out": (
        "first_column_dropped", [("mask=column < columns", "mask=(column > 0) & (column < columns)")],
    ),
    "a fixed block": ("first_tile_only", [(LAUNCH, LAUNCH.replace("triton.next_power_of_2(columns)", "64"))]),
    "the last tile left out": ("last_tile_dropped", walk(KEEP, "range(0, columns // BLOCK * BLOCK, BLOCK)")),
    "the last tile only": ("last_tile_only", walk("m = tl.max(x, axis=0)")),
    "the first tile left out": ("first_tile_dropped", walk(KEEP, "range(BLOCK, columns, BLOCK)")),
    "a walk that starts at 0": ("starts_at_zero", walk(KEEP, start="0.0")),
    "one result for all rows": (
        "over_all_rows",
        [(X, 'x = tl.full((), -float("inf"), tl.float32)\n    for i in range(tl.num_programs(0)):\n        '
          + X.replace("row *", "i *").replace("x = tl.load", "r = tl.load")
          + "\n        x = tl.maximum(x, tl.max(r, axis=0))"), (Y, "tl.store(y_ptr + row, x)")],
    ),
    "NaN made low": ("nan_swallowed", store("tl.max(tl.where(x == x, x, -float('inf')), axis=0)")),
    "a maximum that leaves NaN out": ("nan_swallowed", store("tl.max(x, axis=0)")),
    "float16": ("half_precision", [(".to(tl.float32)", ".to(tl.float16)")]),
    "half the grid": ("rows_unwritten", [("[(rows,)]", "[(triton.cdiv(rows, 2),)]")]),
    "nothing stored": ("nothing_stored", [(Y, "pass")]),
    "a column of results": ("wrong_shape", [("torch.empty(rows,", "torch.empty((rows, 1),")]),
    "by PyTorch": ("torch_work", [("return y", "return x.max(dim=1).values")]),
    "x read twice": ("extra_loads", [(X, X + "\n    " + X)]),
    "stored twice": ("extra_stores", [(Y, Y + "\n    " + Y)]),
}  # fmt: skip
JUDGE = """
import json, sys
sys.path.insert(0, ".")
import course_kernels
from course_kernels.lab.run import forkserver
jobs = {}
for path, seed in json.load(sys.stdin):
    job = "course_kernels.lab.exercises.jobs:judge_file"
    jobs[path] = forkserver.submit("interpret", job, name="row_largest", path=path, seed=seed)
print(json.dumps({path: job.result(200) for path, job in jobs.items()}))
"""


def edited(text, edits):
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


def lab(folder, *arguments, **options):
    command = [sys.executable, "-c", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, **options)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course with an exercise just made, summing rows still."""
    from stored import NOT_GIT, is_checkout, write_stored

    if not is_checkout():
        pytest.skip(f"Needs the course as handed out: {NOT_GIT}.")
    folder = write_stored(tmp_path_factory.mktemp("course"))
    make = (
        "from course_kernels.lab.exercises import skeleton; print(*skeleton.write('row_largest'), sep='\\n')"
    )
    made = lab(folder, make)
    assert made.returncode == 0 and "solutions/row_largest.py" in made.stdout, made.stderr
    return folder


def judged(folder, texts):
    """The report on each answer, by its title."""
    paths = {}
    for number, (title, text) in enumerate(texts.items()):
        paths[title] = folder / f"answer{number}.py"
        paths[title].write_text(text)
    asked = json.dumps([(str(path), 1) for path in paths.values()])
    said = lab(folder, JUDGE, input=asked)
    assert said.returncode == 0, said.stderr
    reports = json.loads(said.stdout)
    return {title: reports[str(path)] for title, path in paths.items()}


def test_new_exercise_works_as_written(course):
    stub = (course / "exercises" / "row_largest.py").read_text()
    assert "raise NotImplementedError" in stub and "tl.sum" not in stub
    assert '"row_largest",' in (course / "course_kernels" / "lab" / "exercises" / "__init__.py").read_text()
    cells = (course / "notebooks" / f"{exercises.get(exercises.names()[-1]).notebook}.ipynb").read_text()
    assert "%%exercise row_largest" in cells and 'check(\\"row_largest\\")' in cells
    solution = (course / "solutions" / "row_largest.py").read_text()
    report = judged(course, {"solution": solution})["solution"]
    assert report["status"] == "pass", report["parts"]
    largest = edited(solution, [("tl.sum(x, axis=0)", "tl.max(x, axis=0)")])
    assert judged(course, {"largest": largest})["largest"]["mistake"] == "maximum_given"


def test_new_exercise_names_wrong_answers_in_its_own_words(course):
    solution = edited((course / "solutions" / "row_largest.py").read_text(), SOLUTION.items())
    file = course / "course_kernels" / "lab" / "exercises" / "row_largest.py"
    file.write_text(edited(file.read_text(), EXERCISE.items()))
    texts = {title: edited(solution, edits) for title, (_, edits) in WRONG.items()}
    reports = judged(course, texts | {"right": solution})
    assert reports.pop("right")["status"] == "pass"
    named = {title: report["mistake"] for title, report in reports.items()}
    assert named == {title: mistake for title, (mistake, _) in WRONG.items()}
    for title, report in reports.items():
        assert "softmax" not in str(report["parts"]), title  # nor any other exercise's words
        assert "exp(" not in str(report["parts"]), title


# Every row of mistakes has a kept wrong answer that gets its name

ELSEWHERE = {"checker_changed", "input_unread"}  # in test_attacks: nobody makes them by mistake


def told(name):
    """The mistakes that an exercise's kept answers are told."""
    names = (tools.expected(name, title) for title in tools.titles(name, "wrong"))
    return {one for some in names for one in (some if isinstance(some, tuple) else (some,))}


@pytest.mark.parametrize("name", exercises.names())
def test_mistake_of_an_exercise_has_a_kept_answer(name):
    exercise = exercises.get(name)
    kinds = ("mistakes", "run_rows", "bounds_rows", "cost_rows", "timeout_rows")
    rows = {row.name for kind in kinds for row in getattr(exercise, kind, ())}
    users = {row: {other for other in exercises.names() if row in told(other)} for row in rows}
    assert not [row for row, where in users.items() if not where]


def test_mistake_of_any_exercise_has_a_kept_answer():
    rows = (
        *generic.ANY, *running.SHAPES, *running.CHANGED, *running.INPUTS, *bounds.ROWS, *written.ROWS,
        *cost.ROWS,
    )  # fmt: skip
    known = set().union(*map(told, exercises.names())) | {mistake for mistake, _ in WRONG.values()}
    assert {row.name for row in rows} - known <= ELSEWHERE | {"maximum_given"}
