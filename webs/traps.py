"""A web of traps: hosts that give addresses without end, each in a way that occurs on the live web.

Host and path determine each answer.  A trap has at most ARTICLES pages of different text
(``mirror``: ten times as many; ``looping``: no limit), so further requests gain nothing.
"""

from __future__ import annotations

import datetime
import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from webs.prose import Prose
from webs.web import WebResponse, html, not_found

ARTICLES = 20
MIRRORS = 6
DOMAIN = "past.cz"
_TODAY = datetime.date(2026, 11, 21)
_DAYS = ("pondělí", "úterý", "středa", "čtvrtek", "pátek", "sobota", "neděle")
_MONTHS = (
    "ledna",
    "února",
    "března",
    "dubna",
    "května",
    "června",
    "července",
    "srpna",
    "září",
    "října",
    "listopadu",
    "prosince",
)
_FACETS = {"barva": 8, "velikost": 6, "cena": 10, "razeni": 4, "pohled": 3, "strana": 5}


class TrapWeb:
    """The traps by name.  A trap is the host ``<name>-past.cz``, or several whose names end in that."""

    def __init__(self, words: Sequence[tuple[str, int]], language: str = "cs", address: str = "127.82.0.1") -> None:
        """*words*: (word, count) of the *language* of all text."""
        self._prose = Prose(language, words, 7)
        self._address = address
        self.traps: Mapping[str, Callable[[str, str], WebResponse]] = {
            "calendar": self._calendar,
            "diary": self._diary,
            "growing": self._growing,
            "looping": self._looping,
            "session": partial(self._article, mark=";jsessionid={0}?PHPSESSID={0}"),
            "token": partial(self._article, mark="?tk={0}"),  # a session in a parameter with an unusual name
            "facets": self._facets,
            "tracking": partial(self._article, mark="?utm_source={0}&fbclid={0}&mc_eid={0}"),
            "soft404": self._soft_404,
            "wild": self._wild,
            "mirror": self._mirror,
        }

    def hosts(self) -> Mapping[str, str]:
        """The first host of each trap -> address; a trap may answer for further hosts."""
        return {self.host(name): self._address for name in self.traps}

    def globs(self) -> Mapping[str, str]:
        return {f"*{name}-{DOMAIN}": self._address for name in self.traps}

    def host(self, name: str) -> str:
        """The first host of the trap *name*."""
        return f"a.{name}-{DOMAIN}" if name == "wild" else f"{name}-{DOMAIN}"

    def name_of(self, host: str) -> str | None:
        """The trap to which *host* belongs, else None."""
        return next((name for name in self.traps if host.endswith(f"{name}-{DOMAIN}")), None)

    def respond(self, host: str, path: str) -> WebResponse:
        name = self.name_of(host)
        return not_found() if name is None or path == "/robots.txt" else self.traps[name](host, path)

    # -- what pages are made of

    def _page(self, seed: str, links: Sequence[str], title: str = "", size: int = 1500) -> WebResponse:
        """A page with *links* and about *size* bytes of text that *seed* determines; one word for 0."""
        items = "".join(f'<li><a href="{link}">odkaz</a></li>' for link in links)
        text = self._prose.text(random.Random(seed), size, 5) if size else "<p>Nic.</p>"
        return html(
            f'<!DOCTYPE html><html lang="cs"><head><title>{title}</title></head><body><h1>{title}</h1>'
            f"<ul>{items}</ul>{text}<footer>Všechna práva vyhrazena, pište nám, rádi odpovíme.</footer></body></html>"
        )

    def _article(self, host: str, path: str, mark: str = "") -> WebResponse:
        """One of ARTICLES pages, which link to all of them; each link ends in *mark* with a new number."""
        number = _number(path.rpartition("/")[2].partition(";")[0].partition("?")[0])
        if path != "/" and not 0 <= number < ARTICLES:
            return not_found()
        rng = random.Random(f"{host} {path}")
        links = [f"/clanek/{other}" + mark.format(f"{rng.getrandbits(96):024x}") for other in range(ARTICLES)]
        return self._page(f"{host} {number}", links)

    # -- the traps

    def _calendar(self, host: str, path: str) -> WebResponse:
        """Pages of days, weeks and months without text; the title names the day in words."""
        kind, _, rest = path.strip("/").partition("/")
        try:
            number = int(rest) if kind in ("tyden", "mesic") else 0
            if kind == "den":
                day = datetime.date(*map(int, rest.split("/")))
            else:
                day = _TODAY + datetime.timedelta(number * (7 if kind == "tyden" else 30))
        except (ValueError, TypeError, OverflowError):
            return not_found()
        steps = [day + datetime.timedelta(step) for step in (-31, -7, -1, 1, 7, 31)]
        links = [f"/den/{step.year}/{step.month}/{step.day}" for step in steps]
        near = [f"/tyden/{number + step}" for step in (-1, 1)] + [f"/mesic/{number + step}" for step in (-1, 1)]
        title = f"{_DAYS[day.weekday()]} {day.day}. {_MONTHS[day.month - 1]} {day.year}"
        return self._page("", [*links, *near], title, size=0)

    def _diary(self, host: str, path: str) -> WebResponse:
        """One long text for every number; only the number in it differs."""
        number = _number(path.strip("/")) if path != "/" else 0
        return self._page("diary", [f"/{number + step}" for step in (1, 2, 10)], f"Den č. {number}")

    def _growing(self, host: str, path: str) -> WebResponse:
        """The same page under every path, with links relative to it."""
        return self._page("growing", ["dal/", "vedle/", "jinam/"])

    def _looping(self, host: str, path: str) -> WebResponse:
        """A new text under every path, with a link that repeats a part of it."""
        return self._page(f"looping {path}", ["kniha/strana/"])

    def _facets(self, host: str, path: str) -> WebResponse:
        """Lists of goods, chosen and sorted by six parameters in any order, and a page for each of the goods."""
        if path.startswith("/zbozi/"):
            return self._article(host, path)
        rng = random.Random(path)
        chosen = dict(part.partition("=")[::2] for part in path.partition("?")[2].split("&") if part)
        links = []
        for name, values in _FACETS.items():
            more = list({**chosen, name: str(rng.randrange(values))}.items())
            rng.shuffle(more)
            links.append("/vyber?" + "&".join("=".join(pair) for pair in more))
        goods = [f"/zbozi/{rng.randrange(ARTICLES)}" for _ in range(5)]
        return self._page("", [*links, *goods], "Výběr", size=0)

    def _soft_404(self, host: str, path: str) -> WebResponse:
        """Every path has status 200 and says "not found", with links to further such paths."""
        rng = random.Random(path)
        words = [word.strip("?.,") for word in self._prose.sentences(rng, 1)[0].split()]
        links = [f"/{'-'.join(pair)}" for pair in itertools.pairwise(words)]
        return self._page("gone", links, f"Stránka {path} nebyla nalezena")

    def _wild(self, host: str, path: str) -> WebResponse:
        """Every host name resolves and shows the same page, with links to ten other names."""
        rng = random.Random(host)
        names = [f"{rng.getrandbits(24):06x}" for _ in range(10)]
        return self._page("wild", [f"http://{name}.wild-{DOMAIN}/" for name in names], host)

    def _mirror(self, host: str, path: str) -> WebResponse:
        """A site of 10 * ARTICLES pages under MIRRORS names."""
        number = _number(path.rpartition("/")[2]) if path != "/" else 0
        if not 0 <= number < 10 * ARTICLES:
            return not_found()
        others = [f"http://zrcadlo{other}-mirror-{DOMAIN}/" for other in range(MIRRORS)]
        near = [f"/strana/{(number * 2 + step) % (10 * ARTICLES)}" for step in range(1, 6)]
        return self._page(f"mirror {number}", [*near, *(others if path == "/" else ())])


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else -1
