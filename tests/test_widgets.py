"""The widgets, driven through their controls; their static twins; live with a stand-in for a GPU."""

import re
import threading
import xml.etree.ElementTree as ElementTree

import pytest

from course_kernels.lab.bench.results import Record, recorded
from course_kernels.lab.core.gpus import GPUS
from course_kernels.lab.curve import explore
from course_kernels.lab.report import occupancy_explorer
from course_kernels.lab.show import explorer, widgets
from course_kernels.lab.show.interactive import VIEW, read_scores


def compiled(block, warps):
    """A stand-in for the compiler: more values a thread, more registers, then spills."""
    registers = 16 + 2 * block // (warps * 32)
    result = {"registers": min(registers, 255), "spilled": max(0, registers - 255) * 4, "shared": 16}
    return dict.fromkeys(widgets.OCCUPANCY_GPUS, result)


MAKE = {
    "explore": lambda: explore(live=False),
    "traffic_bars": widgets.traffic_bars,
    "occupancy_explorer": lambda: occupancy_explorer(compiled=compiled),
    "online_stepper": widgets.online_stepper,
    "merge_tree": widgets.merge_tree,
    "tiles_walk": widgets.tiles_walk,
}
# One move of each: a control and another value for it.
MOVES = {
    "explore": [("columns", 16384), ("dtype", "bfloat16"), ("shapes", "4096 rows"), ("gpu", "A100-40GB"),
                ("unit", "share of a copy"), ("shapes", "few rows"),
                ("shapes", "unaligned"), ("show eager", False)],
    "traffic_bars": [("rows", 8192), ("columns", 50_257), ("dtype", "float16"), ("gpu", "T4")],
    "occupancy_explorer": [("block", 16384), ("warps", 16), ("gpu", "T4")],
    "online_stepper": [("scores", "2, 5, 3, 9"), ("step", 1)],
    "merge_tree": [("scores", "1 2 3"), ("shape", "left to right")],
    "tiles_walk": [("tile", 256), ("step", 3)],
}  # fmt: skip


def svg_of(made):
    found = re.search(r"<svg.*</svg>", made._picture.value, re.S)
    return ElementTree.fromstring(found[0])


@pytest.mark.parametrize("name", MAKE)
def test_each_has_a_widget_and_a_static_twin(name):
    made = MAKE[name]()
    bundle = made._repr_mimebundle_()
    assert bundle[VIEW]["model_id"] == made.widget().model_id
    assert "<svg" in bundle["text/html"] and "<table" in bundle["text/html"]
    assert "[picture: " in bundle["text/plain"]
    alt = svg_of(made).get("aria-label")
    assert alt in bundle["text/plain"] and len(bundle["text/html"]) < 80_000
    assert (
        "http://" not in re.sub(r"http://www.w3.org/\S*", "", made._picture.value)
        and "https://" not in bundle["text/html"]
    )


@pytest.mark.parametrize("name, control, value", [(n, c, v) for n, moves in MOVES.items() for c, v in moves])
def test_a_move_changes_the_picture(name, control, value):
    made = MAKE[name]()
    made.widget()
    before = svg_of(made).get("aria-label"), made._rest.value
    made._controls[control].value = value
    assert made._problem.value == ""
    assert (svg_of(made).get("aria-label"), made._rest.value) != before
    assert svg_of(made).get("aria-label") in made.plain()  # the twin follows


@pytest.mark.parametrize("name", MAKE)
def test_only_core_controls(name):
    import ipywidgets

    def all_of(widget):
        yield widget
        for child in getattr(widget, "children", ()):
            yield from all_of(child)

    for widget in all_of(MAKE[name]().widget()):
        assert type(widget).__module__.startswith("ipywidgets.")
        assert not isinstance(widget, (ipywidgets.Output, ipywidgets.interactive))


def test_without_ipywidgets_the_static_twin_is_left(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ipywidgets", None)
    bundle = widgets.merge_tree()._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}


def test_where_nobody_answers_the_static_twin_is_left(monkeypatch):
    import types

    import IPython

    shell = types.SimpleNamespace(kernel=types.SimpleNamespace(_allow_stdin=False))
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    assert set(widgets.merge_tree()._repr_mimebundle_()) == {"text/html", "text/plain"}
    shell.kernel._allow_stdin = True
    assert VIEW in widgets.merge_tree()._repr_mimebundle_()


