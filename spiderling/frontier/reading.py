"""Parses the files of sites once: an answer when it comes, perhaps ahead in a thread, and a record when it is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spiderling.base.options import Options
from spiderling.frontier.site_files import MAX_FILE_BYTES, RobotsTxt, Rules, SiteFile, parsed


class Reading(NamedTuple):
    """An answer as parsed; ``rules`` is None if the parser failed."""

    origin: str
    file: SiteFile
    body: bytes
    rules: Rules | None
    says: str = ""
    """The opt-outs that the file has for the front page."""


class Reader:
    """Keeps the last answer, and rules that were parsed ahead."""

    def __init__(self, options: Options, failed_on: Callable[[Exception, str], None]) -> None:
        self._options = options
        self._failed_on = failed_on
        self._ahead: tuple[SiteFile, bytes, Rules] | None = None
        self._last: Reading | None = None

    def parsed_ahead(self, file: SiteFile, body: bytes, rules: Rules) -> None:
        """Take *rules*, parsed in a thread from *body*, the next answer."""
        self._ahead = file, body, rules

    def read(self, origin: str, file: SiteFile, body: bytes) -> Reading:
        """Parse *body*, an answer; a second call for it need not parse it again.

        It calls all that is called for a new file, so that a parser of ours fails here if at all.
        """
        body = body[:MAX_FILE_BYTES]
        if self._last is not None and self._last[:3] == (origin, file, body):
            return self._last
        try:
            rules = self.parse(file, body)
            says = [str(said) for said in rules.statements(origin + "/", "/")]
            if isinstance(rules, RobotsTxt):
                if not rules.allows(origin + "/"):
                    says.insert(0, "disallow")
                says += [f"license:{address[:300]}" for address in rules.licences]
                rules.crawl_delay_s()
                rules.sitemaps()
            self._last = Reading(origin, file, body, rules, " ".join(says))
        except Exception as error:
            self._failed_on(error, origin + file.value)
            self._last = Reading(origin, file, body, None)
        return self._last

    def parse(self, file: SiteFile, body: bytes) -> Rules:
        """The rules in *body*."""
        ahead = self._ahead
        self._ahead = None
        return ahead[2] if ahead is not None and ahead[:2] == (file, body) else parsed(file, body, self._options)

    def forget_last(self) -> None:
        """The last answer is noted."""
        self._last = None
