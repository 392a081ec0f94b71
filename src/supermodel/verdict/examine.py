"""What a record of draws says about itself: its estimate, a second one, and the signs of trouble."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from supermodel.embedding.coordinate import Ladder
from supermodel.estimation.conditional import expected_weights, prior_mean_weights, weights_of
from supermodel.estimation.error import capped_time, effective_size, influence_of, log_mean_exp, standard_error
from supermodel.estimation.estimate import Evidences
from supermodel.estimation.mbar import Fit, anchored, fit_models, mbar
from supermodel.estimation.rao_blackwell import log_shares, shares
from supermodel.estimation.tail import pareto_error, pareto_k
from supermodel.sampling.draws import Draws
from supermodel.verdict.diagnostics import crossings, split_rhat

LADDER, CHAIN = "ladder", "chain"  # the engine's rungs between two ends; the paper's chain on (alpha, theta)
LIMIT = 3.0  # -ln 0.05: of an event that n independent draws have not shown, the probability is below 3/n at 95%
EXAMINED = 20_000  # draws beyond which a second look at a chain is taken at a thinned record
NOTHING = 100.0  # nats below the highest at which a draw has no weight
ONE_SIDED = 1.645  # standard errors below which a normal number falls once in twenty
HEAVY, LONG = 0.7, 23  # Pareto k, and rungs, from which on they are worth a word
HOLDS = 0.1  # of all weight: what the largest draw has where weights have no mean
ROUNDING = 2.0**13 * float(np.finfo(float).eps)  # of ln J: what sums over data, and a warp fitted to them, are off by
ROUNDED = 1e-6  # nats apart: no two estimators that are nearer disagree, however small their errors


@dataclass(frozen=True)
class Report:
    """ln Z_first - ln Z_second (of many models: of the least certain pair) and how far it can be trusted."""

    method: str
    value: float
    error: float
    n_chains: int
    n_draws: int
    ess: float
    rhat: float
    crossings: int
    pareto_k: float
    pareto_error: float = 0.0  # of the weights along a ladder
    acceptance: float = float("nan")
    second_value: float = float(
        "nan"
    )  # Rao-Blackwell on a ladder; MBAR of a chain on a `product`, which others have not
    second_error: float = float("nan")
    rungs: int = 0
    start_z: float = 0.0  # chains started at one end against those started at the other, in errors
    drift_z: float = 0.0  # first half against second half
    largest: float = 0.0  # what the largest draw holds of a model's share, or of the weights along a ladder
    occupancy_z: float = 0.0  # of a chain: where alpha was against where its draws say it should have been, in errors
    weakest: str = ""  # of a chain: the model whose share rests on fewest draws

    @property
    def least_k(self) -> float:
        """What Pareto k exceeds at 95%: from some hundred draws it is unsure by 0.2 and more."""
        return self.pareto_k - ONE_SIDED * self.pareto_error

    @property
    def surely_heavy(self) -> float:
        """What is judged: the least that Pareto k can be.

        No more than 1 while no draw holds a tenth of the weight: bounded weights of two kinds (the hills', the prior's) can
        look like a tail without a mean, but in one that is, the largest holds a good part of the sum.
        """
        return self.least_k if self.largest > HOLDS else min(self.least_k, 1.0)

    @property
    def path(self) -> float:
        """Rungs of the path; without end if it is long and its weights surely have a heavy tail: each alone may be harmless."""
        return float("inf") if self.rungs > LONG and self.surely_heavy > HEAVY else self.rungs

    @property
    def disagreement(self) -> float:
        """The two estimators' difference in units of the larger error, or of a millionth of a nat, below which nothing but rounding
        sets them apart; 0 for a chain that has only one.
        """
        if self.method == CHAIN and self.second_value != self.second_value:
            return 0.0
        return abs(self.value - self.second_value) / max(self.error, self.second_error, ROUNDED)

    def figures(self) -> dict[str, float]:
        """All numbers that the method has, as a file keeps them."""
        return {k: float(v) for k, v in vars(self).items() if not isinstance(v, str) and v == v}


def examine(draws: Draws) -> Report:
    """All that a record tells. Draws of a `product` on a ladder are judged as an edge, all others as a chain."""
    if draws.supermodel.combine == "product" and isinstance(draws.supermodel.coordinate, Ladder):
        return _of_ladder(draws)
    return _of_chain(draws)


# -- an edge ------------------------------------------------------------------------------------------------------


def _of_ladder(draws: Draws) -> Report:
    rung, coordinate = np.asarray(draws.alpha).astype(int), _ladder(draws)
    fit, terms = _ends(draws)
    log_means = log_mean_exp(terms)
    influence = fit.influence[..., 0] - fit.influence[..., 1]
    share = np.subtract(*np.moveaxis(influence_of(terms, log_means), -1, 0))
    value, error = fit.difference(0, 1)
    # Where the warp is exact nothing scatters but rounding: an error is never below that floor.
    # Draws where a density is nothing (far out in the prior) have large logarithms and no weight: they do not count.
    counted = draws.log_joints[draws.log_joints > draws.log_joints.max(axis=(0, 1)) - NOTHING]
    floor = ROUNDING * float(np.max(np.abs(counted), initial=1.0))
    chains, n = rung.shape
    tail, tail_error, largest = _tail(draws, rung == coordinate.corner(1))
    # What limits the answer is the slowest of: the influence itself and the walk along the ladder.
    tau = max(capped_time(influence), capped_time(rung.astype(float)))
    ess = rung.size / tau
    ends = np.array([np.mean(rung == coordinate.corner(k)) for k in (0, 1)])
    if ends.min() == 0:
        prior = coordinate.log_prior_table[[coordinate.corner(0), coordinate.corner(1)]]
        value, error = _limit(ends, prior, ess), np.inf
    elif not fit.is_connected:
        value = np.nan
    return Report(
        method=LADDER,
        value=value,
        error=max(error, floor),
        n_chains=chains,
        n_draws=rung.size,
        ess=ess,
        rhat=_rhat(share),
        crossings=int(crossings(draws).passages.sum()),
        pareto_k=tail,
        pareto_error=tail_error,
        largest=largest,
        acceptance=float(draws.info.get("acceptance", np.nan)),
        second_value=float(log_means[0] - log_means[1]),
        second_error=max(_finite_error(share), floor),
        rungs=coordinate.n_rungs,
        start_z=_z(influence[: chains // 2], influence[chains // 2 :], floor),
        drift_z=_z(influence[:, : n // 2], influence[:, n // 2 :], floor),
    )


def anchor_of(draws: Draws) -> np.ndarray | None:
    """What stands for the second end of an edge: ln of a density of evidence 1 at every draw; None: its own."""
    hills = _log_hills(draws)
    return None if hills is None or anchored(*fit_models(draws), hills) is None else hills


def _log_hills(draws: Draws) -> np.ndarray | None:
    """ln of the hills of an edge's reference at every draw (chains, draws), if there is a prior beside them."""
    reference = draws.supermodel.reference
    if reference is None or reference.prior_share == 0:
        return None
    shape = draws.log_joints.shape[:2]
    return reference.hills.log_density(np, draws.position.reshape(shape[0] * shape[1], -1)).reshape(shape)


