"""The ledger of PyTorch's operations, and the traffic of a softmax by name: counts known otherwise."""

import shutil

import numpy as np
import pytest
import torch

from course_kernels import eager, fused_row, mode, split_row
from course_kernels.lab import counting
from course_kernels.lab.counting import ledger, traffic
from course_kernels.lab.run import traffic as traffic_facts
from stored import ROOT

M, N = 6, 10
metered_here = pytest.mark.skipif(
    not mode.interpreting(), reason="kernels are metered where they are interpreted"
)


def matrix(rows=M, columns=N, dtype=torch.float32):
    return torch.randn(rows, columns).to(dtype)


def counted(fn, *args):
    book = ledger(fn, *args)
    return book.reads, book.writes


# The ledger


@pytest.mark.parametrize("rows, columns", [(1, 1), (6, 10), (33, 7)])
def test_the_five_eager_kernels(rows, columns):
    book = ledger(eager.softmax, matrix(rows, columns))
    assert [row.name for row in book.rows] == ["amax", "sub", "exp", "sum", "div"]
    assert book.reads == 5 * rows * columns + 2 * rows
    assert book.writes == 3 * rows * columns + 2 * rows
    assert book.bytes == 4 * (book.reads + book.writes)
    assert book.launches == 5


def test_a_fused_operation_reads_and_writes_once():
    assert counted(lambda x: torch.softmax(x, dim=1), matrix()) == (M * N, M * N)


def test_max_with_its_places_writes_them_as_64_bit_integers():
    book = ledger(lambda x: x.max(dim=1), matrix())
    assert (book.reads, book.writes) == (M * N, 2 * M)
    assert book.bytes == 4 * M * N + 4 * M + 8 * M
    assert "int64" in book.rows[0].note


@pytest.mark.parametrize(
    "look",
    [
        lambda x: x.t(),
        lambda x: x[1:3],
        lambda x: x.view(-1),
        lambda x: x[:, None, :].expand(M, 5, N),
        lambda x: x.detach(),
        lambda x: torch.empty_like(x),
        lambda x: torch.empty(4, 4),
    ],
)
def test_views_and_allocations_are_no_traffic(look):
    book = ledger(look, matrix())
    assert (book.reads, book.writes, book.bytes, book.launches) == (0, 0, 0, 0)
    assert book.rows and all("no traffic" in row.note for row in book.rows)


def test_a_fill_writes_and_a_copy_does_both():
    assert counted(torch.zeros, M, N) == (0, M * N)
    assert counted(torch.ones_like, matrix()) == (0, M * N)
    assert counted(lambda x: x.clone(), matrix()) == (M * N, M * N)
    assert counted(lambda x: x.fill_(1.0), matrix()) == (0, M * N)
    assert counted(lambda x, y: x.copy_(y), matrix(), matrix()) == (M * N, M * N)


def test_in_place_and_out_arguments():
    assert counted(lambda x: x.exp_(), matrix()) == (M * N, M * N)
    assert counted(lambda x, out: torch.exp(x, out=out), matrix(), torch.empty(M, N)) == (M * N, M * N)
    assert ledger(lambda x: x.exp_(), matrix()).allocated == 0


def test_a_broadcast_operand_is_read_once():
    assert counted(lambda x, m: x - m, matrix(), matrix(M, 1)) == (M * N + M, M * N)
    assert counted(lambda x, m: x - m.expand(M, N), matrix(), matrix(M, 1)) == (M * N + M, M * N)
    assert counted(lambda x: x * x, matrix()) == (M * N, M * N)


def test_a_selection_reads_what_it_gives():
    index = torch.tensor([0, 3])
    assert counted(lambda x: x.index_select(0, index), matrix()) == (2 * N + 2, 2 * N)


def test_bytes_follow_the_dtype():
    assert ledger(torch.exp, matrix(dtype=torch.float16)).bytes == 2 * 2 * M * N
    assert ledger(lambda x: x.float(), matrix(dtype=torch.float16)).bytes == (2 + 4) * M * N


