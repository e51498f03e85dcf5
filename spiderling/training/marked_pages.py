"""Reads files of marked pages, for ``scrapy train boilerplate`` and ``benchmarks/text.py``.

Each line is a JSON object; the file may be packed by zstd (``.zst``).  It holds ``html``
(the page's bytes, one character a byte), and ``gold`` (its text) or ``with`` and
``without`` (lists of stretches that belong to its text, and that do not); optionally
``host`` or ``url``, ``set`` and ``lang``.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import zstandard

from spiderling.base.errors import BadInput
from spiderling.base.urls import registrable_domain
from spiderling.text.encoding.detect import decode
from spiderling.text.html.blocks import Parsed
from spiderling.text.html.parser import parse
from spiderling.text.html.resolving import resolve
from spiderling.training.marking import MarkedPage

_MAX_WINDOW = 1 << 27
"""Bytes of the largest window of zstd that is read: that of ``zstd --long``."""
_NOWHERE = "nowhere.invalid"


def read(paths: Iterable[Path]) -> Iterator[tuple[MarkedPage, dict[str, Any]]]:
    """The pages of all files, each with the rest of its object; raises BadInput with the file and line."""
    for path in paths:
        try:
            for number, line in enumerate(_lines(path), 1):
                if line.strip():
                    yield _page(line, f"{path}, line {number}")
        except OSError as error:
            raise BadInput(f"{path} cannot be read ({error.strerror}); give files of marked pages.") from None
        except (UnicodeDecodeError, zstandard.ZstdError) as error:
            raise BadInput(f"{path} is no file of marked pages, UTF-8 or zstd ({error}).") from None


def _lines(path: Path) -> Iterator[str]:
    with path.open("rb") as raw:
        stream: Any = raw
        if path.suffix == ".zst":
            stream = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW).stream_reader(raw)
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
    host = str(record.get("host") or "") or _host(record.get("url"), parse(html))
    # a page of unknown host is a host of its own
    host = host or where
    group = str(record.get("set") or "pages")
    return MarkedPage(html, text if isinstance(text, str) else None, wanted, unwanted, host, group), record


def _host(url: object, parsed: Parsed) -> str:
    """The domain that a page says it comes from, else that of most of its links; '' without any."""
    for said in (url, parsed.rels.get("canonical"), parsed.meta.get("og:url"), parsed.base):
        if said and (host := _name(str(said))):
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
