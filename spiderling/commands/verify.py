"""``scrapy verify CORPUS``: whether a published corpus is as its card says, and what allowed each document."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from spiderling.cli.command import SpiderlingCommand, option

_MAX_FINDINGS = 20  # findings that are printed; chosen: what fits on a screen


class Command(SpiderlingCommand):
    arguments = "CORPUS [--url URL]"
    number = 1
    summary = "Check a published corpus by its card: files, documents, and the statements that allowed them"
    description = (
        "Check the corpus of a crawl (its directory), an export or a dataset by the card beside it, without the state "
        "of the crawl. A byte that was changed in a file, a document, a statement or the card is found; exit code 1. "
        "Compare the root that is printed with the published one. --url shows what the site said of a document. "
        "Example: scrapy verify cs.jsonl.zst --url http://a.example/"
    )

    options = (option("--url", default="", metavar="URL", help="show the receipts of the documents of this URL"),)

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        from spiderling.export.verification import Verification, cards_of

        for card in cards_of(Path(args[0])):
            found = Verification(card, opts.url)
            yield from found.receipts
            yield from found.findings[:_MAX_FINDINGS]
            if len(found.findings) > _MAX_FINDINGS:
                yield f"... and {len(found.findings) - _MAX_FINDINGS:,} more"
            if found.findings:
                self.exitcode = 1
                yield f"Do not use it as it is: get the files of {args[0]} again from where they were published."
                continue
            yield (
                f"{found.documents:,} documents are as they were, {found.taken_down:,} were taken down, "
                f"{found.statements:,} statements; root {found.root}"
            )
            if opts.url and not found.receipts:
                self.exitcode = 1
                yield f"No document of {opts.url} is in it."
