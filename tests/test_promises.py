"""Every promise of docs/promises.md names a test that holds it, and every test that is named is there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "promises.md").read_text()
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def missing(page: str) -> list[str]:
    """Tests that a page names and that are not there."""
    found = {}
    for path in {path for path, _ in NAMED.findall(page)}:
        tree = ast.parse((ROOT / path).read_text()) if (ROOT / path).is_file() else ast.Module([], [])
        found[path] = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return [f"{path}::{name}" for path, name in NAMED.findall(page) if name not in found[path]]


def unheld(page: str) -> list[str]:
    """Promises that name no test; a line that says what is not promised needs none."""
    promises = re.split(r"^- ", page, flags=re.MULTILINE)[1:]
    return [p for p in promises if not p.startswith("Not promised:") and not NAMED.search(p)]


def test_every_promise_is_held_by_a_test_that_exists():
    assert PAGE.count("\n- ") > 20 and unheld(PAGE) == [] and missing(PAGE) == []


def test_a_promise_without_a_test_is_noticed():
    assert len(unheld("- All is well.\n- Not promised: this.\n- True. `tests/test_promises.py::missing`")) == 1
    assert missing("`tests/test_promises.py::test_that_is_not_there` `tests/nowhere.py::test_it`") == [
        "tests/test_promises.py::test_that_is_not_there",
        "tests/nowhere.py::test_it",
    ]
