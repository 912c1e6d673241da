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

#: What may hold arrays.
CARRIERS = (np.ndarray, dict, list, tuple, types.FunctionType)


def detached(thing: Any, home: Any = None, known: dict[int, Any] | None = None) -> Any:
    """A function, a container or an array with views in place of all NumPy arrays it refers to.

    Functions are looked into if they come from the same module, whose globals are `home`. What
    cannot be looked into is left as it is.
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
            return {key: inside(value) for key, value in thing.items()}
        case list() | tuple() if type(thing) in (list, tuple):
            return type(thing)(map(inside, thing))
        case partial():
            return partial(inside(thing.func), *inside(thing.args), **inside(thing.keywords))
        case types.MethodType():
            return types.MethodType(thing.__func__, _copied(thing.__self__, home, known))
        case types.FunctionType() if home is None or thing.__globals__ is home:
            return _function(thing, known)
    compiled = type(thing).__name__ == "PjitFunction"  # by jax.jit, which a trace writes out again
    inner = thing.__wrapped__ if compiled else None
    ours = isinstance(inner, types.FunctionType) and (home is None or inner.__globals__ is home)
    return inside(inner) if ours else thing


def _copied(owner: Any, home: Any, known: dict[int, Any]) -> Any:
    """An object with views in its attributes."""
    if not hasattr(owner, "__dict__") or isinstance(owner, type):
        return owner
    twin = copy.copy(owner)
    for name, value in vars(owner).items():
        if isinstance(value, CARRIERS):
            twin.__dict__[name] = detached(value, home, known)
    return twin


def _function(function: types.FunctionType, known: dict[int, Any]) -> types.FunctionType:
    home = function.__globals__
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    own = {
        name: detached(value, home, known)
        for name, value in home.items()
        if name in names and isinstance(value, CARRIERS)
    }
    cells = tuple(_cell(cell, home, known) for cell in function.__closure__ or ())
    twin = types.FunctionType(
        function.__code__, {**home, **own}, function.__name__,
        detached(function.__defaults__, home, known), cells or None,
    )  # fmt: skip
    twin.__kwdefaults__ = detached(function.__kwdefaults__, home, known)
    return twin


def _cell(cell: types.CellType, home: Any, known: dict[int, Any]) -> types.CellType:
    try:
        return types.CellType(detached(cell.cell_contents, home, known))
    except ValueError:  # not filled yet
        return cell


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function and of the functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)
