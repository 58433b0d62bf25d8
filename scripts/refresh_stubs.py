"""Make the stubs in exercises/ and in the notebooks' %%exercise cells from solutions/, after a solution was
changed.

For contributors. It replaces what stands there: do not run it over answers of your own.
"""

import nbformat

from course_kernels.lab import exercises
from course_kernels.lab.core.files import exercise_file, root, write_atomically
from course_kernels.lab.exercises import stubs


def main() -> None:
    for name in exercises.names():
        write_atomically(exercise_file(name), stubs.stub(name))
    for path in sorted((root() / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            if cell.source.startswith("%%exercise"):
                head = cell.source.partition("\n")[0]
                cell.source = f"{head}\n{stubs.stub(head.split()[1])}".rstrip("\n")
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
