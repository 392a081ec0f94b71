"""The same models run by another program: both numbers side by side, and one figure for their disagreement."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from supermodel.engine.progress import EVERY_LIVE, EVERY_LOG, reporter
from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import Estimate
from supermodel.models.adapters.to_nested import to_dynesty
from supermodel.models.model import Model
from supermodel.options import checked
from supermodel.results.comparison import Comparison
from supermodel.trust.peers import PEERS, Found, Watch, gathered, need

AGREE, DOUBTFUL = 0.05, 0.003  # p-values above which two programs agree, and below which they do not
WORDS = {
    "agree": "they agree",
    "doubtful": "doubtful: two right programs differ by so much less than once in 20 times. Run both again with another seed, and "
    "the peer with more live points (n_live=2000), before you use either",
    "disagree": "THEY DISAGREE: one has missed a part of a posterior, or its error is too small. Use neither. Run "
    'compare(..., explore="thorough") with another seed and the peer with more live points (n_live=2000), and look at the '
    "posteriors of the model whose ln Z differ",
    "unfinished": "no answer within the limit on time, so that nothing is confirmed and nothing denied (more: max_seconds=, and "
    "n_live=100 is quicker); unfinished are",
}


@dataclass(frozen=True, eq=False)
class Crosscheck:
    r"""ln Z of every model by `supermodel` and by a peer.

    `chi2` weighs the differences of all ln B between the two by the covariance of both, with K - 1 degrees of freedom;
    `sigmas` is the same as a two-sided deviation of one normal variable: with two models it is
    $|\ln B - \ln B'| / \sqrt{\sigma^2 + \sigma'^2}$.
    """

    peer: str
    names: tuple[str, ...]
    ours: dict[str, Estimate]
    theirs: dict[str, Estimate]
    chi2: float
    p_value: float
    evaluations: dict[str, int]  # of the peer, per model
    our_evaluations: int
    # {(best, other): ln B here and there}
    log_bayes_factors: dict[tuple[str, str], tuple[Estimate, Estimate]] = field(default_factory=dict)
    unfinished: tuple[str, ...] = ()  # models whose time was up before the peer had an answer
    warnings: tuple[str, ...] = ()  # of the peer, one after the other

    @property
    def sigmas(self) -> float:
        from scipy.stats import norm

        return float(norm.isf(0.5 * self.p_value)) if self.p_value > 0 else math.inf

    @property
    def agreement(self) -> str:
        """One of "agree" (above p = 0.05), "doubtful" (down to 0.003, 3 sigmas), "disagree", and "unfinished"."""
        if self.unfinished:
            return "unfinished"
        return "agree" if self.p_value > AGREE else "doubtful" if self.p_value >= DOUBTFUL else "disagree"

    @property
    def agrees(self) -> bool:
        return self.agreement == "agree"

    def __str__(self) -> str:
        width = max(len(name) for name in (*self.names, "model"))
        lines = [f"{'model':<{width}}  {'ln Z, supermodel':>20}  {'ln Z, ' + self.peer:>20}"]
        lines += [f"{name:<{width}}  {self.ours[name]!s:>20}  {self.theirs[name]!s:>20}" for name in self.names]
        for (first, second), (here, there) in self.log_bayes_factors.items():
            lines.append(f"ln B({first} : {second}) = {here} here, {there} by {self.peer}")
        calls = sum(self.evaluations.values())
        lines.append(f"likelihood calls: {self.our_evaluations} here, {calls} by {self.peer}")
        if self.warnings:
            most = " ".join(self.warnings[0].split())[:120]
            lines.append(f"{self.peer} gave {len(self.warnings)} warnings, the first: {most}")
        if self.unfinished:
            lines.append(f"{WORDS['unfinished']}: {', '.join(map(repr, self.unfinished))}")
            return "\n".join(lines)
        what = "ln B" if len(self.names) > 1 else "ln Z"
        lines.append(
            f"disagreement of {what}: {self.sigmas:.1f} sigma (p = {self.p_value:.2g}); {WORDS[self.agreement]}"
        )
        return "\n".join(lines)

    __repr__ = __str__


def crosscheck(
    result: Comparison,
    with_: str = "dynesty",
    *,
    n_live: int = 500,
    seed: int = 0,
    models: Mapping[str, Model] | None = None,
    data: Any = None,
    max_seconds: float | None = 600.0,
    progress: bool | None = None,
) -> Crosscheck:
    """Run the models of `result` by `with_`, "dynesty", "nautilus", "ultranest" or "nessai", and set both answers side by side.

    At `max_seconds` (of all models together; None: no limit) the peer gives up with what it has, which is then said and not
    judged. dynesty draws from ellipsoids up to 3 parameters, walks up to 20, and slices beyond; UltraNest draws from its regions up
    to 6; nessai is its importance nested sampler. Their warnings are counted in one line, and `progress` is that of `compare`.
    A result that was loaded from a file has no models: give them, and their data, again.
    """
    if with_ not in PEERS:
        raise SupermodelError(f"`with_` must be one of {', '.join(PEERS)}; got {with_!r}.")
    models, data = models or result.models, data if data is not None else result.data
    if models is None or set(models) != set(result.names):
        raise SupermodelError(
            f"the models {list(result.names)} are needed to run them again; this result holds "
            f"{list(models) if models else 'none, since it was loaded from a file'}. Give models={{name: Model}} and "
            "data."
        )
    need(with_)
    shown, ends = _Line(checked("progress", progress)), time.monotonic() + (max_seconds or math.inf)
    found: dict[str, Found] = {}
    warned: list[str] = []
    try:
        for k, name in enumerate(result.names):  # what one model leaves of its part of the time the next ones have
            seconds = max(ends - time.monotonic(), 0.0) / (len(result.names) - k)
            found[name], told = _one(with_, name, models[name], data, n_live, seed + k, seconds, shown)
            warned += told
    finally:
        shown.close()
    theirs = {name: each.log_evidence for name, each in found.items()}
    unfinished = tuple(name for name, each in found.items() if not each.is_done)
    chi2, p_value = (math.nan, math.nan) if unfinished else disagreement(result, theirs)
    calls = {name: each.calls for name, each in found.items()}
    return Crosscheck(
        with_, result.names, {name: result.log_evidence(name) for name in result.names}, theirs, chi2, p_value, calls,
        result.evaluations["likelihood"], _log_bayes_factors(result, theirs), unfinished, tuple(warned),
    )  # fmt: skip


def _log_bayes_factors(result: Comparison, theirs: Mapping[str, Estimate]) -> dict[Any, tuple[Estimate, Estimate]]:
    best = result.best
    return {
        (best, other): (result.log_bayes_factor(best, other), _difference(theirs[best], theirs[other]))
        for other in result.ranking[1:]
    }


def _difference(first: Estimate, second: Estimate) -> Estimate:
    return Estimate(first.value - second.value, math.hypot(first.error, second.error))


def disagreement(result: Comparison, theirs: Mapping[str, Estimate]) -> tuple[float, float]:
    """chi2 of all ln B against the first model, and its probability."""
    from scipy.stats import chi2 as law

    names = result.names
    gap = result.evidences.values - np.array([theirs[name].value for name in names])
    covariance = result.evidences.covariance + np.diag([theirs[name].error ** 2 for name in names])
    if len(names) > 1:
        contrast = np.eye(len(names))[1:] - np.eye(len(names))[0]
        gap, covariance = contrast @ gap, contrast @ covariance @ contrast.T
    # Two numbers without error can only be equal or not: rounding is let pass.
    covariance = covariance + 1e-18 * np.eye(len(gap))
    value = float(gap @ np.linalg.solve(covariance, gap))
    return value, float(law.sf(value, len(gap)))


def _one(
    peer: str, name: str, model: Model, data: Any, n_live: int, seed: int, seconds: float, shown: Any
) -> tuple[Found, list[str]]:
    arguments = to_dynesty(model, data, seed=seed)
    if arguments.dimension == 0:
        return Found(Estimate(float(arguments.log_likelihood(np.zeros(0))), 0.0), 1, True), []
    with gathered() as warned:
        watch = Watch(seconds, lambda line: shown(f"{peer} on {name!r}: {line}"))
        return PEERS[peer](arguments, n_live, seed, watch), warned


class _Line:
    """What a peer is at, as often as `compare` shows its own line."""

    def __init__(self, progress: bool | None):
        self.reporter, self.last = reporter(progress), time.monotonic()

    def __call__(self, line: str) -> None:
        now = time.monotonic()
        if self.reporter is None or now - self.last < (EVERY_LIVE if self.reporter.live else EVERY_LOG):
            return
        self.last = now
        (self.reporter._show if self.reporter.live else self.reporter.write)(line)

    def close(self) -> None:
        if self.reporter is not None:
            self.reporter.close()
