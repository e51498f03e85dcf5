"""Rank of a link: how much new text it promises, 0 (fetch first) to 9.

After HeidiX (Schäfer et al. 2014): what the linking page gave and whether the block
that encloses the link is running text tell more than the link itself; so rank, do
not discard.
"""

from __future__ import annotations

from spiderling.reasons import Reason

SEED_RANK = 0
REQUEST_RANK = 1
SITEMAP_RANK = 6
"""Behind the links of pages with text, and of hubs."""
LAST_RANK = 9
RANKS = LAST_RANK + 1

_PAGE_RANK = {
    Reason.KEPT: 3,
    Reason.DUPLICATE: 5,
    Reason.NEAR_DUPLICATE: 5,
    Reason.BOILERPLATE_ONLY: 4,  # home pages and hubs lead to the articles
    Reason.BAD_QUALITY: 4,
    Reason.WRONG_LANGUAGE: 7,
}


def link_rank(verdict: Reason, text_block: bool, same_host: bool) -> int:
    """Rank of a link by its page's verdict, its block and whether it leaves the host."""
    rank = _PAGE_RANK.get(verdict, 5)
    if text_block:
        rank -= 1
    if same_host and verdict is Reason.KEPT:
        rank -= 1
    return rank
