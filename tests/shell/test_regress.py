import json
from pathlib import Path

import pytest

from supermodel.shell.cli import main

DATA = Path(__file__).resolve().parent.parent / "data" / "regression"


def test_a_formula_and_a_table(capsys, tmp_path):
    assert main(["regress", "mpg ~ wt * hp", str(DATA / "mtcars.csv"), "--out", str(tmp_path)]) == 0
    assert "23.9013" in capsys.readouterr().out
    assert json.loads((tmp_path / "result.json").read_text())["best"] == "wt + hp + wt:hp"
    assert "<svg" in (tmp_path / "report.html").read_text()


def test_flags_are_arguments(capsys):
    flags = ["--anova", "--models", "dose", "--rscale", "wide", "--hypothesis", "d2 > d1", "--json"]
    assert main(["regress", "len ~ supp * dose", str(DATA / "tooth.csv"), *flags]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "anova" and list(found["models"]) == ["dose", "1"]
    assert "r = 0.707 fixed" in found["priors"] and found["hypotheses"][0]["hypothesis"] == "d2 > d1"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mpg ~ wtt", "mtcars.csv"], "no column 'wtt'"),
        (["mpg ~ wt", "nowhere.csv"], "no file"),
        (["mpg ~ wt", "mtcars.csv", "--rscale", "much"], "medium, wide, ultrawide"),
        (["mpg ~ wt", "mtcars.csv", "--anova", "--family", "student"], "leave --family out"),
        (["mpg ~ wt", "mtcars.csv", "--target-error", "0.1"], "closed forms"),
    ],
)
def test_bad_input_is_exit_code_2(arguments, words, capsys):
    formula, table, *flags = arguments
    assert main(["regress", formula, str(DATA / table), *flags]) == 2
    assert words in capsys.readouterr().err


def test_the_usual_command_runs_a_file(capsys, tmp_path):
    (tmp_path / "tooth.csv").write_text((DATA / "tooth.csv").read_text())
    (tmp_path / "a.toml").write_text('[regression]\nformula = "len ~ supp"\ndata = "tooth.csv"\n')
    assert main(["compare", str(tmp_path / "a.toml")]) == 0
    assert "0.1813" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "a.toml")]) == 0
    assert "models: ['1', 'supp']" in capsys.readouterr().out
