r"""Whatever is shared, replicated, warped or companioned: $\int J_k = Z_k$, and the corners are the models."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats

from grid_truth import DATA, NOISE, positive_models, supermodel
from supermodel.embedding import Supermodel, Warp, coordinate
from supermodel.embedding.warp import from_covariance, identity
from supermodel.errors import DataError, ModelError, PriorError, SupermodelError
from supermodel.models import Gaussian, Model

GRID = np.linspace(-9, 9, 241)


def integrals(sm):
    """ln ∫ J_k du for every model, by summing over a grid of one or two coordinates."""
    points = np.stack(np.meshgrid(*[GRID] * sm.dimension, indexing="ij"), -1).reshape(-1, sm.dimension)
    values = np.asarray(jax.jit(jax.vmap(sm.log_joints))(points))
    cell = sm.dimension * np.log(GRID[1] - GRID[0])
    return scipy.special.logsumexp(values, axis=0) + cell


def plane():
    """Two models: "small" owns a; "large" owns a, with another prior, and a bounded b."""
    small = Model({"a": dist.Normal(0.3, 0.9)}, lambda p: -0.5 * (p["a"] - 0.5) ** 2)
    large = Model(
        {"a": dist.Normal(-0.2, 1.2), "b": dist.HalfNormal(1.1)}, lambda p: -0.5 * (p["a"] + p["b"] - 1.0) ** 2
    )
    return {"small": small, "large": large}


def evidences():
    """The same two by quadrature in the users' own coordinates."""
    a, b = np.linspace(-9, 9, 1801), np.linspace(0, 9, 901)
    small = np.trapezoid(np.exp(-0.5 * (a - 0.5) ** 2) * scipy.stats.norm(0.3, 0.9).pdf(a), a)
    inner = np.exp(-0.5 * (a[:, None] + b - 1.0) ** 2) * scipy.stats.halfnorm(0, 1.1).pdf(b)
    large = np.trapezoid(np.trapezoid(inner, b, axis=1) * scipy.stats.norm(-0.2, 1.2).pdf(a), a)
    return np.log([small, large])


