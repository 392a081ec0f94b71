r"""Printed results on the pages, made anew: `python docs/hooks/renew.py [--check] [PAGE ...]`, all pages if none is named.

The ```python blocks of one page are one program, run in order in a fresh interpreter and an empty folder, as a reader
would. A ```console block is run by the shell at its place, and any block with a `title="name"` is first written into the
folder as a file. Where the next fence after a ```python or ```console block is ```text, it shows what that block printed,
and is rewritten. A line that differs in its seconds only ("in 8.0 s") stays as it is. A block that cannot be run carries
`<!-- not run: reason -->` on the line before its fence; what follows it stays too. `<!-- needs: library -->` says that it is
run where that library is installed. A ```text block that is no result says why in the same way. In a table whose last column
is headed `here`, the code in that column is run too, row by row.

`--check` changes nothing, prints the differences, and exits with 1 if there are any: the same bits are expected, so it is for
the platform and the versions (`constraints.txt`) that made the pages. The tests compare too, anywhere, and to them a line is
still true (`is_true`) if the words are the same and
  - `value ± error` is within 4 joint errors, and the error within a factor of two (below 1e-6 it is rounding);
  - any other number (draws, calls, quantiles) is within a factor of two or 0.1;
  - times, the strokes of little histograms and the width of columns may be anything.
Lines that follow from others are left out: the word for a ln B, fingerprints, and the advice on few draws.
"""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import math
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(r"(?P<indent> *)(?P<ticks>```+)(?P<language>[\w-]*)(?:.*\btitle=\"(?P<title>[^\"]+)\")?")
NOT_RUN = re.compile(r"\s*<!--\s*not run\b:?\s*(?P<reason>.*?)\s*-->\s*")
NEEDS = re.compile(r"\s*<!--\s*needs:\s*(?P<library>\w+)\s*-->\s*")
SECONDS = re.compile(r"\bin [\d.]+ (?:s|min \d+ s|h \d+ min)\b")
END = "\x1eend of block "  # printed after each block: what stands between two of these is the output of one


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    line: int  # of its first line of code, counted from 1
    code: str
    reason: str | None  # why it is not run; None if it is
    end: int  # the line of its closing fence
    indent: str
    title: str | None  # of the file that it shows

    @property
    def is_run(self) -> bool:
        return self.language in {"python", "py", "console"} and self.reason is None


def why_not_run(mark: str, line: int) -> str | None:
    """The reason that a mark before a fence gives, None if it gives none or its library is here."""
    if needs := NEEDS.fullmatch(mark):
        return None if importlib.util.find_spec(needs["library"]) else f"needs {needs['library']}"
    marked = NOT_RUN.fullmatch(mark)
    if marked and not marked["reason"]:
        raise ValueError(f"line {line}: says 'not run' but not why")
    return marked["reason"] if marked else None


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
            code, reason = textwrap.dedent("\n".join(lines[start:i])), why_not_run(before, start - 1)
            found.append(
                Block(opening["language"], start + 1, code, reason, i + 1, opening["indent"], opening["title"])
            )
        i += 1
    return found


def cells(row: str) -> list[str]:
    """The cells of a row of a table; a bar in `code` parts nothing."""
    spared = re.sub(r"`[^`]*`", lambda code: code[0].replace("|", "\0"), row.strip().strip("|"))
    return [cell.replace("\0", "|").strip() for cell in spared.split("|")]


def code_in_tables(text: str) -> dict[int, str]:
    """The code in the columns headed `here`, by line, counted from 1."""
    found, lines = {}, text.splitlines()
    for i, line in enumerate(lines):
        if re.fullmatch(r"\|.*\| here \|", line) and why_not_run(lines[i - 1], i) is None:
            for n, row in enumerate(lines[i + 2 :], i + 3):
                if not row.startswith("|"):
                    break
                found[n] = "; ".join(re.findall(r"`([^`]*)`", cells(row)[-1]))
    return found


def program(text: str) -> str:
    """All blocks that are run as one script whose line numbers are those of the page; empty if there are none."""
    lines = [""] * (len(text.splitlines()) + 1)
    found = blocks(text)
    for block in found if any(block.is_run for block in found) else []:
        code = block.code.splitlines() if block.is_run else []
        if block.language == "console" and code:
            shell = f"subprocess.run({block.code!r}, shell=True, check=True, stdout=-1, text=True)"
            code = [f"import subprocess; print({shell}.stdout, end='')"]
        elif block.title and not block.is_run:
            code = [f"import pathlib; pathlib.Path({block.title!r}).write_text({block.code + chr(10)!r})"]
        lines[block.line - 1 : block.line - 1 + len(code)] = code
        if block.is_run:
            lines[block.end - 1] = f"print({END + str(block.line)!r}, flush=True)"
    for line, code in code_in_tables(text).items():
        lines[line - 1] = code
    return "\n".join(lines)


