"""Exercise: a row's maximum and sum of exponentials in one walk."""

from dataclasses import replace

import numpy as np

from course_kernels.lab.check.judge import Case, Finding, Tweaks, dtype_name
from course_kernels.lab.check.exercise import Hint
from course_kernels.lab.check.rows import EPSILON, ROW_NOT_SCALED, large, windows
from course_kernels.lab.exercises.softmax import (
    INF,
    RESCALE,
    SoftmaxExercise,
    no_maximum,
    not_a_number_swallowed,
    old_maximum,
    tile_cases,
    wrong_walks,
)
from course_kernels.lab.core.wording import number


def stats64(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(m, d) of each row in float64: its maximum and Σ exp(x − m); (−inf, 0) for a row of −inf only."""
    x = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        m = x.max(axis=1)
        d = np.exp(x - np.where(m == -np.inf, 0.0, m)[:, None]).sum(axis=1)
    return m, d


class OnlineStats(SoftmaxExercise):
    name = "online_stats"
    notebook = "04_online_max_and_sum"
    entry = "online_stats"
    brief = (
        "online_stats(x) → (m, d): for each row of x (rows, columns) its maximum and the sum of exp(x − m), "
        "both "
        "(rows,) float32, found in one walk along the row in tiles of at most 256 columns, each element "
        "loaded once. "
        "A row of nothing but −∞ has m = −∞ and d = 0, the pair that changes nothing when it is merged."
    )
    outputs = ("m", "d")
    max_tile = 256
    nan_output = 1
    nan_rule = "d should be NaN, so that the softmax made from it is"
    keep_digits = "Keep m as it is in x, and subtract it before you multiply by log2(e) for tl.exp2."
    fewer_loads = (
        "A second walk is not needed: when a tile brings a larger maximum, the sum found so far can be "
        "rescaled, by "
        "exp(old maximum − new maximum)."
    )
    compile_calls = (
        {"shape": [4, 1000], "dtype": "float32", "gap": 24},
        {"shape": [4, 2048], "dtype": "float16"},
    )
    hints = (
        Hint(
            "it is not clear how to do it in one walk",
            "Before a tile, d is a sum of exp(x − m) with the old m. With a larger maximum each term would "
            "have been "
            "smaller by the same factor, so the whole sum can be corrected by one multiplication. By what "
            "factor?",
        ),
        Hint(
            "d is too large or too small when the maximum grows, or NaN where a tile is −∞",
            "Three steps a tile: the new maximum; the old sum times exp(old maximum − new maximum); plus the "
            "tile's sum "
            "against the new maximum. Only where the new maximum is still −∞ must both exponents be measured "
            "from "
            "another number, say 0.",
        ),
        Hint(
            "it is still wrong",
            "new_m = tl.maximum(m, tl.max(x, axis=0)), then anchor = tl.where(new_m == -float('inf'), 0.0, "
            "new_m), then "
            "d = d * tl.exp(m - anchor) + tl.sum(tl.exp(x - anchor), axis=0), then m = new_m.",
        ),
    )
    lesson = (
        "One walk instead of two: the second one was only needed because the maximum was not known yet, and "
        "a sum taken "
        "against too small a maximum is wrong by a factor that is known later. The same step merges lanes, "
        "tiles, "
        "programs and GPUs, because it does not ask in what order or grouping the parts arrive."
    )

    def expected(self, x):
        return stats64(x)

    def shape_of(self, index, x):
        return x.shape[:1]

    def dtype_of(self, index, x):
        return "float32"

    def naive(self, x):
        return x.max(axis=1), np.exp(x).sum(axis=1)

    def tolerance(self, case, wanted):
        m, d = wanted
        # Each tile may round once more. exp(x − m) magnifies the rounding of x − m, but is small where
        # that is large.
        return np.zeros(m.shape), np.nan_to_num(d) * EPSILON * (16 + case.x.shape[1] / 16)

    def wrong(self, case, result, index):
        wrong = super().wrong(case, result, index)
        if index == 0:  # with a NaN or +∞ in the row d is NaN, and nothing depends on m
            wrong &= ~np.isnan(self.expected(case.x)[1])
        return wrong

    def allowed(self, rows, columns):
        return rows * columns, 2 * rows

    def cases(self, rng):
        # Whatever stands in for −∞ in an exponent must not stay in a row that lies below it.
        tile = self.max_tile
        low = rng.normal(size=(3, 3 * tile + int(rng.integers(3, tile // 5)))) - 9
        low[0, : 2 * tile] = low[1, tile : 2 * tile] = low[2, 2 * tile :] = -INF
        about = "long rows of negative numbers, with −∞ at the start, in the middle, or at the end"
        # No +∞: what a sum of exp(x − ∞) should be is a matter of taste.
        usual = tile_cases(rng, tile, infinity=False)
        return [*usual, Case("empty", about, low.astype(np.float32))]

    def large_cases(self, rng):
        return large(rng, (5_000, 12_000))

    def experiments(self):
        usual = [e for e in super().experiments() if e is not old_maximum]
        usual.insert(usual.index(no_maximum), other_anchor)
        return [stand_in, low_start, *usual, infinite_sum, infinite_row, swallowed_elsewhere]

    def check_run(self, session, case, result):
        if result.message.get("refused") == "_to_copy" and result.launches:
            line = f" (line {result.error['line']}: `{result.error['source']}`)" if result.error else ""
            raise Finding(
                "wrong_dtype",
                f"PyTorch converts a tensor after the kernel has run{line}.",
                f"The case: x is {case.shape} {dtype_name(case)}, {case.about}.",
                "What was stored in another dtype is rounded, or too large for it, before that.",
                "Allocate m and d with dtype=torch.float32, whatever the dtype of x, and return them as "
                "they are.",
            )
        super().check_run(session, case, result)

    def fingerprint_table(self, case, tile):
        x = case.x.astype(np.float64)
        with np.errstate(all="ignore"):
            m, d = stats64(x)
            e = np.exp(x - m[:, None])
            plain = np.exp(x).sum(axis=1)
            above = np.maximum(m, 0)
            table = [
                ("maximum_starts_at_zero", (above, np.exp(x - above[:, None]).sum(axis=1)),
                 "The maximum of rows that are all negative comes out as 0: it starts from 0.",
                 "Start the running maximum at −∞."),
                ("no_maximum", (m, plain), "d is the sum of exp(x): the maximum is not taken off.",
                 "Sum exp(x − m)."),
                ("swapped", (d, m), "m and d have changed places.", "Return m, d: first the maximum, then "
                 "the sum."),
                ("log_given", (m, np.log(d)), "d is the logarithm of the sum.", "Return the sum itself."),
                ("log_given", (None, m + np.log(d)), "d is m + log of the sum.",
                 "Return the sum of exp(x − m) itself."),
                ("inverted", (m, 1 / d), "d is one divided by the sum.", "Return the sum itself."),
                ("base_two", (m, np.exp2(x - m[:, None]).sum(axis=1)), "2^(x − m) stands where e^(x − m) "
                 "should.",
                 "Use tl.exp, or multiply by log2(e) = 1.4426950408889634 before tl.exp2."),
                ("sum_of_inputs", (m, x.sum(axis=1)), "d is the sum of x.", "Sum exp(x − m)."),
                ("no_exponential", (m, (x - m[:, None]).sum(axis=1)), "d is the sum of x − m: the "
                 "exponential is missing.",
                 "Sum tl.exp(x - m)."),
                ("mean", (m, e.mean(axis=1)), "d is the mean of the exponentials.", "Return their sum."),
                ("counted", (m, np.full(len(x), x.shape[1])), "d is the number of columns.", "Sum exp(x − "
                 "m)."),
                ("same_row", (np.full(len(x), m[0]), np.full(len(x), d[0])), "Every row has the m and d of "
                 "row 0.",
                 "Use tl.program_id(0) in the address of the load."),
                ("maximum_only", (m, np.zeros(len(x))), "m is right, and d stays 0.",
                 "Add each tile's exponentials to d."),
                ("sign", (m, np.exp(m[:, None] - x).sum(axis=1)), "The exponent has the wrong sign: m − x "
                                                                  "stands "
                 "where x − m should.", "Sum tl.exp(x - m)."),
                ("row_not_scaled", stats64(windows(x, case.gap)), ROW_NOT_SCALED,
                 "Start the row at x_ptr + row * x_stride."),
                ("half_precision", stats64(case.x.astype(np.float16)),
                 "x is rounded to float16 on its way in, and with it goes what 11 bits cannot hold.",
                 "Convert to tl.float32, not to tl.float16."),
                ("maximum_not_stored", (np.full(len(x), -np.inf), d),
                 "d is right, and m comes out as −∞, where it started.",
                 "Store the maximum that the walk found."),
            ]  # fmt: skip
            table += shared_maxima(x, m)
            table += more_walks(x, tile) if tile else []
            if 0 < tile < x.shape[1]:
                last = x[:, (x.shape[1] - 1) // tile * tile :]
                last_sum = np.exp(last - last.max(axis=1, keepdims=True)).sum(axis=1)
                table.append(
                    ("maximum_not_kept", (np.full(len(x), -np.inf), last_sum),
                     "m comes out as −∞, where it started, and d is the sum of the last tile alone.",
                     "At the end of each round keep the new maximum: m = new_m.")
                )  # fmt: skip
                for mistake, top, total, what, advice in wrong_walks(x, tile):
                    table.append((mistake, (top[:, 0], total[:, 0]), what, advice))
        return table


def shared_maxima(x: np.ndarray, m: np.ndarray) -> list:
    """Fingerprints of programs that have several rows and take one maximum for all of them."""
    table = []
    for group in (2, 4, 8, 16):
        tops = np.repeat([m[i : i + group].max() for i in range(0, len(m), group)], group)[: len(m)]
        given = tops, np.exp(x - tops[:, None]).sum(axis=1)
        what = "All rows of a program get the same maximum, the largest value of its whole tile."
        advice = "Reduce along the columns, one maximum a row: tl.max(x, axis=1)."
        table.append(("maximum_over_rows", given, what, advice))
    return table if len(m) > 1 else []


def more_walks(x: np.ndarray, tile: int) -> list:
    """Fingerprints of walks that leave a tile out, begin anew, or count something twice."""
    m, skipped, reset = np.full(len(x), -INF), np.zeros(len(x)), np.zeros(len(x))
    for start in range(0, x.shape[1], tile):
        part = x[:, start : start + tile]
        top = part.max(axis=1)
        new_m = np.maximum(m, top)
        factor, own = np.exp(m - new_m), np.exp(part - new_m[:, None]).sum(axis=1)
        skipped = np.where(top > m, skipped * factor + own, skipped)
        reset = np.where(top == -INF, 0, reset * factor + own)
        m = new_m
    e = np.exp(x - m[:, None])
    d = e.sum(axis=1)
    return [
        ("tile_skipped", (m, skipped), "A tile that brings no new maximum is never added to d.",
         "Add every tile's exponentials; what depends on a new maximum is the factor of the old sum only."),
        ("sum_reset", (m, reset), "A tile of nothing but −∞ sets d to 0, and what was summed before it is "
         "lost.", "Such a tile adds 0 to d and leaves d and m as they are."),
        ("counted_twice", (m, d + e[:, :tile].sum(axis=1)),
         "The first tile counts twice: d holds it already when the walk begins, and the walk adds it again.",
         "Start from m = −∞ and d = 0, and let the walk add every tile; or let it begin at the second one."),
        ("counted_twice", (m, d + e[:, 0]),
         "The first element counts twice: d starts at 1, which is its exponential, and the walk adds it "
         "again.", "Start from m = −∞ and d = 0."),
    ]  # fmt: skip


def stand_in(exercise, session, case, result):
    """What stands in for −∞ in the exponents, kept as the maximum."""
    tile = result.widest_load
    if not tile or not np.isneginf(case.x[exercise.wrong_rows(case, result)]).any():
        return None
    hole = np.full((1, 2 * tile), -5, np.float32)
    hole[:, :tile] = -INF
    runs = session.run([replace(case, x=x, gap=0) for x in (hole, hole[:, :tile].copy())])
    kept = [float(run.values(0)[0]) for run in runs if not run.error and exercise.whole(run)]
    kept = [m for m in kept if np.isfinite(m) and m != -5]
    if not kept:
        return None
    m, low = kept[0], min(2 * kept[0], 0) - 5
    if not exercise.right(session, [replace(case, x=np.full((1, 8), low, np.float32), gap=0)]):
        return None
    return Finding(
        "stand_in_kept",
        f"Where a tile is all −∞, m becomes {number(m)}: the number that stands in for −∞ in the exponents "
        "is kept as the maximum.",
        "",
        f"Proven: a row of nothing but {number(low)} comes out right, so m does start at −∞; and after a "
        f"tile of −∞ it is {number(m)}.",
        "Give the stand-in a variable of its own, for the exponents only: anchor = tl.where(new_m == "
        "-float('inf'), 0.0, new_m). What is carried on and stored is new_m.",
    )


def low_start(exercise, session, case, result):
    """A running maximum that starts at a finite number, or an anchor that does not go below one."""
    bad = exercise.wrong_rows(case, result)
    x = case.x[bad].astype(np.float64)
    m = x.max(axis=1, keepdims=True)
    if not np.isfinite(x).all() or m.max() > -1e6 or result.values(1)[bad].any():
        return None
    if not exercise.right(session, [replace(case, x=(x - m).astype(case.x.dtype))]):
        return None
    return Finding(
        "maximum_starts_finite",
        "Rows far below 0 get a sum of 0: their exponentials are measured from a finite number that lies "
        "above them.",
        "",
        "Proven: the same rows moved up to 0 come out right, and a sum of exp(x − m) does not change when a "
        "row is moved.",
        "Start the running maximum at −∞, and let nothing keep it, or what is subtracted, above a number.",
    )


def other_anchor(exercise, session, case, result):
    """Exponentials against the maximum before the tile, or the first tile's, with 0 in place of −∞."""
    tile = result.widest_load
    if not tile:
        return None
    stairs = {
        "by 60": (0, 60, 120, 180), "once by 60": (0, 60, 60, 60), "down": (180, 0, 0, 0),
        "by 180": (180, 180, 180, 180), "at once": (0, 180, 180, 180),
    }  # fmt: skip
    rows = [replace(case, x=np.repeat(np.float32([steps]), tile, axis=1), gap=0) for steps in stairs.values()]
    runs = session.run(rows)
    if not all(not run.error and exercise.whole(run) for run in runs):
        return None
    right = {n: exercise.wrong_rows(c, r) is None for n, c, r in zip(stairs, rows, runs, strict=True)}
    burst = {n: not np.isfinite(r.values(1)).any() for n, r in zip(stairs, runs, strict=True)}
    if right["by 60"] and burst["by 180"]:
        return Finding(
            "old_maximum",
            "The tile's exponentials are taken against the maximum before the tile, and rescaled "
            "afterwards: where the tile lies far above it, they are ∞ already, and far below, all 0.",
            "",
            "Proven: four tiles of 0, 60, 120 and 180 come out right, and four of 180 do not: the first one "
            "is measured from 0.",
            "First the new maximum, then exp(x − new maximum). " + RESCALE,
        )
    if right["down"] and right["once by 60"] and burst["by 60"] and burst["at once"]:
        return Finding(
            "first_tile_anchor",
            "All exponentials are taken against the maximum of the first tile: where that is −∞, or far "
            "below the row's, they are ∞ or NaN.",
            "",
            "Proven: tiles of 180, 0, 0, 0 come out right, and so do 0, 60, 60, 60; 0, 180, 180, 180 do not.",
            "Measure each tile from the maximum of all tiles up to it. " + RESCALE,
        )
    return None


def swallowed_elsewhere(exercise, session, case, result):
    """A NaN that is hidden in another input; here it may be what −∞ − (−∞) gave."""
    for other, outcome in session.wrong:
        finding = not_a_number_swallowed(exercise, session, other, outcome)
        if finding is not None:
            finding.case = exercise.show_case(other, outcome)
            return finding
    return None


def infinite_row(exercise, session, case, result):
    """A row of −inf only, for which something else than (−inf, 0) comes out."""
    bad = exercise.wrong_rows(case, result)
    if not np.isneginf(case.x[bad]).all():
        return None
    others = np.delete(case.x, bad, axis=0)
    if len(others) and not exercise.right(session, [replace(case, x=others)]):
        return None
    m, d = (float(result.values(i)[bad[0]]) for i in range(2))
    if np.isfinite(m):
        return Finding(
            "maximum_starts_finite",
            f"For a row of nothing but −∞ the maximum comes out as {m:.4g}: the running maximum starts "
            "there.".replace("e+", "e").replace("-", "−"),
            "",
            "A row whose values all lie below that number would get it for its maximum, and a sum of 0.",
            "Start the running maximum at −∞.",
        )
    return Finding(
        "infinite_row",
        f"For a row of nothing but −∞ m comes out as {m:.4g}, d as {d:.4g}; they should be −∞ and 0.".replace(
            "-inf", "−∞"
        ),
        "",
        "Proven: the other rows of this input are right. (−∞, 0) is the pair that changes nothing when it is "
        "merged, "
        "and a part of a row that is all −∞ is such a row.",
        "Start from −∞ and 0, and let neither change while all is −∞.",
    )


def infinite_sum(exercise, session, case, result):
    """Exponentials against the maximum before the tile, which is −∞ for the first one."""
    m, d = (result.values(i) for i in range(2))
    if not np.isfinite(case.x).all() or np.abs(case.x).max() > 40 or not np.isinf(d).all():
        return None
    # So low that such lanes add nothing, and finite; the wrong sign would still make them infinite.
    tile = replace(case, x=case.x[:, : result.widest_load].copy(), gap=0)
    again = session.run([tile], Tweaks(masked_lanes=float(case.x.min())))[0]
    if again.error or not exercise.whole(again) or not np.isinf(again.values(1)).all():
        return None
    return Finding(
        "old_maximum",
        "d is ∞: the tile's exponentials are taken against the maximum before the tile, which starts at −∞.",
        "",
        "Proven: it is ∞ also where the masked lanes hold a value of the row, and no exp(x) of this row is.",
        "First the new maximum, then exp(x − new maximum). " + RESCALE,
    )


EXERCISE = OnlineStats()
