"""Divides a paused crawl over more shards (``scrapy reshard``): hosts move to the shards that own them from now on.

All shards are in one directory, and none runs.  First each new owner takes in the hosts that come to it, then each
former one closes those that have left.  A host comes in one transaction, and all of a shard leave in one.  So after a
kill the same command goes on; until it has ended, no crawl begins there (`claims.PENDING`).

What moves is what the frontier knows of a host: its state, its waiting URLs, the keys of all that were discovered, and
the bytes by which its yield is judged.  Documents, and how its URLs ended, stay where they are.  Links to it that were
sent before are passed on by the shard that had it.
"""

from __future__ import annotations

import json
import socket
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spiderling import languages
from spiderling.base.errors import BadInput
from spiderling.base.files import saving, sync_directory
from spiderling.base.option_values import PREFIX
from spiderling.base.reasons import Reason
from spiderling.base.terminal import count_of
from spiderling.base.urls import HASH_BITS, MAX_SHARDS, key_of, owner_of, page_elsewhere
from spiderling.cluster.claims import MAP_KEY, PENDING, RECORDS_KEY, ShardMap, name_of
from spiderling.cluster.content import CRAWL_ID_BYTES
from spiderling.cluster.heartbeat import SUMMED, TIME
from spiderling.frontier.hosts import CLOSED_STATES, STATE_OF, HostState
from spiderling.frontier.storage.protocol import BAND_BITS, Changes, RobotsRecord, StoredHost
from spiderling.frontier.storage.queues import line_at
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.frontier.storage.url_log import UrlLogBatch
from spiderling.jobdir.card import TAKEDOWNS
from spiderling.jobdir.directory import LOCK, Jobdir, acquire
from spiderling.jobdir.inspection import Inspection, parts_in
from spiderling.jobdir.snapshots import TAKEOVERS
from spiderling.jobdir.state_reader import queues, read_note, telling_damage

_GONE = HostState.MOVED.value
_MOVED_COLUMNS = ("pages", "downloaded_bytes", "kept_bytes")
"""Columns that move with a host, from the totals of one shard to those of another; words stay with their documents."""
_WITHOUT_YIELD: dict[str, Any] = dict.fromkeys(_MOVED_COLUMNS, 0)
_WITHOUT_QUEUE: dict[str, Any] = {"positions": "", "first": b"", "transit": None}
_HASH_MASK = (1 << HASH_BITS) - 1
MAX_KEYS = 500_000  # keys of URLs, beyond which a transaction takes in no further host; chosen: some 100 MB of memory
_NOTED = {
    "options",
    "created",
    "version",
    "purposes",
    "models",
    "seeds",
    TAKEDOWNS,
}  # what a new shard notes as the first does
_FILES = ("corpus", "links", "warc", "crawl.log", "spider.state", "state")
"""What a crawl of one process has that its first shard gets; the state is the last."""


def reshard(directory: Path, shards: int, now: float) -> Iterator[str]:
    """Divide the paused crawl in *directory*, of shards or of one process, over so many *shards*; yields what it did.

    Raises BadInput if that cannot be, JobdirError if the crawl runs or is damaged, StorageError if the disk refuses.
    """
    former = _former_map(directory, shards)
    if (directory / "state").exists():
        _become_shard(directory)
    new = former.divided(shards)
    with ExitStack() as stack:
        parts = [
            stack.enter_context(closing(_Part(number, directory / name_of(number), former.lang)))
            for number in range(shards)
        ]
        for part in parts:
            part.store.commit(Changes(meta={PENDING: json.dumps(shards)}))
        for part in parts:
            for moving in part.leaving(shards):
                parts[moving.owner].take_in(moving, part, now)
            for owner in parts:
                owner.commit(now)
        digests = array("q", {digest for part in parts for digest in part.digests})
        moved = sum(part.close_moved() for part in parts)
        records = {part.number: (f"{socket.gethostname()}:{directory.absolute()}", part.totals()) for part in parts}
        notes = {MAP_KEY: asdict(new), RECORDS_KEY: records, PENDING: 0}
        for part in reversed(parts):  # new ones go first: as long as the first of all has its map, the rest can be done
            own = parts[0].noted() | part.noted()
            own["options"] |= {"shards": shards}
            part.commit(now, own | notes, () if part.digests else digests)
    yield f"{moved:,} hosts have moved: {directory} is a crawl of {shards} shards."
    yield f"Resume it with -s {PREFIX}SHARDS={shards}; directories of shards may be moved to other machines before."


