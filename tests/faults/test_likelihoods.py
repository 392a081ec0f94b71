"""Likelihoods that write into what they are given, and likelihoods that give no number."""

import math
from concurrent.futures import ThreadPoolExecutor

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats

import supermodel as sm
from supermodel.models.joint import Joint
from supermodel.shell.cli import main

CENTRE, WIDTH = np.array([0.3, -0.2]), 0.1
POINTS = np.random.default_rng(5).normal(0.0, 0.5, (40, 2))
EXPECTED = -0.5 * np.sum(((POINTS - CENTRE) / WIDTH) ** 2, axis=1)


def in_place(p, data=None):
    """A Gaussian, with work in place and the dict emptied afterwards."""
    x = p["x"]
    x -= CENTRE
    x /= WIDTH
    value = -0.5 * np.sum(np.asarray(x) ** 2, axis=-1)
    x[...] = 99.0
    p.clear()
    return value


def in_place_pair(p, data=None):
    """The same of two scalars that come as arrays of many values."""
    value = 0.0
    for name, centre in zip("ab", CENTRE, strict=True):
        p[name] -= centre
        p[name] /= WIDTH
        value = value - 0.5 * np.asarray(p[name]) ** 2
    p.clear()
    return value


def in_place_array(theta):
    theta -= CENTRE
    theta /= WIDTH
    value = -0.5 * np.sum(np.asarray(theta) ** 2, axis=-1)
    theta[...] = 99.0
    return value


def in_place_prior(p):
    x = np.asarray(p["x"])
    value = np.sum(-0.5 * x**2 - 0.5 * np.log(2 * np.pi), axis=-1)
    x[...] = 99.0
    p.clear()
    return value


def draws(rng, n):
    return {"x": rng.standard_normal((n, 2))}


NORMAL = dist.Normal(0, 1).expand([2])
PAIR = {"a": dist.Normal(0, 1), "b": dist.Normal(0, 1)}


def by_bilby():
    bilby = pytest.importorskip("bilby")

    class Likelihood(bilby.Likelihood):
        def log_likelihood(self, parameters):
            value = in_place_array(np.array([parameters["a"], parameters["b"]]))
            parameters.clear()
            return value

    return sm.from_bilby(Likelihood(), {name: bilby.core.prior.Gaussian(0, 1, name) for name in "ab"})


def normal_from_cube(u):
    from scipy.special import ndtri

    theta = ndtri(np.asarray(u))
    u[...] = 0.5
    return theta


PATHS = {
    "one by one": lambda: sm.Model({"x": NORMAL}, in_place),
    "vectorized": lambda: sm.Model({"x": NORMAL}, in_place, vectorized=True),
    "scalars, vectorized": lambda: sm.Model(PAIR, in_place_pair, vectorized=True),
    "a map onto a support": lambda: sm.Model({"x": dist.MultivariateNormal(np.zeros(2), np.eye(2))}, in_place),
    "from_log_density": lambda: sm.from_log_density(in_place_prior, in_place, draws),
    "from_log_density, vectorized": lambda: sm.from_log_density(in_place_prior, in_place, draws, vectorized=True),
    "from_unit_cube": lambda: sm.from_unit_cube(in_place_array, normal_from_cube, ["a", "b"]),
    "from_unit_cube, vectorized": lambda: sm.from_unit_cube(
        in_place_array, normal_from_cube, ["a", "b"], vectorized=True
    ),
    "from_bilby": by_bilby,
    "from_chains": lambda: sm.from_chains(sm.Model({"x": NORMAL}, in_place), draws(np.random.default_rng(1), 50)),
}


@pytest.mark.parametrize("path", PATHS)
def test_work_in_place_changes_no_point_and_no_value(path):
    joint = Joint("m", PATHS[path]())
    assert not joint.is_traceable
    given = POINTS.copy()
    for _ in range(2):  # the second call sees what the first has left
        np.testing.assert_allclose(joint.log_likelihood_at(given), EXPECTED, rtol=1e-9)
        prior = joint.space.log_prior_at(given)
        np.testing.assert_allclose(prior, -0.5 * np.sum(POINTS**2, axis=1) - np.log(2 * np.pi), rtol=1e-9)
        np.testing.assert_array_equal(given, POINTS)


class InLine:
    """An executor that hands over the very objects."""

    def map(self, function, items):
        return [function(item) for item in items]


