"""``scrapy export IN... -o OUT``: a corpus, or a part of it, in the format and the files that somebody needs."""

from __future__ import annotations

import argparse
import re
import sys
from functools import partial
from itertools import chain
from pathlib import Path

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from spiderling.base.errors import BadInput, DamageError, SpiderlingError
from spiderling.base.progress_line import with_progress
from spiderling.base.url_lists import DropList, read_list
from spiderling.corpus.reader import stored_documents
from spiderling.export.export import Summary, corpus_of, export
from spiderling.export.formats import FORMATS, format_of
from spiderling.export.salvage import Salvage, account
from spiderling.export.selection import SPLITS, Layout, Selection

_MOST_NAMED, _MOST_DIGITS = 10, 18
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


class Command(ScrapyCommand):
    """Thin shell around ``spiderling.export.export``."""

    requires_project = False
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy reads it from the class

    def syntax(self) -> str:
        return "JOBDIR|FILE... -o OUT [options]"

    def short_desc(self) -> str:
        return "Write a finished corpus, or a part of it, as JSONL, Parquet, text, vertical or prevertical"

    def long_desc(self) -> str:
        return (
            "Copy the corpus of crawls (their directories) or files to OUT, whose name says the format: .prevert, "
            ".vert, .jsonl, .txt (each packed with a further .zst or .gz) or .parquet. --where takes documents by "
            "their attributes, lists of hosts and URLs keep documents out: one entry a line, '*.a.example' for all "
            "hosts below that name, a URL with * at its end for all that begin so. OUT.json says what it was made of, "
            "OUT.dropped.tsv which documents the lists left out. Nothing is changed in the crawls. --salvage takes "
            "what is whole of a damaged corpus, with or without its state, and says what it had to leave out. "
            "Example: scrapy export crawls/cs -o cs.parquet --split lang --where 'badness<=10' --max-distance 3"
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add = parser.add_argument
        add("-o", dest="out", metavar="OUT", help="file to write; with --split or --shard-bytes the pattern of names")
        add("--format", choices=FORMATS, help="of OUT, where its name does not say it")
        add("--split", action="append", default=[], choices=list(SPLITS), help="a file for each; may be repeated")
        add("--shard-bytes", metavar="SIZE", default="0", help="begin another file after so much, such as 500M or 2G")
        add("--where", action="append", default=[], metavar="CONDITION", help="take documents of which it is true: "
            "distance<=3, lang=cs,sk, host!=*.a.example, crawl_date>=2026-01 ...; may be repeated")  # fmt: skip
        add("--max-distance", type=int, metavar="N", help="take hosts up to N hops from the seeds only")
        add("--sample", type=float, default=1, metavar="SHARE", help="take this share of the documents, such as 0.01")
        add("--seed", default="", metavar="TEXT", help="draw another sample of the same size")
        add("--drop-host", action="append", default=[], metavar="LIST", help="file with hosts to drop")
        add("--drop-url", action="append", default=[], metavar="LIST", help="file with URLs to drop")
        add("--salvage", action="store_true", help="leave out what is damaged; exit with 1 if there is any")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if not args or not opts.out:
            raise UsageError("say what to export, and where to: scrapy export crawls/cs -o cs.parquet")
        try:
            self.exitcode = _export(args, opts)
        except DamageError as error:
            print(f"scrapy export: {error} With --salvage everything that is whole is written.", file=sys.stderr)
            self.exitcode = 1
        except (SpiderlingError, MemoryError) as error:
            print(f"scrapy export: {str(error) or 'there is too little memory.'}", file=sys.stderr)
            self.exitcode = 1
        except KeyboardInterrupt:
            print("scrapy export: interrupted; nothing was written.", file=sys.stderr)
            self.exitcode = 130


def _export(names: list[str], opts: argparse.Namespace) -> int:
    """The exit code: 1 if something had to be left out because it is damaged."""
    hosts = {name: read_list(name) for name in opts.drop_host}
    urls = {name: read_list(name) for name in opts.drop_url}
    drop = DropList(chain.from_iterable(hosts.values()), chain.from_iterable(urls.values()))
    lists = {name: len(entries) for name, entries in (hosts | urls).items()}
    selection = Selection(opts.where, opts.max_distance, opts.sample, opts.seed)
    layout = Layout(tuple(opts.split), size(opts.shard_bytes))
    salvage = Salvage() if opts.salvage else None
    corpus = corpus_of(names, salvage)
    watch = partial(with_progress, unit="documents", total=corpus.documents)
    out = Path(opts.out)
    summary = export(
        corpus, out, opts.format or format_of(out.name), drop, lists, watch, selection, layout,
        {"left_out": salvage.losses} if salvage else {}, salvage.documents if salvage else stored_documents,
    )  # fmt: skip
    for warning in (*corpus.troubles, *selection.warnings()):
        print(f"scrapy export: {warning}", file=sys.stderr)
    _print(summary, out, selection)
    if salvage is None:
        return 0
    print("\n".join(account(salvage.losses)) or "Every segment is whole; nothing was left out.")
    return 1 if salvage.losses else 0


def _print(summary: Summary, out: Path, selection: Selection) -> None:
    where = str(out) if [file.name for file in summary.files] == [out.name] else f"{len(summary.files):,} files"
    others = "".join(f", {number:,} left out by {what}" for what, number in selection.left_out.items())
    print(f"{summary.kept:,} documents in {where}, {summary.dropped:,} dropped{others}.")
    if summary.idle:
        more = " ..." if len(summary.idle) > _MOST_NAMED else ""
        print(f"Entries without a document: {', '.join(summary.idle[:_MOST_NAMED])}{more}")


def size(text: str) -> int:
    """Bytes; raises BadInput.

    >>> size("1.5G")
    1500000000
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?) *([kmgt]?)b?", text.strip().lower())
    if match is None or len(match[1]) > _MOST_DIGITS:
        raise BadInput(f"{text!r} is no size; write 500M, 2G or a number of bytes.")
    return int(float(match[1]) * _UNITS[match[2]])
