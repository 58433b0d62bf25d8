"""The interactive pictures: sliders and lists beside a picture and a table that follow them.

Only ipywidgets' own controls (7.7 and 8), with pictures as SVG text in an HTML value: nothing is fetched,
nothing depends on a plotting extension, and the keyboard works as it does for any slider. Each has a static
twin, the same picture and table, which is what nbconvert, a saved page and a front end without widgets show.
"""

from __future__ import annotations

import inspect
import linecache
import math
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from html import escape

from course_kernels.lab.bench.results import TABLES, Record, recorded
from course_kernels.lab.core.gpus import GPUS, MAX_WARPS_PER_PROGRAM, SHOWN, find_gpu
from course_kernels.lab.lesson import as_number
from course_kernels.lab.show import figures
from course_kernels.lab.show.drawing import count, quantity
from course_kernels.lab.show.picture import CARD_STYLE, Display, Picture, Prose, Stack, Table

VIEW = "application/vnd.jupyter.widget-view+json"
DTYPES = ("float32", "float16", "bfloat16")
# Powers of two, one past them, and widths that real models have.
WIDTHS = sorted(
    {*(1 << i for i in range(6, 23)), *((1 << i) + 1 for i in range(10, 17)), 781, 50_257, 128_256}
)
LIVE_KERNELS = (
    "copy", "torch", "eager", "softmax", "fused_row", "tiled", "split_row", "resident_row", "compile"
)  # fmt: skip
# Too many lines at once hide each other, and torch.compile takes seconds; a box shows them.
HIDDEN_FIRST = ("liger", "quack", "compile", "multi_row", "packed_row", "online", "split_row", "cluster_row")
HIDDEN_FIRST += ("resident_row", "prototype")
HIDDEN_FIRST_LIVE = ("split_row", "resident_row", "compile")
LIVE_SECONDS = 1.5  # measuring at one width, all contenders together


class Interactive(Display):
    """A picture and a table with controls. Subclasses give values, controls() and draw(**values).

    values: name → the value shown first. controls(w): name → an ipywidgets control, w being that module.
    draw(**values): what to show, a Picture first, or a ValueError, whose sentence is shown while the last
    good picture stays.
    """

    def __init__(self, **values):
        self.values = values
        self._box = None

    def controls(self, w) -> Mapping:
        raise NotImplementedError

    def draw(self, **values) -> list[Display]:
        raise NotImplementedError

    def static(self) -> Stack:
        """The same picture and table without controls, for the values as they are now."""
        try:
            return Stack(*self.draw(**self.values))
        except ValueError as problem:
            return Stack(Prose(str(problem)))

    def widget(self):
        """The controls with the picture and the table, as one ipywidgets box; made when first asked for."""
        if self._box is None:
            import ipywidgets as w

            self._controls = self.controls(w)
            self._picture, self._rest, self._problem = w.HTML(), w.HTML(), w.HTML()
            self._box = w.VBox([*self.arrange(w, self._controls), self._problem, self._picture, self._rest])
            for name, control in self._controls.items():
                control.observe(lambda change, name=name: self.changed(name, change["new"]), names="value")
            self.redraw()
        return self._box

    def arrange(self, w, controls) -> list:
        """The rows of controls above the picture."""
        return list(controls.values())

    def changed(self, name: str, value) -> None:
        self.values[name] = value
        self.redraw()

    def redraw(self) -> None:
        if self._box is None:
            return  # nobody has asked for a widget
        try:
            shown = self.draw(**self.values)
        except ValueError as problem:  # something typed cannot be drawn; the last picture stays
            self._problem.value = f'<p role="alert" style="margin:4px 0"><b>{escape(str(problem))}</b></p>'
            return
        self._problem.value = ""
        pictures = [item for item in shown if isinstance(item, Picture)]
        self._picture.value = "".join(f'<div style="{CARD_STYLE}">{p.svg}</div>' for p in pictures)
        rest = "".join(item.html() for item in shown if not isinstance(item, Picture))
        self._rest.value = f'<div role="status" aria-live="polite" style="line-height:1.4">{rest}</div>'

    def html(self) -> str:
        return self.static().html()

    def plain(self) -> str:
        return self.static().plain()

    def _repr_mimebundle_(self, include=None, exclude=None):
        bundle = {"text/html": self.html(), "text/plain": self.plain()}
        if not _someone_is_there():
            return bundle
        try:
            box = self.widget()
        except ImportError:  # no ipywidgets: the static twin is all there is
            return bundle
        if box.model_id:
            bundle[VIEW] = {"version_major": 2, "version_minor": 0, "model_id": box.model_id}
        return bundle


