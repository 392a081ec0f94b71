"""ln Z by bridge sampling: R's own package, on draws of NUTS; it asks for the density of each of its points, which is counted."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.fire.problem import Side
from benchmarks.peers.by_blackjax import nuts_draws

SCRIPT = Path(__file__).resolve().parent / "bridge.R"


class NotAvailable(RuntimeError):
    """The program is not installed here."""


def is_installed() -> bool:
    """R with its package bridgesampling (Debian: r-cran-bridgesampling)."""
    try:
        asked = subprocess.run(["Rscript", "-e", "library(bridgesampling)"], capture_output=True, timeout=60)
    except FileNotFoundError:
        return False
    return asked.returncode == 0


def bridge(side: Side, seed: int) -> tuple[float, float]:
    """`bridge_sampler` with its defaults (normal proposal, half of the draws to fit it); its error is the relative one."""
    if not is_installed():
        raise NotAvailable("R has no package bridgesampling here (Debian: r-cran-bridgesampling)")
    density, draws = nuts_draws(side, seed)
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        np.savetxt(file, draws.reshape(-1, draws.shape[-1]), delimiter=",")
        file.flush()
        command = ["Rscript", str(SCRIPT), file.name, str(len(draws)), str(seed)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                word, *numbers = line.split()
                if word == "ask":
                    process.stdin.write(f"{float(density(np.array(numbers, float)))!r}\n")
                    process.stdin.flush()
                elif word == "found":
                    return float(numbers[0]), float(numbers[1])
    raise RuntimeError(f"bridgesampling ended without an answer (exit code {process.returncode})")
