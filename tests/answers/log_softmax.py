"""Answers to log_softmax: wrong ones with the mistake that must be named, and unusual right ones."""

Y = "y = shifted - tl.log(d)"
D = "d = tl.sum(tl.exp(shifted), axis=0)"
STORE = "tl.store(y_ptr + row * y_stride + column, y, mask=mask)"
HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"

TWO_ROWS = (
    HEAD
    + """@triton.jit
def kernel(x_ptr, y_ptr, xs, ys, rows, columns, R: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    c = tl.arange(0, B)[None, :]
    mask = (r < rows) & (c < columns)
    x = tl.load(x_ptr + r * xs + c, mask=mask, other=-float("inf")).to(tl.float32)
    x = x - tl.max(x, axis=1, keep_dims=True)
    tl.store(y_ptr + r * ys + c, x - tl.log(tl.sum(tl.exp(x), axis=1, keep_dims=True)), mask=mask)


def log_softmax(x):
    y = torch.empty_like(x)
    m, n = x.shape
    kernel[(triton.cdiv(m, 2),)](x, y, x.stride(0), y.stride(0), m, n, R=2, B=triton.next_power_of_2(n))
    return y
"""
)

WRONG = {
    "m + log d first": ("lost_digits", [(Y, "y = x - (tl.max(x, axis=0) + tl.log(d))")]),
    "log-sum-exp kept in a variable": ("lost_digits", [(Y, "lse = tl.log(d) + tl.max(x, axis=0)\n    y = x - lse")]),
    "log of the quotient": ("log_of_quotient", [(Y, "y = tl.log(tl.exp(shifted) / d)")]),
    "log of the exponential": ("log_of_quotient", [(Y, "y = tl.log(tl.exp(shifted)) - tl.log(d)")]),
    "log of the quotient and a little": ("log_of_quotient", [(Y, "y = tl.log(tl.exp(shifted) / d + 1e-38)")]),
    "log of the quotient and 1e-9": ("epsilon_added", [(Y, "y = tl.log(tl.exp(shifted) / d + 1e-9)")]),
    "log of d and 1e-6": ("epsilon_added", [("tl.log(d)", "tl.log(d + 1e-6)")]),
    "log of d and 1e-3": ("epsilon_added", [("tl.log(d)", "tl.log(d + 1e-3)")]),
    "a grid of at most 64": ("rows_unwritten", [("[(rows,)]", "[(min(rows, 64),)]")]),
    "a fixed block of 2048": ("columns_unwritten", [("triton.next_power_of_2(columns)", "2048")]),
    "softmax": ("softmax_given", [(Y, "y = tl.exp(shifted) / d")]),
    "no maximum": ("no_maximum", [("shifted = x - tl.max(x, axis=0)", "shifted = x")]),
    "no maximum, log of the quotient": (
        "no_maximum", [("shifted = x - tl.max(x, axis=0)", "shifted = x"), (Y, "y = tl.log(tl.exp(x) / d)")],
    ),
    "log2": ("base_two", [("tl.log(d)", "tl.log2(d)")]),
    "exp2": ("base_two", [("tl.exp(", "tl.exp2(")]),
    "exp2 and log2": ("base_two", [("tl.exp(", "tl.exp2("), ("tl.log(d)", "tl.log2(d)")]),
    "in base 2": ("base_two", [(Y, "y = (shifted - tl.log(d)) * 1.4426950408889634")]),
    "scaled before the maximum": (
        "lost_digits",
        [("shifted = x - tl.max(x, axis=0)", "x = x * 1.4426950408889634\n    shifted = x - tl.max(x, axis=0)"),
         ("tl.exp(", "tl.exp2("), (Y, "y = (shifted - tl.log2(d)) * 0.6931471805599453")],
    ),
    "no logarithm of the sum": ("no_denominator", [(Y, "y = shifted")]),
    "the sum without logarithm": ("no_logarithm", [(Y, "y = shifted - d")]),
    "log d taken from x": ("maximum_left_in", [(Y, "y = x - tl.log(d)")]),
    "log d added": ("sign", [(Y, "y = shifted + tl.log(d)")]),
    "negative log-likelihood": ("negated", [(Y, "y = tl.log(d) - shifted")]),
    "m + log d in float64": ("lost_digits", [("tl.float32", "tl.float64"), (Y, "y = x - (tl.max(x, axis=0) + tl.log(d))")]),
    "the largest |x|": ("absolute_maximum", [("tl.max(x, axis=0)", "tl.max(tl.where(mask, tl.abs(x), 0.0), axis=0)")]),
    "lanes past the row made 0 after the maximum": ("padding_zero", [("shifted = x - tl.max(x, axis=0)", "shifted = tl.where(mask, x - tl.max(x, axis=0), 0.0)")]),
    "a sum of exp(x)": ("maximum_left_in", [("tl.exp(shifted)", "tl.exp(x)")]),
    "the logarithms summed": ("log_before_sum", [(Y, "y = shifted - tl.sum(tl.where(mask, tl.log(tl.exp(shifted)), 0.0), axis=0)")]),
    "the mean of the exponentials": ("mean", [(D, D + " / columns")]),
    "log of 1 + d": ("one_added", [("tl.log(d)", "tl.log(1.0 + d)")]),
    "one maximum for the rows of a 2-D tile": ("global_max", TWO_ROWS.replace("tl.max(x, axis=1, keep_dims=True)", "tl.max(x)")),
    "a sum down the columns of a 2-D tile": (
        "wrong_axis", TWO_ROWS.replace("tl.sum(tl.exp(x), axis=1", "tl.sum(tl.where(mask, tl.exp(x), 0.0), axis=0").replace("R=2", "R=4"),
    ),
    "divided by log d": ("divided", [(Y, "y = shifted / tl.log(d)")]),
    "log of the mean": ("mean", [(Y, "y = shifted - tl.log(columns.to(tl.float32))")]),
    "padding with 0": ("padding_zero", [('other=-float("inf")', "other=0.0")]),
    "padding with -1e9": ("padding_finite", [('other=-float("inf")', "other=-1e9")]),
    "padding with -1e4": ("padding_finite", [('other=-float("inf")', "other=-1e4")]),
    "padding with nothing": ("padding_missing", [(', other=-float("inf")', "")]),
    "tl.maximum(x, 0) for the maximum": ("maximum_with_zero", [("tl.max(x, axis=0)", "tl.maximum(x, 0.0)")]),
    "the values of tl.where exchanged": ("where_exchanged", [(".to(tl.float32)\n", ".to(tl.float32)\n    x = tl.where(mask, -float('inf'), x)\n")]),
    "the sum's tl.where exchanged": (None, [("tl.exp(shifted)", "tl.where(mask, 0.0, tl.exp(shifted))")]),
    "x.stride(1) for x": ("row_not_scaled", [("x.stride(0), columns", "x.stride(1), columns")]),
    "x made float16": ("half_precision", [(".to(tl.float32)", ".to(tl.float16)")]),
    "columns for the row stride": ("row_stride", [("row * x_stride", "row * columns")]),
    "mask with <=": ("mask_off_by_one", [("column < columns", "column <= columns")]),
    "store without a mask": ("store_mask", [(STORE, STORE.replace(", mask=mask", ""))]),
    "half the grid": ("rows_unwritten", [("[(rows,)]", "[(triton.cdiv(rows, 2),)]")]),
    "float16 arithmetic": ("half_precision", [(").to(tl.float32)", ")"), ("tl.exp(shifted)", "tl.exp(shifted).to(x.dtype)"), (Y, "y = shifted - tl.log(d.to(tl.float32)).to(x.dtype)")]),
    "a float16 sum": ("half_precision", [(D, "d = tl.sum(tl.exp(shifted).to(x_ptr.dtype.element_ty), axis=0).to(tl.float32)")]),
    "a NaN made 0": ("nan_swallowed", [(Y, Y + "\n    y = tl.where(y == y, y, 0.0)")]),
    "−inf made finite": (("infinity_hidden", "nan_swallowed"), [(Y, "y = tl.maximum(shifted - tl.log(d), -1e9)")]),
    "reads the row twice": ("extra_loads", [(Y, 'x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)\n    y = x - tl.max(x, axis=0) - tl.log(d)')]),
    "two launches": ("extra_loads", [("    return y", "    log_softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))\n    return y")]),
    "the logarithm by PyTorch": ("torch_work", [(Y, "y = tl.exp(shifted) / d"), ("return y", "return y.log()")]),
    "torch.log_softmax": ("torch_work", "import torch\n\n\ndef log_softmax(x):\n    return torch.log_softmax(x, dim=1)\n"),
    "tl.softmax": ("library_softmax", [(Y, "y = tl.log(tl.softmax(x))")]),
    "input overwritten": ("input_overwritten", [("tl.store(y_ptr + row * y_stride", "tl.store(x_ptr + row * x_stride")]),
    "a fixed block": ("columns_unwritten", [("triton.next_power_of_2(columns)", "1024")]),
    "x stored": ("copied", [(Y, "y = x")]),
}  # fmt: skip

