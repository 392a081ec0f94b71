"""Shapes, counts, reproducibility and refusals of `sample`."""

import math

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats

from grid_truth import DATA, NOISE, assert_matches, chain_mean, supermodel, truth
from supermodel.embedding import Supermodel, Warp
from supermodel.errors import ModelError, SupermodelError
from supermodel.models import Model
from supermodel.sampling import sample


def plain(p):
    """A likelihood that JAX cannot trace."""
    return -0.5 * (math.sin(float(p["a"])) - 0.3) ** 2


PLAIN = {
    "loop": Model({"a": dist.Normal(0.1, 1.0)}, plain),
    "vector": Model({"a": dist.Normal(0.4, 0.8)}, lambda p: -0.5 * np.asarray(p["a"]) ** 2 - 0.3, vectorized=True),
}


@pytest.fixture(scope="module")
def mixture():
    return supermodel()


@pytest.mark.parametrize("sampler", ["metropolis", "hmc", "tempered"])
def test_same_seed_same_bits(mixture, sampler):
    runs = [sample(mixture, sampler=sampler, seed=s, chains=8, draws=20, thin=2, warmup=40) for s in (3, 3, 4)]
    for field in ("alpha", "position", "log_joints"):
        a, b, other = (getattr(run, field) for run in runs)
        assert np.array_equal(a, b) and not np.array_equal(a, other)
    assert runs[0].evaluations == runs[1].evaluations


def test_blocks_do_not_change_the_chain(mixture):
    """Randomness belongs to the step, not to the block."""
    short, long = (sample(mixture, chains=8, draws=20, thin=2, warmup=0, block=b) for b in (3, None))
    assert np.array_equal(short.alpha, long.alpha) and np.array_equal(short.position, long.position)


def test_thinning_records_every_so_many_steps(mixture):
    every, third = (sample(mixture, chains=8, draws=n, thin=t, warmup=0) for n, t in ((60, 1), (20, 3)))
    assert np.array_equal(every.alpha[:, 2::3], third.alpha)


@pytest.mark.parametrize("sampler", ["metropolis", "tempered"])
def test_shapes_and_progress(mixture, sampler):
    seen = []
    draws = sample(mixture, sampler=sampler, chains=8, draws=410, warmup=20, progress=lambda *a: seen.append(a))
    assert draws.alpha.shape == (8, 410) and draws.position.shape == (8, 410, 1)
    assert draws.log_joints.shape == (8, 410, 2)
    assert (draws.n_chains, draws.n_draws) == (8, 410) and draws.predictions is None
    assert seen == [(200, 410), (400, 410), (410, 410)]
    assert draws.info["steps"] == 8 * 410 and draws.info["steps_per_second"] > 0


def test_log_joints_are_those_of_the_position(mixture):
    from supermodel.jax_scope import float64

    for sampler in ("metropolis", "hmc", "tempered"):
        draws = sample(mixture, sampler=sampler, chains=8, draws=20, warmup=40)
        with float64():
            again = np.array([mixture.log_joints(u) for u in draws.position.reshape(-1, 1)[:25]])
        np.testing.assert_allclose(draws.log_joints.reshape(-1, 2)[:25], again, rtol=0, atol=1e-10)


def test_a_blend_keeps_its_predictions():
    sm = supermodel(combine="blend")
    draws = sample(sm, chains=8, draws=10, warmup=40)
    assert draws.predictions.shape == (8, 10, 2, 4)
    a = draws.position[..., :1]
    np.testing.assert_allclose(draws.predictions[:, :, 0], a + 0 * DATA["x"], atol=1e-12)
    np.testing.assert_allclose(draws.predictions[:, :, 1], a * DATA["x"], atol=1e-12)
    expected = [joint.log_joint_at(a[:, 0]) for joint in sm.joints]
    np.testing.assert_allclose(draws.log_joints[:, 0], np.stack(expected, -1), atol=1e-10)