def test_ledger_counts_memory_allocated_and_held_at_once():
    kept = ledger(eager.softmax, matrix())  # its local names hold every intermediate to the end
    assert kept.allocated == kept.peak == 4 * (3 * M * N + 2 * M)
    chained = ledger(lambda x: x.exp().exp().exp().exp(), matrix())  # each is let go once the next is there
    assert chained.allocated == 4 * 4 * M * N
    assert chained.peak == 2 * 4 * M * N
    assert ledger(lambda x: torch.softmax(x, 1), matrix()).peak == 4 * M * N


def test_a_ledger_shows_itself_and_keeps_the_result():
    x = matrix()
    book = ledger(eager.softmax, x)
    torch.testing.assert_close(book.result, torch.softmax(x, 1))
    for text in (book.plain(), book.html()):
        assert "amax" in text and f"{book.bytes:,}" in text
    assert "traffic()" in ledger(lambda: None).plain(), (
        "a function that moves nothing is told about traffic()"
    )


def test_ledger_lets_exceptions_through():
    with pytest.raises(ZeroDivisionError):
        ledger(lambda: 1 / 0)
    with pytest.raises(TypeError, match="cannot be called"):
        ledger(3)
    assert counted(torch.exp, matrix()) == (M * N, M * N), "a ledger that ended badly leaves nothing behind"


# Traffic


@pytest.mark.versions
@pytest.mark.parametrize(
    "name, loads, stores",
    [
        ("torch", 1, 1),
        ("fused_row", 1, 1),
        ("multi_row", 1, 1),
        ("online", 1, 1),
        ("tiled", 2, 1),
    ],
)
@pytest.mark.parametrize("rows, columns, dtype", [(5, 100, "float32"), (3, 257, "float16")])
def test_kernels_move_what_they_promise(name, loads, stores, rows, columns, dtype):
    size = np.dtype(dtype).itemsize
    got = traffic(name, rows, columns, dtype)
    assert (got.loads, got.stores) == (loads * rows * columns, stores * rows * columns)
    assert got.bytes == size * (got.loads + got.stores)
    assert got.json() == {"loads": got.loads, "stores": got.stores, "bytes": got.bytes}
    assert sum(row[1] for row in got.by_op) == got.loads
    assert sum(row[3] for row in got.by_op) == got.bytes


@pytest.mark.versions
def test_the_split_kernel_moves_a_little_more():
    rows, columns = 3, 5000
    got = traffic("split_row", rows, columns)
    chunks, rest = divmod(
        got.stores - rows * columns, 2 * rows
    )  # each chunk of a row leaves a maximum and a sum
    assert rest == 0 and 1 < chunks < 20
    # Every chunk's program reads those of all chunks of its row.
    assert got.loads == 2 * rows * columns + 2 * rows * chunks * chunks


def test_a_kernel_that_hands_over_says_so():
    got = traffic("resident_row", 2, 3000)
    assert "split_row's traffic" in got.how or got.loads < 1.1 * 6000


def test_the_published_count():
    got = traffic("eager", 4096, 1024)
    assert (got.loads, got.stores, got.bytes) == (20_979_712, 12_591_104, 134_283_264)
    assert traffic("torch", 4096, 1024).bytes == 33_554_432
    assert "lie on a line" in got.how, "a shape that was not counted as it is says so"


@metered_here
@pytest.mark.parametrize(
    "name, rows, columns", [("fused_row", 1000, 1024), ("multi_row", 3000, 20), ("tiled", 700, 5000)]
)
def test_extrapolated_traffic_equals_the_whole_shapes(name, rows, columns, monkeypatch):
    softmax = traffic_facts.softmax_of(name)
    monkeypatch.setattr(traffic_facts, "IN_FULL_ELEMENTS", 0)
    extended = traffic_facts.count_function(softmax, rows, columns, "float32")
    assert "lie on a line" in extended["how"]
    assert extended["stores"] == rows * columns
    assert extended["loads"] == (2 if name == "tiled" else 1) * rows * columns


@metered_here
def test_a_kernel_whose_chunks_follow_the_size_is_launched_whole(monkeypatch):
    monkeypatch.setattr(split_row, "chunk_size", lambda rows, columns: 1024 if rows < 30 else 2048)
    whole = traffic_facts.count_function(split_row.softmax, 40, 9000, "float32")
    assert "whole shape" in whole["how"] and "chunk_kernel" in whole["how"]
    monkeypatch.setattr(traffic_facts, "IN_FULL_ELEMENTS", 0)
    extended = traffic_facts.count_function(split_row.softmax, 40, 9000, "float32")
    assert "first 2, 3 and 5 rows" in extended["how"], "few rows would have been cut into other chunks"
    assert (extended["loads"], extended["stores"]) == (whole["loads"], whole["stores"])


