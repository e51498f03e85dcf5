"""Our pass gives what the justext package gives once the package's defects are switched on, each by its name."""

from __future__ import annotations

import io
import json
import tarfile
from itertools import islice
from pathlib import Path

import justext
import pytest
import stock_justext
from hypothesis import given
from hypothesis import strategies as st
from needs import DATA, needs

from spiderling.base.files import zstd
from spiderling.text.boilerplate import rules
from spiderling.text.boilerplate.rules import JustextRules
from spiderling.text.encoding.detect import decode
from spiderling.text.html import parser

ROOT = Path(__file__).resolve().parents[2]
BUNDLED = ROOT / "examples/miniweb/pages.tar.zst"
REAL = DATA / "pages/pages-dev.jsonl.zst"
FLOOR = 0.995
STOP = frozenset(word.lower() for word in justext.get_stoplist("English"))
RULES = JustextRules()
LONG = "the man who was in the house had been there for some time and " * 5
NEAR = "the man who was in the house had been there for some time and was not at home"
MENU = "Products Prices Contact Imprint Newsletter Login Register Basket Checkout Shipping"


def theirs(page: str) -> list[tuple[str, str, bool, int]] | None:
    try:
        found = justext.justext(page.encode("utf-8", "replace"), STOP, encoding="utf-8")
    except ValueError:  # it raises on some control characters
        return None
    return [(" ".join(one.text.split()), one.class_type, one.heading, one.chars_count_in_links) for one in found]


def ours(page: str, way=stock_justext) -> list[tuple[str, str, bool, int]]:
    found = way.parse(page)
    blocks = found if isinstance(found, list) else found.blocks
    classes = (stock_justext if way is stock_justext else rules).classify(blocks, STOP, RULES)
    return [(one.text, cls, one.heading, one.link_chars) for one, cls in zip(blocks, classes, strict=True)]


def share_of_same(pages: list[str]) -> float:
    compared = [(their, ours(page)) for page in pages if (their := theirs(page)) is not None]
    assert sum(len(their) for their, _ in compared) > 1000
    return sum(their == our for their, our in compared) / len(compared)


def bundled_pages() -> list[str]:
    web = zstd.decompress(BUNDLED.read_bytes())
    with tarfile.open(fileobj=io.BytesIO(web)) as archive:
        files = [archive.extractfile(member).read() for member in archive if member.name.endswith("html")]
    texts = (decode(body, None).text for body in files[::5])
    return [text for text in texts if text]


@pytest.mark.slow
def test_same_on_bundled_pages():
    assert share_of_same(bundled_pages()) == 1


@pytest.mark.slow
@needs("real pages")
def test_same_on_real_pages():
    with REAL.open("rb") as compressed:
        stream = zstd.ZstdFile(compressed)
        lines = islice(io.TextIOWrapper(stream, "utf-8"), 0, None, 4)
        texts = [decode(json.loads(line)["html"].encode("latin-1"), None).text for line in lines]
    assert share_of_same([text for text in texts if text]) >= FLOOR


PAGES = {
    "article": f"<h1>Title</h1><p>{LONG}</p><p>{NEAR}</p><h2>Sub</h2><p>Short.</p><p>{LONG}</p><div>{MENU}</div>",
    "menu": f"<ul><li><a href=x>Home</a><li><a href=y>News</a></ul><table><tr><td>{LONG}<td>{NEAR}</table>",
    "breaks": f"{LONG}<br><br>{NEAR}<br>{MENU}<br><br><b>{LONG}</b> <i>a</i><form>a<input>b</form>{NEAR}",
    "unclosed": f"<div><p>{LONG}<div>{NEAR}<p>x<span>y<blockquote>{LONG}",
    "killed": f"<p>{NEAR}<script>x</script>{NEAR}<style>y</style></p><p>one<!-- c -->two</p><button>{LONG}</button>",
}


@pytest.mark.parametrize("name", PAGES)
def test_same_on_small_pages(name):
    page = f"<html><body>{PAGES[name]}</body></html>"
    assert ours(page) == theirs(page)


KINDS = {"p": (LONG, NEAR, MENU, "Short one."), "h2": ("A title", NEAR)}
BLOCKS = st.sampled_from([f"<{tag}>{text}</{tag}>" for tag, texts in KINDS.items() for text in texts])


@given(st.lists(BLOCKS, min_size=1, max_size=12))
def test_same_on_any_blocks_in_a_row(blocks):
    page = f"<html><body>{''.join(blocks)}</body></html>"
    assert ours(page) == theirs(page)


def texts(page: str, way=parser) -> list[str]:
    return [row[0] for row in ours(page, way)]


DIFFERENCES = {
    "it glues words between inline tags": (
        "<p><b>Hello</b> <i>world</i> of <a>one</a> <a>two</a>", ["Helloworld of onetwo"], ["Hello world of one two"],
    ),
    "it keeps the controls of Windows": ("<p>a\x93b\x94c</p>", ["a\x93b\x94c"], ["a“b”c"]),
    "it keeps other controls": ("<p>a\x07b</p>", ["a\x07b"], ["ab"]),
    "it counts what has no look as a paragraph": ("<p>\u200b</p><p>\u00ad</p>x", ["\u200b", "\u00ad", "x"], ["x"]),
    "it leaves accents apart": ("<p>Cafe\u0301</p>", ["Cafe\u0301"], ["Café"]),
    "it loses what follows the root element": (
        "<!DOCTYPE html><html><body><p>a</p></body></html><p>b</p>", ["a"], ["a", "b"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENCES)
def test_named_differences(name):
    page, package, mended = DIFFERENCES[name]
    page = page if page.startswith("<!") else f"<html><body>{page}</body></html>"
    assert [row[0] for row in theirs(page)] == texts(page, stock_justext) == package
    assert texts(page) == mended


def test_it_never_looks_ahead_from_a_short_heading():
    """Its issue 45; seen at what stands between the heading and the text."""
    page = f"<html><body><p>{MENU * 3}<h2>A title</h2><p>Short.<p>{LONG}"
    assert [row[1] for row in theirs(page)] == [row[1] for row in ours(page)] == ["bad", "good", "bad", "good"]
    assert [row[1] for row in ours(page, parser)] == ["bad", "good", "good", "good"]


def test_it_raises_on_a_control_behind_what_it_removes():
    page = "<html><body><p>a<script>x</script>\x01b</p></body></html>"
    assert theirs(page) is None
    assert texts(page) == ["ab"]