def test_metropolis_counts_every_call_of_a_likelihood():
    calls = {"n": 0}

    def counted(p):
        calls["n"] += 1
        return plain(p)

    sm = Supermodel({"one": Model({"a": dist.Normal(0, 1)}, counted), "two": Model({"a": dist.Normal(0, 2)}, counted)})
    assert not any(j.is_traceable for j in sm.joints)
    calls["n"] = 0
    draws = sample(sm, chains=4, draws=5, thin=3, warmup=7)
    assert draws.evaluations == {"likelihood": calls["n"], "gradient": 0}
    # starts, then K models x chains x (first point + warm-up + run)
    assert calls["n"] == draws.info["start_evaluations"] + 2 * 4 * (1 + draws.info["warmup"] + 15)


def test_hmc_counts_its_gradients(mixture):
    draws = sample(mixture, sampler="hmc", chains=8, draws=10, thin=2, warmup=0)
    # K x chains x (start + steps x integration steps); at each record the models run once more, without gradient
    assert draws.evaluations["gradient"] == 2 * 8 * (1 + 20 * 8)
    assert draws.evaluations["likelihood"] == draws.info["start_evaluations"] + 2 * 8 * (1 + 20 * 8) + 2 * 8 * 10


def test_plain_python_models_take_the_loop():
    sm = Supermodel(PLAIN)
    # what JAX can trace, for the grid: the same two likelihoods written for it
    import jax.numpy as jnp

    twin = Supermodel(
        {
            "loop": Model({"a": dist.Normal(0.1, 1.0)}, lambda p: -0.5 * (jnp.sin(p["a"]) - 0.3) ** 2),
            "vector": Model({"a": dist.Normal(0.4, 0.8)}, lambda p: -0.5 * p["a"] ** 2 - 0.3),
        }
    )
    draws = sample(sm, chains=32, draws=150, thin=2, warmup=100)
    exact = truth(twin)
    assert_matches(draws, exact, exact["alpha"] + 0.1)
    again = sample(twin, chains=32, draws=150, thin=2, warmup=100)
    mean, tolerance = chain_mean(again.alpha)
    assert abs(mean - exact["alpha"]) < tolerance


def test_plain_python_is_refused_where_gradients_or_predictions_are_needed():
    with pytest.raises(ModelError, match="metropolis.*compare"):
        sample(Supermodel(PLAIN), sampler="hmc", chains=2, draws=2)
    predict = Model({"a": dist.Normal(0, 1)}, predict=lambda p, x: float(p["a"]) * x, noise=NOISE)
    with pytest.raises(ModelError, match="cannot be traced"):
        sample(Supermodel({"p": predict, "q": predict}, data=DATA, combine="blend"), chains=2, draws=2)


def test_negative_predictions_are_refused_by_their_product():
    with pytest.raises(ModelError, match="not positive at"):
        sample(supermodel(combine="blend_product"), chains=2, draws=2)


def test_an_impossible_likelihood_is_refused():
    nowhere = Model({"a": dist.Normal(0, 1)}, lambda p: 0.0 * p["a"] - np.inf)
    with pytest.raises(ModelError, match="-inf at all of"):
        sample(Supermodel({"a": nowhere, "b": nowhere}), chains=2, draws=2)


@pytest.mark.parametrize(
    "wrong",
    [dict(sampler="gibbs"), dict(chains=0), dict(draws=2.5), dict(thin=0), dict(sampler="tempered", betas=[0, 0.5])],
)
def test_wrong_arguments_are_told(wrong):
    with pytest.raises(SupermodelError, match=next(iter(reversed(wrong)))):
        sample(supermodel(), **{"chains": 2, "draws": 2, **wrong})


def test_models_without_parameters():
    sm = Supermodel({"a": Model({}, lambda p: 0.0), "b": Model({}, lambda p: -1.0)})
    draws = sample(sm, chains=64, draws=400, thin=2, warmup=60)
    mean, tolerance = chain_mean(draws.alpha)
    assert abs(mean - (1 + 1 / (1 + math.exp(-1))) / 3) < tolerance < 0.02


