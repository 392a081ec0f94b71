r"""Cost against dimension: logistic regressions of d parameters, $n = 3 d$ data, unit priors. `python -m benchmarks dimension`.

Two questions at each d: ln B of two models that share d - 1 parameters, and ln Z of one of them, both to ± 0.1. Answers are kept
in results/dimension.json, one at a time: a run that was stopped goes on. `--page` writes table and plot into the documentation.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "dimension.json"
PAGE = HERE.parent / "docs" / "benchmarks.md"
FIGURE = HERE.parent / "docs" / "gallery" / "dimension.png"
BEGIN, END = "<!-- dimension:begin -->", "<!-- dimension:end -->"
TARGET = 0.1
QUESTIONS = {"pair": (10, 30, 100, 300, 1000), "evidence": (10, 30, 100, 300)}
TITLES = {"pair": "ln B, d v d parameters, d − 1 of them shared", "evidence": "ln Z of one model"}


def answer(question: str, d: int, seed: int) -> dict:
    """One run, as it is kept."""
    import supermodel as sm
    from benchmarks.targets import logistic_models

    models = logistic_models(d, 3 * d, d - 1)
    options = {"seed": seed, "target_error": TARGET, "progress": False}
    if question == "pair":
        result = sm.compare(models, **options)
        found = result.log_bayes_factor("A", "B")
    else:
        result = sm.evidence(models["A"], **options)
        found = result.log_evidence("model")
    return {
        "question": question,
        "d": d,
        "seed": seed,
        "value": float(found.value),
        "error": float(found.error),
        "evaluations": int(result.evaluations["likelihood"]),
        "seconds": round(float(result.seconds), 1),
        "verdict": result.verdict.level,
        "reasons": sorted({reason.code for reason in result.verdict.reasons}),
    }


def exponent(found: list[dict]) -> tuple[float, float]:
    """(a, b) of evaluations = b d^a, by least squares of the logarithms."""
    a, log_b = np.polyfit(np.log([r["d"] for r in found]), np.log([r["evaluations"] for r in found]), 1)
    return float(a), float(np.exp(log_b))


def of(question: str, kept: dict) -> list[dict]:
    return sorted((r for r in kept.values() if r["question"] == question), key=lambda r: r["d"])


def table(kept: dict) -> str:
    lines = ["| d | question | answer | evaluations | seconds | verdict |", "|---|---|---|---|---|---|"]
    for question, title in TITLES.items():
        for r in of(question, kept):
            calls = f"{r['evaluations']:,}".replace(",", " ")
            value = f"{r['value']:.2f} ± {r['error']:.2g}"
            lines.append(f"| {r['d']} | {title} | {value} | {calls} | {r['seconds']:.0f} | {r['verdict']} |")
    fits = [f"{title}: $d^{{{exponent(of(q, kept))[0]:.2f}}}$" for q, title in TITLES.items() if len(of(q, kept)) > 2]
    return "\n".join(
        [
            *lines,
            "",
            "Evaluations grow as " + "; ".join(fits) + ".",
            "",
            f"![cost against dimension](gallery/{FIGURE.name})",
        ]
    )


def picture(kept: dict, path: Path = FIGURE) -> None:
    """Evaluations against d, both logarithmic, with the fitted powers."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.2))
    looks = {"pair": ("#1f4e79", "o"), "evidence": ("#c8553d", "s")}
    for question, title in TITLES.items():
        found = of(question, kept)
        if not found:
            continue
        colour, marker = looks[question]
        d, calls = np.array([r["d"] for r in found]), np.array([r["evaluations"] for r in found])
        label = title
        if len(found) > 2:
            a, b = exponent(found)
            line = np.geomspace(d[0] / 1.25, d[-1] * 1.25, 50)
            axes.plot(line, b * line**a, color=colour, linewidth=1.2, alpha=0.6, zorder=1)
            label += rf":  $\propto d^{{\,{a:.2f}}}$"
        good = np.array([r["error"] <= TARGET and r["verdict"] in ("ok", "caution") for r in found])
        axes.plot(d[good], calls[good], marker, color=colour, markersize=7, label=label, zorder=2)
        axes.plot(d[~good], calls[~good], marker, markerfacecolor="white", color=colour, markersize=7, zorder=2)
    if any(r["verdict"] not in ("ok", "caution") for r in kept.values()):
        axes.plot([], [], "o", markerfacecolor="white", color="0.4", markersize=7, label="open: the verdict is fail")
    axes.set(xscale="log", yscale="log", xlabel="parameters  d", ylabel="likelihood evaluations")
    axes.set_title("Logistic regression, n = 3 d, to ± 0.1 in the logarithm", fontsize=11, loc="left")
    axes.set_xticks([10, 30, 100, 300, 1000], ["10", "30", "100", "300", "1000"])
    axes.minorticks_off()
    axes.grid(color="0.92", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(frameon=False, loc="upper left", fontsize=9.5)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    plt.close(figure)


def write(kept: dict) -> None:
    """Table and plot into the page of the documentation, between its two marks."""
    picture(kept)
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + table(kept) + "\n" + END + rest.split(END)[1])


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks dimension", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(QUESTIONS), default=list(QUESTIONS))
    parser.add_argument("--d", nargs="+", type=int, help="these dimensions only")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", action="store_true", help="measure anew what is there")
    parser.add_argument("--page", action="store_true", help="run nothing; write table and plot from what is there")
    args = parser.parse_args(argv)
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for question in [] if args.page else args.only:
        for d in args.d or QUESTIONS[question]:
            name = f"{question} {d}"
            if name in kept and not args.again:
                continue
            kept[name] = answer(question, d, args.seed)
            RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
            print(name, kept[name], flush=True)
    if args.page:
        write(kept)
    print(table(kept))
    return 0
