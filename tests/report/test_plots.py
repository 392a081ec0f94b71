"""Every plot takes and returns an Axes, names what it shows, and cannot hide a bad verdict."""

import dataclasses
import itertools
import math
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import numpyro.distributions as dist
import pytest

from made_result import made_result
from supermodel.errors import DataError, SupermodelError
from supermodel.estimation.estimate import Evidences
from supermodel.report import plots, record_plots
from supermodel.report.corner_plot import BINS, HELD, Panel, _density, _panel, ticks
from supermodel.report.numbers import counted
from supermodel.report.posterior_plots import smoothed
from supermodel.report.style import beside, end_labels
from supermodel.results.record import ChainRecord
from supermodel.trust.calibrate import Calibration
from supermodel.verdict.verdict import Reason, Verdict, worst

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"line": "ab", "curve $x$": "abc", "level": "a"}


@pytest.fixture(scope="module")
def result():
    return made_result(0, NAMES)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def study():
    p = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    return Calibration(("a", "b"), np.array(["a", "b", "b"]), np.log(p), np.full(3, 0.1), p, ("ok",) * 3, 0.0, ())


DRAWN = {
    "bayes_factors": lambda r, ax: plots.bayes_factors(r, ax=ax),
    "matrix": lambda r, ax: plots.matrix(r, ax=ax),
    "alpha": lambda r, ax: plots.alpha(r, 1, ax=ax),
    "trace": lambda r, ax: plots.trace(r, ax=ax),
    "crossings": lambda r, ax: plots.crossings(r, 1, ax=ax),
    "sensitivity": lambda r, ax: r.sensitivity("c", np.geomspace(0.05, 5, 9)).plot(ax),
    "shifts": lambda r, ax: r.sensitivity("c", shifts=[-1.0, 0.0, 1.0]).plot(ax),
    "replaced": lambda r, ax: r.sensitivity("c", replace={"wide": dist.Cauchy(0, 1)}).plot(ax),
    "averaged": lambda r, ax: plots.averaged(r, "b", ax=ax),
    "spike": lambda r, ax: plots.averaged(r, "c", fixed=0.0, ax=ax),
    "predictions": lambda r, ax: plots.predictions(r, ax=ax),
    "corner": lambda r, ax: plots.corner(r, "curve $x$", ax=ax),
    "drivers": lambda r, ax: r.drivers("curve $x$", "line").plot(ax),
}


def words(ax) -> str:
    found = [t.get_text() for t in ax.figure.findobj(plt.Text)]
    return "\n".join(found)


@pytest.mark.parametrize("name", DRAWN)
def test_it_draws_on_the_axes_it_is_given_and_says_so(name, result):
    figure, ax = plt.subplots()
    assert DRAWN[name](result, ax) is ax
    figure.canvas.draw()
    assert words(ax).strip()


def test_it_makes_axes_of_its_own_when_given_none(result):
    assert plots.bayes_factors(result).figure is not plots.matrix(result).figure
    assert "false alarms" in words(plots.calibration(study()))


@pytest.mark.parametrize("name", DRAWN)
def test_a_failed_run_is_marked(name, result):
    failed = dataclasses.replace(result, verdict=Verdict("fail"))
    assert "FAIL: do not use" in words(DRAWN[name](failed, plt.figure().add_subplot()))
    assert "FAIL" not in words(DRAWN[name](result, plt.figure().add_subplot()))


# What is drawn of the two models that stand, and of the one that failed ("curve $x$", the best).
STANDS = {
    "trace": lambda r, ax: plots.trace(r, "line", "level", ax=ax),
    "alpha": lambda r, ax: plots.alpha(r, 0, ax=ax),
    "crossings": lambda r, ax: plots.crossings(r, 0, ax=ax),
    "sensitivity": lambda r, ax: r.sensitivity("b", [0.5, 1, 2]).plot(ax),
    "corner": lambda r, ax: plots.corner(r, "line", ax=ax),
    "drivers": lambda r, ax: r.drivers("line", "level").plot(ax),
}


