"""The answer on a terminal: the same words and numbers as `print(result)`, in tables and colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from supermodel.report import text
from supermodel.report.tables import Cells, ranking_cells

if TYPE_CHECKING:
    from supermodel.result import Comparison

COLOURS = {"ok": "green", "caution": "yellow", "limit": "yellow", "fail": "bold red"}


def show(result: Comparison, console: Any = None) -> None:
    """Print a result with rich."""
    from rich.console import Console
    from rich.text import Text

    console = console or Console(highlight=False)
    first, *rest = text.headline(result).splitlines()
    console.print(Text(first, style="bold"))
    console.print(Text("\n".join(rest)))
    console.print(table(ranking_cells(result.table())))
    marginals = text.parameters(result)
    if marginals is not None:
        console.print(table(marginals))
    console.print(Text(text.verdict(result), style=COLOURS[result.verdict.level]))
    console.print(Text(text.provenance(result), style="dim"))


def table(cells: Cells) -> Any:
    """A table of strings as a rich one; names in it are never read as markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    found = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=Text(cells.note) if cells.note else None, caption_justify="left")
    for i, name in enumerate(cells.header):
        found.add_column(Text(name), justify="left" if i in cells.left else "right", overflow="fold")
    for row in cells.rows:
        found.add_row(*(Text(cell) for cell in row))
    return found
