"""What a crawl tells of itself in words: at its start, on the way, and as a summary at its end."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from spiderling.base.errors import StorageError
from spiderling.base.option_values import parse_recrawl, parse_recrawl_requests
from spiderling.base.terminal import count_of
from spiderling.frontier import threshold
from spiderling.jobdir.as_text import named_counts, summary_rows
from spiderling.jobdir.inspection import commands_for, counts_under

if TYPE_CHECKING:  # it stands on the same floor
    from spiderling.crawl.crawl import Crawl


def source(crawl: Crawl) -> str:
    """The yield rate, and where the next pages come from, in two figures."""
    ledger = crawl.frontier.ledger
    if crawl.archives is not None:
        return f"; archives: {crawl.archives.standing().partition(', ')[0]}"
    waiting = f"{count_of(ledger.waiting, 'URL')} waiting"
    if crawl.frontier.recrawl.is_on and not ledger.waiting:
        waiting = f"{ledger.totals['revisits']:,} revisits of known pages"
    return f", yield rate {ledger.yield_rate:.4f}; {waiting}"


def start_line(crawl: Crawl) -> str:
    """What is crawled, where, and by which threshold hosts are retired."""
    factor = crawl.frontier.host_closing.rule.factor
    rule = "no host is retired for its yield"
    if factor is not None:
        name = crawl.options.yield_profile
        rule = f"yield profile {name}: t(100)={threshold(100, factor):.4f}, t(1000)={threshold(1000, factor):.4f}"
    verb = "Resuming" if crawl.is_resumed else "Starting"
    accepted = {info.code for info in crawl.accepted}
    languages = ", ".join(f"{info.name} ({info.code})" for info in crawl.accepted)
    others = ", ".join(code for code in crawl.recognised if code not in accepted) or "nothing"
    return (
        f"{verb} the crawl in {crawl.jobdir.path.resolve()}: {languages}, told apart from {others}; "
        f"{'' if crawl.archives is not None else f'strategy {crawl.options.strategy}; '}{rule}; "
        f"{_recrawled(crawl)}text steps: {crawl.text_steps}"
    )


def _recrawled(crawl: Crawl) -> str:
    """For how long, and with which budget, known pages are revisited; '' if they are not."""
    days = parse_recrawl(crawl.options.recrawl)
    requests = parse_recrawl_requests(crawl.options.recrawl_requests)
    if not days:
        return ""
    how_long = "without end" if math.isinf(days) else f"for {days:,.0f} days in all"
    many = f"{requests:.1%} of the known pages" if requests < 1 else f"{requests:,.0f} of them"
    return f"recrawled {how_long}, with revisits of up to {many} a day; "


def summary(crawl: Crawl, reason: str) -> str:
    """The crawl so far, as a table a person can read."""
    states = {state.value: number for state, number in crawl.frontier.host_states.hosts_by_state().items()}
    counts = crawl.frontier.ledger.counts()
    totals = crawl.frontier.ledger.totals
    balance = crawl.frontier.ledger.balance
    errors = totals["internal_errors"]
    is_lost = _is_lost(crawl)
    has_corpus = crawl.checkpoint.lengths and not is_lost
    rows = summary_rows(totals, counts_under("language", counts), states) | {
        "ends": named_counts(counts_under("end", counts)),
        "errors": ""
        if not errors
        else f"{errors:,} of Spiderling's own ended URLs or site files; "
        f"{crawl.jobdir.log} has each, please report them",
        "remembers": _remembered(crawl),
        "recrawl": named_counts(Counter({name: n for name, n in totals.items() if name.startswith("revisit") and n})),
        "archives": crawl.archives.standing() if crawl.archives is not None else "",
        "refused": named_counts(counts_under("mention", counts)),
        "balance": f"{balance.discovered:,} discovered = {balance.ended:,} ends + {balance.waiting:,} waiting + "
        f"{balance.in_transit:,} in transit{' (WRONG)' if balance.error else ''}",
        "corpus": str(crawl.jobdir.corpus / "*.prevert.zst") if has_corpus else "",
        "state": "" if is_lost else str(crawl.jobdir.database),
        "all shards": _all_shards(crawl),
    }
    table = "\n".join(f"  {name:<11}{value}" for name, value in rows.items() if value)
    return f"The crawl in {crawl.jobdir.path.resolve()} {_standing(crawl, reason)}{_hint(crawl)}\n{table}"


def _all_shards(crawl: Crawl) -> str:
    """What the shards did together, of which this summary tells one, as far as this one knows, and how to see it."""
    if not crawl.options.cluster:
        return ""
    totals = crawl.totals()
    return (
        f"{totals['pages']:,} pages, {totals['documents']:,} documents, {totals['words']:,} words; "
        f"{commands_for(crawl.jobdir.path.parent)}"
    )


def _remembered(crawl: Crawl) -> str:
    """What the near-duplicate filter knows."""
    if crawl.near is None or not crawl.near.filter.documents:
        return ""
    seen = crawl.near.filter
    texts = count_of(seen.documents, "document")
    text = f"the text of {texts} in {seen.bytes / 1e6:,.0f} MB, to know near-duplicates by"
    forgotten = f"; {seen.forgotten:,} are forgotten: SPIDERLING_DEDUP_BYTES" if seen.forgotten else ""
    return f"{text}{' (every fourth shingle)' if seen.is_sampling else ''}{forgotten}"


def _hint(crawl: Crawl) -> str:
    """Why a crawl that fetched no page may have failed."""
    ends = crawl.frontier.ledger.ends
    if crawl.frontier.ledger.totals["pages"]:
        return ""
    if crawl.archives is not None:
        return "" if crawl.archives.unread else " There is no page in the archives that is wanted."
    causes = "; ".join(end.help for end, number in ends.most_common(2) if number)
    return f" No page could be fetched: {causes}." if causes else ""


def _is_lost(crawl: Crawl) -> bool:
    """Whether something that the crawl has written is not there any more."""
    try:
        crawl.checkpoint.refuse_lost()
    except StorageError:
        return True
    return False


def _standing(crawl: Crawl, reason: str) -> str:
    """How the crawl ended, and how it goes on; it follows the crawl's name in a sentence."""
    if crawl.checkpoint.error is not None:
        if _is_lost(crawl):
            return "has stopped; the error above says why."
        return (
            "has stopped; the same command goes on from its last checkpoint. Some of what is counted here came after "
            "that."
        )
    if not crawl.is_finished or (crawl.archives is not None and crawl.archives.unread):
        way = "a larger budget lets it go on" if reason.startswith("budget") else "the same command goes on with it"
        return f"was paused ({reason}); {way}."
    if crawl.archives is not None:
        return "is finished: all archives are read."
    if crawl.frontier.recrawl.is_on:
        return f"is finished: its recrawl of {crawl.options.recrawl} is over; a longer one or -a recrawl=on goes on."
    if crawl.frontier.ledger.totals["requests"] == crawl.requests_before:
        return (
            "is finished: no URL waits. To start afresh, remove that directory or give another with -s JOBDIR=...; "
            "to go on, add seeds with -a seeds=..., or fetch what is new with -a recrawl=on."
        )
    return "is finished."
