"""The card of a corpus for people: a dataset card in Markdown, with the metadata that dataset hubs read at its top."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import yaml

from spiderling.base.option_values import PREFIX
from spiderling.base.printing import markdown_table, printable
from spiderling.languages.seeds import MODEL_SEEDS

Manifest: TypeAlias = "dict[str, Any]"

NOT_STATED = "none stated"
"""Licence of a document whose page links to none."""
_CREATIVE_COMMONS = re.compile(
    r"https?://(?:www\.)?creativecommons\.org/"
    r"(?:licenses/(?P<kind>by(?:-nc)?(?:-sa)?|by-nc-nd)/(?P<version>[34]\.0)|publicdomain/zero/1\.0)(?:/.*)?"
)
"""Licences that dataset hubs have identifiers of: cc-by-sa-4.0, cc0-1.0 ..."""


def readme_of(manifest: Manifest, manifest_name: str) -> str:
    """The card; *manifest_name* is the file of *manifest* beside it."""
    contents = manifest["contents"]
    crawls = manifest["crawls"]
    dates = " to ".join(date[:10] for date in contents["crawl_dates"])
    unit = manifest.get("unit", "documents")
    lines = [
        *headed(manifest),
        f"{contents['documents']:,} documents, {contents['words']:,} words, {contents['text_bytes'] / 1e6:,.2f} MB of "
        f"text in UTF-8 from {contents['hosts']:,} hosts, crawled {dates}. Made by Spiderling "
        f"{manifest['software']['spiderling']}. All that follows stands in {manifest_name} too.",
        "",
        *_shuffled(unit),
        *_selected(manifest),
        *_markdown(
            "Languages",
            ("language", "documents", "words"),
            [(code, row["documents"], row["words"]) for code, row in contents["languages"].items()],
        ),
        *(line for crawl in crawls for line in _crawl_lines(crawl, manifest_name)),
        *_counts("Licences that pages link to", "licence", contents["licences"]),
        "What a page links to may concern a part of it only; most pages state nothing. The texts belong to their "
        "authors, and what may be done with them depends on the law of the place and on the purpose.",
        "",
        *_counts("Statements on the use of kept documents", "opt-out", contents["optouts"]),
        *_counts("Encodings they were decoded from", "encoding", contents["encodings"]),
        *_counts("Kinds of files", "kind", contents["file_types"]),
        *_markdown(
            "Files",
            ("file", unit, "bytes", "SHA-256"),
            [(f["name"], f[unit], f["bytes"], f["sha256"]) for f in manifest["files"]],
        ),
        "## Limits",
        "",
        "What the web says is in it: errors, opinions, personal data of the people who are written about, and text by "
        "machines. Boilerplate, languages and near-duplicates were told by models that err.",
        "",
        *take_down(crawls),
    ]
    return "\n".join(lines)


def headed(manifest: Manifest) -> list[str]:
    """The head of a card, which hubs read, and its title."""
    names = ", ".join(filter(None, manifest["contents"]["languages"])) or "no language"
    metadata = yaml.safe_dump(_metadata(manifest, names), sort_keys=False, allow_unicode=True)
    return ["---", *metadata.splitlines(), "---", f"# Web corpus of {names}", ""]


def _metadata(manifest: Manifest, names: str) -> dict[str, Any]:
    """What hubs read; with "configs", their readers know which files hold the data."""
    metadata: dict[str, Any] = {
        "language": [code for code in manifest["contents"]["languages"] if code],
        "license": _hub_licence(manifest["contents"]["licences"]),
        "task_categories": ["text-generation"],
        "pretty_name": f"Web corpus of {names}",
    }
    return metadata | {key: manifest[key] for key in ("configs",) if key in manifest}


def _hub_licence(licences: Mapping[str, int]) -> str | list[str]:
    """The identifiers of the documents' *licences*; "other" unless every document has one."""
    found = set()
    for licence in licences:
        match = _CREATIVE_COMMONS.fullmatch(licence)
        if match is None:
            return "other"
        found.add(f"cc-{match['kind']}-{match['version']}" if match["kind"] else "cc0-1.0")
    names = sorted(found)
    return names if len(names) > 1 else "".join(names) or "other"


def _shuffled(unit: str) -> list[str]:
    if unit == "documents":
        return []
    return [
        f"The documents are divided into {unit}, in random order and without the addresses of their pages.",
        "",
    ]


