"""One pass over HTML: jusText's paragraphs, links, metadata."""

from __future__ import annotations

import json
import unicodedata
from array import array
from collections import Counter

import pytest
from cleaned_pages import URL, cleaned
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.link_batch import FOREIGN, WANTED
from spiderling.base.urls import owner_of
from spiderling.text import Page
from spiderling.text.dates import iso_date
from spiderling.text.declared import fill_head
from spiderling.text.html.blocks import RawLink, normal_form, normal_forms
from spiderling.text.html.links import join, resolve
from spiderling.text.html.metadata import MAX_ALTERNATES, MAX_DATA_CHARS
from spiderling.text.html.parser import parse
from spiderling.text.html.zones import BITS
from spiderling.text.hyphens import rejoined


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
        ("<p><span id=a hidden>the box</span><span id=b hidden>can be</span>", ["the box can be"]),
        ("one<section>two</section><section>three</section>", ["one two three"]),
        # a browser glues what is inline, and shows the rest apart
        ("<p>1<span>2</span><b>3</b><wbr>4<sup>5</sup><script>no</script>6", ["123456"]),
        ("<p>1<img>2<input>3<button>no</button>4<video></video>5", ["1 2 3 4 5"]),
        ("1<address>2</address><details><summary>3</summary>4</details>5<hr>6", ["1 2 3 4 5 6"]),
        # what a style may part: authors, dates, elements of the page's own
        ("<p><span class=author>karel</span><span>dnes prší", ["karel dnes prší"]),
        ("<p><cite>Karel wrote:</cite>no", ["Karel wrote: no"]), ("<p>(<cite>Faust</cite>), 1808", ["(Faust), 1808"]),
        ("<p><a class=username href=x>jana99</a>ano<b class=post-date>3. 4.</b>a ne", ["jana99 ano 3. 4. a ne"]),
        ("<p><span class=user><span>jan</span></span>ne<i itemprop=author>eva</i>!", ["jan ne eva!"]),
        ("<p>„<em class=quote>R<b>u</b></em>“, <q>a<i class=date>1.</i></q>b<s-x><s-y>c</s-y>:</s-x>d<b class=user>e",
         ["„Ru“, a 1. b c: d e"]),
        ("<p>by<user-name>eva</user-name>at<time>9:30</time>hod.", ["by eva at 9:30 hod."]),
        ("<p>これは<time>2021年</time>に<cite>本</cite>", ["これは2021年に本"]),
        ("<p><span class=dropcap>N</span>a <b class=text-red>j</b>aře", ["Na jaře"]),
        ("<p>one<svg><title>no</title><desc>no</desc><text>no<tspan>no</svg>three", ["one three"]),
        ("<div>one<svg><path d=x><text>no<p>two</p></div><p>three", ["one", "two", "three"]),
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


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        # what no reader sees: without a name nothing can ever show it
        ("<p hidden>no</p><p>yes", ["yes"]), ("<p>a<div style='display: none'><p>no<p>no</div>b", ["a", "b"]),
        ("<p>a <span style='visibility:hidden' lang=cs>no</span>b", ["a b"]),
        ("<h2 aria-hidden=true hidden>no</h2>yes", ["yes"]),
        # the whole page, until a script has run
        ("<html hidden><body style='display:none'><div hidden>yes</div><div hidden>no</div>", ["yes"]),
        ("<div id=tab2 hidden><p>yes</div><div class=more style='display:none'>yes</div>", ["yes", "yes"]),
        ("<h3>Question</h3><div style='display:none'><p>yes</div><div hidden>no</div>", ["Question", "yes"]),
        ("<p>More<span class='x sr-only'> about it</span>", ["More"]), ("<p class=visually-hidden>no<p>yes", ["yes"]),
        ("<a class=screen-reader-text href=#c>Skip</a><p class=sr-only-not>yes", ["yes"]),
        ("<template><p>no<template><p>no</template><p>no</template>yes", ["yes"]),
        ("<div><template shadowrootmode=open><p>yes</template></div>", ["yes"]),
        ("<p>東<ruby>京<rp>(</rp><rt>きょう</rt><rp>)</rp></ruby>は", ["東京は"]),
        # edits, and phrases without an end tag
        ("<p>sold <del>two</del> <ins>three</ins> <s>old</s> houses", ["sold three houses"]),
        ("<del><p>no</p><p>no</p></del><p>yes", ["yes"]), ("<div>a<s>b<p>c</p><p>d</p></div>", ["a", "c", "d"]),
        ("<div>a<span class=sr-only>b<h2>c</h2>d</div>", ["a", "c", "d"]),
        # marks of notes, with their brackets
        ("<p>tree<sup><a href=#f1>[1]</a></sup>, <sup>[<a href=/x#f2>2</a>]</sup>x", ["tree, x"]),
        ("<p>tree<a href=#f1><sup>1</sup></a>, m<sup>2</sup>, see <a href=#e>E = mc<sup>2</sup></a>",
         ["tree, m2, see E = mc2"]),
        ("<p>tree<a role=doc-noteref href=n.html>1</a><a class='footnote-ref' href=n>2</a>.", ["tree."]),
        ("<p>a <sup><a href=#1>1</a></sup>, b&nbsp;<a href=#2><sup>2</sup></a>. c <a class=footnote-ref href=n>3</a>d",
         ["a, b. c d"]),
        ("<p>a <sup><a href=#1>1</a></sup> ; b <sup>[<b><a href=#2>2</a></b>]</sup>.NET"
         " <i><sup><a href=#3>3</a></sup></i>.",
         ["a ; b .NET."]), ("<p>more <span class=sr-only>x</span>... and", ["more ... and"]),
        ("<p>run <a role=doc-noteref>x</a>./a, a. <a role=doc-noteref>y</a>. A <i class=quote>b</i>-c",
         ["run ./a, a. . A b-c"]),
        ("<p>x<sup><a href=/wiki>not a mark</a></sup><p>y<sup>a<p>b</sup>c", ["xnot a mark", "ya", "b", "c"]),
        ("<li><a href=#r1>↑</a> note <a href=#r1 role=doc-backlink>back</a>", ["note"]),
        ("<h2>History<a href=#history>¶</a></h2>", ["History"]), ("<p>a<a href=#x>|</a>b", ["a b"]),
        ("<p>a<a href=#><img></a>b<a href=x>»</a>", ["a b»"]),
        # links for editors, formulas in two forms
        ("<h2>History<span class=mw-editsection>[<a href=/e>edit</a>]</span></h2>", ["History"]),
        *((f"<p>tree <span class='{names}'>x</span>and",  ["tree and"]) for names in (
            "u-hiddenVisually", "a11y-hidden b", "offscreen", "assistive-text", "editsection", "edit-page", "fnanchor",
            "MsoFootnoteReference", "footnote-reference brackets", "line-through", "strikethrough")),
        *((f"<p>tree <span class='{names}'>x</span> and",  ["tree x and"]) for names in (
            "offscreens", "no-line-through", "editsections", "footnote-reference-list")),
        ("<p>is <math><mi>π</mi><semantics><annotation>\\pi</annotation></semantics></math>"
         "<span class=katex-html aria-hidden=true>π</span>.", ["is π."]),
        # an initial that is a picture
        ("<p><img alt=K>aždý den", ["Každý den"]), ("<div><img alt=K></div><p>aždý den", ["Každý den"]),
        ("<p> <a href=x><img alt=Ř></a>\nečka", ["Řečka"]),
        ("<p><img alt=K>Den<p><img alt=Kk>den<p><img alt=k>den<p>x<img alt=K>den", ["Den", "den", "den", "x den"]),
    ],
)  # fmt: skip
def test_what_is_no_part_of_the_text(html, expected):
    assert texts(html) == expected


