"""Discoveries: the share of false ones is what is said, on simulated truth."""

import math

import numpy as np
import pytest
from scipy import stats

from population_problems import FALSE_ALARM, THREE, simulated, told
from supermodel.errors import SupermodelError
from supermodel.survey import table
from supermodel.survey.population import Known, fitted
from supermodel.survey.ranking import false_discoveries
from supermodel.survey.result import ManyResult

LEVEL = 0.2


def surplus(rng, are_fractions_known=True, n_surveys=250, error=0.3):
    """(False ones found - false ones expected) / discoveries, over surveys, as Student's t; and the mean share found.

    Given the data the expectation is 0 exactly, where fractions are drawn from their prior.
    """
    found, shares = [], []
    for _ in range(n_surveys):
        f = rng.dirichlet((1.0, 4.0))
        labels, known = simulated(rng, f, 60, np.array([1.5, -1.0]), error)
        if are_fractions_known:
            p = fitted(known, np.array([1.0, 4.0])).probabilities[:, 0]
        else:
            p = 1 / (1 + np.exp(known.log_z[:, 1] - known.log_z[:, 0]))
        order, rates = false_discoveries(1 - p)
        n = int((rates <= LEVEL).sum())
        if n:
            shares.append(float((labels[order[:n]] != 0).mean()))
            found.append(shares[-1] - rates[n - 1])
    return float(np.mean(found)) / (np.std(found, ddof=1) / math.sqrt(len(found))), float(np.mean(shares)), len(found)


def test_the_share_of_false_discoveries_is_as_said(rng):
    """To a false alarm rate of 1e-6; objects each judged alone, at even odds, break it."""
    t, share, n = surplus(rng)
    limit = stats.t(n - 1).isf(FALSE_ALARM / 2)
    assert abs(t) < limit and share < LEVEL + limit * 0.5 / math.sqrt(n)
    assert surplus(rng, are_fractions_known=False)[0] > limit


def test_ranks_by_hand():
    order, rates = false_discoveries(np.array([0.5, 0.1, 0.3, 0.0]))
    assert order.tolist() == [3, 1, 2, 0] and rates == pytest.approx([0.0, 0.05, 0.4 / 3, 0.9 / 4])


def test_objects_that_are_sure_to_rounding_are_still_ranked():
    log_z = np.array([[100.0, 0.0], [300.0, 0.0], [200.0, 0.0], [0.0, 9.0]])
    outcomes = told(Known(log_z, np.zeros((4, 2, 2))), ("a", "b"))
    found = ManyResult(("a", "b"), {}, frame=table.frame_of(outcomes, ("a", "b"))).ranking("a").table
    assert found["dataset"].tolist() == ["n1", "n2", "n0", "n3"] and 0 < found["local_rate"][0] < 1e-100


def test_a_result_tells_its_discoveries(rng):
    labels, known = simulated(rng, [0.4, 0.3, 0.3], 80, 3 * THREE, error=0.2)
    models = ("a", "b", "c")
    outcomes = told(known, models, ["ok"] * 79 + ["fail"])
    result = ManyResult(models, {}, frame=table.frame_of(outcomes, models))
    found, members = result.ranking("b", false_discovery=0.1), result.population().members
    assert (
        found.table["probability"].is_monotonic_decreasing
        and found.table["false_discovery_rate"].is_monotonic_increasing
    )
    assert len(found.table) == 79 and found.n_left_out == 1
    same = found.table.set_index("dataset")["probability"].loc[members["dataset"]]
    assert same.to_numpy() == pytest.approx(members["b"].to_numpy(), abs=1e-12)
    assert 0 < len(found) < 79 and found.names == found.table["dataset"].tolist()[: len(found)]
    assert (
        found.table["false_discovery_rate"].iloc[len(found) - 1]
        <= 0.1
        < found.table["false_discovery_rate"].iloc[len(found)]
    )
    pair = result.ranking("b", "c").table.set_index("dataset")["probability"]
    one = members.iloc[0]
    assert pair[one["dataset"]] == pytest.approx(one["b"] / (one["b"] + one["c"]))
    assert (
        "rather than another" in str(found)
        and "1 without a usable answer" in str(found)
        and "<table" in found._repr_html_()
    )
    for wrong in (("z", None), ("a", "a"), ("a", "z")):
        with pytest.raises(SupermodelError, match="to rank by"):
            result.ranking(*wrong)
    with pytest.raises(SupermodelError, match="between 0 and 1; got 10"):
        result.ranking("a", false_discovery=10)
