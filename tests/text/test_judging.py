"""The kinds of paragraphs: told from the page, kept or left out by option, and written."""

from __future__ import annotations

import pytest
from cleaned_pages import cleaned

from spiderling.base.errors import BadInput
from spiderling.base.option_values import KINDS, parse_paragraph_kinds
from spiderling.base.options import Options
from spiderling.corpus.segments import CorpusDocument
from spiderling.export.formats import record_of
from spiderling.text import TextOptions, clean_text
from spiderling.text.html.parser import parse as parse_html
from spiderling.text.judging import kinds

TEXT = "When the cat came home it was already dark, and everybody was asleep but the dog. "
CODE = "for (i = 0; i &lt; n; i++) { sum += a[i]; }"


def told(html: str) -> list[str]:
    """The kinds of all blocks of a page."""
    page = parse_html(html)
    return kinds(page.blocks, page.tree, range(len(page.blocks)))


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("", []),
        (f"<h1>A cat</h1><p>{TEXT}", ["heading", "text"]),
        (f"<p>{TEXT}</p><pre>{CODE}</pre>", ["text", "code"]),
        (f"<pre>{TEXT * 3}</pre>", ["text"]),
        (f"<pre>{TEXT} (It was a big one.) {TEXT}</pre>", ["text"]),
        ("<pre>Sub ExampleCBool Print CBool(1 Xor 44) End Sub</pre>", ["code"]),
        (f"<div class=highlight><p>{TEXT}</p><p>x = y[0]; z = {{}}</div>", ["text", "code"]),
        ("<p>public InetAddress getInetAddress()<p>void send(int port, String host)", ["code", "code"]),
        ("<p>Name(s) of the author(s)<p>The World Health Organization (of the UN)<p>Die Firma(GmbH)", ["text"] * 3),
        ("<p>int f(char *s[]) { return *s[0] == '{'; }", ["code"]),
        ("<table><tr><th>Year<td>1984<td>It was sold to a dealer.</table>", ["cell", "cell", "text"]),
        (f"<table><tr><td>{TEXT}</table>", ["text"]),
        (f"<p>{TEXT * 3}</p><noscript><p>This site needs a better browser.</noscript>", ["text", "notice"]),
        (f"<p>{TEXT * 3}<div id=cookie-bar><p>Some words about you.</div>", ["text", "notice"]),
        (f"<div class=cookie-theme><p>{TEXT * 3}<p>{TEXT}</div>", ["text", "text"]),
        ("<p>Please enable JavaScript to see this page.", ["notice"]),
        ("<p>Bitte aktivieren Sie JavaScript.<p>Nous utilisons des cookies.", ["notice", "notice"]),
        ("<p>You must be logged in to reply to this topic.<p>Powered by phpBB", ["notice", "notice"]),
        ("<p>He wrote JavaScript for a living, and baked cookies.", ["text"]),
        (f"<p>{TEXT * 9}<div class=related-posts><h3>Read also</h3><p>{TEXT}</div>", ["text", "teaser", "teaser"]),
        (f"<div class=related-posts><h3>Read also</h3><p>{TEXT}</div>", ["heading", "text"]),
        (f"<div class=teaser><p>{TEXT}<p>{TEXT}</div><p>{TEXT * 9}", ["text", "text", "text"]),
        (f"<div id=teaser>{TEXT}</div><p>{TEXT * 9}<div class=teaser><p>{TEXT}</div>", ["text", "text", "teaser"]),
        ("<ul><li><a href=/x>Ten more stories about dogs</a></ul>", ["teaser"]),
        ("<h2><a href=/x>A story about dogs</a></h2>", ["heading"]),
        (f"<p>{TEXT}</p><ol class=comments><li>{TEXT}</ol>", ["text", "comment"]),
        (f"<div class=with-comments><p>{TEXT}</p><p>{TEXT}</div>", ["text", "text"]),
    ],
)
def test_each_kind(html, expected):
    assert told(html) == expected


PAGE = f"""<h1>The cat and the dog</h1><p>{TEXT * 3}<p>{TEXT * 2}<pre>{CODE}
{CODE}</pre><p>{TEXT * 3}<div class=comments><p>{TEXT * 2}</div>"""


def permissive(**changed):
    return cleaned(PAGE, "en", boilerplate="justext", preset="permissive", **changed)


def test_kinds_are_kept_or_left_out():
    page = permissive()
    found = {paragraph.kind: paragraph.kept for paragraph in page.paragraphs if paragraph.cls == "good"}
    assert found == {"heading": True, "text": True, "code": False, "comment": True}
    assert "sum" not in clean_text(page.paragraphs)
    whole = permissive(kinds=frozenset(KINDS))
    assert "sum" in clean_text(whole.paragraphs)
    assert b'<p class="good" kind="code">' in whole.kept_elements()
    assert b'<p class="good" kind="heading" heading="1"' in whole.kept_elements()


def test_a_page_without_a_wanted_kind_has_no_text():
    page = permissive(kinds=frozenset({"cell"}))
    assert (page.has_text, clean_text(page.paragraphs), page.languages) == (False, "", {})


def test_the_option():
    assert (
        parse_paragraph_kinds(Options().paragraph_kinds) == TextOptions(("en",)).kinds == {"text", "heading", "comment"}
    )
    for given, message in ((" , ", "names no kind; write some of text, heading"), ("text,tables", "names 'tables'")):
        with pytest.raises(BadInput, match=message):
            parse_paragraph_kinds(given)


def test_the_kind_is_a_column_of_parquet():
    document = CorpusDocument({}, ["x = 1", "An old text."], [{"class": "good", "kind": "code"}, {"class": "good"}])
    assert [paragraph["kind"] for paragraph in record_of(document)["paragraphs"]] == ["code", ""]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<div class=dropcap>N</div><p>{}</p>", "N{}"),
        ("<p><div style='float:left'>Ř</div>{}</p>", "Ř{}"),
        ("<div>N</div><p>n{}</p>", "n{}"),  # an index
        ("<h2>N</h2><p>{}</p>", "{}"),
        ("<div>Na</div><p>{}</p>", "{}"),
        ("<div>n</div><p>{}</p>", "{}"),
        ("<table><tr><td>N<td>{}</table>", "{}"),
    ],
)
def test_an_initial_in_a_box_of_its_own_begins_the_word(html, expected):
    text = "a jaře jsme vysadili tři mladé jabloně a jednu hrušeň, protože stará třešeň uschla."
    page = cleaned(html.format(text))
    assert [paragraph.text for paragraph in page.paragraphs][-1] == expected.format(text)
    assert page.paragraphs[0].cls == "bad" or not expected[0].isupper()
