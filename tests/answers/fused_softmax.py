"""Answers to fused_softmax: wrong ones with the mistake that must be named, and unusual right ones.

A wrong answer is the solution with a few lines changed: title → (mistake, [(old, new), …]).
"""

LOAD = 'x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf"))'
STORE = "tl.store(y_ptr + row * y_stride + column, y, mask=mask)"
LAUNCH = (
    "softmax_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))"
)

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
TWO_ROWS = (
    HEAD
    + """@triton.jit
def kernel(x_ptr, y_ptr, xs, ys, rows, columns, R: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    c = tl.arange(0, B)[None, :]
    mask = (r < rows) & (c < columns)
    x = tl.load(x_ptr + r * xs + c, mask=mask, other=-float("inf")).to(tl.float32)
    x = tl.where(r < rows, x, 0.0)
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    tl.store(y_ptr + r * ys + c, e / tl.sum(e, axis=1)[:, None], mask=mask)


def fused_softmax(x):
    y = torch.empty_like(x)
    m, n = x.shape
    kernel[(triton.cdiv(m, 2),)](x, y, x.stride(0), y.stride(0), m, n, R=2, B=triton.next_power_of_2(n))
    return y
"""
)

# One program for the whole matrix, which reduces along the wrong axis of its tile.
DOWN = (
    HEAD
    + """@triton.jit
def kernel(y_ptr, x_ptr, ys, xs, rows, columns, R: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.arange(0, R)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < columns)
    x = tl.load(x_ptr + row * xs + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.where(mask, tl.exp(x - tl.max(x, axis=0)[None, :]), 0.0)
    tl.store(y_ptr + row * ys + column, e / tl.sum(e, axis=0)[None, :], mask=mask)


def fused_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    R, BLOCK = triton.next_power_of_2(rows), triton.next_power_of_2(columns)
    kernel[(1,)](y, x, y.stride(0), x.stride(0), rows, columns, R=R, BLOCK=BLOCK)
    return y
"""
)

