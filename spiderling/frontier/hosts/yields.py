"""Yield rate of a host and the threshold below which it is retired.

Suchomel & Pomikálek 2012, section 2 and Table 2: ``t(n) = 0.01 * (log10(n) - 1)``, n
documents downloaded; never before 8 documents and 512 kB, both reached.  We differ
in the bytes: both sides are UTF-8 (the same text gives the same yield in any
encoding), every response's body counts as downloaded, and only new text as kept.
The factor .01 is the paper's; the default profile is milder (base/options.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

MAX_STEPS = 3
_MILDER = 0.4


def threshold(pages: int, factor: float) -> float:
    """t(n) for n judged responses; negative below 10, so nothing falls under it there."""
    return factor * (math.log10(pages) - 1) if pages > 0 else -factor


@dataclass(slots=True)
class YieldAccount:
    """What was downloaded from and kept of one host (or one registrable domain)."""

    pages: int = 0
    """Judged responses: final status, not robots.txt, redirects or 304."""
    downloaded_bytes: int = 0
    kept_bytes: int = 0

    def count_bytes(self, pages: int, downloaded_bytes: int, kept_bytes: int) -> None:
        self.pages += pages
        self.downloaded_bytes += downloaded_bytes
        self.kept_bytes += kept_bytes

    @property
    def rate(self) -> float:
        """Kept / downloaded bytes; 0 before anything was downloaded."""
        return self.kept_bytes / self.downloaded_bytes if self.downloaded_bytes else 0.0


@dataclass(frozen=True, slots=True)
class RetirementRule:
    """When an account has given too little; ``factor=None`` means never."""

    factor: float | None
    min_pages: int
    min_bytes: int

    def milder(self, steps: int) -> RetirementRule:
        """The rule by which a host is judged that was reopened *steps* times: each leaves two fifths of the factor.

        So one step leads from the profile normal to permissive.
        """
        return self if self.factor is None or not steps else replace(self, factor=self.factor * _MILDER**steps)

    def steps_for(self, account: YieldAccount, taken: int) -> int | None:
        """The fewest steps beyond those *taken* after which *account* is not retired; None if there are too many."""
        wanted = range(taken + 1, MAX_STEPS + 1)
        return next((n for n in wanted if account.kept_bytes and not self.milder(n).retires(account)), None)

    def retires(self, account: YieldAccount) -> bool:
        """Whether the account's yield rate lies below t(n) and both minima are reached."""
        if self.factor is None or account.pages < self.min_pages or account.downloaded_bytes < self.min_bytes:
            return False
        return account.rate < threshold(account.pages, self.factor)
