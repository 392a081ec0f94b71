"""Fractions of a population: against quadrature, a brute grid, and simulated populations."""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from population_problems import FALSE_ALARM, THREE, simulated, told
from supermodel.errors import SupermodelError
from supermodel.survey import table
from supermodel.survey.buckets import refused
from supermodel.survey.population import Known, checked_alpha, fitted
from supermodel.survey.result import ManyResult


def by_quadrature(known, alpha):
    """E f, sd f, and E r of each object, for two models without errors, by adaptive quadrature in f itself."""
    z = np.exp(known.log_z)

    def density(f):
        return (
            np.exp(np.log(f * z[:, 0] + (1 - f) * z[:, 1]).sum() - top)
            * f ** (alpha[0] - 1)
            * (1 - f) ** (alpha[1] - 1)
        )

    def of(what):
        return integrate.quad(lambda f: what(f) * density(f), 0, 1, epsabs=0, epsrel=1e-11, limit=400)[0] / norm

    top, norm = 0.0, 1.0
    top = max(math.log(density(f)) for f in np.linspace(0.01, 0.99, 99))
    norm = of(lambda f: 1.0)
    mean = of(lambda f: f)
    members = [of(lambda f, a=a, b=b: f * a / (f * a + (1 - f) * b)) for a, b in z[:3]]
    return mean, math.sqrt(of(lambda f: (f - mean) ** 2)), members


@pytest.mark.parametrize(("n", "f", "alpha"), [(40, 0.3, (1.0, 1.0)), (25, 0.02, (0.5, 2.0)), (150, 0.9, (3.0, 1.5))])
def test_two_models_are_as_by_quadrature(n, f, alpha, rng):
    _, known = simulated(rng, [f, 1 - f], n)
    fit, (mean, sd, members) = fitted(known, np.array(alpha)), by_quadrature(known, alpha)
    assert fit.mean[0] == pytest.approx(mean, rel=1e-8) and fit.mean.sum() == pytest.approx(1.0)
    assert fit.sd[0] == pytest.approx(sd, rel=1e-7) and not fit.error.any()
    assert fit.probabilities[:3, 0] == pytest.approx(members, rel=1e-8)


def test_where_every_object_is_plain_the_posterior_is_a_beta_distribution():
    """ln B = ±1000: 3 of 10 are of the first model, so that f ~ Beta(1 + 3, 2 + 7)."""
    log_z = np.array([[1000.0, 0.0]] * 3 + [[0.0, 1000.0]] * 7)
    fit, exact = fitted(Known(log_z, np.zeros((10, 2, 2))), np.array([1.0, 2.0])), stats.beta(4, 9)
    assert fit.mean[0] == pytest.approx(exact.mean(), rel=1e-9) and fit.sd[0] == pytest.approx(exact.std(), rel=1e-9)
    for q in (
        0.025,
        0.5,
        0.975,
    ):  # linear between points: the error is the square of their distance, 0.1 at most, over 8
        assert fit.quantile(q)[0] == pytest.approx(exact.ppf(q), abs=exact.std() * 0.1**2)


def test_three_models_are_as_on_a_brute_grid(rng):
    """Within Monte Carlo errors of importance sampling, sd / sqrt(ess); 6 numbers, false alarms 1e-6 in all."""
    _, known = simulated(rng, [0.5, 0.4, 0.1], 60, THREE)
    alpha = np.array([1.0, 1.5, 1.2])
    fit = fitted(known, alpha)
    side = (np.arange(400) + 0.5) / 400
    f = np.stack([a.ravel() for a in np.meshgrid(side, side)], axis=1)
    f = np.column_stack([f, 1 - f.sum(1)])[f.sum(1) < 1 - 1e-9]
    logs = np.log(np.exp(known.log_z) @ f.T).sum(0) + np.log(f) @ (alpha - 1)
    w = np.exp(logs - logs.max())
    w /= w.sum()
    mean, sd = w @ f, np.sqrt(w @ (f - w @ f) ** 2)
    z = stats.norm.isf(FALSE_ALARM / 12)
    assert fit.ess > 1000
    assert np.all(np.abs(fit.mean - mean) < z * sd / math.sqrt(fit.ess))
    assert np.all(np.abs(fit.sd / sd - 1) < z * math.sqrt(0.5 * 3 / fit.ess))  # a kurtosis of up to 7 is allowed for
    inside = np.exp(known.log_z)[0] * f
    member = w @ (inside / inside.sum(1, keepdims=True))
    assert fit.probabilities[0] == pytest.approx(member, abs=z * 0.5 / math.sqrt(fit.ess))
    turned = fitted(Known(known.log_z[:, ::-1], known.squares), alpha[::-1])  # another reference model, the same answer
    assert np.all(np.abs(turned.mean[::-1] - mean) < z * sd / math.sqrt(turned.ess))


def places(rng, alpha_true, alpha, n_surveys=200, sign=1.0):
    """The posterior probability of fractions below the true one, in surveys whose fractions are drawn from the prior."""
    found = []
    for _ in range(n_surveys):
        f = rng.beta(*alpha_true)
        _, known = simulated(rng, [f, 1 - f], 20)
        fit = fitted(Known(sign * known.log_z, known.squares), np.array(alpha))
        grid = special.logit(fit.points[:, 0])
        found.append(np.interp(special.logit(f), grid, np.cumsum(fit.weights) - 0.5 * fit.weights))
    return stats.kstest(found, "uniform").pvalue


