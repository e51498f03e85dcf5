"""The ranks of URLs, 0 to 9; URLs of rank 0 are fetched first."""

from __future__ import annotations

SEED_RANK = 0
"""The rank of seeds."""
REQUEST_RANK = 1
"""The rank of requests that a subclass of the spider makes."""
SITEMAP_RANK = 6
"""The rank of sitemaps and of their URLs: they come after the links of pages with text and of hubs."""
LAST_RANK = 9
"""The rank of the URLs that are fetched last."""
RANKS = LAST_RANK + 1
"""Number of ranks."""
STEP = 1.7
"""Yield rate that a rank promises / that of the next worse one (chosen: ten ranks reach over two powers of ten)."""