def test_nonlinear_traffic_is_not_extrapolated():
    def bent(row_counts, of=None):
        return [{"loads": n * n, "stores": n, "bytes": n, "by_op": [], "launches": []} for n in row_counts]

    assert traffic_facts._line((2, 3, 5), bent((2, 3, 5)), 100) is None
    got = traffic_facts.extended(bent, None, 700, 10)
    assert got["loads"] == 700**2 and "whole shape" in got["how"]
    with pytest.raises(ValueError, match="Take fewer rows"):
        traffic_facts.extended(bent, None, traffic_facts.MOST_PROGRAMS * 2, 10)


@metered_here
def test_traffic_of_a_function():
    assert traffic(lambda x: torch.softmax(x, 1) * 2, 7, 9).loads == 2 * 63
    got = traffic(lambda x: fused_row.softmax(x * 2), 7, 9)  # an operation and a kernel together
    assert (got.loads, got.stores) == (2 * 63, 2 * 63)
    assert {row[0] for row in got.by_op} == {"mul", "scratch 1", "y"}


def test_modules_and_known_functions_go_by_their_names():
    assert counting._as_name(fused_row) == counting._as_name(fused_row.softmax) == "fused_row"
    assert counting._as_name(eager) == "eager"
    assert counting._as_name(torch.softmax) == "torch"
    assert counting._as_name(eager.naive) is None
    assert traffic(torch.softmax, 2, 3).loads == 6


def test_wrong_arguments_are_refused_in_a_sentence():
    with pytest.raises(KeyError, match="There is no softmax called 'fastest'.*fused_row.*copy_rows"):
        traffic("fastest", 3, 4)
    with pytest.raises(ValueError, match="at most 32,768"):
        traffic("fused_row", 2, 40_000)
    with pytest.raises(ValueError, match="rows is a whole number"):
        traffic("torch", 2.5, 4)
    with pytest.raises(ValueError, match="cols is a whole number"):
        traffic("torch", 2, -1)
    with pytest.raises(ValueError, match="dtype is one of"):
        traffic("torch", 2, 4, "int8")
    with pytest.raises(ValueError, match="no traffic of its own"):
        traffic("break_padding", 2, 4)


def test_an_empty_matrix_moves_nothing():
    assert traffic("fused_row", 0, 5).json() == {"loads": 0, "stores": 0, "bytes": 0}


@pytest.fixture
def learner(tmp_path, monkeypatch):
    """A course folder of its own, and a function that puts an answer into it."""
    for folder in ("exercises", "notebooks"):
        (tmp_path / folder).mkdir()
    shutil.copytree(ROOT / "solutions", tmp_path / "solutions")
    monkeypatch.chdir(tmp_path)

    def put(name, text):
        (tmp_path / "exercises" / f"{name}.py").write_text(text, encoding="utf-8")

    return put


@pytest.mark.versions
def test_a_learners_file_is_counted(learner):
    from tests.answers import tools

    learner("fused_softmax", tools.wrong_text("fused_softmax", "reads the row twice"))
    assert traffic("fused_softmax", 4, 50).loads == 2 * 200
    assert traffic("fused_softmax", 5000, 50).loads == 2 * 250_000
    learner("safe_softmax", tools.answers("safe_softmax").RIGHT["torch.max, unsqueeze, dim=-1"])
    got = traffic("safe_softmax", 4, 50)
    assert (got.loads, got.stores) == (5 * 200 + 2 * 4, 3 * 200 + 3 * 4), (
        "torch.max writes its places as well"
    )


def test_traffic_of_a_file_that_does_not_run_says_why(learner):
    with pytest.raises(ValueError, match="not done yet"):
        traffic("fused_softmax", 4, 50)
    learner("fused_softmax", "def fused_softmax(x):\n    return y\n")
    with pytest.raises(ValueError, match="NameError"):
        traffic("fused_softmax", 4, 50)
    learner("fused_softmax", "import os\nos._exit(3)\n")
    with pytest.raises(ValueError, match="ended the Python process"):
        traffic("fused_softmax", 4, 50)
