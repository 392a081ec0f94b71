r"""Parameters on which $\ln L$ does not depend: a misspelt name, mostly, which no evidence can show.

Of a traced likelihood the program itself tells; a black box is asked again at prior draws in which one parameter is drawn
anew. A parameter on whose value the prior of another one depends (a hierarchy's) is read through that one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from supermodel.jax_scope import in_float64
from supermodel.models.joint import Joint
from supermodel.models.space import Space

TRIES = 24  # further draws at which ln L must stay what it was: one that moves it in a fifth of the prior is seen in 99 of 100
ULPS = 4  # units in the last place by which one point may differ in two vectorised calls
CALLS = ("jit", "pjit")  # equations that stand for a program of their own
ADDITIVE = 1e-6  # nats to which the log prior of independent parts is a sum

Ask = Callable[[np.ndarray], np.ndarray]


def unread(joint: Joint, points: np.ndarray, values: np.ndarray, ask: Ask | None = None) -> tuple[str, ...]:
    """The parameters that ln L does not depend on, by prior draws and ln L there; `ask` gives ln L at further points.

    Without `ask` a black box counts as reading all of them.
    """
    names = tuple(joint.space.names)
    if joint.is_traceable:
        found = _of_program(joint, names)
    else:
        found = names if ask is None else _of_black_box(joint, names, points, values, ask)
        found = () if ask is None else found
    return tuple(name for name in found if _stands_alone(joint, name, points))


@in_float64
def _of_program(joint: Joint, names: Sequence[str]) -> tuple[str, ...]:
    import jax

    shapes = jax.eval_shape(joint.space.constrain, jax.ShapeDtypeStruct((joint.dimension,), float))
    given = [shapes[name] for name in names]
    program = jax.make_jaxpr(lambda *each: joint.model.log_likelihood(dict(zip(names, each, strict=True)), joint.data))(
        *given
    ).jaxpr
    return tuple(name for name, used in zip(names, _used(program, [True]), strict=True) if not used)


def _used(program: Any, wanted: Sequence[bool]) -> list[bool]:
    """Which inputs of a jaxpr its wanted outputs are made from."""

    def variables(atoms: Any, flags: Sequence[bool]) -> set[Any]:
        return {atom for atom, flag in zip(atoms, flags, strict=True) if flag and not hasattr(atom, "val")}

    live = variables(program.outvars, wanted)
    for line in reversed(program.eqns):
        out = [variable in live for variable in line.outvars]
        if any(out):
            is_call = line.primitive.name in CALLS
            live |= variables(
                line.invars, _used(line.params["jaxpr"].jaxpr, out) if is_call else [True] * len(line.invars)
            )
    return [variable in live for variable in program.invars]


def _of_black_box(
    joint: Joint, names: Sequence[str], points: np.ndarray, values: np.ndarray, ask: Ask
) -> tuple[str, ...]:
    """Those whose other values, at the highest prior draws, leave ln L to rounding what it was."""
    order = [int(i) for i in np.argsort(-values, kind="stable") if np.isfinite(values[i])]
    if not order or len(points) < 2:
        return ()
    left = _unmoved(joint, [(name, order[0], 1) for name in names], points, ask)
    if not left:
        return ()
    again = [(name, order[k % len(order)], 2 + k) for name in left for k in range(TRIES)]
    return _unmoved(joint, again, points, ask)


def _unmoved(joint: Joint, trials: list[tuple[str, int, int]], points: np.ndarray, ask: Ask) -> tuple[str, ...]:
    """Of (parameter, draw, how many draws further its other value is taken from), the parameters that never moved ln L."""
    rows = sorted({row for _, row, _ in trials})
    moved = []
    for name, row, step in trials:
        other, place = points[row].copy(), joint.space.slices[name]
        step = step % len(points) or 1
        other[place] = points[(row + step) % len(points), place]
        moved.append(other)
    found = ask(np.concatenate([points[rows], np.array(moved)]))
    before = dict(zip(rows, found[: len(rows)], strict=True))
    here = np.array([before[row] for _, row, _ in trials])
    with np.errstate(invalid="ignore"):
        still = np.abs(found[len(rows) :] - here) <= ULPS * np.spacing(np.abs(here))
    moving = {name for (name, _, _), same in zip(trials, still, strict=True) if not same}
    return tuple(dict.fromkeys(name for name, _, _ in trials if name not in moving))


def _stands_alone(joint: Joint, name: str, points: np.ndarray) -> bool:
    """Whether no other parameter's prior depends on this one: ln prior is then a sum, which is swapped without loss."""
    if isinstance(joint.space, Space):
        return True
    here, there, place = points[:-1], points[1:], joint.space.slices[name]
    one, other = here.copy(), there.copy()
    one[:, place], other[:, place] = there[:, place], here[:, place]
    before, after = (
        joint.space.log_prior_at(a) + joint.space.log_prior_at(b) for a, b in ((here, there), (one, other))
    )
    known = np.isfinite(before)
    with np.errstate(invalid="ignore"):
        return bool(np.all(np.abs(after - before)[known] <= ADDITIVE * (1 + np.abs(before[known]))))
