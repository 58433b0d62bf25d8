"""Answers to split_softmax: wrong ones with the mistake that must be named, and unusual right ones."""

from course_kernels.lab.exercises import stubs
from tests.answers import tiled_softmax as tiled

LOAD = (
    'x = tl.load(x_ptr + row * x_stride + column, mask=column < columns, other=-float("inf")).to(tl.float32)'
)
LOAD_2 = 'x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)'
ANCHOR = 'anchor = tl.where(m == -float("inf"), 0.0, m)'
CHUNK_D = "d = tl.sum(tl.exp(x - anchor), axis=0)"
M = "m = tl.max(chunk_m, axis=0)"
D = "d = tl.sum(chunk_d * tl.exp(chunk_m - m), axis=0)"
STORE = "tl.store(y_ptr + row * y_stride + column, tl.exp(x - m) / d, mask=mask)"
FIRST = "chunk_kernel[(rows, chunks)](m, d, x, x.stride(0), columns, CHUNK=CHUNK)"
CHUNKS = "chunks = triton.cdiv(columns, CHUNK)"
# One chunk after the other, with nothing for a maximum that is still −inf.
LOOP = """m = tl.load(m_ptr + row * chunks)
    d = tl.load(d_ptr + row * chunks)
    for i in range(1, chunks):
        own = tl.load(m_ptr + row * chunks + i)
        new = tl.maximum(m, own)
        d = d * tl.exp(m - new) + tl.load(d_ptr + row * chunks + i) * tl.exp(own - new)
        m = new"""
HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"

