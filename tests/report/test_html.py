"""The report opens in a browser: no console errors, no network, nothing overflows, names stay names."""

import dataclasses
import html
import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.figure import Figure

from made_result import made_result
from supermodel.errors import StorageError
from supermodel.estimation.estimate import Evidences
from supermodel.report import plots
from supermodel.report.html import page
from supermodel.report.svg import PAD, _fill, svg
from supermodel.verdict.verdict import Reason, Verdict, worst

NASTY = '<b>&"x'
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--enable-logging=stderr", "--virtual-time-budget=4000",
    "--hide-scrollbars",
)  # fmt: skip
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def result():
    verdict = Verdict("caution", (Reason("drift", "the two halves of the run differ by <4.2> errors."),))
    return made_result(
        0, {"line": "ab", NASTY: "abc", "a level with quite a long name, longer than most": "a"}, verdict=verdict
    )


@pytest.fixture(scope="module")
def report(result):
    return page(result)


def test_it_holds_all_parts(result, report):
    for part in (
        "Verdict CAUTION",
        "drift",
        "The answer",
        "Data and predictions",
        "What drives the preference",
        "Prior sensitivity",
        "Posteriors",
        "who shares what",
        "Inside the run",
        "@misc{Mootoovaloo2016",
        "seed",
        "numpy",
        "fingerprint of the data",
    ):
        assert part in report, part
    assert report.count("<svg") >= 14 and "could not" not in report
    assert "Bayes factors between 3 models were computed" in report


def test_it_stands_alone(report):
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?(?:https?:)?//", report)
    assert "<script" not in report and "@import" not in report
    assert set(re.findall(r'(?:href|src)="([a-z]+:)', report)) <= {"data:"}


def test_names_are_escaped_everywhere(report):
    assert NASTY not in report and "&lt;4.2&gt;" in report
    assert "<b>&" not in report and "<b>&amp;" not in report
    assert report.count("&lt;b&gt;&amp;") > 10


def test_ids_are_unique_and_references_lead_somewhere(report):
    ids = re.findall(r'\bid="([^"]+)"', report)
    assert len(ids) == len(set(ids))
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', report))
    assert used and used <= set(ids)


def test_the_same_figure_gives_the_same_bytes(result):
    drawn = [svg(lambda ax: plots.crossings(result, 1, ax=ax), (5.0, 3.0)) for _ in range(2)]
    assert drawn[0] == drawn[1] and "var(--c" in drawn[0]


def test_a_figure_is_filled_and_nothing_is_cut():
    """Titles, labels and numbers around the axes reach the edges but for the margin."""
    figure = Figure(figsize=(5.0, 3.0), dpi=72, layout="none")
    ax = figure.add_subplot()
    ax.plot([0, 1], [-12345.6, 12345.6])
    ax.set(title="a title", xlabel="x", ylabel="a label\nof two lines")
    renderer = RendererSVG(360, 216, io.StringIO())
    _fill(figure, ax, renderer)
    seen = ax.get_tightbbox(renderer)
    np.testing.assert_allclose(seen.extents, [PAD, PAD, 360 - PAD, 216 - PAD], atol=0.01)


def test_a_failed_run_shouts_and_what_a_file_lacks_is_said():
    small = made_result(0, {"line": "ab", "level": "a"})
    failed = page(
        dataclasses.replace(small, models=None, verdict=Verdict("fail", (Reason("rhat", "chains disagree."),)))
    )
    assert "not to be used" in failed and "FAIL: do not use" in failed
    assert "Load with load(path, models" in failed and "Prior sensitivity" in failed


def test_where_one_of_three_failed_the_page_keeps_what_stands(result):
    failed, best, other = result.ranking
    reason = Reason("looks_disagree", "its looks did not meet.", models=(failed,))
    partly = page(dataclasses.replace(result, verdict=worst([("fail", reason)])))
    said = html.unescape(partly)
    assert 'class="verdict fail"' in partly and f"Verdict FAIL for {failed}: do not use what rests on it" in said
    assert f"ln B({best} : {other}) = " in re.search(r'<p class="headline">(.*?)</p>', said, re.S)[1]
    assert "FAIL: not to be used" in said  # in the row of its ln B
    assert said.count("FAIL: do not use") == 3  # over its posterior and the two pictures of its edge, and no others
    assert "The preference for" in said  # the sensitivity of what stands
    whole = html.unescape(page(dataclasses.replace(result, verdict=Verdict("fail", (reason,)))))
    assert "do not use what rests on it" not in re.sub("(?s)<svg.*?</svg>", "", html.unescape(page(result)))
    assert "Verdict FAIL for" in whole  # the level of a reason that has none is that of the verdict