def test_links_in_what_is_left_out_are_followed():
    links = parse("<p>a</p><div hidden><a href=/a>x</a><p></div><template><a href=/{{x}}>y</a></template><p>z").links
    assert links == [RawLink("/a", "", "", -1)]


def test_headings_and_link_characters():
    blocks = parse("<h2>Title <a href=x>in  a link</a></h2><div><h3><span>Sub</span></h3>text</div>").blocks
    found = [(block.text, block.heading, block.link_chars) for block in blocks]
    assert found == [("Title in a link", True, 9), ("Sub", True, 0), ("text", False, 0)]


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
    leads = [url for _, url in resolve(parse(html).links, "http://h.test/", None)]
    assert leads == ["http://h.test/next", "http://h.test/menu.html", "http://h.test/m"]
    links = parse("<p>one <iframe src=/frame></iframe> two</p>").links
    assert [(link.href, link.block) for link in links] == [("/frame", 0)]


@pytest.mark.parametrize(
    ("base", "href", "expected"),
    [
        (None, "x y", "http://h.test/a/x%20y"), (None, " \n/x\n", "http://h.test/x"),
        (None, "http://Ex.TEST:80/./a/../b", "http://ex.test/b"),
        (None, "http://příklad.test/ř", "http://xn--pklad-zsa96e.test/%C5%99"),
        ("http://b.test/c/", "d", "http://b.test/c/d"), ("/e/", "d", "http://h.test/e/d"),
        ("http://[", "d", "http://h.test/a/d"),
        *((None, nowhere, None) for nowhere in ("mailto:a@b", "javascript:void(0)", "http://[", "#top", "")),
    ],
)  # fmt: skip
def test_resolve(base, href, expected):
    links = parse(f'<a href="{href}">x</a>').links
    assert [url for _, url in resolve(links, URL, base)] == ([expected] if expected else [])


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
        ("<p>a <a href=1>b  c <b>d</b> </a>e", 5), ("<p><a href=1>one<p>two</a> three", 3),
        ("<p><a name=1>one</a> two", 3), ("<p><a href=1>x<br>y</a>", 2), ("<p><a href=1>x<script>no</script>y</a>", 2),
    ],
)  # fmt: skip
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
        ("<div id=x style='color:red; display : none'><p>a</div><p id=y hidden>b", [("a", "hidden"), ("b", "hidden")]),
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