THREE = (
    HEAD
    + """@triton.jit
def maxima(m_ptr, x_ptr, xs, columns, C: tl.constexpr):
    c = tl.program_id(1) * C + tl.arange(0, C)
    x = tl.load(x_ptr + tl.program_id(0) * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    tl.atomic_max(m_ptr + tl.program_id(0), tl.max(x, axis=0))


@triton.jit
def sums(m_ptr, d_ptr, x_ptr, xs, columns, C: tl.constexpr):
    c = tl.program_id(1) * C + tl.arange(0, C)
    x = tl.load(x_ptr + tl.program_id(0) * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    tl.atomic_add(d_ptr + tl.program_id(0), tl.sum(tl.exp(x - tl.load(m_ptr + tl.program_id(0))), axis=0))


@triton.jit
def divide(y_ptr, m_ptr, d_ptr, x_ptr, ys, xs, columns, C: tl.constexpr):
    row = tl.program_id(0)
    c = tl.program_id(1) * C + tl.arange(0, C)
    x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    tl.store(y_ptr + row * ys + c, tl.exp(x - tl.load(m_ptr + row)) / tl.load(d_ptr + row), mask=c < columns)


def split_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    m = torch.full((rows,), -float("inf"), dtype=torch.float32, device=x.device)
    d = torch.zeros(rows, dtype=torch.float32, device=x.device)
    grid = (rows, triton.cdiv(columns, 512))
    maxima[grid](m, x, x.stride(0), columns, C=512)
    sums[grid](m, d, x, x.stride(0), columns, C=512)
    divide[grid](y, m, d, x, y.stride(0), x.stride(0), columns, C=512)
    return y
"""
)
NUMERATORS = (
    HEAD
    + """@triton.jit
def parts(e_ptr, m_ptr, d_ptr, x_ptr, xs, columns, C: tl.constexpr):
    row, chunk = tl.program_id(0), tl.program_id(1)
    at = row * tl.num_programs(1) + chunk
    c = chunk * C + tl.arange(0, C)
    x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    m = tl.max(x, axis=0)
    e = tl.exp(x - tl.where(m == -float("inf"), 0.0, m))
    tl.store(e_ptr + row * columns + c, e, mask=c < columns)
    tl.store(m_ptr + at, m)
    tl.store(d_ptr + at, tl.sum(e, axis=0))


@triton.jit
def finish(y_ptr, e_ptr, m_ptr, d_ptr, ys, columns, C: tl.constexpr, CHUNKS: tl.constexpr):
    row, chunk, chunks = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    each = tl.arange(0, CHUNKS)
    ms = tl.load(m_ptr + row * chunks + each, mask=each < chunks, other=-float("inf"))
    ds = tl.load(d_ptr + row * chunks + each, mask=each < chunks, other=0.0)
    top = tl.max(ms, axis=0)
    d = tl.sum(ds * tl.exp(ms - top), axis=0)
    own = tl.load(m_ptr + row * chunks + chunk)
    c = chunk * C + tl.arange(0, C)
    e = tl.load(e_ptr + row * columns + c, mask=c < columns, other=0.0)
    tl.store(y_ptr + row * ys + c, e * tl.exp(own - top) / d, mask=c < columns)


def split_softmax(x):
    rows, columns = x.shape
    chunks = triton.cdiv(columns, 1024)
    y = torch.empty_like(x)
    e = torch.empty((rows, columns), dtype=torch.float32, device=x.device)
    m, d = (torch.empty((rows, chunks), dtype=torch.float32, device=x.device) for _ in range(2))
    parts[(rows, chunks)](e, m, d, x, x.stride(0), columns, C=1024)
    finish[(rows, chunks)](y, e, m, d, y.stride(0), columns, C=1024, CHUNKS=triton.next_power_of_2(chunks))
    return y
"""
)
SPIN = (
    HEAD
    + """@triton.jit
def kernel(y_ptr, m_ptr, d_ptr, ready_ptr, x_ptr, ys, xs, columns, C: tl.constexpr, CHUNKS: tl.constexpr):
    row, chunk, chunks = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    c = chunk * C + tl.arange(0, C)
    x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    m = tl.max(x, axis=0)
    tl.store(m_ptr + row * chunks + chunk, m)
    tl.store(d_ptr + row * chunks + chunk, tl.sum(tl.exp(x - m), axis=0))
    tl.atomic_add(ready_ptr + row, 1)
    while tl.atomic_add(ready_ptr + row, 0) < chunks:
        pass
    each = tl.arange(0, CHUNKS)
    ms = tl.load(m_ptr + row * chunks + each, mask=each < chunks, other=-float("inf"))
    ds = tl.load(d_ptr + row * chunks + each, mask=each < chunks, other=0.0)
    top = tl.max(ms, axis=0)
    tl.store(y_ptr + row * ys + c, tl.exp(x - top) / tl.sum(ds * tl.exp(ms - top), axis=0), mask=c < columns)


def split_softmax(x):
    rows, columns = x.shape
    chunks = triton.cdiv(columns, 1024)
    y = torch.empty_like(x)
    m, d = (torch.empty((rows, chunks), dtype=torch.float32, device=x.device) for _ in range(2))
    ready = torch.zeros(rows, dtype=torch.int32, device=x.device)
    kernel[(rows, chunks)](y, m, d, ready, x, y.stride(0), x.stride(0), columns, C=1024, CHUNKS=triton.next_power_of_2(chunks))
    return y
"""
)
ONE_FINISHER = (
    HEAD
    + """@triton.jit
def parts(m_ptr, d_ptr, x_ptr, xs, columns, C: tl.constexpr):
    row, chunk = tl.program_id(0), tl.program_id(1)
    at = row * tl.num_programs(1) + chunk
    c = chunk * C + tl.arange(0, C)
    x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    m = tl.max(x, axis=0)
    tl.store(m_ptr + at, m)
    tl.store(d_ptr + at, tl.sum(tl.exp(x - tl.where(m == -float("inf"), 0.0, m)), axis=0))


@triton.jit
def finish(y_ptr, m_ptr, d_ptr, x_ptr, ys, xs, columns, chunks, C: tl.constexpr, CHUNKS: tl.constexpr):
    row = tl.program_id(0)
    each = tl.arange(0, CHUNKS)
    ms = tl.load(m_ptr + row * chunks + each, mask=each < chunks, other=-float("inf"))
    ds = tl.load(d_ptr + row * chunks + each, mask=each < chunks, other=0.0)
    top = tl.max(ms, axis=0)
    d = tl.sum(ds * tl.exp(ms - top), axis=0)
    for start in range(0, columns, C):
        c = start + tl.arange(0, C)
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        tl.store(y_ptr + row * ys + c, tl.exp(x - top) / d, mask=c < columns)


def split_softmax(x):
    rows, columns = x.shape
    chunks = triton.cdiv(columns, 1024)
    y = torch.empty_like(x)
    m, d = (torch.empty((rows, chunks), dtype=torch.float32, device=x.device) for _ in range(2))
    parts[(rows, chunks)](m, d, x, x.stride(0), columns, C=1024)
    finish[(rows,)](y, m, d, x, y.stride(0), x.stride(0), columns, chunks, C=1024, CHUNKS=triton.next_power_of_2(chunks))
    return y
"""
)

