"""Every row of the table of families can do everything, or says what it cannot do and why."""

import json
import math
from typing import NamedTuple

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

from supermodel.errors import PriorError
from supermodel.models.families import FAMILIES, Family, Scipy, Text, Unsupported, member_of
from supermodel.models.priors import Quantile, as_prior
from supermodel.results.archive import Described, _prior_as_data, _prior_from_data
from supermodel.results.rescaling import log_density, rescaled
from supermodel.spec.prior import build_prior


class Example(NamedTuple):
    """A distribution as NumPyro, SciPy and a text spell it, and what stays where it is when it is widened."""

    ours: dist.Distribution
    scipy: object
    text: str
    centre: float | None = 0.0  # of v, or of ln v
    log: bool = False
    shifts: bool = True


SCALARS = {
    "Normal": Example(dist.Normal(0.3, 1.2), stats.norm(0.3, 1.2), "Normal(0.3, 1.2)", 0.3),
    "Uniform": Example(dist.Uniform(-1.0, 3.0), stats.uniform(-1.0, 4.0), "Uniform(-1, 3)", 1.0),
    "LogUniform": Example(
        dist.LogUniform(0.1, 9.0), stats.loguniform(0.1, 9.0), "LogUniform(0.1, 9)", 0.5 * math.log(0.9), log=True
    ),
    "HalfNormal": Example(dist.HalfNormal(1.5), stats.halfnorm(0.0, 1.5), "HalfNormal(1.5)", shifts=False),
    "HalfCauchy": Example(dist.HalfCauchy(0.7), stats.halfcauchy(0.0, 0.7), "HalfCauchy(0.7)", shifts=False),
    "Cauchy": Example(dist.Cauchy(-0.4, 2.0), stats.cauchy(-0.4, 2.0), "Cauchy(-0.4, 2)", -0.4),
    "StudentT": Example(dist.StudentT(4.5, 0.5, 2.0), stats.t(4.5, 0.5, 2.0), "StudentT(4.5, 0.5, 2)", 0.5),
    "Laplace": Example(dist.Laplace(0.5, 2.0), stats.laplace(0.5, 2.0), "Laplace(0.5, 2)", 0.5),
    "Logistic": Example(dist.Logistic(0.5, 2.0), stats.logistic(0.5, 2.0), "Logistic(0.5, 2)", 0.5),
    "Gumbel": Example(dist.Gumbel(0.5, 2.0), stats.gumbel_r(0.5, 2.0), "Gumbel(0.5, 2)", 0.5),
    "LogNormal": Example(
        dist.LogNormal(0.3, 0.4), stats.lognorm(0.4, scale=math.exp(0.3)), "LogNormal(0.3, 0.4)", 0.3, log=True
    ),
    "Exponential": Example(dist.Exponential(2.5), stats.expon(0.0, 0.4), "Exponential(2.5)", shifts=False),
    "Gamma": Example(dist.Gamma(2.3, 4.0), stats.gamma(2.3, scale=0.25), "Gamma(2.3, 4)", shifts=False),
    "InverseGamma": Example(
        dist.InverseGamma(3.2, 1.7), stats.invgamma(3.2, scale=1.7), "InverseGamma(3.2, 1.7)", shifts=False
    ),
    "Beta": Example(dist.Beta(2.2, 1.7), stats.beta(2.2, 1.7), "Beta(2.2, 1.7)", None),
    "Weibull": Example(dist.Weibull(1.7, 0.8), stats.weibull_min(0.8, scale=1.7), "Weibull(1.7, 0.8)", shifts=False),
    "Pareto": Example(
        dist.Pareto(1.6, 2.5), stats.pareto(2.5, scale=1.6), "Pareto(1.6, 2.5)", math.log(1.6), log=True, shifts=False
    ),
    "TruncatedNormal": Example(
        dist.TruncatedNormal(0.5, 2.0, low=-1.0, high=3.0),
        stats.truncnorm(-0.75, 1.25, 0.5, 2.0),
        "TruncatedNormal(0.5, 2, -1, 3)",
        None,
    ),
}
VECTORS = {"MultivariateNormal": dist.MultivariateNormal(np.array([0.5, 1.0]), np.array([[2.0, 0.3], [0.3, 1.0]]))}
FRACTIONS = np.array([1e-12, 1e-6, 1e-3, 0.1, 0.3, 0.5])
scalars = pytest.mark.parametrize("name", SCALARS)


