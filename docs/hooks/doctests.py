"""Doctests are shown as code: Griffe does so only under an "Examples" heading, and ours stand in the text."""

import re

import griffe

DOCTEST = re.compile(r"(?:^>>> .*\n?)(?:^.*\S.*\n?)*", re.MULTILINE)


class FenceDoctests(griffe.Extension):
    """Put a fence around each run of lines that begins with a prompt."""

    def on_object(self, *, obj, **kwargs) -> None:
        """Called by Griffe for each object it has read."""
        if obj.docstring and ">>> " in obj.docstring.value and "```" not in obj.docstring.value:
            text = obj.docstring.value
            obj.docstring.value = DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)