# One launch: the last program of a row merges what the others have left.
RACE = (
    HEAD
    + """@triton.jit
def kernel(y_ptr, m_ptr, d_ptr, x_ptr, ys, xs, columns, C: tl.constexpr, CHUNKS: tl.constexpr):
    row, chunk, chunks = tl.program_id(0), tl.program_id(1), tl.num_programs(1) - 1
    c = chunk * C + tl.arange(0, C)
    if chunk < chunks:
        x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        m = tl.max(x, axis=0)
        tl.store(m_ptr + row * chunks + chunk, m)
        tl.store(d_ptr + row * chunks + chunk, tl.sum(tl.exp(x - tl.where(m == -float("inf"), 0.0, m)), axis=0))
    else:
        each = tl.arange(0, CHUNKS)
        ms = tl.load(m_ptr + row * chunks + each, mask=each < chunks, other=-float("inf"))
        ds = tl.load(d_ptr + row * chunks + each, mask=each < chunks, other=0.0)
        top = tl.max(ms, axis=0)
        d = tl.sum(ds * tl.exp(ms - top), axis=0)
        for start in range(0, columns, C):
            c = start + tl.arange(0, C)
            x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
            tl.store(y_ptr + row * ys + c, tl.exp(x - top) / d, mask=c < columns)


def split_softmax(x):
    rows, columns = x.shape
    chunks = triton.cdiv(columns, 1024)
    y = torch.empty_like(x)
    m, d = (torch.empty((rows, chunks), dtype=torch.float32, device=x.device) for _ in range(2))
    kernel[(rows, chunks + 1)](y, m, d, x, y.stride(0), x.stride(0), columns, C=1024, CHUNKS=triton.next_power_of_2(chunks))
    return y
"""
)

