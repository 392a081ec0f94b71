"""The answer on a terminal: the same words and numbers as `print(result)`, in tables and colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from supermodel.report import text
from supermodel.report.tables import Cells, ranking_cells

if TYPE_CHECKING:
    from supermodel.counting.result import Count
    from supermodel.results.comparison import Comparison

COLOURS = {"ok": "green", "caution": "yellow", "limit": "yellow", "fail": "bold red"}


def show(result: Comparison | Count, console: Any = None) -> None:
    """Print a result with rich."""
    from rich.console import Console
    from rich.text import Text

    from supermodel.counting.result import Count

    console = console or Console(highlight=False)
    inner = result.comparison if isinstance(result, Count) else result
    first, rest, cells = _of_count(result) if isinstance(result, Count) else _of_comparison(result)
    console.print(Text(first, style="bold"))
    console.print(Text(rest))
    for each in cells:
        console.print(table(each, console.width))
    console.print(Text(text.verdict(inner), style=COLOURS[inner.verdict.level]))
    console.print(Text(text.provenance(inner), style="dim"))


def _of_comparison(result: Comparison) -> tuple[str, str, list[Cells]]:
    """Its first line, the others, and the tables."""
    first, *rest = text.headline(result).splitlines()
    marginals = text.parameters(result)
    return first, "\n".join(rest), [ranking_cells(result.table()), *([] if marginals is None else [marginals])]


def _of_count(result: Count) -> tuple[str, str, list[Cells]]:
    from supermodel.counting.words import headline, number_cells

    is_known = result.comparison.weighed and result.best > 0
    return headline(result), result.stopped, [number_cells(result), *([result.components.cells()] if is_known else [])]


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