def test_work_in_place_on_an_executor():
    """Processes are given copies by their nature; these are not."""
    joint, given = Joint("m", sm.Model({"x": NORMAL}, in_place)), POINTS.copy()
    with ThreadPoolExecutor(2) as threads:
        for executor in (InLine(), threads):
            np.testing.assert_allclose(joint.log_likelihood_at(given, executor), EXPECTED, rtol=1e-9)
            np.testing.assert_array_equal(given, POINTS)


def test_a_prediction_that_works_in_place_on_its_parameters():
    x, y = np.linspace(0, 1, 3), np.array([0.1, 0.5, 0.8])

    def predict(p, x):
        c = p["c"]
        c *= 2.0
        p.clear()
        return np.array([float(c[0]), float(c[0]), float(c[1])])

    model = sm.Model({"c": NORMAL}, predict=predict, noise=sm.Gaussian(lambda known: 1.0 + known["c"][0] ** 2))
    found = Joint("m", model, {"x": x, "y": y}).log_likelihood_at(POINTS)
    mean, sigma = 2 * POINTS[:, [0, 0, 1]], 1.0 + POINTS[:, :1] ** 2
    expected = np.sum(-0.5 * ((y - mean) / sigma) ** 2 - np.log(sigma) - 0.5 * np.log(2 * np.pi), axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def clean(p, data=None):
    return -0.5 * float(np.sum(((np.asarray(p["x"]) - CENTRE) / WIDTH) ** 2))


LIMITS = {"max_evaluations": 1000, "explore": "quick", "progress": False}


def test_evidence_and_comparison_to_the_bit():
    """Twins that differ in nothing but their manners give the same bits; the parameters are shared, and x alone."""
    polite, rude = (sm.Model({"x": NORMAL}, function) for function in (clean, in_place))
    assert sm.evidence(rude, **LIMITS).value == sm.evidence(polite, **LIMITS).value
    other = sm.Model({"x": NORMAL, "s": dist.Normal(0, 1)}, lambda p: clean(p) - 0.5 * float(p["s"]) ** 2)
    answers = [
        sm.compare({"m": model, "other": other}, **LIMITS).log_bayes_factor("m", "other") for model in (polite, rude)
    ]
    assert answers[0] == answers[1] and np.isfinite(answers[0].value)


def test_data_that_change_in_the_run_are_refused():
    """Nothing can be given back to a likelihood whose data are gone: the columns are named."""

    def predict(p, x):
        x *= float(p["a"])
        return x

    data = {"x": np.linspace(0.5, 1, 5), "y": np.ones(5), "sigma": 0.3}
    model = sm.Model({"a": dist.Normal(0, 1)}, predict=predict)
    with pytest.raises(sm.SupermodelError, match=r"\['x'\].*in place.*copy"):
        sm.evidence(model, data, **LIMITS)


# -- no number --------------------------------------------------------------------------------------------------------


def peak(x, xp):
    return -0.5 * ((x - 0.3) / 0.01) ** 2 - xp.log(0.01) - 0.5 * xp.log(2 * xp.pi)


def hole(value, kind):
    """A peak with a hole of 8% of its mass and 1e-3 of its prior's: 64 prior draws hardly see it."""

    def inside(x):
        return (x > 0.3) & (x < 0.302)

    def traced(p):
        return jnp.where(inside(p["a"]), value, peak(p["a"], jnp))

    def black(p):
        x = np.asarray(p["a"])
        return np.where(inside(x), value, peak(x, np))

    def raising(p):
        x = float(p["a"])
        return peak(x, np) if not inside(x) else float(np.linalg.cholesky(-np.eye(1))[0, 0])

    def raising_many(p):
        return np.array([raising({"a": x}) for x in np.asarray(p["a"])])

    likelihood = {"traced": traced, "vectorized": black, "raising": raising, "raising many": raising_many}.get(
        kind, black
    )
    return sm.Model({"a": dist.Normal(0, 1)}, likelihood, vectorized=kind in ("vectorized", "raising many"))


# ∫ L π = Σ over the prior, which is flat over the peak to 1e-4; the hole takes Φ(0.2) - Φ(0).
LOG_Z = scipy.stats.norm.logpdf(0.3)
HOLE = scipy.stats.norm.cdf(0.2) - 0.5
KINDS = ("traced", "black", "vectorized", "raising", "raising many")


@pytest.mark.parametrize("kind", KINDS)
def test_no_number_in_the_middle_of_a_run_is_told_with_its_point(kind):
    what = "raises LinAlgError: .* \\(.*line" if "raising" in kind else "is NaN"
    with pytest.raises(
        sm.SupermodelError, match=rf'model \'model\' {what}.* at a = 0\.30[01]\d* \(.*on_error="reject"'
    ):
        sm.evidence(hole(np.nan, kind), progress=False)


@pytest.mark.parametrize("kind", ["traced", "black"])
@pytest.mark.parametrize("on_error", ["raise", "reject"])
def test_infinite_likelihoods_are_refused_whatever_is_said(kind, on_error):
    with pytest.raises(sm.SupermodelError, match=r"model 'model' is \+inf at a = 0\.30[01]\d*: .*does not exist"):
        sm.evidence(hole(np.inf, kind), progress=False, on_error=on_error)


@pytest.mark.parametrize("kind", KINDS)
def test_rejected_points_are_impossible_and_counted(kind):
    """Five errors (a false alarm in 10^6); had the hole counted as its surroundings do, it would be off by eight."""
    found = sm.evidence(hole(np.nan, kind), progress=False, on_error="reject", target_error=0.01)
    assert abs(found.value - LOG_Z - np.log1p(-HOLE)) < 5 * found.error < 5 / 8 * -np.log1p(-HOLE)
    reasons = dict(found.verdict.reasons)
    assert found.verdict.level == "caution" and "ln L of 'model' was NaN, or raised, at" in reasons["rejected"]
    same = sm.evidence(
        hole(-np.inf, kind if kind in ("traced", "vectorized") else "black"), progress=False, target_error=0.01
    )
    assert same.value == found.value and "rejected" not in dict(same.verdict.reasons)


def test_far_outside_of_the_prior_no_number_is_no_mistake():
    """Samplers look there; no posterior is there. Within the prior the same is refused."""
    for function in (
        lambda p: jnp.where(jnp.abs(p["a"]) > 9, jnp.nan, 0.0),
        lambda p: math.nan if abs(p["a"]) > 9 else 0.0,
    ):
        joint = Joint("m", sm.Model({"a": dist.Normal(0, 1)}, function))
        assert joint.log_likelihood_at(np.array([[12.0], [1.0]])).tolist() == [-np.inf, 0.0] and joint.rejected == 0
        wide = Joint("m", sm.Model({"a": dist.Normal(0, 4)}, function))
        with pytest.raises(sm.SupermodelError, match=r"NaN at a = 12 \(1 of 2 points"):
            wide.log_likelihood_at(np.array([[12.0], [1.0]]))


@pytest.mark.parametrize("xp", [np, jnp])
def test_an_infinite_density_on_the_edge_of_a_support_is_rounding(xp):
    """(2 - a)^-1/2 on (0, 2) has no bound and an integral; a logistic coordinate of 36 is a = 2 to the last bits."""

    def log_likelihood(p):
        a = xp.where(p["a"] > 2 - 1e-15, 2.0, p["a"]) if xp is jnp else 2.0 if p["a"] > 2 - 1e-15 else p["a"]
        with np.errstate(divide="ignore"):
            return -0.5 * xp.log(2.0 - a) + xp.where(xp.abs(a - 0.3) < hole, xp.inf, 0.0)

    hole = 0.0
    joint = Joint("m", sm.Model({"a": dist.Uniform(0, 2)}, log_likelihood))
    edge = joint.space.unconstrain({"a": 2 - 2**-51})  # 2 to two units in its last place
    assert joint.log_likelihood_at(np.stack([edge + 1.0, 0 * edge]))[0] == -np.inf and joint.rejected == 0
    hole = 0.1
    within = Joint("m", sm.Model({"a": dist.Uniform(0, 2)}, log_likelihood))
    with pytest.raises(sm.SupermodelError, match=r"\+inf at a = 0\.3"):
        within.log_likelihood_at(within.space.unconstrain({"a": 0.3})[None])


@pytest.mark.parametrize(
    "answer", ["1.5", True, 1j, None, np.bool_(True), np.complex128(1), {"a": 1}, [None], b"1"], ids=lambda a: repr(a)
)
@pytest.mark.parametrize("vectorized", [False, True])
def test_what_is_no_real_number_is_refused(answer, vectorized):
    def likelihood(p):
        np.asarray(p["a"])  # plain Python
        return np.repeat(np.asarray(answer), len(p["a"])) if vectorized and np.ndim(answer) == 0 else answer

    joint = Joint("m", sm.Model({"a": dist.Normal(0, 1)}, likelihood, vectorized=vectorized))
    with pytest.raises(sm.SupermodelError, match="model 'm' returned .*real number"):
        joint.log_likelihood_at(np.zeros((3, 1)))


@pytest.mark.parametrize(
    "function", [lambda p: p["a"] + 1j, lambda p: p["a"] > 0, lambda p: None, lambda p: True, lambda p: "1"]
)
def test_what_is_no_real_number_is_refused_of_traced_code(function):
    with pytest.raises(sm.SupermodelError, match="model 'm' returned .*real number"):
        Joint("m", sm.Model({"a": dist.Normal(0, 1)}, function)).log_likelihood_at(np.zeros((3, 1)))
    whole = Joint("m", sm.Model({"a": dist.Normal(0, 1)}, lambda p: jnp.sum(p["a"] > 0)))  # a count is a number
    assert whole.log_likelihood_at(np.ones((1, 1))).tolist() == [1.0]


def test_a_file_whose_likelihood_raises_is_told_in_one_line(tmp_path, capsys):
    file = tmp_path / "models.py"
    file.write_text(
        "import supermodel as sm, scipy.stats\n"
        "def broken(p):\n"
        "    return float(p['a']) + p['phi']\n"
        "models = {n: sm.Model({'a': scipy.stats.norm(0, 1)}, broken) for n in ('m', 'n')}\n"
    )
    assert main(["compare", str(file), "--json"]) == 2
    told = capsys.readouterr()
    assert not told.out and len(told.err.splitlines()) == 1
    assert (
        told.err.startswith("supermodel: ")
        and "model 'm' raises KeyError: 'phi' (models.py, line 3; parameters are a) at a = " in told.err
    )


def test_a_resumed_run_remembers_what_was_rejected(tmp_path):
    options = {"on_error": "reject", "progress": False, "checkpoint": tmp_path / "run.ckpt", "explore": "quick"}
    first, again = (sm.evidence(hole(np.nan, "black"), **options).verdict for _ in range(2))
    assert first == again and "rejected" in dict(first.reasons)


def test_a_name_that_is_none_lists_those_that_are():
    def misspelt(p, d):
        return -0.5 * float(p["alhpa"]) ** 2 * d["x"]

    model = sm.Model({"alpha": dist.Normal(0, 1), "b": dist.Normal(0, 1)}, misspelt)
    words = r"KeyError: 'alhpa' \(test_likelihoods.py, line \d+; parameters are alpha, b and columns are x. "
    words += r"Did you mean 'alpha'\?\)"
    for executor in (None, InLine()):
        with pytest.raises(sm.SupermodelError, match=f"model 'model' raises {words} at alpha = .*, b = ") as caught:
            sm.evidence(model, {"x": 1.0}, executor=executor, **LIMITS)
    assert "model 'model' at alpha = " in caught.value.__cause__.__notes__[0]
    column = sm.Model({"a": dist.Normal(0, 1)}, lambda p, d: float(p["a"]) * d["sgima"])
    with pytest.raises(sm.SupermodelError, match="columns are sigma. Did you mean 'sigma'"):
        sm.evidence(column, {"sigma": 1.0}, **LIMITS)


def test_what_a_likelihood_raises_carries_the_model_and_the_values():
    def raising(p):
        raise ZeroDivisionError(f"at {float(p['a']):.0f}")

    with pytest.raises(sm.SupermodelError, match="model 'mine' raises ZeroDivisionError") as caught:
        Joint("mine", sm.Model({"a": dist.Normal(0, 1)}, raising)).log_likelihood_at(np.array([[0.25]]))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.__cause__.__notes__ == ["raised by the log likelihood of model 'mine' at a = 0.25"]


def test_nothing_is_called_a_missing_return():
    x = np.linspace(0, 1, 3)
    for model in (
        sm.Model({"a": dist.Normal(0, 1)}, lambda p, d: None),
        sm.Model({"a": dist.Normal(0, 1)}, predict=lambda p, x: None, noise=sm.Gaussian(1.0)),
    ):
        with pytest.raises(sm.SupermodelError, match=r"returned nothing \(None\).*`return` missing"):
            sm.evidence(model, {"x": x, "y": x}, **LIMITS)
