"""Where seeds come from (``scrapy seeds``): files that services on the web give out.

They are dumps of Wikipedia and indexes of Common Crawl.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from spiderling.base.errors import BadInput
from spiderling.base.files import saving
from spiderling.base.terminal import progress_bar
from spiderling.base.urls import canonicalize, registrable_domain, top_level_domain


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file that a service gives out, packed by gzip or not, with a progress bar.

    Raises BadInput where it cannot be read any further.
    """
    try:
        with path.open("rb") as raw, progress_bar("bytes", path.stat().st_size, in_bytes=True) as bar:
            is_packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            for line in gzip.GzipFile(fileobj=raw) if is_packed else raw:
                bar.update(raw.tell() - bar.n)
                yield line
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is not whole"
        raise BadInput(f"{path} cannot be read to its end ({reason}); download it again.") from None


_COLUMN = re.compile(r"^  `(\w+)`")
_ROW = re.compile(r"\(((?:'(?:[^'\\]|\\.)*'|[^'()])*)\)")
_VALUE = re.compile(r"'((?:[^'\\]|\\.)*)'|([^,]+)")
_ESCAPE = re.compile(r"\\(.)")


def read_dump(path: Path) -> Iterator[str]:
    """The URLs in ``<wiki>-<date>-externallinks.sql.gz``, packed or not, as the table is since 2023.

    Raises BadInput if it cannot be read, is no such dump, or breaks off; the URLs before that were yielded.
    """
    columns: list[str] = []
    last = ""
    for packed in lines_of(path):
        line = packed.decode("utf-8", "replace").rstrip("\n")
        last = line or last
        column = _COLUMN.match(line)
        if column is not None:
            columns.append(column[1])
        elif line.startswith("INSERT INTO `externallinks`") and "el_to_path" in columns:
            yield from _read_insert(line, columns)
    if "el_to_domain_index" not in columns or "el_to_path" not in columns:
        raise BadInput(f"{path} is no dump of external links; take <wiki>-<date>-externallinks.sql.gz.")
    if not last.startswith("-- Dump completed"):
        raise BadInput(f"{path} breaks off before its end; download it again.")


def _read_insert(line: str, columns: list[str]) -> Iterator[str]:
    """The URLs in the rows of one INSERT."""
    for row in _ROW.finditer(line):
        values = [_ESCAPE.sub(r"\1", text) if text else other for text, other in _VALUE.findall(row[1])]
        if len(values) != len(columns):
            continue
        fields = dict(zip(columns, values, strict=True))
        path = fields["el_to_path"]
        yield _from_index(fields["el_to_domain_index"]) + ("/" if path in ("", "NULL") else path)


def _from_index(index: str) -> str:
    """The origin of ``https://cz.example.www.:8080``: since 2023 the table has the labels of names in reverse."""
    scheme, _, rest = index.partition("://")
    name, _, port = rest.partition(".:")
    labels = name.strip(".").split(".")
    host = ".".join(labels[1:] if labels[0] == "V4" else reversed(labels))
    return f"{scheme}://{host}" + (f":{port}" if port else "")


class CaptureFilter(NamedTuple):
    """Which captures count: successful ones in one of our languages or, if that is not known, below our domains."""

    iso3: Sequence[str]  # codes of our languages, by ISO 639-3
    tlds: Sequence[str]

    def home(self, capture: dict[str, Any]) -> str | None:
        """The home page of a capture's host, if it is wanted."""
        target = canonicalize(str(capture.get("url", "")))
        if target is None or str(capture.get("status", "200")) != "200":
            return None
        first = str(capture.get("languages") or "").partition(",")[0]
        is_ours = first in self.iso3 if first else top_level_domain(target.host) in self.tlds
        return f"{target.origin}/" if is_ours else None


def read_index(path: Path, wanted: CaptureFilter) -> Iterator[str]:
    """The home pages of wanted hosts in a file of the index, ``cdx-*.gz``.

    Raises BadInput if it cannot be read; what it holds before that was yielded.
    """
    for number, line in enumerate(lines_of(path), 1):
        try:
            home = wanted.home(json.loads(line[line.index(b"{") :]))
        except (ValueError, AttributeError):
            raise BadInput(f"{path}, line {number}: no line of a CDXJ index; take cdx-*.gz.") from None
        if home is not None:
            yield home


_PLATFORMS = """
    amazon.com archive.org archive.ph archive.today bing.com bit.ly doi.org duckduckgo.com ebay.com facebook.com
    fandom.com flickr.com github.com goo.gl google.com imdb.com instagram.com issuu.com jstor.org linkedin.com
    mediawiki.org microsoft.com netflix.com orcid.org pinterest.com quora.com reddit.com scribd.com spotify.com
    t.co t.me telegram.me tiktok.com tripadvisor.com twitch.tv twitter.com viaf.org vimeo.com vk.com webcitation.org
    wikidata.org wikimedia.org wikipedia.org worldcat.org x.com yahoo.com yandex.ru youtu.be youtube.com
"""
PLATFORMS = frozenset(_PLATFORMS.split())
"""Registrable domains that everybody links to (aggregators, archives, shops, networks): no seeds for one language."""


class SeedFile:
    """Appends URLs that may be seeds, one a line, each when it is found, so a stop loses none."""

    def __init__(self, path: Path, per_host: int, homes: bool = False) -> None:
        """Raises BadInput when the file cannot be read or written.

        *per_host*: most URLs of one host, those in the file counted; *homes*: each host's home page in place of what
        was found on it.
        """
        self.path = path
        self.added = 0
        self._is_new = not path.exists()
        self._per_host = per_host
        self._homes = homes
        self._heading = ""
        self._known: set[str] = set()
        self._hosts: Counter[str] = Counter()
        line = "\n"
        try:
            with path.open("a+", encoding="utf-8") as file:
                file.seek(0)
                for line in file:
                    target = canonicalize(line.strip())
                    if target is not None:
                        self._known.add(target.url)
                        self._hosts[target.host] += 1
            self._file = path.open("a", encoding="utf-8")
            self._gap = "" if line.endswith("\n") else "\n"  # the last line may have no end
        except OSError as error:
            raise BadInput(f"{path} cannot be written ({error.strerror}); name another file with -o.") from None
        except UnicodeDecodeError:
            raise BadInput(f"{path} is not a text file in UTF-8; name another file with -o.") from None

    def close(self) -> None:
        """Close the file; a new one without a line goes, so that an error leaves none behind."""
        with suppress(OSError):  # a full disk may refuse what it has refused before
            self._file.close()
        if self._is_new and not self.path.stat().st_size:
            self.path.unlink()

    @property
    def hosts(self) -> int:
        return len(self._hosts)

    def comment(self, text: str) -> None:
        """Begin a section; its heading is written with its first URL."""
        self._heading = f"# {text}\n"

    def add(self, url: str) -> bool:
        """Write *url*, unless it is no http(s) URL, known, a platform's, or its host has enough; True if written.

        Raises StorageError.
        """
        target = canonicalize(url)
        if target is not None and self._homes:
            target = canonicalize(f"{target.origin}/")
        if (
            target is None
            or target.url in self._known
            or self._hosts[target.host] >= self._per_host
            or registrable_domain(target.host) in PLATFORMS
        ):
            return False
        with saving(self.path):
            self._file.write(f"{self._gap}{self._heading}{target.url}\n")
            self._file.flush()
        self._known.add(target.url)
        self._hosts[target.host] += 1
        self.added += 1
        self._gap = ""
        self._heading = ""
        return True