@given(st.text(alphabet=st.sampled_from("<>/=\"'& abpdivhrefscrip!-\x00\x0b#;1\n"), max_size=300) | st.text())
def test_parse_never_raises(html):
    parsed = parse(html)
    for block in parsed.blocks:
        assert block.text == normal_form(block.text) != ""
    assert all(-1 <= link.block < max(1, len(parsed.blocks)) for link in parsed.links)
    for _, url in resolve(parsed.links, "http://h.test/", parsed.base):
        assert url.startswith("http")


# characters that the rules are about, so that they meet each other often
ODD = (
    "\u200b\u200c\u200d\u00ad\ufeff\u0301\u0327\u0653\u1dfa\u2000\u212b\u2329\x00\x0b\x1f\x7f\x85\x96\xa0\ud800 "
    "\u0307\U000e0041\U0001f3f4i\ufb01"
    "\t\nae-آकি❤"
)
TEXTS = st.text() | st.text(st.sampled_from(ODD)) | st.text(st.characters(codec=None))


NORMAL = {
    "": "", "plain": "plain", " a \t\n b\x07\x96c\ufffe ": "a b–c", "cafe\u0301": "café",
    "\u212b": "\xc5",  # the sign of the unit
    "Ⅳ ² ，Ａ": "Ⅳ ² ，Ａ",  # compatibility forms are no canonical ones
    "ﬁn ﻓﻲ ﺍﻷﺳﺒﻮﻉ ｶﾞ": "fin في الأسبوع ガ", "\ufe7a": "\ufe7a",  # but forms that only a screen needs are
    "N\uf061 j\uf061ře \uf061": "Na jaře a", "go \uf061 \ue001": "go", "x\ue001y": "x\ue001y",
    "a\xa0b\u2003c\u2028d\u3000e": "a b c d e", "co\u00adope\u200brate\ufeff\u2060": "cooperate", "\u200b \u00ad": "",
    "a \u200b b": "a b", "\u202bשלום\u202c": "שלום", "\x00a\x01\x1b[0m": "a[0m", "a\x0bb\x1cc": "a b c",
    "wait\x85": "wait…", "\ud83d": "",
    "می\u200cخواهم": "می\u200cخواهم", "می\u200c\u200cخواهم": "می\u200cخواهم",  # Persian: two parts of one word
    "क्\u200dष": "क्\u200dष",  # Hindi: a half letter
    "👩\u200d👧": "👩\u200d👧", "❤\ufe0f\u200d🔥": "❤\ufe0f\u200d🔥", "a\u200cb\u200d": "ab", "e\u200d\u0301": "é",
    "\u2329\u200d": "\u3008",
    "i\u0307stanbul i\u0307\u0301 \ufb01\u0307": "istanbul i\u0307\u0301 fi",  # the second is Lithuanian
    "a\U000e0041\U000e007fb \U000e0041": "ab", "\U0001f3f4\U000e0067\U000e007f": "\U0001f3f4\U000e0067\U000e007f",
}  # fmt: skip


@pytest.mark.parametrize("text", NORMAL)
def test_normal_form(text):
    assert normal_form(text) == NORMAL[text]


def meant_by(char: str) -> str:
    """What a character for the look of letters stands for."""
    is_form = "\ufb00" <= char <= "\uffef" and not unicodedata.decomposition(char).startswith("<wide>")
    return unicodedata.normalize("NFKC", char) if is_form and char.isprintable() else char


