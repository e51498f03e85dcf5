"""Tables and charts as one HTML file that needs no network.

The page holds all that it needs; its Content-Security-Policy makes the browser refuse anything else.  Vega-Lite draws
the charts; its script comes with vl-convert-python.  What they show also stands in tables, which work without scripts,
are reached by a keyboard and a screen reader, and are sorted by a click or a key on a heading.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import count
from typing import TypeAlias

from spiderling.base.terminal import printable
from spiderling.reporting.charts import Chart
from spiderling.reporting.tables import Cell, Table
from spiderling.reporting.tiles import Tile

Block: TypeAlias = "Table | Chart | list[str]"

_HALF_COLUMNS = 7
"""Columns of a table up to which it fits into half of a wide window (chosen)."""
_NARROW_COLUMNS = 3
"""Columns up to which it fits into a window of 400 pixels; there each row of another becomes a card (chosen)."""
_LONG_WORD = 24
"""Characters of a word from which it may be broken to fit a table into the window (chosen)."""
_POLICY = "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data:"
"""unsafe-eval, because Vega compiles the expressions of our specs; these hold no data of a crawl."""


def page(title: str, subtitle: str, sections: Sequence[tuple[str, Sequence[Block]]], tiles: Sequence[Tile] = ()) -> str:
    """The page: *sections* are (heading, blocks), a block is a table, a chart or a list of sentences."""
    ids = map("c{}".format, count(1))
    parts: list[str] = []
    for number, (heading, blocks) in enumerate(sections):
        head = f'<section id="s{number}"><h2>{_text(heading)}</h2><div class="blocks">'
        parts += [head, *(_block(block, ids) for block in blocks), "</div></section>"]
    has_charts = any(isinstance(block, Chart) for _, blocks in sections for block in blocks)
    links = "".join(f'<a href="#s{number}">{_text(heading)}</a>' for number, (heading, _) in enumerate(sections))
    script = f"<script>{_own('sort.js')}</script>" + (_drawing() if has_charts else "")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)}</title><style>{_own('page.css')}</style></head>\n<body><header><h1>{_text(title)}</h1>"
        f'<p class="note">{_text(subtitle)}</p>{_tiles(tiles)}<nav aria-label="Sections">{links}</nav></header>\n<main>'
        + "\n".join(parts)
        + f"</main>{script}</body></html>\n"
    )


def _block(block: Block, ids: Iterator[str]) -> str:
    """*block* as HTML, over the whole width if it needs that; *ids* names charts."""
    if isinstance(block, Table):
        is_wide, inside = len(block.columns) > _HALF_COLUMNS, _table(block)
    elif isinstance(block, Chart):
        is_wide, inside = "datasets" in block.spec, _figure(block, next(ids))
    else:
        is_wide, inside = True, "<ul>" + "".join(f"<li>{_text(line)}</li>" for line in block) + "</ul>"
    return f'<div class="block{" wide" * is_wide}">{inside}</div>'


def _tiles(tiles: Sequence[Tile]) -> str:
    parts = (
        f"<div><dt>{_text(tile.name)}</dt><dd><b>{_text(tile.value)}</b> <span>{_text(tile.note)}</span></dd></div>"
        for tile in tiles
    )
    return f'<dl class="tiles" aria-label="At a glance">{"".join(parts)}</dl>' if tiles else ""


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


@cache
def _drawing() -> str:
    """The script that draws charts; it takes a second to make."""
    import vl_convert  # heavy, and only needed here

    return f'<script type="module">{vl_convert.javascript_bundle(_own("page.js"))}</script>'


def _figure(chart: Chart, name: str) -> str:
    spec = json.dumps(chart.spec, separators=(",", ":")).replace("<", "\\u003c")
    label = html.escape(f"{chart.title}. {chart.note}", quote=True)
    return (
        f'<h3>{_text(chart.title)}</h3><p class="note">{_text(chart.note)}</p>'
        f'<figure data-chart="{name}" data-label="{label}" style="margin:0">'
        f'<div class="chart" role="img" tabindex="0" aria-label="{label}"></div></figure>'
        f'<script type="application/json" id="{name}">{spec}</script>'
    )


def _table(table: Table) -> str:
    if not table.rows:
        return f'<h3>{_text(table.title)}</h3><p class="note">None.</p>'
    numeric = [any(isinstance(row[at], (int, float)) for row in table.rows) for at in range(len(table.columns))]
    bar = table.columns.index(table.bar) if table.bar else -1
    total = sum(float(row[bar] or 0) for row in table.rows) if table.bar else 0.0
    width = len(table.columns)
    kind = "" if width <= _NARROW_COLUMNS else ' class="cards"' if width <= _HALF_COLUMNS + 2 else ' class="cards many"'
    labels = [f' data-label="{html.escape(name, quote=True)}"' if kind else "" for name in table.columns]
    head = "".join(
        f'<th scope="col"{" class=n" * n}>{_text(c)}</th>' for c, n in zip(table.columns, numeric, strict=True)
    )
    body = "\n".join(
        "<tr>"
        + "".join(_cell(value, numeric[at], total if at == bar else 0.0, labels[at]) for at, value in enumerate(row))
        + "</tr>"
        for row in table.rows
    )
    note = f'<p class="note">{_text(table.note)}</p>' if table.note else ""
    return (
        f'<h3>{_text(table.title)}</h3>{note}<div class="scroll" role="region" tabindex="0" '
        f'aria-label="{html.escape(table.title, quote=True)}"><table{kind}>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(value: Cell, numeric: bool, total: float, label: str) -> str:
    if total and isinstance(value, (int, float)):
        return f'<td class="n bar"{label} style="--w:{100 * value / total:.1f}%">{number(value)}</td>'
    text = _text(value) if isinstance(value, str) else "" if value is None else number(value)
    breaks = isinstance(value, str) and max(map(len, value.split()), default=0) > _LONG_WORD
    return f"<td{' class=n' * numeric or ' class=long' * breaks}{label}>{text}</td>"


def number(value: float) -> str:
    """
    >>> number(1234567), number(1234.6), number(12.346), number(0.01284), number(0.0)
    ('1,234,567', '1,235', '12.35', '0.0128', '0')
    """
    digits = 0 if isinstance(value, int) or not value or abs(value) >= 100 else 2 if abs(value) >= 1 else 4
    return f"{value:,.{digits}f}"


def _text(text: str) -> str:
    """*text* as HTML; names come from the web and may hold anything."""
    return html.escape(printable(text), quote=False)
