"""The ranks of URLs, 0 to 9; URLs of rank 0 are fetched first."""

from __future__ import annotations

SEED_RANK = 0
REQUEST_RANK = 1
"""Of requests that a subclass of the spider makes."""
SITEMAP_RANK = 6
"""Of URLs in sitemaps: after links of pages with text and of hubs."""
LAST_RANK = 9
RANKS = LAST_RANK + 1
"""Number of ranks."""
