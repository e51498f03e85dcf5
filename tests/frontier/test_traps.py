"""Traps are left after few requests, and nothing that gives anything is taken for one."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from virtual_crawl import Answer, Resolution, VirtualCrawl, page

from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier import traps as module
from spiderling.frontier.hosts import Host, HostState
from spiderling.frontier.traps import Counts, Mirror, Traps, Visit, sections_of

LIMIT = 20


class Endless(dict[str, Any]):
    """A web or a name service that has an answer to everything."""

    def __init__(self, answer: Callable[[str], Any]) -> None:
        super().__init__({"": None})  # it is not empty
        self._answer = answer

    def get(self, key: str, default: Any = None) -> Any:
        return default if key.endswith(("/robots.txt", "/tdmrep.json", "/ai.txt")) else self._answer(key)

    def __contains__(self, key: object) -> bool:
        return True


def bare(*links: str, **kwargs: Any) -> Answer:
    return Answer(links=links, reason=Reason.BOILERPLATE_ONLY, kept_bytes=0, **kwargs)


def calendar(url: str) -> Answer:
    """Every day links to the days and months around it."""
    parts = url.rpartition("/kalendar/")[2].split("/") if "/kalendar/" in url else ["2026", "11", "21"]
    day = datetime.date(*(int(part) for part in (*parts, "1", "1")[:3]))
    days = [day + datetime.timedelta(step) for step in (-1, 1, 7, 31)]
    months = [f"http://a.cz/kalendar/{day.year}/{day.month}" for day in days]
    return bare(*(f"http://a.cz/kalendar/{day:%Y/%m/%d}" for day in days), *months)


def crawl_of(answer: Callable[[str], Answer], **options: Any) -> VirtualCrawl:
    return VirtualCrawl(Endless(answer), yield_profile="off", host_interval_s=1.0, **options)


def test_calendar_is_left_when_it_has_given_nothing() -> None:
    crawl = crawl_of(calendar).run("http://a.cz/")
    assert LIMIT <= len(crawl.fetched()) <= 4 * LIMIT, "days and months are a section each"
    assert crawl.mentions[Reason.TRAP_SECTION] > 0
    assert crawl.ends[Reason.TRAPPED] > 0, "what waited when it was found out"


def test_pages_that_are_kept_have_no_end_either() -> None:
    crawl = crawl_of(lambda url: page(f"http://a.cz/{int(url.rpartition('/')[2] or 0) + 1}"))
    crawl.run("http://a.cz/", until=1000.0 + 300)
    assert len(crawl.fetched()) > 200


def test_lists_that_lead_to_new_pages_are_no_trap() -> None:
    """Two hundred pages of a list without text, each with one article that no other has."""

    def answer(url: str) -> Answer:
        number = int(url.rpartition("=")[2]) if "=" in url else 0
        if "/clanek-" in url or number >= 200:
            return page()
        return bare(f"http://a.cz/seznam?strana={number + 1}", f"http://a.cz/clanek-{number}-o-vode")

    crawl = crawl_of(answer).run("http://a.cz/")
    assert crawl.ends[Reason.KEPT] == 201
    assert Reason.TRAPPED not in crawl.ends
    assert not crawl.mentions.keys() & {Reason.TRAP_SECTION, Reason.TRAP_COPY}


@pytest.mark.parametrize("reason", [Reason.WRONG_LANGUAGE, Reason.UNDECODABLE, Reason.WORKER_CRASH, Reason.OPTED_OUT])
def test_other_ends_tell_nothing_of_a_trap(reason: Reason) -> None:
    urls = [f"http://a.cz/{number}" for number in range(5 * LIMIT)]
    crawl = crawl_of(lambda url: Answer(reason=reason, links=tuple(urls))).run(urls[0])
    assert len(crawl.fetched()) == len(urls)


def test_one_kept_page_saves_its_section() -> None:
    """A dozen empty days, then one with something on it, and so on."""

    def answer(url: str) -> Answer:
        day = int(url.rpartition("/")[2] or 0)
        links = (f"http://a.cz/den/{day + 1}",)
        return page(*links) if day % 12 == 11 else bare(*links)

    crawl = crawl_of(answer).run("http://a.cz/", until=1000.0 + 400)
    assert len(crawl.fetched()) > 250


def test_facets_are_left_and_goods_are_not() -> None:
    def answer(url: str) -> Answer:
        if "/zbozi/" in url:
            return page()
        chosen = url.partition("?")[2]
        facets = [f"{name}={value}" for name in ("barva", "cena", "razeni") for value in range(9)]
        links = [f"http://a.cz/vyber?{'&'.join(filter(None, (chosen, facet)))}" for facet in facets]
        return bare(*links[:60], *(f"http://a.cz/zbozi/{number}" for number in range(30)))

    crawl = crawl_of(answer).run("http://a.cz/vyber")
    assert crawl.ends[Reason.KEPT] == 30
    assert len(crawl.fetched()) < 30 + 4 * LIMIT


def test_links_of_copies_are_not_followed() -> None:
    """The same page under every path, with relative links: they would grow for ever."""
    crawl = crawl_of(lambda url: Answer(links=(f"{url}a/", f"{url}b/", "http://b.cz/"), sketch=7)).run("http://a.cz/")
    assert crawl.mentions[Reason.TRAP_COPY] > 0
    assert len(crawl.fetched("a.cz")) <= 5 * 2 + 1
    assert crawl.fetched("b.cz"), "links to elsewhere are"


def test_frontier_tells_the_pipeline_what_a_copy_is() -> None:
    crawl = crawl_of(lambda url: Answer(sketch=7)).run(*(f"http://a.cz/{number}" for number in range(4)))
    assert not crawl.frontier.is_copy("a.cz", 7)
    crawl.run("http://www.a.cz/5")
    assert crawl.frontier.is_copy("sub.a.cz", 7), "five pages of the domain said it"
    assert not crawl.frontier.is_copy("a.cz", 8)
    assert not crawl.frontier.is_copy("b.cz", 7)
    assert not crawl.frontier.is_copy("a.cz", 0), "next to no text is no copy of anything"


def names(url: str) -> Answer:
    label = url.split("/")[2].partition(".")[0]
    return Answer(links=tuple(f"http://{label}{number}.wild.cz/" for number in range(8)), sketch=9)


def wild(**options: Any) -> VirtualCrawl:
    dns = Endless(lambda name: Resolution(("10.9.9.9",)))
    return VirtualCrawl(Endless(names), dns, yield_profile="off", ip_interval_s=0.0, traps="copies=0", **options)


def test_made_up_names_come_to_an_end() -> None:
    crawl = wild().run("http://a.wild.cz/")
    assert len(crawl.frontier.hosts) < 100
    assert crawl.ends[Reason.TRAPPED] > 0
    assert crawl.mentions[Reason.TRAP_SUBDOMAINS] > 0
    crawl.run("http://seed.wild.cz/")
    assert crawl.fetched("seed.wild.cz") == ["http://seed.wild.cz/"], "a name that the user gave is not made up"


def test_hosts_with_pages_of_their_own_are_no_made_up_names() -> None:
    """Every blog of a platform begins with another text."""

    def answer(url: str) -> Answer:
        number = int(url.removeprefix("http://h").partition(".")[0])
        return Answer(links=(f"http://h{number + 1}.blog.cz/",), sketch=1000 + number)

    crawl = VirtualCrawl(Endless(answer), yield_profile="off").run("http://h0.blog.cz/")
    assert len(crawl.frontier.hosts) == 51, "as far as distance goes"
    assert crawl.mentions == {Reason.TOO_FAR: 1}


def site(name: str, pages: int, text: Callable[[int], int]) -> dict[str, Answer]:
    urls = [f"http://{name}/strana-{number}" for number in range(pages)]
    return {f"http://{name}/": page(*urls), **{url: page(sketch=text(number)) for number, url in enumerate(urls)}}


def test_mirror_is_closed_and_the_other_host_is_not_and_goes_on_when_it_is_reopened() -> None:
    web = {**site("a.cz", 60, lambda n: 100 + n), **site("b.cz", 60, lambda n: 100 + n)}
    crawl = VirtualCrawl(web, yield_profile="off").run("http://a.cz/", until=1000 + 200)
    crawl.run("http://b.cz/")
    assert crawl.host("b.cz").state is HostState.MIRROR
    assert len(crawl.fetched("b.cz")) == 11
    assert crawl.ends[Reason.MIRROR] == 50
    assert len(crawl.fetched("a.cz")) == 61
    crawl.commit()
    crawl.frontier.host_closing.reopen_host(crawl.host("b.cz"), crawl.now)
    assert crawl.run().ends == {Reason.KEPT: 122}


def test_hosts_that_share_some_pages_only_are_no_mirrors() -> None:
    """Both have the same conditions of use; every third of their pages is the other's."""
    web = {**site("a.cz", 60, lambda n: 100 + n), **site("b.cz", 60, lambda n: 100 + n if n % 3 == 0 else 1000 + n)}
    crawl = VirtualCrawl(web, yield_profile="off").run("http://a.cz/", "http://b.cz/")
    assert crawl.ends == {Reason.KEPT: 122}


