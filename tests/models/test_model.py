"""Models: what they compute, and what they refuse."""

import math

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
import scipy.stats

from supermodel.errors import DataError, ModelError
from supermodel.models import Gaussian, Joint, Model, Space
from supermodel.models.noise import StudentT

NORMAL = {"a": dist.Normal(0, 1)}
X, Y = np.array([0.5, 1.0, 2.5]), np.array([1.0, 0.4, -0.3])


def test_predictions_with_noise_are_a_likelihood():
    sigma = np.array([0.3, 0.5, 0.9])
    for noise, data in ((Gaussian(sigma), {"x": X, "y": Y}), (None, {"x": X, "y": Y, "sigma": sigma})):
        model = Model(NORMAL, predict=lambda p, x: p["a"] * x, noise=noise)
        expected = scipy.stats.norm(0.7 * X, sigma).logpdf(Y)
        np.testing.assert_allclose(model.pointwise_log_likelihood({"a": 0.7}, data), expected, atol=1e-12)
        assert abs(float(model.log_likelihood({"a": 0.7}, data)) - expected.sum()) < 1e-12


def test_predict_is_given_columns_by_name_and_the_rest_whole():
    data = {"t": X, "y": Y, "sigma": 1.0}
    by_name = Model(NORMAL, predict=lambda p, t: p["a"] * t)
    whole = Model(NORMAL, predict=lambda p, everything: p["a"] * everything["t"])
    optional = Model(NORMAL, predict=lambda p, t, scale=1.0: scale * p["a"] * t)
    alone = Model(NORMAL, predict=lambda p: p["a"])
    for model in (by_name, whole, optional):
        np.testing.assert_allclose(model.prediction({"a": 2.0}, data), 2 * X)
    assert alone.prediction({"a": 2.0}, data) == 2.0
    assert np.shape(alone.pointwise_log_likelihood({"a": 2.0}, data)) == (3,)


def test_traceable_or_plain_python_is_found_out_by_trying():
    traced = Joint("t", Model(NORMAL, lambda p: -0.5 * jnp.sin(p["a"]) ** 2))
    plain = Joint("p", Model(NORMAL, lambda p: -0.5 * math.sin(p["a"]) ** 2))
    vectorized = Joint("v", Model(NORMAL, lambda p: -0.5 * np.sin(np.asarray(p["a"])) ** 2, vectorized=True))
    assert (traced.is_traceable, plain.is_traceable, vectorized.is_traceable) == (True, False, False)
    points = np.array([[0.3], [1.2]])
    expected = -0.5 * np.sin(points[:, 0]) ** 2
    for joint in (traced, plain, vectorized):
        np.testing.assert_allclose(joint.log_likelihood_at(points), expected, atol=1e-12)
        prior = scipy.stats.norm.logpdf(points[:, 0])
        np.testing.assert_allclose(joint.log_joint_at(points), expected + prior, atol=1e-12)
        assert joint.log_likelihood_at(points[:0]).shape == (0,)


def test_data_are_handed_to_the_likelihood():
    joint = Joint("m", Model(NORMAL, lambda p, data: -0.5 * jnp.sum((data - p["a"]) ** 2)), Y)
    assert abs(joint.log_likelihood_at(np.array([[0.2]]))[0] + 0.5 * np.sum((Y - 0.2) ** 2)) < 1e-12


def test_constrain_and_unconstrain_are_inverse():
    space = Space({"v": dist.Normal(0, 1).expand([2]), "s": dist.HalfNormal(1.0), "w": dist.Dirichlet(np.ones(3))})
    assert space.dimension == 5 and space.names == ("v", "s", "w")
    values = {"v": np.array([0.3, -1.0]), "s": 0.7, "w": np.array([0.2, 0.5, 0.3])}
    x = space.unconstrain(values)
    for name, value in space.constrain(x).items():
        np.testing.assert_allclose(value, values[name], atol=1e-9)
    at = space.values_at(np.stack([x, x]))
    assert at["v"].shape == (2, 2) and at["s"].shape == (2,) and at["w"].shape == (2, 3)
    assert abs(space.log_prior_at(x[None])[0] - float(space.log_prior(x))) < 1e-12
    with pytest.raises(ModelError, match=r"missing \['s'\], unknown \['q'\]"):
        space.unconstrain({"v": 1, "w": 1, "q": 1})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["a"], abs), "must be a dict of name to distribution; got list"),
        ((NORMAL,), "either `log_likelihood` or `predict`"),
        ((NORMAL, 3), "must be a function.*got 3"),
        (({"": dist.Normal()}, abs), "non-empty string"),
        (({3: dist.Normal()}, abs), "non-empty string; got 3"),
    ],
)
def test_models_that_are_refused(arguments, message):
    with pytest.raises(ModelError, match=message):
        Model(*arguments)


