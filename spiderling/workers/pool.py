"""Text workers: processes that run ``text/`` away from the event loop.

This is the parent's side; process.py is the inside of a worker.  They talk over
socket pairs.  A worker answers its pages in order, so no numbers are needed: the
oldest unanswered page is the one in work.  Therefore a worker that dies or hangs
convicts exactly that page; those queued behind it are given to others.  Measured at
a third of the cost of ProcessPoolExecutor, which loses every queued page when one
kills its worker (docs/sources.md).

A worker that has done its share of pages, or has grown, says so with an answer; it
works on until a fresh one is ready, so that memory that leaks anywhere is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from spiderling.base.errors import SpiderlingError
from spiderling.base.running_time import running_time
from spiderling.text.unpickling import read_page
from spiderling.workers.process import ANSWER, PAGE, READY, TASK, WORN, DiedEarly, Task, WorkerConfig, text_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from spiderling.text import Page

__all__ = ["Task", "WorkerConfig", "WorkerCrash", "WorkerPool", "text_process"]

QUEUED_PER_WORKER = 3
START_TIMEOUT_S = 60.0
_BUFFER_BYTES = 1 << 18
_MAX_FAILED_STARTS = 3


class WorkerCrash(SpiderlingError):
    """The page killed its worker, took too long, or its processing raised an exception."""


@dataclass(slots=True, eq=False)
class _Job:
    task: Task
    future: asyncio.Future[Page]
    retried: bool = False
    """Whether a worker was killed while it was in work."""


class WorkerPool:
    """A fixed number of workers; every method belongs to one event loop."""

    def __init__(self, size: int, config: WorkerConfig, page_timeout_s: float) -> None:
        self._size = size
        self._config = config
        self._page_timeout_s = page_timeout_s
        self._workers: list[_Worker] = []
        self._leaving: list[_Worker] = []
        self._waiting: deque[_Job] = deque()
        self._failed_starts = 0
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def pids(self) -> list[int]:
        """Process ids of the running workers, without those that only finish what they have."""
        return [worker.process.pid for worker in self._workers]

    @property
    def queued(self) -> int:
        """Pages handed in and not yet done."""
        return len(self._waiting) + sum(len(worker.jobs) for worker in (*self._workers, *self._leaving))

    async def start(self) -> None:
        """Return when all workers are ready, pages handed in before wait for them; raises SpiderlingError with the
        worker's message when one cannot be, and those pages' callers get it too."""
        workers = await asyncio.gather(
            *(self._launch(_MAX_FAILED_STARTS) for _ in range(self._size)), return_exceptions=True
        )
        self._workers = [worker for worker in workers if isinstance(worker, _Worker)]
        failed = [error for error in workers if isinstance(error, BaseException)]
        if failed:
            self._give_up(failed[0])
            await self.close()
            raise failed[0]
        self.dispatch()

    def start_aside(self, failed: Callable[[SpiderlingError], object]) -> None:
        """`start` without waiting for it; *failed* gets its error."""

        async def start() -> None:
            try:
                await self.start()
            except SpiderlingError as error:
                failed(error)

        self._spawn(start())

    async def process(self, task: Task) -> Page:
        """The Page of *task*; raises WorkerCrash when the page could not be processed."""
        if self._closed:
            raise SpiderlingError("the text workers are closed.")
        job = _Job(task, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self.dispatch()
        return await job.future

    async def close(self) -> None:
        """End all workers; pages still in work are cancelled."""
        self._closed = True
        tasks = self._tasks - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        workers = [*self._workers, *self._leaving]
        for job in [*self._waiting, *(job for worker in workers for job in worker.jobs)]:
            job.future.cancel()
        self._waiting.clear()
        self._workers, self._leaving = [], []
        await asyncio.gather(*(worker.end() for worker in workers))

    async def _launch(self, tries: int = 1) -> _Worker:
        """A worker that is ready; one that dies before may have been killed by somebody, and is started again."""
        for _ in range(tries - 1):
            with contextlib.suppress(DiedEarly):
                return await self._launch()
        worker = _Worker(self._config, self._page_timeout_s, self)
        await worker.start()
        return worker

    def dispatch(self) -> None:
        """Give waiting pages to the workers with the shortest queues; let those go that have finished."""
        while self._waiting:
            able = [worker for worker in self._workers if worker.is_open and len(worker.jobs) < QUEUED_PER_WORKER]
            if not able:
                break
            worker = min(able, key=lambda worker: len(worker.jobs))
            job = self._waiting.popleft()
            if not job.future.done():  # its caller may have been cancelled
                worker.send(job)
        for worker in [worker for worker in self._leaving if not worker.jobs]:
            self._leaving.remove(worker)
            self._spawn(worker.end())

    def lost(self, worker: _Worker, reason: str) -> None:
        """A worker is gone: its first page is guilty, the others are done again, first of all."""
        if worker in self._workers:
            self._workers.remove(worker)
            self._spawn(self._replace())
        elif worker in self._leaving:
            self._leaving.remove(worker)
        else:
            return
        jobs, worker.jobs = list(worker.jobs), deque()
        self._spawn(self._convict(worker, reason, jobs[:1]))
        self._waiting.extendleft(reversed(jobs[1:]))
        self.dispatch()

    def worn(self, worker: _Worker) -> None:
        """A worker asks to be replaced; it goes on until the fresh one is ready."""
        self._spawn(self._replace(worker))

    async def _convict(self, worker: _Worker, reason: str, guilty: list[_Job]) -> None:
        """Reap the process, for only then is it known what ended it; then tell the page's caller.

        A worker that was killed, by a person, by the kernel for want of memory or by us because the page took too long
        (as it does where the worker is stopped or the machine busy), convicts its page only when that happens to the
        page a second time.
        """
        try:
            await worker.end()
        finally:
            if worker.process.returncode == -signal.SIGPROF:
                reason = f"the page used more than {self._config.page_cpu_s:g} s of processor time"
            for job in guilty:
                if worker.process.returncode == -signal.SIGKILL and not job.retried:
                    job.retried = True
                    self._waiting.appendleft(job)
                elif not job.future.done():
                    job.future.set_exception(WorkerCrash(f"{reason} while processing {job.task.url}"))
            self.dispatch()

    async def _replace(self, worn: _Worker | None = None) -> None:
        """Start another worker; after some failures in a row, waiting pages are told why there is none."""
        while not self._closed:
            try:
                fresh = await self._launch()
            except (SpiderlingError, OSError) as error:
                self._failed_starts += 1
                if self._failed_starts >= _MAX_FAILED_STARTS and not self._workers:
                    self._give_up(SpiderlingError(f"no text worker can be started: {error}"))
                await asyncio.sleep(min(60.0, 0.1 * 2**self._failed_starts))
            else:
                self._failed_starts = 0
                self._take_in(fresh, worn)
                return

    def _take_in(self, fresh: _Worker, worn: _Worker | None) -> None:
        if worn is None or worn in self._workers:
            self._workers.append(fresh)
        else:  # it was lost in the meantime, and another one comes for that
            self._spawn(fresh.end())
        if worn in self._workers:
            self._workers.remove(worn)
            self._leaving.append(worn)
        self.dispatch()

    def _give_up(self, error: BaseException) -> None:
        jobs = list(self._waiting)
        self._waiting.clear()
        for job in jobs:
            if not job.future.done():
                job.future.set_exception(error)

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Worker(asyncio.BufferedProtocol):
    """The parent's side of one worker process."""

    process: subprocess.Popen[bytes]

    def __init__(self, config: WorkerConfig, page_timeout_s: float, pool: WorkerPool) -> None:
        self.jobs: deque[_Job] = deque()
        self._config = config
        self._page_timeout_s = page_timeout_s
        self._pool = pool
        self._buffer = bytearray(_BUFFER_BYTES)  # answers as they arrive
        self._filled = 0
        self._transport: asyncio.Transport | None = None
        self._spare: socket.socket | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._is_worn = self._is_distrusted = False
        self._reason = "the text worker died"
        self._loop, self._running = asyncio.get_running_loop(), running_time()
        self._ready: asyncio.Future[None] = self._loop.create_future()

    async def start(self) -> None:
        """Start the process and wait until its models are loaded."""
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = _popen(theirs)
        ours.setblocking(False)
        self._spare = ours.dup()
        try:
            await self._loop.create_unix_connection(lambda: self, sock=ours)
            assert self._transport
            setup = pickle.dumps(self._config, 5)
            self._transport.write(TASK.pack(len(setup), 0) + setup)
            await asyncio.wait_for(self._ready, START_TIMEOUT_S)
        except asyncio.TimeoutError:
            await self.end()
            raise SpiderlingError(f"a text worker was not ready within {START_TIMEOUT_S:.0f} s.") from None
        except BaseException:
            await self.end()
            raise

    @property
    def is_open(self) -> bool:
        """Whether pages can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, job: _Job) -> None:
        """Queue a page; the clock of an idle worker starts to run."""
        assert self._transport
        self.jobs.append(job)
        if len(self.jobs) == 1:
            self._set_deadline()
        body, url, charset = job.task
        address = f"{charset or ''} {url}".encode("utf-8", "replace")
        self._transport.write(b"".join((TASK.pack(len(address), len(body)), address, body)))

    async def end(self) -> None:
        """Kill the process and reap it."""
        self._stop_clock()
        if self._transport:
            self._transport.abort()
        self.process.kill()
        await self._loop.run_in_executor(None, self.process.wait)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the loop reads to; at least half of the usual buffer is free."""
        if len(self._buffer) - self._filled < _BUFFER_BYTES // 2:
            self._buffer = self._buffer[: self._filled] + bytearray(max(_BUFFER_BYTES, self._filled))
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Take out the answers that are complete; what is left of the next one moves to the front."""
        if self._is_distrusted:
            return
        self._filled += nbytes
        start, answers = 0, []
        with memoryview(self._buffer) as view:
            while start + ANSWER.size <= self._filled:
                length, kind = ANSWER.unpack_from(view, start)
                end = start + ANSWER.size + length
                if end > self._filled:
                    break
                try:
                    answers.append((kind, read_page(view[start + ANSWER.size : end])))
                except Exception as error:  # whatever pickle raises: a page may have taken the worker over
                    self._distrust(error)
                    break
                start = end
            if start:
                view[: self._filled - start] = view[start : self._filled]
                self._filled -= start
        if not self._filled and len(self._buffer) > _BUFFER_BYTES:
            self._buffer = bytearray(_BUFFER_BYTES)
        for kind, value in answers:
            self._answer(kind, value)

    def _distrust(self, error: Exception) -> None:
        """Listen no more; the page that it is at is the guilty one."""
        self._is_distrusted, self._reason = True, f"the text worker sent what is no page ({error})"
        if self._transport:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self._read_rest()
        if not self._ready.done():
            self._ready.set_exception(DiedEarly())
        else:
            self._pool.lost(self, self._reason)

    def _read_rest(self) -> None:
        """A write that fails ends the connection before the answers sent until then were read: their
        pages are done, and the first without an answer is the guilty one."""
        assert self._spare
        with self._spare as spare, contextlib.suppress(OSError):
            while number := spare.recv_into(self.get_buffer(-1)):
                self.buffer_updated(number)

    def _answer(self, kind: int, value: Any) -> None:
        if not self._ready.done():
            if kind == READY:
                self._ready.set_result(None)
            else:
                self._ready.set_exception(SpiderlingError(str(value)))
            return
        job = self.jobs.popleft()
        if self.jobs:
            self._set_deadline()
        if not job.future.done():
            if kind & ~WORN == PAGE:
                job.future.set_result(value)
            else:
                job.future.set_exception(WorkerCrash(f"{value} while processing {job.task.url}"))
        if kind & WORN and not self._is_worn:
            self._is_worn = True
            self._pool.worn(self)
        self._pool.dispatch()

    def _set_deadline(self) -> None:
        """The clock of the oldest page begins; one timer is enough for all pages, it looks again when it is due."""
        self._deadline = self._running.now() + self._page_timeout_s
        if self._timer is None:
            self._timer = self._loop.call_later(self._page_timeout_s, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        left_s = self._deadline - self._running.now()
        if self.jobs and left_s > 0:
            self._timer = self._loop.call_later(left_s, self._check_deadline)
        elif self.jobs:
            self._reason = f"the page took longer than {self._page_timeout_s:g} s"
            self.process.kill()  # the closed socket then reports the loss

    def _stop_clock(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None


def _popen(sock: socket.socket) -> subprocess.Popen[bytes]:
    """The same interpreter with the same import path; one thread of numpy each."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "spiderling.workers.process", str(sock.fileno())]
    # a session of its own: Ctrl-C in the terminal is not for the workers
    return subprocess.Popen(
        command, env=environment, pass_fds=(sock.fileno(),), stdin=subprocess.DEVNULL, start_new_session=True
    )