def _former_map(directory: Path, shards: int) -> ShardMap:
    """The map by which the crawl in *directory* is divided now, before it has so many *shards*."""
    places = parts_in(directory)
    maps, unbegun, pending = _read_maps(directory, places)
    if not maps:
        raise BadInput(f"no crawl has begun in {directory}: give the crawl's usual command first.")
    former = min(maps, key=lambda one: one.shards)
    if pending not in (0, shards):
        raise BadInput(f"{directory} is being divided over {pending} shards: end that first, with --shards {pending}.")
    if not former.shards < shards <= MAX_SHARDS:
        raise BadInput(
            f"{directory} has {count_of(former.shards, 'shard')}, and --shards must be more, up to {MAX_SHARDS}. To "
            "use fewer machines, run several shards on one."
        )
    names = [name_of(number) for number in range(former.shards)]
    missing = [name for name in names if directory / name not in places]
    if missing and places != [directory]:
        raise BadInput(f"all {former.shards} shards must be in {directory}, but {', '.join(missing)} is not.")
    if new := [name for name in names if name in unbegun]:
        raise BadInput(f"{', '.join(new)} in {directory} has not begun: give the crawl's usual command first.")
    return former


def _read_maps(directory: Path, places: Sequence[Path]) -> tuple[list[ShardMap], list[str], int]:
    """The maps that the states in *places* have; which know nothing of a crawl yet; and what is being done.

    The last is the number of shards over which the crawl is being divided; 0: none.
    """
    maps: list[ShardMap] = []
    unbegun: list[str] = []
    pending = 0
    for place in places:
        with closing(Inspection(place)) as part, telling_damage(part.database):
            pending = pending or read_note(part.meta, PENDING, 0)
            if part.rows("SELECT id FROM recrawled LIMIT 1"):
                raise BadInput(f"{directory} revisits its pages, and the plan of revisits cannot be divided.")
            if kept := read_note(part.meta, MAP_KEY, dict[str, Any]()):
                maps.append(ShardMap.from_json(json.dumps(kept)))
            elif "options" not in part.meta:
                unbegun.append(place.name)
            elif not maps:  # a crawl of one process; it gets the same id if this has to be done again
                options = part.options
                accepted = languages.find_languages(options.lang, options.models)
                crawl_id = blake2b(part.meta["created"].encode(), digest_size=CRAWL_ID_BYTES).hexdigest()
                maps.append(ShardMap(1, "+".join(info.code for info in accepted), options.dedup, crawl_id))
    return maps, unbegun, pending


def _become_shard(directory: Path) -> None:
    """Make the crawl of one process in *directory* the first shard of a crawl."""
    first = directory / name_of(0)
    with saving(directory), closing(acquire(directory / LOCK, directory)):
        first.mkdir(exist_ok=True)
        for name in _FILES:
            if (directory / name).exists():
                (directory / name).rename(first / name)
                sync_directory(first)
                sync_directory(directory)


class _Moving(NamedTuple):
    """A host that leaves its shard."""

    owner: int
    row: StoredHost
    lines: Sequence[bytes]  # its URLs that wait, or are parked, in their order
    hashes: NDArray[np.uint64]  # of all its URLs that were discovered
    refusal: RobotsRecord | None  # until when it refuses

    @property
    def reason(self) -> Reason | None:
        """As what its URLs in *lines* have ended; None: they wait."""
        return CLOSED_STATES.get(STATE_OF[self.row.state])


