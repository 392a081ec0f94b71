"""`supermodel many`: formulas and scripts on many data sets, from files, to a table."""

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import supermodel as sm
from supermodel.shell.cli import main
from supermodel.spec.sendable import FileModels
from survey_problems import hurried, models, truth

TOML = """
[data]
y = "flux"

[noise]
sigma = "sigma"

[models.flat]
mean = "c"
priors = { c = "Normal(0, 1)" }

[models.line]
mean = "c + b * t"
priors = { c = "Normal(0, 1)", b = "Normal(0, 1)" }

[run]
explore = "quick"
"""
SCRIPT = """
import numpy as np
import supermodel as sm

models = {
    "one": sm.Model({}, lambda p, data: float(-0.5 * np.sum((np.asarray(data["y"], float) - 1.0) ** 2))),
    "none": sm.Model({}, lambda p, data: float(-0.5 * np.sum(np.asarray(data["y"], float) ** 2))),
}
"""


@pytest.fixture
def at_once(monkeypatch):
    hurried(monkeypatch.setattr)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models.toml").write_text(TOML)
    (tmp_path / "mine.py").write_text(SCRIPT)
    return tmp_path


def light_curves(n, length=6):
    rng = np.random.default_rng(0)
    t = np.linspace(0, 1, length)
    return pd.concat(
        [pd.DataFrame({"object": f"o{i}", "t": t, "flux": rng.normal(size=length), "sigma": 0.5}) for i in range(n)]
    )


def exact(curve):
    """ln B(flat, line): both are normal in the data."""
    ones, t = np.ones(len(curve)), curve["t"].to_numpy()
    y, s = curve["flux"].to_numpy(), curve["sigma"].to_numpy()

    def log_evidence(design):
        covariance = np.diag(s**2) + design @ design.T
        return -0.5 * (y @ np.linalg.solve(covariance, y) + np.linalg.slogdet(2 * np.pi * covariance)[1])

    return log_evidence(ones[:, None]) - log_evidence(np.stack([ones, t], 1))


