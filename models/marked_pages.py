"""Marked pages, whose text is known: reads them, labels their blocks, and scores a choice of blocks.

``models/block_model.py`` and ``benchmarks/text.py`` use them.  A file, plain or zstd (``.zst``), has one JSON object
a line: ``html`` (the page's bytes, one character a byte), and ``gold`` (its text) or ``with`` and ``without`` (lists of
stretches that belong to its text, and that do not); optionally ``host`` or ``url``, ``set``, ``lang`` and ``type``.

A block is labelled as text if the page's text holds half of its word trigrams, and no other block has them.  The score
is F1 of the bags of words (a CJK or Thai character is a word), as in comparisons of text extractors; for a page with
stretches, F1 of the stretches.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from spiderling.base.errors import BadInput
from spiderling.base.files import zstd
from spiderling.base.urls import registrable_domain
from spiderling.text.encoding.detect import decode
from spiderling.text.html.blocks import Parsed
from spiderling.text.html.links import resolve
from spiderling.text.html.parser import parse

_MAX_WINDOW = 1 << 27
"""Bytes of the largest window of zstd that is read: that of ``zstd --long``."""
_NOWHERE = "nowhere.invalid"
LISTS = ("listing", "product", "collection")
"""Types of pages whose text is a list of things; names of WCXB."""
_WORD = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|\w+")
_GRAM = 3
"""Words of a run for labels; chosen."""
_LABEL_SHARE = 0.5
"""Share of a block's runs that the page's text must hold; chosen."""
_LONG = 10
"""Words of a block that shows where the text stands; chosen: a title has fewer."""


@dataclass(frozen=True, slots=True)
class MarkedPage:
    """A page and its text."""

    html: str
    text: str | None
    """Its whole text; None when only stretches are known."""
    wanted: tuple[str, ...] = ()
    """Stretches that belong to the text."""
    unwanted: tuple[str, ...] = ()
    """Stretches of boilerplate."""
    host: str = ""
    """No check uses pages of one host both to fit and to measure."""
    group: str = ""
    """The group over which its score is averaged: a source or a language."""
    is_list: bool = False
    """Whether its text is a list of things."""


def read(paths: Iterable[Path]) -> Iterator[tuple[MarkedPage, dict[str, Any]]]:
    """(page, its JSON object without html) from all files; raises BadInput that names file and line."""
    for path in paths:
        try:
            for number, line in enumerate(_lines(path), 1):
                if line.strip():
                    yield _page(line, f"{path}, line {number}")
        except OSError as error:
            raise BadInput(f"{path} cannot be read ({error.strerror}); give files of marked pages.") from None
        except (UnicodeDecodeError, EOFError, zstd.ZstdError) as error:
            raise BadInput(f"{path} is no file of marked pages, UTF-8 or zstd ({error}).") from None


def _lines(path: Path) -> Iterator[str]:
    with path.open("rb") as raw:
        stream: Any = raw
        if path.suffix == ".zst":
            stream = zstd.ZstdFile(raw)
        yield from io.TextIOWrapper(stream, "utf-8")


def _page(line: str, where: str) -> tuple[MarkedPage, dict[str, Any]]:
    try:
        record = json.loads(line)
        body = record.pop("html").encode("latin-1")
        text = record.get("gold")
        wanted, unwanted = (tuple(map(str, record.get(name) or ())) for name in ("with", "without"))
        if not isinstance(text, str) and not wanted:
            raise KeyError("gold")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(
            f"{where}: no marked page ({type(error).__name__}: {error}); it needs html (one character a byte) "
            "and gold, or with and without."
        ) from None
    html = decode(body, None).text or body.decode("cp1252", "replace")
    # a page of unknown host is a host of its own
    host = str(record.get("host") or "") or _name(str(record.get("url") or "")) or _host(parse(html)) or where
    group = str(record.get("set") or "pages")
    is_list = record.get("type") in LISTS
    return MarkedPage(html, text if isinstance(text, str) else None, wanted, unwanted, host, group, is_list), record


def _host(parsed: Parsed) -> str:
    """The registrable domain of an address that the page declares, else of most links; else ''."""
    for said in (parsed.rels.get("canonical"), parsed.meta.get("og:url"), parsed.base):
        if said and (host := _name(said)):
            return host
    hosts = Counter(_name(target) for _, target in resolve(parsed.links, f"http://{_NOWHERE}/", None))
    del hosts[_NOWHERE]
    return hosts.most_common(1)[0][0] if hosts else ""


def _name(url: str) -> str:
    """The registrable domain of an absolute URL, its host if it has none."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return registrable_domain(host) or host


def words_of(text: str) -> list[str]:
    """The words in lower case; each character of an unspaced script is one."""
    return _WORD.findall(text.lower())


def labels(texts: Sequence[str], page: MarkedPage) -> list[bool | None]:
    """For each of the blocks' *texts*, whether it belongs to the page's text; requires ``page.text``.

    What the text holds once belongs to one block: the first long one, else the short one nearest to long ones.  Another
    that holds it gets None: a title in a menu, a teaser that repeats the beginning.
    """
    assert page.text is not None
    gold = words_of(page.text)
    left = {size: Counter(_grams(gold, size)) for size in (2, _GRAM)}
    words = [words_of(text) for text in texts]
    known = [place for place, one in enumerate(words) if _is_known(one, left)]
    long = [place for place in known if len(words[place]) >= _LONG]

    def away(place: int) -> int:
        return min((abs(place - other) for other in long), default=0)

    found: list[bool | None] = [False] * len(words)
    for place in (*long, *sorted({*known}.difference(long), key=lambda place: (away(place), place))):
        found[place] = _is_known(words[place], left) or None
        if found[place]:
            for size, counts in left.items():
                counts.subtract(_grams(words[place], size))
    return found


def score(chosen: Iterable[str], page: MarkedPage) -> tuple[float, float, float]:
    """Counts for `f1` from the texts of the *chosen* blocks: (chosen and right, chosen, right)."""
    if page.text is None:
        text = "\n".join(chosen)
        right = sum(stretch in text for stretch in page.wanted)
        return right, right + sum(stretch in text for stretch in page.unwanted), len(page.wanted)
    found = Counter(chain.from_iterable(map(words_of, chosen)))
    gold = Counter(words_of(page.text))
    return (found & gold).total(), found.total(), gold.total()


def f1(scores: Sequence[tuple[float, float, float]], stretches: bool = False) -> float:
    """Mean of the pages' F1; for *stretches*, of which a page has few, F1 over all pages together."""
    if stretches:
        scores = [(sum(column[0] for column in scores), sum(column[1] for column in scores), sum(c[2] for c in scores))]
    return sum(2 * both / max(1, found + right) for both, found, right in scores) / max(1, len(scores))


def _grams(words: Sequence[str], size: int) -> Iterable[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(size)), strict=False)


def _is_known(words: Sequence[str], left: Mapping[int, Counter[tuple[str, ...]]]) -> bool:
    """Whether enough runs of *words* are *left* (size -> runs).  A single word is not; two make one run."""
    size = min(_GRAM, len(words))
    grams = Counter(_grams(words, size))
    return size > 1 and (grams & left[size]).total() >= _LABEL_SHARE * grams.total()
