"""Floors of boilerplate removal on pages that may ship: the bundled web, whose sites mark their text.

The gold text of a page is what its site's own markup encloses as content, without tables
of contents; pages were looked at by eye.  The bundled weights never saw these sites.
"""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import lxml.html
import pytest

from models import boilerplate_fit
from models.marked_pages import MarkedPage
from spiderling.base.files import zstd
from spiderling.text.boilerplate.model import THRESHOLD, bundled

PAGES = Path(__file__).resolve().parents[2] / "examples/miniweb/pages.tar.zst"
# host -> where the text is, what in it is none, floor of F1; the handbooks' went from .93 to .92 when the second
# network came, which wins 2.6 points on pages of other kinds (docs/text.md)
SITES = {
    "handbook.cs-cz.test": ('//div[@class="chapter" or @class="section"]', '//div[@class="toc"]', 0.92),
    "handbook.pl-pl.test": ('//div[@class="chapter" or @class="section"]', '//div[@class="toc"]', 0.92),
    "upg.de.test": ('//div[@id="content"]', "//nav", 0.9),
    "install.test": ('//div[@class="sect1"]', '//div[@class="toc"]', 0.97),
}
PER_HOST, MIN_CHARS = 12, 1500


def marked_pages() -> list[MarkedPage]:
    web = zstd.decompress(PAGES.read_bytes())
    found: dict[str, list[MarkedPage]] = {host: [] for host in SITES}
    with tarfile.open(fileobj=io.BytesIO(web)) as archive:
        for member in archive:
            host = member.name.partition("/")[0]
            file = archive.extractfile(member) if host in SITES and member.name.endswith("html") else None
            if file is None or len(found[host]) >= PER_HOST:
                continue
            html = file.read().decode("utf-8", "replace")
            text = content(html, *SITES[host][:2])
            if len(text) >= MIN_CHARS:
                found[host].append(MarkedPage(html, text, host=host, group=host))
    return [page for pages in found.values() for page in pages]


def content(html: str, where: str, but: str) -> str:
    tree = lxml.html.document_fromstring(html.encode(), parser=lxml.html.HTMLParser(encoding="utf-8"))
    for element in tree.xpath(f"{but}|//script|//style"):
        element.drop_tree()
    first = tree.xpath(where)[:1]
    return " ".join(" ".join(first[0].itertext()).split()) if first else ""


@pytest.fixture(scope="module")
def every():
    return boilerplate_fit.samples(marked_pages())


def learned(every) -> dict[str, float]:
    model = bundled()
    return boilerplate_fit.table(every, lambda _, one: model.of_features(one.rows, one.blocks, one.tree) >= THRESHOLD)


def test_floors(every):
    scores = learned(every)
    assert set(scores) == set(SITES)
    assert {host: value for host, value in scores.items() if value < SITES[host][2]} == {}


def test_the_fit_that_made_the_weights_reached_its_floor():
    scores = bundled().origin["held_out_f1"]
    older = {name: value for name, value in scores.items() if not name.startswith("wcxb")}
    assert len(older) == 15
    assert boilerplate_fit.mean(older) >= 0.916
    floors = {"article": 0.94, "documentation": 0.92, "forum": 0.83, "service": 0.84}
    floors |= {"listing": 0.68, "collection": 0.71, "product": 0.72}
    assert {kind: scores[f"wcxb {kind}"] for kind, floor in floors.items() if scores[f"wcxb {kind}"] < floor} == {}
    assert min(older.values()) > 0.75
