"""Every verdict code has a heading and a remedy in docs/verdict.md, and every level its exit code."""

import re
from pathlib import Path

from supermodel.verdict.verdict import CODES, EXIT_CODES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "verdict.md").read_text()


def test_every_code_and_no_other_is_explained():
    assert re.findall(r"^### `(\w+)`$", PAGE, re.MULTILINE) == list(CODES)


def test_every_code_comes_with_what_to_do():
    sections = re.split(r"^##.*$", PAGE.split("## The codes")[1], flags=re.MULTILINE)
    explained = [section for section in sections if section.strip()][: len(CODES)]
    assert all(section.count("*Do:*") == 1 for section in explained)


def test_every_level_stands_beside_its_exit_code():
    rows = dict(re.findall(r"^\| `(\w+)` \|.*\| (\d) \|$", PAGE, re.MULTILINE))
    assert rows == {level: str(code) for level, code in EXIT_CODES.items()}
