import numpy as np
import pandas as pd
import pytest

import supermodel as sm
from supermodel.regressions.hypothesis import read

LABELS = ["f[a]", "f[b]", "f[c]", "x", "h[a]", "f[a]:h[a]"]


def test_readings():
    assert read("f[a] > f[b] > f[c]", LABELS) == [{"f[a]": 1.0, "f[b]": -1.0}, {"f[b]": 1.0, "f[c]": -1.0}]
    assert read("b < c & x < 0", LABELS) == [{"f[b]": -1.0, "f[c]": 1.0}, {"x": -1.0}]


@pytest.mark.parametrize(
    ("text", "words"),
    [("a > b", "several"), ("x > q", "none of them"), ("x", "no inequality"), ("x > 3", "only 0 is a number")],
)
def test_bad_ones_name_the_effects(text, words):
    with pytest.raises(sm.SupermodelError, match=words):
        read(text, LABELS)


@pytest.fixture(scope="module")
def three_groups():
    rng = np.random.default_rng(5)
    f = np.repeat(["a", "b", "c"], 15)
    return pd.DataFrame({"f": f, "y": rng.normal(size=45) + 0.7 * (f == "b") + 1.5 * (f == "c")})


def test_all_orders_of_three_levels_share_the_prior_and_the_posterior(three_groups):
    """P(order) is 1/6 each before, and the six posterior shares sum to one; errors of 200 000 draws, 5 of them."""
    result = sm.anova("y ~ f", three_groups)
    orders = ["a > b > c", "a > c > b", "b > a > c", "b > c > a", "c > a > b", "c > b > a"]
    found = [result.hypothesis(order) for order in orders]
    assert all(abs(r.prior.value - 1 / 6) < 5 * r.prior.error for r in found)
    assert abs(sum(r.posterior.value for r in found) - 1) < 1e-4
    best = max(found, key=lambda r: r.log_bayes_factor.value)
    assert best.hypothesis == "c > b > a" and best.log_bayes_factor.value > np.log(4)
    assert np.isclose(best.against_null.value, best.log_bayes_factor.value + result.log_bayes_factor("f", "1").value)


def test_one_inequality_is_exact_and_its_complement_too(three_groups):
    result = sm.anova("y ~ f", three_groups, hypothesis="c > a")
    (up,), down = result.hypotheses, result.hypothesis("c < a")
    assert up.log_bayes_factor.error == 0 and np.isclose(up.posterior.value + down.posterior.value, 1)
    assert "c > a" in str(result)


def test_a_hypothesis_about_nothing_in_the_models(three_groups):
    with pytest.raises(sm.SupermodelError, match=r"f\[a\], f\[b\], f\[c\]"):
        sm.anova("y ~ f", three_groups, hypothesis="d > a")