def plain(name):
    """(method → function of its first argument) of the row in NumPy, with the arguments of the example."""
    member = member_of(SCALARS[name].ours)
    arguments = [np.asarray(v, float) for v in member.arguments.values()]
    return lambda method, x: np.asarray(getattr(member.family.plain, method)(x, *arguments))


def stored(prior):
    return _prior_from_data("p", json.loads(json.dumps(_prior_as_data(prior))))


def test_every_row_has_an_example_and_says_what_it_cannot_do():
    assert set(FAMILIES) == set(SCALARS) | set(VECTORS)
    lacking = {
        (name, label)
        for name, family in FAMILIES.items()
        for label in ("scipy", "plain", "widen", "text")
        if isinstance(getattr(family, label), Unsupported)
    }
    assert lacking == {
        ("Beta", "widen"),
        ("TruncatedNormal", "widen"),
        *(("MultivariateNormal", label) for label in ("scipy", "plain", "text")),
    }
    assert all(len(getattr(FAMILIES[name], label).why) > 20 for name, label in lacking)
    with pytest.raises(TypeError, match="missing"):
        Family(("loc",), FAMILIES["Normal"].scipy)  # a row cannot leave a capability out


@scalars
def test_scipy_to_numpyro_to_file_to_text_and_back(name):
    example = SCALARS[name]
    ways = {
        "numpyro": as_prior("p", example.ours),
        "scipy": as_prior("p", example.scipy),
        "file": stored(as_prior("p", example.ours)),
        "text": as_prior("p", build_prior(example.text)),
    }
    values = example.scipy.ppf([0.02, 0.3, 0.9])
    for way, prior in ways.items():
        assert member_of(prior.distribution).name == name, way
        assert prior.description.startswith(f"{name}("), way
        np.testing.assert_allclose(log_density(prior, values), example.scipy.logpdf(values), atol=1e-10, err_msg=way)
    family = FAMILIES[name]
    assert isinstance(family.scipy, Scipy) and isinstance(family.text, Text)
    arguments = [float(v) for v in member_of(example.ours).arguments.values()]
    np.testing.assert_allclose(family.scipy.back(*family.scipy.to(*arguments)), arguments, rtol=1e-14)


@scalars
def test_wrapped_members_come_back(name):
    wide = as_prior("p", SCALARS[name].ours.expand([2, 3]).to_event(1))
    back = stored(wide)
    assert back.shape == (2, 3) and back.distribution.event_shape == (3,) and back.description == wide.description
    values = SCALARS[name].scipy.ppf(np.linspace(0.1, 0.9, 24)).reshape(4, 2, 3)
    np.testing.assert_array_equal(log_density(wide, values), log_density(back, values))


@scalars
def test_the_density_in_numpy_is_scipys(name):
    """Also in the unconstrained coordinate, where the Jacobian counts, against the compiled one."""
    prior, values = as_prior("p", SCALARS[name].ours), SCALARS[name].scipy.ppf([1e-3, 0.2, 0.5, 0.8, 0.999])
    np.testing.assert_allclose(plain(name)("log_prob", values), SCALARS[name].scipy.logpdf(values), atol=1e-10)
    points = prior.twin.points(values)
    np.testing.assert_allclose(prior.twin.values(points), values, rtol=1e-10)
    np.testing.assert_allclose(prior.twin.log_density(points), jax.vmap(prior.log_density)(points), atol=1e-10)
    np.testing.assert_allclose(points[:, 0], [float(prior.unconstrain(v)[0]) for v in values], atol=1e-9)