# Scores that a learner types


@pytest.mark.parametrize(
    "text, read",
    [
        ("2, 5, 3", [2, 5, 3]),
        ("[2 5;3]", [2, 5, 3]),
        ("-inf −∞ −0.5", [-float("inf")] * 2 + [-0.5]),
        ("1e3", [1000]),
    ],
)
def test_scores_are_read_kindly(text, read):
    assert read_scores(text, 8) == read


@pytest.mark.parametrize("text", ["", "two", "1, nan", "inf", "1,2,3,4,5,6,7,8,9"])
def test_bad_scores_are_a_sentence_and_the_picture_fades(text):
    made = widgets.merge_tree()
    made.widget()
    before = made._picture.value
    made._controls["scores"].value = text
    assert before in made._picture.value and "opacity:0.25" in made._picture.value
    assert 'role="alert"' in made._problem.value
    made._controls["scores"].value = "1, 2"
    assert made._problem.value == "" and "opacity:0.25" not in made._picture.value


def test_bad_scores_as_an_argument_are_a_sentence_too():
    for made in (widgets.online_stepper(scores=("a", 1)), widgets.merge_tree("1, nan")):
        made.widget()
        assert "is not a score" in made._problem.value and "is not a score" in made.plain()


def test_the_merge_tree_gives_one_root():
    made = widgets.merge_tree([2, 5, 3])
    assert made.plain().count("1.185122") == 4  # a line for each shape


def test_the_stepper_ends_at_the_last_score():
    made = widgets.online_stepper([2, 5, 3])
    made.widget()
    made._controls["scores"].value = "4, 4"
    assert made._controls["step"].max == 2 and made._problem.value == ""
    made._controls["scores"].value = "4, 4, 1, 2"
    assert made._controls["step"].value == 4 and "4 of 4 scores read" in made.plain()


def test_the_walk_counts_the_elements():
    table = widgets.tiles_walk(1000, 128, backwards=True, cached_tiles=3).draw(1000, 128, 16, True, 3)[1].rows
    # Tiles 7 (104 columns), 6 and 5 are still there when the second pass begins at the end.
    assert table == [["pass 1", "1,000", "0", "0"], ["pass 2", "640", "360", "1,000"]]


def test_occupancy_explorer_asks_the_compiler_once_for_each_choice():
    asked = []

    def watch(block, warps):
        asked.append((block, warps))
        return compiled(block, warps)

    made = occupancy_explorer(2048, 4, compiled=watch)
    made.widget()
    made._controls["gpu"].value = "T4"
    made._controls["warps"].value = 8
    made._controls["warps"].value = 4
    assert asked == [(2048, 4), (2048, 8)]


def test_occupancy_explorer_refuses_what_compiles_for_minutes():
    made = occupancy_explorer(131_072, 1, compiled=lambda *_: pytest.fail("must not compile"))
    assert "more warps" in made.plain()


def test_occupancy_explorer_uses_the_real_compiler():
    text = occupancy_explorer(1024, 4).plain()
    for gpu in widgets.OCCUPANCY_GPUS:
        assert re.search(rf"^{gpu} +\d+ +0 ", text, re.M), text


# The explorer, recorded


def test_explorer_shows_the_recorded_figures():
    made = explore(live=False, columns=4096)
    gbps = {r.kernel: r.gbps for r in recorded() if r.columns == 4096}
    assert f"torch {gbps['torch']:,.0f}" in made.plain() and recorded().source in made.plain()


def test_explorer_labels_a_prediction_and_scales_by_bandwidth():
    made = explore(live=False, columns=4096, gpu="A100-80GB")
    copy = next(r.gbps for r in recorded("copy") if r.columns == 4096)
    scaled = round(copy * GPUS["A100-80GB"].gbps / GPUS["H200"].gbps)
    assert "PREDICTION for A100-80GB" in made.plain() and f"copy {scaled:,}" in made.plain()
    assert "PREDICTION" not in explore(live=False).plain()
    assert "no bfloat16" in explore(live=False, gpu="T4", dtype="bfloat16").plain()


