"""Inputs that several exercises are tried on, each there for a mistake."""

from functools import partial

import numpy as np

from course_kernels.lab.run.cases import Case

INF = np.inf


def random(rng: np.random.Generator, rows: int, columns: int, scale=2.0, shift=0.0) -> np.ndarray:
    """Normal numbers in float32, (rows, columns)."""
    return (rng.normal(size=(rows, columns)) * scale + shift).astype(np.float32)


def row_cases(rng: np.random.Generator) -> list[Case]:
    """Matrices for any kernel that works row by row; the plain ones come first."""
    normal = partial(random, rng)
    odd = int(rng.choice([67, 83, 97, 113]))
    marked = normal(6, odd)
    marked[0, rng.integers(odd)] = marked[1, 0] = marked[2, -1] = np.nan
    marked[3, rng.permutation(odd)[: odd // 2]] = -INF
    marked[4, :] = -INF
    return [
        Case("plain", "random numbers around 0, and a row length that is not a power of two", normal(3, odd)),
        Case("power", "random numbers, and a row length that is a power of two", normal(2, 64)),
        Case("negative", "rows whose values are all negative", normal(3, odd, 1.0, -50.0)),
        Case("positive", "rows whose values are all positive", normal(3, odd, 1.0, 50.0)),
        Case("gap", "rows that do not follow each other directly in memory", normal(4, odd), gap=5),
        Case("many", "more rows than columns", normal(19, 6)),
        Case("column", "a single column", normal(5, 1)),
        Case("row", "a single row", normal(1, odd)),
        Case("long", "rows longer than 1024", normal(2, 1024 + int(rng.integers(1, 200)))),
        Case("half", "float16", normal(3, odd).astype(np.float16)),
        Case("half_gap", "float16, with rows that lie apart", normal(3, odd).astype(np.float16), gap=3),
        Case("marked", "rows with a NaN, with some −∞, with −∞ only, and a plain one", marked),
    ]


def softmax_cases(rng: np.random.Generator) -> list[Case]:
    """Matrices for a softmax whose rows fit a block, each for a mistake."""

    normal = partial(random, rng)
    odd = int(rng.choice([67, 83, 97, 113]))
    long = 1500 + int(rng.integers(1, 60))
    rising = np.sort(normal(2, long, 6.0), axis=1)
    rising[1:] = rising[1:, ::-1]
    # x − m needs more than float16's 11 bits, and so does a sum of this many terms.
    half = rng.uniform(0, 4, size=(3, int(rng.integers(900, 1000)))).astype(np.float16)
    half[:, 7] = 7
    marked = normal(7, odd)
    marked[0, rng.integers(odd)] = np.nan
    marked[5, 0] = marked[6, -1] = np.nan
    marked[1, rng.integers(odd)] = INF
    marked[2, :] = -INF
    marked[3, rng.permutation(odd)[: odd // 2]] = -INF
    far = np.stack(  # no row near the one before it
        [
            np.full(odd, -1e30),
            np.linspace(-1e4, 0, odd),
            np.full(odd, -1e30),
            np.linspace(-40, 60, odd),
            np.full(odd, -1e38 * rng.uniform(3.385, 3.4)),  # at the end of float32, below any floor
        ]
    ).astype(np.float32)
    return [
        Case(
            "plain",
            "random numbers around 0, and a row length that is not a power of two",
            normal(3, odd),
        ),
        Case("power", "random numbers, and a row length that is a power of two", normal(2, 64)),
        Case("negative", "rows whose values are all negative", normal(3, odd, 1.0, -50.0)),
        Case("high", "rows of large values, where exp(x) overflows", normal(2, odd, 2.0, 200.0)),
        Case("low", "rows far below 0, where exp(x) underflows", normal(2, odd, 2.0, -300.0)),
        Case("gap", "rows that do not follow each other directly in memory", normal(4, odd), gap=5),
        Case("many", "more rows than columns", normal(19, 6)),
        Case("column", "a single column", normal(5, 1)),
        Case("rising", "a long row of rising values, then falling ones", rising),
        Case("half", "float16, many columns and one larger value", half),
        Case("far", "rows at −1e30 and below −3e38, and a row with a spread of 1e4", far),
        Case("marked", "rows with a NaN, with +∞, with −∞ only, with some −∞, and a plain one", marked),
    ]


def tile_cases(rng: np.random.Generator, tile: int, infinity: bool = True) -> list[Case]:
    """Rows for walks in tiles: short ones, and of several tiles, if a tile is a power of two up to `tile`.

    infinity: with a row that holds +∞.
    """

    normal = partial(random, rng)

    def odd(tiles):  # a few whole tiles and a part of one
        return tiles * tile + int(rng.integers(3, tile // 5))

    short = int(rng.choice([67, 83, 97, 113]))
    rising = np.sort(normal(2, odd(1), 6.0), axis=1)
    rising[1] = rising[1, ::-1]
    last = normal(1, odd(2), 1.0, -300.0)
    last[:, -2:] = -270, -271
    # A sum of this many terms needs more than float16's 11 bits, and so does x − m.
    half = rng.uniform(0, 4, size=(1, odd(1))).astype(np.float16)
    half[:, -2] = 7
    # Several short rows too: one sum alone may happen to be near a number of 11 bits.
    halves = rng.uniform(0, 4, size=(4, short)).astype(np.float16)
    far = np.stack(
        [
            np.full(short, -1e30),
            np.linspace(-1e4, 0, short),
            np.linspace(-40, 60, short),
            np.full(short, -1e38 * rng.uniform(3.385, 3.4)),  # at the end of float32, below any floor
        ]
    )
    # Two empty tiles or more, and no exp(x) of the rest is above 0: nothing may be measured from 0 there.
    # Six tiles in each of several rows: for scratch whose rows are taken to be a power of two apart.
    holes = normal(3, odd(5), 2.0, -200.0)
    holes[0, : 2 * tile] = holes[1, tile : 2 * tile] = holes[2, 2 * tile :] = -INF
    lost = normal(3, odd(1))
    lost[:2, :tile] = -INF
    lost[0] = -INF
    lost[1, int(rng.integers(tile))] = np.nan
    lost[2, int(rng.integers(tile + 1, lost.shape[1]))] = np.nan
    marked = normal(6 if infinity else 5, short)
    marked[0, int(rng.integers(short))] = np.nan
    marked[1] = -INF
    marked[2:3, rng.permutation(short)[: short // 2]] = -INF
    marked[3, 0] = marked[4, -1] = np.nan
    marked[5:, int(rng.integers(short))] = INF
    plus = "one with +∞, " if infinity else ""
    return [
        Case("walk", f"a row longer than {2 * tile}, and no multiple of a power of two", normal(1, odd(2))),
        Case("rising", f"a row of more than {tile} rising values, then one of falling values", rising),
        Case("last", "a negative row whose largest values are the last two", last),
        Case("whole", f"{2 * tile} columns, a multiple of the tile", normal(1, 2 * tile)),
        Case(
            "walk_gap", "long rows that do not follow each other directly in memory", normal(2, odd(1)), gap=7
        ),
        Case("half", "float16, many columns and one larger value near the end", half),
        Case("halves", "float16, short rows", halves),
        Case("short", "short rows of random numbers", normal(2, short)),
        Case("negative", "a row whose values are all negative", normal(1, short, 1.0, -50.0)),
        Case("high", "a row of large values, where exp(x) overflows", normal(1, short, 2.0, 200.0)),
        Case("low", "a row far below 0, where exp(x) underflows", normal(1, short, 2.0, -300.0)),
        Case("gap", "rows that do not follow each other directly in memory", normal(3, short), gap=5),
        Case("many", "more rows than columns", normal(6, 4)),
        Case("column", "a single column", normal(2, 1)),
        Case("far", "rows at −1e30 and below −3e38, and a row with a spread of 1e4", far.astype(np.float32)),
        Case("holes", "long rows far below 0, with −∞ at the start, in the middle, or at the end", holes),
        Case("lost", f"a row of −∞ only, and rows with a NaN, one among {tile} times −∞, one late", lost),
        Case("marked", f"rows with a NaN, with −∞ only, with some −∞, {plus}all of them short", marked),
    ]


def large(rng: np.random.Generator, widths: tuple[int, int], rows: tuple[int, int] = (80, 160)) -> list[Case]:
    """One wide row, its length drawn evenly on a logarithmic scale, and a tall matrix of three columns."""
    columns = int(np.exp(rng.uniform(*np.log(widths)))) | 1
    wide = (rng.normal(size=(1, columns)) * 3).astype(np.float32)
    tall = (rng.normal(size=(int(rng.integers(*rows)), 3)) * 2).astype(np.float32)
    return [
        Case("wide", f"a row of {columns:,} columns", wide),
        Case("tall", f"{len(tall)} rows of three columns", tall),
    ]


def large_cases(low: int, high: int, rows: tuple[int, int] = (80, 160)):
    """`large` for an exercise: a row of low to high columns."""
    return partial(large, widths=(low, high), rows=rows)
