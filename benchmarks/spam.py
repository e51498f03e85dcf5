"""What the signs of link farms and of text by machines cost, and how many good pages they refuse.

    python benchmarks/spam.py [--quick] [--data DIR]

Good pages: those of the bundled miniature web, and of DIR/pages (real pages of ten languages, with gold text), that all
other verdicts on quality let pass.  Bad ones are made of their text: a paragraph with other names a hundred times, a
word added after each sixth, a link to another host in each fifth.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import zstandard

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import ROOT, arguments, result, table
from spiderling import languages
from spiderling.base.options import Options
from spiderling.engine.outcomes import DropPage
from spiderling.pipelines import check_quality
from spiderling.text import Page, TextOptions, clean_text, process
from spiderling.text.spam import with_spam_signs

CODES = ("cs", "en", "de", "fr", "el", "pl", "ru", "zh", "sk", "es")
NEW = Options(lang="cs")
OLD = replace(NEW, quality="packed_share=0..,top_word_share=..1,outlinks=..1e9", translated="keep")
LARGE_BYTES = 131_000


def miniature_web() -> Iterator[tuple[str, bytes]]:
    with (ROOT / "examples/miniweb/pages.tar.zst").open("rb") as file:
        packed = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        with tarfile.open(fileobj=packed, mode="r|") as archive:
            for entry in archive:
                if entry.isfile() and (page := archive.extractfile(entry)):
                    yield f"http://{entry.name.removeprefix('./').partition('/')[0]}/", page.read()


def real_pages(data: Path) -> Iterator[tuple[str, bytes]]:
    with (data / "pages/pages-dev.jsonl.zst").open("rb") as file:
        for line in io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), "utf-8"):
            row = json.loads(line)
            yield f"http://{row['set'].lower()}.test/", row["html"].encode("latin-1")


def refused(page: Page, options: Options) -> str:
    """The sign by which a page is refused; '' if it is not."""
    try:
        check_quality(page, options)
    except DropPage as drop:
        return str(drop).partition(":")[0]
    return ""


def spoilt(text: str) -> Iterator[tuple[str, str]]:
    """Pages that machines might make of *text*."""
    words = text.split()[:600]
    yield "repeated", "".join(f"<p>{' '.join(words[:25])} {number}.</p>" for number in range(100))
    yield "stuffed", f"<p>{' '.join(w if at % 4 else w + ' xyword' for at, w in enumerate(words))}</p>"
    links = (w if at % 5 else f'{w} <a href="http://o{at}.test/">x</a>' for at, w in enumerate(words))
    yield "linked", f"<p>{' '.join(links)}</p>"


class Measured:
    """Good pages of all sources, and bad ones made of them."""

    def __init__(self, step: int) -> None:
        self._step = step
        self._models, self._chosen = languages.load(CODES), TextOptions(CODES)
        self.rows: list[list[object]] = []
        self.good, self.alarms = 0, 0
        self.made, self.caught = Counter[str](), Counter[str]()
        self._nearest: tuple[int, Page, bytes] | None = None

    def processed(self, url: str, body: bytes) -> Page:
        return process(body, url=url, http_charset=None, models=self._models, options=self._chosen)

    def look(self, source: str, pages: Iterator[tuple[str, bytes]]) -> None:
        good, found = 0, Counter[str]()
        for url, body in islice(pages, 0, None, self._step):
            page = self.processed(url, body)
            if not page.clean_bytes or page.known_share < NEW.min_known_share or refused(page, OLD):
                continue
            good += 1
            if sign := refused(page, NEW):
                found[sign] += 1
                print(f"refused: {url} {sign} {page.quality}")
            if self._nearest is None or abs(len(body) - LARGE_BYTES) < self._nearest[0]:
                self._nearest = (abs(len(body) - LARGE_BYTES), page, body)
            if good % 20 == 0:
                self._spoil(page)
        self.rows.append([source, good, found.total(), ", ".join(f"{sign} {n}" for sign, n in found.items())])
        self.good, self.alarms = self.good + good, self.alarms + found.total()

    def _spoil(self, page: Page) -> None:
        for kind, html in spoilt(clean_text(page.paragraphs)):
            bad = self.processed("http://h.test/", html.encode())
            if not refused(bad, OLD):
                self.made[kind] += 1
                self.caught[kind] += bool(refused(bad, NEW))

    def cost_ms(self) -> float:
        """Of a page of about 131 kB."""
        assert self._nearest is not None
        _, page, body = self._nearest
        text, html, model = (
            clean_text(page.paragraphs),
            body.decode("utf-8", "replace"),
            self._models[page.language or ""],
        )
        begin = time.process_time()
        for _ in range(200):
            with_spam_signs(page, text, html, "http://h.test/", model)
        ms = 5 * (time.process_time() - begin)
        print(f"\n{len(body):,} bytes, {page.words:,} words: {ms:.3f} ms")
        return ms


def main() -> None:
    options = arguments(__doc__)
    measured = Measured(8 if options.quick else 1)
    measured.look("miniature web", miniature_web())
    if options.data:
        measured.look("real pages", real_pages(options.data))
    table(["good pages", "number", "refused", "by"], measured.rows)
    table(
        ["made pages", "pass else", "refused"], [[kind, n, measured.caught[kind]] for kind, n in measured.made.items()]
    )
    share = measured.alarms / max(1, measured.good)
    result(pages=measured.good, false_alarms=round(share, 5), ms_131k=round(measured.cost_ms(), 3))


if __name__ == "__main__":
    main()
