"""Two components in the place of one: a normalised density, and draws of it that know the evidence of close pairs."""

import numpy as np
import numpyro.distributions as dist
import pytest
from benchmarks.sky.truths import linear
from scipy.special import logsumexp

import supermodel as sm
from engine_problems import meter
from supermodel.engine.explore.climb import Climber
from supermodel.engine.explore.cloud import effective_size
from supermodel.engine.explore.pairs import Pairs, octave, pairs_at, places_of, shares_of
from supermodel.engine.policy import PAIR_OCTAVES
from supermodel.models.joint import Joint

T = np.sort(np.random.default_rng(2).uniform(0, 4, 25))
SD, SPREAD, LOW, HIGH = 0.5, 2.0, 0.5, 4.0
Y = 1.3 * np.cos(2 * np.pi * 1.7 * T + 0.4) + SD * np.random.default_rng(3).standard_normal(25)


def made(rng, size=4, q=2):
    """Cells of two sizes: a quarter of the table as one, the others single; some hold nothing."""
    cell = np.arange(size * size).reshape(size, size)
    cell[:2, :2], cell[3, 3] = 0, -1
    _, cell = np.unique(cell, return_inverse=True)
    cell = cell.reshape(size, size) - 1
    low, high = np.zeros((cell.max() + 1, 2)), np.zeros((cell.max() + 1, 2))
    edges = (2 ** (PAIR_OCTAVES * np.arange(size + 1) / size) - 1) / (2**PAIR_OCTAVES - 1)
    for i in range(len(low)):
        a, b = np.nonzero(cell == i)
        low[i], high[i] = (-1 + 3 * a.min() / size, 3 * edges[b.min()]), (-1 + 3 * (a.max() + 1) / size, 3 * edges[b.max() + 1])
    n = len(low)
    factors = np.tril(rng.normal(size=(n, q, q)), -1) + np.eye(q) * rng.uniform(0.7, 2, (n, 1, 1))
    slopes = rng.normal(size=(n, q, 2))
    weights = np.log(rng.dirichlet(np.full(n, 9.0)))
    return Pairs(
        np.array([0, 2]), np.array(-1.0), np.array(3.0), cell, low, high, weights, rng.normal(size=(n, q)), slopes, factors,
        np.array(0.0),
    )  # fmt: skip


def test_draws_have_the_density(rng):
    """Each cell gets its weight of the draws; and the mean over draws of another law p, over the density, is 1."""
    pairs = made(rng)
    x = pairs.draw(rng, 200_000)
    places = x[:, pairs.axes]
    share, distance = (places.mean(axis=1) + 1) / 3, np.diff(places)[:, 0]
    cells = pairs.cell[(4 * share).astype(int), (4 * octave(distance / 3)).astype(int)]
    assert np.all(cells >= 0) and np.all(distance >= 0)
    counts, expected = np.bincount(cells, minlength=len(pairs.low)), len(x) * np.exp(pairs.log_weights)
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected) + 5)
    # The mean over draws of p / h is 1 for a law p that lives where h does.
    inside = np.prod(pairs.high - pairs.low, axis=1).sum()  # middles and distances have the measure of the places
    off = x[:, pairs._others] - pairs._centres(cells, places)
    log_p = -np.log(inside)  # and of a square of side 1 in all else
    ratio = np.where(np.all(np.abs(off) < 0.5, axis=1), np.exp(log_p - pairs.log_density(x)), 0.0)
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / np.sqrt(len(x)) < 0.1


def test_outside_of_its_cells_there_is_nothing(rng):
    pairs = made(rng)
    x = pairs.draw(rng, 50)
    reversed_, far = x.copy(), x.copy()
    reversed_[:, pairs.axes] = x[:, pairs.axes[::-1]]
    far[:, pairs.axes] += 4.0
    for other in (reversed_, far):
        assert np.all(pairs.log_density(other) == -np.inf)
    assert np.all(np.isfinite(pairs.log_density(x)))


