"""Files that version 0.1.0 wrote are read by this one and show what they showed then (tests/data, made by that version)."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import supermodel as sm

DATA = Path(__file__).resolve().parents[1] / "data"
SHOWN = json.loads((DATA / "shown_0.1.0.json").read_text(encoding="utf-8"))


def but_for_ess(text):
    """A printed result as cells, without the columns ESS and R-hat, which then meant something else, and the line about them."""
    shown, header = [], []
    for line in text.splitlines():
        cells = re.split(r"\s{2,}", line.strip())
        header = cells if cells[0] == "model" else header if line else []
        kept = (
            [cell for name, cell in zip(header, cells, strict=True) if name not in ("ESS", "R-hat")]
            if header
            else cells
        )
        shown += [] if "effective draws" in line else [kept]
    assert any("ln B vs shift" in cells for cells in shown)
    return shown


@pytest.mark.parametrize("name", SHOWN)
def test_an_old_file_shows_what_it_showed(name):
    then, result = SHOWN[name], sm.load(DATA / f"{name}_0.1.0.nc")
    assert but_for_ess(str(result)) == but_for_ess(then["text"])
    estimate = result.log_bayes_factor("shift", "null")
    assert (estimate.value.hex(), estimate.error.hex()) == (then["value"], then["error"])
    assert float(result.averaged("mu").mean) == pytest.approx(then["mean"], rel=1e-12)
    sensitivity = result.sensitivity("mu", scales=[0.5, 1, 2])
    values, errors = then["sensitivity"]
    assert sensitivity.values == pytest.approx(values, abs=1e-9)
    # Errors of a new question are made by the rule of today, which allows for their own uncertainty: never smaller, and
    # larger by what the window of 10 lags asks for at 512 draws, the shortest record here.
    most = np.sqrt(1 + 2 * (2 * 10 + 1) / 512)
    assert np.all(sensitivity.errors >= np.array(errors) * (1 - 1e-6))
    assert np.all(sensitivity.errors <= np.array(errors) * most)


def test_an_old_file_of_the_engine_has_its_records_and_plots():
    from supermodel.report import plots

    result = sm.load(DATA / "engine_0.1.0.nc")
    assert result.chain is None
    for name, posterior in result.posteriors.items():
        edge = result.edges[posterior.record]
        assert posterior.record >= 0 and name in (edge.first, edge.second)
    for draw in (plots.alpha, plots.trace, plots.crossings):
        assert draw(result).get_title(loc="left")


def test_an_old_file_of_the_papers_chain_kept_no_record_and_says_nothing_false(tmp_path):
    result = sm.load(DATA / "mixture_0.1.0.nc")
    assert result.chain is None and result.edges == () and "rungs" not in result.methods()
    result.report(tmp_path / "report.html")
    result.save(tmp_path / "again.nc")
    again = sm.load(tmp_path / "again.nc")
    assert str(again) == str(result)
    assert np.array_equal(again.posterior("shift").log_weights, result.posterior("shift").log_weights)
