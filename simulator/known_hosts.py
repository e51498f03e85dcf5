"""The yardstick of strategies: a clairvoyant that knows the yield of every host beforehand, and all URLs.

Which page of a host has text can mostly not be known before it is read, but what the host gives can be learnt.
So the clairvoyant knows the words that each host gives for its bytes, and nothing of its pages.  It asks whole
hosts, the richest first, under the politeness of any crawl: the hosts that hold the first 25 % of the words side
by side, then those up to 50 %, and so on.  It follows no link, since every URL is known to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.pages import BYTES_PER_WORD, PageWeb
from spiderling.frontier.ranking.linking_page import LinkingPage
from spiderling.frontier.ranking.strategy import DROPPED, Ranker, Strategy


class KnownHosts(Strategy):
    """Follows no link; its URLs are the seeds, which ``stages`` gives."""

    def ranker(self, page: LinkingPage) -> Ranker:
        return lambda link: DROPPED


def stages(web: PageWeb, shares: Sequence[float]) -> list[list[str]]:
    """The URLs of each stage: all pages of the hosts that bring the words kept from one of *shares* to the next.

    Hosts without words are in none of them.
    """
    host = web.pages.host
    words = np.bincount(host, web.new_kept_bytes // BYTES_PER_WORD, len(web.hosts.names))
    sizes = np.bincount(host, web.pages.body_bytes, len(web.hosts.names))
    richest = np.argsort(-words / np.maximum(sizes, 1), kind="stable")[: np.count_nonzero(words)]
    before = np.cumsum(words[richest]) - words[richest]
    stage = np.full(len(words), len(shares) + 1)
    stage[richest] = np.searchsorted(np.array(shares) * words.sum(), before, side="right")
    stage_of_page = stage[host]
    return [list(map(web.url, np.flatnonzero(stage_of_page == at).tolist())) for at in range(len(shares) + 1)]
