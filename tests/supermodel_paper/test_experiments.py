"""The experiments of the paper: exact numbers to their digits, sampled ones in tiny versions."""

import math
from dataclasses import replace

import numpy as np
import pytest

from supermodel.estimation.by_alpha.line_fit import line_fit
from supermodel_paper import closed_forms, nested_sampling, precision, prior_sensitivity, scaling, sine
from supermodel_paper.alpha_laws import ExponentialAlpha
from supermodel_paper.linear import figure_1
from supermodel_paper.numbers import Number, Part, Quoted, quoted, tally
from supermodel_paper.reparametrisation import printed_form
from supermodel_paper.reproduce import EXPERIMENTS, FIGURES
from supermodel_paper.runs import Runs, alpha_draws
from supermodel_paper.settings import FAST, FULL, TINY
from supermodel_paper.supermodels import supermodel

EXACT = (
    closed_forms.evidences, closed_forms.selection, closed_forms.supermodel_condition, closed_forms.simpson,
    prior_sensitivity.prior_width, precision.laws, printed_form, figure_1, sine.figure_5,
)  # fmt: skip
ROW = r"[ABCDSFG]\d+"


@pytest.fixture(scope="session")
def runs():
    return Runs(TINY)


@pytest.mark.parametrize("experiment", EXACT, ids=lambda e: e.__name__)
def test_exact_numbers_agree(experiment, runs):
    part = experiment(runs)
    wrong = [f"{n.label}: {n.shown()} for {n.shown_exact()}" for n in part.numbers if n.agrees is False]
    assert wrong == []
    assert all(n.error is None for n in part.numbers)


def test_the_two_bayes_factors_have_their_digits(runs):
    found = {n.label: n.ours for n in closed_forms.evidences(runs).numbers}
    assert found["ln B₂₁, linear data, closed form"] == pytest.approx(4.8792471984, abs=1e-10)
    assert found["ln B₂₁, sine data, quadrature"] == pytest.approx(5.0222648001, abs=1e-10)


SLOW = ("scaling", "tempering_and_gradients", "products", "costs")  # many compilations, however few the steps
SAMPLED = [
    pytest.param(e, id=e.__name__, marks=[pytest.mark.slow] if e.__name__ in SLOW else [])
    for e in EXPERIMENTS
    if e not in EXACT
]
PAPER_FIGURES = {f"figure_{i:02d}" for i in range(1, 12)}


@pytest.mark.parametrize("experiment", SAMPLED)
def test_every_experiment_gives_numbers_and_figures(experiment, runs):
    """At this length nothing is accurate: only the kind of what comes out is tested, not its value."""
    part = experiment(runs)
    assert isinstance(part, Part)
    assert part.title
    assert part.numbers
    for n in part.numbers:
        assert isinstance(n, Number)
        assert isinstance(n.ours, float)
        assert n.error is None or isinstance(n.error, float)
        assert n.agrees in (True, False, None)
        assert n.as_dict()["row"] == n.row
        assert n.evaluations is None or (isinstance(n.evaluations, int) and n.evaluations >= 0)
    assert {p.name for p in part.pictures} <= set(FIGURES)
    for p in part.pictures:
        assert p.caption
        assert p.figure.axes


def test_the_paper_has_eleven_figures_and_all_are_declared():
    assert PAPER_FIGURES <= set(FIGURES)
    assert len(set(FIGURES)) == len(FIGURES)


def test_the_full_run_has_the_step_counts_of_the_paper():
    for paper, thin, recorded in ((2e7, 300, 6.6e4), (4e7, 800, 5e4), (5e6, 15, 3.3e5), (1e7, 25, 4e5), (2e6, 10, 2e5)):
        assert FULL.steps(int(paper)) == paper
        assert FULL.draws(int(paper), thin) * FULL.chains == pytest.approx(recorded, rel=0.02)
    assert FAST.steps(40_000_000) < 40_000_000
    assert FAST.steps(100) == 100


def test_scaling_problems_have_exact_answers():
    """The rotated likelihood is that of all the data, and the closed form is its Bayes factor."""
    p = scaling.problem(2)
    models, rng = p.models, np.random.default_rng(0)
    theta, extra = rng.standard_normal(2), 0.3
    draws = np.random.default_rng(1002)
    X = draws.standard_normal((scaling.N_DATA, 3))
    y = X[:, :2] @ draws.standard_normal(2) + draws.standard_normal(scaling.N_DATA)
    direct = -0.5 * np.sum((y - X @ [*theta, extra]) ** 2) - 0.5 * len(y) * math.log(2 * math.pi)
    assert float(models["M1"].log_likelihood({"theta": theta, "extra": extra})) == pytest.approx(direct, abs=1e-8)
    covariance = np.eye(len(y)) + X @ np.diag([1, 1, scaling.EXTRA_SD**2]) @ X.T
    nested = np.eye(len(y)) + X[:, :2] @ X[:, :2].T
    log_z = [-0.5 * (y @ np.linalg.solve(c, y) + np.linalg.slogdet(c)[1]) for c in (covariance, nested)]
    assert p.log_bayes_factor == pytest.approx(log_z[1] - log_z[0], abs=1e-8)


