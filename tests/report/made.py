"""The status and the hosts of a crawl that never was, from a few figures."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np

from spiderling.jobdir.status import CURVES, rates
from spiderling.jobdir.status_schema import Curves, Ends, Status, Urls
from spiderling.reporting.advice import Hosts

MB = 1_000_000


def hosts_of(*rows: tuple) -> Hosts:
    """(state, pages, downloaded, kept, parked) each."""
    states, *columns = zip(*rows, strict=True) if rows else [()] * 5
    return Hosts(np.array(states, str), *(np.array(column, np.int64) for column in columns))


def status_of(hosts: Hosts, history: tuple = (), waiting: int = 0, ends: dict | None = None, **more) -> Status:
    """*history*: (running seconds, pages, words, downloaded, kept) each; *more*: other fields."""
    names = ("time_s", "pages", "words", "downloaded_bytes", "kept_bytes")
    rows = [dict(zip(names, row, strict=True)) for row in history]
    columns = {name: [row.get(name, row["time_s"]) for row in rows] for name in CURVES}
    last = rows[-1] if rows else {
        name: int(getattr(hosts, name).sum()) for name in ("pages", "downloaded_bytes", "kept_bytes")
    }  # fmt: skip
    totals = Counter(last)
    empty = {"str": "", "int": 0, "float": 0.0, "bool": False, "dict": {}, "list": []}
    fields = {field.name: empty.get(field.type.partition("[")[0]) for field in dataclasses.fields(Status)}
    fields |= {
        "lang": "cs", "phase": "finished", "totals": totals, "overall": rates(totals, {}), "lately": rates({}, {}),
        "urls": Urls(waiting, 0, waiting, 0), "curves": Curves(columns, columns),
        "hosts": Counter(hosts.states.tolist()), "ends": [Ends(key, urls, "") for key, urls in (ends or {}).items()],
    }  # fmt: skip
    return Status(**fields | more)
