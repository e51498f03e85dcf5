"""``scrapy languages [WORD]``: the languages that have a model, and the groups."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from spiderling.base.errors import BadInput
from spiderling.base.terminal import aligned_table
from spiderling.cli.command import SpiderlingCommand, program
from spiderling.languages import GROUPS, LanguageInfo, available


class Command(SpiderlingCommand):
    arguments = "[WORD]"
    summary = "List the languages that have a model"
    description = (
        "List the languages that have a model, bundled or in the directories of SPIDERLING_MODELS, with the kB of text "
        "it was made from (with less than 50 it is a beginning) and the number of its seeds; then the groups that can "
        "be accepted as one. With a WORD, those with it in a code, a name or a top-level domain. "
        "Example: scrapy languages serb"
    )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        word = " ".join(args).lower()
        known = available(str(self.given_settings.get("SPIDERLING_MODELS") or ""))
        found = [info for info in known.values() if word in _names(info)]
        groups = [code for code, members in GROUPS.items() if any(known.get(member) in found for member in members)]
        if not found:
            raise BadInput(f"no language has {word!r} in it; all are listed by: {program()} languages")
        yield from aligned_table([_row(info) for info in sorted(found, key=lambda info: info.name)])
        if groups:
            yield "Groups:"
        for code in groups:
            yield f"  {code}  {', '.join(known[member].name for member in GROUPS[code] if member in known)}"


def _names(info: LanguageInfo) -> str:
    return "\n".join((info.code, info.iso3, info.name, info.native, *info.aliases, *info.tlds)).lower()


def _row(info: LanguageInfo) -> dict[str, str | int]:
    return {
        "code": info.code,
        "language": info.name,
        "native": info.native,
        "kB": int(info.origin.get("bytes") or 0) // 1000,
        "seeds": len(info.seeds()),
    }