def _someone_is_there() -> bool:
    """False where a program runs the notebook, as nbconvert does: it answers no input().

    Its page gets the static twin alone, and no widget state, for which a saved page would go to the network.
    """
    from IPython import get_ipython

    kernel = getattr(get_ipython(), "kernel", None)
    return getattr(kernel, "_allow_stdin", True)


def _wide(w, **more):
    return {
        "style": {"description_width": "110px"},
        "layout": w.Layout(width="auto", max_width="640px"),
        **more,
    }


def _choose(w, description, options, value, **more):
    """A slider over a list of values; options are (label, value) pairs."""
    return w.SelectionSlider(description=description, options=options, value=value, **_wide(w, **more))


def _list(w, description, options, value):
    return w.Dropdown(description=description, options=options, value=value, **_wide(w))


# Bandwidth against width -----------------------------------------------------------------------------------

# Every live point of this process, and the texts that a learner's name has stood for: the points of an
# earlier version stay when the kernel changes, so that the change shows.
_live: dict[tuple, Record] = {}
_texts: dict[str, list] = {}


def _version(name: str, function: Callable) -> str:
    """fused_softmax, and fused_softmax #2, #3 … once its text has changed."""
    texts = _texts.setdefault(name, [])
    text = _text_of(function)
    if text not in texts:
        texts.append(text)
    number = texts.index(text) + 1
    return name if number == 1 else f"{name} #{number}"


