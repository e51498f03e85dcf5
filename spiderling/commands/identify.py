"""``scrapy identify FILE|-``: which of the known languages a text or an HTML page is in."""

from __future__ import annotations

import argparse
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from spiderling.base.errors import BadInput
from spiderling.base.options import Options
from spiderling.base.terminal import with_progress
from spiderling.cli.command import SpiderlingCommand, option, read_input
from spiderling.languages import available, find_languages, load

if TYPE_CHECKING:
    from spiderling.text import LanguageModels

_BATCH_LINES = 200  # paragraphs that are judged at once; chosen: their n-grams stay in the processor's cache
_NEAREST = 5  # languages that are named; chosen
_HTML = re.compile(rb"<(?:!doctype html|html|head|body|div|p)\b", re.I)
_HEAD_BYTES = 4096  # bytes in which a tag must stand if a file is HTML; chosen


class Command(SpiderlingCommand):
    arguments = "FILE|- [--among cs,sk,pl]"
    number = 1
    summary = "Name the language of a text or HTML file"
    description = (
        "Name the language of a text or HTML file (- is standard input), of the whole and of each line, or of "
        "each paragraph of an HTML page that is text. The known share is how usual the text's character 4-grams "
        "and short words are for the language: 1 is as in the language's own texts; a crawl keeps what reaches "
        "SPIDERLING_MIN_KNOWN_SHARE. Example: scrapy identify page.html --among cs,sk,pl"
    )

    error_code = 2

    options = (option("--among", default="", metavar="CODES", help="languages to choose from (all with a model)"),)

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        dirs = str(self.given_settings.get("SPIDERLING_MODELS") or "")
        known = available(dirs)
        codes = [info.code for info in find_languages(opts.among, dirs)] if opts.among else list(known)
        text = read_input(args[0], "or - for standard input")
        width = shutil.get_terminal_size().columns
        for line in report(text, load(codes, dirs), {code: info.name for code, info in known.items()}):
            yield line[:width]


def report(body: bytes, models: LanguageModels, names: Mapping[str, str]) -> Iterator[str]:
    """Lines on the languages of *body*, text or HTML; raises BadInput when there is no text in it."""
    encoding, paragraphs = _paragraphs(body, models)
    batches = [paragraphs[at : at + _BATCH_LINES] for at in range(0, len(paragraphs), _BATCH_LINES)]
    parts = [models.identify(each) for each in with_progress(batches, f"x {_BATCH_LINES} paragraphs", len(batches))]
    size = sum(part.sizes.sum() for part in parts)
    if not size:
        raise BadInput("there is no text in it; give a file with some sentences of text, or an HTML page with them.")
    yield f"{'encoding':<12}{encoding or '-'}"
    scores = sum(part.scores.sum(0) for part in parts)
    order = [models.codes[index] for index in (-scores).argsort(kind="stable").tolist()[:_NEAREST]]
    known = [sum(part.known_share(code) * part.sizes.sum() for part in parts) for code in order]
    for place, (code, share) in enumerate(zip(order, known, strict=True)):
        label = "language" if not place else "next" if place == 1 else ""
        yield f"{label:<12}{code:<5}{names[code]}, known share {share / size:.2f}"
    rows = [(code, part, row) for part in parts for row, code in enumerate(part.sure())]
    counts = Counter(code or "unsure" for code, _, _ in rows)
    yield f"{'paragraphs':<12}{', '.join(f'{code} {count}' for code, count in counts.most_common())}"
    least = Options().min_known_share
    if known[0] < least * size:
        yield f"{'':<12}none of the languages: a crawl keeps known shares from {least} on"
    yield ""
    yield f"{'lang':<6}{'share':<7}text"
    for (named, part, row), text in zip(rows, paragraphs, strict=True):
        yield f"{named or '-':<6}{part.known_share(named, [row]) if named else 0:<7.2f}{text}"


def _paragraphs(body: bytes, models: LanguageModels) -> tuple[str | None, list[str]]:
    """The encoding of *body*, and its lines, or the running text of a page."""
    from spiderling.text import TextOptions, process
    from spiderling.text.encoding.detect import decode

    if not _HTML.search(body, 0, _HEAD_BYTES):
        text, _, encoding, _ = decode(body, None, models.encodings(models.codes), models.spelling)
        return encoding, [line.strip() for line in (text or "").splitlines() if line.strip()]
    options = TextOptions(models.codes)
    page = process(body, url="http://file.invalid/", http_charset=None, models=models, options=options)
    return page.encoding_detected, [paragraph.text for paragraph in page.paragraphs if paragraph.cls == "good"]
