"""A Material from a few hosts, without a crawl."""

from __future__ import annotations

import numpy as np

from spiderling.base.options import Options
from spiderling.frontier.storage.protocol import HistoryRow
from spiderling.reporting.material import Hosts, Material


def hosts_of(*rows: tuple) -> Hosts:
    """(name, state, pages, downloaded, kept, parked) each."""
    names, states, *columns = zip(*rows, strict=True)
    pages, down, kept, parked = (np.array(column, np.int64) for column in columns)
    zeros = np.zeros(len(names), np.int64)
    return Hosts(list(names), np.array(states), zeros, pages, pages, kept, down, kept, parked, zeros)


def material(hosts: Hosts | None = None, history: tuple = (), counts: dict | None = None, **options) -> Material:
    """*history*: (running seconds, pages, words, downloaded, kept) each."""
    hosts = hosts or Hosts()
    rows = [
        HistoryRow(t, t, t, pages, pages, words, down, kept, 0, 0, 1, 1, 0) for t, pages, words, down, kept in history
    ]
    last = rows[-1] if rows else None
    totals = {
        "total/pages": last.pages if last else int(hosts.pages.sum()),
        "total/downloaded_bytes": last.downloaded_bytes if last else int(hosts.downloaded_bytes.sum()),
        "total/kept_bytes": last.kept_bytes if last else int(hosts.kept_bytes.sum()),
    }
    chosen = Options(lang="cs", **options)
    return Material("crawls/cs", "", chosen, "0.1.0", 2e9, 1.9e9, totals | (counts or {}), hosts, rows, [], [], [], [])