@scalars
@pytest.mark.parametrize(("quantile", "probability"), [("ppf", "cdf"), ("isf", "sf")])
def test_quantiles_invert_the_probabilities(name, quantile, probability):
    """F(F^-1(p)) = p to 64 roundings of p and of v, which the density turns into probability."""
    here, frozen = plain(name), SCALARS[name].scipy
    values = here(quantile, FRACTIONS)
    rounding = 64 * np.finfo(float).eps * (FRACTIONS + frozen.pdf(values) * np.abs(values))
    assert np.all(np.abs(here(probability, values) - FRACTIONS) <= rounding)
    assert np.all(np.abs(here(probability, values) - getattr(frozen, probability)(values)) <= rounding)
    assert not np.any(np.abs(here(probability, values) - 1.1 * FRACTIONS) <= rounding)  # planted


@scalars
def test_draws_follow_the_family(name, rng):
    """Kolmogorov-Smirnov with the bound of Dvoretzky, Kiefer and Wolfowitz: false alarm below 1e-6."""
    n, example = 20_000, SCALARS[name]
    prior = as_prior("p", example.ours)
    sorted_probabilities = np.sort(example.scipy.cdf(prior.values_at(prior.sample(rng, n))))
    bound = math.sqrt(math.log(2e6) / (2 * n))
    steps = np.arange(n) / n

    def distance(probabilities):
        return max(np.max(probabilities - steps), np.max(steps + 1 / n - probabilities))

    assert distance(sorted_probabilities) < bound
    assert distance(sorted_probabilities**1.2) > bound  # planted


@scalars
def test_widening_keeps_the_centre_and_scales_the_spread(name):
    example, prior = SCALARS[name], as_prior("p", SCALARS[name].ours)
    if example.centre is None:
        assert isinstance(FAMILIES[name].widen, Unsupported)
        with pytest.raises(PriorError, match="replace="):
            rescaled("p", prior, 2.0)
        return

    def spread(prior):
        found = member_of(prior.distribution)
        arguments = [np.asarray(v, float) for v in found.arguments.values()]
        v = np.asarray(found.family.plain.ppf(np.array([0.05, 0.4, 0.9]), *arguments))
        return (np.log(v) if example.log else v) - example.centre

    np.testing.assert_allclose(spread(rescaled("p", prior, 2.5)), 2.5 * spread(prior), atol=1e-12)
    if example.shifts:
        np.testing.assert_allclose(spread(rescaled("p", prior, 1.0, 0.7)), 0.7 + spread(prior), atol=1e-12)
    else:
        with pytest.raises(PriorError, match="begins at (0|its scale) cannot be shifted"):
            rescaled("p", prior, 1.0, 0.7)


HARD = {
    "mass piled up at 0": dist.Gamma(0.05, 1.0),
    "mass piled up at both ends": dist.Beta(0.2, 0.2),
    "where SciPy's quantile is no number": dist.Beta(0.9184986222696606, 1.0459029745117765),
    "300 decades": dist.LogUniform(1e-150, 1e150),
    "infinite at p = 1e-150": dist.StudentT(0.5, 0.0, 1.0),
    "nearly normal": dist.StudentT(300.0, 3.0, 0.1),
    "cut in its tail": dist.TruncatedNormal(0.0, 1.0, low=6.0),
    "one edge below": dist.TruncatedNormal(0.0, 1.0, low=0.0),
    "one edge above": dist.TruncatedNormal(0.0, 1.0, high=-2.0),
    **{name: example.ours for name, example in SCALARS.items() if not FAMILIES[name].gaussian},
}


@pytest.mark.parametrize("label", HARD)
def test_the_gaussian_coordinate_holds_from_end_to_end(label):
    """The traced map and its inverse are off by less than 1e-6 in u: no more of the prior's mass is moved than that.

    On top comes what the rounding of v is in u; where v cannot tell from an edge, nothing can be mapped back.
    """
    prior = as_prior("p", HARD[label]).with_gaussian_tails()
    assert isinstance(prior, Quantile)
    u = np.linspace(-6.0, 6.0, 241)
    v, slope = (np.asarray(jax.vmap(f)(u[:, None])) for f in (prior.constrain, prior.log_jacobian))
    rounding = 4 * np.spacing(np.abs(v))
    assert np.all(np.abs(v - prior.values(u)) <= 1e-6 * np.exp(slope) + rounding)
    inside = rounding < 1e-6 * np.exp(slope)
    assert inside.mean() > 0.5
    back = np.array([prior.unconstrain(value)[0] for value in v[inside]])
    assert np.all(np.abs(back - u[inside]) < 2e-6)
    far = np.array([-400.0, -37.0, -20.0, 20.0, 37.0, 400.0])
    ends = np.asarray(jax.vmap(prior.constrain)(far[:, None]))
    member = member_of(HARD[label])
    low, high = member.family.edges(*(np.asarray(a, float) for a in member.arguments.values()))
    assert np.all(np.isfinite(ends)) and np.all((ends >= low) & (ends <= high))
    assert np.all(np.diff(ends) >= -4 * np.spacing(np.abs(ends[1:])))
    assert prior.straight not in ("log", "logit") or np.all(ends > 0)


