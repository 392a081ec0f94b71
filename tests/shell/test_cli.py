"""The command line: exit codes, messages without tracebacks, JSON for machines, tables for people."""

import dataclasses
import json
import os
from importlib import resources

import pytest

import supermodel
from made_result import made_result
from supermodel.shell.cli import ONE_THREAD, main
from supermodel.verdict.verdict import Reason, Verdict

SINE = str(resources.files("supermodel") / "data" / "sine.toml")


@pytest.fixture
def quick(monkeypatch):
    """`compare` replaced by a result at hand; the arguments it was called with are kept."""
    seen = {}

    def install(level="ok"):
        reasons = () if level == "ok" else (Reason("rhat", "planted."),)

        def fake(models, data=None, **options):
            seen.update(models=models, data=data, **options)
            return made_result(verdict=Verdict(level, reasons))

        monkeypatch.setattr("supermodel.comparing.compare", fake)
        return seen

    return install


@pytest.mark.parametrize(("level", "code"), [("ok", 0), ("caution", 0), ("limit", 3), ("fail", 4)])
def test_the_exit_code_says_whether_to_trust_the_answer(level, code, quick, capsys):
    quick(level)
    assert main(["compare", SINE]) == code
    shown = capsys.readouterr().out
    assert level.upper() in shown and "\x1b" not in shown  # plain text where there is no terminal


def test_options_go_before_the_file_and_json_is_json(quick, capsys):
    seen = quick()
    assert main(["compare", SINE, "--target-error", "0.2", "--seed", "7", "--max-seconds", "9", "--json"]) == 0
    assert (seen["target_error"], seen["seed"], seen["max_seconds"], seen["progress"]) == (0.2, 7, 9.0, False)
    assert json.loads(capsys.readouterr().out)["verdict"]["level"] == "ok"
    main(["compare", SINE])
    assert (seen["target_error"], seen["seed"]) == (0.05, 0)


