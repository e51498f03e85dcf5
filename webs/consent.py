"""A web of 49 sites whose owners say yes and no in every way, and what a crawl for each purpose may do with each page.

What may be done is written down by hand here, from docs/opt-outs.md, and not by the code that judges.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from webs.challenges import CHALLENGES
from webs.web import FixedWeb, WebResponse, plain

PURPOSES = {"T": "ai-train", "S": "search", "R": "research"}
"""Letters by which purposes are named below."""
KEPT = "kept"
FILE, PAGE, INDEX, ROBOTS, HOST = "site-opted-out", "opted-out", "noindex", "robots-forbidden", "host-refused"
NOT_FETCHED = frozenset({FILE, ROBOTS, HOST})
"""Ends of pages that may not be asked for."""
RSL = '<rsl xmlns="https://rslstandard.org/rsl">{}</rsl>'
_TYPE = "application/rsl+xml"
_TAG = "X-Robots-Tag"


@dataclass(frozen=True, slots=True)
class Case:
    """One page: how it ends for the purposes whose letters are in *refuses*; for the others it is kept."""

    url: str
    refuses: str
    end: str

    def end_for(self, letter: str) -> str:
        return self.end if letter in self.refuses else KEPT


@dataclass(slots=True)
class _Web:
    """Sites under construction."""

    text: Callable[[str], str]
    sites: dict[str, dict[str, WebResponse]] = field(default_factory=dict)
    cases: list[Case] = field(default_factory=list)

    def file(self, host: str, path: str, answer: WebResponse | str) -> None:
        self.sites.setdefault(host, {})[path] = plain(answer) if isinstance(answer, str) else answer

    def page(
        self, host: str, path: str, refuses: str = "", end: str = FILE, head: str = "", headers: Mapping[str, str] = {}
    ) -> None:
        url = f"http://{host}{path}"
        body = self.text(url).replace("<head>", f"<head>{head}").encode()
        self.sites.setdefault(host, {})[path] = WebResponse(200, {"Content-Type": "text/html", **headers}, body)
        self.cases.append(Case(url, refuses, end))


def seeds_of(cases: list[Case]) -> str:
    return "\n".join(case.url for case in cases)


def consent_web(text: Callable[[str], str]) -> tuple[FixedWeb, list[Case]]:
    """The web and its pages; *text* makes a page with a <head> and running text from a seed."""
    web = _Web(text)
    for build in (
        _robots,
        _usage_lines,
        _headers,
        _metas,
        _site_files,
        _licences,
        _page_licences,
        _refusing,
        _precedence,
    ):
        build(web)
    return FixedWeb(web.sites), web.cases


# -- one signal at a time

_USES = {"ai-train=no": "T", "search=no": "S", "ai-train=no, search=no": "TS", "ai-input=no": "",
         "ai-train=yes, search=yes": "", "search=yes, ai-train=no": "T", "AI-Train = No": "T"}  # fmt: skip
_PREFERENCES = {"train-ai=n": "T", "search=n": "S", "train-ai=n, search=n": "TS", "ai-use=n": "", "train-ai=y": "",
                "train-ai=y, search=n": "S", "train-ai=y, train-ai=n": "T", "train-ai=n, train-ai=y": "",
                "train-ai;a=b=n, train-ai=n": "T", "train-ai=n;why=x": "T",
                # labels of earlier drafts
                "ai=n": "T", "genai=n": "T", "train-genai=n": "T", "tdm=n": "TS", "bots=n": "TSR"}  # fmt: skip
_ODD = ("", "train-ai", "ai-train", "train-ai=maybe", "=n", "n", ",,,", "train-ai=\"n\"", "x" * 5000, "train ai=n",
        "é=n", "search", "all=n")  # fmt: skip
"""Preferences that say nothing."""


def _robots(web: _Web) -> None:
    rules = "User-agent: *\nDisallow: /no/\nAllow: /no/but/\nDisallow: /*.print$\nDisallow: /enc%6Fded/"
    web.file("robots.test", "/robots.txt", rules)
    for path in ("/no/a", "/x.print", "/encoded/a"):
        web.page("robots.test", path, "TSR", ROBOTS)
    for path in ("/no/but/a", "/x.print/a", "/a"):
        web.page("robots.test", path)
    for number, body in enumerate((b"\xff\x00 rubbish", b"<html>404</html>", b"Disallow: /\n")):
        web.file(f"odd-robots-{number}.test", "/robots.txt", WebResponse(200, {}, body))
        web.page(f"odd-robots-{number}.test", "/a")
    groups = "User-agent: *\nContent-Usage: train-ai=n\nContent-Signal: search=no\n\nUser-agent: spiderling\nAllow: /"
    web.file("our-group.test", "/robots.txt", groups)
    web.page("our-group.test", "/a")


def _usage_lines(web: _Web) -> None:
    for host, field_name, said in (
        ("signal.test", "Content-Signal", _USES),
        ("usage.test", "Content-Usage", _PREFERENCES),
    ):
        lines = [f"{field_name}: /{number}/ {value}" for number, value in enumerate(said)]
        lines += [f"{field_name}: /odd{number}/ {value}" for number, value in enumerate(_ODD)]
        lines += [f"{field_name}: /twice/ {value}" for value in list(said)[:3]]
        lines += [f"{field_name}: /long/ {next(iter(said))}", f"{field_name}: /long/er/ search=y"]
        web.file(host, "/robots.txt", "User-agent: *\n" + "\n".join(lines))
        for number, refuses in enumerate(said.values()):
            web.page(host, f"/{number}/", refuses)
        for number in range(len(_ODD)):
            web.page(host, f"/odd{number}/")
        web.page(host, "/twice/", "TS")
        web.page(host, "/long/", "T")
        web.page(host, "/long/er/")


def _headers(web: _Web) -> None:
    said = [("Content-Signal", value, refuses, PAGE) for value, refuses in _USES.items()]
    said += [("Content-Usage", value, refuses, PAGE) for value, refuses in _PREFERENCES.items()]
    said += [("Content-Usage", value, "", PAGE) for value in _ODD if value.isascii()]
    said += [
        ("tdm-reservation", value, "TS" if value.strip() == "1" else "", PAGE)
        for value in ("1", "0", "2", " 1 ", "yes")
    ]
    said += [
        (_TAG, "noindex", "TSR", INDEX), (_TAG, "none", "TSR", INDEX),
        (_TAG, "spiderling: noindex", "TSR", INDEX), (_TAG, "otherbot: noindex", "", INDEX),
        (_TAG, "noai", "T", PAGE), (_TAG, "noimageai", "", PAGE), (_TAG, "noarchive", "", PAGE),
        (_TAG, "unavailable_after: 2001-01-01", "TSR", INDEX), (_TAG, "unavailable_after: ever", "", INDEX),
        (_TAG, "unavailable_after: 2999-01-01", "", INDEX), (_TAG, "max-snippet: 1, NoAI", "T", PAGE),
        (_TAG, "GPTBot: noindex", "", PAGE), (_TAG, ",:,", "", PAGE),
    ]  # fmt: skip
    for number, (name, value, refuses, end) in enumerate(said):
        web.page("header.test", f"/{number}", refuses, end, headers={name: value})


def _metas(web: _Web) -> None:
    said = [
        ("robots", "noindex", "TSR", INDEX), ("robots", "none", "TSR", INDEX), ("robots", "noai", "T", PAGE),
        ("robots", "noimageai", "", PAGE), ("robots", "noarchive", "", PAGE), ("robots", "nofollow", "", PAGE),
        ("robots", "index, NOAI", "T", PAGE), ("spiderling", "noindex", "TSR", INDEX),
        ("otherbot", "noindex", "", INDEX),
        ("GPTBot", "noai", "", PAGE), ("robots", "unavailable_after: 2001-01-01", "TSR", INDEX),
        ("tdm-reservation", "1", "TS", PAGE), ("tdm-reservation", "0", "", PAGE),
        ("tdm-reservation", "maybe", "", PAGE),
        ("TDM-Reservation", " 1 ", "TS", PAGE), ("robots", "&quot;&gt;", "", PAGE),
    ]  # fmt: skip
    for number, (name, value, refuses, end) in enumerate(said):
        web.page("meta.test", f"/{number}", refuses, end, f'<meta name="{name}" content="{value}">')


_WITH_FILES = ("tdm.test", "ai.test", "ai-text.test")
"""Hosts whose tdmrep.json or ai.txt refuse pages, beside the one of `_precedence`."""


def _site_files(web: _Web) -> None:
    rules = [("/yes/", 0), ("/*.html$", 1), ("/text/", True), ("/string/", "1"), ("/odd/", 7), ("/null/", None)]
    tdmrep = json.dumps([{"location": location, "tdm-reservation": value} for location, value in rules])
    web.file("tdm.test", "/.well-known/tdmrep.json", tdmrep)
    for path, refuses in (("/yes/a.html", ""), ("/a.html", "TS"), ("/text/a", "TS"), ("/string/a", "TS"),
                          ("/odd/a", ""), ("/null/a", ""), ("/other", "")):  # fmt: skip
        web.page("tdm.test", path, refuses)
    for number, body in enumerate((b"", b"{", b"<html>", b"\xff\xfe", b"7", b'[{"location": 3}]', b"[" * 9000)):
        web.file(f"odd-tdm-{number}.test", "/.well-known/tdmrep.json", WebResponse(200, {}, body))
        web.page(f"odd-tdm-{number}.test", "/a")
    web.file("ai.test", "/ai.txt", "User-Agent: *\nDisallow: *.jpg\nDisallow: /no/\nAllow: /no/yes/")
    for path, refuses in (("/a", ""), ("/no/a", "T"), ("/no/yes/a", "")):
        web.page("ai.test", path, refuses)
    web.file("ai-text.test", "/ai.txt", "User-Agent: *\nDisallow: *.txt")
    web.page("ai-text.test", "/a", "T")
    for number, body in enumerate((b"", b"<html>Disallow: /", b"\x00" * 99)):
        web.file(f"odd-ai-{number}.test", "/ai.txt", WebResponse(200, {}, body))
        web.page(f"odd-ai-{number}.test", "/a")


TERMS = {
    '<prohibits type="usage">all</prohibits>': "TSR",
    '<prohibits type="usage">ai-all</prohibits>': "T",
    '<prohibits type="usage">ai-train</prohibits>': "T",
    '<prohibits type="usage">search</prohibits>': "S",
    '<prohibits type="usage">ai-input ai-index</prohibits>': "",
    '<prohibits type="usage">ai-train search</prohibits>': "TS",
    '<permits type="usage">ai-all</permits>': "S",
    '<permits type="usage"></permits>': "TS",
    '<permits type="usage">search, ai-train</permits>': "",
    # both: not licensed (3.1.1), as theguardian.com has it
    '<permits type="usage">ai-train ai-input</permits><prohibits type="usage">all</prohibits>': "TSR",
    '<permits type="usage">all</permits>': "",
    '<permits type="usage">search</permits>': "T",
    '<permits type="usage">ai-train</permits>': "S",
    '<permits type="usage">ai-input</permits>': "TS",
    '<permits type="usage">all</permits><prohibits type="usage">ai-train</prohibits>': "T",
    '<payment type="free"/>': "",
    '<payment type="attribution"/>': "",
    "<payment/>": "",
    "<payment><standard>https://creativecommons.org/licenses/by/4.0/</standard></payment>": "",
    **{
        f'<payment type="{kind}"/>': "TSR" for kind in ("purchase", "subscription", "training", "crawl", "use", "other")
    },
    **dict.fromkeys((f'<payment type="{kind}"/>' for kind in ("contribution", "inference")), "TSR"),
    "<payment><custom>https://a.test/</custom></payment>": "TSR",
    '<permits type="usage">ai-all</permits><payment type="crawl"/>': "TS",
    '<permits type="usage">search</permits><payment type="crawl"><amount currency="USD">0.01</amount></payment>': "TS",
    '<permits type="usage">ai-all</permits><payment><custom>https://a.test/</custom></payment>': "TS",
    '<permits type="user">education</permits>': "TSR",
    '<prohibits type="user">commercial</prohibits>': "TSR",
    '<permits type="geo">US</permits>': "TSR",
    '<prohibits type="geo">US</prohibits>': "TSR",
    '<reporting type="audit" profile="https://a.test/"/>': "TSR",
    "": "",
}
"""Terms of RSL 1.0 (3.4, 3.7) -> the purposes that they refuse to a crawl that says neither what nor where it is."""
_BROKEN = (None, b"", b"<html>Not found</html>", b"<rsl>", RSL.format("").encode(), RSL.format("<x/>").encode(),
           RSL.format('<content url="/"/>').encode(),
           RSL.format('<content url="/"><license><deny/></license></content>').encode(), b"\xff" * 100)  # fmt: skip
"""Licence files that cannot be had or understood."""


def _content(terms: str, url: str = "/", more: str = "") -> str:
    return f'<content url="{url}" {more}><license>{terms}</license></content>'


def _licence(*contents: str) -> WebResponse:
    return WebResponse(200, {"Content-Type": _TYPE}, RSL.format("".join(contents)).encode())


def _licences(web: _Web) -> None:
    contents = [_content(terms, f"/{number}/") for number, terms in enumerate(TERMS)]
    contents += [_content("", "/server/", 'server="https://a.test/"'), _content("", "/encrypted/", 'encrypted="true"')]
    contents += [_content('<prohibits type="usage">search</prohibits>', "/0/exact$")]
    web.file("rsl.test", "/robots.txt", "License: http://royal.test/l.xml")
    web.file("royal.test", "/l.xml", _licence(*contents))
    for number, refuses in enumerate(TERMS.values()):
        web.page("rsl.test", f"/{number}/", refuses)
    for path, refuses in (("/server/", "TSR"), ("/encrypted/", "TSR"), ("/0/exact", "S"), ("/unsaid", "")):
        web.page("rsl.test", path, refuses)
    for number, body in enumerate(_BROKEN):
        web.file(f"odd-rsl-{number}.test", "/robots.txt", "User-agent: *\nLicense: /l.xml")
        if body is not None:
            web.file(f"odd-rsl-{number}.test", "/l.xml", WebResponse(200, {}, body))
        web.page(f"odd-rsl-{number}.test", "/a", "T")


def _page_licences(web: _Web) -> None:
    for number, (terms, refuses) in enumerate(TERMS.items()):
        web.file("royal.test", f"/{number}.xml", _licence(_content(terms)))
        address = f"http://royal.test/{number}.xml"
        link = {"Link": f'<{address}>; rel="license"; type="{_TYPE}"'}
        web.page("rsl-link.test", f"/{number}", refuses, PAGE, headers=link)
        web.page("rsl-head.test", f"/{number}", refuses, PAGE, f'<link rel="license" type="{_TYPE}" href="{address}">')
        inline = f'<script type="{_TYPE}">{RSL.format(_content(terms, ""))}</script>'
        web.page("rsl-inline.test", f"/{number}", refuses, PAGE, inline)
    for number, link_value in enumerate(
        ("<http://royal.test/0.xml>; rel=preload", "<http://royal.test/0.xml>; rel=license", "<>", "<")
    ):
        web.page("rsl-link.test", f"/odd{number}", headers={"Link": link_value})
    web.page(
        "rsl-link.test",
        "/lost",
        "T",
        PAGE,
        headers={"Link": f'<http://royal.test/lost.xml>; rel=license; type="{_TYPE}"'},
    )
    web.page("rsl-inline.test", "/odd", "T", PAGE, f'<script type="{_TYPE}"><rsl></script>')


def _refusing(web: _Web) -> None:
    for status in (401, 402, 403, 451):
        web.file(f"closed-{status}.test", "/robots.txt", WebResponse(status))
        web.page(f"closed-{status}.test", "/a", "TSR", HOST)
    for name in ("anubis", "imperva", "cloudflare"):
        web.file(f"wall-{name}.test", "/robots.txt", CHALLENGES[name])
        web.page(f"wall-{name}.test", "/a", "TSR", HOST)
    for number, (answer, end) in enumerate((
        (WebResponse(402), "payment-required"), (WebResponse(451), "unavailable-for-legal-reasons"),
        (WebResponse(403), "http-error"), (CHALLENGES["f5"], "challenged"), (CHALLENGES["datadome"], "challenged"),
    )):  # fmt: skip
        web.page(f"pages-{number}.test", "/b")
        web.file(f"pages-{number}.test", "/a", answer)
        web.cases.append(Case(f"http://pages-{number}.test/a", "TSR", end))


# -- who says no, and who says yes of the same page

SPEAKERS = {
    "robots": ("TSR", ROBOTS), "tdm-file": ("TS", FILE), "tdm-header": ("TS", PAGE), "tdm-meta": ("TS", PAGE),
    "ai-txt": ("T", FILE), "signal-robots": ("T", FILE), "signal-header": ("T", PAGE), "usage-robots": ("T", FILE),
    "usage-header": ("T", PAGE), "rsl-robots": ("T", FILE), "rsl-link": ("T", PAGE), "rsl-page": ("T", PAGE),
}  # fmt: skip
"""Whoever can say no -> the purposes that he refuses here, and how the page ends then."""
PRECEDENCE_HOST = "precedence.test"
_LINK = {"Link": f'<http://{PRECEDENCE_HOST}/{{}}.xml>; rel="license"; type="{_TYPE}"'}
_TRAINING = {False: '<permits type="usage">all</permits>', True: '<prohibits type="usage">ai-train</prohibits>'}


def _said(speaker: str, is_no: bool) -> tuple[str, dict[str, str]]:
    """(head, headers) by which a page says it."""
    if speaker == "tdm-meta":
        return f'<meta name="tdm-reservation" content="{int(is_no)}">', {}
    if speaker == "rsl-page":
        return f'<script type="{_TYPE}">{RSL.format(_content(_TRAINING[is_no], ""))}</script>', {}
    headers = {
        "tdm-header": {"tdm-reservation": str(int(is_no))},
        "signal-header": {"Content-Signal": f"ai-train={'no' if is_no else 'yes'}"},
        "usage-header": {"Content-Usage": f"train-ai={'n' if is_no else 'y'}"},
        "rsl-link": {"Link": _LINK["Link"].format("no" if is_no else "yes")},
    }
    return "", headers.get(speaker, {})


def overruled(no: str, yes: str) -> bool:
    """Whether *yes* overrules *no*: only a page's own tdm-reservation does, that of its header (TDMRep, section 5)."""
    return (no, yes) == ("tdm-header", "tdm-meta")