@pytest.mark.parametrize("name", DRAWN)
def test_where_one_of_three_failed_only_what_rests_on_it_is_covered(name, result):
    reason = Reason("looks_disagree", "its looks did not meet.", models=("curve $x$",))
    partly = dataclasses.replace(result, verdict=worst([("fail", reason)]))
    shown = words(DRAWN[name](partly, plt.figure().add_subplot()))
    assert "FAIL" in shown or name == "trace"  # by default it is that of the two that stand
    several = name in ("bayes_factors", "matrix", "averaged", "spike", "predictions")
    assert ("FAIL for curve $x$" in shown) == several
    assert ("FAIL: do not use" in shown) == (not several and name != "trace")
    if name in STANDS:
        assert "FAIL" not in words(STANDS[name](partly, plt.figure().add_subplot()))


def test_the_pictures_of_all_pairs_hide_what_failed(result):
    reason = Reason("looks_disagree", "its looks did not meet.", models=("curve $x$",))
    partly = dataclasses.replace(result, verdict=worst([("fail", reason)]))
    for draw in (plots.bayes_factors, plots.matrix):
        shown = words(draw(partly))
        stands, fails = (f"{abs(result.log_bayes_factor('line', other).value):.3f}" for other in ("level", "curve $x$"))
        assert stands in shown and fails not in shown
        assert fails in words(draw(result))
    axes = partly.plot()
    assert "FAIL: do not use" not in words(axes[0, 0])


def test_a_limit_is_drawn_as_a_limit(result):
    values = Evidences(result.names, np.array([0.0, 8.3, -2.0]), np.diag([0.0, math.inf, 0.0]), True)
    limit = dataclasses.replace(result, evidences=values, verdict=Verdict("limit"))
    shown = words(plots.bayes_factors(limit))
    assert "> 8.3 at 95%" in shown and "LIMIT" in shown
    assert "LIMIT: bound only" in words(plots.matrix(limit))


def test_a_huge_bayes_factor_is_an_arrow(result):
    huge = dataclasses.replace(
        result, evidences=Evidences(result.names, np.array([0.0, 4000.0, -3.0]), np.eye(3) * 0.01, True)
    )
    ax = plots.bayes_factors(huge)
    assert ax.get_xlim()[1] < 50 and "4000.00 ± 0.14" in words(ax)


def test_dollars_in_names_stay_dollars(result):
    assert "curve $x$" in words(plots.matrix(result))
    plots.matrix(result).figure.canvas.draw()


def test_the_alpha_plot_ends_at_the_estimate(result):
    edge = result.edges[1]
    ax = plots.alpha(result, 1)
    curve = ax.lines[0].get_ydata()
    assert curve[0] == pytest.approx(0.0, abs=1e-9) and curve[-1] == pytest.approx(edge.report["value"], abs=1e-6)
    assert np.all(np.diff(curve, 2) > -1e-9)  # ln Z of a product path is convex


def test_the_trace_ends_at_the_estimate(result):
    a, b = result.ranking[:2]
    ax = plots.trace(result, a, b)
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(result.log_bayes_factor(a, b).value, abs=1e-9)


def test_one_model_alone_has_a_trace_and_an_alpha():
    alone = made_result(0, {"line": "ab"})
    assert "ln Z(line)" in words(plots.trace(alone)) and "ln Z(line)" in words(plots.alpha(alone))


def test_data_of_another_shape_are_refused(result):
    with pytest.raises(DataError, match='columns "x" and "y"'):
        plots.predictions(dataclasses.replace(result, data=np.zeros(3)))


