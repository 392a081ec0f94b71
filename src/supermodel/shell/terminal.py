"""The answer on a terminal: the same words and numbers as `print(result)`, in tables and colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from supermodel.report import text
from supermodel.report.tables import Cells, ranking_cells

if TYPE_CHECKING:
    from supermodel.results.comparison import Comparison

COLOURS = {"ok": "green", "caution": "yellow", "limit": "yellow", "fail": "bold red"}


def show(result: Comparison, console: Any = None) -> None:
    """Print a result with rich."""
    from rich.console import Console
    from rich.text import Text

    console = console or Console(highlight=False)
    first, *rest = text.headline(result).splitlines()
    console.print(Text(first, style="bold"))
    console.print(Text("\n".join(rest)))
    console.print(table(ranking_cells(result.table()), console.width))
    marginals = text.parameters(result)
    if marginals is not None:
        console.print(table(marginals, console.width))
    console.print(Text(text.verdict(result), style=COLOURS[result.verdict.level]))
    console.print(Text(text.provenance(result), style="dim"))


def table(cells: Cells, width: int) -> Any:
    """A table as a rich one, its last columns left out on a narrow terminal; names are never read as markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    cells = _fitted(cells, width)
    found = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, caption=Text(cells.note) if cells.note else None, caption_justify="left"
    )
    for i, name in enumerate(cells.header):
        found.add_column(Text(name), justify="left" if i in cells.left else "right", overflow="fold")
    for row in cells.rows:
        found.add_row(*(Text(cell) for cell in row))
    return found


def _fitted(cells: Cells, width: int) -> Cells:
    widths = [max(len(row[i]) for row in (cells.header, *cells.rows)) + 3 for i in range(len(cells.header))]
    n = len(widths)
    while n > 4 and sum(widths[:n]) > width:
        n -= 1
    return Cells(cells.header[:n], tuple(row[:n] for row in cells.rows), cells.left, cells.note)
