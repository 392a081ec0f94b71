r"""What all programs are asked: models with known $\ln B$, written once, for JAX and for NumPy alike.

The truth is a closed form, linear algebra or quadrature; of the logistic regressions it is stated how it was found (`LONG`).
"""

from __future__ import annotations

import csv
import importlib.resources
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.special import gammaln, logsumexp

from benchmarks.fire.problem import Problem, Side, normal
from benchmarks.fire.quadrature import linear as linear_evidence

DATA = Path(__file__).resolve().parent / "data"


@dataclass(frozen=True)
class Question:
    """A problem, its title, its class ("smooth" ones are those for which ten times is claimed), and what a call costs."""

    problem: Problem
    title: str
    family: str = ""  # of which larger members are left out once a smaller one has not finished
    size: int = 0
    latency: float = 0.0  # seconds of a call
    programs: tuple[str, ...] = ()  # those that can be asked; none named: all
    facts: Mapping[str, str] = field(default_factory=dict)


def columns(name: str) -> dict[str, np.ndarray]:
    """A table of this folder, or of the library."""
    path = DATA / f"{name}.csv"
    with (
        path.open() if path.exists() else (importlib.resources.files("supermodel.data") / f"{name}.csv").open() as file
    ):
        rows = list(csv.DictReader(file))
    return {key: np.array([float(row[key]) for row in rows]) for key in rows[0] if _is_number(rows[0][key])}


def _is_number(text: str) -> bool:
    return text.replace(".", "").replace("-", "").replace("e", "").isdigit()


def normals(**scales: tuple[int, float]) -> Callable[[], dict]:
    """Priors N(0, scale^2): name = (size, scale), and size 0 is a number."""

    def priors():
        import numpyro.distributions as dist

        return {n: dist.Normal(0, s).expand([k]) if k else dist.Normal(0, s) for n, (k, s) in scales.items()}

    return priors


# -- the paper's two ---------------------------------------------------------------------------------------------------


def sine() -> Problem:
    """The paper's first example; exact by quadrature over one and two parameters."""
    t = columns("sine")

    def free_priors():
        import numpyro.distributions as dist

        return {"omega": dist.Normal(1, 2), "phi": dist.Normal(0, 0.05)}

    def fixed_priors():
        return {"omega": free_priors()["omega"]}

    def likelihood(p, xp):
        angle = p["omega"][..., None] * t["x"] + (p["phi"][..., None] if "phi" in p else 0.0)
        return xp.sum(normal(t["y"], xp.sin(angle), t["sigma"], xp), axis=-1)

    sides = {
        "free": Side(free_priors, likelihood, lambda: 5.0222648001),
        "fixed": Side(fixed_priors, likelihood, lambda: 0.0),
    }
    return Problem("sine", "", sides)


def polynomials(name: str, powers: Mapping[str, tuple[int, ...]], x, y, sigma) -> Problem:
    """Polynomials with unit priors and known noise: exact by linear algebra."""

    def side(chosen: tuple[int, ...]) -> Side:
        def likelihood(p, xp):
            mean = sum(p[f"t{i}"][..., None] * x**i for i in chosen)
            return xp.sum(normal(y, mean, sigma, xp), axis=-1)

        def exact():
            weighted = np.stack([x**i for i in chosen], axis=-1) / sigma[:, None]
            return linear_evidence(weighted, y / sigma, 1.0, 1.0) - np.sum(np.log(sigma))

        return Side(normals(**{f"t{i}": (0, 1.0) for i in chosen}), likelihood, exact)

    return Problem(name, "", {label: side(chosen) for label, chosen in powers.items()})


def paper_linear(name: str, powers: Mapping[str, tuple[int, ...]], noise: float = 1.0) -> Problem:
    """The paper's second example; larger `noise` makes ln B smaller."""
    t = columns("linear")
    return polynomials(name, powers, t["x"], t["y"], noise * t["sigma"])


