"""The quick road: many data sets at once, each with an exact answer."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy.special import erfcinv
from scipy.stats import binom, chi2, multivariate_normal, norm

import supermodel as sm
from supermodel.survey.block import Block
from supermodel.survey.chunk import weigh
from supermodel.survey.evidences import evidences, weighed
from supermodel.survey.job import Chunk, Job
from supermodel.survey.masked import masked
from supermodel.survey.quick import is_quick, quick

FALSE_ALARM = 1e-6
N, LONGEST = 40, 12


def line(p, x):
    return p["a"] + 0.0 * x


def nothing(p, x):
    return 0.3 + 0.0 * x


MODELS = {
    "fixed": sm.Model({}, predict=nothing, noise=sm.Gaussian("s")),
    "free": sm.Model({"a": dist.Normal(0.2, 1.5)}, predict=line, noise=sm.Gaussian("s")),
}


def simulated(seed=3):
    """Data sets of different lengths, padded with their last point."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(4, LONGEST + 1, N)
    columns = {name: np.zeros((N, LONGEST)) for name in ("x", "y", "s")}
    for i, n in enumerate(lengths):
        columns["s"][i] = rng.uniform(0.5, 1.5)
        columns["y"][i, :n] = rng.normal(0.2, 1.5) + columns["s"][i, 0] * rng.normal(size=n)
        columns["y"][i, n:] = columns["y"][i, n - 1]
    return Chunk(0, np.arange(100, 100 + N), tuple(f"d{i}" for i in range(N)), columns, lengths)


def exact(chunk, i):
    """ln Z of both models: y ~ N(0.3, s^2) each, and y ~ N(0.2, s^2 I + 1.5^2)."""
    n = chunk.lengths[i]
    y, s = chunk.columns["y"][i, :n], chunk.columns["s"][i, 0]
    return norm.logpdf(y, 0.3, s).sum(), multivariate_normal.logpdf(y, np.full(n, 0.2), s**2 * np.eye(n) + 1.5**2)


@pytest.fixture(scope="module")
def answers():
    chunk = simulated()
    return chunk, quick(Job(MODELS, "test_quick", seed=1), chunk)


def is_chi2(z):
    return bool(np.sum(z**2) < chi2.isf(FALSE_ALARM, len(z)) and np.sum(z**2) > chi2.ppf(FALSE_ALARM, len(z)))


def test_evidences_are_exact_within_errors_that_are_true(answers):
    chunk, found = answers
    assert all(o is not None and o.level == "ok" and o.route == "quick" for o in found)
    truth = np.array([exact(chunk, i) for i in range(N)])
    fixed, free = (np.array([o.evidences[name] for o in found]) for name in MODELS)
    np.testing.assert_allclose(fixed[:, 0], truth[:, 0], rtol=1e-6)  # no parameters: Z = L
    z = (free[:, 0] - truth[:, 1]) / free[:, 1]
    assert is_chi2(z) and np.all(free[:, 1] <= 0.2 / np.sqrt(2))
    assert not is_chi2(z + 0.1 / free[:, 1])  # an error of a tenth of a nat is caught


def test_pairs_follow_from_evidences_and_rows_keep_their_names(answers):
    chunk, found = answers
    for i in (0, N - 1):
        (value, error), o = found[i].pairs["fixed", "free"], found[i]
        assert value == o.evidences["fixed"][0] - o.evidences["free"][0] and error == o.evidences["free"][1]
        assert (o.row, o.name) == (100 + i, f"d{i}") and o.evaluations > 1000


def test_a_data_set_has_the_same_answer_in_whatever_company(answers):
    chunk, found = answers
    some = [7, 3, 21]
    other = Chunk(
        5, chunk.rows[some], tuple(chunk.names[i] for i in some), {n: c[some] for n, c in chunk.columns.items()},
        chunk.lengths[some],
    )  # fmt: skip
    again = quick(Job(MODELS, "test_quick", seed=1), other)
    assert [o.pairs for o in again] == [found[i].pairs for i in some]


def test_padding_is_left_out_of_the_likelihood():
    chunk = simulated()
    for i in (0, 5):
        n = int(chunk.lengths[i])
        whole = {name: column[i] for name, column in chunk.columns.items()}
        shorter = {name: column[:n] for name, column in whole.items()}
        padded = masked(MODELS["free"]).log_likelihood({"a": 0.7}, whole | {"length": n})
        assert padded == pytest.approx(float(MODELS["free"].log_likelihood({"a": 0.7}, shorter)), rel=1e-6)
    assert masked(sm.Model({}, lambda p, data: 0.0)) is None  # data are not known one by one


def black_box(p, data):
    return float(-0.5 * np.sum((np.asarray(data["y"]) - p["a"]) ** 2))


def many_parameters(p, data):
    return -0.5 * jnp.sum((data["y"] - p["a"].sum()) ** 2)


@pytest.mark.parametrize(
    ("likelihood", "prior"),
    [(black_box, dist.Normal(0, 1)), (many_parameters, dist.Normal(0, 1).expand([40]).to_event(1))],
)
def test_what_cannot_take_the_quick_road_is_left_to_the_engine(likelihood, prior):
    job = Job({"m": sm.Model({"a": prior}, likelihood), "n": sm.Model({}, likelihood)}, f"slow {likelihood.__name__}")
    chunk = Chunk(0, np.arange(2), (0, 1), {"y": np.ones((2, 3))})
    assert not is_quick(job, chunk) and quick(job, chunk) == [None, None]


