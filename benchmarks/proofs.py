"""Whether a crawl's summary and receipts are right, by its archive alone, and whether each changed byte is found.

    python -m benchmarks.proofs [--quick]

*summary*, *receipts*: a web whose owners say ten things of the use of their texts is crawled with WARC.  A second
program, which shares no code with the package, reads the WARC files by warcio: it counts what the summary states, finds
what each site had said before each page was fetched, and computes leaves and root by the definition in RFC 6962.  Each
cell of a table of the summary is a field.  *tampered*: one byte of an export is changed at a time, and `scrapy verify`
has to find it: in any file; and in texts, receipts and statements by somebody who repairs all checksums afterwards.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import re
import struct
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from conftest import Crawl, document, scrapy, serving
from warcio.archiveiterator import ArchiveIterator

from benchmarks.common import arguments, result, table
from spiderling.base.files import zstd
from spiderling.export.verification import Card, Verification, cards_of
from spiderling.jobdir.card import MANIFEST
from webs.web import FixedWeb, html, plain

RSL = '<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license>{}</license></content></rsl>'
FREE = RSL.format('<payment type="attribution"/>')
ROBOTS, TDMREP, AI_TXT = "/robots.txt", "/.well-known/tdmrep.json", "/ai.txt"
OWNERS: list[tuple[dict[str, str], set[str]]] = [
    ({}, set()),
    ({ROBOTS: "User-agent: *\nDisallow: /private"}, set()),
    ({ROBOTS: "User-agent: *\nContent-Signal: search=yes, ai-train=yes"}, {"content-signal"}),
    ({ROBOTS: "User-agent: *\nContent-Usage: train-ai=n"}, {"content-usage"}),
    ({ROBOTS: "User-agent: GPTBot\nDisallow: /"}, {"ai-agents"}),
    ({ROBOTS: "User-agent: *\nDisallow: /"}, {"disallow"}),
    ({TDMREP: '[{"location": "/*", "tdm-reservation": 0}]'}, {"tdm-file"}),
    ({TDMREP: '[{"location": "/*", "tdm-reservation": 1}]'}, {"tdm-file"}),
    ({AI_TXT: "User-agent: *\nDisallow: *.txt"}, {"ai-txt"}),
    ({ROBOTS: "User-agent: *\nLicense: /rsl.xml", "/rsl.xml": FREE}, {"rsl"}),
]
"""The files of an owner, and the signals in them."""
HEADS = ("", "", '<meta name="robots" content="noarchive">', '<meta name="robots" content="noai">')
"""What pages say, in turn."""
SETTINGS = {
    "HOST_INTERVAL_S": 0.01, "IP_INTERVAL_S": 0, "WARC": "on", "TLDS": "cz", "OPTOUTS": "",
    "QUALITY": "text_chars=400..",
}  # fmt: skip
PROVED = ("consent.jsonl.gz", "receipts.bin")
MEMORY = "/dev/shm"  # noqa: S108 - where files that are changed 100,000 times cost no disk
AT_BEGIN = 60.0  # seconds before the first request in which the state of the crawl was made


def speaking_web(hosts: int, pages: int) -> FixedWeb:
    sites = {}
    for number in range(hosts):
        files, _ = OWNERS[number % len(OWNERS)]
        own = f"\n# {number}\n"
        site = {path: plain(text + own if path == ROBOTS else text) for path, text in files.items()}
        for page in range(pages):
            links = [f"/{n}" for n in range(pages)] if page == 0 else ["/private"]
            text = document(f"{number} {page}", *links, count=1 + number % 4)
            site[f"/{page or ''}"] = html(text.replace("<head>", f"<head>{HEADS[page % len(HEADS)]}"))
        sites[f"www{number % 2}.d{number // 2}.cz"] = site
    addresses = {host: f"127.84.1.{1 + place % 100}" for place, host in enumerate(sites)}
    return FixedWeb(sites, addresses)


# -- the second program: what the WARC files say


class Exchanged(NamedTuple):
    """A request and what came of it."""

    url: str
    time: str  # as a ``crawl_date``
    status: str
    body: bytes
    about: dict[str, str]  # of its metadata record


def exchanged(directory: Path) -> list[Exchanged]:
    found: dict[str, list[Any]] = {}
    bodies: dict[str, bytes] = {}  # by payload digest, to which revisits refer
    for path in sorted(directory.glob("*.warc.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream):
                headers = record.rec_headers
                if record.rec_type in ("response", "revisit"):
                    date = headers["WARC-Date"][:19].replace("T", " ")
                    status = record.http_headers.get_statuscode()
                    body = record.content_stream().read() or bodies.get(headers["WARC-Payload-Digest"], b"")
                    bodies[headers["WARC-Payload-Digest"]] = body
                    found[headers["WARC-Record-ID"]] = [headers["WARC-Target-URI"], date, status, body, {}]
                elif record.rec_type == "metadata":
                    lines = record.content_stream().read().decode().splitlines()
                    about = dict(line.split(": ", 1) for line in lines if ": " in line)
                    found[headers["WARC-Refers-To"]][4] = about
    return [Exchanged(*values) for values in found.values()]


def origin_of(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])


def said_before(archive: list[Exchanged]) -> Callable[[str], set[tuple[str, str, str]]]:
    """From the URL of a page to (URL, status, SHA-256) of each file that its site had given."""
    files: defaultdict[str, list[Exchanged]] = defaultdict(list)
    pages = {}
    for one in archive:
        if one.url.endswith((ROBOTS, TDMREP, AI_TXT, "/rsl.xml")):
            files[origin_of(one.url)].append(one)
        else:
            pages[one.url] = one

    def said(url: str) -> set[tuple[str, str, str]]:
        last = {file.url: file for file in files[origin_of(url)] if file.time <= pages[url].time}
        return {
            (file.url, file.status, hashlib.sha256(file.body).hexdigest() if file.status == "200" else "")
            for file in last.values()
        }

    return said


def root_of(leaves: list[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1, of hashes of leaves."""
    if len(leaves) == 1:
        return leaves[0]
    half = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + root_of(leaves[:half]) + root_of(leaves[half:])).digest()