def test_repeated_surveys_find_their_fractions_where_they_say(rng):
    """Places of the truth in the posterior are uniform, exactly; two planted errors are caught."""
    prior = (2.0, 12.0)
    assert places(rng, prior, prior) > FALSE_ALARM
    assert places(rng, prior, (1.0, 1.0)) < FALSE_ALARM  # the prior is forgotten
    assert places(rng, prior, prior, sign=-1.0) < FALSE_ALARM  # evidences with the wrong sign


def z_of_the_mean(rng, error, is_told, n_surveys=25, n=2000):
    """Mean of (posterior mean - truth) / sd over surveys, in units of its own error."""
    found = []
    for _ in range(n_surveys):
        _, known = simulated(rng, [0.2, 0.8], n, error=error)
        fit = fitted(known if is_told else Known(known.log_z, 0 * known.squares), np.array([1.0, 1.0]))
        found.append((fit.mean[0] - 0.2) / fit.sd[0])
    return float(np.mean(found)) * math.sqrt(n_surveys), float(np.sum(np.square(found)))


def test_errors_of_ln_b_neither_shift_the_fraction_nor_are_forgotten(rng):
    """2000 objects, ln B ± 0.7: the mean of z is that of a normal, and their sum of squares chi-squared, to 1e-6.

    Terms of fourth order and the prior shift z by a few hundredths; 1 standard deviation of the mean is allowed for them.
    With the errors kept secret the fraction is off.
    """
    limit = stats.norm.isf(FALSE_ALARM / 2)
    z, squares = z_of_the_mean(rng, 0.7, True)
    assert (
        abs(z) < limit + 1 and squares < stats.chi2(25).isf(FALSE_ALARM) and squares > stats.chi2(25).ppf(FALSE_ALARM)
    )
    assert abs(z_of_the_mean(rng, 0.7, False)[0]) > limit + 1


def test_the_part_from_errors_is_how_much_the_fraction_moves(rng):
    """40 times other errors of ln B on the same objects: their spread is `error`, by chi-squared to 1e-6."""
    _, known = simulated(rng, [0.4, 0.6], 300)
    squares = 0.2**2 * np.broadcast_to(1 - np.eye(2), (300, 2, 2))
    noisy = (known.log_z + 0.2 / math.sqrt(2) * rng.normal(size=(300, 2)) for _ in range(40))
    fits = [fitted(Known(log_z, squares), np.ones(2)) for log_z in noisy]
    spread = np.var([fit.mean[0] for fit in fits], ddof=1) / np.mean([fit.error[0] ** 2 for fit in fits])
    low, high = stats.chi2(39).ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2]) / 39
    assert low < spread < high
    assert all(fit.sd[0] > fit.error[0] > 0 for fit in fits)


def test_memberships_are_averaged_over_the_errors():
    """Against quadrature over ln B ~ N(2, 0.3), at a fraction that 20 000 plain objects pin to one half."""
    log_z = np.array([[2.0, 0.0]] + [[500.0, 0.0], [0.0, 500.0]] * 10_000)
    squares = np.zeros((len(log_z), 2, 2))
    squares[0] = 0.3**2 * (1 - np.eye(2))
    p = fitted(Known(log_z, squares), np.ones(2)).probabilities[0, 0]
    exact = integrate.quad(lambda x: special.expit(x) * stats.norm.pdf(x, 2, 0.3), -2, 6, epsabs=1e-12)[0]
    fourth = (
        0.3**4 / 8
    )  # E (x - 2)^4 / 4! = 3 s^4 / 24, times a fourth derivative of the logistic function, below 1 / 4
    assert abs(p - exact) < fourth / 4 + 1e-4  # and the spread of f: 1 / (4 * 20000) at most
    assert special.expit(2.0) - p > 2 * abs(p - exact)


def test_a_result_tells_its_population(rng):
    _, known = simulated(rng, [0.5, 0.3, 0.2], 50, THREE, error=0.1)
    models = ("a", "b", "c")
    outcomes = [*told(known, models, ["ok"] * 48 + ["caution", "fail"]), refused(50, "torn", "data", "torn")]
    frame = table.frame_of(outcomes, models)
    frame.loc[frame["row"] == 3, "error"] = 2.0  # tells too little
    result = ManyResult(models, {"prior_odds": {"a": 0.5, "b": 0.25, "c": 0.25}}, frame=frame)
    found = result.population()
    assert found.alpha == {"a": 1.5, "b": 0.75, "c": 0.75} and found.n_left_out == 3
    assert list(found.members["dataset"]) == [f"n{i}" for i in range(49) if i != 3]
    assert found.members[list(models)].sum(axis=1).to_numpy() == pytest.approx(np.ones(48))
    kept = [i for i in range(49) if i != 3]
    same = fitted(Known(known.log_z[kept], known.squares[kept]), np.array([1.5, 0.75, 0.75]))
    assert found.fractions["fraction"].to_numpy() == pytest.approx(same.mean, abs=1e-9)
    assert np.all(found.fractions["low"] < found.fractions["fraction"])
    assert "3 without a usable answer left out" in str(found) and "<table" in found._repr_html_()
    with pytest.raises(SupermodelError, match="nothing is known of the population"):
        ManyResult(models, {}, frame=frame[frame["verdict"] == "fail"]).population()


@pytest.mark.parametrize("prior", [0.0, "two", {"a": 1.0}, {"a": 1.0, "b": math.nan}, {"a": 1, "b": 1, "z": 1}])
def test_a_prior_that_is_none_is_told(prior):
    with pytest.raises(SupermodelError, match="alpha of a Dirichlet prior"):
        checked_alpha(prior, ("a", "b"), None)
