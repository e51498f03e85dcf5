"""What to do next, in plain words, and what hosts cost and gave, by which it is told.

The measures are those of Suchomel & Pomikálek 2012.  Our kept bytes are measured after near-duplicates were removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from spiderling.base.option_values import YIELD_PROFILES
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.base.terminal import counted, with_progress
from spiderling.frontier.host_closing import MIN_BYTES, MIN_PAGES, threshold
from spiderling.frontier.hosts import CLOSED_STATES, HostState
from spiderling.frontier.strategies import parse
from spiderling.jobdir.as_text import Table
from spiderling.jobdir.shards import AnyCrawl
from spiderling.jobdir.status import rates
from spiderling.jobdir.status_schema import Curves, Rates, Status

_Column: TypeAlias = "npt.NDArray[np.int64]"
_Mask: TypeAlias = "npt.NDArray[np.bool_]"


class Hosts(NamedTuple):
    """All hosts by column; bytes in UTF-8 as the yield rate has them (frontier/hosts.py)."""

    states: npt.NDArray[np.str_]
    pages: _Column
    downloaded_bytes: _Column
    kept_bytes: _Column
    parked: _Column

    @property
    def rates(self) -> npt.NDArray[np.float64]:
        """Yield rates; 0 where nothing was downloaded."""
        return self.kept_bytes / np.maximum(self.downloaded_bytes, 1)

    def in_state(self, state: HostState) -> _Mask:
        """Which hosts are in *state*."""
        return np.asarray(self.states == state.value)


class Profile(NamedTuple):
    """What a threshold function would have meant."""

    name: str
    factor: float
    retired: int
    """Hosts that are retired, if it is the one used; else those that would have been, by what they gave in all."""
    spared_share: float  # share of all downloaded bytes that came from these hosts after each could have been retired
    lost_share: float  # share of all kept bytes that came after that moment, if each host gave its text evenly
    more_bytes: float  # kept bytes to be expected of the parked URLs of retired hosts that it would let go on


def hosts_by_column(crawl: AnyCrawl) -> Hosts:
    """The hosts of *crawl*, of all its shards."""
    query = "SELECT state, pages, downloaded_bytes, kept_bytes, parked FROM host"
    number = sum(sum(part.hosts_by_state.values()) for part in crawl.parts)
    rows = [*with_progress(chain.from_iterable(part.newest().execute(query) for part in crawl.parts), "hosts", number)]
    states, *columns = zip(*rows, strict=True) if rows else [()] * 5
    return Hosts(np.array(states, str), *(np.array(column, np.int64) for column in columns))


def profiles(hosts: Hosts, options: Options) -> list[Profile]:
    """Each profile, the one used and a stricter one, from the mildest to the strictest."""
    factors = {name: factor or 0.0 for name, factor in YIELD_PROFILES.items()} | {"0.02": 0.02}
    factors[options.yield_profile] = options.yield_factor() or 0.0
    used = factors[used_profile(options)]
    return [_profile(hosts, name, factors[name], used) for name in sorted(factors, key=factors.__getitem__)]


def used_profile(options: Options) -> str:
    """The profile by which the crawl's strategy retires hosts; "off" for one that retires none."""
    return options.yield_profile if parse(options.strategy).retires else "off"


def _profile(hosts: Hosts, name: str, factor: float, used_factor: float) -> Profile:
    pages = np.maximum(hosts.pages, 1)
    are = hosts.in_state(HostState.RETIRED)
    below = are
    if factor != used_factor:
        by_rule = retired_by(hosts, factor)
        below = are | by_rule if factor > used_factor else are & by_rule
    first = np.maximum(MIN_BYTES, hosts.downloaded_bytes * MIN_PAGES / pages)
    after = np.where(below, 1 - np.minimum(1.0, first / np.maximum(hosts.downloaded_bytes, 1)), 0.0)
    return Profile(
        name,
        factor,
        int(below.sum()),
        float((after * hosts.downloaded_bytes).sum() / max(1, hosts.downloaded_bytes.sum())),
        float((after * hosts.kept_bytes).sum() / max(1, hosts.kept_bytes.sum())),
        float((hosts.kept_bytes / pages * hosts.parked)[are & ~below].sum()),
    )