def test_formulas_on_a_long_table(folder, capsys):
    curves = light_curves(3)
    curves.to_parquet("data.parquet")
    assert main(["many", "models.toml", "data.parquet", "--by", "object", "--quiet", "--chunk", "2"]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("3 data sets, 2 models: 3 ok") and shown.err == ""
    table = sm.ManyResult.load("results.parquet").table
    assert table["dataset"].tolist() == ["o0", "o1", "o2"]
    found = [exact(curve) for _, curve in curves.groupby("object")]
    assert np.all(np.abs(table["log_bayes_factor"] - found) < 5 * table["error"] + 1e-6)


def test_a_script_with_lambdas_goes_to_workers_and_comes_back_the_same(folder, at_once, capsys):
    given = {"y": [[0.1, 0.2], [1.0, 2.0], [0.5, 0.5]]}
    pd.DataFrame({"name": list("abc"), **given}).to_parquet("data.parquet")
    tables = []
    for i, extra in enumerate(([], ["--workers", "1"])):
        assert main(["many", "mine.py", "data.parquet", "--id", "name", "--out", f"{i}.parquet", "--json", *extra]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["data_sets"] == 3 and told["complete"] and told["verdicts"] == {"ok": 3}
        tables.append(sm.ManyResult.load(told["table"]).table)
    assert tables[0].drop(columns="seconds").equals(tables[1].drop(columns="seconds"))
    assert np.allclose(tables[0]["log_bayes_factor"], truth([{"y": y} for y in given["y"]]))


def test_flagged_rows_are_no_failure_of_the_command(folder, at_once, capsys):
    pd.DataFrame({"y": [[0.1, 0.2], [np.nan, 2.0], None]}).to_parquet("data.parquet")
    assert main(["many", "mine.py", "data.parquet", "--quiet"]) == 0
    assert "1 ok, 2 fail" in capsys.readouterr().out


def test_the_same_command_goes_on_and_anew_begins_anew(folder, at_once, capsys):
    pd.DataFrame({"y": [[0.1, 0.2]]}).to_parquet("data.parquet")
    command = ["many", "mine.py", "data.parquet", "--quiet"]
    assert main(command) == main(command) == 0
    assert main([*command, "--seed", "3"]) == 2 and "seed: 0 there, 3 here" in capsys.readouterr().err
    assert main([*command, "--seed", "3", "--anew"]) == 0
    assert sm.ManyResult.load("results.parquet").settings["seed"] == 3


@pytest.mark.parametrize(
    "command, told",
    [
        (["models.toml", "none.parquet"], "no file or folder 'none.parquet'"),
        (["models.toml", "data.parquet", "--by", "objct"], "Did you mean 'object'"),
        (["none.toml", "data.parquet", "--by", "object"], "no file"),
        (["bad.toml", "data.parquet", "--by", "object"], "sets ['decide'], which `many` does not take"),
        (["models.toml", "data.parquet", "--by", "object", "--chunk", "0"], "`chunk` must be"),
        (["models.toml", "data.parquet", "--by", "object", "--workers", "2", "--mpi"], "not allowed with"),
        (["models.toml", "data.parquet", "--by", "object", "--target-error", "-1"], "must be a positive number"),
    ],
)
def test_bad_input_is_told(command, told, folder, capsys):
    light_curves(2).to_parquet("data.parquet")
    (folder / "bad.toml").write_text(TOML + "decide = [-1, 5]\n")
    assert main(["many", *command]) == 2
    assert told in capsys.readouterr().err


def test_models_of_a_file_are_sent_by_its_path(folder):
    sent = FileModels("mine.py")
    received = pickle.loads(pickle.dumps(sent))
    assert list(received) == ["one", "none"] and len(received) == 2
    data = {"y": np.array([0.3, 0.4])}
    assert received["one"].log_likelihood({}, data) == models()["one"].log_likelihood({}, data)


def test_formulas_may_name_columns_that_only_the_data_have(folder):
    found = FileModels("models.toml", ("t", "flux", "sigma", "y")).spec
    assert found.columns == {"t": "t", "flux": "flux", "sigma": "sigma", "y (column)": "y", "y": "flux"}
    with pytest.raises(sm.SupermodelError, match="there is no column 'flux'"):
        _ = FileModels("models.toml", ("t", "sigma")).spec


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists(os.path.join(os.path.dirname(sys.executable), "mpiexec")), reason="no mpiexec")
def test_two_ranks_of_mpi(folder):
    pytest.importorskip("mpi4py")
    pd.DataFrame({"y": [[0.1, 0.2], [1.0, 2.0]]}).to_parquet("data.parquet")
    mpiexec = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    command = [
        mpiexec,
        "-n",
        "2",
        sys.executable,
        "-m",
        "mpi4py.futures",
        "-m",
        "supermodel",
        "many",
        "mine.py",
        "data.parquet",
    ]
    done = subprocess.run(
        [*command, "--mpi", "--chunk", "1", "--explore", "quick"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    table = sm.ManyResult.load("results.parquet").table
    assert np.allclose(table["log_bayes_factor"], truth([{"y": [0.1, 0.2]}, {"y": [1.0, 2.0]}]), atol=1e-6)
    assert table["route"].tolist() == ["engine", "engine"]


def test_a_page_can_be_asked_for(folder, at_once, capsys):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"object": np.repeat(["a", "b"], 4), "y": rng.normal(size=8)})
    frame.to_parquet("points.parquet")
    assert main(["many", "mine.py", "points.parquet", "--by", "object", "--quiet", "--report", "page.html"]) == 0
    text = (folder / "page.html").read_text()
    assert "Survey of 2 data sets: one, none" in text and text.count('<a href="page_reports/') == 2
    assert len(list((folder / "page_reports").iterdir())) == 2