def five_polynomials() -> Problem:
    """A cubic seen through noise: degrees 1 to 5."""
    rng = np.random.default_rng(5)
    x = np.linspace(-1, 1, 40)
    y = 0.5 - x + 0.8 * x**3 + 0.25 * rng.standard_normal(40)
    powers = {f"degree {k}": tuple(range(k + 1)) for k in (3, 1, 2, 4, 5)}
    return polynomials("five_polynomials", powers, x, y, np.full(40, 0.25))


# -- regressions of many shared parameters -----------------------------------------------------------------------------


def shared_design(d: int, kind: str) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Two designs of d columns that share d - 1, and 3 d data: those of `benchmarks.targets.logistic_models`."""
    rng = np.random.default_rng(0)
    x, truth = rng.standard_normal((3 * d, d + 1)), rng.standard_normal(d + 1)
    eta = x[:, :d] @ truth[:d]
    y = (
        (rng.random(3 * d) < 1 / (1 + np.exp(-eta))).astype(float)
        if kind == "logistic"
        else eta + rng.standard_normal(3 * d)
    )
    return (x[:, :d], np.delete(x, d - 1, axis=1)), y


def eight_or_seven() -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Eight columns or the first seven of them, 500 data."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((500, 8))
    return (x, x[:, :7]), (rng.random(500) < 1 / (1 + np.exp(-x @ rng.standard_normal(8)))).astype(float)


def regressions(name: str, kind: str, labels: Mapping[str, str], shared: int, designs, y, long: float = 0.0) -> Problem:
    """Two regressions with unit priors: `labels` = {model: its own parameter}. Gaussian of unit noise: exact; logistic: `long`."""

    def side(design, own: str, known: float) -> Side:
        rest = design.shape[1] - shared

        def likelihood(p, xp):
            eta = p["b"] @ design[:, :shared].T + (p[own] @ design[:, shared:].T if rest else 0.0)
            if kind == "logistic":
                return xp.sum(y * eta - xp.logaddexp(0.0, eta), axis=-1)
            return xp.sum(normal(y, eta, 1.0, xp), axis=-1)

        exact = (lambda: known) if kind == "logistic" else lambda: float(linear_evidence(design, y, 1.0, 1.0))
        return Side(normals(b=(shared, 1.0), **({own: (rest, 1.0)} if rest else {})), likelihood, exact)

    pairs = zip(labels.items(), designs, (long, 0.0), strict=True)
    return Problem(name, "", {label: side(design, own, known) for (label, own), design, known in pairs})


def shared_regression(d: int, kind: str) -> Problem:
    """d v d parameters of which d - 1 are shared."""
    name = f"{kind}_{d}"
    return regressions(name, kind, {"A": "a", "B": "c"}, d - 1, *shared_design(d, kind), LONG.get(name, (0.0,))[0])


def logistic_8_7() -> Problem:
    return regressions("slow_box", "logistic", {"eight": "c", "seven": ""}, 7, *eight_or_seven(), LONG["slow_box"][0])


# ln B of the logistic regressions, its error, and by what: `python -m benchmarks.peers.long_runs`.
LONG: dict[str, tuple[float, float, str]] = {
    "slow_box": (9.04698, 0.0005, "importance sampling; a long run of ours 9.0480 ± 0.0030"),
    "logistic_10": (3.04663, 0.0016, "importance sampling; a long run of ours 3.0476 ± 0.0027"),
    "logistic_30": (
        0.38597,
        0.0026,
        "a long run of ours; importance sampling 0.406 ± 0.018, Savage-Dickey on NUTS 0.398 ± 0.018",
    ),
    "logistic_100": (-0.0323, 0.0056, "a long run of ours; Savage-Dickey on NUTS -0.049 ± 0.024"),
    "logistic_300": (-0.138, 0.028, "Savage-Dickey on NUTS; a long run of ours -0.166 ± 0.018, whose verdict is fail"),
}
DESIGNS: dict[str, Callable[[], tuple]] = {"slow_box": eight_or_seven} | {
    f"logistic_{d}": lambda d=d: shared_design(d, "logistic") for d in (10, 30, 100, 300)
}


# -- real data ---------------------------------------------------------------------------------------------------------


def eight_schools() -> Problem:
    """Partial pooling (a funnel) against pooling: mu ~ N(0, 20^2), tau ~ HalfCauchy(10); theta and mu integrate out."""
    t = columns("eight_schools")
    y, se = t["effect"], t["se"]

    def partial_priors():
        import numpyro.distributions as dist

        return {**normals(mu=(0, 20.0), z=(8, 1.0))(), "tau": dist.HalfCauchy(10.0)}

    def partial(p, xp):
        return xp.sum(normal(y, p["mu"][..., None] + p["tau"][..., None] * p["z"], se, xp), axis=-1)

    def pooled(p, xp):
        return xp.sum(normal(y, p["mu"][..., None], se, xp), axis=-1)

    def given(tau):
        """ln p(y | tau): noise of variance se^2 + tau^2, and one column of ones."""
        sd = np.sqrt(se**2 + np.square(tau)[..., None])
        weights, flat = np.sum(1 / sd**2, axis=-1), np.sum(y / sd**2, axis=-1)
        alone = np.sum(normal(y, 0.0, sd, np), axis=-1)
        return alone + 0.5 * flat**2 / (weights + 1 / 400) - 0.5 * np.log1p(400 * weights)

    def partial_exact():
        u = (np.arange(200_000) + 0.5) / 200_000  # quantiles of the prior of tau: the midpoint rule
        return float(logsumexp(given(10 * np.tan(0.5 * np.pi * u))) - np.log(len(u)))

    sides = {
        "partial": Side(partial_priors, partial, partial_exact),
        "pooled": Side(normals(mu=(0, 20.0)), pooled, lambda: float(given(np.zeros(())))),
    }
    return Problem("eight_schools", "", sides)


def pima() -> Problem:
    """Diabetes with and without age, coefficients N(0, 10^2) (Friel and Wyse 2012); evidences by quadrature, to 1e-6."""
    t = columns("pima_logistic")
    y = t["type"]
    scaled = [(t[c] - t[c].mean()) / t[c].std(ddof=1) for c in ("npreg", "glu", "bmi", "ped", "age")]
    x = np.column_stack([np.ones(len(y)), *scaled])

    def likelihood(p, xp):
        eta = p["b"] @ x[:, :5].T + (p["age"][..., None] * x[:, 5] if "age" in p else 0.0)
        return xp.sum(y * eta - xp.logaddexp(0.0, eta), axis=-1)

    sides = {
        "without": Side(normals(b=(5, 10.0)), likelihood, lambda: -257.2325883231),
        "with": Side(normals(b=(5, 10.0), age=(0, 10.0)), likelihood, lambda: -259.8576009061),
    }
    return Problem("pima", "", sides)


def inverse_gamma(shape: float, scale: float):
    import numpyro.distributions as dist

    return dist.InverseGamma(shape, scale)


def radiata() -> Problem:
    """Strength of pine on density or on density adjusted for resin: not nested, and scales of 10^2 to 10^5."""
    t = columns("radiata_pine")
    y = t["strength"]

    def side(column: str) -> Side:
        x = t[column] - t[column].mean()

        def priors():
            import numpyro.distributions as dist

            return {
                "alpha": dist.Normal(3000, 1000),
                "beta": dist.Normal(185, 100),
                "sigma2": inverse_gamma(3.0, 180000.0),
            }

        def likelihood(p, xp):
            mean = p["alpha"][..., None] + p["beta"][..., None] * x
            return xp.sum(normal(y, mean, xp.sqrt(p["sigma2"])[..., None], xp), axis=-1)

        def exact():
            """Given sigma the rest is linear; ln sigma2 by the trapezoidal rule."""
            design, rest = np.stack([np.ones_like(x), x], axis=-1), y - 3000 - 185 * x
            v = np.exp(np.linspace(np.log(1e4), np.log(2e6), 2001))
            log_prior = 3 * np.log(180000.0) - gammaln(3) - 4 * np.log(v) - 180000.0 / v
            terms = [linear_evidence(design, rest, np.sqrt(s), np.array([1000.0, 100.0])) for s in v]
            return float(logsumexp(np.array(terms) + log_prior + np.log(v)) + np.log(np.log(v[1] / v[0])))

        return Side(priors, likelihood, exact)

    return Problem("radiata", "", {"resin": side("resin_adjusted_density"), "density": side("density")})


def stopping() -> Problem:
    """Stopping distances of cars: Legendre polynomials of order 0 to 6, and two physical forms; nine models, conjugate.

    The coefficients are sigma times a known scale times z, z ~ N(0, 1), and sigma2 ~ InverseGamma(3, 450).
    """
    t = columns("polynomial_stopping")
    speed, y = t["speed"], t["dist"]
    u = (speed - 14.5) / 10.5
    basis = [40 / 15 * 2.0**-j * np.polynomial.legendre.Legendre.basis(j)(u) for j in range(7)]
    designs = {f"order{k}": (np.stack(basis[: k + 1], axis=-1), 40.0) for k in range(7)}
    designs["origin1"] = (3 * speed[:, None] / 15, 0.0)
    designs["origin2"] = (np.stack([3 * speed / 15, 0.1 * speed**2 / 15], axis=-1), 0.0)

    def side(design, offset) -> Side:
        k = design.shape[1]

        def likelihood(p, xp):
            sd = xp.sqrt(p["sigma2"])[..., None]
            return xp.sum(normal(y, offset + sd * (p["z"] @ design.T), sd, xp), axis=-1)

        def exact():
            """y - offset is Student's t: 6 degrees of freedom, scale matrix 150 (1 + A A^T)."""
            n, r = len(y), y - offset
            matrix = np.eye(n) + design @ design.T
            square = r @ np.linalg.solve(matrix, r)
            closed = 3 * np.log(450.0) - gammaln(3) + gammaln(3 + n / 2) - (3 + n / 2) * np.log(450.0 + square / 2)
            return float(closed - 0.5 * n * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(matrix)[1])

        return Side(lambda: {"sigma2": inverse_gamma(3.0, 450.0), **normals(z=(k, 1.0))()}, likelihood, exact)

    order = ["order1", *(name for name in designs if name != "order1")]
    return Problem("stopping", "", {name: side(*designs[name]) for name in order})


