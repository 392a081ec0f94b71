"""One table of options: `compare`, TOML files and the command line offer the same, check the same, or say why not."""

import inspect
import json
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

import supermodel as sm
from supermodel import options
from supermodel.embedding.supermodel import COMBINATIONS
from supermodel.shell.cli import main
from supermodel.spec.toml import parse_spec

ROOT = Path(__file__).resolve().parent.parent
SINE = resources.files("supermodel") / "data" / "sine.toml"
FIXED = {"models", "model", "data"}  # not options: what is compared

# name: (a value in TOML, the words of a flag, what compare is then given, values that are refused)
EXAMPLES = {
    "seed": ("7", ["7"], 7, [-1, 1.5, "7", True, 2**32]),
    "target_error": ("0.3", ["0.3"], 0.3, [0, -1.0, "0.1", float("nan"), float("inf")]),
    "decide": ("[-1, 5]", ["-1", "5"], (-1.0, 5.0), [[5, -1], [1], "ab", [float("nan"), 1]]),
    "method": ('"blend"', ["blend"], "blend", ["blnd", 3]),
    "share": ('["omega"]', None, ["omega"], [3, [3]]),
    "prior_odds": (
        "{ fixed = 1, free = 3 }",
        None,
        {"fixed": 1.0, "free": 3.0},
        [{"fixed": 0, "free": 0}, {"fixed": "1", "free": True}],
    ),
    "max_evaluations": ("1e4", ["1e4"], 10_000, [0, -5, "many"]),
    "max_seconds": ("9", ["9"], 9.0, [0, "9", float("nan")]),
    "min_ess": ("500", ["500"], 500.0, [0, "many", 1e5]),
    "explore": ('"quick"', ["quick"], "quick", ["hard", 3]),
    "on_error": ('"reject"', ["reject"], "reject", ["drop", 3]),
    "missing": ('"drop"', ["drop"], "drop", ["reject", 3]),
    "checkpoint": (None, ["run.ckpt"], "run.ckpt", [3]),
    "executor": (None, ["4"], 4, ["x", 4.5, 0, -1]),
    "progress": (None, None, None, ["x", 3]),
}
IN_TOML = [name for name, example in EXAMPLES.items() if example[0] is not None]
FLAGS = [name for name, example in EXAMPLES.items() if example[1] is not None]


def unlisted(function) -> list[str]:
    """Arguments of a function that have no row, or another default there."""
    given = inspect.signature(function).parameters.items()
    rows = {option.name: option.default for option in options.OPTIONS}
    return [n for n, parameter in given if n not in FIXED and (n not in rows or rows[n] != parameter.default)]


def test_every_option_of_compare_has_a_row_and_every_row_is_an_option():
    assert unlisted(sm.compare) == [] and unlisted(sm.evidence) == []
    assert set(options.BY_NAME) == set(inspect.signature(sm.compare).parameters) - FIXED == set(EXAMPLES)
    assert len(options.BY_NAME) == len(options.OPTIONS)


def test_an_option_without_a_row_and_another_default_are_noticed():
    assert unlisted(lambda models, seed=0, walkers=3, target_error=0.2: 0) == ["walkers", "target_error"]


def test_the_methods_are_those_that_there_are():
    assert options.METHODS == ("auto", *COMBINATIONS)


def test_each_is_offered_or_has_a_reason():
    assert [option.name for option in options.IN_TOML] == IN_TOML
    assert [option.name for option in options.FLAGS] == FLAGS
    for option in options.OPTIONS:
        assert bool(option.words) != bool(option.not_a_flag), option.name
        for reason in (option.not_in_toml, option.not_a_flag):
            assert not reason or len(reason.split()) > 5, option.name


def with_run(name: str, value: str):
    text = SINE.read_text()
    return parse_spec(text[: text.index("[run]")] + f"[run]\n{name} = {value}\n", SINE.parent)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_toml_file_takes_it_or_refuses_it(name):
    value, _, wanted, wrong = EXAMPLES[name]
    if value is None:
        with pytest.raises(sm.SupermodelError, match=f"unknown key '{name}'"):
            with_run(name, "1")
        return
    assert with_run(name, value).run == {name: wanted}
    for bad in (as_toml(value) for value in wrong):
        with pytest.raises(sm.SupermodelError, match=rf"line 20 \(run\.{name}\): `{name}` must be"):
            with_run(name, bad)


def as_toml(value) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {as_toml(part)}" for key, part in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return str(value) if isinstance(value, float) else json.dumps(value)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_command_line_takes_it_or_refuses_it(name, monkeypatch, capsys):
    class Seen(Exception):
        pass

    def compare(models, data=None, **given):
        raise Seen(given)

    monkeypatch.setattr("supermodel.comparing.compare", compare)
    _, words, wanted, wrong = EXAMPLES[name]
    flag = options.BY_NAME[name].flag
    if words is None:
        assert main(["compare", str(SINE), flag, "1"]) == 2 and "unrecognized" in capsys.readouterr().err
        return
    with pytest.raises(Seen) as seen:
        main(["compare", str(SINE), flag, *words])
    assert seen.value.args[0] == {"target_error": 0.05, "seed": 0, name: wanted}
    for bad in [value for value in wrong if isinstance(value, int | float) and not isinstance(value, bool)]:
        if name != "checkpoint":  # any word is a path
            assert main(["compare", str(SINE), flag, *[str(bad)] * len(words)]) == 2
            assert flag in capsys.readouterr().err


def test_the_help_names_every_flag_with_its_default(capsys):
    assert main(["compare", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(options.BY_NAME[name].flag in shown for name in FLAGS) and "(default: 0.1)" in shown


def test_the_tutorial_names_them_all():
    section = (ROOT / "docs/tutorials/toml.md").read_text().split("## Options of the run")[1].split("\n## ")[0]
    wanted = [*IN_TOML, *(option.flag for option in options.FLAGS)]
    assert [name for name in wanted if f"`{name}" not in section] == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_compare_and_evidence_refuse_the_same(name):
    models = parse_spec(SINE.read_text(), SINE.parent).models
    for bad in [*EXAMPLES[name][3], *{"seed": [None], "decide": [5]}.get(name, []), 5j, np.bool_(True)]:
        with pytest.raises(sm.SupermodelError, match=f"`{name}` must be"):
            sm.compare(models, **{name: bad})
        if name in inspect.signature(sm.evidence).parameters:
            with pytest.raises(sm.SupermodelError, match=f"`{name}` must be"):
                sm.evidence(models["free"], **{name: bad})


def test_what_is_shared_is_a_name_or_several_that_some_model_has():
    """A text is one name, not its letters."""
    models = parse_spec(SINE.read_text(), SINE.parent).models
    assert options.checked("share", "omega") == ["omega"] == with_run("share", '"omega"').run["share"]
    for share in ("omegga", ["omega", "omegga"]):
        for method in ("auto", "mixture"):
            with pytest.raises(
                sm.SupermodelError, match=r"\['omegga'\], which no model has; parameters are \['omega', 'phi'\]"
            ):
                sm.compare(models, share=share, method=method)
        with pytest.raises(sm.SupermodelError, match=r"\['omegga'\], which no model has"):
            sm.Supermodel(models, share=share)
    assert sm.Supermodel(models, share="omega").dimension == 2
