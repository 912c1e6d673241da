"""A function with arrays of its own, which share their memory with those it was written with.

JAX remembers an array that it has met by its identity, together with the precision it was met in.
A function that is traced in double precision here must not share such memories with whoever calls
it in single precision.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np


def detached(thing: Any, home: Any = None, known: dict[int, Any] | None = None) -> Any:
    """The same with views in place of all NumPy arrays it refers to; itself if there are none.

    Containers, objects with attributes and functions are looked into; functions only if they come
    from the same module, whose globals are `home`.
    """
    known = {} if known is None else known
    if id(thing) not in known:
        known[id(thing)] = thing  # so that what refers to itself comes to an end
        known[id(thing)] = _detached(thing, home, known)
    return known[id(thing)]


def _detached(thing: Any, home: Any, known: dict[int, Any]) -> Any:
    def inside(part: Any) -> Any:
        return detached(part, home, known)

    match thing:
        case np.ndarray():
            return thing.view()
        case dict() if type(thing) is dict:
            values = {key: inside(value) for key, value in thing.items()}
            return thing if _same(values.values(), thing.values()) else values
        case list() | tuple():
            items = [*map(inside, thing)]
            if _same(items, thing):
                return thing
            return type(thing)(*items) if hasattr(thing, "_fields") else type(thing)(items)
        case partial():
            parts = inside([thing.func, thing.args, thing.keywords])
            return partial(parts[0], *parts[1], **parts[2])
        case types.MethodType():
            return types.MethodType(thing.__func__, inside(thing.__self__))
        case types.FunctionType():
            ours = home is None or thing.__globals__ is home
            return _function(thing, known) if ours else thing
        case type() | types.ModuleType():
            return thing
    if type(thing).__name__ == "PjitFunction":  # by jax.jit, which a trace writes out again
        inner = thing.__wrapped__
        twin = inside(inner) if isinstance(inner, types.FunctionType) else inner
        return thing if twin is inner else twin
    return _object(thing, home, known) if _is_plain(thing) else thing


def _same(found: Any, given: Any) -> bool:
    return all(one is other for one, other in zip(found, given, strict=True))


def _is_plain(thing: Any) -> bool:
    """Whether it is an object of somebody's own class, such as a dataclass that holds data."""
    library = type(thing).__module__.split(".")[0] in ("builtins", "jax", "jaxlib", "numpy")
    return hasattr(thing, "__dict__") and not library


def _object(owner: Any, home: Any, known: dict[int, Any]) -> Any:
    own = {name: detached(value, home, known) for name, value in vars(owner).items()}
    if _same(own.values(), vars(owner).values()):
        return owner
    twin = copy.copy(owner)
    twin.__dict__.update(own)
    return twin


def _function(function: types.FunctionType, known: dict[int, Any]) -> types.FunctionType:
    home, cells = function.__globals__, function.__closure__ or ()
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    used = {name: value for name, value in home.items() if name in names}
    own = {name: detached(value, home, known) for name, value in used.items()}
    twins = tuple(_cell(cell, home, known) for cell in cells)
    defaults, keywords = detached([function.__defaults__, function.__kwdefaults__], home, known)
    kept = defaults is function.__defaults__ and keywords is function.__kwdefaults__
    if kept and _same(own.values(), used.values()) and _same(twins, cells):
        return function
    space = home if _same(own.values(), used.values()) else {**home, **own}
    twin = types.FunctionType(function.__code__, space, function.__name__, defaults, twins or None)
    twin.__kwdefaults__ = keywords
    return twin


def _cell(cell: types.CellType, home: Any, known: dict[int, Any]) -> types.CellType:
    try:
        content = cell.cell_contents
    except ValueError:  # not filled yet
        return cell
    twin = detached(content, home, known)
    return cell if twin is content else types.CellType(twin)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)
