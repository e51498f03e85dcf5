"""The report of one crawl: which tables and charts stand where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spiderling.base.progress import with_progress
from spiderling.reporting import charts, tables
from spiderling.reporting.advice import advice
from spiderling.reporting.material import Material
from spiderling.reporting.page import Block, page

_SECTIONS = 12
"""Their number."""


def report(material: Material) -> str:
    """The HTML of the whole page."""
    state = f"It runs now: {material.holder}." if material.holder else "No process crawls now."
    return page(
        f"Crawl report: {material.options.lang}",
        f"{material.directory}, written {tables.utc(material.made)} by version {material.version}. {state}",
        [*with_progress(_sections(material), "parts of the page", _SECTIONS)],
    )


def _sections(material: Material) -> Iterator[tuple[str, Sequence[Block]]]:
    facts = tables.facts
    yield ("What to do next", [advice(material)])
    yield ("Summary", [tables.summary(material), tables.papers(material)])
    yield ("Hosts", [charts.scatter(material), *tables.notable_hosts(material)])
    yield ("Thresholds", [tables.thresholds(material), tables.profile_table(material)])
    yield ("Over time", [*charts.over_time(material), tables.history(material)])
    yield ("Words", [tables.by_language(material), tables.by_tld(material), tables.by_distance(material)])
    yield ("Ends", [tables.ends(material), tables.mentions(material)])
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
    yield ("Settings", [tables.settings(material), tables.events(material)])
