"""Kinds of paragraphs: what a paragraph is, whether or not it is running text."""

from __future__ import annotations

from spiderling.base.errors import BadInput

TEXT = "text"
HEADING = "heading"
COMMENT = "comment"
"""By a reader, below the text of the page."""
TEASER = "teaser"
"""Of another page: "read also", a list of links."""
CODE = "code"
CELL = "cell"
"""Of a table, without a sentence."""
NOTICE = "notice"
"""About the page and not of it: consent, JavaScript, the software of a forum."""
KINDS = (TEXT, HEADING, COMMENT, TEASER, CODE, CELL, NOTICE)


def parse(text: str) -> frozenset[str]:
    """The kinds in *text*, separated by commas; raises BadInput for an unknown one, and for none.

    >>> sorted(parse("text, Heading"))
    ['heading', 'text']
    """
    kinds = frozenset(part.strip().lower() for part in text.split(",")) - {""}
    unknown = sorted(kinds.difference(KINDS))
    if unknown:
        raise BadInput(f"SPIDERLING_PARAGRAPH_KINDS names {unknown[0]!r}; known are {', '.join(KINDS)}.")
    if not kinds:
        raise BadInput(f"SPIDERLING_PARAGRAPH_KINDS names no kind; write some of {', '.join(KINDS)}, with commas.")
    return kinds
