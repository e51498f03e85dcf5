"""What to do next, in plain words: go on or stop, what holds the crawl up, what most of it is spent on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from spiderling.base.reasons import Reason
from spiderling.base.terminal import counted
from spiderling.frontier.hosts import CLOSED_STATES, HostState
from spiderling.frontier.storage.protocol import HistoryRow
from spiderling.reporting.material import Material
from spiderling.reporting.tables import duration, profiles, size, used_profile

_RECENT = 0.1
"""Share of the downloaded bytes that counts as the end of the crawl (chosen)."""
_POOR = 0.25
"""Yield rate at the end / mean yield rate, below which the advice is to stop (chosen)."""
_FAIR = 0.6
"""The same ratio, from which all is well (chosen)."""
_NOTABLE = 0.2
"""Share of the tried URLs from which a Reason is named (chosen)."""
_WORTH_SPARING = 0.15
"""Share of the download that a stricter profile must have spared to be advised (chosen)."""
_TOO_MUCH_LOST = 0.03
"""Share of the text that it may have lost at most (chosen)."""

_BOUNDS = {
    "politeness": "It {is|was} bound by politeness: hosts {wait|waited} for their turn while machine and line "
    "{have|had} room. More hosts at a time help (more seeds, SPIDERLING_ACTIVE_HOSTS), a faster machine does not.",
    "thrift": "It {is|was} bound by its own choice: most hosts {give|gave} little text beside the others and "
    "{are|were} asked seldom. Less thrift (-a strategy=spiderling:thrift=0.3, if it was 1) fetches more pages, for "
    "fewer words a byte; more hosts that give text (scrapy seeds) fetch more of both.",
    "main process": "It {is|was} bound by the processor: the main process {uses|used} one core wholly. A faster core "
    "helps, or two crawls that share no host (-a tlds=), joined by scrapy dedup.",
    "text workers": "It {is|was} bound by the processor: pages {wait|waited} for text workers. More cores help, or "
    "SPIDERLING_WORKERS if some {are|were} idle.",
    "connections": "It {is|was} bound by the number of connections: raise CONCURRENT_REQUESTS if memory allows.",
    "DNS": "It {is|was} bound by name resolution: give faster resolvers (SPIDERLING_NAMESERVERS), or raise "
    "SPIDERLING_DNS_CONCURRENCY.",
    "hosts": "It {is|was} short of hosts: too few {have|had} URLs waiting. Give more seeds (scrapy seeds), widen "
    "SPIDERLING_TLDS, or let the best retired hosts go on (SPIDERLING_MIN_ACTIVE_HOSTS).",
    "watch": "Most of the time no look {is|was} due. A larger SPIDERLING_WATCH_REQUESTS makes more looks a day.",
    "network": "The network {is|was} away: look at the line and the name servers.",
    "reading the archives": "It {is|was} bound by the reading of archives: a faster disk or line helps, or more files "
    "at once (SPIDERLING_ARCHIVE_FILES).",
}
"""Bottleneck as progress lines name it (extensions/progress.py) -> advice; {while it runs|when it is finished}."""
_TENSES = re.compile(r"\{(\w+)\|(\w+)\}")
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
    Reason.HOST_REFUSED: "URLs of hosts that refuse this crawl: the list under 'Left alone' says what they answered",
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


def advice(material: Material) -> list[str]:
    """Sentences, the weightiest first."""
    if not material.total("pages"):
        return ["No page has been fetched yet; the reasons below say why, if URLs have ended."]
    parts = (_going_on, _shards, _bound, _threshold, _spent_on)
    return [sentence for part in parts for sentence in part(material)]


def marginal(history: list[HistoryRow]) -> tuple[HistoryRow, HistoryRow] | None:
    """The rows between which about the last tenth of the bytes came; None when there is too little to tell."""
    if len(history) < 2:
        return None
    last = history[-1]
    since = last.downloaded_bytes * (1 - _RECENT)
    first = next((row for row in reversed(history[:-1]) if row.downloaded_bytes <= since), None)
    return (first, last) if first is not None and last.downloaded_bytes > first.downloaded_bytes else None


def _going_on(material: Material) -> Iterator[str]:
    ends = marginal(material.history)
    mean = material.yield_rate
    waiting = material.waiting
    if material.archives_unread:
        yield f"Archives that are not read to their end: {material.archives_unread:,}. The same command reads on."
        return
    if not waiting:
        yield (
            "The crawl is finished: no URL waits. The same command goes on with more seeds (-a seeds=FILE; "
            "scrapy seeds finds some), or with a milder yield profile, which reopens the retired hosts that it "
            "spares; 'reopen' in control.yaml reopens single hosts."
        )
        return
    if ends is None:
        wait = f"{counted(waiting, 'URL')} {'waits' if waiting == 1 else 'wait'}"
        yield f"{wait}; it is too early to say how the yield goes."
        return
    first, last = ends
    down = last.downloaded_bytes - first.downloaded_bytes
    seconds = max(1, last.time_s - first.time_s)
    rate = (last.kept_bytes - first.kept_bytes) / down
    words = (last.words - first.words) * 3600 / seconds
    news = (
        f"the last {size(down)} gave {rate:.4f} of their bytes as text (in all: {mean:.4f}), {words:,.0f} words an hour"
    )
    left = duration(waiting * seconds / max(1, last.pages - first.pages))
    rest = "the URL that waits takes" if waiting == 1 else f"the {waiting:,} URLs that wait take"
    if rate < _POOR * mean:
        yield (
            f"Consider to stop: {news}. The rich hosts are used up; new seeds bring more than what waits. "
            "SPIDERLING_MARGINAL_BYTES and _YIELD stop a crawl at such a point."
        )
    elif rate < _FAIR * mean:
        yield f"The yield sinks: {news}. At this pace {rest} {left}."
    else:
        yield f"Let it go on: {news}. At this pace {rest} {left}."


def _shards(material: Material) -> Iterator[str]:
    if material.note:
        yield f"This is not all: {material.note}."
    waiting = Counter[str]()
    for shard in material.shards:
        waiting.update(shard.messages)
    if waiting and not material.holder:
        named = ", ".join(sorted(waiting, key=int))
        messages = counted(waiting.total(), "message")
        yield f"{messages} with links still {'waits' if waiting.total() == 1 else 'wait'} for shard {named}: start it."
    if len(material.shards) > 1:
        yield (
            "Each shard has left out what it had kept before, but knows nothing of the texts of the others: "
            f"`scrapy dedup {material.directory} -o corpus.prevert.zst` takes out what several have."
        )


def _bound(material: Material) -> Iterator[str]:
    samples = material.counted("total/bound")
    if samples:
        name, number = samples.most_common(1)[0]
        bound = _TENSES.sub(r"\1" if material.waiting else r"\2", _BOUNDS.get(name, f"It {{is|was}} bound by {name}."))
        yield f"{bound} (So in {number:,} of {counted(samples.total(), 'progress line')}.)"


def _threshold(material: Material) -> Iterator[str]:
    table = profiles(material)
    used = next(profile for profile in table if profile.name == used_profile(material))
    needs = "" if used.name == material.options.yield_profile else ", with a strategy that retires hosts,"
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
        gain = profile.more_bytes / max(1, material.total("kept_bytes"))
        if profile.factor < used.factor and gain > _NOTABLE:
            yield (
                f"Go on with -s SPIDERLING_YIELD_PROFILE={profile.name}, a milder one: the crawl then reopens by "
                f"itself the retired hosts that it spares. Their parked URLs may give {gain:.0%} more text "
                f"({size(profile.more_bytes)}), at a lower yield rate."
            )
            return


def _spent_on(material: Material) -> Iterator[str]:
    ends = material.counted("end")
    tried = max(1, ends.total() - sum(ends[reason.value] for reason in CLOSED_STATES.values()))
    for reason, cause in _CAUSES.items():
        share = ends[reason.value] / tried
        if share > _NOTABLE:
            yield f"{share:.0%} of the URLs that were tried were {cause}."
    if ends[Reason.HOST_FULL.value]:
        full = counted(ends[Reason.HOST_FULL.value], "URL")
        yield f"{full} came to a host whose queue was full: SPIDERLING_MAX_HOST_QUEUE."
    retired = material.hosts.in_state(HostState.RETIRED)
    if retired:
        parked = int((material.hosts.left - material.hosts.waiting).sum())
        yield (
            f"{counted(retired, 'host')} {'was' if retired == 1 else 'were'} retired; {counted(parked, 'URL')} "
            f"{'is' if parked == 1 else 'are'} parked with hosts left alone."
        )