@given(TEXTS)
def test_once_is_enough_and_no_text_is_invented(text):
    """Every character was there, but for spaces and windows-1252 punctuation in the place of control characters."""
    normal = normal_form(text)
    assert normal_form(normal) == normal
    assert unicodedata.is_normalized("NFC", normal)
    assert normal.split(" ") == normal.split() or normal == ""
    text = "".join(map(meant_by, text))
    meant = "".join(bytes([ord(c)]).decode("cp1252", "ignore") if "\x80" <= c <= "\x9f" else c for c in text)
    left = Counter(unicodedata.normalize("NFD", normal).replace(" ", ""))
    assert left <= Counter(unicodedata.normalize("NFD", meant))


@given(TEXTS, TEXTS)
def test_words_stay_apart(one, two):
    """What stood between spaces is a word of its own, or nothing."""
    assert normal_form(f"{one} {two}") == " ".join(filter(None, (normal_form(one), normal_form(two))))


@given(st.text(st.characters(categories=["L", "N", "P", "S"]), max_size=30))
def test_no_visible_text_is_lost(text):
    invisible = {"\u2061", "\u2062", "\u2063", "\u2064"}
    if not invisible & set(text) and all(meant_by(char) == char for char in text):
        assert normal_form(text) == unicodedata.normalize("NFC", text)


def test_paragraphs_do_not_touch_each_other():
    blocks = parse("<p>e</p><p>&#x301;x</p><p>half-</p><p>way a&#xad;</p><p>b</p>").blocks
    assert [block.text for block in blocks] == ["e", "\u0301x", "half-", "way a", "b"]


def test_a_page_is_written_in_normal_form():
    parsed = parse("<title>Cafe&#x301; &shy;x</title><p>mo&shy;re <a href=/>na&#x308;h&#8203;er</a></p>")
    assert (parsed.title, parsed.blocks[0].text, parsed.links[0].anchor) == ("Café x", "more näher", "näher")


@pytest.mark.parametrize(
    ("lines", "whole"),
    [
        ("a divi-\nded word", "a divided word"), ("a divi-\n   ded word", "a divided word"),
        ("a di\u00ad\nvi\u2010\nded word", "a divided word"), ("Jean-\nPaul", "Jean-Paul"),
        ("Nord\u00ad\nSüd", "NordSüd"), ("1990-\n2000", "1990-\n2000"), ("pause -\nthen", "pause -\nthen"),
        ("the end-\n\nnext paragraph", "the end-\n\nnext paragraph"), ("list\n- item", "list\n- item"),
    ],
)  # fmt: skip
def test_words_divided_at_the_end_of_a_line(lines, whole):
    assert rejoined([lines]) == [whole]


PLAIN = ["the sun went down behind the hills and nobody came"] * 60
COMPOUND = "a well-\nknown man"


@pytest.mark.parametrize(
    ("others", "whole"),
    [
        ([], "a wellknown man"),
        (["Well-known people"], "a well-known man"),
        (["well-\nknown", "well-known"], "a well-known man"),
        (["wellknown or well-known"], "a wellknown man"),
        (["\n".join(PLAIN)], "a well-known man"),  # a document that divides no words
        (["\n".join([*PLAIN, "no-", "body"])], "a wellknown man"),  # one that does
    ],
)
def test_a_hyphen_stays_where_the_document_says_so(others, whole):
    assert rejoined([*others, COMPOUND])[-1] == whole


@given(st.text(st.sampled_from("abA1-\u00ad\n \t")))
def test_rejoining_takes_only_hyphens_and_white_space(lines):
    (whole,) = rejoined([lines])
    assert rejoined([whole]) == [whole]
    assert [c for c in whole if c.isalnum()] == [c for c in lines if c.isalnum()]
    assert whole.count("\n\n") == lines.count("\n\n")


@given(st.lists(TEXTS | st.just("a" + "\u0301" * 40), max_size=5))
def test_all_texts_of_a_page_together(texts):
    plain = [" ".join(text.split()) for text in texts]
    assert normal_forms(plain) == list(map(normal_form, plain))