def test_the_density_integrates_to_one_and_finds_the_mean():
    rng = np.random.default_rng(0)
    grid = np.linspace(-6, 8, 500)
    curve = smoothed(rng.normal(1.0, 0.7, 5000), np.full(5000, 1 / 5000), grid)
    assert np.trapezoid(curve, grid) == pytest.approx(1.0, abs=1e-3)
    assert np.trapezoid(grid * curve, grid) == pytest.approx(1.0, abs=0.05)


def test_the_density_of_a_positive_parameter_ends_at_zero():
    values = np.abs(np.random.default_rng(0).standard_normal(5000))
    grid = np.linspace(-1, 5, 800)
    curve = smoothed(values, np.full(5000, 1 / 5000), grid, (0.0, np.inf))
    assert np.all(curve[grid < 0] == 0) and np.trapezoid(curve, grid) == pytest.approx(1.0, abs=0.01)
    at_zero = curve[np.argmax(grid >= 0)]
    assert at_zero == pytest.approx(np.sqrt(2 / np.pi), rel=0.1)
    assert smoothed(values, np.full(5000, 1 / 5000), grid)[np.argmax(grid >= 0)] < 0.6 * at_zero  # without the mirror


def test_labels_do_not_cover_each_other():
    ax = plt.figure().add_subplot()
    ax.set_ylim(0, 1)
    end_labels(ax, [(0, 0.99, "a", "k"), (0, 0.985, "b", "k"), (0, 0.98, "c", "k")])
    heights = sorted(t.xy[1] for t in ax.texts)
    assert np.all(np.diff(heights) > 0.07) and heights[-1] <= 1.0 + 1e-9


def test_the_gallery_page_shows_every_picture_that_the_code_makes():
    page = (ROOT / "docs" / "gallery.md").read_text()
    shown = re.findall(r"gallery/(\w+)\.png", page)
    code = (ROOT / "docs/hooks/gallery.py").read_text()
    made = re.findall(r'^        "(\w+)": lambda', code, re.MULTILINE)
    assert sorted(shown) == sorted(made) and len(shown) >= 13
    for name in shown:
        assert (ROOT / "docs" / "gallery" / f"{name}.png").stat().st_size < 120_000


def test_an_unknown_bayes_factor_is_drawn_as_unknown_and_a_limit_as_an_arrow():
    made = dataclasses.replace(made_result(), verdict=Verdict("limit"))
    unknown = dataclasses.replace(made, evidences=Evidences(made.names, np.array([-np.inf, -30.0]), np.zeros((2, 2))))
    assert "unknown" in words(plots.bayes_factors(unknown)) and "inf" not in words(plots.bayes_factors(unknown))
    assert "unknown" in words(plots.matrix(unknown)) and "inf" not in words(plots.matrix(unknown))
    limit = dataclasses.replace(made, evidences=Evidences.of_pair(made.names, -7.25, math.inf))
    assert "> 7.2 at 95%" in words(plots.bayes_factors(limit))


@pytest.mark.parametrize("is_discrete", [False, True])
def test_the_papers_chain_has_its_plots(is_discrete):
    rng = np.random.default_rng(1)
    first = rng.integers(2, size=(4, 60)).astype(float) if is_discrete else rng.random((4, 60))
    grid = np.arange(2) if is_discrete else np.linspace(0, 1, 11)
    record = ChainRecord(
        ("line", "curve"), np.stack([first, 1 - first], axis=-1), rng.normal(0, 0.1, (4, 60, 2)), grid,
        np.linspace(0.5, 1.5, len(grid)), is_discrete, {"ess": 100.0, "crossings": 17.0},
    )  # fmt: skip
    result = dataclasses.replace(made_result(), edges=(), chain=record, settings={"method": "mixture"})
    assert "line" in words(plots.alpha(result)) and "Rao-Blackwell" in words(plots.trace(result))
    assert "17 crossings in 4 chains" in words(plots.crossings(result))


def test_a_corner_of_a_name_that_does_not_exist_lists_those_that_do():
    with pytest.raises(SupermodelError, match="has no parameter 'z'; its parameters are 'a', 'b'"):
        plots.corner(made_result(0, {"line": "ab"}), "line", ["a", "z"])


