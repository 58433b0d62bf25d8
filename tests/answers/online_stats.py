"""Answers to online_stats: wrong ones with the mistake that must be named, and unusual right ones."""

NEW_M = "new_m = tl.maximum(m, tl.max(x, axis=0))"
ANCHOR = 'anchor = tl.where(new_m == -float("inf"), 0.0, new_m)'
D = "d = d * tl.exp(m - anchor) + tl.sum(tl.exp(x - anchor), axis=0)"
LOOP = "for start in range(0, columns, TILE):"
LAUNCH = "stats_kernel[(rows,)](m, d, x, x.stride(0), columns, TILE=256)"
HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
HOST = """

def online_stats(x):
    rows, columns = x.shape
    m = torch.empty(rows, dtype=torch.float32, device=x.device)
    d = torch.empty_like(m)
    kernel[(rows,)](m, d, x, x.stride(0), columns, TILE=%s)
    return m, d
"""
TWO_WALKS = (
    HEAD
    + """@triton.jit
def kernel(m_ptr, d_ptr, x_ptr, xs, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    for start in range(0, columns, TILE):
        c = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        m = tl.maximum(m, tl.max(x, axis=0))
    anchor = tl.where(m == -float("inf"), 0.0, m)
    d = 0.0
    for start in range(0, columns, TILE):
        c = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        d += tl.sum(tl.exp(x - anchor), axis=0)
    tl.store(m_ptr + row, m)
    tl.store(d_ptr + row, d)
"""
    + HOST % 256
)
WHOLE_ROW = (
    HEAD
    + """@triton.jit
def kernel(m_ptr, d_ptr, x_ptr, xs, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, TILE)
    x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    m = tl.max(x, axis=0)
    tl.store(m_ptr + row, m)
    tl.store(d_ptr + row, tl.sum(tl.exp(x - tl.where(m == -float("inf"), 0.0, m)), axis=0))
"""
    + HOST % "triton.next_power_of_2(columns)"
)
LANES = (
    HEAD
    + """@triton.jit
def kernel(m_ptr, d_ptr, x_ptr, xs, columns, TILE: tl.constexpr):
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
    tl.store(m_ptr + row, top)
    tl.store(d_ptr + row, tl.sum(d * tl.exp(m - anchor), axis=0))
"""
    + HOST % 64
)
TWO_ROWS = (
    HEAD
    + """@triton.jit
def kernel(out, x_ptr, xs, rows, columns, R: tl.constexpr, TILE: tl.constexpr):
    row = tl.program_id(0) * R + tl.arange(0, R)
    m = tl.full((R,), -float("inf"), tl.float32)
    d = tl.zeros((R,), tl.float32)
    for start in range(0, columns, TILE):
        c = start + tl.arange(0, TILE)
        mask = (row[:, None] < rows) & (c[None, :] < columns)
        x = tl.load(x_ptr + row[:, None] * xs + c[None, :], mask=mask, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, axis=1))
        base = tl.where(new == -float("inf"), 0.0, new)
        d = d * tl.exp(m - base) + tl.sum(tl.exp(x - base[:, None]), axis=1)
        m = new
    tl.store(out + row, m, mask=row < rows)
    tl.store(out + rows + row, d, mask=row < rows)


def online_stats(x):
    rows, columns = x.shape
    out = torch.empty((2, rows), dtype=torch.float32, device=x.device)
    kernel[(triton.cdiv(rows, 2),)](out, x, x.stride(0), rows, columns, R=2, TILE=128)
    return out[0], out[1]
"""
)

