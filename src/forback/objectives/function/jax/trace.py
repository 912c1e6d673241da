"""Functions as JAX traces them, and the linear part that most of them begin with.

A loss as somebody writes it is, as a rule, f(beta) = g(A beta, beta) with A linear: the
predictions X beta, say. In the trace one can see where linear operations end. Evaluating g is
cheap, and a column of A is cheap: so a fit on a few coordinates need not touch the others.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from forback.core.objective import ObjectiveError

#: Operations that are linear in their one argument.
LINEAR_IN_ONE = {"broadcast_in_dim", "convert_element_type", "copy", "cumsum", "expand_dims"}
LINEAR_IN_ONE |= {"neg", "reduce_sum", "reshape", "rev", "slice", "squeeze", "transpose"}

#: Operations that are linear in any one argument if the others are fixed; in the first only; in
#: all together.
LINEAR_IN_ANY_ONE = {"bcoo_dot_general", "dot_general", "mul"}
LINEAR_IN_THE_FIRST = {"div", "dynamic_slice", "gather"}
LINEAR_IN_ALL = {"add", "add_any", "concatenate", "sub"}

#: Functions called in a trace that are written out.
CALLS = {"jit", "pjit"}

#: What a value is as a function of beta.
FIXED, LINEAR, NONLINEAR = range(3)

#: Types of numbers in single precision.
SINGLE_PRECISION = {np.dtype(kind) for kind in (np.float32, np.complex64, np.int32, np.uint32)}


def import_jax() -> Any:
    """Import JAX, or raise an error that says what to install."""
    try:
        import jax
    except ImportError as error:
        raise ImportError(
            'this needs JAX: pip install "forback[jax]" (or give the derivatives yourself)'
        ) from error
    return jax


def in_double(jax: Any) -> AbstractContextManager[Any]:
    """Return a context in which JAX works in double precision; nothing changes outside."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)  # type: ignore[no-any-return]
    from jax.experimental import enable_x64  # before JAX 0.8

    return enable_x64()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Operation:
    """One operation of a trace; values are known by number."""

    equation: Any
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def __call__(self, *values: Any) -> Sequence[Any]:
        """Return the outputs for these inputs."""
        primitive = self.equation.primitive
        bound = primitive.get_bind_params(self.equation.params)
        # Before JAX 0.7 functions come apart from the other parameters.
        functions, parameters = bound if isinstance(bound, tuple) else ((), bound)
        found = primitive.bind(*functions, *values, **parameters)
        return found if primitive.multiple_results else [found]


@dataclass(frozen=True)
class Unit:
    """A vector that is 1 at one place, or nowhere if that is out of range, and 0 elsewhere."""

    place: Any
    length: int

    def dense(self, jax: Any) -> Any:
        """Return it written out."""
        return (jax.numpy.arange(self.length) == self.place).astype(float)

    def through(self, operation: Operation, values: Sequence[Any], jax: Any) -> Any:
        """Return what an operation makes of it, where that is quicker than in general, or None."""
        parameters = operation.equation.params
        match operation.equation.primitive.name:
            case "slice" if parameters["strides"] is None:
                start, stop = parameters["start_indices"][0], parameters["limit_indices"][0]
                return Unit(self.place - start, stop - start)
            case "dot_general":
                (left, right), batch = parameters["dimension_numbers"]
                own, matrix = (0, values[1]) if values[0] is self else (1, values[0])
                axis = (right, left)[own]
                if any(map(len, batch)) or len(axis) != 1 or np.ndim(matrix) != 2:
                    return None
                place = jax.numpy.where(self.place < 0, self.length, self.place)
                column = jax.numpy.take(matrix, place, axis=axis[0], mode="fill", fill_value=0)
                return column.astype(operation.equation.outvars[0].aval.dtype)
        return None


