"""The report of one crawl: which tables and charts stand where."""

from __future__ import annotations

from spiderling.reporting import charts, tables
from spiderling.reporting.advice import advice
from spiderling.reporting.material import Material
from spiderling.reporting.page import page


def report(material: Material) -> str:
    """The HTML of the whole page."""
    state = f"It runs now: {material.holder}." if material.holder else "No process crawls now."
    facts = tables.facts
    return page(
        f"Crawl report: {material.options.lang}",
        f"{material.directory}, written {tables.utc(material.made)} by version {material.version}. {state}",
        [
            ("What to do next", [advice(material)]),
            ("Summary", [tables.summary(material), tables.papers(material)]),
            ("Hosts", [charts.scatter(material), *tables.notable_hosts(material)]),
            ("Thresholds", [tables.thresholds(material), tables.profile_table(material)]),
            ("Over time", [*charts.over_time(material), tables.history(material)]),
            ("Words", [tables.by_language(material), tables.by_tld(material), tables.by_distance(material)]),
            ("Ends", [tables.ends(material), tables.mentions(material)]),
            ("Left alone", [tables.left_alone(material), tables.refusing(material)]),
            ("Seeds", [tables.seeds_by_end(material), tables.seeds(material)]),
            (
                "Documents",
                [
                    facts(material, "encoding", "Encodings that pages were decoded with", "encoding"),
                    facts(material, "declared", "Encodings that they declared", "declared"),
                    facts(material, "file", "Kinds of files", "kind"),
                    facts(material, "licence", "Licences that pages link to", "licence"),
                ],
            ),
            (
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
            ),
            ("Settings", [tables.settings(material), tables.events(material)]),
        ],
    )
