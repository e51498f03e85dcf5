"""Sets a state aside before another takes its place."""

from __future__ import annotations

from itertools import count
from pathlib import Path

_ENDINGS = ("-shm", "-wal", "")
"""What the names of SQLite's files end with; the last is that of the database itself."""


def keep_former(database: Path) -> Path | None:
    """Rename the state *database* and its write-ahead log; returns the new path, None if there was no state."""
    endings = [e for e in _ENDINGS if database.with_name(database.name + e).exists()]
    names = (f"{database.name}.former{f'-{n}' if n else ''}" for n in count())
    former = next(name for name in names if not any(database.with_name(name + e).exists() for e in _ENDINGS))
    for ending in endings:
        database.with_name(database.name + ending).rename(database.with_name(former + ending))
    return database.with_name(former + endings[-1]) if endings else None
