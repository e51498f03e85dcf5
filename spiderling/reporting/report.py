"""The report of one crawl: which tables and charts stand where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spiderling.base.terminal import with_progress
from spiderling.reporting import charts, tables
from spiderling.reporting.advice import advice
from spiderling.reporting.material import Material
from spiderling.reporting.page import Block, page
from spiderling.reporting.tiles import tiles

_SECTIONS = 15
"""Their number, in a crawl that is not watched."""
_PAPERS = (
    "Suchomel & Pomikálek 2011: Practical Web Crawling for Text Corpora (RASLAN). Suchomel & Pomikálek 2012: Efficient "
    "Web Crawling for Large Text Corpora (WAC7). They describe SpiderLing, whose measures this report takes up."
)


def report(material: Material) -> str:
    """The HTML of the whole page."""
    made = f"written {tables.utc(material.made)} by version {material.version}"
    return page(
        f"Crawl report: {material.options.lang}",
        f"{material.directory}, {made}. {_standing(material)}",
        [*with_progress(_sections(material), "parts of the page", _SECTIONS + bool(material.looks))],
        tiles(material),
    )


def _standing(material: Material) -> str:
    if material.holder:
        return f"It runs now: {material.holder}."
    is_finished = not material.waiting and not material.archives_unread and not material.messages
    is_watched = material.looks is not None and material.looks.due is not None
    return (
        "It is finished." if is_finished and not is_watched else "It is stopped, and the same command goes on with it."
    )


def _links(material: Material) -> Sequence[Block]:
    graph = material.links
    if isinstance(graph, str):
        return [[graph]]
    return [tables.locality(graph), tables.languages_by_tld(graph), tables.distances(graph)]


def _sections(material: Material) -> Iterator[tuple[str, Sequence[Block]]]:
    """What this crawl did comes first, then what it is compared with."""
    facts = tables.facts
    yield ("What to do next", [advice(material)])
    yield ("Over time", charts.over_time(material))
    yield ("Summary", [tables.summary(material), *tables.shards(material), tables.by_language(material)])
    yield ("Hosts", [charts.scatter(material), *tables.notable_hosts(material)])
    yield ("Words", [tables.by_tld(material), tables.by_distance(material)])
    yield ("Links", _links(material))
    yield ("Ends", [tables.ends(material), tables.mentions(material)])
    if material.looks is not None:
        yield ("Looks at known pages", [tables.looks(material.looks)])
    yield ("Left alone", [tables.left_alone(material), tables.refusing(material)])
    yield ("Seeds", [tables.seeds_by_end(material), tables.seeds(material)])
    yield (
        "Documents",
        [
            facts(material, "encoding", "Encodings that pages were decoded with", "encoding"),
            facts(material, "declared", "Encodings that they declared", "declared"),
            facts(material, "file", "Kinds of files", "kind"),
            facts(material, "licence", "Licences that pages link to", "licence"),
        ],
    )
    yield (
        "Opt-outs",
        [
            tables.opt_outs(material),
            facts(
                material,
                "optout",
                "Kept documents with a statement on their use",
                "signal",
                "Statements that were recorded, or that do not refuse this crawl's purpose; those that refuse "
                "it end as opted-out, site-opted-out or noindex.",
            ),
        ],
    )
    yield ("Thresholds", [tables.profile_table(material)])
    yield ("Beside the papers", [[_PAPERS], tables.papers(material), tables.thresholds(material)])
    yield ("History", [tables.history(material)])
    yield ("Settings", [tables.settings(material), tables.events(material)])
