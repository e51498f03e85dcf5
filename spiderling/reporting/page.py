"""The page of a crawl, from its status: served while the crawl runs, or saved as one file with its data inside.

The saved page needs no network: its Content-Security-Policy makes the browser refuse anything but its own script.
What that script draws, curves too, stands in tables for browsers that run none.  It also says what to do next, in
plain words.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, replace
from importlib.resources import files
from typing import Any

from spiderling.base.reasons import Reason
from spiderling.base.terminal import count_of, printable
from spiderling.frontier.hosts import CLOSED_STATES
from spiderling.jobdir.as_text import Table, facts_of, rows_of, tables_of
from spiderling.jobdir.inspection import AnyCrawl
from spiderling.jobdir.status import hosts_of, rates, status_of
from spiderling.jobdir.status_schema import Curves, Rates, Status

MAX_HOSTS = 1000
"""Hosts that a saved page names for what they gave, and for what they cost (chosen: they are half a megabyte)."""
_MAX_ROWS = 25  # rows of a table that stands for a curve or a list; chosen
_NARROW_COLUMNS = 4  # columns of a table up to which it fits into a window of 400 pixels; chosen
_LONG = 24  # characters of a text from which it may be broken to fit a table into the window; chosen
_DRAWN = ("ends", "mentions", "hosts", "revisits", "languages", "statements", "events")
"""Fields of a status that the script draws; the others stand in tables for every browser."""
_LIVE = re.compile(r"<!--live-->.*?<!--/live-->", re.DOTALL)  # what only the page of a running crawl has
_LOADED = re.compile(r"<!--loaded-->.*?<!--/loaded-->", re.DOTALL)  # where the page names the files that it loads
_POLICY = "default-src 'none'; script-src '{}'; style-src 'unsafe-inline'; img-src data:"
_RECENT = 0.1  # share of the downloaded bytes that counts as the end of the crawl; chosen
_POOR = 0.25  # yield rate at the end / mean yield rate, below which the advice is to stop; chosen
_FAIR = 0.6  # the same ratio, from which all is well; chosen
_NOTABLE = 0.2  # share of the tried URLs from which a Reason is named; chosen
_EXPECTED = {reason.value for reason in (Reason.KEPT, Reason.REDIRECTED, Reason.SITEMAP, *CLOSED_STATES.values())}
"""Ends that are no news, however many they are."""


def part(name: str) -> str:
    """page.html, page.css or page.js, as they are served."""
    return files(__package__).joinpath(name).read_text("utf-8")


def page_file(crawl: AnyCrawl) -> str:
    """The page of *crawl* as one file: status and hosts as data for the script, advice and tables as they are."""
    status = status_of(crawl)
    orders = ("words", "downloaded_bytes")
    named = {host.name: host for order in orders for host in hosts_of(crawl, order=order, most=MAX_HOSTS).hosts}
    hosts = [*named.values()]
    tables = [*tables_of(replace(status, best_hosts=None))]  # those hosts are on it already
    rows = [asdict(host) for host in hosts]
    drawn = [Table("", "The crawl", rows_of({name: value for name, value in facts_of(status).items() if value}))]
    drawn += [_growth(status.curves), Table("", "Hosts", rows_of(rows[:_MAX_ROWS]))] if status.curves else []
    drawn += [table for table in tables if table.field in _DRAWN]
    without_script = "".join(map(html_table, drawn))
    data = json.dumps({"status": asdict(status), "hosts": rows}, separators=(",", ":")).replace("<", "\\u003c")
    script = part("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = _POLICY.format(f"sha256-{digest}")
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><style>{part("page.css")}</style>'
        "<noscript><style>.drawn { display: none; }</style></noscript>"
    )
    body = {
        '<span id="lang"></span>': f'<span id="lang">{_text(status.lang)}</span>',
        ">loading<": f">{status.phase}<",
        "<!--advice-->": (
            '<section aria-labelledby="advice-head"><h2 id="advice-head">What to do next</h2><ul>'
            + "".join(f"<li>{_text(sentence)}</li>" for sentence in advice(status))
            + "</ul></section>"
        ),
        "<!--tables-->": f"<noscript>{without_script}</noscript>"
        + "".join(html_table(table) for table in tables if table.field not in _DRAWN),
        "<!--data-->": f'<script type="application/json" id="saved">{data}</script><script>{script}</script>',
    }
    page = _LOADED.sub(lambda _: head, _LIVE.sub("", part("page.html")))
    for mark, content in body.items():
        page = page.replace(mark, content, 1)
    return page


def _growth(curves: Curves) -> Table:
    """Points of the curves, the newest first."""
    points = [dict(zip(curves.whole, values, strict=True)) for values in zip(*curves.whole.values(), strict=True)]
    step = -(-len(points) // _MAX_ROWS) or 1
    return Table("", "Growth", rows_of(points[::-step]))


def html_table(table: Table) -> str:
    """The table as HTML; in a narrow window each row of a wide one becomes a block, with the names of its columns."""
    if not table.rows:
        return ""
    columns = {name: isinstance(value, (int, float)) for name, value in table.rows[0].items()}
    head = "".join(_cell("th", name.replace("_", " "), right, ' scope="col"') for name, right in columns.items())
    labels = {name: f' data-label="{html.escape(name.replace("_", " "))}"' for name in columns}
    labels[next(iter(columns))] = ""
    body = "".join(
        f"<tr>{''.join(_cell('td', row[name], right, labels[name]) for name, right in columns.items())}</tr>"
        for row in table.rows
    )
    note = f'<p class="note">{_text(table.note)}</p>' if table.note else ""
    label = f'aria-label="{html.escape(table.title, quote=True)}"'
    kind = "cards" if len(columns) > _NARROW_COLUMNS else ""
    return (
        f'<section><h2>{_text(table.title)}</h2>{note}<div class="scroll" role="region" tabindex="0" {label}>'
        f'<table {label} class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></section>'
    )


def _cell(tag: str, value: Any, right: bool, more: str) -> str:
    text = f"{value:,}" if isinstance(value, (int, float)) else str(value)
    kind = ' class="n"' if right else ' class="long"' if len(text) > _LONG else ""
    return f"<{tag}{kind}{more}>{_text(text)}</{tag}>"


def _text(text: str) -> str:
    """*text* as HTML; names come from the web and may hold anything."""
    return html.escape(printable(text), quote=False)


# -- what to do next


def advice(status: Status) -> list[str]:
    """Sentences, the weightiest first; *status* with its curves."""
    if not status.totals["pages"]:
        return ["No page has been fetched yet; the reasons below say why, if URLs have ended."]
    return [*_going_on(status), *_shards(status), *_bound(status), *_spent_on(status)]


def recent(curves: Curves) -> Rates | None:
    """The rates while about the last tenth of the bytes came; None when there is too little to tell."""
    whole = curves.whole
    down = whole["downloaded_bytes"]
    first = next((at for at in range(len(down) - 2, -1, -1) if down[at] <= down[-1] * (1 - _RECENT)), None)
    if first is None or down[-1] == down[first]:
        return None
    return rates(*({name: int(column[at]) for name, column in whole.items()} for at in (-1, first)))


def _going_on(status: Status) -> Iterator[str]:
    waiting = status.urls.waiting + status.urls.in_transit
    if status.archives_unread:
        yield f"Archives that are not read to their end: {status.archives_unread:,}. The same command reads on."
        return
    if not waiting and status.revisits is not None and status.phase != "finished":
        yield "No new URL waits: the recrawl asks again for known pages. If it was stopped, the same command goes on."
        return
    if not waiting:
        yield (
            "The crawl is finished: no URL waits. The same command goes on with more seeds (-a seeds=FILE; "
            "scrapy seeds finds some), or with a milder yield profile, which reopens the retired hosts that it "
            "spares; 'reopen' in control.yaml reopens single hosts."
        )
        return
    now = recent(status.curves) if status.curves else None
    if now is None:
        wait = f"{count_of(waiting, 'URL')} {'waits' if waiting == 1 else 'wait'}"
        yield f"{wait}; it is too early to say how the yield goes."
        return
    mean = status.overall.yield_rate
    news = (
        f"the last {size(now.downloaded_bytes_per_s * now.seconds)} gave {now.yield_rate:.4f} of their bytes as text "
        f"(in all: {mean:.4f}), {now.words_per_hour:,.0f} words an hour"
    )
    if now.yield_rate < _POOR * mean:
        yield (
            f"Consider to stop: {news}. The rich hosts are used up; new seeds bring more than what waits. "
            "SPIDERLING_MARGINAL_BYTES stops a crawl at such a point."
        )
        return
    verdict = "The yield sinks" if now.yield_rate < _FAIR * mean else "Let it go on"
    rest = "the URL that waits takes" if waiting == 1 else f"the {waiting:,} URLs that wait take"
    yield f"{verdict}: {news}. At this pace {rest} {duration(waiting / max(now.pages_per_s, 1e-3))}."


def _shards(status: Status) -> Iterator[str]:
    if status.note:
        yield f"This is not all: {status.note}."
    waiting = Counter[str]()
    for shard in status.shards:
        waiting.update(shard.messages)
    if waiting and not status.process:
        named = ", ".join(sorted(waiting, key=int))
        messages = count_of(waiting.total(), "message")
        yield f"{messages} with links still {'waits' if waiting.total() == 1 else 'wait'} for shard {named}: start it."
    if len(status.shards) > 1:
        yield (
            "Each shard has left out what it had kept before, but knows nothing of the texts of the others: "
            f"`scrapy dedup {status.directory} -o corpus.prevert.zst` takes out what several have."
        )


def _bound(status: Status) -> Iterator[str]:
    lines = sum(status.bottlenecks.values())
    if lines:
        name = max(status.bottlenecks, key=status.bottlenecks.__getitem__)
        often = f"In {status.bottlenecks[name]:,} of {count_of(lines, 'progress line')} the bottleneck was {name}"
        yield f"{often}: docs/performance.md says what helps."


def _spent_on(status: Status) -> Iterator[str]:
    ends = Counter({end.reason: end.urls for end in status.ends})
    tried = max(1, ends.total() - sum(ends[reason.value] for reason in CLOSED_STATES.values()))
    for end in status.ends:
        share = end.urls / tried
        if share > _NOTABLE and end.reason not in _EXPECTED:
            yield f"{share:.0%} of the URLs that were tried ended as {end.reason}: {end.help}."
    if full := ends[Reason.HOST_FULL.value]:
        yield f"{count_of(full, 'URL')} came to a host whose queue was full: SPIDERLING_MAX_HOST_QUEUE."


def duration(seconds: float) -> str:
    """
    >>> duration(7384), duration(200_000)
    ('2 h 3 min', '2 d 7 h')
    >>> duration(104), duration(0)
    ('1 min 44 s', '0 s')
    """
    whole = int(seconds)
    units = {"d": whole // 86400, "h": whole // 3600 % 24, "min": whole // 60 % 60, "s": whole % 60}
    return " ".join([f"{number} {unit}" for unit, number in units.items() if number][:2]) or "0 s"


def size(number: float) -> str:
    """
    >>> size(19_270_000)
    '19.3 MB'
    """
    units = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"))
    unit, name = next((pair for pair in units if number >= pair[0]), (1e3, "kB"))
    return f"{number / unit:,.1f} {name}"
