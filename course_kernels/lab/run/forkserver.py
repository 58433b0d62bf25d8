"""Processes that have torch and triton imported and fork a fresh worker in milliseconds.

Importing torch and triton takes over a second, and a check wants several clean processes. So two servers, one
a mode ("interpret" and "compile": a process of Triton has one mode), import everything once and then fork a
child for each job. The notebook's own process is never forked: it has threads.

A job is the name of a function, "module:function", and its JSON arguments; the answer is JSON.
"""

import importlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

MODES = {"interpret": "1", "compile": "0"}
PRELOAD = {
    "interpret": ("torch", "numpy", "triton.runtime.interpreter", "course_kernels.lab.check.judge"),
    "compile": (
        "torch",
        "numpy",
        "triton.compiler",
        "triton.backends.nvidia.compiler",
        "course_kernels.lab.check.judge",
    ),
}
_servers: dict[str, "Server"] = {}
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
        try:
            os.kill(self.pid(time.monotonic() + 1), signal.SIGKILL)  # what it started dies with it
        except (EOFError, OSError):
            pass
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
    """The client's end of one zygote."""

    def __init__(self, mode: str):
        ours, theirs = socket.socketpair()
        environment = {**os.environ, "TRITON_INTERPRET": MODES[mode], "OMP_NUM_THREADS": "1"}
        # The package must be found whatever the current folder is.
        package_parent = str(Path(__file__).parents[3])
        path = os.pathsep.join(filter(None, [package_parent, environment.get("PYTHONPATH")]))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "course_kernels.lab.run.forkserver", mode, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**environment, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C in the notebook is not for the server
        )
        theirs.close()
        self.control = ours
        self.sending = threading.Lock()

    def alive(self) -> bool:
        return self.process.poll() is None

    def submit(self, function: str, arguments: dict) -> Job:
        ours, theirs = socket.socketpair()
        data = json.dumps({"function": function, "arguments": arguments}).encode()
        with self.sending:
            socket.send_fds(self.control, [struct.pack("<Q", len(data))], [theirs.fileno()])
            self.control.sendall(data)
        theirs.close()
        return Job(ours)


def start(mode: str) -> Server:
    """The server of this mode, started if need be; returns at once, the imports go on in the background."""
    with _lock:
        server = _servers.get(mode)
        if server is None or not server.alive():
            server = _servers[mode] = Server(mode)
        return server


def stop() -> None:
    """End the servers; the next job starts new ones, in the folder where one then stands."""
    with _lock:
        for server in _servers.values():
            server.control.close()
            server.process.wait()
        _servers.clear()


def submit(mode: str, function: str, **arguments) -> Job:
    """Start `function` ("module:name") with JSON arguments in a fresh worker of this mode."""
    try:
        return start(mode).submit(function, arguments)
    except (BrokenPipeError, ConnectionError):  # it died between two checks: once more, with a new one
        with _lock:
            _servers.pop(mode, None)
        return start(mode).submit(function, arguments)


def serve(mode: str, control: socket.socket) -> None:
    """The server's loop: fork a child for each job, until the client's end closes."""
    for module in PRELOAD[mode]:
        importlib.import_module(module)
    import torch

    torch.set_num_threads(1)  # no thread pool may exist in a process that forks
    if mode == "compile":
        from course_kernels.lab.run.compiler import warm_up

        warm_up()
    else:
        from course_kernels.lab.run.meter import install

        install()  # before any learner's code: what it replaces then shows
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children are reaped by the kernel
    while True:
        head, fds, _, _ = socket.recv_fds(control, 8, 1)
        if len(head) < 8 or not fds:
            return
        (size,) = struct.unpack("<Q", head)
        data = b""
        while len(data) < size:
            data += control.recv(size - len(data))
        if os.fork() == 0:
            control.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os._exit(_run(json.loads(data), fds[0]))
        os.close(fds[0])


def _run(job: dict, fd: int) -> int:
    from course_kernels.lab.run.limits import die_with_parent

    die_with_parent()
    try:
        os.write(fd, struct.pack("<Q", os.getpid()))
    except OSError:  # whoever asked no longer wants to know
        return 1
    try:
        module, name = job["function"].split(":")
        answer = {"value": getattr(importlib.import_module(module), name)(**job["arguments"])}
    except BaseException as error:  # noqa: BLE001  an answer must go back, whatever it was
        if os.environ.get("COURSE_LAB_DEBUG"):
            import traceback

            traceback.print_exc()
        answer = {
            "error": f"The checker itself failed ({type(error).__name__}: {error}). Please report this."
        }
    data = json.dumps(answer).encode()
    with socket.socket(fileno=fd) as connection:
        try:
            connection.sendall(struct.pack("<Q", len(data)) + data)
        except OSError:  # whoever asked no longer wants to know
            return 1
    return 0


if __name__ == "__main__":
    serve(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))
