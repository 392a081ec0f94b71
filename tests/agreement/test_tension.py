"""Two data sets of one universe or of two, beside closed forms: linear models with normal noise and normal priors."""

import json
import pickle
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

import supermodel as sm
from supermodel.agreement.joint_likelihood import HELD, three
from supermodel.agreement.quantities import two_sided
from supermodel.exact import LinearGaussian

MEANS, SDS = {"u": 0.4, "v": -0.7, "c": 0.3, "k": 1.3}, {"u": 2.1, "v": 1.6, "c": 0.8, "k": 1.2}
PRIORS = {name: dist.Normal(MEANS[name], SDS[name]) for name in MEANS}


def made(seed, n, columns, values, sigma):
    """A data set: a column of the design for each parameter, what was measured, and its error."""
    rng = np.random.default_rng(seed)
    design = {name: rng.normal(0.6, 0.9, n) for name in columns}
    y = sum(values[name] * column for name, column in design.items()) + sigma * rng.standard_normal(n)
    return design | {"y": y, "sigma": np.full(n, sigma)}


def exact(data, names):
    """ln Z, <ln L>, D and d = 2 var(ln L) of data sets taken together."""
    design = np.concatenate([np.stack([d.get(n, np.zeros(len(d["y"]))) for n in names], axis=1) for d in data])
    y, sigma = (np.concatenate([d[name] for d in data]) for name in ("y", "sigma"))
    model = LinearGaussian(design, y, sigma, [SDS[n] ** 2 for n in names], [MEANS[n] for n in names])
    mean, covariance = model.posterior_mean, model.posterior_covariance
    fisher = (design / sigma[:, None]).T @ (design / sigma[:, None])
    slope = design.T @ ((y - design @ mean) / sigma**2)
    fit = float(model.log_likelihood(mean)) - 0.5 * np.trace(fisher @ covariance)
    spread = fisher @ covariance
    d = np.trace(spread @ spread) + 2 * slope @ covariance @ slope
    return SimpleNamespace(log_z=model.log_evidence, fit=fit, information=fit - model.log_evidence, d=d)


def truth(data_a, data_b, a=("u", "v"), b=("u", "v")):
    """Every number of a tension, in closed form."""
    one, other, both = exact([data_a], a), exact([data_b], b), exact([data_a, data_b], dict.fromkeys((*a, *b)))
    log_r = both.log_z - one.log_z - other.log_z
    log_i = one.information + other.information - both.information
    d, log_s = one.d + other.d - both.d, log_r - log_i
    assert np.isclose(log_s, both.fit - one.fit - other.fit)  # ln S needs no ln Z
    p = stats.chi2.sf(d - 2 * log_s, d)
    return {
        "log_r": log_r, "log_i": log_i, "log_s": log_s, "dimensionality": d, "p": p, "sigma": stats.norm.isf(p / 2)
    }  # fmt: skip


def linear(names):
    def predict(p, data):
        return sum(p[name] * data[name] for name in names)

    return sm.Model({name: PRIORS[name] for name in names}, predict=predict, noise=sm.Gaussian("sigma"))


def log_likelihood(p, data):
    """Of arrays of any shape, without JAX, in u and v."""
    r = (data["y"] - np.asarray(p["u"])[..., None] * data["u"] - np.asarray(p["v"])[..., None] * data["v"]) / data[
        "sigma"
    ]
    return -0.5 * np.sum(r**2, axis=-1) - np.sum(np.log(np.sqrt(2 * np.pi) * data["sigma"]))


def plain_log_likelihood(p, data):
    return float(log_likelihood({name: float(value) for name, value in p.items()}, data))


def jax_log_likelihood(p, data):
    r = (data["y"] - p["u"] * data["u"] - p["v"] * data["v"]) / data["sigma"]
    return -0.5 * jnp.sum(r**2) - np.sum(np.log(np.sqrt(2 * np.pi) * data["sigma"]))


