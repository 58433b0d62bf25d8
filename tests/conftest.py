"""What every test shares. Helpers that are not fixtures stand in stored.py."""

import os
import shutil
from pathlib import Path

import pytest

import course_kernels  # noqa: F401  (first: it settles how Triton runs before anything imports Triton)
from course_kernels import mode
from stored import NOT_GIT, ROOT, edited_exercises, is_checkout, write_stored

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def pytest_collection_modifyitems(items):
    if mode.interpreting():
        no_gpu = pytest.mark.skip(reason="needs an NVIDIA GPU that PyTorch can use; this machine has none")
        for item in items:
            if "gpu" in item.keywords:
                item.add_marker(no_gpu)


@pytest.fixture
def untouched_exercises() -> Path:
    """exercises/ of the working copy; skips where a learner has begun to fill it in."""
    edited = edited_exercises()
    if edited:
        pytest.skip(f"Compares exercises/ as handed out: {edited}.")
    return ROOT / "exercises"


@pytest.fixture
def handed_out(tmp_path) -> Path:
    """A folder of its own that holds the whole course as git has it staged: no answers, no outputs."""
    if not is_checkout():
        pytest.skip(f"Needs the course as handed out: {NOT_GIT}.")
    folder = tmp_path / "course"
    folder.mkdir()
    return write_stored(folder)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium (or Chrome) to drive; the variable CHROMIUM names another."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if not found:
        pytest.skip(
            "No Chromium on this machine (Debian: sudo apt-get install chromium; or set CHROMIUM to its path)"
        )
    return found


@pytest.fixture
def artifacts(request) -> Path:
    """A folder to keep screenshots and reports in, tests/artifacts/<the test's name>."""
    folder = ROOT / "tests" / "artifacts" / request.node.name
    folder.mkdir(parents=True, exist_ok=True)
    return folder
