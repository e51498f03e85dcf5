"""Writes prevertical, ``<doc ...>`` and ``<p ...>`` elements, one tag or one paragraph a line; and divides paragraphs
into tokens, for vertical files.

Tokens go by one rule for all languages, by Unicode's classes.  A token is a word with its marks, inner apostrophes and
hyphens; a number with its separators; an address; a Tibetan syllable; or any other sign.  Words of Chinese, Japanese,
Thai, Lao, Khmer and Burmese are those of ICU's dictionaries, if icu4py is installed.  Else Chinese and Japanese are
divided into characters, the others at spaces.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from spiderling.base.machine import missing
from spiderling.text.fingerprints import HAN_KANA
from spiderling.text.html.blocks import MARKUP_ATTRIBUTES
from spiderling.text.ngrams import MARKS

logger = logging.getLogger(__name__)

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": " ", "\r": " ", "\t": " "}
_UNUSUAL = re.compile("[^\x20\x21\x23-\x25\x27-\x3b\x3d\x3f-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""A character of _ESCAPES, or one that XML forbids."""


def render(attributes: Mapping[str, object], paragraphs: Iterable[tuple[str, str]]) -> str:
    """One ``<doc>`` with *paragraphs*: (text, attributes as `render_attributes` gives them)."""
    return f"<doc{render_attributes(attributes)}>\n{elements(paragraphs)}</doc>\n"


def elements(paragraphs: Iterable[tuple[str, str]]) -> str:
    """The ``<p>`` elements of a document; *paragraphs* as in `render`."""
    return "".join([f"<p{details}>\n{with_breaks(text)}\n</p>\n" for text, details in paragraphs])


def are_elements(data: bytes) -> bool:
    """Whether *data* cannot end its document: each ``<`` in it is of a ``<p``, a ``<lb/>`` or a line ``</p>``."""
    tags = data.count(b"<") - data.count(b"<lb/>")
    if not tags / 2 == data.count(b"\n") / 3 == data.count(b"<p") == data.count(b"\n</p>\n"):
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def render_attributes(attributes: Mapping[str, object]) -> str:
    """*attributes* as they stand in a tag; empty ones are left out."""
    return "".join([f' {name}="{escape(str(value))}"' for name, value in attributes.items() if value != ""])


@lru_cache(maxsize=1000)
def details(
    cls: str, kind: str, heading: bool, language: str | None, duplicate: bool, markup: Sequence[tuple[str, str]] = ()
) -> str:
    """The attributes of a paragraph, as `render_attributes` gives them."""
    mark = "1" if heading else ""
    attributes = {"class": cls, "kind": kind, "heading": mark, "lang": language or "", "dup": "1" if duplicate else ""}
    further = {name: value for name, value in markup if name in MARKUP_ATTRIBUTES}
    return render_attributes(attributes | further)


def escape(text: str) -> str:
    """*text* as XML 1.0 character data or attribute value on one line, without characters that XML forbids."""
    return _UNUSUAL.sub(lambda match: _ESCAPES.get(match[0], ""), text)


def with_breaks(text: str) -> str:
    """*text* as `escape` gives it, with ``<lb/>`` for each line feed."""
    return escape(text) if "\n" not in text else "<lb/>".join(map(escape, text.split("\n")))


_JOINERS = "\u200c\u200d"
_LETTER = rf"(?:(?!{HAN_KANA.pattern})[^\W\d_]|[{MARKS}{_JOINERS}])"


@lru_cache(maxsize=1)
def _token() -> re.Pattern[str]:
    """What a token is; it takes long to compile, and only vertical files need it."""
    return re.compile(
        rf"""
          (?:https?://|www\.)[^\s<>"]{{1,2000}}(?<![.,;:!?)\]'’»“”])  # an address, without the signs behind it
        | [\w.+-]{{1,64}}@\w[\w-]{{0,63}}(?:\.\w[\w-]{{0,63}}){{1,8}}  # of mail
        | \d+(?:[.,:]\d+)*
        | {_LETTER}(?:{_LETTER}|\d|_)*(?:['’\-‐‑·](?={_LETTER})(?:{_LETTER}|\d|_)+)*[\u0f0b\u0f0c]?
        | (?P<han_kana>(?:{HAN_KANA.pattern}[{MARKS}]*)+)
        | (?P<sign>[^\w\s])(?P=sign)*                                  # ... and --- are one
        | \S
        """,
        re.VERBOSE,
    )


_BRAHMIC = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")  # Thai, Lao, Burmese and Khmer letters
_CHARACTER = re.compile(f"{HAN_KANA.pattern}[{MARKS}]*")


@lru_cache(maxsize=1)
def divider() -> Callable[[str], Iterable[str]] | None:
    """What divides text without spaces into words; None, and a warning, without the package for it."""
    if sentence := missing("vertical"):
        logger.warning(
            "Words of Chinese, Japanese, Thai, Lao, Khmer and Burmese are not divided as their speakers do: %s.",
            sentence,
        )
        return None
    from icu4py.breakers import WordBreaker  # 40 MB, and most corpora do not need it

    return lambda text: WordBreaker(text, "en")  # its dictionaries go by the script


def _words(match: re.Match[str]) -> Iterable[str]:
    """The words of what matched `_token`."""
    text = match[0]
    if not match["han_kana"] and not _BRAHMIC.search(text):
        return (text,)
    divide = divider()
    if divide is not None:
        return divide(text)
    return _CHARACTER.findall(text) if match["han_kana"] else (text,)


class Token(NamedTuple):
    """A word or sign."""

    text: str
    glued: bool  # whether no space stands before it


def tokens(text: str) -> Iterator[Token]:
    """The tokens of *text*; each of its characters but white space is in one of them.

    >>> [token.text for token in tokens("Don't (e.g. 3.14)...")]
    ["Don't", '(', 'e', '.', 'g', '.', '3.14', ')', '...']
    """
    end = -1
    for match in _token().finditer(text):
        glued = match.start() == end
        for word in _words(match):
            yield Token(word, glued)
            glued = True
        end = match.end()
