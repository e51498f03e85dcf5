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
import shlex
import time
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

from spiderling import __version__
from spiderling.archives.sources import META_KEY, UNREAD_KEY
from spiderling.base.files import checksum, whole_number, write_whole
from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.base.terminal import markdown_table, printable
from spiderling.corpus.receipts import CONSENT, RECEIPTS, SUMS
from spiderling.jobdir.consent import NONE, ConsentLedger, Taken, write_receipts
from spiderling.jobdir.coverage import COVERAGES, in_words
from spiderling.jobdir.inspection import AnyCrawl, reading
from spiderling.jobdir.state_reader import read_note
from spiderling.languages import LanguageInfo
from spiderling.languages.seeds import MODEL_SEEDS

if TYPE_CHECKING:
    from spiderling.jobdir.status_schema import Status

Manifest: TypeAlias = "dict[str, Any]"

NOT_STATED = "none stated"  # licence of a document whose page links to none
_CREATIVE_COMMONS = re.compile(
    r"https?://(?:www\.)?creativecommons\.org/"
    r"(?:licenses/(?P<kind>by(?:-nc)?(?:-sa)?|by-nc-nd)/(?P<version>[34]\.0)|publicdomain/zero/1\.0)(?:/.*)?"
)
"""Licences that dataset hubs have identifiers of: cc-by-sa-4.0, cc0-1.0 ..."""
_KINDS = {
    "encoding": ("encodings", "Encodings they were decoded from", "encoding"),
    "file": ("file_types", "Kinds of files", "kind"),
    "licence": ("licences", "Licences that pages link to", "licence"),
    "sure": ("sure_licences", "Licences that hold for the text, by where the page has them", "licence"),
    "optout": ("optouts", "Statements on the use of kept documents", "opt-out"),
}
"""What a crawl counts documents by -> the name of these counts in the manifest, their title and column in the card."""


def readme_of(manifest: Manifest, manifest_name: str) -> str:
    """The card (card.md); *manifest_name* is the file of *manifest* beside it."""
    contents = manifest["contents"]
    crawls = manifest["crawls"]
    names = ", ".join(filter(None, contents["languages"])) or "no language"
    metadata = {  # which hubs read
        "language": [code for code in contents["languages"] if code],
        "license": hub_licence(contents),
        "task_categories": ["text-generation"],
        "pretty_name": f"Web corpus of {names}",
        "size_categories": [_size_category(contents["documents"])],
        **{key: manifest[key] for key in ("configs",) if key in manifest},  # their readers know which files hold data
    }
    said = {
        "metadata": yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True).rstrip("\n"),
        "names": names,
        **{name: f"{contents[name]:,}" for name in ("documents", "words", "hosts")},
        "megabytes": f"{contents['text_bytes'] / 1e6:,.2f}",
        "dates": " to ".join(date[:10] for date in contents["crawl_dates"]),
        "version": manifest["software"]["spiderling"],
        "manifest": manifest_name,
        "whom": ", ".join(sorted({crawl["contact"] for crawl in crawls if crawl["contact"]})) or "whoever publishes it",
    }
    languages = [(code, row["documents"], row["words"]) for code, row in contents["languages"].items()]
    written = [(file["name"], file["documents"], file["bytes"], file["sha256"]) for file in manifest["files"]]
    sections = {
        "selection": _selection(manifest),
        "languages": _markdown("Languages", ("language", "documents", "words"), languages),
        "crawls": [line for crawl in crawls for line in _crawl_lines(crawl, manifest_name)],
        **{
            name: _markdown(title, (column, "documents"), contents[name].items()) if contents[name] else []
            for name, title, column in _KINDS.values()
        },
        "personal": _personal(manifest.get("personal_data", {})),
        "files": _markdown("Files", ("file", "documents", "bytes", "SHA-256"), written) + _receipts(manifest),
    }
    lines = {name: "".join(f"{line}\n" for line in found) for name, found in sections.items()}
    return Template(files(__package__).joinpath("card.md").read_text("utf-8")).substitute(said, **lines)


