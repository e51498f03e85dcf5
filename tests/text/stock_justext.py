"""The parser and the rules with the defects of the ``justext`` package (3.0.2), to compare them with it.

html/parser.py and boilerplate/rules.py differ from the package in these points only: words
between inline tags are not joined, nor those around a field of a form; drawings, names of pictures and what
no reader sees are no text; invisible characters are dropped and text is in normal form; text behind the end of
the root element counts; a short heading is judged by what follows it (the package's issue 45).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest import mock

from spiderling.text.boilerplate import rules
from spiderling.text.html import blocks, parser, zones

if TYPE_CHECKING:
    from collections.abc import Collection

    from spiderling.text.html.blocks import Block


_KINDS = {
    **{tag: zones.DEAD for tag, kind in zones.TAG_KINDS.items() if kind == zones.FIELD},
    "svg": zones.INSIDE,
    "title": zones.HEAD + zones.INLINE,
    **dict.fromkeys(("desc", "sup", "template", "del", "s", "strike", "rt", "rp", "rtc", "annotation"), zones.INLINE),
}
"""What the package takes tags for, where it differs."""


def parse(page: str) -> list[Block]:
    """The package's paragraphs, white space as in `parser.parse`."""
    with mock.patch.dict(zones.TAG_KINDS, _KINDS), mock.patch.object(parser, "is_left_out", return_value=False):
        return parser.parse(page, _Builder()).blocks


def classify(blocks: list[Block], stoplist: Collection[str], given: rules.JustextRules) -> list[str]:
    """The package's classes."""
    return rules.classify(blocks, stoplist, given, first_headings=False)


class _Builder(parser.Builder):
    rubbish = b""

    @staticmethod
    def forms(texts: list[str]) -> list[str]:
        return texts

    @staticmethod
    def joined(text: str) -> str:
        return "".join(piece for piece in text.split(blocks.EDGE) if piece == blocks.BREAK or not piece.isspace())

    def _note_initial(self, letter: str) -> None:
        pass

    def _end_link(self) -> None:
        self._links.end_link()
        self._links.end_anchor()

    def end(self, tag: str) -> None:
        super().end(tag)
        if tag == "html":
            self.ignore("head")