def test_the_engine_is_asked_where_it_was_asked_for():
    chunk = simulated()
    assert is_quick(Job(MODELS, "test_quick"), chunk)
    for settings in ({"explore": "thorough"}, {"max_evaluations": 10_000}):
        assert not is_quick(Job(MODELS, "test_quick", settings=settings), chunk)


def test_counts_that_are_none_are_told_by_the_engine():
    rate = {"m": sm.Model({}, predict=lambda p, x: 2.0 + 0.0 * x, noise=sm.Poisson()),
            "n": sm.Model({}, predict=lambda p, x: 3.0 + 0.0 * x, noise=sm.Poisson())}  # fmt: skip
    chunk = Chunk(0, np.arange(2), ("good", "bad"), {"x": np.zeros((2, 3)), "y": np.array([[1.0, 2, 3], [1, -2, 3]])})
    good, bad = weigh(Job(rate, "counts", settings={"explore": "quick"}), chunk)
    assert good.route == "quick" and good.pairs["m", "n"][0] == pytest.approx(3 + 6 * np.log(2 / 3), abs=1e-5)
    assert (bad.level, bad.codes, bad.route) == ("fail", ("data",), "none") and "-2" in bad.reason


def test_a_likelihood_that_is_nan_is_not_settled(answers):
    chunk, _ = answers
    columns = {name: column.copy() for name, column in chunk.columns.items()}
    columns["y"][4, 0] = np.nan
    broken = Chunk(9, chunk.rows, chunk.names, columns, chunk.lengths)
    found = quick(Job(MODELS, "test_quick", seed=1), broken)
    assert found[4] is None and sum(o is None for o in found) == 1


def test_the_error_of_known_weights():
    """Two strata of known variance: the sum over both, not the variance of all draws."""
    w = np.array([1.0, 3.0]), np.array([10.0, 12.0])
    v = [(part - part.mean()) ** 2 * 2 for part in w]
    sums = [np.log(sum(np.sum(f) for f in of)) for of in (w, [p**2 for p in w], v, [p**2 for p in v])]
    log_z, error, ess, sure = weighed(np.array(sums)[:, None], 4)
    relative = (v[0].sum() + v[1].sum()) / 26**2
    assert log_z[0] == pytest.approx(np.log(26 / 4) + relative / 2) and sure[0] == pytest.approx(4.0)
    assert error[0] == pytest.approx(np.sqrt(relative * 4 / (4 - 2))) and ess[0] == pytest.approx(26**2 / 254)


def spike_in_slab(p, data):
    """Nine tenths in a spike of width `sd` at `at`, the rest in a slab of width 2 at 0: normalised, in a box of side 40."""

    def ball(at, sd):
        return -0.5 * ((p["a"] - at[0]) ** 2 + (p["b"] - at[1]) ** 2) / sd**2 - 2 * jnp.log(sd) - jnp.log(2 * jnp.pi)

    return jnp.logaddexp(ball(data["at"], data["sd"]) + jnp.log(0.9), ball((0.0, 0.0), 2.0) + jnp.log(0.1))


@pytest.fixture(scope="module")
def spikes():
    """30 data sets with a spike that most draws of the slab's hill miss, and 30 with one that some of them hit."""
    rng = np.random.default_rng(4)
    at = np.concatenate([np.full((30, 2), 0.5), rng.uniform(-2, 2, (30, 2))])
    columns = {"at": at, "sd": np.repeat([0.01, 0.05], 30)}
    model = sm.Model({name: dist.Uniform(-20, 20) for name in "ab"}, spike_in_slab)
    return evidences(Block(model, 0), columns, (0, 0), np.arange(60), 0.2 / np.sqrt(2)), -2 * np.log(40)


def test_a_spike_inside_a_slab_is_found(spikes):
    """It shows within 5 of its widths, 3e-4 of the slab's hill, of which 20 rounds and more draw 15 000: e^-3.9 are not hit."""
    found, truth = spikes
    missed = np.abs(found.log_z[:30] - truth) > 1.0
    most = binom.isf(FALSE_ALARM, 30, np.exp(-3.9))
    assert found.settled[:30].all() and missed.sum() <= most
    assert most < 15  # half of them, as from a reference that is not looked at again, would be told


def test_errors_are_true_where_few_draws_carry_most_of_the_weight(spikes):
    found, truth = spikes
    z = (found.log_z[30:] - truth) / found.error[30:]
    assert found.settled[30:].all() and is_chi2(z)
    assert not is_chi2(z + 0.05 / found.error[30:])  # a twentieth of Z that is missing is caught


@pytest.mark.slow
def test_two_modes_of_which_each_is_narrow():
    """|a| is measured, so that half of Z is at -a: to miss one is to be off by ln 2."""
    sizes = np.linspace(1.0, 3.0, 60)[:, None] * np.ones((60, 10))
    model = sm.Model({"a": dist.Normal(0, 2), "b": dist.Normal(0, 1)}, lambda p, d: -0.5 * jnp.sum(
        ((d["y"] - jnp.abs(p["a"])) / 0.05) ** 2 + (p["b"] * jnp.sign(p["a"])) ** 2))  # fmt: skip
    found = evidences(Block(model, 0), {"y": sizes}, (0, 0), np.arange(60), 0.14)
    width = 0.05 / np.sqrt(10)
    near = norm.logpdf(sizes[:, 0], 0, np.hypot(2.0, width)) + np.log(width * np.sqrt(2 * np.pi))
    z = (found.log_z - (np.log(2) + near - 0.5 * np.log(11))) / found.error
    assert found.settled.all() and np.abs(z).max() < np.sqrt(2) * erfcinv(FALSE_ALARM / 60)
