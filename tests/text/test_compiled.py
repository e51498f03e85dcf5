"""The compiled steps (native/): when they run, and that whole pages are equal with them and without."""

from __future__ import annotations

import importlib
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import xxhash
from cleaned_pages import CZECH
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import needs
from test_hostile import PAGES

from benchmarks.equality import PIECES, URL, bundled_pages, differs, mutated
from spiderling.base.errors import BadInput
from spiderling.base.link_batch import FOREIGN, WANTED, Link
from spiderling.base.options import Options
from spiderling.crawl.crawl import Crawl
from spiderling.languages import load
from spiderling.text import TextOptions
from spiderling.text.boilerplate import features, model
from spiderling.text.boilerplate.features import Declared
from spiderling.text.html.blocks import Block, RawLink
from spiderling.text.html.metadata import Metadata
from spiderling.text.html.zones import Tree
from spiderling.text.steps import AUTO, INTERFACE, NO, PYTHON, REQUIRED, choose
from spiderling.text.words import TextWords, WordList

COMPILED = choose().steps
MODELS = load(("cs", "en", "de"))
OPTIONS = TextOptions(("cs", "en"), with_shingles=True)
STEP, BROKEN = 40, 40
"""Every fortieth of the bundled pages is compared, and as many broken ones; benchmarks/equality.py compares all."""


compiled = needs("compiled steps")


# -- when they run


def results_of_python() -> str:
    """A digest of what Python's steps give for some bundled pages, without what processors round differently."""
    found: list[object] = [PYTHON._fields, features.NAMES, model.NAMES]
    for body in bundled_pages()[::STEP]:
        page = PYTHON.parse(body)
        links = PYTHON.resolve(page.links, URL, page.base)
        texts = [block.text for block in page.blocks]
        text = " ".join(texts)
        scored = MODELS.identify(texts).sure()
        found += [page._replace(tree=None), [column.tolist() for column in page.tree], links, scored]
        found += [PYTHON.gather([Link(url) for _, url in links]), PYTHON.listed(text, STOPLIST, PROFILE)]
        found += [
            PYTHON.word_kinds(text),
            PYTHON.marks(texts),
            PYTHON.top_word(text, STOPLIST),
            PYTHON.long_words(texts, {"page"}),
        ]
    return xxhash.xxh3_64_hexdigest(repr(found).encode("utf-8", "replace"))


def test_other_results_have_another_number():
    """Where it fails, raise INTERFACE in both places, unless the bundled pages have changed; then note both here."""
    assert (INTERFACE, results_of_python()) == (5, "01df2da5cb4b7e33")


@compiled
def test_what_is_installed_is_what_the_checkout_has():
    assert importlib.import_module("spiderling_native").INTERFACE == INTERFACE, "say: make native"


@pytest.mark.parametrize("option", [AUTO, REQUIRED])
@pytest.mark.parametrize(
    ("twin", "why"),
    [
        (None, "spiderling-native is not installed"),
        (SimpleNamespace(), "was built for another version of Spiderling; `make native` builds it anew"),
        (SimpleNamespace(INTERFACE=INTERFACE + 1), "was built for another version of Spiderling"),
    ],
)
def test_python_runs_where_the_twin_is_missing_or_does_not_fit(monkeypatch, option, twin, why):
    monkeypatch.setitem(sys.modules, "spiderling_native", twin)
    if option == AUTO:
        found = choose(option)
        assert found.steps is PYTHON
        assert found.words.startswith("Python: ") and re.search(why, found.words)
    else:
        with pytest.raises(BadInput, match=why):
            choose(option)


def test_a_crawl_that_requires_a_missing_twin_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "spiderling_native", None)
    with pytest.raises(BadInput, match="SPIDERLING_COMPILED=required, but spiderling-native is not installed"):
        Crawl(Options(lang="cs", compiled=REQUIRED, allow_networks="127.0.0.0/8"), tmp_path / "job", pytest.fail)
    assert not list(tmp_path.iterdir())


