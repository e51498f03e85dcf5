"""``scrapy train LANG text.txt ...``: a language model from plain text; ``train boilerplate``: a block model.

``make_block_model`` fits the learned boilerplate mode to pages whose text is marked.
"""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xxhash
from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from spiderling.errors import BadInput
from spiderling.languages import available, save
from spiderling.markedpages import read
from spiderling.options import Options
from spiderling.text import fitting
from spiderling.text.labels import encodings_for
from spiderling.text.training import Check, alphabet, held_out_check, sentences, train

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from spiderling.languages import LanguageInfo
    from spiderling.text import LanguageModel

MIN_BYTES = 5_000
GOOD_BYTES = 50_000
MIN_HOSTS = 10
GOOD_HOSTS = 200


class Command(ScrapyCommand):
    """Thin shell around `make_model`."""

    requires_project = False
    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 - Scrapy reads it from the class

    def syntax(self) -> str:
        return "LANG text.txt [more.txt ...] [--out DIR] [--neighbours a,b] [--name NAME] | boilerplate pages.jsonl ..."

    def short_desc(self) -> str:
        return "Make a language model from plain text, or a boilerplate model from marked pages"

    def long_desc(self) -> str:
        return (
            "Make a language model from plain UTF-8 text, best one sentence or paragraph a line; 50 kB are enough to "
            "start with. LANG is the ISO 639 code. Example: scrapy train hsb wikipedia.txt news.txt "
            "--name 'Upper Sorbian' --neighbours cs,pl,de ; then: scrapy crawl spiderling -a lang=hsb -a seeds=FILE . "
            "With boilerplate in place of LANG: fit the model that tells text from boilerplate to pages whose text is "
            "known, one JSON object a line with html (one character a byte), gold (the text), host. Example: scrapy "
            "train boilerplate pages.jsonl.zst --out my.json ; then: -s SPIDERLING_BOILERPLATE_MODEL=my.json"
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--out",
            default="",
            metavar="DIR",
            help="directory of models (models); boilerplate: file (boilerplate.json)",
        )
        parser.add_argument("--neighbours", default="", metavar="CODES", help="codes of languages it is taken for")
        parser.add_argument("--force", action="store_true", help="replace the model that stands there already")
        parser.add_argument("--name", default="", help="English name; picks the justext stop list of that name")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) < 2:
            raise UsageError("give a language code and at least one text file: scrapy train hsb text.txt")
        assert self.settings is not None
        paths = list(map(Path, args[1:]))
        dirs = str(self.settings.get("SPIDERLING_MODELS") or "")
        try:
            neighbours = tuple(part.strip() for part in opts.neighbours.split(",") if part.strip())
            if args[0] == "boilerplate":
                print(make_block_model(paths, Path(opts.out or "boilerplate.json")))
            else:
                out = Path(opts.out or "models")
                _refuse_to_replace(out / args[0].lower(), opts.force)
                print(make_model(args[0], paths, out, neighbours, opts.name, dirs))
        except BadInput as error:
            raise UsageError(str(error), print_help=False) from None


def make_model(
    code: str, paths: Sequence[Path], out: Path, neighbours: Sequence[str] = (), name: str = "", dirs: str = ""
) -> str:
    """Train, check and write the model ``out/code``; returns the report.  Raises BadInput."""
    code = code.lower()
    if not (code.isascii() and code.isalpha() and 2 <= len(code) <= 3):
        raise BadInput(f"{code!r} is not an ISO 639 code; give two or three letters such as cs or hsb.")
    known = available(dirs)
    for neighbour in neighbours:
        if neighbour not in known:
            raise BadInput(f"--neighbours: there is no model of {neighbour!r}; there are {', '.join(known)}.")
    texts = [_read(path) for path in paths]
    size = sum(len(text.encode()) for text in texts)
    lines = sentences(texts)
    if size < MIN_BYTES or len(lines) < 20:
        raise BadInput(
            f"{', '.join(map(str, paths))}: {size} bytes in {len(lines)} different lines are too little for a model; "
            f"give at least {MIN_BYTES} bytes (better {GOOD_BYTES}) in 20 lines."
        )
    model = train(code, lines)
    rivals = [known[other].model() for other in (neighbours or known) if other != code]
    description = _description(known.get(code), name, neighbours, paths, texts, model)
    written = save(out / code, description, model)
    return _report(model, size, written, out / code, held_out_check(code, lines, rivals))