def _text_of(function: Callable):
    """The text of the file or cell that holds the function and its kernel; itself if it has none."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    lines = linecache.getlines(code.co_filename) if code else []
    return "".join(lines) or function


class Explorer(Interactive):
    """The width explorer: see `explore`."""

    def __init__(self, yours: Callable[[], Mapping] | None = None, measure: Callable | None = None, **values):
        hidden = HIDDEN_FIRST_LIVE if measure else HIDDEN_FIRST
        first = {"columns": 4096, "dtype": "float32", "shapes": "large", "gpu": "recorded", "rows": 4096}
        super().__init__(**{**first, "hidden": hidden, **values})
        self.yours = yours or dict  # asked anew before each measurement: name → function
        self.measure = measure
        self.stop = threading.Event()  # of the measuring under way; the next one has its own
        self.thread: threading.Thread | None = None
        self.lock = threading.Lock()  # one measurement at a time
        if measure is None:
            self.values["columns"] = self._nearest(self.values["columns"])

    # What there is to show

    def records(self, dtype, shapes, gpu, **_) -> tuple[list[Record], str, str]:
        """(records, where they come from, the GPU whose regions hold) for these values."""
        found = recorded(dtype=dtype, table=shapes if shapes in TABLES else "large")
        run_gpu = find_gpu(found.run.gpu) or GPUS["H200"]
        if self.measure is not None:
            rows_at = self.rows_at(shapes, dtype)
            here = [r for r in list(_live.values()) if r.dtype == dtype and r.rows == rows_at(r.columns)]
            if here:
                return here, f"measured here: {self.gpu_name()}", self.gpu_name()
            return list(found), f"{found.source}; move the slider to measure here", run_gpu.name
        if gpu == "recorded":
            return list(found), found.source, run_gpu.name
        if gpu == "T4" and dtype == "bfloat16":
            raise ValueError("A T4 has no bfloat16 arithmetic, so there is nothing to predict for it.")
        factor = GPUS[gpu].gbps / run_gpu.gbps
        scaled = [
            replace(r, gbps=r.gbps * factor, microseconds=r.microseconds / factor, spread=None) for r in found
        ]
        source = f"PREDICTION for {gpu}: its published bandwidth × the share recorded on {run_gpu.name}"
        return scaled, source, gpu

    def rows_at(self, shapes, dtype) -> Callable[[int], int]:
        """How many rows the matrix has at a width, for a family of shapes."""
        elements = self.elements(figures.ITEMSIZE[dtype])
        by_hand = max(int(self.values["rows"]), 1)
        if shapes == "4096 rows":
            return lambda columns: 4096
        if shapes == "by hand":
            return lambda columns: max(min(by_hand, 2 * elements // columns), 1)
        return lambda columns: max(elements // columns, 1)

    def elements(self, itemsize: int) -> int:
        """The elements of a large matrix: 1 GiB, or what leaves a GPU room for eight of it."""
        room = 1 << 30
        if self.measure is not None:
            import torch

            if torch.cuda.is_available():
                room = min(room, torch.cuda.get_device_properties(0).total_memory // 12)
        return room // itemsize

    def gpu_name(self) -> str:
        import torch

        return torch.cuda.get_device_name() if torch.cuda.is_available() else "this machine"

    def contenders(self) -> list[str]:
        if self.measure is not None:
            return [*LIVE_KERNELS, *self.yours()]
        return list(dict.fromkeys(r.kernel for r in recorded(dtype=None, table=None)))

    def draw(self, columns, dtype, shapes, gpu, rows, hidden) -> list[Display]:
        records, source, gpu_name = self.records(dtype, shapes, gpu)
        kernels = [k for k in dict.fromkeys(r.kernel for r in records) if k.split(" #")[0] not in hidden]
        if not kernels:
            raise ValueError(
                f"Nothing to show for {dtype} with {TABLES.get(shapes, shapes)}: show another kernel."
            )
        widths = [r.columns for r in records]
        published = find_gpu(gpu_name)
        marks = []
        if published and shapes != "few rows":
            shape_of = self.rows_at(shapes, dtype)
            marks = figures.regions(shape_of, min(widths), max(widths), dtype, published)
        joined = shapes != "few rows"  # those differ in rows as well: points, not a curve
        picture = figures.bandwidth_curve(records, kernels, source, marks, at=columns, joined=joined)
        table = self.table(records, kernels, columns, predicted=gpu != "recorded" and not self.measure)
        notes = [f"{m.name[0].upper()}{m.name[1:]}: {m.why}" for m in marks if m.low <= columns <= m.high]
        if shapes == "large":
            notes = notes or [f"At {columns:,} columns none of the marked regions holds: DRAM traffic rules."]
        return [picture, table, Prose(*notes)]

    def table(self, records, kernels, columns, predicted=False) -> Table:
        here = [r for r in records if r.columns == columns and r.kernel in kernels]
        copy = {(r.rows, r.dtype): r.gbps for r in here if r.kernel == "copy"}
        rows = []
        for r in sorted(here, key=lambda r: -r.gbps):
            roof = copy.get((r.rows, r.dtype))
            share = f"{r.gbps / roof:.0%}" if roof else None
            spread = None if r.spread is None else f"{r.spread:.1%}"
            rows.append(
                [r.kernel, count(r.rows), round(r.gbps), share, quantity(r.microseconds * 1e-6, "s"), spread]
            )
        heading = "GB/s, predicted" if predicted else "GB/s"
        headers = ["kernel", "rows", heading, "of copy", "time", "spread"]
        if not any(r.spread is not None for r in here):
            headers, rows = headers[:-1], [row[:-1] for row in rows]
        return Table(rows, headers, f"At {columns:,} columns")

    # Controls

    def widths(self, dtype, shapes) -> list[int]:
        if self.measure is not None:
            return WIDTHS
        return sorted({r.columns for r in recorded(dtype=dtype, table=shapes)}) or [self.values["columns"]]

    def _nearest(self, columns) -> int:
        widths = self.widths(self.values["dtype"], self.values["shapes"])
        return min(widths, key=lambda width: abs(math.log(width / columns)))

    def controls(self, w) -> Mapping:
        v = self.values
        live = self.measure is not None
        shapes = [("as many rows as fill memory", "large"), ("4096 rows", "4096 rows")]
        shapes.append(("rows by hand", "by hand") if live else ("few rows", "few rows"))
        widths = [(count(c), c) for c in self.widths(v["dtype"], v["shapes"])]
        made = {
            "columns": _choose(w, "columns", widths, self._nearest(v["columns"]), continuous_update=not live),
            "dtype": _list(w, "dtype", self.dtypes(), v["dtype"]),
            "shapes": _list(w, "matrix", shapes, v["shapes"]),
        }
        if live:
            made["rows"] = w.BoundedIntText(
                description="rows", value=v["rows"], min=1, max=1 << 24, **_wide(w)
            )
        else:
            names = [
                (f"{found.name}, predicted", found.name)
                for found in map(GPUS.get, GPUS)
                if found.name != "H200"
            ]
            made["gpu"] = _list(w, "GPU", [("H200, recorded", "recorded"), *names], v["gpu"])
        for name in self.contenders():
            box = w.Checkbox(
                value=name not in v["hidden"],
                description=name,
                indent=False,
                layout=w.Layout(width="auto", margin="0 14px 0 0"),
            )
            made[f"show {name}"] = box
        return made

    def dtypes(self) -> list[str]:
        if self.measure is None:
            return list(dict.fromkeys(r.dtype for r in recorded(dtype=None, table=None)))
        import torch

        # A T4 (compute capability 7.5) has no bfloat16 arithmetic.
        old = torch.cuda.is_available() and torch.cuda.get_device_capability() < (8, 0)
        return [d for d in DTYPES if not (old and d == "bfloat16")]

    def arrange(self, w, controls) -> list:
        boxes = [c for name, c in controls.items() if name.startswith("show ")]
        rows = [c for name, c in controls.items() if not name.startswith("show ")]
        rows.append(w.HBox(boxes, layout=w.Layout(flex_flow="row wrap", margin="4px 0 4px 30px")))
        if self.measure is not None:
            self._sweep = w.Button(description="Sweep all widths", layout=w.Layout(width="160px"))
            self._stop_button = w.Button(description="Stop", disabled=True, layout=w.Layout(width="90px"))
            self._bar = w.IntProgress(min=0, max=1, value=0, layout=w.Layout(width="240px"))
            self._status = w.HTML()
            self._sweep.on_click(lambda _: self.sweep())
            self._stop_button.on_click(lambda _: self.stop.set())
            rows.append(w.HBox([self._sweep, self._stop_button, self._bar]))
            rows.append(self._status)
        return rows

    def changed(self, name, value) -> None:
        if name.startswith("show "):
            kernel = name[5:]
            kept = [k for k in self.values["hidden"] if k != kernel]
            self.values["hidden"] = tuple(kept if value else [*kept, kernel])
        else:
            self.values[name] = value
        if name in ("dtype", "shapes") and self.measure is None:
            self._new_widths()
        if self.measure is not None and name in ("columns", "rows"):
            self.measure_at([self.values["columns"]])
        self.redraw()

    def _new_widths(self) -> None:
        """Other shapes were recorded at other widths: keep the slider on the nearest one."""
        slider, columns = self._controls["columns"], self._nearest(self.values["columns"])
        widths = [(count(c), c) for c in self.widths(self.values["dtype"], self.values["shapes"])]
        self.values["columns"] = columns
        if list(slider.options) != widths:
            with slider.hold_trait_notifications():
                slider.options = widths
                slider.value = columns
            self.values["columns"] = columns

    # Measuring, in a thread: the page goes on meanwhile, and another move or Stop ends it early

    def measure_at(self, widths: Sequence[int]) -> None:
        """Begin to measure the visible contenders at these widths; what was under way stops."""
        self.stop.set()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._measure_all, args=(widths, self.stop), daemon=True)
        self.thread.start()

    def sweep(self) -> None:
        """Begin to measure at every width."""
        self.measure_at(self.widths(self.values["dtype"], self.values["shapes"]))

    def wait(self, seconds: float | None = None) -> None:
        """Wait until what is being measured is measured."""
        if self.thread is not None:
            self.thread.join(seconds)

    def _measure_all(self, widths, stop) -> None:
        with self.lock:
            self._progress(0, len(widths), stop)
            for done, columns in enumerate(widths, 1):
                problems = self._measure_one(columns, stop)
                if stop.is_set():
                    break
                self._progress(done, len(widths), stop, "; ".join(problems))
            if not stop.is_set():
                stop.set()
            self._progress(None, len(widths), stop)

    def _measure_one(self, columns, stop) -> list[str]:
        """Measure every visible contender at one width, drawing each; what failed, the others going on."""
        dtype, problems = self.values["dtype"], []
        rows = self.rows_at(self.values["shapes"], dtype)(columns)
        own = self.yours()
        names = [n for n in [*LIVE_KERNELS, *own] if n not in self.values["hidden"]]
        for name in names:
            if stop.is_set():
                break
            function = own.get(name)
            label = name if function is None else _version(name, function)
            try:
                measured = self.measure(function or name, rows, columns, dtype, LIVE_SECONDS / len(names))
            except Exception as problem:  # too wide for this kernel, out of memory, a learner's own mistake
                problems.append(f"{label}: {str(problem).splitlines()[0] if str(problem) else problem!r}")
                continue
            point = replace(measured, kernel=label, rows=rows, columns=columns, dtype=dtype)
            _live[label, rows, columns, dtype] = point
            self.redraw()
        return problems

    def _progress(self, done, of, stop, problem="") -> None:
        """Show how far it is; done None: over."""
        if self._box is None:
            return
        if done is not None:
            self._bar.max, self._bar.value = of, done
        busy = done is not None and done < of and not stop.is_set()
        if stop is self.stop or busy:
            self._stop_button.disabled = not busy
        if problem:
            self._status.value = f'<span role="status" style="padding-left:8px">{escape(problem)}</span>'
        elif done == 0:
            self._status.value = ""


def explore(*yours, live: bool | None = None, measure: Callable | None = None, **values) -> Explorer:
    """The width explorer: bandwidth against the width of a row, for a copy, PyTorch and the course's kernels.

    On a GPU each move of the slider measures there and adds its points; a button sweeps all widths. Without
    one it shows recorded results, labelled so, and scales them to other GPUs, labelled as a prediction.

    yours: functions x → y of your own to measure as well, such as fused_softmax; those whose exercise has
    passed are there anyway. live: False for recorded results in spite of a GPU. values: what is shown first:
    columns=781, dtype="bfloat16", shapes="4096 rows".
    """
    if measure is None and live is not False and _on_gpu():
        measure = _bench_measure

    def own():
        return {**(_passed() if measure is _bench_measure else {}), **{f.__name__: f for f in yours}}

    return Explorer(own, measure, **values)


def _on_gpu() -> bool:
    from course_kernels.mode import device

    return device() == "cuda"


def _bench_measure(kernel, rows, columns, dtype, seconds) -> Record:
    from course_kernels.lab.bench import measure

    return measure(kernel, rows, columns, dtype, seconds=seconds)


def _passed() -> dict[str, Callable]:
    """The learner's own kernels as their files are now, of the exercises that have passed."""
    from course_kernels.lab.core import progress as learning
    from course_kernels.lab.core.files import exercise_file

    found = {}
    for name in ("fused_softmax", "tiled_softmax"):
        path = exercise_file(name)
        if path.exists():
            found[name] = _yours(name, path.read_text(encoding="utf-8"), learning.of(name)["passed"])
    return {name: function for name, function in found.items() if function is not None}