def test_explorer_explains_the_region_it_is_in():
    assert "fits in L2" in explore(live=False, shapes="4096 rows", columns=768).plain().replace(
        "Fits", "fits"
    )
    assert "One block spills:" in explore(live=False, columns=131_072).plain()
    assert "One block spills:" not in explore(live=False, columns=4096).plain()


def stands(made):
    """What the slider stands on, as (its value, the picture's description, the table)."""
    value = made._controls["columns"].value
    assert value == made.values["columns"]
    return value, svg_of(made).get("aria-label"), made._rest.value


def test_explorer_moves_to_widths_that_were_recorded():
    made = explore(live=False, columns=64)
    made.widget()
    made._controls["shapes"].value = "4096 rows"
    widths = sorted({r.columns for r in recorded(table="4096 rows")})
    assert [value for _, value in made._controls["columns"].options] == widths
    columns, alt, rest = stands(made)
    assert columns == widths[0] and f"Near {columns:,} columns" in alt and f"At {columns:,} columns" in rest


@pytest.mark.parametrize("first", explorer.RecordedExplorer.shapes)
@pytest.mark.parametrize("then", explorer.RecordedExplorer.shapes)
def test_slider_and_picture_agree_after_any_change_of_matrix(first, then):
    made = explore(live=False, columns=4096, shapes=first)
    made.widget()
    made._controls["shapes"].value = then
    at, alt, rest = stands(made)
    assert made._problem.value == "" and at in made.points()
    columns = at[1] if isinstance(at, tuple) else at
    assert f"At {columns:,} columns" in rest
    assert (f"{at[0]:,} × {columns:,}:" if isinstance(at, tuple) else f"Near {columns:,} columns") in alt
    made._controls["shapes"].value = "4096 rows"
    at, alt, _ = stands(made)
    assert f"Near {at:,} columns" in alt


def test_from_large_matrices_the_slider_keeps_its_width_where_it_was_recorded():
    made = explore(live=False, columns=4096)
    made.widget()
    made._controls["shapes"].value = "4096 rows"
    assert stands(made)[0] == 4096


def test_unaligned_widths_are_a_choice_of_their_own():
    made = explore(live=False)
    aligned = set(made.points())
    unaligned = set(explore(live=False, shapes="unaligned").points())
    assert not aligned & unaligned and aligned | unaligned == {r.columns for r in recorded()}
    assert all(columns * 4 % 16 for columns in unaligned)
    assert explore(live=False, columns=1025).values["columns"] == 1025


def test_explorer_draws_the_share_of_a_copy():
    made = explore(live=False, columns=4096, unit="share of a copy")
    rate = {r.kernel: r.gbps for r in recorded() if r.columns == 4096}
    assert f"torch {rate['torch'] / rate['copy']:.0%}" in made.plain() and "copy 100%" in made.plain()


def test_a_contender_without_records_has_a_grey_box():
    made = explore(live=False)
    made.widget()
    boxes = {box.description: box for box in made._boxes.children}
    assert not boxes["fused_row"].disabled
    made._controls["dtype"].value = "bfloat16"
    assert boxes["fused_row"].disabled and not boxes["copy"].disabled


def test_a_move_of_the_slider_draws_no_plot(monkeypatch):
    made = explore(live=False)
    made.widget()
    monkeypatch.setattr(made, "_plot", lambda *_: pytest.fail("the plot is drawn once"))
    before = made._picture.value
    made._controls["columns"].value = 1024
    assert made._picture.value != before and "1,024 columns" in made._picture.value


def test_explorer_names_the_choices_there_are():
    with pytest.raises(ValueError, match="few rows"):
        explore(live=False, shapes="huge")
    with pytest.raises(ValueError, match="share of a copy"):
        explore(live=False, unit="furlongs")


# The explorer, live, with a stand-in for the benchmark


