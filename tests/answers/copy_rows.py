"""Answers to copy_rows: wrong ones with the mistake that must be named, and unusual right ones."""

LOAD = "x = tl.load(x_ptr + row * x_stride + column, mask=mask)"
STORE = "tl.store(y_ptr + row * y_stride + column, x, mask=mask)"
HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
TWO_ROWS = (
    HEAD
    + """@triton.jit
def kernel(x_ptr, y_ptr, xs, ys, rows, columns, R: tl.constexpr, B: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)[:, None]
    c = tl.arange(0, B)[None, :]
    mask = (r < rows) & (c < columns)
    tl.store(y_ptr + r * ys + c, tl.load(x_ptr + r * xs + c, mask=mask), mask=mask)


def copy_rows(x):
    y = torch.empty_like(x)
    m, n = x.shape
    kernel[(triton.cdiv(m, 2),)](x, y, x.stride(0), y.stride(0), m, n, R=2, B=triton.next_power_of_2(n))
    return y
"""
)
TILES = (
    HEAD
    + """@triton.jit
def kernel(x_ptr, y_ptr, xs, ys, columns, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, columns, B):
        c = start + tl.arange(0, B)
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=0.0)
        tl.store(y_ptr + row * ys + c, x, mask=c < columns)


def copy_rows(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    kernel[(x.shape[0],)](x, y, x.stride(0), y.stride(0), x.shape[1], B=128)
    return y
"""
)
FLAT = (
    HEAD
    + """@triton.jit
def kernel(x_ptr, y_ptr, xs, n, columns, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    x = tl.load(x_ptr + (i // columns) * xs + i % columns, mask=i < n)
    tl.store(y_ptr + i, x, mask=i < n)


def copy_rows(x):
    y = x.new_empty(x.shape)
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["B"]),)](x, y, x.stride(0), x.numel(), x.shape[1], B=256)
    return y
"""
)
ONE_PROGRAM = (
    HEAD
    + """@triton.jit
def kernel(x_ptr, y_ptr, xs, ys, rows, columns, B: tl.constexpr):
    c = tl.arange(0, B)
    for row in range(0, rows):
        x = tl.load(x_ptr + c, mask=c < columns, eviction_policy="evict_first")
        tl.store(y_ptr + c, x, mask=c < columns)
        x_ptr += xs
        y_ptr += ys


def copy_rows(x):
    y = torch.zeros_like(x)
    kernel[(1,)](x, y, x.stride(0), y.stride(0), *x.shape, B=triton.next_power_of_2(x.shape[1]))
    return y
"""
)