def run(page: Path, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess:
    """The page's program in a folder of its own, with the commands of this Python at hand."""
    script = folder / f"{page.stem}.py"
    script.write_text(program(page.read_text()))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONSAFEPATH": "1", "PATH": path, **environment}
    return subprocess.run(
        [sys.executable, str(script)], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )


def outputs(printed: str) -> dict[int, str]:
    """What each block printed, by its first line."""
    found = re.findall(rf"(.*?){END}(\d+)\n", printed, re.DOTALL)
    return {int(line): output for output, line in found}


def renewed(text: str, printed: dict[int, str]) -> str:
    """The page with its results replaced by what was printed."""
    lines, found = text.splitlines(), blocks(text)
    for block, result in reversed(list(pairwise(found))):
        new = printed.get(block.line, "").rstrip().splitlines()
        if result.language == "text" and new:
            before = {SECONDS.sub("", line): line for line in result.code.splitlines()}
            new = [before.get(SECONDS.sub("", line.rstrip()), line.rstrip()) for line in new]
            lines[result.line - 1 : result.end - 1] = [f"{result.indent}{line}".rstrip() for line in new]
    return "\n".join(lines) + "\n"


NUMBER = r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
VALUES = re.compile(rf"(?<![\w.])({NUMBER})(?: ± <?({NUMBER}))?(?!\w)")
ROUNDING = 1e-6
FOLLOWS = re.compile(r"\(Trotta:|^\s*fingerprints:|^\s*Posteriors of as few as")  # from ln B, from the data, from ESS


CALLS = re.compile(r"(?<=\s)[\d.]+$")  # the last column of `supermodel check`: milliseconds of a call


def plain(line: str) -> str:
    """A printed line with numbers in one spelling, without times, strokes and the width of columns."""
    line = re.sub("[▁▂▃▄▅▆▇█]", "", SECONDS.sub("in some time", line))
    line = CALLS.sub("some time", line.rstrip()) if "JAX, with gradients" in line else line
    line = re.sub(r"(?<![.\d])\d{1,3}(?: \d{3})+(?![.\d])", lambda match: match[0].replace(" ", ""), line)
    return " ".join(re.sub(r" × 10\^(-?\d+)", r"e\1", line).split())


def is_near(a: float, b: float) -> bool:
    """Within a factor of two."""
    return a == b or (a * b > 0 and abs(math.log(a / b)) <= math.log(2))


def is_true(before: str, now: str) -> bool:
    """Whether a line on a page says what is printed now, by the rule at the head of this file."""
    before, now = plain(before), plain(now)
    if VALUES.sub("#", before) != VALUES.sub("#", now):
        return False
    for (a, a_error), (b, b_error) in zip(VALUES.findall(before), VALUES.findall(now), strict=True):
        if a_error and b_error:
            errors = [max(float(error), ROUNDING) for error in (a_error, b_error)]
            if abs(float(a) - float(b)) > 4 * math.hypot(*errors) or not is_near(*errors):
                return False
        elif a_error or b_error or not (is_near(float(a), float(b)) or abs(float(a) - float(b)) <= 0.1):
            return False
    return True


def stale(text: str, printed: dict[int, str]) -> list[str]:
    """What a page shows that the code no longer prints."""
    found = []
    for block, result in pairwise(blocks(text)):
        if result.language == "text" and printed.get(block.line, "").strip():
            shown, now = (
                [line for line in output.strip().splitlines() if not FOLLOWS.search(line)]
                for output in (result.code, printed[block.line])
            )
            lines = zip(shown, now, strict=True) if len(shown) == len(now) else [("\n".join(shown), "\n".join(now))]
            found += [f"line {result.line} ff.: {a!r} is now {b!r}" for a, b in lines if not is_true(a, b)]
    return found


def unexplained(text: str) -> list[int]:
    """Lines of ```text blocks that are no result of a block and do not say why."""
    found, before = [], None
    for block in blocks(text):
        is_result = before is not None and before.language in {"python", "py", "console"}
        if block.language == "text" and block.reason is None and not is_result:
            found.append(block.line)
        before = block
    return found


def renew(page: Path, check: bool = False) -> bool:
    """Run a page and rewrite its results; False if a check found others."""
    text = page.read_text()
    if not program(text).strip():
        return True
    with tempfile.TemporaryDirectory() as folder:
        done = run(page, Path(folder), {})
    if done.returncode:
        raise SystemExit(f"{page}: a block fails\n{done.stderr[-4000:]}")
    new = renewed(text, outputs(done.stdout))
    names = f"{page} as it is", f"{page} as it runs"
    for line in difflib.unified_diff(text.splitlines(), new.splitlines(), *names, lineterm="", n=1):
        print(line, flush=True)
    if not check:
        page.write_text(new)
    return not check or new == text


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 1 if a check found a difference."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, default=PAGES)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if a result differs")
    asked = parser.parse_args(arguments)
    return 0 if all([renew(page, asked.check) for page in asked.pages]) else 1


if __name__ == "__main__":
    sys.exit(main())
