"""The pictures of a count show the numbers that it holds, and say so where one cannot be drawn."""

import dataclasses

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest

from made_count import LEVEL, PLACE, made_count
from supermodel.counting.result import Count
from supermodel.errors import DataError, SupermodelError
from supermodel.models.noise import Binomial, Gaussian, Poisson, StudentT
from supermodel.verdict.verdict import Reason, Verdict, worst


@pytest.fixture(scope="module")
def count():
    return made_count()


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def words(axes):
    return "\n".join(t.get_text() for ax in np.ravel(axes) for t in ax.findobj(plt.Text))


def points(ax):
    """The data of the first error bars on the axes: x, y, and the ends of the bars."""
    dots, _, (bars,) = ax.containers[0]
    return *dots.get_data(), np.array([np.sort(each[:, 1]) for each in bars.get_segments()])


# -- numbers ----------------------------------------------------------------------------------------------------------


def test_bars_are_as_high_as_the_probabilities(count):
    ax = count.plot("numbers")
    assert count.plot().get_title(loc="left") == ax.get_title(loc="left") == count.headline
    heights = {round(bar.get_x() + 0.5 * bar.get_width()): bar.get_height() for bar in ax.patches}
    assert heights == {k: e.value for k, e in count.probabilities.items()}
    error = count.probabilities[2].error
    drawn = [bars.get_segments()[0] for _, _, (bars,) in (c for c in ax.containers if hasattr(c, "has_yerr"))]
    tops = {x: top for (x, _), (_, top) in drawn}
    assert tops[2.0] == pytest.approx(0.8 + error) and 0.0 not in tops  # that of a millionth could not be seen
    assert "1.0e-06" in words(ax) and f"± {error:.3f}" in words(ax)


def test_no_label_covers_another_where_there_are_many_numbers():
    ax = made_count((0.3, 0.3, 0.4), most=2).plot("numbers", ax=plt.figure(figsize=(1.9, 3)).add_subplot())
    ax.figure.canvas.draw()
    boxes = [t.get_window_extent() for t in ax.texts if t.get_text() != "prior"]
    assert len(boxes) == 3 and not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_the_prior_is_a_mark_on_every_number(count):
    ax = count.plot("numbers")
    heights = [segment[0, 1] for lines in ax.collections for segment in lines.get_segments() if len(segment) == 2]
    assert np.sum(np.isclose(heights, 1 / 3)) == 3 and "prior" in words(ax)


def test_more_is_an_arrow_to_its_bound():
    falling = made_count((0.9, 0.09, 0.009), most=5)
    ax = falling.plot("numbers")
    assert [t.get_text() for t in ax.get_xticklabels()] == ["0", "1", "2", "3 to 5"]
    tips = [t.xy for t in ax.texts if t.arrow_patch is not None]
    assert tips == [(3, falling.more)] and f"{falling.more:.1g}" in words(ax)


def test_what_lies_beyond_is_not_guessed_where_nothing_tells():
    ax = made_count(most=5).plot("numbers")
    assert "not\nreached" in words(ax) and not any(t.arrow_patch for t in ax.texts)


def test_a_number_that_failed_is_named_and_has_no_bar(count):
    reason = Reason("looks_disagree", "its looks did not meet.", models=("1 line",))
    ax = Count(dataclasses.replace(count.comparison, verdict=worst([("fail", reason)]))).plot("numbers")
    assert len(ax.patches) == 2 and "checks\nfailed" in words(ax) and "FAIL for 1 line" in words(ax)


def test_a_bad_verdict_cannot_be_overlooked(count):
    verdict = Verdict("fail", (Reason("rhat", "chains disagree."),))
    failed = Count(dataclasses.replace(count.comparison, verdict=verdict), count.component)
    for what in ("numbers", "data", "components", "component 2"):
        assert "FAIL: do not use" in words(failed.plot(what)) and "FAIL" not in words(count.plot(what))


# -- data -------------------------------------------------------------------------------------------------------------


def test_below_the_data_is_what_the_mean_prediction_leaves(count):
    top, below = count.plot("data")
    assert below.get_shared_x_axes().joined(top, below) and below.get_xlabel() == "x"
    data, p = count.comparison.data, count.posterior(2).parameters
    draws = np.array([
        p["level"][i] + sum(p[f"A{j}"][i] * np.exp(-0.5 * ((data["x"] - p[f"c{j}"][i]) / 0.8) ** 2) for j in (1, 2))
        for i in range(len(p["level"]))
    ])  # fmt: skip
    x, y, bars = points(below)
    # Draws of equal weight are taken once each where as many are asked for; here 300 of 240, a quarter of them twice.
    np.testing.assert_allclose(y, data["y"] - draws.mean(axis=0), atol=0.05)
    assert np.abs(y - (data["y"] - count.contributions.mean)).max() == 0 and np.array_equal(x, data["x"])
    np.testing.assert_allclose(np.diff(bars, axis=1)[:, 0], 1.4)
    assert np.array_equal(points(top)[1], data["y"])


