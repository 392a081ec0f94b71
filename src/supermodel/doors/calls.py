"""What all doors do alike: the options of `evidence` under other programs' roofs, and what is told of a result."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from supermodel.comparing import evidence
from supermodel.errors import SupermodelError, suggestion
from supermodel.options import BY_NAME
from supermodel.results.comparison import Evidence
from supermodel.results.export import finite, plain
from supermodel.verdict.next_steps import next_steps

DRAWS = 10_000  # equally weighted draws that are handed over, if `min_ess` does not ask for more


def options() -> dict[str, Any]:
    """{name: default} of what `evidence` can be told about a model that brings its own data."""
    known = (name for name in inspect.signature(evidence).parameters if name in BY_NAME)
    return {name: BY_NAME[name].default for name in known if name != "missing"}


def refuse_unknown(given: Iterable[str], known: Iterable[str], where: str) -> None:
    """Refuse options that nobody would read."""
    known = list(known)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise SupermodelError(
            f"{where} has no option {', '.join(map(repr, unknown))}, which would be passed over without a word. "
            f"{suggestion(unknown[0], known)} The options are {', '.join(known)}."
        )


def is_finished(found: Evidence) -> bool:
    """Whether the run came to its own end, so that there is nothing left to go on with."""
    return found.settings.get("ended") == "target"


def story(found: Evidence) -> dict[str, Any]:
    """The verdict and what the run cost, in plain lists and numbers that JSON and YAML can hold."""
    return finite(
        {
            "verdict": found.verdict.level,
            "reasons": [[reason.code, reason.sentence] for reason in found.verdict.reasons],
            "next_steps": next_steps(found.verdict, found.names),
            "evaluations": plain(found.evaluations),
            "seconds": float(found.seconds),
            "seed": int(found.seed),
            "ended": found.settings.get("ended", ""),
            "version": found.versions.get("supermodel", ""),
            "versions": plain(found.versions),
            "fingerprints": plain(found.fingerprints),
        }
    )


def in_a_line(found: Evidence) -> str:
    """`ok: no check found a sign of trouble`, or the level with its first reason."""
    reasons = [reason.sentence for reason in found.verdict.reasons]
    return f"{found.verdict.level}: {reasons[0] if reasons else 'no check found a sign of trouble'}"


def equal_draws(found: Evidence, given: Mapping[str, Any]) -> Any:
    """A data frame of equally weighted posterior draws: every so many-th, where there are more than anybody needs."""
    frame = found.posterior("model").to_dataframe()
    most = max(DRAWS, int(4 * (given.get("min_ess") or 0)))
    return frame.iloc[:: -(-len(frame) // most)].reset_index(drop=True)
