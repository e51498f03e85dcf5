"""Makes a boilerplate model from marked pages (marked_pages.py), with a report.

    python -m models.block_model PAGES.jsonl ... --out my.json

A crawl takes it by -s SPIDERLING_BOILERPLATE_MODEL=my.json.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

from models import boilerplate_fit
from models.marked_pages import read
from spiderling.base.errors import BadInput, SpiderlingError
from spiderling.base.terminal import with_progress
from spiderling.text.boilerplate.model import THRESHOLD

MIN_HOSTS = 10
"""Hosts with marked pages below which no boilerplate model is made; chosen."""
GOOD_HOSTS = 200
"""Hosts below which a model is made with a warning; chosen."""


def make_block_model(paths: Sequence[Path], out: Path) -> str:
    """Fit a boilerplate model to marked pages and write it to the file *out*; returns the report.  Raises BadInput."""
    every = boilerplate_fit.samples(page for page, _ in with_progress(read(paths), "pages"))
    whole = [sample for sample in every if sample.truth is not None]
    hosts = {sample.page.host for sample in whole}
    if len(hosts) < MIN_HOSTS:
        raise BadInput(
            f"{', '.join(map(str, paths))}: {len(whole)} pages of {len(hosts)} hosts with a text of some length are "
            f"too little for a model; give pages of at least {MIN_HOSTS} hosts (better {GOOD_HOSTS})."
        )
    found = boilerplate_fit.held_out(every)
    scores = boilerplate_fit.table(every, lambda place, _: [bool(p >= THRESHOLD) for p in found[place]])
    rules = boilerplate_fit.table(every, lambda _, sample: boilerplate_fit.by_rules(sample, "balanced", ()))
    origin = {
        "pages": len(whole),
        "hosts": len(hosts),
        "blocks": sum(len(sample.blocks) for sample in whole),
        "held_out_f1": {group: round(value, 3) for group, value in scores.items()},
        "date": date.today().isoformat(),
    }
    text = boilerplate_fit.written(replace(boilerplate_fit.fit(every), origin=origin))
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"--out: {out} cannot be written ({error.strerror}).") from None
    warning = f"WARNING: less than {GOOD_HOSTS} hosts; compare it with the bundled model before you use it."
    lines = [
        f"Model from {len(whole)} pages of {len(hosts)} hosts, written to {out} ({len(text) / 1000:.0f} kB).",
        *([warning] if len(hosts) < GOOD_HOSTS else []),
        "F1 on hosts that the fit did not see (jusText's rules without stop words):",
        *(f"  {group:<24}{value:.3f}  ({rules[group]:.3f})" for group, value in scores.items()),
        f"  {'mean':<24}{boilerplate_fit.mean(scores):.3f}  ({boilerplate_fit.mean(rules):.3f})",
    ]
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Exits with 2 and one sentence for input that is no good."""
    about = "Fit the model that tells text from boilerplate to pages whose text is known."
    parser = argparse.ArgumentParser("python -m models.block_model", description=about)
    parser.add_argument("pages", nargs="+", type=Path, metavar="PAGES.jsonl", help="form: models/marked_pages.py")
    parser.add_argument("--out", type=Path, default=Path("boilerplate.json"), metavar="FILE", help="(boilerplate.json)")
    given = parser.parse_args(arguments)
    try:
        print(make_block_model(given.pages, given.out))
    except SpiderlingError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
