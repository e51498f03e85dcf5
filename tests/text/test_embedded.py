"""Text in the JSON of a page that shows little: what is taken, what is not, and that no JSON does harm."""

from __future__ import annotations

import json
import time

import pytest
from cleaned_pages import cleaned
from hypothesis import given
from hypothesis import strategies as st

from spiderling.text import Page
from spiderling.text.embedded import embedded_text
from spiderling.text.withheld import is_shell

FIRST = (
    "When the cat came home it was already dark and everybody was asleep, only the dog was waiting by the door, "
    "because he was hungry and because he wanted to hear where she had been for such a long time."
)
SECOND = (
    "In the kitchen she found a bowl of milk and a piece of bread that had been left from dinner, and as nobody had "
    "told her that it was not meant for cats she ate all of it and then went to bed as if nothing had happened."
)
THIRD = "In the morning grandmother came and asked who had eaten the bread, but nobody would admit to it."
TEXT = [FIRST, SECOND, THIRD]


SHOWN = "".join(f"<p>{number}. {one}</p>" for number in range(4) for one in TEXT)


HTML = "".join(f"<p>{one}</p>" for one in TEXT)
TEASERS = [{"title": "Dogs", "url": f"/{number}", "excerpt": f"{number} dogs: {SECOND[:120]}"} for number in range(9)]
MESSAGES = {"i18n": {"consent": "We and our partners use cookies to make our service better, and to show you " * 9}}


def script(value: object, head: str = "", before: str = "", behind: str = "") -> str:
    return f"<script{head}>{before}{json.dumps(value)}{behind}</script>"


def shell(scripts: str, body: str = "") -> str:
    return (
        f"<html><head><title>News</title>{scripts}</head><body><nav><a href=/>Home</a> <a href=/a>All</a></nav>"
        f"<div id=root></div>{body}<noscript>Please enable JavaScript.</noscript><script src=/m.js></script>"
    )


def run(html: str) -> Page:
    return cleaned(html, "en", codes="cs en")


def kept(page: Page) -> list[str]:
    return [paragraph.text for paragraph in page.paragraphs if paragraph.kept and len(paragraph.text) > 60]


