"""Execute the notebooks from the first cell to the last, in a copy of the course, and say how long each took.

    python scripts/run_notebooks.py [--solved] [--html FOLDER] [--keep FOLDER] [NAME …]

--solved: with the solutions in place. --html: also write each as a page, to be looked at. --keep: also write
each executed notebook.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
CELL_SECONDS = 180


def execute(course: Path, name: str) -> nbformat.NotebookNode:
    """The notebook notebooks/NAME of a course, executed in its own folder; raises if a cell does."""
    path = course / "notebooks" / name
    notebook = nbformat.read(path, as_version=4)
    # The kernel must import this course, and not another that happens to be installed.
    paths = os.pathsep.join(filter(None, [str(course), os.environ.get("PYTHONPATH")]))
    client = NotebookClient(
        notebook, timeout=CELL_SECONDS, kernel_name="python3", resources={"metadata": {"path": path.parent}}
    )
    client.execute(env={**os.environ, "PYTHONPATH": paths})
    return notebook


def seconds_of(cell) -> float:
    """How long a cell ran, from the times that the kernel's messages carry."""
    from datetime import datetime

    times = cell.metadata.get("execution", {})
    stamps = [times.get("iopub.execute_input"), times.get("shell.execute_reply")]
    if None in stamps:
        return 0.0
    start, end = (datetime.fromisoformat(stamp.replace("Z", "+00:00")) for stamp in stamps)
    return (end - start).total_seconds()


def solve(course: Path) -> None:
    """Put the solutions into the course's exercises/."""
    sys.path.insert(0, str(course))
    from course_kernels.lab import exercises
    from course_kernels.lab.exercises import stubs

    for name in exercises.names():
        (course / "exercises" / f"{name}.py").write_text(stubs.solution_text(name), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--solved", action="store_true")
    parser.add_argument("--html", type=Path, metavar="FOLDER")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    failed, total = [], 0.0
    with tempfile.TemporaryDirectory(prefix="course-") as folder:
        course = Path(folder) / "course"
        course.mkdir()
        for part in ("course_kernels", "notebooks", "exercises", "solutions", "scripts"):
            shutil.copytree(ROOT / part, course / part, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        if options.solved:
            solve(course)
        for path in sorted((course / "notebooks").glob("*.ipynb")):
            if options.names and not any(name in path.stem for name in options.names):
                continue
            started = time.monotonic()
            try:
                notebook = execute(course, path.name)
            except Exception as error:
                failed.append(path.stem)
                print(f"{path.stem}: {str(error)[-3000:]}", flush=True)
                continue
            seconds = time.monotonic() - started
            total += seconds
            slow = max(notebook.cells, key=seconds_of)
            first = slow.source.strip().split("\n")[-1][:60]
            print(
                f"{path.stem:28} {seconds:6.1f} s; slowest cell {seconds_of(slow):.1f} s: {first}", flush=True
            )
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                nbformat.write(notebook, options.keep / path.name)
            if options.html:
                from nbconvert import HTMLExporter

                options.html.mkdir(parents=True, exist_ok=True)
                page, _ = HTMLExporter().from_notebook_node(notebook)
                (options.html / f"{path.stem}.html").write_text(page, encoding="utf-8")
    print(f"{total:.0f} s in all" + (f"; failed: {', '.join(failed)}" if failed else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