def test_the_curve_is_the_mean_on_a_fine_grid(count):
    top, _ = count.plot("data")
    curve = max(top.get_lines(), key=lambda each: len(each.get_xdata()) * each.get_linewidth())
    x, y = curve.get_data()
    assert len(x) >= 400 and x[0] <= 0 and x[-1] >= 30
    np.testing.assert_allclose(np.interp([8.0, 21.0, 15.0], x, y), [LEVEL + 6, LEVEL + 4.5, LEVEL], atol=0.15)
    assert "line 1" in words(top) and "line 2" in words(top)


def test_components_add_up_to_the_whole(count):
    for curves in (count.contributions.at_data, count.contributions.on_grid):
        np.testing.assert_allclose(curves.background + sum(curves.parts), curves.whole)


def test_counts_have_the_root_of_the_prediction_as_their_error():
    result = made_count(noise=Poisson())
    bars = points(result.plot("data")[1])[2]
    np.testing.assert_allclose(np.diff(bars, axis=1)[:, 0], 2 * np.sqrt(result.contributions.mean))


def test_of_the_log_of_counts_only_the_whole_is_drawn():
    result = made_count(noise=Poisson("log"))
    each = result.contributions
    linear = made_count().contributions
    np.testing.assert_allclose(each.at_data.whole, np.exp(linear.at_data.whole))
    assert not each.adds_up and "line 1" not in words(result.plot("data"))


def test_other_noises_have_their_errors():
    assert np.all(made_count(noise=StudentT(4.0, 0.3)).contributions.error == 0.3)
    hypot = Gaussian(lambda known: jnp.hypot(known["error"], 0.1 * known["level"]))
    np.testing.assert_allclose(made_count(noise=hypot).contributions.error, np.hypot(0.7, 0.1 * LEVEL), rtol=1e-2)
    half = made_count(noise=Binomial(20), level=lambda p, x: 0.0 * x, predict=lambda p, x: 0.0 * x)
    np.testing.assert_allclose(half.contributions.mean, 10.0)
    np.testing.assert_allclose(half.contributions.error, np.sqrt(5.0))


def test_parts_combined_by_the_user_are_drawn_together_only():
    result = made_count(combine=lambda background, parts: background * (1 + 0.1 * sum(parts)))
    top, _ = result.plot("data")
    assert "line 1" not in words(top)
    with pytest.raises(SupermodelError, match="do not add up.*combine"):
        result.plot("component 1")


def test_without_components_the_background_is_drawn_and_nothing_else():
    result = made_count((0.9, 0.09, 0.01))
    top, below = result.plot("data")
    np.testing.assert_allclose(points(below)[1], result.comparison.data["y"] - LEVEL, atol=0.1)
    with pytest.raises(SupermodelError, match="number of lines is none"):
        result.plot("components")
    assert "No line" in words(top)


def test_plain_numpy_predicts_as_well():
    def slow(p, x):
        return float(p["A"]) * np.exp(-0.5 * ((np.asarray(x) - float(p["c"])) / 0.8) ** 2)

    plain = made_count(predict=slow).contributions
    np.testing.assert_allclose(plain.on_grid.whole, made_count().contributions.on_grid.whole, atol=1e-10)


def test_a_prediction_bound_to_the_data_is_drawn_where_they_are():
    template = np.exp(-0.5 * ((np.linspace(0, 30, 40) - 8.0) / 0.8) ** 2)
    result = made_count(predict=lambda p, x: p["A"] * template)
    assert result.contributions.on_grid is None
    assert len(result.plot("data")) == 2 and len(result.plot("components")) == 2


def test_further_columns_of_the_background_leave_the_components_their_curves():
    night = np.repeat([0.0, 1.0], 20)
    result = made_count(level=lambda p, x, night: p["level"] + night, columns={"night": night})
    each = result.contributions
    assert each.axis == "x" and each.on_grid.whole is None and len(each.on_grid.parts) == 2
    np.testing.assert_allclose(each.at_data.background.mean(axis=0), LEVEL + night, atol=0.1)
    assert len(result.plot("data")) == 2


# -- components -------------------------------------------------------------------------------------------------------


def test_each_component_is_alone_in_its_panel(count):
    panels = count.plot("components")
    assert len(panels) == 2 and len(count.plot("component")) == 2
    for i, ax in enumerate(panels):
        x, y, _ = points(ax)
        p, each = count.posterior(2).parameters, count.contributions
        other = np.mean([
            p[f"A{2 - i}"][j] * np.exp(-0.5 * ((each.x - p[f"c{2 - i}"][j]) / 0.8) ** 2) for j in range(len(p["level"]))
        ], axis=0)  # fmt: skip
        near = np.isin(each.x, x)
        np.testing.assert_allclose(y, (each.y - p["level"].mean() - other)[near], atol=0.1)
        one = count.components[i]
        assert f"line {i + 1}: c\N{NO-BREAK SPACE}=" in words(ax) and "there with probability" in words(ax)
        assert ax.get_xlim()[0] < one.mean("c") < ax.get_xlim()[1]