ARTICLE = {"@type": "Article", "description": SECOND * 9, "articleBody": "\n".join(TEXT)}
STATE = {**MESSAGES, "page": {"id": 1, "post": {"body": HTML}}, "latest": TEASERS}
LD = " type=application/ld+json"
FORMS = {
    "JSON-LD": ("json-ld", script(ARTICLE, LD)),
    "JSON-LD in a graph": ("json-ld", script({"@graph": [{"@type": "WebSite"}, ARTICLE]}, LD)),
    "Next.js": ("state", script({"props": STATE}, " id=__NEXT_DATA__ type='application/json'")),
    "Redux": ("state", script(STATE, before="window.__INITIAL_STATE__ = ", behind=";")),
    "in brackets": ("state", script(STATE, before='var a={b:1};window["__STATE__"] =', behind=";run()")),
    "Apollo": ("state", script(dict(enumerate({"text": one} for one in TEXT)), before="window.__APOLLO_STATE__=")),
    "escaped HTML": ("state", script({"body": HTML.replace("<", "&lt;")}, before="window.__DATA__=")),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_the_text_of_a_page_that_shows_none(name):
    """Where it shows its text, it is as without JSON."""
    source, scripts = FORMS[name]
    page = run(shell(scripts))
    assert kept(page) == TEXT
    assert (page.text_source, page.language, page.needs_script) == (source, "en", False)
    page = run(shell(scripts, SHOWN))
    assert not page.text_source and page.paragraphs == run(shell("", SHOWN)).paragraphs


def test_a_teaser_is_followed_by_the_rest():
    page = run(shell(FORMS["Redux"][1], f"<article><p>{FIRST}</p></article>"))
    assert kept(page) == TEXT and page.text_source == "state"


OTHERS = {
    "teasers": {"stories": TEASERS},
    "messages": MESSAGES,
    "a description": {"product": {"description": SECOND * 9}},
    "code": {"body": "if (a[0] == {b: c}) { return d[e](f => g(h)); } " * 30},
    "numbers": {"body": "12 345 678 " * 100},
    "what is shown": {"body": f"<p>{FIRST}</p>"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_strings_are_not_taken(name):
    page = run(shell(script(OTHERS[name], before="window.__INITIAL_STATE__="), f"<p>{FIRST}"))
    assert not page.text_source and page.paragraphs == run(shell("", f"<p>{FIRST}")).paragraphs


# -- text that is not free


NOT_FREE = {
    "JSON-LD": script({"@type": "Article", "isAccessibleForFree": False}, LD),
    "a string": script({"isAccessibleForFree": "False"}, LD),
    "an address": script({"isAccessibleForFree": "http://schema.org/False"}, LD),
    "an escaped address": '<script type="application/ld+json">{"isAccessibleForFree":"https:\\/\\/schema.org\\/False"}',
    "an object": script({"isAccessibleForFree": {"@id": "https://schema.org/False"}}, LD),
    "a typed value": script({"isAccessibleForFree": {"@type": "Boolean", "@value": "false"}}, LD),
    "a list": script({"isAccessibleForFree": [False]}, LD),
    "a part": script({"isAccessibleForFree": True, "hasPart": {"isAccessibleForFree": "False", "x": ".y"}}, LD),
    "a graph": script({"@graph": [{}, {"hasPart": [{"isAccessibleForFree": False}]}]}, LD),
    "in a state": script({"seo": json.dumps({"isAccessibleForFree": False})}, before="window.__SEO_STATE__="),
    "microdata": '<meta itemprop="isAccessibleForFree" content="False">',
    "microdata, turned": '<meta content="false" itemprop="isAccessibleForFree">',
    "microdata, address": '<link itemprop="isAccessibleForFree" href="http://schema.org/False">',
    "microdata, text": "<body><span itemprop=isAccessibleForFree>False</span>",
    "in an attribute": '<body><div data-ld="{&quot;isAccessibleForFree&quot;:&quot;False&quot;}"></div>',
    "a tier": '<meta property="article:content_tier" content="locked">',
    "a notice": "<body><p>This article is for subscribers only. Already a member? Log in.</p>",
    "a German notice": "<body><p>Weiterlesen mit unserem Digital-Abonnement</p>",
    "a Czech notice": "<body><p>Pokračování článku je dostupné pouze pro předplatitele.</p>",
    "minified": "<script>seo({isAccessibleForFree:!1})</script>",
    "microdata, nested": "<body><span itemprop=isAccessibleForFree><b>False</b></span>",
    "a question": "<body><p>Already a subscriber? Log in</p>",
    "a notice below its heading": "<body><h2>Keep reading</h2><p>It takes a minute.<p><a href=/x>Subscribe</a></p>",
    "a short Turkish notice": "<body><p>Bu içerik abonelere özeldir</p>",
    "a French notice": "<body><p>La suite est réservée aux abonnés.</p>",
}  # fmt: skip


@pytest.mark.parametrize("mark", NOT_FREE)
@pytest.mark.parametrize("name", ["JSON-LD", "Next.js", "Redux"])
def test_text_that_is_not_free_is_not_taken(name, mark):
    page = run(shell(FORMS[name][1] + NOT_FREE[mark]))
    assert not page.text_source and not {*kept(page)} & {*TEXT}


def test_a_notice_at_the_end_of_a_teaser_counts():
    teaser = f"<p>{FIRST}</p><p>Subscribe to read the full story.</p>" + "<ul><li><a href=/x>Sport</a></ul>" * 9
    page = run(shell(FORMS["Redux"][1], teaser))
    assert not page.text_source and not {*kept(page)} & {SECOND, THIRD}


FREE = {
    "JSON-LD": script({"isAccessibleForFree": True, "isFamilyFriendly": False}, LD),
    "a string": script({"isAccessibleForFree": "http://schema.org/True", "hasPart": []}, LD),
    "microdata": '<meta itemprop="isAccessibleForFree" content="true"><meta itemprop="isGift" content="false">',
    "a tier": '<meta property="article:content_tier" content="free">',
    "a newsletter": "<body><p>Subscribe to our newsletter</p>",
    "a newsletter above a heading": "<body><p>Sign up for our weekly letter.</p><h3>More stories</h3>",
    "a menu": "<body><ul><li><a href=/x>Log in</a><li><a href=/y>All articles</a></ul>",
}


@pytest.mark.parametrize("mark", FREE)
def test_text_that_is_free_is_taken(mark):
    assert kept(run(shell(FORMS["Redux"][1] + FREE[mark]))) == TEXT


# -- shells


@pytest.mark.parametrize(
    "html",
    [
        shell(""),
        shell(script({"items": [1, 2]}, before="window.__INITIAL_STATE__=")),
        "<body><div id='app'></div><script src=/a.js></script>",
        "<body><div id=__next></div><script>start()</script>",
        "<body><my-app></my-app><script src=/a.js></script>",
        "<body><my-app>One moment…</my-app><script src=/a.js></script>",
        "<body><div id=root><div class=a><svg><path d='M0 0'/></svg></div></div><script src=/a.js></script>",
        "<body><div style='display: contents'><script>start()</script></div>",
        "<body><p>Prosím, zapněte si JavaScript.</p><script src=/a.js></script>",
    ],
)
def test_a_shell_needs_a_script(html):
    assert run(html).needs_script


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<p>Nothing here.",
        "<body><div id=root></div>",
        shell("", f"<p>{FIRST}</p>"),
        shell("", f"<noscript>{HTML}</noscript>"),
        shell("", "<ul>" + "<li><a href=/x>A link to another page of this site</a>" * 30 + "</ul>"),
        "<body><ul><li><a href=/x>one</a></ul><script>count()</script>",
        "<body><img src=/a.png><script>count()</script>",
        f"<body><div id=root></div><p>JavaScript is not all: {FIRST}</p><p>{THIRD}</p><script>count()</script>",
        "<body><div id=root><h1>Hello</h1></div><script>count()</script>",
    ],
)
def test_other_pages_do_not(html):
    assert not run(html).needs_script


def test_text_in_noscript_is_shown():
    page = run(shell("", f"<noscript>{HTML}</noscript>"))
    assert kept(page) == TEXT and not page.text_source


# -- hostile JSON

MANY = 300_000
DEEP = '{"a":[' * MANY
LONG = "word " * 200_000
HOSTILE = {
    "deep": f"window.__INITIAL_STATE__={DEEP}",
    "many values": f"window.__INITIAL_STATE__=[{','.join(['1'] * MANY)}]",
    "many states": "window.__A_STATE__={" * (MANY // 10),
    "many bad states": 'window.__A_STATE__={"a":[1,2' * (MANY // 20),
    "names of states": "state" * MANY,
    "an open string": 'window.__A_STATE__={"a":"' + '\\"' * MANY + "\\",
    "a long number": f"window.__INITIAL_STATE__=[{'9' * MANY}]",
    "lists of lists": json.dumps([[number % 100 for number in range(100)]] * 100),
    "scripts": "</script><script>" * (MANY // 3),
    "marks": '"isAccessibleForFree":' * (MANY // 10),
    "surrogates": 'window.__INITIAL_STATE__={"a":"\\ud800 ' + "\\udfff a " * 10_000 + '"}',
    "keys": f"window.__INITIAL_STATE__={json.dumps({LONG + str(n): LONG for n in range(2)})}",
    "places": f"window.__INITIAL_STATE__={json.dumps({f'{chr(97 + n % 26) * n}': SECOND for n in range(1000)})}",
    "mounts": "</script>" + "<div id=root>" * MANY,
}  # fmt: skip
HEADS = ("", " type=application/json", LD)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("head", ["", *(pytest.param(head, marks=pytest.mark.slow) for head in HEADS if head)])
def test_hostile_json_takes_bounded_time(name, head):
    start = time.process_time()
    html = f"<script{head}>{HOSTILE[name]}</script>".encode("utf-8", "replace")
    embedded_text(html, [], 0)
    is_shell(html, [])
    assert time.process_time() - start < 8


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from([HTML, *TEXT]),
    lambda below: st.lists(below) | st.dictionaries(st.text() | st.sampled_from(["text", "body", "url"]), below),
    max_leaves=20,
)


def taken(text: str, head: str):
    return embedded_text(f"<script{head}>window.__NUXT__={text}{' ' * 250}</script>".encode(), [], 0)


@given(VALUES, st.integers(0, 400), st.sampled_from(HEADS))
def test_any_value_whole_or_cut_off(value, cut, head):
    for text in (json.dumps(value), json.dumps(value)[:cut]):
        found = taken(text, head)
        assert found is None or any(one[:60].encode() in found.html for one in TEXT) or len(found.html) >= 250


@given(
    st.text(alphabet=st.sampled_from("<>/=\"'\\{}[]:,$ windo.__NUXTfunc(1)ab\n"), max_size=200), st.sampled_from(HEADS)
)
def test_any_script_does_not_raise(text, head):
    taken(text, head)
