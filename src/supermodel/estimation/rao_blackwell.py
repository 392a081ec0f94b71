r"""Rao-Blackwell: every draw is shared among the models by its own conditional of alpha."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from supermodel.estimation.conditional import log_combined, log_marginal, record_of
from supermodel.estimation.error import autocorrelation_time, covariance_of_means, influence_of, log_mean_exp
from supermodel.estimation.estimate import Evidences
from supermodel.estimation.tail import pareto_k
from supermodel.sampling.draws import Draws


def shares(draws: Draws) -> Evidences:
    r"""$\ln Z_k = \ln E_u[J_k(u)/\bar J(u)]$ + const, with $\bar J(u) = \int p(\alpha) J(u; f(\alpha))\,d\alpha$.

    The positions follow $\bar J$ once alpha is integrated out, so the mean of $J_k/\bar J$ is $Z_k/\int\bar J$ for
    every combination and every coordinate, whether it reaches the corners or not. For `mixture` $\bar J = \sum_k \bar
    w_k e^{\eta_k} J_k$ and this is errata 3.4; for `product`, `blend` and the rest it is the mean conditional density
    at the corner over the prior density there. Each model has its own log-mean: shares that round to 1 keep their
    digits, and swapping models is exact.

    It must hold that the chains move between the models (global equilibrium): see `diagnostics.crossings`. And where
    the coordinate stops short of a model ($e^\alpha$ on a short interval), the rest of the way is one of reweighting:
    exact for `mixture`, but on `blend` and `product` hopeless if `details["pareto_k"]` of that model exceeds 0.7; its
    error is then infinite. (For a model that is reached the shares are bounded, and a large k only says that few
    draws hold its share.)
    """
    terms = log_shares(draws)
    log_means = log_mean_exp(terms)
    covariance = covariance_of_means(influence_of(terms, log_means))
    tails = [pareto_k(terms[..., k]) for k in range(terms.shape[-1])]
    unreached = [k for k in range(terms.shape[-1]) if _is_unreached(draws, k)]
    for k in unreached:
        covariance[k, k] = covariance[k, k] if tails[k] <= 0.7 else np.inf
    by_chain = logsumexp(terms, axis=1) - np.log(terms.shape[1]) - draws.supermodel.tilt
    details = {
        "estimator": "shares",
        "by_chain": by_chain,
        "tau": _taus(terms, log_means),
        "pareto_k": tails,
        "unreached": [draws.names[k] for k in unreached],
    }
    return Evidences(draws.names, log_means - draws.supermodel.tilt, covariance, False, details)


def _is_unreached(draws: Draws, k: int) -> bool:
    supermodel = draws.supermodel
    return supermodel.combine != "mixture" and supermodel.coordinate.corner(k) is None


def log_shares(draws: Draws) -> np.ndarray:
    r"""$\ln(e^{\eta_k} J_k / \bar J)$: (chains, draws, K)."""
    tilted = np.asarray(draws.log_joints, float) + draws.supermodel.tilt
    return tilted - log_marginal(draws).reshape(*tilted.shape[:2], 1)


def _taus(terms: np.ndarray, log_means: np.ndarray) -> list[float]:
    """The autocorrelation time of each model's share."""
    influence = influence_of(terms, log_means)
    return [autocorrelation_time(influence[..., k]) for k in range(terms.shape[-1])]


def density(draws: Draws, alpha: np.ndarray) -> np.ndarray:
    r"""$p(\alpha \mid D) = E_u[p(\alpha \mid u, D)]$ on a grid of alpha: no bins, no bandwidth, good to the very ends.

    `alpha` is (M,) for a line, hats or rungs (then a probability), (M, K) on a simplex.
    """
    supermodel, coordinate = draws.supermodel, draws.supermodel.coordinate
    alpha = np.asarray(alpha, int if coordinate.is_discrete else float)
    weights, log_prior = coordinate.weights_of(alpha), coordinate.log_prior_of(alpha)
    record, total, start = record_of(draws), np.full(len(alpha), -np.inf), 0
    marginal = log_marginal(draws)
    for part in record.chunks(len(alpha) * (1 if record.predictions is None else record.predictions.shape[-1])):
        rows = marginal[start : start + len(part.tilted)]
        start += len(rows)
        total = np.logaddexp(total, logsumexp(log_combined(supermodel, part, weights) - rows[:, None], axis=0))
    return np.exp(total - np.log(len(marginal)) + log_prior)