def test_the_panels_of_a_corner_are_maps_onto_boxes_that_do_not_meet():
    n, spans = 3, [(0.0, 2.0), (-1.0, 1.0), (5.0, 9.0)]
    panels = [_panel(row, col, n, spans) for row in range(n) for col in range(row + 1)]
    for panel in panels:
        x, y = panel.to(panel.x, panel.y)
        assert np.all((x >= 0) & (x <= 1) & (y >= 0) & (y <= 1)) and (*x, *y) == pytest.approx(panel.across + panel.up)
    for a, b in itertools.combinations(panels, 2):
        assert a.across[1] < b.across[0] or b.across[1] < a.across[0] or a.up[1] < b.up[0] or b.up[1] < a.up[0]


def test_ticks_of_a_corner_are_round_and_what_all_lack_is_said():
    places, said, power = ticks(-0.3, 4.2)
    assert list(places) == [0, 2, 4] and said == ["0", "2", "4"] and power == ""
    assert ticks(3.1e-7, 8.9e-7)[2] == "1e−7"
    assert all(len(number) < 6 for number in ticks(123456.71, 123456.78)[1])


def test_contours_of_a_corner_hold_what_they_say():
    """A normal law of variance 1, smoothed by kernels and bins to 1 + v, is cut where 1 - (1 - held)^(1 + v) of the draws are.

    That share is known to 4.9 of its errors, and to one bin at the contour's edge.
    """
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 20_000))
    panel, step = Panel((-5.0, 5.0), (-5.0, 5.0), (0.0, 1.0), (0.0, 1.0)), 10.0 / BINS
    density, levels = _density(x, y, np.full(len(x), 1 / len(x)), panel)
    place = tuple(np.clip(((v + 5) / step).astype(int), 0, BINS - 1) for v in (x, y))
    shares = [np.mean(density[place] >= level) for level in levels]
    v = (BINS / 6 * len(x) ** (-1 / 6) * step) ** 2 + step**2 / 12
    wanted = 1 - (1 - np.array(HELD[::-1])) ** (1 + v)
    error = 4.9 * np.sqrt(wanted * (1 - wanted) / len(x)) + step**2 / (2 * np.pi)
    assert np.all(np.abs(shares - wanted) < error)
    assert np.all(np.abs(shares[::-1] - wanted) > error)  # the planted error: the wrong contour


def boxes_cover(first, second) -> bool:
    return first.x0 < second.x1 and second.x0 < first.x1 and first.y0 < second.y1 and second.y0 < first.y1


@pytest.mark.parametrize(("slope", "curvature"), [(0.0, -1.0), (2.0, 0.0), (-2.0, 0.0), (0.0, 3.0), (30.0, 0.0)])
def test_the_label_of_a_point_does_not_lie_on_its_curve(slope, curvature):
    figure, ax = plt.subplots(figsize=(5, 3))
    x = np.linspace(-1.0, 1.0, 41)
    y = slope * x + curvature * x**2
    ax.plot(x, y)
    levels = (-1.0, 0.5)
    beside(ax, "the prior\nof the run", (0.0, 0.0), (x, y), levels)
    box = ax.texts[-1].get_window_extent(figure.canvas.get_renderer())
    at = ax.transData.transform(np.column_stack([np.linspace(-1, 1, 2001), np.interp(np.linspace(-1, 1, 2001), x, y)]))
    on = (at[:, 0] > box.x0) & (at[:, 0] < box.x1) & (at[:, 1] > box.y0) & (at[:, 1] < box.y1)
    assert not on.any()
    inside = ax.get_window_extent()
    assert inside.x0 <= box.x0 and box.x1 <= inside.x1 and inside.y0 <= box.y0 and box.y1 <= inside.y1