def test_warped_supermodel_has_the_same_answer():
    warps = (Warp(np.array([0.4]), np.array([[0.7]])), Warp(np.array([0.1]), np.array([[1.3]])))
    sm = supermodel(warps=warps)
    draws = sample(sm, chains=128, draws=1000, thin=3, warmup=300)
    exact = truth(sm)
    assert abs(exact["alpha"] - truth(supermodel())["alpha"]) < 1e-9
    assert_matches(draws, exact, exact["alpha"] + 0.02)


PRIORS = {
    "half": (dist.HalfNormal(1.3), 1.3 * math.sqrt(2 / math.pi)),
    "uniform": (dist.Uniform(-1.0, 3.0), 1.0),
    "scipy_beta": (scipy.stats.beta(2.0, 5.0), 2 / 7),
    "quantile": (scipy.stats.betaprime(3.0, 6.0), 3 / 5),
    "shares": (dist.Dirichlet(np.array([1.0, 2.0, 3.0])), np.array([1, 2, 3]) / 6),
}


def test_bounded_parameters_follow_their_priors():
    """No data: the draws of each parameter have its prior's mean, whatever the bijection."""
    model = Model({name: prior for name, (prior, _) in PRIORS.items()}, lambda p: 0.0)
    draws = sample(Supermodel({"a": model, "b": model}), chains=128, draws=200, thin=15, warmup=600)
    parameters = draws.parameters()
    for name, (_, mean) in PRIORS.items():
        values = parameters[name].reshape(128, 200, -1)
        for i, expected in enumerate(np.atleast_1d(mean)):
            found, tolerance = chain_mean(values[..., i])
            assert abs(found - expected) < tolerance, (name, found, expected)
    half = parameters["half"]
    # planted: without the Jacobian the density of u = ln v would be HalfNormal's, which is improper; with it once too
    # often, v ~ v HalfNormal(v), whose mean is 1.3 sqrt(pi/2)
    found, tolerance = chain_mean(half)
    assert abs(found - 1.3 * math.sqrt(math.pi / 2)) > tolerance


def test_chains_start_in_every_model():
    """Narrow posteriors far apart in a wide prior: the annealed start finds both, and half of the chains each."""
    from supermodel.sampling import starts

    left = Model({"a": dist.Normal(0, 50)}, lambda p: -0.5 * ((p["a"] + 20) / 0.01) ** 2)
    right = Model({"a": dist.Normal(0, 50)}, lambda p: -0.5 * ((p["a"] - 30) / 0.01) ** 2)
    sm, rng = Supermodel({"left": left, "right": right}), np.random.default_rng(0)
    points = starts.starting_points(sm, starts.anneal(sm, rng), -1, rng, 10)
    assert np.all(abs(points[0::2] + 20) < 0.1) and np.all(abs(points[1::2] - 30) < 0.1)
    assert starts.starting_alpha(sm, 4).tolist() == [1.0, 0.0, 1.0, 0.0]


def test_supermodels_that_differ_in_tilt_and_data_only_are_one_program(monkeypatch):
    """JAX's cache of compiled programs goes by their text: neither a tilt nor data are written into it."""
    texts, jit = [], jax.jit

    def spied(function, **options):
        program = jit(function, **options)

        def call(*arguments):
            texts[-1].append(program.lower(*arguments).as_text())
            return program(*arguments)

        return call

    for tilt, data in ((0.0, DATA), (2.5, {**DATA, "y": DATA["y"] + 0.1})):
        texts.append([])
        pair = Supermodel(supermodel().models, data=data, tilt=(tilt, 0.0))
        monkeypatch.setattr(jax, "jit", spied)
        sample(pair, seed=1, chains=4, draws=4, thin=1, warmup=8)
        monkeypatch.setattr(jax, "jit", jit)
    assert len(texts[0]) > 1 and texts[0] == texts[1]