def test_what_compare_writes_can_be_shown_reported_and_asked(quick, capsys, tmp_path):
    quick()
    assert main(["compare", SINE, "--out", str(tmp_path / "out")]) == 0
    assert "report.html" in capsys.readouterr().out
    run = str(tmp_path / "out" / "run.nc")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"run.nc", "report.html", "result.json"}
    assert main(["show", run]) == 0
    assert "ln B(" in capsys.readouterr().out
    assert main(["show", run, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["models"] == ["line", "curve"]
    assert main(["report", run, "--out", str(tmp_path / "r.html")]) == 0
    assert (tmp_path / "r.html").read_text().startswith("<!")
    assert main(["sensitivity", run, "c", "--scales", "0.5,1,2", "--json"]) == 0
    curve = json.loads(capsys.readouterr().out.split("\n", 1)[1])
    assert curve["scales"] == [0.5, 1, 2] and len(curve["log_bayes_factor"]) == 3
    assert main(["sensitivity", run, "c"]) == 0


PYTHON = """
import numpyro.distributions as dist
from supermodel import Model
models = {"a": Model({"m": dist.Normal(0, 1)}, lambda p, d: -p["m"] ** 2), "b": Model({}, lambda p, d=None: 0.0)}
data = [1.0]
options = {"target_error": 0.3}
"""


def test_a_python_file(quick, tmp_path, capsys):
    seen = quick()
    (tmp_path / "mine.py").write_text(PYTHON)
    assert main(["compare", str(tmp_path / "mine.py")]) == 0
    assert set(seen["models"]) == {"a", "b"} and seen["data"] == [1.0] and seen["target_error"] == 0.3
    assert main(["check", str(tmp_path / "mine.py")]) == 0
    shown = capsys.readouterr().out
    assert "JAX, with gradients" in shown and "parameter" in shown


def test_check_tells_what_a_file_holds(capsys, tmp_path):
    assert main(["check", SINE]) == 0
    shown = capsys.readouterr().out
    assert "omega, phi" in shown and "Normal(0, 0.05)" in shown
    assert main(["check", SINE, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["models"]
    assert [row["dimension"] for row in rows] == [1, 2]


BAD = {
    "no such file": (["compare", "nosuch.toml"], None, "there is no file"),
    "neither": (["compare", "x.txt"], ("x.txt", ""), "neither"),
    "toml": (["compare", "x.toml"], ("x.toml", "[data"), "x.toml, line 1"),
    "formula": (
        ["check", "x.toml"],
        ("x.toml", '[data]\ncolumns = {y = [1]}\n[models.a]\nmean = "si(y)"'),
        "Did you mean 'sin'",
    ),
    "python": (["compare", "x.py"], ("x.py", "a = 1\nb = 1 / 0\n"), "line 2: ZeroDivisionError"),
    "syntax": (["compare", "x.py"], ("x.py", "a = = 1\n"), "line 1: SyntaxError"),
    "no models": (["compare", "x.py"], ("x.py", "a = 1\n"), "must define `models`"),
    "options": (["compare", "x.py"], ("x.py", PYTHON + "options = {'sead': 1}\n"), "sead"),
    "one model": (["compare", "x.py"], ("x.py", PYTHON + "del models['b']\n"), "at least two models"),
    "show": (["show", "nosuch.nc"], None, "nosuch.nc"),
    "show a spec": (["show", SINE], None, "a stored result is needed"),
    "not ours": (["show", "x.nc"], ("x.nc", "text"), "x.nc"),
    "seed": (["compare", SINE, "--seed", "-1"], None, "seed"),
    "error": (["compare", SINE, "--target-error", "0"], None, "positive"),
    "command": (["compute"], None, "there is no command 'compute'. Did you mean 'compare'?"),
    "no command at all like it": (["xyz"], None, "Commands are demo, compare, count, regress, many, check"),
    "option": (["compare", SINE, "--sede", "1"], None, "usage: supermodel compare"),
    "option, told": (
        ["compare", SINE, "--sede", "1"],
        None,
        "unrecognized arguments: --sede 1. Did you mean '--seed'?",
    ),
    "file too many": (["show", "x.nc", "y.nc"], None, "usage: supermodel show"),
    "nothing": ([], None, "required"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_a_message_and_exit_code_2(case, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    argv, file, part = BAD[case]
    if file is not None:
        (tmp_path / file[0]).write_text(file[1])
    assert main(argv) == 2
    shown = capsys.readouterr()
    assert part in shown.err and "Traceback" not in shown.err and not shown.out


def test_an_unwritable_folder_is_told(quick, tmp_path, capsys):
    quick()
    (tmp_path / "file").write_text("")
    assert main(["compare", SINE, "--out", str(tmp_path / "file" / "out")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_an_interrupt_is_no_traceback(monkeypatch, capsys):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("supermodel.comparing.compare", interrupted)
    assert main(["--help"]) == 0 and "130 interrupted" in capsys.readouterr().out
    assert main(["compare", SINE]) == 130
    assert capsys.readouterr().err == "supermodel: interrupted.\n"


def test_on_a_terminal_there_are_tables_and_colours():
    import io

    from rich.console import Console

    from supermodel.shell.terminal import show

    for width in (60, 140):
        console = Console(file=io.StringIO(), force_terminal=True, width=width)
        show(made_result(), console)
        shown = console.file.getvalue()
        assert "\x1b[" in shown and "curve" in shown
        assert max(map(len, Console(file=io.StringIO(), width=width).render_str(shown).plain.splitlines())) < 4 * width


def test_the_demo_runs_from_end_to_end(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    assert "Report: report/report.html" in shown and "5.0223 by quadrature" in shown
    assert {"report.html", "run.nc", "result.json", "sine.csv", "sine.toml"} == {
        p.name for p in (tmp_path / "report").iterdir()
    }
    result = supermodel.load(tmp_path / "report" / "run.nc")
    found = result.log_bayes_factor("free", "fixed")
    assert abs(found.value - 5.0222648001) < 5 * found.error
    assert main(["check", "report/sine.toml"]) == 0  # the copy beside the report is ready to be changed


def test_a_data_root_confines_data_and_refuses_python(quick, tmp_path, capsys):
    quick()
    (tmp_path / "mine.py").write_text(PYTHON + f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    for command in (["compare"], ["check"], ["sensitivity"]):
        for file, words in (("mine.py", "is run as Python"), (SINE, "is not inside the data root")):
            path = file if file == SINE else str(tmp_path / file)
            more = ["omega"] if command == ["sensitivity"] else []
            assert main([*command, path, *more, "--data-root", str(tmp_path)]) == 2
            assert words in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()
    assert main(["compare", SINE, "--data-root", str(resources.files("supermodel") / "data")]) == 0


@pytest.mark.parametrize("command", ["compare", "check", "sensitivity"])
def test_the_help_says_what_is_run_as_code(command, capsys):
    assert main([command, "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "never run as code" in shown and "it is run, with all that you may do" in shown and "--data-root" in shown


def test_reproduce_asks_for_one_thread_of_blas_unless_told_otherwise(tmp_path, monkeypatch):
    for name in ONE_THREAD:
        monkeypatch.setenv(name, "2")
    monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    monkeypatch.setattr("supermodel_paper.reproduce.main", lambda fast, out: 0)
    assert main(["reproduce", "--fast", "--out", str(tmp_path)]) == 0
    assert [os.environ[name] for name in ONE_THREAD] == ["2", "1", "2"]


@pytest.mark.parametrize("flag", ["--workers", "--executor"])
def test_the_executor_has_its_own_name_too(flag, monkeypatch):
    seen = {}

    def compare(models, data, **options):
        seen.update(options)
        raise KeyboardInterrupt

    monkeypatch.setattr("supermodel.comparing.compare", compare)
    assert main(["compare", SINE, flag, "2"]) == 130 and seen["executor"] == 2


@pytest.mark.parametrize(
    ("level", "ended", "code"), [("fail", "interrupted", 130), ("caution", "interrupted", 0), ("fail", "", 4)]
)
def test_interrupted_before_an_answer_is_130(level, ended, code, monkeypatch, capsys):
    made = dataclasses.replace(made_result(verdict=Verdict(level)), settings={"ended": ended})
    monkeypatch.setattr("supermodel.comparing.compare", lambda *given, **options: made)
    assert main(["compare", SINE]) == code