def _selected(manifest: Manifest) -> list[str]:
    """What an export took of the corpus, if it left anything out."""
    chosen = manifest.get("selection", {})
    left_out = [f"{number:,} by `{what}`" for what, number in chosen.get("left_out", {}).items()]
    left_out += [f"{manifest['dropped']:,} by lists of hosts and URLs"] if manifest.get("dropped") else []
    if not left_out:
        return []
    sample = f"{chosen['sample']} (seed `{chosen['seed']}`)" if chosen["sample"] < 1 else ""
    conditions = ", ".join(f"`{text}`" for text in chosen["where"])
    facts = {"Conditions": conditions, "Sample": sample, "Left out": ", ".join(left_out)}
    return ["## What was taken", "", *(f"- {name}: {said}" for name, said in facts.items() if said), ""]


def take_down(crawls: Iterable[Manifest]) -> list[str]:
    """Whom to write to who wants a page taken out."""
    contacts = ", ".join(sorted({crawl["contact"] for crawl in crawls if crawl["contact"]}))
    whom = f"write to {contacts}" if contacts else "write to whoever publishes it"
    return [
        f"To have a page or host taken out, {whom}; `scrapy export --drop-host LIST --drop-url LIST` makes the corpus "
        "anew without it.",
        "",
    ]


def _crawl_lines(crawl: Manifest, manifest_name: str) -> list[str]:
    rate = crawl["kept_bytes"] / max(1, crawl["downloaded_bytes"])
    rules = Counter(crawl["optouts"].values())
    dedup = crawl["dedup"]
    down = f"{crawl['downloaded_bytes'] / 1e6:,.1f} MB"
    seeds = [f"{s['number']:,} from {s['from']} (sha256 {s['sha256'][:16]})" for s in crawl["seeds"]]
    waits = "; tdmrep.json and ai.txt were read once a page was to be kept"
    left = {"URLs wait": crawl["urls_waiting"], "archives are not read to their end": crawl["archives_unread"]}
    standing = "; ".join(f"{number:,} {what}" for what, number in left.items() if number) or "finished"
    facts = {
        "Begun": f"{crawl['begun']} UTC, {standing}",
        "Cost": f"{crawl['pages']:,} pages of {crawl['hosts_asked']:,} hosts, {down}; kept {rate:.4f} of the bytes",
        "Purpose": ", ".join(crawl["purposes"]),
        "Opt-outs": ", ".join(f"{number} signals {rule}" for rule, number in rules.most_common())
        + (waits if crawl["settings"].get("optout_files") == "kept" else "")
        + f" ({manifest_name})",
        "Duplicates": f"mode {dedup['mode']}" + (f", and not in {dedup['seen']}" if dedup["seen"] else ""),
        "Models": ", ".join(f"{code} (sha256 {digest[:16]})" for code, digest in crawl["models"].items()),
        "Archives": f"{len(crawl['archives']):,} ({manifest_name})" if crawl["archives"] else "",
        "Seeds": "; ".join(seeds),
    }
    return [
        f"## How it was made: crawl of {crawl['languages']}",
        "",
        *(f"- {name}: {said}" for name, said in facts.items() if said),
        "",
        "To repeat it, with the files, models and versions named here (the web will have changed):",
        "",
        f"    {_command(crawl)}",
        "",
    ]


def _command(crawl: Manifest) -> str:
    """The command that made *crawl*; its files have their last names, and the contact is the reader's own."""
    named = crawl["settings"] | crawl["files"]
    seeds = [said["from"] for said in crawl["seeds"] if said["from"] != MODEL_SEEDS]
    parts = ["spiderling", *(f"-a seeds={shlex.quote(one)}" for one in seeds[:1])]
    if crawl["archives"]:
        parts = ["archive", "-a warc=ARCHIVES"]
    settings = [f"{PREFIX}{name.upper()}={value}" for name, value in named.items()]
    settings += [] if crawl["archives"] else [f"{PREFIX}CONTACT=you@example.org"]
    return " ".join(["scrapy crawl", *parts, *(f"-s {shlex.quote(setting)}" for setting in settings)])


def _counts(title: str, column: str, counts: Mapping[str, int]) -> list[str]:
    return _markdown(title, (column, "documents"), list(counts.items())) if counts else []


def _markdown(title: str, columns: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> list[str]:
    return [f"## {title}", "", *markdown_table(columns, (map(_cell, row) for row in rows)), ""]


def _cell(value: object) -> str:
    """*value* as text of a Markdown table; licences come from pages, so nothing in them may become markup."""
    if isinstance(value, int):
        return f"{value:,}"
    text = printable(str(value))
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[").replace("`", "\\`")