def head(html: str) -> Page:
    page = Page()
    fill_head(page, parse(html), URL)
    return page


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-21", "2026-11-21"), ("20261121", "2026-11-21"),
        (" 2026-11-21T08:15:00.123+01:00", "2026-11-21T08:15:00+01:00"), ("2026-11-21 08:15", "2026-11-21T08:15"),
        ("2026-11-21T08:15:00Z and more", "2026-11-21T08:15:00Z"),
        ("Sat, 21 Nov 2026 08:15:00 GMT", "2026-11-21T08:15:00+00:00"), ("2026-13-01", ""), ("202611211", ""),
        ("yesterday", ""), ("", ""), ("03.04.2021", "2021-04-03"), ("3. 4. 2021", "2021-04-03"),
        ("24/12/2021", "2021-12-24"), ("03/04/2021", ""), ("3.4/2021", ""), ("32.1.2021", ""),
        ("12/24/2021", "2021-12-24"), ("4-4-2021", "2021-04-04"), ("2021/4/3", "2021-04-03"), ("² may 2021", ""),
        ("April 3rd, 2021", "2021-04-03"), ("Sat, 3 Apr. 2021 at 10:00", "2021-04-03"), ("3 loaves, May 2021", ""),
        ("3 de abril de 2021", "2021-04-03"), ("3 d’abril del 2021", "2021-04-03"), ("1er avril 2021", "2021-04-01"),
        ("3. dubna 2021", "2021-04-03"), ("2021. április 3.", "2021-04-03"), ("3-го апреля 2021 г.", "2021-04-03"),
        ("2021年4月3日", "2021-04-03"), ("2021년 4월 3일", "2021-04-03"), ("3 tháng 4, 2021", "2021-04-03"),
        ("٣ أبريل ٢٠٢١", "2021-04-03"), ("3 अप्रैल 2021", "2021-04-03"), ("3. huhtikuuta 2021", "2021-04-03"),
        ("3 listopada 2021", ""), ("32 May 2021", ""), ("3 May 2100", ""), ("3 เมษายน 2564", ""),
        ("version 3.4 2021", ""), ("31 February 2021", ""), ("31.2.2021", ""),
        ("4.13.7. November 2003", ""), ("Version 1.1, March 2000", ""), ("1.1 May 2021", ""),
    ],
)  # fmt: skip
def test_dates(text, expected):
    assert iso_date(text) == expected


def test_dates_by_language():
    assert [iso_date("3 listopada 2021", code) for code in ("pl", "hr")] == ["2021-11-03", "2021-10-03"]
    assert [iso_date(text, "th") for text in ("3 เมษายน 2564", "3 เมษายน 2021")] == ["2021-04-03"] * 2


@given(st.text(max_size=80) | st.text(alphabet="0123456789-T:Z+, JanMon", max_size=40))
def test_dates_never_raise(text):
    assert isinstance(iso_date(text), str)


def json_ld(data: object) -> str:
    text = data if isinstance(data, str) else json.dumps(data)
    return f'<script type="application/ld+json">{text}</script>'


TEXT = f"<p>{'We planted three apple trees behind the house. ' * 3}"


@pytest.mark.parametrize(
    ("html", "published", "modified"),
    [
        ("<meta property=article:published_time content=2026-01-02><meta name=date content=2020>", "2026-01-02", ""),
        ("<meta name=date content=soon><meta name=dc.date content=2020-01-01>", "2020-01-01", ""),
        ("<meta itemprop=dateModified content=2026-01-03>", "", "2026-01-03"),
        ("<p><time itemprop=datePublished datetime=2026-01-04T10:00>now</time>", "2026-01-04T10:00", ""),
        ("<p><time pubdate datetime=2011-01-04>now</time><time datetime=2012-01-01>x</time>", "2011-01-04", ""),
        ('''<script type="application/ld+json">{"datePublished": "2026-01-05", "dateModified":"2026-01-06"}</script>''',
         "2026-01-05", "2026-01-06"),
        ('''<script>{"datePublished": "2026-01-05"}</script>''', "", ""),
        ("<p><time datetime=2019-05-06T10:00>6 May</time>", "2019-05-06", ""),
        ("<p><time datetime=2019-05-06>6 May</time><time datetime=2019-05-07>7 May</time>", "", ""),
        (json_ld([{"@type": "Comment", "datePublished": "2020-01-01"},
                  {"@type": ["Thing", "NewsArticle"], "datePublished": "2018-07-08"}]), "2018-07-08", ""),
        (json_ld({"@graph": [{"@type": "WebPage", "dateModified": "2018-07-08"}],
                  "comment": {"@type": "Article", "dateModified": "2020-01-01"}}), "", "2018-07-08"),
        ("<meta name=date content='3. dubna 2021'>", "2021-04-03", ""),
        (json_ld({"@type": "Article", "datePublished": "Feb 08, 2022", "dateModified": "1 marzo 2022"}),
         "2022-02-08", "2022-03-01"),
        ("<h1>Garden</h1><div>Jan Novák <span>| 3. dubna 2021</span></div>" + TEXT, "2021-04-03", ""),
        ("<nav><a href=/>Home</a></nav><p>Updated: December 19, 2025</p><h1>Garden</h1>" + TEXT, "2025-12-19", ""),
        ("<div class=date>3 avril 2021</div>" + TEXT, "2021-04-03", ""),
        ("<p>1 May 2020<h1>Garden</h1><p>3 April 2021" + TEXT, "", ""),  # two days
        ("<h1>Garden</h1>" + TEXT + "<p>3 April 2021", "", ""),  # a comment, or another article
        ("<h1>Garden</h1><h3>New on 3 April 2021</h3>" + TEXT, "", ""),
        (f"<h1>Garden</h1><p>{'On 3 April 2021 we planted trees. ' * 3}" + TEXT, "", ""),
        (json_ld("[" * 9000 + '"datePublished":"2018-07-08""datePublished":"2018-07-09"'), "2018-07-08", ""),
    ],
)  # fmt: skip
def test_published_and_modified(html, published, modified):
    page = head(html)
    assert (page.published, page.modified) == (published, modified)


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("2021/04/03/garden", "2021-04-03"), ("news/20210403-garden", "2021-04-03"), ("2021-04-03.html", "2021-04-03"),
        ("2021/04/garden", ""), ("2021/0403", ""), ("202104031", ""), ("items/12021/04/03", ""),
    ],
)  # fmt: skip
def test_days_in_addresses(path, day):
    page = Page()
    fill_head(page, parse("<p>text"), f"http://h.test/{path}")
    assert page.published == day