def test_parts_that_do_not_belong_together_are_refused():
    with pytest.raises(ModelError, match="and not both"):
        Model(NORMAL, abs, predict=abs)
    with pytest.raises(ModelError, match="`noise` says how data scatter"):
        Model(NORMAL, abs, noise=Gaussian(1.0))
    with pytest.raises(ModelError, match="no `predict`"):
        Model(NORMAL, abs).prediction({"a": 1.0}, None)
    with pytest.raises(ModelError, match="need a model written with"):
        Model(NORMAL, abs).pointwise_log_likelihood({"a": 1.0}, None)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"x": X}, 'column "y"'),
        (Y, 'column "y"'),
        ({"x": X, "y": Y}, "sigma from 'sigma', but there are only"),
        ({"x": X, "y": Y[:2], "sigma": 1.0}, "lengths of the columns are x 3, y 2"),
        ({"x": X, "y": Y[:, None], "sigma": 1.0}, r"shape \(3, 3\).*counted more than once"),
        ({"x": X, "y": Y[:1], "sigma": 1.0}, r"shape \(3,\) for data\[\"y\"\] of shape \(1,\)"),
    ],
)
def test_data_that_do_not_fit_are_refused(data, message, rng):
    model = Model(NORMAL, predict=lambda p, x: p["a"] * x)
    with pytest.raises((DataError, TypeError, ValueError), match=message):
        model.log_likelihood({"a": 1.0}, data)
    with pytest.raises((DataError, TypeError, ValueError)):
        Joint("m", model, data).probe(rng)


def test_a_likelihood_of_the_wrong_shape_is_refused(rng):
    for function in (lambda p: jnp.ones(3) * p["a"], lambda p: np.ones(3) * math.sin(p["a"])):
        with pytest.raises(ModelError, match=r"shape \(3,\).*must return one\s+number"):
            Joint("m", Model(NORMAL, function)).probe(rng)
    with pytest.raises(ModelError, match=r"`vectorized`, but for 64 points.*shape \(\)"):
        Joint("m", Model(NORMAL, lambda p: float(np.sum(np.asarray(p["a"]))), vectorized=True)).probe(rng)


def test_nan_and_plus_infinity_are_refused_and_minus_infinity_is_not(rng):
    with pytest.raises(ModelError, match="model 'm' is NaN at a = -.*on_error"):
        Joint("m", Model(NORMAL, lambda p: jnp.log(p["a"]))).probe(rng)
    with pytest.raises(ModelError, match=r"model 'm' is \+inf at a = \d"):
        Joint("m", Model(NORMAL, lambda p: jnp.where(p["a"] > 0, jnp.inf, 0.0))).probe(rng)
    _, values = Joint("m", Model(NORMAL, lambda p: jnp.where(p["a"] > 0, -jnp.inf, 0.0))).probe(rng)
    assert np.isneginf(values).any() and np.isfinite(values).any()


def test_a_mistake_in_plain_python_shows_itself(rng):
    joint = Joint("m", Model(NORMAL, lambda p: p["b"]))
    with pytest.raises(
        ModelError, match=r"model 'm' raises KeyError: 'b' \(test_model.py, line \d+; parameters are a\) at a = "
    ) as told:
        joint.probe(rng)
    assert isinstance(told.value.__cause__, KeyError)


def test_models_show_themselves():
    assert repr(Model({"omega": dist.Normal(1, 2)}, abs)) == "Model(omega ~ Normal(1, 2))"
    assert repr(Model({}, abs)) == "Model(no parameters)"
    assert "× 3" in repr(Model({"v": dist.Normal(0, 1).expand([3])}, abs))


def test_a_scale_that_can_be_none_is_told_with_its_place():
    model = Model(NORMAL, predict=lambda p, x: p["a"] * x)
    with pytest.raises(DataError, match=r"column 'sigma', row 1 \(counted from 0\), is 0: .*above 0"):
        model.log_likelihood({"a": 1.0}, {"x": X, "y": Y, "sigma": np.array([0.1, 0.0, 0.1])})
    with pytest.raises(DataError, match="`sigma` of the noise is -0.2: .*above 0"):
        Gaussian(-0.2)
    with pytest.raises(DataError, match=r"`sigma` of the noise, row 2 \(counted from 0\), is nan"):
        StudentT(4.0, np.array([0.1, 0.1, np.nan]))
    with pytest.raises(DataError, match="`df` of the noise is 0"):
        StudentT(0.0)
    # Beside a covariance no scatter is a scatter, and what a parameter is worth is for ln L to tell.
    assert Gaussian(0.0, covariance=np.eye(3)).is_correlated
    fitted = Model({"a": dist.Normal(), "s": dist.Normal()}, predict=lambda p, x: p["a"] * x, noise=Gaussian("s"))
    assert math.isnan(fitted.log_likelihood({"a": 1.0, "s": -1.0}, {"x": X, "y": Y}))


def test_a_prediction_that_asks_for_no_column_is_told_of_them():
    model = Model(NORMAL, predict=lambda p, x: p["a"] * x)
    with pytest.raises(DataError, match="argument 'x' is no column of the data, which has sigma, t, y"):
        model.log_likelihood({"a": 1.0}, {"t": X, "y": Y, "sigma": 0.1})
    whole = Model(NORMAL, predict=lambda p, data: p["a"] * data["t"])
    assert math.isfinite(whole.log_likelihood({"a": 1.0}, {"t": X, "y": Y, "sigma": 0.1}))


def test_a_prediction_of_another_length_is_not_blamed_on_the_columns():
    model = Model(NORMAL, predict=lambda p, x: p["a"] * x[:2])
    with pytest.raises(DataError, match="gives 2 values for 3 values .*does it cut or bin a column"):
        model.log_likelihood({"a": 1.0}, {"x": X, "y": Y, "sigma": 0.1})