WRONG = {
    "check called in the file": (
        "exception",
        [("    return y\n", "    return y\n\n\ncheck('fused_softmax')\n")],
    ),
    "a magic in the file": ("syntax_error", [("import torch\n", "%matplotlib inline\nimport torch\n")]),
    "exp(x) divided by the safe sum": ("maximum_left_in", [("numerator / tl", "tl.exp(x) / tl")]),
    "a list that holds y": ("wrong_return", [("return y", "return [y]")]),
    "x loaded from x": ("unset_variable", [("tl.load(x_ptr + row", "tl.load(x + row")]),
    "libdevice": (
        "libdevice",
        [
            (
                "import triton.language as tl",
                "import triton.language as tl\nfrom triton.language.extra import libdevice",
            ),
            ("tl.exp(", "libdevice.exp("),
        ],
    ),
    "tl's functions without tl": (
        "tl_by_name",
        [
            (
                "import triton.language as tl",
                "import triton.language as tl\nfrom triton.language import load",
            ),
            ("tl.load(", "load("),
        ],
    ),
    "check in the file": (
        "answer_opened",
        [("import torch\n", "import torch\nfrom course_kernels.lab import check\n")],
    ),
    "an argument parser": (
        "out_of_place",
        [("import torch\n", "import argparse\nimport torch\nPARSER = argparse.ArgumentParser()\n")],
    ),
    "one maximum for the rows of a 2-D tile": (
        "global_max",
        TWO_ROWS.replace("tl.max(x, axis=1)[:, None]", "tl.max(x)").replace(
            "x = tl.where(r < rows, x, 0.0)", "pass"
        ),
    ),
    "one sum for the rows of a 2-D tile": (
        "rows_mixed",
        TWO_ROWS.replace("tl.sum(e, axis=1)[:, None]", "tl.sum(tl.where(mask, e, 0.0))"),
    ),
    "the largest |x|": (
        "absolute_maximum",
        [("tl.max(x, axis=0)", "tl.max(tl.where(mask, tl.abs(x), 0.0), axis=0)")],
    ),
    "lanes past the row made 0 after the maximum": (
        "padding_zero",
        [("tl.exp(x - tl.max(x, axis=0))", "tl.exp(tl.where(mask, x - tl.max(x, axis=0), 0.0))")],
    ),
    "a sum of exp(x)": ("maximum_left_in", [("tl.sum(numerator", "tl.sum(tl.exp(x)")]),
    "1 added to the sum": (
        "one_added",
        [("/ tl.sum(numerator, axis=0)", "/ (1.0 + tl.sum(numerator, axis=0))")],
    ),
    "divided by the number of lanes": ("mean", [("/ tl.sum(numerator, axis=0)", "/ BLOCK")]),
    "padding with 0": ("padding_zero", [('other=-float("inf")', "other=0.0")]),
    "padding with -1e9": ("padding_finite", [('other=-float("inf")', "other=-1e9")]),
    "padding with -100": ("padding_finite", [('other=-float("inf")', "other=-100.0")]),
    "padding with nothing": ("padding_missing", [(', other=-float("inf")', "")]),
    "no maximum": ("no_maximum", [("tl.exp(x - tl.max(x, axis=0))", "tl.exp(x)")]),
    "mask with <=": ("mask_off_by_one", [("column < columns", "column <= columns")]),
    "load without a mask": ("load_mask", [(LOAD, "x = tl.load(x_ptr + row * x_stride + column)")]),
    "store without a mask": ("store_mask", [(STORE, "tl.store(y_ptr + row * y_stride + column, y)")]),
    "columns for the row stride": ("row_stride", [("row * x_stride", "row * columns")]),
    "strides exchanged in the launch": (
        "row_stride",
        [("y.stride(0), x.stride(0)", "x.stride(0), y.stride(0)")],
    ),
    "x and y exchanged in the launch": (
        "arguments_exchanged",
        [("(y, x, y.stride(0)", "(x, y, y.stride(0)")],
    ),
    "the row not scaled": ("row_not_scaled", [("row * x_stride", "row")]),
    "x divided by its sum": (
        "no_exponential",
        [
            ('other=-float("inf")', "other=0.0"),
            ("numerator = tl.exp(x - tl.max(x, axis=0))", "numerator = x"),
        ],
    ),
    "tl.maximum(x, 0)": (
        "clamped_at_zero",
        [
            ("tl.max(x, axis=0)", "tl.max(tl.maximum(x, 0), axis=0)"),
            ("tl.exp(x -", "tl.exp(tl.maximum(x, tl.where(mask, 0.0, x)) -"),
        ],
    ),
    "tl.maximum(x, 0) for the maximum": (
        "maximum_with_zero",
        [("tl.max(x, axis=0)", "tl.maximum(x, 0.0)")],
    ),
    "x divided by its sum, padded with −∞": (
        "no_exponential",
        [("numerator = tl.exp(x - tl.max(x, axis=0))", "numerator = x")],
    ),
    "x divided by the sum of the exponentials": ("no_exponential", [("y = numerator /", "y = x /")]),
    "the values of tl.where exchanged": (
        "where_exchanged",
        [("x = x.to(tl.float32)", "x = tl.where(mask, -float('inf'), x.to(tl.float32))")],
    ),
    "tl.where exchanged, no other=": (
        "where_exchanged",
        [
            (', other=-float("inf")', ""),
            ("x = x.to(tl.float32)", "x = tl.where(mask, -float('inf'), x.to(tl.float32))"),
        ],
    ),
    "the numerators' tl.where exchanged": (
        "where_exchanged",
        [("    y = numerator", "    numerator = tl.where(mask, 0.0, numerator)\n    y = numerator")],
    ),
    "numerators parked in the output": (
        "output_read_back",
        [
            (
                "    y = numerator / tl.sum(numerator, axis=0)",
                "    tl.store(y_ptr + row * y_stride + column, numerator, mask=mask)\n    d = tl.sum(numerator, axis=0)\n    y = tl.load(y_ptr + row * y_stride + column, mask=mask, other=0.0) / d",
            )
        ],
    ),
    "x.stride(1) for x": ("row_not_scaled", [("x.stride(0), columns", "x.stride(1), columns")]),
    "y.stride(1) for y": ("rows_unwritten", [("y.stride(0), x", "y.stride(1), x")]),
    "x made float16": ("half_precision", [("x.to(tl.float32)", "x.to(tl.float16)")]),
    "numerators made float16": (
        "half_precision",
        [("tl.exp(x - tl.max(x, axis=0))", "tl.exp(x - tl.max(x, axis=0)).to(tl.float16).to(tl.float32)")],
    ),
    "the result made float16": (
        "half_precision",
        [("/ tl.sum(numerator, axis=0)", "/ tl.sum(numerator, axis=0)\n    y = y.to(tl.float16)")],
    ),
    "the mean taken off": (
        "mean_taken_off",
        [("tl.max(x, axis=0)", "tl.sum(tl.where(mask, x, 0.0), axis=0) / columns")],
    ),
    "the sum taken off": ("sum_taken_off", [("tl.max(x, axis=0)", "tl.sum(x, axis=0)")]),
    "the sum of the columns taken off": (
        "sum_taken_off",
        [("tl.max(x, axis=0)", "tl.sum(tl.where(mask, x, 0.0), axis=0)")],
    ),
    "the smallest taken off": ("not_the_maximum", [("tl.max(x, axis=0)", "tl.min(x, axis=0)")]),
    "zeros": (None, [("/ tl.sum(numerator, axis=0)", "* 0.0")]),
    "half the grid": ("rows_unwritten", [("[(rows,)]", "[(triton.cdiv(rows, 2),)]")]),
    "a grid of one": ("rows_unwritten", [("[(rows,)]", "[(1,)]")]),
    "a grid of columns": ("rows_unwritten", [("[(rows,)]", "[(1 + (rows - 1) // 2,)]")]),
    "a grid too large": ("row_out_of_bounds", [("[(rows,)]", "[(rows + 1,)]")]),
    "a fixed block": ("columns_unwritten", [("triton.next_power_of_2(columns)", "1024")]),
    "a fixed block of 2048": ("columns_unwritten", [("triton.next_power_of_2(columns)", "2048")]),
    "a grid of at most 64": ("rows_unwritten", [("[(rows,)]", "[(min(rows, 64),)]")]),
    "wrong for wide rows only": (
        "not_divided",
        [
            (
                "y = numerator / tl.sum(numerator, axis=0)",
                "y = numerator\n    if columns < 5000:\n        y = numerator / tl.sum(numerator, axis=0)",
            )
        ],
    ),
    "1e-6 added": ("epsilon_added", [("tl.sum(numerator, axis=0)", "(tl.sum(numerator, axis=0) + 1e-6)")]),
    "3e-6 added": ("epsilon_added", [("tl.sum(numerator, axis=0)", "(tl.sum(numerator, axis=0) + 3e-6)")]),
    "1e-3 added": ("epsilon_added", [("tl.sum(numerator, axis=0)", "(tl.sum(numerator, axis=0) + 1e-3)")]),
    "a floor under the maximum": (
        "maximum_starts_finite",
        [("tl.max(x, axis=0)", "tl.maximum(tl.max(x, axis=0), -1e38)")],
    ),
    "a NaN in the first column made 0": (
        "nan_swallowed",
        [
            (
                "x = x.to(tl.float32)",
                "x = x.to(tl.float32)\n    x = tl.where((column == 0) & (x != x), -float('inf'), x)",
            )
        ],
    ),
    "a NaN in the last column made 0": (
        "nan_swallowed",
        [
            (
                "x = x.to(tl.float32)",
                "x = x.to(tl.float32)\n    x = tl.where((column == columns - 1) & (x != x), -float('inf'), x)",
            )
        ],
    ),
    "block is the row": ("arange_not_power_of_two", [("triton.next_power_of_2(columns)", "columns")]),
    "input overwritten": (
        "input_overwritten",
        [("tl.store(y_ptr + row * y_stride", "tl.store(x_ptr + row * x_stride")],
    ),
    "works in place": ("input_overwritten", [("y = torch.empty_like(x)", "y = x")]),
    "nothing stored": ("nothing_stored", [(STORE, "pass")]),
    "not divided": ("not_divided", [("numerator / tl.sum(numerator, axis=0)", "numerator")]),
    "divided by the length": ("mean", [("/ tl.sum(numerator, axis=0)", "/ columns")]),
    "exp2 without the scale": ("base_two", [("tl.exp(", "tl.exp2(")]),
    "wrong sign": ("sign", [("x - tl.max(x, axis=0)", "tl.max(x, axis=0) - x")]),
    "always row 0": ("same_row", [("x_ptr + row * x_stride + column", "x_ptr + column")]),
    "float16 arithmetic": (
        "half_precision",
        [
            (
                "numerator = tl.exp(x - tl.max(x, axis=0))",
                "numerator = tl.exp(x - tl.max(x, axis=0)).to(y_ptr.dtype.element_ty)",
            )
        ],
    ),
    "a NaN made 0": (
        "nan_swallowed",
        [("x = x.to(tl.float32)", "x = x.to(tl.float32)\n    x = tl.where(x == x, x, -float('inf'))")],
    ),
    "an all −inf row made 0": (
        "nan_swallowed",
        [("    tl.store", "    y = tl.where(tl.max(x, axis=0) == -float('inf'), 0.0, y)\n    tl.store")],
    ),
    "a copy of x": ("copied", [("y = numerator / tl.sum(numerator, axis=0)", "y = x")]),
    "logarithm": (
        "log_given",
        [
            (
                "y = numerator / tl.sum(numerator, axis=0)",
                "y = x - tl.max(x, axis=0) - tl.log(tl.sum(numerator, axis=0))",
            )
        ],
    ),
    "reads the row twice": (
        "extra_loads",
        [
            (
                "    numerator =",
                "    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float('inf')).to(tl.float32)\n    numerator =",
            )
        ],
    ),
    "through a scratch tensor": (
        "extra_loads",
        [
            (
                "    y = numerator",
                "    tl.store(s_ptr + row * columns + column, numerator, mask=mask)\n    numerator = tl.load(s_ptr + row * columns + column, mask=mask, other=0.0)\n    y = numerator",
            ),
            ("def softmax_kernel(", "def softmax_kernel(s_ptr, "),
            (
                "softmax_kernel[(rows,)](",
                "softmax_kernel[(rows,)](torch.empty(x.shape, dtype=torch.float32), ",
            ),
        ],
    ),
    "stores twice": ("extra_stores", [(STORE, STORE + "\n    " + STORE)]),
    "x made contiguous": (
        "copies_input",
        [("rows, columns = x.shape", "x = x.contiguous()\n    rows, columns = x.shape")],
    ),
    "x made float32 by PyTorch": (
        "copies_input",
        [("rows, columns = x.shape", "x = x.float()\n    rows, columns = x.shape")],
    ),
    "wrong shape": ("wrong_shape", [("return y", "return y.view(-1)")]),
    "nothing returned": ("wrong_return", [("    return y\n", "")]),
    "wrong dtype": ("wrong_dtype", [("torch.empty_like(x)", "torch.empty_like(x, dtype=torch.float32)")]),
    "torch.softmax": ("torch_work", [("return y", "return torch.softmax(x, dim=1)")]),
    "the maximum by PyTorch": (
        "torch_work",
        [("rows, columns = x.shape", "rows, columns = x.shape\n    m = x.max(dim=1).values")],
    ),
    "numpy does it": (
        "not_from_a_kernel",
        [
            (
                "return y",
                "import numpy as np\n    a = x.numpy().astype('f8')\n    e = np.exp(a - a.max(1, keepdims=True))\n    return torch.from_numpy((e / e.sum(1, keepdims=True)).astype(x.numpy().dtype))",
            )
        ],
    ),
    "tl.softmax": ("library_softmax", [("y = numerator / tl.sum(numerator, axis=0)", "y = tl.softmax(x)")]),
    "cached by shape": (
        "no_launch",
        [
            (
                "def fused_softmax(x):",
                "_cache = {}\n\n\ndef fused_softmax(x):\n    if 'y' in _cache:\n        return torch.empty_like(x)\n    _cache['y'] = 1",
            )
        ],
    ),
    "the finished kernel imported": (
        "answer_opened",
        [("import torch\n", "import torch\nfrom course_kernels.fused_row import softmax\n")],
    ),
    "the solution read": (
        "answer_opened",
        [("import torch\n", "import torch\nexec(open('solutions/fused_softmax.py').read())\n")],
    ),
    "the hooks replaced": (
        "out_of_place",
        [
            (
                "import torch\n",
                "import torch\nfrom triton.runtime import interpreter\ninterpreter.InterpreterBuilder.create_masked_store = lambda *a: None\n",
            )
        ],
    ),
    "numpy in the kernel": (
        "compile",
        [
            ("tl.exp(x - tl.max(x, axis=0))", "tl.exp(x - tl.max(x, axis=0)) * float(np.ones(1)[0])"),
            ("import torch\n", "import numpy as np\nimport torch\n"),
        ],
    ),
    "an if on a tile": (
        "compile",
        [
            (
                "    numerator =",
                "    if x.sum() == x.sum():\n        x = x + 0.0\n    if column < 0:\n        x = x\n    numerator =",
            )
        ],
    ),
    "a name missing": ("exception", [("tl.exp(", "tl.exponential(")]),
    "a syntax error": ("syntax_error", [("rows, columns = x.shape", "rows, columns = x.shape)")]),
    "an endless loop": (
        "timeout",
        [("rows, columns = x.shape", "rows, columns = x.shape\n    while True:\n        pass")],
    ),
    "ends the process": ("exit", [("rows, columns = x.shape", "import os\n    os._exit(3)")]),
    "a segmentation fault": (
        "crash",
        [("rows, columns = x.shape", "import ctypes\n    ctypes.string_at(0)")],
    ),
    "ten gigabytes": (
        "memory",
        [("y = torch.empty_like(x)", "y = torch.empty(10 << 30, dtype=torch.uint8)")],
    ),
    "renamed": ("entry_missing", [("def fused_softmax(", "def softmax_fused(")]),
    "the inputs summed": ("sum_of_inputs", [("tl.sum(numerator, axis=0)", "tl.sum(x, axis=0)")]),
    "half the sum": (
        "scaled",
        [("numerator / tl.sum(numerator, axis=0)", "numerator / (0.5 * tl.sum(numerator, axis=0))")],
    ),
    "the place of the maximum": ("place_subtracted", [("tl.max(x, axis=0)", "tl.argmax(x, axis=0)")]),
    "powers of two only": (
        "power_of_two_only",
        [
            (
                "rows, columns = x.shape",
                "rows, columns = x.shape\n    assert columns & (columns - 1) == 0, columns",
            )
        ],
    ),
    "a term of the whole tile": (
        "nan_spreads",
        TWO_ROWS.replace(
            "e = tl.exp(", "x = x + 0.0 * tl.sum(tl.where(mask, x * 1e-9, 0.0))\n    e = tl.exp("
        ),
    ),
    "down the columns": ("wrong_axis", DOWN),
    "the sum down the columns": (
        "wrong_axis",
        DOWN.replace("tl.max(x, axis=0)[None, :]", "tl.max(x, axis=1)[:, None]"),
    ),
}

