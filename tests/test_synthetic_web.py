"""The synthetic web: the same for the same seed, linked as the papers measured, and of the sizes asked for."""

from __future__ import annotations

import re
from collections import Counter
from statistics import mean
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.errors import BadInput
from webs.synthetic import Kind, Robots, SyntheticWeb, read_words

pytestmark = pytest.mark.slow
LANGUAGES = ("cs", "sk", "pl", "en", "de")
STEMS = ["pes", "vlk", "koza", "strom", "dům", "řeka", "les", "hora", "cesta", "město", "voda", "oheň"]
WORDS = {
    language: [
        (f"{language}{stem}{ending}", count) for ending, count in (("", 9), ("a", 5), ("y", 3)) for stem in STEMS
    ]
    for language in LANGUAGES
}
HREF = re.compile(r'<a href="([^"]+)"')


@pytest.fixture(scope="module")
def web():
    return SyntheticWeb(600, 7, WORDS)


@pytest.fixture(scope="module")
def plans(web):
    return [web.plan(index) for index in range(600)]


def get(web, url):
    parts = urlsplit(url)
    return web.respond(parts.hostname, parts.path)


def pages(web, plans, step):
    """Every *step*-th page of each host: (plan, number, response)."""
    return [(plan, page, get(web, web.url(plan, page))) for plan in plans for page in range(0, plan.pages, step)]


def test_the_same_arguments_give_the_same_bytes_and_another_seed_others(web, plans):
    again, other = SyntheticWeb(600, 7, WORDS), SyntheticWeb(600, 8, WORDS)
    assert again.hosts() == web.hosts() != other.hosts()
    for plan in reversed(plans[::40]):
        assert get(again, again.url(plan, plan.pages - 1)) == get(web, web.url(plan, plan.pages - 1))


def test_hosts_are_found_by_name_and_by_few_globs(web, plans):
    assert all(web.find(plan.name) == plan for plan in plans)
    assert len(web.globs()) == 16
    for host, address in web.hosts().items():
        assert web.globs()[f"*-{host.rpartition('.')[0][-2:]}.*"] == address
    assert max(Counter(web.hosts().values()).values()) < 60
    for name in ("", "x", "web-0000-00", "web-zz-00.com", "web-ffffff-00.com", "--.", plans[0].name + "x"):
        assert web.respond(name, "/").status == 404


