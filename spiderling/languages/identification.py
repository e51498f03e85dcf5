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
    if _HTML.search(body, 0, _HEAD_BYTES):
        options = TextOptions(models.codes)
        page = process(body, url="http://file.invalid/", http_charset=None, models=models, options=options)
        encoding = page.encoding_detected
        paragraphs = [paragraph.text for paragraph in page.paragraphs if paragraph.cls == "good"]
    else:
        text, _, encoding, _ = decode(body, None, models.encodings(models.codes), models.spelling)
        paragraphs = [line.strip() for line in (text or "").splitlines() if line.strip()]
    parts = list(_guesses(models, paragraphs))
    sizes = [float(part.sizes.sum()) for part in parts]
    if not sum(sizes):
        raise BadInput(
            "there is no text in it; give a file with some sentences of text, or an HTML page that has them."
        )
    yield f"{'encoding':<12}{encoding or '-'}"
    scores = sum(part.scores.sum(0) for part in parts)
    order = [models.codes[index] for index in (-scores).argsort(kind="stable").tolist()[:_NEAREST]]
    shares = [
        sum(part.known_share(code) * size for part, size in zip(parts, sizes, strict=True)) / sum(sizes)
        for code in order
    ]
    for place, (code, share) in enumerate(zip(order, shares, strict=True)):
        label = "language" if not place else "next" if place == 1 else ""
        yield f"{label:<12}{code:<5}{names[code]}, known share {share:.2f}"
    rows = [(code, part, row) for part in parts for row, code in enumerate(part.sure())]
    counts = Counter(code or "unsure" for code, _, _ in rows)
    yield f"{'paragraphs':<12}{', '.join(f'{code} {count}' for code, count in counts.most_common())}"
    least = Options().min_known_share
    if shares[0] < least:
        yield f"{'':<12}none of the languages: a crawl keeps known shares from {least} on"
    yield ""
    yield f"{'lang':<6}{'share':<7}text"
    for (named, part, row), text in zip(rows, paragraphs, strict=True):
        yield f"{named or '-':<6}{part.known_share(named, [row]) if named else 0:<7.2f}{text}"


def _guesses(models: LanguageModels, paragraphs: Sequence[str]) -> Iterator[Guesses]:
    """The guesses at *paragraphs*, _BATCH_LINES at once, with a progress bar on a terminal."""
    batches = range(0, len(paragraphs), _BATCH_LINES)
    for at in with_progress(batches, f"x {_BATCH_LINES} paragraphs", len(batches)):
        yield models.identify(paragraphs[at : at + _BATCH_LINES])
