"""Whoever cites the errata finds there what is cited: "errata 3.5" has its heading, "errata E17" its row."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ERRATA = (ROOT / "docs" / "paper" / "errata.md").read_text()
CITED = re.compile(r"\berrata (\d\.\d|E\d+(?:-E\d+)?)", re.IGNORECASE)


def places():
    """{path: its text} of what may cite: the source with its tables, the tests, the documents."""
    kinds = {"src": (".py", ".toml"), "tests": (".py",), "docs": (".md",)}
    found = [p for top, suffixes in kinds.items() for p in (ROOT / top).rglob("*") if p.suffix in suffixes]
    return {p: p.read_text() for p in found if p != Path(__file__).resolve()}


def is_there(reference, errata):
    """Whether a section has its heading, or each end of a range of rows its row."""
    if reference[0] != "E":
        return re.search(rf"^### {re.escape(reference)} ", errata, re.MULTILINE) is not None
    return all(re.search(rf"^\| {row} \|", errata, re.MULTILINE) for row in reference.split("-"))


def dangling(texts, errata):
    return [
        f"{path}: errata {m[1]}"
        for path, text in texts.items()
        for m in CITED.finditer(text)
        if not is_there(m[1], errata)
    ]


def test_every_citation_has_its_place():
    texts = places()
    assert sum(len(CITED.findall(text)) for text in texts.values()) > 30, (
        "nothing cited: this test would pass on nothing"
    )
    assert dangling(texts, ERRATA) == []


@pytest.mark.parametrize("reference", ["1.9", "E23", "E5-E99"])
def test_a_planted_citation_is_caught(reference):
    assert dangling({"x.py": f"(Errata {reference})"}, ERRATA) == [f"x.py: errata {reference}"]


@pytest.mark.parametrize("renamed", ["9.2", "1.22"])
def test_a_heading_that_goes_is_missed(renamed):
    assert dangling(places(), ERRATA.replace("### 1.2 ", f"### {renamed} "))
