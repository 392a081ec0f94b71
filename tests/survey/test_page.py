"""The page of a survey."""

import re

import numpy as np
import pandas as pd
import pytest

from population_problems import CENTRES, THREE, Known, simulated, told
from supermodel.errors import SupermodelError
from supermodel.report.numbers import mean_and_sd
from supermodel.survey import table
from supermodel.survey.buckets import refused
from supermodel.survey.job import Outcome
from supermodel.survey.page import worst_rows
from supermodel.survey.result import ManyResult
from supermodel.survey.truths import checked_truths
from survey_problems import data_sets, models

NAMES = ("flat <1>", "sine", "two & more")


def made(rng, n=60, names=NAMES[:2], centres=2 * CENTRES, error=0.2):
    labels, known = simulated(rng, np.ones(len(names)) / len(names), n, centres, error)
    outcomes = [*told(known, names), refused(n, "torn", "data", "torn <b>")]
    settings = {"target_error": 0.2, "seed": 3, "prior_odds": dict.fromkeys(names, 1 / len(names))}
    result = ManyResult(names, settings, frame=table.frame_of(outcomes, names), notes=("A <note>.",))
    return result, labels, known


def headings(text):
    return re.findall(r"<h2>(.*?)</h2>", text)


def test_a_page_tells_all(rng, tmp_path):
    result, labels, _ = made(rng)
    path = result.report(tmp_path / "page.html", truths={f"n{i}": NAMES[k] for i, k in enumerate(labels)})
    text = path.read_text()
    assert headings(text) == [
        *("The population", "Bayes factors", "The surest", "Against the truth", "The worst", "Notes"),
        *("Methods, and what to cite", "Made from"),
    ]
    assert (
        "Survey of 61 data sets" in text
        and "Verdict 60 ok · 1 fail" in text
        and "1 data set, e.g. torn: torn &lt;b&gt;" in text
    )
    assert "<b>torn" not in text and "flat &lt;1&gt;" in text and "A &lt;note&gt;." in text
    assert text.count("<svg") == 4 and "60 objects whose model is known" in text
    assert (
        "like the others: 1 without a usable answer" in text
        and "Mueller2004" in text
        and "<dt>seed</dt><dd>3</dd>" in text
    )
    shares = result.population().fractions
    assert mean_and_sd(shares["fraction"][0], shares["sd"][0]) in re.search(r'class="headline">(.*?)<', text)[1]


def test_three_models_and_exact_answers(rng, tmp_path):
    """Deviations are (estimate - exact) / error, and the error is 0.2."""
    result, _, known = made(rng, names=NAMES, centres=THREE)
    exact = pd.Series(known.log_z[:, 0] - known.log_z[:, 1] + 0.2, index=[f"n{i}" for i in range(60)])
    text = result.report(tmp_path / "page.html", truths=exact[:40], first="sine").read_text()
    assert (
        text.count("<svg") == 6
        and "40 objects whose ln B is known" in text
        and "mean -1.00 ± 0.16 and spread 0.00" in text
    )
    assert "most surely sine" in text
    found = checked_truths(exact, result.table, result.population())
    assert not found.are_models and found.deviations() == pytest.approx(-np.ones(60))


def test_truths_are_counted(rng):
    log_z = np.array([[9.0, 0.0], [8.0, 0.0], [0.0, 9.0], [7.0, 0.0]])
    result = ManyResult(
        ("a", "b"), {}, frame=table.frame_of(told(Known(log_z, np.full((4, 2, 2), 0.01)), ("a", "b")), ("a", "b"))
    )
    found = checked_truths(["a", "b", "b", None], result.table, result.population())
    assert found.confusion().rows == (("a", "1", "0", "100%"), ("b", "1", "1", "50%"))
    calibration = found.calibration()
    assert calibration.truth.tolist() == ["a", "b", "b"] and calibration.log_bayes_factors.tolist() == [9.0, 8.0, -9.0]
    for wrong, words in (
        (["a", "b"], "2 values for 4 data sets"), ({"n0": "z"}, r"got \['z'\]"), ({"n0": "a", "n1": 2.0}, "both kinds"),
        ({"m0": "a"}, "names no data set"),
    ):  # fmt: skip
        with pytest.raises(SupermodelError, match=words):
            checked_truths(wrong, result.table, result.population())


