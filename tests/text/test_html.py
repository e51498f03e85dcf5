"""One pass over HTML: jusText's paragraphs, links, metadata; hostile pages."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.text.html.blocks import MAX_BLOCKS, MAX_LINKS, normal_form
from spiderling.text.html.links import resolve
from spiderling.text.html.parser import parse
from spiderling.text.html.zones import BITS


def texts(html: str) -> list[str]:
    return [block.text for block in parse(html).blocks]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>one<p>two", ["one", "two"]),
        ("<div>one<div>two</div>three</div>", ["one", "two", "three"]),
        ("<b>Hello</b> <i>world</i>", ["Hello world"]),  # stock jusText: "Helloworld"
        ("<p>one <a href=x>two</a> <a href=y>three</a></p>", ["one two three"]),
        ("<p>wo<b>r</b>d</p>", ["word"]),
        ("<p>Mo<span>Monday</span>", ["MoMonday"]),  # "Mc" and "De" begin words
        ("<a href=x>Home</a><a href=y>About us</a>", ["Home About us"]),
        ("<p><b>Weiter</b>Anhang <b>W</b>ord <b>Haus</b>halt JS<b>Code</b>", ["Weiter Anhang Word Haushalt JSCode"]),
        ("<p>in rc<i>X</i>.d und Histogram<wbr>Scale", ["in rcX.d und HistogramScale"]),
        ("<p><span hidden>the box</span><span hidden>can be</span>", ["the box can be"]),
        ("one<section>two</section><section>three</section>", ["one two three"]),
        # a browser glues what is inline, and shows the rest apart
        ("<p>1<span>2</span><b>3</b><wbr>4<sup>5</sup><script>no</script>6", ["123456"]),
        ("<p>1<img>2<input>3<button>no</button>4<video></video>5", ["1 2 3 4 5"]),
        ("1<address>2</address><details><summary>3</summary>4</details>5<hr>6", ["1 2 3 4 5 6"]),
        ("<p>one<svg><title>no</title><desc>no</desc><text>two</text></svg>three", ["one two three"]),
        ("one<title>no</title><p>two", ["one", "two"]),
        ("<p>one<br>two</p>", ["one two"]),
        ("<p>one<br> <br>two</p>", ["one", "two"]),
        ("<p>one<br><b>x</b><br>two</p>", ["one x two"]),
        ("<p>one<script>var x = '<p>no</p>'</script> two<style>p{}</style></p>", ["one two"]),
        ("<p>one<!-- no --> two</p>", ["one two"]),
        ("<form>one<input value=no><button>no</button><select><option>no</select><textarea>no</textarea> two</form>",
         ["one two"]),
        ("<div><button><div><div></button></div><h2>a</h2><button>no</button><p>b<p>c</div>", ["b", "c"]),
        ("<ul><li>a<li>b</ul><table><tr><td>c<td>d</table>", ["a", "b", "c", "d"]),
        ("<p>a\x00b\x01c</p>", ["abc"]),
        ("<p>&#147;a&#148; &#0; &amp; &nbsp; b</p>", ["“a” \ufffd & b"]),
        ("<p>  \n </p><p>\u3000</p>", []),
        ("<p>a\x85</p>", ["a…"]),
        ("", []),
        ("just text", ["just text"]),
        # libxml2 tells of white space behind </html>, but has it in no tree
        ("<p>one</html> two</html> three", ["one", "two three"]),
        ("<pre>one</html>\n<i>two</i></html> <b>three</b>", ["one", "two three"]),
    ],
)  # fmt: skip
def test_paragraphs(html, expected):
    assert texts(html) == expected


def test_headings_and_link_characters():
    blocks = parse("<h2>Title <a href=x>in  a link</a></h2><div><h3><span>Sub</span></h3>text</div>").blocks
    assert [(block.text, block.heading, block.link_chars) for block in blocks] == [
        ("Title in a link", True, 9),
        ("Sub", True, 0),
        ("text", False, 0),
    ]


def test_links_know_their_block():
    html = """<p>one <a href="/a" rel="nofollow ugc">first</a></p>
      <p><a href="b.html"><img src=i alt=picture></a></p>
      <p>two <a href="?q=1#frag">second <b>bold</b></a> <a name=anchor>no</a></p>
      <map><area href="c" alt="an area"></map><a href="//other.test/d">last</a> end"""
    parsed = parse(html)
    found = [(url, link.anchor, link.rel, link.block) for link, url in resolve(parsed.links, "http://h.test/x/y", None)]
    assert found == [
        ("http://h.test/a", "first", "nofollow ugc", 0),
        ("http://h.test/x/b.html", "", "", -1),
        ("http://h.test/x/y?q=1", "second bold", "", 1),
        ("http://h.test/x/c", "an area", "", 2),
        ("http://other.test/d", "last", "", 2),
    ]


def test_a_link_without_text_before_a_refresh_stands_in_no_block():
    parsed = parse("<p>a<p><a href=/x></a><meta http-equiv=refresh content='0;url=/r'><p><a href=/y>b</a>")
    assert [(link.href, link.block) for link in parsed.links] == [("/x", -1), ("/r", -1), ("/y", 1)]


def test_frames_and_refresh_lead_on():
    html = (
        "<meta http-equiv=refresh content=\"0; URL='/next'\"><frameset><frame src=menu.html><frame src=/m></frameset>"
    )
    assert [url for _, url in resolve(parse(html).links, "http://h.test/", None)] == [
        "http://h.test/next",
        "http://h.test/menu.html",
        "http://h.test/m",
    ]


@pytest.mark.parametrize(
    ("base", "href", "expected"),
    [
        (None, "x y", ["http://h.test/a/x%20y"]),
        (None, " \n/x\n", ["http://h.test/x"]),
        (None, "http://Ex.TEST:80/./a/../b", ["http://ex.test/b"]),
        (None, "http://příklad.test/ř", ["http://xn--pklad-zsa96e.test/%C5%99"]),
        ("http://b.test/c/", "d", ["http://b.test/c/d"]),
        ("/e/", "d", ["http://h.test/e/d"]),
        ("http://[", "d", ["http://h.test/a/d"]),
        (None, "mailto:a@b", []),
        (None, "javascript:void(0)", []),
        (None, "http://[", []),
        (None, "#top", []),
        (None, "", []),
    ],
)
def test_resolve(base, href, expected):
    links = parse("").links or parse(f'<a href="{href}">x</a>').links
    assert [url for _, url in resolve(links, "http://h.test/a/b", base)] == expected


def test_head():
    parsed = parse("""<html lang="cs-CZ"><head><title> A &amp; B
      </title><meta name=Robots content="noindex, nofollow"><meta property="og:locale" content=cs_CZ>
      <meta name=viewport content=no><link rel=canonical href=/c><link rel="license" href="http://cc.test/by">
      <base href=/base/><base href=/second/></head><body><svg><title>no</title></svg>x</body></html>""")
    assert (parsed.title, parsed.html_lang, parsed.base) == ("A & B", "cs-CZ", "/base/")
    assert parsed.meta == {"robots": "noindex, nofollow", "og:locale": "cs_CZ"}
    assert parsed.rels == {"canonical": "/c", "license": "http://cc.test/by"}


@pytest.mark.parametrize(
    ("html", "title"),
    [
        # a tag before <html> makes the parser leave out the head: what followed used to become the title
        ("<text><html><head><title>Right</title><style>p{}</style></head><p>x<script>var x</script>", "Right"),
        ("<p>text</p><svg><title>a picture</title></svg><script>var x</script>", ""),
        ("<title>One</title><title>Two</title>", "One"),
        ("<body><title>One</title>text", "One"),
    ],
)
def test_title(html, title):
    assert parse(html).title == title


@pytest.mark.parametrize(
    ("html", "places"),
    [
        ("<p><a href=1>one</a> text <a href=2>two<p>three</a>", [0, 0]),
        ("<p> <a href=1> </a><section><a href=2>x</a>", [0, 0]),
        ("<p><a href=1><img></a><p>x<br> <br><a href=2>y</a>", [-1, 1]),
        ("<p>x <a href=1>y</a><p><a href=2>\u200b</a><p><a href=3>z</a>", [0, -1, 1]),  # one that has no look
    ],
)
def test_links_over_several_tags(html, places):
    assert [link.block for link in parse(html).links] == places


@pytest.mark.parametrize(
    ("html", "chars"),
    [
        ("<p>a <a href=1>b  c <b>d</b> </a>e", 5),
        ("<p><a href=1>one<p>two</a> three", 3),
        ("<p><a name=1>one</a> two", 3),
        ("<p><a href=1>x<br>y</a>", 2),
        ("<p><a href=1>x<script>no</script>y</a>", 2),
    ],
)
def test_characters_of_links(html, chars):
    assert parse(html).blocks[0].link_chars == chars


@pytest.mark.parametrize(
    ("html", "pieces"), [("<p>a <b>b</b> <i> </i><i>c</i>", 3), ("<p>a<form>b</form>c", 1), ("<p>a<br>b<img>c", 3)]
)
def test_pieces(html, pieces):
    assert parse(html).blocks[0].pieces == pieces


@pytest.mark.parametrize(
    ("html", "zones"),
    [
        ("<nav>a</nav><p>b", [("b", "")]),
        ("<div class=sidebar><p>a<p>b</div>c", [("a", "side"), ("b", "side"), ("c", "")]),
        ("<div> <nav> <footer>a</footer>b</nav>", [("a b", "navigation footer")]),
        ("<div><b>a</b> <nav>b</nav>", [("a b", "")]),
        ("<form class=search><p>a</form>", [("a", "aid")]),
        ("<div role=banner><p>a</div><div itemprop=comment><p>b", [("a", "header"), ("b", "comment")]),
        ("<div style='color:red; display : none'><p>a</div><p hidden>b", [("a", "hidden"), ("b", "hidden")]),
        ("<noscript><p>a</noscript><pre>b", [("a", "notice"), ("b", "code")]),
    ],
)
def test_zones(html, zones):
    parsed = parse(html)
    inherited = parsed.tree.zones
    found = [
        (block.text, " ".join(name for name, bit in BITS.items() if inherited[block.element] & bit))
        for block in parsed.blocks
    ]
    assert found[-len(zones) :] == zones


HOSTILE = {
    "short divs": "<div>x</div>" * 100_000,
    "headings": "<h1>x</h1>" * 100_000,
    "nested divs": "<div>" * 50_000 + "x",
    "nested spans": "<span>" * 50_000 + "x",
    "nested links": "<a href=x>" * 50_000 + "x",
    "attributes": "<p " + " ".join(f"a{i}=1" for i in range(200_000)) + ">text",
    "open tags": "<" * 1_000_000,
    "one long text": "x" * 5_000_000,
    "one long paragraph": "<p>" + "word <b>" * 300_000,
    "links": "<a href=/x>y</a> " * 200_000,
    "entities": "&" * 1_000_000,
    "controls": "".join(map(chr, range(32))) * 10_000,
    "comments": "<!--" * 200_000,
    "breaks": "<br>" * 300_000,
    "charset": "<meta " * 300_000,
    "refresh": '<meta http-equiv=refresh content="' + "url=" * 300_000 + '">',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_take_bounded_time_and_memory(name):
    start = time.process_time()
    parsed = parse(HOSTILE[name])
    resolve(parsed.links, "http://h.test/", parsed.base)
    assert time.process_time() - start < 4
    assert len(parsed.blocks) <= MAX_BLOCKS
    assert len(parsed.links) <= MAX_LINKS + 1


@given(st.text(alphabet=st.sampled_from("<>/=\"'& abpdivhrefscrip!-\x00\x0b#;1\n"), max_size=300) | st.text())
def test_parse_never_raises(html):
    parsed = parse(html)
    for block in parsed.blocks:
        assert block.text == normal_form(block.text) != ""
    assert all(-1 <= link.block < max(1, len(parsed.blocks)) for link in parsed.links)
    for _, url in resolve(parsed.links, "http://h.test/", parsed.base):
        assert url.startswith("http")
