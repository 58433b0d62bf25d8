"""Where the course's files are, and how a learner's file is written so that nothing typed is ever lost."""

import os
import tempfile
import time
from pathlib import Path

LARGEST = 1 << 20  # bytes of an answer's file
# course_kernels' kernel modules, each with softmax(x) -> y
KERNELS = (
    "fused_row",
    "packed_row",
    "multi_row",
    "online",
    "tiled",
    "split_row",
    "cluster_row",
    "resident_row",
)


def root() -> Path:
    """The checkout: the nearest folder above the current one that holds exercises/ and notebooks/, or the
    package's own.

    So a course that was cloned twice, or a student's checkout next to the teacher's, is taken from where one
    stands.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "exercises").is_dir() and (folder / "notebooks").is_dir():
            return folder
    return Path(__file__).resolve().parents[3]


def exercise_file(name: str) -> Path:
    return root() / "exercises" / f"{name}.py"


def solution_file(name: str) -> Path:
    return root() / "solutions" / f"{name}.py"


def trouble(path: str | Path) -> str:
    """Why an answer's file cannot be read, as a sentence; empty if it can, or if there is none."""
    path = Path(path)
    if not path.exists():
        return ""
    if not path.is_file():
        return f"{path.name} is not a file."
    if path.stat().st_size > LARGEST:
        return f"{path.name} has {path.stat().st_size:,} bytes; an answer has a few thousand."
    if not os.access(path, os.R_OK):
        return f"{path.name} may not be read: its permissions do not allow it."
    return ""


def write_atomically(path: Path, text: str) -> None:
    """Write text to path so that a reader, or a crash, sees the old file or the new one and nothing
    between.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def save_with_history(path: Path, text: str) -> Path | None:
    """Replace path's text; the version that it replaces is kept in .history/ beside it.

    Returns the kept version's path, or None where there was nothing to keep.
    """
    old = path.read_text(encoding="utf-8") if path.exists() else None
    if old == text:
        return None
    kept = None
    if old is not None and old.strip():
        stamp = time.strftime("%Y%m%d-%H%M%S") + f"-{time.time_ns() % 10**9:09d}"
        kept = path.parent / ".history" / f"{path.stem}-{stamp}.py"
        write_atomically(kept, old)  # first the old one, then the new: a crash between the two loses neither
    write_atomically(path, text)
    return kept
