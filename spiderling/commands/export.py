"""``scrapy export IN... -o OUT``: a corpus, or a part of it, in the format and the files that somebody needs."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import UsageError

from spiderling.base.addresses import DropList, read_list
from spiderling.base.errors import BadInput, DamageError
from spiderling.base.option_values import parse_size
from spiderling.base.terminal import with_progress
from spiderling.cli.command import SpiderlingCommand, option

if TYPE_CHECKING:
    from spiderling.export.export import ExportPlan, Summary
    from spiderling.export.sources import Corpus, Selection

_OF_DOCUMENTS = {
    "shard_bytes", "where", "drop_host", "drop_url", "split", "pii", "annotator", "salvage", "format",
}  # fmt: skip
"""Options that a summary takes no notice of."""
_MAX_NAMED = 10  # entries of lists that are named because no document matched them; chosen: what fits on a line or two


class Command(SpiderlingCommand):
    arguments = "JOBDIR|FILE... -o OUT [options]"
    summary = "Write a finished corpus, or a part of it, as JSONL, Parquet, text, vertical, CoNLL-U, TEI or prevertical"
    description = (
        "Copy the corpus of crawls (their directories) or files to OUT, whose name says the format: .prevert, .vert, "
        ".conllu, .tei.xml, .jsonl, .txt (each packed with a further .zst or .gz) or .parquet; a directory, as cs/, "
        "gets a dataset in Parquet that datasets.load_dataset reads. --where takes documents by a condition in SQL on "
        "the columns of JSONL and Parquet, lists of hosts and URLs keep documents out: one entry a line, '*.a.example' "
        "for all hosts below that name, a URL with * at its end for all that begin so. OUT.json says what it was made "
        "of, OUT.dropped.tsv which documents the lists left out. Nothing is changed in the crawls. --salvage takes "
        "what is whole of a damaged corpus, with or without its state, and says what it had to leave out. "
        "Exit code 1 if no document is taken; then nothing is written. "
        "Example: scrapy export crawls/cs -o cs.parquet --split lang --where 'badness <= 10 AND distance <= 3'"
    )

    if_interrupted = "interrupted; nothing was written."

    options = (
        option(
            "-o",
            dest="out",
            metavar="OUT",
            help="file to write; with --split or --shard-bytes the pattern of names; or a directory, with / at its end",
        ),
        option(
            "--shard-bytes", metavar="SIZE", default="0", help="begin another file after so much, such as 500M or 2G"
        ),
        option(
            "--where",
            action="append",
            default=[],
            metavar="SQL",
            help="take documents of which it is true: distance <= 3, lang IN ('cs', 'sk'), host NOT LIKE "
            "'%%.a.example', crawl_date >= '2026-06' ...; may be repeated",
        ),
        option("--drop-host", action="append", default=[], metavar="LIST", help="file with hosts to drop"),
        option("--drop-url", action="append", default=[], metavar="LIST", help="file with URLs to drop"),
        option(
            "--split",
            action="append",
            default=[],
            metavar="SQL",
            help="a file for each value of lang, tld, substr(crawl_date, 1, 7) ...; may be repeated",
        ),
        option(
            "--pii",
            choices=("mark", "mask"),
            help="give the places of e-mail addresses, phone, account, card and national numbers and IP addresses, or "
            "put <EMAIL> and the like in their place",
        ),
        option("--annotator", metavar="MODULE:FUNCTION", help="function that gives CoNLL-U for (text, language)"),
        option("--summary", choices=["eu"], help="write the public summary of training content to the directory OUT"),
        option("--small-provider", action="store_true", help="list fewer domains in it: 5 %%, and 1,000 at most"),
        option("--salvage", action="store_true", help="leave out what is damaged; exit with 1 if there is any"),
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        from spiderling.export.formats import FORMATS

        parser.add_argument("--format", choices=FORMATS, help="of OUT, where its name does not say it")

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        if not args or not opts.out:
            raise UsageError("say what to export, and where to: scrapy export crawls/cs -o cs.parquet")
        given = {name for name, value in vars(opts).items() if value != self._parser.get_default(name)}
        if opts.summary and (idle := given & _OF_DOCUMENTS):
            raise UsageError(f"a summary is of a whole crawl; leave --{min(idle).replace('_', '-')} out.")
        if opts.summary:
            yield from self._summary(args, opts)
            return
        if opts.small_provider:
            raise UsageError("--small-provider goes with --summary eu")
        from spiderling.export.export import export
        from spiderling.export.sources import Salvage, Selection, account, corpus_of

        salvage = Salvage() if opts.salvage else None
        selection = Selection(opts.where)
        try:
            corpus = corpus_of(args, opts.salvage)
            plan = _plan(opts, selection, corpus)
            documents = corpus.stored(salvage.documents) if salvage else corpus.stored()
            notes = {"left_out": salvage.losses} if salvage else {}
            summary = export(corpus, with_progress(documents, "documents", corpus.documents), plan, notes)
        except DamageError as error:
            raise DamageError(f"{error} With --salvage everything that is whole is written.") from error
        for warning in (*corpus.troubles, *selection.warnings()):
            self.warn(warning)
        self.exitcode = 0 if summary.files and not (salvage and salvage.losses) else 1
        yield from _result(summary, selection)
        if salvage is not None:
            yield from account(salvage.losses)
            if not salvage.losses:
                yield "Every segment is whole; nothing was left out."

    def _summary(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        if len(args) != 1:
            raise UsageError("a summary is of one crawl: scrapy export crawls/cs --summary eu -o summary")
        from spiderling.export.summary import write_summary

        written = write_summary(Path(args[0]), Path(opts.out), opts.small_provider)
        yield f"{', '.join(map(str, written))}: a person has to fill in the fields that are marked."


def _plan(opts: argparse.Namespace, selection: Selection, corpus: Corpus) -> ExportPlan:
    from spiderling.export.export import ExportPlan
    from spiderling.export.formats import format_of
    from spiderling.export.personal_data import PersonalData

    if opts.pii and any(re.search(r"\bpii\b", condition) for condition in opts.where):
        raise BadInput("--where sees what is there before --pii: export with --pii, and take from that by --where.")
    hosts = {name: read_list(name) for name in opts.drop_host}
    urls = {name: read_list(name) for name in opts.drop_url}
    taken: set[str] = set()
    for name, lists in (("hosts", hosts), ("urls", urls)):  # other sources may hold what a crawl took down
        if entries := [entry for said in corpus.taken_down for entry in said[name]]:
            lists[f"taken down: {name}"] = entries
            taken |= {*entries}
    drop = DropList(chain.from_iterable(hosts.values()), chain.from_iterable(urls.values()))
    drop.idle -= taken
    out = Path(opts.out)
    is_dataset = opts.out.endswith("/") or os.path.isdir(out)  # false for a name that is too long
    return ExportPlan(
        out,
        (opts.format or "parquet") if is_dataset else format_of(out.name, opts.format or ""),
        tuple(opts.split),
        parse_size(opts.shard_bytes),
        selection,
        drop,
        {name: len(entries) for name, entries in (hosts | urls).items()},
        is_dataset=is_dataset,
        annotate=_function(opts.annotator) if opts.annotator else None,
        personal=PersonalData(opts.pii) if opts.pii else None,
    )


def _function(name: str) -> Any:
    """Raises BadInput."""
    sys.path.append(os.getcwd())
    try:
        return resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadInput(f"--annotator {name}: {error}; give a function as my.module:function.") from None


def _result(summary: Summary, selection: Selection) -> Iterator[str]:
    others = "".join(f", {number:,} left out by {what}" for what, number in selection.left_out.items())
    counts = f"{summary.dropped:,} dropped{others}"
    if not summary.files:
        yield f"No document is left, so nothing is written; {counts}."
    else:
        yield f"{summary.kept:,} documents in {_place(summary)}, {counts}."
    if summary.idle:
        more = " ..." if len(summary.idle) > _MAX_NAMED else ""
        yield f"Entries without a document: {', '.join(summary.idle[:_MAX_NAMED])}{more}"


def _place(summary: Summary) -> str:
    names = [file.name for file in summary.files]
    if len(names) > 1:
        return f"{len(names):,} files ({names[0]} ...) in {summary.directory}"
    return str(summary.directory / names[0])