def test_a_line_is_looked_at_closely_and_a_step_as_a_whole(count):
    low, high = count.contributions.window(0)
    where = PLACE["bump"][0][0]
    assert where - 8 < low < where - 2 and where + 2 < high < where + 8
    assert 12 <= np.sum((count.contributions.x >= low) & (count.contributions.x <= high)) < 40
    step = made_count(predict=lambda p, x: p["A"] * (x > p["c"]))
    assert step.contributions.window(0) is None
    low, high = step.plot("component 1").get_xlim()
    assert low <= 0 and high >= 30


@pytest.mark.parametrize("period", ["c", lambda p: 1.0 * p["c"]], ids=["a name", "a function"])
def test_what_is_periodic_is_folded(period):
    result = made_count(shape="wave", period=period)
    ax = result.plot("component 1")
    x, y, _ = points(ax)
    assert ax.get_xlim() == (0, 1) and ax.get_xlabel() == "phase" and len(x) == 40
    # From the middle of the data on, at 15 = 5 periods of 3, the wave begins anew.
    np.testing.assert_allclose(y, 4 * np.sin(2 * np.pi * x), atol=4 * 0.7 + 0.3)
    curve = ax.get_lines()[0]
    np.testing.assert_allclose(curve.get_ydata(), 4 * np.sin(2 * np.pi * curve.get_xdata()), atol=0.2)
    assert ("c\N{NO-BREAK SPACE}= 3.0" if period == "c" else "period").replace(" ", "\N{NO-BREAK SPACE}") in words(ax)


def test_a_stored_count_folds_by_the_name_of_its_period():
    result = made_count(shape="wave", period="c")
    assert Count(result.comparison).plot("component 1").get_xlabel() == "phase"


def test_many_data_are_averaged_in_bins_of_phase():
    result = made_count(shape="wave", period="c", n=400)
    x, y, bars = points(result.plot("component 1"))
    assert len(x) == 20
    np.testing.assert_allclose(np.diff(bars, axis=1)[:, 0], 2 * 0.7 / np.sqrt(20), rtol=0.25)
    # A mean of 20 data has an error of 0.7 / sqrt(20); false alarm rate 1e-6 for 20 bins: 5.5 of those, and the curve's own error.
    assert np.abs(y - 4 * np.sin(2 * np.pi * x)).max() < 5.5 * 0.7 / np.sqrt(15) + 0.25


def test_a_period_longer_than_the_data_is_not_folded():
    result = made_count(shape="wave", period=lambda p: 100.0 * p["c"])
    assert result.plot("component 1").get_xlabel() == "x"


def test_periods_too_short_for_a_curve_are_drawn_at_the_data():
    result = made_count(shape="wave", period=lambda p: 0.1 * p["c"])
    assert result.contributions.on_grid is None and result.contributions.is_folded(0)
    assert len(result.plot("data")) == 2


# -- what cannot be drawn ---------------------------------------------------------------------------------------------


def test_it_draws_on_the_axes_it_is_given(count):
    for what in ("numbers", "component 1"):
        figure, ax = plt.subplots()
        assert count.plot(what, ax=ax) is ax
    for what in ("data", "components"):
        figure, ax = plt.subplots()
        assert {each.get_figure(root=True) for each in count.plot(what, ax=ax)} == {figure}
        figure.canvas.draw()


def test_what_is_missing_is_said(count):
    stored = Count(dataclasses.replace(count.comparison, models=None))
    assert len(stored.plot("numbers").patches) == 3
    for what in ("data", "components", "component 1"):
        with pytest.raises(SupermodelError, match="a file holds none. Load with load"):
            stored.plot(what)
    counted = made_count(log_likelihood=lambda p, data: 0.0)
    with pytest.raises(SupermodelError, match="`log_likelihood`, which predicts no data"):
        counted.plot("data")
    with pytest.raises(SupermodelError, match="no line 3.*2 lines"):
        count.plot("component 3")
    with pytest.raises(SupermodelError, match="no picture 'number' of a count.*numbers"):
        count.plot("number")
    two = made_count(predict=lambda p, x, z: p["A"] * x * z, columns={"z": np.ones(40)})
    assert two.contributions.axis == "x"
    with pytest.raises(DataError, match="drawn over one column.*u, v"):
        made_count(
            predict=lambda p, u, v: p["A"] * u * v, columns={"u": np.ones(40), "v": np.ones(40)}
        ).plot("data")  # fmt: skip
