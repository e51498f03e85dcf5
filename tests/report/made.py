"""The status of a crawl that never was, from a few figures."""

from __future__ import annotations

import dataclasses
from collections import Counter

from spiderling.jobdir.status import CURVES, rates
from spiderling.jobdir.status_schema import Curves, Ends, Status, Urls

MB = 1_000_000


def status_of(history: tuple = (), waiting: int = 0, ends: dict | None = None, **more) -> Status:
    """*history*: (running seconds, pages, words, downloaded, kept) each; *more*: other fields."""
    names = ("time_s", "pages", "words", "downloaded_bytes", "kept_bytes")
    rows = [dict(zip(names, row, strict=True)) for row in history]
    columns = {name: [row.get(name, row["time_s"]) for row in rows] for name in CURVES}
    totals = Counter(rows[-1] if rows else {})
    empty = {"str": "", "int": 0, "float": 0.0, "bool": False, "dict": {}, "list": []}
    fields = {field.name: empty.get(field.type.partition("[")[0]) for field in dataclasses.fields(Status)}
    fields |= {
        "lang": "cs", "phase": "finished", "totals": totals, "overall": rates(totals, {}), "lately": rates({}, {}),
        "urls": Urls(waiting, 0, waiting, 0), "curves": Curves(columns, columns),
        "ends": [Ends(key, urls, "") for key, urls in (ends or {}).items()],
    }  # fmt: skip
    return Status(**fields | more)
