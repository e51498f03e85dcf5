"""All shards of a crawl on this machine, started and ended together, with a Redis of their own."""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from spiderling.base.errors import BadInput, JobdirError
from spiderling.base.interrupts import NUMBERS
from spiderling.cluster.child_process import how_ended
from spiderling.cluster.division import may_start_again, worst
from spiderling.cluster.own_redis import OwnRedis
from spiderling.cluster.shard_process import FORMAT, Repeater, ShardProcess
from spiderling.cluster.telling import Telling
from spiderling.jobdir.directory import acquired
from spiderling.jobdir.shards import parts_in

logger = logging.getLogger(__name__)

_PASSED_ON = (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL)
"""What the shards get at the first signal that ends the crawl, the second, and each later one.  They finish what is
under way at the first, not at the second."""
_FAILED = 1
_WAITS_S = 10.0
"""Seconds between two lines until the first document, as of one process (extensions/progress.py)."""


class Plan(NamedTuple):
    """What is to be started."""

    command: Sequence[str]
    """Of one shard, but for the settings below."""
    directory: Path
    """JOBDIR."""
    settings: Sequence[Mapping[str, str]]
    """Of each shard."""
    words: str
    """What is begun, in a sentence."""
    progress_s: float


def launch(plan: Plan) -> int:
    """Run all shards until they have ended; returns the exit code, the worst of theirs.

    Raises BadInput if no Redis can be started, JobdirError if the directory cannot be used or another process has it.
    """
    own = plan.directory / "redis"
    try:
        own.mkdir(parents=True, exist_ok=True)
        own.chmod(0o700)
        lock = acquired(own / "lock", plan.directory)
    except OSError as error:
        raise JobdirError(
            f"the crawl directory {plan.directory} cannot be used: {error.strerror or error}. Mend it, or give another "
            "with -s JOBDIR=..."
        ) from error
    try:
        with closing(lock):
            return asyncio.run(_Launcher(plan, OwnRedis(own)).run())
    finally:
        if parts_in(plan.directory) == [plan.directory]:  # no shard has begun: leave nothing behind
            shutil.rmtree(own, ignore_errors=True)
            with suppress(OSError):
                plan.directory.rmdir()


class _Launcher:
    def __init__(self, plan: Plan, redis: OwnRedis) -> None:
        self._plan = plan
        self._redis = redis
        self._telling = Telling(plan.directory)
        self._repeater = Repeater()
        self._running: set[ShardProcess] = set()
        self._signals = 0
        self._has_failed = False

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        for number in NUMBERS:
            loop.add_signal_handler(number, self._end)
        beside: list[asyncio.Task[None]] = []
        try:
            await self._redis.start()
            logger.info("%s", self._plan.words)
            beside = [loop.create_task(self._keep_redis()), loop.create_task(self._report())]
            code = worst(await asyncio.gather(*map(self._keep, self._plan.settings)))
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await self._redis.close()
        code = _FAILED if self._has_failed else code
        if summary := self._telling.summary(code):
            logger.info("%s", summary)
        return code

    def _end(self) -> None:
        """Pass a signal on to all shards."""
        number = _PASSED_ON[min(self._signals, len(_PASSED_ON) - 1)]
        if not self._signals:
            logger.info("All shards are told to end; a second signal ends them at once")
        self._signals += 1
        for shard in self._running:
            with suppress(ProcessLookupError):
                shard.process.send_signal(number)

    async def _keep(self, settings: Mapping[str, str]) -> int:
        """Run one shard, and again if something has killed it; returns its exit code."""
        loop = asyncio.get_running_loop()
        deaths: list[float] = []
        own = {**settings, "SPIDERLING_CLUSTER": self._redis.url, "LOG_FORMAT": FORMAT, "LOG_FILE": ""}
        command = [*self._plan.command, *(part for name, value in own.items() for part in ("-s", f"{name}={value}"))]
        while not self._signals:
            shard = await ShardProcess.started(command, self._repeater)
            self._running.add(shard)
            if self._signals:  # it was being started meanwhile
                shard.process.terminate()
            code = await shard.ended()
            self._running.discard(shard)
            if code >= 0:
                return code
            deaths.append(loop.time())
            if self._signals:
                break
            if not may_start_again(deaths, loop.time()):
                logger.error("%s was %s too often in an hour and is not started again", shard.name, how_ended(code))
                return code
            logger.warning("%s was %s; it is started again", shard.name, how_ended(code))
        return 0

    async def _keep_redis(self) -> None:
        """Start Redis again when it has died: the shards wait for it, and lose nothing."""
        loop = asyncio.get_running_loop()
        deaths: list[float] = []
        while True:
            code = await self._redis.process.wait()
            deaths.append(loop.time())
            try:
                if not may_start_again(deaths, loop.time()):
                    raise BadInput(f"it has ended ({how_ended(code)}), too often in an hour.")
                logger.warning("Redis has ended (%s); it is started again, and nothing is lost", how_ended(code))
                await self._redis.start()
            except BadInput as error:
                logger.error("Redis is not started again, and so the crawl stops: %s", error)
                self._has_failed = True
                self._end()
                return

    async def _report(self) -> None:
        while True:
            every_s = self._plan.progress_s if self._telling.has_documents else min(_WAITS_S, self._plan.progress_s)
            await asyncio.sleep(every_s)
            if line := self._telling.progress(every_s, len(self._running)):
                logger.info("%s", line)
