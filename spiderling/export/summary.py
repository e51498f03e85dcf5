"""The public summary of training content that EU law asks for, from a crawl's state (`scrapy export --summary eu`).

Fields and queries stand in eu.yaml.  The queries run on a copy of what they need, in these tables:

- ``host``, ``count`` as in the state, of all shards, ``host`` with the registrable ``domain``;
- ``statement``: origin, file and signal of each statement in the consent ledger; ``rule``: the rule of each signal;
- ``takedown``: when, and how much went, but not what, which must not be published again;
- ``option``, ``purpose``, ``archive``; ``crawl``: begin, last batch and version; ``provider``: the size of the list of
  domains.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from spiderling.archives.sources import META_KEY
from spiderling.base.errors import BadInput
from spiderling.base.files import read_yaml, saving, write_whole
from spiderling.base.opt_outs import Signal
from spiderling.base.terminal import markdown_table
from spiderling.base.urls import name_of, registrable_domain
from spiderling.jobdir.card import TAKEDOWNS, cell, last_names
from spiderling.jobdir.inspection import AnyCrawl, reading
from spiderling.jobdir.state_reader import read_note

ALL_PROVIDERS = (10, 10**9)
SMALL_PROVIDER = (5, 1000)
"""Percent of the domains with text that are listed, and how many at most; the second: small and medium enterprises."""
FOR_A_PERSON = "(to be filled in by a person)"
NOTHING = "(none)"
_TABLES = """
CREATE TABLE host(name, domain, pages, documents, words, downloaded_bytes, kept_bytes);
CREATE TABLE count(key, value); CREATE TABLE option(name, value);
CREATE TABLE takedown(time, hosts, urls, documents, words);
CREATE TABLE statement(origin, file, signal); CREATE TABLE rule(signal, rule); CREATE TABLE purpose(name);
CREATE TABLE archive(name); CREATE TABLE crawl(begun, last, version); CREATE TABLE provider(percent, most);
"""
_HOSTS = "SELECT name, pages, documents, words, downloaded_bytes, kept_bytes FROM host"


def write_summary(directory: Path, out: Path, is_small: bool = False) -> list[Path]:
    """Write the summary of the crawl in *directory* to *out*, as Markdown, JSON and HTML; returns the files.

    Raises BadInput if one exists, and StorageError.
    """
    if is_in_the_way := next((file for file in _files(out) if file.exists()), None):
        raise BadInput(f"{is_in_the_way} exists; give another directory.")
    with reading(directory) as crawl, closing(_tables_of(crawl, is_small)) as tables:
        summary = read_yaml(files(__package__).joinpath("eu.yaml").read_text("utf-8"))
        for section in summary["sections"]:
            section["fields"] = [_filled(field, tables) for field in section["fields"]]
        summary["crawl"] = crawl.note or "complete"
        summary["note"] += f" Not all of it: {crawl.note}." if crawl.note else ""
    with saving(out):
        out.mkdir(parents=True, exist_ok=True)
    texts = (_markdown(summary), json.dumps(summary, indent=1, ensure_ascii=False) + "\n", _html(summary))
    for path, text in zip(_files(out), texts, strict=True):
        write_whole(path, text)
    return _files(out)


def _files(out: Path) -> list[Path]:
    return [out / f"summary.{ending}" for ending in ("md", "json", "html")]


def _tables_of(crawl: AnyCrawl, is_small: bool) -> sqlite3.Connection:
    tables = sqlite3.connect("")  # on disk, for a state may have millions of hosts
    tables.executescript(_TABLES)
    signals = {signal.value for signal in Signal} | {"disallow"}
    options = crawl.options
    begun = read_note(crawl.meta, "created", 0.0)
    last = max((row["last"] or begun for row in crawl.rows("SELECT max(time) AS last FROM history")), default=begun)
    purposes = read_note(crawl.meta, "purposes", list[str]())
    archives = (last_names(key.removeprefix(META_KEY)) for key in crawl.meta if key.startswith(META_KEY))
    rules = {signal.value: rule for signal, rule in options.policy().rules.items()}
    says = crawl.rows("SELECT origin, file, says FROM consent WHERE says <> ''")
    rows: dict[str, Iterable[tuple[Any, ...]]] = {
        "host": (_with_domain(row) for part in crawl.parts for row in part.cursor(_HOSTS)),
        "count": crawl.counts.items(),
        "takedown": (
            (said["time"], *(said["taken"][what] for what in ("hosts", "urls", "documents", "words")))
            for said in read_note(crawl.meta, TAKEDOWNS, list[dict[str, Any]]())
        ),
        "option": ((name, str(value)) for name, value in asdict(options).items()),
        "statement": (
            (row["origin"], row["file"], signal)
            for row in says
            for signal in signals & {word.partition(":")[0] for word in row["says"].split()}
        ),
        "rule": [*rules.items(), ("disallow", "obey")],
        "purpose": ((name,) for name in purposes),
        "archive": ((name,) for name in archives),
        "crawl": [(begun, last, read_note(crawl.meta, "version", ""))],
        "provider": [SMALL_PROVIDER if is_small else ALL_PROVIDERS],
    }
    for name, values in rows.items():
        columns = len(tables.execute(f"PRAGMA table_info({name})").fetchall())
        tables.executemany(f"INSERT INTO {name} VALUES ({','.join('?' * columns)})", values)  # noqa: S608 - our names
    return tables


def _with_domain(row: tuple[Any, ...]) -> tuple[Any, ...]:
    name, *numbers = row
    return (name, registrable_domain(name_of(f"http://{name}")), *numbers)


def _filled(field: dict[str, Any], tables: sqlite3.Connection) -> dict[str, Any]:
    """*field* with the columns and rows of its query; one without query and text has ``person``."""
    if "query" not in field:
        return field if "text" in field else field | {"person": True}
    cursor = tables.execute(field["query"])
    return field | {"columns": [column[0] for column in cursor.description], "rows": cursor.fetchall()}


def _parts(summary: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What is written, first to last: the element of HTML that it is, and its text; of a table its rows."""
    yield from (("h1", summary["title"]), ("p", summary["note"]))
    for section in summary["sections"]:
        yield "h2", section["title"]
        for field in section["fields"]:
            yield "h3", field["name"]
            if "query" not in field:
                yield "p", field.get("text", FOR_A_PERSON)
                continue
            yield ("table", [field["columns"], *field["rows"]]) if field["rows"] else ("p", NOTHING)
            yield "code", field["query"]


def _markdown(summary: dict[str, Any]) -> str:
    marks = {"h1": "# {}", "h2": "## {}", "h3": "### {}", "p": "{}", "code": "`{}`"}
    lines: list[str] = []
    for name, said in _parts(summary):
        is_table = name == "table"
        lines += (
            markdown_table(said[0], (map(cell, row) for row in said[1:])) if is_table else [marks[name].format(said)]
        )
        lines.append("")
    return "\n".join(lines)


def _html(summary: dict[str, Any]) -> str:
    lines = [f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{escape(summary["title"])}</title>']
    for name, said in _parts(summary):
        if name == "table":
            rows = ("".join(f"<td>{escape(str(value))}</td>" for value in row) for row in said)
            text = "".join(f"<tr>{row}</tr>\n" for row in rows)
        else:
            text = escape(said)
        lines.append(f"<{name}>{text}</{name}>")
    return "\n".join(lines) + "\n"
