"""The answer as text and as tables: complete, aligned, escaped, never louder than the verdict."""

import dataclasses

import numpy as np
import pytest

from made_result import made_result
from supermodel.report.numbers import duration, mean_and_sd, number, probability
from supermodel.report.tables import Cells, latex_escape, matrix_cells, prior_cells, weighted_quantiles
from supermodel.verdict.verdict import Reason, Verdict, worst

NASTY = '<b>&"x|_$%'


@pytest.fixture(scope="module")
def result():
    return made_result(0, {"line": "ab", "curve": "abc", NASTY: "a"})


def test_the_text_has_everything(result):
    text = str(result)
    for part in (
        "ln B(",
        "Trotta",
        "P(",
        "equal prior odds",
        "R-hat",
        "crossings",
        "Normal(0.1, 0.8)",
        "Verdict OK",
        "seed 0",
        "schema 1",
        "1 234 likelihood calls",
        "fingerprints",
    ):
        assert part in text, part
    assert all(name in text for name in result.names)
    assert all(len(line) < 130 for line in text.splitlines())


def test_reasons_are_printed_with_their_codes(result):
    loud = dataclasses.replace(result, verdict=Verdict("fail", (Reason("few_crossings", "only 2 crossings."),)))
    assert "Verdict FAIL: do not use this answer" in str(loud) and "few_crossings: only 2 crossings." in str(loud)
    assert "[FAIL]" in str(loud).splitlines()[0]


def test_where_one_of_three_failed_the_others_are_told_of(result):
    first, second, third = result.ranking
    reason = Reason("looks_disagree", f"the looks at {first!r} did not meet.", models=(first,))
    partly = dataclasses.replace(result, verdict=worst([("fail", reason)]))
    shown = str(partly)
    assert shown.startswith(f"ln B({second} : {third}) = ") and "[FAIL]" not in shown.splitlines()[0]
    flat = " ".join(shown.split())
    assert (
        f"at equal prior odds, among {partly.weighed[0]} and {partly.weighed[1]} ({first} could not be weighed)" in flat
    )
    assert (
        f"Verdict FAIL for {first}: do not use what rests on it; ln B and probabilities of" in flat and "stand" in flat
    )
    assert f"not weighed: {first}." in shown and f"{first} (FAIL)" in shown and f"{second} (FAIL)" not in shown
    table = partly.table().cells()
    at = {head: table.header.index(head) for head in ("verdict", "P(model|data)")}
    assert [row[at["verdict"]] for row in table.rows] == ["–", "ok", "FAIL"]
    assert [row[at["P(model|data)"]] == "–" for row in table.rows] == [False, False, True]
    matrix = matrix_cells(partly.matrix())
    assert [[cell.endswith(" FAIL") for cell in row[1:]] for row in matrix.rows] == [
        [False, False, True], [False, False, True], [True, True, False],
    ]  # fmt: skip
    assert f"Verdict FAIL for {first}: do not use what rests on it." in str(partly.summary())
    assert f"verdict “fail” for {first}, whose numbers are not used, and “ok” for this one" in partly.methods()
    # Where all pairs have one level, nothing is marked pair by pair.
    assert "verdict" not in result.table().cells().header and "FAIL" not in str(matrix_cells(result.matrix()))
    assert "(FAIL)" not in str(
        dataclasses.replace(result, verdict=Verdict("fail", (dataclasses.replace(reason, models=()),)))
    )


def test_prior_odds_are_stated(result):
    odds = dict(zip(result.names, (0.5, 0.25, 0.25), strict=True))
    assert "prior probabilities line 0.5" in str(dataclasses.replace(result, prior_odds=odds))


def test_columns_line_up(result):
    lines = str(result.table()).splitlines()
    place = lines[0].index("crossings") + len("crossings")
    assert all(len(line) == place for line in lines)


def test_markdown_latex_and_html_escape_what_users_name(result):
    table = result.table()
    assert r'&lt;b&gt;&amp;"x\|\_$%' in table.markdown()
    assert all(
        line.count(" | ") == table.markdown().splitlines()[0].count(" | ")
        for line in table.markdown().splitlines()
        if line.startswith("| ")
    )
    assert r"\textless{}b\textgreater{}\&" in table.latex() and r"\_\$\%" in table.latex()
    assert r"\begin{tabular}" in table.latex() and r" \pm 0.0" in table.latex()
    for html in (table._repr_html_(), result._repr_html_()):
        assert "<b>&" not in html and "&lt;b&gt;&amp;&#34;x" in html


def test_small_formats():
    assert (probability(0.5), probability(1 - 1e-12), probability(1e-200), probability(float("nan"))) == (
        "0.5000",
        ">0.9999",
        "<1e-99",
        "–",
    )
    assert (number(float("nan")), number(float("inf")), number(-3.14159)) == ("–", "∞", "-3.14")
    pairs = ((1.23456, 0.0123), (12345.6, 789.0), (1.0, 0.0), (1e-12, 3e-13))
    assert tuple(mean_and_sd(*pair) for pair in pairs) == (
        "1.235 ± 0.012", "12346 ± 789", "1", "1.000e-12 ± 3.0e-13",
    )  # fmt: skip
    assert (duration(8.21), duration(200), duration(7500)) == ("8.2 s", "3 min 20 s", "2 h 5 min")
    assert latex_escape("a\\b{c}") == r"a\textbackslash{}b\{c\}"
    assert Cells(("a", "b"), (("x", "1"),), note="n").markdown().endswith("\nn\n")


def test_who_shares_what_is_listed(result):
    rows = {row[0]: row[-1] for row in prior_cells(result).rows}
    assert rows == {"a": "shared", "b": "shared", "c": "one model"}


def test_weighted_quantiles():
    values, weights = np.array([3.0, 1.0, 2.0]), np.array([0.25, 0.5, 0.25])
    assert weighted_quantiles(values, weights, (0.25, 0.625)).tolist() == [1.0, 2.0]
