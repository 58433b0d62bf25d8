"""Answers to tiled_softmax: wrong ones with the mistake that must be named, and unusual right ones."""

LOOP = "for start in range(0, columns, TILE):\n        column = start + lane\n"
FIRST = (
    LOOP + '        x = tl.load(x_ptr + column, mask=column < columns, other=-float("inf")).to(tl.float32)'
)
SECOND = LOOP + "        mask = column < columns"
SECOND_LOAD = 'x = tl.load(x_ptr + column, mask=mask, other=-float("inf")).to(tl.float32)'
STORE = "tl.store(y_ptr + column, tl.exp(x - m) / d, mask=mask)"
NEW_M = "new_m = tl.maximum(m, tl.max(x, axis=0))"
ANCHOR = 'anchor = tl.where(new_m == -float("inf"), 0.0, new_m)'
D = "d = d * tl.exp(m - anchor) + tl.sum(tl.exp(x - anchor), axis=0)"
LAUNCH = "softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, TILE=1024)"
HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
HOST = """

def tiled_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, TILE=%s)
    return y
"""
THREE_WALKS = (
    HEAD
    + """@triton.jit
def kernel(y_ptr, x_ptr, ys, xs, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    for start in range(0, columns, TILE):
        c = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        m = tl.maximum(m, tl.max(x, axis=0))
    d = 0.0
    for start in range(0, columns, TILE):
        c = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        d += tl.sum(tl.exp(x - m), axis=0)
    for start in range(0, columns, TILE):
        c = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        tl.store(y_ptr + row * ys + c, tl.exp(x - m) / d, mask=c < columns)
"""
    + HOST % 1024
)
WHOLE_ROW = (
    HEAD
    + """@triton.jit
def kernel(y_ptr, x_ptr, ys, xs, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, TILE)
    x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * ys + c, e / tl.sum(e, axis=0), mask=c < columns)
"""
    + HOST % "triton.next_power_of_2(columns)"
)
LANES = (
    HEAD
    + """@triton.jit
def kernel(y_ptr, x_ptr, ys, xs, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, TILE)
    m = tl.full((TILE,), -float("inf"), tl.float32)
    d = tl.zeros((TILE,), tl.float32)
    for start in range(0, columns, TILE):
        c = start + lane
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, x)
        anchor = tl.where(new == -float("inf"), 0.0, new)
        d = d * tl.exp(m - anchor) + tl.exp(x - anchor)
        m = new
    top = tl.max(m, axis=0)
    anchor = tl.where(top == -float("inf"), 0.0, top)
    d = tl.sum(d * tl.exp(m - anchor), axis=0)
    for start in range(0, columns, TILE):
        c = start + lane
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        tl.store(y_ptr + row * ys + c, tl.exp(x - top) / d, mask=c < columns)
"""
    + HOST % 256
)
NUMERATORS = (
    HEAD
    + """@triton.jit
def kernel(y_ptr, x_ptr, ys, xs, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    for start in range(0, columns, TILE):
        c = start + tl.arange(0, TILE)
        m = tl.maximum(m, tl.max(tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32), axis=0))
    d = 0.0
    for start in range(0, columns, TILE):
        c = start + tl.arange(0, TILE)
        e = tl.exp(tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32) - m)
        d += tl.sum(e, axis=0)
        tl.store(s_ptr + row * columns + c, e, mask=c < columns)
    for start in range(0, columns, TILE):
        c = start + tl.arange(0, TILE)
        e = tl.load(s_ptr + row * columns + c, mask=c < columns, other=0.0)
        tl.store(y_ptr + row * ys + c, e / d, mask=c < columns)
""".replace("def kernel(", "def kernel(s_ptr, ")
    + (HOST % 1024).replace("kernel[(rows,)](", "kernel[(rows,)](torch.empty(x.shape, dtype=torch.float32), ")
)