def retired_by(hosts: Hosts, factor: float) -> _Mask:
    """The hosts that t(n) of *factor* retires by what they gave in all; none for 0."""
    reached = (hosts.pages >= MIN_PAGES) & (hosts.downloaded_bytes >= MIN_BYTES)
    limits = np.array([threshold(int(pages), factor) for pages in hosts.pages])
    return reached & (hosts.rates < limits) if factor else np.zeros(len(hosts.states), bool)


def profile_table(hosts: Hosts, options: Options) -> Table:
    used = used_profile(options)
    return Table(
        "What a stricter or milder threshold would have meant",
        [
            {
                "profile": f"{profile.name} (used)" if profile.name == used else profile.name,
                "factor_f": profile.factor,
                "hosts_retired": profile.retired,
                "%_of_download_spared": round(100 * profile.spared_share, 1),
                "%_of_text_lost": round(100 * profile.lost_share, 1),
                "more_MB_of_text": round(profile.more_bytes / 1e6, 2),
            }
            for profile in profiles(hosts, options)
        ],
        "The threshold is t(n) = f (log10 n - 1), where n is the number of a host's pages. The profile in use has the "
        "hosts that are retired now; the other rows are estimates from the hosts' totals: a retired host is taken to "
        "have given its text evenly, and the URLs parked with hosts that a milder profile lets go on to give as much "
        "as those before.",
    )


def threshold_table(hosts: Hosts) -> Table:
    """Table 1 of the paper: what the hosts above each yield rate cost and gave."""
    marks = [-1.0, 0.0, *(0.0001 * 2**step for step in range(13))]
    return Table(
        "What hosts above a yield rate cost and gave",
        [{"yield_rate_above": "any" if at < 0 else f"{at:g}", **_sums(hosts, hosts.rates > at)} for at in marks],
        "As Table 1 of Suchomel & Pomikálek 2012; there, the hosts above .0128 hold 74 % of the text for 7 % of the "
        "download.",
    )


def _sums(hosts: Hosts, chosen: _Mask) -> dict[str, float]:
    down = int(hosts.downloaded_bytes[chosen].sum())
    kept = int(hosts.kept_bytes[chosen].sum())
    return {
        "hosts": int(chosen.sum()),
        "down_MB": round(down / 1e6, 2),
        "kept_MB": round(kept / 1e6, 2),
        "yield_rate": round(kept / max(down, 1), 4),
        "%_of_downloaded": round(100 * down / max(1, int(hosts.downloaded_bytes.sum())), 1),
        "%_of_kept": round(100 * kept / max(1, int(hosts.kept_bytes.sum())), 1),
    }


_RECENT = 0.1  # share of the downloaded bytes that counts as the end of the crawl; chosen
_POOR = 0.25  # yield rate at the end / mean yield rate, below which the advice is to stop; chosen
_FAIR = 0.6  # the same ratio, from which all is well; chosen
_NOTABLE = 0.2  # share of the tried URLs from which a Reason is named; chosen
_WORTH_SPARING = 0.15  # share of the download that a stricter profile must have spared to be advised; chosen
_TOO_MUCH_LOST = 0.03  # share of the text that it may have lost at most; chosen

