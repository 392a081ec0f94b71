"""Parameters that a likelihood does not read are found, and none that it reads, whatever way it is written in."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import supermodel as sm
from supermodel.models.joint import Joint
from supermodel.models.unread import unread

Y = np.random.default_rng(3).normal(0.4, 1.0, 20)
NORMAL = dist.Normal(0.0, 1.0)


def found(model: sm.Model, data=None) -> set[str]:
    joint = Joint("m", model, data)
    points, values = joint.probe(np.random.default_rng(0))
    return set(unread(joint, points, values, joint.log_likelihood_at))


@jax.jit
def jitted(level, spare):
    return -0.5 * jnp.sum((Y - level) ** 2)


def looped(p):
    return jax.lax.fori_loop(0, 3, lambda i, s: s - (p["level"] - Y[0]) ** 2, 0.0)


def chosen(p):
    return jnp.where(p["level"] > 0, p["spare"], 0.0)


@pytest.mark.parametrize(
    ("log_likelihood", "expected"),
    [
        (lambda p: -0.5 * jnp.sum((Y - p["level"] - p.get("typo", 0.0)) ** 2), {"spare"}),
        (lambda p: -0.5 * jnp.sum((Y - p["level"] - 1e-9 * p["spare"]) ** 2), set()),
        (lambda p: jitted(p["level"], p["spare"]), {"spare"}),
        (looped, {"spare"}),
        (chosen, set()),
        (lambda p: 0.0 * p["level"] + stats.norm.logpdf(Y, float(p["level"])).sum(), {"spare"}),
        (lambda p: stats.norm.logpdf(Y, float(p["level"]), np.exp(float(p["spare"]))).sum(), set()),
        (lambda p: stats.norm.logpdf(Y, float(p["level"]) if p["spare"] > 1.5 else 0.0).sum(), set()),
    ],
    ids=[
        "traced",
        "hardly",
        "jit",
        "loop",
        "where",
        "black box",
        "black box that reads",
        "black box that rarely reads",
    ],
)
def test_unread_parameters_are_found_and_only_they(log_likelihood, expected):
    assert found(sm.Model({"level": NORMAL, "spare": NORMAL}, log_likelihood)) == expected


def test_a_vectorised_likelihood_too():
    def log_likelihood(p):
        return stats.norm.logpdf(Y, p["level"][:, None]).sum(axis=1)

    assert found(sm.Model({"level": NORMAL, "spare": NORMAL}, log_likelihood, vectorized=True)) == {"spare"}


def test_what_other_priors_depend_on_is_read_through_them():
    def hierarchy(y):
        middle, width = numpyro.sample("middle", NORMAL), numpyro.sample("width", dist.HalfNormal(1.0))
        numpyro.sample("spare", NORMAL)
        with numpyro.plate("groups", 4):
            levels = numpyro.sample("levels", dist.Normal(middle, width))
        with numpyro.plate("data", 4):
            numpyro.sample("y", dist.Normal(levels, 1.0), obs=y)

    assert found(sm.from_numpyro(hierarchy, Y[:4])) == {"spare"}


def log_likelihood(p, data):
    return jnp.sum(-0.5 * (data["y"] - p.get("level", 0.0)) ** 2)


def black(p, data):
    return float(np.sum(-0.5 * (data["y"] - float(p.get("level", 0.0))) ** 2))


@pytest.mark.parametrize("function", [log_likelihood, black], ids=["traced", "black box"])
@pytest.mark.parametrize("method", ["auto", "mixture"])
def test_a_misspelt_prior_is_a_caution_beside_a_model_without_it(function, method):
    if method == "mixture" and function is black:
        pytest.skip("the paper's recipe has no calls to spare for it")
    models = {"none": sm.Model({}, function), "level": sm.Model({"lewel": NORMAL}, function)}
    result = sm.compare(models, {"y": Y}, seed=0, method=method, progress=False)
    told = [reason for reason in result.verdict.reasons if reason.code == "unused_parameter"]
    assert result.verdict.level == "caution" and len(told) == 1 and "'lewel'" in told[0].sentence
    assert result.log_bayes_factor("level", "none").value == pytest.approx(0.0, abs=1e-6)  # what makes it matter
    right = sm.compare({**models, "level": sm.Model({"level": NORMAL}, function)}, {"y": Y}, seed=0, method=method)
    assert not [reason for reason in right.verdict.reasons if reason.code == "unused_parameter"]


def test_where_all_models_have_it_a_note_is_enough():
    models = {
        "narrow": sm.Model({"level": NORMAL, "spare": NORMAL}, log_likelihood),
        "wide": sm.Model({"level": dist.Normal(0, 3.0), "spare": NORMAL}, log_likelihood),
    }
    verdict = sm.compare(models, {"y": Y}, seed=0, progress=False).verdict
    assert verdict.level == "ok" and [reason.code for reason in verdict.reasons] == ["unused_parameter"] * 2


def test_a_resumed_run_knows_it_without_asking_again(tmp_path):
    models = {"none": sm.Model({}, black), "level": sm.Model({"lewel": NORMAL}, black)}
    path = tmp_path / "run.ckpt"
    first = sm.compare(models, {"y": Y}, seed=0, checkpoint=path, progress=False)
    again = sm.compare(models, {"y": Y}, seed=0, checkpoint=path, progress=False)
    assert again.verdict == first.verdict and again.evaluations == first.evaluations
