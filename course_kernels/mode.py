"""How Triton runs in this process: compiled for a GPU, or interpreted on the CPU.

Triton reads TRITON_INTERPRET once, while it is imported, and a process cannot change its mind later.
So the choice is made here, before anything imports Triton: a GPU that PyTorch can use means compiled;
none means interpreted. A value of TRITON_INTERPRET that is already set wins.
"""

import importlib.util
import os
import sys

DRIVER_FILES = ("/dev/nvidiactl", "/dev/dxg")  # NVIDIA's driver on Linux, and the GPU in WSL
# True in a process that only compiles kernels, for a report: nothing runs, so tensors may lie on the CPU.
compile_only = False
NO_TRITON = (
    "Triton is not installed here, and this course needs it. It is published for Linux: on Windows use WSL, "
    "on a Mac open the notebooks on Colab; on Linux run `make lab` once, or `pip install triton`. "
    "(On Colab, run the set-up cell at the top of the notebook.)"
)


def settle() -> None:
    """Choose the mode, unless the environment has, and refuse a process that is already in the other one.

    On a machine with a GPU's driver PyTorch must be asked, which takes a second to import: there the choice
    waits until something imports Triton, or asks for the mode.

    Raises:
        ImportError: Triton is not installed.
        RuntimeError: Triton was imported earlier, in the mode that does not fit this machine.
    """
    if importlib.util.find_spec("triton") is None:
        raise ImportError(NO_TRITON)
    if "triton" in sys.modules or not _has_driver():
        _choose()
    elif "TRITON_INTERPRET" not in os.environ:
        sys.meta_path.insert(0, _BeforeTriton())


class _BeforeTriton:
    """Finds nothing; chooses the mode when Triton is about to be imported."""

    def find_spec(self, name, path=None, target=None):
        if name == "triton":
            _choose()


def _choose() -> None:
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _BeforeTriton)]
    if "TRITON_INTERPRET" not in os.environ:
        os.environ["TRITON_INTERPRET"] = "0" if gpu_available() else "1"
    wanted = os.environ["TRITON_INTERPRET"] == "1"
    if "triton" in sys.modules and _triton_interprets() != wanted:
        has, needs = ("compiled", "interpreted") if wanted else ("interpreted", "compiled")
        raise RuntimeError(
            f"Triton was imported before course_kernels and is in {has} mode, but this machine needs {needs} "
            "mode. Restart the Python process (in a notebook: Kernel, Restart), and import course_kernels "
            "first."
        )


def _has_driver() -> bool:
    return any(os.path.exists(path) for path in DRIVER_FILES)


def gpu_available() -> bool:
    """True if PyTorch can use an NVIDIA GPU here."""
    if not _has_driver():
        return False  # and PyTorch, which takes a second to import, need not be asked
    import torch

    return torch.cuda.is_available()


def interpreting() -> bool:
    """True if Triton kernels are interpreted on the CPU in this process."""
    if "TRITON_INTERPRET" not in os.environ:
        _choose()
    return os.environ.get("TRITON_INTERPRET") == "1"


def device() -> str:
    """The device on which this process runs kernels: "cuda" or "cpu"."""
    return "cpu" if interpreting() else "cuda"


def describe() -> str:
    """One sentence: which mode, on what, with which versions."""
    from importlib.metadata import version

    import torch

    versions = f"torch {torch.__version__}, triton {version('triton')}"
    if interpreting():
        return f"interpreter mode: kernels run on the CPU, one program after another ({versions})"
    return f"GPU mode: kernels are compiled for {torch.cuda.get_device_name()} ({versions})"


def _triton_interprets() -> bool:
    # A function of Triton's own library shows which decorator it met at import.
    from triton.language import standard
    from triton.runtime.interpreter import InterpretedFunction

    return isinstance(standard.max, InterpretedFunction)