def questions() -> dict[str, Question]:
    """All, in the order in which they are asked and shown."""
    quartic = {"quartic": (0, 1, 2, 4), "line": (0, 1)}
    blind = ("supermodel_black", "dynesty", "nautilus", "ultranest", "pocomc")
    asked = [
        Question(sine(), "sine, 2 v 1 (the paper's)"),
        Question(paper_linear("linear", {"M2": (0, 1, 4), "M1": (0, 1, 2, 4)}), "linear, 3 v 4 (the paper's)"),
        Question(paper_linear("log_b_100", quartic, 15.2), "ln B of 100, 4 v 2"),
        Question(paper_linear("log_b_1000", quartic, 4.96), "ln B of 1000, 4 v 2"),
        Question(eight_schools(), "eight schools, 10 v 1"),
        Question(pima(), "Pima, logistic, 5 v 6"),
        Question(radiata(), "radiata pine, 3 v 3"),
        Question(stopping(), "stopping distance, nine models, 2 to 8"),
        Question(five_polynomials(), "five polynomials, 2 to 6"),
        Question(logistic_8_7(), "logistic 8 v 7, 10 ms a call", latency=0.01, programs=blind),
    ]
    for kind in ("linear", "logistic"):
        asked += [Question(shared_regression(d, kind), f"{kind} {d} v {d}", kind, d) for d in (10, 30, 100, 300)]
    return {question.problem.name: question for question in asked}
