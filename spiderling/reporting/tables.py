"""Tables of a crawl by the papers' measures: each a pure function of the Material.

The measures are those of Suchomel & Pomikálek 2012: Table 1 (thresholds), Tables 3 and 4 (summary).  Our kept bytes
are measured after near-duplicate removal, so they stand beside the paper's final sizes, not its crawler's output.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from spiderling.base.option_values import PREFIX, YIELD_PROFILES
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.base.urls import registrable_domain, top_level_domain
from spiderling.frontier.host_closing import threshold
from spiderling.frontier.hosts import HostState
from spiderling.frontier.strategies import parse
from spiderling.jobdir.status import told
from spiderling.jobdir.status_schema import Looks
from spiderling.reporting.link_graph import LinkGraph
from spiderling.reporting.material import Material

Cell: TypeAlias = "str | int | float | None"
_Mask: TypeAlias = "npt.NDArray[np.bool_]"

_MOST_ROWS = 25
"""Rows at the most of a table whose length depends on the crawl (chosen)."""
_MOST_TLDS = 5
"""Top-level domains with a column of their own (chosen)."""
_FAR = 6
"""Distance from which on pages are counted together (chosen)."""
_PAPERS = (
    ("American Spanish", 1874.0, 97.3, 0.0519, 44.14, 0.0236),
    ("Arabic", 2015.0, 84.4, 0.0419, 58.04, 0.0288),
    ("Japanese", 2806.0, 110.1, 0.0392, 61.36, 0.0219),
    ("Russian", 4142.0, 260.1, 0.0628, 197.5, 0.0477),
    ("Turkish", 1298.0, 51.4, 0.0396, 19.52, 0.0150),
)
"""Suchomel & Pomikálek 2012, Table 4: crawl, raw GB, output GB, yield rate, final GB, final yield rate."""


class Table(NamedTuple):
    """A table on the page; numbers stand to the right."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]
    note: str = ""
    bar: str = ""
    """The column whose share of its sum is drawn as a bar."""


def summary(material: Material) -> Table:
    """The crawl in one column: as Tables 3 and 4 of the paper describe theirs."""
    total = material.total
    counts = material.counts
    seconds = total("time_s")
    states = Counter(material.hosts.states.tolist())
    rates = material.hosts.rates[material.hosts.downloaded_bytes > 0]
    return Table(
        "The crawl so far" if material.waiting else "The crawl",
        ("", "this crawl"),
        [
            ("Languages", material.options.lang),
            ("Begun", utc(material.created)),
            ("State of", utc(material.history[-1].time if material.history else material.made)),
            *([("Text steps", material.text_steps.partition(":")[0])] if material.text_steps else []),
            ("Running time over all sessions", duration(seconds)),
            ("Hosts", f"{len(material.hosts.names):,}: " + ", ".join(f"{n:,} {s}" for s, n in states.most_common())),
            ("URLs discovered", f"{counts.get('discovered', 0):,}, of which {counts.get('waiting', 0):,} wait"),
            ("Pages (judged responses)", total("pages")),
            ("Documents kept", total("documents")),
            ("Words kept", total("words")),
            ("Downloaded, decoded", size(total("downloaded_bytes"))),
            ("Downloaded, on the wire", size(total("wire_bytes"))),
            ("Kept: new clean text", size(total("kept_bytes"))),
            ("Yield rate: kept / downloaded bytes", material.yield_rate),
            (
                "Mean yield rate of a host (Suchomel & Pomikálek 2011 average so)",
                float(rates.mean()) if len(rates) else 0.0,
            ),
            ("Yield ratio: documents / pages", total("documents") / max(1, total("pages"))),
            ("Pages a second", total("pages") / seconds if seconds else None),
            ("Words an hour", round(total("words") * 3600 / seconds) if seconds else None),
        ],
    )


def shards(material: Material) -> list[Table]:
    """What each shard did; none in a crawl without shards."""
    if not material.shards:
        return []
    columns = ("shard", "is", "pages", "documents", "words", "down MB", "kept MB", "URLs wait", "messages wait")
    rows: list[tuple[Cell, ...]] = [
        (
            Path(shard.directory).name,
            shard.phase,
            *(shard.totals[name] for name in ("pages", "documents", "words")),
            *(shard.totals[name] / 1e6 for name in ("downloaded_bytes", "kept_bytes")),
            shard.urls.waiting,
            sum(shard.messages.values()),
        )
        for shard in material.shards
    ]
    note = f"What all tables say are sums over them{f'; {material.note}' if material.note else ''}."
    return [Table("The shards of the crawl", columns, rows, note)]


