"""Which of the known languages a text or an HTML page is in, as the lines of a report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from spiderling.base.errors import BadInput
from spiderling.base.options import Options
from spiderling.base.terminal import with_progress
from spiderling.text import LanguageModels, TextOptions, process
from spiderling.text.encoding.detect import decode
from spiderling.text.language import Guesses

_BATCH_LINES = 200  # paragraphs that are judged at once; chosen: their n-grams stay in the processor's cache
_NEAREST = 5  # languages that are named; chosen
_HTML = re.compile(rb"<(?:!doctype html|html|head|body|div|p)\b", re.I)
_HEAD_BYTES = 4096  # bytes in which a tag must stand if a file is HTML; chosen


def identify(body: bytes, models: LanguageModels, names: dict[str, str]) -> Iterator[str]:
    """Lines of a report on *body*, text or HTML; raises BadInput when there is no text in it."""
    paragraphs, encoding = _html(body, models) if _HTML.search(body, 0, _HEAD_BYTES) else _text(body, models)
    guesses = _guesses(models, paragraphs)
    if guesses.nearest() is None:
        raise BadInput(
            "there is no text in it; give a file with some sentences of text, or an HTML page that has them."
        )
    yield f"{'encoding':<12}{encoding}"
    order = [guesses.codes[index] for index in (-guesses.scores.sum(0)).argsort(kind="stable").tolist()]
    for place, code in enumerate(order[:_NEAREST]):
        label = "language" if not place else "next" if place == 1 else ""
        yield f"{label:<12}{code:<5}{names[code]}, known share {guesses.known_share(code):.2f}"
    sure = guesses.sure()
    counts = Counter(code or "unsure" for code in sure)
    yield f"{'paragraphs':<12}{', '.join(f'{code} {count}' for code, count in counts.most_common())}"
    least = Options().min_known_share
    if guesses.known_share(order[0]) < least:
        yield f"{'':<12}none of the languages: a crawl keeps known shares from {least} on"
    yield ""
    yield f"{'lang':<6}{'share':<7}text"
    for row, (named, text) in enumerate(zip(sure, paragraphs, strict=True)):
        yield f"{named or '-':<6}{guesses.known_share(named, [row]) if named else 0:<7.2f}{text}"


def _guesses(models: LanguageModels, paragraphs: Sequence[str]) -> Guesses:
    """The guesses at all *paragraphs*, with a progress bar on a terminal."""
    batches = range(0, max(1, len(paragraphs)), _BATCH_LINES)
    unit = f"x {_BATCH_LINES} paragraphs"
    found = [models.identify(paragraphs[at : at + _BATCH_LINES]) for at in with_progress(batches, unit, len(batches))]
    return Guesses.joined(found)


def _html(body: bytes, models: LanguageModels) -> tuple[Sequence[str], str]:
    page = process(
        body, url="http://file.invalid/", http_charset=None, models=models, options=TextOptions(models.codes)
    )
    return [paragraph.text for paragraph in page.paragraphs if paragraph.cls == "good"], page.encoding_detected or "-"


def _text(body: bytes, models: LanguageModels) -> tuple[Sequence[str], str]:
    found = decode(body, None, models.encodings(models.codes), models.spelling)
    return [line.strip() for line in (found.text or "").splitlines() if line.strip()], found.detected or "-"
