"""Exercise: softmax of few, long rows, several programs a row."""

import math
from dataclasses import replace

import numpy as np

from course_kernels.lab.check import generic
from course_kernels.lab.check.bounds import called
from course_kernels.lab.check.cost import Price
from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.finding import Counted, Likely, Seen
from course_kernels.lab.check.kernels import KernelExercise
from course_kernels.lab.check.mistakes import Mistake, Probe
from course_kernels.lab.check.trial import Judgement, Trial
from course_kernels.lab.core.wording import count, grid
from course_kernels.lab.exercises import softmax
from course_kernels.lab.exercises.inputs import large_cases, tile_cases
from course_kernels.lab.exercises.tiled_softmax import LONG_CALLS
from course_kernels.lab.exercises.walks import TILES, Softmax
from course_kernels.lab.run.cases import Case

CHUNK = 1024  # the usual chunk, for which the cases are made; others may be as good
ALONE = 8 * CHUNK  # columns that one program may take on its own
WIDEST = 32_768  # columns of a chunk
LEFT_OUT = (
    "whole",
    "walk_gap",
)  # for time: a program costs the interpreter a millisecond, and there are many
MERGE = (
    "In the second launch load the results of all chunks of the row, and merge them: m = tl.max(chunk_m, "
    "axis=0), d = tl.sum(chunk_d * tl.exp(chunk_m - m), axis=0)."
)


def cases(rng: np.random.Generator) -> list[Case]:
    return [case for case in tile_cases(rng, CHUNK) if case.kind not in LEFT_OUT]


def wide_holes(judgement: Judgement) -> list[Case]:
    """Chunks are as wide as the learner likes: the holes of `tile_cases` once more, in chunks so wide."""
    chunk = max(trial.facts.widest_load for trial in judgement.trials)
    if not CHUNK < chunk <= WIDEST:
        return []
    x = (judgement.session.rng.normal(size=(2, 4 * chunk)) * 2 - 200).astype(np.float32)
    x[0, : 2 * chunk] = x[1, chunk : 3 * chunk] = -np.inf
    return [Case("holes", f"rows far below 0, with −∞ in two of four chunks of {chunk:,} columns", x)]


# What the mistakes of two launches give