def papers(material: Material) -> Table:
    """Table 4 of the paper with this crawl as its first row."""
    down = material.total("downloaded_bytes") / 1e9
    kept = material.total("kept_bytes") / 1e9
    return Table(
        "Beside the crawls of the paper",
        ("crawl", "raw GB", "crawler output GB", "its yield rate", "final GB", "final yield rate"),
        [("this one", down, None, None, kept, material.yield_rate), *_PAPERS],
        "Suchomel & Pomikálek 2012, Table 4. Our output has no near-duplicates any more: compare it with their final "
        "size. An undirected crawl (Heritrix, Portuguese) kept .0038 before that step.",
    )


def thresholds(material: Material) -> Table:
    """Table 1 of the paper: what the hosts above each yield rate cost and gave."""
    hosts = material.hosts
    marks = [0.0, *(0.0001 * 2**step for step in range(13))]
    return Table(
        "What hosts above a yield rate cost and gave",
        ("yield rate above", "hosts", "downloaded MB", "kept MB", "yield rate", "% of downloaded", "% of kept"),
        [
            ("none", *_sums(material, np.ones(len(hosts.names), bool))),
            *((mark, *_sums(material, hosts.rates > mark)) for mark in marks),
        ],
        "As Table 1 of Suchomel & Pomikálek 2012; there, the hosts above .0128 hold 74 % of the text for 7 % of the "
        "download.",
    )


def _sums(material: Material, chosen: _Mask) -> tuple[Cell, ...]:
    hosts = material.hosts
    down = int(hosts.downloaded_bytes[chosen].sum())
    kept = int(hosts.kept_bytes[chosen].sum())
    all_down = max(1, int(hosts.downloaded_bytes.sum()))
    all_kept = max(1, int(hosts.kept_bytes.sum()))
    rate = kept / max(down, 1)
    return int(chosen.sum()), down / 1e6, kept / 1e6, rate, 100 * down / all_down, 100 * kept / all_kept


class Profile(NamedTuple):
    """What a threshold function would have meant."""

    name: str
    factor: float
    retired: int
    """Hosts that are retired, if it is the one used; else those that would have been, by what they gave in all."""
    spared_share: float
    """Share of all downloaded bytes that came from these hosts after each could have been retired."""
    lost_share: float
    """Share of all kept bytes that came after that moment, if each host gave its text evenly."""
    more_bytes: float
    """Kept bytes to be expected of the parked URLs of retired hosts that it would let go on."""


def profiles(material: Material) -> list[Profile]:
    """Each profile, the one used and a stricter one, from the mildest to the strictest."""
    options = material.options
    factors = {name: factor or 0.0 for name, factor in YIELD_PROFILES.items()} | {"0.02": 0.02}
    factors[options.yield_profile] = options.yield_factor() or 0.0
    used = factors[used_profile(material)]
    return [_profile(material, name, factors[name], used) for name in sorted(factors, key=factors.__getitem__)]


def used_profile(material: Material) -> str:
    """The profile by which the crawl's strategy retires hosts; "off" for one that retires none."""
    return material.options.yield_profile if parse(material.options.strategy).retires else "off"


def _profile(material: Material, name: str, factor: float, used_factor: float) -> Profile:
    hosts = material.hosts
    options = material.options
    below = _retired(material, factor, used_factor)
    first = np.maximum(options.yield_min_bytes, hosts.downloaded_bytes * options.yield_min_pages / _least(hosts.pages))
    after = np.where(below, 1 - np.minimum(1.0, first / _least(hosts.downloaded_bytes)), 0.0)
    let_go = (hosts.states == HostState.RETIRED.value) & ~below
    per_url = hosts.kept_bytes / _least(hosts.pages)
    return Profile(
        name,
        factor,
        int(below.sum()),
        float((after * hosts.downloaded_bytes).sum() / max(1, hosts.downloaded_bytes.sum())),
        float((after * hosts.kept_bytes).sum() / max(1, hosts.kept_bytes.sum())),
        float((per_url * hosts.parked)[let_go].sum()),
    )


