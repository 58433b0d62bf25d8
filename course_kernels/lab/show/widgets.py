"""The widgets of the lessons: traffic, occupancy, the online recurrence, merge trees, the walk in tiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from course_kernels.lab.core.gpus import GPUS, MAX_WARPS_PER_PROGRAM, SHOWN, occupancy
from course_kernels.lab.core.wording import size
from course_kernels.lab.show import chip, merging, tiles, traffic
from course_kernels.lab.show.interactive import (
    Interactive,
    box,
    choice,
    closest,
    read_scores,
    scores_field,
    slider,
    steps,
    write_scores,
)
from course_kernels.lab.show.picture import Display, Table

DTYPES = ("float32", "float16", "bfloat16")
OCCUPANCY_GPUS = tuple(name.replace("A100-40GB", "A100-80GB") for name in SHOWN)


class TrafficBars(Interactive):
    """Traffic by operation for any shape: see `traffic_bars`."""

    SHAPES = sorted({*(1 << i for i in range(23)), 781, 50_257, 128_256})

    def draw(self, rows, columns, dtype, gpu) -> list[Display]:
        return [traffic.traffic_bars(rows, columns, dtype, gpu), traffic.traffic_table(rows, columns, dtype)]

    def controls(self, w) -> Mapping:
        sizes = [(size(n), n) for n in self.SHAPES]
        v = self.values
        return {
            "rows": slider(w, "rows", sizes, closest(self.SHAPES, v["rows"])),
            "columns": slider(w, "columns", sizes, closest(self.SHAPES, v["columns"])),
            "dtype": choice(w, "dtype", list(DTYPES), v["dtype"]),
            "gpu": choice(w, "GPU", list(GPUS), v["gpu"]),
        }


def traffic_bars(
    rows: int = 4096, columns: int = 4096, dtype: str = "float32", gpu: str = "H200"
) -> TrafficBars:
    """Bars of what each operation of an eager softmax reads and writes, with the least time on a GPU."""
    return TrafficBars(rows=rows, columns=columns, dtype=dtype, gpu=gpu)


class OccupancyExplorer(Interactive):
    """Registers, spills and occupancy of the fused kernel, from a compiler.

    compiled: (block, warps) → {GPU: {"registers", "spilled", "shared"} or {"error"}}; ValueError where it has
    none.
    """

    MOST_A_THREAD = 256  # values; past the register file already, and the compiler slows down fast

    def __init__(self, compiled: Callable, **values):
        super().__init__(**values)
        self.compiled = compiled
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
                self.say("Compiling …")
            self._cache[block, warps] = self.compiled(block, warps)
        results = self._cache[block, warps]
        here = results.get(gpu)
        if here is None or here.get("error"):
            raise ValueError((here or {}).get("error") or f"The compiler gave no result for {gpu}.")
        values = "1 value a thread" if per_thread == 1 else f"{per_thread} values a thread"
        title = f"BLOCK = {block:,}, {warps} warps on {gpu}: {values}"
        picture = chip.multiprocessor(gpu, here["registers"], here["spilled"], here["shared"], warps, title)
        rows = []
        for name, r in results.items():
            if r.get("error"):
                rows.append([name, None, None, None, None, r["error"]])
            else:
                held = occupancy(name, r["registers"], r["shared"], warps)
                fits = [held.programs_per_sm, f"{held.share:.0%}", held.limited_by]
                rows.append([name, r["registers"], r["spilled"], *fits])
        headers = [
            "registers a thread",
            "bytes spilled a thread",
            "programs an SM",
            "occupancy",
            "limited by",
        ]
        caption, mark = "From the real compiler, for each architecture", list(results).index(gpu)
        return [picture, Table(rows, ["GPU", *headers], caption, mark)]

    def controls(self, w) -> Mapping:
        v = self.values
        blocks = [(f"{1 << i:,}", 1 << i) for i in range(6, 18)]
        warps = [(str(1 << i), 1 << i) for i in range(int(math.log2(MAX_WARPS_PER_PROGRAM)) + 1)]
        return {
            "block": slider(w, "BLOCK", blocks, v["block"], continuous_update=False),
            "warps": slider(w, "warps", warps, v["warps"], continuous_update=False),
            "gpu": choice(w, "GPU", list(OCCUPANCY_GPUS), v["gpu"]),
        }


class OnlineStepper(Interactive):
    """The online recurrence, a score at a time: see `online_stepper`."""

    MOST = 14

    def draw(self, scores, step) -> list[Display]:
        numbers = read_scores(scores, self.MOST)
        step = min(step, len(numbers))
        return [merging.recurrence_picture(numbers, step), merging.recurrence_table(numbers, step)]

    def controls(self, w) -> Mapping:
        scores = self.values["scores"]
        most = self._length(scores) or self.MOST
        return {
            "scores": scores_field(w, scores),
            "step": steps(w, "scores read", min(self.values["step"], most), most),
        }

    def changed(self, name, value) -> None:
        if name == "scores" and (length := self._length(value)):
            step = self._controls["step"]
            at_the_end = step.value == step.max
            with self.quietly():
                step.max = length
                step.value = length if at_the_end else min(step.value, length)
            self.values["step"] = step.value
        super().changed(name, value)

    def _length(self, scores) -> int:
        """How many scores the text holds; 0 if it cannot be read, and `draw` says why."""
        try:
            return len(read_scores(scores, self.MOST))
        except ValueError:
            return 0


def online_stepper(scores=(2, 5, 3), step: int | None = None) -> OnlineStepper:
    """Step through the online maximum and sum on scores of your own; step: how many are read at first."""
    return OnlineStepper(scores=write_scores(scores), step=OnlineStepper.MOST if step is None else step)


class MergeTree(Interactive):
    """Merging in any order: see `merge_tree`."""

    MOST = 8

    def draw(self, scores, shape, seed) -> list[Display]:
        numbers = read_scores(scores, self.MOST)
        return [merging.merge_tree(numbers, shape, seed), merging.tree_table(numbers, shape, seed)]

    def controls(self, w) -> Mapping:
        v = self.values
        shuffle = steps(w, "shuffle", v["seed"], 20)
        shuffle.disabled = v["shape"] != "shuffled"
        return {
            "scores": scores_field(w, v["scores"]),
            "seed": shuffle,
            "shape": choice(w, "shape", list(merging.TREES), v["shape"]),
        }

    def changed(self, name, value) -> None:
        if name == "shape":
            self._controls["seed"].disabled = value != "shuffled"
        super().changed(name, value)


def merge_tree(scores=(2, 5, 3, 1, -1, 4), shape: str = "balanced", seed: int = 0) -> MergeTree:
    """The merges of (m, d) as a tree: choose its shape, and the root stays. seed: which shuffled tree."""
    return MergeTree(scores=write_scores(scores), shape=shape, seed=seed)


class TilesWalk(Interactive):
    """One program walking its row in tiles: see `tiles_walk`."""

    def draw(self, columns, tile, step, backwards, cached_tiles) -> list[Display]:
        return [
            tiles.tiles_walk(columns, tile, step, backwards, cached_tiles),
            tiles.walk_table(columns, tile, backwards, cached_tiles),
        ]

    def controls(self, w) -> Mapping:
        v = self.values
        count, columns = self._tiles(), v["columns"]
        fit = {1 << i for i in range(23) if -(-columns // (1 << i)) <= tiles.MOST and (1 << i) < 2 * columns}
        sizes = [(f"{s:,}", s) for s in sorted({v["tile"], *fit})]
        return {
            "tile": slider(w, "tile", sizes, v["tile"]),
            "step": steps(w, "tiles read", v["step"], 2 * count),
            "cached_tiles": steps(w, "tiles L2 keeps", v["cached_tiles"], count),
            "backwards": box(w, "second pass from the end", v["backwards"]),
        }

    def _tiles(self) -> int:
        return -(-self.values["columns"] // self.values["tile"])

    def changed(self, name, value) -> None:
        self.values[name] = value
        if name == "tile":
            with self.quietly():
                self._controls["step"].max = 2 * self._tiles()
                self._controls["cached_tiles"].max = self._tiles()
            self.values |= {key: self._controls[key].value for key in ("step", "cached_tiles")}
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
