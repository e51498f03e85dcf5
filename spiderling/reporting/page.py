"""The page of a crawl, from its status: served while the crawl runs, or saved as one file with its data inside.

The saved page needs no network: its Content-Security-Policy makes the browser refuse anything but its own script.
What that script draws, curves too, stands in tables for browsers that run none.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from contextlib import closing
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from spiderling.base.terminal import printable
from spiderling.jobdir.as_text import Table, facts_of, hosts_table, tables_of, time_of
from spiderling.jobdir.inspection import AnyCrawl, opened
from spiderling.jobdir.status import hosts_of, status_of
from spiderling.jobdir.status_schema import Curves
from spiderling.reporting.advice import advice, threshold_table

MAX_HOSTS = 1000
"""Hosts that a saved page names for what they gave, and for what they cost (chosen: they are half a megabyte)."""
_MAX_ROWS = 25  # rows of a table that stands for a curve or a list; chosen
_NARROW_COLUMNS = 4  # columns of a table up to which it fits into a window of 400 pixels; chosen
_LONG = 24  # characters of a text from which it may be broken to fit a table into the window; chosen
_DRAWN = (
    "How URLs ended",
    "Links not followed",
    "Hosts by state",
    "Revisits of known pages",
    "Languages",
    "What sites say of the use of their texts",
    "Last events",
)
"""Tables of a status that the script draws."""
_LIVE = re.compile(r"<!--live-->.*?<!--/live-->", re.DOTALL)  # what only the page of a running crawl has
_LOADED = re.compile(r"<!--loaded-->.*?<!--/loaded-->", re.DOTALL)  # where the page names the files that it loads
_POLICY = "default-src 'none'; script-src '{}'; style-src 'unsafe-inline'; img-src data:"


def part(name: str) -> str:
    """page.html, page.css or page.js, as they are served."""
    return files(__package__).joinpath(name).read_text("utf-8")


def report(directory: Path) -> str:
    """The saved page of the crawl in *directory*; raises SpiderlingError."""
    with closing(opened(directory)) as crawl:
        return page_file(crawl)


def page_file(crawl: AnyCrawl) -> str:
    """The page of *crawl* as one file: status and hosts as data for the script, advice and tables as they are."""
    status = status_of(crawl)
    orders = ("words", "downloaded_bytes")
    named = {host.name: host for order in orders for host in hosts_of(crawl, order=order, most=MAX_HOSTS).hosts}
    hosts = [*named.values()]
    tables = [*tables_of(replace(status, best_hosts=None)), threshold_table(crawl)]  # those hosts are on it already
    facts = [{"what": name, "is": value} for name, value in facts_of(status).items() if value]
    drawn = [Table("The crawl", facts)]
    drawn += [_growth(status.curves), hosts_table("Hosts", hosts[:_MAX_ROWS])] if status.curves else []
    drawn += [table for table in tables if table.title in _DRAWN]
    without_script = "".join(map(html_table, drawn))
    data = json.dumps(
        {"status": asdict(status), "hosts": [asdict(host) for host in hosts]}, separators=(",", ":")
    ).replace("<", "\\u003c")
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
        + "".join(html_table(table) for table in tables if table.title not in _DRAWN),
        "<!--data-->": f'<script type="application/json" id="saved">{data}</script><script>{script}</script>',
    }
    page = _LOADED.sub(lambda _: head, _LIVE.sub("", part("page.html")))
    for mark, content in body.items():
        page = page.replace(mark, content, 1)
    return page


def _growth(curves: Curves) -> Table:
    """The last rows of the curves."""
    columns = curves.whole
    number = len(columns["time"])
    rows = [
        {
            "time": time_of(at["time"]),
            **{name: int(at[name]) for name in ("pages", "documents", "words")},
            "down_MB": round(at["downloaded_bytes"] / 1e6, 2),
            "kept_MB": round(at["kept_bytes"] / 1e6, 2),
            "yield_rate": round(at["kept_bytes"] / max(1, at["downloaded_bytes"]), 4),
            **{name: int(at[name]) for name in ("waiting", "at_work")},
        }
        for place in range(number - 1, -1, -(-(-number // _MAX_ROWS) or 1))
        for at in [{name: column[place] for name, column in columns.items()}]
    ]
    return Table("Growth", rows)


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