def test_no_title_of_the_overview_runs_into_its_neighbour(result):
    axes = result.plot()
    figure = axes[0, 0].figure
    figure.draw_without_rendering()
    seen = [(ax, ax.title if ax.get_title() else ax._left_title) for ax in axes.flat]
    boxes = [title.get_window_extent() for _, title in seen if title.get_text()]
    assert len(boxes) >= 3 and any("\n" in title.get_text() for _, title in seen)  # of the average, which is long
    assert not any(boxes_cover(a, b) for a, b in itertools.combinations(boxes, 2))
    assert all(box.x1 <= figure.bbox.x1 for box in boxes)
    for (ax, title), box in zip(seen, boxes, strict=False):
        others = [other.get_window_extent() for other in axes.flat if other is not ax]
        assert not any(boxes_cover(box, other) for other in others), title.get_text()


def test_where_weights_fail_the_picture_says_what_to_run(result):
    found = result.sensitivity("c", np.geomspace(0.02, 50, 15))
    assert not found.is_reliable.all()
    texts = {text.get_text() for text in found.plot().texts}
    assert {text for text in texts if "weights fail" in text} <= {
        "the weights fail: run with a wider prior", "the weights fail: run with a narrower prior",
    }  # fmt: skip
    assert any("weights fail: run with" in text for text in texts)


def test_names_of_bands_that_lie_close_are_left_out(result):
    far = dataclasses.replace(
        result.sensitivity("c", np.geomspace(0.5, 2, 5)), values=np.full(5, 300.0), errors=np.full(5, 0.01),
        pareto_k=np.zeros(5), original=dataclasses.replace(result.log_bayes_factor("line", "level"), value=300.0),
    )  # fmt: skip
    ax = far.plot()
    ax.figure.draw_without_rendering()
    bands = [text.get_window_extent() for text in ax.texts if "≥" in text.get_text()]
    assert len(bands) == 1


def test_a_picture_asked_for_in_place_of_a_scale_is_told_where_it_is(result):
    with pytest.raises(SupermodelError, match=r"plots.corner\(result\)"):
        result.plot("corner")
    with pytest.raises(SupermodelError, match="there is no scale 'corners'"):
        result.plot("corners")


def test_one_of_a_kind_is_singular():
    assert counted(1, "crossing") == "1 crossing" and counted(0, "chain") == "0 chains"


def test_modes_that_stand_apart_keep_their_widths():
    # Two normal densities of width 0.2, 14 apart: the peak of each is half of 1 / (0.2 sqrt(2 pi)). The kernel is that of a
    # scale of 2.07 widths (0.2 of all is 0.4 of one mode), 0.4 of a width at 5000 draws: it lowers the peak by 8%.
    rng, n = np.random.default_rng(0), 5000
    draws = rng.choice([-7.0, 7.0], n) + 0.2 * rng.standard_normal(n)
    grid = np.linspace(-8, 8, 4001)
    curve = smoothed(draws, np.full(n, 1 / n), grid)
    assert curve.max() == pytest.approx(0.5 / (0.2 * np.sqrt(2 * np.pi)), rel=0.15)
    assert np.trapezoid(curve, grid) == pytest.approx(1.0, abs=1e-2)
    one = smoothed(rng.standard_normal(400), np.full(400, 1 / 400), grid)  # by chance alone nothing becomes narrow
    assert np.sum(np.diff(np.sign(np.diff(one[np.abs(grid) < 1.5]))) != 0) <= 3


def test_the_trace_of_an_exact_answer_shows_no_rounding(result, monkeypatch):
    a, b = result.ranking[:2]
    value = result.log_bayes_factor(a, b).value
    monkeypatch.setattr(record_plots, "_after", lambda used, part: (1000 * part, value + 1e-13 * part, 1e-14, value))
    low, high = plots.trace(result, a, b).get_ylim()
    assert (low, high) == pytest.approx((value - record_plots.LEAST_SPAN, value + record_plots.LEAST_SPAN))
