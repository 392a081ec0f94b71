"""The same models run by another program: both numbers side by side, and one figure for their disagreement."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import Estimate
from supermodel.models.adapters.to_nested import ForNested, to_dynesty
from supermodel.models.model import Model
from supermodel.results.comparison import Comparison

AGREE, DOUBTFUL = 0.05, 0.003  # p-values above which two programs agree, and below which they do not
WORDS = {
    "agree": "they agree",
    "doubtful": "doubtful: two right programs differ by so much less than once in 20 times. Run both again with another seed, and "
    "the peer with more live points (n_live=2000), before you use either",
    "disagree": "THEY DISAGREE: one has missed a part of a posterior, or its error is too small. Use neither. Run "
    'compare(..., explore="thorough") with another seed and the peer with more live points (n_live=2000), and look at the '
    "posteriors of the model whose ln Z differ",
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

    @property
    def sigmas(self) -> float:
        from scipy.stats import norm

        return float(norm.isf(0.5 * self.p_value)) if self.p_value > 0 else math.inf

    @property
    def agreement(self) -> str:
        """One of "agree" (above p = 0.05), "doubtful" (down to 0.003, 3 sigmas) and "disagree"."""
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
) -> Crosscheck:
    """Run the models of `result` by `with_`, "dynesty" or "nautilus", and set both answers side by side.

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
    _need(with_)
    theirs, calls = {}, {}
    for k, name in enumerate(result.names):
        theirs[name], calls[name] = _one(PEERS[with_], models[name], data, n_live, seed + k)
    chi2, p_value = disagreement(result, theirs)
    return Crosscheck(
        with_, result.names, {name: result.log_evidence(name) for name in result.names}, theirs, chi2, p_value, calls,
        result.evaluations["likelihood"], _log_bayes_factors(result, theirs),
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


def _need(peer: str) -> None:
    try:
        importlib.import_module(peer)
    except ImportError:
        package = {"nautilus": "nautilus-sampler"}.get(peer, peer)
        raise SupermodelError(f"the peer {peer!r} is not installed. Install it: pip install {package}") from None


Peer = Callable[[ForNested, int, int], tuple[Estimate, int]]


def _one(peer: Peer, model: Model, data: Any, n_live: int, seed: int) -> tuple[Estimate, int]:
    arguments = to_dynesty(model, data, seed=seed)
    if arguments.dimension == 0:
        return Estimate(float(arguments.log_likelihood(np.zeros(0))), 0.0), 1
    return peer(arguments, n_live, seed)


def _dynesty(f: ForNested, n_live: int, seed: int) -> tuple[Estimate, int]:
    import dynesty

    sampler = dynesty.NestedSampler(
        f.log_likelihood, f.prior_transform, f.dimension, nlive=n_live, rstate=np.random.default_rng(seed)
    )
    sampler.run_nested(dlogz=0.01, print_progress=False)
    found = sampler.results
    return Estimate(float(found.logz[-1]), float(found.logzerr[-1])), int(np.sum(found.ncall))


def _nautilus(f: ForNested, n_live: int, seed: int) -> tuple[Estimate, int]:
    import nautilus

    sampler = nautilus.Sampler(
        f.prior_transform_at, f.log_likelihood_at, n_dim=f.dimension, n_live=max(n_live, 20 * f.dimension),
        vectorized=True, pass_dict=False, seed=seed,
    )  # fmt: skip
    sampler.run(verbose=False)
    # nautilus gives no error of ln Z; that of an importance sampler of its effective size is the usual stand-in.
    return Estimate(float(sampler.log_z), max(float(sampler.n_eff) ** -0.5, 0.01)), int(sampler.n_like)


PEERS: dict[str, Peer] = {"dynesty": _dynesty, "nautilus": _nautilus}
