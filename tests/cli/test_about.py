"""``scrapy about``: the page for site owners says what the crawl with these options does."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from conftest import scrapy

from spiderling.base.opt_outs import Purpose, Signal
from spiderling.base.options import Options
from spiderling.commands.about import about

CONTACT = "https://corpus.example.org/crawler.html"


class Texts(HTMLParser):
    """What a browser shows; fails on a tag that is closed without being open."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)


def test_page_is_written_with_the_options_of_the_crawl():
    ended = scrapy(
        "about", "-a", "lang=cs,sk", "--who", "The <Corpus> Group", "--address", "192.0.2.7",
        "--address", "2001:db8::7", "-s", f"SPIDERLING_CONTACT={CONTACT}", "-s", "SPIDERLING_HOST_INTERVAL_S=10",
    )  # fmt: skip
    assert (ended.code, ended.log) == (0, "")
    parsed = Texts(ended.out)
    assert not parsed.open
    text = " ".join(" ".join(parsed.words).split())
    for said in (
        "text in Czech, Slovak", "The <Corpus> Group collects running text", f"spiderling (+{CONTACT})",
        "192.0.2.7, 2001:db8::7", "at most 6 a minute", "User-agent: spiderling Disallow: /", "language models",
    ):  # fmt: skip
        assert said in text
    assert f'<a href="{CONTACT}">' in ended.out


def test_a_crawl_that_waits_for_nothing_has_no_such_page():
    given = ("-s", f"SPIDERLING_CONTACT={CONTACT}", "-s", "SPIDERLING_HOST_INTERVAL_S=0")
    ended = scrapy("about", *given)
    assert ended.code == 1 and ended.log.startswith("scrapy about: SPIDERLING_HOST_INTERVAL_S is 0")


@pytest.mark.parametrize("purpose", Purpose)
def test_each_row_says_what_the_policy_does(purpose):
    page = about(Options(contact="a@b.cz", purpose=purpose.value), "Czech")
    rows = [row for row in page.split("<tr>") if "<td>" in row]
    happens = {write: row for row in rows for write in (row.split("<pre>")[1].split("</pre>")[0],)}
    trains = "not used" if purpose is Purpose.AI_TRAIN else "recorded"
    mines = "recorded" if purpose is Purpose.RESEARCH else "not used"
    assert trains in happens["Content-Usage: train-ai=n"]
    assert ("not used" if purpose is Purpose.SEARCH else "recorded") in happens["Content-Signal: search=no"]
    assert mines in happens[next(write for write in happens if write.startswith("[{"))]
    assert "not used" in next(row for write, row in happens.items() if "noindex" in write)
    assert "recorded" in happens["User-agent: GPTBot\nDisallow: /"]


def test_every_signal_that_keeps_text_out_is_on_the_page_and_ignored_ones_say_so():
    ignored = about(Options(contact="a@b.cz", optouts=",".join(f"{s.value}=ignore" for s in Signal)), "")
    said = about(Options(contact="a@b.cz"), "")
    assert ignored.count("it is not looked at") == said.count("<tr><td>") > 10
    assert "mailto:a@b.cz" in said
    leave, allow = (about(Options(contact="a@b.cz", refused_robots=rule), "") for rule in ("leave", "allow"))
    assert "on robots.txt, or on five pages" in leave
    assert "on robots.txt, or on five pages" not in allow


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "say how site owners reach you"),
        (("cs", "-s", "SPIDERLING_CONTACT=a@b.cz"), "takes no arguments"),
        (("-a", "seeds=x", "-s", "SPIDERLING_CONTACT=a@b.cz"), "knows only -a lang="),
        (("-a", "lang=xx-none", "-s", "SPIDERLING_CONTACT=a@b.cz"), "xx-none"),
    ],
)
def test_mistakes_are_told_in_a_sentence(arguments, sentence):
    ended = scrapy("about", *arguments)
    assert ended.code != 0
    assert sentence in ended.log
    assert "Traceback" not in ended.log