def _ends(draws: Draws) -> tuple[Fit, np.ndarray]:
    """ln Z of both ends by MBAR, and their shares in every draw."""
    fit, states = fit_models(draws)
    terms, hills = log_shares(draws), _log_hills(draws)
    found = None if hills is None else anchored(fit, states, hills)
    if hills is None or found is None:
        return fit, terms
    return found, np.stack([terms[..., 0], terms[..., 1] + hills - draws.log_joints[..., 1]], axis=-1)


def _ladder(draws: Draws) -> Ladder:
    assert isinstance(draws.supermodel.coordinate, Ladder)  # `examine` has asked
    return draws.supermodel.coordinate


def _limit(visits: np.ndarray, log_prior: np.ndarray, ess: float) -> float:
    """The 95% limit on ln Z_first - ln Z_second when one (of shares `visits`) was never seen; NaN when neither was.

    Logarithms of the prior: along a path of 1000 nats its ends differ by more than a number can hold.
    """
    if visits.max() == 0:
        return float("nan")
    first, second = np.log(np.where(visits > 0, visits, min(LIMIT / ess, 1.0))) - log_prior
    return float(first - second)


def _tail(draws: Draws, here: np.ndarray) -> tuple[float, float, float]:
    """Pareto k of the weights that lead from the second end to the first, its error, and what the largest holds of their sum;
    all 0 where the weights are bounded, as those of a reference that holds the prior are.
    """
    with np.errstate(invalid="ignore"):
        gap = (draws.log_joints[..., 0] - draws.log_joints[..., 1])[here]
    gap = gap[np.isfinite(gap)]
    k = float(pareto_k(gap)) if len(gap) >= 50 else 0.0
    if k == 0.0:
        return 0.0, 0.0, 0.0
    return k, pareto_error(k, len(gap)), float(np.exp(gap.max() - np.logaddexp.reduce(gap)))


def _rhat(share: np.ndarray) -> float:
    """Split R-hat; 1 where nothing moves but rounding."""
    value = split_rhat(share)
    return 1.0 if np.isnan(value) and np.all(np.isfinite(share)) else value


