"""Every example in the documents is run, every TOML block parsed, every link followed: what is not run is a rumour.

The ```python blocks of one document are one program, run in order in a fresh interpreter and an empty folder, as a
reader would. A block that cannot be run carries `<!-- not run: reason -->` on the line before its fence.
"""

import doctest
import importlib
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import NamedTuple

import jax
import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PACKAGE = ROOT / "src" / "supermodel"

FENCE = re.compile(r"(?P<indent> *)(?P<ticks>```+)(?P<language>[\w-]*)")
NOT_RUN = re.compile(r"\s*<!--\s*not run\b:?\s*(?P<reason>.*?)\s*-->\s*")
LINK = re.compile(
    r"!?\[[^\]]*\]\(\s*<?(?P<target>[^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|<img[^>]*\ssrc=\"(?P<image>[^\"]+)\""
)

CACHE = (
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
)


class Block(NamedTuple):
    language: str
    line: int  # of its first line of code, counted from 1
    code: str
    reason: str | None  # why it is not run; None if it is


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a Markdown text; indented ones (in lists and tabs) are shifted left."""
    found, lines, i = [], text.splitlines(), 0
    while i < len(lines):
        opening = FENCE.match(lines[i])
        if opening:
            start, closing = i + 1, re.compile(rf" *{opening['ticks']}\s*$")
            i = start
            while i < len(lines) and not closing.match(lines[i]):
                i += 1
            if i == len(lines):
                raise ValueError(f"line {start}: a fence is never closed")
            before = lines[start - 2] if start >= 2 else ""
            marked = NOT_RUN.fullmatch(before)
            if marked and not marked["reason"]:
                raise ValueError(f"line {start - 1}: says 'not run' but not why")
            code = textwrap.dedent("\n".join(lines[start:i]))
            found.append(Block(opening["language"], start + 1, code, marked["reason"] if marked else None))
        i += 1
    return found


def program(text: str) -> str:
    """The Python blocks as one script whose line numbers are those of the document."""
    lines = [""] * (len(text.splitlines()) + 1)
    for block in blocks(text):
        if block.language in {"python", "py"} and block.reason is None:
            for offset, line in enumerate(block.code.splitlines()):
                lines[block.line - 1 + offset] = line
    return "\n".join(lines)


def run(document: Path, folder: Path) -> subprocess.CompletedProcess:
    script = folder / f"{document.stem}.py"
    script.write_text(program(document.read_text()))
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONSAFEPATH": "1"}
    for option in CACHE:  # pages show the same models again: they are compiled once
        environment[option.upper()] = str(getattr(jax.config, option))
    return subprocess.run(
        [sys.executable, str(script)], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )


def broken_links(document: Path, text: str) -> list[str]:
    """Relative links, outside code, that lead to no file."""
    prose, inside = [], False
    for line in text.splitlines():
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            prose.append(re.sub(r"`[^`]*`", "", line))
    found = []
    for link in LINK.finditer("\n".join(prose)):
        target = (link["target"] or link["image"]).partition("#")[0]
        if target and not re.match(r"[a-z]+:", target) and not (document.parent / target).exists():
            found.append(target)
    return found


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", [d for d in DOCUMENTS if program(d.read_text()).strip()], ids=name)
def test_examples_run(document, tmp_path):
    done = run(document, tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_toml_blocks_parse_and_links_lead_somewhere(document):
    text = document.read_text()
    for block in blocks(text):
        if block.language == "toml" and block.reason is None:
            tomllib.loads(block.code)
    assert broken_links(document, text) == []


def test_readme_holds_an_example_that_is_run():
    assert "sm.compare(" in program((ROOT / "README.md").read_text())


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    pages = [str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if page not in navigation] == []


PATH_IN_TEXT = re.compile(r"`((?:[\w.]+/)*[\w.]+\.(?:py|md|toml|txt)|(?:[\w.]+/)+)`")


def missing_paths(text: str) -> list[str]:
    """Files and folders named in a text that are neither in the repository nor in the package."""
    named = [path for path in PATH_IN_TEXT.findall(text) if path != "uv.lock"]
    return [path for path in named if not any((home / path).exists() for home in (ROOT, PACKAGE))]


def test_the_plan_of_the_house_names_what_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert missing_paths(text) == []
    assert len(PATH_IN_TEXT.findall(text)) > 8
    for table, path in re.findall(r"`([A-Z]+)` (?:in|of) `([\w/]+\.py)`", text):
        assert f"\n{table}" in (PACKAGE / path).read_text(), f"{path} has no table {table}"
    assert missing_paths("a row in `models/tables.py`, `nowhere/`, `models/priors.py`") == [
        "models/tables.py",
        "nowhere/",
    ]


WITH_DOCTESTS = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text()]


@pytest.mark.parametrize("path", WITH_DOCTESTS, ids=name)
def test_doctests(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0
    assert result.failed == 0


# Negative controls.
def document(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "page.md"
    path.write_text(text)
    return path


def test_a_failing_example_is_caught_with_its_line(tmp_path):
    page = document(
        tmp_path, "Text.\n\n```python\nx = 1\n```\n\n1. item\n\n    ```python\n    assert x == 2\n    ```\n"
    )
    done = run(page, tmp_path)
    assert done.returncode == 1
    assert "line 10" in done.stderr and "AssertionError" in done.stderr


def test_blocks_share_names_and_a_reasoned_mark_skips(tmp_path):
    text = "```python\nx = 1\n```\n<!-- not run: needs a cluster -->\n```python\nraise SystemExit(7)\n```\n"
    assert run(document(tmp_path, text + "```python\nassert x == 1\n```\n"), tmp_path).returncode == 0
    assert run(document(tmp_path, text.replace("<!-- not run: needs a cluster -->\n", "")), tmp_path).returncode == 7


@pytest.mark.parametrize("mark", ["<!-- not run -->", "<!-- not run: -->"])
def test_a_mark_without_a_reason_is_refused(mark):
    with pytest.raises(ValueError, match="not why"):
        blocks(f"{mark}\n```python\nx = 1\n```\n")


def test_an_open_fence_is_refused():
    with pytest.raises(ValueError, match="never closed"):
        blocks("```python\nx = 1\n")


def test_a_broken_link_is_caught(tmp_path):
    text = (
        "[a](missing.md) ![b](no.png) [c](page.md#part) [d](https://example.org) `[e](code.md)`\n```\n[f](g.md)\n```\n"
    )
    assert broken_links(document(tmp_path, text), text) == ["missing.md", "no.png"]
