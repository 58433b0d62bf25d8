"""The lesson's parts: predictions, questions, sources, pictures, published and recorded figures."""

import math
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from course_kernels.lab import lesson
from course_kernels.lab.bench.results import TABLES, recorded, runs
from course_kernels.lab.core.files import KERNELS
from course_kernels.lab.core.gpus import GPUS, Occupancy, find_gpu, occupancy
from course_kernels.lab.core.wording import quantity, size
from course_kernels.lab.curve import bandwidth
from course_kernels.lab.questions import QUESTIONS
from course_kernels.lab.show import bandwidth as curves
from course_kernels.lab.show import chip, colours, merging, plots, tiles, traffic
from course_kernels.lab.show.picture import Picture, Stack, Table

SVG = "{http://www.w3.org/2000/svg}"


def words(picture: Picture) -> list[str]:
    """The texts of a picture; fails if it is not well-formed."""
    return [node.text or "" for node in ElementTree.fromstring(picture.svg).iter(f"{SVG}text")]


@pytest.fixture(autouse=True)
def no_predictions(monkeypatch):
    monkeypatch.setattr(lesson, "_predictions", {})


# Predictions


def test_compare_puts_the_guess_beside_the_measurement():
    lesson.predict("k", "How many reads?", 4, "reads")
    result = lesson.compare("k", 10, how="counted")
    assert result.ratio == 2.5
    assert result.verdict == "The counted figure is 2.5 times the prediction."
    assert "2.5" in result.html() and "How many reads?" in result.plain()


@pytest.mark.parametrize(
    "guess, measured, verdict",
    [
        (8, 8, "As predicted."),
        (100, 104, "Within 4% of the prediction."),
        (100, 96, "Within 5% of the prediction."),  # 100/96 is 1.042
        (4, 6, "The measurement is 50% above the prediction."),
        (4, 3, "The measurement is 25% below the prediction."),
        (30, 10, "The prediction was 3 times the measurement."),
        (-1, 2, "The two differ in sign or one is zero, so their ratio says nothing."),
    ],
)
def test_verdict(guess, measured, verdict):
    lesson.predict("k", "?", guess, "GB/s")
    assert lesson.compare("k", measured, how="measured here").verdict == verdict


@pytest.mark.parametrize(
    "note, how, said",
    [
        ("", "", "computed"),
        ("elements", "counted", "counted"),
        ("recorded: NVIDIA H200, torch 2.11.0", "", "recorded"),
        ("% of copy; Measured here: Tesla T4", "", "measured here"),
    ],
)
def test_compare_says_how_its_figure_was_got(note, how, said):
    assert said in lesson.compare("k", 3, note, how).plain()


def test_a_missing_guess_is_said_and_the_measurement_shown():
    result = lesson.compare("03-reads", 7)
    assert result.ratio is None and "no prediction" in result.verdict
    assert "7" in result.plain() and "none" in result.plain()


@pytest.mark.parametrize(
    "typed, read", [("1,024", 1024), ("4x", 4), (" 2.5 % ", 2.5), ("−3", -3), (np.float32(2), 2)]
)
def test_numbers_are_read_kindly(typed, read):
    assert lesson.predict("k", "?", typed, "elements").guess == read


@pytest.mark.parametrize(
    "typed", ["a lot", [1, 2], object(), {"a": 1}, float("nan"), math.inf, 0, True, b"x"]
)
@pytest.mark.parametrize("measured", [3, 0, math.nan, "text", None, np.arange(3), object()])
def test_nothing_typed_is_an_error(typed, measured):
    lesson.predict("k", "?", typed, "elements").html()
    result = lesson.compare("k", measured, note="so it is")
    assert "so it is" in result.html() and result.plain()


def test_a_guess_survives_running_the_question_again():
    lesson.predict("k", "?", 5, "reads")
    assert lesson.predict("k", "?", None, "reads").guess == 5
    assert lesson.predict("k", "?", 6, "reads").guess == 6