class _Part:
    """One shard, whose state is open and locked; what it takes in and loses, until the next ``commit``."""

    def __init__(self, number: int, directory: Path, prefix: str) -> None:
        self.number = number
        with ExitStack() as opened:
            self._jobdir = opened.enter_context(closing(Jobdir(directory)))
            make_agree = self._jobdir.judge(prefix, moves=False)
            self.store = opened.enter_context(closing(SqliteStore(self._jobdir.database, synced=True, writes=False)))
            state = self.store.load()
            make_agree()
            self.store.begin_writing(self._jobdir.database)
            self._read = opened.enter_context(closing(Inspection(directory)))
            self._opened = opened.pop_all()
        self.digests = state.digests
        self._meta = state.meta
        self._tails = {slot: len(lines) for slot, lines in state.tails.items()}
        self._counts = Counter(state.counts)
        self._keys = np.sort(np.frombuffer(state.seen, np.uint64))
        self._host_of_key = self._keys >> np.uint64(HASH_BITS)
        self._ids: dict[str, int] = {}
        self._gone: set[int] = set()  # hosts that have left it
        for row in self._read.rows("SELECT id, name, state FROM host"):
            self._ids[row["name"]] = row["id"]
            if row["state"] == _GONE:
                self._gone.add(row["id"])
        self._last = len(self._ids)
        self._leaving: list[tuple[StoredHost, int, Reason | None]] = []
        """Row of each host that leaves, how many URLs it takes along, and as what these have ended."""
        self._begin()

    def _begin(self) -> None:
        self._rows: list[StoredHost] = []
        self._added: list[tuple[int, bytes]] = []
        self._found: list[int] = []
        self._pages: list[tuple[int, int]] = []
        self._purges: list[tuple[int, str, int]] = []
        self._refusals: dict[str, RobotsRecord] = {}
        self._dropped: list[int] = []

    def close(self) -> None:
        self._opened.close()

    # -- hosts leave

    def leaving(self, shards: int) -> Iterator[_Moving]:
        """The hosts that this shard has and does not own when there are so many *shards*; `close_moved` is for them."""
        query = f"SELECT {', '.join(StoredHost._fields)} FROM newest_host WHERE id = ?"  # noqa: S608 - names of columns
        with telling_damage(self._read.database):
            for host, name, state, lines in queues(self._read.connection):
                owner = owner_of(name, shards)
                if owner == self.number or state == _GONE:
                    continue
                row = StoredHost(**self._read.rows(query, host)[0])
                first, end = np.searchsorted(self._host_of_key, np.array([host, host + 1], np.uint64))
                hashes = self._keys[first:end] & np.uint64(_HASH_MASK)
                moving = _Moving(owner, row, lines, hashes, self.store.robots(name))
                self._leaving.append((row, len(lines), moving.reason))
                yield moving

    def close_moved(self) -> int:
        """With the next commit, the hosts that have moved leave this shard; returns how many."""
        for row, lines, reason in self._leaving:
            self._rows.append(row._replace(state=_GONE, waiting=0, parked=0, **_WITHOUT_QUEUE, **_WITHOUT_YIELD))
            self._dropped.append(row.id)
            self._end(row.id, Reason.MOVED, lines)
            in_transit = int(reason is not None and row.transit is not None)  # it counts as waiting all the same
            self._counts["waiting"] -= in_transit
            self._counts["waiting" if reason is None else f"end/{reason.value}"] -= lines - in_transit
            for column in _MOVED_COLUMNS:
                self._counts[f"total/{column}"] -= getattr(row, column)
        return len(self._leaving)

    def _end(self, host: int, reason: Reason, urls: int) -> None:
        self._counts[f"end/{reason.value}"] += urls
        if urls > 0:
            self._purges.append((host, reason.value, urls))

    # -- hosts come

    def take_in(self, moving: _Moving, source: _Part, now: float) -> None:
        """Take a host over from *source*, unless it is here; one that was here before is found again."""
        name = moving.row.name
        host = self._ids.get(name, 0)
        if host and host not in self._gone:
            return
        former = self.store.host(host) if host else StoredHost(0, name, "", 0)
        self._last += not host
        host = host or self._last
        self._ids[name] = host
        reason = moving.reason
        waiting, parked = (len(moving.lines), 0) if reason is None else (0, len(moving.lines))
        row = moving.row._replace(documents=former.documents, words=former.words)
        self._rows.append(row._replace(id=host, waiting=waiting, parked=parked, **_WITHOUT_QUEUE))
        for line in moving.lines:
            rank, line_here = line_at(host, line)
            self._added.append((host << BAND_BITS | rank, line_here))
        keys = [key_of(host, digest) for digest in moving.hashes.tolist()]
        if former.id:
            known = np.isin(np.array(keys, np.int64).view(np.uint64), self._keys)
            keys = [key for key, is_known in zip(keys, known, strict=True) if not is_known]
        self._found += keys
        self._pages.append((page_elsewhere(source.number), len(keys)))
        self._counts["discovered"] += len(keys)
        self._end(host, Reason.MOVED, len(keys) - len(moving.lines))
        if reason is None:
            self._counts["waiting"] += waiting
        else:
            self._end(host, reason, parked)
        for column in _MOVED_COLUMNS:
            self._counts[f"total/{column}"] += getattr(moving.row, column)
        if moving.refusal is not None:
            self._refusals[name] = moving.refusal
        if len(self._found) > MAX_KEYS:
            self.commit(now)

    # -- the state

    def noted(self) -> dict[str, Any]:
        """What the state says of the crawl as a whole."""
        return {name: json.loads(value) for name, value in self._meta.items() if name in _NOTED}

    def totals(self) -> dict[str, int]:
        """What the shard has done, as others know it."""
        return {name: self._counts[f"total/{name}"] for name in (*SUMMED, TIME, TAKEOVERS)}

    def commit(self, now: float, notes: Mapping[str, object] | None = None, digests: Sequence[int] = ()) -> None:
        """Commit what has changed; *notes*: what the state notes when all has moved, *digests*: of texts elsewhere."""
        gone = {*self._dropped}
        self.store.commit(
            Changes(
                hosts=self._rows,
                added=self._added,
                popped={slot: lines for slot, lines in self._tails.items() if slot >> BAND_BITS in gone},
                dropped=self._dropped,
                seen=self._found,
                digests=digests,
                robots=self._refusals,
                counts=dict(self._counts),
                meta={name: json.dumps(value) for name, value in (notes or {}).items()},
                events=[(now, "the crawl was divided over more shards")] if notes else [],
                url_log=UrlLogBatch(now, found=self._found, pages=self._pages, purges=self._purges),
            )
        )
        self._begin()
