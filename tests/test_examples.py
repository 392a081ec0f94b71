"""Every example runs as a script, is right where the truth is known, and can be given to the command line."""

import runpy
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))
BEST = {
    "polynomial_order": "order 3",
    "radial_velocity": "two planets",
    "expansion": None,  # LCDM and wCDM are a tie
    "variable_selection": "dose + age",
    "change_point": "step",
    "hierarchical": "same",
    "spectral_line": "continuum and line",
    "how_many": "2 planets",
}


def test_there_are_eight():
    assert {path.stem for path in EXAMPLES} == set(BEST)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_is_right(path, capsys):
    found = runpy.run_path(str(path), run_name="__main__")
    assert "Verdict OK" in capsys.readouterr().out or found["result"].verdict.level == "caution"
    result = getattr(found["result"], "comparison", found["result"])  # of a count
    assert result.verdict.is_reliable
    if BEST[path.stem]:
        assert result.best == BEST[path.stem]
    for name, truth in found["truth"].items():  # each has one
        ours = result.log_evidence(name)
        assert abs(ours.value - truth) < 5 * ours.error + 1e-3, name
    assert np.isfinite(result.evidences.values).all()


@pytest.mark.parametrize("path", sorted(EXAMPLES[0].parent.glob("*.toml")), ids=lambda path: path.stem)
def test_the_toml_examples_are_accepted_by_the_command_line(path, capsys):
    from supermodel.shell.cli import main

    assert main(["check", str(path)]) == 0
    assert "JAX, with gradients" in capsys.readouterr().out