def test_subclass_and_seeds_are_not_judged() -> None:
    crawl = crawl_of(calendar).run("http://a.cz/")
    assert crawl.frontier.put_seed("http://a.cz/kalendar/1999/1/1", crawl.now) is None
    assert crawl.frontier.put_request("http://a.cz/kalendar/1999/1/2", b"x", b"", None, crawl.now) is None
    crawl.run()
    assert [url[-8:] for url in crawl.fetched()[-2:]] == ["1999/1/1", "1999/1/2"]


MB = 1_000_000


@pytest.mark.parametrize(
    ("document", "least", "most"),
    [
        (Answer(body_bytes=5 * MB, kept_bytes=0, reason=Reason.SCANNED), 4, 6),
        (Answer(body_bytes=100, kept_bytes=0, reason=Reason.SCANNED), 20, 22),
        (Answer(body_bytes=5 * MB, kept_bytes=0, reason=Reason.WRONG_LANGUAGE), 4, 6),
        (Answer(body_bytes=5 * MB, kept_bytes=10_000), 6, 9),
        (Answer(body_bytes=5 * MB, kept_bytes=30_000), 100, 100),
        (Answer(body_bytes=100, kept_bytes=0, status=404), 100, 100),
        (Answer(body_bytes=9_000, kept_bytes=0, reason=Reason.WRONG_LANGUAGE), 100, 100),
    ],
)
def test_documents_are_fetched_while_they_give_something_for_their_bytes(
    document: Answer, least: int, most: int
) -> None:
    """Pages of the host go on, and so do documents of other kinds."""
    links = [f"http://a.cz/d{number}/{number}" for number in range(100)]
    files = [f"http://a.cz/{letter}/{number}.pdf?v=1" for number in range(50) for letter in "xy"]
    pages = {link: page() for link in links} | dict.fromkeys(files, document) | {"http://a.cz/a.docx": page()}
    web = {"http://a.cz/": page(*files, *links, "http://a.cz/a.docx"), **pages}
    crawl = VirtualCrawl(web, yield_profile="off", host_interval_s=1.0).run("http://a.cz/")
    fetched = crawl.fetched()
    assert least <= sum(".pdf" in url for url in fetched) <= most
    assert {*links, "http://a.cz/a.docx"} <= set(fetched)


