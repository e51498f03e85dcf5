"""Which shard of a crawl owns a host.

All hosts of a registrable domain have one owner.  So what is measured or limited by domain (traps, yield, shares of
the places, opt-outs) stays within one process, and so do most hosts that share an address.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import xxhash

from spiderling.base.urls import name_of, registrable_domain, use_suffix_file

MAX_SHARDS = 1024
"""Chosen: far more than a crawl can use; a shard's number fits two bytes."""


@lru_cache(maxsize=1 << 17)
def owner_of(host: str, shards: int) -> int:
    """The shard, 0 to *shards* - 1, of the host record's name *host*; an address literal is a domain of its own."""
    domain = registrable_domain(name_of(f"http://{host}"))
    return int(xxhash.xxh3_64_intdigest(domain.encode()) % shards)


def go_by_suffixes(path: Path | None) -> None:
    """Let owners go by the list of public suffixes in *path* from now on; None: the one bundled with tldextract."""
    use_suffix_file(path)
    owner_of.cache_clear()


def page_elsewhere(shard: int) -> int:
    """What stands in the URL log for a page of another shard: the key of no page, since no host has the id 0."""
    return shard + 1


def shard_of_page(page: int) -> int | None:
    """The shard that ``page_elsewhere`` stands for; None for the key of a page, and for 0, no page."""
    return page - 1 if 0 < page <= MAX_SHARDS else None
