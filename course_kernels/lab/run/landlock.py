"""Take rights away from this process for good, by Linux's Landlock, which no Python code can undo.

Rights are named by path: a list of what may still be read and written, for a process and all that it starts.
Where the kernel has no Landlock (before 5.13, or switched off), nothing happens, and `guard` stands alone.
"""

import ctypes
import os
import struct
import sys

# Rights and numbers from linux/landlock.h; the syscalls have the same numbers on every architecture.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, REFER, TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 13, 1 << 14
CHANGE = sum(1 << bit for bit in range(4, 13)) | WRITE_FILE  # remove and make files and folders of any kind
TCP = 0b11  # bind and connect
SIGNALS = 0b10  # to processes outside
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE  # the rights that a file can have, not only a folder
NO_NEW_PRIVS = 38

_call = ctypes.CDLL(None, use_errno=True).syscall


def available() -> bool:
    """True if this Linux has Landlock, switched on."""
    return _version() > 0


def _version() -> int:
    return _call(CREATE_RULESET, None, 0, 1)


def restrict(closed: set[str], readable: list[str], writable: list[str], programs: bool) -> bool:
    """From here on: read no file below the closed folders, but for `readable`; write only in `writable`.

    closed, readable, writable: real paths. programs: whether other programs may be started. Where the kernel
    is new enough, no TCP and no signals to other processes. Returns False where there is no Landlock.
    """
    version = _version()
    if version < 1:
        return False
    change = CHANGE | (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)
    handled = READ_FILE | change | (0 if programs else EXECUTE)
    wanted = struct.pack("<QQQ", handled, TCP if version >= 4 else 0, SIGNALS if version >= 6 else 0)
    wanted = wanted[: 8 if version < 4 else 16 if version < 6 else 24]
    rules = _call(CREATE_RULESET, wanted, len(wanted), 0)
    if rules < 0:
        return False
    try:
        for path in (*_all_but(closed), *_libraries(closed), *readable):
            _allow(rules, path, READ_FILE)
        for path in (*writable, os.devnull):
            _allow(rules, path, READ_FILE | change)
        _call_prctl(NO_NEW_PRIVS)
        return _call(RESTRICT_SELF, rules, 0) == 0
    finally:
        os.close(rules)


def _call_prctl(option: int) -> None:
    ctypes.CDLL(None).prctl(option, 1, 0, 0, 0)


def _all_but(closed: set[str]) -> list[str]:
    """Every path that does not lead to a closed folder, named as high up as it can be."""
    way = {parent for path in closed for parent in _parents(path)}
    open_, folders = [], ["/"]
    while folders:
        folder = folders.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:  # what may be passed through, and not be listed
            folders += [path for path in way if os.path.dirname(path) == folder != path]
            continue
        for entry in entries:
            if entry.is_symlink() or entry.path in closed:  # a link gives no right to where it leads
                continue
            (folders if entry.path in way else open_).append(entry.path)
    return open_


def _libraries(closed: set[str]) -> list[str]:
    """Where Python's own files are, should `_all_but` not have seen them."""
    homes = map(os.path.realpath, filter(None, (sys.prefix, sys.base_prefix, *sys.path)))
    return [home for home in homes if not any((path + "/").startswith(home + "/") for path in closed)]


def _parents(path: str):
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            rights &= ON_FILES
        attribute = ctypes.create_string_buffer(struct.pack("<Qi", rights, fd), 12)
        _call(ADD_RULE, rules, 1, attribute, 0)
    finally:
        os.close(fd)
