"""The benchmark without a GPU: who may take part, what it says; its figures come from scripts/on_gpu.py."""

import importlib

import on_gpu
import pytest
import torch

from course_kernels import mode
from course_kernels.lab.bench import measure as bench


def test_a_peer_that_is_not_installed_is_left_out(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    monkeypatch.delitem(__import__("sys").modules, "quack", raising=False)
    importlib.invalidate_caches()
    assert not bench.available("quack")


def test_a_peer_that_does_not_start_is_left_out_and_said(monkeypatch, tmp_path):
    """Seen: QuACK with a version of its own needs that it does not know raises a TypeError on import."""
    (tmp_path / "quack.py").write_text("raise TypeError('an unexpected keyword argument')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "quack", raising=False)
    with pytest.warns(UserWarning, match="quack is installed but does not start.*unexpected keyword"):
        assert not bench.available("quack")


def test_every_module_of_the_course_takes_part():
    for kernel in bench.COURSE:
        assert bench.available(kernel)
        module = importlib.import_module(f"course_kernels.{kernel}")
        assert callable(module.softmax) and module.__doc__


def test_a_contender_that_does_not_exist_is_an_error_that_names_those_there_are():
    with pytest.raises(ValueError, match="No contender is called 'fused_raw'; there are copy, torch"):
        bench.available("fused_raw")


@pytest.mark.skipif(not mode.interpreting(), reason="here is a GPU to measure")
def test_without_a_gpu_it_says_so(capsys):
    with pytest.raises(RuntimeError, match="needs an NVIDIA GPU"):
        bench.measure("torch", 4, 4)
    assert bench.main(["--widths", "64"]) == 1
    assert "recorded" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", (["--kernels", "fused_raw"], ["--shapes", "32"], ["--shapes", "axb"]))
def test_misuse_is_said_in_a_sentence(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        bench.main(arguments)
    assert stopped.value.code == 2
    assert "contender" in capsys.readouterr().err or "--shapes" in arguments


def test_a_peer_that_knows_the_innermost_dimension_only_says_so():
    for kernel in ("liger", "quack", "eager", "fused_row"):
        with pytest.raises(ValueError, match=f"{kernel} takes the innermost dimension only"):
            bench.contender(kernel, "along", torch.zeros(2, 3, 4), dim=1)


def test_along_a_dimension_a_contender_computes_the_softmax_along_it():
    x = torch.randn(2, 3, 4)
    for kernel in ("torch", "softmax"):
        torch.testing.assert_close(bench.contender(kernel, "along", x, dim=1)(), torch.softmax(x, 1))


def test_records_of_other_dimensions_mix_with_no_curve():
    """They have an operation of their own, and name their shape."""
    (copy,) = _one("copy", "along", (64, 512, 2048), 1)
    assert (copy.op, copy.rows, copy.columns) == ("along", 64 * 2048, 512)
    assert (copy.shape, copy.dim) == ("64x512x2048", 1)
    (row,) = _one("copy", "forward", (8, 16), None)
    assert (row.rows, row.columns, row.shape, row.dim) == (8, 16, None, None)
    text = on_gpu.table([vars(copy), vars(row)])
    assert "alo floa 64x512x2048 e copy" in text and "for floa 8x16 e copy" in text


def _one(kernel, op, shape, dim):
    contender = bench.Contender(kernel, None, op, (), 100)
    contender.times = [1.0, 2.0, 3.0]
    return bench._records([contender], shape, "float32", "events", dim)