@lru_cache(maxsize=32)
def _yours(name: str, text: str, passed: str | None) -> Callable | None:
    from course_kernels.lab.checking import yours

    return yours(name, None)  # once for each text, so that an unchanged kernel is compiled once


# Traffic ---------------------------------------------------------------------------------------------------


class TrafficBars(Interactive):
    """Traffic by operation for any shape: see `traffic_bars`."""

    SHAPES = sorted({*(1 << i for i in range(23)), 781, 50_257, 128_256})

    def draw(self, rows, columns, dtype, gpu) -> list[Display]:
        itemsize = figures.ITEMSIZE[dtype]
        operations = figures.eager_operations(rows, columns)
        written = [[name, int(r), int(w), quantity((r + w) * itemsize, "B")] for name, r, w in operations]
        for name, group in (("all five", operations), ("fused", figures.fused_operations(rows, columns))):
            r, w = sum(o[1] for o in group), sum(o[2] for o in group)
            written.append([name, int(r), int(w), quantity((r + w) * itemsize, "B")])
        table = Table(written, ["operation", "elements read", "elements written", "traffic"])
        return [figures.traffic_bars(rows, columns, dtype, gpu), table]

    def controls(self, w) -> Mapping:
        sizes = [(count(n), n) for n in self.SHAPES]
        v = self.values
        return {
            "rows": _choose(w, "rows", sizes, _closest(self.SHAPES, v["rows"])),
            "columns": _choose(w, "columns", sizes, _closest(self.SHAPES, v["columns"])),
            "dtype": _list(w, "dtype", list(DTYPES), v["dtype"]),
            "gpu": _list(w, "GPU", list(GPUS), v["gpu"]),
        }