def test_good_documents_pay_for_scans() -> None:
    read = Read()
    host = read.host("a.cz")
    for number in range(100):
        for size, kept in ((3 * MB, 0), (3 * MB, 40_000)):
            reason = Reason.KEPT if kept else Reason.SCANNED
            outcome = Outcome(1, "", reason, body_bytes=size, kept_bytes=kept)
            visit = read.traps.visit(host, f"/{number}.pdf", outcome)
            assert visit is not None
            read.traps.leave(visit)
    assert read.traps.refusal(host.id, "a.cz", "/1.pdf") is None


@pytest.mark.parametrize(
    ("path", "sections"),
    [
        ("/", {"/*": 2}), ("/a/b", {"/a/*": 2}), ("/a/12/b7.html", {"/a/0/b0.html": 1, "/a/0/*": 2}),
        ("/2026/11/", {"/0/0/": 1, "/0/0/*": 2}), ("/a7?b=1&c", {"/a0?b": 1, "/a0?c": 1, "?b": 2, "?c": 2}),
        ("/a/b.PDF?c=1", {"*.pdf": 1}), ("/a?b=1&b=2&", {"/a?b": 1, "?b": 2, "/a?": 1, "?": 2}),
    ],
)  # fmt: skip
def test_sections(path: str, sections: dict[str, int]) -> None:
    assert sections_of(path) == sections


