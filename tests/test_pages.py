"""The finished pages hold together: what MkDocs would let run together, run over or go without words is found."""

import pytest
from pages import problems, separated, unbroken

LIST = """- One, with a formula,

    $$ x $$

    and words after it.
- Two.
- Three.
"""


def test_an_item_after_an_indented_paragraph_gets_a_blank_line_and_code_does_not():
    assert separated(LIST) == LIST.replace("it.\n- Two.\n- Three.", "it.\n\n- Two.\n- Three.")
    assert separated(separated(LIST)) == separated(LIST)
    for plain in (
        "- a\n- b\n",
        "text\n- a\n",
        "- a\n  goes on\n- b\n",
        "```\n\n    x\n- no list\n```\n",
        "    - a\n    - b\n",
    ):
        assert separated(plain) == plain


def test_python_markdown_then_reads_three_items():
    markdown = pytest.importorskip("markdown").markdown
    assert markdown(LIST).count("<li>") == 1 and markdown(separated(LIST)).count("<li>") == 3


@pytest.mark.parametrize(
    ("html", "fault"),
    [
        ("<ul><li><p>words after it.\n- <strong>Two</strong>.</p></li></ul>", "a list that runs together"),
        ("<p>first\n2. second</p>", "a list that runs together"),
        ('<p><img src="a.png"></p>', "an image without text: a.png"),
        ('<p><img src="a.png" alt=" "></p>', "an image without text"),
        ("<table><tr>" + f"<td>{'x' * 30}</td>" * 5 + "</tr></table>", "a table that needs 1185 of 938 pixels"),
    ],
)
def test_a_page_that_falls_apart_is_told(html, fault):
    (found,) = problems(html)
    assert fault in found


def test_a_page_that_holds_is_silent():
    assert not problems(
        "<p>a - b, and 3. of May</p><ul><li>- fine</li></ul><pre><code>x\n- y</code></pre><p><code>a\n- b</code></p>"
        '<img src="a.png" alt="A curve"><table><tr>' + f"<td>{'word ' * 30}</td>" * 5 + "</tr></table>"
    )


def test_a_number_of_several_groups_stays_in_one_line():
    html = '<p>9 000 draws of 2 000 000, in 3 4 or 12 345</p><pre><code>9 000</code></pre><a href="1 000">5 10000</a>'
    expected = html.replace("9 000 draws", "9\u00a0000 draws").replace("2 000 000", "2\u00a0000\u00a0000")
    assert unbroken(html) == expected.replace("12 345", "12\u00a0345")
