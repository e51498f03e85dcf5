"""A generated web and beside it a link farm: endless prose under thousands of names, known by a few good pages."""

from __future__ import annotations

import random
from dataclasses import replace

from simulator.pages import PageWeb
from spiderling.base.link_batch import TEXT_BLOCK, Link, gathered
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason

FARM = "farm.cz"
_DOORS = 50
"""One of this many pages of the good web leads to the farm."""
_BODY_BYTES, _KEPT_BYTES, _WORDS = 30_000, 9_000, 1_285


class FarmWeb:
    """Each host of the farm has pages of text that nobody else has, which lead to others of the farm."""

    def __init__(
        self, web: PageWeb, hosts: int = 20_000, pages: int = 20, addresses: int = 1, domains: int = 1
    ) -> None:
        """*pages*: of a host; *addresses* and *domains*: over how many the hosts are spread."""
        self._web, self._hosts, self._pages = web, hosts, pages
        self._addresses, self._domains = addresses, domains
        self.good_words = self.good_pages = self.farm_pages = 0

    def address(self, name: str) -> str:
        if not name.endswith(FARM):
            return self._web.address(name)
        number = int(name[1:].partition(".")[0]) % self._addresses
        return f"172.16.{number >> 8}.{number & 255}"

    def latency_s(self, url: str) -> float:
        return 0.3 if FARM in url else self._web.latency_s(url)

    def site_file(self, url: str) -> tuple[int, bytes, str | None]:
        return (404, b"", None) if FARM in url else self._web.site_file(url)

    def outcome(self, url_id: int, url: str) -> Outcome:
        if FARM in url:
            self.farm_pages += 1
            return self._of_farm(url_id, url)
        self.good_pages += 1
        outcome = self._web.outcome(url_id, url)
        self.good_words += outcome.words
        if not url_id % _DOORS:
            doors = tuple((f"http://{name}/", name, TEXT_BLOCK, 230, 60) for name in self._names(url, 3))
            outcome = replace(outcome, links=outcome.links._replace(others=doors))
        return outcome

    def _names(self, url: str, number: int) -> list[str]:
        """Some hosts of the farm, chosen by *url*."""
        rng = random.Random(url)
        numbers = [rng.randrange(self._hosts) for _ in range(number)]
        return [f"s{number}.{number % self._domains}{FARM}" for number in numbers]

    def _of_farm(self, url_id: int, url: str) -> Outcome:
        rng = random.Random(url)
        name = url.split("/")[2]
        links = [Link(f"http://{name}/{rng.randrange(self._pages)}", True, 0.9, 60) for _ in range(5)]
        links += [Link(f"http://{other}/", True, 0.9, 60) for other in self._names(url, 20)]
        language = self._web.languages[0]
        return Outcome(
            url_id, url, Reason.KEPT, 200, body_bytes=_BODY_BYTES, kept_bytes=_KEPT_BYTES, words=_WORDS,
            language=language, page_language=language, relevant=True, badness=5.0,
            sketch=rng.getrandbits(63), text_key=rng.getrandbits(63), links=gathered(links),
        )  # fmt: skip
