"""``scrapy dedup IN... -o OUT``: finished corpora without the text that stands in them before."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from scrapy.exceptions import UsageError

from spiderling.cli.command import SpiderlingCommand, option


class Command(SpiderlingCommand):
    arguments = "JOBDIR|FILE... -o OUT [options]"
    summary = "Take near-duplicates out of finished corpora, by onion's rule"
    description = (
        "Write the corpora of crawls (their directories) or files to OUT without the paragraphs of which more "
        "than half of the word 7-tuples stand in paragraphs before them; the first occurrence stays, so give the "
        "better corpus first. OUT may be of any format that scrapy export writes. "
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
        option("--temp", metavar="DIR", help="where OUT.work is made, some 10 to 20 bytes a word; default: beside OUT"),
    )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        if not args or not opts.out:
            raise UsageError("say what to take, and where to put it: scrapy dedup crawls/cs -o cs.prevert.zst")

        from spiderling.library import dedup

        totals, kept = dedup(
            args, opts.out, window=opts.n, threshold=opts.threshold, unit=opts.unit, mark=opts.mark,
            memory=opts.memory, temp=opts.temp or "", warn=self.warn,
        )  # fmt: skip
        share = 100 * totals.duplicates / max(1, totals.units)
        yield (
            f"{totals.duplicates:,} of {totals.units:,} {opts.unit}s are duplicates ({share:.1f} %); "
            f"{kept:,} of {totals.documents:,} documents in {opts.out}."
        )
