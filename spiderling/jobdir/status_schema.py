"""What the status of a crawl holds: the schema of ``status.json``, whose fields docs/status.md lists."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

VERSION = 1
"""Raised when a field goes or changes its meaning; not for a new one."""


@dataclass(frozen=True, slots=True)
class Running:
    """What only the crawl's own process knows."""

    counts: Mapping[str, int]  # As in the table ``count``.
    hosts: Mapping[str, int]  # Hosts by state.
    in_transit: int
    bottleneck: str
    trouble: str
    limits: Mapping[str, float]  # Total -> the budget in force.
    is_paused: bool
    is_stopping: bool
    directory: str = ""  # Its job directory; empty: that of the crawl, which has no shards.


@dataclass(frozen=True, slots=True)
class Rates:
    """Speeds over a part of the running time."""

    seconds: int  # Length of that part; pauses do not count.
    pages_per_s: float
    downloaded_bytes_per_s: float
    words_per_hour: float
    yield_rate: float  # Kept bytes / downloaded bytes.


@dataclass(frozen=True, slots=True)
class Urls:
    """discovered = ended + waiting + in_transit."""

    discovered: int
    ended: int
    waiting: int
    in_transit: int  # 0 where another process crawls: they count as waiting.


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit at which the crawl stops."""

    total: str  # The key of ``totals`` that it bounds.
    limit: float
    reached: int
    left_s: float | None  # Seconds until then, at the present rate; null: it does not come nearer.


@dataclass(frozen=True, slots=True)
class Ends:
    """URLs that ended in one way, or mentions that were refused in one way."""

    reason: str  # docs/reasons.md
    urls: int
    help: str  # The reason in words.


@dataclass(frozen=True, slots=True)
class Language:
    """What was kept in one language."""

    code: str
    documents: int
    words: int


@dataclass(frozen=True, slots=True)
class Text:
    """A document that was kept."""

    time: float
    url: str
    title: str
    language: str
    words: int
    begins: str  # The first characters of its text; empty if they cannot be read.


@dataclass(frozen=True, slots=True)
class Line:
    """Something that was logged or noted."""

    time: float
    level: str  # WARNING, ERROR or CRITICAL; of an event EVENT.
    what: str


@dataclass(frozen=True, slots=True)
class Curves:
    """Totals over time, by column: the newest point last."""

    hours: dict[str, list[float]]  # The last hours.
    whole: dict[str, list[float]]  # The whole crawl.


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """One shard of a crawl, as its state says."""

    number: int | None  # From 0 on; null: its directory has another name than a shard's.
    directory: str
    process: str  # The process that crawls, as ``process 123 on host``; empty: none.
    phase: str  # running, stopped (URLs or messages wait) or finished
    totals: dict[str, int]  # As those of the crawl.
    urls: Urls
    messages: dict[str, int]  # Other shard -> messages that wait for it to take them.


@dataclass(frozen=True, slots=True)
class Revisits:
    """What the revisits of known pages have come to (docs/recrawl.md), as of its last checkpoint."""

    since: float  # When the recrawl began.
    until: float | None  # When it is over; null: it has no end.
    recrawled: int  # Pages, hubs, sitemaps and feeds that are revisited.
    revisits: int
    unchanged: int  # Answers of 304.
    new: int  # Revisits that found new text or links.
    words: int  # In the new text.
    links: int  # That nobody had found before.
    gone: int  # Pages of the crawl that are gone: ``scrapy inspect JOBDIR gone`` lists those that were kept.
    opted_out: int  # Pages that have opted out since; listed in the same way.


@dataclass(frozen=True, slots=True)
class CoveragePoint:
    """How much of the text on the web the crawl had, as estimated by lists of pages (docs/coverage.md).

    Of each kind: the share, and the bounds that hold it nine times in ten; null: it was not estimated.
    """

    time: float
    hosts: list[float] | None
    pages: list[float] | None
    words: list[float] | None


@dataclass(frozen=True, slots=True)
class HostRow:
    """What is known of one host."""

    name: str
    state: str
    distance: int  # Host hops from the seeds.
    pages: int
    documents: int
    words: int
    downloaded_bytes: int
    kept_bytes: int
    yield_rate: float
    waiting: int  # URLs to be fetched.
    parked: int  # URLs of a closed host.


@dataclass(frozen=True, slots=True)
class HostList:
    """One page of the list."""

    found: int  # Hosts whose name holds what was searched for.
    page: int  # From 0 on.
    pages: int
    hosts: list[HostRow]


@dataclass(frozen=True, slots=True)
class GroupYield:
    """What a group of hosts cost and gave."""

    group: str
    hosts: int
    giving: int  # Hosts that gave documents.
    pages: int
    documents: int
    words: int
    downloaded_bytes: int
    kept_bytes: int
    yield_rate: float


@dataclass(frozen=True, slots=True)
class Refusing:
    """A host that refuses the crawl now, and its last answer that did."""

    host: str
    file: str  # Path of a file of the site; ``/``: pages of it.
    answer: str
    since: float
    again: float  # When its robots.txt is tried again.


@dataclass(frozen=True, slots=True)
class Files:
    """The acknowledged output of one kind."""

    kind: str  # corpus, links or warc
    files: int
    entries: int  # Documents, lines or records.
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One moment of a crawl.  Times are seconds since 1970, UTC."""

    version: int = VERSION  # The version of this schema.
    program: str  # The version of Spiderling that crawls.
    directory: str
    process: str  # The process that crawls, as ``process 123 on host``; empty: none.
    phase: str
    """running, stopped (URLs wait, a recrawl is not over, or archives are not read to their end) or finished; from the
    crawl's own process also paused (by control.yaml) and stopping."""
    lang: str  # SPIDERLING_LANG
    strategy: str  # SPIDERLING_STRATEGY
    text_steps: str  # Which steps the text workers run: compiled ones or Python.
    made: float  # When this was made.
    created: float  # When the crawl was begun.
    totals: dict[str, int]
    """Over all sessions: requests, pages, documents, words, wire_bytes, downloaded_bytes, kept_bytes, time_s (running
    time) and others."""
    urls: Urls
    archives_unread: int  # Archives that are not read to their end.
    hosts: dict[str, int]  # State -> hosts.
    hosts_at_work: int  # Hosts with URLs to be fetched.
    lately: Rates  # The last five minutes of running time.
    overall: Rates  # The whole running time.
    bottleneck: str  # What limits the speed, in words; empty where another process crawls, or none.
    bottlenecks: dict[str, int]  # How many progress lines named each.
    trouble: str  # What is wrong with the network; empty: nothing.
    budgets: list[Budget]
    left_s: float | None  # Seconds until the first budget is spent; null: unknown, or there is none.
    ends: list[Ends]  # Most frequent first.
    mentions: list[Ends]  # Links that never became URLs to be fetched, most frequent first.
    refusals: list[Ends]  # Those of ``ends`` that sites asked for: robots.txt, opt-outs.
    languages: list[Language]  # Most documents first.
    revisits: Revisits | None  # null: the crawl is not recrawled.
    coverage: list[CoveragePoint]  # Oldest first; empty: there are no lists.
    newest: list[Text]  # Newest first.
    warnings: list[Line]  # Of crawl.log, newest first.
    events: list[Line]  # What a person did or should know, newest first.
    note: str  # Which shards are not told of; empty: this is the whole crawl.
    shards: list[ShardStatus]
    """Those that are told of, by number; empty: the crawl has none. All totals are the sums over them, but ``time_s``,
    which is the longest: they run beside each other. Budgets are the sums of theirs, but that of time."""
    best_hosts: list[HostRow] | None = None  # Those that gave most words; null if it was not asked for.
    by_distance: list[GroupYield] | None = None
    """All hosts, then those at each distance from the seeds; null if it was not asked for."""
    refusing: list[Refusing] | None = None  # null if it was not asked for.
    files: list[Files] | None = None  # null if it was not asked for.
    facts: dict[str, dict[str, int]] | None = None
    """encoding, declared (encoding), file (kind), licence, sure (licence), optout (signal) -> value -> documents that
    were kept; null if it was not asked for."""
    statements: dict[str, int] | None = None
    """What sites say of the use of their texts -> origins; null if it was not asked for."""
    curves: Curves | None = None  # null if it was not asked for.

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))
