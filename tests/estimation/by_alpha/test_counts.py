import math
from dataclasses import replace

import numpy as np
import pytest

from exact_draws import coordinates, example, is_calibrated, is_within, z_scores
from supermodel.errors import SupermodelError
from supermodel.estimation.by_alpha.counts import counts

PAIR = example()


@pytest.mark.parametrize(
    "case", [("index", None), ("index", coordinates.index(2, np.log([0.3, 0.7]))), ("product", coordinates.ladder(5))]
)
def test_visits_give_the_truth(case, rng):
    draws = PAIR.draws(PAIR.supermodel(*case, tilt=[0.6, 0.1]), rng, 8, 1500)
    assert is_within(counts(draws).log_bayes_factor(*PAIR.names), PAIR.log_bayes_factor())
    wrong = replace(draws, supermodel=PAIR.supermodel(*case))  # the tilt forgotten
    assert not is_within(counts(wrong).log_bayes_factor(*PAIR.names), PAIR.log_bayes_factor())


def test_errors_are_calibrated(rng):
    z = z_scores(PAIR, PAIR.supermodel("index"), counts, rng)
    assert is_calibrated(z)
    assert not is_calibrated(z * math.sqrt(1.7 / 0.3))


def test_independent_visits_have_the_binomial_error(rng):
    """Errata 3.1: sigma sqrt(N) = 1/sqrt(P(1 - P)) for the index."""
    draws = PAIR.draws(PAIR.supermodel("index"), rng, 1, 40_000)
    p = 1 / (1 + math.exp(-PAIR.log_bayes_factor()))
    scaled = counts(draws).log_bayes_factor(*PAIR.names).error * 200
    assert scaled == pytest.approx(1 / math.sqrt(p * (1 - p)), rel=0.1)


def test_a_model_never_visited_gives_a_limit_and_never_a_zero_error(rng):
    three = example(3)
    draws = three.draws(three.supermodel("index", tilt=three.balance()), rng, 4, 400)
    alpha = np.where(draws.alpha == 1, 0, draws.alpha)
    found = counts(replace(draws, alpha=alpha))
    a, b, c = three.names
    assert found.log_bayes_factor(b, a).error == math.inf and found.log_bayes_factor(b, c).error == math.inf
    assert math.isfinite(found.log_bayes_factor(a, c).error) and found.log_bayes_factor(a, c).error > 0
    most = found.details["limit_relative_to"]
    assert found.details["limit"] == {b: pytest.approx(found.log_bayes_factor(b, most).value)}
    expected = (
        math.log(-math.log(0.05) / found.details["visits"][most])
        - three.balance()[1]
        + three.balance()[three.names.index(most)]
    )
    assert (
        expected - 1e-9 <= found.details["limit"][b] < expected + 1.0
    )  # the odds' own correlation weakens it a little


def test_the_limit_is_the_rule_of_three(rng):
    """The rule of three: N independent draws without a visit exclude, at 95%, no share below 3/N."""
    draws = PAIR.draws(PAIR.supermodel("index"), rng, 4, 250)
    found = counts(replace(draws, alpha=np.zeros_like(draws.alpha)))
    assert found.details["limit"][PAIR.names[1]] >= math.log(3 / 1000) - 1e-2


def test_only_rungs_can_be_counted(rng):
    with pytest.raises(SupermodelError, match="rungs"):
        counts(PAIR.draws(PAIR.supermodel("mixture"), rng, 2, 20))