TWO_LAUNCHES = (
    HEAD
    + """@triton.jit
def stats(m_ptr, d_ptr, x_ptr, xs, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    d = 0.0
    for start in range(0, columns, TILE):
        c = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, axis=0))
        anchor = tl.where(new == -float("inf"), 0.0, new)
        d = d * tl.exp(m - anchor) + tl.sum(tl.exp(x - anchor), axis=0)
        m = new
    tl.store(m_ptr + row, m)
    tl.store(d_ptr + row, d)


@triton.jit
def finish(y_ptr, m_ptr, d_ptr, x_ptr, ys, xs, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    m = tl.load(m_ptr + row)
    d = tl.load(d_ptr + row)
    for start in range(0, columns, TILE):
        c = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        tl.store(y_ptr + row * ys + c, tl.exp(x - m) / d, mask=c < columns)


def tiled_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    m, d = (torch.empty(rows, dtype=torch.float32, device=x.device) for _ in range(2))
    stats[(rows,)](m, d, x, x.stride(0), columns, TILE=1024)
    finish[(rows,)](y, m, d, x, y.stride(0), x.stride(0), columns, TILE=1024)
    return y
"""
)
TWO_ROWS = (
    HEAD
    + """@triton.jit
def kernel(y_ptr, x_ptr, ys, xs, rows, columns, R: tl.constexpr, TILE: tl.constexpr):
    row = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    m = tl.full((R, 1), -float("inf"), tl.float32)
    d = tl.zeros((R, 1), tl.float32)
    for start in range(0, columns, TILE):
        c = start + tl.arange(0, TILE)[None, :]
        x = tl.load(x_ptr + row * xs + c, mask=(row < rows) & (c < columns), other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, axis=1, keep_dims=True))
        base = tl.where(new == -float("inf"), 0.0, new)
        d = d * tl.exp(m - base) + tl.sum(tl.exp(x - base), axis=1, keep_dims=True)
        m = new
    for start in range(0, columns, TILE):
        c = start + tl.arange(0, TILE)[None, :]
        mask = (row < rows) & (c < columns)
        x = tl.load(x_ptr + row * xs + c, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(y_ptr + row * ys + c, tl.exp(x - m) / d, mask=mask)


def tiled_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    kernel[(triton.cdiv(rows, 2),)](y, x, y.stride(0), x.stride(0), rows, columns, R=2, TILE=256)
    return y
"""
)
KEEP_M = "        m = new_m\n"
EARLY = KEEP_M + "        tl.store(y_ptr + column, %s, mask=column < columns)\n"

