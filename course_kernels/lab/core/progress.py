"""What a learner has done: attempts, hints, passes; in one small file that git ignores."""

import fcntl
import json
import time
from contextlib import contextmanager, suppress

from course_kernels.lab.core.files import root, write_atomically

FILE = "exercises/.progress.json"
ATTEMPTS_BEFORE_SOLUTION = 3
EMPTY = {"attempts": 0, "hints": 0, "passed": None}


def read() -> dict:
    """{exercise: {"attempts", "hints", "passed"}}. A damaged file is set aside under another name."""
    path = root() / FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): _state(state) for name, state in data["exercises"].items()}
    except OSError:  # none yet, or none that can be read
        return {}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        with suppress(OSError):  # a read-only checkout keeps it
            path.rename(path.with_name(f"{path.name}.damaged-{time.time_ns()}"))
        return {}


def _state(state: dict) -> dict:
    passed = state.get("passed")
    return {
        "attempts": int(state.get("attempts", 0)),
        "hints": int(state.get("hints", 0)),
        "passed": str(passed) if passed else None,
    }


def of(name: str) -> dict:
    """The state of one exercise."""
    return dict(EMPTY) | read().get(name, {})


@contextmanager
def _change(name: str):
    folder = root()
    with open(folder / f"{FILE}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two notebooks may check at the same time
        everything = read()
        state = everything[name] = dict(EMPTY) | everything.get(name, {})
        yield state
        write_atomically(folder / FILE, json.dumps({"exercises": everything}, indent=1) + "\n")


def note_attempt(name: str, status: str) -> None:
    """Count a check; a stub that is not filled in is no attempt."""
    if status == "todo":
        return
    try:
        with _change(name) as state:
            state["attempts"] += 1
            if status == "pass" and not state["passed"]:
                state["passed"] = time.strftime("%Y-%m-%d")
    except OSError:
        pass  # a read-only checkout: the check counts, the count does not


def note_hint(name: str, most: int) -> int:
    """One more hint; returns how many are to be shown."""
    try:
        with _change(name) as state:
            state["hints"] = min(most, state["hints"] + 1)
            return state["hints"]
    except OSError:
        return most