WRONG = {
    "x's stride in bytes": ("stride_in_bytes", [("x.stride(0)", "x.stride(0) * x.element_size()")]),
    "both strides in bytes": (
        "stride_in_bytes",
        [("x.stride(0)", "x.stride(0) * x.element_size()"), ("y.stride(0)", "y.stride(0) * y.element_size()")],
    ),
    "the row stride times 4": ("stride_in_bytes", [("row * x_stride", "row * x_stride * 4")]),
    "a tuple of one": ("wrong_return", [("return y", "return y,")]),
    "rows and columns exchanged": ("row_out_of_bounds", [("rows, columns = x.shape", "columns, rows = x.shape")]),
    "y always float32": ("wrong_dtype", [("torch.empty_like(x)", "torch.empty(rows, columns)")]),
    "a colon missing": ("syntax_error", [("def copy_rows(x):", "def copy_rows(x)")]),
    "no mask at all": ("load_mask", [(", mask=mask", "")]),
    "store without a mask": ("store_mask", [(STORE, STORE.replace(", mask=mask", ""))]),
    "load without a mask": ("load_mask", [(LOAD, LOAD.replace(", mask=mask", ""))]),
    "mask with <=": ("mask_off_by_one", [("column < columns", "column <= columns")]),
    "mask one short": ("columns_unwritten", [("column < columns", "column < columns - 1")]),
    "mask by rows": ("columns_unwritten", [("column < columns", "column < tl.num_programs(0)")]),
    "columns for the row stride": ("row_stride", [("row * x_stride", "row * columns")]),
    "columns for both strides": ("row_stride", [("row * x_stride", "row * columns"), ("row * y_stride", "row * columns")]),
    "x's stride for y": ("output_stride", [("row * y_stride", "row * x_stride")]),
    "BLOCK for the row stride": ("row_stride", [("row * x_stride", "row * BLOCK")]),
    "a fixed block of 2048": ("columns_unwritten", [("triton.next_power_of_2(columns)", "2048")]),
    "a grid of at most 64": ("rows_unwritten", [("[(rows,)]", "[(min(rows, 64),)]")]),
    "0 added": ("bits_changed", [("column, x, mask", "column, x + 0.0, mask")]),
    "one column after the other": (
        "one_lane",
        [("    mask = column < columns\n", "    for c in range(columns):\n"),
         (LOAD, "    x = tl.load(x_ptr + row * x_stride + c)"),
         (STORE, "    tl.store(y_ptr + row * y_stride + c, x)")],
    ),
    "y's stride for x": ("row_stride", [("row * x_stride", "row * y_stride")]),
    "strides exchanged in the launch": ("row_stride", [("y.stride(0), x.stride(0)", "x.stride(0), y.stride(0)")]),
    "mask the wrong way round": ("mask_reversed", [("column < columns", "column > columns")]),
    "one column along": ("address_shifted", [("row * x_stride + column", "row * x_stride + column + 1")]),
    "the row from axis 1": ("rows_unwritten", [("tl.program_id(0)", "tl.program_id(1)")]),
    "x and y exchanged in the launch": ("arguments_exchanged", [("(y, x, y.stride(0)", "(x, y, y.stride(0)")]),
    "the row not scaled": ("row_not_scaled", [("row * x_stride", "row")]),
    "x.stride(1) for x": ("row_not_scaled", [("x.stride(0), columns", "x.stride(1), columns")]),
    "y.stride(1) for y": ("rows_unwritten", [("y.stride(0), x", "y.stride(1), x")]),
    "half the grid": ("rows_unwritten", [("[(rows,)]", "[(triton.cdiv(rows, 2),)]")]),
    "a grid of columns": ("row_out_of_bounds", [("[(rows,)]", "[(columns,)]")]),
    "a grid of one": ("rows_unwritten", [("[(rows,)]", "[(1,)]")]),
    "a grid one too large": ("row_out_of_bounds", [("[(rows,)]", "[(rows + 1,)]")]),
    "a fixed block of 64": ("columns_unwritten", [("triton.next_power_of_2(columns)", "64")]),
    "a fixed block of 1024": ("columns_unwritten", [("triton.next_power_of_2(columns)", "1024")]),
    "block is the row": ("arange_not_power_of_two", [("triton.next_power_of_2(columns)", "columns")]),
    "transposed load": ("transposed", [("row * x_stride + column", "column * x_stride + row")]),
    "transposed store": ("transposed", [("row * y_stride + column", "column * y_stride + row")]),
    "transposed both": (
        "transposed",
        [("row * x_stride + column", "column * x_stride + row"), ("row * y_stride + column", "column * y_stride + row")],
    ),
    "columns reversed": ("reversed", [("row * x_stride + column", "row * x_stride + columns - 1 - column")]),
    "rows reversed": ("reversed", [("y_ptr + row", "y_ptr + (tl.num_programs(0) - 1 - row)")]),
    "always row 0 loaded": ("same_row", [("x_ptr + row * x_stride + column", "x_ptr + column")]),
    "always row 0 stored": ("rows_unwritten", [("y_ptr + row * y_stride + column", "y_ptr + column")]),
    "column forgotten in the load": ("same_column", [("row * x_stride + column, mask=mask", "row * x_stride")]),
    "column numbers stored": ("addresses_stored", [("column, x, mask", "column, column, mask")]),
    "the mask stored": ("mask_stored", [("column, x, mask", "column, mask, mask")]),
    "rounded": ("rounded", [(STORE, "tl.store(y_ptr + row * y_stride + column, x.to(tl.float16), mask=mask)")]),
    "−∞ and NaN made 0": ("values_replaced", [("column, x, mask", 'column, tl.where(x > -float("inf"), x, 0.0), mask')]),
    "every tile the first": ("same_tile", TILES.replace("row * xs + c,", "row * xs + tl.arange(0, B),")),
    "backwards, without the first tile": (
        "columns_unwritten",
        TILES.replace("range(0, columns, B)", "range((columns - 1) // B * B, 0, -B)").replace("B=128", "B=16"),
    ),
    "rows not masked": ("row_out_of_bounds", TWO_ROWS.replace("(r < rows) & ", "")),
    "the row by the stride": ("row_stride", FLAT.replace("i // columns) * xs + i % columns", "i // xs) * xs + i % xs")),
    "too few flat programs": ("columns_unwritten", FLAT.replace("triton.cdiv(x.numel(), meta[\"B\"])", "max(1, x.numel() // meta[\"B\"])")),
    "the last row left out": ("rows_unwritten", ONE_PROGRAM.replace("range(0, rows)", "range(0, rows - 1)")),
    "y kept from call to call": (
        "not_from_a_kernel",
        [("y = torch.empty_like(x)", "y = OUT.setdefault((x.shape, x.dtype), torch.empty_like(x))"), ("\ndef copy_rows", "\nOUT = {}\n\n\ndef copy_rows")],
    ),
    "nothing stored": ("nothing_stored", [(STORE, "pass")]),
    "stores into x": ("input_overwritten", [("tl.store(y_ptr + row * y_stride", "tl.store(x_ptr + row * x_stride")]),
    "y is x": ("input_overwritten", [("y = torch.empty_like(x)", "y = x")]),
    "returns x": ("returns_input", [("return y", "return x")]),
    "stores twice": ("extra_stores", [(STORE, STORE + "\n    " + STORE)]),
    "reads twice": ("extra_loads", [(LOAD, LOAD + "\n    " + LOAD)]),
    "two programs a row": ("extra_loads", [("[(rows,)]", "[(rows, 2)]")]),
    "two launches": (
        "extra_launches",
        [("    copy_kernel[(rows,)](y, x, y.stride(0), x.stride(0), columns, BLOCK=triton.next_power_of_2(columns))",
          "    for start in range(0, columns, 1024):\n        part = x[:, start : start + 1024]\n"
          "        copy_kernel[(rows,)](y[:, start:], part, y.stride(0), x.stride(0), part.shape[1], BLOCK=1024)")],
    ),
    "clone": ("torch_work", "def copy_rows(x):\n    return x.clone()\n"),
    "copy_": ("torch_work", "import torch\n\n\ndef copy_rows(x):\n    return torch.empty_like(x).copy_(x)\n"),
    "numpy does it": ("no_launch", "import torch\n\n\ndef copy_rows(x):\n    return torch.from_numpy(x.numpy().copy())\n"),
    "fills with zeros": ("zeros_stored", [("column, x, mask", "column, tl.zeros_like(x), mask")]),
    "the finished kernel imported": ("answer_opened", [("import torch\n", "import torch\nfrom solutions.copy_rows import copy_kernel\n")]),
}  # fmt: skip

RIGHT = {
    "two rows a program, 2-D tiles": TWO_ROWS,
    "a loop over tiles": TILES,
    "flat, by division": FLAT,
    "one program for all rows": ONE_PROGRAM,
    "from the last row up, through float32": HEAD
    + """@triton.jit
def kernel(x_ptr, y_ptr, xs, ys, columns, B: tl.constexpr):
    row = tl.num_programs(0) - 1 - tl.program_id(0)
    c = B - 1 - tl.arange(0, B)
    x = tl.load(x_ptr + row * xs + c, mask=c < columns).to(tl.float32)
    tl.store(y_ptr + row * ys + c, x, mask=c < columns)


def copy_rows(x):
    y = torch.empty((x.shape[0], x.shape[1] + 3), dtype=x.dtype)[:, : x.shape[1]]
    kernel[(x.shape[0],)](x, y, x.stride(0), y.stride(0), x.shape[1], B=triton.next_power_of_2(x.shape[1]), num_warps=1)
    return y
""",
}
