"""Exercise: softmax of few, long rows, several programs a row."""

from pathlib import Path

from course_kernels.lab.judge import Finding, dtype_name
from course_kernels.lab.specs.base import Hint
from course_kernels.lab.specs.kernel import large
from course_kernels.lab.specs.softmax import (
    SoftmaxExercise,
    half_precision,
    half_scratch,
    tile_cases,
    unwritten_scratch,
)
from course_kernels.lab.specs.tiled_softmax import LONG_CALLS

LEFT_OUT = (
    "whole",
    "walk_gap",
)  # for time: a program costs the interpreter a millisecond, and there are many


class SplitSoftmax(SoftmaxExercise):
    name = "split_softmax"
    notebook = "05_tiling_long_rows"
    entry = "split_softmax"
    brief = (
        "split_softmax(x) → y: the softmax of each row of x (rows, columns), several programs a row: one "
        "launch leaves "
        "the maximum and the sum of each chunk of columns, the next merges them and writes y. x "
        "is loaded "
        "twice and y stored once; the chunks' results are the only extra."
    )
    tile = 1024  # the usual chunk, for which the cases are made; others may be as good
    alone = 8 * tile  # columns that one program may take on its own
    compile_calls = LONG_CALLS
    gpu_shapes = ((2, 1_000_000, "float32"), (5, 100_001, "float32"), (1, 262_144, "float16"))
    hints = (
        Hint(
            "it is not clear how programs can share a row",
            "No program can wait for another inside a launch, but a launch waits for the one before it. So "
            "the first "
            "launch lets each program leave what it knows of its chunk, two numbers, and the second one "
            "reads those of "
            "all chunks of its row.",
        ),
        Hint(
            "long rows are wrong, or NaN",
            "A chunk's sum was taken against the chunk's own maximum: it counts for exp(chunk's m − row's m) "
            "of its "
            "value. A chunk of −∞ only must leave (−∞, 0), or its NaN reaches the whole row. And lanes past "
            "the last "
            "chunk must load −∞ and 0.",
        ),
        Hint(
            "it is still wrong",
            "First kernel: m = tl.max(x, axis=0); d = tl.sum(tl.exp(x - tl.where(m == -float('inf'), 0.0, "
            "m)), axis=0). "
            "Second kernel, with the chunks' results in chunk_m and chunk_d: m = tl.max(chunk_m, axis=0); "
            "d = tl.sum(chunk_d * tl.exp(chunk_m - m), axis=0); then tl.exp(x - m) / d.",
        ),
    )
    lesson = (
        "The pair (m, d) that joined lanes and tiles now joined programs, through a few numbers in memory. "
        "The traffic "
        "is that of the tiled kernel, and the time is not: with one row and one program a single "
        "multiprocessor works, "
        "with a program a chunk all of them do. Between the two launches lies the one wait for all programs "
        "that every "
        "GPU has."
    )

    def cases(self, rng):
        return [case for case in tile_cases(rng, self.tile) if case.kind not in LEFT_OUT]

    def large_cases(self, rng):
        return large(rng, (17_000, 34_000), rows=(33, 50))

    def experiments(self):
        usual = [e for e in super().experiments() if e is not half_precision]
        return [unwritten_scratch, half_scratch, half_precision, *usual]

    def judge(self, session):
        try:
            return super().judge(session)
        except Finding as finding:
            if finding.mistake == "timeout" and waits(session.path):
                finding.mistake = "waits_for_programs"
                finding.why = (
                    "Likely: a program waits in a loop for what another one is to leave. The interpreter "
                    "runs programs "
                    "one after the other, and a GPU need not start the second before the first has ended: "
                    "both wait "
                    "for ever."
                )
                finding.next = (
                    "Use two launches: the second starts when all programs of the first have ended."
                )
            raise

    def check_cost(self, session, case, result):
        """x twice, y once; the chunks' results are counted apart."""
        rows, columns = case.x.shape
        at = f"The case: x is {case.shape} {dtype_name(case)}, {case.about}."
        size, counted = case.x.dtype.itemsize, int(result.x_loads.sum())
        shared = result.programs_by_launch
        programs = sum(_product(launch["grid"]) for launch in result.launches)
        # Every program may read a few numbers of each chunk of its row, and leave a few.
        few_loads = case.x.size // 20 + 4 * programs * max(shared, default=1) + 8 * programs
        few_stores = case.x.size // 20 + 8 * programs
        if counted > 2 * case.x.size:
            raise Finding(
                "extra_loads",
                "The values are right, but the traffic is too high. You read each element of x "
                f"{counted / case.x.size:.3g} times; 2 would do.",
                at,
                f"Counted: {counted} elements of x loaded ({counted * size:,} bytes); needed: "
                f"{2 * case.x.size} "
                f"({2 * case.x.size * size:,} bytes). There were {len(result.launches)} launches.",
                "A chunk's maximum and sum come from one load of it: the sum is taken against the chunk's "
                "own maximum, "
                "and rescaled when the chunks are merged.",
            )
        if result.stores > case.x.size + few_stores or result.loads - counted > few_loads:
            scratch = result.stores - case.x.size
            raise Finding(
                "extra_scratch",
                f"The values are right, but too much goes through scratch memory: {scratch} elements are "
                "stored besides "
                f"y, and {result.loads - counted} loaded besides x.",
                at,
                f"Counted: {result.stores} elements stored; needed: {case.x.size} for y and two for each "
                "chunk.",
                "Leave two numbers a chunk, its maximum and its sum; take the exponentials anew in the last "
                "launch.",
            )
        if columns > self.alone and min(shared) < 2:
            which = "each launch" if max(shared) < 2 else f"launch {shared.index(min(shared)) + 1}"
            raise Finding(
                "one_program_a_row",
                f"The values are right, but in {which} one program walks the whole row alone.",
                at,
                f"Counted: the programs that loaded from one row were {', then '.join(map(str, shared))}. On "
                "a GPU one "
                "row then keeps one multiprocessor busy, of more than a hundred.",
                "Give the grid a second axis, the chunks: (rows, triton.cdiv(columns, CHUNK)), in both "
                "launches.",
            )

    def tile_fingerprints(self, x, tile):
        return [
            entry for entry in super().tile_fingerprints(x, tile) if entry[0] not in ("lanes_not_merged",)
        ]


def _product(grid) -> int:
    return grid[0] * grid[1] * grid[2]


def waits(path: str) -> bool:
    """True if the file has a while loop that looks at memory."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    return "while" in text and (
        "atomic" in text or "volatile" in text or "tl.load" in text.split("while", 1)[1]
    )


EXERCISE = SplitSoftmax()