def test_places_and_octaves():
    pair = np.array([[0.3, 0.2], [-1.0, 0.0]])
    assert np.allclose(places_of(pair), [[0.2, 0.4], [-1.0, -1.0]])
    t = np.linspace(0, 1, 9)
    distance = (2 ** (PAIR_OCTAVES * t) - 1) / (2**PAIR_OCTAVES - 1)
    assert np.allclose(octave(distance), t)


def test_draws_go_where_the_mass_is_and_everywhere(rng):
    pairs = made(rng)
    share = shares_of([pairs, pairs._replace(log_mass=np.array(-9.0))])
    assert share.sum() == pytest.approx(1) and share[0] > 0.7 and share[1] > 0.24
    assert len(shares_of([])) == 0


# -- two waves of data that hold one -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def joint():
    import jax.numpy as jnp

    def log_likelihood(p):
        fit = 0.0
        for i in "12":
            phase = 2 * np.pi * p[f"f{i}"] * T
            fit = fit + p[f"a{i}"] * jnp.cos(phase) + p[f"b{i}"] * jnp.sin(phase)
        return -0.5 * jnp.sum(((Y - fit) / SD) ** 2) - T.size * np.log(SD * np.sqrt(2 * np.pi))

    laws = {"f": dist.Uniform(LOW, HIGH), "a": dist.Normal(0, SPREAD), "b": dist.Normal(0, SPREAD)}
    return Joint("waves", sm.Model({f"{p}{i}": law for i in "12" for p, law in laws.items()}, log_likelihood, exchangeable=False))


def exact(joint, pairs, n=160):
    """ln of the evidence of pairs in the table: amplitudes by algebra, places in the middles of cells."""
    t = (np.arange(n) + 0.5) / n
    edges = (2 ** (PAIR_OCTAVES * np.arange(n + 1) / n) - 1) / (2**PAIR_OCTAVES - 1)
    reach = float(pairs.reach)
    middle, distance = np.meshgrid(pairs.corner + reach * t, reach * 0.5 * (edges[1:] + edges[:-1]), indexing="ij")
    area = np.log(reach / n) + np.log(np.broadcast_to(np.diff(edges) * reach, middle.shape))
    places = places_of(np.stack([middle.ravel(), distance.ravel()], axis=1))
    x = np.zeros((len(places), joint.dimension))
    x[:, pairs.axes] = places
    values = joint.space.values_at(x)
    columns = [f(2 * np.pi * np.asarray(values[f"f{i}"])[:, None] * T) for i in "12" for f in (np.cos, np.sin)]
    log_l = linear(np.stack(columns, axis=-1), Y, np.full(T.size, SD), SPREAD)
    log_prior = sum(joint.space.priors[f"f{i}"].log_density_at(x[:, joint.space.slices[f"f{i}"]]) for i in "12")
    return float(logsumexp(log_l + log_prior + area.ravel()))


def test_draws_know_the_evidence_of_close_pairs(joint, rng):
    drawn = joint.space.sample_prior(rng, 4000)
    climber = Climber(joint, meter(), np.median(drawn, axis=0), drawn.std(axis=0))
    f = float(np.ravel(joint.space.priors["f1"].unconstrain(1.7))[0])
    places = [int(joint.space.slices[f"f{i}"].start) for i in "12"]
    starts = np.zeros((2, joint.dimension))
    starts[:, places] = f
    for row, name in ((0, "a1"), (0, "a2"), (1, "a1")):
        starts[row, joint.space.slices[name]] = 1.0
    pairs = pairs_at(climber, starts, places, f, 0.02)
    x = pairs.draw(rng, 40_000)
    log_w = joint.log_likelihood_at(x, None) + joint.space.log_prior_at(x) - pairs.log_density(x)
    found = logsumexp(log_w) - np.log(len(x))
    truth = exact(joint, pairs)
    error = 1 / np.sqrt(effective_size(log_w))
    assert abs(found - truth) < 5 * error + 0.01 < 0.25  # the grid's own error is a thousandth
    assert abs(exact(joint, pairs, 80) - truth) < 0.005
    assert float(pairs.log_mass) + 0.5 * pairs.tops.shape[1] * np.log(2 * np.pi) == pytest.approx(truth, abs=0.2)