@given(st.text())
@example("/a?" + "&".join(f"p{number}=1" for number in range(1000)))
def test_any_path_has_few_sections(path: str) -> None:
    assert 1 <= len(sections_of(path)) <= 16


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=300))
def test_counts_never_tell_more_than_there_were(steps: list[tuple[int, bool]]) -> None:
    """Two bits of table for forty keys: most are displaced, none is taken for another."""
    counts, true = Counts(2), Counter[int]()
    for key, is_cleared in steps:
        if is_cleared:
            counts.lower(key)
            true[key] = 0
        else:
            true[key] += 1
            assert 1 <= counts.increment(key) <= true[key]
        assert all(counts.get(key) <= true[key] for key in range(41))


class Read:
    """The traps of a crawl, and pages that have ended."""

    def __init__(self) -> None:
        self._crawl = VirtualCrawl({}, yield_profile="off")
        self.traps = Traps(self._crawl.options, self._crawl.frontier.hosts)

    def host(self, name: str) -> Host:
        self._crawl.frontier.put_seed(f"http://{name}/", self._crawl.now)
        return self._crawl.host(name)

    def page(self, host: Host, path: str, reason: Reason, sketch: int = 0, text_key: int = 0) -> Host | None:
        """Returns the host that turned out to be a mirror."""
        return self.traps.leave(self.visit(host, path, reason, sketch, text_key))

    def visit(self, host: Host, path: str, reason: Reason, sketch: int = 0, text_key: int = 0) -> Visit:
        visit = self.traps.visit(host, path, Outcome(1, "", reason, sketch=sketch, text_key=text_key))
        assert visit is not None
        return visit

    def calendar(self, host: Host, section: str = "kalendar") -> None:
        """More bare pages than close a section."""
        for day in range(LIMIT + 5):
            self.page(host, f"/{section}/2026/11/{day}", Reason.BOILERPLATE_ONLY)


def test_closed_sections_of_the_first_hosts_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty hosts have a calendar each, one of them several: the table keeps the last ones, and goes on to learn."""
    monkeypatch.setattr(module, "MAX_CLOSED", 8)
    read = Read()

    def refusal(host: Host) -> Reason | None:
        return read.traps.refusal(host.id, host.name, "/kalendar/2026/12/1")

    first, *others = (read.host(f"h{number}.cz") for number in range(40))
    for host in (first, *others):
        read.calendar(host)
        assert refusal(host) is Reason.TRAP_SECTION
        assert sum(map(len, read.traps.closed.values())) <= 8
    assert refusal(first) is None
    read.calendar(first)
    assert refusal(first) is Reason.TRAP_SECTION, "closed anew"
    for number in range(40):
        read.calendar(first, f"{chr(97 + number % 26)}{'x' * number}")
        assert sum(map(len, read.traps.closed.values())) <= 8


def test_domains_of_made_up_names_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every name of twenty domains answers with one page; five of the domains are remembered."""
    monkeypatch.setattr(module, "MAX_DOMAINS", 5)
    read = Read()
    for domain in range(20):
        for number in range(30):
            host = read.host(f"n{number}.wild{domain}.cz")
            host.account.pages += 1
            host.account.downloaded_bytes += 1000
            read.page(host, "/", Reason.DUPLICATE, sketch=77)
        assert read.traps.refusal(0, f"new.wild{domain}.cz", "/") is Reason.TRAP_SUBDOMAINS
    assert sum(read.traps.refusal(0, f"new.wild{n}.cz", "/") is Reason.TRAP_SUBDOMAINS for n in range(20)) == 5


