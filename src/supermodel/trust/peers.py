"""Nested samplers that others have written, run within a limit on time and with one line on what they warned of."""

from __future__ import annotations

import contextlib
import importlib
import math
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from supermodel.errors import SupermodelError
from supermodel.estimation.estimate import Estimate
from supermodel.models.adapters.to_nested import ForNested

LEFT = 0.1  # nats of evidence that live points may still hold when dynesty ends; it then adds them
UNIFORM, WALKS = (
    3,
    20,
)  # parameters up to which dynesty draws from its ellipsoids, and up to which it walks; beyond it slices
LATE = 1.5  # times the time it has, after which a sampler is left in the midst of a step


class Found(NamedTuple):
    """ln Z as far as a peer came, its likelihood calls, and whether it came to its own end."""

    log_evidence: Estimate
    calls: int
    is_done: bool


class Late(Exception):
    """Raised from a likelihood, since nothing else is called while a sampler is at work."""


class Watch:
    """The clock of one run of a peer: what is left of its time, and a line for whoever looks."""

    def __init__(self, seconds: float, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic):
        self.seconds, self.tell, self.clock = seconds, tell, clock
        self.began, self.calls, self.answer = clock(), 0, ""

    @property
    def spent(self) -> float:
        return self.clock() - self.began

    @property
    def is_over(self) -> bool:
        return self.spent > self.seconds

    def counted(self, function: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], Any]:
        """The likelihood, which counts its calls and says how far the run is."""

        def called(x: np.ndarray) -> Any:
            if self.spent > LATE * self.seconds:
                raise Late
            self.calls += 1 if np.ndim(x) == 1 else len(x)
            limit = f" of at most {self.seconds:.0f}" if math.isfinite(self.seconds) else ""
            self.tell(f"{self.calls} calls{self.answer} · {self.spent:.0f}{limit} s")
            return function(x)

        return called


def by_dynesty(f: ForNested, n_live: int, seed: int, watch: Watch) -> Found:
    """Static nested sampling, one replaced point after the other; cut off, ln Z so far with what may be missing as its error."""
    import dynesty

    way = "unif" if f.dimension <= UNIFORM else "rwalk" if f.dimension <= WALKS else "rslice"
    best, error, is_done, sampler = math.nan, math.inf, False, None
    try:
        sampler = dynesty.NestedSampler(
            watch.counted(f.log_likelihood), f.prior_transform, f.dimension, nlive=n_live, sample=way,
            rstate=np.random.default_rng(seed),
        )  # fmt: skip
        for step in sampler.sample(dlogz=LEFT):
            best, error = float(step.logz), math.hypot(math.sqrt(max(step.logzvar, 0.0)), float(step.delta_logz))
            watch.answer = f" · ln Z {best:.2f}, at most {float(step.delta_logz):.2g} more"
            if watch.is_over:
                break
        else:
            is_done = True
            for _ in sampler.add_live_points():
                pass
            best, error = float(sampler.results.logz[-1]), float(sampler.results.logzerr[-1])
    except Late:
        pass
    return Found(Estimate(best, error), watch.calls, is_done)


def by_nautilus(f: ForNested, n_live: int, seed: int, watch: Watch) -> Found:
    """Importance nested sampling, which keeps its time by itself."""
    import nautilus

    best, error, is_done = math.nan, math.inf, False
    try:
        sampler = nautilus.Sampler(
            f.prior_transform_at, watch.counted(f.log_likelihood_at), n_dim=f.dimension, n_live=max(n_live, 20 * f.dimension),
            vectorized=True, pass_dict=False, seed=seed,
        )  # fmt: skip
        is_done = bool(sampler.run(verbose=False, timeout=watch.seconds))
        # nautilus gives no error of ln Z; that of an importance sampler of its effective size is the usual stand-in. Before
        # its shells reach the top, ln Z is a lower bound.
        best, error = float(sampler.log_z), max(float(sampler.n_eff) ** -0.5, 0.01) if is_done else math.inf
    except Late:
        pass
    return Found(Estimate(best, error), watch.calls, is_done)


PEERS: dict[str, Callable[[ForNested, int, int, Watch], Found]] = {"dynesty": by_dynesty, "nautilus": by_nautilus}


def need(peer: str) -> None:
    """Refuse a peer that is not installed."""
    try:
        importlib.import_module(peer)
    except ImportError:
        package = {"nautilus": "nautilus-sampler"}.get(peer, peer)
        raise SupermodelError(f"the peer {peer!r} is not installed. Install it: pip install {package}") from None


@contextlib.contextmanager
def gathered() -> Iterator[list[str]]:
    """The warnings of what is run within, gathered and not shown: a peer may have hundreds of one kind."""
    told: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: told.append(" ".join(str(message).split()))
        yield told