WRONG = {
    "the axes of the grid exchanged in the kernels": (
        "grid_axes_exchanged",
        [("row = tl.program_id(0)\n    chunk = tl.program_id(1)", "row = tl.program_id(1)\n    chunk = tl.program_id(0)")],
    ),
    "one program a row": ("one_program_a_row", tiled.LANES.replace("tiled_softmax", "split_softmax")),
    "one program a row in the second launch": ("one_program_a_row", ONE_FINISHER),
    "chunks merged without rescaling": ("tile_sums_added", [(D, "d = tl.sum(chunk_d, axis=0)")]),
    "each chunk on its own": ("tiles_alone", [(M, "m = tl.load(m_ptr + row * chunks + chunk)"), (D, "d = tl.load(d_ptr + row * chunks + chunk)")]),
    "only the first chunk's result": ("first_tile_only", [(M, "m = tl.load(m_ptr + row * chunks)"), (D, "d = tl.load(d_ptr + row * chunks)")]),
    "rescaled backwards": ("rescaled_backwards", [("tl.exp(chunk_m - m)", "tl.exp(tl.where(chunk_m == -float('inf'), 0.0, m - chunk_m))")]),
    "a chunk of −inf": ("infinity_minus_infinity", [(ANCHOR, "anchor = m")]),
    "the stand-in stored as a chunk's maximum": ("stand_in_kept", [("chunk, m)", "chunk, anchor)")]),
    "the stand-in stored, chunks of 8192": (
        "stand_in_kept", [("chunk, m)", "chunk, anchor)"), ("CHUNK = 1024", "CHUNK = 8192")],
    ),
    "two chunks of 4096 of −inf": (
        "infinity_minus_infinity", [(M, LOOP), (D, "pass"), ("CHUNK = 1024", "CHUNK = 4096")],
    ),
    "chunks merged in a loop that two of −inf spoil": (
        "infinity_minus_infinity",
        [(M, LOOP), (D, "pass")],
    ),
    "a chunk of padding": ("infinity_minus_infinity", [(ANCHOR, "anchor = m"), (CHUNKS, "chunks = triton.cdiv(columns, CHUNK) + 1")]),
    "a fixed number of chunks, some empty": ("infinity_minus_infinity", [(ANCHOR, "anchor = m"), (CHUNKS, "chunks = max(4, triton.cdiv(columns, CHUNK))")]),
    "the first chunk left out of the merge": (
        "first_tile_dropped", [(M, LOOP.replace("tl.load(m_ptr + row * chunks)", '-float("inf")').replace("tl.load(d_ptr + row * chunks)", "0.0").replace("(m - new)", "(m - tl.where(new == -float('inf'), 0.0, new))")), (D, "pass")],
    ),
    "the chunk's own maximum taken off": ("own_maximum", [("tl.exp(x - m) / d", "tl.exp(x - tl.max(x, axis=0)) / d")]),
    "divided by the chunk's own sum": ("own_sum", [(D, "d = tl.load(d_ptr + row * chunks + chunk)")]),
    "only the chunks so far merged": ("chunks_so_far", [("mask=each < chunks", "mask=each <= chunk")]),
    "the sums in the exponent": ("sum_in_exponent", [(D, "d = tl.sum(tl.exp(chunk_d + chunk_m - m), axis=0)")]),
    "rescaled backwards, bare": ("rescaled_backwards", [("tl.exp(chunk_m - m)", "tl.exp(m - chunk_m)")]),
    "narrower chunks in the first launch": ("chunk_widths_differ", [(FIRST, FIRST.replace("=CHUNK", "=CHUNK // 2"))]),
    "lanes past the last chunk 0 and 1": ("chunk_padding", [('each < chunks, other=-float("inf")', "each < chunks, other=0.0"), ("each < chunks, other=0.0)\n    m", "each < chunks, other=1.0)\n    m")]),
    "m + log d kept for each chunk": (
        "lost_digits",
        [("chunk, d)", "chunk, anchor + tl.log(d))"), ("each < chunks, other=0.0", "each < chunks, other=-float('inf')"), (D, "d = tl.sum(tl.exp(chunk_d - m), axis=0)")],
    ),
    "the launches swapped": (
        "scratch_unwritten",
        [("    " + FIRST + "\n", ""), ("    return y", "    " + FIRST + "\n    return y")],
    ),
    "the first launch over too few chunks": ("scratch_unwritten", [("chunk_kernel[(rows, chunks)]", "chunk_kernel[(rows, columns // CHUNK + (columns < CHUNK))]"), ("chunks = tl.num_programs(1)\n    column = chunk * CHUNK + tl.arange(0, CHUNK)\n    x", "chunks = tl.cdiv(columns, CHUNK)\n    column = chunk * CHUNK + tl.arange(0, CHUNK)\n    x")]),
    "the sums stored at the row": ("scratch_unwritten", [("d_ptr + row * chunks + chunk, d", "d_ptr + row, d")]),
    "the second launch over too few chunks": (
        "columns_unwritten",
        [("finish_kernel[(rows, chunks)]", "finish_kernel[(rows, max(1, columns // CHUNK))]"),
         ("chunks = tl.num_programs(1)\n    column = chunk * CHUNK + tl.arange(0, CHUNK)\n    mask", "chunks = tl.cdiv(columns, CHUNK)\n    column = chunk * CHUNK + tl.arange(0, CHUNK)\n    mask")],
    ),
    "at most four chunks merged": ("tiles_left_out", [("triton.next_power_of_2(chunks)", "min(4, triton.next_power_of_2(chunks))")]),
    "a grid of at most four chunks": ("columns_unwritten", [(CHUNKS, "chunks = min(4, triton.cdiv(columns, CHUNK))")]),
    "the grid's axes exchanged": ("grid_axes_exchanged", [("[(rows, chunks)]", "[(chunks, rows)]")]),
    "m and d exchanged in the first launch": ("swapped", [("(m, d, x,", "(d, m, x,")]),
    "m and d exchanged in the second launch": ("swapped", [("y, m, d, x,", "y, d, m, x,")]),
    "m and d exchanged in the stores": ("swapped", [("chunk, m)", "chunk, 0 + d)"), ("chunk, d)", "chunk, m)")]),
    "stored at the chunk": ("rows_collide", [("_ptr + row * chunks + chunk", "_ptr + chunk")]),
    "stored and loaded at the chunk": ("rows_collide", [("m_ptr + row * chunks", "m_ptr"), ("d_ptr + row * chunks", "d_ptr")]),
    "stored at row + chunk": ("rows_collide", [("_ptr + row * chunks + chunk", "_ptr + row + chunk")]),
    "stored and loaded at row + chunk": ("rows_collide", [("m_ptr + row * chunks", "m_ptr + row"), ("d_ptr + row * chunks", "d_ptr + row")]),
    "only d stored at the chunk": ("rows_collide", [("d_ptr + row * chunks + chunk", "d_ptr + chunk")]),
    "no other= for the chunks": ("padding_missing", [(", mask=each < chunks, other=-float(\"inf\")", ", mask=each < chunks"), (", mask=each < chunks, other=0.0", ", mask=each < chunks")]),
    "no other= for the maxima": ("padding_missing", [(", mask=each < chunks, other=-float(\"inf\")", ", mask=each < chunks")]),
    "no other= for the sums": ("padding_missing", [(", mask=each < chunks, other=0.0", ", mask=each < chunks")]),
    "the sums not used": (None, [(D, "d = tl.sum(tl.exp(chunk_m - m), axis=0)")]),
    "x.stride(1) for x": ("row_not_scaled", [("x.stride(0), columns", "x.stride(1), columns")]),
    "half the rows": ("rows_unwritten", [("[(rows, chunks)]", "[(triton.cdiv(rows, 2), chunks)]")]),
    "scratch rows a power of two apart": ("out_of_bounds", [("m_ptr + row * chunks + each", "m_ptr + row * CHUNKS + each"), ("d_ptr + row * chunks + each", "d_ptr + row * CHUNKS + each")]),
    "more chunks in the second grid": ("out_of_bounds", [("finish_kernel[(rows, chunks)]", "finish_kernel[(rows, triton.next_power_of_2(chunks))]")]),
    "scratch lanes not masked": ("out_of_bounds", [(", mask=each < chunks, other=-float(\"inf\")", ""), (", mask=each < chunks, other=0.0", "")]),
    "scratch lanes loaded as 0": ("chunk_padding", [('mask=each < chunks, other=-float("inf")', "mask=each < chunks, other=0.0")]),
    "scratch in the dtype of x": ("half_scratch", [("dtype=torch.float32", "dtype=x.dtype")]),
    "scratch in float16": ("half_scratch", [("dtype=torch.float32", "dtype=torch.float16")]),
    "float16 arithmetic": ("half_precision", [(CHUNK_D, "d = tl.sum(tl.exp(x - anchor).to(x_ptr.dtype.element_ty), axis=0).to(tl.float32)")]),
    "the numerators kept": ("extra_scratch", NUMERATORS),
    "three reads, with atomics": ("extra_loads", THREE),
    "programs that wait for each other": ("waits_for_programs", SPIN),
    "padding with 0 in the first kernel": ("padding_zero", [(LOAD, LOAD.replace('-float("inf")', "0.0"))]),
    "padding with -1e4": ("padding_finite", [(LOAD, LOAD.replace('-float("inf")', "-1e4"))]),
    "no maximum": ("no_maximum", [(CHUNK_D, "d = tl.sum(tl.exp(x), axis=0)"), (D, "d = tl.sum(chunk_d, axis=0)"), ("tl.exp(x - m) / d", "tl.exp(x) / d")]),
    "not divided": ("not_divided", [("/ d", "")]),
    "exp2": ("base_two", [("tl.exp(", "tl.exp2(")]),
    "columns for the row stride": ("row_stride", [("row * x_stride", "row * columns")]),
    "mask with <=": ("mask_off_by_one", [("column < columns", "column <= columns")]),
    "store without a mask": ("store_mask", [(STORE, STORE.replace(", mask=mask", ""))]),
    "the row is one chunk": ("one_program_a_row", [("CHUNK = 1024", "CHUNK = triton.next_power_of_2(columns)")]),
    "an all −inf row made 0": ("nan_swallowed", [(STORE, STORE.replace("tl.exp(x - m) / d", "tl.where(m == -float('inf'), 0.0, tl.exp(x - m) / d)"))]),
    "input overwritten": ("input_overwritten", [("tl.store(y_ptr", "tl.store(x_ptr")]),
    "merged by PyTorch": ("torch_work", [("    finish_kernel", "    m = m.max(dim=1).values\n    finish_kernel")]),
    "torch.softmax": ("torch_work", "import torch\n\n\ndef split_softmax(x):\n    return torch.softmax(x, dim=1)\n"),
    "the finished kernel imported": ("answer_opened", "from course_kernels.split_row import softmax as split_softmax\n"),
    "merged in the same launch": ("race", RACE),
    "only the last chunk's result": ("last_tile_only", [(M, "m = tl.load(m_ptr + row * chunks + chunks - 1)"), (D, "d = tl.load(d_ptr + row * chunks + chunks - 1)")]),
    "the first chunk in all": ("same_tile", [(LOAD_2, LOAD_2.replace("+ column", "+ tl.arange(0, CHUNK)"))]),
    "the last chunk not merged": ("last_tile_dropped", [("mask=each < chunks", "mask=(each < chunks - 1) | (chunks == 1)")]),
}  # fmt: skip

