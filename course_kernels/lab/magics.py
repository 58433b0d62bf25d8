"""The cell magic `%%exercise NAME`: the cell is the learner's file.

Running the cell saves it to exercises/NAME.py and imports it. A cell that still holds the stub never replaces
an answer:
the saved answer is loaded instead, and put into the cell.
"""

import sys
import types
from datetime import datetime

from IPython.display import display

from course_kernels.lab import exercises
from course_kernels.lab.check.errors import NOTEBOOK as LAB
from course_kernels.lab.core.files import exercise_file, root, save_with_history
from course_kernels.lab.exercises import stubs
from course_kernels.lab.run import forkserver
from course_kernels.lab.show.picture import Prose

_registered = set()


def register(shell) -> None:
    """Register the magic with this IPython shell, and start the fork server in the background."""
    if id(shell) in _registered:
        return
    _registered.add(id(shell))
    shell.register_magic_function(exercise, "cell", "exercise")
    forkserver.start(*forkserver.MODES)


def exercise(line: str, cell: str) -> None:
    """`%%exercise NAME`: save this cell as exercises/NAME.py, and import it."""
    from IPython import get_ipython

    name = line.strip()
    if name not in exercises.names():
        _say(
            f"There is no exercise called {name!r}. There are: {', '.join(exercises.names())}. Nothing was "
            "saved."
        )
        return
    path = exercise_file(name)
    text = cell if cell.endswith("\n") else cell + "\n"
    saved = path.read_text(encoding="utf-8") if path.exists() else ""
    shown = path.relative_to(root())
    if stubs.is_stub(name, text) and saved and not stubs.is_stub(name, saved):
        when = datetime.fromtimestamp(path.stat().st_mtime).strftime("%d %B, %H:%M")
        _load(get_ipython(), name, saved, str(path))
        get_ipython().set_next_input(f"%%exercise {name}\n{saved}", replace=True)
        _say(
            f"You have an answer in {shown} (saved {when}), and this cell held the stub: the answer was "
            "loaded, and put into the cell. To start afresh, change the cell and run it; the answer stays in "
            "exercises/.history."
        )
        return
    kept = save_with_history(path, text)
    words = [f"Saved to {shown}."] if saved != text else [f"{shown} holds this already."]
    if kept is not None and not stubs.is_stub(name, saved):
        words.append(f"The version before it is in {kept.relative_to(root())}.")
    problem = _load(get_ipython(), name, text, str(path))
    if stubs.is_stub(name, text):
        words = [f"This is the stub of {name}: write your code where it raises NotImplementedError."]
    words.append(problem or f'Next: check("{name}").')
    _say(" ".join(words))


def _load(shell, name: str, text: str, path: str) -> str:
    """Run the text as a module and give its names to the notebook; a sentence if that fails."""
    import linecache

    linecache.checkcache(path)  # Triton reads a kernel's source from the file: the new one
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    try:
        exec(compile(text, path, "exec"), module.__dict__)
    except SyntaxError as error:
        if (error.text or "").lstrip().startswith(("%", "!")):
            return f"Line {error.lineno} is the notebook's, not Python's: put it into another cell."
        return f"Python cannot read it yet: {error.msg}, line {error.lineno} of the cell."
    except NameError as error:
        if error.name in LAB:
            return f"{error.name}(…) belongs to the notebook: call it in a cell of its own, below this one."
        return f"Importing it raised NameError: {error}"
    except Exception as error:
        return f"Importing it raised {type(error).__name__}: {error}"
    shell.push({key: value for key, value in vars(module).items() if not key.startswith("_")})
    return ""


def _say(text: str) -> None:
    display(Prose(text))
