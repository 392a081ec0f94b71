"""The table of the paper's numbers: every experiment has its section, every row its number and its place in the checklist."""

import math
import re
import tomllib
from importlib import resources
from pathlib import Path

import pytest

from supermodel.estimation.estimate import Estimate
from supermodel_paper import reproduce  # noqa: F401  (brings every experiment)
from supermodel_paper.table import EXPERIMENTS, TABLE, Found, Ours, number, ours, part

DOCS = Path(__file__).resolve().parents[2] / "docs" / "paper"
ROWS = [row for section in TABLE.values() for row in section["numbers"]]


def test_every_experiment_has_its_section_and_every_section_its_experiment():
    assert set(EXPERIMENTS) == set(TABLE)


def test_every_row_is_one_of_the_checklist_and_can_be_filled():
    checklist = set(re.findall(r"^\| ([A-Z]\d+) \|", (DOCS / "checklist.md").read_text(), re.MULTILINE))
    assert len(ROWS) > 150
    for row in ROWS:
        assert row["row"] in checklist, row["label"]
        words = dict.fromkeys(re.findall(r"\{(\w+)", row["label"] + row.get("paper", "") + row.get("remark", "")), 1)
        filled = number(row, Ours(1.0, words=words), row.get("exact"), {})
        assert filled.label
        assert "{" not in filled.label + filled.remark


def test_every_misprint_is_in_the_errata():
    text = (resources.files("supermodel_paper") / "misprints.toml").read_text("utf-8")
    errata = (DOCS / "errata.md").read_text()
    for name, *cells in tomllib.loads(text)["rows"]:
        assert f"\n| {name} |" in errata
        assert len(cells) == 3


SECTION = {
    "title": "A section",
    "text": "{n} draws",
    "numbers": [
        {"ours": "answer", "row": "A1", "label": "the answer", "exact": "linear", "quoted": [4.83, 0.21, 0.19]},
        {"ours": "law", "row": "B8", "label": "law at {at}", "cases": [[1, 2.0], [2, 4.5]], "tolerance": 0.1},
        {"ours": "law", "at": 3, "row": "B8", "label": "law at {at}", "exact": 6.0, "tolerance": 0.1},
        {"ours": "claim", "row": "D5", "label": "claim of {name}", "paper": "small", "otherwise": "It is not."},
        {"ours": "nested", "row": "S3", "label": "nested", "optional": True},
    ],
    "figures": {"picture": ["A title", "of {n}"]},
}
FOUND = {
    "answer": ours(Estimate(4.9, 0.1), evaluations=7),
    "law": lambda at: 2.0 * at,
    "claim": [Ours(1.0, holds=True, words={"name": "one"}), Ours(2.0, holds=False, words={"name": "two"})],
}


def made(**changed):
    numbers = {name: value for name, value in (FOUND | changed).items() if value is not None}
    return part(SECTION, Found(numbers, {"picture": None}, {"n": 12}))


def test_a_section_is_filled():
    found = made()
    labels = ["the answer", "law at 1", "law at 2", "law at 3", "claim of one", "claim of two"]
    assert [n.label for n in found.numbers] == labels
    assert [n.agrees for n in found.numbers] == [True, True, False, True, None, None]
    assert found.numbers[0].exact == pytest.approx(4.8792471984)
    assert found.numbers[0].paper.text == "4.83 +0.21 −0.19"
    assert found.numbers[0].evaluations == 7
    assert [n.remark for n in found.numbers[-2:]] == ["", "It is not."]
    assert (found.text, found.pictures[0].caption) == ("12 draws", "of 12")
    assert made(nested=1.0).numbers[-1].label == "nested"


def test_a_number_without_a_row_and_a_row_without_a_number_are_refused():
    with pytest.raises(KeyError, match="no row for"):
        made(stray=1.0)
    with pytest.raises(KeyError, match="answer"):
        made(answer=None)


def test_an_unknown_column_is_refused():
    with pytest.raises(KeyError, match="tolernace"):
        number({"ours": "x", "row": "A1", "label": "x", "tolernace": 1.0}, Ours(math.pi), None, {})
