"""``scrapy dedup IN... -o OUT``: finished corpora without the text that stands in them before."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.exceptions import UsageError

from spiderling.base.option_values import parse_size
from spiderling.cli.command import SpiderlingCommand, option

if TYPE_CHECKING:
    from spiderling.export.deduplication import DedupTotals


class Command(SpiderlingCommand):
    arguments = "JOBDIR|FILE... -o OUT [options]"
    summary = "Take near-duplicates out of finished corpora, by a rule after onion's"
    description = (
        "Write the corpora of crawls (their directories) or files to OUT without the paragraphs of which more "
        "than half of the word 7-tuples stand in paragraphs before them; the first occurrence stays, so give the "
        "better corpus first. OUT may be of any format that scrapy export writes. With --part and --range it does "
        "one step for one part of a corpus, whose parts many processes and machines share (docs/clusters.md). "
        "Example: scrapy dedup crawls/cs old/cs.prevert.zst -o cs.prevert.zst"
    )

    if_interrupted = "interrupted; nothing was written."

    options = (
        option("-o", dest="out", metavar="OUT", help="file to write"),
        option("--unit", choices=["paragraph", "document"], default="paragraph", help="what is compared and left out"),
        option(
            "-n", type=int, default=7, metavar="WORDS", help="words of a tuple (7); text without spaces has characters"
        ),
        option("--threshold", type=float, default=0.5, metavar="SHARE", help="share of tuples seen, above which (0.5)"),
        option("--mark", action="store_true", help='keep duplicates, with dup="1"'),
        option("--memory", default="2G", metavar="SIZE", help="take no more memory than this (2G)"),
        option(
            "--temp", metavar="DIR", help="where the work is done, some 12 bytes of disk a word; default: beside OUT"
        ),
        option(
            "--part", metavar="I/N", help="the corpus is this part, of 0/N to (N-1)/N: without -o, step 1; with it, 3"
        ),
        option("--range", metavar="I/R", help="step 2, for this range, of 0/R to (R-1)/R"),
    )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        if opts.out and opts.out.endswith("/"):
            raise UsageError("dedup writes a file: give its name, as cs.parquet, and export it to a directory")
        if opts.part or opts.range:
            yield from self._one_step(args, opts)
            return
        if not args or not opts.out:
            raise UsageError("say what to take, and where to put it: scrapy dedup crawls/cs -o cs.prevert.zst")

        from spiderling.library import dedup

        totals, kept = dedup(
            args, opts.out, window=opts.n, threshold=opts.threshold, unit=opts.unit, mark=opts.mark,
            memory=opts.memory, temp=opts.temp or "", warn=self.warn,
        )  # fmt: skip
        yield _result(totals, kept, opts)

    def _one_step(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        """A step for one part or range; one that is done is not done again."""
        is_range = bool(opts.range)
        if not opts.temp or bool(opts.part) == is_range or is_range == bool(args) or (is_range and opts.out):
            raise UsageError(
                "give --temp DIR, which all steps share, and for steps 1 and 3 the corpus with --part, for step 2 "
                "--range alone: scrapy dedup crawls/cc/017 --part 17/100 --temp DIR"
            )
        from spiderling.export.deduplication import Deduplication, Rule, Share
        from spiderling.export.export import ExportPlan
        from spiderling.export.formats import format_of
        from spiderling.export.sources import corpus_of
        from spiderling.jobdir.card import MANIFEST

        share = Share.of(opts.part or opts.range)
        out = Path(opts.out or "")
        plan = ExportPlan(out, format_of(out.name))
        if opts.out and out.exists() and plan.named(MANIFEST).exists():
            yield f"{out} is there."
            return
        run = Deduplication(
            Rule(opts.n, opts.threshold, opts.unit, opts.mark), Path(opts.temp), parse_size(opts.memory)
        )
        if opts.range:
            run.compare(share)
        elif not opts.out:
            run.collect(corpus_of(args), share)
        else:
            yield _result(*run.write(corpus_of(args), plan, share), opts)
        if not opts.out:
            yield f"{share.name('range' if opts.range else 'part')} is in {opts.temp}."


def _result(totals: DedupTotals, kept: int, opts: argparse.Namespace) -> str:
    share = 100 * totals.duplicates / max(1, totals.units)
    return (
        f"{totals.duplicates:,} of {totals.units:,} {opts.unit}s are duplicates ({share:.1f} %); "
        f"{kept:,} of {totals.documents:,} documents in {opts.out}."
    )
