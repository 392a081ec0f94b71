"""One component, and the model of k of them."""

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest

import supermodel as sm
from supermodel.counting.component import Component, blocks, model_of, numbered, title
from supermodel.errors import DataError, ModelError

X = np.linspace(0, 3, 7)
DATA = {"x": X, "y": np.sin(X), "error": np.full(7, 0.3)}
P = {"level": 0.4, "c1": 1.1, "A1": 0.7, "c2": 2.3, "A2": -0.2}


def bump(p, x):
    return p["A"] * jnp.exp(-0.5 * (x - p["c"]) ** 2)


LINE = Component({"c": dist.Uniform(0, 3), "A": dist.Normal(0, 2)}, bump, name="line", labels={"c": "$c$"}, units={"c": "nm"})
LEVEL = Component({"level": dist.Normal(0, 1)}, lambda p, x: p["level"] + 0 * x)


def test_names():
    assert [title(LINE, k) for k in (0, 1, 2)] == ["no line", "1 line", "2 lines"]
    assert numbered("P", 2) == "P2" and numbered("b1", 2) == "b1_2"
    assert blocks(LINE, 2) == [("c1", "A1"), ("c2", "A2")]


def test_predictions_add():
    model = model_of(LINE, 2, LEVEL, sm.Gaussian("error"))
    expected = 0.4 + np.asarray(bump({"c": 1.1, "A": 0.7}, X)) + np.asarray(bump({"c": 2.3, "A": -0.2}, X))
    assert np.allclose(model.prediction(P, DATA), expected)
    off = (DATA["y"] - expected) / 0.3
    assert float(model.log_likelihood(P, DATA)) == pytest.approx(np.sum(-0.5 * off**2 - np.log(0.3 * np.sqrt(2 * np.pi))))
    assert model.labels == {"c1": "$c_{1}$", "c2": "$c_{2}$"} and model.units == {"c1": "nm", "c2": "nm"}
    assert len(model.exchangeable) == 1  # a sum has no order


def test_another_rule_than_the_sum():
    model = model_of(LINE, 2, LEVEL, sm.Gaussian("error"), combine=lambda behind, parts: behind * (1 - parts[0]) * (1 - parts[1]))
    parts = [np.asarray(bump({"c": P[f"c{i}"], "A": P[f"A{i}"]}, X)) for i in (1, 2)]
    assert np.allclose(model.prediction(P, DATA), 0.4 * (1 - parts[0]) * (1 - parts[1]))
    assert model.exchangeable is None  # of what a user wrote it is asked


def test_two_errors_of_each_datum_add_in_squares():
    model = model_of(LINE, 0, Component({"jitter": dist.HalfNormal(1)}, lambda p, x: 0 * x), sm.Gaussian("jitter", "error"))
    sd = np.hypot(0.5, 0.3)
    expected = np.sum(-0.5 * (DATA["y"] / sd) ** 2 - np.log(sd * np.sqrt(2 * np.pi)))
    assert float(model.log_likelihood({"jitter": 0.5}, DATA)) == pytest.approx(expected)


@pytest.mark.parametrize("k", [0, 1, 3])
def test_a_likelihood_gets_arrays_over_the_components(k):
    seen = {}

    def log_likelihood(values, data):
        seen.update({name: np.shape(v) for name, v in values.items()})
        return jnp.sum(values["A"]) + values["level"] + jnp.sum(data["y"])

    model = model_of(LINE, k, LEVEL, log_likelihood=log_likelihood)
    values = {"level": jnp.asarray(0.5)} | {f"{p}{i}": jnp.asarray(float(i)) for p in "cA" for i in range(1, k + 1)}
    found = float(model.log_likelihood(values, DATA))
    assert found == pytest.approx(0.5 + sum(range(1, k + 1)) + DATA["y"].sum())
    assert seen["A"] == (k,) and seen["level"] == ()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Component({}, bump, name=" "), "what one component is called"),
        (lambda: Component({"P": dist.Normal(0, 1)}, bump, period="Q"), "`period` names 'Q'.*parameters are P"),
        (lambda: Component({"P": dist.Normal(0, 1)}, bump, period=3), "`period` is the name"),
        (lambda: Component({"P": dist.Normal(0, 1)}, bump, labels={"Q": "q"}), "`labels` names 'Q'"),
    ],
)
def test_what_a_component_must_be(made, message):
    with pytest.raises(ModelError, match=message):
        made()


@pytest.mark.parametrize("shape", [lambda p, x: bump(p, x)[:3], lambda p, x: bump(p, x)[:, None]])
def test_a_prediction_of_another_shape_is_told_with_its_name(shape):
    wrong = Component(LINE.priors, shape, name="line")
    with pytest.raises(DataError, match=r"prediction of the line has the shape .* has \(7,\)"):
        model_of(wrong, 1, LEVEL, sm.Gaussian("error")).log_likelihood(P, DATA)
