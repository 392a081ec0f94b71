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
REGIONS = 6  # parameters up to which UltraNest draws from its regions; beyond it slices
LOWEST = -1e300  # ln L of what is impossible, for peers that take no infinity
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
    """Static nested sampling, one replaced point after the other; cut off, ln Z so far with what may be missing as its error.

    Its walks are longer than its own 25 steps, with which a posterior of 20 parameters came out 3 of its errors too high and, in a
    corner of the prior, 7 too low. Into corners it still finds its way badly: then more live points are needed.
    """
    import dynesty

    way = "unif" if f.dimension <= UNIFORM else "rwalk" if f.dimension <= WALKS else "rslice"
    best, error, is_done, sampler = math.nan, math.inf, False, None
    try:
        sampler = dynesty.NestedSampler(
            watch.counted(f.log_likelihood), f.prior_transform, f.dimension, nlive=n_live, sample=way,
            rstate=np.random.default_rng(seed), walks=20 + 4 * f.dimension,
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
            # Where the likelihood is all but flat, dynesty's information rounds below 0 and its error is NaN.
            error = error if math.isfinite(error) else n_live**-0.5
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


def by_ultranest(f: ForNested, n_live: int, seed: int, watch: Watch) -> Found:
    """MLFriends, and slices beyond 6 parameters. Its error is a bootstrap's; cut off in the midst of its one pass it has none."""
    import ultranest
    from ultranest import stepsampler

    def of_finite(u: np.ndarray) -> np.ndarray:
        return np.maximum(counted(u), LOWEST)

    counted = watch.counted(f.log_likelihood_at)
    best, error, is_done, before = math.nan, math.inf, False, np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002  # it draws from NumPy's global generator, which gets its state back
    try:
        with _silent("ultranest"):
            sampler = ultranest.ReactiveNestedSampler(
                [f"x{i}" for i in range(f.dimension)], of_finite, f.prior_transform_at, vectorized=True,
            )  # fmt: skip
            if f.dimension > REGIONS:
                sampler.stepsampler = stepsampler.SliceSampler(
                    nsteps=4 * f.dimension, generate_direction=stepsampler.generate_mixture_random_direction
                )
            found = sampler.run(
                min_num_live_points=n_live, max_num_improvement_loops=0, show_status=False, viz_callback=False
            )
        best, error, is_done = float(found["logz"]), float(found["logzerr"]), True
    except Late:
        pass
    finally:
        np.random.set_state(before)  # noqa: NPY002
    return Found(Estimate(best, error), watch.calls, is_done)


def by_nessai(f: ForNested, n_live: int, seed: int, watch: Watch) -> Found:
    """Importance nested sampling with normalising flows, in the cube; its flows need a thousand points and more of a level."""
    import tempfile

    from nessai.flowsampler import FlowSampler
    from nessai.livepoint import live_points_to_array
    from nessai.model import Model as NessaiModel

    counted = watch.counted(f.log_likelihood_at)

    class Cube(NessaiModel):
        def __init__(self) -> None:
            self.names = [f"u{i}" for i in range(f.dimension)]
            self.bounds = dict.fromkeys(self.names, [0.0, 1.0])

        def log_prior(self, x: Any) -> np.ndarray:
            return np.log(self.in_bounds(x), dtype=float)

        def log_likelihood(self, x: Any) -> np.ndarray:
            u = np.asarray(live_points_to_array(x, self.names), float)
            found = np.maximum(counted(f.prior_transform_at(u)), LOWEST)
            return found if np.ndim(x) else found[0]

        def to_unit_hypercube(self, x: Any) -> Any:
            return x.copy()

        def from_unit_hypercube(self, x: Any) -> Any:
            return x.copy()

    best, error, is_done = math.nan, math.inf, False
    with tempfile.TemporaryDirectory() as folder, _silent("nessai"):
        try:
            sampler = FlowSampler(
                Cube(), output=folder, importance_nested_sampler=True, nlive=max(n_live, 1000), seed=seed, resume=False,
                plot=False, checkpointing=False, signal_handling=False,
            )  # fmt: skip
            sampler.run(plot=False, save=False)
            best, error, is_done = float(sampler.log_evidence), float(sampler.log_evidence_error), True
        except Late:
            pass
    return Found(Estimate(best, error), watch.calls, is_done)


@contextlib.contextmanager
def _silent(logger: str) -> Iterator[None]:
    """Without the lines that a peer logs: what it has to say is in `Found`."""
    import logging

    own = logging.getLogger(logger)
    before, own.disabled = (own.level, own.disabled), True
    own.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        own.disabled = before[1]
        own.setLevel(before[0])


PEERS: dict[str, Callable[[ForNested, int, int, Watch], Found]] = {
    "dynesty": by_dynesty,
    "nautilus": by_nautilus,
    "ultranest": by_ultranest,
    "nessai": by_nessai,
}


def need(peer: str) -> None:
    """Refuse a peer that is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the libraries that it imports
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