def pairs() -> Iterator[tuple[str, str]]:
    return ((no, yes) for no in SPEAKERS for yes in SPEAKERS if no != yes)


def violations(cases: list[Case], letter: str, ends: Mapping[str, str], fetched: set[str]) -> list[str]:
    """Where a crawl for the purpose *letter* did not do what *cases* say: by the ends of URLs, and by what it asked."""
    found = []
    for case in cases:
        expected, got = case.end_for(letter), ends.get(case.url, "nothing")
        if got != expected:
            found.append(f"{case.url} for {PURPOSES[letter]}: {got}, expected {expected}")
        if case.url in fetched and expected in NOT_FETCHED:
            found.append(f"{case.url} for {PURPOSES[letter]}: it was fetched")
    return found


def _precedence(web: _Web) -> None:
    host = PRECEDENCE_HOST
    web.file(
        host,
        "/robots.txt",
        f"""License: http://{host}/site.xml
User-agent: *
Disallow: /robots/
Allow: /*/robots
Content-Signal: /signal-robots/ ai-train=no
Content-Signal: /*/signal-robots ai-train=yes
Content-Usage: /usage-robots/ train-ai=n
Content-Usage: /*/usage-robots train-ai=y
""",
    )
    rules = [{"location": "/tdm-file/", "tdm-reservation": 1}, {"location": "/*/tdm-file", "tdm-reservation": 0}]
    web.file(host, "/.well-known/tdmrep.json", json.dumps(rules))
    web.file(host, "/ai.txt", "User-Agent: *\nDisallow: /ai-txt/\nAllow: /*/ai-txt")
    web.file(
        host,
        "/site.xml",
        _licence(_content(_TRAINING[True], "/rsl-robots/"), _content(_TRAINING[False], "/*/rsl-robots")),
    )
    web.file(host, "/no.xml", _licence(_content(_TRAINING[True])))
    web.file(host, "/yes.xml", _licence(_content(_TRAINING[False])))
    for no, yes in pairs():
        refuses, end = SPEAKERS[no]
        (head, headers), (more, others) = _said(no, True), _said(yes, False)
        web.page(host, f"/{no}/{yes}", "" if overruled(no, yes) else refuses, end, head + more, {**headers, **others})
