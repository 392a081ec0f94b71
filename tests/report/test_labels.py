"""Labels and units of parameters in tables and on axes, and LaTeX as journals want it."""

import dataclasses
import sys
from types import ModuleType, SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy import stats

import supermodel as sm
from made_result import made_data, made_result, model
from supermodel.errors import SupermodelError
from supermodel.models.adapters.from_bilby import from_bilby
from supermodel.report import plots
from supermodel.report.tables import latex_cell
from supermodel.spec.toml import parse_spec

LABELS, UNITS = {"a": r"$\alpha$", "b": "slope"}, {"a": r"$M_{\odot}$", "b": "km/s"}


@pytest.fixture(scope="module")
def labelled():
    result = made_result()
    models = {name: model(own).with_labels(LABELS, UNITS) for name, own in (("line", "ab"), ("curve", "abc"))}
    return dataclasses.replace(result, models=models)


def test_they_are_in_every_table(labelled, tmp_path):
    labelled.save(tmp_path / "r.nc")
    for result in (labelled, sm.load(tmp_path / "r.nc")):
        for table in (str(result), str(result.summary()), result._repr_html_() + str(result)):
            assert "a [M☉]" in table and "slope [km/s]" in table
        assert (
            r"$\alpha$ [$M_{\odot}$]" in result.summary().cells().latex()
            and "slope [km/s]" in result.summary().cells().latex()
        )
        assert result.name_of("b", (2,)) == "slope[2] [km/s]" and result.name_of("c") == "c"
        assert ("line", "a") in result.summary().index  # asked for by name as before
    assert "slope [km/s]" in labelled.report(tmp_path / "r.html").read_text()


def test_they_are_on_axes_as_formulas_that_can_be_set(labelled):
    for label, shown in ((r"$\alpha$", r"$\alpha$ [$M_{\odot}$]"), (r"$\nosuch{$", "a [M☉]")):
        ax = plots.averaged(dataclasses.replace(labelled, labels={"a": label}), "a")
        assert ax.get_xlabel() == shown
        ax.figure.canvas.draw()
    assert plots.averaged(labelled, "b").get_xlabel() == "slope [km/s]"
    assert (
        labelled.sensitivity("a", [0.5, 1, 2])
        .plot()
        .get_xlabel()
        .startswith(r"width of the prior of $\alpha$ [$M_{\odot}$]")
    )
    plots.corner(labelled, "line").figure.canvas.draw()
    plt.close("all")


def test_wrong_ones_are_refused():
    prior = {"omega": stats.norm(0, 1)}
    with pytest.raises(SupermodelError, match="`labels` names 'omga'.*Did you mean 'omega'"):
        sm.Model(prior, lambda p: 0.0, labels={"omga": "x"})
    with pytest.raises(SupermodelError, match="`units` must be a dict of name to text"):
        sm.Model(prior, lambda p: 0.0, units={"omega": 3})
    assert sm.Model(prior, lambda p: 0.0, labels={"omega": "w"}, units={"omega": "Hz"}).reordered(["omega"]).units == {
        "omega": "Hz"
    }


SPEC = """[data]
columns = { temp = [1, 2, 3], y = [2, 0, 1] }
x = "temp"
[noise]
sigma = 1
[models.m]
mean = "a * temp"
priors = { a = "Normal(0, 1)" }
[models.n]
mean = "0"
[labels]
a = "$\\\\alpha$"
[units]
a = "K"
"""


def test_they_stand_in_toml():
    spec = parse_spec(SPEC)
    assert spec.models["m"].labels == {"a": r"$\alpha$"} and spec.models["m"].units == {"a": "K"}
    with pytest.raises(SupermodelError, match=r"line 14 \(units.b\): unknown key 'b'"):
        parse_spec(SPEC.replace('a = "K"', 'b = "K"'))
    with pytest.raises(SupermodelError, match=r"line 3 \(data.x\): there is no column 'tmp'"):
        parse_spec(SPEC.replace('x = "temp"', 'x = "tmp"'))


