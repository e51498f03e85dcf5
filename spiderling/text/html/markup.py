"""Mark-up that is kept on request (SPIDERLING_MARKUP): ends of lines, lists, rows of tables, marks of notes, ruby.

Which blocks a page has, and what they are judged to be, does not depend on it, but for marks of notes.  The compiled
steps do not know it, so such pages are parsed in Python.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from spiderling.base.option_values import BREAKS, LISTS, NOTES, RUBY, TABLES
from spiderling.text.html.blocks import BREAK, Block, Markup, Parsed, normal_form
from spiderling.text.html.parser import Builder, parse

_GROUPS = {"ul": "list", "ol": "list", "dl": "list", "tr": "row"}  # tag -> attribute of the paragraphs in it
_KEPT_BY = {"list": LISTS, "row": TABLES}
_ITEMS = frozenset(("li", "dt", "dd", "td", "th"))
_NOTE = re.compile("footnote|endnote|noteref|fnanchor|fnref", re.IGNORECASE)  # a class or role of a note's mark
_MAX_READINGS = 500  # readings of one block that are kept; chosen


def parse_with(markup: Collection[str], html: str | bytes) -> Parsed:
    """`parse` with `Parsed.markup`; *markup*: names of MARKUP (base/option_values.py)."""
    builder = MarkupBuilder(markup)
    kept = builder.kept
    return parse(html, builder)._replace(markup=kept)


@dataclass(slots=True)
class _Group:
    """A list, or a row of a table."""

    attribute: str
    number: int  # place among the lists, or the rows, of the page; 1 is the first
    item: int = 0  # place of its open or last item; 1 is the first


class MarkupBuilder(Builder):
    """Makes the blocks that a `Builder` makes, and notes what is kept of their mark-up."""

    def __init__(self, markup: Collection[str]) -> None:
        super().__init__()
        self.kept: list[Markup] = []  # of each block
        self._markup = markup
        self._groups: list[_Group] = []  # those that are open
        self._numbers = dict.fromkeys(_KEPT_BY, 0)  # of lists and rows up to here
        self._has_begun = False  # has the current block text?
        self._place: _Group | None = None  # where that began
        self._preformatted = 0  # number of open <pre>
        self._lines = ""  # the last line that was made, with its breaks
        self._readings: list[str] = []  # of the current block
        self._base_start = 0  # number of tokens before the base of the next reading
        self._base = ""
        self.data = self._add_text

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        super().start(tag, attributes)
        self._preformatted += tag == "pre"
        if tag in _GROUPS:
            attribute = _GROUPS[tag]
            self._numbers[attribute] += 1
            self._groups.append(_Group(attribute, self._numbers[attribute]))
        elif tag in _ITEMS and self._groups:
            self._groups[-1].item += 1
        elif tag == "ruby":
            self._base_start = len(self._tokens)

    def end(self, tag: str) -> None:
        super().end(tag)
        self._preformatted -= tag == "pre"
        if tag in _GROUPS and self._groups:
            self._groups.pop()

    def _add_text(self, text: str) -> None:
        if not self._has_begun and not self._dead and not text.isspace():
            self._has_begun = True
            group = self._groups[-1] if self._groups else None
            self._place = replace(group) if group and _KEPT_BY[group.attribute] in self._markup else None
        self._tokens.append(text.replace("\n", BREAK) if self._preformatted else text)

    def _is_left_out(self, tag: str, attributes: Mapping[str, str]) -> bool:
        names = f"{attributes.get('class')} {attributes.get('role')}"
        is_note = NOTES in self._markup and _NOTE.search(names) is not None
        return not is_note and super()._is_left_out(tag, attributes)

    def _raise(self, tag: str) -> None:
        if NOTES not in self._markup:
            super()._raise(tag)

    def _open_dead(self, tag: str, kind: int, attributes: Mapping[str, str]) -> None:
        if tag == "rt":
            self._base = "".join(self._tokens[self._base_start :])
        super()._open_dead(tag, kind, attributes)

    def _end_dead(self) -> None:
        if self._dead == ["rt"]:
            reading = "".join(self._tokens[self._dead_start :])
            self._readings.append(f"{normal_form(self._base)}={normal_form(reading)}")
            self._base_start = self._dead_start  # where the tokens end, without those of the reading
        super()._end_dead()

    def _line(self, text: str) -> str:
        parts = map(super()._line, text.split(BREAK)) if BREAK in text else ()
        self._lines = "\n".join(filter(None, map(normal_form, parts)))
        return super()._line(text)

    def _add_block(self, text: str) -> None:
        super()._add_block(text)
        attributes = []
        if self._place:
            attributes += [(self._place.attribute, str(self._place.number)), ("item", str(self._place.item))]
        if self._readings and RUBY in self._markup:
            attributes.append(("ruby", " ".join(self._readings[:_MAX_READINGS])))
        self.kept.append(Markup(self._lines if BREAKS in self._markup else "", tuple(attributes)))

    def _new_block(self, opener: str = "") -> None:
        super()._new_block(opener)
        self._readings.clear()
        self._base_start = 0
        self._has_begun = False
        self._place = None

    def _blocks(self) -> list[Block]:
        found = super()._blocks()
        if len(found) < len(self.kept):
            forms = self.forms([row[0] for row in self._rows])
            self.kept[:] = [kept for kept, form in zip(self.kept, forms, strict=True) if form]
        return found
