"""Takes hosts and URLs out of a paused crawl for good (``scrapy takedown``): texts, links, archive, queue, memory.

One pass over the segments finds what goes.  Then each state notes that a take-down is under way, and no crawl begins
there until it has ended.  Segments that hold any of it are written anew under names that were never used, so that
nobody takes one for the other.  One transaction names the new ones in place of the former ones, and has all else that
changes.  At last the former ones are deleted.  After a kill at any moment the same command goes on: it deletes those
files of the take-down that the state does not name, and does what is left.

Addresses stay in the URL log, so that none is asked for again; it says that they were taken down.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, count
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from spiderling.base.addresses import DropList
from spiderling.base.errors import BadInput
from spiderling.base.files import saving, sync_directory, whole_number
from spiderling.base.reasons import Reason
from spiderling.base.terminal import count_of, with_progress
from spiderling.base.urls import HASH_BITS, MAX_HOST_ID, canonicalize, hash_in, url_hash
from spiderling.corpus.duplicates import digest_key
from spiderling.corpus.segments import SegmentKind, documents, frames, number_of, unescape
from spiderling.corpus.warc import as_response, pack_record, record_of
from spiderling.frontier.hosts import CLOSED_STATES, STATE_OF, Host, HostState, HostStates
from spiderling.frontier.recrawl.pages import RecrawlPage, Standing
from spiderling.frontier.recrawl.policy import DAY_S
from spiderling.frontier.storage.protocol import BAND_BITS, Changes, SegmentRow, StoredHost
from spiderling.frontier.storage.queues import stored_url
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.url_log import ASKED_AGAIN, UrlEnd, UrlLogBatch, pack_ends, unpack_ends
from spiderling.frontier.url_states import FAILED_SEEDS
from spiderling.jobdir.card import TAKEDOWNS, facts_of, write_card
from spiderling.jobdir.damage import MADE_ANEW, hashes_of, kept_bytes_of
from spiderling.jobdir.directory import KINDS, LOCK, TAKEDOWN, Jobdir, delete_unnamed, judge_surplus
from spiderling.jobdir.inspection import Inspection, opened, parts_in
from spiderling.jobdir.state_reader import queues, read_note, telling_damage

COUNTED = {
    "hosts": "host",
    "urls": "URL",
    "documents": "document",
    "words": "word",
    "link_rows": "link row",
    "warc_records": "WARC record",
    "waiting_urls": "waiting URL",
}
"""What is counted -> its noun: hosts that are taken down, URLs whose end the log changes, what goes of each kind."""
_TAKEN_DOWN = Reason.TAKEN_DOWN.value
_ENDS = {"corpus": b"</doc>\n", "links": b"\n"}  # kind -> what ends each entry of a frame
_URLS = {
    "corpus": re.compile(rb'<doc (?:(?:[^\n]* )?url="([^"]*)")?'),
    "links": re.compile(rb'\{"url":"([^"]*)"'),
}
"""Kind -> what stands in a frame once for each entry, with its URL."""
_DIGESTS = 2  # digests that a document leaves: of its page and text; one more, if a part of the text is left out
KEYS_A_ROW = 1_000_000  # digests in a row of the state; chosen
_ORIGINS = 100_000  # origins of which it is remembered whether anything of them goes; chosen
PIECE_BYTES = 1 << 20  # bytes that are copied at a time; chosen
_MAX_NAMED = 5  # entries that are named in a message; chosen


class Cut(NamedTuple):
    """A frame from which something goes."""

    offset: int
    end: int
    gone: list[int]  # numbers of its entries that go; none: the payload goes to which a record of an archive refers


class Moved(NamedTuple):
    """A segment that was written anew."""

    row: SegmentRow
    ends: list[int]  # byte at which each cut frame ended
    shifts: list[int]  # bytes by which frames behind so many of them have moved


def taken_down(meta: Mapping[str, str]) -> DropList:
    """What may not be asked for any more, by the table ``meta``."""
    records = read_note(meta, TAKEDOWNS, list[dict[str, Any]]())
    return DropList(*([entry for record in records for entry in record[name]] for name in ("hosts", "urls")))


class Findings:
    """What of one job directory is to go."""

    def __init__(self, crawl: Inspection, drop: DropList, proof: Any) -> None:
        """Reads all segments once; *proof* is updated with each document that goes.  Raises StorageError."""
        self.crawl = crawl
        self.drop = drop
        self.numbers: Counter[str] = Counter()
        self.lost: Counter[str] = Counter()  # by which the counts of the state fall
        self.lost_by_host: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.cuts: dict[str, list[Cut]] = {}  # segment -> its cuts, first to last
        self.entries: Counter[str] = Counter()  # segment -> entries that go
        self.taken: defaultdict[str, list[int]] = defaultdict(list)  # segment -> numbers of its documents that go
        self._kept: set[tuple[int, int]] = set()  # pages of which a document goes, by their two hashes
        self._read: Counter[str] = Counter()  # segment -> its documents, as far as it was read
        self.payloads: set[str] = set()  # digests of payloads that go, though records that stay refer to them
        self.digests: dict[int, int] = {}
        """Digest of a text that goes -> how many digests its document has left; that is the last of them."""
        self.texts = array("q")
        """Digests of texts that stay; of all only where others may stand between those of a document."""
        made_anew = crawl.rows("SELECT time FROM event WHERE what = ?", MADE_ANEW)
        self._reads_texts = bool(crawl.shard or made_anew)
        self._proof = proof
        self._concerns = lru_cache(_ORIGINS)(self._concerned)
        self._gone: set[int] = set()  # keys of URLs that had ended and go
        self._waiting: set[int] = set()  # hashes of URLs that wait
        names = crawl.connection.execute("SELECT id, name FROM host")
        self.hosts = {host: name for host, name in names if drop.concerns(name)}
        urls = {host: drop.urls_of(name) for host, name in self.hosts.items()}
        self._whole = {host for host, found in urls.items() if found is None}  # hosts of which any URL may go
        self._named = {url_hash(url) for found in urls.values() for url in found or ()}  # and of their documents
        self._is_concerned = np.zeros(MAX_HOST_ID + 1, np.bool_)  # by id of a host
        self._is_concerned[[*self.hosts]] = True
        for kind in KINDS:
            find = self._in_record if kind == "warc" else partial(self._in_entries, kind)
            for path, length, _ in crawl.segments(kind):
                for frame in with_progress(frames(path, length), f"frames of {path.name}"):
                    if (gone := find(path.name, frame.data)) is not None:
                        self.cuts.setdefault(path.name, []).append(Cut(frame.offset, frame.offset + frame.length, gone))
        self._last_ends = self._find_ends()
        for _ in self.ended_rows({}, self._count_end, pack=lambda ends: b""):
            pass
        known = self._waiting.union(map(hash_in, self._gone))
        untold = sum(known.isdisjoint(hashes) for hashes in self._kept)  # they ended while the trail was off
        self.lost.update({f"end/{Reason.KEPT.value}": untold})
        self.lost.subtract({f"end/{_TAKEN_DOWN}": untold})
        before = taken_down(crawl.meta)
        self.numbers["hosts"] = sum(drop.holds_host(host) > before.holds_host(host) for host in self.hosts.values())

    def _goes(self, url: str) -> bool:
        target = canonicalize(url) if self._concerns("/".join(url.split("/", 3)[:3])) else None
        return target is not None and self.drop.rule_of(target) is not None

    def _concerned(self, origin: str) -> bool:
        target = canonicalize(origin)
        return target is not None and self.drop.concerns(target.host)

    # -- segments

    def _in_entries(self, kind: str, name: str, data: bytes) -> list[int] | None:
        """The numbers of the documents or lines that go; None if all stay."""
        urls = [url.decode("utf-8", "replace") for url in _URLS[kind].findall(data)]
        gone = [number for number, url in enumerate(urls) if self._goes(unescape(url) if kind == "corpus" else url)]
        if kind == "corpus" and (gone or self._reads_texts):
            entries = data.split(_ENDS[kind])[:-1]
            self.texts.extend([_text_digest(entry) for at, entry in enumerate(entries) if at not in gone])
            for number in gone:
                self._count_document(entries[number])
            self.taken[name] += [self._read[name] + number for number in gone]
        self._read[name] += len(urls)
        self.entries[name] += len(gone)
        self.numbers["documents" if kind == "corpus" else "link_rows"] += len(gone)
        return gone or None

    def _in_record(self, name: str, data: bytes) -> list[int] | None:
        """[0] if the record goes, [] if it refers to a payload that goes, else None."""
        record = record_of(data)
        if self._goes(record.headers.get("warc-target-uri", "")):
            self.entries[name] += record.is_capture
            self.numbers["warc_records"] += 1
            return [0]
        if self._goes(record.headers.get("warc-refers-to-target-uri", "")):
            self.payloads.add(record.headers.get("warc-payload-digest", ""))
            return []
        return None

    def _count_document(self, entry: bytes) -> None:
        self._proof.update(entry)
        document = next(documents([*entry.decode().split("\n"), "</doc>"]))
        said = document.attributes
        self.digests[_text_digest(entry)] = _DIGESTS + ("seen_share" in said)
        words = whole_number(said.get("words", "")) or 0
        kept = kept_bytes_of(document)
        for fact in facts_of(said):
            is_known = f"fact/{fact}" in self.crawl.counts
            self.lost[f"fact/{fact if is_known else fact.partition('/')[0] + '/other'}"] += 1
        language = said.get("lang", "")
        is_later = "version" in said
        hashes = hashes_of(said)
        self._named.update(hashes)
        if not is_later:
            self._kept.add(hashes)
        self.lost.update({f"language/{language}": 1, "total/documents": 1})
        self.lost.update({f"fact/words/{language}": words, "total/words": words})
        self.lost["total/revisit_kept_bytes"] += kept if is_later else 0
        self.numbers["words"] += words
        self.lost_by_host[said.get("host", "")].update(documents=1, words=words, kept_bytes=0 if is_later else kept)

    # -- the state

    def _find_ends(self) -> dict[int, int]:
        """Key of each URL of these hosts that has ended, and does not wait again -> the last batch that says so."""
        last = {}
        for batch, keys in self.crawl.connection.execute("SELECT batch, keys FROM ended ORDER BY batch"):
            last.update(dict.fromkeys(self._may_go(keys), batch))
        chosen = "WHERE id IN (SELECT value FROM json_each(?))"
        for host, name, _, lines in queues(self.crawl.connection, chosen, json.dumps([*self.hosts])):
            record = Host(host, name, HostStates())
            for url in (stored_url(line, record) for line in lines):
                last.pop(url.key, None)
                self._waiting.add(hash_in(url.key))
                self.numbers["waiting_urls"] += self.drop.rule_of(url.target) is not None
        return last

    def _may_go(self, keys: bytes) -> list[int]:
        """Those of packed *keys* whose URLs may go."""
        unpacked = np.frombuffer(keys, np.int64)
        found: list[int] = unpacked[self._is_concerned[unpacked >> HASH_BITS & MAX_HOST_ID]].tolist()
        return [key for key in found if hash_in(key) in self._named or key >> HASH_BITS & MAX_HOST_ID in self._whole]

    def _count_end(self, end: UrlEnd) -> None:
        self._gone.add(end.key)
        self.numbers["urls"] += 1
        self.lost.update([f"end/{end.reason}"])
        self.lost.subtract([f"end/{_TAKEN_DOWN}"])

    def ended_rows(
        self, moved: Mapping[str, Moved], tell: Any = lambda end: None, pack: Any = pack_ends
    ) -> Iterator[tuple[Any, ...]]:
        """All rows of the table ``ended`` as they are to be, without their numbers; *tell* gets the ends that change.

        *moved*: segment -> what became of it.
        """
        cuts = {(name, cut.offset): cut.gone for name, found in self.cuts.items() for cut in found}
        asked_again: dict[str, int] = read_note(self.crawl.meta, ASKED_AGAIN, {})
        seeds = self._failed_seeds()
        query = "SELECT batch, time, segment, offset_bytes, keys, ends FROM ended ORDER BY batch"
        for batch, time, segment, offset, keys, packed in self.crawl.connection.execute(query):
            gone = cuts.get((segment, offset), [])
            ends = unpack_ends(keys, packed) if gone or self._may_go(keys) else []
            for at, end in enumerate(ends):
                number = end.document
                if number is not None:
                    ends[at] = end._replace(document=None if number in gone else number - bisect_left(gone, number))
                is_last = self._last_ends.get(end.key) == batch > asked_again.get(end.reason, 0)
                is_last = is_last and seeds.get(str(end.key), end.reason) == end.reason
                if is_last and end.reason != _TAKEN_DOWN and self._goes(end.url):
                    tell(end)
                    ends[at] = UrlEnd(end.key, end.url, _TAKEN_DOWN, end.rank, end.distance, end.tries)
            if segment in moved:
                row, behind, shifts = moved[segment]
                segment = row.name
                offset -= shifts[bisect_left(behind, offset + 1)]
            yield time, segment, offset, keys, pack(ends) if ends else packed

    def _failed_seeds(self) -> dict[str, str]:
        return read_note(self.crawl.meta, FAILED_SEEDS, dict[str, str]())

    def seeds_left(self) -> str:
        """What the table ``meta`` is to say of seeds that failed: who names one that goes does not ask for it again."""
        seeds = self._failed_seeds().items()
        return json.dumps({key: _TAKEN_DOWN if int(key) in self._gone else reason for key, reason in seeds})

    def host_rows(self) -> Iterator[tuple[StoredHost, StoredHost]]:
        """The row of each of these hosts, and that which it is to have."""
        columns = ", ".join(StoredHost._fields)
        for host, name in self.hosts.items():
            found = self.crawl.rows(f"SELECT {columns} FROM newest_host WHERE id = ?", host)  # noqa: S608 - columns
            row = StoredHost(**found[0])
            lost = self.lost_by_host[name]
            after = row._replace(**{column: max(0, getattr(row, column) - number) for column, number in lost.items()})
            if self.drop.holds_host(name) and row.state != HostState.MOVED.value:
                after = after._replace(state=HostState.BLOCKED.value, waiting=0, parked=0, exempt=0)
                after = after._replace(positions="", first=b"", transit=None)
            yield row, after

    def recrawled(self, days: float) -> dict[str, dict[int, bytes]]:
        """What the tables of a recrawl are to say of the pages that go, *days* since it began."""
        connection = self.crawl.connection
        pages: dict[int, bytes] = {}
        for key, content in connection.execute("SELECT id, content FROM recrawled"):
            if key >> HASH_BITS & MAX_HOST_ID in self.hosts:
                page = RecrawlPage.unpack(key, content)
                if self._goes(page.url):
                    pages[key] = replace(page, state=Standing.OPTED_OUT, since=days, version=0).pack()
        keys = (key for (key,) in connection.execute("SELECT id FROM paragraph"))
        return {"recrawled": pages, "paragraph": dict.fromkeys(self._gone.intersection(keys), b"")}


def _text_digest(entry: bytes) -> int:
    """The digest of the text of a document, whose third line, and each third one after it, is a paragraph."""
    text = b"\n".join(entry.split(b"\n")[2::3])
    if b"&" in text or b"<" in text:
        text = unescape(text.decode().replace("<lb/>", "\n")).encode()
    return digest_key(xxhash.xxh3_128_digest(text))


class _PausedCrawl:
    """One job directory, locked, with its state open to write."""

    def __init__(self, directory: Path) -> None:
        if not (directory / LOCK).exists():
            raise BadInput(
                f"{directory} is a snapshot: give the directory of its crawl, and the next snapshot follows."
            )
        with ExitStack() as stack:
            self._jobdir = stack.enter_context(closing(Jobdir(directory)))
            self.begun = delete_unnamed(directory, self._jobdir.database)
            make_agree = judge_surplus(directory, self._jobdir.database, None, moves=False)
            self._store = stack.enter_context(closing(SqliteStore(self._jobdir.database, synced=True, writes=False)))
            self._state = self._store.load()
            make_agree()
            self._store.begin_writing(self._jobdir.database)
            self._crawl = stack.enter_context(closing(Inspection(directory)))
            self._opened = stack.pop_all()

    def close(self) -> None:
        self._opened.close()

    def find(self, drop: DropList, proof: Any) -> Findings:
        with telling_damage(self._jobdir.database):
            self.findings = Findings(self._crawl, drop, proof)
        return self.findings

    def begin(self, record: dict[str, Any], forgotten: Mapping[int, int], stay: NDArray[np.int64]) -> None:
        """Keep crawls out until all is done, and forget the digests of texts that go, but for those that *stay*."""
        self._targets: dict[str, Path] = {}  # segment -> where it is written anew
        for kind in KINDS:
            directory = self._jobdir.path / kind
            numbers = count(1 + max((number_of(path.name) or 0 for path in directory.glob("*")), default=0))
            for row in self._state.segments:
                if row.kind == kind and row.name in self.findings.cuts:
                    prefix, _, rest = row.name.rpartition("-")
                    self._targets[row.name] = directory / f"{prefix}-{next(numbers):05d}.{rest.partition('.')[2]}"
        files = [(new.parent.name, name, new.name) for name, new in self._targets.items()]
        self.begun = {"record": record, "files": [*self.begun.get("files", []), *files]}
        known = np.frombuffer(self._state.digests, np.int64)
        left = _without(known, forgotten, stay)
        rows = [(left[at : at + KEYS_A_ROW].tobytes(),) for at in range(0, len(left), KEYS_A_ROW)]
        rewritten = {"digest": rows} if len(left) < len(known) else {}
        self._store.commit(Changes(meta={TAKEDOWN: json.dumps(self.begun)}, rewritten=rewritten))

    def carry_out(self, now: float) -> None:
        """Write segments anew, and change all of the state in one transaction, unless that was done."""
        found = self.findings
        record = self.begun["record"]
        records = read_note(self._state.meta, TAKEDOWNS, list[Any]())
        if record in records:
            return
        self._payloads = dict(self._read_payloads())
        moved = {row.name: self._rewritten(row) for row in self._state.segments if row.name in self._targets}
        rows = [moved[row.name].row if row.name in moved else row for row in self._state.segments]
        hosts = [*found.host_rows()]
        # those of a host that has moved went along, its documents did not (cluster/resharding.py)
        found.lost["total/kept_bytes"] += sum(row.kept_bytes - after.kept_bytes for row, after in hosts)
        dropped = {row.id: row for row, after in hosts if row.waiting + row.parked > after.waiting + after.parked}
        purges = []
        for row in dropped.values():
            reason = CLOSED_STATES.get(STATE_OF[row.state])
            in_transit = int(reason is not None and row.transit is not None)  # it counts as waiting all the same
            found.lost["waiting"] += row.waiting + in_transit
            found.lost[f"end/{reason.value if reason else ''}"] += row.parked - in_transit
            found.lost[f"end/{_TAKEN_DOWN}"] -= row.waiting + row.parked
            purges.append((row.id, _TAKEN_DOWN, row.waiting + row.parked))
        counts = self._state.counts
        words = f"taken down: {_named(record)}: {in_words(record['taken'])}, SHA-256 {record['sha256']}"
        began = read_note(self._state.meta, "recrawl", dict[str, Any]()).get("began") or now
        self._store.commit(
            Changes(
                hosts=[after for row, after in hosts if row != after],
                popped={slot: len(tail) for slot, tail in self._state.tails.items() if slot >> BAND_BITS in dropped},
                dropped=[*dropped],
                counts={name: max(0, counts.get(name, 0) - number) for name, number in found.lost.items() if number},
                # what was kept until now says nothing of the marginal yield any more
                meta={
                    TAKEDOWNS: json.dumps([*records, record]),
                    FAILED_SEEDS: found.seeds_left(),
                    "marginal": "[]",
                },
                events=[(record["time"], words)],
                url_log=UrlLogBatch(now, purges=[purge for purge in purges if purge[-1]]),
                blobs=found.recrawled((now - began) / DAY_S),
                rewritten={"ended": found.ended_rows(moved), "file": rows},
            )
        )

    def finish(self) -> None:
        """Delete what is not needed any more; then a crawl may begin."""
        directory = self._jobdir.path
        delete_unnamed(directory, self._jobdir.database)
        shutil.rmtree(directory / "state/shingles", ignore_errors=True)  # a start makes it anew of the corpus
        (directory / "report.html").unlink(missing_ok=True)  # it shows texts
        if any((directory / "corpus").glob("*")):
            taken = {new.name: (name, self.findings.taken[name]) for name, new in self._targets.items()}
            write_card(directory, taken)
        self._store.commit(Changes(meta={TAKEDOWN: "{}"}))

    # -- segments

    def _read_payloads(self) -> Iterator[tuple[str, bytes]]:
        """The payloads that go, and to which records that stay refer."""
        for row in self._state.segments if self.findings.payloads else ():
            for cut in self.findings.cuts.get(row.name, []) if row.kind == "warc" else ():
                record = record_of(_frame(self._jobdir.path / row.kind / row.name, cut))
                digest = record.headers.get("warc-payload-digest", "")
                if record.headers.get("warc-type") == "response" and digest in self.findings.payloads:
                    yield digest, record.block.partition(b"\r\n\r\n")[2]

    def _rewritten(self, row: SegmentRow) -> Moved:
        """Write a segment anew, without what goes; raises StorageError."""
        target = self._targets[row.name]
        source = target.with_name(row.name)
        ends = []
        shifts = [0]
        with saving(target), source.open("rb") as old, target.open("wb") as new:
            for cut in self.findings.cuts[row.name]:
                _copy(old, new, cut.offset)
                new.write(self._left(row.kind, source, cut))
                old.seek(cut.end)
                ends.append(cut.end)
                shifts.append(cut.end - new.tell())
            _copy(old, new, row.length_bytes)
            if not new.tell():  # an empty frame, since an empty file is none in zstd
                new.write(SegmentKind(row.kind, "").pack([]))
            new.flush()
            os.fsync(new.fileno())
            length = new.tell()
        sync_directory(target.parent)
        entries = row.entries - self.findings.entries[row.name]
        return Moved(SegmentRow(target.name, length, entries, row.kind), ends, shifts)

    def _left(self, kind: str, source: Path, cut: Cut) -> bytes:
        """The frame that is left of a cut one; empty for none."""
        if kind == "warc":
            if cut.gone:
                return b""
            record = _frame(source, cut)
            body = self._payloads.get(record_of(record).headers.get("warc-payload-digest", ""))
            return pack_record(record if body is None else as_response(record, body), source.name)
        entries = _frame(source, cut).split(_ENDS[kind])[:-1]
        left = [entry + _ENDS[kind] for number, entry in enumerate(entries) if number not in {*cut.gone}]
        return SegmentKind(kind, "").pack(left) if left else b""


def _frame(path: Path, cut: Cut) -> bytes:
    return next(frames(path, cut.end, cut.offset)).data


def _copy(old: IO[bytes], new: IO[bytes], end: int) -> None:
    """Copy from where *old* is up to its byte *end*."""
    while piece := old.read(min(PIECE_BYTES, end - old.tell())):
        new.write(piece)


def _without(digests: NDArray[np.int64], forgotten: Mapping[int, int], stay: NDArray[np.int64]) -> NDArray[np.int64]:
    """*digests* without the *forgotten* ones, and those before each that its document has left too.

    A state that was made anew, or divided, may have there what other documents have left: of these some *stay*.
    """
    gone: set[int] = set()
    for at in np.flatnonzero(np.isin(digests, np.array([*forgotten], np.int64)))[::-1].tolist():
        if at not in gone:
            gone.update(range(max(0, at + 1 - forgotten[int(digests[at])]), at + 1))
    places = np.array([*gone], np.int64)
    return np.delete(digests, places[~np.isin(digests[places], stay)])


def _named(record: Mapping[str, Sequence[str]]) -> str:
    """The entries of a take-down in words."""
    entries = [*record["hosts"], *record["urls"]]
    more = f" and {len(entries) - _MAX_NAMED:,} more" if len(entries) > _MAX_NAMED else ""
    return ", ".join(entries[:_MAX_NAMED]) + more


def in_words(taken: Mapping[str, int]) -> str:
    """What was counted by `COUNTED`."""
    return ", ".join(count_of(taken[name], noun) for name, noun in COUNTED.items())


def survey(directory: Path, hosts: Sequence[str], urls: Sequence[str]) -> Counter[str]:
    """What `take_down` would count; nothing is changed.  A crawl may be running."""
    numbers: Counter[str] = Counter()
    with closing(opened(directory)) as crawl:
        for part in crawl.parts:
            with telling_damage(part.database):
                numbers.update(Findings(part, DropList(hosts, urls), hashlib.sha256()).numbers)
    return numbers


def take_down(directory: Path, hosts: Sequence[str], urls: Sequence[str], now: float) -> dict[str, int]:
    """Take *hosts* and *urls* out of the paused crawl in *directory*, or end what was begun; returns what was counted.

    Raises BadInput if there is no crawl, or nothing is named; JobdirError if it runs or is damaged; StorageError if
    the disk refuses.
    """
    with closing(opened(directory)):  # raises BadInput
        places = parts_in(directory)
    with saving(directory), ExitStack() as stack:
        parts = [stack.enter_context(closing(_PausedCrawl(place))) for place in places]
        record = next((part.begun["record"] for part in parts if part.begun), None)
        if record is None:
            record = {"time": now, "hosts": [*hosts], "urls": [*urls]}
        elif not ({*hosts} <= {*record["hosts"]} and {*urls} <= {*record["urls"]}):
            raise BadInput(
                f"a take-down of {_named(record)} was interrupted: end it with scrapy takedown {directory} --yes"
            )
        drop = DropList(record["hosts"], record["urls"])
        if not drop:
            raise BadInput("nothing is named: give --host, --url or --list.")
        proof = hashlib.sha256()
        found = [part.find(drop, proof) for part in parts]
        if "taken" not in record:
            taken = sum((one.numbers for one in found), start=Counter[str]())
            record |= {"taken": {name: taken[name] for name in COUNTED}, "sha256": proof.hexdigest()}
        gone = dict(chain.from_iterable(one.digests.items() for one in found))
        stays = {text for one in found for text in one.texts if text in gone}
        forgotten = {digest: number for digest, number in gone.items() if digest not in stays}
        stay = np.concatenate([np.array(one.texts, np.int64) for one in found])
        for part in parts:
            part.begin(record, forgotten, stay)
        for part in parts:
            part.carry_out(now)
        for part in parts:
            part.finish()
    return dict[str, int](record["taken"])
