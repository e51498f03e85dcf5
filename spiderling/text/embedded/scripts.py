"""Finds JSON in the scripts of a page, and reads it: JSON-LD, application/json, states that scripts assign.

What is no JSON but nearly so (a state with ``undefined``, a function that returns it) gives its longest string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

SOURCES = ("json-ld", "next", "nuxt", "apollo", "state")
"""Where text may come from: schema.org, the states of Next.js, Nuxt and Apollo, of anything else."""
_JSON_LD, _NEXT, _NUXT, _APOLLO, _STATE = SOURCES

MAX_SCRIPTS = 300
"""Scripts of a page that are looked at; chosen."""
MAX_CHARS = 2_000_000
"""Characters of scripts that are read, and again of failed attempts; chosen: the state of a large page has 1 MB."""
_MAX_STATES = 50
"""Assignments of a script that are tried; chosen."""
_MAX_HEAD = 500
"""Bytes of a script's attributes that are looked at; chosen."""
_MIN_BYTES = 250
"""Bytes of a script that may hold a text, but for pieces of the state of Next.js; chosen, as the least of a text."""
_IN_JSON_LD = (b'"articleBody"', b'"reviewBody"', b'"text"')
"""JSON-LD with a whole text holds one of these (prose.py)."""
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
_MAX_ROWS = 5000
"""Rows of that state; chosen."""
_BODY = re.compile(r'"articleBody"\s{0,99}:\s{0,99}(?=")')
_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)(?:"|\\?\Z)', re.DOTALL)
_NO_JSON = re.compile(rf"({_STRING.pattern})|\b(?:undefined|NaN|void 0)\b|new Date\(|\)", re.DOTALL)
"""A string, or what a state may hold between strings that is no JSON."""
_SINGLE = re.compile(r"'([^'\\]*(?:\\.[^'\\]*)*)(?:'|\\?\Z)", re.DOTALL)
_HEX = re.compile(r"\\x([0-9A-Fa-f]{2})")


class Script(NamedTuple):
    """A script that may hold text."""

    source: str
    """Of SOURCES; '' for code, where the names of variables tell it."""
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
    """The state of Nuxt that *values* hold: numbers in objects and lists are places of other values there.

    A value may hold itself.
    """
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