def test_the_worst_are_the_flagged_and_then_the_least_known():
    pairs = [{("a", "b"): (1.0, error)} for error in (0.1, 0.5, 0.3, np.nan, 0.2)]
    levels = ("ok", "caution", "ok", "fail", "limit")
    outcomes = [Outcome(i, i, {}, p, level) for i, (p, level) in enumerate(zip(pairs, levels, strict=True))]
    result = ManyResult(("a", "b"), {}, frame=table.frame_of(outcomes, ("a", "b")))
    assert worst_rows(result, 4)["dataset"].tolist() == [3, 4, 1, 2]


def test_full_reports_stand_beside_the_page(tmp_path):
    """Models without parameters, so that `compare` has nothing to explore; one data set cannot be read."""
    given = [*data_sets(3), {"y": np.array([1.0, np.nan])}]
    pairs = [{("one", "none"): (float(i), 0.1 * (i + 1))} for i in range(3)]
    outcomes = [*(Outcome(i, i, {}, p) for i, p in enumerate(pairs)), refused(3, 3, "data", "a hole")]
    result = ManyResult(("one", "none"), {}, frame=table.frame_of(outcomes, ("one", "none")))
    text = result.report(tmp_path / "page.html", models=models(), datasets=given, worst=2).read_text()
    assert '<a href="page_reports/2.html">2</a>' in text and "page_reports/3.html" not in text
    assert [p.name for p in (tmp_path / "page_reports").iterdir()] == ["2.html"]
    full = (tmp_path / "page_reports" / "2.html").read_text()
    exact = 2.5 - np.sum(given[2]["y"])  # each datum gives y - 1/2 to ln B(one : none)
    assert f"ln B(none : one) = {exact:.4f}" in full


def test_a_generator_that_is_used_up_is_told(rng, tmp_path):
    result, _, _ = made(rng, n=4)
    text = result.report(tmp_path / "page.html", models=models(), datasets=iter([])).read_text()
    assert (
        "A generator can be used only once" in text
        and "<a href" not in text
        and not (tmp_path / "page_reports").exists()
    )


def test_a_survey_without_an_answer_has_a_page(tmp_path):
    outcomes = [refused(i, i, "data", "torn") for i in range(3)]
    result = ManyResult(("a", "b"), {}, frame=table.frame_of(outcomes, ("a", "b")))
    text = result.report(tmp_path / "page.html").read_text()
    assert "3 data sets, none with a usable answer" in text and 'class="verdict fail"' in text


def test_the_number_of_members_is_judged_with_the_uncertainty_of_the_fractions():
    """Objects that tell nothing: labels of the truth may then be any share that the prior of the fractions allows."""
    names, known = ("a", "b"), Known(np.zeros((200, 2)), np.broadcast_to(0.01 * (1 - np.eye(2)), (200, 2, 2)))
    odds = {"prior_odds": dict.fromkeys(names, 0.5)}
    found = ManyResult(names, odds, frame=table.frame_of(told(known, names), names))
    half = checked_truths(["a"] * 100 + ["b"] * 100, found.table, found.population())
    most = checked_truths(["a"] * 170 + ["b"] * 30, found.table, found.population())
    assert abs(half.off()["a"]) < 0.1 and half.off()["a"] == pytest.approx(-half.off()["b"], abs=1e-12)  # to rounding
    assert most.off()["a"] == pytest.approx(70 / np.sqrt(50 + 200**2 / 12), rel=0.05)  # uniform f: its variance is 1/12
