"""Common parameters shared or replicated, and priors combined as well as likelihoods (Sec. 2.1, 2.1.3)."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from supermodel.embedding.supermodel import Supermodel
from supermodel.estimation.rao_blackwell import shares
from supermodel.jax_scope import float64
from supermodel.sampling.draws import Draws
from supermodel.verdict.diagnostics import autocorrelation_time, crossings
from supermodel_paper import examples
from supermodel_paper.examples import LINEAR, linear_exact
from supermodel_paper.figures import BLUE, RED, canvas, say
from supermodel_paper.numbers import Number, Part, Picture, Quoted, measured
from supermodel_paper.runs import Runs, cost, worst_rhat

NAMES = ("theta0", "theta1", "theta2", "theta4")
OTHERS = ("theta0", "theta1", "theta4")


class Companion(NamedTuple):
    """A Gaussian pseudo-prior of theta2: its mean is that of M1's posterior plus a regression on the other parameters."""

    mean: float
    sd: float
    slope: np.ndarray  # on theta0, theta1, theta4
    centre: np.ndarray

    def location(self, p: Any) -> Any:
        """The mean at parameters {name: value}."""
        return self.mean + sum(s * (p[n] - c) for s, n, c in zip(self.slope, OTHERS, self.centre, strict=True))


def companion(kind: str) -> Companion:
    """Of "prior" (the paper's), "posterior" (M1's posterior of theta2) or "conditional" (the same given the rest)."""
    mean, covariance = linear_exact("M1").posterior
    rest = [0, 1, 3]
    slope = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[rest, 2])
    if kind == "prior":
        return Companion(0.0, 1.0, np.zeros(3), mean[rest])
    if kind == "posterior":
        return Companion(float(mean[2]), math.sqrt(covariance[2, 2]), np.zeros(3), mean[rest])
    return Companion(float(mean[2]), math.sqrt(covariance[2, 2] - slope @ covariance[rest, 2]), slope, mean[rest])


@cache
def with_companions(kind: str) -> Supermodel:
    """The linear mixture, tilted to balance, with a pseudo-prior for theta2 where M2 lacks it."""
    import numpyro.distributions as dist

    q = companion(kind)
    models = examples.linear_models()
    given = {
        "theta2": (lambda p: dist.Normal(q.location(p), q.sd)) if kind == "conditional" else dist.Normal(q.mean, q.sd)
    }
    return Supermodel(
        {n: models[n] for n in ("M1", "M2")}, data=examples.data("linear"), tilt=(LINEAR, 0.0), companions=given
    )


@cache
def replicated_with_companions() -> Supermodel:
    """All parameters twice; each copy follows its own model's posterior while the other model is in charge."""
    import numpyro.distributions as dist

    models = examples.linear_models()
    companions = {}
    for name in ("M1", "M2"):
        mean, covariance = linear_exact(name).posterior
        parameters = list(models[name].priors)
        for i, parameter in enumerate(parameters):
            label = parameter if parameter == "theta2" else f"{name}.{parameter}"
            before = parameters[:i]
            slope = np.linalg.solve(covariance[:i, :i], covariance[:i, i]) if i else np.zeros(0)
            sd = 1.2 * math.sqrt(covariance[i, i] - slope @ covariance[:i, i])  # wider: a user's pilot is not perfect
            companions[label] = _given(name, before, slope, mean, i, sd, dist)
    return Supermodel(
        {n: models[n] for n in ("M1", "M2")},
        data=examples.data("linear"),
        tilt=(LINEAR, 0.0),
        share=False,
        companions=companions,
    )


def _given(name, before, slope, mean, i, sd, dist):
    def companion(p):
        labels = [b if b == "theta2" else f"{name}.{b}" for b in before]
        shift = sum(s * (p[label] - mean[j]) for j, (s, label) in enumerate(zip(slope, labels, strict=True)))
        return dist.Normal(mean[i] + shift, sd)

    return companion


