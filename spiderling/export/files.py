"""The files of an export: documents are distributed to them, and they have temporary names until all are complete."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from spiderling.base.atomic_files import PART, part_of, sync_directory, sync_file, write_whole
from spiderling.base.errors import BadInput
from spiderling.corpus.reader import StoredDocument
from spiderling.export.formats import writer
from spiderling.export.plan import Plan
from spiderling.export.registry import Registry
from spiderling.jobdir.card import read_manifest

MAX_WAITING_CHARS = 64_000_000
"""Characters that wait to be written to all open files together (chosen)."""
MAX_OPEN = 256
"""Parquet files at once; each stays open until it is complete (chosen)."""


class Written(NamedTuple):
    """A complete file."""

    name: str
    entries: int
    """Documents or, if they were shuffled, sentences."""
    bytes: int


class _Shard:
    """A file that is being written."""

    def __init__(self, path: Path, part: str, plan: Plan, registry: Registry) -> None:
        """Raises BadInput if *path* exists, unless the plan is to replace it."""
        if path.exists() and not (plan.is_forced and path.is_file()):
            raise BadInput(f"{path} exists; remove it, replace it with --force, or give another name.")
        self.path = path
        self.part = part
        self.temporary = part_of(path)
        self.entries = 0
        try:
            self.writer = writer(self.temporary, path.name, plan.format_name, plan.unit, registry)
        except OSError:
            with suppress(OSError):
                self.temporary.unlink(missing_ok=True)
            raise


def _is_free(directory: Path) -> bool:
    """Whether *directory* holds nothing but what a killed export may have left."""
    data = directory / "data"
    rests = data.iterdir() if data.is_dir() else ()
    return not {*directory.iterdir()} - {data} and all(path.suffix == PART for path in rests)


class Parts:
    """Distributes documents to files, in memory that does not grow with their number or size."""

    def __init__(self, plan: Plan) -> None:
        """Raises BadInput if the output exists, OSError if it cannot be written."""
        self._plan = plan
        self._open: dict[str, _Shard] = {}
        self._complete: list[_Shard] = []
        self._numbers: Counter[str] = Counter()
        """Part -> number of its files."""
        self._registries: defaultdict[str, Registry] = defaultdict(Registry)
        self._former = plan.former_files()
        if plan.is_dataset:
            self._make_directory()
        if not plan.splits:
            self._begin("")  # a name that cannot be written is told before the corpus is read

    def _make_directory(self) -> None:
        out = self._plan.out
        if out.is_file():
            raise BadInput(f"{out} is a file; give another name.")
        if out.is_dir() and not _is_free(out):
            if read_manifest(self._plan.manifest).get("format") != self._plan.format_name:
                raise BadInput(f"{out} holds other files than those of an export; give a new or an empty directory.")
            if not self._plan.is_forced:
                raise BadInput(f"{out} holds an export; replace it with --force, or give another name.")
        (out / "data").mkdir(parents=True, exist_ok=True)
        for rest in (out / "data").glob(f"*{PART}"):
            rest.unlink()

    def add(self, document: StoredDocument) -> None:
        """Raises BadInput and OSError."""
        name = self._plan.part_of(document.attributes)
        shard = self._open.get(name) or self._begin(name)
        shard.writer.add(document)
        shard.entries += 1
        if shard.writer.waiting == 0 and 0 < self._plan.shard_bytes <= shard.temporary.stat().st_size:
            self._close(name)
        if len(self._open) > 1 and sum(one.writer.waiting for one in self._open.values()) > MAX_WAITING_CHARS:
            for one in self._open.values():
                if one.writer.waiting >= MAX_WAITING_CHARS / len(self._open):  # at least the mean
                    one.writer.flush()

    def _begin(self, name: str) -> _Shard:
        """Open the next file of the part *name*."""
        plan = self._plan
        if plan.format_name == "parquet" and len(self._open) >= MAX_OPEN:
            raise BadInput(
                f"the split makes more than {MAX_OPEN} files, too many for Parquet; take another format, or "
                "select a part of the corpus with --where."
            )
        self._numbers[name] += 1
        path = plan.data_file(name, self._numbers[name])
        self._open[name] = _Shard(path, name, plan, self._registries[name])
        return self._open[name]

    def _close(self, name: str) -> None:
        shard = self._open[name]
        shard.writer.close()
        self._complete.append(shard)
        del self._open[name]

    @property
    def names(self) -> list[str]:
        """The parts that have files."""
        return sorted(self._numbers)

    def commit(self) -> list[Written]:
        """Complete all files, give them their names, and remove those of an earlier export; raises OSError."""
        plan = self._plan
        for name in list(self._open):
            self._close(name)
        for shard in self._complete:
            sync_file(shard.temporary)
        for shard in self._complete:
            shard.temporary.replace(shard.path)
        for name in self.names if plan.format_name == "vertical" else ():
            files = [shard.path.name for shard in self._complete if shard.part == name]
            write_whole(plan.registry(name), self._registries[name].text(plan.corpus_name(name), files))
        ours = {shard.path for shard in self._complete} | {plan.registry(name) for name in self.names}
        for path in self._former - ours:
            path.unlink(missing_ok=True)
        sync_directory(self._complete[0].path.parent)
        found = ((shard.path, shard.entries) for shard in self._complete)
        names = ((path.relative_to(plan.directory), entries, path.stat().st_size) for path, entries in found)
        return sorted(Written(name.as_posix(), entries, size) for name, entries, size in names)

    def abort(self) -> None:
        """Remove the files with temporary names, and directories that were made for them."""
        for shard in [*self._open.values(), *self._complete]:
            shard.temporary.unlink(missing_ok=True)
        if self._plan.is_dataset:
            with suppress(OSError):
                (self._plan.out / "data").rmdir()
                self._plan.out.rmdir()