def test_choices():
    choices = ["the launch", "the memory", "the arithmetic"]
    assert lesson.predict("k", "What rules?", "The Memory", choices=choices).guess == "the memory"
    assert lesson.compare("k", "the memory").verdict == "As predicted."
    assert "Not what was predicted" in lesson.compare("k", "the launch").verdict
    lesson.predict("free", "What rules?", "something with memory")
    assert "judge for yourself" in lesson.compare("free", "the memory").verdict
    other = lesson.predict("j", "What rules?", "the moon", choices=choices)
    assert other.guess == "the moon" and "none of the choices" in other.plain()


def test_what_is_typed_is_escaped():
    lesson.predict("k", "a < b?", "<script>alert(1)</script>")
    assert "<script>" not in lesson.compare("k", "<b>").html()
    assert (
        "<script>" not in lesson.explain("03-registers", "<script> is what I would answer to this one").html()
    )


# Questions


def test_answers_open_only_after_an_answer():
    locked, opened = (
        lesson.explain("03-registers"),
        lesson.explain("03-registers", "Longer rows need more registers."),
    )
    strongest = QUESTIONS["03-registers"].strongest[0]
    for start in ("", "registers", "  It is registers  "):
        shown = lesson.explain("03-registers", start)
        assert not shown.opened and strongest[:40] not in shown.html() and strongest[:40] not in shown.plain()
    assert not locked.opened and not opened.opened  # five words are not yet a sentence
    answered = lesson.explain(
        "03-registers", "Longer rows need more registers a thread, so fewer programs fit."
    )
    assert answered.opened and strongest[:40] in answered.html() and strongest in answered.plain()
    assert "<details open>" in answered.html()


def test_every_notebook_has_its_questions():
    numbers = [key[:2] for key in QUESTIONS]
    assert {
        n: numbers.count(n) >= (1 if n == "00" else 3) for n in ("00", "01", "02", "03", "04", "05")
    } == dict.fromkeys(("00", "01", "02", "03", "04", "05"), True)
    for question in QUESTIONS.values():
        answers = question.answers()
        assert [grade for grade, *_ in answers] == ["weak", "strong", "strongest"]
        assert len(answers[0][1]) < len(answers[1][1]) < len(answers[2][1])
    assert "03-registers" in lesson.explain("no such key").plain()


# Sources


def test_show_finds_kernel_function_and_module():
    from course_kernels import fused_row

    kernel = lesson.show(fused_row.fused_row_kernel)
    assert kernel.path == "course_kernels/fused_row.py"
    assert kernel.text.startswith("@triton.jit\ndef fused_row_kernel(")
    lines = open(fused_row.__file__).read().splitlines()
    assert (
        lines[kernel.first_line - 1] == "@triton.jit"
        and lines[kernel.last_line - 1] == kernel.text.splitlines()[-1]
    )
    assert lesson.show(fused_row.softmax).text.startswith("@planned\ndef softmax(")
    assert lesson.show(fused_row).text == open(fused_row.__file__).read().rstrip("\n")
    assert "fused_row_kernel" in re.sub("<[^>]+>", "", kernel.html())


@pytest.mark.parametrize("thing", [len, 3, "text", None, math])
def test_show_says_when_there_is_no_source(thing):
    assert "no source file" in lesson.show(thing).plain()


def test_where_am_i_names_mode_and_versions():
    import torch

    text = lesson.where_am_i().plain()
    assert "mode" in text and torch.__version__ in text


# Pictures and tables


def test_a_picture_needs_alt_text():
    for alt in (None, "", "  ", 3):
        with pytest.raises(TypeError, match="alt text"):
            Picture("<svg/>", alt=alt)


def test_matplotlib_pictures_are_deterministic():
    plt = pytest.importorskip("matplotlib.pyplot")

    def draw(top):
        figure, axis = plt.subplots()
        axis.plot([1, 2, 3], [1, 4, top])
        axis.set_xlabel("columns")
        return Picture(figure, alt='a "curve" & more')

    one, two = draw(9), draw(9)
    assert one.svg == two.svg != draw(8).svg
    assert "<dc:date>" not in one.svg and not plt.get_fignums()
    ElementTree.fromstring(one.svg)
    bundle = one._repr_mimebundle_()
    assert 'aria-label="a &quot;curve&quot; &amp; more"' in bundle["text/html"]
    assert bundle["text/plain"] == '[picture: a "curve" & more]'