class Split(Softmax):
    """The pairs of the chunks, side by side: tops and sums."""

    def chunks(self):
        tile = self.tile or self.columns
        parts = [self.x[:, start : start + tile] for start in range(0, self.columns, tile)]
        tops = [part.max(axis=1, keepdims=True) for part in parts]
        sums = [np.exp(part - top).sum(axis=1, keepdims=True) for part, top in zip(parts, tops, strict=True)]
        return np.hstack(tops), np.hstack(sums)

    def exchanged(self):
        """The maxima taken for the sums, and the sums for the maxima."""
        tops, sums = self.chunks()
        m = sums.max(axis=1, keepdims=True)
        return np.exp(self.x - m) / (tops * np.exp(sums - m)).sum(axis=1, keepdims=True)

    def sums_in_exponent(self):
        tops, sums = self.chunks()
        return self.e / np.exp(sums + tops - self.m).sum(axis=1, keepdims=True)

    def narrower(self, part: int):
        """The first launch's chunks are narrower than the second's, this many times, and miss a part."""
        seen = self.x[:, : -(-self.columns // self.tile) * (self.tile // part)] if self.walked else None
        if seen is None or not seen.shape[1]:
            return None
        m = seen.max(axis=1, keepdims=True)
        return np.exp(self.x - m) / np.exp(seen - m).sum(axis=1, keepdims=True)


NOT_HERE = (
    "lanes_not_merged", "normalised_early", "not_reloaded", "never_rescaled", "rescaled_twice",
    "tile_not_rescaled", "last_maximum_lost",
)  # fmt: skip
# What a walk's mistakes are called where chunks take the place of tiles.
IN_CHUNKS = {
    "tiles_alone": (
        "Each chunk is normalised on its own, as if it were a row: the second launch uses the maximum and "
        "the sum of one chunk.", MERGE,
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
        "row's, and has the opposite sign.", MERGE,
    ),
    "own_maximum": (
        "The merged sum is right, but each chunk's numerators are taken against the chunk's own maximum.",
        "Subtract the maximum of the row in the second launch too: tl.exp(x - m) / d, with m merged from all "
        "chunks.",
    ),
    "own_sum": ("The numerators are right, but each chunk's are divided by the sum of that chunk alone.",
                MERGE),
    "first_tile_dropped": ("The first chunk is left out of the maximum and the sum.", MERGE),
    "last_tile_dropped": ("The last, partial chunk is left out of the maximum and the sum.", MERGE),
    "maximum_of_last_tile": ("The maximum is that of the last chunk, not that of the row.", MERGE),
    "same_tile": (
        "Each chunk of the result is that of the first chunk.",
        "Load and store at the chunk's own columns: chunk * CHUNK + the lanes.",
    ),
}  # fmt: skip


def in_chunks(row: Mistake) -> Mistake:
    what, advice = IN_CHUNKS.get(row.name, (row.what, row.next))
    return replace(row, what=what, next=advice)


PREDICTED = (
    *softmax.PREDICTED,
    *(in_chunks(row) for row in TILES if row.name not in NOT_HERE),
    Mistake("chunks_so_far", "Each chunk of the result knows of those up to itself only.", MERGE,
            lambda s: s.tiles(
                lambda part, top, start: softmax.softmax64(s.x[:, : start + s.tile])[:, start:])),
    *(Mistake("chunk_widths_differ",
              "The launches divide a row differently: the first one's chunks are ‹part› wide, the second "
              "one's ‹chunk›, and they cover less than the row's columns.",
              "Give both launches the same width of a chunk.", lambda s, part=part: s.narrower(part),
              when=lambda t, part=part: {"part": t.facts.widest_load // part, "chunk": t.facts.widest_load})
      for part in (2, 4)),
    Mistake("swapped",
            "The chunks' maxima and sums have changed places between the two launches: what is merged as the "
            "maxima are the sums.",
            "Compare the order of m and d in the launches, and in the stores, with the kernels' own, name by "
            "name.",
            lambda s: s.exchanged()),
    Mistake("sum_in_exponent", "The chunks' sums stand in the exponent, as logarithms would.", MERGE,
            lambda s: s.sums_in_exponent()),
)  # fmt: skip

# The tensors between the launches


def collision(t: Trial) -> dict | None:
    """Programs of different rows that store at the same place."""
    kept = {output.get("region") for output in t.facts.outputs}
    for launch in t.facts.launches if t.rows > 1 else ():
        for region, element, program, other in launch["collisions"]:
            if region not in kept:
                return {
                    "name": called(t, region, launch["kernel"]), "kernel": launch["kernel"], "element":
                    element, "programs": f"programs {tuple(other[:2])} and {tuple(program[:2])}",
                }  # fmt: skip
    return None


def unwritten(t: Trial) -> dict | None:
    """What was loaded before it was stored."""
    if not t.facts.unwritten:
        return None
    kernel, program, number = t.facts.unwritten[0]
    grids = ", then ".join(f"{launch['kernel']} over {grid(launch)}" for launch in t.facts.launches)
    return {
        "kernel": kernel,
        "program": program[0],
        "elements": count(number, "such element"),
        "launches": grids,
    }


def bare(t: Trial) -> dict | None:
    """Masked lanes without other= in the loads of the chunks' results."""
    regions = sorted(set(t.facts.bare) - {"x"} - {output.get("region") for output in t.facts.outputs})
    names = [called(t, region, launch["kernel"]) for region in regions for launch in t.facts.launches[-1:]]
    what = "the load from " + " and that from ".join(names)
    return regions and {"what": what, "have": "have" if len(names) > 1 else "has"}


def in_half(t: Trial) -> dict | None:
    """Partial results kept in 16 bits."""
    kept = {"float16", "bfloat16"} & set(t.facts.scratch_dtypes)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.nanmax(np.abs(t.got - t.wanted) / np.maximum(np.abs(t.wanted), 1e-30))
    return (
        kept
        and error < 0.3
        and {"dtype": sorted(kept)[0], "error": f"{error:.2g}", "bits": f"{2.0**-11:.1g}"}
    )


def of_chunks(number: int, right: bool = True) -> Probe:
    """A row of so many whole chunks."""

    def change(t: Trial) -> Case | None:
        x, tile = np.tile(t.case.x[t.bad[0]], 4), t.facts.widest_load
        return t.like(x[: number * tile]) if len(x) >= 4 * tile else None

    return Probe(change, right)


LEAVE_ALONE = (
    "Lanes past the last chunk must change nothing: other=-float('inf') for the maxima, other=0.0 "
    "for the sums."
)
SCRATCH = (
    Mistake(
        "rows_collide",
        "Rows overwrite each other's results: in ‹name›, two programs of ‹kernel› that work on different "
        "rows store at element ‹element›.",
        "Give each chunk of each row a place of its own: row * chunks + chunk.",
        when=collision,
        probes=(generic.ALONE,),
        why="each row alone comes out right; ‹programs› store there, for example.",
    ),
    Mistake(
        "scratch_unwritten",
        "‹kernel› loads from memory that nothing has stored to yet.",
        "Let the earlier launch have a program for every chunk of every row, and store and load each result "
        "at the same address.",
        when=unwritten,
        why="its program ‹program› loads ‹elements›. torch.empty does not clear what it allocates; here it "
        "holds NaN. The launches were ‹launches›.",
        kind=Seen,
    ),
    Mistake(
        "padding_missing",
        "Masked lanes hold no defined value: ‹what› ‹have› a mask, but no other=.",
        LEAVE_ALONE,
        when=bare,
        # −1e30 is no maximum, and times exp(−1e30 − m), which is 0, it adds nothing.
        probes=(Probe(bare_lanes=-1e30),),
        why="with a very low number forced into these lanes, your kernels are right. (Here they hold NaN, on "
        "a GPU whatever the register held.)",
    ),
    Mistake(
        "half_scratch",
        "Partial results are kept in ‹dtype›, and what is lost there is lost for the whole row.",
        "Allocate the tensors for the partial maxima and sums with dtype=torch.float32, whatever the dtype "
        "of x.",
        when=in_half,
        why="the result is off by up to ‹error› of its value, and 11 bits keep ‹bits›.",
        kind=Likely,
    ),
)
CHUNK_PADDING = Mistake(
    "chunk_padding",
    "The masked lanes past the last chunk hold something that counts as a chunk.",
    LEAVE_ALONE,
    when=lambda t: 0 < t.facts.widest_load < t.columns and t.finite and {"tile": t.facts.widest_load},
    probes=(of_chunks(2), of_chunks(4), of_chunks(3, right=False)),
    why="rows of 2 and of 4 chunks of ‹tile› come out right, and one of 3, where the next power of two "
    "leaves a lane over, does not.",
)

# x twice, y once; the chunks' results are counted apart


def programs(p: Price) -> int:
    return sum(math.prod(launch["grid"]) for launch in p.facts.launches)


def x_loads(p: Price) -> int:
    return int(p.facts.x_loads.sum())


def reread(p: Price) -> dict | None:
    size, loads, needed = p.case.x.itemsize, x_loads(p), 2 * p.case.x.size
    return loads > needed and {
        "x_loads": count(loads, "element"), "bytes": f"{loads * size:,}", "needed": f"{needed:,}",
        "needed_bytes": f"{needed * size:,}", "launches": count(len(p.facts.launches), "launch", "launches"),
    }  # fmt: skip


def much_scratch(p: Price) -> dict | None:
    """Every program may read a few numbers of each chunk of its row, and leave a few."""
    few = p.case.x.size // 20 + 8 * programs(p)
    few_loads = few + 4 * programs(p) * max(p.facts.programs_by_launch, default=1)
    loads = p.facts.loads - x_loads(p)
    return (p.facts.stores > p.case.x.size + few or loads > few_loads) and {"own_loads": f"{loads:,}"}


def alone(p: Price) -> dict | None:
    """A launch in which one program walks a long row alone."""
    shared = p.facts.programs_by_launch
    if p.columns <= ALONE or min(shared) > 1:
        return None
    which = "each launch" if max(shared) < 2 else f"launch {shared.index(min(shared)) + 1}"
    return {"which": which, "shared": ", then ".join(map(str, shared))}


COST = (
    Mistake(
        "extra_loads",
        "The values are right, but the traffic is too high. You read each element of x ‹times› times; 2 "
        "would do.",
        "A chunk's maximum and sum come from one load of it: the sum is taken against the chunk's own "
        "maximum, and rescaled when the chunks are merged.",
        when=reread,
        why="‹x_loads› of x loaded (‹bytes› bytes); needed: ‹needed› (‹needed_bytes› bytes), in ‹launches›.",
        kind=Counted,
    ),
    Mistake(
        "extra_scratch",
        "The values are right, but too much goes through tensors of your own: ‹besides› stored besides y, "
        "and ‹own_loads› loaded besides x.",
        "Leave two numbers a chunk, its maximum and its sum; take the exponentials anew in the last launch.",
        when=much_scratch,
        why="‹stores› stored; needed: ‹all_› for y and two for each chunk.",
        kind=Counted,
    ),
    Mistake(
        "one_program_a_row",
        "The values are right, but in ‹which› one program walks the whole row alone.",
        "Give the grid a second axis, the chunks: (rows, triton.cdiv(columns, ‹block›)), in both launches.",
        when=alone,
        why="the programs that loaded from one row were ‹shared›. On a GPU one row then keeps one "
        "multiprocessor busy, of more than a hundred.",
        kind=Counted,
    ),
)


def waits(judgement: Judgement) -> bool:
    """A while loop that looks at memory."""
    text = judgement.source.text
    return "while" in text and any(
        word in part
        for word, part in (("atomic", text), ("volatile", text), ("tl.load", text.split("while", 1)[1]))
    )


WAITING = Mistake(
    "waits_for_programs",
    "‹what›",
    "Use two launches: the second starts when all programs of the first have ended.",
    when=waits,
    why="a program waits in a loop for what another one leaves. The interpreter runs programs one after the "
    "other, and a GPU need not start the second before the first has ended: both wait for ever.",
    kind=Likely,
    status="error",
)
EXERCISE = KernelExercise(
    name="split_softmax",
    notebook="05_tiling_long_rows",
    entry="split_softmax",
    brief=(
        "split_softmax(x) → y: the softmax of each row of x (rows, columns), several programs a row: one "
        "launch leaves the maximum and the sum of each chunk of columns, the next merges them and writes y. "
        "x is loaded twice and y stored once; the chunks' results are the only extra."
    ),
    hints=(
        Hint(
            "it is not clear how programs can share a row",
            "No program can wait for another inside a launch, but a launch waits for the one before it. So "
            "the first launch lets each program leave what it knows of its chunk, two numbers, and the "
            "second one reads those of all chunks of its row.",
        ),
        Hint(
            "long rows are wrong, or NaN",
            "A chunk's sum was taken against the chunk's own maximum: it counts for exp(chunk's m − row's m) "
            "of its value. A chunk of −∞ only must leave (−∞, 0), or its NaN reaches the whole row. And "
            "lanes past the last chunk must load −∞ and 0.",
        ),
        Hint(
            "it is still wrong",
            "First kernel: m = tl.max(x, axis=0); d = tl.sum(tl.exp(x - tl.where(m == -float('inf'), 0.0, "
            "m)), axis=0). Second kernel, with the chunks' results in chunk_m and chunk_d: m = "
            "tl.max(chunk_m, axis=0); d = tl.sum(chunk_d * tl.exp(chunk_m - m), axis=0); then tl.exp(x - m) "
            "/ d.",
        ),
    ),
    lesson=(
        "The pair (m, d) that joined lanes and tiles now joined programs, through a few numbers in memory. "
        "The traffic is that of the tiled kernel, and the time is not: with one row and one program a single "
        "multiprocessor works, with a program a chunk all of them do. Between the two launches lies the one "
        "wait for all programs that every GPU has."
    ),
    oracle=softmax.softmax64,
    tolerance=softmax.tolerance,
    cases=cases,
    large_cases=large_cases(17_000, 34_000, rows=(33, 50)),
    more_cases=wide_holes,
    traffic=None,
    arithmetic=Split,
    mistakes=(
        *SCRATCH, generic.HALF, CHUNK_PADDING, *(row for row in softmax.FIRST if row is not generic.HALF),
        softmax.WHERE_OF_NUMERATORS, softmax.LOST_DIGITS, softmax.NO_MAXIMUM, softmax.EPSILON_ADDED,
        *softmax.INFINITE_RESULTS, *PREDICTED, softmax.SMALL_MADE_ZERO, *softmax.LAST, softmax.OLD_MAXIMUM,
        *softmax.HALVES, softmax.RESCALING, *softmax.NOT_THE_MAXIMUM, generic.SCALED,
    ),
    cost_rows=COST,
    timeout_rows=(WAITING,),
    keep_digits=softmax.KEEP_DIGITS
    + " Leave a chunk's maximum and its sum as two numbers: in m + log(d) the sum is rounded to the steps "
      "that float32 has at the size of m.",
    compile_calls=LONG_CALLS,
    gpu_shapes=((2, 1_000_000, "float32"), (5, 100_001, "float32"), (1, 262_144, "float16")),
)  # fmt: skip
