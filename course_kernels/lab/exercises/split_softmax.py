"""Exercise: softmax of few, long rows, several programs a row."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from course_kernels.lab.check.judge import Case, Finding, Tweaks, dtype_name
from course_kernels.lab.check import addressing
from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.rows import large
from course_kernels.lab.exercises.softmax import (
    SoftmaxExercise,
    half_precision,
    half_scratch,
    softmax64,
    tile_cases,
    unwritten_scratch,
)
from course_kernels.lab.exercises.tiled_softmax import LONG_CALLS
from course_kernels.lab.core.wording import count

WIDEST = 32_768  # columns of a chunk
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
    keep_digits = (
        SoftmaxExercise.keep_digits
        + " Leave a chunk's maximum and its sum as two numbers: in m + log(d) the sum is rounded to the "
        "steps that float32 has at the size of m."
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
        own = [rows_collide, unwritten_scratch, scratch_padding, half_scratch, half_precision, chunk_padding]
        return own + usual

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

    def check_more(self, session, cases, results):
        """Chunks are as wide as the learner likes: the holes of `tile_cases` once more, in chunks so wide."""
        chunk = max(result.widest_load for result in results)
        if not self.tile < chunk <= WIDEST:
            return
        x = (session.rng.normal(size=(2, 4 * chunk)) * 2 - 200).astype(np.float32)
        x[0, : 2 * chunk] = x[1, chunk : 3 * chunk] = -np.inf
        case = Case("holes", f"rows far below 0, with −∞ in two of four chunks of {chunk:,} columns", x)
        (result,) = session.run([case])
        self.check_run(session, case, result)
        if (bad := self.wrong_rows(case, result)) is not None:
            raise self.diagnose(session, case, result, bad, [*cases, case], [*results, result])

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
                f"Counted: {count(counted, 'element')} of x loaded ({counted * size:,} bytes); needed: "
                f"{2 * case.x.size:,} "
                f"({2 * case.x.size * size:,} bytes), in "
                f"{count(len(result.launches), 'launch', 'launches')}.",
                "A chunk's maximum and sum come from one load of it: the sum is taken against the chunk's "
                "own maximum, "
                "and rescaled when the chunks are merged.",
            )
        if result.stores > case.x.size + few_stores or result.loads - counted > few_loads:
            scratch = result.stores - case.x.size
            raise Finding(
                "extra_scratch",
                "The values are right, but too much goes through tensors of your own: "
                f"{count(scratch, 'element')} stored besides y, and {result.loads - counted:,} loaded "
                f"besides x.",
                at,
                f"Counted: {count(result.stores, 'element')} stored; needed: {case.x.size:,} for y and two "
                f"for "
                "each chunk.",
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

    def fingerprint_table(self, case, tile):
        x = case.x.astype(np.float64)
        chunks = [x[:, s : s + tile] for s in range(0, x.shape[1], max(tile, 1))] if tile else [x]
        tops = np.hstack([chunk.max(axis=1, keepdims=True) for chunk in chunks])
        with np.errstate(all="ignore"):
            sums = np.hstack(
                [np.exp(c - c.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True) for c in chunks]
            )
            m = sums.max(axis=1, keepdims=True)
            exchanged = np.exp(x - m) / (tops * np.exp(sums - m)).sum(axis=1, keepdims=True)
            m = tops.max(axis=1, keepdims=True)
            exponent = np.exp(x - m) / np.exp(sums + tops - m).sum(axis=1, keepdims=True)
            table = super().fingerprint_table(case, tile)
        return [
            *table,
            ("swapped", exchanged, "The chunks' maxima and sums have changed places between the two "
                                   "launches: what "
             "is merged as the maxima are the sums.",
             "Compare the order of m and d in the launches, and in the stores, with the kernels' own, name "
             "by name."),
            ("sum_in_exponent", exponent, "The chunks' sums stand in the exponent, as logarithms would.",
             MERGE),
        ]  # fmt: skip

    def tile_fingerprints(self, x, tile):
        columns = x.shape[1]
        so_far = np.hstack([softmax64(x[:, : s + tile])[:, s:] for s in range(0, columns, tile)])
        table = [
            (mistake, given, *TOLD.get(mistake, (what, advice)))
            for mistake, given, what, advice in super().tile_fingerprints(x, tile)
            if mistake not in NOT_HERE
        ]
        table.append(
            ("chunks_so_far", so_far, "Each chunk of the result knows of those up to itself only.", MERGE)
        )  # fmt: skip
        for part in (2, 4):  # chunks of the first launch that are narrower than those of the second
            covered = -(-columns // tile) * (tile // part)
            seen = x[:, :covered]
            m = seen.max(axis=1, keepdims=True)
            given = np.exp(x - m) / np.exp(seen - m).sum(axis=1, keepdims=True)
            what = (
                f"The launches divide a row differently: the chunks of the first one are {tile // part} "
                f"wide, and cover {covered:,} of {columns:,} columns."
            )
            table.append(("chunk_widths_differ", given, what, "Give both launches the same CHUNK."))
        return table


NOT_HERE = ("lanes_not_merged", "normalised_early", "not_reloaded", "never_rescaled", "rescaled_twice")
MERGE = (
    "In the second launch load the results of all chunks of the row, and merge them: m = tl.max(chunk_m, "
    "axis=0), "
    "d = tl.sum(chunk_d * tl.exp(chunk_m - m), axis=0)."
)
# What a walk's mistakes are called where chunks take the place of tiles.
TOLD = {
    "tiles_alone": (
        "Each chunk is normalised on its own, as if it were a row: the second launch uses the maximum and "
        "the sum "
        "of one chunk.",
        MERGE,
    ),
    "tile_sums_added": (
        "Each chunk's sum was taken against its own maximum, and the second launch adds the sums as they "
        "are.",
        MERGE,
    ),
    "first_tile_only": ("Only the result of the first chunk counts.", MERGE),
    "last_tile_only": ("Only the result of the last chunk counts.", MERGE),
    "rescaled_backwards": (
        "The chunks' sums are rescaled the wrong way: the exponent should be a chunk's own maximum minus the "
        "row's, and has the opposite sign.",
        MERGE,
    ),
    "own_maximum": (
        "The merged sum is right, but each chunk's numerators are taken against the chunk's own maximum.",
        "Subtract the maximum of the row in the second launch too: tl.exp(x - m) / d, with m merged from all "
        "chunks.",
    ),
    "own_sum": (
        "The numerators are right, but each chunk's are divided by the sum of that chunk alone.",
        MERGE,
    ),
    "first_tile_dropped": ("The first chunk is left out of the maximum and the sum.", MERGE),
    "last_tile_dropped": ("The last, partial chunk is left out of the maximum and the sum.", MERGE),
    "maximum_of_last_tile": ("The maximum is that of the last chunk, not that of the row.", MERGE),
    "same_tile": (
        "Each chunk of the result is that of the first chunk.",
        "Load and store at the chunk's own columns: chunk * CHUNK + the lanes.",
    ),
}


def _product(grid) -> int:
    return grid[0] * grid[1] * grid[2]


def rows_collide(exercise, session, case, result):
    """Programs of different rows that store at the same place."""
    kept = {output.get("region") for output in result.outputs}
    found = [
        (launch, collision)
        for launch in result.launches
        for collision in launch["collisions"]
        if collision[0] not in kept
    ]
    if not found or len(case.x) < 2:
        return None
    if not exercise.right(
        session, [replace(case, x=case.x[i : i + 1].copy(), gap=0) for i in range(len(case.x))]
    ):
        return None
    launch, (region, element, program, other) = found[0]
    name = addressing.called(result, region, launch["kernel"])
    programs = f"programs {tuple(other[:2])} and {tuple(program[:2])}"
    return Finding(
        "rows_collide",
        f"Rows overwrite each other's results: in {name}, two programs of {launch['kernel']} that work on "
        f"different "
        f"rows store at element {element}.",
        "",
        f"Proven: each row alone comes out right. Seen: {programs}, for example.",
        "Give each chunk of each row a place of its own: row * chunks + chunk.",
    )


def scratch_padding(exercise, session, case, result):
    """Masked lanes without other= in the loads of the chunks' results."""
    bare = sorted(set(result.bare) - {"x"} - {output.get("region") for output in result.outputs})
    # −1e30 is no maximum, and times exp(−1e30 − m), which is 0, it adds nothing.
    if not bare or not exercise.right(session, [case], Tweaks(bare_lanes=-1e30)):
        return None
    names = [addressing.called(result, region, launch["kernel"]) for region in bare
             for launch in result.launches[-1:]]  # fmt: skip
    what = "the load from " + " and that from ".join(names)
    return Finding(
        "padding_missing",
        f"Masked lanes hold no defined value: {what} {'have' if len(names) > 1 else 'has'} a mask, but no "
        f"other=.",
        "",
        "Proven: with a very low number forced into these lanes, your kernels are right. (Here they hold "
        "NaN, on a "
        "GPU whatever the register held.)",
        "Lanes past the last chunk must change nothing: other=-float('inf') for the maxima, other=0.0 for "
        "the sums.",
    )


def chunk_padding(exercise, session, case, result):
    """Lanes past the last chunk that count: right for 2 and 4 chunks, and wrong for 3."""
    tile = result.widest_load
    if not 0 < tile < case.x.shape[1] or not np.isfinite(case.x).all():
        return None
    row = np.tile(case.x[exercise.wrong_rows(case, result)[0]], 4)[None]
    if row.shape[1] < 4 * tile:
        return None
    two, three, four = (replace(case, x=row[:, : n * tile].copy(), gap=0) for n in (2, 3, 4))
    if not exercise.right(session, [two, four]) or exercise.right(session, [three]):
        return None
    return Finding(
        "chunk_padding",
        "The masked lanes past the last chunk hold something that counts as a chunk.",
        "",
        f"Proven: rows of 2 and of 4 chunks of {tile} come out right, and one of 3, where the next power of "
        "two leaves a lane over, does not.",
        "Lanes past the last chunk must change nothing: other=-float('inf') for the maxima, other=0.0 for "
        "the sums.",
    )


def waits(path: str) -> bool:
    """True if the file has a while loop that looks at memory."""
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    return "while" in text and (
        "atomic" in text or "volatile" in text or "tl.load" in text.split("while", 1)[1]
    )


EXERCISE = SplitSoftmax()