@pytest.fixture
def bench(monkeypatch):
    """Measures nothing: a plausible record, and a list of what was asked for."""
    monkeypatch.setattr(explorer, "_live", {})
    monkeypatch.setattr(explorer, "_texts", {})
    asked = []

    def measure(kernel, rows, columns, dtype, seconds):
        asked.append((kernel if isinstance(kernel, str) else kernel.__name__, rows, columns, dtype, seconds))
        if kernel == "fused_row" and columns > 32_768:
            raise ValueError("fused_row takes at most 32,768 columns.")
        gbps = {"copy": 300.0, "eager": 60.0}.get(kernel, 200.0 if isinstance(kernel, str) else kernel(None))
        return Record(
            "?", "forward", columns, rows, dtype, gbps, None, 2 * rows * columns * 4 / gbps / 1e3, 0.02
        )

    measure.asked = asked
    return measure


def test_a_live_move_measures_and_keeps_the_points(bench):
    made = explore(measure=bench, shapes="4096 rows", columns=1024)
    made.widget()
    assert not bench.asked  # nothing runs before the learner moves
    made._controls["columns"].value = 2048
    made.wait(10)
    made._controls["columns"].value = 512
    made.wait(10)
    assert {a[2] for a in bench.asked} == {2048, 512} and {a[1] for a in bench.asked} == {4096}
    assert sum(a[4] for a in bench.asked if a[2] == 512) <= 2.0
    alt = svg_of(made).get("aria-label")
    assert "512 to 2K" in alt and "measured here" in alt and "spread" in made._rest.value


def test_a_kernel_that_refuses_a_width_is_said_and_the_others_go_on(bench):
    made = explore(measure=bench, columns=1024)
    made.widget()
    made._controls["columns"].value = 65_536
    made.wait(10)
    assert "at most 32,768 columns" in made._status.value
    assert "copy 300" in svg_of(made).get("aria-label")


def test_a_changed_kernel_gets_a_new_line_and_the_old_one_stays(bench, tmp_path):
    import importlib.util

    def load(gbps):
        path = tmp_path / f"mine{gbps}.py"
        path.write_text(f"def fused_softmax(x):\n    return {gbps}.0\n")
        spec = importlib.util.spec_from_file_location("mine", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.fused_softmax

    for gbps in (100, 100, 250):
        made = explore(load(gbps), measure=bench, columns=1024)
        made.widget()
        made._controls["columns"].value = 2048
        made.wait(10)
    alt = svg_of(made).get("aria-label")
    assert "fused_softmax 100" in alt and "fused_softmax #2 250" in alt and "#3" not in alt


def test_a_sweep_covers_every_width_and_can_be_stopped(bench):
    made = explore(measure=bench, columns=1024)
    made.widget()
    made._sweep.click()
    made.wait(20)
    assert {a[2] for a in bench.asked} == set(made.points())
    assert made._bar.value == made._bar.max == len(made.points()) and made._stop_button.disabled

    bench.asked.clear()
    started, go_on = threading.Event(), threading.Event()

    def slow(*question):
        started.set()
        assert go_on.wait(10)
        return bench(*question)

    made.measure = slow
    made._sweep.click()
    assert started.wait(10) and not made._stop_button.disabled
    made._stop_button.click()
    go_on.set()
    made.wait(10)
    assert len(bench.asked) == 1 and made._stop_button.disabled
    made._controls["columns"].value = 4096  # and it goes on working
    made.wait(10)
    assert 4096 in {a[2] for a in bench.asked}


def test_another_move_ends_the_measuring_under_way(bench):
    made = explore(measure=bench, columns=1024)
    made.widget()
    started, go_on = threading.Event(), threading.Event()

    def slow(*question):
        started.set()
        assert go_on.wait(10)
        return bench(*question)

    made.measure = slow
    made._controls["columns"].value = 2048
    assert started.wait(10)
    made._controls["columns"].value = 4096  # returns at once, although the first is still being measured
    go_on.set()
    made.wait(10)
    widths = [a[2] for a in bench.asked]
    assert widths.count(2048) == 1 and widths.count(4096) == len(
        [k for k in made.contenders() if k not in made.values["hidden"]]
    )


@pytest.mark.gpu
def test_explorer_measures_on_this_gpu():
    made = explore(shapes="4096 rows", columns=4096)
    made.widget()
    made._controls["columns"].value = 8192
    made.wait(60)
    assert not made._status.value.count(":"), made._status.value
    assert "copy" in svg_of(made).get("aria-label")