BY = "https://creativecommons.org/licenses/by/4.0/"


@pytest.mark.parametrize(
    ("html", "licence"),
    [
        (f"<a rel=license href=/terms>terms</a><a href={BY}>CC</a>", "http://h.test/terms"),
        (f"<link rel=license href={BY}>", BY),
        (f"<meta name=dcterms.license content={BY}>", BY),
        (f"<p>text <a href={BY}>CC BY</a>", BY),
        ("<a href=http://www.gnu.org/licenses/fdl-1.3.html>GFDL</a>", "http://www.gnu.org/licenses/fdl-1.3.html"),
        (f'<script type="application/ld+json">{{"license": "{BY}"}}</script>', BY),
        ("<a href=https://creativecommons.org/>about CC</a>", None),
        ("<a href=http://h.test/?u=https://creativecommons.org/licenses/by/4.0/>share</a>", None),
    ],
)
def test_licence(html, licence):
    assert head(html).licence == licence


NC = BY.replace("by", "by-nc")
SAID = f"This work is licensed under <a href={BY}>CC BY 4.0</a>."


@pytest.mark.parametrize(
    ("html", "basis", "is_sure"),
    [
        (f"<link rel=license href={BY}>", "rel", True),
        (f"<p>{SAID.replace('<a', '<a rel=license')}", "rel", True),
        (f"<meta name=dcterms.license content={BY}>", "meta", True),
        (f'<script type="application/ld+json">{{"@type": "NewsArticle", "license": "{BY}"}}</script>', "schema", True),
        (
            f'<script type="application/ld+json">{{"@type": "ImageObject", "license": "{BY}"}}</script>',
            "caption",
            False,
        ),
        (f"<article><p>text</p><p>{SAID}</p></article>", "article", True),
        (f"<footer><p>{SAID}</p></footer>", "footer", True),
        (f"<div class=sidebar><p>{SAID}</p></div>", "side", True),
        (f"<figure><figcaption>Photo: A. Bee, <a href={BY}>CC BY</a></figcaption></figure>", "caption", False),
        (f"<p>Photo: A. Bee, <a href={NC}>CC BY-NC</a><p>{SAID}", "article", True),
        (f"<a href={BY}><img src=cc.png></a>", "button", False),
        (f"<p>{SAID}<p>© 2026 A. Bee. All rights reserved.", "mixed", False),
        (f"<p>{SAID}<p>Alle Rechte vorbehalten", "mixed", False),
        (f"<p>{SAID}<p>Comments are under <a href={NC}>CC BY-NC 4.0</a>", "mixed", False),
        ("<p>Free under <a href=http://www.gnu.org/licenses/gpl.html>GPL</a>", "text", False),
        (f"<p>The curves are from a guide, which is under <a href={BY}>CC BY</a>.", "text", False),
        (
            f"<p>This text is under either <a href=http://gnu.org/licenses/gpl.html>GPL</a> or <a href={BY}>BY</a>",
            "article",
            True,
        ),
        ("<a rel=license href=/terms>terms</a>", "rel", False),
        ("<p>text", "", False),
    ],
)
def test_a_licence_holds_for_the_text_by_its_place(html, basis, is_sure):
    page = head(html)
    assert (page.licence_basis, page.licence_sure) == (basis, BY if is_sure else "")


