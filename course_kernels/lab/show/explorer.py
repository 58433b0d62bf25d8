"""The width explorer: bandwidth against width, recorded or measured here. `lab.curve.explore` makes one.

The plot is drawn once for a set of records; a move of the slider lays a cursor over it.
"""

from __future__ import annotations

import inspect
import linecache
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from html import escape

from course_kernels.lab.bench.results import Record, recorded
from course_kernels.lab.core.gpus import GPUS, find_gpu
from course_kernels.lab.core.wording import quantity, size
from course_kernels.lab.show.bandwidth import BandwidthPlot, MatrixPlot, aligned, regions
from course_kernels.lab.show.interactive import Interactive, box, choice, closest, slider
from course_kernels.lab.show.picture import Display, Prose, Table
from course_kernels.lab.show.traffic import itemsize

DTYPES = ("float32", "float16", "bfloat16")
LIVE = ("copy", "torch", "eager", "softmax", "fused_row", "tiled", "split_row", "resident_row", "compile")
# Too many lines at once hide each other, and torch.compile takes seconds; a box shows them.
HIDDEN = {"liger", "quack", "compile", "multi_row", "packed_row", "online", "split_row", "cluster_row",
          "resident_row", "prototype"}  # fmt: skip
HIDDEN_LIVE = {"split_row", "resident_row", "compile"}
# Powers of two, one past them, and widths that real models have.
WIDTHS = sorted(
    {*(1 << i for i in range(6, 23)), *((1 << i) + 1 for i in range(10, 17)), 781, 50_257, 128_256}
)
LIVE_SECONDS = 1.5  # measuring at one width, all contenders together
LARGE, UNALIGNED, FIXED, FEW, BY_HAND = "large", "unaligned", "4096 rows", "few rows", "by hand"
SHAPES = {
    LARGE: "rows to fill memory",
    UNALIGNED: "the same, unaligned widths",
    FIXED: "4096 rows",
    FEW: "few rows",
    BY_HAND: "rows by hand",
}
UNITS = {"GB/s": False, "share of a copy": True}


