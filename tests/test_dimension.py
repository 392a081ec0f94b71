"""Cost against dimension: a run that was stopped goes on, and the fitted power is the one that was put in."""

import json

import pytest
from benchmarks import dimension


def made(question, d, seed=0):
    record = {"question": question, "d": d, "seed": seed, "value": 1.0, "error": 0.05, "seconds": 1.0}
    return record | {"evaluations": int(100 * d**1.5), "verdict": "ok", "reasons": []}


@pytest.fixture
def kept(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(dimension, "RESULTS", tmp_path / "dimension.json")
    monkeypatch.setattr(dimension, "answer", lambda *question: asked.append(question) or made(*question))
    return asked


def test_what_is_there_is_not_asked_again(kept, capsys):
    assert dimension.main(["--only", "evidence", "--d", "10", "30"]) == 0
    assert dimension.main(["--only", "evidence"]) == 0
    assert kept == [("evidence", d, 0) for d in (10, 30, 100, 300)]
    assert len(json.loads(dimension.RESULTS.read_text())) == 4 and "$d^{1.50}$" in capsys.readouterr().out
    dimension.main(["--only", "evidence", "--d", "10", "--again"])
    assert kept[4:] == [("evidence", 10, 0)]


def test_the_page_is_written_between_its_marks(kept, tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{dimension.BEGIN}\nold\n{dimension.END}\nafter\n")
    monkeypatch.setattr(dimension, "PAGE", page)
    drawn = []
    monkeypatch.setattr(dimension, "picture", drawn.append)
    dimension.main([])
    dimension.main(["--page"])
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text and len(drawn) == 1
    assert text.count("| 1000 |") == 1 and "| 31 622 |" not in text and "3 162" in text


def test_the_power_is_found():
    power, factor = dimension.exponent([made("pair", d) for d in (10, 30, 100, 300, 1000)])
    assert power == pytest.approx(1.5, abs=1e-3) and factor == pytest.approx(100, rel=1e-2)
    assert dimension.exponent([made("pair", 10), made("pair", 40) | {"evaluations": 3162}])[0] == pytest.approx(
        0, abs=1e-3
    )
