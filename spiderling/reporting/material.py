"""What the report needs of a crawl's state: hosts by column, counts, history, seeds; the corpus is not read."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spiderling.base.errors import StorageError
from spiderling.base.options import Options
from spiderling.base.terminal import with_progress
from spiderling.base.urls import HASH_BITS, MAX_HOST_ID, canonicalize
from spiderling.corpus.links import read_links
from spiderling.frontier.hosts import HostState
from spiderling.frontier.storage.protocol import HistoryRow
from spiderling.frontier.storage.url_log import unpack_ends, unpack_keys
from spiderling.jobdir.inspection import Inspection, counts_under
from spiderling.jobdir.shards import AnyCrawl, history_of
from spiderling.jobdir.state_reader import noted
from spiderling.jobdir.status import statements_of, status_of
from spiderling.jobdir.status_schema import Looks, ShardStatus
from spiderling.reporting.link_graph import LinkGraph, link_graph

_HOST_COLUMNS = ("distance", "pages", "documents", "words", "downloaded_bytes", "kept_bytes", "parked", "waiting")


class Seed(NamedTuple):
    """A seed, its host, and how it ended."""

    host: str
    host_state: str
    host_words: int
    url: str = ""
    """Empty while it waits."""
    end: str = ""
    words: int = 0
    detail: str = ""


class Refusal(NamedTuple):
    """A host that refuses us (frontier/host_closing.py), and its last answer that did."""

    host: str
    origin: str
    file: str
    """Path of a file of the site; '/': pages of it."""
    answer: str
    since: float
    again: float
    """When its robots.txt is tried again."""


@dataclass(slots=True)
class Hosts:
    """All hosts by column; bytes in UTF-8 as the yield rate has them (frontier/hosts.py)."""

    names: list[str] = field(default_factory=list)
    states: npt.NDArray[np.str_] = field(default_factory=lambda: np.empty(0, "U10"))
    distance: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    pages: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    documents: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    words: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    downloaded_bytes: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    kept_bytes: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    parked: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    waiting: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def in_state(self, state: HostState) -> int:
        """How many hosts are in *state*."""
        return int((self.states == state.value).sum())

    @property
    def left(self) -> npt.NDArray[np.int64]:
        """URLs that wait or are parked; none of a mirror's, whose pages its original has."""
        return self.waiting + np.where(self.states == HostState.MIRROR.value, 0, self.parked)

    @property
    def rates(self) -> npt.NDArray[np.float64]:
        """Yield rates; 0 where nothing was downloaded."""
        return self.kept_bytes / np.maximum(self.downloaded_bytes, 1)


@dataclass(frozen=True, slots=True)
class Material:
    """One committed moment of a crawl."""

    directory: str
    holder: str
    """The process that crawls now; empty: none."""
    options: Options
    version: str
    made: float
    """When this was read, in seconds since 1970."""
    created: float
    """When the crawl was begun, in seconds since 1970."""
    counts: dict[str, int]
    hosts: Hosts
    history: list[HistoryRow]
    seeds: list[Seed]
    """Empty if the log of URLs does not know them."""
    consents: list[tuple[str, int]]
    """(Statement on the use of their front page, number of origins that make it), the commonest first."""
    events: list[tuple[float, str]]
    refusals: list[Refusal]
    looks: Looks | None = None
    """None: the crawl is not watched."""
    links: LinkGraph | str = ""
    """What ``links/`` tells, or why it tells nothing."""
    left_s: float | None = None
    """Seconds until the first budget is spent; None: unknown, or there is none."""
    archives_unread: int = 0
    """Archives that are not read to their end."""
    note: str = ""
    """Which shards are not told of; empty: this is the whole crawl."""
    shards: list[ShardStatus] = field(default_factory=list)
    """Those that are told of; empty: the crawl has none."""
    text_steps: str = ""
    """Which steps its text workers run (text/steps.py)."""

    def total(self, name: str) -> int:
        return self.counts.get(f"total/{name}", 0)

    def counted(self, prefix: str) -> Counter[str]:
        return counts_under(prefix, self.counts)

    @property
    def waiting(self) -> int:
        """URLs that wait; a crawl without any is finished."""
        return self.counts.get("waiting", 0)

    @property
    def messages(self) -> int:
        """Messages of shards that wait for others to take them."""
        return sum(sum(shard.messages.values()) for shard in self.shards)

    @property
    def yield_rate(self) -> float:
        return self.total("kept_bytes") / max(1, self.total("downloaded_bytes"))


