"""Every example in the documents is run, every TOML block parsed, every link followed: what is not run is a rumour.

How a page is run is said, and done, in `docs/hooks/renew.py`, which also makes the printed results anew.
"""

import doctest
import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import jax
import pytest
import renew
from renew import FENCE, blocks, program
from renew import PAGES as DOCUMENTS

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "supermodel"

LINK = re.compile(
    r"!?\[[^\]]*\]\(\s*<?(?P<target>[^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|<img[^>]*\ssrc=\"(?P<image>[^\"]+)\""
)

CACHE = (
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
    "jax_persistent_cache_min_entry_size_bytes",
)


def run(page: Path, folder: Path) -> subprocess.CompletedProcess:
    """As `renew` does; pages show the same models again, and they are compiled once."""
    return renew.run(page, folder, {option.upper(): str(getattr(jax.config, option)) for option in CACHE})


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


LONG = {"how_many.md"}  # minutes: `make test-long` runs it, and so does the continuous integration
RUN = [
    pytest.param(d, id=name(d), marks=[pytest.mark.slow] * (d.name in LONG))
    for d in DOCUMENTS
    if program(d.read_text()).strip()
]


@pytest.mark.parametrize("document", RUN)
def test_examples_run(document, tmp_path):
    done = run(document, tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    assert renew.stale(document.read_text(), renew.outputs(done.stdout)) == []  # the rule stands in renew.py


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_toml_blocks_parse_and_links_lead_somewhere(document):
    text = document.read_text()
    for block in blocks(text):
        if block.language == "toml" and block.reason is None:
            tomllib.loads(block.code)
    assert broken_links(document, text) == []
    assert renew.unexplained(text) == []


def test_readme_holds_an_example_that_is_run():
    assert "sm.compare(" in program((ROOT / "README.md").read_text())


def test_a_table_quotes_what_the_readme_prints():
    readme, table = (ROOT / "README.md").read_text(), (ROOT / "docs" / "choose.md").read_text()
    found, calls = (
        re.search(r"^ln B\(free : fixed\) = (.*)$", readme, re.MULTILINE),
        re.search(r"^([\d ]+) likelihood", readme, re.M),
    )
    assert f'| `method="auto"` | {found[1]} | {calls[1]} |' in table


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text()
    pages = [str(p.relative_to(ROOT / "docs")) for p in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if page not in navigation] == []


# The site: nothing from elsewhere, found by search from disk, printed output in its box.
LOADED = re.compile(
    r"<(?:script|img|iframe|link(?! rel=\"canonical\"))\b[^>]*?\b(?:src|href)=\"?(\w+:)?//", re.IGNORECASE
)
BOX = 120  # characters of code or of a printed table that fit at a width of 1280 px; `docs/stylesheets/page.css`


def test_the_site_asks_nobody_for_fonts_or_scripts():
    text = (ROOT / "mkdocs.yml").read_text()
    assert re.search(r"^  font: false$", text, re.MULTILINE)
    assert re.search(r"^  - search\b", text, re.MULTILINE) and re.search(r"^  - offline\b", text, re.MULTILINE)
    shim = re.search(r"polyfills: \[(\S*iframe-worker\S*)\]", text)[1]  # without it `offline` asks elsewhere for one
    assert (ROOT / "docs" / shim).exists()


@pytest.mark.slow
def test_the_built_site_loads_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("material")
    built = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    subprocess.run(built, cwd=ROOT, check=True, timeout=300, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    pages = {page.relative_to(tmp_path): page.read_text() for page in tmp_path.rglob("*.html")}
    assert len(pages) > 30 and (tmp_path / "search" / "search_index.js").exists()
    assert [str(page) for page, text in pages.items() if LOADED.search(text)] == []
    assert LOADED.search('<script src="https:' + '//example.org/shim">') and LOADED.search("<img src=//example.org/x>")


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_code_fits_its_box(document):
    code = [block for block in blocks(document.read_text()) if block.language != "text"]  # there, long lines are broken
    assert [(b.line, line) for b in code for line in b.code.splitlines() if len(line) > BOX] == []


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


def test_code_in_the_column_here_is_run(tmp_path):
    table = "| there | here |\n|---|---|\n| `f(x | y)` | sum: `z = 1 | 2`, `z += 1` |\n| `a` | nothing |\n"
    page = document(
        tmp_path, table + "```python\nassert z == 4\n```\n| x | here |\n|---|---|\n| `b` | `assert z == 5` |\n"
    )
    done = run(page, tmp_path)
    assert done.returncode == 1 and "line 10" in done.stderr and "z == 5" in done.stderr
    assert run(document(tmp_path, page.read_text().replace("| x | here |", "| x | y |")), tmp_path).returncode == 0


RESULTS = """Text.

```toml title="a.toml"
x = 3
```

```python
print(open("a.toml").read().strip(), "in 2.5 s")
print("y = 4")
```

It prints

```text
x = 3 in 1.0 s
y = 5
```

  ```console
  cat a.toml
  ```

  ```text
  x = 2
  ```

<!-- not run: needs a cluster -->
```python
print(7)
```

```text
8
```
"""


def test_printed_results_are_made_anew_in_their_place(tmp_path, capsys):
    page = document(tmp_path, RESULTS)
    wanted = page.read_text().replace("y = 5", "y = 4").replace("x = 2", "x = 3")
    assert renew.main(["--check", str(page)]) == 1
    told = [line for line in capsys.readouterr().out.splitlines() if re.match(r"[-+](?![-+])", line)]
    assert told == ["-y = 5", "+y = 4", "-  x = 2", "+  x = 3"]
    assert "y = 5" in page.read_text()  # a check changes nothing
    assert renew.main([str(page)]) == 0
    assert page.read_text() == wanted  # the seconds and what was not run stay
    assert renew.main(["--check", str(page)]) == 0


SHOWN = "  line    22.215 ± 0.018   0.9906  ▁▂▄ ▆█  478  10 001 likelihood calls in 6.1 s, B = 2.4 × 10^10"


@pytest.mark.parametrize(
    ("old", "new", "is_true"),
    [
        ("22.215 ± 0.018", "22.31 ± 0.02", True),  # 3.5 joint errors
        ("22.215 ± 0.018", "22.33 ± 0.02", False),  # 4.3
        ("± 0.018", "± 0.035", True),
        ("± 0.018", "± 0.038", False),
        ("± 0.018", "", False),
        ("± 0.018", "± 0.000000000009", False),
        ("6.1 s", "2 min 3 s", True),
        ("▁▂▄ ▆█", "▁▂▂▂▄▆█", True),
        ("478", "912", True),
        ("478", "200", False),
        ("0.9906", "0.8911", True),
        ("0.9906", "-0.9906", False),
        ("10 001", "20 003", False),
        ("10^10", "10^9", False),
        ("calls", "evaluations", False),
        ("  line", "  line and more", False),
    ],
)
def test_a_line_is_true_within_its_errors(old, new, is_true):
    assert old in SHOWN
    assert renew.is_true(SHOWN, SHOWN.replace(old, new)) is is_true
    assert renew.is_true("0.944341553210 ± 0.000000000009", "0.944341553209 ± 0.000000000003")  # rounding
    assert not renew.is_true("0.944341553210 ± 0.000000000009", "0.944348 ± 0.000000000003")


def test_a_stale_result_is_told():
    text = "```python\nprint(1)\n```\n```text\nln B = 1.990 ± 0.020\nVerdict OK\n```\n"
    assert renew.stale(text, {2: "ln B = 1.980 ± 0.020\nVerdict OK\n"}) == []
    assert "2.112" in renew.stale(text, {2: "ln B = 2.112 ± 0.017\nVerdict OK\n"})[0]
    assert "CAUTION" in renew.stale(text, {2: "ln B = 1.990 ± 0.020\nVerdict CAUTION\n"})[0]
    assert len(renew.stale(text, {2: "ln B = 1.990 ± 0.020\n"})) == 1  # a line is gone


def test_a_result_of_nothing_must_say_why():
    assert renew.unexplained("```text\n7\n```\n<!-- not run: a plan -->\n```text\n8\n```\n") == [2]


def test_a_block_that_needs_a_library_is_run_where_it_is():
    here = "<!-- needs: json -->\n```python\nx = 1\n```\n"
    (there,) = blocks(here.replace("json", "no_such_library"))
    assert blocks(here)[0].is_run and not there.is_run and there.reason == "needs no_such_library"


@pytest.mark.parametrize("code", ["print(1)\nraise SystemExit(7)", "print(1)\n```\n```console\nfalse"])
def test_a_page_that_fails_is_not_rewritten(tmp_path, code):
    page = document(tmp_path, text := f"```python\n{code}\n```\n```text\n2\n```\n")
    with pytest.raises(SystemExit, match="a block fails"):
        renew.main([str(page)])
    assert page.read_text() == text


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
