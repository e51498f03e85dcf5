"""``scrapy train LANG text.txt ...``: a language model from plain text."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from scrapy.exceptions import UsageError

from spiderling.base.terminal import entries_of
from spiderling.cli.command import SpiderlingCommand, option


class Command(SpiderlingCommand):
    arguments = "LANG text.txt [more.txt ...] [--out DIR] [--neighbours a,b] ..."
    summary = "Make a language model from plain text"
    description = (
        "Make a language model from plain UTF-8 text, best one sentence or paragraph a line; 50 kB are enough to "
        "start with. LANG is the ISO 639 code. What is learned is tried on a tenth of the text. The model goes into "
        "--out, by default the first directory of SPIDERLING_MODELS. Example: scrapy train hsb wikipedia.txt news.txt "
        "--out my-models --name 'Upper Sorbian' --neighbours cs,pl,de ; then: scrapy crawl spiderling -a lang=hsb "
        "-a seeds=FILE -s SPIDERLING_MODELS=my-models"
    )

    error_code = 2

    options = (
        option("--out", default="", metavar="DIR", help="directory of models (first of SPIDERLING_MODELS)"),
        option(
            "--encodings",
            default="",
            metavar="LABELS",
            help="legacy encodings of pages (those with room for the alphabet)",
        ),
        option("--neighbours", default="", metavar="CODES", help="codes of languages it is taken for"),
        option("--force", action="store_true", help="replace the model that stands there already"),
        option("--name", default="", help="English name; picks the justext stop list of that name"),
    )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        if len(args) < 2:
            raise UsageError(
                "give a language code and at least one text file: scrapy train hsb text.txt --out my-models"
            )
        dirs = str(self.given_settings.get("SPIDERLING_MODELS") or "")
        out = opts.out or dirs.partition(":")[0]
        if not out:
            raise UsageError(
                "say where the model goes, as in --out my-models; a crawl takes it by -s SPIDERLING_MODELS=my-models"
            )
        from spiderling.training import ModelRequest, make_model

        wanted = ModelRequest(
            args[0].lower(),
            list(map(Path, args[1:])),
            Path(out).expanduser(),
            tuple(entries_of(opts.neighbours)),
            opts.name,
            tuple(entries_of(opts.encodings)),
            opts.force,
            dirs,
        )
        yield from make_model(wanted).splitlines()