def test_an_interpolant_of_the_value_itself_would_be_seen():
    bent = as_prior("p", dist.Gamma(0.05, 1.0)).with_gaussian_tails()
    naive = Quantile(bent.ppf, "Gamma", bent.isf, bent.cdf, bent.sf, "", Quantile.FAR)
    u = np.linspace(-6.0, 0.0, 241)
    naive_values = np.asarray(jax.vmap(naive.constrain)(u[:, None]))
    assert np.max(np.abs(naive_values / bent.values(u) - 1)) > 1e-6


def test_vectors_are_stored_and_widened():
    old = as_prior("p", VECTORS["MultivariateNormal"])
    assert not isinstance(stored(old), Described)
    values = np.array([[0.1, 0.2], [3.0, -1.0]])
    np.testing.assert_allclose(log_density(stored(old), values), log_density(old, values), atol=1e-12)
    wide = log_density(rescaled("p", old, 2.0), values)
    covariance = 4 * np.asarray(old.distribution.covariance_matrix)
    np.testing.assert_allclose(wide, stats.multivariate_normal([0.5, 1.0], covariance).logpdf(values), atol=1e-12)


def test_a_family_that_is_in_no_row_is_known_by_its_name_only():
    class Normal(dist.Normal):  # of a user's own making: its density may be anything
        pass

    assert member_of(Normal(0.0, 1.0)) is None and member_of(dist.Kumaraswamy(2.0, 3.0)) is None
    assert member_of(dist.TruncatedCauchy(0.0, 1.0, low=0.0)) is None


@scalars
def test_no_draws_at_all_are_draws_too(name):
    """A small budget may ask for none."""
    vector = SCALARS[name].ours.expand([3]).to_event(1)
    for prior, size in ((as_prior("a", SCALARS[name].ours), 1), (as_prior("a", vector), 3)):
        points = prior.sample(np.random.default_rng(0), 0)
        assert points.shape == (0, size)
        assert prior.log_density_at(points).shape == (0,)
        assert prior.sample(np.random.default_rng(0), 2).shape == (2, size)


def spoilt(name):
    """Members of a family of which one argument makes no density, or low is not below high."""
    member = member_of(SCALARS[name].ours if name in SCALARS else VECTORS[name])
    row, ends = member.family, ("low", "high") if name == "TruncatedNormal" else ()  # these may be infinite
    positive = ("scale_tril",) if isinstance(row.text, Unsupported) else row.text.positive
    for argument, good in member.arguments.items():
        bad = [math.nan, True, *([] if argument in ends else [math.inf, -math.inf])]
        for value in bad + [0.0, -1.5] * (argument in positive):
            yield {argument: np.full(np.shape(good), value)}
    if "high" in row.arguments:
        yield from ({"high": member.arguments["low"]}, {"high": 0.5 * member.arguments["low"], "low": 0.6})


@pytest.mark.parametrize("name", FAMILIES)
def test_arguments_that_make_no_density_are_refused(name):
    """NumPyro is told not to look, as users may tell it; each argument in turn is spoilt, the others are as they were."""
    member = member_of(SCALARS[name].ours if name in SCALARS else VECTORS[name])
    as_prior("p", member.build())
    for changed in spoilt(name):
        with numpyro.validation_enabled(False):
            distribution = member._replace(arguments={**member.arguments, **changed}).build()
        with pytest.raises(PriorError, match=r"prior of 'p'.*has \w+ = .*(numbers are needed|must be)"):
            as_prior("p", distribution)
