"""Tables and sentences of docs/benchmarks_peers.md, from the records and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable

from benchmarks.fire.trial import ROOT
from benchmarks.peers.figures import OURS, Cell, cells, lead
from benchmarks.peers.problems import LONG, questions
from benchmarks.peers.programs import PROGRAMS

PAGE = ROOT / "docs" / "benchmarks_peers.md"
PICTURES = ROOT / "docs" / "pictures"
BEGIN, END = "<!-- peers:begin -->", "<!-- peers:end -->"
AHEAD = 10.0


def short(x: float) -> str:
    """Two digits, and no more zeros than can be read."""
    if math.isnan(x):
        return "–"
    if x < 1e-4:
        return "< 10⁻⁴"
    for size, unit in ((1e6, " M"), (1e3, " k"), (1, "")):
        if x >= 0.995 * size:  # 996 is 1 k
            digits = x / size
            return (f"{digits:.2g}" if digits < 99.5 else f"{10 * round(digits / 10)}") + unit
    return f"{x:.2g}"


def state(cell: Cell) -> str:
    """What stands where there is no number."""
    return {"cut": f"> {cell.limit:.0f} s", "not tried": "·", "not asked": ""}.get(cell.status, cell.status)


def number(cell: Cell, figure: Callable[[Cell], float]) -> str:
    if cell.status != "done":
        return state(cell)
    return short(figure(cell)) + (" ✗" if cell.is_wrong else "") + (" ⚑" if cell.flagged else "")


def overview(found: dict, figure: Callable[[Cell], float], mark: Callable[[Cell], str] = lambda cell: "") -> str:
    """A row for each problem, a column for each program; the best is bold."""
    titles = questions()
    lines = ["| problem | " + " | ".join(p.title for p in PROGRAMS.values()) + " |", "|---" * (1 + len(PROGRAMS)) + "|"]
    for name, row in found.items():
        best = min((figure(c) for c in row.values() if c.status == "done" and not c.is_wrong), default=math.nan)
        words = [number(c, figure) + mark(c) for c in row.values()]
        bold = [
            f"**{w}**" if c.status == "done" and figure(c) == best else w
            for w, c in zip(words, row.values(), strict=True)
        ]
        lines.append(f"| {titles[name].title} | " + " | ".join(bold) + " |")
    return "\n".join(lines)


def answers(row: dict[str, Cell]) -> str:
    """All that was measured on one problem."""
    lines = [
        "| program | runs | claimed error | true error (rms) | evaluations | with gradient | seconds | evaluations × error² |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for c in row.values():
        title = PROGRAMS[c.program].title
        if c.status == "done":
            claimed = "none" if math.isnan(c.claimed) else short(c.claimed)
            lines.append(
                f"| {title} | {c.runs} | {claimed} | {short(c.miss)}{' ✗' if c.is_wrong else ''} | {short(c.evaluations)} | "
                f"{short(c.gradients) if c.gradients else ''} | {short(c.seconds)} | {short(c.merit)} |"
            )
        elif c.status != "not asked":
            words = {"cut": f"did not end in {c.limit:.0f} s", "not tried": "not tried"}.get(
                c.status, f"{c.status}: {c.note}"
            )
            calls = short(c.evaluations) if c.evaluations == c.evaluations else ""
            lines.append(f"| {title} | {words} | | | {calls} | | | |")
    return "\n".join(lines)


def times(x: float) -> str:
    return f"{x:.2g}" if x < 10 else f"{x:.0f}" if x < 1e4 else "more than 10 000"


def against(mine: Cell, theirs: Cell) -> str:
    """What the ratio is made of, e.g. "dynesty: 4.2 times the evaluations, 3.0 times the error"."""
    calls, error = theirs.evaluations / mine.evaluations, theirs.error / mine.error
    return f"{PROGRAMS[theirs.program].title}: {times(calls)} times the evaluations, {times(error)} times the error"


def standing(found: dict) -> str:
    """Where ours is ahead of every program by ten times and more, and where not and by what."""
    titles, lines = questions(), []
    heads = (
        "With gradients, against every program,",
        "The same, asked for ± 0.01,",
        "Without gradients, against those that use none,",
    )
    for ours, head in zip(OURS, heads, strict=True):
        leads = {name: lead(row, ours) for name, row in found.items() if row[ours].status == "done"}
        failed = [titles[name].title for name, row in found.items() if row[ours].status in ("cut", "failed")]
        alone = [titles[name].title for name, (x, _) in leads.items() if math.isnan(x)]
        ahead = [f"{titles[name].title} ({times(x)})" for name, (x, _) in leads.items() if x >= AHEAD]

        def others(low: float, high: float, ours: str = ours, leads: dict = leads) -> list[str]:
            return [
                f"{titles[name].title} (by {times(max(x, 1 / x))}; {against(found[name][ours], found[name][who])})"
                for name, (x, who) in leads.items()
                if low <= x < high
            ]

        less, behind = others(1.0, AHEAD), others(0.0, 1.0)
        parts = [
            f"ten times ahead or more on {len(ahead)} of {len(leads) - len(alone)} problems: {', '.join(ahead) or 'none'}"
        ]
        parts += [f"ahead by less on {', '.join(less)}"] if less else []
        parts += [f"behind on {', '.join(behind)}"] if behind else []
        parts += [f"without an answer, which it says, on {', '.join(failed)}"] if failed else []
        parts += [f"so far with no other answer beside it on {', '.join(alone)}"] if alone else []
        lines.append(f"**{head}** supermodel is " + "; ".join(parts) + ".")
    return "\n\n".join(lines)


def settings() -> str:
    lines = ["| program | how it was asked |", "|---|---|"]
    return "\n".join(lines + [f"| {program.title} | {program.set_up} |" for program in PROGRAMS.values()])


def truths() -> str:
    titles = questions()
    return "\n".join(
        ["| problem | ln B | error | by |", "|---|---|---|---|"]
        + [
            f"| {titles[name].title} | {value:.4f} | {error:.2g} | {how} |"
            for name, (value, error, how) in LONG.items()
        ]
    )


def text(records: dict) -> str:
    """All that is printed, and that stands between the marks of the page."""
    found = cells(records)
    titles = questions()
    parts = [
        standing(found),
        "![Evaluations times error squared, by problem and program](pictures/peers_merit.png)",
        "![Seconds to an error of 0.1, by problem and program](pictures/peers_seconds.png)",
        "## Evaluations × error²",
        overview(found, lambda c: c.merit),
        f"## Seconds to ± {0.1}",
        overview(found, lambda c: c.seconds_to_wanted, lambda c: "*" if c.status == "done" and c.is_scaled else ""),
        "## How each was asked",
        settings(),
        "## Truths that are no closed forms",
        truths(),
        "## Every problem",
    ]
    for name, row in found.items():
        inner = answers(row).replace("\n", "\n    ")
        parts.append(f'??? note "{titles[name].title}"\n\n    {inner}')
    return "\n\n".join(parts)


def write(records: dict) -> None:
    """The page of the documentation, between its two marks, and its two plots."""
    from benchmarks.peers.plots import draw

    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{text(records)}\n{END}{rest.split(END)[1]}")
    draw(cells(records), PICTURES)
