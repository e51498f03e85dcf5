"""All shards of a crawl on this machine, started and ended together, with a Redis of their own."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import re
import shutil
import signal
import tempfile
import time
from asyncio import create_subprocess_exec
from asyncio.subprocess import DEVNULL, Process
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from spiderling.base.errors import BadInput, JobdirError, SpiderlingError
from spiderling.base.terminal import NUMBERS, count_of
from spiderling.base.urls import MAX_SHARDS
from spiderling.jobdir.as_text import facts_of, named_counts
from spiderling.jobdir.directory import acquire
from spiderling.jobdir.inspection import AnyCrawl, commands_for, counts_under, parts_in, progress_of, reading
from spiderling.jobdir.status import status_of

CORES_A_SHARD = 3
"""Chosen: a page takes 3 ms of the main process and 4 to 5 ms of a text worker (docs/performance.md), so two workers
keep one main process busy."""
MAX_DEATHS = 3  # times that a process is started again within DEATHS_S; chosen: a cause that lasts shows by then
DEATHS_S = 3600.0  # seconds; chosen: a crawl of weeks may lose a process now and then


def shards_for(cores: int) -> int:
    """The number of shards that *cores* call for; 1: one process is enough.

    >>> [shards_for(cores) for cores in (1, 2, 5, 6, 32)]
    [1, 1, 1, 2, 10]
    """
    return min(MAX_SHARDS, max(1, cores // CORES_A_SHARD))


def worst(codes: Iterable[int]) -> int:
    """The exit code of a crawl whose processes ended with *codes*: an error (1) is worse than no network (3).

    A process that a signal ended, whose code is below 0, has failed.

    >>> worst([0, 3, 0]), worst([3, 1]), worst([0, -9]), worst([])
    (3, 1, 1, 0)
    """
    return max((code if code in (0, 3) else 1 for code in codes), key=[0, 3, 1].index, default=0)


def may_start_again(deaths: Sequence[float]) -> bool:
    """Whether a process that died at these times, the last of which is now, is started again."""
    return sum(deaths[-1] - death < DEATHS_S for death in deaths) <= MAX_DEATHS


_PR_SET_PDEATHSIG = 1  # prctl(2): the signal that a process gets when the thread that has started it ends
_NOT_BEGUN = 127
_libc = ctypes.CDLL(None)


async def start_child(command: Sequence[str], **streams: Any) -> Process:
    """Start *command* from the main thread; Ctrl-C of the terminal does not reach it.

    It is killed when this process ends.  A shard loses nothing by that but what was under way, and so does Redis.
    """
    bound = with_parent(signal.SIGKILL)
    return await create_subprocess_exec(*command, preexec_fn=bound, start_new_session=True, **streams)


def with_parent(number: int) -> Callable[[], None]:
    """The ``preexec_fn`` of a process that gets the signal *number* when the thread that starts it ends."""
    parent = os.getpid()

    def bind() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(_NOT_BEGUN)

    return bind


def how_ended(code: int) -> str:
    """How a process ended, by the *code* that asyncio gives.

    >>> how_ended(-9), how_ended(1)
    ('killed by SIGKILL', 'exit code 1')
    """
    try:
        return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


SERVER = "redis-server"
MAX_PATH_BYTES = 107  # bytes of the longest path of a Unix socket on Linux (unix(7))
PATIENCE_S = 30.0  # seconds in which it must answer; chosen: it takes .02 s on an idle machine
_LOOK_S = 0.02
_PLAIN = re.compile(r"[\w./~+=,@-]+")  # a path that means the same in an address
_SHORT = "/tmp"  # noqa: S108 - a directory of our own is made in it


def executable() -> str:
    """``redis-server`` on PATH; raises BadInput if there is none."""
    if found := shutil.which(SERVER):
        return found
    raise BadInput(
        f"there is no {SERVER} on PATH, and the shards of a crawl exchange links over Redis: install version 6.2 or "
        "later (Debian and Ubuntu: apt install redis-server), or give the address of one with -s SPIDERLING_CLUSTER="
    )


class OwnRedis:
    """A Redis of the crawl's own: on a Unix socket that only this user can open, with nothing on disk.

    ``start`` it, also again after it has died; ``close`` follows in any case.
    """

    process: Process

    def __init__(self, directory: Path) -> None:
        """*directory* is there, and the crawl's own; raises BadInput if there is no server."""
        self._executable = executable()
        self._log = directory / "log"
        self._private: Path | None = None
        self._socket = (directory / "socket").absolute()
        if len(bytes(self._socket)) > MAX_PATH_BYTES or not _PLAIN.fullmatch(str(self._socket)):
            self._private = Path(tempfile.mkdtemp(prefix="spiderling-", dir=_SHORT))
            self._socket = self._private / "socket"
        self.url = f"unix://{self._socket}"

    async def start(self) -> None:
        """Returns when it answers; raises BadInput if it does not."""
        options = ["--port", "0", "--unixsocket", str(self._socket), "--unixsocketperm", "700"]
        options += ["--save", "", "--appendonly", "no", "--dir", str(self._socket.parent)]
        with self._log.open("wb") as log:
            command = [self._executable, *options]
            self.process = await start_child(command, stdin=DEVNULL, stdout=log, stderr=log, umask=0o077)
        ends = asyncio.get_running_loop().time() + PATIENCE_S
        while not self._answers():
            if self.process.returncode is not None or asyncio.get_running_loop().time() > ends:
                raise BadInput(f"{self._executable} does not start ({self._why()}); {self._log} has more.")
            await asyncio.sleep(_LOOK_S)

    def _answers(self) -> bool:
        from redis.exceptions import RedisError  # an extra: what decides on the number of shards does without it

        from spiderling.cluster.redis_transport import connect

        with closing(connect(self.url, blocks=True)) as client, suppress(RedisError):
            return bool(client.ping())
        return False

    def _why(self) -> str:
        """The last line of its log, or how it ended."""
        code = self.process.returncode
        lines = ["no answer" if code is None else how_ended(code), *self._log.read_text("utf-8", "replace").split("\n")]
        return next(line.strip() for line in reversed(lines) if line.strip())

    async def close(self) -> None:
        """End it; what it holds is lost, and no loss."""
        if hasattr(self, "process") and self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        self._socket.unlink(missing_ok=True)
        if self._private is not None:
            shutil.rmtree(self._private, ignore_errors=True)


