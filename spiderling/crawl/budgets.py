"""When is a crawl's budget spent?  Words, documents, pages, bytes, time, and what the last bytes gave."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options

_STEPS = 20
"""A window of the marginal yield moves on in so many steps."""
_LIMITS = {
    "words": "max_words",
    "documents": "max_documents",
    "pages": "max_pages",
    "downloaded_bytes": "max_downloaded_bytes",
    "time_s": "max_time_s",
}
"""A total of the ledger -> the option that bounds it."""


class Spent(NamedTuple):
    """Which budget is spent."""

    reason: str
    """The finish reason."""
    message: str


class Budgets:
    """The budgets of one crawl over all its sessions; ``marks`` must survive a restart."""

    def __init__(self, options: Options, marks: Iterable[tuple[int, int]] = ()) -> None:
        self._options = options
        self.marks: deque[tuple[int, int]] = deque((int(down), int(kept)) for down, kept in marks)
        """(bytes downloaded, bytes kept) at each step within the window, oldest first."""

    def spent(self, totals: Mapping[str, int]) -> Spent | None:
        """The first budget that *totals*, those of the ledger, have reached; None if the crawl may go on."""
        for total, option in _LIMITS.items():
            limit = getattr(self._options, option)
            if 0 < limit <= totals.get(total, 0):
                name = option.removeprefix("max_").removesuffix("_s").removesuffix("_bytes")
                message = f"{PREFIX}{option.upper()}={limit:g} is reached; a larger one lets the crawl go on"
                return Spent(f"budget-{name}", message)
        return self._marginal(totals)

    def _marginal(self, totals: Mapping[str, int]) -> Spent | None:
        window, down, kept = (
            self._options.marginal_bytes,
            totals.get("downloaded_bytes", 0),
            totals.get("kept_bytes", 0),
        )
        if not window:
            return None
        if not self.marks or down - self.marks[-1][0] >= window / _STEPS:
            self.marks.append((down, kept))
        while len(self.marks) > 1 and down - self.marks[1][0] >= window:
            self.marks.popleft()
        first_down, first_kept = self.marks[0]
        if down - first_down < window or (kept - first_kept) / (down - first_down) >= self._options.marginal_yield:
            return None
        rate = (kept - first_kept) / (down - first_down)
        message = (
            f"the last {(down - first_down) / 1e6:,.1f} MB gave {rate:.4f} of their bytes, less than "
            f"{PREFIX}MARGINAL_YIELD={self._options.marginal_yield:g}; a smaller one, or a larger "
            f"{PREFIX}MARGINAL_BYTES, lets the crawl go on"
        )
        return Spent("marginal-yield", message)
