"""``scrapy inspect JOBDIR --check``: do the books balance, are corpus and other output whole, do all agree?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress

import xxhash

from spiderling import prevertical
from spiderling.cdxj import records
from spiderling.corpuscard import changed_files
from spiderling.errors import SpiderlingError, StorageError
from spiderling.frontier.reading import counts_with_prefix, queues_by_host
from spiderling.frontier.trail import ASKED_AGAIN, unpack_ends, unpack_keys
from spiderling.inspection import Inspection, Segment
from spiderling.linkoutput import read_links
from spiderling.reasons import Reason
from spiderling.statechecks import damaged_rows
from spiderling.writeahead import damaged_log

_MOST_NAMED = 5


def problems(crawl: Inspection) -> Iterator[str]:
    """One sentence for each thing that is wrong; none for a crawl that is whole.  Reads all output once."""
    if not crawl.holder:  # who crawls is writing the log
        yield from damaged_log(crawl.database)
    crawl.connection.looks = False
    yield from damaged_rows(crawl.connection, crawl.schema)
    crawl.connection.looks = True
    for part in (_books, _trail, _corpus, _beside, _card):
        try:
            yield from part(crawl)
        except SpiderlingError as error:  # what it has to read is damaged; the others may say more
            yield str(error)


def _books(crawl: Inspection) -> Iterator[str]:
    counts = crawl.counts
    ends = sum(counts_with_prefix(counts, "end").values())
    discovered, waiting = counts.get("discovered", 0), counts.get("waiting", 0)
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


def _trail(crawl: Inspection) -> Iterator[str]:
    """The trail, if it was kept from the beginning on, has an end for each URL that ended."""
    if crawl.options.trail == "off":
        return
    reasons: Counter[str] = Counter()
    keys: set[int] = set()
    asked_again: dict[str, int] = json.loads(crawl.meta.get(ASKED_AGAIN, "{}"))
    for row in crawl.rows("SELECT batch, keys, ends FROM ended"):
        batch = unpack_ends(row["keys"], row["ends"])
        reasons.update(end.reason for end in batch)
        twice = keys.intersection(unpack_keys(row["keys"]))
        keys.update(end.key for end in batch if row["batch"] > asked_again.get(end.reason, 0))
        if twice:
            yield f"{len(twice)} URLs of batch {row['batch']} had ended before"
    kept = crawl.counts.get("end/" + Reason.KEPT.value, 0)
    purged = crawl.rows("SELECT coalesce(sum(urls), 0) AS urls FROM purged")[0]["urls"]
    ends = sum(counts_with_prefix(crawl.counts, "end").values())
    parked = crawl.rows("SELECT coalesce(sum(parked), 0) AS urls FROM host")[0]["urls"]
    if reasons.total() + purged + parked < ends:
        return  # it was switched on later
    if reasons[Reason.KEPT.value] != kept:
        yield f"{kept} URLs were kept by the counts, {reasons[Reason.KEPT.value]} by the trail"


def _corpus(crawl: Inspection) -> Iterator[str]:
    """Every segment can be read to its recorded length, and holds its documents once, with known digests."""
    known = {key for row in crawl.rows("SELECT keys FROM digest") for key in unpack_keys(row["keys"])}
    seen: Counter[tuple[str, str]] = Counter()
    strange = 0
    for row in crawl.rows("SELECT name, length_bytes, documents FROM segment ORDER BY name"):
        number = 0
        try:
            for frame in prevertical.frames(crawl.directory / "corpus" / row["name"], row["length_bytes"]):
                for document in prevertical.documents(frame.split("\n")):
                    number += 1
                    text = "\n".join(document.paragraphs).encode()
                    digest = xxhash.xxh3_128_digest(text)
                    seen[document.attributes.get("id", ""), digest.hex()] += 1
                    whole = document.attributes.get("length") == str(len(text))
                    strange += whole and int.from_bytes(digest[:8], "big", signed=True) not in known
        except StorageError as error:
            yield str(error)
            continue
        if number != row["documents"]:
            yield f"{row['name']} holds {number} documents, not {row['documents']}"
    twice = sum(number > 1 for number in seen.values())
    if twice:
        yield f"{twice} documents stand in the corpus more than once"
    if strange and crawl.options.dedup != "off":
        yield f"the digests of {strange} documents are not known to the state"
    total = crawl.counts.get("total/documents", 0)
    if sum(seen.values()) != total:
        yield f"the corpus holds {sum(seen.values())} documents, the counts say {total}"


def _card(crawl: Inspection) -> Iterator[str]:
    """Segments that have not grown since the card of the corpus was written have the checksums that it says."""
    with suppress(StorageError):  # what cannot be read is told of above
        for name in changed_files(crawl):
            yield f"{name} is not what its checksum in corpus/manifest.json says: it was changed"


def _beside(crawl: Inspection) -> Iterator[str]:
    """Every other segment can be read to its recorded length, and holds as many entries as were written."""
    counts: dict[str, Callable[[Segment], int]] = {
        "links": lambda segment: sum(1 for _ in read_links(segment.path, segment.length)),
        "warc": lambda segment: sum(record.is_capture for record in records(segment.path, segment.length)),
    }
    for kind, count in counts.items():
        for segment in crawl.segments(kind):
            try:
                number = count(segment)
            except StorageError as error:
                yield str(error)
                continue
            if number != segment.entries:
                yield f"{segment.path.name} holds {number} entries, not {segment.entries}"
