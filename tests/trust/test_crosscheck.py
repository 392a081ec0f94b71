"""Models handed to a nested sampler: the same evidence, and one figure for the disagreement."""

import re
import sys
import time
import warnings

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

from made_result import made_result
from supermodel.comparing import evidence
from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import Estimate
from supermodel.models.adapters.from_log_density import from_log_density
from supermodel.models.adapters.from_numpyro import from_numpyro
from supermodel.models.adapters.from_unit_cube import from_unit_cube
from supermodel.models.adapters.to_nested import to_dynesty
from supermodel.models.model import Model
from supermodel.trust import crosscheck as module
from supermodel.trust import peers
from supermodel.trust.crosscheck import Crosscheck, _log_bayes_factors, crosscheck, disagreement


def hierarchy(y):
    mu = numpyro.sample("mu", dist.Normal(0, 1))
    theta = numpyro.sample("theta", dist.Normal(mu, 1))
    numpyro.sample("y", dist.Normal(theta, 1), obs=y)


def normal_likelihood(p, data=None):
    return -0.5 * (p["a"] - 0.4) ** 2 / 0.5**2


Y = 0.8
CASES = {
    "quantiles": (Model({"a": dist.Normal(0, 1)}, normal_likelihood), None),
    "bounded": (Model({"a": dist.Uniform(-2, 3)}, normal_likelihood), None),
    "scipy": (Model({"a": stats.skewnorm(2)}, normal_likelihood), None),
    "no quantiles": (Model({"v": dist.Dirichlet(np.ones(3))}, lambda p: 3 * p["v"][0]), 2.0 * (np.exp(3) - 1 - 3) / 9),
    "hierarchy": (from_numpyro(hierarchy, Y), stats.norm.pdf(Y, 0, np.sqrt(3))),
    "unit cube": (from_unit_cube(lambda t: -(t[0] ** 2), lambda u: 4 * u - 2, ["a"]), None),
    "density": (
        from_log_density(lambda p: stats.norm.logpdf(p["a"]), normal_likelihood, lambda r, n: {"a": r.standard_normal(n)}), None
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_mean_over_the_cube_is_the_evidence(case, rng):
    """Z is the integral of exp(log_likelihood) over the cube: plain Monte Carlo against the closed form or the prior."""
    model, truth = CASES[case]
    f = to_dynesty(model)
    n = 20_000 if case != "density" else 4000
    u = rng.random((n, f.dimension))
    values = np.exp(f.log_likelihood_at(f.prior_transform_at(u)))
    if truth is None:
        draws = model.space.values_at(model.space.sample_prior(rng, 20_000))["a"]
        other = np.exp(-(draws**2) if case == "unit cube" else normal_likelihood({"a": draws}))
        truth, truth_error = other.mean(), other.std() / np.sqrt(len(other))
    else:
        truth_error = 0.0
    error = np.hypot(values.std() / np.sqrt(n), truth_error)
    assert abs(values.mean() - truth) < 5 * error and error < 0.05 * truth
    points = f.prior_transform_at(u[:3])
    np.testing.assert_allclose([f.prior_transform(v) for v in u[:3]], points, rtol=1e-12)
    np.testing.assert_allclose([f.log_likelihood(v) for v in points], np.log(values[:3]), rtol=1e-9, atol=1e-9)


VECTORS = {
    "expanded": (dist.Normal(1, 2).expand([3]).to_event(1), stats.norm(1, 2)),
    "a batch": (dist.Uniform(-2, jnp.array([1.0, 3.0, 5.0])), stats.uniform(-2, [3, 5, 7])),
    "a table": (dist.Gamma(2.0, 3.0).expand([3]).to_event(1), stats.gamma(2, scale=1 / 3)),
    "two tables": (dist.StudentT(jnp.array([3.0, 5.0, 3.0]), 0.0, 2.0).to_event(1), stats.t([3, 5, 3], 0, 2)),
    "a matrix": (dist.HalfNormal(2).expand([2, 3]).to_event(2), stats.halfnorm(scale=2)),
}


@pytest.mark.parametrize("case", VECTORS)
def test_vectors_go_through_the_quantiles_of_what_they_are_made_of(case, rng):
    prior, law = VECTORS[case]
    f = to_dynesty(Model({"v": prior}, lambda p: -jnp.sum(p["v"] ** 2)))
    u = rng.random((50, f.dimension))
    points = f.prior_transform_at(u)
    values = f.values(points)["v"]
    np.testing.assert_allclose(values, law.ppf(u.reshape(values.shape)), rtol=2e-7, atol=1e-7)
    expected = -np.sum(values.reshape(50, -1) ** 2, axis=1)  # nothing is added: the prior is in the transform
    np.testing.assert_allclose(f.log_likelihood_at(points), expected, rtol=1e-9)


def test_vectors_whose_numbers_hang_together_are_made_as_they_are_drawn(rng):
    covariance, shares = np.array([[2.0, 0.9], [0.9, 1.0]]), np.array([0.7, 2.0, 3.5])
    priors = {"n": dist.MultivariateNormal(np.array([1.0, -1.0]), covariance), "s": dist.Dirichlet(shares)}
    f = to_dynesty(Model(priors, lambda p: p["n"][0] + p["s"][0]))
    points = f.prior_transform_at(rng.random((20_000, f.dimension)))
    values = f.values(points)
    np.testing.assert_allclose(f.log_likelihood_at(points[:9]), values["n"][:9, 0] + values["s"][:9, 0], rtol=1e-9)
    np.testing.assert_allclose(np.cov(values["n"].T), covariance, atol=0.1)
    np.testing.assert_allclose(values["s"].sum(axis=1), 1)
    for i, a in enumerate(shares):
        assert stats.kstest(values["s"][:, i], stats.beta(a, shares.sum() - a).cdf).pvalue > 1e-6
    np.testing.assert_allclose(np.cov(values["s"].T), np.cov(rng.dirichlet(shares, 20_000).T), atol=0.003)


def test_parameters_of_numpyro_that_depend_on_no_other_have_their_quantiles_too(rng):
    def flat():
        b = numpyro.sample("b", dist.Normal(0, 2).expand([3]).to_event(1))
        s = numpyro.sample("s", dist.HalfNormal(3))
        numpyro.sample("y", dist.Normal(b.sum(), s), obs=0.7)

    f = to_dynesty(from_numpyro(flat))
    u = rng.random((9, 4))
    points = f.prior_transform_at(u)
    values = f.values(points)
    np.testing.assert_allclose(values["b"], stats.norm(0, 2).ppf(u[:, :3]), rtol=1e-9)
    np.testing.assert_allclose(values["s"], stats.halfnorm(scale=3).ppf(u[:, 3]), rtol=1e-9)
    expected = stats.norm.logpdf(0.7, values["b"].sum(axis=1), values["s"])
    np.testing.assert_allclose(f.log_likelihood_at(points), expected, rtol=1e-9)


def test_a_likelihood_in_plain_python_is_called_without_more():
    """What has no quantiles is corrected for, point by point: a Student t density and its logarithm, 1 ms each."""
    f = to_dynesty(Model({"v": dist.Uniform(-5, 5).expand([6]).to_event(1)}, lambda p: -float(np.sum(p["v"]) ** 2)))
    point = f.prior_transform(np.full(6, 0.3))
    since = time.perf_counter()
    found = [f.log_likelihood(point) for _ in range(200)]
    assert time.perf_counter() - since < 0.2 * 200 * 1e-3 * 5  # a fifth of what it was, on a machine five times slower
    assert found[0] == pytest.approx(-144.0)


def test_one_figure_for_the_disagreement():
    result = made_result()
    a, b = result.names
    same = {name: Estimate(result.log_evidence(name).value + 7.0, 0.1) for name in result.names}  # a common constant
    assert disagreement(result, same)[0] == pytest.approx(0, abs=1e-12)
    moved = {**same, b: Estimate(same[b].value + 1.0, 0.1)}
    chi2, p = disagreement(result, moved)
    joint = np.hypot(result.log_bayes_factor(a, b).error, np.hypot(0.1, 0.1))
    found = Crosscheck("dynesty", result.names, {}, {}, chi2, p, {}, 0)
    assert found.sigmas == pytest.approx(1 / joint, rel=1e-6)
    assert found.agrees == (p > 0.05)


@pytest.mark.parametrize(
    ("p", "word", "advice"),
    [
        (0.051, "agree", "they agree"),
        (0.05, "doubtful", "doubtful: .*another seed"),
        (0.003, "doubtful", "n_live=2000"),
        (0.0029, "disagree", "THEY DISAGREE: .*Use neither.*thorough"),
        (0.0, "disagree", "THEY DISAGREE"),
    ],
)
def test_three_words_for_it_each_with_what_to_do(p, word, advice):
    result = made_result()
    theirs = {name: Estimate(result.log_evidence(name).value, 0.1) for name in result.names}
    ours = {name: result.log_evidence(name) for name in result.names}
    found = Crosscheck("dynesty", result.names, ours, theirs, 1.0, p, {}, 0, _log_bayes_factors(result, theirs))
    assert found.agreement == word and re.search(advice, str(found))
    a, b = result.ranking
    here = result.log_bayes_factor(a, b)
    assert f"ln B({a} : {b}) = {here} here, {here.value:.2f} ± 0.14 by dynesty" in str(found)


def test_what_cannot_be_checked_is_told():
    result = made_result()
    with pytest.raises(SupermodelError, match="one of dynesty, nautilus, ultranest, nessai"):
        crosscheck(result, with_="multinest")
    with pytest.raises(SupermodelError, match="are needed to run them again"):
        crosscheck(result, models={"other": None})


def run(peer, n_live):
    pytest.importorskip(peer)
    found = crosscheck(made_result(chains=8, draws=400), with_=peer, n_live=n_live, seed=1)
    assert found.agrees and set(found.theirs) == {"line", "curve"}
    assert "they agree" in str(found)
    return found


def test_dynesty_agrees():
    assert sum(run("dynesty", 60).evaluations.values()) > 1000


def test_ultranest_agrees_and_leaves_numpy_s_generator_as_it_was():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert sum(run("ultranest", 60).evaluations.values()) > 500
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.slow
@pytest.mark.parametrize("peer", ["dynesty", "nautilus", "ultranest", "nessai"])
def test_peers_agree_closely(peer):
    found = run(peer, 500)
    assert max(e.error for e in found.theirs.values()) < 0.2


def seven():
    """Seven parameters, as in the issue that took nine minutes without an answer."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 6))
    y = x[:, 0] + rng.standard_normal(40)

    def log_likelihood(p):
        return jnp.sum(dist.Normal(x @ p["b"], p["s"]).log_prob(y))

    return {"seven": Model({"b": dist.Normal(0, 2).expand([6]).to_event(1), "s": dist.HalfNormal(3)}, log_likelihood)}


@pytest.fixture(scope="module")
def seven_compared():
    return evidence(seven()["seven"], seed=0, explore="quick", progress=False)


@pytest.mark.parametrize("peer", ["dynesty", "nautilus"])
def test_at_its_limit_a_peer_gives_up_with_what_it_has(peer, seven_compared):
    pytest.importorskip(peer)
    since = time.monotonic()
    found = crosscheck(seven_compared, peer, models={"model": seven()["seven"]}, max_seconds=3.0)
    assert time.monotonic() - since < 60  # the compilations before the clock starts, and LATE
    assert found.unfinished == ("model",) and found.agreement == "unfinished" and not found.agrees
    assert "no answer within the limit on time" in str(found) and "sigma" not in str(found)
    there, truth = found.theirs["model"], seven_compared.value
    assert there.error > 1.0 and not there.value > truth + 1.0  # a part of the evidence, with what may be missing


@pytest.mark.parametrize("peer", ["ultranest", "nessai"])
def test_those_that_know_nothing_before_their_end_say_so(peer, seven_compared):
    pytest.importorskip(peer)
    found = crosscheck(seven_compared, peer, models={"model": seven()["seven"]}, max_seconds=1.0)
    assert found.unfinished == ("model",) and np.isnan(found.theirs["model"].value) and not found.agrees


def test_a_peer_that_is_not_installed_is_told_with_its_package(monkeypatch, seven_compared):
    monkeypatch.setitem(sys.modules, "nautilus", None)
    with pytest.raises(SupermodelError, match="pip install nautilus-sampler"):
        crosscheck(seven_compared, "nautilus", models={"model": seven()["seven"]})


def test_before_the_first_live_points_there_is_nothing_to_show(seven_compared):
    found = crosscheck(seven_compared, "dynesty", models={"model": seven()["seven"]}, max_seconds=1e-9)
    assert found.unfinished == ("model",) and np.isnan(found.theirs["model"].value)
    assert found.evaluations["model"] == 0 and "no answer" in str(found)


def test_the_sampler_is_chosen_by_the_number_of_parameters(monkeypatch):
    dynesty = pytest.importorskip("dynesty")
    chosen = []

    def sampler(*arguments, sample, **options):
        chosen.append(sample)
        raise peers.Late

    monkeypatch.setattr(dynesty, "NestedSampler", sampler)
    for d in (3, 4, 20, 21):
        f = peers.ForNested(None, None, d, (), None, None, None)
        peers.by_dynesty(f, 100, 0, peers.Watch(1.0, lambda line: None))
    assert chosen == ["unif", "rwalk", "rwalk", "rslice"]


def test_the_peer_s_warnings_are_one_line_and_its_progress_is_told(monkeypatch, seven_compared):
    said = []

    def noisy(f, n_live, seed, watch):
        for k in range(300):
            warnings.warn(f"the peer has trouble {k}", RuntimeWarning, stacklevel=2)
        watch.counted(lambda x: 0.0)(np.zeros(7))
        return peers.Found(Estimate(seven_compared.value, 0.1), 1, True)

    monkeypatch.setitem(peers.PEERS, "dynesty", noisy)
    monkeypatch.setattr(module._Line, "__call__", lambda self, line: said.append(line))
    found = crosscheck(seven_compared, "dynesty", models={"model": seven()["seven"]})
    assert len(found.warnings) == 300 and found.agrees
    assert str(found).count("trouble") == 1 and "dynesty gave 300 warnings, the first: the peer has trouble 0" in str(
        found
    )
    assert said == ["dynesty on 'model': 1 calls · 0 of at most 600 s"]