def test_those_of_bilby_come_along(monkeypatch):
    """A stand-in with bilby's attributes: bilby itself is not always installed."""

    class PriorDict(dict):
        non_fixed_keys, fixed_keys, constraint_keys = property(list), (), ()

    core = ModuleType("bilby.core.prior")
    core.PriorDict, core.ConditionalPriorDict, core.JointPrior = PriorDict, type("C", (), {}), type("J", (), {})
    for name, module in (
        ("bilby", ModuleType("bilby")),
        ("bilby.core", ModuleType("bilby.core")),
        (core.__name__, core),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    normal = stats.norm(30, 2)
    given = {"rescale": normal.ppf, "cdf": normal.cdf, "get_instantiation_dict": lambda: {"mu": 30.0, "sigma": 2.0}}
    priors = {
        "chirp_mass": SimpleNamespace(latex_label=r"$\mathcal{M}$", unit=r"$M_{\odot}$", **given),
        "plain": SimpleNamespace(latex_label="plain", unit=None, **given),
    }
    found = from_bilby(SimpleNamespace(log_likelihood=lambda parameters: 0.0), PriorDict(priors))
    assert found.labels == {"chirp_mass": r"$\mathcal{M}$"} and found.units == {"chirp_mass": r"$M_{\odot}$"}


def test_latex_numbers():
    cells = {
        "1.2e-07": r"$1.2 \times 10^{-7}$", "-5.02 ± 0.01": r"$-5.02 \pm 0.01$", ">0.9999": "$>0.9999$", "12": "$12$",
        "1.000e-12 ± 3.0e-13": r"$(1.00 \pm 0.30) \times 10^{-12}$", "2.5e+10 ± 1.5e+11": r"$(0.2 \pm 1.5) \times 10^{11}$",
        "5.0223 ± <0.0001": r"$5.0223 \pm {<}0.0001$", "–": "--", "run_2": r"run\_2", "3b": "3b",
    }  # fmt: skip
    assert {cell: latex_cell(cell) for cell in cells} == cells


def test_columns_of_the_latex_table(labelled):
    lines = labelled.table().latex(columns=("model", "P", "ln B")).splitlines()
    assert lines[0] == r"\begin{tabular}{lrr}"
    assert lines[2] == r"model & $P(\mathrm{model}\mid\mathrm{data})$ & $\ln B$ vs curve \\"
    assert lines[4].startswith("curve & $0.7") and lines[5].endswith(r"$ \\") and r"\pm" in lines[5]
    assert labelled.table().markdown(["ln Z"]).startswith("| ln Z |")
    with pytest.raises(SupermodelError, match="no column 'probability'; its columns are 'model', 'ln Z'"):
        labelled.table().latex(["probability"])


# -- pictures -----------------------------------------------------------------------------------------------------------


def overlapping(ax) -> list[tuple[str, str]]:
    ax.figure.canvas.draw()
    texts = [t for t in ax.texts if t.get_text()]
    boxes = [t.get_window_extent() for t in texts]
    return [
        (texts[i].get_text(), texts[j].get_text())
        for i in range(len(boxes))
        for j in range(i)
        if boxes[i].overlaps(boxes[j])
    ]


@pytest.mark.parametrize("parameter", ["b", "c"])
def test_labels_of_averages_do_not_overlap_and_arrows_are_as_high_as_probabilities(parameter):
    """Two spikes at one place, which used to be written over each other with arrows of one height."""
    result = made_result(models={"line": "ab", "curve": "abc", "flat": "a", "bend": "ac"})
    ax = plots.averaged(result, parameter, fixed=0.0)
    assert sum(f": {parameter} = 0" in t.get_text() for t in ax.texts) == 2 and overlapping(ax) == []
    top = max(line.get_ydata().max() for line in ax.lines if len(line.get_xdata()) > 1)
    arrows = [t for t in ax.texts if getattr(t, "arrowprops", None)]
    heights = [t.xy[1] - t.xyann[1] for t in arrows]
    absent = [n for n in result.names if parameter not in result.posteriors[n].parameters]
    shares = [result.probabilities[n] for n in absent if result.probabilities[n] > 0.04]
    np.testing.assert_allclose(heights, np.array(shares) * top, rtol=1e-9)
    plt.close("all")


def predicted(models, data, **given):
    result = made_result()
    n = {"line": "ab", "curve": "abc"}
    return dataclasses.replace(result, models={name: models(own) for name, own in n.items()}, data=data, **given)


def over(*columns):
    """Models that predict from other columns than x."""

    def build(own):
        def from_one(p, temp):
            return sum(p[q] * temp**i for i, q in enumerate(own))

        def from_two(p, temp, dose):
            return from_one(p, temp) + 0.5 * dose

        def from_groups(p, temp, who):
            return from_one(p, temp) + np.where(who == "u", 1.0, 0.0)

        predict = {("temp",): from_one, ("temp", "dose"): from_two, ("temp", "who"): from_groups}[columns]
        return sm.Model(model(own).priors, predict=predict, noise=sm.Gaussian("sigma"))

    return build


def test_predictions_over_a_column_of_any_name_by_groups_and_for_each_datum():
    data = made_data()
    data = {"temp": data["x"], "y": data["y"], "sigma": data["sigma"], "dose": np.linspace(0, 3, 24)}
    data["who"] = np.array(["u", "v"] * 12)
    alone = predicted(over("temp"), data)
    for x in (None, "temp"):
        ax = plots.predictions(alone, x)
        assert ax.get_xlabel() == "temp" and len(ax.lines[0].get_xdata()) == 240
    with pytest.raises(SupermodelError, match="no column 'tmp'.*Did you mean 'temp'"):
        plots.predictions(alone, "tmp")
    grouped = plots.predictions(predicted(over("temp", "who"), data), "temp")
    words = [t.get_text() for t in grouped.texts]
    assert {"who = u", "who = v"} <= set(words)
    (x, u), (z, v) = (line.get_data() for line in grouped.lines if len(line.get_xdata()) == 120)
    inside = (x > z[0]) & (x < z[-1])
    np.testing.assert_allclose((u - np.interp(x, z, v))[inside], 1.0, atol=1e-3)  # what the group adds
    several = predicted(over("temp", "dose"), data)
    each = plots.predictions(several, "temp")
    assert len(each.lines[0].get_xdata()) == 24 and "each" in each.get_title(loc="left")
    with pytest.raises(SupermodelError, match='there is no "x", and the models read dose, temp'):
        plots.predictions(several)
    by = plots.predictions(several, "temp", by="who")
    assert "dose at the median" in by.get_title(loc="left")
    with pytest.raises(SupermodelError, match="24 groups"):
        plots.predictions(several, "temp", by="dose")
    plt.close("all")


def test_error_bars_of_a_fitted_noise_are_left_out():
    fitted = sm.Model(
        {"a": stats.norm(0, 1), "s": stats.norm(1, 0.1)}, predict=lambda p, x: p["a"] * x, noise=sm.Gaussian("s")
    )
    result = made_result(models={"line": "ab", "curve": "abc"})
    plots.predictions(dataclasses.replace(result, models={"line": model("ab"), "curve": model("abc")}))
    from supermodel.report.prediction_plots import _noise

    alone = dataclasses.replace(result, models={"line": fitted}, data={"x": np.zeros(2), "y": np.zeros(2)})
    assert _noise(alone, alone.data).tolist() == [0.0, 0.0]
    plt.close("all")