def check_receipts(corpus: Path, archive: list[Exchanged]) -> tuple[int, int]:
    """Receipts, and how many differ from what the archive says; a wrong root counts as one."""
    lines = gzip.decompress((corpus / "consent.jsonl.gz").read_bytes()).splitlines(keepends=True)
    said_of = said_before(archive)
    data = (corpus / "receipts.bin").read_bytes()
    receipts = struct.iter_unpack(">32sII", data)
    leaves = []
    differences = 0
    for path in sorted(corpus.glob("*.prevert.zst")):
        with path.open("rb") as file:
            text = zstd.ZstdFile(file).read()
        for found in re.finditer(rb'<doc [^\n]* url="([^"]*)".*?</doc>\n', text, re.DOTALL):
            leaf, line, length = next(receipts)
            entry = json.loads(lines[line - 1])
            told = {(one["url"], one["answer"], one.get("sha256", "")) for one in entry["said"]}
            whole = hashlib.sha256(b"\0" + hashlib.sha256(lines[line - 1]).digest() + found[0]).digest()
            leaves.append(whole)
            is_right = told == said_of(found[1].decode()) and leaf == whole and length == len(found[0])
            differences += not is_right
    root = json.loads((corpus / "manifest.json").read_text())["receipts"]["root"]
    differences += len([*receipts]) + (root_of(leaves).hex() != root)
    return len(leaves), differences