UV = {"u": 0.9, "v": -0.3}
NORTH, SOUTH = made(1, 30, "uv", UV, 0.4), made(2, 25, "uv", UV, 0.5)
AWAY = made(3, 25, "uv", {"u": 1.29, "v": -0.62}, 0.5)  # 4 sigma from the first
ONE, OTHER = made(4, 30, "uvc", UV | {"c": 0.6}, 0.4), made(5, 35, "uvk", UV | {"k": 1.7}, 0.5)
QUANTITIES = ("log_r", "log_i", "log_s", "dimensionality", "p", "sigma")
PAIRS = {"agree": (NORTH, SOUTH), "disagree": (NORTH, AWAY)}


def off(found, expected):
    """By how many of its errors each number is off."""
    return {
        name: (getattr(found, name).value - expected[name]) / max(getattr(found, name).error, 1e-6)
        for name in QUANTITIES
    }


@pytest.fixture(scope="module", params=PAIRS)
def case(request):
    data_a, data_b = PAIRS[request.param]
    return request.param, sm.tension(linear("uv"), data_a, data_b, names=("north", "south")), truth(data_a, data_b)


def test_the_data_are_what_they_are_called():
    assert truth(NORTH, SOUTH)["sigma"] < 1.5 and 3.7 < truth(NORTH, AWAY)["sigma"] < 4.3


def test_every_number_is_that_of_the_closed_form(case):
    _, found, expected = case
    assert max(map(abs, off(found, expected).values())) < 4, off(found, expected)
    assert found.log_r.error < 0.1 and found.log_s.error < 0.1 and found.dimensionality.error < 0.6
    assert found.verdict.level == "ok" and found.cautions == ()
    for name in found.names:
        assert found.posterior(name).worst_ess >= 1000


def test_words_say_it(case):
    kind, found, _ = case
    word = {"agree": "north and south agree: ", "disagree": "north and south are in strong tension: "}[kind]
    assert found.sentence().startswith(word) and found.headline.startswith("north and south: ")
    said = str(found)
    for part in (
        "ln R ",
        "ln I ",
        "ln S ",
        "ln Z(north + south)",
        "Verdict OK",
        "depends on the priors",
        "north + south",
    ):
        assert part in said
    assert max(map(len, said.splitlines())) <= 120
    assert "suspiciousness" in found.methods() and "seed 0" in found.methods()
    assert "<table" in found._repr_html_()
    plain = json.loads(found.to_json())
    assert plain["names"] == {"first": "north", "second": "south", "both": "north + south"} and plain["shared"] == [
        "u",
        "v",
    ]
    assert plain["log_s"]["value"] == found.log_s.value and plain["data_sets"]["north"]["fit"]["error"] > 0


def test_the_picture_has_a_panel_for_each_shared_number(case):
    _, found, _ = case
    axes = found.plot()
    assert len(axes) == 2
    for ax in axes:
        assert {text.get_text() for text in ax.texts} >= {"north", "south", "north + south"}
    assert len(found.plot(["v"])) == 1
    with pytest.raises(sm.SupermodelError, match="'w' is no parameter that both"):
        found.plot(["w"])


def test_the_wider_prior_raises_ln_r_and_leaves_ln_s():
    """Of the exact numbers, and of those that are found."""
    wide = {name: dist.Normal(MEANS[name], 2 * SDS[name]) for name in "uv"}
    model = sm.Model(wide, jax_log_likelihood)
    found, narrow = sm.tension(model, NORTH, SOUTH), truth(NORTH, SOUTH)
    assert abs(found.log_r.value - narrow["log_r"] - 2 * np.log(2)) < 0.1
    assert abs(found.log_s.value - narrow["log_s"]) < 4 * found.log_s.error + 0.05