_BOUNDS = {
    "politeness": "hosts wait for their turn while machine and line have room. More hosts at a time help (more seeds, "
    "SPIDERLING_ACTIVE_HOSTS), a faster machine does not.",
    "thrift": "most hosts give little text beside the others and are asked seldom. Less thrift (-a "
    "strategy=spiderling:thrift=0.3, if it was 1) fetches more pages, for fewer words a byte; more hosts that give "
    "text (scrapy seeds) fetch more of both.",
    "main process": "it uses one core wholly. A faster core helps, or two crawls that share no host (-a tlds=), joined "
    "by scrapy dedup.",
    "text workers": "pages wait for them. More cores help, or SPIDERLING_WORKERS if some are idle.",
    "connections": "raise CONCURRENT_REQUESTS if memory allows.",
    "DNS": "give faster resolvers (SPIDERLING_NAMESERVERS).",
    "hosts": "too few have URLs waiting. Give more seeds (scrapy seeds), widen SPIDERLING_TLDS, or let the best "
    "retired hosts go on (SPIDERLING_MIN_ACTIVE_HOSTS).",
    "recrawl": "most of the time no revisit is due. A larger SPIDERLING_RECRAWL_REQUESTS makes more revisits a day.",
    "network": "it was away. Look at the line and the name servers.",
    "reading the archives": "a faster disk or line helps, or more files at once (SPIDERLING_ARCHIVE_FILES).",
}
"""Bottleneck as progress lines name it (extensions/progress.py) -> what it means and what helps."""
_CAUSES = {
    Reason.WRONG_LANGUAGE: "pages in other languages: seeds nearer to the language, SPIDERLING_TLDS, or a smaller "
    "SPIDERLING_MAX_DISTANCE spare them",
    Reason.BOILERPLATE_ONLY: "pages without running text: usual for home pages and hubs; a stricter yield profile "
    "leaves hosts of nothing else sooner",
    Reason.NEEDS_SCRIPT: "pages that only a browser fills: no script is run here; their sitemaps and "
    "feeds may name pages that hold text",
    Reason.BAD_QUALITY: "pages with too little or poor text: look at some with 'scrapy inspect JOBDIR url URL' before "
    "the thresholds of quality are made milder",
    Reason.HTTP_ERROR: "error answers: many may come from old seeds or from hosts that shut crawlers out",
    Reason.HOST_REFUSED: "URLs of hosts that refuse this crawl: the table of them says what they answered",
    Reason.CHALLENGED: "challenges in the place of pages: services at the edge of sites shut crawlers out; none is "
    "solved here, but the owners of the sites can let you in",
    Reason.TIMEOUT: "requests without an answer in time: is the line overloaded?",
    Reason.DNS: "names that do not resolve: are the resolvers all right (SPIDERLING_NAMESERVERS)?",
    Reason.CONNECTION: "connections that were refused or broke off: is the line all right?",
    Reason.DUPLICATE: "pages whose text was kept before",
    Reason.NEAR_DUPLICATE: "pages whose text was nearly all kept before",
    Reason.OPTED_OUT: "pages that refuse this use of them; SPIDERLING_PURPOSE says what it is (docs/opt-outs.md)",
    Reason.ROBOTS_FORBIDDEN: "URLs that robots.txt forbids",
    Reason.ROBOTS_UNREACHABLE: "URLs of sites whose robots.txt cannot be fetched",
}


def advice(status: Status, hosts: Hosts, options: Options) -> list[str]:
    """Sentences, the weightiest first; *status* with its curves."""
    if not status.totals["pages"]:
        return ["No page has been fetched yet; the reasons below say why, if URLs have ended."]
    return [
        *_going_on(status),
        *_shards(status),
        *_bound(status),
        *_threshold(status, hosts, options),
        *_spent_on(status),
        *_parked(status, hosts),
    ]


def recent(curves: Curves) -> Rates | None:
    """The rates while about the last tenth of the bytes came; None when there is too little to tell."""
    whole = curves.whole
    down = whole["downloaded_bytes"]
    first = next((at for at in range(len(down) - 2, -1, -1) if down[at] <= down[-1] * (1 - _RECENT)), None)
    if first is None or down[-1] == down[first]:
        return None
    return rates(*({name: int(column[at]) for name, column in whole.items()} for at in (-1, first)))


def _going_on(status: Status) -> Iterator[str]:
    waiting = status.urls.waiting + status.urls.in_transit
    if status.archives_unread:
        yield f"Archives that are not read to their end: {status.archives_unread:,}. The same command reads on."
        return
    if not waiting:
        yield (
            "The crawl is finished: no URL waits. The same command goes on with more seeds (-a seeds=FILE; "
            "scrapy seeds finds some), or with a milder yield profile, which reopens the retired hosts that it "
            "spares; 'reopen' in control.yaml reopens single hosts."
        )
        return
    now = recent(status.curves) if status.curves else None
    if now is None:
        wait = f"{counted(waiting, 'URL')} {'waits' if waiting == 1 else 'wait'}"
        yield f"{wait}; it is too early to say how the yield goes."
        return
    mean = status.overall.yield_rate
    news = (
        f"the last {size(now.downloaded_bytes_per_s * now.seconds)} gave {now.yield_rate:.4f} of their bytes as text "
        f"(in all: {mean:.4f}), {now.words_per_hour:,.0f} words an hour"
    )
    if now.yield_rate < _POOR * mean:
        yield (
            f"Consider to stop: {news}. The rich hosts are used up; new seeds bring more than what waits. "
            "SPIDERLING_MARGINAL_BYTES stops a crawl at such a point."
        )
        return
    verdict = "The yield sinks" if now.yield_rate < _FAIR * mean else "Let it go on"
    rest = "the URL that waits takes" if waiting == 1 else f"the {waiting:,} URLs that wait take"
    yield f"{verdict}: {news}. At this pace {rest} {duration(waiting / max(now.pages_per_s, 1e-3))}."


