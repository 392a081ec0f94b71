"""What the paper leaves to future work: products, tempering, HMC, and Rao-Blackwell with a tilt (Sec. 3.2, 6)."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from supermodel import exact
from supermodel.embedding import coordinate as coordinates
from supermodel.embedding.supermodel import Supermodel
from supermodel.estimation.by_alpha.precision import overlap_by_quadrature
from supermodel.estimation.estimate import Estimate
from supermodel.estimation.mbar import mbar
from supermodel.estimation.path_integral import path_integral
from supermodel.estimation.rao_blackwell import shares
from supermodel.models.model import Model
from supermodel.sampling.draws import Draws
from supermodel.verdict.diagnostics import autocorrelation_time
from supermodel_paper import examples
from supermodel_paper.combined_model import few
from supermodel_paper.examples import LINEAR, SINE, linear_exact
from supermodel_paper.figures import BLUE, INK, MUTED, RED, canvas, say
from supermodel_paper.numbers import Number, Part, Picture, Quoted, measured
from supermodel_paper.runs import Runs, cost, first_part
from supermodel_paper.sharing import with_companions


def _predictions(runs: Runs) -> Draws:
    # Each step takes powers of all predictions on all rungs: dear, and the answer needs few.
    draws = max(8, runs.settings.own // 4 // 20 // runs.settings.chains)
    return runs.sample(product_of_predictions()[0], "product of predictions", thin=20, draws=draws)


def _tempered(runs: Runs) -> Draws:
    s = runs.settings
    supermodel = examples.supermodel("linear", tilt=LINEAR)
    return runs.sample(supermodel, "tempered", sampler="tempered", thin=5, chains=s.chains // 4, draws=s.hmc)


def _every_step(runs: Runs) -> Draws:
    return runs.sample(with_companions("posterior"), "Metropolis, every step", thin=1, draws=runs.settings.hmc)


def _hmc(runs: Runs) -> Draws:
    s = runs.settings
    return runs.sample(with_companions("posterior"), "HMC", thin=1, sampler="hmc", chains=s.chains // 4, draws=s.hmc)


JOBS: dict[str, Any] = {
    "product, linear": lambda runs: runs.sample(product_of_likelihoods("linear"), "product, linear", thin=20),
    "product, sine": lambda runs: runs.sample(product_of_likelihoods("sine"), "product, sine", thin=20),
    "product of predictions": _predictions,
    "tempered": _tempered,
    "Metropolis, every step": _every_step,
    "HMC": _hmc,
}


def products(runs: Runs) -> Part:
    """Products of likelihoods and of predictions (G1, G2)."""
    linear, sine, predictions = (
        runs.job(name, JOBS[name]) for name in ("product, linear", "product, sine", "product of predictions")
    )
    truth = product_of_predictions()[1]
    integrand = _path()
    numbers = [
        Number(
            "G1",
            "−∫E[ln L₁ − ln L₂] dα, closed form and quadrature",
            -integrand,
            exact=LINEAR,
            tolerance=1e-8,
            paper=Quoted("future work"),
        )
    ]
    for draws, name, value in ((linear, "linear", LINEAR), (sine, "sine", SINE)):
        for estimator, label in ((path_integral, "path integral"), (mbar, "MBAR")):
            numbers.append(
                measured(
                    "G1",
                    f"ln B₂₁ by L₁^α L₂^(1−α), {name}, {label}",
                    estimator(draws.thin(max(1, draws.alpha.size // 20_000))).log_bayes_factor("M2", "M1"),
                    value,
                    evaluations=cost(draws),
                )
            )
    numbers += [
        Number(
            "G1",
            "smallest second difference of ln Z(α): convex",
            _convexity(),
            bounds=(-1e-9, math.inf),
            remark="p(α) never has an interior maximum.",
        ),
        measured(
            "G2",
            "ln B₂₁ by M₁^α M₂^(1−α), positive predictions",
            shares(few(predictions)).log_bayes_factor("M2", "M1"),
            truth,
            evaluations=cost(predictions),
            paper=Quoted("future work"),
            remark="Linear data with priors that keep predictions positive; with the paper's unit priors they are "
            "not, and the library refuses.",
        ),
    ]
    text = (
        "Geometric instead of arithmetic combinations. On the path between the likelihoods the Bayes factor is an "
        "integral (errata 3.5), and no end needs to be sampled well. Rungs are even in logit α, because θ₂ leaves "
        "its prior at α ≈ 10⁻⁵ already."
    )
    return Part("Products of likelihoods and of models", text, numbers, [_figure_path(linear)])


@cache
def product_of_likelihoods(example: str) -> Supermodel:
    """The product on rungs: geometric ones for the linear data, even ones for the sine."""
    models = examples.linear_models() if example == "linear" else examples.sine_models()
    if example == "linear":
        # Even in logit alpha, for Z(alpha) is steep at both ends; and balanced, each rung by its own evidence.
        f = np.concatenate([[0.0], np.geomspace(1e-6, 0.5, 24), 1 - np.geomspace(0.5, 1e-3, 14)[1:], [1.0]])
        rungs = coordinates.Ladder(np.stack([f, 1 - f], axis=1), -np.array([_at_weight(w)[0] for w in f]))
    else:
        f = np.linspace(0, 1, 25)
        rungs = coordinates.Ladder(np.stack([f, 1 - f], axis=1))
    return Supermodel(
        {n: models[n] for n in ("M1", "M2")}, combine="product", coordinate=rungs, data=examples.data(example)
    )


@cache
def product_of_predictions() -> tuple[Supermodel, float]:
    """M1 and M2 with priors close enough to the truth for positive predictions, and their exact ln B21."""
    import numpyro.distributions as dist

    d = examples.data("linear")
    means, sds = {0: 1.0, 1: 0.2, 2: 0.0, 4: 0.1}, {0: 0.1, 1: 0.05, 2: 0.05, 4: 0.01}
    models, evidences = {}, {}
    for name in ("M1", "M2"):
        powers = examples.POWERS[name]
        priors = {f"theta{k}": dist.Normal(means[k], sds[k]) for k in powers}
        models[name] = Model(priors, predict=examples._with_powers(powers), noise=examples.NOISE)
        mean, sd = (np.array([table[k] for k in powers]) for table in (means, sds))
        evidences[name] = exact.LinearGaussian(
            exact.polynomial(d["x"], powers), d["y"], d["sigma"], sd**2, mean
        ).log_evidence
    rungs = coordinates.ladder(6, 2.0)
    return Supermodel(models, combine="blend_product", coordinate=rungs, data=d), evidences["M2"] - evidences["M1"]


def _at_weight(w: float) -> tuple[float, float]:
    """ln Z(w) up to a constant, and E_w[ln L1 - ln L2], both in closed form."""
    m1 = linear_exact("M1")
    D1, b = m1.scaled_design, m1.y / m1.sigma
    D2 = D1 * np.array([1.0, 1.0, 0.0, 1.0])
    precision = np.eye(4) + w * D1.T @ D1 + (1 - w) * D2.T @ D2
    rhs = (w * D1 + (1 - w) * D2).T @ b
    covariance = np.linalg.inv(precision)
    mean = covariance @ rhs
    chi = [float(np.sum((b - D @ mean) ** 2) + np.sum((D @ covariance) * D)) for D in (D1, D2)]
    return 0.5 * float(rhs @ mean - np.linalg.slogdet(precision)[1]), -0.5 * (chi[0] - chi[1])


def _path() -> float:
    """The integral of E_w, with nodes dense where the integrand is steep: w = (e^s - 1)/S."""
    z, g = np.polynomial.legendre.leggauss(120)
    S = float(exact.combined_model_spike(linear_exact("M1"), (2,)).S[0, 0])
    top = math.log1p(S)
    s = 0.5 * top * (1 + z)
    w = np.expm1(s) / S
    e = np.array([_at_weight(x)[1] for x in w])
    return float(np.sum(0.5 * top * g * np.exp(s) / S * e))


def _convexity() -> float:
    return float(np.diff([_at_weight(w)[0] for w in np.linspace(0, 1, 41)], 2).min())


def _figure_path(draws) -> Picture:
    figure, ax = canvas()
    w = 1 / (1 + np.exp(-np.linspace(-14, 7, 200)))
    ax.axhline(0, color=MUTED, linewidth=0.8)
    ax.fill_between(
        np.linspace(-14, 7, 200), -w * (1 - w) * [_at_weight(x)[1] for x in w], color=BLUE, alpha=0.15, linewidth=0
    )
    ax.plot(np.linspace(-14, 7, 200), -w * (1 - w) * [_at_weight(x)[1] for x in w], color=BLUE)
    f = draws.supermodel.coordinate.table[:, 0]
    gap = draws.log_joints[..., 0] - draws.log_joints[..., 1]
    inner = [m for m in range(len(f)) if 0 < f[m] < 1 and np.any(draws.alpha == m)]
    means = [-f[m] * (1 - f[m]) * gap[draws.alpha == m].mean() for m in inner]
    ax.plot(np.log(f[inner] / (1 - f[inner])), means, "o", color=RED, markersize=4.5)
    ax.set(
        xlabel=r"$\ln[\alpha/(1-\alpha)]$", ylabel=r"$-\alpha(1-\alpha)\,E_\alpha[\ln L_1 - \ln L_2]$", xlim=(-14, 7)
    )
    say(ax, 0.4, 0.44, "closed form", BLUE)
    say(ax, 0.4, 0.38, "Metropolis, rung by rung", RED)
    say(ax, -9.2, 0.12, f"area: ln B₂₁ = {LINEAR:.2f}", INK, fontsize=9.5)
    caption = "Path sampling on L₁^α L₂^(1−α), linear data: the integrand over logit α. Its area is ln B₂₁."
    return Picture("path", "Product of likelihoods: the path integral", caption, figure)


def tempering_and_gradients(runs: Runs) -> Part:
    """A tempered sampler, and HMC beside Metropolis (G3, D11)."""
    hot, walk, hmc = (runs.job(name, JOBS[name]) for name in ("tempered", "Metropolis, every step", "HMC"))
    taus = [autocorrelation_time(d.alpha) for d in (walk, hmc)]
    numbers = [
        measured(
            "G3",
            "ln B₂₁, tempered sampler",
            shares(hot).log_bayes_factor("M2", "M1"),
            LINEAR,
            evaluations=cost(hot),
            paper=Quoted("may simplify the sampling"),
        ),
        measured("D11", "ln B₂₁, HMC", shares(hmc).log_bayes_factor("M2", "M1"), LINEAR, evaluations=cost(hmc)),
        Number(
            "D11",
            "τ of α per sample, Metropolis over HMC",
            taus[0] / taus[1],
            bounds=(1.0, math.inf),
            paper=Quoted("HMC reduces correlations", holds=True),
            remark=f"τ = {taus[0]:.0f} steps against {taus[1]:.1f} transitions, θ₂ kept in place by a companion. "
            f"Without one θ₂ is 170 times wider in M₂ than in M₁, no step size suits both, and HMC gains "
            f"nothing.",
        ),
        Number(
            "D11",
            "τ in likelihood evaluations, Metropolis over HMC",
            taus[0] / (taus[1] * cost(hmc) / hmc.alpha.size / 2),
            remark="The paper's caveat: each transition costs many gradients.",
        ),
    ]
    return Part(
        "Other samplers",
        "Parallel tempering, and Hamiltonian Monte Carlo with gradients of ln L_S by automatic differentiation.",
        numbers,
    )


def rao_blackwell(runs: Runs) -> Part:
    """The mean share with a tilt (G6)."""
    numbers = []
    for name, truth, expected in (("linear tilt", LINEAR, 1.994), ("sine tilt", SINE, 1.928)):
        draws = runs[name]
        found = shares(draws)
        estimate = found.log_bayes_factor("M2", "M1")
        numbers.append(
            measured(
                "G6", f"ln B₂₁, Rao-Blackwell, tilt η = ℓ, {name.split()[0]}", estimate, truth, evaluations=cost(draws)
            )
        )
        w = np.exp(
            draws.log_joints[..., 0]
            + draws.supermodel.tilt[0]
            - np.logaddexp(draws.log_joints[..., 0] + draws.supermodel.tilt[0], draws.log_joints[..., 1])
        )
        p = w.mean()
        numbers.append(
            Number(
                "G6",
                f"σ√N of independent draws, {name.split()[0]}",
                float(w.std() / (p * (1 - p))),
                exact=expected,
                tolerance=0.03 * expected,
                decimals=3,
            )
        )
    first = lambda t: examples.sine_log_joint(t[:, :1]) + examples.normal(t[:, 1:], 0.0, 0.05)  # noqa: E731
    box = np.array([[0.9, 1.1], [-0.3, 0.3]])
    for tilt, value in ((0.0, 10.539), (2.0, 4.359)):
        found = overlap_by_quadrature(first, examples.sine_log_joint, box, tilt=tilt, tolerance=1e-7)
        numbers.append(
            Number("G6", f"σ√N by quadrature, sine, tilt {tilt:g}", found.sigma_sqrt_n, exact=value, tolerance=6e-4)
        )
    adaptive = _adaptive_tilt(runs)
    numbers.append(
        measured(
            "G6",
            "ln B₂₁ with a tilt found on the way, linear",
            adaptive[0],
            LINEAR,
            evaluations=adaptive[1],
            remark="A tenth of the untilted chain gives the tilt; no knowledge of ℓ beforehand.",
        )
    )
    text = (
        "Beyond the paper: sample θ with α integrated out, and average the share of M₁ in each draw. With the "
        "tilt at ℓ, σ√N is 2 instead of 54."
    )
    return Part("Rao-Blackwell with a tilt", text, numbers)


def _adaptive_tilt(runs: Runs) -> tuple[Estimate, int]:
    """The untilted chain gives a first answer, which is the tilt of a second, short one."""
    pilot = first_part(runs["linear"], 0.1)
    tilt = round(shares(pilot).log_bayes_factor("M2", "M1").value, 1)
    draws = runs.sample(examples.supermodel("linear", tilt=tilt), f"tilt of {tilt}", thin=50)
    return shares(draws).log_bayes_factor("M2", "M1"), cost(pilot) + cost(draws)
