"""One shard as a process of its own, seen from the one that starts them all: it says which it is, and what went wrong.

A shard logs to its own ``crawl.log``.  What it also says on standard error is read here.  All but its records of the
level INFO are logged once more by this process; of those, where its live page is.
"""

from __future__ import annotations

import codecs
import logging
import re
import time
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Sequence

from spiderling.cluster.child_process import start_child

logger = logging.getLogger(__name__)

FORMAT = "%(levelname)s %(name)s: %(message)s"
"""LOG_FORMAT of a shard."""
_RECORD = re.compile(r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) ([\w.]+): (.*)")
_NAMED = re.compile(r"This is shard (\d+) of \d+, at Redis ")
"""What cluster/shard.py logs when its crawl is open."""
_LIVE_PAGE = "spiderling.extensions.live_page"
"""The logger that says where the live page is, which the user wants to know."""
_READ_BYTES = 1 << 16
_LINE_CHARS = 1 << 16
"""Characters of the longest line that is told whole (chosen: far more than a person reads)."""
SAME_S = 10.0
"""Seconds in which several shards say the same for one reason (chosen: more than one round of each)."""


class Repeater:
    """Logs what shards say, but not what another has just said."""

    def __init__(self) -> None:
        self._said: dict[tuple[int, str], float] = {}

    def log(self, level: int, who: str, text: str) -> bool:
        """Whether it was logged."""
        now = time.monotonic()
        self._said = {said: at for said, at in self._said.items() if now - at < SAME_S}
        is_new = (level, text) not in self._said
        self._said.setdefault((level, text), now)
        if is_new:
            logger.log(level, "%s: %s", who, text)
        return is_new


class ShardProcess:
    """A process that runs one shard, from its start to its end."""

    def __init__(self, process: Process, repeater: Repeater) -> None:
        self.process = process
        self.name = "a shard"
        """Its number, when it has said it."""
        self._repeater = repeater
        self._level = logging.INFO
        """Of the record whose lines are read; NOTSET if another shard has said it."""

    @classmethod
    async def started(cls, command: Sequence[str], repeater: Repeater) -> ShardProcess:
        """*command* as a process."""
        return cls(await start_child(command, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT), repeater)

    async def ended(self) -> int:
        """Read what it says until it ends; returns its exit code, or -N if the signal N has killed it."""
        stream = self.process.stdout
        assert stream is not None
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        rest = ""
        while data := await stream.read(_READ_BYTES):
            *lines, rest = (rest + decode(data)).split("\n")
            if len(rest) > _LINE_CHARS:
                lines.append(rest)
                rest = ""
            for line in lines:
                self.take(line)
        if rest:
            self.take(rest)
        return await self.process.wait()

    def take(self, line: str) -> None:
        """One line of its output, without its end."""
        record = _RECORD.match(line)
        if record is None:
            self._follow(line)
            return
        self._level = int(logging.getLevelName(record[1]))
        if named := _NAMED.match(record[3]):
            self.name = f"shard {named[1]}"
        is_told = self._level != logging.INFO or record[2] == _LIVE_PAGE
        if is_told and not self._repeater.log(self._level, self.name, record[3]):
            self._level = logging.NOTSET

    def _follow(self, line: str) -> None:
        """A line that begins no record: it belongs to the last one, or something else than the crawl has written it."""
        if self._level not in (logging.INFO, logging.NOTSET):
            logger.log(self._level, "%s: %s", self.name, line)
        elif self._level == logging.INFO and line and not line[0].isspace():
            self._repeater.log(logging.WARNING, self.name, line)
