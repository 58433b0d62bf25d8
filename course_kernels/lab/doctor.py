"""Is everything here that the course needs? Each finding is a line, and what to do if it is not well."""

import platform
import sys
from importlib import metadata

# The versions that the tests are run with, oldest and newest.
TRITON = ((3, 6), (3, 9))
# torch → the triton that it was built with. scripts/colab.py runs before this can be imported: it has a copy.
PAIRS = {"2.11": "3.6.0", "2.12": "3.7.0", "2.13": "3.7.1", "2.14": "3.8.0"}


def examine() -> list[dict]:
    """A list of {"what", "found", "ok", "advice"}."""
    findings = [
        _python(),
        _package("torch", None, "pip install -e . -c constraints.txt"),
        _package("triton", TRITON, "pip install -e . -c constraints.txt"),
        _package("numpy", None, "pip install -e . -c constraints.txt"),
    ]
    if all(f["ok"] for f in findings):
        findings += [
            _pair(),
            _numpy_in_memory(),
            _mode(),
            _checker("interpret"),
            _checker("compile"),
            _write(),
        ]
    return findings


def _finding(what: str, found: str, ok: bool = True, advice: str = "") -> dict:
    return {"what": what, "found": found, "ok": ok, "advice": advice}


def _python() -> dict:
    ok = sys.version_info >= (3, 10) and sys.platform == "linux"
    found = f"{platform.python_version()} on {platform.system()}"
    return _finding(
        "Python", found, ok, "The course needs Python 3.10 or newer on Linux (WSL on Windows, or Colab)."
    )


def _version(name: str) -> tuple[int, ...] | None:
    try:
        return tuple(int(part) for part in metadata.version(name).split("+")[0].split(".")[:2])
    except (metadata.PackageNotFoundError, ValueError):
        return None


def _package(name: str, between, command: str) -> dict:
    version = _version(name)
    if version is None:
        return _finding(name, "not installed", False, f"Install it: {command}")
    if between and not between[0] <= version <= between[1]:
        span = " to ".join(".".join(map(str, v)) for v in between)
        return _finding(
            name, metadata.version(name), False, f"The course is tested with {name} {span}: {command}"
        )
    return _finding(name, metadata.version(name))


def _pair() -> dict:
    wanted = PAIRS.get(".".join(map(str, _version("torch"))))
    ok = wanted is None or _version("triton") == tuple(map(int, wanted.split(".")[:2]))
    found = f"torch {metadata.version('torch')} with triton {metadata.version('triton')}"
    advice = (
        f"This torch was built with triton {wanted}; torch.compile may fail. The kernels here do not mind."
    )
    # Kernels and checks run on every pair; only torch.compile cares. So this is said, and is no failure.
    return _finding("pair", found if ok else f"{found}. {advice}")


def _numpy_in_memory() -> dict:
    import numpy

    on_disk = metadata.version("numpy")
    ok = numpy.__version__ == on_disk
    return _finding(
        "numpy in memory",
        numpy.__version__,
        ok,
        f"The one on disk is {on_disk}: restart this Python process.",
    )


def _mode() -> dict:
    from course_kernels import mode

    return _finding("mode", mode.describe())


def _checker(which: str) -> dict:
    from course_kernels.lab.run import forkserver

    what = {"interpret": "interpreter worker", "compile": "compiler worker"}[which]
    try:
        seconds = forkserver.submit(which, "course_kernels.lab.doctor:answer").result(60)
        return _finding(what, f"answers ({seconds})")
    except forkserver.WorkerError as error:
        return _finding(what, "no answer", False, str(error))


def answer() -> str:
    """A job that shows that a worker runs."""
    import os

    import triton

    return f"triton {triton.__version__}, TRITON_INTERPRET={os.environ['TRITON_INTERPRET']}"


def _write() -> dict:
    import tempfile

    from course_kernels.lab.core.files import root

    folder = root() / "exercises"
    try:
        with tempfile.TemporaryFile(dir=folder):
            return _finding("exercises", "can be written")
    except OSError as error:
        return _finding(
            "exercises",
            str(error),
            False,
            f"Make {folder} writable, or clone the course where you can write.",
        )
