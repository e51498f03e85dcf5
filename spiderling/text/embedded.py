"""Text that a page holds in JSON for its scripts: the longest prose in it, unless it is marked as not free.

A page that a browser fills by script often carries its text in JSON: as ``articleBody`` of JSON-LD for search engines,
or as the state with which its framework begins, in a script of its own (``__NEXT_DATA__``) or assigned to a variable
(``window.__INITIAL_STATE__ = {...}``).  No script is run, so what is no JSON gives nothing.  The strings of the place
with most prose are taken: a place is the keys on the way from the root, without their digits.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from spiderling.text.boilerplate.rules import length_scale
from spiderling.text.html.blocks import Block
from spiderling.text.withheld import is_reserved

SHORT_CHARS = 1000  # characters of good text below which a page's JSON is looked at; chosen: a teaser has fewer
MIN_CHARS = 250  # characters of prose that are text; chosen, the least of a document (text/quality.py)
_MIN_FACTOR = 2.0  # how many times as long as the good text outside of scripts it must be; chosen: else it is the same
_MAX_SCRIPTS = 300  # scripts of a page that are looked at; chosen
_MAX_CHARS = 2_000_000  # characters of scripts that are read; chosen: a large state has 1 MB
_MAX_STATES = 50  # assignments of a script that are tried; chosen
_MAX_HEAD = 500  # bytes of a script's attributes that are looked at; chosen
_MAX_TEXT = 400_000  # characters of HTML that are taken; chosen, a novel
_TYPE = re.compile(rb"""\btype\s*=\s*["']?([\w/+.-]+)""", re.IGNORECASE)
_STATE = re.compile(
    r"""(?:state|data|props|nuxt|next|apollo)[\w$]{0,60}["'\]\s]{0,9}=\s{0,9}(?=[{\[])""", re.IGNORECASE
)
"""``window.__INITIAL_STATE__ =`` and the like, before what may be JSON."""
_JSON_LD_KEYS = frozenset(("articleBody", "reviewBody", "text"))
"""Properties of schema.org that hold whole texts: of an article, a review, a post or an answer."""
_OTHER_KEYS = re.compile(
    r"""desc|summar|excerpt|teaser|snippet|abstract|caption|^alt|bio(?:graphy)?$|seo|^meta|tooltip|message|errors?$|label|i18n
    |locale|transl|config|setting|consent|cookie|promo|related|recommend|trending|popular|footer|^nav|menu|newsletter|legal
    |privacy|terms|^ads?$|advert|class|style|css|svg|query|schema|placeholder|review|comment|rating|faq|feature""",
    re.IGNORECASE | re.VERBOSE,
)
"""Keys above what is no text of the page itself: teasers, texts of the programs, of other pages, of readers."""
_MAX_KEY = 100  # characters of a key that are looked at; chosen
_MIN_PROSE = 80  # characters from which a string may be prose by itself; chosen, about a sentence
_LONG_PROSE = 200  # characters of a paragraph that teasers seldom have; chosen
_LONG_SHARE = 0.25  # share of the prose that stands in such strings, if it is text; chosen
_MIN_SPACES = 0.08  # white space / characters of prose in scripts with spaces; chosen: words of 12 letters
_MIN_LETTERS = 0.6  # letters / characters of prose; chosen: Hindi, whose vowel signs are none, has .65
_MAX_MARKS = 0.06  # signs of code / characters of prose; chosen
_MARKS = re.compile(r"[{}\[\]<>=;\\|_$#@/]")
_DIGITS = re.compile(r"\d+")
_TAGS = re.compile(r"<[^<>]*>")
_IS_HTML = re.compile(r"</\w|<(?:p|br|div|li|h[1-6])\b", re.IGNORECASE)
_IS_ESCAPED = re.compile(r"&lt;/?(?:p|br|div|li|h[1-6])\b", re.IGNORECASE)


class EmbeddedText(NamedTuple):
    """The text in a page's JSON."""

    html: bytes  # UTF-8, one <div>
    source: str  # where it was: 'json-ld', or 'state' for any other JSON


def embedded_text(page: bytes, blocks: Sequence[Block], good_chars: int) -> EmbeddedText | None:
    """The text in the JSON of *page*, UTF-8, that is far longer than the good text, *good_chars*, of its *blocks*.

    None if there is none, or the page says that it is not free.  Never raises, in time linear in the page's length.
    """
    found = [(*_longest_prose(value, source == "json-ld"), source) for source, value in _values(page)]
    chars, texts, source = max(found, key=lambda one: one[0], default=(0, [], ""))
    if chars < max(least_chars("".join(texts)), _MIN_FACTOR * good_chars) or is_reserved(page, blocks):
        return None
    inside = "".join(_paragraphs(texts))[:_MAX_TEXT]
    return EmbeddedText(b'<div class="article-body">%s</div>' % inside.encode("utf-8", "replace"), source)


