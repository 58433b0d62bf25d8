"""The notebooks, from the first cell to the last: as handed out, and with the solutions in place.

As handed out, nothing raises and every check says "not done yet". With the solutions, every check passes; the
cells still hold the stubs then, so this is also the learner who comes back to a fresh notebook with answers
saved.
"""

import re

import pytest

from course_kernels.lab import exercises
from course_kernels.lab.exercises import stubs
from run_notebooks import execute, solve
from stored import stored_files

NAMES = sorted(path.split("/")[-1] for path in stored_files("notebooks/*.ipynb"))


def outputs(notebook):
    """(source, everything it showed as text) for each code cell."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            shown = []
            for output in cell.outputs:
                if output.output_type == "stream":
                    shown.append(output.text)
                elif "data" in output:
                    shown.append(output.data.get("text/plain", ""))
            yield cell, "\n".join(shown)


def checks(notebook):
    """exercise → what its check showed."""
    found = {}
    for cell, shown in outputs(notebook):
        for name in re.findall(r'^check\("(\w+)"\)', cell.source, re.MULTILINE):
            found[name] = shown
    return found


def looks_right(notebook):
    for cell, shown in outputs(notebook):
        assert "Traceback" not in shown, cell.source
        for output in cell.outputs:
            assert output.get("name") != "stderr", f"{cell.source}\nwrote to stderr: {output.text}"
            html = output.get("data", {}).get("text/html", "")
            for image in re.findall(r"<img[^>]*>", html):
                assert re.search(r'alt="[^"]{20,}"', image), f"a picture without alt text: {cell.source}"
            for image in re.findall(r"<svg[^>]*>", html):
                assert "aria-label" in image or "aria-hidden" in image, (
                    f"a picture without a label: {cell.source}"
                )


@pytest.mark.notebooks
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_as_handed_out(name, handed_out):
    notebook = execute(handed_out, name)
    looks_right(notebook)
    for exercise, shown in checks(notebook).items():
        assert "not done yet" in shown.lower(), f"{exercise}: {shown}"


@pytest.mark.notebooks
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_with_the_solutions(name, handed_out):
    solve(handed_out)
    notebook = execute(handed_out, name)
    looks_right(notebook)
    found = checks(notebook)
    in_this_notebook = {
        e for e in exercises.names() if exercises.get(e).notebook == name.removesuffix(".ipynb")
    }
    assert set(found) == in_this_notebook, "every exercise of the notebook is checked in it"
    for exercise, shown in found.items():
        assert f"{exercise}: passed" in shown, f"{exercise}: {shown}"
    for exercise in exercises.names():
        assert (handed_out / "exercises" / f"{exercise}.py").read_text() == stubs.solution_text(exercise)