def traffic_bars(
    rows: int = 4096, columns: int = 4096, dtype: str = "float32", gpu: str = "H200"
) -> TrafficBars:
    """Bars of what each operation of an eager softmax reads and writes, with the least time on a GPU."""
    return TrafficBars(rows=rows, columns=columns, dtype=dtype, gpu=gpu)


# Registers and occupancy -----------------------------------------------------------------------------------


class OccupancyExplorer(Interactive):
    """Registers, spills and occupancy of the fused kernel: see `occupancy_explorer`."""

    MOST_A_THREAD = 256  # values; past the register file already, and the compiler slows down fast

    def __init__(self, compiled: Callable | None = None, **values):
        super().__init__(**values)
        self.compiled = compiled or _compiled_fused_row
        self._cache: dict = {}

    def draw(self, block, warps, gpu) -> list[Display]:
        per_thread = max(block // (warps * 32), 1)
        if per_thread > self.MOST_A_THREAD:
            raise ValueError(
                f"{per_thread:,} values a thread take the compiler minutes, to no good end. "
                f"Take more warps, or a smaller BLOCK: up to {self.MOST_A_THREAD} values a thread."
            )
        if (block, warps) not in self._cache:
            if self._box is not None:
                self._problem.value = '<p role="status" style="margin:4px 0">Compiling …</p>'
            self._cache[block, warps] = self.compiled(block, warps)
        results = self._cache[block, warps]
        here = results.get(gpu)
        if here is None or here.get("error"):
            raise ValueError((here or {}).get("error") or f"The compiler gave no result for {gpu}.")
        title = f"BLOCK = {block:,}, {warps} warps on {gpu}: {per_thread} values a thread"
        picture = figures.multiprocessor(
            gpu, here["registers"], here["spilled"], here["shared"], warps, title
        )
        rows = []
        for name, r in results.items():
            if r.get("error"):
                rows.append([name, None, None, None, None, r["error"]])
                continue
            held = figures.occupancy(name, r["registers"], r["shared"], warps)
            rows.append(
                [
                    name,
                    r["registers"],
                    r["spilled"],
                    held.programs_per_sm,
                    f"{held.share:.0%}",
                    held.limited_by,
                ]
            )
        mark = list(results).index(gpu)
        headers = [
            "GPU",
            "registers a thread",
            "bytes spilled a thread",
            "programs an SM",
            "occupancy",
            "limited by",
        ]
        return [picture, Table(rows, headers, "From the real compiler, for each architecture", mark)]

    def controls(self, w) -> Mapping:
        v = self.values
        blocks = [(f"{1 << i:,}", 1 << i) for i in range(6, 18)]
        warps = [(str(1 << i), 1 << i) for i in range(int(math.log2(MAX_WARPS_PER_PROGRAM)) + 1)]
        return {
            "block": _choose(w, "BLOCK", blocks, v["block"], continuous_update=False),
            "warps": _choose(w, "warps", warps, v["warps"], continuous_update=False),
            "gpu": _list(w, "GPU", list(OCCUPANCY_GPUS), v["gpu"]),
        }


OCCUPANCY_GPUS = tuple(name.replace("A100-40GB", "A100-80GB") for name in SHOWN)


def occupancy_explorer(
    block: int = 4096, warps: int = 4, gpu: str = "H200", compiled=None
) -> OccupancyExplorer:
    """Choose BLOCK and the number of warps; the real compiler says what the fused kernel then needs.

    Compiled for each architecture by Triton's own compiler, with or without a GPU; each choice takes some
    tenths of a second the first time. compiled: another source of results, (block, warps) → {GPU:
    {"registers", "spilled", "shared"} or {"error"}}.
    """
    return OccupancyExplorer(compiled, block=block, warps=warps, gpu=gpu)


def _compiled_fused_row(block: int, warps: int) -> dict[str, dict]:
    from course_kernels.lab.report import compile_report

    report = compile_report("fused_row", x_shape=(4, block), block=block, num_warps=warps)
    if not report.rows:
        raise ValueError(report.error or "The compiler gave no result.")
    return {
        row["gpu"]: {"registers": row["registers"], "spilled": row["stack"], "shared": row["shared"]}
        if row["registers"]
        else {"error": row["error"]}
        for row in report.rows
    }


# The online recurrence -------------------------------------------------------------------------------------


def read_scores(text: str, most: int) -> list[float]:
    """Scores from "2, 5, 3"; inf and −inf are numbers too. ValueError, as a sentence, for anything else."""
    words = [word for word in re.split(r"[,;\s]+", text.strip().strip("[]()")) if word]
    if not words:
        raise ValueError("Type some scores with commas between them, such as 2, 5, 3.")
    if len(words) > most:
        raise ValueError(f"{len(words)} scores are too many to draw; {most} at most.")
    scores = []
    for word in words:
        number = as_number(word.replace("∞", "inf"))
        if number is None or math.isnan(number) or number == math.inf:
            raise ValueError(f"{word!r} is not a score: use numbers such as 2, −0.5 or -inf.")
        scores.append(float(number))
    return scores


def _write_scores(scores) -> str:
    return ", ".join(f"{float(score):g}" for score in scores)


class OnlineStepper(Interactive):
    """The online recurrence, a score at a time: see `online_stepper`."""

    MOST = 14

    def draw(self, scores, step) -> list[Display]:
        numbers = read_scores(scores, self.MOST)
        step = min(step, len(numbers))
        return [figures.recurrence_picture(numbers, step), figures.recurrence_table(numbers, step)]

    def controls(self, w) -> Mapping:
        v = self.values
        most = len(read_scores(v["scores"], self.MOST))
        return {
            "scores": w.Text(description="scores", value=v["scores"], continuous_update=False, **_wide(w)),
            "step": w.IntSlider(
                description="scores read", min=0, max=most, value=min(v["step"], most), **_wide(w)
            ),
        }

    def changed(self, name, value) -> None:
        if name == "scores":
            try:
                self._controls["step"].max = len(read_scores(value, self.MOST))
            except ValueError:
                pass  # redraw says what is wrong
        super().changed(name, value)


def online_stepper(scores=(2, 5, 3), step: int | None = None) -> OnlineStepper:
    """Step through the online maximum and sum on scores of your own; step: how many are read at first."""
    text = scores if isinstance(scores, str) else _write_scores(scores)
    most = len(read_scores(text, OnlineStepper.MOST))
    return OnlineStepper(scores=text, step=most if step is None else step)


class MergeTree(Interactive):
    """Merging in any order: see `merge_tree`."""

    MOST = 8

    def draw(self, scores, shape, seed) -> list[Display]:
        numbers = read_scores(scores, self.MOST)
        rows = []
        for other in figures.TREES:
            m, d, depth = figures.merged(numbers, other, seed)
            rows.append([other, depth, figures.short(m), repr(d)])
        headers = ["shape", "depth", "m at the root", "d at the root, all digits"]
        mark = figures.TREES.index(shape)
        return [figures.merge_tree(numbers, shape, seed), Table(rows, headers, mark=mark)]

    def controls(self, w) -> Mapping:
        v = self.values
        return {
            "scores": w.Text(description="scores", value=v["scores"], continuous_update=False, **_wide(w)),
            "shape": _list(w, "shape", list(figures.TREES), v["shape"]),
            "seed": w.IntSlider(description="shuffle", min=0, max=20, value=v["seed"], **_wide(w)),
        }


def merge_tree(scores=(2, 5, 3, 1, -1, 4), shape: str = "balanced", seed: int = 0) -> MergeTree:
    """The merges of (m, d) as a tree: choose its shape, and the root stays. seed: which shuffled tree."""
    return MergeTree(
        scores=scores if isinstance(scores, str) else _write_scores(scores), shape=shape, seed=seed
    )


# Tiles -----------------------------------------------------------------------------------------------------


class TilesWalk(Interactive):
    """One program walking its row in tiles: see `tiles_walk`."""

    def draw(self, columns, tile, step, backwards, cached_tiles) -> list[Display]:
        visits = figures.tile_visits(columns, tile, backwards, cached_tiles)
        picture = figures.tiles_walk(columns, tile, step, backwards, cached_tiles)
        rows = []
        for number in (1, 2):
            mine = [v for v in visits if v.which_pass == number]
            size = {True: 0, False: 0}
            for v in mine:
                size[v.cached] += min(columns - v.tile * tile, tile)
            rows.append([f"pass {number}", size[False], size[True], columns if number == 2 else 0])
        headers = ["whole walk", "elements read from DRAM", "read from L2", "written"]
        return [picture, Table(rows, headers)]

    def controls(self, w) -> Mapping:
        v = self.values
        tiles = self._tiles()
        sizes = sorted({v["tile"], *(1 << i for i in range(23) if 1 <= -(-v["columns"] // (1 << i)) <= 64)})
        return {
            "tile": _choose(w, "tile", [(f"{s:,}", s) for s in sizes], v["tile"]),
            "step": w.IntSlider(
                description="tiles read", min=0, max=2 * tiles, value=min(v["step"], 2 * tiles), **_wide(w)
            ),
            "cached_tiles": w.IntSlider(
                description="tiles L2 keeps",
                min=0,
                max=tiles,
                value=min(v["cached_tiles"], tiles),
                **_wide(w),
            ),
            "backwards": w.Checkbox(value=v["backwards"], description="second pass from the end", **_wide(w)),
        }

    def _tiles(self) -> int:
        return -(-self.values["columns"] // self.values["tile"])

    def changed(self, name, value) -> None:
        self.values[name] = value
        if name == "tile":
            self._controls["step"].max = 2 * self._tiles()
            self._controls["cached_tiles"].max = self._tiles()
            self.values["step"] = self._controls["step"].value
            self.values["cached_tiles"] = self._controls["cached_tiles"].value
        self.redraw()


def tiles_walk(
    columns: int = 1000,
    tile: int = 128,
    step: int | None = None,
    backwards: bool = False,
    cached_tiles: int = 0,
) -> TilesWalk:
    """Walk a row tile by tile, twice, and see which reads come from DRAM. step: tiles read at first."""
    step = 2 * -(-columns // tile) if step is None else step
    return TilesWalk(columns=columns, tile=tile, step=step, backwards=backwards, cached_tiles=cached_tiles)


def _closest(options, value):
    return min(options, key=lambda option: abs(math.log(option / max(value, 1))))