class Trace:
    """A function of one vector, as a list of operations on numbered values."""

    def __init__(self, jax: Any, fun: Callable[[Any], Any], dim: int) -> None:
        self._jax = jax
        self.dim = dim
        closed = _traced(jax, fun, dim)
        self._numbers = count()
        self._known: dict[int, Any] = {}
        self._operations: list[Operation] = []
        self._data_at: list[int] = []
        self.data: list[Any] = []
        self._beta = next(self._numbers)
        (self._result,) = self._write_out(closed, [self._beta])
        seen = [weakref.ref(array) for array in _remembered(closed)]
        del closed
        self.data = jax.device_put(self.data)
        _forget(jax, seen)
        self._classify()

    @property
    def width(self) -> int:
        """The length of A beta."""
        return sum(int(np.prod(kind.shape)) for kind in self._border.values())

    def linear(self, data: Any, beta: Any) -> Any:
        """Return A beta, or a column of A where beta is a `Unit`."""
        values = {**self._given(data), self._beta: beta}
        self._run(values, (FIXED, LINEAR))
        dense = [self._dense(values[number]) for number in self._border]
        parts = [self._jax.numpy.ravel(part).astype(float) for part in dense]
        return self._jax.numpy.concatenate(parts) if parts else self._jax.numpy.zeros(0)

    def column(self, data: Any, place: Any) -> Any:
        """Return a column of A."""
        return self.linear(data, Unit(place, self.dim))

    def outer(self, data: Any, eta: Any, beta: Any) -> Any:
        """Return g(eta, beta), the value where A beta is `eta`."""
        parts = {}
        begin = 0
        for number, kind in self._border.items():
            size = int(np.prod(kind.shape))
            parts[number] = eta[begin : begin + size].reshape(kind.shape).astype(kind.dtype)
            begin += size
        return self._run({**self._given(data), self._beta: beta, **parts}, (FIXED, NONLINEAR))

    def _given(self, data: Any) -> dict[int, Any]:
        return {**self._known, **dict(zip(self._data_at, data, strict=True))}

    def _run(self, values: dict[int, Any], kinds: tuple[int, ...]) -> Any:
        """Carry out the operations of some kinds, in place; the result, if it is among them."""
        for operation in self._operations:
            if self._kinds[operation.outputs[0]] not in kinds:
                continue
            inputs = [values[number] for number in operation.inputs]
            units = [value for value in inputs if isinstance(value, Unit)]
            quick = units[0].through(operation, inputs, self._jax) if len(units) == 1 else None
            found = operation(*map(self._dense, inputs)) if quick is None else [quick]
            values.update(zip(operation.outputs, found, strict=True))
        return values.get(self._result)

    def _dense(self, value: Any) -> Any:
        return value.dense(self._jax) if isinstance(value, Unit) else value

    def _write_out(self, closed: Any, inputs: Sequence[int]) -> list[int]:
        """Append the operations of a trace, calls written out; the numbers of its results."""
        jaxpr = closed.jaxpr
        data = [next(self._numbers) for _ in closed.consts]
        self.data += closed.consts
        self._data_at += data
        numbers = dict(
            zip(map(id, [*jaxpr.constvars, *jaxpr.invars]), [*data, *inputs], strict=True)
        )

        def number(atom: Any) -> int:
            if not hasattr(atom, "val"):
                return numbers[id(atom)]
            literal = next(self._numbers)
            self._known[literal] = atom.val
            return literal

        for equation in jaxpr.eqns:
            results: list[int] = []
            own = [number(atom) for atom in equation.invars]
            if equation.primitive.name in CALLS:
                results = self._write_out(equation.params["jaxpr"], own)
            elif equation.outvars:  # what gives nothing, such as a print, is left out
                results = [next(self._numbers) for _ in equation.outvars]
                self._operations.append(
                    Operation(self._without_arrays(equation), tuple(own), tuple(results))
                )
            numbers.update(zip(map(id, equation.outvars), results, strict=True))
        return [number(atom) for atom in jaxpr.outvars]

    def _without_arrays(self, equation: Any) -> Any:
        """Replace the user's arrays in the functions of an operation by arrays of JAX."""
        own = {
            name: value.replace(consts=self._jax.device_put(value.consts))
            for name, value in equation.params.items()
            if getattr(value, "consts", None)
        }
        return equation.replace(params={**equation.params, **own}) if own else equation

    def _classify(self) -> None:
        """Find whether each value is fixed, linear in beta, or anything else, and the border.

        The border are the linear values that go into something else, but for beta itself.
        """
        self._kinds = dict.fromkeys([*self._known, *self._data_at], FIXED)
        self._kinds[self._beta] = LINEAR
        linear: dict[int, Any] = {}
        used = {self._result}
        for operation in self._operations:
            kind = _kind(operation.equation, [self._kinds[number] for number in operation.inputs])
            self._kinds.update(dict.fromkeys(operation.outputs, kind))
            if kind == LINEAR:
                avals = [variable.aval for variable in operation.equation.outvars]
                linear.update(zip(operation.outputs, avals, strict=True))
            elif kind == NONLINEAR:
                used.update(operation.inputs)
        self._border = {number: aval for number, aval in linear.items() if number in used}