def _size_category(documents: int) -> str:
    """The class of a number of documents, as dataset hubs name it."""
    names = ["1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T"]
    place = bisect([10**power for power in range(3, 13)], documents)
    if place in (0, len(names)):
        return "n<1K" if place == 0 else "n>1T"
    return f"{names[place - 1]}<n<{names[place]}"


def _receipts(manifest: Manifest) -> list[str]:
    """What proves the documents, if the corpus has receipts."""
    if "receipts" not in manifest:
        return []
    number = sum(file.get("taken_down", 0) for file in manifest["files"])
    return [
        "Each document has a receipt, which `scrapy verify` checks, with what its site had said of its use. The root "
        f"of their Merkle tree is `{manifest['receipts']['root']}`. {number:,} documents were taken down and have "
        "left their receipts alone.",
        "",
    ]


def hub_licence(contents: Manifest) -> str | list[str]:
    """The identifiers of the licences that surely hold; "other" unless one holds for every document."""
    licences = contents["sure_licences"]
    matches = [*map(_CREATIVE_COMMONS.fullmatch, licences)]
    found = {f"cc-{match['kind']}-{match['version']}" if match["kind"] else "cc0-1.0" for match in matches if match}
    names = sorted(found) if all(matches) and sum(licences.values()) == contents["documents"] else []
    return names if len(names) > 1 else "".join(names) or "other"


def _selection(manifest: Manifest) -> list[str]:
    """What an export took of the corpus, if it left anything out."""
    chosen = manifest.get("selection", {})
    left_out = [f"{number:,} by `{what}`" for what, number in chosen.get("left_out", {}).items()]
    left_out += [f"{manifest['dropped']:,} by lists of hosts and URLs"] if manifest.get("dropped") else []
    if not left_out:
        return []
    conditions = ", ".join(f"`{text}`" for text in chosen["where"])
    facts = {"Conditions": conditions, "Left out": ", ".join(left_out)}
    return ["## What was taken", "", *(f"- {name}: {said}" for name, said in facts.items() if said), ""]


def _personal(said: Manifest) -> list[str]:
    """What an export did about personal data, if it did anything."""
    if not said:
        return []
    done = {"mark": "Marked, by kind and place", "mask": "Words such as <EMAIL> stand in the place of"}[said["mode"]]
    found = ", ".join(f"{number:,} `{kind}`" for kind, number in said["found"].items()) or "nothing"
    where = f"{done.replace('<', '&lt;')}: {found}, in {said['documents']:,} documents."
    return ["## Personal data", "", f"{where} Names and postal addresses were not looked for.", ""]


def _crawl_lines(crawl: Manifest, manifest_name: str) -> list[str]:
    rate = crawl["kept_bytes"] / max(1, crawl["downloaded_bytes"])
    rules = Counter(crawl["optouts"].values())
    dedup = crawl["dedup"]
    down = f"{crawl['downloaded_bytes'] / 1e6:,.1f} MB"
    seeds = [f"{s['number']:,} from {s['from']} (sha256 {s['sha256'][:16]})" for s in crawl["seeds"]]
    left = {"URLs wait": crawl["urls_waiting"], "archives are not read to their end": crawl["archives_unread"]}
    standing = "; ".join(f"{number:,} {what}" for what, number in left.items() if number) or "finished"
    facts = {
        "Begun": f"{crawl['begun']} UTC, {standing}",
        "Cost": f"{crawl['pages']:,} pages of {crawl['hosts_asked']:,} hosts, {down}; kept {rate:.4f} of the bytes",
        "Coverage": in_words(crawl.get("coverage", {})),
        "Purpose": ", ".join(crawl["purposes"]),
        "Opt-outs": ", ".join(f"{number} signals {rule}" for rule, number in rules.most_common())
        + f" ({manifest_name})",
        "Duplicates": f"mode {dedup['mode']}" + (f", and not in {dedup['seen']}" if dedup["seen"] else ""),
        "Models": ", ".join(f"{code} (sha256 {digest[:16]})" for code, digest in crawl["models"].items()),
        "Archives": f"{len(crawl['archives']):,} ({manifest_name})" if crawl["archives"] else "",
        "Seeds": "; ".join(seeds),
    }
    return [
        f"## How it was made: crawl of {crawl['languages']}",
        "",
        *(f"- {name}: {said}" for name, said in facts.items() if said),
        "",
        "To repeat it, with the files, models and versions named here (the web will have changed):",
        "",
        f"    {_command(crawl)}",
        "",
    ]


