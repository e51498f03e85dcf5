"""Faults that were mended once, as changes of the source that bring each of them back: does a seed find it?"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Change(NamedTuple):
    """In the *file* of the package, *old*, which stands there once, becomes *new*."""

    file: str
    old: str
    new: str


PLANTED: dict[str, tuple[Change, ...]] = {
    "a segment is not synced": (Change("corpus/segments.py", "            os.fsync(self._file.fileno())\n", ""),),
    "the name of a segment is not synced": (
        Change("corpus/segments.py", "            sync_directory(self._directory)\n", ""),
    ),
    "a commit is not synced": (Change("frontier/storage/sqlite.py", '"FULL" if synced else "NORMAL"', '"OFF"'),),
    "a new state gets its name before it is synced": (
        Change("frontier/storage/state_file.py", "    sync_file(new)\n", ""),
    ),
    "a new state is made in its place": (
        Change("frontier/storage/sqlite.py", "new = new_file_for(path)", "new = path"),
        Change("frontier/storage/sqlite.py", "        delete_files(path)  # version_of found nothing in them\n", ""),
        Change("frontier/storage/sqlite.py", "        put_in_place(new, path)\n", ""),
    ),
    "what a kill left of a segment stays": (
        Change("jobdir/directory.py", "                set_aside(surplus)\n", "                pass\n"),
    ),
    "what a kill left is copied and not cut off": (
        Change(
            "jobdir/directory.py",
            "  # which has the name of aside/\n    _cut(surplus)\n",
            "\n",
        ),
    ),
    "what a kill left counts as acknowledged": (
        Change("jobdir/directory.py", "    last = _last(known)\n    kinds", "    return False\n    kinds"),
    ),
    "what could not be committed stays": (
        Change("crawl/crawl.py", "undo(self.jobdir.path, self.jobdir.database, self._prefix)", "pass"),
    ),
    "the log is emptied before the surplus is judged": (Change("crawl/crawl.py", ", writes=False)", ")"),),
    "batches go on after one has failed": (
        Change(
            "crawl/checkpoint.py", "if self.error is None and self._writing is None and", "if self._writing is None and"
        ),
    ),
    "a batch is cut off while another is written": (
        Change(
            "crawl/checkpoint.py", "if self.error is None and self._writing is None and", "if self.error is None and"
        ),
    ),
    "digests of kept texts are not stored": (Change("crawl/checkpoint.py", "digests=self._digests,", "digests=[],"),),
    "a document is counted and not written": (
        Change(
            "crawl/crawl.py",
            "self.checkpoint.add_outcome(outcome)",
            "outcome.document or self.checkpoint.add_outcome(outcome)",
        ),
    ),
    "a checkpoint that failed is told to nobody": (
        Change("crawl/checkpoint.py", "            self._fail_crawl(self.error)\n", ""),
        Change(
            "engine/scheduler.py",
            "        except SpiderlingError as error:\n            self._note_error(error)\n        finally:",
            "        except SpiderlingError:\n            pass\n        finally:",
        ),
    ),
    "a URL leaves the state when it is handed out": (
        Change("frontier/storage/host_table.py", "line_of(in_transit) if in_transit is not None else None,", "None,"),
    ),
    "a URL that was given back is not stored": (
        Change(
            "frontier/storage/queues.py", "return [line_of(url) for url in self._heads[host_id].first]", "return []"
        ),
    ),
    "URLs taken from a queue are there again after a restart": (
        Change("frontier/storage/queues.py", "popped.get(slot, 0) + 1\n", "popped.get(slot, 0)\n"),
    ),
    "chunks are read before they are committed": (
        Change(
            "frontier/storage/queues.py",
            "self.generation += 1",
            "self.generation = self._committed = self.generation + 1",
        ),
    ),
    "a restart forgets the intervals": (
        Change("frontier/schedule.py", "        self.intervals.begin_anew(now, len(self._hosts) > 0)\n", ""),
    ),
    "an interval begins at the hand-out": (
        Change("frontier/intervals.py", "self.permitted(host, address, now)\n        entry", "return\n        entry"),
    ),
    "the connection of a probe of the network is not noted": (
        Change("engine/dispatcher.py", "self.crawl.frontier.probes.started(host, address, self._now())", "pass"),
    ),
    "a connection does not look whether its address is due": (
        Change(
            "engine/dispatcher.py",
            "return intervals.connect_in(fetch.host",
            "return 0 * intervals.connect_in(fetch.host",
        ),
    ),
    "Retry-After is not heeded": (
        Change("middlewares.py", "            retry_after_s=asked_to_wait_s(response),\n", ""),
    ),
    "the clock goes back": (
        Change("base/machine.py", "    return lambda: offset + time.monotonic()\n", "    return time.time\n"),
    ),
    "a control.yaml that is no UTF-8 stops the crawl": (
        Change("extensions/control.py", "(BadInput, OSError, UnicodeDecodeError) as", "(BadInput, OSError) as"),
    ),
    "pages end while the network is away": (
        Change("engine/offline.py", "    if wire_bytes or isinstance(error, TooSlow):", "    if True:"),
    ),
    "a host that is due wakes the engine all the time while a budget leaves no room": (
        Change("engine/dispatcher.py", " or not self.crawl.has_room(len(self._pages)) or", " or"),
    ),
    "a host that is due wakes the engine all the time while no more requests may be in transit": (
        Change("engine/dispatcher.py", " or self._crawler.engine.needs_backout():", ":"),
    ),
    "a connection whose answers nobody reads is closed and not counted": (
        Change("live/server.py", "request.transport.set_write_buffer_limits(0)", "pass"),
    ),
    "a take-down leaves the former segments": (
        Change("jobdir/directory.py", "name in sorted(files - named)):", "name in sorted(files - files)):"),
    ),
    "what was taken down is asked again": (
        Change("jobdir/takedown.py", "state=HostState.BLOCKED.value, waiting=0", "waiting=0"),
        Change("crawl/crawl.py", "self.taken_down = taken_down(state.meta)", "self.taken_down = taken_down({})"),
    ),
}


def planted(name: str, directory: Path) -> Path:
    """A tree in *directory* in which that fault is back; raises ValueError if the source has changed meanwhile."""
    shutil.copytree(ROOT / "spiderling", directory / "spiderling", ignore=shutil.ignore_patterns("__pycache__"))
    for other in ("tests", "benchmarks", "webs"):
        (directory / other).symlink_to(ROOT / other)
    for change in PLANTED[name]:
        path = directory / "spiderling" / change.file
        path.write_text(changed(change, path.read_text("utf-8")), "utf-8")
    return directory


def changed(change: Change, source: str) -> str:
    """The *source* with that change; raises ValueError if it cannot be made."""
    if source.count(change.old) != 1:
        raise ValueError(f"{change.file} has not once {change.old!r}")
    return source.replace(change.old, change.new)
