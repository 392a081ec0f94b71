"""Where the table grows: a part for each chunk, whole or not there at all, so that a killed run goes on where it was.

`results.parquet` is made of `results.parquet.parts/part-000000.parquet`, ..., joined at the end. With a name that ends in
"/" the parts stay in that folder and are never joined. `run.json` beside them says which run they belong to.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from supermodel.errors import StorageError
from supermodel.results.storage import explained, write_atomically
from supermodel.survey import table
from supermodel.survey.job import Outcome
from supermodel.survey.tally import is_flagged

RUN = "run.json"
LOOSE = 1e-9  # relative: by how much a log likelihood may differ on another machine


class Memory:
    """The table in memory: nothing is written, nothing can be resumed."""

    path: Path | None = None
    flagged = 0

    def __init__(self, models: Sequence[str]):
        self.models = tuple(models)
        self.outcomes: list[Outcome] = []

    def begin(self, identity: Mapping[str, Any], is_resumed: bool) -> bool:
        return False

    def has(self, number: int, digest: str) -> bool:
        return False

    def add(self, number: int, digest: str, outcomes: Sequence[Outcome]) -> None:
        self.outcomes += outcomes

    def finish(self) -> None:
        pass

    def frame(self) -> Any:
        return table.frame_of(self.outcomes, self.models)


class Parts:
    """Parts in a folder, and the file that they become."""

    def __init__(self, out: str | os.PathLike[str], models: Sequence[str]):
        table.arrow()
        self.models = tuple(models)
        self.path = Path(out)
        self.is_joined = not (os.fspath(out).endswith(("/", os.sep)) or self.path.is_dir())
        self.folder = self.path.with_name(self.path.name + ".parts") if self.is_joined else self.path
        self.identity: dict[str, Any] = {}
        self.digests: list[str] = []  # of all pieces, in their order
        self.is_finished = False
        self.flagged = 0  # in the part that was last found

    def begin(self, identity: Mapping[str, Any], is_resumed: bool) -> bool:
        """Find what there is of this run; whether it is finished. What belongs to another run is refused."""
        self.identity = json.loads(json.dumps(identity))
        if self.is_joined and self.path.exists() and is_resumed:
            told = table.words_of(self.path)
            if told is None or "identity" not in told:
                raise StorageError(
                    f"{str(self.path)!r} is there already, and is no table of compare_many. Give another `out`, or resume=False "
                    "to replace it at the end of the run."
                )
            self._check(told["identity"], self.path)
            self.is_finished, self.finished = True, told
            return True
        try:
            if not is_resumed and self.folder.exists():
                self._clear()
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(explained(self.folder, error)) from error
        note = self.folder / RUN
        if note.exists():
            try:
                found = json.loads(note.read_text())
            except (OSError, ValueError):
                raise StorageError(
                    f"{str(note)!r} cannot be read, so that nothing says which run the parts beside it belong to. Remove the "
                    "folder, or pass resume=False, to begin anew."
                ) from None
            self._check(found, self.folder)
        else:
            write_atomically(note, json.dumps(self.identity, indent=1).encode())
        return False

    def _clear(self) -> None:
        for old in (*self.folder.glob("part-*.parquet"), self.folder / RUN):
            old.unlink(missing_ok=True)

    def _check(self, found: Mapping[str, Any], where: Path) -> None:
        differ = [
            f"{name}: {_short(found.get(name))} there, {_short(value)} here"
            for name, value in self.identity.items()
            if not _is_same(found.get(name), value)
        ]
        if differ:
            raise StorageError(
                f"{str(where)!r} belongs to another run ({'; '.join(differ)}), and one table must not mix the two. Give another "
                "`out`, pass what was given then, or resume=False to begin anew."
            )

    def part(self, number: int) -> Path:
        return self.folder / f"part-{number:06d}.parquet"

    def has(self, number: int, digest: str) -> bool:
        """Whether the part of this piece is there, whole and made of the same data."""
        self.digests.append(digest)
        if self.is_finished:
            return True
        path = self.part(number)
        told = table.words_of(path) if path.exists() else None
        if told is None:
            return False  # not there, or damaged: it is made again
        if told.get("digest") != digest:
            raise StorageError(
                f"the data have changed since this run was begun: {str(path)!r} was made of other numbers than those of chunk "
                f"{number} now. Give another `out`, or resume=False to begin anew."
            )
        self.flagged = int(told.get("flagged", 0))
        return table.is_readable(path)

    def add(self, number: int, digest: str, outcomes: Sequence[Outcome]) -> None:
        told = {"number": number, "digest": digest, "flagged": sum(map(is_flagged, outcomes))}
        content = table.as_parquet(outcomes, self.models, told)
        try:
            write_atomically(self.part(number), content)
        except StorageError as error:
            raise StorageError(
                f"{error} All parts before this one are kept in {str(self.folder)!r}: call again, and the run goes on from there."
            ) from error

    def finish(self) -> None:
        """Join the parts, and remove them once the table is there."""
        whole = hashlib.sha256("".join(self.digests).encode()).hexdigest()[:12]
        left_over = not self.is_finished and len(self.files()) < len(list(self.folder.glob("part-*.parquet")))
        if left_over or (self.is_finished and self.finished.get("digest") != whole):
            raise StorageError(
                f"the data have changed since {str(self.path)!r} was made of them. Give another `out`, or resume=False to "
                "begin anew."
            )
        if self.is_joined and not self.is_finished:
            told = {"identity": self.identity, "digest": whole, "models": self.models}
            joining = self.folder / "joining.tmp"
            try:
                table.joined(self.files(), joining, told)
                os.replace(joining, self.path)
            except OSError as error:
                with contextlib.suppress(OSError):
                    joining.unlink()
                raise StorageError(
                    f"{explained(self.path, error)} All parts are kept in {str(self.folder)!r}: call again to join them."
                ) from error
        if self.is_joined:
            shutil.rmtree(self.folder, ignore_errors=True)

    def files(self) -> list[Path]:
        """The parts that belong to this run."""
        return [path for number in range(len(self.digests)) if (path := self.part(number)).exists()]


def _is_same(then: Any, now: Any) -> bool:
    if isinstance(then, float) and isinstance(now, float):
        return abs(then - now) <= LOOSE * max(1.0, abs(now)) or then == now
    if isinstance(then, dict) and isinstance(now, dict):
        return then.keys() == now.keys() and all(_is_same(then[key], now[key]) for key in now)
    if isinstance(then, list) and isinstance(now, list):
        return len(then) == len(now) and all(map(_is_same, then, now))
    return then == now


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 120 else text[:120] + "…"