logger = logging.getLogger(__name__)

_PASSED_ON = (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL)
"""What the shards get at the first signal that ends the crawl, the second, and each later one.  They finish what is
under way at the first, not at the second."""
_WAITS_S = 10.0  # seconds between two lines until the first document, as of one process (extensions/progress.py)


class LaunchPlan(NamedTuple):
    """What is to be started."""

    command: Sequence[str]  # of one shard, but for the settings below
    directory: Path  # JOBDIR
    settings: Sequence[Mapping[str, str]]  # of each shard
    words: str  # what is begun, in a sentence
    progress_s: float


def launch(plan: LaunchPlan) -> int:
    """Run all shards until they have ended; returns the exit code, the worst of theirs.

    Raises BadInput if no Redis can be started, JobdirError if the directory cannot be used or another process has it.
    """
    own = plan.directory / "redis"
    try:
        own.mkdir(parents=True, exist_ok=True)
        own.chmod(0o700)
        lock = acquire(own / "lock", plan.directory)
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


_CORPUS = "shard-*/corpus/*.prevert.zst"


class _Launcher:
    def __init__(self, plan: LaunchPlan, redis: OwnRedis) -> None:
        self._plan = plan
        self._redis = redis
        self._running: set[Process] = set()
        self._signals = 0
        self._has_failed = False
        self._pages: int | None = None  # of all shards when the last line was made
        self._has_documents = False  # the same

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
        code = 1 if self._has_failed else code
        with suppress(SpiderlingError), reading(self._plan.directory) as crawl:
            logger.info("%s", summary(crawl, self._plan.directory, code))
        for number in NUMBERS:  # whose handlers end with the loop; all is done, and none is to change the exit code
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_IGN)
        return code

    def _end(self) -> None:
        """Pass a signal on to all shards."""
        number = _PASSED_ON[min(self._signals, len(_PASSED_ON) - 1)]
        if not self._signals:
            logger.info("All shards are told to end; a second signal ends them at once")
        self._signals += 1
        for shard in self._running:
            with suppress(ProcessLookupError):
                shard.send_signal(number)

    async def _keep(self, settings: Mapping[str, str]) -> int:
        """Run one shard, and again if something has killed it; returns its exit code."""
        deaths: list[float] = []
        own = {**settings, "SPIDERLING_CLUSTER": self._redis.url}
        command = [*self._plan.command, *(part for name, value in own.items() for part in ("-s", f"{name}={value}"))]
        while not self._signals:
            shard = await start_child(command, stdin=DEVNULL)
            self._running.add(shard)
            if self._signals:  # it was being started meanwhile
                shard.terminate()
            code = await shard.wait()
            self._running.discard(shard)
            if code >= 0:
                return code
            if self._signals:
                break
            deaths.append(time.monotonic())
            if not may_start_again(deaths):
                logger.error("A shard was %s too often in an hour and is not started again", how_ended(code))
                return code
            logger.warning("A shard was %s; it is started again", how_ended(code))
        return 0

    async def _keep_redis(self) -> None:
        """Start Redis again when it has died: the shards wait for it, and lose nothing."""
        deaths: list[float] = []
        while True:
            how = how_ended(await self._redis.process.wait())
            deaths.append(time.monotonic())
            try:
                if not may_start_again(deaths):
                    raise BadInput(f"it has ended ({how}), too often in an hour.")
                logger.warning("Redis has ended (%s); it is started again, and nothing is lost", how)
                await self._redis.start()
            except BadInput as error:
                logger.error("Redis is not started again, and so the crawl stops: %s", error)
                self._has_failed = True
                self._end()
                return

    async def _report(self) -> None:
        while True:
            every_s = self._plan.progress_s if self._has_documents else min(_WAITS_S, self._plan.progress_s)
            await asyncio.sleep(every_s)
            with suppress(SpiderlingError), reading(self._plan.directory) as crawl:  # none: it is being made
                logger.info("%s", self._progress(crawl, every_s))

    def _progress(self, crawl: AnyCrawl, seconds: float) -> str:
        """The progress line, *seconds* after the last one."""
        totals = counts_under("total", crawl.counts)
        speed = None if self._pages is None else (totals["pages"] - self._pages) / seconds
        self._pages = totals["pages"]
        self._has_documents = totals["documents"] > 0
        what = progress_of(totals, speed) if self._has_documents else f"No document yet of {totals['pages']:,} pages"
        why = "" if self._has_documents else "; the crawl.log of each says what it waits for"
        waiting = count_of(crawl.counts["waiting"], "URL")
        return f"{what}; {waiting} waiting; {count_of(len(self._running), 'shard')} at work{why}"


def summary(crawl: AnyCrawl, place: Path, code: int) -> str:
    """How the *crawl* at *place* ended, and what it has, as a table; *code*: its exit code."""
    status = status_of(crawl, large=())
    rows = facts_of(status) | {
        "ends": named_counts(Counter({end.reason: end.urls for end in status.ends})),
        "shards": ", ".join(f"{shard.number:02} {shard.totals['pages']:,} pages" for shard in status.shards),
        "corpus": str(place / _CORPUS) if any(place.glob(_CORPUS)) else "",
        "all": commands_for(place),
    }
    how = "is finished." if status.phase == "finished" else "was paused; the same command goes on with it."
    if code:
        how = "has not ended well, as is told above; the same command goes on with it."
    table = "\n".join(f"  {name:<11}{value}" for name, value in rows.items() if value)
    return f"The crawl of all shards in {place.resolve()} {how}\n{table}"
