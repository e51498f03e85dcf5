"""The longest prose in a JSON value: of the part of it that holds most, the strings under the keys that hold most."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from spiderling.text.boilerplate.rules import is_unspaced
from spiderling.text.embedded.scripts import decoded

MAX_NODES = 200_000
"""Nodes of a value that are looked at; chosen: the state of a large page has some 10,000."""
_MAX_STRINGS = 4_000_000
"""Characters of strings of a value that are looked at; chosen: a hostile one may hold a string many times."""
_MAX_KEY = 100
"""Characters of a key, and keys of a teaser, that are looked at; chosen."""
_MAX_CHARS = 400_000
"""Characters of HTML that are taken; chosen, a novel."""
_MIN_PROSE = 80
"""Characters from which a string may be prose by itself; chosen, about a sentence."""
_UNSPACED_FACTOR = 3
"""How many times fewer they are in a script without spaces; chosen, as in boilerplate/rules.py."""
_MIN_SPACES = 0.08
"""White space / characters of prose in scripts with spaces; chosen: words of 12 letters."""
_MIN_LETTERS = 0.6
"""Letters / characters of prose; chosen: Hindi, whose vowel signs are none, has .65."""
_MAX_MARKS = 0.06
"""Signs of code / characters of prose; chosen."""
_LARGEST_OF_OBJECT = 0.5
"""Share of an object's prose that one of its members holds at least, if it is looked at alone; chosen."""
_LARGEST_OF_LIST = 0.9
"""The same of a list: its members are alike, and one long paragraph is not all; chosen."""
_LONG_PROSE = 200
"""Characters of a paragraph that teasers seldom have; chosen."""
_LONG_SHARE = 0.25
"""Share of the prose that stands in such strings, if it is text; chosen."""
_KEY_SHARE = 0.1
"""Share of the prose that stands under a key, if its strings are taken; chosen."""
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
_WINDOW = 16
"""Letters by which a text is found again among what the page shows; chosen."""
_MAX_SHOWN = 300_000
"""Characters of what the page shows that are looked at; chosen."""


class Prose(NamedTuple):
    """Prose in HTML."""

    html: str
    chars: int
    """Its characters without tags."""


class _Leaf(NamedTuple):
    """A string of a value, or the pieces of a paragraph."""

    text: str
    key: str
    """The nearest key above it, '' in lists alone."""
    chars: int
    """Its characters, without tags; 0 if it is no prose."""

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
    """The longest prose in *value*, which JSON gave, that is not *shown*; of JSON-LD whole texts only.

    Looks at MAX_NODES nodes; never raises.
    """
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
