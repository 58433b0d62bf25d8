"""Keep a learner's code to the exercise: no answers, no other programs, no files, no look at the checker.

Some of it is refused while the code runs, by Python's audit events; the rest when it would pass, by a look at
its text (`out_of_place`). This is Python guarding Python: it stops what people try, and does not claim more.
"""

import ast
import os
import sys
import tempfile

import triton.language as tl
from triton import knobs

from course_kernels.lab.files import root

HIDDEN_PACKAGES = ("course_kernels", "solutions", "tests")
CLOSED_FOLDERS = ("solutions", "course_kernels", "tests", ".git")
PROGRAM_EVENTS = ("subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn")
FILE_EVENTS = ("os.rename", "os.remove", "os.link", "os.symlink", "os.rmdir", "os.truncate", "os.chmod")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
COMPILER = {"ptxas", "ptxas-blackwell", "cuobjdump"}  # what Triton starts while it compiles

# What no exercise needs, and what reaches around the check.
MODULES = {
    "builtins", "concurrent", "ctypes", "cffi", "gc", "importlib", "inspect", "mmap", "multiprocessing",
    "runpy", "shutil", "signal", "socket", "subprocess", "threading", "_thread", "asyncio", "pickle",
}  # fmt: skip
NAMES = {"__builtins__", "__import__", "compile", "eval", "exec", "globals", "open", "breakpoint"}
ATTRIBUTES = {
    "__builtins__", "__closure__", "__code__", "__globals__", "__subclasses__", "_disable_current_modes",
    "_getframe", "_python_dispatch", "data_ptr", "f_back", "f_globals", "f_locals", "from_file", "handle",
    "meta_path", "modules", "settrace", "setprofile", "untyped_storage",
}  # fmt: skip


class Refused(RuntimeError):
    """The learner's code did something that the exercise rules out; the first argument names the mistake."""


def close_doors(path: str, compiling: bool = False) -> None:
    """Close them in this process, for good; `path` is the learner's own file.

    compiling: the compiler works here, so its programs may start.
    """
    sys.dont_write_bytecode = True
    for name in [m for m in sys.modules if m.split(".")[0] in HIDDEN_PACKAGES]:
        del sys.modules[name]
    sys.meta_path.insert(0, _NoAnswers())
    # The mode stays as it is, but the environment no longer tells it.
    knobs.runtime.interpret = not compiling
    os.environ.pop("TRITON_INTERPRET", None)
    sys.addaudithook(_watcher(path, compiling))
    for home in (tl, tl.standard):
        home.softmax = _no_softmax


def _watcher(path: str, compiling: bool):
    own, base = os.path.realpath(path), os.path.realpath(root())
    closed = tuple(os.path.join(base, folder) + os.sep for folder in CLOSED_FOLDERS)
    lab = os.path.join(base, "course_kernels", "lab") + os.sep
    temporary = os.path.realpath(tempfile.gettempdir())

    def free(target: str) -> bool:
        """True where files may be written: the temporary folder and devices, but not the course's folder."""
        if target.startswith(base + os.sep):
            return False
        return target == temporary or target.startswith((temporary + os.sep, "/dev/"))

    def real(name) -> str:
        return os.path.realpath(os.fsdecode(name)) if isinstance(name, (str, bytes, os.PathLike)) else ""

    def watch(event, arguments):
        if event == "open":
            target, flags = real(arguments[0]), arguments[2]
            if target.startswith(closed) and target != own and not target.startswith(lab):
                raise Refused("answer_opened", os.path.relpath(target, base))
            writes = flags & WRITING if isinstance(flags, int) else 0
            if target and writes and not free(target):
                raise Refused("outside_world", f"writes the file {os.path.basename(target)}")
        elif event in PROGRAM_EVENTS:
            program = os.path.basename(os.fsdecode(arguments[0] or "")) if arguments else ""
            if not (compiling and program in COMPILER):
                raise Refused("outside_world", f"starts another program ({event})")
        elif event in FILE_EVENTS:
            for target in map(real, arguments[:2]):
                if target and not free(target):
                    raise Refused("outside_world", f"changes the file {os.path.basename(target)}")

    return watch


class _NoAnswers:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in HIDDEN_PACKAGES:
            raise Refused("answer_opened", name)


def _no_softmax(*args, **kwargs):
    raise Refused("library_softmax", "tl.softmax")


def out_of_place(text: str | bytes) -> tuple[int, str] | None:
    """(line, what) of the first thing in a file that no exercise needs and that reaches around the check."""
    for node in ast.walk(ast.parse(text)):
        found = None
        if isinstance(node, ast.Import):
            found = next((a.name for a in node.names if a.name.split(".")[0] in MODULES), None)
        elif isinstance(node, ast.ImportFrom):
            found = node.module if (node.module or "").split(".")[0] in MODULES else None
        elif isinstance(node, ast.Name) and node.id in NAMES:
            found = node.id
        elif isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
            found = f".{node.attr}"
        if found:
            return node.lineno, found
    return None
