"""Folded runs: the same answers for less, what is false is refuted, and what is declared falsely is an error."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from benchmarks.fire.modes import label_switching

import supermodel as sm
from engine_problems import meter
from supermodel.embedding.warp import Warp
from supermodel.engine.explore import growing
from supermodel.engine.explore.climb import Mode
from supermodel.engine.explore.fold import confirmed, folded
from supermodel.errors import ModelError, SupermodelError
from supermodel.models.joint import Joint
from supermodel.models.symmetry import Circle, Exchange, Reflection, Refuted

N = dist.Normal(0, 3)
SIGMAS = 5  # false alarms of 1e-6


def mode(point, sd, log_joint=0.0):
    return Mode(np.array(point, float), log_joint, Warp(np.array(point, float), np.diag(np.array(sd, float))))


def joint(names="abcd", log_likelihood=lambda p: 0.0 * sum(p.values())):
    return Joint("m", sm.Model(dict.fromkeys(names, N), log_likelihood))


def never(x):
    return np.zeros(len(x))


def entry(name):
    return (name, ())


PAIRS = Exchange(((entry("a"), entry("b")), (entry("c"), entry("d"))))


def test_blocks_are_put_in_order_by_the_number_that_tells_them_apart():
    overlapping = [mode([0.0, -2, 0.1, 2], [1, 0.2, 1, 0.2])]
    found, (exchange,) = folded(joint(), [PAIRS], overlapping, never)
    assert exchange.by == 1 and found.origin is not None
    found, (exchange,) = folded(joint(), [PAIRS], [mode([0.0, 0, 0.1, 0], [1, 1, 1, 1])], never)
    assert exchange.by == -1 and found.origin is None  # an edge through the mode would cost more than labels do


def test_of_two_that_tell_apart_the_one_that_gathers_the_modes():
    """By b the modes are near each other; by a they stay apart, with b and d either way."""
    modes = [mode([-0.4, -2, 0.4, 2], [0.1] * 4), mode([0.4, -2, -0.4, 2], [0.1] * 4)]
    _, (exchange,) = folded(joint(), [PAIRS], modes, never)
    assert exchange.by == 1


def test_reflections_of_exchanged_blocks_are_kept_by_the_same_number():
    mirrors = [Reflection((entry("b"), entry("a")), (0.0, 0.0)), Reflection((entry("c"), entry("d")), (0.0, 0.0))]
    _, chosen = folded(joint(), [PAIRS, *mirrors], [mode([1.0, 2, -1, 5], [0.1] * 4)], never)
    kept = {s.entries[s.by][0] for s in chosen[1:]}
    assert kept in ({"a", "c"}, {"b", "d"})
    crossing = Reflection((entry("a"), entry("c")), (0.0, 0.0))  # of parts of both blocks: it would undo their order
    _, chosen = folded(joint(), [PAIRS, crossing], [mode([1.0, 2, -1, 5], [0.1] * 4)], never)
    assert chosen[1].by == -1 and chosen[0].by >= 0


def test_a_circle_is_cut_where_no_mode_is():
    space = Joint("m", sm.Model({"h": dist.Uniform(0, 360)}, lambda p: 0.0 * p["h"]))
    circle, width = Circle("h", (0.0,), 1, 0.0, 360.0), 0.3
    at_cut = [mode([-8.0], [width]), mode([8.0], [width])]
    _, (found,) = folded(space, [circle], at_cut, never)
    assert 90 < found.cut[0] < 270
    _, (found,) = folded(space, [circle], [mode([0.0], [width])], never)
    assert found.cut == (0.0,)


def test_what_does_not_hold_at_a_mode_is_not_used():
    favoured = joint(log_likelihood=lambda p: 1e-3 * p["a"])
    (found,) = confirmed(favoured, [PAIRS], np.array([[1.0, 2, 3, 4]]), favoured.log_likelihood_at, "at a mode")
    assert isinstance(found, Refuted) and "not used" in str(found)
    even = joint()
    assert confirmed(even, [PAIRS], np.array([[1.0, 2, 3, 4]]), even.log_likelihood_at, "at a mode") == [PAIRS]


# -- runs -------------------------------------------------------------------------------------------------------------


def evidence(k, n, seed=0, **options):
    problem = label_switching(k, n)
    side = next(iter(problem.sides.values()))
    model = sm.Model(side.priors(), lambda p: side.log_likelihood(p, jnp), **options)
    return sm.evidence(model, seed=seed, progress=False), problem.truth


@pytest.mark.parametrize("seed", [0, 1])
def test_three_labels_are_folded_and_the_evidence_is_exact_for_a_third_of_the_calls(seed):
    free, truth = evidence(3, 10, seed)
    bound, _ = evidence(3, 10, seed, exchangeable=False)
    told, _ = evidence(3, 10, seed, exchangeable=["x0", "x1", "x2"])
    assert abs(free.value - bound.value) < SIGMAS * np.hypot(free.error, bound.error)
    for found in (free, told):
        assert abs(found.value - truth) < SIGMAS * found.error < 0.2
        assert found.symmetries == {"model": ["x0 and x1 and x2 are exchangeable: labelled by increasing (x0, x1, x2)"]}
        assert found.evaluations["likelihood"] < bound.evaluations["likelihood"] / 2.5
    assert abs(free.value - np.log(6) - truth) > SIGMAS * free.error  # the control: without its labellings
    assert bound.symmetries == {}
    draws = free.posterior("model").parameters
    assert np.all(draws["x0"] <= draws["x1"]) and np.all(draws["x1"] <= draws["x2"])


@pytest.fixture(scope="module")
def mixture():
    """Two normals, a share of one, in a box of an angle that does nothing but go round."""
    rng = np.random.default_rng(5)
    y = np.concatenate([rng.normal(-2.5, 0.7, 18), rng.normal(2.0, 1.0, 12)])
    t = np.linspace(0, 6, 30)
    z = np.cos(t - 0.05) + 0.3 * rng.standard_normal(30)

    def log_likelihood(p):
        one = jnp.log(p["w"]) - 0.5 * ((y - p["m1"]) / p["s1"]) ** 2 - jnp.log(p["s1"])
        two = jnp.log1p(-p["w"]) - 0.5 * ((y - p["m2"]) / p["s2"]) ** 2 - jnp.log(p["s2"])
        return jnp.sum(jnp.logaddexp(one, two)) - 0.5 * jnp.sum(((z - jnp.cos(t - p["h"])) / 0.3) ** 2)

    def model(**said):
        priors = {
            "m1": dist.Normal(0, 4),
            "m2": dist.Normal(0, 4),
            "s1": dist.LogNormal(0, 0.6),
            "s2": dist.LogNormal(0, 0.6),
        }
        return sm.Model(priors | {"w": dist.Beta(2, 2), "h": dist.Uniform(0, 2 * np.pi)}, log_likelihood, **said)

    plain = sm.Model({"m1": dist.Normal(0, 4)}, lambda p: -0.5 * jnp.sum((y - p["m1"]) ** 2) / 6)
    return lambda **said: {"two": model(**said), "plain": plain}


@pytest.fixture(scope="module")
def runs(mixture):
    options = {"seed": 3, "progress": False}
    return sm.compare(mixture(), **options), sm.compare(mixture(exchangeable=False, periodic=False), **options)


def test_every_answer_is_as_before(runs):
    fold, whole = runs
    assert any("w being reflected: labelled by" in s for s in fold.symmetries["two"]) and whole.symmetries == {}
    first, second = (r.log_bayes_factor("two", "plain") for r in runs)
    assert abs(first.value - second.value) < SIGMAS * np.hypot(first.error, second.error)
    free, bound = fold.posterior("two").unfolded(), whole.posterior("two")
    assert np.array_equal(free.weights, fold.posterior("two").weights)
    for name in ("m1", "s2", "w"):
        for power in (1, 2):
            a, b = (p.average(p.draws(name) ** power) for p in (free, bound))
            error = np.hypot(*(float(p.average_error(p.draws(name) ** power)) for p in (free, bound)))
            assert abs(a - b) < SIGMAS * error
    for scale in (0.5, 2.0):
        a, b = (r.sensitivity("m1", scales=[scale]).estimate(0) for r in runs)
        assert abs(a.value - b.value) < SIGMAS * np.hypot(a.error, b.error)
    label = fold.posterior("two")
    assert label.quantile("m1", 0.99) < label.quantile("m2", 0.01)


def test_an_angle_across_the_cut_has_a_mean_and_an_interval_about_it(runs):
    posterior = runs[0].posterior("two")
    assert posterior.mean("h") % (2 * np.pi) < 0.3 or posterior.mean("h") % (2 * np.pi) > 6.0
    assert posterior.sd("h") < 0.2
    low, high = posterior.quantile("h", (0.05, 0.95))
    assert 0 < high - low < 0.5
    assert runs[1].posterior("two").sd("h") > 1.0  # the control: as a number on a line
    assert "go round" in str(runs[0]) or "goes round" in str(runs[0])


def test_files_keep_what_was_found(runs, tmp_path):
    fold, _ = runs
    again = sm.load(fold.save(tmp_path / "run.nc"))
    assert again.symmetries == fold.symmetries and str(again) == str(fold)
    a, b = (r.posterior("two").unfolded(seed=4).parameters for r in (fold, again))
    assert all(np.array_equal(a[name], b[name]) for name in a)
    assert "w being reflected" in fold.methods() and "w being reflected" in fold.summary().attrs["note"]
    assert "w being reflected" in fold.report(tmp_path / "run.html").read_text()


def test_a_run_that_is_taken_up_after_it_was_folded_ends_with_the_same_bits(mixture, tmp_path):
    """It stops at a loose target, and goes on from what the file holds: another fold would draw other numbers."""
    options, path = {"seed": 3, "progress": False}, tmp_path / "run.nc"
    whole = sm.compare(mixture(), target_error=0.004, **options)
    loose = sm.compare(mixture(), target_error=0.05, checkpoint=path, **options)
    assert loose.evaluations != whole.evaluations
    resumed = sm.compare(mixture(), target_error=0.004, checkpoint=path, **options)
    assert resumed.log_bayes_factor("two", "plain") == whole.log_bayes_factor("two", "plain")
    assert resumed.symmetries == whole.symmetries and resumed.evaluations == whole.evaluations
    with pytest.raises(SupermodelError, match="another run"):
        sm.compare(mixture(exchangeable=False), target_error=0.004, checkpoint=path, **options)


# -- what is not so ---------------------------------------------------------------------------------------------------


def test_a_false_declaration_is_an_error_that_names_the_point():
    def log_likelihood(p):
        return -0.5 * ((p["a"] - 1) ** 2 + (p["b"] + 1) ** 2) / 0.01 + jnp.logaddexp(0.0, 3 * p["a"])

    wrong = sm.Model({"a": N, "b": N}, lambda p: jnp.logaddexp(log_likelihood(p), log_likelihood({"a": p["b"], "b": p["a"]}) - 0.1),
                     exchangeable=["a", "b"])  # fmt: skip
    with pytest.raises(
        ModelError, match=r"declares that a and b are exchangeable.*it is .* at \{a: .* at the image \{a: "
    ):
        sm.evidence(wrong, progress=False)


def test_a_symmetry_of_the_prior_draws_alone_is_refuted():
    """Two equal modes, and a narrow one of a third of the mass that has no image: no draw of the prior sees it."""

    def log_likelihood(p):
        x = jnp.stack([p["a"], p["b"], p["c"]])

        def bell(centre, sd, weight):
            far = jnp.sum(((x - jnp.array(centre)) / sd) ** 2)
            return jnp.log(weight) - 0.5 * far - 3 * jnp.log(sd) - 1.5 * jnp.log(2 * jnp.pi)

        parts = [
            bell((6.0, -6.0, 0.0), 0.5, 1 / 3),
            bell((-6.0, 6.0, 0.0), 0.5, 1 / 3),
            bell((3.0, 8.0, 5.0), 0.15, 1 / 3),
        ]
        return jax.scipy.special.logsumexp(jnp.stack(parts))

    model = sm.Model(dict.fromkeys("abc", dist.Uniform(-10, 10)), log_likelihood)
    found = sm.evidence(model, seed=0, progress=False)
    assert abs(found.value + 3 * np.log(20)) < SIGMAS * found.error < 0.3
    assert not any("labelled" in sentence for sentence in found.symmetries.get("model", []))


def test_what_fails_in_the_posterior_is_explored_again(monkeypatch):
    problem = Joint("m", sm.Model({"x0": N, "x1": N}, lambda p: 0.0 * p["x0"]))
    begun = []

    class Explorer:
        def __init__(self, *given):
            begun.append(given[-1])
            self.refuted, self.ask = (Refuted("x"),) if begun[-1] else (), None

        def explore(self, known):
            from types import SimpleNamespace

            return SimpleNamespace(joint=problem, points=np.zeros((0, 2)), symmetries=())

    monkeypatch.setattr(growing, "Explorer", Explorer)
    pilot = growing.look_at_few(problem, None, 0, 0, meter(), None)
    assert begun == [True, False] and str(pilot.symmetries[0]).startswith("not so")


# -- canonical forms --------------------------------------------------------------------------------------------------


def sticks(p):
    """Two sticks of Beta(1, 2) and Beta(1, 1): three flat weights, which belong to three means; in the order of the means."""
    v, m = p["v"], p["m"]
    w = jnp.stack([v[0], (1 - v[0]) * v[1], (1 - v[0]) * (1 - v[1])])
    order = jnp.argsort(m)
    w = w[order]
    return {"v": jnp.stack([w[0], w[1] / (1 - w[0])]), "m": m[order]}


def broken(**said):
    rng = np.random.default_rng(2)
    y = np.concatenate([rng.normal(c, 0.5, n) for c, n in ((-4, 10), (0, 6), (4, 8))])

    def log_likelihood(p):
        v = p["v"]
        w = jnp.stack([v[0], (1 - v[0]) * v[1], (1 - v[0]) * (1 - v[1])])
        return jnp.sum(jax.scipy.special.logsumexp(jnp.log(w) - 0.5 * ((y[:, None] - p["m"]) / 0.5) ** 2, axis=1))

    prior = said.pop("prior", dist.Beta(jnp.ones(2), jnp.array([2.0, 1.0])))
    return sm.Model({"v": prior, "m": dist.Normal(0, 4).expand([3])}, log_likelihood, **said)


@pytest.mark.slow
def test_stick_breaking_is_folded_by_a_canonical_form():
    fold = sm.evidence(broken(exchangeable=sm.Canonical(sticks, 6)), seed=0, progress=False)
    whole = sm.evidence(broken(exchangeable=False), seed=0, progress=False)
    assert abs(fold.value - whole.value) < SIGMAS * np.hypot(fold.error, whole.error)
    assert np.all(np.diff(fold.posterior("model").draws("m"), axis=1) >= 0)
    assert fold.evaluations["likelihood"] < whole.evaluations["likelihood"]
    with pytest.raises(SupermodelError, match="canonical form"):
        fold.posterior("model").unfolded()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda: broken(exchangeable=sm.Canonical(sticks, 2)), "one of 2 images, but 0.1"),
        (lambda: broken(exchangeable=sm.Canonical(sticks, 6), prior=dist.Beta(jnp.ones(2), jnp.ones(2))), "prior times volume"),
        (lambda: broken(exchangeable=sm.Canonical(lambda p: {**p, "m": jnp.sort(p["m"])}, 6)), "log likelihood says otherwise"),
        (lambda: broken(exchangeable=sm.Canonical(lambda p: {"m": p["m"]}, 6)), "exactly the parameters"),
    ],
)  # fmt: skip
def test_a_canonical_form_that_is_none_is_refused(model, words):
    with pytest.raises(ModelError, match=words):
        sm.evidence(model(), seed=0, progress=False)
