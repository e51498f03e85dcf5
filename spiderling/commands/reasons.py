"""``scrapy reasons [WORD]``: every way in which a URL or a page can end, or its mention be refused."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from spiderling.base.reasons import MENTIONS, Reason
from spiderling.cli.command import SpiderlingCommand, none_has


class Command(SpiderlingCommand):
    arguments = "[WORD]"
    summary = "Explain the ways in which a URL can end"
    description = (
        "List every way in which a URL or a page can end, and every one in which the mention of a URL is refused; "
        "the counts are in the summary of a crawl. With a WORD, those with it in the name or the explanation. "
        "Example: scrapy reasons retired"
    )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        word = " ".join(args).lower()
        found = [reason for reason in Reason if word in f"{reason.value} {reason.help}".lower()]
        if not found:
            raise none_has(word, "reason")
        for title, is_mention in (("Ends:", False), ("Refused mentions:", True)):
            listed = [reason for reason in found if (reason in MENTIONS) is is_mention]
            yield from [title, *(f"  {reason.value:<19} {reason.help}" for reason in listed)] if listed else []