def make_block_model(paths: Sequence[Path], out: Path) -> str:
    """Fit a boilerplate model to marked pages and write it to the file *out*; returns the report.  Raises BadInput."""
    every = fitting.samples(page for page, _ in read(paths))
    whole = [sample for sample in every if sample.truth is not None]
    hosts = {sample.page.host for sample in whole}
    if len(hosts) < MIN_HOSTS:
        raise BadInput(
            f"{', '.join(map(str, paths))}: {len(whole)} pages of {len(hosts)} hosts with a text of some length are "
            f"too little for a model; give pages of at least {MIN_HOSTS} hosts (better {GOOD_HOSTS})."
        )
    found = fitting.held_out(every)
    threshold = Options().boilerplate_threshold
    scores = fitting.table(every, lambda place, _: [bool(p >= threshold) for p in found[place]])
    rules = fitting.table(every, lambda _, sample: fitting.by_rules(sample, "balanced", ()))
    origin = {
        "pages": len(whole),
        "hosts": len(hosts),
        "blocks": sum(len(sample.blocks) for sample in whole),
        "held_out_f1": {group: round(value, 3) for group, value in scores.items()},
        "date": date.today().isoformat(),
    }
    text = replace(fitting.fit(every), origin=origin).to_json()
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"--out: {out} cannot be written ({error.strerror}).") from None
    lines = [f"Model from {len(whole)} pages of {len(hosts)} hosts, written to {out} ({len(text) / 1000:.0f} kB)."]
    if len(hosts) < GOOD_HOSTS:
        lines.append(f"WARNING: less than {GOOD_HOSTS} hosts; compare it with the bundled model before you use it.")
    lines += ["F1 on hosts that the fit did not see (jusText's rules without stop words):"]
    lines += [f"  {group:<24}{value:.3f}  ({rules[group]:.3f})" for group, value in scores.items()]
    return "\n".join([*lines, f"  {'mean':<24}{fitting.mean(scores):.3f}  ({fitting.mean(rules):.3f})"])


def _refuse_to_replace(directory: Path, force: bool) -> None:
    if (directory / "language.yaml").exists() and not force:
        raise BadInput(
            f"there is a model in {directory} already; say --force to replace it, or name another directory with "
            "--out and put that into SPIDERLING_MODELS, where it hides the bundled one."
        )


def _description(
    old: LanguageInfo | None,
    name: str,
    neighbours: Sequence[str],
    paths: Sequence[Path],
    texts: Sequence[str],
    model: LanguageModel,
) -> dict[str, Any]:
    """language.yaml; what is known of the language from an older model is taken over."""
    return {
        "iso3": old.iso3 if old else (model.code if len(model.code) == 3 else ""),
        "name": name or (old.name if old else model.code),
        "native": old.native if old else "",
        "tlds": list(old.tlds) if old else [],
        "neighbours": list(neighbours or (old.neighbours if old else ())),
        "encodings": list(old.encodings if old else encodings_for(alphabet(model.words))),
        "origin": {
            "texts": [{"source": path.name, "licence": "unknown: state it here"} for path in paths],
            "tokens": sum(len(text.split()) for text in texts),
            "digest": f"xxh3_128:{xxhash.xxh3_128_hexdigest(chr(0).join(texts).encode())}",
            "date": date.today().isoformat(),
        },
    }


def _read(path: Path) -> str:
    """A text file, decomposed accents composed as on most web pages."""
    try:
        return unicodedata.normalize("NFC", path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}); give files of plain text.") from None
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{path} is not UTF-8 text (byte {error.start}); convert it first, e.g. with: iconv -t utf-8."
        ) from None


def _report(model: LanguageModel, size: int, written: int, directory: Path, check: Check) -> str:
    lines = [
        f"Model of {model.code} from {size / 1000:.0f} kB of text, written to {directory} ({written / 1000:.0f} kB).",
        f"Frequent words: {', '.join(list(model.words)[:20])}",
        f"Alphabet: {alphabet(model.words)}",
    ]
    if size < GOOD_BYTES:
        lines.append(f"WARNING: less than {GOOD_BYTES // 1000} kB of text; it works, more text makes it surer.")
    if check.tried:
        share = 100 * check.right / check.tried
        taken = ", ".join(f"{code} {count}" for code, count in check.taken_for.items())
        lines.append(f"Check: {check.right} of {check.tried} held-out lines recognised ({share:.1f} %)")
        lines[-1] += f"; taken for: {taken}." if taken else "."
        lines.append(f"Share of usual 4-grams in held-out text: {model.known:.2f}.")
    return "\n".join(lines)