def _kind(equation: Any, inputs: Sequence[int]) -> int:
    """Classify the output of an operation (fixed, linear or other) from its inputs."""
    if all(kind == FIXED for kind in inputs):
        return FIXED
    name, linear = equation.primitive.name, inputs.count(LINEAR)
    if equation.params.get("fill_value"):  # something else than zero where nothing is found
        return NONLINEAR
    real = all(out.aval.dtype.kind == "f" for out in equation.outvars)
    if NONLINEAR in inputs or not real:
        return NONLINEAR
    straight = (
        (name in LINEAR_IN_ONE and len(inputs) == 1)
        or (name in LINEAR_IN_ANY_ONE and linear == 1)
        or (name in LINEAR_IN_THE_FIRST and linear == 1 and inputs[0] == LINEAR)
        or (name in LINEAR_IN_ALL and linear == len(inputs))
    )
    return LINEAR if straight else NONLINEAR


def _forget(jax: Any, seen: Sequence[weakref.ref[Any]]) -> None:
    """Let JAX forget the arrays it has seen in double precision.

    It remembers arrays by their identity and the precision in which it saw them, as long as some
    trace refers to them. Whoever uses them in single precision later would get them in double.
    """
    for forget in (lambda: None, jax.clear_caches, gc.collect):
        forget()
        if all(array() is None for array in seen):
            return


def trace(jax: Any, fun: Callable[..., Any], *given: Any) -> Any:
    """Return what JAX makes of a function, in double precision.

    If somebody has used it in single precision, JAX remembers its arrays in that; then it has to
    forget everything, and compiles again what it had compiled before.
    """
    once = partial(fun)  # JAX remembers traces as long as their function exists
    try:
        closed = jax.make_jaxpr(once)(*given)
        if not SINGLE_PRECISION.intersection(array.dtype for array in _remembered(closed)):
            return closed
    except (TypeError, ValueError):  # arrays of different precision meet
        pass
    closed = None  # or it would be remembered
    jax.clear_caches()
    gc.collect()
    return jax.make_jaxpr(once)(*given)


def _remembered(closed: Any) -> Iterator[Any]:
    """What JAX has made of the NumPy arrays that a trace, or a function called in it, refers to.

    In older JAX (0.4, say) that is nothing: they are the user's own arrays.
    """
    for array in closed.consts:
        if isinstance(array, np.ndarray) and type(array) is not np.ndarray:
            yield array
    for equation in closed.jaxpr.eqns:
        for value in equation.params.values():
            for part in value if isinstance(value, tuple | list) else (value,):
                if hasattr(part, "jaxpr") and hasattr(part, "consts"):
                    yield from _remembered(part)


def _traced(jax: Any, fun: Callable[[Any], Any], dim: int) -> Any:
    """What JAX makes of the function, if it is one of a vector that gives a real number."""
    try:
        closed = trace(jax, fun, np.zeros(dim))
    except (jax.errors.TracerArrayConversionError, jax.errors.ConcretizationTypeError) as error:
        raise ObjectiveError(
            "fun cannot be traced by JAX: write it with jax.numpy instead of numpy, without "
            f"branching on values ({str(error).splitlines()[0]})"
        ) from error
    except (IndexError, TypeError, ValueError) as error:
        first = (str(error) or repr(error)).splitlines()[0]
        raise ObjectiveError(f"fun fails for a vector of length dim={dim}: {first}") from error
    shapes = [out.shape for out in closed.out_avals]
    if shapes != [()]:
        got = f"an array of shape {shapes[0]}" if len(shapes) == 1 else f"{len(shapes)} arrays"
        raise ObjectiveError(f"fun must return one number, got {got}")
    if closed.out_avals[0].dtype.kind != "f":
        raise ObjectiveError(f"fun must return a real number, got {closed.out_avals[0].dtype}")
    return closed
