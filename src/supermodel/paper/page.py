"""One self-contained page: every number with its verdict, every figure inline, light and dark, fit for print."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from supermodel.paper import figures
from supermodel.paper.numbers import Number, Part, Picture, tally

MARKS = {True: ("yes", "✓", "agrees"), False: ("no", "✗", "differs"), None: ("none", "–", "nothing to compare with")}
QUOTED_ROWS = ("D8", "D9", "S3", "S4", "F5", "F6", "F11", "A1")

CSS = """
:root{--ink:#1b1b1d;--muted:#6b6b70;--rule:#e3e3e6;--paper:#fffffe;--tint:#f5f5f2;--yes:#00694c;--no:#b34700;--link:#0072b2;color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--ink:#ececf0;--muted:#a3a3ab;--rule:#3a3a40;--paper:#17171a;--tint:#202024;--yes:#3ec79a;--no:#ff9a5c;--link:#6fb7e6}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:64rem;padding:2rem 1.2rem 5rem;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
h1{font-size:1.7rem;line-height:1.25;margin:0 0 .4rem} h2{font-size:1.3rem;margin:3rem 0 .5rem;border-top:1px solid var(--rule);padding-top:1.2rem} h3{font-size:1rem;margin:1.2rem 0 .3rem}
p{max-width:44rem;margin:.5rem 0} a{color:var(--link)} .small{color:var(--muted);font-size:.86rem}
.cards{display:flex;flex-wrap:wrap;gap:.8rem;margin:1.2rem 0} .card{background:var(--tint);border-radius:.6rem;padding:.7rem 1rem;min-width:9rem} .card b{display:block;font-size:1.6rem;line-height:1.2}
.scroll{overflow-x:auto} table{border-collapse:collapse;width:100%;margin:.8rem 0;font-size:.88rem} caption{text-align:left;color:var(--muted);padding:.2rem 0}
th{text-align:left;font-weight:600;border-bottom:1.5px solid var(--muted);padding:.3rem .55rem;vertical-align:bottom} td{border-bottom:1px solid var(--rule);padding:.32rem .55rem;vertical-align:top}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap} td.row{color:var(--muted);font-size:.8rem} td.mark{text-align:center;white-space:nowrap}
.yes{color:var(--yes)} .no{color:var(--no);font-weight:600} .none{color:var(--muted)} tr.why td{border-bottom:1px solid var(--rule);padding-top:0;color:var(--muted);font-size:.84rem} tr.has td{border-bottom:0} tr.wrong td{background:var(--tint)}
figure{margin:1.4rem 0;max-width:46rem} figure svg{width:100%;height:auto;display:block} figure.wide{max-width:62rem} figcaption{color:var(--muted);font-size:.88rem;max-width:44rem} figcaption b{color:var(--ink)}
nav ul{columns:2;padding-left:1.1rem;font-size:.92rem;max-width:46rem} .wrongs li{margin:.4rem 0;max-width:46rem}
@media (max-width:640px){nav ul{columns:1} body{padding:1rem .8rem 3rem}}
@media print{:root{--ink:#000;--muted:#444;--rule:#ccc;--paper:#fff;--tint:#f4f4f4;--yes:#00694c;--no:#a03c00} body{max-width:none;font-size:10pt;padding:0} h2{break-after:avoid} figure,tr{break-inside:avoid} nav{display:none} .scroll{overflow:visible}}
"""


def page(parts: Sequence[Part], facts: dict[str, Any]) -> str:
    """The whole page. `facts`: settings, seconds, versions, notes."""
    numbers = [n for part in parts for n in part.numbers]
    body = [
        _head(numbers, facts), _quoted(numbers), _wrong(numbers), _contents(parts),
        *(_part(i, part) for i, part in enumerate(parts)), _foot(facts),
    ]  # fmt: skip
    title = "Bayes Factors via Savage-Dickey Supermodels, reproduced"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{CSS}</style></head><body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _head(numbers: Sequence[Number], facts: dict[str, Any]) -> str:
    count = tally(numbers)
    lengths = (
        f"Fast run: {facts['steps']}; the full run uses the paper's own step counts."
        if facts["settings"] == "fast"
        else "The paper's own step counts." if facts["settings"] == "full" else "A tiny run, for tests of the machinery only."
    )
    cards = (
        (f"{count['agree']} of {count['checked']}", "numbers agree with the exact value"),
        (f"{count['paper_agree']} of {count['paper']}", "statements and values of the paper hold"),
        (str(facts["figures"]), "figures"),
        (f"{facts['seconds'] / 60:.1f} min", "run time"),
    )
    shown = "".join(f'<div class="card"><b>{a}</b>{b}</div>' for a, b in cards)
    return f"""<h1>“Bayes Factors via Savage-Dickey Supermodels”, every experiment repeated</h1>
<p>Mootoovaloo, Bassett and Kunz propose to embed two models in one supermodel and to read the Bayes factor off the posterior of the
parameter α that joins them. This page repeats each of their figures and numbers, beside exact values. {html.escape(lengths)}</p>
<div class="cards">{shown}</div>
<p class="small">Ours <b>agrees</b> if it lies within three of its errors of the exact value (three-sigma deviations: one in 370 by chance), within the
stated digits where it has no sampling error, or inside the bounds where only an inequality is claimed. The paper's value <b>holds</b> if the exact
value lies within its own errors. Natural logarithms; ℓ = ln B₂₁ = ln Z₂ − ln Z₁; weight 1 is wholly M₁. One likelihood evaluation is one
run of one model at one point. The paper prints no data: both data sets are stand-ins with every feature it states.</p>"""


def _quoted(numbers: Sequence[Number]) -> str:
    chosen = [n for n in numbers if n.paper is not None and n.paper.value is not None and n.row in QUOTED_ROWS and "law" not in n.label and "ratio" not in n.label]
    chosen += [n for n in numbers if n.row == "F11" and n.paper is not None and "3.59" in n.paper.text]
    return f"<h2 id='glance'>The Bayes factors that the paper quotes</h2>{_table(chosen, remarks=False)}"


def _wrong(numbers: Sequence[Number]) -> str:
    found = [n for n in numbers if n.paper_agrees is False and n.remark]
    items = "".join(
        f"<li><b>{html.escape(n.paper.text)}</b> <span class='small'>({n.row})</span> {html.escape(n.remark)} "
        f"<span class='small'>{html.escape(n.label)}: {html.escape(n.shown())}.</span></li>"
        for n in found
        if n.paper is not None
    )
    return f"<h2 id='wrong'>Where the paper is wrong, and why</h2><ul class='wrongs'>{items}</ul>"


def _contents(parts: Sequence[Part]) -> str:
    items = "".join(f'<li><a href="#part{i}">{html.escape(p.title)}</a>{_count(p)}</li>' for i, p in enumerate(parts))
    return f"<nav><h2>Contents</h2><ul>{items}</ul></nav>"


def _count(part: Part) -> str:
    bad = sum(n.agrees is False for n in part.numbers)
    return f' <span class="no">✗ {bad}</span>' if bad else ""


def _part(i: int, part: Part) -> str:
    pictures = "".join(_picture(p) for p in part.pictures)
    text = f"<p>{html.escape(part.text)}</p>" if part.text else ""
    return f'<h2 id="part{i}">{html.escape(part.title)}</h2>{text}{pictures}{_table(part.numbers)}'


def _picture(picture: Picture) -> str:
    svg = figures.svg_of(picture.figure, picture.name)
    # The neutral colours become those of the reader's theme; the others are chosen to be seen on both.
    for colour, name in ((figures.INK, "ink"), (figures.MUTED, "muted"), (figures.RULE, "rule"), (figures.PAPER, "paper")):
        svg = svg.replace(colour, f"var(--{name})")
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{html.escape(picture.title)}" ', 1)
    wide = ' class="wide"' if picture.figure.get_figwidth() > 8 else ""
    return (
        f'<figure id="{picture.name}"{wide}>{svg}<figcaption><b>{html.escape(picture.title)}.</b> '
        f"{html.escape(picture.caption)}</figcaption></figure>"
    )


def _table(numbers: Sequence[Number], remarks: bool = True) -> str:
    head = (
        "<tr><th>row</th><th>quantity</th><th>paper</th><th class='n'>exact</th><th class='n'>ours</th><th class='n'>evaluations</th>"
        "<th>ours</th><th>paper</th></tr>"
    )
    return f"<div class='scroll'><table><thead>{head}</thead><tbody>{''.join(_row(n, remarks) for n in numbers)}</tbody></table></div>"


def _row(n: Number, remarks: bool) -> str:
    paper = html.escape(n.paper.text) if n.paper is not None else ""
    cost = "" if n.evaluations in (None, 0) else f"{n.evaluations:,}".replace(",", " ")
    has = " class='has'" if n.remark and remarks else ""
    row = (
        f"<tr{has}><td class='row'>{n.row}</td><td>{html.escape(n.label)}</td><td>{paper}</td><td class='n'>{html.escape(n.shown_exact())}</td>"
        f"<td class='n'>{html.escape(n.shown())}</td><td class='n'>{cost}</td>{_mark(n.agrees)}{_mark(n.paper_agrees)}</tr>"
    )
    return row + (f"<tr class='why'><td></td><td colspan='7'>{html.escape(n.remark)}</td></tr>" if has else "")


def _mark(verdict: bool | None) -> str:
    name, sign, words = MARKS[verdict]
    return f"<td class='mark {name}' title='{words}'>{sign if verdict is not None else ''}</td>"


def _foot(facts: dict[str, Any]) -> str:
    notes = "".join(f"<p class='small'>{html.escape(note)}</p>" for note in facts["notes"])
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return (
        f"<h2>How this page was made</h2>{notes}<p class='small'>supermodel reproduce{' --fast' if facts['settings'] == 'fast' else ''}; "
        f"seed {facts['seed']}; {html.escape(versions)}. numbers.json beside this page has every value; figures/ has every figure as PNG and SVG.</p>"
    )