def _shards(status: Status) -> Iterator[str]:
    if status.note:
        yield f"This is not all: {status.note}."
    waiting = Counter[str]()
    for shard in status.shards:
        waiting.update(shard.messages)
    if waiting and not status.process:
        named = ", ".join(sorted(waiting, key=int))
        messages = counted(waiting.total(), "message")
        yield f"{messages} with links still {'waits' if waiting.total() == 1 else 'wait'} for shard {named}: start it."
    if len(status.shards) > 1:
        yield (
            "Each shard has left out what it had kept before, but knows nothing of the texts of the others: "
            f"`scrapy dedup {status.directory} -o corpus.prevert.zst` takes out what several have."
        )


def _bound(status: Status) -> Iterator[str]:
    lines = sum(status.bottlenecks.values())
    if lines:
        name = max(status.bottlenecks, key=status.bottlenecks.__getitem__)
        number = status.bottlenecks[name]
        why = f": {_BOUNDS[name]}" if name in _BOUNDS else "."
        yield f"In {number:,} of {counted(lines, 'progress line')} the bottleneck was {name}{why}"


def _threshold(status: Status, hosts: Hosts, options: Options) -> Iterator[str]:
    table = profiles(hosts, options)
    used = next(profile for profile in table if profile.name == used_profile(options))
    needs = "" if used.name == options.yield_profile else ", with a strategy that retires hosts,"
    for profile in table:
        spared = profile.spared_share - used.spared_share
        lost = profile.lost_share - used.lost_share
        if profile.factor > used.factor and spared > _WORTH_SPARING and lost < _TOO_MUCH_LOST:
            yield (
                f"A stricter yield profile ({profile.name}, f={profile.factor:g}){needs} would have spared about "
                f"{spared:.0%} of the download for {lost:.1%} of the text."
            )
            return
    for profile in reversed(table):
        gain = profile.more_bytes / max(1, status.totals["kept_bytes"])
        if profile.factor < used.factor and gain > _NOTABLE:
            yield (
                f"Go on with -s SPIDERLING_YIELD_PROFILE={profile.name}, a milder one: the crawl then reopens by "
                f"itself the retired hosts that it spares. Their parked URLs may give {gain:.0%} more text "
                f"({size(profile.more_bytes)}), at a lower yield rate."
            )
            return


def _spent_on(status: Status) -> Iterator[str]:
    ends = Counter({end.reason: end.urls for end in status.ends})
    tried = max(1, ends.total() - sum(ends[reason.value] for reason in CLOSED_STATES.values()))
    for reason, cause in _CAUSES.items():
        share = ends[reason.value] / tried
        if share > _NOTABLE:
            yield f"{share:.0%} of the URLs that were tried were {cause}."
    if full := ends[Reason.HOST_FULL.value]:
        yield f"{counted(full, 'URL')} came to a host whose queue was full: SPIDERLING_MAX_HOST_QUEUE."


def _parked(status: Status, hosts: Hosts) -> Iterator[str]:
    """None of the parked URLs of a mirror is told, since its original has the same pages."""
    retired = status.hosts.get(HostState.RETIRED.value, 0)
    if retired:
        parked = int(hosts.parked[~hosts.in_state(HostState.MIRROR)].sum())
        yield (
            f"{counted(retired, 'host')} {'was' if retired == 1 else 'were'} retired; {counted(parked, 'URL')} "
            f"{'is' if parked == 1 else 'are'} parked with hosts left alone."
        )


def duration(seconds: float) -> str:
    """
    >>> duration(7384), duration(200_000)
    ('2 h 3 min', '2 d 7 h')
    >>> duration(104), duration(0)
    ('1 min 44 s', '0 s')
    """
    days = int(seconds // 86400)
    hours = int(seconds // 3600 % 24)
    minutes = int(seconds // 60 % 60)
    parts = [
        f"{number} {unit}"
        for number, unit in ((days, "d"), (hours, "h"), (minutes, "min"), (int(seconds % 60), "s"))
        if number
    ]
    return " ".join(parts[:2]) or "0 s"


def size(number: float) -> str:
    """
    >>> size(19_270_000)
    '19.3 MB'
    """
    units = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"))
    unit, name = next((pair for pair in units if number >= pair[0]), (1e3, "kB"))
    return f"{number / unit:,.1f} {name}"
