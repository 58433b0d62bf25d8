"""Keep a learner's code to the exercise: no answers, no other programs, no files, no look at the checker.

Python's audit events give the sentences; `landlock`, where Linux has it, holds against what goes around them.
Against code that changes how the check counts, in the process that it shares with the meter, there is
neither: for that there are `reader` and `confine`.
"""

import os
import sys
import tempfile
from pathlib import Path

import triton
import triton.language as tl
from triton import knobs

from course_kernels.lab.core.files import root
from course_kernels.lab.run import landlock

HIDDEN_PACKAGES = ("course_kernels", "solutions", "tests")
CLOSED_FOLDERS = ("solutions", "course_kernels", "tests", ".git")
PROGRAM_EVENTS = ("subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn")
FILE_EVENTS = (
    "os.rename", "os.remove", "os.link", "os.symlink", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod",
    "os.chown", "os.utime", "os.setxattr",
)  # fmt: skip
SIGNAL_EVENTS = ("os.kill", "os.killpg", "signal.pthread_kill")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
COMPILER = {"ptxas", "ptxas-blackwell", "cuobjdump"}  # what Triton starts while it compiles


up = False  # in this process


class Refused(RuntimeError):
    """The learner's code did something that the exercise rules out; the first argument names the mistake."""


def close_doors(path: str, compiling: bool = False) -> None:
    """Close them in this process, for good; `path` is the learner's own file.

    compiling: the compiler works here, so its programs may start.
    """
    global up
    up = sys.dont_write_bytecode = True
    for name in [m for m in sys.modules if m.split(".")[0] in HIDDEN_PACKAGES]:
        del sys.modules[name]
    sys.meta_path.insert(0, _NoAnswers())
    # The mode stays as it is, but the environment no longer tells it.
    knobs.runtime.interpret = not compiling
    os.environ.pop("TRITON_INTERPRET", None)
    writable, programs = [], []
    if compiling:
        folder = os.environ.get("TRITON_CACHE_DIR") or tempfile.gettempdir()
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        writable = [os.path.realpath(folder)]
        chosen = [v for k, v in os.environ.items() if k.startswith("TRITON_") and k.endswith("_PATH")]
        programs = [os.path.dirname(triton.__file__), *map(os.path.dirname, chosen)]
    own, lab = os.path.realpath(path), os.path.realpath(Path(__file__).parents[1])
    closed = closed_folders(path)
    landlock.restrict(closed, [own, lab], writable, programs=compiling)
    sys.addaudithook(_watcher(own, lab, closed, writable, programs))
    for home in (tl, tl.standard):
        home.softmax = _no_softmax


def closed_folders(path: str) -> set[str]:
    """The real paths of all folders that answers can be read from: in the checkout that one stands in, in
    this package's, and in the one that the learner's file lies in.
    """
    homes = (root(), Path(__file__).parents[3], Path(path).resolve().parent.parent, Path(path).parent.parent)
    folders = {os.path.realpath(home / name) for home in homes for name in CLOSED_FOLDERS}
    return {folder for folder in folders if os.path.isdir(folder)}


def _watcher(own: str, lab: str, closed: set[str], writable: list[str], programs: list[str]):
    closed, writable, programs = (
        tuple(folder + os.sep for folder in folders)
        for folders in (closed, [*writable, os.devnull], programs)
    )
    lab += os.sep

    def real(name) -> str:
        return os.path.realpath(os.fsdecode(name)) if isinstance(name, (str, bytes, os.PathLike)) else ""

    def watch(event, arguments):
        if event == "open":
            target, flags = real(arguments[0]), arguments[2]
            if target.startswith(closed) and target != own and not target.startswith(lab):
                raise Refused("answer_opened", "/".join(target.split("/")[-2:]))
            writes = flags & WRITING if isinstance(flags, int) else 0
            # With a separator behind it: O_TMPFILE opens the folder itself.
            if target and writes and not (target + os.sep).startswith(writable):
                raise Refused("outside_world", f"writes the file {os.path.basename(target)}")
        elif event in PROGRAM_EVENTS:
            program = os.fsdecode(arguments[0] or "") if arguments else ""
            if not (program.startswith(programs) and os.path.basename(program) in COMPILER):
                raise Refused("outside_world", f"starts another program ({event})")
        elif event in FILE_EVENTS:
            for target in map(real, arguments[:2]):
                if target and not target.startswith(writable):
                    raise Refused("outside_world", f"changes the file {os.path.basename(target)}")
        elif event in SIGNAL_EVENTS and arguments[0] != os.getpid():
            raise Refused("outside_world", "sends a signal to another process")

    return watch


class _NoAnswers:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in HIDDEN_PACKAGES:
            raise Refused("answer_opened", name)


def _no_softmax(*args, **kwargs):
    raise Refused("library_softmax", "tl.softmax")
