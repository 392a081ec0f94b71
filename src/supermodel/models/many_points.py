r"""A traced function at many points at once, in parts that fit in memory, with its data beside the program and not in it.

A likelihood of $n$ data takes $n$ numbers a point, of which XLA keeps at least one array: 64 points of a million data are
half a gigabyte. Few points at a time are faster as well, since they stay in the processor's cache. And `jax.jit` writes the
arrays that a function closes over into every program, some three times while it compiles, and compiles anew for other data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

NUMBERS = 2**22  # in the largest array of a part, 32 MiB: 64 points of fewer than 65 536 data are computed all at once
POINTS = 10_007  # a prime: arrays that a trace for so many points makes bigger are known by their size


def width(trace: Any, dimension: int) -> int:
    """Numbers in the largest array that a traced function of one point, (dimension,), needs for every point.

    What is the same for all points, such as a design matrix, does not count.
    """
    import jax
    from jax.extend.core import jaxpr_as_fun

    many = jax.make_jaxpr(jax.vmap(jaxpr_as_fun(trace)))(jax.ShapeDtypeStruct((POINTS, dimension), float))
    sizes = [getattr(variable.aval, "size", 0) for variable in variables(many.jaxpr)]
    return max((size // POINTS for size in sizes if size and size % POINTS == 0), default=1)


def variables(jaxpr: Any) -> Iterator[Any]:
    """All variables and literals of a jaxpr and of those within it."""
    yield from (*jaxpr.constvars, *jaxpr.invars)
    for equation in jaxpr.eqns:
        yield from (*equation.invars, *equation.outvars)
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                inner = getattr(inner, "jaxpr", inner)  # of a closed one
                if hasattr(inner, "eqns"):
                    yield from variables(inner)


def over_points(function: Callable[[Any], Any], width: int) -> Callable[[Any], Any]:
    """`function` of one point as one of points (n, ...): all of them at once, or as many as `NUMBERS` allow."""
    import jax

    at_once = max(NUMBERS // width, 1)

    def many(points):
        if len(points) <= at_once:
            return jax.vmap(function)(points)
        return jax.lax.map(function, points, batch_size=at_once)

    return many


def in_parts(program: Callable[[Any], Any], points: np.ndarray, size: int) -> Any:
    """`program` of many points, `size` at a time, the last of them copies if need be: one shape, one compilation."""
    import jax

    n = len(points)
    rows = np.minimum(np.arange(-(-n // size) * size), n - 1).reshape(-1, size)
    found = [jax.tree.map(np.asarray, program(points[part])) for part in rows]  # one after the other: memory is for one
    return jax.tree.map(lambda *parts: np.concatenate(parts)[:n], *found)


# -- data beside programs -------------------------------------------------------------------------------------------

_outside: WeakValueDictionary[Any, _Held] = WeakValueDictionary()  # one copy of an array for all programs that live


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.jit` with the arrays that the function closes over as arguments of the program.

    Other data of the same shape make the same program: JAX's cache of compiled ones has it, and nothing is compiled.
    """
    import jax

    programs: dict[Any, Callable[..., Any]] = {}

    def call(*arguments):
        leaves, tree = jax.tree.flatten(arguments)
        kind = tree, tuple((np.shape(leaf), str(jax.numpy.result_type(leaf))) for leaf in leaves)
        if kind not in programs:
            programs[kind] = _hoisted(function, arguments)
        return programs[kind](leaves)

    return call


def _hoisted(function: Callable[..., Any], arguments: Any) -> Callable[..., Any]:
    import jax

    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
    held = [_Held.of(getattr(constant, "val", constant)) for constant in closed.consts]
    program = jax.jit(lambda held, leaves: jax.core.eval_jaxpr(closed.jaxpr, held, *leaves))
    tree = jax.tree.structure(shapes)
    return lambda leaves: jax.tree.unflatten(tree, program([h.array for h in held], leaves))


class _Held:
    """An array for programs, and the one that it is a copy of: while that lives, no other is at its place in memory."""

    def __init__(self, original: Any):
        import jax.numpy as jnp

        self.original, self.array = original, jnp.asarray(original)

    @classmethod
    def of(cls, original: Any) -> _Held:
        if not isinstance(original, np.ndarray):
            return cls(original)
        place = original.ctypes.data, original.shape, original.strides, original.dtype.str
        held = _outside.get(place)
        if held is None or not np.array_equal(held.array, original, equal_nan=original.dtype.kind == "f"):
            held = _outside[place] = cls(original)  # new, or changed in place since
        return held