def _finite_error(x: np.ndarray) -> float:
    error = standard_error(x)
    return error if error == error else float("inf")


def _z(a: np.ndarray, b: np.ndarray, floor: float) -> float:
    """Difference of two means in their joint error; 0 where one of them has no draw (the effective size then speaks)."""
    if min(a.size, b.size) == 0:
        return 0.0
    error = np.hypot(_finite_error(a), _finite_error(b))
    return float(abs(a.mean() - b.mean()) / max(error, floor))


# -- the paper's chain --------------------------------------------------------------------------------------------


def evidences_of(draws: Draws) -> Evidences:
    """ln Z of every model from a chain by Rao-Blackwell; a model without any share gets its 95% limit, error infinite."""
    found, terms = shares(draws), log_shares(draws)
    unseen = np.all(np.isneginf(terms), axis=(0, 1))
    if not unseen.any() or unseen.all() or draws.supermodel.combine not in ("mixture", "index"):
        return found
    # The share of all models that were seen is 1; what was not seen has a probability below 3 / ESS.
    tau = max(capped_time(x) for x in np.moveaxis(weights_of(draws), -1, 0))
    best = int(np.argmax(np.where(unseen, -np.inf, found.values)))
    prior, values = prior_mean_weights(draws.supermodel.coordinate), found.values.copy()
    tilt = draws.supermodel.tilt
    for k in np.flatnonzero(unseen).tolist():
        seen = prior[best] * np.exp(log_mean_exp(terms)[best])
        ratio = _limit(np.array([0.0, seen]), np.log(prior[[k, best]]), terms[..., 0].size / tau)
        values[k] = values[best] + tilt[best] + ratio - tilt[k]
    return Evidences(
        found.names, values, found.covariance, found.absolute, {**found.details, "limit_probability": 0.95}
    )


def least_certain(evidences: Evidences) -> tuple[str, str]:
    """The best model and the one whose Bayes factor with it is least certain."""
    known = np.where(np.isfinite(np.diagonal(evidences.covariance)), evidences.values, -np.inf)
    best = evidences.names[int(np.nanargmax(known))]
    return best, max((n for n in evidences.names if n != best), key=lambda n: evidences.log_bayes_factor(best, n).error)


def _of_chain(draws: Draws) -> Report:
    terms = log_shares(draws)
    influence = influence_of(terms, log_mean_exp(terms))
    evidences = evidences_of(draws)
    pair = least_certain(evidences)
    estimate, few = evidences.log_bayes_factor(*pair), draws.thin(max(1, draws.n_chains * draws.n_draws // EXAMINED))
    # On a `product` path a parameter that one model lacks is lost in its prior within a sliver of alpha at that end. The
    # shares know nothing of it, with every sign of convergence; MBAR, which needs less, then says something else.
    second = None
    if draws.supermodel.combine == "product" and not draws.supermodel.coordinate.is_simplex:
        second = mbar(few).log_bayes_factor(*pair)
    seen = np.all(np.isfinite(influence), axis=(0, 1))
    columns = [influence[..., k] for k in np.flatnonzero(seen)]
    sizes = [size if size == size else terms[..., 0].size for size in map(effective_size, columns)]
    with np.errstate(invalid="ignore"):
        largest = np.exp(terms.max(axis=(0, 1)) - np.logaddexp.reduce(terms, axis=(0, 1)))
    weakest = int(np.argmin(sizes)) if seen.all() else int(np.flatnonzero(~seen)[0])
    return Report(
        method=CHAIN,
        value=estimate.value,
        error=estimate.error,
        n_chains=draws.n_chains,
        n_draws=terms[..., 0].size,
        ess=min(sizes, default=0.0),
        rhat=max(map(_rhat, columns), default=float("nan")),
        crossings=int(crossings(draws).passages.sum()),
        pareto_k=max(pareto_k(terms[..., k]) for k in range(terms.shape[-1])),
        acceptance=float(draws.info.get("acceptance", np.nan)),
        second_value=np.nan if second is None else second.value,
        second_error=np.nan if second is None else second.error,
        largest=float(np.nanmax(largest)),
        occupancy_z=_occupancy(few),
        weakest=draws.names[weakest],
    )


def _occupancy(few: Draws) -> float:
    """Where alpha was against where the draws say it should have been, in errors: the two differ if alpha is stuck."""
    expected = expected_weights(few)
    if expected is None:
        return 0.0
    gap = weights_of(few)[..., 0] - expected[..., 0]
    error = standard_error(gap)
    return float(abs(gap.mean()) / error) if error > 0 else 0.0