def test_a_twin_that_cannot_be_loaded(monkeypatch, tmp_path):
    (tmp_path / "spiderling_native.py").write_text("raise ImportError('lxml 9 does not show libxml2')")
    monkeypatch.delitem(sys.modules, "spiderling_native", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert "cannot be loaded (lxml 9 does not show libxml2)" in choose().words


def test_it_can_be_refused():
    assert choose(NO) == (PYTHON, "Python (SPIDERLING_COMPILED=no)")


@compiled
def test_it_can_be_required():
    assert choose(REQUIRED).words == choose().words


# -- equal pages


@compiled
def test_bundled_pages_are_equal():
    assert [body for body in bundled_pages()[::STEP] if differs(body, COMPILED, MODELS, OPTIONS)] == []


@pytest.mark.slow
@compiled
def test_broken_pages_are_equal():
    broken = mutated(bundled_pages(), BROKEN)
    assert [body for body in broken if differs(body, COMPILED, MODELS, OPTIONS)] == []


@pytest.mark.slow
@compiled
@settings(max_examples=examples(250))
@given(st.lists(st.sampled_from([*PIECES, CZECH, "\ud800"]), max_size=60))
def test_any_page_is_equal(pieces):
    html = "".join(pieces)
    for text in (html, html.encode("utf-8", "replace")):
        assert_parsed_alike(text)


def assert_parsed_alike(html):
    ours, theirs = PYTHON.parse(html), COMPILED.parse(html)
    assert [column.tolist() for column in ours.tree] == [column.tolist() for column in theirs.tree]
    assert repr(ours._replace(tree=None)) == repr(theirs._replace(tree=None))


WORDS = st.lists(st.sampled_from([*"aÁ1.。,; ©…»:{_中ก", "\U0001f600", "\ud800", "...", " - ", CZECH]), min_size=1)
SAID = st.text() | WORDS.map("".join)
ROWS = st.tuples(
    WORDS.map("".join), st.booleans(), st.integers(0, 300), st.sampled_from(["", "p", "h1", "h5", "th", "article"]),
    st.integers(0, 99), st.integers(0, 5),
)  # fmt: skip


@pytest.mark.slow
@compiled
@settings(max_examples=examples(250))
@given(st.lists(ROWS, min_size=1, max_size=90), SAID, SAID, SAID, st.randoms(use_true_random=False))
def test_any_blocks_have_equal_features(rows, title, description, types, rng):
    tree = Tree()
    for tag, name in (("div", "main"), ("nav", "menu1"), ("ul", "card"), ("ul", "card")):
        tree.enter(tag, {"class": name})
    tree.leave()
    tree.enter("ul", {"class": "card2"})
    rows = rows + rng.choices(rows, k=rng.choice((0, 80)))  # more than the widest window
    blocks, inherited = [Block(*row) for row in rows], tree.inherited()
    declared = Declared(rng.choice([title, blocks[-1].text]), rng.choice([description, blocks[0].text]), types)
    chances = np.array([rng.choice((0.0, 1.0, rng.random())) for _ in blocks], np.float32)
    found = [steps.features(blocks, inherited, declared) for steps in (PYTHON, COMPILED)]
    around = [steps.context(found[0], chances, blocks, inherited) for steps in (PYTHON, COMPILED)]
    for names, (ours, theirs) in ((features.NAMES, found), (model.NAMES, around)):
        columns = zip(names, ours.T, theirs.T, strict=True)
        assert [name for name, one, other in columns if one.tobytes() != other.tobytes()] == []


@compiled
@pytest.mark.parametrize("element", [-1, 1, 1 << 40])
def test_a_block_in_no_element_of_the_tree(element):
    tree = Tree().inherited()
    inside, outside = [Block("word", False, 0)], [Block("word", False, 0, element=element)]
    rows = COMPILED.features(inside, tree, Declared())
    with pytest.raises(IndexError):
        COMPILED.features(outside, tree, Declared())
    with pytest.raises(IndexError):
        COMPILED.context(rows, np.ones(1, np.float32), outside, tree)


SEGMENTS = st.lists(
    st.sampled_from([*"aZ1/?&=.@[`{-", "/ab", "/abc", "/123", ".pdf", ".JPG", "/" * 20, "longsuffix", "/abcd" * 15])
)
PATHS = SEGMENTS.map(lambda pieces: "/" + "".join(pieces))


@compiled
def test_words_of_a_link_end_at_the_same_byte():
    paths = [f"/{'1' * size}words" for size in range(100)]
    assert_equal_columns(paths, paths)


def assert_equal_columns(urls, paths):
    given = urls, paths, [path.encode() for path in paths], [(number, 65535) for number in range(len(paths))]
    assert PYTHON.derived(*given) == COMPILED.derived(*given)


@pytest.mark.slow
@compiled
@settings(max_examples=examples(500))
@given(st.lists(PATHS, min_size=1))
def test_any_links_have_equal_columns(paths):
    assert_equal_columns([f"https://{'ž' * (number % 2)}a.cz{path}" for number, path in enumerate(paths)], paths)
    assert COMPILED.derived([], [], [], []) == (b"",) * 5


BITS = "http:// https:// www. a.cz xn-- localhost ?utm_source=x &fbclid=1 /.. %2e :443 ;jsessionid=1 /(S(abcdefgh1)) /x"
ODD = [*"/?#.&%@:xž\n (;2e'", *BITS.split(), "a" * 64, "b" * 200, "\ud800", "\u00a0"]
ADDRESSES = st.lists(st.sampled_from(ODD)).map("".join)
LINKS = st.tuples(
    ADDRESSES | ADDRESSES.map("https://www.a.cz/".__add__) | ADDRESSES.map("http://a.cz".__add__), st.booleans(),
    st.floats(0, 1), st.integers(0, 300), st.booleans(), st.sampled_from([0, WANTED, FOREIGN]),
)  # fmt: skip


@pytest.mark.slow
@compiled
@settings(max_examples=examples(500))
@given(st.lists(LINKS.map(Link._make)))
def test_any_links_are_gathered_alike(links):
    assert PYTHON.gather(links) == COMPILED.gather(links)


@pytest.mark.slow
@compiled
def test_a_column_of_hosts_ends_at_the_same_host():
    links = [Link(f"http://a{number}.cz/ž"[: 99 if number % 2 else -1]) for number in range(0x10003)]
    ours, theirs = PYTHON.gather(links), COMPILED.gather(links)
    assert ours == theirs and ours.others


@pytest.mark.slow
@compiled
@settings(max_examples=examples(500))
@given(st.lists(ADDRESSES), st.sampled_from(["http://a.cz/b/c", "https://a.cz", "data:x", "x"]), st.none() | ADDRESSES)
def test_any_links_are_resolved_alike(hrefs, page, base):
    links = [RawLink(href, "", "", number) for number, href in enumerate(hrefs)]
    assert PYTHON.resolve(links, page, base) == COMPILED.resolve(links, page, base)


LETTERS = [*"aÆæӕЖжěΣςİıßﬁ中한नमस์ก1, .\n", "\ud800", "\U0001f600", "and", "the ", "Kočka "]
TEXTS = st.lists(st.lists(st.sampled_from(LETTERS)).map("".join), min_size=1)
"""Mixed scripts, what is treated on its own in text/ngrams.py, and what is no text at all."""


@pytest.mark.slow
@compiled
@settings(max_examples=examples(500))
@given(TEXTS, st.integers(1, 40))
def test_any_texts_have_equal_scores_and_short_words(texts, width):
    logs = np.random.default_rng(0).integers(-8000, 8000, (65, width), np.int16)
    logs[-1] = 0
    one, other = PYTHON.score(texts, logs), COMPILED.score(texts, logs)
    assert one.grams.keys() == other.grams.keys()
    ours, others = ((*found[:3], *found.grams.values(), found.scores) for found in (one, other))
    for mine, theirs in zip(ours, others, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)
    for code in ("en", "yo"):
        listed = WordList.of(code, {"and": 5, "the": 4, "kočka": 1}, 0.2)
        words = TextWords(*one[:3])
        np.testing.assert_array_equal(PYTHON.short_words(words, listed), COMPILED.short_words(words, listed))


HOSTILE = {
    "a mark of ours in a text without elements": b"<p>Previous<&#30;/strong> and &#30; more</p>",
    "text behind the end": b"<p>x</p></body></html> \n <p>y</p>z &#28; " * 50,
    "attributes behind what looks like a value": b'<p =" ' + b" ".join(b"a%d" % i for i in range(9000)) + b'">x',
    "quotes without an end": b"<p a='" * 10_000,
    "names of all lengths": b"".join(b"<div id=n%d class='%d%s'>x" % (i, i, b"c" * (i % 1200)) for i in range(3000)),
    "more blocks than are read": b"<p>x<a href=y>z</a>" * 30_000,
    **{name: PAGES[name]() for name in ("50k nested divs", "200k attributes on a tag", "100k links", "nothing")},
}


@pytest.mark.slow
@compiled
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_are_equal(name):
    assert_parsed_alike(HOSTILE[name])


@compiled
@pytest.mark.parametrize("failure", [ValueError, MemoryError, KeyboardInterrupt])
def test_what_fails_while_a_page_is_read_is_raised(monkeypatch, failure):
    """libxml2 knows no exceptions."""
    page = b"<title>x</title><p>y<base href=/z><p>" + b"w <base href=/v>" * 1000
    before = COMPILED.parse(page)
    calls = []

    def fail(*_: object) -> None:
        calls.append(1)
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(Metadata, "read_tag", fail)
        with pytest.raises(failure):
            COMPILED.parse(page)
    assert len(calls) == 1  # nothing behind it is read
    assert COMPILED.parse(page)._replace(tree=None) == before._replace(tree=None)


CHARACTERS = "aÆžЖΣİ1٣中न्. ,;!?…»)।。*|€\n\x85\u2028\ud800\U0001f600"
PIECES_OF_TEXT = (
    "...", "and ", "The ", " a", "že ", "lang", "Kočka ", "kočku\n", "x" * 64, "y" * 65, "site ", "čtyři ",
)  # fmt: skip
GOOD = st.lists(st.sampled_from([*CHARACTERS, *PIECES_OF_TEXT]), max_size=60).map("".join)
STOPLIST = frozenset({"and", "the", "že", "x" * 64})
PROFILE = {"the": (-1.0, 0.5, 10.0), "kočka": (-1.0, 0.5, 10.0)}


@pytest.mark.slow
@compiled
@settings(max_examples=examples(500))
@given(
    GOOD,
    st.sampled_from([STOPLIST, frozenset(), STOPLIST | {"y" * 65}, STOPLIST | {""}]),
    st.sampled_from([PROFILE, {}]),
)
def test_any_words_are_counted_alike(text, stoplist, profile):
    assert PYTHON.listed(text, stoplist, profile) == COMPILED.listed(text, stoplist, profile)
    assert PYTHON.top_word(text, stoplist) == COMPILED.top_word(text, stoplist)


@compiled
def test_words_of_every_character_are_counted_alike():
    text = "".join(f"{chr(code)}b {chr(code)}b{chr(code)}bb " for code in range(0x20000))
    for begin in range(0, len(text), 7990):
        part = text[begin : begin + 7990]
        assert PYTHON.top_word(part, STOPLIST) == COMPILED.top_word(part, STOPLIST)
        assert PYTHON.listed(part, {"b", "ab"}, PROFILE) == COMPILED.listed(part, {"b", "ab"}, PROFILE)
        assert PYTHON.word_kinds(part) == COMPILED.word_kinds(part)
        short = [f"{part[at : at + 20]}abc" for at in range(0, len(part), 20)]
        assert PYTHON.long_words(short, {"babc"}) == COMPILED.long_words(short, {"babc"})


@compiled
@pytest.mark.parametrize(
    "text", ["a " * 4100, "".join(f"{number} " for number in range(4000)), "ab" * 9000, "ab " * 3000]
)
def test_the_most_frequent_word_of_a_long_text_is_found_alike(text):
    assert PYTHON.top_word(text, STOPLIST) == COMPILED.top_word(text, STOPLIST)


@pytest.mark.slow
@compiled
@settings(max_examples=examples(500))
@given(st.lists(GOOD | st.just(CZECH), max_size=20))
def test_any_texts_have_equal_marks_and_long_words(texts):
    assert PYTHON.marks(texts) == COMPILED.marks(texts)
    assert PYTHON.word_kinds("\n".join(texts)) == COMPILED.word_kinds("\n".join(texts))
    for own in (set(), {"kočka", "lang", "čtyři", "vrátila"}):
        assert PYTHON.long_words(texts, own) == COMPILED.long_words(texts, own)
