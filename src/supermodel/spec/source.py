"""Where things stand in a TOML text, so that a mistake can be shown in its place; and where its data may lie."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supermodel.errors import SupermodelError, suggestion
from supermodel.spec.grammar import pointed

Place = tuple[str, ...]  # keys from the top: ("models", "free", "mean")


class SpecError(SupermodelError):
    """A file that does not describe a comparison; says where and why."""


def text_of(path: Path) -> str:
    """The text of a file."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise SupermodelError(f"the file {str(path)!r} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError as error:
        raise SupermodelError(
            f"the file {str(path)!r} is not UTF-8 text (byte {error.start}). Save it as UTF-8."
        ) from None


@dataclass(frozen=True, eq=False)
class Source:
    """A parsed TOML text that remembers its lines."""

    name: str
    lines: tuple[str, ...]
    tree: dict[str, Any]

    @classmethod
    def of(cls, text: str, name: str) -> Source:
        lines = tuple(text.splitlines())
        try:
            return cls(name, lines, tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise _not_toml(str(error), name, lines) from None
        except (ValueError, OverflowError, RecursionError) as error:  # numbers of thousands of digits, deep nests
            raise SpecError(f"{name}: not a TOML file that can be read ({type(error).__name__}).") from None

    # -- checks -----------------------------------------------------------------------------------------------------

    def table(self, where: Place, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.error(where, f"a table is needed here, not {_kind(value)}")
        return value

    def text(self, where: Place, value: Any) -> str:
        if not isinstance(value, str):
            raise self.error(where, f"a text in quotes is needed here, not {_kind(value)}")
        return value

    def check_keys(
        self, where: Place, table: Mapping[str, Any], known: tuple[str, ...], required: tuple[str, ...] = ()
    ) -> None:
        for key in table:
            if key not in known:
                hint = suggestion(key, known) or f"Known here: {', '.join(known)}."
                raise self.error((*where, key), f"unknown key {key!r}", hint)
        for key in required:
            if key not in table:
                raise self.error(where, f"{key!r} is missing" + (f" in [{'.'.join(where)}]" if where else ""))

    # -- places -----------------------------------------------------------------------------------------------------

    def error(
        self, where: Place, problem: str, hint: str = "", value: str = "", start: int = 0, end: int = 0
    ) -> SpecError:
        """What is wrong at a key; with `value`, the columns `start` to `end` of that text are pointed at."""
        line, column = self.locate(where)
        label = f" ({'.'.join(where)})" if where else ""
        message = f"{self.name}{f', line {line + 1}' if line is not None else ''}{label}: {problem}"
        message += "" if problem.endswith((".", "\n")) else "."
        message += f" {hint}" if hint else ""
        if line is not None:
            shown, first, last = self.lines[line], column, column + len(where[-1])
            if value:
                at = shown.find(value, column)
                if at >= 0:
                    first, last = at + start, at + end
                else:  # written over several lines or with escapes: show the value itself
                    shown, first, last = value, start, end
            message += "\n" + pointed(shown, first, last)
        elif value:
            message += "\n" + pointed(value, start, end)
        return SpecError(message)

    def locate(self, where: Place) -> tuple[int | None, int]:
        """Line and column of a key; (None, 0) where it cannot be found."""
        for size in range(len(where), -1, -1):
            for first, last in self._sections(where[:size]):
                place = self._follow(first, last, where[size:])
                if place is not None:
                    return place
        return None, 0

    def _sections(self, wanted: Place) -> list[tuple[int, int]]:
        """Lines (header, end) of every [section] of that name; the top is the section of no name."""
        headers: list[tuple[int, Place]] = [(-1, ())]
        for n, line in enumerate(self.lines):
            found = re.match(r"\s*\[+([^\[\]]+)\]", line)
            if found:
                parts = tuple(part.strip().strip("\"'") for part in found.group(1).split("."))
                headers.append((n, parts))
        ends = [n for n, _ in headers[1:]] + [len(self.lines)]
        return [(n, end) for (n, parts), end in zip(headers, ends, strict=True) if parts == wanted]

    def _follow(self, header: int, end: int, keys: Place) -> tuple[int, int] | None:
        """The place of nested keys within a section, one after the other."""
        if not keys:
            if header < 0:
                return None
            return header, max(self.lines[header].find("["), 0) + 1
        line, column = header + 1, 0
        for key in keys:
            pattern = re.compile(rf"(?<![\w.-])[\"']?(?P<key>{re.escape(key)})[\"']?\s*[=.]")
            while line < end:
                found = pattern.search(self.lines[line], column)
                if found:
                    column = found.start("key")
                    break
                line, column = line + 1, 0
            else:
                return None
            place = (line, column)
            column = found.end() - 1 if found.group().endswith(".") else found.end()
            column = column + 1 if found.group().endswith(".") else column
        return place


def _not_toml(message: str, name: str, lines: tuple[str, ...]) -> SpecError:
    found = re.search(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)", message)
    if found is None:
        return SpecError(f"{name}: not a TOML file: {message}.")
    problem = message[: found.start()]
    n = int(found.group(1)) - 1 if found.group(1) else len(lines) - 1
    if not 0 <= n < len(lines):
        return SpecError(f"{name}: not a TOML file: {problem}.")
    column = int(found.group(2)) - 1 if found.group(2) else len(lines[n])
    return SpecError(f"{name}, line {n + 1}: not TOML: {problem}.\n{pointed(lines[n], column, column + 1)}")


def _kind(value: Any) -> str:
    shown = repr(value)
    words = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list", dict: "a table"}
    return f"{words.get(type(value), type(value).__name__)}: {shown if len(shown) < 40 else shown[:40] + '…'}"


# -- files ----------------------------------------------------------------------------------------------------------


def confined(path: Path, root: Path) -> Path:
    """Where `path` leads, links and `..` followed, if that is inside the folder `root`; refused before anything is opened."""
    try:
        home, found = root.resolve(strict=True), path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # no such folder, links in a circle, a NUL in the name
        raise SpecError(
            f"the file {str(path)!r} cannot be looked for in the data root {str(root)!r}: {error}"
        ) from None
    if not found.is_relative_to(home):
        raise SpecError(
            f"the file {str(path)!r} is not inside the data root {str(root)!r}, links and `..` followed, and data are read "
            "from nowhere else. Put the file there, or write the numbers into the TOML as columns = { x = [...], y = [...] }"
        )
    return found
