"""One self-contained page: every number with its verdict, every figure inline, light and dark, fit for print."""

from __future__ import annotations

import html
import re
import tomllib
from collections.abc import Sequence
from importlib import resources
from typing import Any

from supermodel_paper import figures
from supermodel_paper.numbers import Number, Part, Picture, tally

MARKS = {True: ("yes", "✓", "agrees"), False: ("no", "✗", "differs"), None: ("none", "–", "nothing to compare with")}
CRITERION = (
    "Ours <b>agrees</b> if it lies within three of its errors of the exact value (by chance one number in 370 does not), "
    "within the stated digits where it has no sampling error, or inside the bounds where only an inequality is claimed. "
    "The paper's value <b>holds</b> if the exact value lies within its own errors. Natural logarithms; ℓ = ln B₂₁ = "
    "ln Z₂ − ln Z₁; weight 1 is wholly M₁. One likelihood evaluation is one run of one model at one point. The paper "
    "prints no data: both data sets are stand-ins with every feature it states."
)
QUOTED_ROWS = ("D8", "D9", "S3", "S4", "F5", "F6", "F11", "A1")


def page(parts: Sequence[Part], facts: dict[str, Any]) -> str:
    """The whole page. `facts`: settings, seconds, versions, notes."""
    numbers = [n for part in parts for n in part.numbers]
    body = [
        _head(numbers, facts),
        _quoted(numbers),
        _wrong(numbers),
        _contents(parts),
        *(_part(i, part) for i, part in enumerate(parts)),
        _foot(facts),
    ]
    css = _resource("page.css")
    title = "Bayes Factors via Savage-Dickey Supermodels, reproduced"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{css}</style></head><body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _resource(name: str) -> str:
    return (resources.files("supermodel_paper") / name).read_text("utf-8")


def _head(numbers: Sequence[Number], facts: dict[str, Any]) -> str:
    count = tally(numbers)
    lengths = {
        "fast": "This is the fast run, of fewer steps (listed at the end); the full run has the paper's own counts.",
        "full": "All runs have the paper's own step counts.",
    }.get(facts["settings"], "A tiny run, for tests of the machinery only.")
    cards = (
        (f"{count['agree']} of {count['checked']}", "numbers agree with the exact value"),
        (f"{count['paper_agree']} of {count['paper']}", "statements and values of the paper hold"),
        (str(facts["figures"]), "figures"),
        (f"{facts['seconds'] / 60:.1f} min", "run time"),
    )
    shown = "".join(f'<div class="card"><b>{a}</b>{b}</div>' for a, b in cards)
    return (
        "<h1>“Bayes Factors via Savage-Dickey Supermodels”, every experiment repeated</h1><p>Mootoovaloo, Bassett and "
        "Kunz propose to embed two models in one supermodel and to read the Bayes factor off the posterior of the "
        "parameter α that joins them. This page repeats each of their figures and numbers, beside exact values. "
        f"{html.escape(lengths)}</p>"
        f'<div class="cards">{shown}</div><p class="small">{CRITERION}</p>'
    )


def _quoted(numbers: Sequence[Number]) -> str:
    said = [(n, n.paper) for n in numbers if n.paper is not None and n.row in QUOTED_ROWS]
    chosen = [n for n, paper in said if paper.value is not None and not re.search("law|ratio", n.label)]
    chosen += [n for n, paper in said if n.row == "F11" and "3.59" in paper.text]
    return f"<h2 id='glance'>The Bayes factors that the paper quotes</h2>{_table(chosen, remarks=False)}"


def _wrong(numbers: Sequence[Number]) -> str:
    items = "".join(
        f"<li><b>{html.escape(n.paper.text)}</b> <span class='small'>({n.row})</span><br>{html.escape(n.remark)} "
        f"<span class='small'>{html.escape(n.label)}: {html.escape(n.shown())}.</span></li>"
        for n in numbers
        if n.paper is not None and n.paper_agrees is False and n.remark
    )
    misprints = tomllib.loads(_resource("misprints.toml"))["rows"]
    rows = "".join(
        f"<tr><td class='row'>{name}</td>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
        for name, *cells in misprints
    )
    head = "<tr><th></th><th>where</th><th>printed</th><th>correct</th></tr>"
    return (
        f"<h2 id='wrong'>Where the paper is wrong, and why</h2><ul class='wrongs'>{items}</ul>"
        f"<details><summary>Misprints in formulas and sentences ({len(misprints)})</summary>"
        f"<div class='scroll'><table><thead>{head}</thead><tbody>{rows}</tbody></table></div></details>"
    )


