"""docs/text.svg: one page of the bundled web on its way through the text chain.

``python -m docs.picture`` draws it anew from what the code does now.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from xml.sax.saxutils import escape

from spiderling.base.files import zstd
from spiderling.languages import load
from spiderling.text import Page, TextOptions, process
from spiderling.text.boilerplate.features import declared_by, features
from spiderling.text.boilerplate.model import bundled
from spiderling.text.encoding.detect import decode
from spiderling.text.html.parser import Parsed, parse

ROOT = Path(__file__).resolve().parent.parent
WEB = ROOT / "examples/miniweb/pages.tar.zst"
PICTURE = ROOT / "docs/text.svg"
HOST, PATH = "instalace.test", "/cs/apas03.html"
ROW = 18
TOP = 92
WIDTH = 980
COLUMNS = {"block": 10, "text": 90, "length": 390, "first": 560, "second": 650, "class": 750, "language": 810}
_SIGNALS = 7
GOOD = "#2a7f4f"
LINKS = "#d98b3a"
OTHER = "#9aa4ad"
INK = "#222"


def main() -> None:
    PICTURE.write_text(picture(), encoding="utf-8")


def body() -> bytes:
    """The page as it is served."""
    web = zstd.decompress(WEB.read_bytes())
    with tarfile.open(fileobj=io.BytesIO(web)) as archive:
        file = archive.extractfile(HOST + PATH)
        assert file is not None
        return file.read()


def picture() -> str:
    """The drawing."""
    received = body()
    options = TextOptions(("cs",))
    page = process(
        received, url=f"http://{HOST}{PATH}", http_charset=None, models=load(["cs", "sk", "en", "de"]), options=options
    )
    parsed = parse(decode(received, None, ["windows-1250"]).text or "")
    tree = parsed.tree
    first = bundled().first(features(parsed.blocks, tree, declared_by(parsed)))
    second = bundled().probabilities(parsed.blocks, tree, declared_by(parsed))
    height = TOP + ROW * len(parsed.blocks) + 78
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="11" fill="{INK}">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        *_head(page, len(received), parsed),
    ]
    for number, block in enumerate(parsed.blocks):
        y = TOP + ROW * number
        parts += [
            _text("block", y, f"{number} {'h' if block.heading else block.tag or '-'}"),
            _text("text", y, block.text[:42] + ("…" if len(block.text) > 42 else "")),
            *_length(y, len(block.text), block.link_chars),
            *_chance("first", y, float(first[number]), 0.0),
            *_chance("second", y, second[number], options.block_threshold),
            *_fate(page, number, y),
        ]
    return "\n".join([*parts, *_foot(page, height), "</svg>"]) + "\n"


def _text(column: str | int, y: int, text: str, colour: str = INK, weight: str = "normal") -> str:
    x = COLUMNS[column] if isinstance(column, str) else column
    return f'<text x="{x}" y="{y + 12}" fill="{colour}" font-weight="{weight}">{escape(text)}</text>'


def _head(page: Page, size: int, parsed: Parsed) -> list[str]:
    heads = {
        "block": "1 blocks (html/)",
        "length": "length, in links",
        "first": "2 first guess",
        "second": "3 in context",
        "class": "4 class",
        "language": "5 language, kept",
    }
    encodings = f"declared {page.encoding_declared}, detected {page.encoding_detected}"
    return [
        _text(10, 6, f"http://{HOST}{PATH}: {size} bytes, {encodings} (encoding/)", weight="bold"),
        _text(10, 24, f"title: {page.title} | html lang: {page.html_lang} | {len(parsed.links)} links (declared.py)"),
        *(_text(column, TOP - 28, head, weight="bold") for column, head in heads.items()),
        f'<line x1="10" x2="{WIDTH - 10}" y1="{TOP - 8}" y2="{TOP - 8}" stroke="{OTHER}"/>',
    ]


def _length(y: int, chars: int, in_links: int) -> list[str]:
    x = COLUMNS["length"]
    scale = 160 / 800
    whole, links = (min(160.0, count * scale) for count in (chars, in_links))
    return [_bar(x, y, whole, OTHER), _bar(x, y, links, LINKS)]


def _chance(column: str, y: int, chance: float, threshold: float) -> list[str]:
    x = COLUMNS[column]
    mark = f'<line x1="{x + 80 * threshold:.0f}" x2="{x + 80 * threshold:.0f}" y1="{y}" y2="{y + ROW}" stroke="{INK}"/>'
    return [_bar(x, y, 80 * chance, GOOD), *([mark] if threshold else [])]


def _bar(x: int, y: int, width: float, colour: str) -> str:
    return f'<rect x="{x}" y="{y + 3}" width="{width:.0f}" height="{ROW - 6}" fill="{colour}"/>'


def _fate(page: Page, number: int, y: int) -> list[str]:
    paragraph = page.paragraphs[number]
    colour = GOOD if paragraph.cls == "good" else OTHER
    told = {True: "kept", False: ""}[paragraph.kept]
    language = paragraph.language or ("too short to tell" if paragraph.cls == "good" else "")
    return [
        _text("class", y, paragraph.cls, colour),
        _text("language", y, ", ".join(filter(None, (language, told))), GOOD if paragraph.kept else INK),
    ]


def _foot(page: Page, height: int) -> list[str]:
    shares = ", ".join(f"{code} {share:.2f}" for code, share in page.languages.items())
    signals = [f"{name} {value}" for name, value in page.quality.attributes().items()]
    quality = ", ".join([*signals[:_SIGNALS], "..."])  # as many as a line holds
    return [
        f'<line x1="10" x2="{WIDTH - 10}" y1="{height - 70}" y2="{height - 70}" stroke="{OTHER}"/>',
        _text(
            10,
            height - 64,
            f"the document: language {page.language} ({shares}), known share {page.known_share:.2f}, "
            f"badness {page.badness:.1f} (language/)",
        ),
        _text(10, height - 46, f"{quality} (quality.py)"),
        _text(10, height - 28, f"kept: {page.words} words, {page.clean_bytes} bytes of clean text", weight="bold"),
    ]


if __name__ == "__main__":
    main()