def test_mirrors_are_found_beside_any_number_of_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of forty hosts shares pages with all before it; then two are mirrors, and found all the same."""
    monkeypatch.setattr(module, "MAX_MIRRORS", 8)
    monkeypatch.setattr(module, "MAX_HOSTS", 4)
    mirrors = WeakSet[Mirror]()

    class Noted(Mirror):
        __slots__ = ("__weakref__",)

        def __init__(self) -> None:
            super().__init__()
            mirrors.add(self)

    monkeypatch.setattr(module, "Mirror", Noted)
    read = Read()
    hosts = [read.host(f"h{number}.cz") for number in range(40)]
    for number, host in enumerate(hosts):
        for other in hosts[:number]:
            for which, text_key in ((other, 5), (host, 6), (other, 6), (host, 6)):
                read.page(which, f"/spolecne-{other.id}-{host.id}", Reason.KEPT, text_key=text_key)
    assert 0 < len(mirrors) <= 8
    assert max(len(mirror.hosts) for mirror in mirrors) <= 4
    found = [
        read.page(read.host(name), f"/strana-{number}", Reason.KEPT, text_key=100 + number)
        for number in range(20)
        for name in ("first.cz", "second.cz")
    ]
    assert read.host("second.cz") in found


@pytest.mark.parametrize("names", [("a.cz", "b.cz"), ("b.cz", "a.cz")])
@pytest.mark.parametrize(
    ("differs", "closed_at"), [(lambda n: False, 10), (lambda n: n == 3, 11), (lambda n: n % 3 == 0, None)]
)
def test_one_of_two_mirrors_in_different_shards_is_closed(
    names: tuple[str, str], differs: Callable[[int], bool], closed_at: int | None
) -> None:
    """They go on side by side; each shard hears of a page of the other some pages later."""
    late = 4
    shards = [Read(), Read()]
    hosts = [read.host(name) for read, name in zip(shards, names, strict=True)]
    told: list[list[tuple[int, int]]] = [[], []]
    found: list[tuple[str, int]] = []
    for number in range(1, 60):
        for at, (read, host) in enumerate(zip(shards, hosts, strict=True)):
            text = (7 + at if differs(number) else 1 << 40) + number
            visit = read.visit(host, f"/strana-{number}", Reason.KEPT, text_key=text)
            assert read.traps.compares(visit) and read.traps.leave(visit) is None
            told[at].append(visit.keys)
        for at, read in enumerate(shards):
            if number > late and (mirror := read.traps.visit_elsewhere(*told[1 - at][number - late - 1])):
                found.append((mirror.name, number - late))
    assert found[:1] == ([] if closed_at is None else [("a.cz" if found[0][0] == "a.cz" else "b.cz", closed_at)])
    assert len({name for name, _ in found}) == (closed_at is not None), "never both"


def test_what_another_shard_tells_closes_no_seed_and_leaves_no_trace() -> None:
    read = Read()
    host, stranger = read.host("a.cz"), read.host("b.cz")
    pages = [read.visit(stranger, f"/{number}", Reason.KEPT, text_key=number).keys[1] for number in range(1, 40)]

    def found() -> list[Host | None]:
        return [read.traps.visit_elsewhere(1, page) for page in pages]

    assert found() == [None] * 39, "nothing of ours is there"
    for number in range(1, 40):
        assert read.page(host, f"/{number}", Reason.KEPT, text_key=number) is None
    host.pinned = True
    assert found() == [None] * 39
    host.pinned = False
    assert found() == [host] * 39