def _contents(parts: Sequence[Part]) -> str:
    items = "".join(f'<li><a href="#part{i}">{html.escape(p.title)}</a>{_count(p)}</li>' for i, p in enumerate(parts))
    return f"<nav><h2>Contents</h2><ul>{items}</ul></nav>"


def _count(part: Part) -> str:
    bad = sum(n.is_miss for n in part.numbers)
    return f' <span class="no">✗ {bad}</span>' if bad else ""


def _part(i: int, part: Part) -> str:
    pictures = "".join(_picture(p) for p in part.pictures)
    text = f"<p>{html.escape(part.text)}</p>" if part.text else ""
    return f'<h2 id="part{i}">{html.escape(part.title)}</h2>{text}{pictures}{_table(part.numbers)}'


def _picture(picture: Picture) -> str:
    svg = picture.svg
    # The neutral colours become those of the reader's theme; the others are chosen to be seen on both.
    for name in ("INK", "MUTED", "RULE", "PAPER"):
        svg = svg.replace(getattr(figures, name), f"var(--{name.lower()})")
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{html.escape(picture.title)}" ', 1)
    wide = ' class="wide"' if picture.figure.get_figwidth() > 8 else ""
    return (
        f'<figure id="{picture.name}"{wide}>{svg}<figcaption><b>{html.escape(picture.title)}.</b> '
        f"{html.escape(picture.caption)}</figcaption></figure>"
    )


def _table(numbers: Sequence[Number], remarks: bool = True) -> str:
    head = (
        "<tr><th>row</th><th>quantity</th><th>paper</th><th class='n'>exact</th><th class='n'>ours</th>"
        "<th class='n'>evaluations</th><th>ours</th><th>paper</th></tr>"
    )
    rows = "".join(_row(n, remarks) for n in numbers)
    return f"<div class='scroll'><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>"


def _row(n: Number, remarks: bool) -> str:
    paper = html.escape(n.paper.text) if n.paper is not None else ""
    cost = f"{n.evaluations:,}".replace(",", " ") if n.evaluations else ""
    peer = f" <span class='small'>({n.peer})</span>" if n.peer else ""
    has = " class='has'" if n.remark and remarks else ""
    row = (
        f"<tr{has}><td class='row'>{n.row}</td><td>{html.escape(n.label)}</td><td>{paper}</td>"
        f"<td class='n'>{html.escape(n.shown_exact())}</td><td class='n'>{html.escape(n.shown())}{peer}</td>"
        f"<td class='n'>{cost}</td>{_mark(n.agrees)}{_mark(n.paper_agrees)}</tr>"
    )
    return row + (f"<tr class='why'><td></td><td colspan='7'>{html.escape(n.remark)}</td></tr>" if has else "")


def _mark(verdict: bool | None) -> str:
    name, sign, words = MARKS[verdict]
    return f"<td class='mark {name}' title='{words}'>{sign if verdict is not None else ''}</td>"


def _foot(facts: dict[str, Any]) -> str:
    steps = [f"Steps of the runs, over all chains: {facts['steps']}."] if facts["steps"] else []
    notes = "".join(f"<p class='small'>{html.escape(note)}</p>" for note in [*steps, *facts["notes"]])
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    option = " --fast" if facts["settings"] == "fast" else ""
    return (
        f"<h2>How this page was made</h2>{notes}<p class='small'>supermodel reproduce{option}; seed {facts['seed']}; "
        f"{html.escape(versions)}. numbers.json beside this page has every value; figures/ has every figure as PNG and "
        "SVG.</p>"
    )
