r"""List items after an indented paragraph, as CommonMark and GitHub read them.

Python-Markdown takes `- next item` for a line of the indented paragraph that stands right above it, and the rest of the list
runs together into one paragraph. A blank line between the two makes it an item for both.
"""

import re

ITEM = re.compile(r"( *)(?:[-*+]|\d+\.) ")
FENCE = re.compile(r" *(```|~~~)")


def separated(markdown: str) -> str:
    """The page with a blank line before each item that follows an indented paragraph of the item above."""
    lines: list[str] = []
    fenced, indented = False, False  # within code; within a paragraph that began with an indent, after a blank line
    for line in markdown.split("\n"):
        if FENCE.match(line):
            fenced = not fenced
        before = lines[-1] if lines else ""
        item = ITEM.match(line)
        if not fenced and indented and item and before.strip() and len(item[1]) < len(before) - len(before.lstrip()):
            lines.append("")
        if not line.strip() or item:
            indented = False
        elif not before.strip():
            indented = line.startswith("    ")
        lines.append(line)
    return "\n".join(lines)


def on_page_markdown(markdown: str, page, config, files) -> str:
    """Called by MkDocs with the source of each page."""
    return separated(markdown)
