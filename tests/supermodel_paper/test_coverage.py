"""Every row of the paper's checklist has a function, a test and, where it has a picture, a figure; and what is named exists."""

import ast
import importlib
import re
from pathlib import Path

import pytest

from supermodel_paper.reproduce import FIGURES

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "paper" / "index.md"
COUNTS = {"A": 18, "B": 15, "C": 4, "D": 18, "S": 5, "F": 11, "G": 6}
ROWS = [f"{letter}{i}" for letter, n in COUNTS.items() for i in range(1, n + 1)]
PAPER_FIGURES = [f"figure_{i:02d}" for i in range(1, 12)]


def entries(text):
    """{row: (functions, tests, figures)} of the tables of a document."""
    found = {}
    for line in text.splitlines():
        cells = [c.strip() for c in line.split("|")[1:-1]]
        if len(cells) == 5 and re.fullmatch(r"[A-Z]\d+", cells[0]):
            found[cells[0]] = tuple(re.findall(r"`([^`]+)`", cell) for cell in cells[2:])
    return found


def has_function(name):
    """Whether supermodel.<name> or supermodel_paper.<name> can be imported and is something to call."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            root = [] if parts[0] == "supermodel_paper" else ["supermodel"]
            home = importlib.import_module(".".join([*root, *parts[:cut]]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            home = getattr(home, part, None)
        return callable(home)
    return False


def has_test(name):
    path, _, function = name.partition("::")
    if not (ROOT / path).is_file():
        return False
    tree = ast.parse((ROOT / path).read_text())
    return function.startswith("test_") and any(
        isinstance(n, ast.FunctionDef) and n.name == function for n in tree.body
    )


def faults(text):
    """Sentences, one for each row that is missing or names what is not there."""
    table, found = entries(text), []
    found += [f"{row}: has no entry" for row in ROWS if row not in table]
    found += [f"{row}: is no row of the checklist" for row in table if row not in ROWS]
    for row, (functions, tests, figures) in table.items():
        found += [f"{row}: names no function"] * (not functions) + [f"{row}: names no test"] * (not tests)
        found += [f"{row}: there is no function {f}" for f in functions if not has_function(f)]
        found += [f"{row}: there is no test {t}" for t in tests if not has_test(t)]
        found += [f"{row}: there is no figure {f}" for f in figures if f not in FIGURES]
    return found


def test_every_row_is_covered():
    assert faults(DOCUMENT.read_text()) == []


def test_the_checklist_has_every_row_once_and_in_order():
    text = (DOCUMENT.parent / "checklist.md").read_text()
    assert re.findall(r"^\| ([A-Z]\d+) \|", text, re.MULTILINE) == ROWS


def test_every_figure_of_the_paper_is_named():
    named = {f for _, _, figures in entries(DOCUMENT.read_text()).values() for f in figures}
    assert set(PAPER_FIGURES) <= named
    assert named <= set(FIGURES)


EVIDENCES, LINEAR = (
    "`supermodel_paper.closed_forms.evidences`",
    "tests/exact/test_linear_gaussian.py::test_the_numbers_of_linear_csv",
)
ROW_A1 = f"| A1 | Bayes factors, model probabilities | {EVIDENCES} | `{LINEAR}` |  |"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (ROW_A1, "", "A1: has no entry"),
        ("| A1 |", "| A99 |", "A1: has no entry"),
        (ROW_A1, ROW_A1.replace("evidences", "guesses"), "A1: there is no function"),
        (LINEAR, LINEAR.replace("test_the_numbers_of_linear_csv", "test_of_nothing"), "A1: there is no test"),
        (LINEAR, LINEAR.replace("test_linear_gaussian", "test_nowhere"), "A1: there is no test"),
        ("`figure_01`", "`figure_99`", "D1: there is no figure"),
        (ROW_A1, ROW_A1.replace(EVIDENCES, ""), "A1: names no function"),
    ],
)  # fmt: skip
def test_a_planted_gap_is_seen(old, new, sentence):
    text = DOCUMENT.read_text()
    assert old in text, "the plant itself is out of date"
    assert any(fault.startswith(sentence) for fault in faults(text.replace(old, new)))