def expected(archive: list[Exchanged]) -> dict[str, list[list[Any]]]:
    """Rows of fields of the summary, by their names, as the archive has them."""
    kept = [one for one in archive if one.about.get("reason") == "kept"]
    ends = Counter(one.about["reason"] for one in archive if "reason" in one.about)
    by_domain: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    by_language: Counter[str] = Counter()
    for one in kept:
        numbers = (1, int(one.about["words"]), int(one.about["keptBytes"]))
        domain = ".".join(origin_of(one.url).rsplit(".", 2)[-2:])
        by_domain[domain] = [a + b for a, b in zip(by_domain[domain], numbers, strict=True)]
        by_language[one.about["language"]] += numbers[1]
    largest = sorted(by_domain.items(), key=lambda entry: (-entry[1][2], entry[0]))[: -(-len(by_domain) // 10)]
    totals = [sum(column) for column in zip(*by_domain.values(), strict=True)]
    of_language = Counter(one.about["language"] for one in kept)
    pages = [one for one in archive if "reason" in one.about]
    asked = {".".join(origin_of(one.url).rsplit(".", 2)[-2:]) for one in pages}
    dropped = [[reason, ends[reason]] for reason in ("opted-out", "noindex") if ends[reason]]
    return {
        "Size of the text": [totals],
        "Kinds of content by file": [["html", len(kept)]],
        "Languages": [[code, number, by_language[code]] for code, number in of_language.most_common()],
        "The first domains by bytes of text in the corpus": [[name, *numbers] for name, numbers in largest],
        "Domains that were asked, and those with text in the corpus": [[len(asked), len(by_domain)]],
        "URLs that were not fetched, or not used, because of it": dropped,
        "Statements that do not bind this purpose, on documents that were used": [],
        "Signals": signals_in(archive),
        "Its purposes": [["ai-train"]],
    }


def signals_in(archive: list[Exchanged]) -> list[list[Any]]:
    """Signal -> sites that say it in a file."""
    signals: dict[str, set[str]] = {}
    marks = {hashlib.sha256(text.encode()).hexdigest(): said for files, said in OWNERS for text in files.values()}
    sites: defaultdict[str, set[str]] = defaultdict(set)
    for one in archive:
        text = re.sub(rb"\n# \d+\n$", b"", one.body)
        for signal in marks.get(hashlib.sha256(text).hexdigest(), ()):
            sites[signal].add(origin_of(one.url))
    signals = {**sites}
    return sorted([signal, len(found)] for signal, found in signals.items())


def check_summary(told: dict[str, Any], archive: list[Exchanged]) -> tuple[int, int, list[str]]:
    """Fields that were compared, how many differ, and which."""
    every = [field for section in told["sections"] for field in section["fields"]]
    rows = {field["name"]: field["rows"] for field in every if "rows" in field}
    name = next(name for name in rows if name.startswith("Signals"))
    rows["Signals"] = [[signal, sites] for signal, _, sites in rows.pop(name) if sites]
    ends = "URLs that were not fetched, or not used, because of it"
    rows[ends] = [row for row in rows[ends] if row[0] in ("opted-out", "noindex")]  # the others were never asked for
    first, last = rows["Period of collection"][0]
    times = [one.time for one in archive]
    is_right = first <= min(times) and (max(times) <= last or _is_near(last, max(times)))
    wrong = [] if is_right else ["Period of collection"]
    fields = 2
    for name, wanted in expected(archive).items():
        if name.startswith("Statements"):
            continue
        found = [[*row] for row in rows[name]]
        cells = max(sum(map(len, wanted)), sum(map(len, found)))
        fields += cells
        if found != wanted:
            wrong.append(f"{name}: {found[:3]} and not {wanted[:3]}")
    return fields, len(wrong), wrong


def _is_near(last: str, newest: str) -> bool:
    """Whether the last note of the history, one in ten seconds, is near the newest page."""
    read = [time.mktime(time.strptime(text, "%Y-%m-%d %H:%M:%S")) for text in (last, newest)]
    return abs(read[0] - read[1]) < AT_BEGIN


# -- changed bytes


class Target(NamedTuple):
    """An export that is changed."""

    card: Card
    files: dict[Path, bytes]


def targets(job: Path, place: Path) -> Iterator[Target]:
    """Small exports in three formats."""
    for name in ("t.jsonl.zst", "t.prevert", "t.vert.gz"):
        scrapy("export", str(job), "-o", f"{place}/{name}", "--where", "host IN ('www0.d0.cz', 'www0.d1.cz')")
        (card,) = cards_of(place / name)
        yield Target(card, {path: path.read_bytes() for path in place.iterdir() if path.name.startswith(name)})


PACKED: dict[str, tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]] = {
    ".zst": (zstd.decompress, zstd.compress),
    ".gz": (gzip.decompress, partial(gzip.compress, compresslevel=1)),
}
"""Ending -> how a file is unpacked and packed."""


def with_changed_byte(data: bytes, draw: random.Random) -> bytes:
    place = draw.randrange(len(data))
    return data[:place] + bytes([data[place] ^ draw.randrange(1, 256)]) + data[place + 1 :]


def repaired(target: Target, path: Path, draw: random.Random) -> dict[Path, bytes]:
    """A byte of the content of *path* is changed, and all checksums are made right again."""
    unpack, pack = PACKED.get(path.suffix, (bytes, bytes))
    changed = {path: pack(with_changed_byte(unpack(target.files[path]), draw))}
    manifest = target.card.named(MANIFEST)
    told = json.loads(target.files[manifest])
    for file in told["files"]:
        if file["name"] == path.name:
            file["sha256"] = hashlib.sha256(changed[path]).hexdigest()
    changed[manifest] = json.dumps(told).encode()
    sums = target.card.named("SHA256SUMS")
    names = re.findall(r"  (.+)\n", target.files[sums].decode())
    whole = {place.name: data for place, data in {**target.files, **changed}.items()}
    changed[sums] = "".join(f"{hashlib.sha256(whole[name]).hexdigest()}  {name}\n" for name in names).encode()
    return changed


def tampered(job: Path, place: Path, number: int) -> tuple[int, int]:
    """Changed bytes, and how many of them were found."""
    draw = random.Random(1)
    every = [*targets(job, place)]
    found = 0
    for turn in range(number):
        target = every[turn % len(every)]
        if turn % 2:
            proved = [path for path in target.files if path.name.endswith(PROVED) or path == target.card.out]
            changed = repaired(target, draw.choice(proved), draw)
        else:
            path = draw.choice([path for path, data in target.files.items() if data])
            changed = {path: with_changed_byte(target.files[path], draw)}
        for path, data in changed.items():
            path.write_bytes(data)
        is_found = bool(Verification(target.card).findings)
        found += is_found
        if not is_found:
            print(f"not found: {[path.name for path in changed]}")
        for path in changed:
            path.write_bytes(target.files[path])
    return number, found


def main() -> None:
    args = arguments(__doc__)
    hosts, pages, changes = (200, 4, 1000) if args.quick else (1000, 11, 100_000)
    memory = MEMORY if os.path.isdir(MEMORY) else None
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryDirectory(dir=memory) as place:
        job = Path(directory, "job")
        with serving(speaking_web(hosts, pages)) as server:
            seeds = Path(directory, "seeds.txt")
            seeds.write_text("\n".join(f"http://www{n % 2}.d{n // 2}.cz/" for n in range(hosts)))
            ended = Crawl(job, server, **SETTINGS).run(str(seeds), timeout=500)
            assert ended.code == 0, ended.output[-2000:]
        archive = exchanged(job / "warc")
        receipts, wrong = check_receipts(job / "corpus", archive)
        scrapy("export", str(job), "--summary", "eu", "-o", f"{directory}/summary")
        told = json.loads(Path(directory, "summary/summary.json").read_text())
        fields, differences, which = check_summary(told, archive)
        began = time.monotonic()
        changed, found = tampered(job, Path(place), changes)
        took = time.monotonic() - began
    rows = [
        ("summary", fields, differences, "; ".join(which)[:300]),
        ("receipts", receipts, wrong, ""),
        ("tampered", changed, changed - found, f"{took:.0f} s"),
    ]
    table(("part", "number", "wrong or not found", ""), rows)
    result(
        summary_fields=fields, summary_differences=differences, receipts=receipts, receipts_differences=wrong,
        tampered=changed, found=found,
    )  # fmt: skip


if __name__ == "__main__":
    main()
