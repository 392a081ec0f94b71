"""Survey scale: light curves by the thousand, beside a loop over `compare` and over dynesty on the same rows.

`python -m benchmarks survey [--rows 10000] [--workers 2] [--peers 4] [--shapes]`. A third flat, a third sines, a third
with a phase; the truth of 200 of them by linear algebra (level and amplitude) and quadrature (frequency and phase).
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist

import supermodel as sm

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "survey.json"
POINTS, LOW, HIGH = 50, 0.1, 2.0


def flat(p, x):
    return p["c"] + 0.0 * x


def sine(p, x):
    return p["c"] + p["A"] * jnp.sin(2 * jnp.pi * p["f"] * x)


def phased(p, x):
    return p["c"] + p["A"] * jnp.sin(2 * jnp.pi * p["f"] * x + p["phi"])


def models() -> dict[str, sm.Model]:
    level = {"c": dist.Normal(0, 1)}
    wave = {**level, "A": dist.Normal(0, 1), "f": dist.Uniform(LOW, HIGH)}
    noise = sm.Gaussian("sigma")
    return {
        "flat": sm.Model(level, predict=flat, noise=noise),
        "sine": sm.Model(wave, predict=sine, noise=noise),
        "phased": sm.Model({**wave, "phi": dist.Uniform(0, 2 * np.pi)}, predict=phased, noise=noise),
    }


def curves(n: int, seed: int = 1) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Light curves of 50 points at irregular times, and which model made each."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0, 10, (n, POINTS)), axis=1)
    sigma = rng.uniform(0.5, 1.5, (n, 1)) * np.ones((n, POINTS))
    kind = rng.integers(0, 3, n)
    c, amplitude = rng.normal(size=(2, n, 1))
    f, phi = rng.uniform(LOW, HIGH, (n, 1)), rng.uniform(0, 2 * np.pi, (n, 1))
    wave = np.where(kind[:, None] > 0, amplitude, 0.0) * np.sin(
        2 * np.pi * f * x + np.where(kind[:, None] == 2, phi, 0.0)
    )
    return {"x": x, "y": c + wave + sigma * rng.normal(size=(n, POINTS)), "sigma": sigma}, kind


def exact(x: np.ndarray, y: np.ndarray, sigma: np.ndarray, n_f: int = 1500, n_phi: int = 64) -> np.ndarray:
    """ln Z of the three models: level and amplitude are linear with N(0, 1) priors, the rest is quadrature."""

    def linear(design):
        w = design / sigma[:, None]
        gram = np.einsum("...nk,...nl->...kl", w, w) + np.eye(design.shape[-1])
        b = np.einsum("...nk,n->...k", w, y / sigma)
        fit = np.einsum("...k,...k->...", b, np.linalg.solve(gram, b[..., None])[..., 0])
        constant = -0.5 * np.sum((y / sigma) ** 2) - np.log(sigma).sum() - 0.5 * len(y) * np.log(2 * np.pi)
        return constant + 0.5 * fit - 0.5 * np.linalg.slogdet(gram)[1]

    def mean(values):
        return np.logaddexp.reduce(np.ravel(values)) - np.log(np.size(values))

    f = LOW + (HIGH - LOW) * (np.arange(n_f) + 0.5) / n_f
    s, c = np.sin(2 * np.pi * f[:, None] * x), np.cos(2 * np.pi * f[:, None] * x)
    ones = np.ones_like(s)
    phases = 2 * np.pi * (np.arange(n_phi) + 0.5) / n_phi
    turned = [linear(np.stack([ones, s * np.cos(p) + c * np.sin(p)], -1)) for p in phases]
    return np.array([linear(ones[0][:, None]), mean(linear(np.stack([ones, s], -1))), mean(turned)])


def by_dynesty(x: np.ndarray, y: np.ndarray, sigma: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """ln Z and errors by dynesty with its defaults, a plain NumPy likelihood for each model."""
    import dynesty
    from scipy.special import ndtri

    constant = -np.log(sigma).sum() - 0.5 * len(y) * np.log(2 * np.pi)
    predictions = (
        lambda p: p[0],
        lambda p: p[0] + p[1] * np.sin(2 * np.pi * p[2] * x),
        lambda p: p[0] + p[1] * np.sin(2 * np.pi * p[2] * x + p[3]),
    )

    def from_cube(u):
        return np.concatenate([ndtri(u[:2]), LOW + (HIGH - LOW) * u[2:3], 2 * np.pi * u[3:4]])

    found = []
    for k, predict in enumerate(predictions):
        sampler = dynesty.NestedSampler(
            lambda p, predict=predict: constant - 0.5 * np.sum(((y - predict(p)) / sigma) ** 2),
            from_cube, (1, 3, 4)[k], rstate=np.random.default_rng((seed, k)),
        )  # fmt: skip
        sampler.run_nested(print_progress=False)
        found.append((sampler.results.logz[-1], sampler.results.logzerr[-1]))
    value, error = np.array(found).T
    return value, error


def scores(table, truth: dict[int, np.ndarray]) -> dict[str, dict[str, float]]:
    """Spread of (estimate - truth) / error by pair, over the rows whose truth is known."""
    found = {}
    names = list(models())
    for (first, second), rows in table.groupby(["first", "second"], sort=False):
        rows = rows[rows["row"].isin(list(truth)) & rows["verdict"].isin(["ok", "caution"])]
        exact = np.array([truth[r][names.index(first)] - truth[r][names.index(second)] for r in rows["row"]])
        z = (rows["log_bayes_factor"].to_numpy() - exact) / rows["error"].to_numpy()
        off = np.abs(rows["log_bayes_factor"].to_numpy() - exact)
        found[f"{first} : {second}"] = {
            "rows": len(z), "spread": float(np.sqrt(np.mean(z**2))), "mean": float(z.mean()), "worst z": float(np.abs(z).max()),
            "beyond 4 errors and 0.1": int(np.sum((np.abs(z) > 4) & (off > 0.1))), "median error": float(rows["error"].median()),
        }  # fmt: skip
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks survey")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--peers", type=int, default=4, help="rows that compare and dynesty are given")
    parser.add_argument("--truths", type=int, default=200)
    parser.add_argument("--out", type=Path, help="where the table stays: a run that was stopped goes on from there")
    parser.add_argument(
        "--shapes", action="store_true", help="posteriors that are not normal by the quick road, and no light curves"
    )
    parser.add_argument("--page", action="store_true", help="write the page from what is stored, and run nothing")
    args = parser.parse_args(arguments)
    if args.page:
        from benchmarks.survey_page import write_page

        write_page()
        return 0
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if args.shapes:
        from benchmarks.survey_shapes import shapes

        RESULTS.write_text(json.dumps(kept | {"shapes": shapes()}, indent=1) + "\n")
        return 0
    data, _ = curves(args.rows)
    told: dict = {"rows": args.rows, "workers": args.workers}

    with tempfile.TemporaryDirectory() as folder:
        out = args.out or Path(folder) / "results.parquet"
        few = {name: column[: 100 * args.workers] for name, column in data.items()}
        began = time.perf_counter()  # what a first use waits for, most of it compiling; kept in the cache
        sm.compare_many(models(), few, out=None, executor=args.workers, chunk=100, progress=False)
        told["seconds of a first use, 100 rows a worker"] = time.perf_counter() - began
        began = time.perf_counter()
        result = sm.compare_many(models(), data, out=out, executor=args.workers, chunk=250)
        told["seconds"] = time.perf_counter() - began
        told["bytes a row"] = out.stat().st_size / args.rows
        table = result.table  # read while the file is there
    told["rows a second"] = args.rows / told["seconds"]
    told["verdicts"], told["routes"] = (
        result.counts,
        table.drop_duplicates("row")["route"].value_counts().to_dict(),
    )
    told["evaluations a row"] = float(table.drop_duplicates("row")["evaluations"].mean())
    chosen = np.random.default_rng(0).choice(args.rows, min(args.truths, args.rows), replace=False)
    truth = {int(i): exact(*(data[name][i] for name in ("x", "y", "sigma"))) for i in chosen}
    told["calibration"] = scores(table, truth)
    told["megabytes of this process"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    ours = table[table["row"].isin(chosen[: args.peers])]
    error = float(np.sqrt(np.mean(ours["error"] ** 2)))
    loops = {}
    for name in ("compare", "dynesty"):
        seconds, errors = [], []
        for k, i in enumerate([int(chosen[0]), *map(int, chosen[: args.peers])]):
            one = {column: values[i] for column, values in data.items()}
            began = time.perf_counter()
            if name == "compare":
                answer = sm.compare(models(), one, target_error=0.2, seed=i, progress=False)
                mine = [
                    answer.log_bayes_factor(a, b).error
                    for a, b in (("flat", "sine"), ("flat", "phased"), ("sine", "phased"))
                ]
            elif k == 0:
                continue
            else:
                _, e = by_dynesty(one["x"], one["y"], one["sigma"], i)
                mine = [np.hypot(e[0], e[1]), np.hypot(e[0], e[2]), np.hypot(e[1], e[2])]
            if k:  # the first call of compare compiles
                seconds.append(time.perf_counter() - began)
                errors += mine
        theirs = float(np.sqrt(np.mean(np.square(errors))))
        one_core = args.workers * told["seconds"] / args.rows
        loops[name] = {
            "seconds a row": float(np.mean(seconds)), "error": theirs, "times as fast": float(np.mean(seconds)) / one_core,
            "times as fast at equal error": float(np.mean(seconds)) * (theirs / error) ** 2 / one_core,
        }  # fmt: skip
    told["error on the same rows"], told["loops"] = error, loops
    RESULTS.write_text(json.dumps({"shapes": kept.get("shapes", {})} | told, indent=1) + "\n")
    print(json.dumps(told, indent=1))
    fine = all(
        0.9 <= pair["spread"] <= 1.15 and not pair["beyond 4 errors and 0.1"] for pair in told["calibration"].values()
    )
    return 0 if fine else 1