def test_table_writes_numbers_and_escapes_text():
    table = Table(
        [["a<b", 33570816, 0.84379], ["c", None, -1e-9]], ["name", "elements", "y"], "A caption", mark=0
    )
    assert "33,570,816" in table.plain() and "0.8438" in table.plain() and "–" in table.plain()
    html = table.html()
    assert "a&lt;b" in html and html.count("<tr>") == 3 and 'scope="col"' in html and "color:inherit" in html
    assert set(table._repr_mimebundle_()) == {"text/html", "text/plain"}
    assert "A caption" in Stack(table, table).plain()


def test_labels():
    assert [size(n) for n in (781, 1024, 50_257, 65_536, 1 << 22, 1025)] == [
        "781",
        "1K",
        "50,257",
        "64K",
        "4M",
        "1,025",
    ]
    written = [quantity(v, "B") for v in (0, 16_777_216, 999_960_000, 12, 1_340)]
    assert written == ["0 B", "16.8 MB", "1.00 GB", "12 B", "1.34 kB"]
    assert quantity(5.4e-6, "s") == "5.40 µs"


# Every figure: (what it is drawn from, the same with one thing changed)
def _records():
    return recorded()


def _perturbed():
    from dataclasses import replace

    return [replace(r, gbps=r.gbps * 0.5) if r.kernel == "torch" else r for r in recorded()]