def _command(crawl: Manifest) -> str:
    """The command that made *crawl*; its files have their last names, and the contact is the reader's own."""
    named = crawl["settings"] | crawl["files"]
    seeds = [said["from"] for said in crawl["seeds"] if said["from"] != MODEL_SEEDS]
    parts = ["spiderling", *(f"-a seeds={shlex.quote(one)}" for one in seeds[:1])]
    if crawl["archives"]:
        parts = ["archive", "-a warc=ARCHIVES"]
    settings = [f"{PREFIX}{name.upper()}={value}" for name, value in named.items()]
    settings += [] if crawl["archives"] else [f"{PREFIX}CONTACT=you@example.org"]
    return " ".join(["scrapy crawl", *parts, *(f"-s {shlex.quote(setting)}" for setting in settings)])


def _markdown(title: str, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> list[str]:
    return [f"## {title}", "", *markdown_table(columns, (map(cell, row) for row in rows)), ""]


def cell(value: object) -> str:
    """*value* as text of a Markdown table; licences come from pages, so nothing in them may become markup."""
    if isinstance(value, int):
        return f"{value:,}"
    text = printable(str(value))
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[").replace("`", "\\`")


TAKEDOWNS = "takedowns"
"""Key in the table ``meta`` of a list of all take-downs, alike in all shards: ``time``, the lists ``hosts`` and
``urls``, ``taken`` (what was taken out -> how much), and the SHA-256 of the documents among that."""
MANIFEST = "manifest.json"
README = "README.md"
_BESIDE = {MANIFEST: "json", SUMS: "sha256"}  # names of a card's files -> their endings beside an export of one file


def beside(out: Path, name: str) -> Path:
    """The file *name* of the card of the export *out*."""
    return out.with_name(f"{out.name}.{_BESIDE.get(name, name)}")


_LIBRARIES = ("scrapy", "lxml", "numpy", "chardet", "jusText", "tldextract", "xxhash")
"""Libraries whose version may change what text is kept."""
_NAMING_FILES = ("only_hosts", "block", "archive_urls", "models", "boilerplate_model", "seen", "coverage_lists")
"""Options that name files and directories; the card has their last names alone."""
_OF_THE_MACHINE = ("hosts", "allow_networks", "nameservers", "contact", "cluster_key_file", "snapshots", "takeover_s")
"""Options that hold addresses of somebody's network, where a key is or snapshots are, and the contact: no settings
to repeat."""
_MAX_NAMED = 500  # different values of an attribute that are counted; others count as "other"; chosen
_ATTRIBUTES = {
    "encoding": ("enc_detected", "None"),
    "declared": ("enc_declared", "nothing"),
    "file": ("file_type", ""),
    "licence": ("licence", NOT_STATED),
}
"""What a crawl counts each document by -> the attribute that says it, and what stands for none."""


def facts_of(said: Mapping[str, str]) -> list[str]:
    """All that a crawl counts a document by, as ``kind/value``, from the attributes of its ``<doc>``."""
    facts = [f"{kind}/{said.get(name, none)}" for kind, (name, none) in _ATTRIBUTES.items()]
    facts += [f"sure/{said['licence_sure']}"] if "licence_sure" in said else []
    return facts + [
        f"optout/{signal}" for signal in {each.partition(":")[0] for each in said.get("optout", "").split()}
    ]


class Tally:
    """Counts the documents of a corpus one by one."""

    def __init__(self) -> None:
        self._bytes = 0
        self._hosts: set[str] = set()
        self._dates: list[str] = []
        self._counts = {
            name: Counter[str]() for name in ("documents", "words", *(name for name, *_ in _KINDS.values()))
        }

    def count_document(self, attributes: Mapping[str, str]) -> None:
        """Count a document by the attributes of its ``<doc>``."""
        code = attributes.get("lang", "")
        date = attributes.get("crawl_date", "")
        self._counts["documents"][code] += 1
        self._counts["words"][code] += whole_number(attributes.get("words", "")) or 0
        self._bytes += whole_number(attributes.get("length", "")) or 0
        self._hosts.add(attributes.get("host", ""))
        if date:
            self._dates = [min([date, *self._dates[:1]]), max([date, *self._dates[1:]])]
        for kind, _, value in (fact.partition("/") for fact in facts_of(attributes)):
            if kind in _KINDS:
                counts = self._counts[_KINDS[kind][0]]
                counts[value if value in counts or len(counts) < _MAX_NAMED else "other"] += 1

    @property
    def documents(self) -> int:
        return self._counts["documents"].total()

    def contents(self) -> Manifest:
        """The counts in the form of the manifest."""
        return _contents(self._counts, self._bytes, len(self._hosts), self._dates)


def _contents(counts: Mapping[str, Counter[str]], length: int, hosts: int, dates: list[str]) -> Manifest:
    """*counts*: of documents and words by language, and of documents by their attributes."""
    documents = counts["documents"]
    words = counts["words"]
    kinds = {name: dict(values.most_common()) for name, values in counts.items() if name not in ("documents", "words")}
    return {
        "documents": documents.total(),
        "words": words.total(),
        "text_bytes": length,
        "hosts": hosts,
        "crawl_dates": dates,
        "languages": {code: {"documents": n, "words": words[code]} for code, n in documents.most_common()},
        **kinds,
    }


# -- a crawl


def card_of(crawl: AnyCrawl, former: Manifest, root: str, taken_down: Mapping[str, int]) -> Manifest:
    """The manifest of a crawl's corpus, as its state has it; raises StorageError if a segment cannot be read.

    *root*: of its receipts; *taken_down*: documents that each segment has lost.  A segment that has not grown keeps its
    checksum of the *former* card: were it damaged since, a new one would hide that.
    """
    from spiderling.jobdir.status import status_of  # which a crawl needs at its end alone

    checksums: dict[tuple[str, int], str] = {}
    with suppress(AttributeError, KeyError, TypeError):  # whatever the file holds
        checksums = {(file["name"], file["bytes"]): file["sha256"] for file in former["files"]}
    return {
        "made": _utc(time.time()),
        "software": software(),
        "format": "prevertical",
        "contents": _contents_of(status_of(crawl)),
        "crawls": [provenance(crawl)],
        "receipts": {"root": root},
        "files": [
            {
                "name": segment.path.name,
                "documents": segment.entries,
                "bytes": segment.length,
                "sha256": checksums.get((segment.path.name, segment.length)) or checksum(segment.path, segment.length),
                "taken_down": taken_down[segment.path.name],
            }
            for segment in crawl.segments("corpus")
        ],
    }


def _contents_of(status: Status) -> Manifest:
    facts = status.facts or {}
    last = status.curves.whole["time"][-1:] if status.curves else []
    counts = {
        "documents": Counter({language.code: language.documents for language in status.languages}),
        "words": Counter({language.code: language.words for language in status.languages}),
        **{name: Counter(facts.get(kind, {})) for kind, (name, *_) in _KINDS.items()},
    }
    hosts = status.by_distance[0].giving if status.by_distance else 0
    dates = [_utc(status.created), _utc(last[0] if last else 0.0)]
    length = status.totals["kept_bytes"] + status.totals.get("revisit_kept_bytes", 0)
    return _contents(counts, length, hosts, dates)


def provenance(crawl: AnyCrawl) -> Manifest:
    """How the corpus of a crawl, of all its shards, was made, and what is needed to make it again.

    It is published with the corpus, so it has no path and no address of the machine.
    """
    options = crawl.options
    counts = crawl.counts
    defaults = asdict(Options())
    changed = {name: value for name, value in asdict(options).items() if value != defaults[name]}
    apart = {*_NAMING_FILES, *_OF_THE_MACHINE}
    seeds = read_note(crawl.meta, "seeds", list[Manifest]())
    takedowns = read_note(crawl.meta, TAKEDOWNS, list[Manifest]())
    return {
        "languages": options.lang,
        "contact": options.contact,
        "begun": _utc(read_note(crawl.meta, "created", 0.0)),
        "version": read_note(crawl.meta, "version", ""),
        "urls_waiting": counts.get("waiting", 0),
        "archives_unread": read_note(crawl.meta, UNREAD_KEY, 0),
        "hosts_asked": sum(row["n"] for row in crawl.rows("SELECT count(*) AS n FROM host WHERE pages > 0")),
        "pages": counts.get("total/pages", 0),
        "downloaded_bytes": counts.get("total/downloaded_bytes", 0),
        "kept_bytes": counts.get("total/kept_bytes", 0),
        "coverage": dict(*read_note(crawl.meta, COVERAGES, list[Manifest]())[-1:]),
        "purposes": read_note(crawl.meta, "purposes", list[str]()),
        "optouts": {signal.value: rule for signal, rule in options.policy().rules.items()},
        "dedup": {"mode": options.dedup, "seen": last_names(options.seen)},
        "models": read_note(crawl.meta, "models", dict[str, str]()),
        "seeds": [said | {"from": last_names(said["from"])} for said in seeds],
        "taken_down": [{name: said[name] for name in ("time", "taken", "sha256")} for said in takedowns],
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


def write_card(directory: Path, taken: Taken = NONE) -> None:
    """Write the card of the crawl in *directory* into its ``corpus/``, with its receipts; raises SpiderlingError.

    *taken*: documents that were taken out since the last card.
    """
    corpus = directory / "corpus"
    with reading(directory) as crawl, closing(ConsentLedger(crawl.databases)) as ledger:
        former = read_manifest(corpus / MANIFEST)
        manifest = card_of(crawl, former, *write_receipts(corpus, former, crawl.segments("corpus"), ledger, taken))
    write_pair(manifest, corpus / README, corpus / MANIFEST)
    write_sums(corpus / SUMS, manifest, [corpus / name for name in (RECEIPTS, CONSENT, README, MANIFEST)])


def write_pair(manifest: Manifest, readme: Path, path: Path) -> None:
    """Each file whole or not at all, the manifest last.  Raises StorageError."""
    write_whole(readme, readme_of(manifest, path.name))
    write_whole(path, json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")


def write_sums(path: Path, manifest: Manifest, others: Iterable[Path]) -> None:
    """The checksums of all files of a corpus, for ``sha256sum -c``; *others* stand beside it.  Raises StorageError."""
    sums = {file["name"]: file["sha256"] for file in manifest["files"]}
    sums |= {other.name: checksum(other) for other in others}
    write_whole(path, "".join(f"{digest}  {name}\n" for name, digest in sums.items()))


def read_manifest(path: Path) -> Manifest:
    """The manifest in the file *path*; empty if there is none or it cannot be read."""
    try:
        manifest = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


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
    return hashlib.sha256("".join(f"{url}\n" for url in sorted(set(urls))).encode()).hexdigest()


def software() -> dict[str, str]:
    """Versions that may change what text is kept."""
    found = {"spiderling": __version__, "python": platform.python_version()}
    for library in _LIBRARIES:
        with suppress(PackageNotFoundError):
            found[library] = version(library)
    return found


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
