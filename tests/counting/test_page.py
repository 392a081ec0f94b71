"""The report of a count: headline, tables, pictures and what the comparison adds, once each; notes in place of what is missing."""

import dataclasses
import html
import re

import numpy as np
import numpyro.distributions as dist
import pytest

import supermodel as sm
from made_count import bump, made_count
from supermodel.counting.result import Count
from supermodel.verdict.verdict import Reason, Verdict


def titles(page):
    return re.findall(r"<h2>([^<]*)</h2>", page)


def notes(page):
    return [html.unescape(note) for note in re.findall(r'class="note">([^<]*)', page)]


def section(page, title):
    """The page from one heading to the next."""
    return page[page.index(f"<h2>{title}</h2>") :].partition("</section>")[0]


def written(count, path, **asked):
    return count.report(path / "count.html", **asked).read_text()


@pytest.fixture(scope="module")
def count():
    return made_count()


@pytest.fixture(scope="module")
def page(count, tmp_path_factory):
    return written(count, tmp_path_factory.mktemp("page"))


@pytest.fixture
def short(monkeypatch):
    """Pages without what the comparison adds, which is looked at once."""
    monkeypatch.setattr("supermodel.counting.page.sections", lambda *_: [])


def test_each_part_is_there_once(count, page):
    assert titles(page) == [
        "How many lines", "The lines", "Each line alone", "Posteriors", "What drives the preference", "Prediction of new data",
        "Priors, and who shares what", "Inside the run", "Methods, and what to cite", "Made from",
    ]  # fmt: skip
    assert f'<p class="headline">{count.headline}</p>' in page and html.escape(count.stopped) in page
    assert "How many lines?" in page and "Verdict OK" in page and "@misc{Mootoovaloo2016" in page
    assert count.methods()[:60] in page


def test_each_picture_is_where_it_belongs(page):
    assert [section(page, title).count("<figure>") for title in titles(page)[:4]] == [1, 1, 2, 2]
    assert ">line 1<" in section(page, "The lines")
    assert "there with probability" in section(page, "Each line alone")
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_tables_hold_the_numbers(count, page):
    how_many = section(page, "How many lines")
    assert all(name in how_many for name in count.names.values()) and "0.3333" in how_many
    assert f"{count.components[0].mean('c'):.3f}" in section(page, "The lines")


def test_posteriors_are_those_of_likely_numbers(page):
    found = section(page, "Posteriors")
    assert "Posterior of 2 lines" in found and "Posterior of 1 line" in found and "Posterior of no line" not in found


def test_without_models_a_note_stands_for_the_pictures(count, short, tmp_path):
    page = written(Count(dataclasses.replace(count.comparison, models=None)), tmp_path)
    assert "Each line alone" not in titles(page) and section(page, "How many lines").count("<figure>") == 1
    assert sum("told by the models, and a file holds none" in note for note in notes(page)) == 1


def test_a_likelihood_that_predicts_nothing_is_named(short, tmp_path):
    page = written(made_count(log_likelihood=lambda p, data: 0.0 * p["level"]), tmp_path)
    assert any("`log_likelihood`, which predicts no data" in note for note in notes(page))


def test_what_the_user_combined_is_drawn_as_a_whole(short, tmp_path):
    page = written(made_count(combine=lambda background, parts: background + sum(parts)), tmp_path)
    assert section(page, "The lines").count("<figure>") == 1
    assert section(page, "Each line alone").count("<figure>") == 0
    assert sum("do not add up to the data" in note for note in notes(page)) == 1


def test_where_none_was_found_there_is_none_alone(short, tmp_path):
    page = written(made_count((0.9, 0.09, 0.01)), tmp_path)
    assert "Each line alone" not in titles(page) and section(page, "The lines").count("<figure>") == 1


def test_a_failed_run_has_no_components_and_a_title_can_be_given(count, short, tmp_path):
    verdict = Verdict("fail", (Reason("rhat", "chains disagree."),))
    page = written(Count(dataclasses.replace(count.comparison, verdict=verdict)), tmp_path, title="My <star>")
    assert (
        "<title>My &lt;star&gt;</title>" in page
        and "How many lines there are is not known: the checks failed." in notes(page)
    )
    assert 'class="verdict fail"' in page and "FAIL: do not use" in page and "P(there)" not in page


def test_a_run_ends_in_a_page(short, tmp_path):
    rng = np.random.default_rng(3)
    x = np.linspace(0, 20, 24)
    y = 5 * np.exp(-0.5 * ((x - 8) / 0.8) ** 2) + 0.5 * rng.standard_normal(24)
    line = sm.Component({"c": dist.Uniform(0, 20), "A": dist.Normal(0, 6)}, bump, name="line")
    noise = sm.Gaussian(0.5)
    found = sm.count(line, {"x": x, "y": y}, noise=noise, most=1, explore="quick", target_error=0.3, progress=False)
    page = written(found, tmp_path)
    assert found.best == 1 and section(page, "Each line alone").count("<figure>") == 1
    assert html.escape(found.headline) in page and "dashed: the background" not in page