def test_each_may_have_nuisance_parameters():
    expected = truth(ONE, OTHER, "uvc", "uvk")
    found = sm.tension({"one": (linear("uvc"), ONE), "other": (linear("uvk"), OTHER)})
    assert max(map(abs, off(found, expected).values())) < 4, off(found, expected)
    assert found.names == ("one", "other", "one + other") and found.shared == ("u", "v")
    assert set(found.posterior("one + other").parameters) == set("uvck")
    assert len(found.plot()) == 2
    again = sm.tension(linear("uvc"), ONE, OTHER, other=linear("uvk"), names=("one", "other"))
    assert again.log_r == found.log_r and again.log_s == found.log_s


@pytest.mark.parametrize(
    "models",
    [
        (sm.Model({n: PRIORS[n] for n in "uv"}, plain_log_likelihood),) * 2,
        (sm.Model({n: PRIORS[n] for n in "uv"}, log_likelihood, vectorized=True),) * 2,
        (sm.Model({n: PRIORS[n] for n in "uv"}, log_likelihood, vectorized=True), linear("uv")),
        (linear("uv"), sm.Model({n: PRIORS[n] for n in "uv"}, plain_log_likelihood)),
    ],
    ids=["plain", "vectorized", "vectorized and traced", "traced and plain"],
)
def test_the_joint_likelihood_is_the_sum_whatever_the_two_are(models):
    given = three(dict(zip("ab", models, strict=True)), "both")
    data = {"a": {HELD: NORTH}, "b": {HELD: SOUTH}}
    both = given["both"]
    assert both.vectorized == all(model.vectorized for model in models)
    at = {"u": np.array([0.8, -0.4]), "v": np.array([0.3, 1.7])}
    points = [{name: value[i] for name, value in at.items()} for i in range(2)]
    wanted = [plain_log_likelihood(p, NORTH) + plain_log_likelihood(p, SOUTH) for p in points]
    found = both.log_likelihood(at, data) if both.vectorized else [both.log_likelihood(p, data) for p in points]
    assert np.allclose(np.ravel(np.asarray(found, float)), wanted, rtol=1e-6)
    sent = (
        pickle.loads(pickle.dumps(three(dict.fromkeys("ab", models[0]), "both")["both"]._log_likelihood))
        if (models[0].predict is None)
        else None
    )
    assert sent is None or np.allclose(np.ravel(sent(at if both.vectorized else points[0], data))[0], wanted[0])


def test_a_black_box_gives_the_same_numbers():
    model = sm.Model({n: PRIORS[n] for n in "uv"}, log_likelihood, vectorized=True)
    found, expected = sm.tension(model, NORTH, AWAY), truth(NORTH, AWAY)
    assert found.evaluations["gradient"] == 0
    assert max(map(abs, off(found, expected).values())) < 4, off(found, expected)


def test_models_that_bring_their_own_data():
    def bound(data):
        return sm.Model({n: PRIORS[n] for n in "uv"}, lambda p: jax_log_likelihood(p, data))

    found = sm.tension({"a": (bound(NORTH), None), "b": (bound(AWAY), None)}, min_ess=400)
    again = sm.tension({"a": (bound(NORTH), None), "b": (bound(SOUTH), None)}, min_ess=400)
    assert abs(found.log_r.value - truth(NORTH, AWAY)["log_r"]) < 0.05
    assert found.comparison.fingerprints["data"] != again.comparison.fingerprints["data"]