WRONG = {
    "never rescaled": ("never_rescaled", [("d * tl.exp(m - anchor)", "d")]),
    "rescaled backwards": ("rescaled_backwards", [("d * tl.exp(m - anchor)", "d * tl.exp(tl.where(m == -float('inf'), 0.0, anchor - m))")]),
    "the tile's sum rescaled too": ("rescaled_twice", [(D, "d = (d + tl.sum(tl.exp(x - anchor), axis=0)) * tl.exp(tl.where(m == -float('inf'), 0.0, m - anchor))")]),
    "tile sums added": ("tile_sums_added", [(D, 'top = tl.max(x, axis=0)\n        d = d + tl.sum(tl.exp(x - tl.where(top == -float("inf"), 0.0, top)), axis=0)')]),
    "the tile's sum not rescaled": ("tile_not_rescaled", [(D, 'top = tl.max(x, axis=0)\n        d = d * tl.exp(m - anchor) + tl.sum(tl.exp(x - tl.where(top == -float("inf"), 0.0, top)), axis=0)')]),
    "maximum starts at 0": ("maximum_starts_at_zero", [('m = -float("inf")  #', "m = 0.0  #")]),
    "maximum starts at -1e9": ("maximum_starts_finite", [('m = -float("inf")  #', "m = -1e9  #")]),
    "maximum starts at -3.4e38": ("maximum_starts_finite", [('m = -float("inf")  #', "m = -3.4e38  #")]),
    "a floor under the anchor": ("maximum_starts_finite", [("anchor = " + ANCHOR[9:], "anchor = tl.maximum(new_m, -1e38)")]),
    "at most 16 tiles": ("tiles_left_out", [(LOOP, "for start in range(0, tl.minimum(columns, 16 * TILE), TILE):")]),
    "a late NaN made 0": ("nan_swallowed", [(NEW_M, "x = tl.where((start > 0) & (x != x), -float('inf'), x)\n        " + NEW_M)]),
    "the old maximum": ("old_maximum", [("tl.exp(x - anchor)", "tl.exp(x - m)")]),
    "maximum of the tile": ("maximum_of_last_tile", [(NEW_M, "new_m = tl.max(x, axis=0)")]),
    "sum not carried": ("sum_of_last_tile", [(D, "d = tl.sum(tl.exp(x - anchor), axis=0)")]),
    "nothing carried": ("last_tile_only", [(NEW_M, "new_m = tl.max(x, axis=0)"), (D, "d = tl.sum(tl.exp(x - anchor), axis=0)")]),
    "the maximum not kept": ("maximum_not_kept", [("        m = new_m\n", "")]),
    "the maximum not kept, no anchor": ("maximum_not_kept", [("        m = new_m\n", ""), ("anchor = " + ANCHOR[9:], "anchor = new_m")]),
    "the maximum not stored": ("maximum_not_stored", [("tl.store(m_ptr + row, m)", "tl.store(m_ptr + row, -float('inf'))")]),
    "a guard that skips NaN": (
        "nan_swallowed",
        [("        " + ANCHOR + "\n        " + D, "        if new_m > -float('inf'):\n            d = d * tl.exp(m - new_m) + tl.sum(tl.exp(x - new_m), axis=0)")],
    ),
    "wrong sign": ("sign", [("tl.exp(x - anchor)", "tl.exp(anchor - x)")]),
    "wrong sign, masked": ("sign", [("tl.exp(x - anchor)", "tl.where(column < columns, tl.exp(anchor - x), 0.0)")]),
    "no exponential, masked": ("no_exponential", [("tl.exp(x - anchor)", "tl.where(column < columns, x - anchor, 0.0)")]),
    "x.stride(1) for x": ("row_not_scaled", [("x.stride(0), columns", "x.stride(1), columns")]),
    "x made float16": ("half_precision", [(".to(\n            tl.float32\n        )", ".to(tl.float16)")]),
    "d made float16": ("half_precision", [(D, D + "\n        d = d.to(tl.float16).to(tl.float32)")]),
    "m is a tile": ("scalar_address", [("tl.max(x, axis=0)", "tl.maximum(x, 0.0)")]),
    "padding with 0": ("padding_zero", [('other=-float("inf")', "other=0.0")]),
    "padding with -100": ("padding_finite", [('other=-float("inf")', "other=-100.0")]),
    "padding with nothing": ("padding_missing", [(', other=-float("inf")', "")]),
    "last tile dropped": ("last_tile_dropped", [(LOOP, "for start in range(0, columns // TILE * TILE, TILE):")]),
    "only the first tile": ("first_tile_only", [(LOOP, "for start in range(0, TILE, TILE):")]),
    "the mask missing": ("load_mask", [("mask=column < columns, ", "")]),
    "mask with <=": ("mask_off_by_one", [("column < columns", "column <= columns")]),
    "columns for the row stride": ("row_stride", [("row * x_stride", "row * columns")]),
    "−inf − (−inf)": ("infinity_minus_infinity", [("anchor = " + ANCHOR[9:], "anchor = new_m")]),
    "−inf − (−inf) in the old sum": ("infinity_minus_infinity", [("d * tl.exp(m - anchor)", "d * tl.exp(m - new_m)")]),
    "a tile of −inf skipped, with its NaN": (
        "nan_swallowed",
        [(D, "part = tl.sum(tl.exp(x - anchor), axis=0)\n        d = d * tl.exp(m - anchor) + tl.where(tl.max(x, axis=0) == -float('inf'), 0.0, part)"),
         (NEW_M, "x = tl.where(x == x, x, -float('inf'))\n        " + NEW_M)],
    ),
    "no maximum": ("no_maximum", [(D, "d = d + tl.sum(tl.exp(x), axis=0)")]),
    "the logarithm": ("log_given", [("d_ptr + row, d", "d_ptr + row, m + tl.log(d)")]),
    "swapped": ("swapped", [("return m, d", "return d, m")]),
    "swapped in the launch": ("swapped", [("(m, d, x,", "(d, m, x,")]),
    "exp2": ("base_two", [("tl.exp(", "tl.exp2(")]),
    "no exponential": ("no_exponential", [("tl.exp(x - anchor)", "x - anchor")]),
    "float16 arithmetic": ("half_precision", [(D, D + "\n        d = d.to(x_ptr.dtype.element_ty).to(tl.float32)")]),
    "whole row in one load": ("tile_too_wide", WHOLE_ROW),
    "tiles of 512": ("tile_too_wide", [("TILE=256", "TILE=512")]),
    "two walks": ("extra_loads", TWO_WALKS),
    "the first element read for the maximum": (
        "extra_loads",
        [('m = -float("inf")  #', "m = tl.load(x_ptr + row * x_stride).to(tl.float32)  #")],
    ),
    "lanes added": ("lanes_not_merged", LANES.replace("tl.sum(d * tl.exp(m - anchor), axis=0)", "tl.sum(d, axis=0)")),
    "a lane of padding": ("infinity_minus_infinity", LANES.replace('tl.where(new == -float("inf"), 0.0, new)', "new")),
    "the stand-in carried, mended at the end": (
        "stand_in_kept",
        [("        m = new_m\n", "        m = anchor\n"), ("m_ptr + row, m)", "m_ptr + row, tl.where(d == 0.0, -float('inf'), m))")],
    ),
    "the stand-in carried": ("stand_in_kept", [("        m = new_m\n", "        m = anchor\n")]),
    "a tile's stand-in in the maximum": (
        "stand_in_kept",
        [(NEW_M, "top = tl.max(x, axis=0)\n        new_m = tl.maximum(m, tl.where(top == -float('inf'), 0.0, top))")],
    ),
    "a low stand-in carried": ("stand_in_kept", [("        m = new_m\n", "        m = anchor\n"), ("0.0, new_m)", "-1e30, new_m)")]),
    "lanes joined without a guard": ("infinity_minus_infinity", LANES.replace('tl.where(top == -float("inf"), 0.0, top)', "top")),
    "only new maxima added": (
        "tile_skipped",
        [("        " + NEW_M, "        new_m = tl.max(x, axis=0)"),
         ("        " + ANCHOR + "\n        " + D + "\n        m = new_m", "        if new_m > m:\n            d = d * tl.exp(m - new_m) + tl.sum(tl.exp(x - new_m), axis=0)\n            m = new_m")],
    ),
    "an empty tile sets d to 0": ("sum_reset", [(D, D + '\n        d = tl.where(tl.max(x, axis=0) == -float("inf"), 0.0, d)')]),
    "the old maximum, rescaled after": (
        "old_maximum",
        [(D, 'old = tl.where(m == -float("inf"), 0.0, m)\n        d = (d + tl.sum(tl.exp(x - old), axis=0)) * tl.exp(old - anchor)')],
    ),
    "the first tile's maximum for all": (
        "first_tile_anchor",
        [(ANCHOR, "first = tl.where(start == 0, new_m, first)"), (D, "d += tl.sum(tl.exp(x - first), axis=0)"),
         ("d = 0.0  #", "first = 0.0\n    d = 0.0  #"), ("d_ptr + row, d", "d_ptr + row, d * tl.exp(first - m)")],
    ),
    "tiles before the row": ("before_the_row", [(LOOP, "for start in range(columns - TILE, -TILE, -TILE):")]),
    "the first tile twice": ("counted_twice", [(D, D + "\n        d += tl.where(start == 0, d, 0.0)")]),
    "d starts at 1": (
        "counted_twice",
        [('m = -float("inf")  #', "m = tl.load(x_ptr + row * x_stride).to(tl.float32)  #"), ("d = 0.0  #", "d = 1.0  #")],
    ),
    "a NaN in d made 0": ("nan_swallowed", [("anchor = " + ANCHOR[9:], "anchor = new_m"), ("d_ptr + row, d", "d_ptr + row, tl.where(d != d, 0.0, d)")]),
    "one maximum for several rows": ("maximum_over_rows", TWO_ROWS.replace("tl.max(x, axis=1)", "tl.max(x)")),
    "the pointer moved and start added": (
        "pointer_moved_twice",
        [("        m = new_m\n", "        m = new_m\n        x_ptr += TILE\n"), ("x_ptr + row * x_stride + column", "x_ptr + column"),
         (LOOP, "x_ptr += row * x_stride\n    " + LOOP)],
    ),
    "converted at the end": ("wrong_dtype", [("dtype=torch.float32", "dtype=x.dtype"), ("return m, d", "return m.float(), d.float()")]),
    "stored in every step": ("extra_stores", [("        m = new_m\n", "        m = new_m\n        tl.store(m_ptr + row, m)\n        tl.store(d_ptr + row, d)\n")]),
    "d not stored": ("nothing_stored", [("    tl.store(d_ptr + row, d)\n", "")]),
    "always row 0": ("same_row", [("x_ptr + row * x_stride", "x_ptr")]),
    "half the grid": ("rows_unwritten", [("[(rows,)]", "[(triton.cdiv(rows, 2),)]")]),
    "a column of results": ("wrong_shape", [("torch.empty(rows,", "torch.empty((rows, 1),")]),
    "in the dtype of x": ("wrong_dtype", [("dtype=torch.float32", "dtype=x.dtype")]),
    "only m returned": ("wrong_return", [("return m, d", "return m")]),
    "m by PyTorch": ("torch_work", [("return m, d", "return x.max(dim=1).values.float(), d")]),
    "everything by PyTorch": ("torch_work", "import torch\n\n\ndef online_stats(x):\n    m = x.float().max(dim=1).values\n    return m, torch.exp(x - m[:, None]).sum(dim=1)\n"),
    "starts never advance": ("timeout", [(LOOP, "start = 0\n    while start < columns:")]),
    "one divided by d": ("inverted", [("d_ptr + row, d", "d_ptr + row, 1.0 / d")]),
    "the inputs summed": ("sum_of_inputs", [(D, "d += tl.sum(tl.where(column < columns, x, 0.0), axis=0)")]),
    "the mean of the exponentials": ("mean", [("d_ptr + row, d", "d_ptr + row, d / columns")]),
    "the columns counted": ("counted", [(D, "d += tl.sum(tl.where(column < columns, 1.0, 0.0), axis=0)")]),
    "d never added to": ("maximum_only", [(D, "d = d * tl.exp(m - anchor)")]),
    "d at least 1": ("infinite_row", [("d_ptr + row, d", "d_ptr + row, tl.maximum(d, 1.0, propagate_nan=tl.PropagateNan.ALL)")]),
}  # fmt: skip

