"""The bundled miniature web: whole, licensed, small, and linked; and the behaviours that sites.csv can name."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.errors import BadInput
from webs.recorded import COLUMNS, RecordedWeb
from webs.special import LIST_PAGES, SITES

MINIWEB = Path(__file__).resolve().parents[1] / "examples" / "miniweb"
FREE = re.compile(r"\b(GPL|GFDL|CC-BY-SA|MPL|Apache|CC0|public.domain)", re.I)
HREF = re.compile(rb"""<a\b[^>]*?\shref\s*=\s*["']([^"'#]+)""", re.I)
HOSTS = list(RecordedWeb(MINIWEB).sites)


@pytest.fixture(scope="module")
def web():
    return RecordedWeb(MINIWEB)


@pytest.fixture
def own(tmp_path):
    """A recorded web with the pages of the bundled one and one host of a given behaviour."""
    (tmp_path / "pages.tar.zst").symlink_to(MINIWEB / "pages.tar.zst")

    def make(behaviour, host="gimp.cs.test", address="127.80.0.1"):
        line = f"{host},{address},cs,/index.html,source,GPL-2,{behaviour}"
        (tmp_path / "sites.csv").write_text(",".join(COLUMNS) + "\n" + line + "\n", encoding="utf-8")
        return RecordedWeb(tmp_path)

    return make


def get(web, url, hops=8):
    """The answer behind a URL, redirects followed, busy servers asked again."""
    for _ in range(hops):
        parts = urlsplit(url)
        answer = web.respond(parts.hostname, parts.path + ("?" + parts.query if parts.query else ""))
        if "Location" in answer.headers:
            url = urljoin(url, answer.headers["Location"])
        elif answer.status not in (429, 503):
            break
    return url, answer


def links(url, answer):
    return [urljoin(url, unquote(href.decode("utf-8", "replace")).strip()) for href in HREF.findall(answer.body)]


def test_it_is_small_licensed_and_told_of_in_its_readme_and_some_hosts_share_an_address(web):
    assert sum(path.stat().st_size for path in MINIWEB.rglob("*") if path.is_file()) < 12_000_000
    assert [site.host for site in web.sites.values() if not FREE.search(site.licence) or not site.source] == []
    assert not any(host.startswith("storybooks") for host in web.sites)
    pages = [len(web.paths(host)) for host in web.sites]
    assert max(pages) <= 220 and 1200 <= sum(pages) <= 1800
    said = (MINIWEB / "README.md").read_text(encoding="utf-8")
    assert f"{sum(pages):,} stored pages" in said
    assert [host for host in HOSTS if f"`{host}`" not in said] == []
    addresses = {site.address for site in web.sites.values()}
    assert 8 <= len(addresses) <= 12
    assert len(addresses) < len(web.sites) / 2


@pytest.mark.parametrize("host", [host for host in HOSTS if host != "stare.test"])
def test_the_start_page_answers_and_most_of_its_links_resolve(web, host):
    url, answer = get(web, f"http://{host}{web.sites[host].start}")
    assert (answer.status, answer.headers["Content-Type"].partition(";")[0]) == (200, "text/html")
    inside = [link for link in links(url, answer) if urlsplit(link).hostname in web.hosts()]
    answers = [get(web, link)[1].status for link in inside if link.endswith(("/", ".html"))]
    assert answers.count(200) >= 0.9 * len(answers)


def test_the_portal_links_to_every_host_and_every_page_is_reached_from_it(web):
    waiting = ["http://portal.test/index.html"]
    seen = set(waiting)
    for url in waiting:
        final, answer = get(web, url)
        # The computed sites have no end, so they are entered and not followed.
        followed = answer.status == 200 and "site" not in web.sites[host_of(url)].behaviour
        found = {link for link in links(final, answer) if urlsplit(link).hostname in web.hosts()} if followed else set()
        waiting += sorted(found - seen)
        seen |= found
    reached = {(host_of(url), urlsplit(url).path) for url in seen}
    assert {host for host, _ in reached} == set(web.sites)
    assert {(host, path) for host in web.sites for path in web.paths(host)} - reached == set()


def host_of(url):
    return urlsplit(url).hostname.removeprefix("www.")


@pytest.mark.slow
def test_each_behaviour_that_sites_csv_can_name(own):
    def answers(behaviour, path="/robots.txt", number=1):
        web = own(behaviour)
        return [web.respond("gimp.cs.test", path) for _ in range(number)]

    robots = {"robots=open": b"Disallow:", "robots=disallow:/x/": b"Disallow: /x/",
              "robots=delay:0.5": b"Crawl-delay: 0.5\nDisallow:"}  # fmt: skip
    for behaviour, lines in robots.items():
        assert answers(behaviour)[0].body.partition(b"\n")[2].strip() == lines
    assert [answer.status for answer in answers("robots=error:2", number=3)] == [503, 503, 200]
    assert [answer.status for answer in answers("busy=2", "/index.html", 3)] == [200, 429, 200]
    assert answers("slow=1.5", "/index.html")[0].delay_s == 1.5
    (moved,) = answers("www", "/index.html?a=1")
    assert (moved.status, moved.headers["Location"]) == (301, "http://www.gimp.cs.test/index.html?a=1")


@pytest.mark.slow
def test_the_calendar_has_no_end_and_the_link_lists_are_heavy_and_hold_no_text(web):
    url, seen = "http://kalendar.test/", set()
    for _ in range(50):
        url, answer = get(web, url)
        seen.add(url)
        assert answer.status == 200
        url = links(url, answer)[1]
    assert len(seen) == 50
    assert web.respond("kalendar.test", "/kalendar/2026/2/30/").status == 404
    bodies = [web.respond("odkazy.test", f"/katalog?strana={page}").body for page in range(1, LIST_PAGES + 1)]
    assert len(set(bodies)) == LIST_PAGES
    assert sum(map(len, bodies[:20])) > 512_000
    assert not any(b"<p" in body for body in bodies)
    assert web.respond("odkazy.test", f"/katalog?strana={LIST_PAGES + 1}").status == 404


@pytest.mark.slow
def test_moved_pages_lead_on_and_loops_do_not_and_the_mirror_serves_the_same_bytes(web):
    for path in web.paths("aptitude.cs.test")[:10]:
        assert web.respond("mirror.cs.test", path).body == web.respond("aptitude.cs.test", path).body != b""
    assert get(web, "http://stare.test/stare/ch01.html")[0] == "http://aptitude.cs.test/ch01.html"
    url, answer = get(web, "http://stare.test/retez/1")
    assert (url, answer.status) == ("http://stare.test/konec.html", 200)
    assert get(web, "http://stare.test/kruh/a", hops=20)[1].status == 302
    assert web.respond("stare.test", "/zmizelo/1.html").status == 404


@pytest.mark.parametrize(
    "behaviour",
    ["robots=what", "robots=delay:x", "robots=error:", "slow=-1", "slow=nan", "busy=a", "site=none", "unknown=1"],
)
def test_an_unknown_behaviour_names_its_host(own, behaviour):
    with pytest.raises(BadInput, match=r"gimp\.cs\.test"):
        own(behaviour)


@pytest.mark.slow
def test_missing_and_broken_files_are_one_sentence(own, tmp_path):
    with pytest.raises(BadInput, match=r"sites\.csv"):
        RecordedWeb(tmp_path)
    with pytest.raises(BadInput, match=r"127\.0\.0\.0/8"):
        own("", address="8.8.8.8")
    own("")
    (tmp_path / "pages.tar.zst").unlink()
    (tmp_path / "pages.tar.zst").write_bytes(b"not zstd")
    with pytest.raises(BadInput, match=r"pages\.tar\.zst"):
        RecordedWeb(tmp_path)
    (tmp_path / "sites.csv").write_text("host\nx\n")
    with pytest.raises(BadInput, match="columns"):
        RecordedWeb(tmp_path)


DATES = st.from_regex(r"/kalendar/\d+/\d+/\d+/?", fullmatch=True)


@pytest.mark.slow
@given(st.sampled_from([*SITES.values()]), st.one_of(st.text(), DATES))
def test_no_path_breaks_a_computed_site(site, path):
    assert site(path).status in (200, 301, 302, 404)
