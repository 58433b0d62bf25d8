"""The fork server: it has PyTorch and Triton imported, and gives each job a fresh process in milliseconds.

Importing torch and triton takes over a second, and a check wants several clean processes. So one server
imports torch once, and forks a child for each mode of Triton that is asked for ("interpret" and "compile": a
process of Triton has one mode). That child imports Triton, and forks a worker for each job. The notebook's
own process is never forked: it has threads.

A job is the name of a function, "module:function", and its JSON arguments; the answer is JSON. Its module is
imported before the fork, so that it is there already for the next job.
"""

import importlib
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from course_kernels.lab.run import limits

MODES = {"interpret": "1", "compile": "0"}  # → TRITON_INTERPRET
# What a mode imports before its first job, and what it then calls.
PRELOAD = {
    "interpret": ("triton.runtime.interpreter", "course_kernels.lab.run.session"),
    "compile": ("triton.backends.nvidia.compiler", "course_kernels.lab.run.compiler"),
}
PREPARE = {
    "interpret": "course_kernels.lab.run.hooks:install",
    "compile": "course_kernels.lab.run.compiler:warm_up",
}
IMPORT_SECONDS = 1.5  # of CPU, to import torch on the machine that the time limits were chosen on
_server: "Server | None" = None
_lock = threading.Lock()


class WorkerError(RuntimeError):
    """A worker ended without an answer; the text is a sentence for the learner."""


class Job:
    """A job under way; `result(seconds)` waits for its answer."""

    def __init__(self, connection: socket.socket):
        self.connection = connection
        self._pid: int | None = None

    def result(self, seconds: float):
        """The job's JSON answer.

        Raises:
            WorkerError: it ended without one, or took longer than `seconds`.
        """
        deadline = time.monotonic() + seconds
        try:
            self.pid(deadline)
            (size,) = struct.unpack("<Q", self._read(8, deadline))
            answer = json.loads(self._read(size, deadline))
        except (EOFError, ConnectionError):
            raise WorkerError("The checking process ended without an answer. Run the check again.") from None
        except TimeoutError:
            raise WorkerError(
                f"The check did not end within {seconds:.0f} seconds and was stopped."
            ) from None
        finally:
            self.connection.close()
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer["value"]

    def pid(self, deadline: float) -> int:
        """The worker's process, which it tells before it does anything else."""
        if self._pid is None:
            (self._pid,) = struct.unpack("<Q", self._read(8, deadline))
        return self._pid

    def cancel(self) -> None:
        """End the job, if it is still under way: nobody waits for its answer any more."""
        with suppress(EOFError, OSError):
            os.kill(self.pid(time.monotonic() + 1), signal.SIGKILL)  # what it started dies with it
        self.connection.close()

    def _read(self, size: int, deadline: float) -> bytes:
        data = b""
        while len(data) < size:
            self.connection.settimeout(max(0.001, deadline - time.monotonic()))
            part = self.connection.recv(min(1 << 20, size - len(data)))
            if not part:
                raise EOFError
            data += part
        return data


