r"""Single precision in a model: priors built anew in doubles, and how far rounded numbers in a likelihood carry the answer.

`jnp.asarray(x)` outside double precision rounds x to 24 bits, and no later switch brings the rest back. A likelihood that
closes over such numbers is smooth, so that nothing near it tells of the rounding: the numbers themselves must be asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from supermodel.jax_scope import in_float64
from supermodel.models.families import Plain, member_of
from supermodel.models.many_points import compiled, over_points, variables

BITS = 16  # a number of so few bits was not rounded to 24: one rounded number in 2^8 looks like one
REPEATS = 16  # of random last bits: their root mean square is known to a sixth


# -- priors -------------------------------------------------------------------------------------------------------


def is_single(number: Any) -> bool:
    """Whether a number or an array is a float of less than double precision."""
    return str(getattr(number, "dtype", "")) in ("float32", "float16", "bfloat16")


def as_written(number: Any) -> Any:
    """The shortest decimals that round to a float32 number, as doubles: 0.1 for 0.10000000149. Others are left alone.

    >>> as_written(np.float32(0.1)), as_written(0.1)
    (0.1, 0.1)
    """
    if not is_single(number):
        return number
    array = np.asarray(number)
    decimals = np.array([float(str(v)) for v in array.ravel()]).reshape(array.shape)
    return float(decimals) if array.ndim == 0 else decimals


@in_float64
def in_doubles(distribution: Any) -> Any:
    """A distribution of a known family with its arguments as they were written; any other one as it is.

    Also where only what NumPyro derived from the arguments is single (ln of the ends of a LogUniform). A covariance is
    known by its factor, whose decimals nobody wrote: it stays as it is.
    """
    import jax

    if not any(map(is_single, jax.tree.leaves(distribution))):
        return distribution
    member = member_of(distribution)
    if member is None or not isinstance(member.family.plain, Plain):
        return distribution
    return member._replace(arguments={name: as_written(value) for name, value in member.arguments.items()}).build()


# -- likelihoods --------------------------------------------------------------------------------------------------


@in_float64
def shifts(traces: Sequence[Any], points: np.ndarray, name: str, width: int = 1) -> np.ndarray:
    r"""Nats by which rounding to single precision may have moved $\ln Z$, (REPEATS,): its draws, all 0 without such numbers.

    $\partial \ln Z / \partial c = E[\partial \ln J / \partial c]$ over the posterior, and a rounded number c is unsure by
    $1/\sqrt{12}$ of a unit in its last place. All of them are moved by a unit up or down at random (Monte Carlo
    arithmetic, Parker 1997), and the mean of $\ln J$ over `points` is looked at. `traces`: jaxprs that add up to ln J,
    which take `width` numbers a point.
    Draws of one number are the same in all models that hold it: what cancels in a Bayes factor cancels here. NaN where
    the programs cannot be walked through.
    """
    import jax
    import jax.numpy as jnp

    if not any(map(_has_single, traces)):
        return np.zeros(REPEATS)

    def mean(repeat):
        nudge = _Nudge(repeat)
        each = jax.vmap(lambda x: sum(_evaluate(trace, [_Number(x, name)], nudge)[0].value for trace in traces))
        return jnp.mean(each(jnp.asarray(points)))

    try:
        many = compiled(over_points(mean, width * len(points)))
        values = np.asarray(many(np.arange(REPEATS)), float)
    except Exception:  # a primitive that is not applied by its parameters alone: the answer stands without its rounding
        return np.full(REPEATS, np.nan)
    return (values - values.mean()) / np.sqrt(12 * (1 - 1 / REPEATS))


def _has_single(trace: Any) -> bool:
    return any(is_single(v.aval) or (_is_literal(v) and bool(_is_rounded(v.val))) for v in variables(trace.jaxpr))


def _is_literal(variable: Any) -> bool:
    return hasattr(variable, "val")


def _is_rounded(number: Any) -> np.ndarray:
    """Where a number is one of single precision that something longer may have been rounded to: no integer, no 3/8.

    JAX writes a scalar of single precision into the program as a double: its bits betray it.
    """
    value = np.asarray(number)
    if value.dtype.kind in "iub" or value.dtype == complex:
        return np.zeros(value.shape, bool)
    value = value.astype(float)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        bits = np.ldexp(np.frexp(value)[0], BITS)
        return (value.astype(np.float32) == value) & (bits != np.floor(bits)) & (value != np.round(value))


class _Number(NamedTuple):
    """A value in a program, and a name that tells how it was made: equal names, equal numbers."""

    value: Any
    origin: str


def _origin(*parts: Any) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


class _Nudge:
    """Moves numbers of single precision by a unit in their last place, up or down: at random, by `origin` and repeat."""

    def __init__(self, repeat: Any):
        self.repeat = repeat

    def constant(self, value: Any) -> _Number:
        """A number that is known; moved unless it is exact."""
        import jax.numpy as jnp

        array = np.asarray(value)
        origin = _origin(array.shape, str(array.dtype), hashlib.sha256(array.tobytes()).hexdigest())
        where = _is_rounded(array) if is_single(array) or array.ndim == 0 else np.False_
        if not np.any(where):
            return _Number(value, origin)
        single = array.astype(np.float32) if array.dtype == float else array
        moved = np.where(where, np.nextafter(single, np.inf * self._signs(origin, array.shape, single.dtype)), single)
        return _Number(jnp.asarray(moved.astype(array.dtype))[self.repeat], origin)

    def result(self, value: Any, origin: str) -> Any:
        """A number that was computed."""
        import jax.numpy as jnp

        factors = 1 + jnp.finfo(value.dtype).eps * self._signs(origin, jnp.shape(value), value.dtype)
        return value * jnp.asarray(factors)[self.repeat]

    @staticmethod
    def _signs(origin: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return np.random.default_rng(int(origin, 16)).choice(np.array([-1, 1], dtype), (REPEATS, *shape))


# These only move numbers about; of a conversion it is asked whether it rounds.
EXACT = frozenset(
    "broadcast_in_dim reshape squeeze expand_dims slice dynamic_slice gather transpose concatenate rev select_n neg abs sign "
    "max min copy copy_p stop_gradient pad reduce_max reduce_min sort cummax cummin optimization_barrier".split()
)


def _evaluate(trace: Any, arguments: Sequence[_Number], nudge: _Nudge) -> list[_Number]:
    """The outputs of a closed jaxpr when every number of single precision in it is nudged; calls are walked through."""
    known = dict(zip(trace.jaxpr.constvars, map(nudge.constant, trace.consts), strict=True))
    known.update(zip(trace.jaxpr.invars, arguments, strict=True))

    def read(variable: Any) -> _Number:
        return nudge.constant(variable.val) if _is_literal(variable) else known[variable]

    for equation in trace.jaxpr.eqns:
        inputs = list(map(read, equation.invars))
        called = _called(equation)
        outputs = _applied(equation, inputs, nudge) if called is None else _evaluate(called, inputs, nudge)
        known.update(zip(equation.outvars, outputs, strict=True))
    return [read(variable) for variable in trace.jaxpr.outvars]


CALLS = frozenset("jit pjit closed_call core_call custom_jvp_call custom_vjp_call custom_vjp_call_jaxpr".split())


def _called(equation: Any) -> Any:
    """The closed jaxpr that an equation calls once, whole; None for arithmetic, loops and branches."""
    if equation.primitive.name not in CALLS:
        return None
    parameters = (equation.params.get(name) for name in ("jaxpr", "call_jaxpr", "fun_jaxpr"))
    return next((p for p in parameters if hasattr(p, "consts")), None)


def _applied(equation: Any, inputs: list[_Number], nudge: _Nudge) -> list[_Number]:
    """The outputs of one primitive, nudged if they were rounded."""
    values = equation.primitive.bind(*(number.value for number in inputs), **equation.params)
    values = values if equation.primitive.multiple_results else [values]
    made = equation.primitive.name, str(equation.params), [number.origin for number in inputs]
    outputs = [_Number(value, _origin(i, *made)) for i, value in enumerate(values)]
    if not _rounds(equation):
        return outputs
    return [out._replace(value=nudge.result(*out)) if is_single(out.value) else out for out in outputs]


def _rounds(equation: Any) -> bool:
    if equation.primitive.name == "convert_element_type":
        return str(equation.invars[0].aval.dtype) == "float64"
    return equation.primitive.name not in EXACT
