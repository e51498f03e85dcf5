"""Decides when a crawl's budget is spent: words, documents, pages, bytes, time, or the yield of the last bytes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.frontier.url_states import spent_of

MARGINAL_YIELD = 0.001  # bytes kept / downloaded of the window below which the crawl ends; chosen: a fifth of f, normal
_STEPS = 20  # steps in which the window of the marginal yield moves on; chosen
_LIMITS = {
    "words": ("max_words", "budget-words"),
    "documents": ("max_documents", "budget-documents"),
    "pages": ("max_pages", "budget-pages"),
    "downloaded_bytes": ("max_downloaded_bytes", "budget-downloaded"),
    "time_s": ("max_time_s", "budget-time"),
}
"""A total of the ledger -> the option that bounds it, and the finish reason when it is reached."""

_A_PAGE_GIVES = {"words": 500, "documents": 1, "pages": 1, "downloaded_bytes": 50_000}
"""What a page is taken to give of each total before any was judged.  Chosen, rather much."""
_PRIOR_PAGES = 10  # judged pages that this estimate counts for, beside those that there are; chosen


class Spent(NamedTuple):
    """Which budget is spent."""

    reason: str  # the finish reason
    message: str


class Budgets:
    """The budgets of one crawl, whose totals count from its first start; ``marks`` must survive a restart."""

    def __init__(self, options: Options, marks: Iterable[tuple[int, int]] = ()) -> None:
        self._options = options
        self.marks = tuple((int(down), int(kept)) for down, kept in marks)
        """(bytes downloaded, bytes kept) at each step within the window, oldest first."""
        self.set_control_limits(None, None)

    def set_control_limits(self, pages: float | None, downloaded_mb: float | None) -> None:
        """Take the limits that control.yaml sets beside the options; None or 0 is no limit."""
        given = {"pages": pages or 0, "downloaded_bytes": (downloaded_mb or 0) * 1e6}
        self._control = {total: limit for total, limit in given.items() if limit}
        own = {total: getattr(self._options, option) for total, (option, _) in _LIMITS.items()}
        self.limits: dict[str, float] = {
            total: min(own[total] or math.inf, self._control.get(total, math.inf))
            for total in _LIMITS
            if own[total] or total in self._control
        }
        """Total -> its limit, by the options or control.yaml, for those that have one."""

    def has_room(self, totals: Mapping[str, int], in_work: int) -> bool:
        """Whether another page may be begun while *in_work* are, if each of those gives as much as pages do here.

        *totals* are those of the ledger.
        """
        pages = totals.get("pages", 0) + _PRIOR_PAGES
        for total, limit in self.limits.items():
            if total in _A_PAGE_GIVES:
                given = totals.get(total, 0) + _A_PAGE_GIVES[total] * _PRIOR_PAGES
                if spent_of(total, totals) + in_work * given / pages >= limit:
                    return False
        return True

    def takes_documents(self, totals: Mapping[str, int], on_their_way: Collection[int]) -> bool:
        """Whether another document may be kept: the budgets of words and documents are kept to the document.

        *on_their_way*: the words of each document that was made, but is not counted in *totals* yet.
        """
        words, documents = self._options.max_words, self._options.max_documents
        has_words = not words or totals.get("words", 0) + sum(on_their_way) < words
        return has_words and (not documents or totals.get("documents", 0) + len(on_their_way) < documents)

    def find_spent(self, totals: Mapping[str, int]) -> Spent | None:
        """The first budget that *totals*, those of the ledger, have reached; None if the crawl may go on."""
        for total, (option, reason) in _LIMITS.items():
            limit = getattr(self._options, option)
            if 0 < limit <= spent_of(total, totals):
                said = f"{PREFIX}{option.upper()}={limit}{' (-a words)' if total == 'words' else ''}"
                return Spent(reason, f"{said} is reached; a larger one lets the crawl go on")
        for total, bound in self._control.items():
            if spent_of(total, totals) >= bound:
                said = "the budget in control.yaml is spent; raise max_pages or max_downloaded_mb there to go on"
                return Spent("budget", said)
        return self._marginal(totals) if self._options.marginal_bytes else None

    def _marginal(self, totals: Mapping[str, int]) -> Spent | None:
        """Whether the bytes of the window, downloaded last, gave less than the marginal yield."""
        window = self._options.marginal_bytes
        down = totals.get("downloaded_bytes", 0)
        kept = totals.get("kept_bytes", 0)
        if not self.marks or down - self.marks[-1][0] >= window / _STEPS:
            self.marks = (*self.marks, (down, kept))
        while len(self.marks) > 1 and down - self.marks[1][0] >= window:
            self.marks = self.marks[1:]
        downloaded = down - self.marks[0][0]
        if downloaded < window:
            return None
        rate = (kept - self.marks[0][1]) / downloaded
        if rate >= MARGINAL_YIELD:
            return None
        return Spent(
            "marginal-yield",
            f"the last {downloaded / 1e6:,.1f} MB gave {rate:.4f} of their bytes, less than "
            f"{MARGINAL_YIELD:g}; a larger {PREFIX}MARGINAL_BYTES lets the crawl go on",
        )
