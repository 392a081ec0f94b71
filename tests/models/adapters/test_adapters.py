"""One pair of models in every form that users bring: the same ln B within errors, and the exact one."""

from importlib import resources

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.stats import norm

from supermodel import Model, compare, from_bilby, from_log_density, from_numpyro, from_pymc, from_unit_cube, read_spec

TRUTH = 5.0222648001  # ln B(free, fixed) by quadrature
DATA = resources.files("supermodel") / "data"
x, y, sigma = np.loadtxt(DATA / "sine.csv", delimiter=",", skiprows=1, unpack=True)
LOG_ROOT_2PI = 0.5 * np.log(2 * np.pi)


def gaussian(value, mean, sd):
    return -0.5 * ((value - mean) / sd) ** 2 - np.log(sd) - LOG_ROOT_2PI


def as_jax(free):
    priors = {"omega": dist.Normal(1, 2)} | ({"phi": dist.Normal(0, 0.05)} if free else {})
    return Model(priors, lambda p: jnp.sum(gaussian(y, jnp.sin(p["omega"] * x + p.get("phi", 0.0)), sigma)))


def as_numpyro(free):
    def model(x, y=None):
        omega = numpyro.sample("omega", dist.Normal(1, 2))
        phi = numpyro.sample("phi", dist.Normal(0, 0.05)) if free else 0.0
        with numpyro.plate("data", len(x)):
            numpyro.sample("y", dist.Normal(jnp.sin(omega * x + phi), sigma), obs=y)

    return from_numpyro(model, x, y=y)


def as_unit_cube(free, xp=np):
    quantile = norm.ppf if xp is np else jax.scipy.special.ndtri

    def loglike(theta):
        phi = theta[1] if free else 0.0
        return xp.sum(gaussian(y, xp.sin(theta[0] * x + phi), sigma))

    def prior_transform(u):
        return xp.stack([1 + 2 * quantile(u[0])] + ([0.05 * quantile(u[1])] if free else []))

    return from_unit_cube(loglike, prior_transform, ["omega", "phi"] if free else ["omega"])


def as_log_density(free):
    def log_prior(p):
        return gaussian(p["omega"], 1, 2) + (gaussian(p["phi"], 0, 0.05) if free else 0.0)

    def sample_prior(rng, n):
        return {"omega": rng.normal(1, 2, n)} | ({"phi": rng.normal(0, 0.05, n)} if free else {})

    return from_log_density(log_prior, as_jax(free)._log_likelihood, sample_prior)


def as_toml(free):
    spec = read_spec(DATA / "sine.toml")
    model = spec.models["free" if free else "fixed"]
    return Model(dict(model.priors), lambda p: model.log_likelihood(p, spec.data))


def as_pymc(free):
    pm = pytest.importorskip("pymc")
    with pm.Model() as model:
        omega = pm.Normal("omega", 1, 2)
        phi = pm.Normal("phi", 0, 0.05) if free else 0.0
        pm.Normal("y", pm.math.sin(omega * x + phi), sigma, observed=y)
    return from_pymc(model)


def as_bilby(free):
    bilby = pytest.importorskip("bilby")

    class Sine(bilby.Likelihood):
        def log_likelihood(self, parameters):
            return np.sum(gaussian(y, np.sin(parameters["omega"] * x + parameters["phi"]), sigma))

    normal = bilby.core.prior.Normal
    return from_bilby(Sine(), {"omega": normal(1, 2), "phi": normal(0, 0.05) if free else 0.0})


FORMS = {
    "jax": as_jax, "numpyro": as_numpyro, "unit cube": as_unit_cube, "log density": as_log_density, "toml": as_toml,
    "unit cube in jax": lambda free: as_unit_cube(free, jnp), "pymc": as_pymc, "bilby": as_bilby,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "form", [pytest.param(f, marks=pytest.mark.slow) if f == "unit cube in jax" else f for f in FORMS]
)
def test_every_form_gives_the_exact_answer(form):
    models = {"fixed": FORMS[form](False), "free": FORMS[form](True)}
    result = compare(models, seed=1, target_error=0.05)
    found = result.log_bayes_factor("free", "fixed")
    assert result.verdict.is_reliable, result.verdict
    assert found.error < 0.06
    # Five errors: a false alarm once in two million. Thrice the target would hide a lost factor; this does not.
    assert abs(found.value - TRUTH) < 5 * found.error + 1e-6
    assert abs(found.value + np.log(2) - TRUTH) > 5 * found.error


def test_forms_may_be_mixed_and_share_parameters():
    result = compare({"fixed": as_unit_cube(False), "free": as_jax(True)}, seed=2, target_error=0.05)
    found = result.log_bayes_factor("free", "fixed")
    assert abs(found.value - TRUTH) < 5 * found.error + 1e-6


def test_all_forms_agree_on_the_joint_density_at_a_point():
    at = {"omega": 1.01, "phi": 0.03}
    reference = as_jax(True)
    wanted = float(reference.log_likelihood(at))
    for form in ("numpyro", "unit cube", "log density", "toml"):
        model = FORMS[form](True)
        assert float(model.log_likelihood({k: np.float64(v) for k, v in at.items()})) == pytest.approx(
            wanted, abs=1e-9
        ), form
        if form != "unit cube":
            point = model.space.unconstrain(at)
            assert float(model.space.log_prior(point)) == pytest.approx(
                gaussian(1.01, 1, 2) + gaussian(0.03, 0, 0.05), abs=1e-9
            )