LAYOUTS = {
    "two priors of one name": dict(),
    "pseudo-prior": dict(companions={"b": dist.Gamma(3.0, 2.0)}),
    "pseudo-prior from scipy": dict(companions={"b": scipy.stats.lognorm(0.5)}),
    "conditional pseudo-prior": dict(companions={"b": lambda p: dist.LogNormal(0.3 * p["a"], 0.4)}),
    "warps": dict(
        warps=(
            Warp(np.array([0.3]), np.array([[0.6]])),
            Warp(np.array([0.2, -0.1]), np.array([[0.9, 0.0], [-0.5, 1.1]])),
        )
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_joint_densities_integrate_to_the_evidences(name):
    found = integrals(Supermodel(plane(), **LAYOUTS[name]))
    np.testing.assert_allclose(found, evidences(), atol=2e-4)
    assert abs(found[0] - evidences()[1]) > 0.01  # planted: the other model's


def test_replicated_parameters_integrate_to_the_evidences():
    pair = {name: Model({"a": prior}, plane()["small"].log_likelihood) for name, prior in _two_priors().items()}
    shared, replicated = Supermodel(pair), Supermodel(pair, share=False)
    assert (shared.dimension, replicated.dimension) == (1, 2)
    assert list(replicated.labels) == ["p.a", "q.a"]
    np.testing.assert_allclose(integrals(shared), integrals(replicated), atol=1e-9)


def _two_priors():
    return {"p": dist.Normal(0.3, 0.9), "q": dist.Normal(-0.2, 1.2)}


def test_a_companion_that_leaves_the_support_or_is_circular_is_refused():
    with pytest.raises(PriorError, match="outside the support"):
        Supermodel(plane(), companions={"b": dist.Normal(0, 1)})
    with pytest.raises(PriorError, match="numpyro distribution"):
        Supermodel(plane(), companions={"b": scipy.stats.betaprime(3, 4)})
    with pytest.raises(ModelError, match="no parameters here"):
        Supermodel(plane(), companions={"c": dist.Normal(0, 1)})
    with pytest.raises(ModelError, match='must be "prior" or a dict'):
        Supermodel(plane(), companions="posterior")
    # q(x | y) q(y | x) is no density: each may only see what the other model owns and what comes before
    three = {
        "none": Model({}, lambda p: 0.0),
        "both": Model({"x": dist.Normal(0, 1), "y": dist.Normal(0, 1)}, lambda p: 0.0),
    }
    given = {"x": lambda p: dist.Normal(p["y"], 1), "y": lambda p: dist.Normal(p["x"], 1)}
    circular = Supermodel(three, companions=given)
    with pytest.raises(ModelError, match="companion of 'x' asks for the parameter 'y'"):
        circular.log_joints(np.zeros(2))
    chain = Supermodel(three, companions={"x": dist.Normal(0.5, 2), "y": lambda p: dist.Normal(p["x"], 1)})
    np.testing.assert_allclose(integrals(chain), 0.0, atol=1e-4)


@pytest.mark.parametrize("combine", ["mixture", "product", "blend", "blend_product", "index"])
def test_the_corners_are_the_models(combine):
    """J(u; e_k) = J_k, with the tilt of that model, for every rule."""
    models = positive_models()
    tilt = np.array([0.4, -0.3])
    warps = (Warp(np.array([0.1]), np.array([[0.7]])), Warp(np.array([0.2]), np.array([[1.4]])))
    for given in (None, warps):
        sm = Supermodel(models, combine=combine, data=DATA, tilt=tilt, warps=given)
        for u in (np.array([0.3]), np.array([-0.8])):
            for k in range(2):
                alpha = jnp.asarray(sm.coordinate.corner(k))
                density, log_joints = sm.log_density(alpha, u)
                expected = log_joints[k] + tilt[k] + sm.coordinate.log_prior(alpha)
                assert abs(float(density - expected)) < 1e-10


def test_impossible_models_have_no_say_at_weight_zero():
    sm = supermodel(combine="product")
    log_joints = jnp.array([-1.0, -jnp.inf])
    assert float(sm.combined(jnp.array([1.0, 0.0]), log_joints)) == -1.0
    assert float(sm.combined(jnp.array([0.5, 0.5]), log_joints)) == -np.inf
    mixture = supermodel()
    assert float(mixture.combined(jnp.array([0.5, 0.5]), log_joints)) == pytest.approx(-1 - np.log(2))


def test_mixtures_neither_overflow_nor_underflow():
    sm = supermodel()
    for shift in (-1e5, 1e5):
        value = float(sm.combined(jnp.array([0.25, 0.75]), jnp.array([shift, shift])))
        assert abs(value - shift) < 1e-9


def test_constants_move_nothing_but_the_constant(rng):
    base = supermodel()
    u = rng.standard_normal((5, 1))
    for alpha in (0.2, 0.9):
        tilted = supermodel(tilt=(2.0, 2.0))
        for point in u:
            after, before = (sm.log_density(jnp.asarray(alpha), point)[0] for sm in (tilted, base))
            assert abs(float(after - before) - 2.0) < 1e-10


def test_the_table_says_who_shares_what():
    table = Supermodel(plane()).sharing_table()
    assert table.splitlines()[0].split() == ["parameter", "small", "large"]
    assert "Normal(0.3, 0.9)" in table and "(shared, priors differ)" in table.splitlines()[1]
    assert table.splitlines()[2].split()[:2] == ["b", "-"] and "HalfNormal(1.1)" in table.splitlines()[2]
    separate = Supermodel(plane(), share=False).sharing_table()
    assert "small.a" in separate and "large.a" in separate and "differ" not in separate


def test_only_the_listed_names_are_shared():
    model = Model({"a": dist.Normal(0, 1), "b": dist.Normal(0, 1)}, lambda p: 0.0)
    sm = Supermodel({"p": model, "q": model}, share=["b"])
    assert list(sm.labels) == ["p.a", "b", "q.a"] and sm.dimension == 3
    with pytest.raises(ModelError, match="'c'.*no model has"):
        Supermodel({"p": model, "q": model}, share=["c"])


def test_draws_come_back_in_the_users_coordinates():
    sm = Supermodel(plane())
    values = sm.constrain(np.array([[[0.3, -1.0], [0.1, 0.5]]]))
    np.testing.assert_allclose(values["a"], [[0.3, 0.1]])
    np.testing.assert_allclose(values["b"], np.exp([[-1.0, 0.5]]))
    warped = Supermodel(plane(), **LAYOUTS["warps"])
    point = warped.constrain_point(np.array([0.4, 0.2]))
    np.testing.assert_allclose(point["a"], 0.3 + 0.6 * 0.4)  # as its first owner sees it
    np.testing.assert_allclose(warped.constrain(np.array([[0.4, 0.2]]))["a"], [0.54])


def test_a_constant_prediction_serves_all_data():
    one = Model({"a": dist.Normal(0, 1)}, predict=lambda p: p["a"], noise=NOISE)
    line = Model({"a": dist.Normal(0, 1)}, predict=lambda p, x: p["a"] * x, noise=NOISE)
    sm = Supermodel({"one": one, "line": line}, data=DATA, combine="blend")
    assert sm.predictions(np.array([0.5])).shape == (2, 4)


def refused():
    model = Model({"a": dist.Normal(0, 1)}, lambda p: 0.0)
    vector = Model({"a": dist.Normal(0, 1).expand([2])}, lambda p: 0.0)
    predict = Model({"a": dist.Normal(0, 1)}, predict=lambda p, x: x, noise=Gaussian(1.0))
    other = Model({"a": dist.Normal(0, 1)}, predict=lambda p, x: x, noise=Gaussian(2.0))
    pair = {"p": model, "q": model}
    return [
        (({},), {}, ModelError, "dict {name: Model}"),
        (([model, model],), {}, ModelError, "dict {name: Model}"),
        (({"p": model},), {}, ModelError, "at least two models; got only 'p'"),
        (({"p": model, "": model},), {}, ModelError, "non-empty string"),
        (({"p": model, "q": abs},), {}, ModelError, "'q' is a builtin_function_or_method"),
        ((pair,), dict(combine="sum"), SupermodelError, "must be one of mixture.*got 'sum'"),
        ((pair,), dict(tilt=[1.0]), SupermodelError, r"one number per model \(2\)"),
        ((pair,), dict(coordinate=coordinate.Simplex(3)), SupermodelError, "weighs 3 models, but there are 2"),
        ((pair,), dict(combine="index", coordinate=coordinate.ladder(3)), SupermodelError, "only the corners"),
        ((pair,), dict(coordinate=coordinate.enlarged(0.1)), SupermodelError, "Only `blend`"),
        ((pair,), dict(combine="product", coordinate=coordinate.enlarged(0.1)), SupermodelError, "Only `blend`"),
        ((pair,), dict(combine="blend", data=DATA), ModelError, "mixes predictions, but model 'p' has none"),
        (({"p": predict, "q": other},), dict(combine="blend", data=DATA), ModelError, "same `noise`"),
        (({"p": predict, "q": predict},), dict(combine="blend"), DataError, "needs `data`"),
        (({"p": model, "q": vector},), {}, ModelError, "has 1 numbers in one and 2 in the other"),
    ]


@pytest.mark.parametrize(("arguments", "options", "error", "message"), refused())
def test_supermodels_that_are_refused(arguments, options, error, message):
    with pytest.raises(error, match=message):
        Supermodel(*arguments, **options)


def test_warps_are_bijections_with_their_jacobian(rng):
    covariance = np.array([[2.0, 0.6], [0.6, 0.5]])
    warp = from_covariance(np.array([1.0, -1.0]), covariance)
    u = rng.standard_normal((7, 2))
    np.testing.assert_allclose(warp.inverse(warp.points(u)), u, atol=1e-12)
    np.testing.assert_allclose(warp(u[0]), warp.points(u)[0], atol=1e-12)
    np.testing.assert_allclose(warp.factor @ warp.factor.T, covariance, atol=1e-12)
    assert abs(warp.log_det_value() - 0.5 * np.linalg.slogdet(covariance)[1]) < 1e-12
    assert abs(float(warp.log_det(u[0])) - warp.log_det_value()) < 1e-12
    np.testing.assert_allclose(identity(2).points(u), u)


def test_a_singular_covariance_is_lifted():
    warp = from_covariance(np.zeros(2), np.array([[1.0, 1.0], [1.0, 1.0]]))
    np.testing.assert_allclose(warp.factor @ warp.factor.T, np.ones((2, 2)), atol=1e-6)