def test_addresses_are_absolute():
    page = head(
        "<link rel=canonical href=/c><link rel=alternate hreflang=CS href=/cs/>"
        "<link rel=alternate hreflang=de-AT href=http://de.test/><link rel=alternate href=/feed>"
        "<link rel=alternate hreflang=en href=mailto:x@y><link rel=stylesheet hreflang=sk href=/s>"
    )
    assert page.canonical == "http://h.test/c"
    assert page.alternates == {"cs": "http://h.test/cs/", "de-at": "http://de.test/"}
    assert head("<link rel=canonical href='http://['>").canonical is None


def test_versions_in_accepted_languages_are_links():
    html = (
        "<link rel=alternate hreflang=cs-CZ href=/cs><link rel=alternate hreflang=de href=/de>"
        "<link rel=alternate hreflang=cs href=/known><p><a href=/known>x</a>"
    )
    page = cleaned(html)
    assert [(link.url, link.block) for link in page.links] == [("http://h.test/known", 0), ("http://h.test/cs", -1)]
    assert list(page.batch.flags) == [WANTED, WANTED]


def test_a_page_of_a_crawl_of_shards_says_who_owns_the_linked_hosts():
    html = "<p><a href=http://a.test/>x</a><a href=http://b.test/>y</a><link rel=alternate hreflang=cs href=//c.test/>"
    page = cleaned(html, shards=7)
    assert set(page.batch.hosts) == {"a.test", "b.test", "c.test"}
    assert array("H", page.batch.owners).tolist() == [owner_of(name, 7) for name in page.batch.hosts]
    assert cleaned(html).batch == page.batch._replace(owners=b"")


@pytest.mark.parametrize(("codec", "sent"), [("cp1250", "%9E"), ("iso8859-2", "%BE"), ("utf-8", "%C5%BE")])
def test_all_addresses_of_a_legacy_page_have_their_queries_in_its_encoding(codec, sent):
    html = (
        f"<meta charset={codec}><link rel=canonical href='/ž?c=ž'><link rel=alternate hreflang=cs href='/a?a=ž'>"
        "<meta http-equiv=refresh content='9; url=/r?r=ž'><base href='/b/?b=ž'>"
        "<link rel=alternate type=application/rss+xml href='/f?f=ž'>"
        "<p>Příliš žluťoučký kůň úpěl ďábelské ódy.<a href='/ž?l=ž#ž'>x</a><a href='?b=ž'>y</a><a href=''>z</a>"
    )
    page = cleaned(html, encoding=codec, charset=codec, refresh="1; URL=/h?h=%BE", recrawls=True)
    assert page.canonical == f"http://h.test/%C5%BE?c={sent}"
    assert page.alternates == {"cs": f"http://h.test/a?a={sent}"}
    assert page.feeds == (f"http://h.test/f?f={sent}",)
    linked = {f"r?r={sent}", f"%C5%BE?l={sent}", f"b/?b={sent}", f"a?a={sent}", "h?h=%BE"}
    assert {link.url for link in page.links} == {f"http://h.test/{path}" for path in linked}


RSS = '<link rel=alternate type="application/rss+xml" href="%s">'


@pytest.mark.parametrize(
    ("head", "feeds"),
    [
        (RSS % "/feed?a=1&amp;b=2", ("http://a.test/feed?a=1&b=2",)),
        (RSS % "x" + RSS % "x" + RSS % "http://b.test/y", ("http://a.test/n/x", "http://b.test/y")),
        ("<LINK HREF='f.atom' TYPE='Application/Atom+XML; charset=utf-8' REL='Alternate home'/>", ("http://a.test/n/f.atom",)),
        ("<link type=application/rss+xml\nrel=alternate\nhref=/j>", ("http://a.test/j",)),
        ("<link rel=stylesheet type=application/rss+xml href=/x><link rel=alternate href=/y hreflang=en>", ()),
        (RSS % "javascript:x" + RSS % "" + RSS % "http://[" + "<link rel=alternate type=application/rss+xml>", ()),
        ("<link rel=alternate rel=x type=application/rss+xml href=1 href=2>", ("http://a.test/n/1",)),
        ("".join(RSS % n for n in range(20)), tuple(f"http://a.test/n/{n}" for n in range(8))),
    ],
)  # fmt: skip
def test_feeds_that_a_page_names(head, feeds):
    page = cleaned(head, url="http://a.test/n/p", recrawls=True)
    assert page.feeds == feeds and "feeds" not in page.meta


