"""The list of public suffixes of a crawl: what it began with, for its life.

With another list, hosts would belong to other shards.  So each shard keeps the list in its directory, and goes by it
when a newer tldextract brings another one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from spiderling.base.atomic_files import write_whole
from spiderling.base.owners import go_by_suffixes
from spiderling.base.urls import bundled_suffix_list, suffix_list, suffix_list_digest

logger = logging.getLogger(__name__)

_FILE = Path("state", "public_suffixes.dat")


def take_up(known: Mapping[Path, str | None]) -> None:
    """Go by the list that one of the shards *known* has kept: directory -> digest by the shard's map, if it has one."""
    bundled = suffix_list_digest(bundled_suffix_list())
    for directory, digest in known.items():
        path = directory / _FILE
        if digest in (None, bundled) or not path.is_file() or suffix_list_digest(path.read_bytes()) != digest:
            continue
        logger.info("The crawl goes by the list of public suffixes that it began with, in %s", path)
        go_by_suffixes(path)
        return
    go_by_suffixes(None)


def keep(directory: Path) -> None:
    """Keep the list that this process goes by in *directory*; raises StorageError."""
    path = directory / _FILE
    if not path.exists() or path.read_bytes() != suffix_list():
        write_whole(path, suffix_list().decode())
