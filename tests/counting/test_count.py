"""How many: probabilities beside exact ones, components with the chance that they are there, and what is refused."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from benchmarks.sky.truths import linear
from scipy import stats
from scipy.special import logsumexp

import supermodel as sm
from supermodel.errors import DataError, ModelError, SupermodelError

SIGMAS = 5  # false alarms of 1e-6
RNG = np.random.default_rng(11)
T = np.sort(RNG.uniform(0, 5, 30))
SD, SPREAD, LOW, HIGH = 0.5, 2.0, 0.5, 4.0
Y = 0.8 + 1.1 * np.cos(2 * np.pi * 2.2 * T + 0.3) + SD * RNG.standard_normal(30)
DATA = {"t": T, "y": Y, "error": np.full(30, SD)}
LEVEL = sm.Component({"c": dist.Normal(0, 1)}, lambda p: p["c"])


def shape(p, t):
    phase = 2 * jnp.pi * p["f"] * t
    return p["a"] * jnp.cos(phase) + p["b"] * jnp.sin(phase)


PRIORS = {"f": dist.Uniform(LOW, HIGH), "a": dist.Normal(0, SPREAD), "b": dist.Normal(0, SPREAD)}
WAVE = sm.Component(PRIORS, shape, name="wave", period=lambda p: 1 / p["f"])


def exact(k, n=900):
    """ln Z of k waves, k up to 2: amplitudes by algebra, frequencies in the middles of n cells."""
    f = LOW + (HIGH - LOW) * (np.arange(n if k < 2 else n // 3) + 0.5) / (n if k < 2 else n // 3)
    wave = np.stack([np.cos(2 * np.pi * f[:, None] * T), np.sin(2 * np.pi * f[:, None] * T)], axis=-1)
    one, spread = np.ones((30, 1)), [1.0] + [SPREAD] * 2 * k
    if k == 0:
        return float(linear(one, Y, DATA["error"], [1.0]))
    if k == 1:
        design = np.concatenate([np.broadcast_to(one, (len(f), 30, 1)), wave], axis=-1)
        return float(logsumexp(linear(design, Y, DATA["error"], spread)) - np.log(len(f)))
    rows = []
    for i in range(len(f)):
        ones, same = np.broadcast_to(one, (len(f), 30, 1)), np.broadcast_to(wave[i], wave.shape)
        rows.append(logsumexp(linear(np.concatenate([ones, same, wave], axis=-1), Y, DATA["error"], spread)))
    return float(logsumexp(rows) - 2 * np.log(len(f)))


@pytest.fixture(scope="module")
def found():
    return sm.count(WAVE, DATA, most=2, background=LEVEL, noise=sm.Gaussian("error"), explore="quick", progress=False)


@pytest.mark.parametrize("k", [0, 1, 2])
def test_evidences_are_those_of_algebra_and_a_grid(found, k):
    estimate = found.log_evidence(k)
    grid = 0.02 if k == 2 else 0.0  # of 300 cells a frequency, beside 900
    # Of a number more than the data need the error holds what close pairs may be worth, half a nat.
    assert abs(estimate.value - exact(k)) < SIGMAS * estimate.error + grid < (0.8 if k < 2 else 3.0)


def test_probabilities_are_those_of_the_evidences(found):
    log_z = np.array([found.log_evidence(k).value for k in (0, 1, 2)])
    expected = np.exp(log_z - logsumexp(log_z))
    assert np.allclose([found.probabilities[k].value for k in (0, 1, 2)], expected)
    assert found.best == 1 and found.probabilities[1].value > 0.8
    assert found.at_least(1).value == pytest.approx(expected[1:].sum())
    assert found.at_least(1).error >= 0 and found.log_bayes_factor(1, 0).value > 5


def test_the_component_is_told_with_the_chance_that_it_is_there(found):
    (wave,) = found.components
    assert wave.label == "wave" and abs(wave.mean("f") - 2.2) < 5 * wave.sd("f") < 0.2
    assert 0.9 < wave.probability.value <= 1.0
    assert wave.within[0] < wave.mean("f") < wave.within[1]
    assert len(found.components_of(2)) == 2 and len(found.components_of(0)) == 0
    first, second = found.components_of(2, by="f")
    assert np.all(first.draws["f"] <= second.draws["f"])
    # One of the two is the wave that is there, the other is not.
    chances = sorted(c.probability.value for c in (first, second))
    assert chances[0] < 0.9 < chances[1]
    table = found.components.to_dataframe()
    assert table.loc["wave", "f mean"] == pytest.approx(wave.mean("f"))


def test_it_says_what_it_is(found):
    text = str(found)
    for part in ("1 wave: probability", "no wave", "2 waves", "P(there)", "as many as were asked for"):
        assert part in text
    assert "prior on their number that is uniform" in found.methods()
    told = found.asdict()
    assert told["best"] == 1 and set(told["probabilities"]) == {"0", "1", "2"}
    assert "wave" in found._repr_html_()


def test_files(found, tmp_path):
    again = sm.load(found.save(tmp_path / "run.nc"))
    assert isinstance(again, sm.Count) and again.probabilities == found.probabilities
    assert str(again.components) == str(found.components)


def test_the_prior_on_the_number_counts(found):
    given = {0: 0.5, 1: 0.3, 2: 0.2}
    other = sm.count(
        WAVE, DATA, most=2, background=LEVEL, noise=sm.Gaussian("error"), explore="quick", progress=False, prior=given
    )
    log_p = np.array([np.log(given[k]) + found.log_evidence(k).value for k in (0, 1, 2)])
    assert np.allclose([other.probabilities[k].value for k in (0, 1, 2)], np.exp(log_p - logsumexp(log_p)))


def test_it_stops_by_itself_and_says_so():
    """Noise alone: ln Z falls with each wave, and of ten only two are tried."""
    data = DATA | {"y": 0.3 + SD * np.random.default_rng(5).standard_normal(30)}
    found = sm.count(
        WAVE, data, most=10, background=LEVEL, noise=sm.Gaussian("error"), explore="quick", progress=False, stop=0.05
    )
    assert found.best == 0 and found.numbers[-1] < 6 and found.more < 0.05
    assert "were not tried" in found.stopped and "more, to 10" in str(found)
    with pytest.raises(SupermodelError, match="there is no model of 9 components"):
        found.log_evidence(9)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"most": 0}, SupermodelError, "`most` must be above `least`.*least=0, most=0"),
        ({"most": 2.5}, SupermodelError, "`most` is a number of components, an integer"),
        ({"least": 3, "most": 2}, SupermodelError, "nothing to count"),
        ({"stop": 1.5}, SupermodelError, "`stop` is a probability"),
        ({"data": None}, DataError, "no data to count waves in"),
        ({"data": {"t": T}}, DataError, r'needs a column "y".*got columns \[\'t\'\]'),
        ({"component": PRIORS}, ModelError, "`component` must be a Component"),
        ({"background": {"c": 1}}, ModelError, "`background` must be a Component"),
        ({"background": sm.Component({"f1": dist.Normal(0, 1)}, lambda p: p["f1"])}, ModelError, "has a parameter 'f1'"),
        ({"component": sm.Component({}, lambda p: 0.0)}, ModelError, "without parameters"),
        ({"component": sm.Component(PRIORS)}, ModelError, "the likelihood comes from what the component predicts"),
        ({"log_likelihood": lambda v, d: 0.0}, ModelError, "and not from both"),
        ({"prior": {7: 1.0}}, SupermodelError, "gives a probability to 7"),
        ({"prior": {1: 1.0}}, SupermodelError, "above 0 for the least of them, 0"),
        ({"prior": "poisson"}, SupermodelError, "`prior` on the number"),
    ],
)
def test_what_is_refused(given, error, message):
    asked = {"component": WAVE, "data": DATA, "background": LEVEL, "noise": sm.Gaussian("error"), "most": 2} | given
    with pytest.raises(error, match=message):
        sm.count(asked.pop("component"), asked.pop("data"), progress=False, **asked)


def test_laws_of_the_number():
    from supermodel.counting.numbers import numbers_of, shares_of

    expected = stats.poisson(1.5).pmf(range(4))
    for law in (dist.Poisson(1.5), stats.poisson(1.5)):
        assert np.allclose(shares_of(law, numbers_of(3)), expected / expected.sum())


class Killed(Exception):
    """In place of a signal."""


@pytest.mark.parametrize("at", [3, 4])
def test_what_was_killed_goes_on_to_the_same_bits(at, found, tmp_path, monkeypatch):
    """After the exploration of one wave, and after that of two, which rests on what is known of one."""
    from supermodel.engine.run import Run

    asked = {"most": 2, "background": LEVEL, "noise": sm.Gaussian("error"), "explore": "quick", "progress": False}
    path, kept, keep = tmp_path / "run.nc", [], Run._keep

    def until_killed(run):
        keep(run)
        kept.append(len(run.pilots))
        if len(kept) == at:
            raise Killed

    monkeypatch.setattr(Run, "_keep", until_killed)
    with pytest.raises(Killed):
        sm.count(WAVE, DATA, checkpoint=path, **asked)
    assert kept[-1] == at - 1 and path.exists()
    monkeypatch.setattr(Run, "_keep", keep)
    again = sm.count(WAVE, DATA, checkpoint=path, **asked)
    assert again.probabilities == found.probabilities and again.evaluations == found.evaluations


def test_probabilities_swing_by_factors_where_ln_z_is_known_to_a_nat():
    from supermodel.counting.result import swings

    share = np.array([0.9, 0.09, 0.01])
    up = 0.01 * np.e / (1 + 0.01 * (np.e - 1))  # ln Z of the last is off by a nat, and nothing else
    assert swings(share, np.array([0.0, 0.0, 1.0]))[2] == pytest.approx(up - 0.01)
    tiny = 1e-4 * np.array([0.0, 1.0, 2.0])  # small errors: the slopes
    slopes = (np.diag(share) - np.outer(share, share)) * tiny
    assert np.allclose(swings(share, tiny), np.sqrt(np.sum(slopes**2, axis=1)), rtol=1e-3)
    assert np.all(np.isfinite(swings(share, np.array([0.0, np.inf, np.nan])))) and np.all(swings(share, np.full(3, np.inf)) <= 1)
