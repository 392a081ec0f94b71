"""`supermodel count`: exit codes, JSON, what it writes, and that what it has written can be shown and reported."""

import dataclasses
import json

import pytest

import supermodel as sm
from supermodel.shell.cli import main
from supermodel.spec.count import CountSpec, parse_count
from supermodel.verdict.verdict import Reason, Verdict

LINES = """[data]
columns = { x = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], y = [0.3, -0.2, 0.4, 4.1, 3.8, 0.1, -0.5, 0.2, 0.4, -0.1] }
[component]
name = "line"
mean = "A * exp(-0.5 * (x - c)^2)"
priors = { c = "Uniform(0, 9)", A = "HalfNormal(4)" }
[noise]
sigma = 0.5
[count]
most = 1
[run]
explore = "quick"
seed = 3
"""


@pytest.fixture(scope="module")
def counted():
    return parse_count(LINES).count(progress=False)


@pytest.fixture
def file(tmp_path):
    (tmp_path / "lines.toml").write_text(LINES)
    return str(tmp_path / "lines.toml")


@pytest.fixture
def quick(monkeypatch, counted):
    """The answer at hand in place of a run; the options it was asked with are kept."""
    seen = {}

    def install(level="ok", **settings):
        inner = counted.comparison
        reasons = () if level == "ok" else (Reason("rhat", "planted."),)
        settings = {**inner.settings, **settings}
        planted = dataclasses.replace(inner, verdict=Verdict(level, reasons), settings=settings)

        def count(self, **given):
            seen.update(given)
            return dataclasses.replace(counted, comparison=planted)

        monkeypatch.setattr(CountSpec, "count", count)
        return seen

    return install


def test_it_counts_writes_and_what_is_written_is_shown_and_reported(file, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["count", file, "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("1 line: probability") and "report.html" in shown and "\x1b" not in shown
    assert {path.name for path in out.iterdir()} == {"run.nc", "report.html", "result.json"}
    numbers = json.loads((out / "result.json").read_text())
    assert numbers["best"] == 1 and set(numbers["probabilities"]) == {"0", "1"}
    again = sm.load(out / "run.nc")
    assert isinstance(again, sm.Count) and again.component.name == "line" and again.comparison.models is not None
    assert main(["show", str(out / "run.nc")]) == 0
    assert capsys.readouterr().out.startswith("1 line: probability")
    assert main(["show", str(out / "run.nc"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["probabilities"] == numbers["probabilities"]
    assert main(["report", str(out / "run.nc"), "--out", str(tmp_path / "r.html")]) == 0
    assert "1 line" in (tmp_path / "r.html").read_text()
    assert main(["sensitivity", str(out / "run.nc"), "A1"]) == 2
    assert "is a count" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("level", "settings", "code"),
    [("ok", {}, 0), ("caution", {}, 0), ("limit", {}, 3), ("fail", {}, 4), ("fail", {"ended": "interrupted"}, 130)],
)
def test_the_exit_code_says_whether_to_trust_the_answer(level, settings, code, file, quick, capsys):
    quick(level, **settings)
    assert main(["count", file]) == code
    assert level.upper() in capsys.readouterr().out


def test_options_go_to_the_count_and_json_is_json(file, quick, capsys):
    seen = quick()
    flags = ["--most", "3", "--least", "1", "--seed", "7", "--target-error", "0.3", "--explore", "thrifty", "--json"]
    assert main(["count", file, *flags]) == 0
    wanted = {"most": 3, "least": 1, "seed": 7, "target_error": 0.3, "explore": "thrifty", "progress": False}
    assert seen == wanted
    assert json.loads(capsys.readouterr().out)["component"] == "line"


def test_check_tells_the_models_of_each_number(file, capsys):
    assert main(["check", file]) == 0
    shown = capsys.readouterr().out
    assert "no line" in shown and "c1, A1" in shown and "JAX, with gradients" in shown
    assert main(["check", file, "--json"]) == 0
    assert [row["dimension"] for row in json.loads(capsys.readouterr().out)["models"]] == [0, 2]


MODELS = '[data]\ncolumns = { y = [1, 2] }\n[noise]\nsigma = 1\n[models.a]\nmean = "1"\n[models.b]\nmean = "2"\n'


@pytest.mark.parametrize(
    ("argv", "text", "part"),
    [
        (["count", "x.toml"], LINES.replace("exp(", "epx("), "line 5 (component.mean): unknown function 'epx'"),
        (["count", "x.toml"], MODELS, "line 5 (models.a): models are compared, not counted. Run: supermodel compare"),
        (
            ["compare", "x.toml"],
            LINES,
            "line 3 (component): components are counted, not compared. Run: supermodel count",
        ),
        (["sensitivity", "x.toml", "A"], LINES, "components are counted"),
        (["show", "x.toml"], LINES, "a stored result is needed"),
        (["count", "none.toml"], "", "there is no file"),
        (["count", "x.py"], "", "no FILE.toml"),
        (["count", "x.toml", "--most", "0"], LINES, "nothing to count"),
        (["count", "x.toml", "--most", "two"], LINES, "invalid int value"),
        (["count", "x.toml", "--decide", "0", "1"], LINES, "unrecognized arguments: --decide"),
        (["count", "x.toml", "--seed", "-1"], LINES, "--seed"),
        (["count", "x.toml", "--data-root", "elsewhere"], LINES.replace("columns =", "file = 'x.csv' #"), "data root"),
    ],
)
def test_bad_input_is_a_message_and_exit_code_2(argv, text, part, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("x.toml", "x.py"):
        (tmp_path / name).write_text(text)
    assert main(argv) == 2
    shown = capsys.readouterr()
    assert part in shown.err and "Traceback" not in shown.err and not shown.out


def test_the_help_names_what_it_takes(capsys):
    assert main(["count", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(flag in shown for flag in ("--most", "--least", "--out", "--json", "--seed", "--min-ess", "--data-root"))
    assert "--decide" not in shown and "--method" not in shown


def test_on_a_terminal_there_are_tables_and_colours(counted):
    import io

    from rich.console import Console

    from supermodel.shell.terminal import show

    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    show(counted, console)
    shown = console.file.getvalue()
    assert "\x1b[" in shown and "1 line: probability" in shown and "P(there)" in shown and "no line" in shown