def test_one_model_without_data_has_a_report():
    alone = page(dataclasses.replace(made_result(0, {"line": "ab"}), data=None, models=None))
    assert "ln Z(line)" in alone and "Prior sensitivity" not in alone and "Data and predictions" not in alone


def test_it_is_written_atomically_and_complains_clearly(tmp_path):
    small = made_result(0, {"line": "ab"})
    with pytest.raises(StorageError, match="does not exist"):
        small.report(tmp_path / "none" / "report.html")
    small.report(tmp_path / "report.html", title="A & B")
    assert "<title>A &amp; B</title>" in (tmp_path / "report.html").read_text() and len(list(tmp_path.iterdir())) == 1


def browse(content: str, folder: Path, width: int, *extra: str) -> tuple[dict, str]:
    """(measures of the page in a frame of this width, what the console said)."""
    measure = (
        "<script>onload=()=>{const d=frames[0].document,e=d.documentElement;"
        "const out_of=n=>!n.closest('.wide,pre,svg')&&n.getBoundingClientRect().right>e.clientWidth+1;"
        "const wide=[...d.querySelectorAll('body *')].filter(out_of).map(n=>n.tagName+'.'+n.className);"
        "const out=document.createElement('pre');out.id='out';"
        "out.textContent=JSON.stringify({scroll:e.scrollWidth,client:e.clientWidth,wide:wide.slice(0,5),"
        "svg:d.querySelectorAll('svg').length,title:d.title,ink:getComputedStyle(d.body).color});document.body.append(out)}</script>"
    )
    harness = folder / f"harness-{width}.html"
    harness.write_text(
        '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">'
        f'<iframe srcdoc="{html.escape(content)}" style="width:{width}px;height:900px;border:0"></iframe>{measure}'
    )
    done = subprocess.run(
        [CHROMIUM, *FLAGS, *extra, f"--user-data-dir={folder / 'profile'}", "--window-size=1500,1000", "--dump-dom",
         harness.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    found = re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    console = "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)
    return json.loads(html.unescape(found[1])), console


@needs_browser
@pytest.mark.parametrize("width", [390, 1400])
def test_it_opens_without_errors_and_nothing_overflows(report, tmp_path, width):
    measures, console = browse(report, tmp_path, width)
    assert console == ""
    assert measures["client"] == width
    assert measures["scroll"] <= width and measures["wide"] == []
    assert measures["svg"] >= 14 and NASTY in measures["title"]


@needs_browser
def test_dark_is_dark(report, tmp_path):
    light, _ = browse(report, tmp_path, 390)
    dark, _ = browse(report, tmp_path, 390, "--blink-settings=preferredColorScheme=0")
    brightness = [np.mean([int(c) for c in re.findall(r"\d+", m["ink"])[:3]]) for m in (light, dark)]
    assert brightness[0] < 80 and brightness[1] > 180


@needs_browser
def test_the_browser_test_sees_planted_faults(tmp_path):
    faulty = '<title>t</title><div style="width:900px">wide</div><script>undefinedFunction()</script>'
    measures, console = browse(faulty, tmp_path, 390)
    assert measures["scroll"] > 390 and measures["wide"] and "undefinedFunction" in console


def test_a_limit_that_is_unknown_makes_a_page_that_says_so():
    made = made_result(verdict=Verdict("limit", (Reason("never_visited", "planted."),)))
    evidences = Evidences(made.names, np.array([-np.inf, -30.0]), np.zeros((2, 2)))
    text = page(dataclasses.replace(made, evidences=evidences, edges=()))
    seen = re.sub(r"<(style|script|path|use|defs|g|clipPath)\b[^>]*>", "", text)
    assert "is unknown, without even a limit" in seen and not re.search(r"[ >+-](inf|nan)\b", seen)
    assert "nothing can be said of its sensitivity to priors" in seen
    assert not re.search(r"P = [>0-9]", seen), "a probability is stated although the verdict forbids it"