def test_most_hosts_are_small_and_a_few_very_large(plans):
    sizes = sorted(plan.pages for plan in plans)
    assert 12 <= sizes[len(sizes) // 2] <= 30
    assert sizes[-1] > 1000
    assert {plan.kind for plan in plans} == set(Kind)
    assert {plan.robots for plan in plans} == set(Robots)


def test_pages_have_the_size_asked_for_and_the_text_that_their_kind_has(web, plans):
    own = [plan for plan in plans if plan.mirror_of is None]
    sample = [(plan.kind, answer.body) for plan, page, answer in pages(web, own, 29) if page]
    assert 24_000 < mean(len(body) for _, body in sample) < 36_000

    def text_share(kind):
        chosen = [body for other, body in sample if other is kind]
        return mean(sum(map(len, re.findall(rb"<p>.*?</p>", body))) / len(body) for body in chosen)

    assert 0.28 < text_share(Kind.ARTICLES) < 0.45
    assert text_share(Kind.SHOP) < 0.06
    assert text_share(Kind.LINKS) < 0.01


def test_pages_are_in_the_language_that_the_web_says(web, plans):
    for plan, page, answer in pages(web, plans[:60], 37):
        body = answer.body.decode()
        language = web.language_of(plan.name, urlsplit(web.url(plan, page)).path)
        assert f'<html lang="{language}">' in body
        words = re.findall(r"\w+", " ".join(re.findall(r"<p>(.*?)</p>", body)))[: -10 or None]
        assert all(word.lower().startswith(language) for word in words if word.lower()[:2] in LANGUAGES)


def test_links_keep_to_the_language_as_measured_around_thai(web, plans):
    """LSWC 2006, table 3: to the target from the target .841 (same server), .385 (other), from others .030 and .032."""
    seen = Counter()
    for plan, page, answer in pages(web, plans, 29):
        source = web.language_of(plan.name, urlsplit(web.url(plan, page)).path)
        for link in HREF.findall(answer.body.decode()):
            url = urlsplit(urljoin(web.url(plan, page), link))
            language = web.language_of(url.hostname, url.path)
            if language:
                seen[source == "cs", url.hostname.removeprefix("www.") == plan.name, language == "cs"] += 1

    def share(from_target, same):
        return seen[from_target, same, True] / (seen[from_target, same, True] + seen[from_target, same, False])

    assert 0.78 < share(True, True) < 0.93
    assert 0.32 < share(True, False) < 0.45
    assert 0.005 < share(False, True) < 0.06
    assert 0.02 < share(False, False) < 0.05


def test_two_thirds_of_the_target_are_outside_its_national_domain(plans):
    target = [plan for plan in plans if plan.language == "cs"]
    assert 0.08 < len(target) / len(plans) < 0.17
    assert 0.5 < mean(not plan.name.endswith(".cz") for plan in target) < 0.8


def test_every_page_of_a_host_is_reached_from_its_front_page(web, plans):
    plan = next(plan for plan in plans if 50 < plan.pages < 200)
    waiting = [web.url(plan, 0)]
    seen = set(waiting)
    for url in waiting:
        answer = get(web, url)
        for link in (urljoin(url, href) for href in HREF.findall(answer.body.decode())):
            if urlsplit(link).hostname == urlsplit(url).hostname and link not in seen and get(web, link).status == 200:
                seen.add(link)
                waiting.append(link)
    assert len(seen) == plan.pages


def test_text_is_new_on_every_page(web, plans):
    plan = next(plan for plan in plans if plan.kind is Kind.ARTICLES and plan.pages > 10)
    bodies = [get(web, web.url(plan, page)).body.decode() for page in (3, 4)]
    texts = [re.findall(r"\w+", " ".join(re.findall(r"<p>(.*?)</p>", body))) for body in bodies]
    shingles = [{tuple(words[at : at + 7]) for at in range(len(words))} for words in texts]
    assert len(shingles[0]) > 100
    assert len(shingles[0] & shingles[1]) < 0.02 * len(shingles[0])


def test_mirrors_redirects_and_dead_links_are_there(web, plans):
    mirror = next(plan for plan in plans if plan.mirror_of is not None and plan.pages > 1)
    original = plans[mirror.mirror_of]
    assert get(web, web.url(mirror, 1)).body == get(web, web.url(original, 1)).body
    bare = next(plan for plan in plans if plan.www)
    assert web.respond(bare.name, "/").headers["Location"] == f"http://www.{bare.name}/"
    plain = next(plan for plan in plans if not plan.www and plan.pages > 1)
    assert web.respond(plain.name, "/old/clanky/1.html").headers["Location"] == "/clanky/1.html"
    statuses = Counter(
        get(web, urljoin(web.url(plan, page), link)).status
        for plan, page, answer in pages(web, plans[:30], 50)
        for link in HREF.findall(answer.body.decode())
    )
    assert 0 < statuses[404] < 0.05 * statuses[200]
    assert statuses[301]


def test_robots_answers(web, plans):
    def of(kind):
        return next(web.respond(plan.name, "/robots.txt") for plan in plans if plan.robots is kind)

    assert [of(kind).status for kind in (Robots.MISSING, Robots.OPEN, Robots.ERROR)] == [404, 200, 500]
    assert b"Disallow: /archiv/" in of(Robots.SECTION).body
    assert b"Crawl-delay: " in of(Robots.DELAY).body


def test_seeds_are_start_pages_in_the_language(web):
    seeds = web.seeds(5)
    assert len(seeds) == 5
    assert all(web.language_of(urlsplit(seed).hostname, "/") == "cs" for seed in seeds)
    assert all(get(web, seed).status == 200 for seed in seeds)
    assert web.seeds(3, "pl") != seeds[:3]


def test_one_host_and_one_language_are_enough_and_less_is_refused():
    web = SyntheticWeb(1, 1, WORDS, languages=["cs"])
    assert get(web, web.seeds(1)[0]).status == 200
    for arguments in ((0, 1, WORDS), (10, 1, {}), (10, 1, {"cs": []}), (10, 1, WORDS, ())):
        with pytest.raises(BadInput):
            SyntheticWeb(*arguments)


def test_word_lists_are_read_and_broken_ones_refused(tmp_path):
    with pytest.raises(BadInput, match=r"words\.txt"):
        read_words(tmp_path)
    (tmp_path / "cs").mkdir()
    (tmp_path / "cs" / "words.txt").write_text("a\t20\npes\t3\n", encoding="utf-8")
    assert read_words(tmp_path, ["cs"]) == {"cs": [("a", 20), ("pes", 3)]}
    (tmp_path / "cs" / "words.txt").write_text("a 20\n", encoding="utf-8")
    with pytest.raises(BadInput, match="TAB"):
        read_words(tmp_path, ["cs"])


@given(host=st.text(), path=st.text())
def test_no_request_breaks_it(web, plans, host, path):
    for name in (host, plans[0].name):
        for target in (path, "/" + path, f"/clanky/{path}.html"):
            assert web.respond(name, target).status in (200, 301, 404)
