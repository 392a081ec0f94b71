"""The notebooks: text files that pair with .ipynb (jupytext, percent format). Each is run cell by cell, as a notebook would."""

import ast
import re
from pathlib import Path

import matplotlib
import pytest

FOLDER = Path(__file__).resolve().parent.parent / "examples" / "notebooks"
NEEDS = {"pymc_models": "pymc", "bilby_likelihoods": "bilby", "regressions": "formulae"}
PAIRS = {
    "black_box": ("separate", "pooled"), "jax_prediction": ("free", "fixed"), "numpyro_models": ("level", "line"),
    "pymc_models": ("level", "line"), "bilby_likelihoods": ("level", "line"),
}  # fmt: skip
SLOW = {"jax_prediction", "numpyro_models", "pymc_models", "bilby_likelihoods"}  # they compile for seconds
NOTEBOOKS = sorted(FOLDER.glob("*.py"))


def cells(text: str) -> list[tuple[str, str]]:
    """(kind, source) of every cell: "code" or "markdown"."""
    body = text.split("# ---\n", 2)[2]
    found = []
    for part in re.split(r"^# %%", body, flags=re.MULTILINE)[1:]:
        head, _, source = part.partition("\n")
        found.append(("markdown" if "[markdown]" in head else "code", source.strip()))
    return found


def show(value) -> str:
    """What a notebook shows of a value."""
    rich = getattr(value, "_repr_html_", None)
    return rich() if rich is not None else repr(value)


def run(path: Path) -> tuple[dict, list[str]]:
    """The names that a notebook leaves, and what its cells show."""
    names, shown = {"__name__": "__main__"}, []
    for kind, source in cells(path.read_text()):
        if kind == "code":
            tree = ast.parse(source)
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, str(path), "exec"), names)
            if last is not None:
                shown.append(show(eval(compile(ast.Expression(last.value), str(path), "eval"), names)))
    return names, shown


def test_there_are_six():
    assert {path.stem for path in NOTEBOOKS} == {*PAIRS, "regressions"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_paired_begins_with_a_title_and_parses(path):
    text = path.read_text()
    assert "formats: ipynb,py:percent" in text.split("# ---\n")[1]
    (kind, title), *rest = cells(text)
    assert kind == "markdown" and title.startswith("# # ")
    assert sum(kind == "code" for kind, _ in rest) >= 3
    for kind, source in rest:
        assert source
        if kind == "code":
            ast.parse(source)
        else:
            assert all(line.startswith("#") for line in source.splitlines())


@pytest.mark.parametrize(
    "path", [pytest.param(p, marks=[pytest.mark.slow] if p.stem in SLOW else [], id=p.stem) for p in NOTEBOOKS]
)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
def test_a_notebook_runs_and_is_right(path):
    pytest.importorskip(NEEDS.get(path.stem, "numpy"))
    matplotlib.use("agg")
    names, shown = run(path)
    result = names["result"]
    assert result.verdict.is_reliable and any("Verdict OK" in text or "Verdict CAUTION" in text for text in shown)
    if path.stem in PAIRS:
        estimate = result.log_bayes_factor(*PAIRS[path.stem])
        assert abs(estimate.value - names["exact"]) < 5 * estimate.error + 5e-4  # 1.729 has three decimals
        assert abs(estimate.value - names["exact"] - 0.5) > 5 * estimate.error + 5e-4  # planted
    else:
        assert names["test"].log_bayes_factor().value == pytest.approx(2.8483, abs=5e-5)  # R's BayesFactor


def test_a_notebook_runs_in_jupyter():
    jupytext, nbclient = pytest.importorskip("jupytext"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("formulae")
    notebook = jupytext.read(FOLDER / "regressions.py")
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    assert "text/html" in str(notebook.cells[1].outputs)