def material_of(crawl: AnyCrawl, now: float | None = None) -> Material:
    """Read what is needed, of shards the sums; *now*: the time to be printed, the clock's by default."""
    status = status_of(crawl, whole=False)
    return Material(
        directory=str(crawl.directory),
        holder=crawl.holder,
        options=crawl.options,
        version=noted(crawl.meta, "version", ""),
        made=time.time() if now is None else now,
        created=float(noted(crawl.meta, "created", 0.0)),
        counts=crawl.counts,
        hosts=_hosts(crawl),
        archives_unread=crawl.archives_unread,
        history=history_of(crawl.parts),
        seeds=[seed for part in crawl.parts for seed in _seeds(part)],
        consents=statements_of(crawl).most_common(),
        events=[(event.time, event.what) for event in status.events],
        looks=status.looks,
        links=_links(crawl),
        left_s=status.left_s,
        refusals=sorted(refusal for part in crawl.parts for refusal in _refusals(part)),
        note=status.note,
        shards=status.shards,
        text_steps=noted(crawl.meta, "text_steps", ""),
    )


def _hosts(crawl: AnyCrawl) -> Hosts:
    query = f"SELECT name, state, {', '.join(_HOST_COLUMNS)} FROM host"
    number = sum(row["number"] for row in crawl.rows("SELECT count(*) AS number FROM host"))
    cursors = (part.newest().execute(query) for part in crawl.parts)
    rows = [*with_progress(chain.from_iterable(cursors), "hosts", number)]
    if not rows:
        return Hosts()
    names, states, *columns = zip(*rows, strict=True)
    return Hosts(list(names), np.array(states), *(np.array(column, np.int64) for column in columns))


def _links(crawl: AnyCrawl) -> LinkGraph | str:
    segments = crawl.segments("links")
    lines = chain.from_iterable(read_links(segment.path, segment.length) for segment in segments)
    number = sum(segment.entries for segment in segments)
    try:
        graph = link_graph(with_progress(lines, "pages in links/", number))
    except StorageError as error:
        return str(error)
    return graph or (
        "Languages by top-level domain, the locality of links and the distance between pages in a wanted language are "
        "told of crawls with -s SPIDERLING_LINKS=on."
    )


def _refusals(crawl: Inspection) -> list[Refusal]:
    again = "SELECT name, expires FROM host JOIN robots ON origin = name WHERE state = 'refused'"
    until = {row["name"]: row["expires"] for row in crawl.rows(again)}
    said = "SELECT origin, file, answer, last FROM consent WHERE says LIKE 'refuses%' ORDER BY last"
    found = {}
    for row in crawl.rows(said):
        target = canonicalize(row["origin"])
        if target is not None and target.host in until:
            found[target.host] = Refusal(
                target.host, row["origin"], row["file"], row["answer"], row["last"], until[target.host]
            )
    return list(found.values())


def _seeds(crawl: Inspection) -> list[Seed]:
    """The URLs that were found on no page, those that ended before the others; only batches with one are unpacked."""
    keys = np.array(sorted(_seed_keys(crawl)), np.int64)
    ids = json.dumps(np.unique(keys >> HASH_BITS & MAX_HOST_ID).tolist())
    of_seeds = "SELECT id, name, state, words FROM host WHERE id IN (SELECT value FROM json_each(?))"
    hosts = {row["id"]: row for row in crawl.rows(of_seeds, ids)}
    ended: dict[int, Seed] = {}
    batches = crawl.connection.execute("SELECT keys, ends FROM ended ORDER BY batch")
    for packed, ends in with_progress(batches, "batches of ends"):
        if not np.isin(np.frombuffer(packed, np.int64), keys).any():
            continue
        for end in unpack_ends(packed, ends):
            at = np.searchsorted(keys, end.key)
            if at < len(keys) and keys[at] == end.key:
                ended[end.key] = _seed(hosts, end.key)._replace(
                    url=end.url, end=end.reason, words=end.words, detail=end.detail
                )
    waiting = (_seed(hosts, key) for key in keys.tolist() if key not in ended)
    return [*ended.values(), *waiting]


def _seed(hosts: dict[int, dict[str, Any]], key: int) -> Seed:
    row = hosts.get(key >> HASH_BITS & MAX_HOST_ID)
    return Seed(row["name"], row["state"], row["words"]) if row else Seed("?", "", 0)


def _seed_keys(crawl: Inspection) -> set[int]:
    found: set[int] = set()
    batches = crawl.connection.execute("SELECT keys, pages FROM found")
    for keys, pages in with_progress(batches, "batches of findings"):
        runs = unpack_keys(pages)
        if 0 in runs[::2]:
            found_on = np.repeat(runs[::2], runs[1::2])
            found.update(np.array(unpack_keys(keys))[found_on == 0].tolist())
    return found
