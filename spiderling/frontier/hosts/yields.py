"""The yield rate of a host, and the threshold below which it is retired.

Suchomel & Pomikálek 2012, section 2 and Table 2: ``t(n) = 0.01 * (log10(n) - 1)`` for n downloaded documents, and
never before 8 documents and 512 kB.  Here bytes are counted differently: both kept and downloaded bytes are those of
UTF-8, so a text has the same yield in any encoding; every response's body counts as downloaded; only new text counts
as kept.  The factor .01 is the paper's; the default profile has a lower one (base/options.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

_MILDER = (1.0, 0.4, 0.16, 0.064, 0.0)
"""Factor on the threshold of a host that was reopened so many times (chosen: the first one leads from the profile
normal to permissive).  With the last one no host is retired: when there is nothing better, each host that gave text is
read to its end."""
MAX_STEPS = len(_MILDER) - 1
"""Steps by which the threshold of a reopened host is milder, at most."""


def threshold(pages: int, factor: float) -> float:
    """t(n) for n judged responses; below 10 responses it is negative, so no yield rate is lower."""
    return factor * (math.log10(pages) - 1) if pages > 0 else -factor


@dataclass(slots=True)
class YieldAccount:
    """What was downloaded from and kept of one host (or one registrable domain)."""

    pages: int = 0
    """Judged responses: final status, not robots.txt, redirects or 304."""
    downloaded_bytes: int = 0
    """Bytes of response bodies, as UTF-8."""
    kept_bytes: int = 0
    """Bytes of new clean text, as UTF-8."""

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
    """When a host is retired; ``factor=None``: never."""

    factor: float | None
    min_pages: int
    min_bytes: int

    def milder(self, steps: int) -> RetirementRule:
        """The rule for a reopened host, milder by *steps*."""
        return self if self.factor is None or not steps else replace(self, factor=self.factor * _MILDER[steps])

    def steps_for(self, account: YieldAccount, taken: int) -> int | None:
        """The fewest steps, more than those *taken*, with which *account* is not retired; None if there are none."""
        wanted = range(taken + 1, MAX_STEPS + 1)
        return next((n for n in wanted if account.kept_bytes and not self.milder(n).retires(account)), None)

    def retires(self, account: YieldAccount) -> bool:
        """Whether the account's yield rate is below t(n) and both minima are reached."""
        if self.factor is None or account.pages < self.min_pages or account.downloaded_bytes < self.min_bytes:
            return False
        return account.rate < threshold(account.pages, self.factor)
