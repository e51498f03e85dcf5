"""Whether the dates in a host's sitemaps are true, and what they are worth for its pages.

Some sitemaps say when the text of a page changed, others when the file was made (18 % in Canel 2023, *The Importance
of Setting the "lastmod" Tag*, Bing Webmaster Blog).  A date is put to the test when the page is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

BELIEVED = 0.5
"""Trust above which dates count (chosen: more often right than wrong)."""
SURPRISE_EVENTS = 0.2
"""Expected events below which a page tells truth from luck: one that changes daily is announced rightly by any date."""


@dataclass(slots=True)
class Announcements:
    """What became of a host's announcements; chosen to begin with: two of three are right, half are foretold."""

    right: float = 2.0
    wrong: float = 1.0
    foretold: float = 1.0
    missed: float = 1.0
    made: float = float("-inf")
    """The newest date that a sitemap gave to a page."""

    @property
    def trust(self) -> float:
        """Share of the announced pages that have something new."""
        return self.right / (self.right + self.wrong)

    @property
    def recall(self) -> float:
        """Share of the pages with something new that are announced."""
        return self.foretold / (self.foretold + self.missed)

    @property
    def is_believed(self) -> bool:
        return self.trust > BELIEVED

    def learn(self, was_announced: bool, has_new_text: bool, expected_events: float, last: float) -> None:
        """A page was looked at, before that at *last*, of which *expected_events* were expected without dates."""
        if was_announced and expected_events < SURPRISE_EVENTS:
            self.right += has_new_text
            self.wrong += not has_new_text
        if has_new_text and self.made > last:
            self.foretold += was_announced
            self.missed += not was_announced
