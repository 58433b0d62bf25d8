"""Run a learner's host code with a watch on what its text cannot tell: which object is written to, or asked.

Attributes may be written to the file's own objects, classes and functions alone, since in Triton's they would
be what a kernel calls. The same holds for names with an underscore. A class of Triton's is named to the file,
and not handed out. Python's own `type`, `getattr`, `setattr`, functools.wraps and Enum are replaced by ones
that ask the same. And where a file draws or shows, stand-ins take the place of the library: nobody looks.
"""

import ast
import builtins
import enum
import functools
import logging
import sys
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType, SimpleNamespace

import numpy as np
from torch.autograd.function import FunctionCtx

from course_kernels.lab.run import reader
from course_kernels.lab.run.guard import Refused

OWN = "exercise"  # the name of the learner's module


def confined(tree: ast.Module, module: ModuleType) -> ast.Module:
    """The file's code with the watch built in, for `exec` in this module."""
    module.__dict__["__builtins__"] = vars(builtins) | {
        "type": _Type,
        "getattr": _getattr,
        "setattr": _setattr,
        "__import__": _import,
        # Names that no text can have.
        " type": _type_of,
        " own": _own,
        " private": _private,
    }
    for style in ("{", "$"):  # a format that looks attributes up
        logging._STYLES.pop(style, None)
    if not any(isinstance(finder, _Silence) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Silence())
    return ast.fix_missing_locations(_Watch().visit(tree))


class _Watch(ast.NodeTransformer):
    """Puts a call around each object that is written to, or whose underscored attribute is read."""

    def visit_Attribute(self, node):
        self.generic_visit(node)
        if node.attr == "__class__" and isinstance(node.ctx, ast.Load):
            return ast.copy_location(_call(" type", node.value), node)
        if not isinstance(node.ctx, ast.Load):
            node.value = _call(" own", node.value)
        elif (
            node.attr.startswith("_") and not node.attr.endswith("__") and node.attr not in reader.NAMEDTUPLE
        ):
            node.value = _call(" private", node.value)
        return node


def _call(name: str, value: ast.expr) -> ast.Call:
    function = ast.copy_location(ast.Name(name, ast.Load()), value)
    return ast.copy_location(ast.Call(function, [value], []), value)


def _is_own(thing) -> bool:
    """True for what the file made: its functions, its classes, and their objects."""
    kind = type(thing)
    if kind is FunctionType:
        return thing.__globals__.get("__name__") == OWN
    if not issubclass(kind, type) and (kind in (SimpleNamespace, _Silent) or issubclass(kind, FunctionCtx)):
        return True
    return vars(thing if issubclass(kind, type) else kind).get("__module__") == OWN


def _own(thing):
    if not _is_own(thing):
        raise Refused("out_of_place", f"an attribute of {_said(thing)} is written")
    return thing


def _private(thing):
    if not _is_own(thing) and not isinstance(thing, ModuleType):  # of a module, the text tells
        raise Refused("out_of_place", f"a name with an underscore, of {_said(thing)}, is read")
    return thing


def _said(thing) -> str:
    return f"the class {thing.__name__}" if isinstance(thing, type) else f"a {type(thing).__name__}"


class _Kind(type):
    """What `type` is, as far as isinstance can tell."""

    def __instancecheck__(cls, thing):
        return isinstance(thing, type)

    def __subclasscheck__(cls, kind):
        return issubclass(kind, type)

    def __call__(cls, *args, **kwargs):
        if len(args) != 1 or kwargs:  # a class made of strings, with any names in it
            raise Refused("out_of_place", "type(…) makes a class")
        return _type_of(args[0])


class _Type(metaclass=_Kind):
    def __init_subclass__(cls):
        raise Refused("out_of_place", "a class derives from type")


def _type_of(thing):
    kind = type(thing)
    if kind is type:
        return _Type
    if issubclass(kind, type) or kind.__module__.split(".")[0] in ("triton", "course_kernels"):
        return _label(kind)
    return kind


@functools.cache
def _label(kind: type) -> type:
    """A class that is called like another, and nothing else."""
    return type(kind.__name__, (), {"__module__": kind.__module__, "__qualname__": kind.__qualname__})


def _check_name(thing, name) -> None:
    fine = type(name) is str and name not in reader.ATTRIBUTES
    if fine and name.startswith("_"):
        fine = name in reader.DUNDERS if name.endswith("__") else _is_own(thing)
    if fine and isinstance(thing, ModuleType) and not isinstance(thing, _Silent):
        fine = reader.fine(thing.__name__, name)
    if not fine or (isinstance(thing, str) and name.startswith("format")):
        raise Refused("out_of_place", f"the attribute {name!s:.50} is looked up")


def _getattr(thing, name, *default):
    _check_name(thing, name)
    return _type_of(thing) if name == "__class__" else getattr(thing, name, *default)


def _setattr(thing, name, value) -> None:
    _check_name(thing, name)
    setattr(_own(thing), name, value)


def _import(name, *args, **kwargs):
    module = builtins.__import__(name, *args, **kwargs)
    return {"functools": _functools, "enum": _enum}.get(name, module)


def _copy(module: ModuleType, **changed) -> ModuleType:
    copy = ModuleType(module.__name__)
    copy.__dict__.update(
        {key: value for key, value in vars(module).items() if key in module.__all__} | changed
    )
    return copy


def _update_wrapper(wrapper, wrapped):
    return functools.update_wrapper(_own(wrapper), wrapped)


class _Lookup(enum.EnumMeta):
    def __call__(cls, value, *more, **names):
        if more or names:  # a class made of strings, with any names in it
            raise Refused("out_of_place", f"{cls.__name__}(…) makes a class")
        return super().__call__(value)


_functools = _copy(
    functools,
    update_wrapper=_update_wrapper,
    wraps=lambda wrapped: functools.partial(_update_wrapper, wrapped=wrapped),
)
_KINDS = {name: _Lookup(name, (getattr(enum, name),), _Lookup.__prepare__(name, (getattr(enum, name),)))
          for name in ("Enum", "IntEnum", "Flag", "IntFlag")}  # fmt: skip
_enum = ModuleType("enum")
_enum.__dict__.update(_KINDS, auto=enum.auto, unique=enum.unique)


# Drawing


class _Silence:
    """Finds the stand-ins for libraries that draw or show."""

    def find_spec(self, name, path=None, target=None):
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] in reader.SILENT else None

    def create_module(self, spec):
        return _Silent(spec.name)

    def exec_module(self, module):
        pass


class _Silent(ModuleType):
    """Takes any call, and does nothing."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Silent(name)

    def __setattr__(self, name, value):
        if name.startswith("__"):  # the import system's own
            super().__setattr__(name, value)

    def __call__(self, *args, **kwargs):
        if self.__name__ != "subplots":
            return self
        rows, columns = (*args, 1, 1)[:2] if args else (kwargs.get("nrows", 1), kwargs.get("ncols", 1))
        axes = np.full((rows, columns), None, dtype=object)
        axes.fill(self)
        return self, axes.squeeze() if axes.size > 1 else self

    def __getitem__(self, index):
        return self

    def __setitem__(self, index, value):
        pass

    def __iter__(self):
        return iter(())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None
