import numpy as np

from supermodel.estimation.estimate import Evidences
from supermodel.regressions.formula import Term
from supermodel.regressions.inclusion import inclusions

A, B, AB = Term(("a",)), Term(("b",)), Term(("a", "b"))
MODELS = {"1": (), "a": (A,), "b": (B,), "a + b": (A, B), "a + b + a:b": (A, B, AB)}


def evidences(z, errors):
    return Evidences(tuple(MODELS), np.log(z), np.diag(np.square(errors)))


def test_by_hand():
    """Z = 1, 2, 3, 4, 5: a is in 2 + 4 + 5 against 1 + 3, prior odds 3 : 2; matched 2 + 4 against 1 + 3."""
    found = {i.term: i for i in inclusions(MODELS, evidences([1, 2, 3, 4, 5], [0] * 5), dict.fromkeys(MODELS, 0.2))}
    assert np.isclose(found["a"].log_bayes_factor.value, np.log(11 / 4) - np.log(3 / 2))
    assert np.isclose(found["a"].matched.value, np.log(6 / 4))
    assert np.isclose(found["a:b"].log_bayes_factor.value, np.log(5 / 10) - np.log(1 / 4))
    assert np.isclose(found["a:b"].matched.value, np.log(5 / 4))
    assert np.isclose(found["b"].posterior, 12 / 15) and np.isclose(found["b"].prior, 0.6)


def test_prior_odds_cancel_in_matched_pairs_of_equal_odds():
    odds = {"1": 0.1, "a": 0.1, "b": 0.2, "a + b": 0.2, "a + b + a:b": 0.4}
    found = {i.term: i for i in inclusions(MODELS, evidences([1, 2, 3, 6, 5], [0] * 5), odds)}
    assert np.isclose(found["a"].matched.value, np.log(2))  # both pairs say 2 : 1, whatever their odds


def test_errors_are_those_of_perturbed_evidences():
    errors, rng = np.array([0.02, 0.05, 0.01, 0.04, 0.03]), np.random.default_rng(0)
    z, odds = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), dict.fromkeys(MODELS, 0.2)
    stated = inclusions(MODELS, evidences(z, errors), odds)
    runs = [inclusions(MODELS, evidences(z * np.exp(errors * rng.normal(size=5)), errors), odds) for _ in range(400)]
    for k, inclusion in enumerate(stated):
        for part in ("log_bayes_factor", "matched"):
            spread = np.std([getattr(run[k], part).value for run in runs])
            assert abs(spread / getattr(inclusion, part).error - 1) < 5 / np.sqrt(2 * 400) + 0.03  # and curvature


def test_a_term_without_a_partner_has_no_matched_factor():
    models = {"1": (), "a + b + a:b": (A, B, AB)}
    found = inclusions(models, Evidences(tuple(models), np.zeros(2), np.zeros((2, 2))), dict.fromkeys(models, 0.5))
    assert all(i.matched is None for i in found)