def _values(page: bytes) -> Iterator[tuple[str, Any]]:
    """(source, value) of the JSON in the scripts of *page*."""
    left = _MAX_CHARS
    for head, content in _scripts(page):
        media_type = _TYPE.search(head)
        kind = media_type[1].lower() if media_type else b""
        is_code = kind in (b"", b"module") or b"javascript" in kind
        if not is_code and b"json" not in kind:
            continue
        text = content[:left].decode("utf-8", "replace")
        left -= len(text)
        if is_code:
            yield from (("state", value) for value in _states(text))
        else:
            start = min((place for place in (text.find("{"), text.find("[")) if place >= 0), default=0)
            yield "json-ld" if b"ld+json" in kind else "state", decoded(text, start)[0]


def _scripts(page: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(attributes, content) of the scripts that may hold a text."""
    lower = page.lower()
    end = 0
    for _ in range(_MAX_SCRIPTS):
        start = lower.find(b"<script", end)
        inside = lower.find(b">", start)
        end = lower.find(b"</script", inside)
        if start < 0 or inside < 0 or end < 0:
            return
        if end - inside > MIN_CHARS:
            yield page[start : min(inside, start + _MAX_HEAD)], page[inside + 1 : end]


def _states(code: str) -> Iterator[Any]:
    """The JSON values that a script assigns to what is named a state."""
    end = 0
    for _ in range(_MAX_STATES):
        found = _STATE.search(code, end)
        if found is None:
            return
        value, end = decoded(code, found.end())
        yield value


def _small(digits: str) -> int | None:
    """A number of few digits; long numbers take quadratic time."""
    return int(digits) if len(digits) < 8 else None


def _nothing(_: str) -> None:
    """In place of other numbers, which are no text."""


_DECODER = json.JSONDecoder(parse_int=_small, parse_float=_nothing, parse_constant=_nothing, strict=False)


def decoded(text: str, start: int) -> tuple[Any, int]:
    """The JSON value at *start* and its end; None if there is no such value."""
    try:
        value: tuple[Any, int] = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, start
    return value


def _longest_prose(value: Any, is_json_ld: bool) -> tuple[int, list[str]]:
    """Characters and strings of the place of *value* that holds most prose; of JSON-LD whole texts only."""
    places: dict[int, list[tuple[int, str]]] = {}
    stack: list[tuple[Any, int, str]] = [(value, 0, "")]  # members with the hash of their place and the key above
    while stack:
        member, place, key = stack.pop()
        if isinstance(member, dict):
            names = ((name, name[:_MAX_KEY]) for name in reversed(member))
            kept = [(name, short) for name, short in names if is_json_ld or not _is_other(short)]
            stack += [(member[name], hash((place, _DIGITS.sub("", short))), short) for name, short in kept]
        elif isinstance(member, list):
            stack += [(one, place, key) for one in reversed(member)]
        elif isinstance(member, str) and (key in _JSON_LD_KEYS or not is_json_ld):
            places.setdefault(place, []).append((_prose_chars(member, is_json_ld), member))
    found = max(places.values(), key=lambda strings: sum(chars for chars, _ in strings), default=[])
    total = sum(chars for chars, _ in found)
    long = sum(chars for chars, text in found if chars >= least_chars(text, _LONG_PROSE))
    return (total, [text for _, text in found]) if total and long >= _LONG_SHARE * total else (0, [])


@lru_cache(maxsize=4096)  # a state has the same keys again and again
def _is_other(key: str) -> bool:
    """Whether what stands under *key* is no text of the page itself."""
    return _OTHER_KEYS.search(key) is not None


def least_chars(text: str, chars: int = MIN_CHARS) -> float:
    """What *chars* characters of a script with spaces are in that of *text*."""
    return chars * (length_scale(text) or 1)


def _prose_chars(text: str, is_text: bool) -> int:
    """The characters of *text* without tags if it *is_text* or looks like prose; else 0."""
    if len(text) < _MIN_PROSE // 3:  # less than that in any script
        return 0
    plain = " ".join(_TAGS.sub(" ", _unescape(text)).split())
    if len(plain) < least_chars(plain, _MIN_PROSE):
        return 0
    is_spaced = plain.count(" ") >= _MIN_SPACES * len(plain) or length_scale(plain) is not None
    is_code = len(_MARKS.findall(plain)) > _MAX_MARKS * len(plain) or '":' in plain
    is_worded = sum(map(str.isalpha, plain)) >= _MIN_LETTERS * len(plain)
    return len(plain) if is_text or (is_spaced and is_worded and not is_code) else 0


def _unescape(text: str) -> str:
    return html.unescape(text) if _IS_ESCAPED.search(text) else text


def _paragraphs(texts: Sequence[str]) -> Iterator[str]:
    """HTML for each of *texts*, once."""
    for text in map(_unescape, dict.fromkeys(texts)):
        if _IS_HTML.search(text):
            yield f"<div>{text}</div>"
        else:
            yield from (f"<p>{html.escape(line, quote=False)}</p>" for line in text.splitlines() if line.strip())
