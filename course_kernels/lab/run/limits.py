"""Run a function in a child process that may hang, crash, eat memory or print without end.

The child is forked from a process that has everything imported, so it starts in milliseconds; it has a time
limit and a memory limit, its own process group, and its prints are kept up to a bound. Whatever happens to
it, the parent gets an `Outcome`.
"""

import ctypes
import json
import os
import resource
import selectors
import signal
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

pace = 1.0  # how many times slower this machine is than the one that time limits were chosen on
IDLE = 0.05  # a process that gets less of a core than this is waiting, not computing
LONGEST = 10  # times its limit: the most that a process which shares its core with others may take
LOOK = 0.5  # seconds between two looks at the time used
KEPT_OUTPUT = 4000  # characters of the child's prints that are kept
FILE_BYTES = 256 << 20  # the largest file it may write
MEMORY_BYTES = 4 << 30  # on top of what the parent has mapped
ANSWER_BYTES = 256 << 20  # the longest answer that is read
SAID = 2000  # characters of an exception that are kept


@dataclass
class Outcome:
    """What became of the child.

    kind: "ok", "raised", "timeout", "memory", "signal" or "exit".
    value: what the function returned (JSON types), if kind is "ok"; the exception as text, if "raised".
    printed: the start of what it wrote to standard output and standard error.
    code: the exit status, or the signal's number.
    """

    kind: str
    value: object = None
    printed: str = ""
    code: int = 0
    seconds: float = 0.0


def isolate(function: Callable[[], object], *, seconds: float, memory_bytes: int = MEMORY_BYTES) -> Outcome:
    """Fork, call `function()` in the child under the limits, and return its JSON-able value as an Outcome.

    seconds: of computing, on a machine of the usual pace. A slow or busy machine is given its time: the child
    is stopped when it has used `seconds` × `pace` of a core, or waited that long without computing.

    For a process without children of its own: whatever runs below it at the end is killed.
    """
    started = time.monotonic()
    ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: what a child leaves behind becomes ours, to end
    result_read, result_write = os.pipe()
    print_read, print_write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        try:
            _become_child(result_write, print_write, memory_bytes)
            _send(result_write, _call(function))
        finally:
            os._exit(0)
    os.close(result_write)
    os.close(print_write)
    try:
        return _collect(pid, result_read, print_read, started, seconds)
    finally:
        _kill_group(pid)
        _end_descendants()
        os.close(result_read)
        os.close(print_read)


def _become_child(result_write: int, print_write: int, memory_bytes: int) -> None:
    os.setsid()  # a group of its own: what it starts ends with it
    die_with_parent()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.dup2(print_write, 1)
    os.dup2(print_write, 2)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    # Among what the parent holds open is the line on which the verdict goes out.
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd != result_write:
            os.closerange(fd, fd + 1)  # says nothing about the one that listed them, closed already
    mapped = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + memory_bytes, mapped + memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))


def die_with_parent() -> None:
    """Ask Linux to kill this process when the one that forked it ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _call(function: Callable[[], object]) -> dict:
    try:
        return {"kind": "ok", "value": function()}
    except MemoryError as error:
        return {"kind": "memory", "value": text_of(error)}
    except BaseException as error:  # a learner's `exit()` is an outcome too
        if isinstance(error, SystemExit):
            return {"kind": "exit", "code": 1}
        return {"kind": "raised", "value": f"{name_of(error)}: {text_of(error)}"}


def text_of(thing: object) -> str:
    """What an exception, or anything, says, shortened, in what UTF-8 can hold; a learner's class may fail."""
    try:
        return str.__str__(str(thing))[:SAID].encode("utf-8", "replace").decode()
    except BaseException:  # noqa: BLE001
        return "its text could not be read"


def name_of(thing: object) -> str:
    """The name of a thing's class, shortened; whatever a learner's metaclass makes of __name__."""
    return type.__dict__["__name__"].__get__(type(thing))[:100]


def _send(fd: int, message: dict) -> None:
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # the learner may have closed them
        pass
    data = json.dumps(message).encode()
    data = struct.pack("<Q", len(data)) + data  # with its length: a child of its own may keep the pipe open
    while data:
        data = data[os.write(fd, data) :]


def _collect(pid: int, result_fd: int, print_fd: int, started: float, seconds: float) -> Outcome:
    parts: dict[int, list[bytes]] = {result_fd: [], print_fd: []}
    printed = answered = 0
    with selectors.DefaultSelector() as selector:
        selector.register(result_fd, selectors.EVENT_READ)
        selector.register(print_fd, selectors.EVENT_READ)
        # The result's end is the end: a grandchild may hold both pipes open for ever.
        while result_fd in selector.get_map() and not _whole(parts[result_fd]):
            if _too_long(pid, started, seconds * pace):
                _kill_group(pid)
                return Outcome("timeout", printed=_text(parts[print_fd]), seconds=time.monotonic() - started)
            for key, _ in selector.select(LOOK):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    selector.unregister(key.fd)
                elif key.fd == result_fd or printed < KEPT_OUTPUT:
                    parts[key.fd].append(data)
                    printed += len(data) if key.fd == print_fd else 0
                    answered += len(data) if key.fd == result_fd else 0
            if answered > ANSWER_BYTES:
                _kill_group(pid)
                return Outcome("memory", printed=_text(parts[print_fd]), seconds=time.monotonic() - started)
        if print_fd in selector.get_map():  # what was printed just before the end
            os.set_blocking(print_fd, False)
            try:
                parts[print_fd].append(os.read(print_fd, KEPT_OUTPUT))
            except BlockingIOError:
                pass
    if _whole(parts[result_fd]):
        _kill_group(pid)
    _, status = os.waitpid(pid, 0)
    outcome = Outcome("exit", printed=_text(parts[print_fd]), seconds=time.monotonic() - started)
    try:
        message = json.loads(b"".join(parts[result_fd])[8:])
        outcome.kind, outcome.value, outcome.code = (
            message["kind"],
            message.get("value"),
            message.get("code", 0),
        )
    except (ValueError, KeyError, TypeError, AttributeError):  # it ended before it could answer
        if os.WIFSIGNALED(status):
            outcome.kind, outcome.code = "signal", os.WTERMSIG(status)
        else:
            outcome.code = os.waitstatus_to_exitcode(status)
    return outcome


def _too_long(pid: int, started: float, limit: float) -> bool:
    """True once a process has used `limit` seconds of a core, or has let them pass without computing."""
    passed = time.monotonic() - started
    if passed < limit:
        return False
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return True
    used = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")  # user and system, its children's too
    return used >= limit or used < IDLE * passed or passed > LONGEST * limit


def _whole(parts: list[bytes]) -> bool:
    """True once a message and its length are there."""
    head, length = b"".join(parts[:8])[:8], sum(map(len, parts))
    return length >= 8 and length - 8 >= struct.unpack("<Q", head)[0]


def _text(parts: list[bytes]) -> str:
    return b"".join(parts).decode(errors="replace")[:KEPT_OUTPUT]


def _end_descendants() -> None:
    """Kill and reap every child of this process, and their children as they become ours."""
    for _ in range(100):
        try:
            children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        except OSError:  # a kernel without this file
            children = []
        for child in children:
            try:
                os.kill(int(child), signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, 0 if children else os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