class Server:
    """The client's end: a process, and a line to each mode's child of it."""

    def __init__(self):
        lines = {mode: socket.socketpair() for mode in MODES}
        # The package must be found whatever the current folder is.
        package_parent = str(Path(__file__).parents[3])
        path = os.pathsep.join(filter(None, [package_parent, os.environ.get("PYTHONPATH")]))
        self.process = subprocess.Popen(
            [sys.executable, "-m", __name__, *(f"{mode}={lines[mode][1].fileno()}" for mode in MODES)],
            pass_fds=[theirs.fileno() for _, theirs in lines.values()],
            stdin=subprocess.DEVNULL,
            # TRITON_INTERPRET: so that nothing asks for a GPU in the process that forks.
            env={**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C in the notebook is not for the server
        )
        self.control = {mode: ours for mode, (ours, _) in lines.items()}
        for _, theirs in lines.values():
            theirs.close()
        self.sending = threading.Lock()

    def alive(self) -> bool:
        return self.process.poll() is None

    def warm(self, mode: str) -> None:
        """Let the mode's child be forked, ahead of its first job."""
        with self.sending:
            self.control[mode].sendall(struct.pack("<Q", 0))

    def submit(self, mode: str, function: str, arguments: dict) -> Job:
        ours, theirs = socket.socketpair()
        data = json.dumps({"function": function, "arguments": arguments}).encode()
        with self.sending:
            socket.send_fds(self.control[mode], [struct.pack("<Q", len(data))], [theirs.fileno()])
            self.control[mode].sendall(data)
        theirs.close()
        return Job(ours)

    def close(self) -> None:
        """End the processes, once the jobs under way have ended."""
        for line in self.control.values():
            line.close()
        self.process.wait()


def start(*modes: str) -> Server:
    """The server, started if need be, with these modes warmed up; returns at once."""
    global _server
    with _lock:
        if _server is None or not _server.alive():
            _server = Server()
        server = _server
    for mode in modes:
        with suppress(ConnectionError):  # it has just ended: the next job starts another
            server.warm(mode)
    return server


def stop() -> None:
    """End the server; the next job starts a new one, in the folder where one then stands."""
    global _server
    with _lock:
        if _server is not None:
            _server.close()
        _server = None


def submit(mode: str, function: str, **arguments) -> Job:
    """Start `function` ("module:name") with JSON arguments in a fresh worker of this mode."""
    try:
        return start().submit(mode, function, arguments)
    except ConnectionError:  # it died between two checks: once more, with a new one
        stop()
        return start().submit(mode, function, arguments)


# The server's side


def serve(lines: dict[str, socket.socket]) -> None:
    """Import torch; fork each mode's child once its line is written to; end with the first that ends."""
    import numpy  # noqa: F401
    import torch

    torch.set_num_threads(1)  # no thread pool may exist in a process that forks
    limits.pace = max(1.0, time.process_time() / IMPORT_SECONDS)
    with selectors.DefaultSelector() as selector:
        for mode, line in lines.items():
            selector.register(line, selectors.EVENT_READ, mode)
        signal.signal(
            signal.SIGCHLD, lambda *_: os._exit(0)
        )  # a mode's child ended: its client is gone, or it died
        while selector.get_map():
            for key, _ in selector.select():
                if os.fork() == 0:
                    selector.close()
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    for line in lines.values():
                        if line is not key.fileobj:
                            line.close()
                    limits.die_with_parent()
                    serve_mode(key.data, key.fileobj)
                    os._exit(0)
                selector.unregister(key.fileobj)
                key.fileobj.close()
                del lines[key.data]
    while True:
        signal.pause()


def serve_mode(mode: str, control: socket.socket) -> None:
    """The loop of one mode: fork a worker for each job, until the client's end closes."""
    if not control.recv(1, socket.MSG_PEEK):
        return  # closed, before there was any job
    os.environ["TRITON_INTERPRET"] = MODES[mode]
    for module in PRELOAD[mode]:
        importlib.import_module(module)
    _function(PREPARE[mode])()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # workers are reaped by the kernel
    while True:
        head, fds, _, _ = socket.recv_fds(control, 8, 1)
        if len(head) < 8:
            return
        (size,) = struct.unpack("<Q", head)
        if not fds:
            continue  # only to warm up
        data = b""
        while len(data) < size:
            data += control.recv(size - len(data))
        job = json.loads(data)
        with suppress(Exception):  # the worker fails on it again, and says so
            importlib.import_module(job["function"].split(":")[0])
        if os.fork() == 0:
            control.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os._exit(_run(job, fds[0]))
        os.close(fds[0])


def _function(name: str):
    module, function = name.split(":")
    return getattr(importlib.import_module(module), function)


def _run(job: dict, fd: int) -> int:
    limits.die_with_parent()
    with socket.socket(fileno=fd) as connection, suppress(OSError):  # whoever asked may be gone
        connection.sendall(struct.pack("<Q", os.getpid()))
        data = json.dumps(_answer(job)).encode()
        connection.sendall(struct.pack("<Q", len(data)) + data)
    return 0


def _answer(job: dict) -> dict:
    try:
        return {"value": _function(job["function"])(**job["arguments"])}
    except BaseException as error:  # noqa: BLE001  an answer must go back, whatever it was
        if os.environ.get("COURSE_LAB_DEBUG"):
            import traceback

            traceback.print_exc()
        said = f"{type(error).__name__}: {error}"
        return {"error": f"The checker itself failed ({said}). Please report this."}


if __name__ == "__main__":
    named = dict(argument.split("=") for argument in sys.argv[1:])
    serve({mode: socket.socket(fileno=int(fd)) for mode, fd in named.items()})
