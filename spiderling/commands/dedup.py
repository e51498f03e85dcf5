"""``scrapy dedup IN... -o OUT``: finished corpora without the text that stands in them before."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from spiderling.base.errors import BadInput, SpiderlingError
from spiderling.base.progress_line import with_progress
from spiderling.base.url_lists import DropList
from spiderling.commands.export import size
from spiderling.export.deduplication import Deduplication, Rule, Totals
from spiderling.export.export import corpus_of, export
from spiderling.export.formats import format_of


class Command(ScrapyCommand):
    """Thin shell around ``spiderling.export.deduplication``."""

    requires_project = False
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy reads it from the class

    def syntax(self) -> str:
        return "JOBDIR|FILE... -o OUT [options]"

    def short_desc(self) -> str:
        return "Take near-duplicates out of finished corpora, by onion's rule"

    def long_desc(self) -> str:
        return (
            "Write the corpora of crawls (their directories) or files to OUT without the paragraphs of which more "
            "than half of the word 7-tuples stand in paragraphs before them; the first occurrence stays, so give the "
            "better corpus first. OUT may be of any format that scrapy export writes. A run that was interrupted or "
            "killed goes on with the same command. Example: scrapy dedup crawls/cs old/cs.prevert.zst -o cs.prevert.zst"
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add = parser.add_argument
        add("-o", dest="out", metavar="OUT", help="file to write")
        add("--unit", choices=["paragraph", "document"], default="paragraph", help="what is compared and left out")
        add("-n", type=int, default=7, metavar="WORDS", help="words of a tuple (7); text without spaces has characters")
        add("--threshold", type=float, default=0.5, metavar="SHARE", help="share of tuples seen, above which (0.5)")
        add("--mark", action="store_true", help='keep duplicates, with dup="1"')
        add("--memory", default="2G", metavar="SIZE", help="take no more memory than this (2G)")
        add("--temp", metavar="DIR", help="where OUT.work is made, some 10 to 20 bytes a word; default: beside OUT")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if not args or not opts.out:
            raise UsageError("say what to take, and where to put it: scrapy dedup crawls/cs -o cs.prevert.zst")
        try:
            _dedup(args, opts)
        except (SpiderlingError, MemoryError) as error:
            print(f"scrapy dedup: {str(error) or 'there is too little memory.'}", file=sys.stderr)
            self.exitcode = 1
        except KeyboardInterrupt:
            print("scrapy dedup: interrupted; the same command goes on from here.", file=sys.stderr)
            self.exitcode = 130


def _dedup(names: list[str], opts: argparse.Namespace) -> None:
    out, rule = Path(opts.out), Rule(opts.n, opts.threshold, opts.unit, opts.mark)
    if out.exists():
        raise BadInput(f"{out} exists; remove it, or give another name.")
    corpus, format_name = corpus_of(names), format_of(out.name)
    work = Path(opts.temp or out.parent) / f"{out.name}.work"
    run = Deduplication(corpus, rule, work, size(opts.memory))
    try:
        totals = run.judge(with_progress)
        kept = export(
            corpus, out, format_name, DropList(), {},
            lambda documents: run.without_duplicates(with_progress(documents, "documents written", totals.documents)),
            notes={"dedup": rule._asdict() | totals._asdict()},
        ).kept  # fmt: skip
    finally:
        run.close()
    shutil.rmtree(work)
    _print(totals, kept, rule, out)


def _print(totals: Totals, kept: int, rule: Rule, out: Path) -> None:
    share = 100 * totals.duplicates / max(1, totals.units)
    print(
        f"{totals.duplicates:,} of {totals.units:,} {rule.unit}s are duplicates ({share:.1f} %); "
        f"{kept:,} of {totals.documents:,} documents in {out}."
    )
