"""The ranks of URLs: 0 is fetched first."""

from __future__ import annotations

SEED_RANK = 0


REQUEST_RANK = 1


SITEMAP_RANK = 6
"""Behind the links of pages with text, and of hubs."""


LAST_RANK = 9


RANKS = LAST_RANK + 1
