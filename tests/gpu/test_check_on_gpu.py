"""On a machine with a GPU a check also runs the kernel compiled, on real shapes, and says how fast it was."""

import pytest

from course_kernels.lab import checking, exercises
from course_kernels.lab.core.files import solution_file
from tests.answers import tools

pytestmark = pytest.mark.gpu
ON_GPU = [name for name in exercises.names() if exercises.get(name).gpu_shapes]


@pytest.mark.parametrize("name", exercises.names())
def test_the_solution_passes_here(name):
    verdict = checking.judge(name, str(solution_file(name)), 1)
    assert verdict.status == "pass", verdict.message
    if name in ON_GPU:
        assert "GB/s" in verdict.message and "of a copy" in verdict.message


@pytest.mark.parametrize("title", tools.titles("fused_softmax", "right"))
def test_an_unusual_right_answer_passes_here(title, tmp_path):
    path = tools.write(tmp_path, "fused_softmax", "right", title)
    verdict = checking.judge("fused_softmax", path, 1)
    assert verdict.status == "pass", verdict.message


RIGHT_IN_THE_INTERPRETER_ONLY = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(y_ptr, x_ptr, y_stride, x_stride, columns, WRONG: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    mask = column < columns
    x = tl.load(x_ptr + row * x_stride + column, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(y_ptr + row * y_stride + column, e / (tl.sum(e, axis=0) + WRONG), mask=mask)


def fused_softmax(x):
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](
        y, x, y.stride(0), x.stride(0), x.shape[1], WRONG=int(x.is_cuda),
        BLOCK=triton.next_power_of_2(x.shape[1]),
    )
    return y
"""


def test_values_that_are_wrong_here_alone_fail(tmp_path):
    (tmp_path / "answer.py").write_text(RIGHT_IN_THE_INTERPRETER_ONLY)
    verdict = checking.judge("fused_softmax", str(tmp_path / "answer.py"), 1)
    assert (verdict.status, verdict.mistake) == ("fail", "gpu_values"), verdict.message
