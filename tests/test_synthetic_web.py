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
from webs.synthetic import Kind, Robots, SyntheticWeb

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
    seeds = web.seeds(5)
    assert {web.language_of(urlsplit(seed).hostname, "/") for seed in seeds} == {"cs"}
    assert {get(web, seed).status for seed in seeds} == {200} and web.seeds(3, "pl") != seeds[:3]


def test_most_hosts_are_small_and_a_few_very_large(plans):
    sizes = sorted(plan.pages for plan in plans)
    assert 12 <= sizes[len(sizes) // 2] <= 30
    assert sizes[-1] > 1000
    assert {plan.kind for plan in plans} == set(Kind)
    assert {plan.robots for plan in plans} == set(Robots)
    target = [plan for plan in plans if plan.language == "cs"]
    assert 0.08 < len(target) / len(plans) < 0.17
    assert 0.5 < mean(not plan.name.endswith(".cz") for plan in target) < 0.8


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


def test_mirrors_redirects_dead_links_and_each_kind_of_robots_are_there(web, plans):
    robots = {plan.robots: web.respond(plan.name, "/robots.txt") for plan in plans}
    assert [robots[kind].status for kind in (Robots.MISSING, Robots.OPEN, Robots.ERROR)] == [404, 200, 500]
    assert b"Disallow: /archiv/" in robots[Robots.SECTION].body and b"Crawl-delay: " in robots[Robots.DELAY].body
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


@pytest.mark.parametrize("arguments", [(0, 1, WORDS), (10, 1, {}), (10, 1, {"cs": []}), (10, 1, WORDS, ())])
def test_a_web_without_hosts_languages_or_words_is_refused(arguments):
    with pytest.raises(BadInput):
        SyntheticWeb(*arguments)


@given(host=st.text(), path=st.text())
def test_no_request_breaks_it(web, plans, host, path):
    for name in (host, plans[0].name):
        for target in (path, "/" + path, f"/clanky/{path}.html"):
            assert web.respond(name, target).status in (200, 301, 404)