def test_posteriors_that_are_not_normal_have_the_numbers_of_quadrature():
    """Few counts of one log rate."""
    counts = {"a": np.array([0, 2, 1, 0]), "b": np.array([4, 2, 5])}
    u = np.linspace(-9, 9, 20_001)
    prior = stats.norm(0.3, 1.4).pdf(u)

    def moments(y):
        log_l = stats.poisson.logpmf(y[:, None], np.exp(u)).sum(axis=0)
        z = np.trapezoid(np.exp(log_l) * prior, u)
        w = np.exp(log_l) * prior / z
        fit = np.trapezoid(w * log_l, u)
        return np.array([np.log(z), fit, 2 * np.trapezoid(w * (log_l - fit) ** 2, u)])

    one, other, both = moments(counts["a"]), moments(counts["b"]), moments(np.concatenate([*counts.values()]))
    log_r, log_s, d = (both - one - other) * [1, 1, -1]
    model = sm.Model({"u": dist.Normal(0.3, 1.4)}, lambda p, y: jnp.sum(dist.Poisson(jnp.exp(p["u"])).log_prob(y)))
    found = sm.tension(model, counts["a"], counts["b"])
    p = stats.chi2.sf(d - 2 * log_s, d)
    expected = {"log_r": log_r, "log_i": log_r - log_s, "log_s": log_s, "dimensionality": d, "p": p}
    assert max(map(abs, off(found, expected | {"sigma": stats.norm.isf(p / 2)}).values())) < 4
    assert found.shared == ("u",) and len(found.plot()) == 1


def test_data_sets_that_constrain_nothing_in_common_get_no_p():
    """The one knows u + v only, the other u - v only: of normal posteriors d is about 0."""
    x = np.linspace(0.5, 1.5, 12)
    a = {"u": x, "v": x, "y": 0.6 * x + 0.01, "sigma": np.full(12, 0.4)}
    b = {"u": x, "v": -x, "y": 1.2 * x - 0.02, "sigma": np.full(12, 0.4)}
    found = sm.tension(linear("uv"), a, b)
    assert abs(found.dimensionality.value) < 4 * found.dimensionality.error + 0.2
    assert len(found.cautions) == 1 and "p and sigma" in found.cautions[0]
    if found.dimensionality.value <= 0:
        assert np.isnan(found.p.value) and "cannot be said in sigma" in found.sentence()
        assert json.loads(found.to_json())["sigma"]["value"] is None


def test_a_run_goes_on_from_its_checkpoint_and_is_made_anew_from_a_file(tmp_path):
    asked = {"min_ess": 400, "checkpoint": tmp_path / "run.ckpt"}
    found, again = (sm.tension(linear("uv"), NORTH, SOUTH, **asked) for _ in range(2))
    loaded = sm.Tension(sm.load(found.comparison.save(tmp_path / "run.nc")), found.names, found.shared)
    for name in QUANTITIES:
        assert getattr(found, name) == getattr(again, name) == getattr(loaded, name)


def test_what_is_of_no_use_says_so():
    found = sm.tension(linear("uv"), NORTH, SOUTH, max_evaluations=50)
    assert found.verdict.level == "fail" and "is not known" in found.headline and "checks failed" in found.sentence()
    assert found.cautions == () and "FAIL" in str(found)
    assert json.loads(found.to_json())["log_r"]["value"] is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", PAIRS)
def test_errors_are_what_they_are_called(kind):
    """By repetition: numbers scatter about the truth by their errors."""
    expected = truth(*PAIRS[kind])
    each = [off(sm.tension(linear("uv"), *PAIRS[kind], seed=seed), expected) for seed in range(8)]
    for name in ("log_s", "dimensionality", "sigma"):
        scatter = np.array([one[name] for one in each])
        assert np.sum(scatter**2) < stats.chi2.isf(1e-4, 8) and np.sum(scatter**2) > stats.chi2.ppf(1e-4, 8), (
            name,
            scatter,
        )


def test_sigma_is_that_of_p_however_small():
    for log_s, d in ((0.2, 1.7), (-6.5, 2.2), (-60.0, 1.9)):
        assert np.isclose(two_sided(log_s, d), stats.norm.isf(stats.chi2.sf(d - 2 * log_s, d) / 2))
    assert two_sided(5.0, 2.0) == 0
    # Of two degrees of freedom ln p = -x / 2 exactly, and Q(sigma) is known by its own logarithm.
    for log_s in (-640.0, -900.0, -4e4):
        assert np.isclose(stats.norm.logsf(two_sided(log_s, 2.0)) + np.log(2), -(1.0 - log_s), rtol=1e-10)
    across = [
        two_sided(-log_s, 7.3) for log_s in np.linspace(640, 720, 81)
    ]  # where the one formula takes over from the other
    assert np.allclose(np.diff(across), np.diff(across)[0], rtol=0.2) and np.ptp(np.diff(across, 2)) < 1e-5


