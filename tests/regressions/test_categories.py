"""Responses that are categories: likelihoods and priors against SciPy's, two categories against logistic regression, input."""

import jax
import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
from scipy import stats

import supermodel as sm
from supermodel.regressions import regress
from supermodel.regressions.blocks import RSCALES
from supermodel.regressions.categories import Ordered, cut_points
from supermodel.regressions.design import Design
from supermodel.regressions.families import LOGISTIC, Linear, Regressor
from supermodel.regressions.formula import parse
from supermodel.regressions.response import OF_CATEGORIES, as_family, as_response
from supermodel.shell.cli import main
from supermodel.spec.regression import regression_of

N = 24
X = np.linspace(-1.0, 2.0, N) ** 2
LATENT = {"cumulative logit": stats.logistic, "cumulative probit": stats.norm}
SPREAD = {"cumulative logit": LOGISTIC, "cumulative probit": 1.0, "multinomial": LOGISTIC}
SHARES = np.array([0.2, 0.1, 0.4, 0.3])
LEVELS = ["never", "seldom", "often", "always"]


def table(n_levels=4):
    y = np.resize(np.arange(n_levels), N)[np.random.default_rng(2).permutation(N)]
    groups = np.repeat(["a", "b", "c", "d"], N // 4)
    return pd.DataFrame({"y": y, "x": X, "f": np.resize(["u", "v", "w"], N), "g": groups})


def regressor(family, right, data=None, own=None, levels=None):
    data, own = table() if data is None else data, own or {}
    parsed = parse(f"y ~ {right}")
    response = as_response(parsed, data, family, levels)
    sets = response.levels if family == "multinomial" else ()
    blocks = Design.of(parsed, data).blocks(parsed.terms, RSCALES, own)
    return data, Regressor(family, response, tuple(Linear(b, own.get(b.name), sets) for b in blocks), True, own)


def drawn(found, seed=0, n=1):
    """Values of all parameters, some of them far out."""
    rng = np.random.default_rng(seed)
    values = found.model.space.values_at(found.model.space.sample_prior(rng, n))
    return values if n > 1 else {name: v[0] for name, v in values.items()}


def told(found, values):
    return {
        name: float(v[0])
        for name, v in found.effects({k: np.asarray(v, float)[None] for k, v in values.items()}).items()
    }


def eta_of(data, effects, end=""):
    """The linear predictor from the effects that the parameters are said to mean."""
    eta = effects[f"x{end}"] * (data.x - data.x.mean())  # covariates are centred, factors are not
    eta = eta + data.f.map(lambda level: effects[f"f[{level}]{end}"])
    return (eta + data.g.map(lambda level: effects[f"1 | g[{level}]{end}"])).to_numpy()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("family", OF_CATEGORIES)
def test_the_likelihood_is_that_of_the_effects_it_tells(family, seed):
    """With a covariate, a factor of three levels and groups, at draws from the prior."""
    data, found = regressor(family, "x + f + (1 | g)")
    values = drawn(found, seed)
    effects = told(found, values)
    if family == "multinomial":
        eta = np.column_stack(
            [np.zeros(N)] + [effects[f"Intercept[{k}]"] + eta_of(data, effects, f"[{k}]") for k in (1, 2, 3)]
        )
        p = np.exp(eta - eta.max(axis=1, keepdims=True))
        p = (p / p.sum(axis=1, keepdims=True))[np.arange(N), data.y]
    else:
        cuts = np.array([-np.inf, *(effects[f"cut[{k}|{k + 1}]"] for k in range(3)), np.inf])
        low, high = (cuts[data.y + k] - eta_of(data, effects) for k in (0, 1))
        cdf, sf = LATENT[family].cdf, LATENT[family].sf
        p = np.where(low > 0, sf(low) - sf(high), cdf(high) - cdf(low))
    wanted = np.log(p).sum()
    assert np.isfinite(wanted)  # SciPy can tell these apart
    got = found.model.log_likelihood(values, {"y": found.response.y})
    assert np.isclose(float(got), wanted, rtol=1e-6)
    assert set(found.model.priors) == set(values)


@pytest.mark.parametrize("family", OF_CATEGORIES)
def test_effects_are_in_units_of_the_latent_noise_and_shares_are_those_at_the_mean(family):
    data, found = regressor(family, "x + (1 | g)")
    values = drawn(found, 1) | {"shares": SHARES, "w (1 | g)": 0.8}
    effects = told(found, values)
    assert np.isclose(effects["sd(1 | g)"], SPREAD[family] / 0.8)
    zero = {
        name: v if name == "shares" else np.zeros_like(v) if name.startswith(("z", "effect")) else v
        for name, v in values.items()
    }
    densities = np.asarray(found.model.pointwise_log_likelihood(zero, {"y": found.response.y}))
    assert np.allclose(densities, np.log(SHARES)[data.y], rtol=1e-12)
    assert found.model.priors["shares"].description.startswith("Dirichlet") and len(found.labels) == (
        3 if family == "multinomial" else 1
    )
    if family != "multinomial":
        assert np.isclose(effects["x"], SPREAD[family] * values["effect x"] / np.std(data.x))


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_cuts_and_densities_keep_their_digits_far_out(link):
    """Shares of 1e-12 at both ends, and predictors at 40 spreads: finite, with finite gradients, and right."""
    latent = {"logit": stats.logistic, "probit": stats.norm}[link]
    shares = np.array([1e-12, 0.3, 0.7 - 2e-12, 1e-12])
    cuts = np.asarray(cut_points(shares, link))
    assert np.allclose(cuts, [latent.ppf(1e-12), latent.ppf(0.3 + 1e-12), latent.isf(1e-12)], rtol=1e-9)
    y, eta = np.tile(np.arange(4.0), 3), np.repeat([-40.0, 0.5, 40.0], 4)

    def total(eta, shares):
        return Ordered(link).pointwise(eta, {"y": y, "shares": shares}).sum()

    found = np.asarray(Ordered(link).pointwise(eta, {"y": y, "shares": shares}))
    edges = np.array([-np.inf, *cuts, np.inf])
    low, high = (edges[y.astype(int) + k] - eta for k in (0, 1))
    lower, upper = (latent.logcdf(high), latent.logcdf(low)), (latent.logsf(low), latent.logsf(high))
    a, b = (np.where(low + high > 0, u, v) for u, v in zip(upper[::-1], lower[::-1], strict=True))
    wanted = b + np.log(-np.expm1(np.minimum(a - b, -1e-30)))
    assert np.allclose(found, wanted, rtol=1e-9)
    assert all(np.all(np.isfinite(g)) for g in jax.grad(total, argnums=(0, 1))(eta, shares))


@pytest.mark.parametrize("family", list(LATENT))
def test_an_offset_moves_the_latent_scale(family):
    """With no effect, P(y <= k) is F(c_k - offset), and an offset turned round is another."""
    data, found = regressor(family, "x + offset(0.8 * x)")
    values = {"shares": SHARES, "effect x": 0.0}
    latent = LATENT[family]
    edges = np.array([-np.inf, *latent.ppf(np.cumsum(SHARES)[:-1]), np.inf])
    for sign in (1, -1):
        wanted = np.log(
            np.diff(latent.cdf(edges[data.y.to_numpy()[:, None] + [0, 1]] - sign * 0.8 * X[:, None]), axis=1)[:, 0]
        )
        agrees = np.allclose(
            np.asarray(found.model.pointwise_log_likelihood(values, {"y": found.response.y})), wanted, rtol=1e-9
        )
        assert agrees == (sign == 1)


# -- two categories are logistic regression ---------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["cumulative logit", "multinomial"])
def test_with_two_categories_it_is_logistic_regression_whose_intercept_has_a_logistic_prior(family):
    r"""$\pi \sim$ Dirichlet(1, 1) is $\ln(\pi_1 / \pi_0) \sim$ Logistic(0, 1): joint densities agree at every point."""
    data = table(2)
    _, ours = regressor(family, "x + f + (1 | g)", data)
    _, theirs = regressor("bernoulli", "x + f + (1 | g)", data, {"Intercept": dist.Logistic(0.0, 1.0)})
    assert set(ours.model.priors) - {"shares"} == set(theirs.model.priors) - {"Intercept"}
    for name in set(ours.model.priors) - {"shares"}:
        assert ours.model.priors[name].description == theirs.model.priors[name].description
    for seed in range(5):
        values = drawn(ours, seed)
        share = values["shares"]
        same = {k: v for k, v in values.items() if k != "shares"} | {"Intercept": np.log(share[1] / share[0])}
        of_ours, of_theirs = (
            m.model.log_likelihood(v, {"y": data.y.to_numpy(float)}) for m, v in ((ours, values), (theirs, same))
        )
        assert np.isclose(float(of_ours), float(of_theirs), rtol=1e-9)
        assert not np.isclose(
            float(of_ours), float(theirs.model.log_likelihood(same | {"effect x": -1.0}, {"y": data.y.to_numpy(float)}))
        )
    effects = told(ours, values), told(theirs, same)
    end = "[1]" if family == "multinomial" else ""
    assert np.isclose(effects[0][f"x{end}"], effects[1]["x"]) and np.isclose(
        effects[0][f"f[u]{end}"], effects[1]["f[u]"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("family", ["cumulative logit", "multinomial"])
def test_with_two_categories_the_engine_finds_the_bayes_factor_of_logistic_regression(family):
    data = table(2).assign(y=lambda t: (t.x + np.resize([0.0, 1.5], N) > 1).astype(int))
    theirs = sm.regression(
        "y ~ x", data, family="bernoulli", priors={"Intercept": dist.Logistic(0.0, 1.0)}
    ).log_bayes_factor()
    ours = sm.regression("y ~ x", data, family=family).log_bayes_factor()
    allowed = 5 * np.hypot(ours.error, theirs.error)
    assert abs(ours.value - theirs.value) < allowed < 0.1


# -- the prior of a multinomial response is turned by no exchange of categories ---------------------------------------


def test_every_pair_of_categories_has_the_prior_of_a_logistic_regression_between_them():
    """Medians of |difference| over draws: for a Cauchy of scale r the median is r. Counts beyond it are binomial, 5 sd."""
    data, found = regressor("multinomial", "x")
    n = 40_000
    effects = found.effects(drawn(found, n=n))
    scale = RSCALES["continuous"] * LOGISTIC / np.std(data.x)
    each = {0: np.zeros(n)} | {k: effects[f"x[{k}]"] for k in (1, 2, 3)}
    for j in range(4):
        for k in range(j):
            beyond = np.mean(np.abs(each[j] - each[k]) > scale)
            assert abs(beyond - 0.5) < 2.5 / np.sqrt(n), (j, k)
    assert abs(np.mean(np.abs(each[1]) > 1.2 * scale) - 0.5) > 2.5 / np.sqrt(n)
    intercepts = {0: np.zeros(n)} | {k: effects[f"Intercept[{k}]"] for k in (1, 2, 3)}
    assert all(abs(np.mean(intercepts[j] > intercepts[k]) - 0.5) < 2.5 / np.sqrt(n) for j in range(4) for k in range(j))


def test_another_baseline_is_another_reading_of_the_same_density():
    data = table().assign(y=lambda t: np.array(LEVELS)[t.y])
    one = as_response(parse("y ~ x"), data, "multinomial", LEVELS)
    other = as_response(parse("y[often] ~ x"), data, "multinomial", LEVELS)
    assert one.levels == tuple(LEVELS) and other.levels == ("often", "never", "seldom", "always")
    assert [one.levels[int(k)] for k in one.y] == [other.levels[int(k)] for k in other.y] == list(data.y)
    _, found = regressor("multinomial", "x + (1 | g)")
    contrasts = np.vstack([np.zeros(3), found.parts[0]._against_first.T])  # categories, as points: a regular simplex
    distances = np.linalg.norm(contrasts[:, None] - contrasts[None], axis=-1)
    assert np.allclose(distances, 1 - np.eye(4))


def test_priors_of_the_users_own_are_on_log_odds_against_the_baseline():
    _, found = regressor("multinomial", "x + f + (x | g)", own={"x": stats.norm(0, 5), "f": stats.norm(0, 1),
                                                              "(x | g)": stats.halfnorm(0, 2)})  # fmt: skip
    names = set(found.model.priors)
    assert {"x[1]", "x[2]", "x[3]", "f.1[1]", "f.2[3]", "sd(x | g)", "z(x | g)"} <= names
    effects = told(found, drawn(found) | {"x[1]": 0.7, "x[2]": -0.2, "x[3]": 0.1, "sd(x | g)": 0.3})
    assert np.isclose(effects["x[1]"], 0.7) and np.isclose(effects["x[2]"], -0.2) and effects["sd(x | g)"] == 0.3


# -- input ------------------------------------------------------------------------------------------------------------


def test_an_order_comes_from_the_column_from_numbers_or_is_told():
    data = table()
    words = data.assign(y=np.array(LEVELS)[data.y])
    column = words.assign(y=pd.Categorical(words.y, [*LEVELS[:2], "nobody", *LEVELS[2:]], ordered=True))
    for given, levels, names in ((data, None, "0123"), (data.assign(y=data.y * 1.0), None, "0123"),
                                 (words, LEVELS, LEVELS), (column, None, LEVELS), (data, [0, 1, 2, 3], "0123"),
                                 (data.assign(y=data.y > 1), None, ["False", "True"])):  # fmt: skip
        found = as_response(parse("y ~ x"), given, "cumulative logit", levels)
        assert (
            found.levels == tuple(names) and found.y.tolist() == ((data.y > 1) if len(names) == 2 else data.y).tolist()
        )
    turned = as_response(parse("y ~ x"), words, "cumulative logit", LEVELS[::-1])
    assert turned.y.tolist() == (3 - data.y).tolist()
    assert as_response(parse("y ~ x"), words, "multinomial").levels == tuple(sorted(LEVELS))


def test_names_of_families():
    names = {"ordinal": "cumulative logit", "Cumulative": "cumulative logit", "ordered probit": "cumulative probit"}
    for name, family in (names | {"categorical": "multinomial"}).items():
        assert as_family(name) == family


WORDS = table().assign(y=np.array(LEVELS)[table().y])
THREE = dist.Dirichlet(np.ones(3))
BAD = {
    "no order": ("y ~ x", WORDS, {"family": "ordinal"}, r"in no known order \('always', 'never'.*levels=\[...\]"),
    "unordered column": ("y ~ x", WORDS.assign(y=pd.Categorical(WORDS.y)), {"family": "ordinal"}, "in no known order"),
    "level left out": ("y ~ x", WORDS, {"family": "ordinal", "levels": LEVELS[1:]}, "is 'never' in row .*none of the levels"),
    "level twice": ("y ~ x", WORDS, {"family": "ordinal", "levels": ["never", "never"]}, "each once"),
    "one text": ("y ~ x", WORDS, {"family": "ordinal", "levels": "never"}, "two or more categories"),
    "halves": ("y ~ x", table().assign(y=X), {"family": "ordinal"}, "must be categories .* is 0.75"),
    "too many": ("y ~ x", table().assign(y=np.arange(N)), {"family": "ordinal"}, "2 to 20 categories; 'y' has 24"),
    "constant": ("y ~ x", table().assign(y=1), {"family": "multinomial"}, "'y' has 1 .*nothing to explain"),
    "baseline of an order": ("y['2'] ~ x", table(), {"family": "ordinal"}, "have no baseline"),
    "no such baseline": ("y['7'] ~ x", table(), {"family": "multinomial"}, "one of the categories of 'y', 0, 1, 2, 3"),
    "no intercept": ("y ~ 0 + x", table(), {"family": "multinomial"}, "Leave the intercept in"),
    "offset": ("y ~ x + offset(x)", table(), {"family": "multinomial"}, "belongs to none of them"),
    "levels of numbers": ("x ~ y", table(), {"levels": [1, 2]}, "the family is 'gaussian'"),
    "family": ("y ~ x", table(), {"family": "ordnal"}, "cumulative logit, cumulative probit, multinomial"),
    "prior of nothing": ("y ~ x", table(), {"family": "ordinal", "priors": {"Intercept": stats.norm(0, 1)}}, "there are shares, x"),
    "other shares": ("y ~ x", table(), {"family": "ordinal", "priors": {"shares": THREE}}, "must be of 4 shares .*shape \\(3,\\)"),
    "missing": ("y ~ x", WORDS.assign(y=WORDS.y.where(WORDS.index > 0)), {"family": "multinomial"}, "1 of 24 rows are incomplete"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_a_sentence(case):
    formula, data, options, words = BAD[case]
    with pytest.raises(sm.SupermodelError, match=words):
        sm.regression(formula, data, **options)


def test_a_file_and_the_shell_name_family_and_levels(tmp_path, monkeypatch, capsys):
    WORDS.to_csv(tmp_path / "words.csv", index=False)
    text = '[regression]\nformula = "y ~ x"\ndata = "words.csv"\nfamily = "ordinal"\n'
    (tmp_path / "a.toml").write_text(text + f"levels = {LEVELS}\n")
    seen = []

    def by_engine(design, response, named, rscales, own, common, options):
        seen.append((response.levels, common["family"], common["priors"]))
        raise sm.SupermodelError("seen")

    monkeypatch.setattr(regress, "_by_engine", by_engine)
    with pytest.raises(sm.SupermodelError, match="seen"):
        regression_of(tmp_path / "a.toml").run()
    assert (
        main(["regress", "y ~ x", str(tmp_path / "words.csv"), "--family", "cumulative probit", "--levels", *LEVELS])
        == 2
    )
    assert [s[:2] for s in seen] == [(tuple(LEVELS), "cumulative logit"), (tuple(LEVELS), "cumulative probit")]
    assert (
        seen[0][2]
        == "Zellner-Siow with r = 0.354 continuous; the 4 categories' shares at the mean of the predictors ~ Dirichlet(1)"
    )
    own = {"shares": dist.Dirichlet(np.array([2.0, 2, 1.5, 1]))}
    with pytest.raises(sm.SupermodelError, match="seen"):
        sm.regression("y ~ x", WORDS, family="multinomial", levels=LEVELS, priors=own)
    assert seen[2][2] == "Zellner-Siow with r = 0.354 continuous; shares ~ Dirichlet(2, 2, 1.5, 1)"
    assert main(["regress", "y ~ x", str(tmp_path / "words.csv"), "--anova", "--levels", *LEVELS]) == 2
    assert "leave --levels out" in capsys.readouterr().err