WRONG = {
    "the maximum made 0 between the walks": (
        "maximum_left_in",
        [("    for start in range(0, columns, TILE):\n        column = start + lane\n        mask",
          "    m = 0.0\n    for start in range(0, columns, TILE):\n        column = start + lane\n        mask")],
    ),
    "never rescaled": ("never_rescaled", [("d * tl.exp(m - anchor)", "d")]),
    "rescaled backwards": ("rescaled_backwards", [("d * tl.exp(m - anchor)", "d * tl.exp(tl.where(m == -float('inf'), 0.0, anchor - m))")]),
    "the tile's sum rescaled too": ("rescaled_twice", [(D, "d = (d + tl.sum(tl.exp(x - anchor), axis=0)) * tl.exp(tl.where(m == -float('inf'), 0.0, m - anchor))")]),
    "tile sums added": ("tile_sums_added", [(D, 'top = tl.max(x, axis=0)\n        d = d + tl.sum(tl.exp(x - tl.where(top == -float("inf"), 0.0, top)), axis=0)')]),
    "the tile's sum not rescaled": ("tile_not_rescaled", [(D, 'top = tl.max(x, axis=0)\n        d = d * tl.exp(m - anchor) + tl.sum(tl.exp(x - tl.where(top == -float("inf"), 0.0, top)), axis=0)')]),
    "each tile normalised alone": ("tiles_alone", [(STORE, "e = tl.exp(x - tl.max(x, axis=0))\n        tl.store(y_ptr + column, e / tl.sum(e, axis=0), mask=mask)")]),
    "nothing carried": ("last_tile_only", [(NEW_M, "new_m = tl.max(x, axis=0)"), (D, "d = tl.sum(tl.exp(x - anchor), axis=0)")]),
    "sum not carried": ("last_tile_only", [(D, "d = tl.sum(tl.exp(x - anchor), axis=0)")]),
    "the old maximum": ("old_maximum", [("tl.exp(x - anchor)", "tl.exp(x - m)")]),
    "maximum starts at 0": ("maximum_starts_at_zero", [('m = -float("inf")', "m = 0.0")]),
    "maximum starts at -1e9": ("maximum_starts_finite", [('m = -float("inf")', "m = -1e9")]),
    "maximum starts at -3e38": ("maximum_starts_finite", [('m = -float("inf")', "m = -3.0e38")]),
    "a floor under the anchor": ("maximum_starts_finite", [(ANCHOR, "anchor = tl.maximum(new_m, -1e38)")]),
    "at most 16 tiles": ("columns_unwritten", [("range(0, columns, TILE)", "range(0, tl.minimum(columns, 16 * TILE), TILE)")]),
    "a late NaN made 0": ("nan_swallowed", [(NEW_M, "x = tl.where((start > 0) & (x != x), -float('inf'), x)\n        " + NEW_M), ("tl.exp(x - m) / d", "tl.where(x == x, tl.exp(x - m) / d, 0.0)")]),
    "padding with 0": ("padding_zero", [('other=-float("inf")', "other=0.0")]),
    "padding with -1e4": ("padding_finite", [('other=-float("inf")', "other=-1e4")]),
    "padding with nothing": ("padding_missing", [(', other=-float("inf")', "")]),
    "last tile dropped in walk 1": ("last_tile_dropped", [(FIRST, FIRST.replace("range(0, columns, TILE)", "range(0, columns // TILE * TILE, TILE)"))]),
    "last tile dropped in walk 2": ("columns_unwritten", [(SECOND, SECOND.replace("range(0, columns, TILE)", "range(0, columns // TILE * TILE, TILE)"))]),
    "last tile dropped in both": ("columns_unwritten", [("range(0, columns, TILE)", "range(0, columns // TILE * TILE, TILE)")]),
    "only the first tile in walk 1": ("first_tile_only", [(FIRST, FIRST.replace("range(0, columns, TILE)", "range(0, TILE, TILE)"))]),
    "only the first tile": ("columns_unwritten", [("range(0, columns, TILE)", "range(0, TILE, TILE)")]),
    "walk 2 loads one tile": ("same_tile", [(SECOND_LOAD, SECOND_LOAD.replace("column, mask", "lane, mask"))]),
    "−inf − (−inf)": ("infinity_minus_infinity", [(ANCHOR, "anchor = new_m")]),
    "−inf − (−inf) in the old sum": ("infinity_minus_infinity", [("d * tl.exp(m - anchor)", "d * tl.exp(m - new_m)")]),
    "only the first tile guarded": ("infinity_minus_infinity", [(ANCHOR, 'anchor = new_m if start > 0 else tl.where(new_m == -float("inf"), 0.0, new_m)')]),
    "the stand-in kept as the maximum": ("stand_in_kept", [(KEEP_M, "        m = anchor\n")]),
    "the stand-in kept as a lane's maximum": ("stand_in_kept", LANES.replace("        m = new\n", "        m = anchor\n")),
    "a lane of padding": ("infinity_minus_infinity", LANES.replace('tl.where(new == -float("inf"), 0.0, new)', "new")),
    "lanes added": ("lanes_not_merged", LANES.replace("tl.sum(d * tl.exp(m - anchor), axis=0)", "tl.sum(d, axis=0)")),
    "a tile whose maximum is −inf skipped": (
        "nan_swallowed",
        [(D, "part = tl.sum(tl.exp(x - anchor), axis=0)\n        d = d * tl.exp(m - anchor) + tl.where(top == -float('inf'), 0.0, part)"),
         (NEW_M, "top = tl.max(tl.where(x == x, x, -float('inf')), axis=0)\n        new_m = tl.maximum(m, top)")],
    ),
    "an all −inf row made 0": ("nan_swallowed", [(STORE, "tl.store(y_ptr + column, tl.where(m == -float('inf'), 0.0, tl.exp(x - m) / d), mask=mask)")]),
    "a row whose sum is not above 0 made 0": ("nan_swallowed", [(STORE, STORE.replace("tl.exp(x - m) / d", "tl.where(d > 0, tl.exp(x - m) / d, 0.0)"))]),
    "a NaN made 0": ("nan_swallowed", [(".to(tl.float32)\n", ".to(tl.float32)\n        x = tl.where(x == x, x, -float('inf'))\n")]),
    "no maximum": ("no_maximum", [(D, "d = d + tl.sum(tl.exp(x), axis=0)"), (STORE, STORE.replace("x - m", "x"))]),
    "not divided": ("not_divided", [("/ d", "")]),
    "exp2 in both": ("base_two", [("tl.exp(", "tl.exp2(")]),
    "exp2 in walk 2": ("mixed_bases", [("tl.exp(x - m)", "tl.exp2(x - m)")]),
    "wrong sign in walk 2": ("sign", [("tl.exp(x - m)", "tl.exp(m - x)")]),
    "scaled before the maximum": (
        "lost_digits",
        [(".to(tl.float32)\n", ".to(tl.float32) * 1.4426950408889634\n"), ("tl.exp(", "tl.exp2(")],
    ),
    "float16 arithmetic": ("half_precision", [(D, D + "\n        d = d.to(x_ptr.dtype.element_ty).to(tl.float32)")]),
    "columns for the row stride": ("row_stride", [("row * x_stride", "row * columns")]),
    "mask with <= in walk 1": ("mask_off_by_one", [("mask=column < columns", "mask=column <= columns")]),
    "mask with <= in walk 2": ("mask_off_by_one", [("mask = column < columns", "mask = column <= columns")]),
    "store without a mask": ("store_mask", [(STORE, STORE.replace(", mask=mask", ""))]),
    "two launches": ("extra_launches", TWO_LAUNCHES),
    "the maximum not kept": ("maximum_not_kept", [(KEEP_M, "")]),
    "the sum not kept": ("sum_not_kept", [(D, "pass")]),
    "the result stored in the first walk": (
        "normalised_early", [(KEEP_M, EARLY % "tl.exp(x - m) / d"), (STORE, "pass")],
    ),
    "numerators stored in the first walk": (
        "normalised_early",
        [(KEEP_M, EARLY % "tl.exp(x - m)"), (SECOND_LOAD, "x = tl.load(y_ptr + column, mask=mask, other=0.0)"), (STORE, STORE.replace("tl.exp(x - m)", "x"))],
    ),
    "numerators stored in the first walk, and left": (
        ("normalised_early", "not_divided"), [(KEEP_M, EARLY % "tl.exp(x - m)"), (STORE, "pass")],
    ),
    "the second walk without a load": ("not_reloaded", [("        " + SECOND_LOAD + "\n", "")]),
    "each tile's own maximum taken off in walk 2": ("own_maximum", [("tl.exp(x - m)", "tl.exp(x - tl.max(x, axis=0))")]),
    "each tile's own maximum kept": ("maximum_of_last_tile", [(KEEP_M, "        m = tl.max(x, axis=0)\n")]),
    "the last tile's maximum not kept": ("last_maximum_lost", [(KEEP_M, "        if start + TILE < columns:\n            m = new_m\n")]),
    "the first tile left out": ("first_tile_dropped", [(FIRST, FIRST.replace("range(0,", "range(TILE if columns > TILE else 0,"))]),
    "small results made 0": ("small_made_zero", [(STORE, "y = tl.exp(x - m) / d\n        tl.store(y_ptr + column, tl.where(y < 1e-9, 0.0, y), mask=mask)")]),
    "the numerators rounded to the dtype of y": ("half_precision", [("tl.exp(x - m) / d", "tl.exp(x - m).to(y_ptr.dtype.element_ty) / d")]),
    "1 / d rounded to the dtype of y": ("half_precision", [("tl.exp(x - m) / d", "tl.exp(x - m) * (1.0 / d).to(y_ptr.dtype.element_ty)")]),
    "one sum for the rows of a 2-D tile": (
        "rows_mixed", TWO_ROWS.replace("tl.sum(tl.exp(x - base), axis=1, keep_dims=True)", "tl.sum(tl.exp(x - base))"),
    ),
    "one maximum for the rows of a 2-D tile": (
        "global_max", TWO_ROWS.replace("tl.max(x, axis=1, keep_dims=True)", "tl.max(x)"),
    ),
    "x divided by the sum": ("no_exponential", [("tl.exp(x - m) / d", "x / d")]),
    "no exponential anywhere": ("no_exponential", [("tl.exp(x - m) / d", "x / d"), (D, "d = d + tl.sum(x, axis=0)")]),
    "a guard that skips NaN": (
        "nan_swallowed",
        [(D, "if new_m > -float('inf'):\n            d = d * tl.exp(m - new_m) + tl.sum(tl.exp(x - new_m), axis=0)")],
    ),
    "x.stride(1) for x": ("row_not_scaled", [("x.stride(0), columns", "x.stride(1), columns")]),
    "x made float16": ("half_precision", [(".to(tl.float32)", ".to(tl.float16)")]),
    "three walks": ("extra_loads", THREE_WALKS),
    "through a scratch tensor": ("extra_loads", NUMERATORS),
    "numerators parked in the output": (
        "output_read_back",
        THREE_WALKS.replace("d += tl.sum(tl.exp(x - m), axis=0)", "e = tl.exp(x - m)\n        d += tl.sum(e, axis=0)\n        tl.store(y_ptr + row * ys + c, e, mask=c < columns)")
        .replace("x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float(\"inf\")).to(tl.float32)\n        tl.store(y_ptr + row * ys + c, tl.exp(x - m) / d", "e = tl.load(y_ptr + row * ys + c, mask=c < columns, other=0.0).to(tl.float32)\n        tl.store(y_ptr + row * ys + c, e / d"),
    ),
    "the whole row in one load": ("tile_too_wide", WHOLE_ROW),
    "tiles of 2048": ("tile_too_wide", [("TILE=1024", "TILE=2048")]),
    "the row added twice": ("row_offset_twice", [("x_ptr + column", "x_ptr + row * x_stride + column")]),
    "tiles on top of the first": ("columns_unwritten", [("y_ptr + column", "y_ptr + lane")]),
    "the pointer moved and not put back": (
        "pointer_not_reset",
        [("x = tl.load(x_ptr + column, mask=column < columns, other=-float(\"inf\")).to(tl.float32)\n        new_m",
          "x = tl.load(x_ptr + lane, mask=column < columns, other=-float(\"inf\")).to(tl.float32)\n        x_ptr += TILE\n        new_m")],
    ),
    "half the grid": ("rows_unwritten", [("[(rows,)]", "[(triton.cdiv(rows, 2),)]")]),
    "input overwritten": ("input_overwritten", [("tl.store(y_ptr", "tl.store(x_ptr")]),
    "tl.softmax": ("library_softmax", [(STORE, "tl.store(y_ptr + column, tl.softmax(x), mask=mask)")]),
    "torch.softmax": ("torch_work", "import torch\n\n\ndef tiled_softmax(x):\n    return torch.softmax(x, dim=1)\n"),
    "the finished kernel imported": ("answer_opened", "from course_kernels.tiled import softmax as tiled_softmax\n"),
    "divided by the tile's own sum": (
        "own_sum", [(STORE, "e = tl.exp(x - tl.max(x, axis=0))\n        tl.store(y_ptr + column, tl.exp(x - m) / tl.sum(e, axis=0), mask=mask)")],
    ),
    "rescaled by a power of two": ("rescaling", [(D, D.replace("d * tl.exp(", "d * tl.exp2("))]),
}  # fmt: skip

