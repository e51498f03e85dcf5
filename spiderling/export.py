"""A finished corpus written anew: without the documents that have to go, and in another format.

Documents are copied one by one as they stand, so that memory does not grow with the corpus.
"""

from __future__ import annotations

import fnmatch
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, NamedTuple, Protocol, TypeAlias

import zstandard

from spiderling import __version__
from spiderling.errors import BadInput, StorageError
from spiderling.inspection import Inspection
from spiderling.prevertical import Source, StoredDocument, stored_documents
from spiderling.urls import CanonicalUrl, canonicalize

_FRAME_CHARS = 1_000_000
Watch: TypeAlias = Callable[[Iterator[StoredDocument]], Iterator[StoredDocument]]


class Summary(NamedTuple):
    """What became of the documents."""

    kept: int
    dropped: int
    idle: list[str]
    """Entries of the lists that no document matched."""


class Corpus(NamedTuple):
    """Where documents come from."""

    sources: list[Source]
    purposes: list[str]
    """What they were collected for, as far as is known (optouts.py)."""
    documents: int = 0
    """How many there are; 0 if that is not known of all sources."""


def corpus_of(names: Iterable[str]) -> Corpus:
    """The corpus in crawl directories and files; raises BadInput when one is neither.

    Of a crawl, that may be running, it is what was acknowledged.
    """
    sources: list[Source] = []
    purposes: set[str] = set()
    counted: list[int] = []
    for path in map(Path, names):
        if path.is_dir():
            with closing(Inspection(path)) as crawl:
                rows = crawl.rows("SELECT name, length_bytes, documents FROM segment ORDER BY name")
                sources += [Source(path / "corpus" / row["name"], row["length_bytes"]) for row in rows]
                counted += [row["documents"] for row in rows]
                purposes |= set(json.loads(crawl.meta.get("purposes", "[]")))
        elif path.is_file():
            sources.append(Source(path))
            purposes |= _purposes_beside(path)
        else:
            raise BadInput(f"{path} does not exist; give directories of crawls, or files of a corpus.")
    return Corpus(sources, sorted(purposes), sum(counted) if len(counted) == len(sources) else 0)


def _purposes_beside(path: Path) -> set[str]:
    """What an export says of itself."""
    with suppress(OSError, ValueError, AttributeError, TypeError):
        manifest = json.loads(path.with_name(f"{path.name}.json").read_text("utf-8"))
        return {purpose for purpose in manifest.get("purposes", []) if isinstance(purpose, str)}
    return set()


class DropList:
    """Hosts and URLs whose documents have to go; http and https, and a leading ``www.``, make no difference."""

    def __init__(self, hosts: Iterable[str] = (), urls: Iterable[str] = ()) -> None:
        """*hosts* may hold ``*`` and ``?``, *urls* may end in ``*``; raises BadInput for what is no URL."""
        self._hosts: dict[str, str] = {}
        self._globs: dict[str, str] = {}
        self._urls: dict[str, str] = {}
        self._beginnings: dict[str, str] = {}
        self.idle: set[str] = set()
        """Entries that matched nothing up to now."""
        for entry in hosts:
            self._add_host(entry)
        for entry in urls:
            target = canonicalize(entry.removesuffix("*"))
            if target is None:
                raise BadInput(f"{entry!r} in the list of URLs is no http(s) URL; give each in full, with its scheme.")
            (self._beginnings if entry.endswith("*") else self._urls)[_address(target)] = entry
            self.idle.add(entry)

    def _add_host(self, entry: str) -> None:
        target = canonicalize(entry if "://" in entry else f"http://{entry}/")
        if "*" in entry or "?" in entry:
            self._globs[entry.lower()] = entry
        elif target is None:
            raise BadInput(f"{entry!r} in the list of hosts is no host name; write one a line, such as a.example.")
        else:
            self._hosts[target.host] = entry
        self.idle.add(entry)

    def rule_for(self, attributes: Mapping[str, str]) -> str | None:
        """The entry by which a document has to go; None if it may stay."""
        target = canonicalize(attributes.get("url", ""))
        rule = self._match(target) if target is not None else None
        if rule is not None:
            self.idle.discard(rule)
        return rule

    def _match(self, target: CanonicalUrl) -> str | None:
        address, name = _address(target), target.host.rpartition(":")[0] or target.host
        exact = self._hosts.get(target.host) or self._hosts.get(name) or self._urls.get(address)
        if exact is not None:
            return exact
        glob = next((entry for glob, entry in self._globs.items() if fnmatch.fnmatchcase(name, glob)), None)
        return glob or next((self._beginnings[part] for part in self._beginnings if address.startswith(part)), None)


