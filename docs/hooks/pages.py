r"""Pages that hold together: lists after indented paragraphs, numbers that are not broken, and a check of the finished HTML.

Python-Markdown takes `- next item` for a line of the indented paragraph that stands right above it, and the rest of the list
runs together into one paragraph. CommonMark and GitHub do not; a blank line between the two makes it an item for all.
"""

import re
from html.parser import HTMLParser

ITEM = re.compile(r"( *)(?:[-*+]|\d+\.) ")
FENCE = re.compile(r" *(```|~~~)")
CODE = re.compile(r"(<(pre|code|script|style|math)\b.*?</\2>|<[^>]+>)", re.DOTALL)
GROUPED = re.compile(r"(?<=\d) (?=\d{3}(?!\d))")

RUN_TOGETHER = re.compile(r"(?:^|\n)\s*(?:[-*+]|\d{1,2}\.) +\S")
WIDTH = 938  # pixels of a page on a screen of 1280
CELL, DENSE_CELL, DENSE = (
    (7.0, 27.0),
    (5.8, 12.0),
    10,
)  # pixels of a letter and beside it; from so many columns on: page.css


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


def unbroken(output: str) -> str:
    """HTML in which `9 000` stays in one line; code stays as it is."""
    parts = CODE.split(output)
    # Three to a match: text, what is matched, the name of its tag.
    return "".join(GROUPED.sub("\u00a0", part) if i % 3 == 0 else part for i, part in enumerate(parts) if i % 3 != 2)


def problems(output: str) -> list[str]:
    """What has fallen apart in a finished page: lists within paragraphs, tables that do not fit, images without words."""
    reader = _Reader()
    reader.feed(output)
    return reader.found


class _Reader(HTMLParser):
    """Collects the text of each paragraph, the longest words of each column, and images."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.paragraph: list[str] | None = None
        self.deep = 0  # within code or a formula
        self.columns: dict[int, float] | None = None  # of the table that is read: letters of the longest word in each
        self.cell: list[str] | None = None
        self.place = -1

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "img" and not (given.get("alt") or "").strip():
            self.found.append(f"an image without text: {given.get('src')}")
        if tag in ("code", "pre", "math"):
            self.deep += 1
        if tag in ("p", "li", "div", "ul", "ol", "table", "h1", "h2", "h3", "h4"):
            self._end_paragraph()
        if tag == "p":
            self.paragraph = []
        if tag == "table":
            self.columns = {} if "class" not in given else None
        if tag == "tr":
            self.place = -1
        if tag in ("td", "th"):
            self.place, self.cell = self.place + 1, []

    def handle_endtag(self, tag):
        if tag in ("code", "pre", "math"):
            self.deep -= 1
        if tag == "p":
            self._end_paragraph()
        if tag in ("td", "th") and self.cell is not None and self.columns is not None:
            longest = max(map(len, "".join(self.cell).split(" ")), default=0)
            self.columns[self.place] = max(self.columns.get(self.place, 0.0), float(longest))
        if tag in ("td", "th"):
            self.cell = None
        if tag == "table" and self.columns is not None:
            letter, beside = DENSE_CELL if len(self.columns) >= DENSE else CELL
            width = sum(letter * longest + beside for longest in self.columns.values())
            if width > WIDTH:
                self.found.append(f"a table that needs {width:.0f} of {WIDTH} pixels, {len(self.columns)} columns")
            self.columns = None

    def handle_data(self, data):
        if self.paragraph is not None:
            self.paragraph.append(data if not self.deep else data.replace("\n", " "))
        if self.cell is not None and not self.deep:
            self.cell.append(data)

    def _end_paragraph(self) -> None:
        text = "".join(self.paragraph or [])
        if RUN_TOGETHER.search(text):
            self.found.append(f"a list that runs together in a paragraph: {text.strip()[:60]!r}")
        self.paragraph = None


def on_page_markdown(markdown: str, page, config, files) -> str:
    """Called by MkDocs with the source of each page."""
    return separated(markdown)


def on_post_page(output: str, page, config) -> str:
    """Called by MkDocs with the finished HTML of each page; one that falls apart stops the build."""
    if found := problems(output):
        from mkdocs.exceptions import PluginError

        raise PluginError(f"{page.file.src_path}: " + "; ".join(found))
    return unbroken(output)