RIGHT = {
    "chunks of 2048": stubs.solution_text("split_softmax").replace("CHUNK = 1024", "CHUNK = 2048"),
    "no other= but tl.where": stubs.solution_text("split_softmax")
    .replace(', mask=each < chunks, other=-float("inf"))', ", mask=each < chunks)\n    chunk_m = tl.where(each < chunks, chunk_m, -float('inf'))")
    .replace(", mask=each < chunks, other=0.0)", ", mask=each < chunks)\n    chunk_d = tl.where(each < chunks, chunk_d, 0.0)"),
    "a place of all rows, stored by every program": stubs.solution_text("split_softmax")
    .replace("    tl.store(d_ptr + row * chunks + chunk, d)\n", "    tl.store(d_ptr + row * chunks + chunk, d)\n    tl.store(last_ptr, 1.0)\n")
    .replace("def chunk_kernel(", "def chunk_kernel(last_ptr, ")
    .replace("chunk_kernel[(rows, chunks)](", "chunk_kernel[(rows, chunks)](torch.empty(1, dtype=torch.float32), "),
    "chunks of 8192": stubs.solution_text("split_softmax").replace("CHUNK = 1024", "CHUNK = 8192"),
    "three launches, a merge of their own": HEAD + '''@triton.jit
def parts(out, x_ptr, xs, columns, chunks, C: tl.constexpr):
    program = tl.program_id(0)
    row = program // chunks
    c = (program % chunks) * C + tl.arange(0, C)
    x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    m = tl.max(x, axis=0)
    tl.store(out + 2 * program, m)
    tl.store(out + 2 * program + 1, tl.sum(tl.where(x == -float("inf"), 0.0, tl.exp(x - m)), axis=0))


@triton.jit
def merge(total, out, chunks):
    row = tl.program_id(0)
    m = -float("inf")
    d = 0.0
    for i in range(0, chunks):
        own = tl.load(out + 2 * (row * chunks + i))
        new = tl.maximum(m, own)
        base = tl.where(new == -float("inf"), 0.0, new)
        d = d * tl.exp(m - base) + tl.load(out + 2 * (row * chunks + i) + 1) * tl.exp(own - base)
        m = new
    tl.store(total + 2 * row, m)
    tl.store(total + 2 * row + 1, d)


@triton.jit
def finish(y_ptr, total, x_ptr, ys, xs, columns, chunks, C: tl.constexpr):
    program = tl.num_programs(0) - 1 - tl.program_id(0)
    row = program // chunks
    c = (program % chunks) * C + tl.arange(0, C)
    m = tl.load(total + 2 * row)
    d = tl.load(total + 2 * row + 1)
    x = tl.load(x_ptr + row * xs + c, mask=c < columns).to(tl.float32)
    tl.store(y_ptr + row * ys + c, tl.exp(x - m) / d, mask=c < columns)


def split_softmax(x):
    rows, columns = x.shape
    chunks = triton.cdiv(columns, 256)
    y = torch.empty_like(x)
    out = torch.empty((rows, chunks, 2), dtype=torch.float32, device=x.device)
    total = torch.empty((rows, 2), dtype=torch.float32, device=x.device)
    parts[(rows * chunks,)](out, x, x.stride(0), columns, chunks, C=256)
    merge[(rows,)](total, out, chunks)
    finish[(rows * chunks,)](y, total, x, y.stride(0), x.stride(0), columns, chunks, C=256)
    return y
''',
    "four programs a row, tiles inside, some empty": HEAD + '''@triton.jit
def stats(m_ptr, d_ptr, x_ptr, xs, columns, span, T: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    m = -float("inf")
    d = 0.0
    for start in range(part * span, min(part * span + span, columns), T):
        c = start + tl.arange(0, T)
        x = tl.load(x_ptr + row * xs + c, mask=(c < part * span + span) & (c < columns), other=-float("inf")).to(tl.float32)
        new = tl.maximum(m, tl.max(x, axis=0))
        base = tl.where(new == -float("inf"), 0.0, new)
        d = d * tl.exp(m - base) + tl.sum(tl.exp(x - base), axis=0)
        m = new
    tl.store(m_ptr + row * 4 + part, m)
    tl.store(d_ptr + row * 4 + part, d)


@triton.jit
def finish(y_ptr, m_ptr, d_ptr, x_ptr, ys, xs, columns, span, T: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    ms = tl.load(m_ptr + row * 4 + tl.arange(0, 4))
    ds = tl.load(d_ptr + row * 4 + tl.arange(0, 4))
    m = tl.max(ms, axis=0)
    d = tl.sum(ds * tl.exp(ms - m), axis=0)
    for start in range(part * span, min(part * span + span, columns), T):
        c = start + tl.arange(0, T)
        mask = (c < part * span + span) & (c < columns)
        x = tl.load(x_ptr + row * xs + c, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(y_ptr + row * ys + c, tl.exp(x - m) / d, mask=mask)


def split_softmax(x):
    rows, columns = x.shape
    y = torch.empty_like(x)
    m, d = torch.empty((2, rows, 4), dtype=torch.float32, device=x.device)
    span = triton.cdiv(columns, 4)
    stats[(rows, 4)](m, d, x, x.stride(0), columns, span, T=256)
    finish[(rows, 4)](y, m, d, x, y.stride(0), x.stride(0), columns, span, T=256)
    return y
''',
    "tl.reduce with a merge, small chunks": HEAD + '''@triton.jit
def merge(m1, d1, m2, d2):
    m = tl.maximum(m1, m2)
    anchor = tl.where(m == -float("inf"), 0.0, m)
    return m, d1 * tl.exp(m1 - anchor) + d2 * tl.exp(m2 - anchor)


@triton.jit
def parts(m_ptr, d_ptr, x_ptr, xs, columns, C: tl.constexpr):
    row, chunk = tl.program_id(0), tl.program_id(1)
    c = chunk * C + tl.arange(0, C)
    x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    m, d = tl.reduce((x, tl.full((C,), 1.0, tl.float32)), 0, merge)
    tl.store(m_ptr + row * tl.num_programs(1) + chunk, m)
    tl.store(d_ptr + row * tl.num_programs(1) + chunk, d)


@triton.jit
def finish(y_ptr, m_ptr, d_ptr, x_ptr, ys, xs, columns, C: tl.constexpr, CHUNKS: tl.constexpr):
    row, chunk, chunks = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    each = tl.arange(0, CHUNKS)
    ms = tl.load(m_ptr + row * chunks + each, mask=each < chunks, other=-float("inf"))
    ds = tl.load(d_ptr + row * chunks + each, mask=each < chunks, other=0.0)
    m, d = tl.reduce((ms, ds), 0, merge)
    c = chunk * C + tl.arange(0, C)
    x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    tl.store(y_ptr + row * ys + c, tl.exp(x - m) * (1.0 / d), mask=c < columns)


def split_softmax(x):
    rows, columns = x.shape
    chunks = triton.cdiv(columns, 128)
    y = torch.empty_like(x)
    m = torch.zeros((rows, chunks), dtype=torch.float32, device=x.device)
    d = torch.zeros_like(m)
    parts[(rows, chunks)](m, d, x, x.stride(0), columns, C=128)
    finish[(rows, chunks)](y, m, d, x, y.stride(0), x.stride(0), columns, C=128, CHUNKS=triton.next_power_of_2(chunks))
    return y
''',
    "one launch, the last program to arrive finishes the row": HEAD
    + '''@triton.jit
def kernel(y_ptr, m_ptr, d_ptr, arrived_ptr, x_ptr, ys, xs, columns, C: tl.constexpr, CHUNKS: tl.constexpr):
    row, chunk, chunks = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    c = chunk * C + tl.arange(0, C)
    x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    m = tl.max(x, axis=0)
    tl.store(m_ptr + row * chunks + chunk, m)
    tl.store(d_ptr + row * chunks + chunk, tl.sum(tl.exp(x - tl.where(m == -float("inf"), 0.0, m)), axis=0))
    if tl.atomic_add(arrived_ptr + row, 1) == chunks - 1:
        each = tl.arange(0, CHUNKS)
        ms = tl.load(m_ptr + row * chunks + each, mask=each < chunks, other=-float("inf"))
        ds = tl.load(d_ptr + row * chunks + each, mask=each < chunks, other=0.0)
        top = tl.max(ms, axis=0)
        d = tl.sum(ds * tl.exp(ms - top), axis=0)
        for start in range(0, columns, C):
            c = start + tl.arange(0, C)
            x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
            tl.store(y_ptr + row * ys + c, tl.exp(x - top) / d, mask=c < columns)


def split_softmax(x):
    rows, columns = x.shape
    chunks = triton.cdiv(columns, 1024)
    y = torch.empty_like(x)
    m, d = (torch.empty((rows, chunks), dtype=torch.float32, device=x.device) for _ in range(2))
    arrived = torch.zeros(rows, dtype=torch.int32, device=x.device)
    kernel[(rows, chunks)](y, m, d, arrived, x, y.stride(0), x.stride(0), columns, C=1024, CHUNKS=triton.next_power_of_2(chunks))
    return y
''',
    "merged in a loop, exp2": HEAD + '''LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def parts(m_ptr, d_ptr, x_ptr, xs, columns, C: tl.constexpr):
    chunk, row = tl.program_id(0), tl.program_id(1)
    at = chunk * tl.num_programs(1) + row
    c = chunk * C + tl.arange(0, C)
    x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    m = tl.max(x, axis=0)
    base = tl.where(m == -float("inf"), 0.0, m)
    tl.store(m_ptr + at, m)
    tl.store(d_ptr + at, tl.sum(tl.exp2((x - base) * LOG2E), axis=0))


@triton.jit
def finish(y_ptr, m_ptr, d_ptr, x_ptr, ys, xs, columns, C: tl.constexpr):
    chunk, row, rows = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    m = tl.load(m_ptr + row)
    for i in range(1, tl.num_programs(0)):
        m = tl.maximum(m, tl.load(m_ptr + i * rows + row))
    d = 0.0
    for i in range(0, tl.num_programs(0)):
        d += tl.load(d_ptr + i * rows + row) * tl.exp2((tl.load(m_ptr + i * rows + row) - m) * LOG2E)
    c = chunk * C + tl.arange(0, C)
    x = tl.load(x_ptr + row * xs + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    tl.store(y_ptr + row * ys + c, tl.exp2((x - m) * LOG2E) / d, mask=c < columns)


def split_softmax(x):
    rows, columns = x.shape
    chunks = triton.cdiv(columns, 512)
    y = torch.empty_like(x)
    m, d = (torch.empty((chunks, rows), dtype=torch.float32, device=x.device) for _ in range(2))
    parts[(chunks, rows)](m, d, x, x.stride(0), columns, C=512)
    finish[(chunks, rows)](y, m, d, x, y.stride(0), x.stride(0), columns, C=512)
    return y
''',
}  # fmt: skip
