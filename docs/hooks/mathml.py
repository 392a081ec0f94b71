r"""Formulas become MathML when the site is built: no script, no font, no network, and copy and paste works.

`pymdownx.arithmatex` marks `$...$` and `$$...$$`, in pages and in docstrings alike; this hook converts what it marked.
`\tag{3}` in a displayed formula sets the number (3) in the margin. A formula that cannot be read stops the build.
"""

import html
import re

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
TAG = re.compile(r"\\tag\{(\w+)\}")


LONG = 50  # characters of LaTeX from which on a formula in a line of text may be wider than a phone, and scrolls there
UNKNOWN = re.compile(r"<mi>(\\[A-Za-z]+)</mi>")  # what latex2mathml does not know it passes on as a name
UPRIGHT = re.compile(r"<mi>&#x000([2-7][0-9A-F]);</mi>")  # one letter under \mathrm, which a browser would slant
FUNCTION = re.compile(r"(<mi>(?:ln|log|exp|sin|cos|tanh|logit)</mi>)(?!<mo|</m)")  # ln Z, not lnZ


def mathml(latex: str, display: str, page: str) -> str:
    """One formula as MathML."""
    try:
        formula = convert(html.unescape(latex).strip(), display=display)
    except Exception as error:
        raise PluginError(f"{page}: cannot read the formula {latex!r}: {error!r}") from error
    if unknown := UNKNOWN.search(formula):
        raise PluginError(f"{page}: {unknown[1]} is unknown in the formula {latex!r}")
    formula = UPRIGHT.sub(r'<mi mathvariant="normal">&#x000\1;</mi>', formula)
    return FUNCTION.sub(r'\1<mspace width="0.17em"></mspace>', formula)


def on_post_page(output: str, page, config) -> str:
    """Called by MkDocs with the finished HTML of each page."""
    where = page.file.src_path

    def displayed(match: re.Match) -> str:
        tag = TAG.search(match[1])
        formula = mathml(TAG.sub("", match[1]), "block", where)
        number = f'<span class="equation-number">({tag[1]})</span>' if tag else ""
        anchor = f' id="eq-{tag[1]}"' if tag else ""
        return f'<div class="equation"{anchor}>{formula}{number}</div>'

    def within(match: re.Match) -> str:
        formula = mathml(match[1], "inline", where)
        return f'<span class="long-formula">{formula}</span>' if len(match[1]) > LONG else formula

    output = DISPLAY.sub(displayed, output)
    return INLINE.sub(within, output)
