"""Bayes factors of ordered and unordered categories against quadrature over every parameter, by SciPy's densities."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import gammaln

import supermodel as sm
from supermodel.regressions.blocks import RSCALES

N, R = 30, RSCALES["continuous"]
X = np.linspace(-1.5, 1.5, N) ** 3 + np.linspace(0, 2, N)
UNIT = (X - X.mean()) / np.std(X)
LATENT = {"cumulative logit": (stats.logistic, np.pi / np.sqrt(3)), "cumulative probit": (stats.norm, 1.0)}


def made(family):
    rng = np.random.default_rng(11)
    if family == "multinomial":
        eta = np.column_stack([np.zeros(N), 0.3 + 0.9 * UNIT, -0.2 - 0.4 * UNIT])
        return pd.DataFrame({"x": X, "y": (eta + rng.gumbel(size=eta.shape)).argmax(axis=1)})
    latent, spread = LATENT[family]
    return pd.DataFrame(
        {"x": X, "y": np.digitize(0.35 * spread * UNIT + latent.rvs(size=N, random_state=rng), [-0.8, 0.9])}
    )


def unit_rule(n):
    nodes, weights = np.polynomial.legendre.leggauss(n)
    return 0.5 * (nodes + 1), 0.5 * weights


def uniform_shares(n):
    """Nodes (m, 3) and weights of Dirichlet(1, 1, 1): the first share, and the second one's part of the rest."""
    nodes, weights = unit_rule(n)
    first, part = (v.ravel() for v in np.meshgrid(nodes, nodes, indexing="ij"))
    return np.column_stack([first, (1 - first) * part, (1 - first) * (1 - part)]), np.outer(
        2 * (1 - nodes) * weights, weights
    ).ravel()


def null_log_evidence(y):
    r"""$\ln \Gamma(K) + \sum \ln n_k! - \ln \Gamma(n + K)$, whatever the family."""
    counts = np.bincount(y)
    return gammaln(len(counts)) + gammaln(counts + 1.0).sum() - gammaln(len(y) + len(counts))


def log_mean(logs, weights):
    top = logs.max()
    return top + np.log(weights @ np.exp(logs - top))


def ordinal_log_evidence(family, y, scale=R, n=48):
    """Quadrature over both shares and, by the quantiles of its Cauchy prior, the effect."""
    latent, spread = LATENT[family]
    shares, mass = uniform_shares(n)
    nodes, weights = unit_rule(2 * n)
    total = []
    for effect in scale * np.tan(np.pi * (nodes - 0.5)):
        eta = spread * effect * UNIT
        cuts = np.column_stack([np.full(len(shares), -np.inf), latent.ppf(shares[:, 0]), latent.isf(shares[:, 2]),
                                np.full(len(shares), np.inf)])  # fmt: skip
        low, high = (cuts[:, y + k] - eta for k in (0, 1))
        p = np.where(low > 0, latent.sf(low) - latent.sf(high), latent.cdf(high) - latent.cdf(low))
        total.append(log_mean(np.log(np.maximum(p, 1e-300)).sum(axis=1), mass))
    return log_mean(np.array(total), weights)


def multinomial_log_evidence(y, scale=R, n=26):
    r"""Quadrature over both shares and both slopes, whose pair is bivariate Cauchy: radius by its quantiles, angle by equal steps.

    Slopes of the categories against the first have a correlation of 1/2 given g, so that all three differences are alike.
    """
    shares, mass = uniform_shares(n)
    nodes, weights = unit_rule(n + 14)
    radius = scale * np.sqrt(1 / (1 - nodes) ** 2 - 1)  # P(radius < q) = 1 - r / sqrt(r^2 + q^2)
    angles = 2 * np.pi * (np.arange(n + 10) + 0.5) / (n + 10)
    root = np.linalg.cholesky(np.array([[1.0, 0.5], [0.5, 1.0]]))
    total = []
    for r in radius:
        for angle in angles:
            slopes = np.pi / np.sqrt(3) * root @ (r * np.array([np.cos(angle), np.sin(angle)]))
            eta = np.column_stack([np.zeros(N), np.outer(UNIT, slopes)])
            eta = eta - eta.max(axis=1, keepdims=True)
            found = np.log(shares)[:, y].sum(axis=1) + eta[np.arange(N), y].sum()
            total.append(log_mean(found - np.log(shares @ np.exp(eta).T).sum(axis=1), mass))
    return log_mean(np.array(total), np.repeat(weights, len(angles)) / len(angles))