def _least(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return np.maximum(values, 1)


def _retired(material: Material, factor: float, used_factor: float) -> _Mask:
    """The hosts that are retired, or that *factor* would have retired beside or of those that *used_factor* did."""
    are: _Mask = material.hosts.states == HostState.RETIRED.value
    if factor == used_factor:
        return are
    by_rule = retired_by(material, factor)
    return np.logical_or(are, by_rule) if factor > used_factor else np.logical_and(are, by_rule)


def retired_by(material: Material, factor: float) -> _Mask:
    """The hosts that t(n) of *factor* retires by what they gave in all; none for 0."""
    hosts = material.hosts
    options = material.options
    reached = (hosts.pages >= options.yield_min_pages) & (hosts.downloaded_bytes >= options.yield_min_bytes)
    limits = np.array([threshold(int(pages), factor) for pages in hosts.pages])
    return reached & (hosts.rates < limits) if factor else np.zeros(len(hosts.names), bool)


def profile_table(material: Material) -> Table:
    return Table(
        "What a stricter or milder threshold would have meant",
        ("profile", "factor f", "hosts retired", "% of download spared", "% of text lost", "more MB of text"),
        [
            (
                profile.name + (" (used)" if profile.name == used_profile(material) else ""),
                profile.factor,
                profile.retired,
                100 * profile.spared_share,
                100 * profile.lost_share,
                profile.more_bytes / 1e6,
            )
            for profile in profiles(material)
        ],
        "The threshold is t(n) = f (log10 n - 1), where n is the number of a host's pages. The profile in use has the "
        "hosts that are retired now; the other rows are estimates from the hosts' totals: a retired host is taken to "
        "have given its text evenly, and the URLs parked with hosts that a milder profile lets go on to give as much "
        "as those before.",
    )


def hosts_table(
    material: Material, title: str, order: npt.NDArray[np.intp], note: str = "", most: int = _MOST_ROWS
) -> Table:
    """The first *most* hosts of *order* (places among the hosts)."""
    hosts = material.hosts
    columns = ("host", "state", "distance", "pages", "documents", "down MB", "kept MB", "yield rate", "URLs left")
    return Table(
        title,
        columns,
        [
            (
                hosts.names[at],
                str(hosts.states[at]),
                int(hosts.distance[at]),
                int(hosts.pages[at]),
                int(hosts.documents[at]),
                hosts.downloaded_bytes[at] / 1e6,
                hosts.kept_bytes[at] / 1e6,
                float(hosts.rates[at]),
                int(hosts.left[at]),
            )
            for at in order[:most].tolist()
        ],
        note,
    )


def notable_hosts(material: Material) -> list[Table]:
    """The hosts that gave most and those that cost most; all hosts in one table if they fit."""
    kept = material.hosts.kept_bytes
    down = material.hosts.downloaded_bytes
    best = np.argsort(-kept, kind="stable")
    dearest = np.argsort(kept - down, kind="stable")
    if len(best) <= 2 * _MOST_ROWS:
        return [hosts_table(material, "All hosts, those first that gave most", best, most=len(best))]
    return [
        hosts_table(material, "Hosts that gave most", best),
        hosts_table(material, "Hosts that cost most bytes without text", dearest),
    ]


def left_alone(material: Material) -> Table:
    """The hosts that the crawl has decided to leave alone, the costliest first."""
    hosts = material.hosts
    closed = np.flatnonzero(np.isin(hosts.states, ["retired", "spent", "blocked", "forbidden", "mirror", "refused"]))
    order = closed[np.argsort(-hosts.downloaded_bytes[closed], kind="stable")]
    return hosts_table(
        material,
        f"Hosts left alone: {len(closed):,}",
        order,
        "retired: its yield rate fell below t(n); spent: its budget; blocked: by you; forbidden: it asks for too long "
        "a delay; mirror: shows the pages of another; refused: see below. 'reopen' in control.yaml lets one go on.",
    )


def refusing(material: Material) -> Table:
    """The hosts that refuse us now, and what they answered."""
    return Table(
        f"Hosts that refuse: {len(material.refusals):,}",
        ("host", "asked for", "answer", "on", "robots.txt is tried again"),
        [
            (said.host, said.origin + said.file, said.answer, utc(said.since), utc(said.again))
            for said in material.refusals
        ],
        "They shut this crawl out (docs/opt-outs.md). If you think that they would allow it, write to them: say who "
        "you are, what the corpus is for, and the User-Agent that they would have to let in.",
    )


def by_group(material: Material, title: str, groups: Iterable[str]) -> Table:
    """Sums over the hosts of each group, most words first; *groups*: the group of each host."""
    hosts = material.hosts
    names, inverse = np.unique(np.array(list(groups), dtype=str), return_inverse=True)
    ones = np.ones(len(inverse), np.int64)
    columns = (ones, hosts.documents, hosts.words, hosts.downloaded_bytes, hosts.kept_bytes)
    sums = [np.bincount(inverse, weights=column).tolist() for column in columns]
    rows = [
        (name, int(number), int(documents), int(words), down / 1e6, kept / max(1.0, down))
        for name, number, documents, words, down, kept in zip(names.tolist(), *sums, strict=True)
    ]
    rows.sort(key=lambda row: -row[3])
    head = (title.lower(), "hosts", "documents", "words", "down MB", "yield rate")
    return Table(f"Words by {title}", head, [*rows[:_MOST_ROWS]], bar="words")


def by_tld(material: Material) -> Table:
    return by_group(material, "top-level domain", map(top_level_domain, material.hosts.names))


def by_distance(material: Material) -> Table:
    table = by_group(material, "distance from the seeds", map(str, material.hosts.distance.tolist()))
    return table._replace(rows=sorted(table.rows, key=lambda row: int(row[0] or 0)))


def by_language(material: Material) -> Table:
    words = material.counted("fact/words")
    return Table(
        "Words by language",
        ("language", "documents", "words"),
        [(code, number, words[code]) for code, number in material.counted("language").most_common()],
        bar="words",
    )


def facts(material: Material, kind: str, title: str, column: str, note: str = "") -> Table:
    """How many kept documents have each value of one *kind* of fact (ledger)."""
    return Table(
        title,
        (column, "documents"),
        list(material.counted(f"fact/{kind}").most_common(_MOST_ROWS)),
        note,
        bar="documents",
    )


def ends(material: Material) -> Table:
    return _reasons("How URLs ended", material.counted("end"), "A URL that was discovered ends once, or waits.")


def looks(looks: Looks) -> Table:
    """What came of the watch."""
    note = "Pages that are gone or have opted out since: scrapy inspect JOBDIR gone."
    return Table("The watch", ("", "this crawl"), list(told(looks)), note)


def mentions(material: Material) -> Table:
    return _reasons("Mentions that were refused", material.counted("mention"), "Links that never became URLs to fetch.")


def _reasons(title: str, counts: Counter[str], note: str) -> Table:
    return Table(
        title,
        ("reason", "URLs", "that is"),
        [(key, number, Reason.of(key).help) for key, number in counts.most_common()],
        note,
        bar="URLs",
    )


def opt_outs(material: Material) -> Table:
    """What sites said for their front page."""
    return Table(
        "What sites said of the use of their texts",
        ("for the front page", "origins"),
        list(material.consents),
        "By the files that were asked for (docs/opt-outs.md).",
        bar="origins",
    )


def languages_by_tld(graph: LinkGraph) -> Table:
    """Table 2 of Somboonviwat et al. 2006."""
    of_host = [top_level_domain(name) for name in graph.hosts]
    pairs = Counter(zip(graph.languages, (of_host[at] for at in graph.host.tolist()), strict=True))
    tlds: Counter[str] = Counter()
    languages: Counter[str] = Counter()
    for (language, tld), pages in pairs.items():
        tlds[tld] += pages
        languages[language] += pages
    shown = [tld for tld, _ in tlds.most_common(_MOST_TLDS)]
    rows: list[tuple[Cell, ...]] = []
    for language, pages in languages.most_common(_MOST_ROWS):
        by_tld = [pairs[language, tld] for tld in shown]
        rows.append((language or "unknown", *by_tld, pages - sum(by_tld), pages, 100 * pages / len(graph.languages)))
    columns = ("language", *(f".{tld}" for tld in shown), "other", "pages", "% of pages")
    note = "As Table 2 of Somboonviwat et al. 2006, who found 65 % of the Thai pages outside of .th."
    return Table("Languages of pages by top-level domain", columns, rows, note)


def locality(graph: LinkGraph) -> Table:
    """Table 3 of the same paper."""
    domains = {name: registrable_domain(name) for name in graph.hosts}
    numbers = {domain: number for number, domain in enumerate(dict.fromkeys(domains.values()))}
    domain_of = np.array([numbers[domains[name]] for name in graph.hosts])
    source, target = graph.host[graph.sources], graph.host[graph.targets]
    is_same_domain, is_same_server = domain_of[source] == domain_of[target], source == target
    leads_there = graph.relevant[graph.targets]
    rows: list[tuple[Cell, ...]] = []
    for name, is_from in (("wanted", True), ("other", False)):
        own = graph.relevant[graph.sources] == is_from
        kinds = (own, own & is_same_domain, own & ~is_same_domain, own & is_same_server, own & ~is_same_server)
        shares = [100 * float(leads_there[kind].mean()) if kind.any() else None for kind in kinds]
        rows.append((f"{name} pages", int(own.sum()), *shares))
    columns = ("links of", "links", "% to wanted", "same domain", "other domain", "same server", "other server")
    note = (
        "Which share of the links leads to pages in a wanted language, as Table 3 of Somboonviwat et al. 2006 (Thai: "
        f"71.3, 83.0, 30.7, 84.1, 38.5; others: 3.1, 2.3, 6.2, 3.0, 3.2).{_left_out(graph)}"
    )
    return Table("Linguistic locality of links between pages that were read", columns, rows, note)


def distances(graph: LinkGraph) -> Table:
    """Figure 1 of the same paper."""
    pages = np.bincount(np.minimum(graph.distances()[graph.relevant], _FAR), minlength=_FAR + 1).tolist()
    names = [*map(str, range(1, _FAR)), f"{_FAR} and more", "no way"]
    return Table(
        "Distance between the nearest pages in a wanted language",
        ("links", "wanted pages"),
        [*zip(names, [*pages[1:], pages[0]], strict=True)],
        "Links from the nearest page in a wanted language: 1 is a direct link, 2 leads through one page in another "
        f"language, as Figure 1 of Somboonviwat et al. 2006.{_left_out(graph)}",
        bar="wanted pages",
    )


def _left_out(graph: LinkGraph) -> str:
    return f" The links of {graph.left_out:,} later pages are left out." if graph.left_out else ""


def seeds_by_end(material: Material) -> Table:
    counts = Counter(seed.end or "waits" for seed in material.seeds)
    return Table(
        "Seeds by what came of them",
        ("end", "seeds", "that is"),
        [(end, number, Reason.of(end).help if end != "waits" else "") for end, number in counts.most_common()],
        bar="seeds",
    )


def seeds(material: Material) -> Table:
    """Seeds by the words that their hosts gave."""
    order = sorted(material.seeds, key=lambda seed: (-seed.host_words, seed.host))
    rows: list[tuple[Cell, ...]] = [
        (seed.url or seed.host, seed.end or "waits", seed.words, seed.host_state, seed.host_words, seed.detail)
        for seed in [*order[:_MOST_ROWS], *order[max(_MOST_ROWS, len(order) - _MOST_ROWS) :]]
    ]
    left_out = len(order) - len(rows)
    note = f"The first and last of {len(order):,} by the words of the host." if left_out else ""
    return Table("Seeds", ("seed", "ended as", "its words", "its host", "words of the host", "detail"), rows, note)


def settings(material: Material) -> Table:
    """Options that are not at their defaults."""
    defaults = asdict(Options())
    return Table(
        "Settings that differ from the defaults",
        ("option", "value", "default"),
        [
            (PREFIX + name.upper(), str(value), str(defaults[name]))
            for name, value in asdict(material.options).items()
            if value != defaults[name]
        ],
    )


def events(material: Material) -> Table:
    return Table("Last events", ("time", "what"), [(utc(when), what) for when, what in material.events])


def history(material: Material) -> Table:
    """The last rows of the curves."""
    columns = ("time", "pages", "documents", "words", "down MB", "kept MB", "yield rate", "URLs wait", "hosts at work")
    return Table(
        "Totals over time, the last first",
        columns,
        [
            (
                utc(row.time),
                row.pages,
                row.documents,
                row.words,
                row.downloaded_bytes / 1e6,
                row.kept_bytes / 1e6,
                row.kept_bytes / max(1, row.downloaded_bytes),
                row.waiting,
                row.at_work,
            )
            for row in material.history[:: -max(1, len(material.history) // _MOST_ROWS)]
        ],
    )


def utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if seconds else "unknown"


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