RIGHT = {
    "a pair for each lane, merged at the end": LANES,
    "the second walk backwards, in a while loop": HEAD + '''@triton.jit
def kernel(y_ptr, x_ptr, ys, xs, columns, TILE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    m = tl.full((), -float("inf"), tl.float32)
    d = tl.zeros((), tl.float32)
    start = 0
    while start < columns:
        c = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, axis=0))
        base = tl.where(new == -float("inf"), 0.0, new)
        d = d * tl.exp(m - base) + tl.sum(tl.exp(x - base), axis=0)
        m = new
        start += TILE
    scale = 1.0 / d
    while start > 0:
        start -= TILE
        c = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=0.0).to(tl.float32)
        tl.store(y_ptr + row * ys + c, tl.exp(x - m) * scale, mask=c < columns)
''' + HOST % 512,
    "tl.range, exp2, tiles of 64": HEAD + '''@triton.jit
def kernel(y_ptr, x_ptr, ys, xs, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    LOG2E: tl.constexpr = 1.4426950408889634
    m = -float("inf")
    d = 0.0
    for start in tl.range(0, columns, TILE, num_stages=2):
        c = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, axis=0))
        base = tl.where(new == -float("inf"), 0.0, new)
        d = d * tl.exp2((m - base) * LOG2E) + tl.sum(tl.exp2((x - base) * LOG2E), axis=0)
        m = new
    for start in tl.range(0, columns, TILE, num_stages=2):
        c = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + row * xs + c, mask=c < columns).to(tl.float32)
        tl.store(y_ptr + row * ys + c, tl.exp2((x - m) * LOG2E) / d, mask=c < columns)
''' + HOST % 64,
    "two rows a program, 2-D tiles": TWO_ROWS,
    "tl.reduce with a merge": HEAD + '''@triton.jit
def merge(m1, d1, m2, d2):
    m = tl.maximum(m1, m2)
    anchor = tl.where(m == -float("inf"), 0.0, m)
    return m, d1 * tl.exp(m1 - anchor) + d2 * tl.exp(m2 - anchor)


@triton.jit
def kernel(y_ptr, x_ptr, ys, xs, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    m = tl.full((TILE,), -float("inf"), tl.float32)
    d = tl.zeros((TILE,), tl.float32)
    for start in range(0, columns, TILE):
        c = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        m, d = merge(m, d, x, 1.0)
    m, d = tl.reduce((m, d), 0, merge)
    for start in range(0, columns, TILE):
        c = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        tl.store(y_ptr + row * ys + c, tl.exp(x - m) / d, mask=c < columns)
''' + HOST % 1024,
    "short rows loaded once, long ones twice": HEAD + '''@triton.jit
def short(y_ptr, x_ptr, ys, xs, columns, TILE: tl.constexpr):
    c = tl.arange(0, TILE)
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * ys + c, e / tl.sum(e, axis=0), mask=c < columns)


''' + LANES[len(HEAD):].replace(
        "    kernel[",
        "    if columns <= 1024:\n        short[(rows,)](y, x, y.stride(0), x.stride(0), columns, TILE=triton.next_power_of_2(columns))\n        return y\n    kernel[",
    ),
}  # fmt: skip