RIGHT = {
    "two rows a program, 2-D tiles": TWO_ROWS,
    "exp2 and log2 with their factors": HEAD
    + """@triton.jit
def kernel(x_ptr, y_ptr, xs, ys, columns, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(x_ptr + r * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    x -= tl.max(x, axis=0)
    d = tl.sum(tl.exp2(x * 1.4426950408889634), axis=0)
    tl.store(y_ptr + r * ys + c, x - tl.log2(d) * 0.6931471805599453, mask=c < columns)


def log_softmax(x):
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, y, x.stride(0), y.stride(0), x.shape[1], B=triton.next_power_of_2(x.shape[1]))
    return y
""",
    "a loop over rows, the sum masked": HEAD
    + """@triton.jit
def kernel(x_ptr, y_ptr, xs, ys, rows, columns, B: tl.constexpr):
    c = tl.arange(0, B)
    for r in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + r * xs + c, mask=c < columns, other=0.0).to(tl.float32)
        m = tl.max(tl.where(c < columns, x, -float("inf")), axis=0)
        d = tl.sum(tl.where(c < columns, tl.exp(x - m), 0.0), axis=0)
        tl.store(y_ptr + r * ys + c, (x - m) - tl.log(d), mask=c < columns)


def log_softmax(x):
    y = torch.empty_like(x)
    kernel[(4,)](x, y, x.stride(0), y.stride(0), *x.shape, B=triton.next_power_of_2(x.shape[1]))
    return y
""",
    "minus log of the reciprocal sum": HEAD
    + """@triton.jit
def kernel(x_ptr, y_ptr, xs, ys, columns, B: tl.constexpr):
    r = tl.program_id(0)
    c = tl.arange(0, B)
    x = tl.load(x_ptr + r * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    s = x - tl.max(x, axis=0)
    tl.store(y_ptr + r * ys + c, s + tl.log(1.0 / tl.sum(tl.exp(s), axis=0)), mask=c < columns)


def log_softmax(x):
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, y, x.stride(0), y.stride(0), x.shape[1], B=max(32, triton.next_power_of_2(x.shape[1])))
    return y
""",
}
