"""The folder that `supermodel reproduce` writes: figures, numbers, one page; and the exit code."""

import importlib.util
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from supermodel_paper import closed_forms, prior_sensitivity, reproduce, sine
from supermodel_paper.figures import canvas, write_atomically
from supermodel_paper.linear import figure_1
from supermodel_paper.numbers import Number, Part, Picture, Quoted
from supermodel_paper.settings import TINY

QUICK = (closed_forms.evidences, closed_forms.selection, prior_sensitivity.prior_width, figure_1, sine.figure_5)
PICTURES = ("prior_width", "figure_01", "figure_05")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("reproduction")
    code = reproduce.run(TINY, out, QUICK, lambda line: None)
    return out, code


def test_all_agree_gives_zero(made):
    assert made[1] == 0


def test_the_page_of_numbers_is_made_from_the_file(made):
    """docs/hooks/paper_numbers.py: what the paper states beside ours, as the run itself shows it."""
    path = Path(__file__).resolve().parents[2] / "docs" / "hooks" / "paper_numbers.py"
    spec = importlib.util.spec_from_file_location("paper_numbers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = module.page(json.loads((made[0] / "numbers.json").read_text()))
    assert "| A1 | ln B₂₁, linear data, closed form | 4.88 | 4.8792471984 | 4.8792471984 |  | ✓ | ✓ |" in text
    assert "max ln L of M₂ is higher than of M₁ | > 0 |" in text


def test_every_figure_is_written_twice(made):
    for name in PICTURES:
        png, svg = made[0] / "figures" / f"{name}.png", made[0] / "figures" / f"{name}.svg"
        assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        ElementTree.parse(svg)
    assert sorted(p.name for p in made[0].iterdir()) == ["figures", "index.html", "numbers.json"]
    assert not [p for p in made[0].rglob("*") if p.name.endswith(".part")]


FIELDS = {
    "row": str, "label": str, "paper": (dict, type(None)), "exact": (float, int, type(None)), "ours": (float, int, type(None)),
    "error": (float, int, type(None)), "tolerance": (float, int), "bounds": (list, type(None)), "evaluations": (int, type(None)),
    "agrees": (bool, type(None)), "paper_agrees": (bool, type(None)), "remark": str, "peer": str,
}  # fmt: skip


def test_the_json_has_its_schema(made):
    found = json.loads(
        (made[0] / "numbers.json").read_text(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON")
    )
    assert found["schema"] == 1
    assert {"settings", "seed", "seconds", "versions", "summary", "parts", "criterion"} <= set(found)
    numbers = [n for part in found["parts"] for n in part["numbers"]]
    assert found["summary"]["numbers"] == len(numbers) > 20
    for n in numbers:
        assert set(n) == set(FIELDS)
        for field, kind in FIELDS.items():
            assert isinstance(n[field], kind), (n["label"], field)
        assert re.fullmatch(r"[ABCDSFG]\d+", n["row"])
    assert [f for part in found["parts"] for f in part["figures"]] == list(PICTURES)


def test_the_page_holds_every_figure_and_every_number_and_needs_nothing_else(made):
    text = (made[0] / "index.html").read_text()
    found = json.loads((made[0] / "numbers.json").read_text())
    for name in PICTURES:
        assert f'<figure id="{name}"' in text
    assert text.count("<svg ") == len(PICTURES)
    labels = [n["label"] for part in found["parts"] for n in part["numbers"]]
    assert all(label.split(",")[0].split("'")[0] in text for label in labels)
    loads = re.findall(r"(?:src|href)=[\"']([^\"']+)[\"']", text)
    assert all(target.startswith(("#", "data:")) for target in loads)
    assert "url(http" not in text
    assert "<script" not in text
    assert f"{found['summary']['agree']} of {found['summary']['checked']}" in text
    assert "prefers-color-scheme" in text
    assert "@media print" in text


def test_where_the_paper_is_wrong_the_page_says_why(made):
    text = (made[0] / "index.html").read_text()
    assert "max ln L of M₂ is higher than of M₁" in text.split("Where the paper is wrong")[1]


def one(number):
    return lambda runs: Part("A part & more", "", [number])


def test_a_number_that_differs_gives_one(tmp_path, capsys):
    wrong = Number("A1", "off by ten errors", 2.0, 0.1, 1.0, paper=Quoted("<1>", 1.0))
    assert reproduce.run(TINY, tmp_path, [one(wrong)], lambda line: None) == 1
    printed = capsys.readouterr().out
    assert re.search(r"off by ten errors.*2\.00 ± 0\.10.*NO", printed)
    assert "0 of 1 that can be checked agree" in printed
    assert "&lt;1&gt;" in (tmp_path / "index.html").read_text()


def test_what_a_peer_misses_is_the_peers(tmp_path, capsys):
    missed = Number("D12", "20 parameters", 2.0, 0.1, 1.0, peer="dynesty")
    assert reproduce.run(TINY, tmp_path, [one(missed)], lambda line: None) == 0
    printed = capsys.readouterr().out
    assert re.search(r"20 parameters.*NO \(dynesty\)", printed)
    assert "0 of 0 that can be checked agree" in printed and "Of the peers' numbers 0 of 1 agree." in printed
    assert "(dynesty)" in (tmp_path / "index.html").read_text()


def test_a_number_without_reference_does_not_fail(tmp_path):
    assert reproduce.run(TINY, tmp_path, [one(Number("A1", "just told", 2.0))], lambda line: None) == 0


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "page.html"
    write_atomically(path, "old")
    with pytest.raises(TypeError):
        write_atomically(path, None)
    assert path.read_text() == "old"
    write_atomically(path, "new")
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_the_same_figure_gives_the_same_file():
    from supermodel_paper.figures import png_of, svg_of

    texts, images = [], []
    for _ in range(2):
        figure, ax = canvas()
        ax.plot([0, 1], [0, 1])
        texts.append(svg_of(figure, "a"))
        images.append(png_of(figure))
    assert texts[0] == texts[1]
    assert images[0] == images[1]
    assert Picture("a", "", "", figure).figure is figure


def test_main_chooses_the_settings(monkeypatch, tmp_path):
    chosen = []
    monkeypatch.setattr(reproduce, "run", lambda settings, *rest: chosen.append(settings.name) or 0)
    monkeypatch.setenv("SUPERMODEL_CACHE", "off")
    assert reproduce.main(True, tmp_path) == 0
    assert reproduce.main(False, tmp_path) == 0
    assert chosen == ["fast", "full"]
