"""`python docs/hooks/paper_numbers.py reproduction/numbers.json`: docs/paper/numbers.md from a run of `supermodel reproduce`."""

import json
import sys
from pathlib import Path

from supermodel_paper.numbers import Number, Quoted

PAGE = Path(__file__).resolve().parents[1] / "paper" / "numbers.md"
SIGNS = {True: "✓", False: "✗", None: ""}
FIELDS = ("row", "label", "ours", "error", "exact", "tolerance", "evaluations", "peer")


def number(record: dict) -> Number:
    """A number of the file, to be shown as the page of the run shows it."""
    bounds = record["bounds"] and (
        record["bounds"][0],
        float("inf") if record["bounds"][1] is None else record["bounds"][1],
    )
    known = {name: record[name] for name in FIELDS if name in record}
    known["ours"] = float("nan") if known["ours"] is None else known["ours"]
    return Number(**known, bounds=bounds, paper=Quoted(record["paper"]["text"]))


def line(record: dict) -> str:
    """One row of the table."""
    n = number(record)
    cost = f"{n.evaluations:.2g}" if n.evaluations else ""
    ours = n.shown() + (f" ({n.peer})" if n.peer else "")
    cells = (
        n.row,
        n.label,
        n.paper.text,
        n.shown_exact(),
        ours,
        cost,
        SIGNS[record["agrees"]],
        SIGNS[record["paper_agrees"]],
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def page(run: dict) -> str:
    """All that the paper states, beside what is exact and what was found."""
    count, option = run["summary"], " --fast" if run["settings"] == "fast" else ""
    records = [n for part in run["parts"] for n in part["numbers"] if n["paper"]]
    versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
    theirs = f"; of the peers' numbers {count['peers_agree']} of {count['peers']}" if count.get("peers") else ""
    told = (
        f"The run has {'fewer than ' if option else ''}the paper's own step counts: seed {run['seed']}, "
        f"{run['seconds'] / 60:.0f} minutes on a busy machine; {versions}.\n"
        f"Of its {count['numbers']} numbers {count['checked']} can be checked, and {count['agree']} of these agree with the "
        f"exact value (within three of their errors){theirs}.\n{count['paper_agree']} of the {count['paper']} values and "
        f"statements of the paper hold. Below are the {len(records)} numbers of which the paper says something;\n"
        "the others, all figures, and the reasons where the paper is wrong, are on the page that the command writes.\n"
        "The last two columns: ours agrees with the exact value; the paper's value or statement holds.\n"
    )
    head = "| row | quantity | paper | exact | ours | evaluations | ours | paper |\n|---|---|---|---|---|---|---|---|"
    lines = [f"# The numbers of the paper\n\n    supermodel reproduce{option}\n", told, head, *map(line, records), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(Path(sys.argv[1]).read_text())))
