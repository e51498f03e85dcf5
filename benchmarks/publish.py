"""What makes a corpus fit to be published: personal data that is found, proofs that hold, and what that costs.

    python -m benchmarks.publish [--only pii|proofs] [--quick] [--data ../shared/data]

*personal data*: sentences in each language of WORDS (tests/quality/sentences.tsv) with made e-mail addresses, phone
numbers of the language's country, IBANs, cards and IP addresses between them, and as many numbers that are none: dates,
sums, versions, ISBNs, order numbers, UUIDs, coordinates, and IBANs and cards with a wrong digit.  Microseconds of CPU a
page are those of the bundled web's texts, with --data of real pages.  Peer: PhoneNumberMatcher of phonenumbers, which
finds phone numbers alone, with the same country.

*summary*, *receipts*: a web whose owners say ten things of the use of their texts is crawled with WARC.  A second
program, which shares no code with the package, reads the WARC files by warcio: it counts what the summary states, finds
what each site had said before each page was fetched, and computes leaves and root by the definition in RFC 6962.  Each
cell of a table of the summary is a field.  *tampered*: one byte of an export is changed at a time, and `scrapy verify`
has to find it: in any file; and in texts, receipts and statements by somebody who repairs all checksums afterwards.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import random
import re
import struct
import tempfile
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import phonenumbers
from conftest import Crawl, document, scrapy, serving
from warcio.archiveiterator import ArchiveIterator

from benchmarks.common import ROOT, arguments, result, table
from benchmarks.equality import bundled_pages
from spiderling.base.files import zstd
from spiderling.corpus.segments import StoredDocument
from spiderling.export.national_numbers import luhn
from spiderling.export.personal_data import Found, PersonalData, find
from spiderling.export.verification import Card, Verification, cards_of
from spiderling.jobdir.card import MANIFEST
from spiderling.text.html.parser import parse
from spiderling.text.prevertical import render
from webs.web import FixedWeb, html, plain

WORDS = {
    "bg": "тел.", "cs": "tel.", "de": "Telefon:", "el": "τηλ.", "en": "phone", "es": "teléfono", "et": "tel.",
    "fi": "puh.", "fr": "tél.", "hu": "telefon:", "it": "telefono", "ja": "電話", "lt": "tel.", "lv": "tel.",
    "nl": "tel.", "pl": "tel.", "pt": "telefone", "ro": "telefon", "ru": "телефон", "sk": "tel.", "sl": "tel.",
    "sv": "tel.", "tr": "telefon", "uk": "тел.",
}  # fmt: skip
"""Language -> the word before a phone number."""
REGIONS = {"cs": "CZ", "el": "GR", "en": "GB", "et": "EE", "ja": "JP", "sl": "SI", "sv": "SE", "uk": "UA"}
_KINDS = (phonenumbers.PhoneNumberType.FIXED_LINE, phonenumbers.PhoneNumberType.MOBILE)
_ACCOUNTS = {
    "AT": 16,
    "BE": 12,
    "CZ": 20,
    "DE": 18,
    "DK": 14,
    "ES": 20,
    "FI": 14,
    "HU": 24,
    "PL": 24,
    "PT": 21,
    "SK": 20,
}
_SENTENCES = 8  # of a document; after each stands something made


def digits(draw: random.Random, number: int) -> str:
    return "".join(draw.choices("0123456789", k=number))


def grouped(text: str) -> str:
    return " ".join(text[place : place + 4] for place in range(0, len(text), 4))


def phone(draw: random.Random, language: str) -> str:
    region = REGIONS.get(language, language.upper())
    while True:
        example = str(phonenumbers.example_number_for_type(region, draw.choice(_KINDS)).national_number)
        number = phonenumbers.parse(example[:-4] + digits(draw, 4), region)
        if phonenumbers.is_valid_number(number):
            form = draw.choice((phonenumbers.PhoneNumberFormat.NATIONAL, phonenumbers.PhoneNumberFormat.INTERNATIONAL))
            return str(phonenumbers.format_number(number, form))


def iban(draw: random.Random) -> str:
    country, chars = draw.choice(list(_ACCOUNTS.items()))
    account = digits(draw, chars)
    check = 98 - int(account + "".join(str(ord(char) - 55) for char in country) + "00") % 97
    return grouped(f"{country}{check:02d}{account}")


def card(draw: random.Random) -> str:
    start = draw.choice(("4", "51", "55", "6011")) + digits(draw, 15)
    return grouped(next(start[:15] + last for last in "0123456789" if luhn(start[:15] + last)))


def spoiled(number: str) -> str:
    """*number* with another last digit."""
    return number[:-1] + str((int(number[-1]) + 1) % 10)


MADE: dict[str, Callable[[random.Random], str]] = {
    "email": lambda draw: (
        f"{draw.choice(('jan.novak', 'info', 'a_b+c', 'o-brien'))}@{draw.choice(('posta.cz', 'mail.co.uk', 'x.org'))}"
    ),
    "iban": iban,
    "card": card,
    "ip": lambda draw: (
        f"{draw.randint(101, 126)}.{draw.randint(100, 255)}.{draw.randint(10, 255)}.{draw.randint(1, 255)}"
    ),
}
OTHERS: tuple[Callable[[random.Random], str], ...] = (
    lambda draw: f"{draw.randint(1, 28)}. {draw.randint(1, 12)}. {draw.randint(1900, 2026)}",
    lambda draw: (
        f"{draw.randint(1900, 2026)}-{draw.randint(1, 12):02d}-{draw.randint(1, 28):02d} {draw.randint(0, 23):02d}:30"
    ),
    lambda draw: f"{draw.randint(1900, 2000)}-{draw.randint(2000, 2026)}",
    lambda draw: f"{draw.randint(1, 99)} {digits(draw, 3)} {digits(draw, 3)}",
    lambda draw: f"{draw.randint(1, 99)},{digits(draw, 3)},{digits(draw, 3)}.{digits(draw, 2)}",
    lambda draw: f"ISBN 978-80-{digits(draw, 4)}-{digits(draw, 3)}-{digits(draw, 1)}",
    lambda draw: f"v{draw.randint(1, 20)}.{draw.randint(0, 30)}.{draw.randint(0, 99)}.{draw.randint(0, 999)}",
    lambda draw: digits(draw, draw.randint(7, 18)),
    lambda draw: str(uuid.UUID(int=draw.getrandbits(128))),
    lambda draw: f"{draw.randint(-90, 89)}.{digits(draw, 7)}, {draw.randint(-180, 179)}.{digits(draw, 7)}",
    lambda draw: f"No. {digits(draw, 4)}/{digits(draw, 4)}",
    lambda draw: f"19-{digits(draw, 10)}/0800",
    lambda draw: f"{draw.randint(0, 9)}.{digits(draw, 12)}",
    lambda draw: spoiled(iban(draw)),
    lambda draw: spoiled(card(draw)),
)


def documents(number: int) -> Iterator[tuple[str, str, list[Found]]]:
    """Language, text and what is in it, of *number* documents in each language."""
    draw = random.Random(1)
    lines = [line.split("\t") for line in (ROOT / "tests/quality/sentences.tsv").read_text("utf-8").splitlines()]
    for language, word in WORDS.items():
        sentences = [row[1] for row in lines if row[0] == language] or ["…"]
        for _ in range(number):
            text, made = "", []
            for place in range(_SENTENCES):
                kind = draw.choice(("phone", *MADE)) if place % 2 else ""
                value = (
                    phone(draw, language)
                    if kind == "phone"
                    else MADE[kind](draw)
                    if kind
                    else draw.choice(OTHERS)(draw)
                )
                text += f"{draw.choice(sentences)} {word if kind == 'phone' else ''} "
                if kind:
                    made.append(Found(len(text), len(text) + len(value), kind))
                text += f"{value}{draw.choice(('.', ',', ';', ''))}\n"
            yield language, text, made


def quality(number: int) -> Counter[str]:
    """Counts of what is right, wrong and missed, of all and by kind."""
    found: Counter[str] = Counter()
    for language, text, made in documents(number):
        ours = set(find(text, "", language))
        found.update({"right": len(ours & {*made}), "wrong": len(ours - {*made}), "missed": len({*made} - ours)})
        region = REGIONS.get(language, language.upper())
        theirs = {(one.start, one.end) for one in phonenumbers.PhoneNumberMatcher(text, region)}
        phones = {(one.start, one.end) for one in made if one.kind == "phone"}
        found.update({"phones": len(phones), "peer right": len(theirs & phones), "peer wrong": len(theirs - phones)})
        ours_phones = {(one.start, one.end) for one in ours if one.kind == "phone"}
        found.update({"phones right": len(ours_phones & phones), "phones wrong": len(ours_phones - phones)})
    return found


def texts(data: Path | None) -> list[str]:
    """The texts of pages, a paragraph a line."""
    if data is None:
        return ["\n".join(block.text for block in parse(body).blocks) for body in bundled_pages()]
    with zstd.ZstdFile(data / "wcxb-dev.jsonl.zst") as file:
        return [json.loads(line)["gold"] for line in io.TextIOWrapper(file, "utf-8")]


def microseconds(work: Callable[[Any], object], pages: Sequence[Any]) -> float:
    """CPU time of *work* for each of *pages*, the least of three runs."""
    took = []
    for _ in range(3):
        start = time.process_time()
        for page in pages:
            work(page)
        took.append(time.process_time() - start)
    return 1e6 * min(took) / len(pages)


def personal_data(args: argparse.Namespace) -> dict[str, Any]:
    found = quality(20 if args.quick else 200)
    pages = texts(args.data)
    attributes = {"url": "http://a.test/", "lang": "en", "tld": "com", "length": "1", "words": "1"}
    stored = [
        StoredDocument(attributes, render(attributes, [(line, ' class="good"') for line in text.split("\n") if line]))
        for text in pages
    ]
    cost = {mode: microseconds(PersonalData(mode).treated, stored) for mode in ("mark", "mask")}
    peer = microseconds(lambda text: list(phonenumbers.PhoneNumberMatcher(text, "US")), pages[::20])
    precision = found["right"] / (found["right"] + found["wrong"])
    recall = found["right"] / (found["right"] + found["missed"])
    table(
        ("personal data", "ours", "PhoneNumberMatcher"),
        [
            ("right of all", f"{recall:.3f}", ""),
            ("right of what was found", f"{precision:.3f}", ""),
            ("phone numbers found", found["phones right"] / found["phones"], found["peer right"] / found["phones"]),
            ("other numbers taken for phone numbers", found["phones wrong"], found["peer wrong"]),
            *((f"microseconds a page, {mode}", f"{took:.0f}", f"{peer:.0f}") for mode, took in cost.items()),
        ],
    )
    chars = sum(map(len, pages)) / len(pages)
    return dict(
        precision=precision, recall=recall, found=found["right"], languages=len(WORDS), us_mark=cost["mark"],
        us_mask=cost["mask"], peer_us=peer, pages=len(pages), chars_a_page=chars,
    )  # fmt: skip


# -- proofs

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


def proofs(args: argparse.Namespace) -> dict[str, Any]:
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
    return dict(
        summary_fields=fields, summary_differences=differences, receipts=receipts, receipts_differences=wrong,
        tampered=changed, tampered_found=found,
    )  # fmt: skip


PARTS = {"pii": personal_data, "proofs": proofs}


def main() -> None:
    args = arguments(__doc__, PARTS)
    found: dict[str, Any] = {}
    for name, measure in PARTS.items():
        if args.only in (None, name):
            found |= measure(args)
    result(**found)


if __name__ == "__main__":
    main()