FIGURES = {
    "row_and_lanes": (lambda: chip.row_and_lanes(13), lambda: chip.row_and_lanes(14)),
    "bandwidth_curve": (
        lambda: curves.bandwidth_curve(_records()),
        lambda: curves.bandwidth_curve(_perturbed()),
    ),
    "traffic_bars": (lambda: traffic.traffic_bars(4096, 4096), lambda: traffic.traffic_bars(4096, 4095)),
    "roofline": (plots.roofline, lambda: plots.roofline(points={"mine": 3.0})),
    "merge_tree": (lambda: merging.merge_tree([2, 5, 3]), lambda: merging.merge_tree([2, 5, 3.5])),
    "recurrence": (
        lambda: merging.recurrence_picture([2, 5, 3]),
        lambda: merging.recurrence_picture([2, 5, 3], 2),
    ),
    "tiles_walk": (
        lambda: tiles.tiles_walk(1000, 128),
        lambda: tiles.tiles_walk(1000, 128, None, True, 2),
    ),
    "timeline": (
        lambda: plots.timeline(4096, 4096),
        lambda: plots.timeline(4096, 4096, launch_seconds=1e-5),
    ),
    "multiprocessor": (
        lambda: chip.multiprocessor("H200", 64, 0, 0, 8),
        lambda: chip.multiprocessor("H200", 65, 0, 0, 8),
    ),
    "reread_ceiling": (lambda: plots.reread_ceiling(1000), lambda: plots.reread_ceiling(2000)),
    "busy_multiprocessors": (
        lambda: chip.busy_multiprocessors(1),
        lambda: chip.busy_multiprocessors(2, "T4"),
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_figures_follow_their_arguments(name):
    one, other = (draw() for draw in FIGURES[name])
    for picture in (one, other):
        assert (
            words(picture)
            and picture.alt
            and ElementTree.fromstring(picture.svg).get("aria-label") == picture.alt
        )
        width = float(ElementTree.fromstring(picture.svg).get("width"))
        for node in ElementTree.fromstring(picture.svg).iter(f"{SVG}text"):
            font = node.get("font-size") or re.search(r"font-size: ([\d.]+)px", node.get("style"))[1]
            assert 0 <= float(node.get("x")) <= width and float(font) >= 12
            assert "nan" not in (node.text or "").lower()
    assert one.svg != other.svg and one.alt != other.alt


def test_every_contender_looks_different():
    own = ["fused_softmax", "fused_softmax #2", "fused_softmax #3"]
    looks = [colours.look(name) for name in [*colours.LOOKS, *own]]
    assert len(set(looks)) == len(looks)
    assert set(KERNELS) <= set(colours.LOOKS)
    reserved = {colours.READ, colours.WRITTEN, colours.L2}
    assert not reserved & {colour for colour, _ in looks}


def _luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("paper", ["#ffffff", "#111111"])
def test_every_colour_stands_out_on_white_and_on_dark(paper):
    meant = [colours.READ, colours.WRITTEN, colours.L2, colours.LAUNCH, colours.NOW, colours.ALARM]
    for colour in [*meant, *(c for c, _ in colours.LOOKS.values() if c != colours.INK)]:
        light, dark = sorted((_luminance(colour), _luminance(paper)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3, colour


def test_pictures_take_ink_and_paper_from_the_page():
    for name, (draw, _) in FIGURES.items():
        svg = draw().svg
        assert "currentColor" in svg and 'style="--paper:var(--jp-layout-color0' in svg, name
        assert not re.search(r"#010203|#fdfefd|#000000|#ffffff|<style", svg), name
    alone = curves.bandwidth_curve(_records()).standalone()
    assert "currentColor" not in alone and "var(--paper)" not in alone


def test_a_curve_is_a_figure_to_keep(tmp_path):
    curve = bandwidth(("copy", "torch"), columns=())
    curve.figure().savefig(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 5_000
    assert curve.how == "recorded"
    with pytest.raises(ValueError, match="fused_row"):
        bandwidth(("copy", "fused_rows"))


def test_a_cursor_stands_where_the_axes_put_it():
    plot = curves.BandwidthPlot(_records(), ["copy", "torch"])
    drawn = plot.picture(4096).svg
    x, _ = plot.place(4096, 0)
    assert f'points="{x:.2f}'.rstrip("0") in drawn and "4,096 columns" in drawn
    assert plot.picture(8192).svg != drawn
    rings = [r for r in _records() if r.columns == 4096 and r.kernel in ("copy", "torch")]
    assert drawn.count("<circle") == len(rings) == 2


def test_alt_text_names_only_what_was_measured_near_that_width():
    from course_kernels.lab.bench.results import Record

    points = [("copy", 64, 100.0), ("copy", 4096, 90.0), ("eager", 64, 20.0)]
    records = [
        Record(kernel, "forward", columns, 8, "float32", gbps, None, 1.0) for kernel, columns, gbps in points
    ]
    assert "Near 4,096 columns: copy 90." in curves.bandwidth_curve(records, at=4096).alt
    assert "Near 64 columns: copy 100, eager 20." in curves.bandwidth_curve(records, at=64).alt


def test_a_wide_spread_and_a_long_name_stay_inside_the_picture():
    from course_kernels.lab.bench.results import Record
    from course_kernels.lab.show.drawing import SMALL, WIDTH, text_width

    name = "a_softmax_of_your_own #12"
    records = [Record(name, "forward", c, 8, "float32", 100.0, None, 1.0, spread=3.0) for c in (64, 128)]
    drawn = ElementTree.fromstring(curves.bandwidth_curve(records).svg)
    label = next(node for node in drawn.iter(f"{SVG}text") if node.text == name)
    assert float(label.get("x")) + text_width(name, SMALL) <= WIDTH
    axes = curves.BandwidthPlot(records).figure.axes[0]
    assert axes.get_ylim()[0] == 0 and all(c.get_clip_on() for c in axes.collections)


def test_rows_out_of_alignment_are_points_beside_the_line():
    from course_kernels.lab.bench.results import Record

    def drawn(widths, dtype):
        records = [Record("torch", "forward", c, 8, dtype, 100.0, None, 1.0) for c in widths]
        plot = curves.BandwidthPlot(records)
        return len(plot.lines["torch"]), "hollow" in " ".join(words(plot.picture()))

    assert drawn([1000, 1004, 1009, 30_011], "float32") == (2, True)
    assert drawn([1000, 1004, 1008], "float16") == (2, True)  # 1004 float16 are 125.5 times 16 bytes
    assert drawn([1000, 1024], "float16") == (2, False)
    assert drawn([781, 1009], "float32") == (2, False)  # nothing else to draw a line through


def test_row_and_lanes_counts_the_masked_lanes():
    assert "3 masked lanes" in words(chip.row_and_lanes(13))
    assert not any("masked" in w for w in words(chip.row_and_lanes(16)))
    with pytest.raises(ValueError, match="cannot hold"):
        chip.row_and_lanes(17, 16)


def test_traffic_agrees_with_the_formulas():
    for m, n in ((4096, 1024), (7, 5)):
        operations = traffic.eager_operations(m, n)
        assert sum(o[1] for o in operations) == 5 * m * n + 2 * m
        assert sum(o[2] for o in operations) == 3 * m * n + 2 * m
    assert "4.002 times" in " ".join(words(traffic.traffic_bars(4096, 1024)))
    assert "134 MB" in words(traffic.traffic_bars(4096, 1024))


def test_softmax_is_left_of_every_ridge():
    assert traffic.softmax_intensity(2) == 0.5
    assert all(gpu.ridge > 10 * 0.5 for gpu in GPUS.values())


def test_recurrence_of_2_5_3():
    steps = merging.recurrence([2, 5, 3])
    assert [s[1] for s in steps] == [2, 5, 5]
    assert [round(s[3], 4) for s in steps] == [1.0, 1.0498, 1.1851]
    assert "1.1851" in merging.recurrence_table([2, 5, 3]).plain()


@pytest.mark.parametrize("scores", [[2, 5, 3, 1, -1, 4], [-math.inf, 2.0, -math.inf, 7.5], [-1e30, 3, -1e30]])
def test_the_shape_of_a_tree_does_not_matter(scores):
    x = np.array(scores, dtype=np.float64)
    m = x.max()
    d = np.exp(x - m).sum()
    for shape in merging.TREES:
        got_m, got_d, depth = merging.merged(scores, shape, seed=3)
        assert got_m == m and got_d == pytest.approx(d, rel=1e-14)
        assert len(scores).bit_length() - 1 <= depth <= len(scores) - 1


def test_merging_nothing_with_nothing_is_nothing():
    assert merging.merge(merging.IDENTITY, merging.IDENTITY) == merging.IDENTITY
    assert (
        merging.merge(merging.IDENTITY, (3.0, 2.0))
        == (3.0, 2.0)
        == merging.merge((3.0, 2.0), merging.IDENTITY)
    )


def test_tiles_read_twice_unless_the_cache_keeps_them():
    def from_dram(**how):
        visits = tiles.tile_visits(1000, 128, **how)
        assert len(visits) == 16
        return sum(1 for v in visits if not v.cached)

    assert from_dram() == 16
    assert from_dram(cached_tiles=3) == 16  # forwards, the tiles kept are never the ones wanted next
    assert from_dram(cached_tiles=3, backwards=True) == 13
    assert from_dram(cached_tiles=8) == 8


def test_a_second_read_backwards_finds_what_the_cache_kept():
    for kept in (256, 384):  # as the tiles' own walk says, whole tiles at a time
        for backwards in (False, True):
            visits = tiles.tile_visits(1024, 128, backwards, kept // 128)
            fetched = sum(128 for v in visits if v.which_pass == 2 and not v.cached)
            assert tiles.reread(1024, kept, backwards) == fetched
    assert tiles.reread(1024, 1024) == tiles.reread(1024, 1024, True) == 0


def test_regions_of_the_tutorials_shapes():
    found = {r.name: r for r in curves.regions(lambda columns: 4096, 256, 12_672, "float32", "H200")}
    assert set(found) == {"launch-bound", "fits in L2"}
    limit = 60 * 2**20 // (2 * 4096 * 4)  # in and out
    assert found["fits in L2"].high == pytest.approx(limit, rel=0.02)
    large = {r.name for r in curves.regions(lambda c: 2**28 // c, 64, 2**22, "float32", "H200")}
    assert large == {"one block spills", "second read from DRAM"}


# Published figures


@pytest.mark.parametrize(
    "gpu, registers, shared, warps, expected",
    [
        # The CUDA occupancy calculator's answers.
        ("A100-80GB", 32, 0, 8, Occupancy(8, 64, 1.0, "warps")),
        ("A100-80GB", 33, 0, 8, Occupancy(6, 48, 0.75, "registers")),  # 1,280 registers a warp
        ("A100-80GB", 64, 0, 8, Occupancy(4, 32, 0.5, "registers")),
        ("H100", 255, 0, 8, Occupancy(1, 8, 0.125, "registers")),
        ("H100", 128, 0, 4, Occupancy(4, 16, 0.25, "registers")),
        ("H200", 64, 0, 32, Occupancy(1, 32, 0.5, "registers")),
        ("H200", 65, 0, 32, Occupancy(0, 0, 0.0, "registers")),  # 1024 threads of 72 registers do not fit
        ("H200", 40, 0, 1, Occupancy(32, 32, 0.5, "programs")),
        ("H100", 32, 48 * 1024, 4, Occupancy(4, 16, 0.25, "shared memory")),  # 49 KiB each, with the system's
        ("L4", 32, 0, 32, Occupancy(1, 32, 2 / 3, "warps")),
        ("T4", 16, 0, 4, Occupancy(8, 32, 1.0, "warps")),
        ("T4", 64, 0, 8, Occupancy(4, 32, 1.0, "warps")),
        ("T4", 32, 16 * 1024, 2, Occupancy(4, 8, 0.25, "shared memory")),  # nothing reserved before 8.0
    ],
)
def test_occupancy(gpu, registers, shared, warps, expected):
    assert occupancy(gpu, registers, shared, warps) == expected


def test_occupancy_refuses_what_no_kernel_has():
    for bad in ((256, 0, 4), (32, 0, 0), (32, 0, 33), (32, -1, 4)):
        with pytest.raises(ValueError):
            occupancy("H200", *bad)
    with pytest.raises(ValueError, match="H200"):
        occupancy("V100", 32, 0, 4)


def test_gpus_are_found_by_the_drivers_names():
    names = {"NVIDIA A100-SXM4-80GB": "A100-80GB", "NVIDIA A100-SXM4-40GB": "A100-40GB", "Tesla T4": "T4",
             "NVIDIA L4": "L4", "NVIDIA H100 80GB HBM3": "H100", "NVIDIA H200": "H200"}  # fmt: skip
    assert {name: find_gpu(name).name for name in names} == names
    assert find_gpu("NVIDIA L40S") is None and find_gpu("NVIDIA GeForce RTX 4090") is None


# Recorded figures


def test_recorded_results_say_where_they_come_from():
    assert re.fullmatch(
        r"recorded: NVIDIA \w+, torch [\d.]+, triton [\d.]+, \d{4}-\d\d-\d\d", recorded().source
    )


def test_recorded_results_come_from_one_run_and_one_family():
    for table in TABLES:
        found = recorded(table=table)
        assert len(found) and {r.dtype for r in found} == {"float32"} and {r.op for r in found} == {"forward"}
        assert all(r in found.run.records for r in found)
    assert {r.rows for r in recorded(table="4096 rows")} == {4096}
    assert all(0.45 < r.rows * r.columns / 2**28 <= 1 for r in recorded(table="large"))
    assert [r.columns for r in recorded("copy")] == sorted(r.columns for r in recorded("copy"))


def test_the_survey_holds_what_was_measured():
    survey = recorded(run="survey")
    gbps = {(r.kernel, r.columns): r.gbps for r in survey}
    assert gbps["copy", 4096] == 4254 and gbps["torch", 4096] == 2582 and gbps["eager", 1024] == 782
    assert {r.kernel for r in survey} >= {"copy", "torch", "compile", "liger", "quack", "eager", "prototype"}
    assert any(run.name.endswith("survey") for run in runs())


def test_recorded_says_what_there_is():
    with pytest.raises(ValueError, match="4096 rows"):
        recorded(table="huge")
    with pytest.raises(ValueError, match="survey"):
        recorded(run="1999")
    assert len(recorded("no such kernel")) == 0
