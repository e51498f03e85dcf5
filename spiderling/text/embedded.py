"""Text that a page holds in JSON for its scripts: the longest prose in it, unless it is marked as not free.

A page that a browser fills by script often carries its text in JSON: as ``articleBody`` of JSON-LD for search engines,
or as the state with which its framework begins (Next.js, Nuxt, Redux, Apollo).  No script is run.  What is no JSON but
nearly so (a state with ``undefined``, a function that returns it) gives its longest string.  Of a value that part is
taken which holds most prose, and of it the strings under the keys that hold most.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from spiderling.text.boilerplate.rules import is_unspaced
from spiderling.text.html.blocks import Block
from spiderling.text.withheld import is_reserved

SOURCES = ("json-ld", "next", "nuxt", "apollo", "state")
"""Where text may come from: schema.org, the states of Next.js, Nuxt and Apollo, of anything else."""
_JSON_LD, _NEXT, _NUXT, _APOLLO, _STATE = SOURCES

MAX_SCRIPTS = 300  # scripts of a page that are looked at; chosen
MAX_CHARS = 2_000_000  # characters of scripts that are read, and again of failed tries; chosen: a large state has 1 MB
_MAX_STATES = 50  # assignments of a script that are tried; chosen
_MAX_HEAD = 500  # bytes of a script's attributes that are looked at; chosen
_MIN_BYTES = 250  # bytes of a script that may hold a text, but for pieces of Next.js; chosen, as the least of a text
_IN_JSON_LD = (b'"articleBody"', b'"reviewBody"', b'"text"')  # JSON-LD with a whole text holds one of these
_IN_CODE = (b"__NUXT__", b"__next_f")
_NAMES_IN_CODE = (b"STATE", b"State", b"DATA", b"Data", b"Props")
_SIGNS = (b"=", b" =", b"__=", b"__ =", b'"]', b"']", b'__"]', b"__']")
"""Code that assigns a state holds one of _IN_CODE, or one of these names, which `_source` knows, before such a sign."""
_TYPE = re.compile(rb"""\btype\s*=\s*["']?([\w/+.-]+)""", re.IGNORECASE)
_ID = re.compile(rb"""\bid\s*=\s*["']?([\w-]+)""", re.IGNORECASE)
_SRC = re.compile(rb"\bsrc\s*=", re.IGNORECASE)
_NAME = r"([A-Za-z_$][\w$]{0,60})"
_ASSIGNED = re.compile(
    rf"""(?:\b(?:window|self|globalThis)\s{{0,9}}(?:\.\s{{0,9}}|\[\s{{0,9}}["']){_NAME}(?:["']\s{{0,9}}\])?"""
    rf"""|\b(?:var|let|const)\s{{1,9}}{_NAME})\s{{0,9}}=\s{{0,9}}(?=[{{\[(Jf])"""
)
"""``window.__INITIAL_STATE__ =`` and the like, before what may be a value."""
_PARSE = re.compile(r"JSON\.parse\(\s{0,9}(?=[\"'])")
_PUSHED = re.compile(r"__next_f\.push\(\s{0,9}\[\s{0,9}1\s{0,9},\s{0,9}(?=\")")
"""Next.js sends its state in pieces, strings that belong together."""
_ROW = re.compile(r"[0-9a-f]{1,8}:(?:T([0-9a-f]{1,8}),|[A-Z]{0,2})")
"""The head of a row of that state: before JSON, or before text with ``T`` and its length."""
_MAX_ROWS = 5000  # rows of that state; chosen
_BODY = re.compile(r'"articleBody"\s{0,99}:\s{0,99}(?=")')
_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)(?:"|\\?\Z)', re.DOTALL)
_NO_JSON = re.compile(rf"({_STRING.pattern})|\b(?:undefined|NaN|void 0)\b|new Date\(|\)", re.DOTALL)
"""A string, or what a state may hold between strings that is no JSON."""
_SINGLE = re.compile(r"'([^'\\]*(?:\\.[^'\\]*)*)(?:'|\\?\Z)", re.DOTALL)
_HEX = re.compile(r"\\x([0-9A-Fa-f]{2})")


class Script(NamedTuple):
    """A script that may hold text."""

    source: str  # of SOURCES; '' for code, where the names of variables tell it
    content: bytes


def scripts_with_text(html: bytes) -> list[Script]:
    """The scripts of *html*, UTF-8, that may hold text; fast, because few pages have any."""
    found: list[Script] = []
    lower = html.lower()
    end = 0
    for _ in range(MAX_SCRIPTS):
        start = lower.find(b"<script", end)
        inside = lower.find(b">", start)
        end = lower.find(b"</script", inside)
        if start < 0 or inside < 0 or end < 0:
            break
        script = _script(html[start : min(inside, start + _MAX_HEAD)], html[inside + 1 : end])
        if script is not None:
            found.append(script)
    return found


def _script(head: bytes, content: bytes) -> Script | None:
    """The script with this start tag; None if it holds no text."""
    if (len(content) < _MIN_BYTES and b"__next_f" not in content) or _SRC.search(head):
        return None
    kind = _TYPE.search(head)
    media_type = kind[1].lower() if kind else b""
    if b"ld+json" in media_type:
        return Script(_JSON_LD, content) if any(name in content for name in _IN_JSON_LD) else None
    if b"json" in media_type:
        name = _ID.search(head)
        source = _source(name[1].decode()) if name else ""
        return Script(source, content) if source else None
    is_code = media_type in (b"", b"module") or b"javascript" in media_type
    return Script("", content) if is_code and _assigns_state(content) else None


def _assigns_state(code: bytes) -> bool:
    if any(name in code for name in _IN_CODE):
        return True
    return any(name in code and any(name + sign in code for sign in _SIGNS) for name in _NAMES_IN_CODE)


def values_in(scripts: Iterable[Script]) -> Iterator[tuple[str, Any]]:
    """(source, value) for each JSON value in *scripts*; what is no JSON gives its longest string."""
    left = MAX_CHARS
    pushed: list[str] = []
    for source, content in scripts:
        text = content[:left].decode("utf-8", "replace")
        left -= len(text)
        if source == _JSON_LD:
            yield source, _json_ld(text)
        elif source:
            value = _loads(text)
            yield source, _revived(value) if source == _NUXT and isinstance(value, list) else value
        else:
            pushed += _pushed(text)
            yield from _states(text)
    if pushed:
        yield _NEXT, _rows("".join(pushed))


def _json_ld(text: str) -> Any:
    """The value of JSON-LD; of one that is broken, the first articleBody."""
    value, _ = decoded(text, _start(text))
    key = _BODY.search(text) if value is None else None
    literal = _STRING.match(text, key.end()) if key else None
    return {"articleBody": _unquoted(literal[1])} if literal else value


def _source(name: str) -> str:
    """The source of a script or variable by its *name*; '' for one that names no state."""
    upper = name.upper()
    known = {"NEXT": _NEXT, "NUXT": _NUXT, "APOLLO": _APOLLO, "STATE": _STATE, "DATA": _STATE, "PROPS": _STATE}
    return next((source for part, source in known.items() if part in upper), "")


def _states(text: str) -> Iterator[tuple[str, Any]]:
    """The values that a script assigns."""
    end = 0
    for _ in range(_MAX_STATES):
        found = _ASSIGNED.search(text, end)
        if found is None:
            return
        source = _source(found[1] or found[2])
        start = found.end()
        if not source:
            end = start
            continue
        parse = _PARSE.match(text, start)
        if parse is not None:
            literal = (_STRING if text[parse.end()] == '"' else _SINGLE).match(text, parse.end())
            end = literal.end() if literal else parse.end()
            yield source, _loads(_unquoted(literal[1]) if literal else "")
        elif text[start] in "{[":
            value, end = decoded(text, start)
            yield source, _mended(text[start:]) if value is None else value
            if value is None:
                return
        elif source == _NUXT:
            yield source, _longest(text[start:])
            return
        else:
            end = start


def _pushed(text: str) -> list[str]:
    """The pieces that a script adds to the state of Next.js."""
    found = (_STRING.match(text, push.end()) for push in _PUSHED.finditer(text))
    return [_unquoted(literal[1]) for literal in found if literal]


def _rows(text: str) -> list[Any]:
    """The values of the state of Next.js: a row of JSON ends with its line, one of text after its length in bytes."""
    rows: list[Any] = []
    end = 0
    for _ in range(_MAX_ROWS):
        head = _ROW.match(text, end)
        if head is None:
            end = text.find("\n", end) + 1
            if end == 0:
                break
            continue
        if head[1]:
            size = int(head[1], 16)
            row = text[head.end() : head.end() + size].encode("utf-8", "replace")[:size].decode("utf-8", "ignore")
            end = head.end() + len(row)
            rows.append(row)
        else:
            value, end = decoded(text, head.end())
            rows.append(value)
    return rows


def _revived(values: list[Any]) -> Any:
    """The state of Nuxt in *values*: numbers in objects and lists are places of values; one may hold itself."""
    made: list[Any] = [type(value)() if isinstance(value, (dict, list)) else value for value in values]

    def at(place: Any) -> Any:
        return made[place] if isinstance(place, int) and 0 <= place < len(made) else None

    for value, new in zip(values, made, strict=True):
        if isinstance(new, dict):
            new.update((key, at(place)) for key, place in value.items())
        elif isinstance(new, list):
            new.extend(map(at, value))
    return made[:1]


# -- JSON


def _small(digits: str) -> int | None:
    """A number that may be a place in a list; long numbers take quadratic time."""
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


def _loads(text: str) -> Any:
    """The JSON value in *text*; its longest string if it is broken."""
    value, _ = decoded(text, _start(text))
    return _longest(text) if value is None else value


def _mended(text: str) -> Any:
    """The JSON value at the beginning of *text*, which is none for `undefined` and the like in it; else `_longest`."""
    value, _ = decoded(_NO_JSON.sub(lambda found: found[1] or ("" if found[0][-1] in "()" else "null"), text), 0)
    return _longest(text) if value is None else value


def _start(text: str) -> int:
    """The place of the first object or list."""
    return min((place for place in (text.find("{"), text.find("[")) if place >= 0), default=len(text))


def _longest(text: str) -> list[str]:
    """The longest string between double quotes in *text*: where the others belong is not known."""
    longest = max((found[1] for found in _STRING.finditer(text)), key=len, default="")
    return [_unquoted(longest)]


def _unquoted(literal: str) -> str:
    """The string that a *literal* of JavaScript means, given without its quotes; '' for a wrong one."""
    plain = _HEX.sub(r"\\u00\1", literal).replace("\\'", "'").replace("\\`", "`").replace("\\\n", "")
    if "\\" not in plain:
        return plain
    escaped = re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', plain)
    value, _ = decoded(f'"{escaped}"', 0)
    return value if isinstance(value, str) else ""


MAX_NODES = 200_000  # nodes of a value that are looked at; chosen: the state of a large page has some 10,000
_MAX_STRINGS = 4_000_000  # characters of strings of a value that are looked at; chosen: one may stand there many times
_MAX_KEY = 100  # characters of a key, and keys of a teaser, that are looked at; chosen
_MAX_CHARS = 400_000  # characters of HTML that are taken; chosen, a novel
_MIN_PROSE = 80  # characters from which a string may be prose by itself; chosen, about a sentence
_UNSPACED_FACTOR = 3  # how many times fewer they are in a script without spaces; chosen, as in boilerplate/rules.py
_MIN_SPACES = 0.08  # white space / characters of prose in scripts with spaces; chosen: words of 12 letters
_MIN_LETTERS = 0.6  # letters / characters of prose; chosen: Hindi, whose vowel signs are none, has .65
_MAX_MARKS = 0.06  # signs of code / characters of prose; chosen
_LARGEST_OF_OBJECT = 0.5  # share of an object's prose in one of its members from which that is looked at alone; chosen
_LARGEST_OF_LIST = 0.9  # the same of a list: its members are alike, and one long paragraph is not all; chosen
_LONG_PROSE = 200  # characters of a paragraph that teasers seldom have; chosen
_LONG_SHARE = 0.25  # share of the prose that stands in such strings, if it is text; chosen
_KEY_SHARE = 0.1  # share of the prose that stands under a key, if its strings are taken; chosen
_JSON_LD_KEYS = frozenset(("articleBody", "reviewBody", "text"))
"""Properties of schema.org that hold whole texts: of an article, a review, a post or an answer."""
_OTHER_KEYS = re.compile(
    r"""desc|summar|excerpt|teaser|snippet|abstract|caption|^alt|bio(?:graphy)?$|seo|^meta|tooltip|message|errors?$|label|i18n
    |locale|transl|config|setting|consent|cookie|promo|related|recommend|trending|popular|footer|^nav|menu|newsletter|legal
    |privacy|terms|^ads?$|advert|class|style|css|svg|query|schema|placeholder|review|comment|rating|faq|feature""",
    re.IGNORECASE | re.VERBOSE,
)
"""Keys above what is no text of the page itself: teasers, texts of the programs, of other pages, of readers."""
_ADDRESS_KEYS = re.compile(r"url|uri|href|link|slug|permalink|path", re.IGNORECASE)
_MARKS = re.compile(r"[{}\[\]<>=;\\|_$#@/]")
_TAGS = re.compile(r"<[^<>]*>")
_IS_HTML = re.compile(r"</\w|<(?:p|br|div|li|h[1-6])\b", re.IGNORECASE)
_IS_ESCAPED = re.compile(r"&lt;/?(?:p|br|div|li|h[1-6])\b", re.IGNORECASE)
_GOES_ON = ",.;:)!?%»”’…"
_ENDS = ".!?:…。！？।"
_WINDOW = 16  # letters by which a text is found again among what the page shows; chosen
_MAX_SHOWN = 300_000  # characters of what the page shows that are looked at; chosen


class Prose(NamedTuple):
    """Prose in HTML."""

    html: str
    chars: int  # its characters without tags


class _Leaf(NamedTuple):
    """A string of a value, or the pieces of a paragraph."""

    text: str
    key: str  # the nearest key above it, '' in lists alone
    chars: int  # its characters, without tags; 0 if it is no prose

    @property
    def is_long(self) -> bool:
        """Whether it is longer than teasers are."""
        return self.chars >= (_LONG_PROSE / _UNSPACED_FACTOR if is_unspaced(self.text) else _LONG_PROSE)


class Shown:
    """What a page shows, to leave out of its JSON what stands there too."""

    def __init__(self, texts: Sequence[str]) -> None:
        shown = _letters(" ".join(texts)[:_MAX_SHOWN])
        self._windows = {shown[place : place + _WINDOW] for place in range(len(shown) - _WINDOW + 1)}

    def holds(self, plain: str) -> bool:
        """Whether two of three places of *plain* stand there, which is longer than a window."""
        letters = _letters(plain)
        last = len(letters) - _WINDOW
        return sum(letters[place : place + _WINDOW] in self._windows for place in (0, last // 2, last)) >= 2


def longest_prose(value: Any, source: str, shown: Shown) -> Prose:
    """The longest prose in *value*, of JSON, that is not *shown*; of JSON-LD whole texts only.  Never raises."""
    leaves = _leaves(value, _JSON_LD_KEYS if source == "json-ld" else None, shown)
    totals: dict[str, int] = {}
    for leaf in leaves:
        totals[leaf.key] = totals.get(leaf.key, 0) + leaf.chars
    least = _KEY_SHARE * sum(totals.values())
    taken = [leaf for leaf in leaves if totals[leaf.key] and totals[leaf.key] >= least]
    chars = sum(leaf.chars for leaf in taken)
    if sum(leaf.chars for leaf in taken if leaf.is_long) < _LONG_SHARE * chars:
        return Prose("", 0)
    return Prose("".join(_paragraphs(taken))[:_MAX_CHARS], chars)


class _Nodes:
    """The nodes of a value in preorder, as columns; a value may hold a node many times, and itself."""

    def __init__(self, value: Any, keys: Collection[str] | None) -> None:
        self.values: list[Any] = []
        self.parents: list[int] = []
        self.names: list[str] = []
        """The nearest key above each."""
        self.lists: list[int] = []
        """Number of the nearest list around each."""
        self._left = _MAX_STRINGS
        self._takes_all = keys is not None
        stack: list[tuple[Any, int, str, int]] = [(value, 0, "", 0)]
        while stack and self._left > 0:
            member, parent, name, around = stack.pop()
            if isinstance(member, str):
                member = self._read(member)
            number = len(self.values)
            self.values.append(member)
            self.parents.append(parent)
            self.names.append(name)
            self.lists.append(around)
            room = max(0, MAX_NODES - number - len(stack))
            if isinstance(member, dict):
                below = islice(member.items(), room)
                stack += [(one, number, key, around) for key, one in reversed(list(below)) if self._takes(key)]
            elif isinstance(member, list):
                is_element = member[:1] == ["$"]  # of React: its tag, its key, its attributes
                first, group = (3, around) if is_element else (0, number)
                stack += [(one, number, name, group) for one in reversed(_no_teasers(member[first : first + room]))]

    def _read(self, text: str) -> Any:
        """The value of a string that is JSON itself, else the string."""
        self._left -= len(text)
        if text[:1] not in ("{", "[") or len(text) < _MIN_PROSE:
            return text
        inner, _ = decoded(text, 0)
        return text if inner is None else inner

    def _takes(self, key: str) -> bool:
        """Whether what stands under *key* may be text of the page."""
        return self._takes_all or not _OTHER_KEYS.search(key[:_MAX_KEY])

    def texts(self, keys: Collection[str] | None) -> dict[int, str]:
        """Number -> string of the nodes under *keys*, or all; pieces of one paragraph are joined in the first one."""
        parts: dict[int, list[str]] = {}
        last: dict[tuple[int, str], int] = {}  # list and key -> the number of the paragraph that ends there
        for number, text in enumerate(self.values):
            if not isinstance(text, str) or (keys is not None and self.names[number] not in keys):
                continue
            if text.startswith("$"):  # React refers to something
                continue
            place = self.lists[number], self.names[number]
            first = last.get(place)
            if first is not None and _goes_on(parts[first][-1], text):
                parts[first].append(text)
            else:
                last[place] = number
                parts[number] = [text]
        return {number: "".join(pieces) for number, pieces in parts.items()}


def _no_teasers(members: list[Any]) -> list[Any]:
    """The *members* of a list without those that stand for other pages, if there are several."""
    teasers = {id(member) for member in members if _is_teaser(member)}
    return [member for member in members if id(member) not in teasers] if len(teasers) > 1 else members


def _is_teaser(member: Any) -> bool:
    """Whether the *member* of a list may stand for another page: an object with an address and a text."""
    if not isinstance(member, dict) or len(member) > _MAX_KEY:
        return False
    texts = (text for text in member.values() if isinstance(text, str))
    return any(map(_ADDRESS_KEYS.fullmatch, member)) and any(len(text) >= _MIN_PROSE for text in texts)


def _leaves(value: Any, keys: Collection[str] | None, shown: Shown) -> list[_Leaf]:
    """The strings under *keys*, or all, of the part of *value* that holds most prose, in their order."""
    nodes = _Nodes(value, keys)
    texts = nodes.texts(keys)
    of_text = {text: _prose_chars(text, shown, keys is not None) for text in set(texts.values())}
    chars = {node: of_text[text] for node, text in texts.items()}
    masses = [chars.get(node, 0) for node in range(len(nodes.values))]
    largest: dict[int, int] = {}  # for each node its member with most prose
    ends = list(range(1, len(masses) + 1))  # the number behind each node's last descendant
    for node in range(len(masses) - 1, 0, -1):
        parent = nodes.parents[node]
        masses[parent] += masses[node]
        ends[parent] = max(ends[parent], ends[node])
        if parent not in largest or masses[node] >= masses[largest[parent]]:
            largest[parent] = node
    node = 0
    while node in largest:
        least = _LARGEST_OF_LIST if isinstance(nodes.values[node], list) else _LARGEST_OF_OBJECT
        if masses[largest[node]] < least * masses[node]:
            break
        node = largest[node]
    inside = (place for place in texts if node <= place < ends[node])
    return [_Leaf(texts[place], nodes.names[place], chars[place]) for place in inside]


def _prose_chars(text: str, shown: Shown, is_text: bool) -> int:
    """The characters of *text* without tags if it *is_text* or looks like prose, and is not *shown*; else 0."""
    if len(text) < _MIN_PROSE / _UNSPACED_FACTOR:
        return 0
    if _IS_ESCAPED.search(text):
        text = html.unescape(text)
    plain = " ".join(_TAGS.sub(" ", text).split())
    unspaced = is_unspaced(plain)
    if len(plain) < (_MIN_PROSE / _UNSPACED_FACTOR if unspaced else _MIN_PROSE):
        return 0
    if is_text:
        return 0 if shown.holds(plain) else len(plain)
    is_spaced = unspaced or plain.count(" ") >= _MIN_SPACES * len(plain)
    is_code = len(_MARKS.findall(plain)) > _MAX_MARKS * len(plain) or '":' in plain
    is_worded = sum(map(str.isalpha, plain)) >= _MIN_LETTERS * len(plain)
    return len(plain) if is_spaced and is_worded and not is_code and not shown.holds(plain) else 0


def _letters(text: str) -> str:
    return "".join(html.unescape(text).split())


def _paragraphs(leaves: Sequence[_Leaf]) -> Iterator[str]:
    """HTML for each of *leaves*; each text once."""
    for text in dict.fromkeys(leaf.text for leaf in leaves):
        if _IS_ESCAPED.search(text):
            text = html.unescape(text)
        if _IS_HTML.search(text):
            yield f"<div>{text}</div>"
        else:
            yield from (f"<p>{html.escape(line, quote=False)}</p>" for line in text.splitlines() if line.strip())


def _goes_on(before: str, text: str) -> bool:
    """Whether *text* goes on with the paragraph of *before*: they are pieces between which the look changes."""
    if not before or not text or before[-1] == "\n" or text[0] == "\n":
        return False
    if before[-1] == " " or text[0] == " " or text[0] in _GOES_ON:
        return True
    return text[0].islower() and before[-1] not in _ENDS


SHORT_CHARS = 1000  # characters of good text below which a page's JSON is looked at; chosen: a teaser has fewer
MIN_CHARS = 250  # characters of prose that are text; chosen, the least of a document (text/quality.py)
_MIN_FACTOR = 2.0  # how many times as long as the good text outside of scripts it must be; chosen: else it is the same
_BEGIN = b'<div class="article-body">'
_END = b"</div>"


class EmbeddedText(NamedTuple):
    """The text in a page's JSON."""

    html: bytes  # UTF-8, one <div>
    source: str  # where it was: a value of SOURCES


def embedded_text(html: bytes, blocks: Sequence[Block], good_chars: int) -> EmbeddedText | None:
    """The text in the JSON of a page, *html* in UTF-8, that is far longer than the good text of its *blocks*.

    None if there is none, or the page says that it is not free.  Never raises, in time linear in the page's length.
    """
    scripts = scripts_with_text(html)
    if not scripts:
        return None
    shown = Shown([block.text for block in blocks])
    found = ((longest_prose(value, source, shown), source) for source, value in values_in(scripts))
    best, source = max(found, key=lambda pair: pair[0].chars, default=(Prose("", 0), ""))
    if best.chars < max(MIN_CHARS, _MIN_FACTOR * good_chars) or is_reserved(html, blocks):
        return None
    return EmbeddedText(_BEGIN + best.html.encode("utf-8", "replace") + _END, source)