class Explorer(Interactive):
    """What both explorers share. Subclasses say which records there are, and where from.

    values: columns (the width marked; with few rows a pair (rows, columns)), dtype, shapes (a key of SHAPES),
    unit (a key of UNITS), hidden (names of contenders).
    """

    LEAST_HEIGHT = "250px"
    shapes: tuple[str, ...] = ()

    def __init__(self, **values):
        first = {"columns": 4096, "dtype": "float32", "shapes": LARGE, "unit": "GB/s"}
        if "shapes" not in values and values.get("columns", 0) % 8:
            first["shapes"] = UNALIGNED
        super().__init__(**{**first, **values})
        for key, among in (("shapes", self.shapes), ("unit", UNITS), ("dtype", self.dtypes())):
            if self.values[key] not in among:
                raise ValueError(f"No {key} {self.values[key]!r}. There are: {', '.join(among)}.")
        self.values["columns"] = self._nearest(self.values["columns"])
        self._plots: dict = {}

    def dtypes(self) -> list[str]:
        raise NotImplementedError

    def contenders(self) -> list[str]:
        raise NotImplementedError

    def points(self) -> list:
        """What the slider stands on, for these values: widths, or (rows, columns) pairs."""
        raise NotImplementedError

    def found(self) -> tuple[Sequence[Record], str, str]:
        """(records, where they come from, the GPU whose regions hold) for these values."""
        raise NotImplementedError

    def rows_at(self) -> Callable[[int], int]:
        """How many rows the matrix has at a width."""
        elements = self.elements()
        return lambda columns: 4096 if self.values["shapes"] == FIXED else max(elements // columns, 1)

    def elements(self) -> int:
        """The elements of a large matrix."""
        return (1 << 30) // itemsize(self.values["dtype"])

    def draw(self, columns, dtype, shapes, unit, hidden, **_) -> list[Display]:
        records, source, gpu = self.found()
        there = list(dict.fromkeys(r.kernel for r in records))
        kernels = tuple(k for k in there if k.split(" #")[0] not in hidden)
        if not kernels:
            raise ValueError(f"Nothing to show for {dtype}, {SHAPES[shapes]}: tick another kernel.")
        key = (tuple(records), kernels, source, unit)
        if key not in self._plots:
            self._plots = dict(list(self._plots.items())[-7:]) | {
                key: self._plot(records, kernels, source, gpu)
            }
        plot = self._plots[key]
        picture = plot.picture(columns)
        notes = [
            f"{m.name[0].upper()}{m.name[1:]}: {m.why}" for m in plot.marks if m.low <= columns <= m.high
        ]
        if shapes in (LARGE, UNALIGNED) and not notes:
            notes = [f"At {columns:,} columns none of the marked regions holds: DRAM traffic rules."]
        return [picture, self.table(records, kernels, source), Prose(*notes)]

    def _plot(self, records, kernels, source, gpu):
        share = UNITS[self.values["unit"]]
        if self.values["shapes"] == FEW:
            return MatrixPlot(records, kernels, source, share)
        widths, published, marks = [r.columns for r in records], find_gpu(gpu), []
        if published and len(set(widths)) > 1:
            marks = regions(self.rows_at(), min(widths), max(widths), self.values["dtype"], published)
        return BandwidthPlot(records, kernels, source, marks, share)

    def table(self, records, kernels, source) -> Table:
        at = self.values["columns"]
        rows_only, columns = at if isinstance(at, tuple) else (None, at)
        here = [
            r for r in records
            if r.columns == columns and r.kernel in kernels and rows_only in (None, r.rows)
        ]  # fmt: skip
        copy = {r.rows: r.gbps for r in records if r.columns == columns and r.kernel == "copy"}
        rows = []
        for r in sorted(here, key=lambda r: -r.gbps):
            share = f"{r.gbps / copy[r.rows]:.0%}" if r.rows in copy else None
            spread = None if r.spread is None else f"{r.spread:.1%}"
            rows.append(
                [r.kernel, size(r.rows), round(r.gbps), share, quantity(r.microseconds * 1e-6, "s"), spread]
            )
        heading = "GB/s, predicted" if source.startswith("PREDICTION") else "GB/s"
        headers = ["kernel", "rows", heading, "of copy", "time", "spread"]
        if not any(r.spread is not None for r in here):
            headers, rows = headers[:-1], [row[:-1] for row in rows]
        return Table(rows, headers, f"At {columns:,} columns")

    # Controls

    def _nearest(self, at):
        points = self.points()
        if at in points:
            return at
        columns = at[1] if isinstance(at, tuple) else at
        near = closest([p[1] if isinstance(p, tuple) else p for p in points], columns)
        return next(p for p in points if near == (p[1] if isinstance(p, tuple) else p))

    def _options(self):
        return [(f"{p[0]:,} × {size(p[1])}" if isinstance(p, tuple) else size(p), p) for p in self.points()]

    def controls(self, w) -> Mapping:
        v = self.values
        made = {
            "columns": slider(w, "columns", self._options(), v["columns"], **self.slider_options),
            "dtype": choice(w, "dtype", self.dtypes(), v["dtype"]),
            "shapes": choice(w, "matrix", [(SHAPES[s], s) for s in self.shapes], v["shapes"]),
            **self.more_controls(w),
            "unit": choice(w, "axis", list(UNITS), v["unit"]),
        }
        for name in self.contenders():
            made[f"show {name}"] = box(w, name, name not in v["hidden"])
        return made

    slider_options: Mapping = {}

    def more_controls(self, w) -> Mapping:
        return {}

    def arrange(self, w, controls) -> list:
        boxes = [c for name, c in controls.items() if name.startswith("show ")]
        rows = super().arrange(w, {n: c for n, c in controls.items() if not n.startswith("show ")})
        self._boxes = w.HBox(boxes, layout=w.Layout(flex_flow="row wrap", margin="4px 0"))
        return [*rows, self._boxes]

    def changed(self, name, value) -> None:
        if name.startswith("show "):
            kept = [k for k in self.values["hidden"] if k != name[5:]]
            self.values["hidden"] = tuple(kept if value else [*kept, name[5:]])
        else:
            self.values[name] = value
        if name in ("dtype", "shapes"):
            self._new_points()
        self.redraw()

    def _new_points(self) -> None:
        """Other matrices, other points for the slider to stand on: it keeps to the nearest one."""
        self.values["columns"] = self._nearest(self.values["columns"])
        if self._box is not None and self._controls["columns"].value != self.values["columns"]:
            options = self._options()
            with self.quietly():
                self._controls["columns"].options = options  # this alone would move it to the first
                self._controls["columns"].value = self.values["columns"]


class RecordedExplorer(Explorer):
    """Recorded results, of the H200 or scaled to another GPU (values["gpu"]) and then called a prediction."""

    shapes = (LARGE, UNALIGNED, FIXED, FEW)

    def __init__(self, **values):
        super().__init__(**{"gpu": "recorded", "hidden": tuple(HIDDEN), **values})

    def dtypes(self) -> list[str]:
        return list(dict.fromkeys(r.dtype for r in recorded(dtype=None, table=None)))

    def contenders(self) -> list[str]:
        return list(dict.fromkeys(r.kernel for r in recorded(dtype=None, table=None)))

    def points(self) -> list:
        records = _recorded(self.values["dtype"], self.values["shapes"])[0]
        if self.values["shapes"] == FEW:
            pairs = sorted({(r.columns, r.rows) for r in records})
            return [(rows, columns) for columns, rows in pairs] or [(1, 4096)]
        return sorted({r.columns for r in records}) or [4096]

    def found(self):
        gpu, dtype = self.values["gpu"], self.values["dtype"]
        records, source, name = _recorded(dtype, self.values["shapes"])
        if not records:
            raise ValueError(f"Nothing was recorded for {dtype}, {SHAPES[self.values['shapes']]}.")
        if gpu == "recorded":
            return records, source, name
        if gpu == "T4" and dtype == "bfloat16":
            raise ValueError("A T4 has no bfloat16 arithmetic, so there is nothing to predict for it.")
        return _predicted(dtype, self.values["shapes"], gpu)

    def more_controls(self, w) -> Mapping:
        names = [(f"{name}, predicted", name) for name in GPUS if name != "H200"]
        return {"gpu": choice(w, "GPU", [("H200, recorded", "recorded"), *names], self.values["gpu"])}

    def redraw(self) -> None:
        if self._box is not None:  # a box without records is grey
            there = {r.kernel for r in _recorded(self.values["dtype"], self.values["shapes"])[0]}
            for control in self._boxes.children:
                control.disabled = control.description not in there
                control.tooltip = "" if control.description in there else "not recorded for this matrix"
        super().redraw()


@lru_cache(maxsize=64)
def _recorded(dtype: str, shapes: str) -> tuple[tuple[Record, ...], str, str]:
    """The records of a family of matrices, where they come from, and the GPU they were recorded on."""
    found = recorded(dtype=dtype, table=LARGE if shapes == UNALIGNED else shapes)
    kept = tuple(r for r in found if shapes == FEW or aligned(r) != (shapes == UNALIGNED))
    return kept, found.source, (find_gpu(found.run.gpu) or GPUS["H200"]).name


@lru_cache(maxsize=64)
def _predicted(dtype: str, shapes: str, gpu: str):
    records, _, name = _recorded(dtype, shapes)
    factor = GPUS[gpu].gbps / GPUS[name].gbps
    scaled = tuple(
        replace(r, gbps=r.gbps * factor, microseconds=r.microseconds / factor, spread=None) for r in records
    )
    return scaled, f"PREDICTION for {gpu}: its published bandwidth × the share recorded on {name}", gpu


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


class LiveExplorer(Explorer):
    """Measured here, in a thread: the page goes on meanwhile, and another move or Stop ends it early.

    measure: (name or function, rows, columns, dtype, seconds) → Record. yours: asked anew before each
    measurement for the learner's own, name → function. gpu: (name, bytes of memory, has bfloat16).
    """

    shapes = (LARGE, UNALIGNED, FIXED, BY_HAND)
    slider_options = {"continuous_update": False}

    def __init__(self, measure: Callable, yours: Callable[[], Mapping], gpu: tuple[str, int, bool], **values):
        self.measure, self.yours = measure, yours
        self.gpu, self.memory, self.has_bfloat16 = gpu
        self.stop = threading.Event()  # of the measuring under way; the next one has its own
        self.thread: threading.Thread | None = None
        self.lock = threading.Lock()  # one measurement at a time
        super().__init__(**{"rows": 4096, "hidden": tuple(HIDDEN_LIVE), **values})

    def dtypes(self) -> list[str]:
        return [d for d in DTYPES if self.has_bfloat16 or d != "bfloat16"]

    def contenders(self) -> list[str]:
        return [*LIVE, *self.yours()]

    def points(self) -> list:
        return [c for c in WIDTHS if self._fits(c)]

    def _fits(self, columns) -> bool:
        unaligned = columns * itemsize(self.values["dtype"]) % 16 != 0
        return self.values["shapes"] in (FIXED, BY_HAND) or unaligned == (self.values["shapes"] == UNALIGNED)

    def elements(self) -> int:
        """1 GiB, or what leaves a GPU room for eight of it."""
        return min(1 << 30, self.memory // 12) // itemsize(self.values["dtype"])

    def rows_at(self) -> Callable[[int], int]:
        if self.values["shapes"] != BY_HAND:
            return super().rows_at()
        by_hand, elements = max(int(self.values["rows"]), 1), self.elements()
        return lambda columns: max(min(by_hand, 2 * elements // columns), 1)

    def found(self):
        rows_at, dtype = self.rows_at(), self.values["dtype"]
        here = tuple(
            r for r in list(_live.values())
            if r.dtype == dtype and r.rows == rows_at(r.columns) and self._fits(r.columns)
        )  # fmt: skip
        if here:
            return here, f"measured here: {self.gpu}", self.gpu
        shapes = LARGE if self.values["shapes"] == BY_HAND else self.values["shapes"]
        records, source, name = _recorded(dtype, shapes)
        if not records:
            raise ValueError("Nothing is measured yet: move the slider to measure here.")
        return records, f"{source}; move the slider to measure here", name

    def more_controls(self, w) -> Mapping:
        wide = w.Layout(width="auto", max_width="330px")
        return {
            "rows": w.BoundedIntText(
                description="rows", value=self.values["rows"], min=1, max=1 << 24, layout=wide
            )
        }

    def arrange(self, w, controls) -> list:
        self._sweep = w.Button(description="Sweep all widths", layout=w.Layout(width="160px"))
        self._stop_button = w.Button(description="Stop", disabled=True, layout=w.Layout(width="90px"))
        self._bar = w.IntProgress(min=0, max=1, value=0, layout=w.Layout(width="240px"))
        self._status = w.HTML()
        self._sweep.on_click(lambda _: self.sweep())
        self._stop_button.on_click(lambda _: self.stop.set())
        return [
            *super().arrange(w, controls), w.HBox([self._sweep, self._stop_button, self._bar]), self._status,
        ]  # fmt: skip

    def changed(self, name, value) -> None:
        super().changed(name, value)
        if name in ("columns", "rows"):
            self.measure_at([self.values["columns"]])

    def measure_at(self, widths: Sequence[int]) -> None:
        """Begin to measure the visible contenders at these widths; what was under way stops."""
        self.stop.set()
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._measure_all, args=(widths, self.stop), daemon=True)
        self.thread.start()

    def sweep(self) -> None:
        """Begin to measure at every width."""
        self.measure_at(self.points())

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
        """Measure every visible contender at one width, and draw; what failed, the others going on."""
        dtype, problems = self.values["dtype"], []
        rows = self.rows_at()(columns)
        own = self.yours()
        names = [n for n in [*LIVE, *own] if n not in self.values["hidden"]]
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