def truth(family, y, **options):
    return (
        multinomial_log_evidence(y, **options)
        if family == "multinomial"
        else ordinal_log_evidence(family, y, **options)
    )


@pytest.mark.parametrize(
    "family", ["cumulative logit", pytest.param("cumulative probit", marks=pytest.mark.slow), "multinomial"]
)
def test_the_engine_finds_the_evidences_of_a_quadrature(family):
    """Within 5 errors and the quadrature's own, seen at two sizes; half the prior's scale is not."""
    data = made(family)
    y = data.y.to_numpy()
    one, null = truth(family, y), null_log_evidence(y)
    rough = abs(one - truth(family, y, n=20))
    assert rough < 1e-3
    result = sm.regression("y ~ x", data, family=family, target_error=0.05)
    assert result.verdict.is_reliable
    for name, wanted in (("x", one), ("1", null)):
        found = result.comparison.log_evidence(name)
        assert abs(found.value - wanted) < 5 * found.error + 2 * rough, name
    found = result.log_bayes_factor("x", "1")
    allowed = 5 * found.error + 2 * rough
    assert abs(found.value - (one - null)) < allowed
    assert abs(truth(family, y, scale=0.5 * R, n=20) - one) > allowed
    told_as_asked(result, family)


def told_as_asked(result, family):
    """Effects with the names of their categories, hypotheses about them, words, and the archive."""
    is_unordered = family == "multinomial"
    names = ["x[1]", "x[2]", "Intercept[1]", "Intercept[2]"] if is_unordered else ["x", "cut[0|1]", "cut[1|2]"]
    assert [e.label for e in result.effects()] == names == list(result.to_dataframe("x").columns)
    draws = result.draws("x")
    assert is_unordered or np.all(draws["cut[0|1]"] < draws["cut[1|2]"])
    restricted = result.hypothesis("x[1] > x[2]" if is_unordered else "x > 0")
    share = np.mean(draws["x[1]"] > draws["x[2]"] if is_unordered else draws["x"] > 0)
    assert (
        abs(restricted.posterior.value - share) < 0.03
        and abs(restricted.prior.value - 0.5) < 5 * restricted.prior.error
    )
    assert "Dirichlet(1)" in result.apa() and family in str(result)
    assert result.asdict()["family"] == family and len(result.asdict()["effects"]) == len(names)


@pytest.mark.slow
def test_factors_and_groups_by_importance_sampling():
    """An ordinal response with a factor and groups: ln Z from 40 000 draws of a broad t about the posterior's mode."""
    rng = np.random.default_rng(5)
    data = made("cumulative logit").assign(f=np.resize(["u", "v", "w"], N), g=np.repeat(["a", "b", "c"], N // 3))
    result = sm.regression("y ~ f + (1 | g)", data, family="ordinal", target_error=0.05)
    assert result.verdict.is_reliable
    for name, n_wanted in (("f", 9), ("1", 6)):
        model = result.fits[name].regressor.model
        posterior = result.comparison.posterior(name)
        values = {k: np.asarray(v) for k, v in posterior.parameters.items()}
        found = result.comparison.log_evidence(name)
        wanted, error = importance(model, values, posterior.weights, rng, data.y.to_numpy(float), n_wanted)
        assert abs(found.value - wanted) < 5 * np.hypot(found.error, error), name


def importance(model, values, weights, rng, y, size, n=40_000):
    """ln Z and its error, with a t of 4 degrees of freedom in the unconstrained coordinates; the density is the model's own."""
    import jax
    import jax.numpy as jnp

    space = model.space
    chosen = rng.choice(len(weights), 500, p=weights)
    points = space.points_of({name: v[chosen] for name, v in values.items()})
    assert points.shape[1] == size
    proposal = stats.multivariate_t(points.mean(axis=0), 1.3 * np.cov(points.T), df=4)
    draws = proposal.rvs(n, random_state=rng)

    def log_joint(u):
        return space.log_prior(u) + model.log_likelihood(space.constrain(u), {"y": y})

    logs = np.concatenate(
        [np.asarray(jax.jit(jax.vmap(log_joint))(jnp.asarray(part))) for part in np.array_split(draws, 8)]
    )
    logs = logs - proposal.logpdf(draws)
    w = np.exp(logs - logs.max())
    return float(logs.max() + np.log(w.mean())), float(w.std() / w.mean() / np.sqrt(n))
