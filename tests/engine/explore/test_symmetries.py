"""Symmetries are found exactly where they are, for a hundred calls at most, traced and as black boxes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import supermodel as sm
from supermodel.engine.explore.symmetries import symmetries
from supermodel.engine.policy import SYMMETRY_CALLS
from supermodel.engine.probe import canonical
from supermodel.models.symmetry import Circle, Exchange

RNG = np.random.default_rng(4)
T = np.sort(RNG.uniform(0.3, 10, 30))
Y = np.sin(1.3 * T + 0.4) + 0.7 * np.sin(2.9 * T + 2) + 0.2 * RNG.standard_normal(30)
X = RNG.standard_normal((30, 4))
N, U, TURN = dist.Normal(0, 2), dist.Uniform(0.5, 5), dist.Uniform(0, 2 * np.pi)


def square(residual, sd=0.3):
    return -0.5 * jnp.sum((residual / sd) ** 2)


def waves(p, k=2):
    return square(Y - sum(p[f"A{i}"] * jnp.sin(p[f"f{i}"] * T + p[f"h{i}"]) for i in range(1, k + 1)))


def sines(widths=(5, 5), **kw):
    priors = {f"f{k}": dist.Uniform(0.5, width) for k, width in enumerate(widths, 1)}
    for k in range(1, len(widths) + 1):
        priors |= {f"A{k}": dist.HalfNormal(2), f"h{k}": TURN}
    return priors


def mixture(p):
    terms = jnp.log(p["w"]) - 0.5 * ((Y[:, None] - p["m"]) / p["s"]) ** 2 - jnp.log(p["s"])
    return jnp.sum(jax.scipy.special.logsumexp(terms, axis=-1))


def shared(p):
    """Two components of shares w and 1 - w."""
    one = jnp.log(p["w"]) - 0.5 * ((Y - p["m1"]) / p["s1"]) ** 2 - jnp.log(p["s1"])
    two = jnp.log1p(-p["w"]) - 0.5 * ((Y - p["m2"]) / p["s2"]) ** 2 - jnp.log(p["s2"])
    return jnp.sum(jnp.logaddexp(one, two))


def rows(p):
    far = jnp.sum((jnp.stack([Y, T], axis=1)[:, None] - p["c"]) ** 2, axis=-1)
    return jnp.sum(jax.scipy.special.logsumexp(-0.5 * far, axis=1))


def factors(p):
    return square(X[:6] - p["z"] @ p["L"])


MIXTURE = {"m": N.expand([3]), "s": dist.LogNormal(0, 0.5).expand([3]), "w": dist.Dirichlet(np.full(3, 2.0))}
SHARED = {"m1": N, "m2": N, "s1": dist.LogNormal(0, 0.6), "s2": dist.LogNormal(0, 0.6)}
FACTORS = {"L": dist.Normal(0, 1).expand([1, 4]), "z": dist.Normal(0, 1).expand([6, 1])}
GROUND = [
    "(L[0, 0], L[0, 1], L[0, 2], L[0, 3], z[0, 0], z[1, 0], z[2, 0], z[3, 0], z[4, 0], z[5, 0]) may be reflected together"
]
PAIR = "(A1, f1, h1) and (A2, f2, h2) are exchangeable"
ROUND = ["h1 goes round a circle of 6.283", "h2 goes round a circle of 6.283"]
HALF = "h goes round a circle of 6.283, and ln L repeats itself 2 times a turn: one of these parts is kept"

MODELS = {
    "two sines": (sines(), waves, [PAIR, *ROUND]),
    "one sine": (sines((5,)), functools.partial(waves, k=1), ROUND[:1]),
    "sines of unequal priors": (sines((5, 5.001)), waves, ROUND),
    "sines, one a little favoured": (sines(), lambda p: waves(p) + 1e-5 * p["f1"], ROUND),
    "three sines": (
        sines((5, 5, 5)), functools.partial(waves, k=3),
        ["(A1, f1, h1) and (A2, f2, h2) and (A3, f3, h3) are exchangeable", *ROUND, "h3 goes round a circle of 6.283"],
    ),
    "four in vectors": (
        {"f": U.expand([4]), "A": N.expand([4])},
        lambda p: square(Y - jnp.sum(p["A"] * jnp.cos(T[:, None] * p["f"]), axis=1)),
        ["(A[0], f[0]) and (A[1], f[1]) and (A[2], f[2]) and (A[3], f[3]) are exchangeable"],
    ),
    "two of three alike": (
        {"f": U.expand([3]), "A": dist.HalfNormal(2).expand([3])},
        lambda p: square(Y - jnp.sum(p["A"] * jnp.cos(T[:, None] * p["f"]) * jnp.array([1.0, 1.0, 0.9]), axis=1)),
        ["(A[0], f[0]) and (A[1], f[1]) are exchangeable"],
    ),
    "weights of a Dirichlet with their means": (
        MIXTURE, mixture, ["(m[0], s[0], w[0]) and (m[1], s[1], w[1]) and (m[2], s[2], w[2]) are exchangeable"],
    ),
    "an uneven Dirichlet": (
        MIXTURE | {"w": dist.Dirichlet(np.array([2.0, 2.0, 3.0]))}, mixture,
        ["(m[0], s[0], w[0]) and (m[1], s[1], w[1]) are exchangeable"],
    ),
    "w and 1 - w": (SHARED | {"w": dist.Beta(2, 2)}, shared, ["(m1, s1) and (m2, s2) are exchangeable, w being reflected"]),
    "w and 1 - w, uneven": (SHARED | {"w": dist.Beta(2, 3)}, shared, []),
    "rows of a matrix": (
        {"c": N.expand([3, 2])}, rows, ["(c[0, 0], c[0, 1]) and (c[1, 0], c[1, 1]) and (c[2, 0], c[2, 1]) are exchangeable"],
    ),
    "a factor and its loadings": (FACTORS, factors, GROUND),
    "loadings above zero": (FACTORS | {"L": dist.HalfNormal(1).expand([1, 4])}, factors, []),
    "half a turn": ({"h": TURN, "a": dist.HalfNormal(1)}, lambda p: square(Y - p["a"] * jnp.cos(p["h"] - T) ** 2), [HALF]),
    "a kink at the cut": (
        {"h": TURN, "a": dist.HalfNormal(1)}, lambda p: square(Y - p["a"] * jnp.abs(p["h"] - 3.0) * (p["h"] - 3.28) ** 2), [],
    ),
    "a law on a circle": (
        {"h": dist.VonMises(0.2, 1.0), "a": dist.HalfNormal(1)}, lambda p: square(Y - p["a"] * jnp.cos(p["h"] - T)),
        ["h goes round a circle of 6.283"],
    ),
    "a share is no angle": ({"h": dist.Uniform(0, 1), "a": dist.HalfNormal(1)}, lambda p: square(Y - p["a"] * p["h"] * T), []),
    "a regression": (
        {"b": dist.Normal(0, 1).expand([4]), "s": dist.HalfNormal(1)},
        lambda p: square((Y - X @ p["b"]) / p["s"]) - 30 * jnp.log(p["s"]), [],
    ),
}  # fmt: skip


def looked(model):
    """The symmetries that 64 prior draws tell, and the calls that it took."""
    joint, calls = canonical({"model": model}, None)[0], []

    def ask(x):
        calls.append(len(x))
        return joint.log_likelihood_at(x)

    x, values = joint.probe(np.random.default_rng(0), 64)
    return symmetries(joint, x, values, ask), sum(calls)


@pytest.mark.parametrize("kind", ["traced", "black"])
@pytest.mark.parametrize("name", MODELS)
def test_found_exactly_where_they_are_for_a_hundred_calls(name, kind):
    priors, log_likelihood, expected = MODELS[name]
    model = sm.Model(priors, log_likelihood if kind == "traced" else lambda p: float(COMPILED[name](p)))
    found, calls = looked(model)
    assert [str(symmetry) for symmetry in found] == expected
    assert calls <= sum(SYMMETRY_CALLS) == 100


def _plain(log_likelihood):
    """As a black box: what JAX is not allowed to see is computed on NumPy's numbers."""
    program = jax.jit(log_likelihood)
    return lambda p: program({name: np.asarray(value) for name, value in p.items()})