RIGHT = {
    "a pair for each lane, merged at the end": LANES,
    "tl.reduce with a merge, a while loop": HEAD
    + """@triton.jit
def merge(m1, d1, m2, d2):
    m = tl.maximum(m1, m2)
    return m, tl.where(m1 == m, d1, d1 * tl.exp(m1 - m)) + tl.where(m2 == m, d2, d2 * tl.exp(m2 - m))


@triton.jit
def kernel(m_ptr, d_ptr, x_ptr, xs, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    m = tl.full((), -float("inf"), tl.float32)
    d = tl.zeros((), tl.float32)
    start = 0
    while start < columns:
        c = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        one = tl.where(x == -float("inf"), 0.0, 1.0)
        top, part = tl.reduce((x, one), 0, merge)
        m, d = merge(m, d, top, part)
        start += TILE
    tl.store(m_ptr + row, m)
    tl.store(d_ptr + row, d)
"""
    + HOST % 128,
    "backwards, with exp2": HEAD
    + """@triton.jit
def kernel(m_ptr, d_ptr, x_ptr, xs, columns, TILE: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    d = 0.0
    tiles = tl.cdiv(columns, TILE)
    for i in tl.range(0, tiles):
        c = (tiles - 1 - i) * TILE + tl.arange(0, TILE)
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, axis=0))
        base = tl.where(new == -float("inf"), 0.0, new)
        d = d * tl.exp2((m - base) * 1.4426950408889634) + tl.sum(tl.exp2((x - base) * 1.4426950408889634), axis=0)
        m = new
    tl.store(m_ptr + row, m)
    tl.store(d_ptr + row, d)
"""
    + HOST % 256,
    "two rows a program, 2-D tiles": TWO_ROWS,
    "the larger of the two exponents by where, a list returned": HEAD
    + """@triton.jit
def kernel(m_ptr, d_ptr, x_ptr, xs, columns, TILE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * xs
    m = -float("inf")
    d = 0.0
    for start in range(0, columns, TILE):
        c = start + tl.arange(0, TILE)
        x = tl.load(x_ptr + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, axis=0))
        e = tl.where(x == -float("inf"), 0.0, tl.exp(x - new))
        d = tl.where(m == -float("inf"), d, d * tl.exp(m - new)) + tl.sum(e, axis=0)
        m = new
    tl.store(m_ptr + row, m)
    tl.store(d_ptr + row, d)
"""
    + (HOST % 32).replace("return m, d", "return [m, d]"),
}
