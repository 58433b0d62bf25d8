"""Import a learner's file, and describe what it raised as the learner should see it."""

import __future__

import ast
import os
import sys
import traceback
import types
from contextlib import suppress
from pathlib import Path

from course_kernels.lab.core.wording import echo, printable
from course_kernels.lab.run import confine, guard
from course_kernels.lab.run.guard import Refused
from course_kernels.lab.run.limits import name_of, text_of

FUTURE = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})
DEEPEST = 100  # exceptions that are followed, from one to the one behind it


def load_entry(path: str, entry: str, compiling: bool = False):
    """Import the learner's file as a module of its own and return the object named `entry`.

    compiling: kernels compute nothing here, so a test that the file makes of them while it is imported has no
    meaning; a statement that raises is left out.
    """
    return named(load_module(path, compiling), entry)


def named(module, entry: str):
    """The object of that name in a learner's module."""
    if not hasattr(module, entry):
        raise Refused("entry_missing", entry)
    return getattr(module, entry)


def load_module(path: str, compiling: bool = False):
    """Import the learner's file as a module of its own; confined, where the guard is up."""
    module = types.ModuleType(confine.OWN)
    module.__file__ = path
    sys.modules[confine.OWN] = module
    text = Path(path).read_bytes()  # Python reads the marks at a file's start, as it does in an import
    flags = compile(text, path, "exec").co_flags & FUTURE  # raises for what Python cannot read
    tree = ast.parse(text)
    if guard.up:
        tree = confine.confined(tree, module)
    # Without Python's bytecode cache: the file may change within a second.
    for part in [[statement] for statement in tree.body] if compiling else [tree.body]:
        with suppress(*[Exception] * compiling):
            exec(compile(ast.Module(part, []), path, "exec", flags, dont_inherit=True), module.__dict__)
    return module


def describe(error: BaseException, path: str) -> dict:
    """An exception as the learner should see it: its type, its message, the line of their own file, and that
    file's text.
    """
    chain = [error]  # from the outside in: the interpreter wraps what a kernel raised, a call at a time
    while name_of(chain[-1]) == "InterpreterError" and (inner := _behind(chain[-1])) and len(chain) < DEEPEST:
        chain.append(inner)
    error = rule = chain[-1]
    for _ in range(DEEPEST):  # an exception may be its own cause
        if rule is None or isinstance(rule, Refused):
            break
        rule = _behind(rule)
    text = printable(text_of(error))
    message = {"type": name_of(error), "text": text, "line": None, "source": "", "rule": None}
    if isinstance(rule, Refused):
        message["rule"] = list(rule.args)
    message["file"] = Path(path).read_text(errors="replace") if os.path.exists(path) else ""
    lines = message["file"].splitlines()
    if isinstance(error, SyntaxError) and error.filename == path:
        line = error.lineno if type(error.lineno) is int else None
        message |= {"line": line, "text": printable(text_of(error.msg))}
    else:  # the innermost frame that is the learner's; an inner link may have none
        message["line"] = next(filter(None, (_own_line(link, path) for link in reversed(chain))), None)
    if message["line"] and message["line"] <= len(lines):
        message["source"] = echo(lines[message["line"] - 1])
    return message


def _behind(error: BaseException) -> BaseException | None:
    """The exception that led to this one, by Python's own slots, which a learner's class cannot rename."""
    slots = BaseException.__dict__
    return slots["__cause__"].__get__(error) or slots["__context__"].__get__(error)


def _own_line(error: BaseException, path: str) -> int | None:
    """The last line of the learner's file in an exception's traceback."""
    own = os.path.realpath(path)
    for frame in reversed(traceback.extract_tb(BaseException.__dict__["__traceback__"].__get__(error))):
        if frame.lineno and os.path.realpath(frame.filename) == own:
            return frame.lineno
    return None