COMPILED = {name: _plain(log_likelihood) for name, (_, log_likelihood, _) in MODELS.items()}


def test_a_black_box_of_scipy_priors():
    def log_likelihood(p):
        return float(np.sum(np.logaddexp(*(-0.5 * (Y - p[m]) ** 2 for m in ("a", "b")))))

    alike = sm.Model(dict.fromkeys("ab", stats.norm(0, 2)), log_likelihood)
    assert [str(s) for s in looked(alike)[0]] == ["a and b are exchangeable"]
    other = sm.Model({"a": stats.norm(0, 2), "b": stats.norm(0, 2.01)}, log_likelihood)
    assert looked(other)[0] == ()


def test_what_is_declared_is_taken_and_what_is_forbidden_is_left():
    declared = sm.Model(sines(), waves, exchangeable=[("f1", "A1", "h1"), ("f2", "A2", "h2")], periodic=["h2"])
    found, calls = looked(declared)
    assert isinstance(found[0], Exchange) and [s.name for s in found[1:]] == ["h2"] and calls == 0
    assert looked(sm.Model(sines(), waves, exchangeable=False, periodic=False)) == ((), 0)
    circles, _ = looked(sm.Model(sines(), waves, exchangeable=False))
    assert all(isinstance(s, Circle) for s in circles) and len(circles) == 2


def test_parameters_that_nobody_reads_are_no_symmetry():
    joint = canonical({"model": sm.Model({"a": N, "b": N, "h": TURN, "c": N}, lambda p: -((p["c"] - 1) ** 2))}, None)[0]
    x, values = joint.probe(np.random.default_rng(0), 64)
    assert symmetries(joint, x, values, joint.log_likelihood_at, ("a", "b", "h")) == ()


def test_a_likelihood_that_is_impossible_almost_everywhere_tells_nothing():
    model = sm.Model({"a": N, "b": N}, lambda p: jnp.where(p["a"] > 2.5, 0.0, -jnp.inf) - p["b"] ** 2)
    assert not any(isinstance(s, Exchange) for s in looked(model)[0])