# -- wrong input ------------------------------------------------------------------------------------------------------

M = linear("uv")
OF_V = sm.Model({"v": PRIORS["v"]}, lambda p, data: -0.5 * p["v"] ** 2)
OF_W = sm.Model({"w": dist.Normal(0.2, 1.1)}, lambda p, data: -0.5 * p["w"] ** 2)
UNEQUAL = sm.Model({"u": PRIORS["u"], "v": dist.Normal(-0.7, 1.7)}, lambda p, data: -0.5 * p["v"] ** 2)
WRONG = {
    "no data": (lambda: sm.tension(M, NORTH), "there is no `data_b`"),
    "no model": (lambda: sm.tension(NORTH["y"], NORTH, SOUTH), "`model` of tension must be a Model; got ndarray"),
    "no other": (lambda: sm.tension(M, NORTH, SOUTH, other="x"), "`other` of tension must be a Model; got str"),
    "dict and data": (lambda: sm.tension({"a": (M, NORTH), "b": (M, SOUTH)}, NORTH), "have no place beside it"),
    "three": (lambda: sm.tension({n: (M, NORTH) for n in "abc"}), "of two data sets; the dict has 3"),
    "no pair": (lambda: sm.tension({"a": M, "b": (M, SOUTH)}), r"'a' must be a pair \(model, data\); got Model"),
    "one name": (lambda: sm.tension(M, NORTH, SOUTH, names=("a", "a")), "both data sets are called 'a'"),
    "a text for names": (lambda: sm.tension(M, NORTH, SOUTH, names="ab"), "`names` must be two texts"),
    "the same data": (lambda: sm.tension(M, NORTH, dict(NORTH)), "are the same data"),
    "unequal priors": (
        lambda: sm.tension(M, NORTH, SOUTH, other=UNEQUAL),
        r"'v' has two priors: Normal\(-0.7, 1.6\) in model 'a' and Normal\(-0.7, 1.7\) in model 'b'",
    ),
    "nothing shared": (lambda: sm.tension(M, NORTH, SOUTH, other=OF_W), "share no parameter"),
    "a missing value": (
        lambda: sm.tension(M, NORTH, SOUTH | {"y": np.append(SOUTH["y"][:-1], np.nan)}),
        "column 'y', row 24",
    ),
    "a bad option": (lambda: sm.tension(M, NORTH, SOUTH, target_error=-1), "`target_error` must be"),
}


@pytest.mark.parametrize(("call", "message"), WRONG.values(), ids=WRONG)
def test_wrong_input_is_told(call, message):
    with pytest.raises(sm.SupermodelError, match=message):
        call()


def test_equal_priors_in_other_words_are_equal():
    assert set(three({"a": M, "b": OF_V}, "both")) == {"a", "b", "both"}
    scipy = sm.Model({"v": stats.norm(-0.7, 1.6)}, lambda p, data: -0.5 * p["v"] ** 2)
    assert three({"a": M, "b": scipy}, "both")["both"].space.names == ("u", "v")
    with pytest.raises(sm.SupermodelError, match="two priors"):
        three({"a": M, "b": sm.Model({"v": stats.t(9, -0.7, 1.6)}, lambda p, data: -0.5 * p["v"] ** 2)}, "both")


def test_rows_that_miss_a_value_are_dropped_and_counted():
    gone = {name: np.append(column, np.nan if name == "y" else 0.5) for name, column in SOUTH.items()}
    found = sm.tension(M, NORTH, gone, missing="drop", min_ess=400)
    assert found.dropped == {"b": (1, 26)} and "1 of 26 rows of b miss a value" in str(found)
    assert abs(found.log_r.value - truth(NORTH, SOUTH)["log_r"]) < 0.05
