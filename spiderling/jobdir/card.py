"""The card of a corpus: ``README.md`` for people and ``manifest.json`` for programs, beside its files.

It says what is in the corpus and where it comes from.  It names the settings, models and versions by which the corpus
was made and can be made again, and the checksums of its files (after Gebru et al. 2021, *Datasheets for Datasets*).
A crawl writes one into ``corpus/`` at each end, from its state; ``scrapy export`` writes one beside its output.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from spiderling import __version__
from spiderling.archives.places import META_KEY
from spiderling.base.atomic_files import write_whole
from spiderling.base.digits import whole_number
from spiderling.base.errors import StorageError
from spiderling.base.options import Options
from spiderling.jobdir.card_page import NOT_STATED, Manifest, readme_of
from spiderling.jobdir.inspection import Inspection, counts_under
from spiderling.jobdir.shards import AnyCrawl
from spiderling.jobdir.sound_reading import noted
from spiderling.languages import LanguageInfo

MANIFEST = "manifest.json"
README = "README.md"
_LIBRARIES = ("scrapy", "lxml", "numpy", "chardet", "jusText", "tldextract", "xxhash")
"""Libraries whose version may change what text is kept."""
_NAMING_FILES = ("only_hosts", "block", "archive_urls", "models", "boilerplate_model", "seen")
"""Options that name files and directories; the card has their last names alone."""
_OF_THE_MACHINE = ("hosts", "allow_networks", "nameservers", "contact", "cluster_key_file")
"""Options that hold addresses of somebody's network, where a key is, and the contact, which stands apart: no settings
to repeat."""
_MOST_NAMED = 500
"""Different values of an attribute that are counted; others count as "other" (chosen)."""
_KINDS = {"enc_detected": "encodings", "file_type": "file_types", "licence": "licences"}
"""Attribute of a document -> what the card calls their counts."""


class Tally:
    """Counts the documents of a corpus one by one."""

    def __init__(self) -> None:
        self._documents: Counter[str] = Counter()
        self._words: Counter[str] = Counter()
        self._bytes = 0
        self._hosts: set[str] = set()
        self._dates: list[str] = []
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in (*_KINDS.values(), "optouts")}

    def count_document(self, attributes: Mapping[str, str]) -> None:
        """Count a document by the attributes of its ``<doc>``."""
        code = attributes.get("lang", "")
        date = attributes.get("crawl_date", "")
        self._documents[code] += 1
        self._words[code] += whole_number(attributes.get("words", "")) or 0
        self._bytes += whole_number(attributes.get("length", "")) or 0
        self._hosts.add(attributes.get("host", ""))
        if date:
            self._dates = [min([date, *self._dates[:1]]), max([date, *self._dates[1:]])]
        for attribute, name in _KINDS.items():
            _count(self._counts[name], attributes.get(attribute) or NOT_STATED)
        for said in attributes.get("optout", "").split():
            _count(self._counts["optouts"], said.partition(":")[0])

    @property
    def documents(self) -> int:
        return self._documents.total()

    def contents(self) -> Manifest:
        """The counts in the form of the manifest."""
        return _contents(self._documents, self._words, self._bytes, len(self._hosts), self._dates, self._counts)


def _count(counts: Counter[str], value: str) -> None:
    counts[value if value in counts or len(counts) < _MOST_NAMED else "other"] += 1


def _contents(
    documents: Counter[str],
    words: Counter[str],
    length: int,
    hosts: int,
    dates: list[str],
    counts: Mapping[str, Counter[str]],
) -> Manifest:
    return {
        "documents": documents.total(),
        "words": words.total(),
        "text_bytes": length,
        "hosts": hosts,
        "crawl_dates": dates,
        "languages": {code: {"documents": n, "words": words[code]} for code, n in documents.most_common()},
        **{name: dict(values.most_common()) for name, values in counts.items()},
    }


# -- a crawl


def card_of(crawl: Inspection) -> Manifest:
    """The manifest of a crawl's corpus, as its state has it; raises StorageError if a segment cannot be read.

    A segment that has not grown keeps its former checksum: were it damaged since, a new one would hide that.
    """
    former = _known_checksums(crawl)
    return {
        "made": _utc(time.time()),
        "software": software(),
        "contents": _contents_of(crawl),
        "crawls": [provenance(crawl)],
        "files": [
            {
                "name": segment.path.name,
                "documents": segment.entries,
                "bytes": segment.length,
                "sha256": former.get(segment.path.name) or checksum(segment.path, segment.length),
            }
            for segment in crawl.segments("corpus")
        ],
    }


def _contents_of(crawl: Inspection) -> Manifest:
    hosts = crawl.rows("SELECT count(*) AS n FROM host WHERE documents > 0")[0]["n"]
    last = crawl.rows("SELECT max(time) AS time FROM history")[0]["time"]
    dates = [_utc(noted(crawl.meta, "created", 0.0)), _utc(last or 0.0)]
    kinds = {"encodings": "encoding", "file_types": "file", "licences": "licence", "optouts": "optout"}
    return _contents(
        counts_under("language", crawl.counts),
        counts_under("fact/words", crawl.counts),
        crawl.counts.get("total/kept_bytes", 0),
        hosts,
        dates,
        {name: counts_under(f"fact/{kind}", crawl.counts) for name, kind in kinds.items()},
    )


def provenance(crawl: AnyCrawl) -> Manifest:
    """How the corpus of a crawl, of all its shards, was made, and what is needed to make it again.

    It is published with the corpus, so it has no path and no address of the machine.
    """
    options = crawl.options
    counts = crawl.counts
    defaults = asdict(Options())
    changed = {name: value for name, value in asdict(options).items() if value != defaults[name]}
    apart = {*_NAMING_FILES, *_OF_THE_MACHINE}
    seeds = noted(crawl.meta, "seeds", list[Manifest]())
    return {
        "languages": options.lang,
        "contact": options.contact,
        "begun": _utc(noted(crawl.meta, "created", 0.0)),
        "version": noted(crawl.meta, "version", ""),
        "urls_waiting": counts.get("waiting", 0),
        "archives_unread": crawl.archives_unread,
        "hosts_asked": sum(row["n"] for row in crawl.rows("SELECT count(*) AS n FROM host WHERE pages > 0")),
        "pages": counts.get("total/pages", 0),
        "downloaded_bytes": counts.get("total/downloaded_bytes", 0),
        "kept_bytes": counts.get("total/kept_bytes", 0),
        "purposes": noted(crawl.meta, "purposes", list[str]()),
        "optouts": {signal.value: rule for signal, rule in options.policy().rules.items()},
        "dedup": {"mode": options.dedup, "seen": last_names(options.seen)},
        "models": noted(crawl.meta, "models", dict[str, str]()),
        "seeds": [said | {"from": last_names(said["from"])} for said in seeds],
        "archives": [last_names(key.removeprefix(META_KEY)) for key in crawl.meta if key.startswith(META_KEY)],
        "settings": {name: value for name, value in changed.items() if name not in apart},
        "files": {name: last_names(changed[name]) for name in _NAMING_FILES if name in changed},
    }


def last_names(value: str) -> str:
    """The paths in *value*, which commas or colons divide, without their directories; URLs stay.

    >>> last_names("/home/me/old.prevert.zst,more.prevert")
    'old.prevert.zst,more.prevert'
    """
    return value if "://" in value else re.sub(r"[^,:]*/(?=[^/,:])", "", value)


def write_card(directory: Path) -> None:
    """Write the card of the crawl in *directory* into its ``corpus/``; raises SpiderlingError."""
    with closing(Inspection(directory)) as crawl:
        manifest = card_of(crawl)
    write_pair(manifest, directory / "corpus" / README, directory / "corpus" / MANIFEST)


def write_pair(manifest: Manifest, readme: Path, path: Path, page: str = "") -> None:
    """Each file whole or not at all, the manifest last; *page* stands in *readme*.  Raises StorageError."""
    write_whole(readme, page or readme_of(manifest, path.name))
    write_whole(path, json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")


def read_manifest(path: Path) -> Manifest:
    """The manifest in the file *path*; empty if there is none or it cannot be read."""
    try:
        manifest = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def files_in(manifest: Manifest) -> list[Manifest]:
    """The files of *manifest*, each with its "name"."""
    files = manifest.get("files")
    known = (file for file in (files if isinstance(files, list) else ()) if isinstance(file, dict))
    return [file for file in known if isinstance(file.get("name"), str)]


def _known_checksums(crawl: Inspection) -> dict[str, Any]:
    """Name -> checksum in the card of the corpus, of each segment that is as long as the card says."""
    lengths = {segment.path.name: segment.length for segment in crawl.segments("corpus")}
    files = files_in(read_manifest(crawl.directory / "corpus" / MANIFEST))
    return {file["name"]: file.get("sha256") for file in files if file.get("bytes", -1) == lengths.get(file["name"])}


def changed_files(crawl: Inspection) -> list[str]:
    """Names of segments that are as long as the card says and have another checksum; raises StorageError."""
    said = _known_checksums(crawl)
    return [
        segment.path.name
        for segment in crawl.segments("corpus")
        if segment.path.name in said and said[segment.path.name] != checksum(segment.path, segment.length)
    ]


# -- what it is made of


def model_digests(infos: Iterable[LanguageInfo]) -> dict[str, str]:
    """SHA-256 of the names and contents of each language's files, its seeds not among them."""

    digests = {}
    for info in infos:
        assert info.directory is not None
        files = (file for file in info.directory.iterdir() if file.is_file() and file.name != "seeds.txt")
        parts = [file.name.encode() + file.read_bytes() for file in sorted(files, key=lambda file: file.name)]
        digests[info.code] = hashlib.sha256(b"".join(parts)).hexdigest()
    return digests


def seeds_digest(urls: Iterable[str]) -> str:
    """SHA-256 of the seeds, sorted, one a line: the same for the same set."""
    digest = hashlib.sha256()
    for url in sorted(set(urls)):
        digest.update(f"{url}\n".encode())
    return digest.hexdigest()


def checksum(path: Path, length: int | None = None) -> str:
    """SHA-256 of a file, or of its first *length* bytes; raises StorageError if it cannot be read or is shorter."""
    digest = hashlib.sha256()
    left = path.stat().st_size if length is None and path.exists() else length or 0
    try:
        with path.open("rb") as file:
            while left and (part := file.read(min(left, 1 << 20))):
                digest.update(part)
                left -= len(part)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}.") from error
    if left:
        raise StorageError(f"{path} is {left} bytes shorter than recorded.")
    return digest.hexdigest()


def software() -> dict[str, str]:
    """Versions that may change what text is kept."""
    found = {"spiderling": __version__, "python": platform.python_version()}
    for library in _LIBRARIES:
        with suppress(PackageNotFoundError):
            found[library] = version(library)
    return found


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
