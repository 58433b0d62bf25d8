"""The benchmark without a GPU: who may take part, what it says; its figures come from scripts/on_gpu.py."""

import importlib

import pytest

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