def test_what_hreflang_says_goes_with_the_links():
    html = (
        "<link rel=alternate hreflang=de-AT href=/de><link rel=alternate hreflang=x-default href=/any>"
        "<link rel=alternate hreflang=cs href=/both><p><a href=/de>d</a> <a href=/any>a</a> <a href=/plain>p</a> "
        "<a href=/en hreflang=EN>e</a> <a href=/cz lang=cs-CZ>c</a> <a href=/both hreflang=en>b</a> "
        "<a href=/x lang=''>x</a>"
    )
    batch = cleaned(html).batch
    paths = [url.rpartition("/")[2] for url, _, _ in batch.rows()]
    said = {path: flags & (WANTED | FOREIGN) for path, flags in zip(paths, batch.flags, strict=True)}
    assert said == {"de": FOREIGN, "any": 0, "plain": 0, "en": FOREIGN, "cz": WANTED, "both": WANTED, "x": 0}


def test_limits():
    many = "".join(f"<link rel=alternate hreflang=x{number} href=/{number}>" for number in range(1000))
    assert len(parse(many).alternates) == MAX_ALTERNATES
    data = '<script type="application/ld+json">' + "x" * 10 * MAX_DATA_CHARS + "</script>"
    assert len(parse(data).data) == MAX_DATA_CHARS


def test_a_link_keeps_its_text_beside_a_frame_or_an_area():
    html = "<p><a href=/around>one <iframe src=/frame></iframe> two <map><area href=/area alt=spot></map></a> three</p>"
    anchors = [(link.href, link.anchor) for link in parse(html).links]
    assert anchors == [("/around", "one two"), ("/frame", ""), ("/area", "spot")]


PARTS = [
    *("http://", "https://", "HTTP://", "ftp:", "//", "/", "\\", "?", "#", ":", "@", ".", "..", "%2e", "%2E", "%"),
    *("a", "B", "é", "0", "127.1", "0x7f", "h.test", "www.h-i.test", "xn--a", ".xn--p1ai", "h.test.", "[::1]"),
    *("_", "-", ":80", ":8080", "'", '"', "|", "^", "~", "&", "=", ";", "+", "!", "$", "(", "*", ",", "<", "`", "{"),
    *(" ", "\t", "\n", "%20"),
]  # fmt: skip
HREFS = st.lists(st.sampled_from(PARTS), max_size=9).map("".join)
ROOTS = [
    "http://h.test/", "http://h.test", "https://user:word@h.test:8443/a/./b/c.html?q=/x/#f", "http://H.TEST:80/a/../b",
    "http://h.test/?a/b", "http://příklad.test/ř/", "data:text/html,a", "no url",
]  # fmt: skip


def by_parser(href: str, root: str) -> str | None:
    href = href.partition("#")[0].strip()
    url = join(root, href) if href else None
    return url if url and url.startswith(("http://", "https://")) else None


def resolved(href: str, root: str) -> str | None:
    return next((url for _, url in resolve([RawLink(href, "", "", -1)], root, None)), None)


@given(HREFS, st.sampled_from(ROOTS))
def test_both_ways_agree(href, root):
    assert resolved(href, root) == by_parser(href, root)


HELD = [
    *("http://h.test/a/b.html?c=d&e=%C3%A9", "https://a-b.h.test/", "http://h.test/a//b/", "http://h.test/a/.b"),
    *("http://h.test/a/%2e%2e/b", "http://h.test/a/../b", "http://h.test/a/..", "http://1.2.3.4/", "http://a.0x1/"),
    *("/a/b", "/a/./b", "/./a", "/%2e/a", "//h.test/a", "/a?b='c'", "/?x", "/", "a", "a/b?c", "a:b", "a.b:80/c"),
    *("./a", "..", ".a", "?a", "%2e%2e/a", "javascript:void(0)", "a/b:c", "a/../b", "http://a.xn--p1ai/"),
]  # fmt: skip


def test_both_ways_agree_on_what_pages_hold():
    pairs = [(href, root) for href in HELD for root in ROOTS]
    assert [pair for pair in pairs if resolved(*pair) != by_parser(*pair)] == []


def test_the_first_of_equal_links_counts():
    links = [RawLink(href, "", anchor, 0) for href, anchor in (("/a", "1"), ("/a#b", "2"), ("http://h.test/a", "3"))]
    assert [(link.anchor, url) for link, url in resolve(links, "http://h.test/", None)] == [("1", "http://h.test/a")]
