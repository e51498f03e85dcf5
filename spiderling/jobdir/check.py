"""``scrapy inspect JOBDIR --check``: it asks whether the state is consistent, all output whole, and both agree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

import numpy as np
import xxhash
from numpy.typing import NDArray

from spiderling.base.errors import SpiderlingError, StorageError
from spiderling.base.reasons import Reason
from spiderling.base.urls import HASH_BITS
from spiderling.corpus import reader
from spiderling.corpus.cdxj import records
from spiderling.corpus.links import read_links
from spiderling.corpus.segments import SUFFIX
from spiderling.frontier.hosts.host import CLOSED_STATES
from spiderling.frontier.storage.queue_reader import queues_by_host
from spiderling.frontier.storage.schema import SCHEMA_VERSION
from spiderling.frontier.storage.seen import digest_key
from spiderling.frontier.storage.soundness import noted
from spiderling.frontier.storage.state_file import damaged_log
from spiderling.frontier.storage.url_log import ASKED_AGAIN, unpack_ends, unpack_keys
from spiderling.jobdir.card import changed_files
from spiderling.jobdir.inspection import Inspection, Segment, counts_under
from spiderling.jobdir.row_checks import damaged_rows

_MOST_NAMED = 5
_ID = re.compile("[0-9a-f]{16}")
"""The attribute ``id`` of a document that was fetched: the key of its URL."""


def problems(crawl: Inspection, compared: list[str] | None = None) -> Iterator[str]:
    """One sentence for each thing that is wrong; none for a crawl that is whole.  Reads all output once.

    *compared* gets a line for each kind of thing that was compared, or could not be, with the reason.
    """
    compared = [] if compared is None else compared
    if not crawl.holder:  # a running crawl writes to the log
        yield from damaged_log(crawl.database)
    crawl.connection.looks = False
    yield from damaged_rows(crawl.connection, crawl.schema)
    crawl.connection.looks = True
    compared.append(
        "checksums of the state's rows, and how many there are"
        if crawl.schema == SCHEMA_VERSION
        else f"not compared: checksums of the state's rows, which schema {crawl.schema} has not"
    )
    for part in (_books, _sums, _trail, _corpus, _beside, _card):
        try:
            yield from part(crawl, compared)
        except SpiderlingError as error:  # damage to what it reads; the other parts may say more
            yield str(error)


def _books(crawl: Inspection, compared: list[str]) -> Iterator[str]:
    ends = counts_under("end", crawl.counts).total()
    discovered = crawl.counts["discovered"]
    waiting = crawl.counts["waiting"]
    if discovered != ends + waiting:
        yield f"the books do not balance: {discovered} discovered, but {ends} ends + {waiting} waiting"
    queues = queues_by_host(crawl.connection)
    hosts = {row["id"]: row for row in crawl.rows("SELECT id, name, waiting, parked FROM host")}
    stand = sum(number for host, number in queues.items() if host in hosts and not hosts[host]["parked"])
    if stand != waiting:
        yield f"{waiting} URLs wait by the counts, but {stand} stand in the queues"
    wrong = [row["name"] for row in hosts.values() if row["waiting"] + row["parked"] != queues.get(row["id"], 0)]
    wrong += [f"host {host}, which is unknown" for host in queues if host not in hosts]
    if wrong:
        yield f"{len(wrong)} hosts have other queues than they count: {', '.join(wrong[:_MOST_NAMED])}"
    compared.append(f"queues of {len(hosts):,} hosts, {sum(queues.values()):,} URLs")


def _sums(crawl: Inspection, compared: list[str]) -> Iterator[str]:
    """The sums over all hosts are the totals of the crawl, and each discovered URL has its key."""
    columns = ("pages", "documents", "words", "downloaded_bytes", "kept_bytes")
    sums = ", ".join(f"coalesce(sum({column}), 0) AS {column}" for column in columns)
    for column, number in crawl.rows(f"SELECT {sums} FROM host")[0].items():  # noqa: S608 - names of columns
        total = crawl.counts[f"total/{column}"]
        if number != total:
            yield f"the hosts have {number} {column} together, the counts say {total}"
    keys = len(_seen_keys(crawl))
    discovered = crawl.counts["discovered"]
    if keys != discovered:
        yield f"{discovered} URLs were discovered, but the keys of {keys} are known"
    compared.append(f"sums of all hosts with the totals; {keys:,} keys of URLs with the number discovered")


def _seen_keys(crawl: Inspection) -> NDArray[np.int64]:
    return np.unique(np.frombuffer(b"".join(row["keys"] for row in crawl.rows("SELECT keys FROM seen")), np.int64))


def _trail(crawl: Inspection, compared: list[str]) -> Iterator[str]:
    """The trail, if it was kept from the beginning on, has an end for each URL that ended."""
    if crawl.options.trail == "off":
        compared.append("not compared: ends of URLs with the trail, which is off")
        return
    reasons: Counter[str] = Counter()
    keys: set[int] = set()
    asked_again: dict[str, int] = noted(crawl.meta, ASKED_AGAIN, {})
    for row in crawl.rows("SELECT batch, keys, ends FROM ended"):
        batch = unpack_ends(row["keys"], row["ends"])
        reasons.update(end.reason for end in batch)
        twice = keys.intersection(unpack_keys(row["keys"]))
        keys.update(end.key for end in batch if row["batch"] > asked_again.get(end.reason, 0))
        if twice:
            yield f"{len(twice)} URLs of batch {row['batch']} had ended before"
    counted = counts_under("end", crawl.counts)
    purged = crawl.rows("SELECT coalesce(sum(urls), 0) AS urls FROM purged")[0]["urls"]
    parked = crawl.rows("SELECT coalesce(sum(parked), 0) AS urls FROM host")[0]["urls"]
    if reasons.total() + purged + parked < counted.total():
        compared.append("not compared: ends of URLs with the trail, which was switched on later")
        return
    kept = Reason.KEPT.value
    if reasons[kept] != counted[kept]:
        yield f"{counted[kept]} URLs were kept by the counts, {reasons[kept]} by the trail"
    told = {row["reason"] for row in crawl.rows("SELECT DISTINCT reason FROM purged")} | asked_again.keys()
    told |= {reason.value for reason in CLOSED_STATES.values()} | {kept}  # parked URLs may wait again
    for reason in sorted((counted.keys() | reasons.keys()) - told):
        if counted[reason] != reasons[reason]:
            yield f"{counted[reason]} URLs ended as {reason} by the counts, {reasons[reason]} by the trail"
    compared.append(f"{reasons.total():,} ends of URLs in the trail with the counts of each reason")


def _miscounted(segments: Iterable[Segment], what: str, count: Callable[[Segment], int]) -> Iterator[str]:
    """Segments that cannot be read to their recorded length, or do not hold as many entries as were written."""
    for segment in segments:
        try:
            number = count(segment)
        except StorageError as error:
            yield str(error)
            continue
        if number != segment.entries:
            yield f"{segment.path.name} holds {number} {what}, not {segment.entries}"


def _corpus(crawl: Inspection, compared: list[str]) -> Iterator[str]:
    """Every segment can be read to its recorded length, and holds its documents once, with known digests."""
    known = {key for row in crawl.rows("SELECT keys FROM digest") for key in unpack_keys(row["keys"])}
    seen: Counter[tuple[str, str]] = Counter()
    strange: list[str] = []

    def count(segment: Segment) -> int:
        number = 0
        for frame in reader.frames(segment.path, segment.length):
            for document in reader.documents(frame.split("\n")):
                number += 1
                text = "\n".join(document.paragraphs).encode()
                digest = xxhash.xxh3_128_digest(text)
                key = document.attributes.get("id", "")
                seen[key, digest.hex()] += 1
                is_whole = document.attributes.get("length") == str(len(text))
                if is_whole and digest_key(digest) not in known:
                    strange.append(key)
        return number

    segments = crawl.segments("corpus")
    yield from _miscounted(segments, "documents", count)
    twice = sum(number > 1 for number in seen.values())
    if twice:
        yield f"{twice} documents stand in the corpus more than once"
    if strange and crawl.options.dedup != "off":
        yield f"the digests of {len(strange)} documents are not known to the state"
    total = crawl.counts["total/documents"]
    if seen.total() != total:
        yield f"the corpus holds {seen.total()} documents, the counts say {total}"
    ids = np.array([int(name, 16) for name, _ in seen if _ID.fullmatch(name)], np.uint64).view(np.int64)
    hashes = (1 << HASH_BITS) - 1  # the bits before them are a host's number, and a state made anew has other ones
    unknown = len(ids) - int(np.isin(ids & hashes, _seen_keys(crawl) & hashes).sum())
    if unknown and not noted(crawl.meta, "from_archives", False):
        yield f"the URLs of {unknown} documents are not among those that were discovered"
    lengths = {segment.path.name: segment.length for segment in segments}
    size = sum(lengths.values())
    compared.append(f"corpus: {len(lengths):,} segments, {size:,} bytes, {seen.total():,} documents, and their digests")
    compared.extend(_unnamed(crawl, lengths))


def _unnamed(crawl: Inspection, lengths: Mapping[str, int]) -> Iterator[str]:
    """Text in the corpus that was never acknowledged: no damage, but the user should know."""
    for path in sorted(crawl.directory.glob(f"corpus/*{SUFFIX}")):
        more = path.stat().st_size - lengths.get(path.name, 0)
        if path.name not in lengths:
            yield f"not compared: corpus/{path.name}, which the state does not name"
        elif more > 0:
            yield f"not compared: {more:,} bytes of corpus/{path.name} behind its recorded length"


def _card(crawl: Inspection, compared: list[str]) -> Iterator[str]:
    """Segments that have not grown since the card of the corpus was written have the checksums that it says."""
    with suppress(StorageError):  # what cannot be read is told of above
        for name in changed_files(crawl):
            yield f"{name} is not what its checksum in corpus/manifest.json says: it was changed"
        compared.append("segments with their checksums in corpus/manifest.json, where it has any")


def _beside(crawl: Inspection, compared: list[str]) -> Iterator[str]:
    """Every other segment can be read to its recorded length, and holds as many entries as were written."""
    counts: dict[str, Callable[[Segment], int]] = {
        "links": lambda segment: sum(1 for _ in read_links(segment.path, segment.length)),
        "warc": lambda segment: sum(record.is_capture for record in records(segment.path, segment.length)),
    }
    for kind, count in counts.items():
        segments = crawl.segments(kind)
        compared.append(f"{kind}: {len(segments):,} files, {sum(segment.entries for segment in segments):,} entries")
        yield from _miscounted(segments, "entries", count)