def _address(target: CanonicalUrl) -> str:
    return target.host + target.path


def read_list(name: str) -> list[str]:
    """The entries of a list, one a line, ``#`` begins a comment; raises BadInput if it cannot be read."""
    try:
        lines = Path(name).read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise BadInput(f"the list {name} cannot be read: {reason}; it holds one entry a line.") from None
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


# -- formats


class Writer(Protocol):
    """Writes documents of one format to a file."""

    def add(self, text: str) -> None:
        """*text*: one ``<doc>`` as it stands in a segment."""

    def close(self) -> None:
        """Write the rest; the file itself stays open."""


class PrevertWriter:
    """The format of the segments; in zstd frames of about a megabyte if the name ends in ``.zst``."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._compressor = zstandard.ZstdCompressor(level=9) if name.endswith(".zst") else None
        self._texts: list[str] = []
        self._chars = 0

    def add(self, text: str) -> None:
        self._texts.append(text)
        self._chars += len(text)
        if self._chars >= _FRAME_CHARS:
            self.close()

    def close(self) -> None:
        data = "".join(self._texts).encode()
        if data:
            self._file.write(self._compressor.compress(data) if self._compressor else data)
        self._texts, self._chars = [], 0


FORMATS = {"prevertical": PrevertWriter}
"""Name -> Writer(file, name of the file)."""


# -- the export


def export(
    corpus: Corpus, out: Path, format_name: str, drop: DropList, lists: Mapping[str, int], watch: Watch = iter
) -> Summary:
    """Copy *corpus* to *out* without what *drop* names; ``out`` appears when it is complete.

    Beside it stand ``.json`` (what it was made of, with *lists*: name -> number of entries) and, if
    something may have been dropped, ``.dropped.tsv`` (id, URL and the entry that matched).  *watch* sees every
    document pass.  Raises BadInput if *out* exists, StorageError if it cannot be written or a segment cannot be read.
    """
    if out.exists():
        raise BadInput(f"{out} exists; remove it, or give another name.")
    part = out.with_name(out.name + ".part")
    log_name = out.with_name(out.name + ".dropped.tsv")
    kept = dropped = 0
    try:
        with part.open("wb") as file, _log(log_name if lists else None) as log:
            writer: Writer = FORMATS[format_name](file, out.name)
            for document in watch(_all(corpus)):
                rule = drop.rule_for(document.attributes)
                if rule is None:
                    writer.add(document.text)
                    kept += 1
                elif log is not None:
                    log.write("\t".join((document.attributes.get("id", ""), document.attributes["url"], rule)) + "\n")
                    dropped += 1
            writer.close()
            file.flush()
            os.fsync(file.fileno())
        summary = Summary(kept, dropped, sorted(drop.idle))
        out.with_name(out.name + ".json").write_text(_manifest(corpus, summary, format_name, lists), "utf-8")
        part.replace(out)
    except OSError as error:
        raise StorageError(f"{out} could not be written: {error.strerror}.") from error
    finally:
        if part.exists():  # it is not complete
            part.unlink()
            log_name.unlink(missing_ok=True)
    return summary


def _all(corpus: Corpus) -> Iterator[StoredDocument]:
    for source in corpus.sources:
        yield from stored_documents(source)


def _log(path: Path | None) -> AbstractContextManager[IO[str] | None]:
    return nullcontext() if path is None else path.open("w", encoding="utf-8")


def _manifest(corpus: Corpus, summary: Summary, format_name: str, lists: Mapping[str, int]) -> str:
    content = {
        "made": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S"),
        "version": __version__,
        "format": format_name,
        "purposes": corpus.purposes,
        "sources": [str(source.path) for source in corpus.sources],
        "documents": summary.kept,
        "dropped": summary.dropped,
        "lists": dict(lists),
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
