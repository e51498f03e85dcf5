"""Sites that no archive can hold, computed from the path: a calendar without end, lists of links, and moved pages.

Each is a function path -> WebResponse; ``SITES`` names them for ``sites.csv``.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl

from webs.web import WebResponse, html, not_found, redirect

LIST_PAGES = 400
LINKS_A_LIST = 400
_FIRST_DAY = datetime.date(2026, 11, 21)
_STEPS_OF_DAYS = ((-1, "předchozí den"), (1, "další den"), (31, "za měsíc"))
_HOURS = "".join(
    f'<tr class="hodina"><th scope="row">{hour:02}:{minute:02}</th><td class="volno" data-stav="volno">volno</td>'
    f'<td><span class="kapacita">0/12</span></td></tr>\n'
    for hour in range(24)
    for minute in (0, 15, 30, 45)
)


def calendar(path: str) -> WebResponse:
    """A trap: each day links to the day before and after without end.  A page has 14 kB of table and one sentence."""
    if path == "/":
        return redirect(_day_path(_FIRST_DAY), status=302)
    try:
        today = datetime.date(*map(int, path.removeprefix("/kalendar/").strip("/").split("/")))
        others = [(today + datetime.timedelta(step), name) for step, name in _STEPS_OF_DAYS]
    except (ValueError, TypeError, OverflowError):
        return not_found()
    links = " ".join(f'<a href="{_day_path(date)}">{name}</a>' for date, name in others)
    return html(
        f'<!DOCTYPE html><html lang="cs"><head><title>Kalendář {today:%d. %m. %Y}</title></head><body>'
        f"<nav>{links}</nav><h1>{today:%d. %m. %Y}</h1><p>Na tento den zatím není v našem kalendáři nic zapsáno, "
        f"ale zítra tu už může být všechno jinak.</p><table>{_HOURS}</table><footer>{links}</footer></body></html>"
    )


def _day_path(date: datetime.date) -> str:
    return f"/kalendar/{date.year}/{date.month}/{date.day}/"


def link_lists(path: str) -> WebResponse:
    """A catalogue of LIST_PAGES pages of about 40 kB, with links and no text."""
    address, _, query = path.partition("?")
    number = dict(parse_qsl(query)).get("strana", "1")
    if address not in ("/", "/katalog") or not number.isdecimal() or not 0 < int(number) <= LIST_PAGES:
        return not_found()
    page = int(number)
    items = "\n".join(_item(page, position) for position in range(LINKS_A_LIST))
    pages = " ".join(
        f'<a href="/katalog?strana={other}">{other}</a>'
        for other in range(max(1, page - 5), min(LIST_PAGES, page + 10) + 1)
    )
    return html(
        f'<!DOCTYPE html><html lang="cs"><head><title>Katalog odkazů {page}</title></head>'
        f"<body><div>{pages}</div><ul>\n{items}\n</ul><div>{pages}</div></body></html>"
    )


def _item(page: int, position: int) -> str:
    number = page * LINKS_A_LIST + position
    target = f"/katalog?strana={(number * 7919) % LIST_PAGES + 1}"
    return f'<li class="polozka"><a class="odkaz" href="{target}">Firma č. {number}</a> <b>{number % 5}</b></li>'


_CHAIN = {"1": "/retez/2", "2": "/retez/3", "3": "/retez/4", "4": "/konec.html"}
_MOVED = ("index.html", "pr01.html", "ch01.html", "ch02.html", "ch03.html")


def moved(path: str) -> WebResponse:
    """Old addresses: pages that moved to another host, a chain of redirects, two loops, pages that are gone."""
    first, _, rest = path.strip("/").partition("/")
    if first == "stare" and rest in _MOVED:
        return redirect(f"http://aptitude.cs.test/{rest}")
    if first == "retez" and rest in _CHAIN:
        return redirect(_CHAIN[rest], status=302)
    return _MOVED_SITE.get(path) or not_found()


_LINKS = [f"/stare/{name}" for name in _MOVED]
_LINKS += ["/retez/1", "/kruh/a", "/kruh/sam", "/zmizelo/1.html", "/zmizelo/2.html"]
_MOVED_SITE: Mapping[str, WebResponse] = {
    "/": html(
        '<!DOCTYPE html><html lang="cs"><head><title>Staré adresy</title></head><body><h1>Staré adresy</h1><ul>'
        + "".join(f'<li><a href="{link}">{link}</a></li>' for link in _LINKS)
        + "</ul></body></html>"
    ),
    "/konec.html": html(
        '<!DOCTYPE html><html lang="cs"><head><title>Konec cesty</title></head><body><h1>Konec cesty</h1>'
        "<p>Tato stránka leží na konci řetězu přesměrování. Kdo došel až sem, ten dodržel pravidlo, že každé nové "
        "přesměrování je nová adresa, která čeká ve frontě jako všechny ostatní, a že se s ním neutratí více "
        "požadavků, než kolik jich server dovolí.</p></body></html>"
    ),
    "/kruh/a": redirect("/kruh/b", status=302),
    "/kruh/b": redirect("/kruh/a", status=302),
    "/kruh/sam": redirect("/kruh/sam"),
}

SITES: Mapping[str, Callable[[str], WebResponse]] = {"calendar": calendar, "lists": link_lists, "moved": moved}