def exact_draws(kind: str, n: int, seed: int) -> Draws:
    """Independent draws of the tilted mixture: half of M1's posterior, half of M2's with its companion of theta2."""
    import jax

    supermodel, q, rng = with_companions(kind), companion(kind), np.random.default_rng(seed)
    first = linear_exact("M1").sample_posterior(rng, n // 2)
    second = np.insert(linear_exact("M2").sample_posterior(rng, n - n // 2), 2, 0.0, axis=1)
    second[:, 2] = q.location(dict(zip(NAMES, second.T, strict=True))) + q.sd * rng.standard_normal(len(second))
    u = np.concatenate([first, second])[rng.permutation(n)]
    u = u[:, [NAMES.index(label) for label in supermodel.labels]]
    with float64():
        logs = np.asarray(jax.jit(jax.vmap(supermodel.log_joints))(u))
    return Draws(supermodel, np.full((1, n), 0.5), logs[None], u[None], {"likelihood": 2 * n, "gradient": 0})


JOBS: dict[str, Any] = {
    "linear with companions": lambda runs: runs.sample(with_companions("posterior"), "linear with companions", thin=10),
    "linear replicated with companions": lambda runs: runs.sample(
        replicated_with_companions(), "linear replicated with companions", thin=10
    ),
}


def companions(runs: Runs) -> Part:
    """Combining priors as well: sigma sqrt(N) of the Rao-Blackwell estimate falls (A8)."""
    numbers, n = [], runs.settings.exact_draws
    labels = {
        "prior": "prior (the paper's)",
        "posterior": "posterior of θ₂",
        "conditional": "posterior of θ₂ given the rest",
    }
    for kind, expected in (("prior", 1.995), ("posterior", 1.75), ("conditional", 1.53)):
        draws = exact_draws(kind, n, runs.settings.seed)
        found = shares(draws)
        estimate = found.log_bayes_factor("M2", "M1")
        scaled = estimate.error * math.sqrt(n)
        numbers.append(
            measured("A8", f"ln B₂₁, companion of θ₂: {labels[kind]}", estimate, LINEAR, evaluations=cost(draws))
        )
        numbers.append(Number("A8", "its σ√N", scaled, exact=expected, tolerance=0.03 * expected, decimals=2))
    draws = runs.job("linear with companions", JOBS["linear with companions"])
    tau = 10 * autocorrelation_time(
        np.exp(draws.log_joints[..., 0] - np.logaddexp(*np.moveaxis(draws.log_joints + draws.supermodel.tilt, -1, 0)))
    )
    base = runs["linear tilt"]
    tau_prior = 50 * shares(base).details["tau"][0]
    numbers += [
        measured(
            "A8",
            "ln B₂₁ by Metropolis with the companion “posterior”",
            shares(draws).log_bayes_factor("M2", "M1"),
            LINEAR,
            evaluations=cost(draws),
        ),
        Number(
            "A18",
            "τ of the share in steps, companion prior over companion posterior",
            tau_prior / tau,
            bounds=(1.0, math.inf),
            remark="A pseudo-prior keeps θ₂ where M₁ will want it: the cure for parameters lost in their prior.",
        ),
    ]
    text = (
        "Any normalised density may stand in for the prior of a parameter that a model does not use. ln B₂₁ "
        "stays, the error falls."
    )
    return Part("Combining priors as well as likelihoods", text, numbers)


def layouts(runs: Runs) -> Part:
    """Shared against replicated parameters (A17, A18)."""
    shared, replicated = runs["linear tilt"], runs["linear replicated"]
    cured = runs.job("linear replicated with companions", JOBS["linear replicated with companions"])
    trips = int(crossings(replicated).round_trips.sum())
    tau_shared = 50 * autocorrelation_time(shared.alpha)
    tau_replicated = 50 * autocorrelation_time(replicated.alpha)
    numbers = [
        measured(
            "A17",
            "ln B₂₁, shared layout",
            shares(shared).log_bayes_factor("M2", "M1"),
            LINEAR,
            evaluations=cost(shared),
        ),
        measured(
            "A17",
            "ln B₂₁, replicated layout with companions",
            shares(cured).log_bayes_factor("M2", "M1"),
            LINEAR,
            evaluations=cost(cured),
            paper=Quoted("does not matter which", holds=True),
        ),
        Number(
            "A17",
            "τ of α in steps, replicated over shared",
            tau_replicated / tau_shared,
            bounds=(1.0, math.inf),
            paper=Quoted("“large”", holds=True),
        ),
        Number(
            "A18",
            "largest R̂ of the replicated run",
            worst_rhat(replicated),
            bounds=(1.05, math.inf),
            paper=Quoted("very difficult to sample", holds=True),
            remark=f"{trips} round trips in {replicated.alpha.size * 50:.1e} steps: the losing model's four "
            f"parameters wander over their priors, of which the posterior fills e^−{_lost():.0f}. No estimate "
            f"from such a run is to be believed, and R̂ says so.",
        ),
        Number(
            "A18",
            "width of M₁'s θ₀ in the replicated run, over its posterior width",
            float(
                replicated.parameters()["M1.theta0"].std() / math.sqrt(linear_exact("M1").posterior_covariance[0, 0])
            ),
            bounds=(10.0, math.inf),
        ),
    ]
    figure, axes = canvas(8, 3.4, 1, 2, sharey=True)
    for ax, draws, title in (
        (axes[0], shared, "shared: chains cross"),
        (axes[1], replicated, "replicated: each stays"),
    ):
        steps = 50 * np.arange(draws.n_draws)[:150]
        for chain, shade in ((0, BLUE), (1, RED)):
            ax.plot(steps, _share_of_m1(draws)[chain, :150] + 0.01 * (1 - 2 * chain), color=shade, linewidth=1.3)
        ax.set(title=title, xlabel="steps", ylim=(-0.05, 1.05))
    axes[0].set_ylabel(r"share of $M_1$")
    say(axes[1], steps[-1] / 2, 0.9, "started in $M_1$", BLUE, ha="center")
    say(axes[1], steps[-1] / 2, 0.1, "started in $M_2$", RED, ha="center")
    caption = (
        "The share of M₁ in each draw along two chains, one started in each model. Sharing the common parameters "
        "lets a chain cross; "
        "replicating them keeps it where it began."
    )
    text = "The posterior of α is the same in both layouts. Sampling it is not."
    return Part(
        "Shared or replicated parameters",
        text,
        numbers,
        [Picture("layouts", "Shared and replicated parameters", caption, figure)],
    )


def _share_of_m1(draws: Draws) -> np.ndarray:
    """P(M1 | alpha, theta) at every draw."""
    with np.errstate(divide="ignore"):
        log_odds = np.log(draws.alpha) - np.log1p(-draws.alpha)
    return expit(log_odds + draws.log_joints[..., 0] - draws.log_joints[..., 1] + draws.supermodel.tilt[0])


def _lost() -> float:
    """-ln of the share of M1's prior that its posterior fills."""
    return -0.5 * float(np.linalg.slogdet(linear_exact("M1").posterior_covariance)[1])