def test_nested_sampling_finds_the_evidence():
    """Within 5 of its own errors (false alarm below 1e-6 for a Gaussian error); a shift of 8 is seen."""
    pytest.importorskip("dynesty")
    design, b = np.array([[3.0, 0.5], [0.0, 4.0], [1.0, 1.0]]), np.array([1.0, 2.0, 0.5])
    found = nested_sampling.gaussian(design, b, live=150, seed=1)
    covariance = np.eye(3) + design @ design.T
    truth = -0.5 * (b @ np.linalg.solve(covariance, b) + np.linalg.slogdet(covariance)[1])
    assert abs(found.log_evidence.value - truth) < 5 * found.log_evidence.error
    assert abs(found.log_evidence.value - truth - 8 * found.log_evidence.error) > 3 * found.log_evidence.error
    assert found.evaluations > 1000
    assert found.cdf(np.array([-50.0, 50.0])) == pytest.approx([0.0, 1.0])


# -- the record of a number -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "agrees"),
    [
        (Number("A1", "x", 1.0, 0.1, 1.29), True),
        (Number("A1", "x", 1.0, 0.1, 1.31), False),
        (Number("A1", "x", 1.0, None, 1.0005, tolerance=1e-3), True),
        (Number("A1", "x", 1.0, None, 1.002, tolerance=1e-3), False),
        (Number("A1", "x", 1.0, bounds=(0.0, math.inf)), True),
        (Number("A1", "x", -1.0, bounds=(0.0, math.inf)), False),
        (Number("A1", "x", math.nan, bounds=(0.0, math.inf)), False),
        (Number("A1", "x", math.nan, math.nan, 1.0), False),
        (Number("A1", "x", 1.0), None),
    ],
)
def test_agreement(number, agrees):
    assert number.agrees is agrees


def test_the_paper_is_held_to_its_own_errors():
    assert Number("D8", "", 4.8, 0.2, 4.88, paper=quoted(4.83, 0.21, 0.19)).paper_agrees is True
    assert Number("D8", "", 4.8, 0.2, 5.05, paper=quoted(4.83, 0.21, 0.19)).paper_agrees is False
    assert Number("D8", "", 4.8, 0.2, 4.63, paper=quoted(4.83, 0.21, 0.19)).paper_agrees is False
    assert Number("D5", "", 0.3, bounds=(0, 1), paper=Quoted("the other way round", holds=False)).paper_agrees is False
    assert Number("D5", "", 0.3).paper_agrees is None
    # A statement is put to the test by our own number where that has bounds.
    assert Number("D5", "", 0.3, bounds=(0, 1), paper=Quoted("between", holds=True)).paper_agrees is True
    assert Number("D5", "", 1.3, bounds=(0, 1), paper=Quoted("between", holds=True)).paper_agrees is False


def test_counts():
    numbers = [
        Number("A1", "", 1.0, 0.1, 1.1),
        Number("A1", "", 1.0, 0.1, 9.0, paper=quoted(9.1, 0.2)),
        Number("A1", "", 1.0),
    ]
    counts = {"numbers": 3, "checked": 2, "agree": 1, "paper": 1, "paper_agree": 1}
    assert tally(numbers) == {**counts, "peers": 0, "peers_agree": 0}
    theirs = Number("D12", "", 4.0, 0.1, 5.0, peer="dynesty")  # a peer's miss is the peer's
    assert tally([*numbers, theirs]) == {**counts, "numbers": 4, "peers": 1, "peers_agree": 0}
    assert theirs.agrees is False and not theirs.is_miss and replace(theirs, peer="").is_miss


def test_a_likelihood_that_never_falls_on_one_side_still_peaks_where_it_is_fitted():
    """With few samples the likelihood of ln B is flat to the right; even steps over all of it once missed the peak."""
    alpha = ExponentialAlpha(-5.0, -4.0)
    rng = np.random.default_rng(8)
    draws = alpha_draws(supermodel("linear", coordinate="exponential"), _by_inversion(alpha, rng.random(20_000)))
    fit = line_fit(draws)
    top = -fit.details["grid"][np.argmax(fit.details["curve"])]
    assert top == pytest.approx(fit.log_bayes_factor("M2", "M1").value, abs=0.1 * fit.details["nominal"])
    low, high = sorted(-x for x in fit.details["interval"])
    assert low < top < high


def _by_inversion(density, q):
    grid = np.linspace(-4.0, 0.0, 20_001)
    return np.interp(q, density.cdf(grid), grid)
