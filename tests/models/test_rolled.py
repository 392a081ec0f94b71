"""Loops written out over names: as few equations as a vector takes, and the same values and gradients to rounding."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import supermodel as sm
from supermodel.jax_scope import in_float64
from supermodel.models.joint import Joint
from supermodel.models.rolled import LOOP, rolled

N_DATA, MOST = 30, 101
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(N_DATA, MOST + 1)), rng.normal(size=N_DATA)
X_JAX = jnp.asarray(X)
COLUMNS = list(jnp.asarray(X.T))


def fit(mean):
    return dist.Normal(mean, 1.3).log_prob(Y).sum()


# Of n numbers b, what a likelihood may do with them one by one.
WRITTEN = {
    "stack": lambda b: fit(X[:, : len(b)] @ jnp.stack(b)),
    "array": lambda b: fit(X[:, : len(b)] @ jnp.array(b)),
    "columns": lambda b: fit(jnp.stack([v * X[:, i] for i, v in enumerate(b)], axis=1).sum(axis=1)),
    "sum": lambda b: fit(sum(X[:, i] * v for i, v in enumerate(b))),
    "sum of JAX's": lambda b: fit(0.2 + sum(v * X_JAX[:, i] for i, v in enumerate(b))),
    "one after the other": lambda b: fit(b[0] + sum(b[i] * X[:, i] for i in range(len(b) - 1, 0, -1))),
    "a list of arrays": lambda b: fit(sum(v * x for v, x in zip(b, COLUMNS, strict=False))),
    "every second": lambda b: fit(sum(v * X[:, i] for i, v in enumerate(b[::2])) - sum(b[1::2])),
    "not linear": lambda b: fit(sum(jnp.exp(0.1 * v) * X[:, i] ** 2 + b[0] * v for i, v in enumerate(b))),
    "neighbours": lambda b: sum(jnp.log1p((v - w) ** 2) for v, w in zip(b, b[1:], strict=False)) + sum(b) ** 2,
    "densities": lambda b: sum(dist.Normal(v, 1.0 + i).log_prob(0.1 * i) for i, v in enumerate(b)),
    "within jit": jax.jit(lambda b: fit(sum(X[:, i] * v for i, v in enumerate(b)))),
    "jit within": lambda b: fit(sum(jax.jit(lambda v, x: jnp.where(v > 0, v, 0.1 * v) * x)(v, X[:, i]) for i, v in enumerate(b))),
    "twice the same": lambda b: fit(sum(v + v for v in b) + sum(2.0 * v for v in [*b, *b])),
}  # fmt: skip


def of_vector(write):
    return lambda x: write([x[i] for i in range(x.shape[0])])


def trace(function, n):
    return jax.make_jaxpr(function)(jnp.zeros(n))


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_loop_takes_as_many_equations_whatever_its_length(kind):
    few, many = (trace(rolled(trace(of_vector(WRITTEN[kind]), n)), n) for n in (2 * LOOP + 1, MOST))
    assert len(few.jaxpr.eqns) == len(many.jaxpr.eqns)
    assert len(trace(of_vector(WRITTEN[kind]), MOST).jaxpr.eqns) > MOST or kind == "within jit"


@pytest.mark.parametrize("kind", WRITTEN)
def test_values_and_gradients_are_the_same_to_rounding(kind, rng):
    n = 2 * LOOP + 1
    written, x = of_vector(WRITTEN[kind]), rng.normal(size=n)
    done = rolled(trace(written, n))
    expected, found = (jax.value_and_grad(function)(x) for function in (written, done))
    # Sums of as many terms as there are numbers and data, in another order.
    rounding = 4 * n * N_DATA * np.finfo(float).eps
    np.testing.assert_allclose(found[0], expected[0], rtol=rounding)
    np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=rounding * np.abs(expected[1]).max())
    x[3] += 1e-6  # a number that went elsewhere would be noticed
    assert abs(float(done(x) - expected[0])) > rounding * abs(expected[0])


STEPS = {
    "times": lambda a, b, c: a * b,
    "plus": lambda a, b, c: a + b + c,
    "scaled": lambda a, b, c: c * a,
    "power": lambda a, b, c: a**2 - b,
    "bent": lambda a, b, c: jnp.where(a > c, a, jnp.tanh(b)),
    "soft": lambda a, b, c: jax.nn.softplus(a) + b,  # with a derivative of its own
    "branch": lambda a, b, c: jax.lax.cond(a > b, lambda: a, lambda: 0.5 * b),
    "array": lambda a, b, c: jnp.sum(jnp.stack([a, b]) * jnp.array([1.0, c])),
}


@settings(max_examples=12)  # each is compiled twice
@given(
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(1, 7), st.booleans()), min_size=1, max_size=4),
    st.permutations(range(2 * LOOP)),
)
def test_whatever_was_written_is_what_is_computed(steps, order):
    def written(x):
        row = [x[i] for i in order]
        for name, shift, constant in steps:
            other = row[shift:] + row[:shift]
            row = [
                STEPS[name](a, b, 0.3 if constant else 0.1 * i) for i, (a, b) in enumerate(zip(row, other, strict=True))
            ]
        return sum(row[: 2 * LOOP - 3]) + row[2] * jnp.stack(row).max()

    x = np.random.default_rng(len(steps)).uniform(-1, 1, 2 * LOOP)
    done = rolled(trace(written, 2 * LOOP))
    value, gradient = jax.value_and_grad(done)(x)
    expected, slope = jax.value_and_grad(written)(x)
    np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(gradient, slope, rtol=1e-10, atol=1e-10)


def test_what_has_no_loop_is_left_as_it_is():
    assert rolled(trace(lambda x: fit(X[:, :MOST] @ x), MOST)) is None
    assert rolled(trace(of_vector(WRITTEN["sum"]), LOOP - 1)) is None
    assert rolled(trace(lambda x: x[0] + x[3] * jnp.exp(x[7]) - (x[8] - x[1]) ** x[2], 9)) is None


def equations(joint):
    return len(jax.make_jaxpr(jax.value_and_grad(joint))(jnp.zeros(joint.dimension)).jaxpr.eqns)


@pytest.mark.parametrize("kind", ["stack", "array", "sum"])
@in_float64
def test_a_hundred_named_scalars_are_compiled_like_one_vector(kind):
    names = [f"b{i}" for i in range(MOST)]
    named = Joint(
        "named", sm.Model(dict.fromkeys(names, dist.Normal(0, 1)), lambda p: WRITTEN[kind]([p[n] for n in names]))
    )
    vector = Joint("vector", sm.Model({"b": dist.Normal(np.zeros(MOST), 1)}, lambda p: fit(X[:, :MOST] @ p["b"])))
    assert equations(named) < 2 * equations(vector)
    assert named.width == vector.width


@in_float64
def test_a_hundred_sites_of_numpyro_are_one_loop_too():
    def model(n):
        b = jnp.stack([numpyro.sample(f"b{i}", dist.Normal(0.0, 1.0)) for i in range(n)])
        numpyro.sample("y", dist.Normal(X[:, :n] @ b, 1.0), obs=Y)

    few, many = (Joint("m", sm.from_numpyro(model, n)) for n in (2 * LOOP, MOST))
    sizes = [len(trace(joint.log_likelihood, joint.dimension).jaxpr.eqns) for joint in (few, many)]
    assert sizes[0] == sizes[1]
