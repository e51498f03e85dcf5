"""``scrapy export IN... -o OUT [--drop-host LIST] [--drop-url LIST]``: a corpus without what has to go."""

from __future__ import annotations

import sys
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from spiderling.errors import SpiderlingError
from spiderling.export import FORMATS, DropList, corpus_of, export, read_list
from spiderling.progressline import with_progress

if TYPE_CHECKING:
    import argparse

_MOST_NAMED = 10


class Command(ScrapyCommand):
    """Thin shell around ``spiderling.export``."""

    requires_project = False
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy reads it from the class

    def syntax(self) -> str:
        return "JOBDIR|FILE... -o OUT [--drop-host LIST] [--drop-url LIST]"

    def short_desc(self) -> str:
        return "Write a finished corpus anew, without the documents of given hosts and URLs"

    def long_desc(self) -> str:
        return (
            "Copy the corpus of crawls (their directories) or files to OUT, without the documents of the hosts and "
            "URLs in the lists: one entry a line, '*.a.example' for all hosts below that name, a URL with * at its end "
            "for all that begin so. OUT.json says what it was made of, OUT.dropped.tsv which documents were left out "
            "and why. Nothing is changed in the crawls. Example: scrapy export crawls/cs -o cs.prevert.zst "
            "--drop-host taken-down.txt"
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("-o", dest="out", metavar="OUT", help="file to write; packed if its name ends in .zst")
        parser.add_argument("--format", choices=list(FORMATS), default="prevertical", help="of OUT")
        parser.add_argument("--drop-host", action="append", default=[], metavar="LIST", help="file with hosts to drop")
        parser.add_argument("--drop-url", action="append", default=[], metavar="LIST", help="file with URLs to drop")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if not args or not opts.out:
            raise UsageError("say what to export, and where to: scrapy export crawls/cs -o cs.prevert.zst")
        try:
            self._export(args, opts)
        except SpiderlingError as error:
            print(f"scrapy export: {error}", file=sys.stderr)
            self.exitcode = 1

    def _export(self, names: list[str], opts: argparse.Namespace) -> None:
        hosts = {name: read_list(name) for name in opts.drop_host}
        urls = {name: read_list(name) for name in opts.drop_url}
        drop = DropList(chain.from_iterable(hosts.values()), chain.from_iterable(urls.values()))
        lists = {name: len(entries) for name, entries in (hosts | urls).items()}
        corpus = corpus_of(names)
        watch = partial(with_progress, unit="documents", total=corpus.documents)
        summary = export(corpus, Path(opts.out), opts.format, drop, lists, watch)
        print(f"{summary.kept:,} documents in {opts.out}, {summary.dropped:,} dropped.")
        if summary.idle:
            more = " ..." if len(summary.idle) > _MOST_NAMED else ""
            print(f"Entries without a document: {', '.join(summary.idle[:_MOST_NAMED])}{more}")
