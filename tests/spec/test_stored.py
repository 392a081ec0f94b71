"""Saved runs of TOML files carry their formulas: what is loaded can predict, draw and plot, and runs nothing as code."""

import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pytest

import supermodel as sm
from canary import ATTACKS, nothing_runs
from made_result import made_result
from supermodel.errors import SupermodelError
from supermodel.report import plots
from supermodel.spec.toml import parse_spec

SPEC = """[data]
columns = { temp = [TEMP], size = [Y] }
y = "size"
x = "temp"
[noise]
sigma = "0.1 + s"
priors = { s = "HalfNormal(1)" }
[models.line]
mean = "a + b * temp"
priors = { a = "Normal(0, 1)", b = "Normal(0, 1)" }
[models.curve]
mean = "a + b * temp + c * temp^2"
noise = { form = "student_t", df = 4, sigma = 0.6 }
priors = { a = "Normal(0, 1)", b = "Normal(0, 1)", c = "Normal(0, 1)" }
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    made = made_result()
    numbers = {"TEMP": made.data["x"], "Y": made.data["y"]}
    text = SPEC
    for word, values in numbers.items():
        text = text.replace(f"[{word}]", str(values.tolist()))
    spec = parse_spec(text)
    line = made.posteriors["line"]
    draws = dataclasses.replace(line, parameters=line.parameters | {"s": np.full(len(line.weights), 0.5)})
    result = dataclasses.replace(
        made, models=spec.models, data=spec.data, priors={}, posteriors=made.posteriors | {"line": draws}
    )
    return result, result.save(tmp_path_factory.mktemp("toml") / "run.nc")


def test_what_is_loaded_can_predict_draw_and_plot(stored):
    result, path = stored
    again = sm.load(path)
    assert again.models is not None and again.formulas == result.formulas
    np.testing.assert_array_equal(again.predict().mean, result.predict().mean)
    assert again.predict({"temp": np.array([0.5])}).mean == pytest.approx(
        result.predict({"temp": np.array([0.5])}).mean
    )
    ax = plots.predictions(again)
    assert ax.get_xlabel() == "temp"
    assert (
        again.drivers().values == pytest.approx(result.drivers().values) if hasattr(again.drivers(), "values") else True
    )
    values = {"a": 0.1, "b": 0.2, "s": 0.4}
    assert float(again.models["line"].log_likelihood(values, again.data)) == float(
        result.models["line"].log_likelihood(values, result.data)
    )
    plt.close("all")


def test_other_models_may_still_be_given_and_others_have_none(stored, tmp_path):
    result, path = stored
    assert sm.load(path, models=result.models).models["line"] is result.models["line"]
    assert sm.load(made_result().save(tmp_path / "plain.nc")).models is None


@pytest.mark.parametrize("formula", [*ATTACKS[:4], "a +", "nosuch(a)", "a * other", 3.5, ["a"]])
def test_a_forged_formula_is_refused_and_nothing_runs(formula, stored, tmp_path):
    result, _ = stored
    forged = {name: {**text, "model": dict(text["model"])} for name, text in result.formulas.items()}
    forged["line"]["model"]["mean"] = formula
    path = dataclasses.replace(result, formulas=forged).save(tmp_path / "forged.nc")
    with nothing_runs(), pytest.raises(SupermodelError, match="forged.nc"):
        sm.load(path)