RIGHT = {
    "two rows a program, 2-D tiles": TWO_ROWS,
    "os.environ": "import os\n"
    + TWO_ROWS.replace("@triton.jit", "os.environ['TRITON_INTERPRET'] = '1'\n\n\n@triton.jit"),
    "an attribute of one's own set later": TWO_ROWS.replace(
        "@triton.jit",
        "class Options:\n    pass\n\n\nOPTIONS = Options()\nOPTIONS.num_warps = 4\n\n\n@triton.jit",
    ),
    "a persistent loop over rows": HEAD
    + """@triton.jit
def kernel(x_ptr, y_ptr, xs, ys, rows, columns, B: tl.constexpr):
    c = tl.arange(0, B)
    for r in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + r * xs + c, mask=c < columns, other=float("-inf")).to(tl.float32)
        e = tl.exp(x - tl.max(x))
        tl.store(y_ptr + r * ys + c, e / tl.sum(e), mask=c < columns)


def fused_softmax(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel[(min(3, x.shape[0]),)](x, y, x.stride(0), y.stride(0), *x.shape, B=triton.next_power_of_2(x.shape[1]))
    return y
""",
    "exp2 with the scale, tl.where for other, one reciprocal": HEAD
    + """LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def kernel(x_ptr, y_ptr, xs, ys, rows, columns, B: tl.constexpr):
    r = tl.program_id(axis=0).to(tl.int64)
    c = tl.arange(0, B)
    x = tl.load(x_ptr + r * xs + c, mask=c < columns, other=0.0).to(tl.float32)
    x = tl.where(c < columns, x, -float("inf"))
    e = tl.exp2((x - tl.max(x, 0)) * LOG2E)
    tl.store(y_ptr + r * ys + c, e * (1.0 / tl.sum(e, 0)), mask=c < columns)


def fused_softmax(x):
    rows, columns = x.shape
    y = x.new_empty(rows, columns)
    kernel[(rows,)](x, y, x.stride(0), y.stride(0), rows, columns, B=max(16, triton.next_power_of_2(columns)), num_warps=2)
    return y
""",
    "a helper function, a mask on the sum only": HEAD
    + """@triton.jit
def normalise(x, mask):
    e = tl.where(mask, tl.exp(x - tl.max(tl.where(mask, x, -float("inf")), axis=0)), 0.0)
    return e / tl.sum(e, axis=0)


@triton.jit
def kernel(out, inp, so, si, n, B: tl.constexpr):
    pid = tl.program_id(0)
    lanes = tl.arange(0, B)
    mask = lanes < n
    x = tl.load(inp + pid * si + lanes, mask=mask, other=0).to(tl.float32)
    tl.store(out + pid * so + lanes, normalise(x, mask).to(out.dtype.element_ty), mask=mask)


def fused_softmax(x):
    out = torch.zeros_like(x)
    kernel[lambda meta: (x.shape[0],)](out, x, out.stride(0), x.stride(0), x.shape[1], B=triton.next_power_of_2(x.shape[1]))
    return out
""",
    "autotuned": HEAD
    + """@triton.autotune(configs=[triton.Config({}, num_warps=w) for w in (2, 4, 8)], key=["n"])
@triton.jit
def kernel(out, inp, so, si, n, B: tl.constexpr):
    pid = tl.program_id(0)
    lanes = tl.arange(0, B)
    x = tl.load(inp + pid * si + lanes, mask=lanes < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out + pid * so + lanes, e / tl.sum(e, axis=0), mask=lanes < n)


def fused_softmax(x):
    out = torch.empty_like(x)
    kernel[(x.shape[0],)](out, x, out.stride(0), x.stride(0), x.shape[1], B=triton.next_power_of_2(x.shape[1]))
    return out
""",
    "a two-dimensional grid": HEAD
    + """@triton.jit
def kernel(out, inp, so, si, rows, n, B: tl.constexpr):
    row = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    lanes = tl.arange(0, B)
    live = (lanes < n) & (row < rows)
    x = tl.load(inp + row * si + lanes, mask=live, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out + row * so + lanes, e / tl.sum(e, axis=0), mask=live)


def fused_softmax(x):
    out = torch.empty_like(x)
    rows, n = x.shape
    kernel[(triton.cdiv(rows, 2), 2)](out, x, out.stride(0), x.stride(0), rows, n, B=triton.next_power_of_2(n))
    return out
""",
    "no other= but tl.where, both strides": HEAD
    + """@triton.jit
def kernel(out, inp, so, si, ci, n, B: tl.constexpr):
    lanes = tl.arange(0, B)
    x = tl.load(inp + tl.program_id(0) * si + lanes * ci, mask=lanes < n)
    x = tl.where(lanes < n, x.to(tl.float32), -float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out + tl.program_id(0) * so + lanes, e / tl.sum(e, axis=0), mask=lanes < n)


def fused_softmax(x):
    out = torch.empty_like(x)
    rows, n = x.shape
    kernel[(rows,)](out, x, out.stride(0), x.stride(0), x.stride(1), n, B=triton.next_power_of_2(n))
    return out
""",
    "a printing kernel host, output allocated with a wider stride": HEAD
    + """@triton.jit
def kernel(out, inp, so, si, n, B: tl.constexpr):
    pid = tl.program_id(0)
    lanes = tl.arange(0, B)
    x = tl.load(inp + pid * si + lanes, mask=lanes < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out + pid * so + lanes, e / tl.sum(e, axis=0), mask=lanes < n)


def fused_softmax(x):
    print("shape", x.shape, "stride", x.stride())
    rows, n = x.shape
    out = torch.empty((rows, n + 8), dtype=x.dtype, device=x.device)[:, :n]
    kernel[(rows,)](out, x, out.stride(0), x.stride(0), n, B=triton.next_power_of_2(n), num_warps=8)
    return out
""",
}
