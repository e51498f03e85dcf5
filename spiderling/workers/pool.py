"""The pool of text workers: processes that run ``text/`` away from the event loop.

The pool gives each page to the worker with the shortest queue.  A `Worker` is the parent's side of one worker: it
starts the process (process.py), sends pages, reads answers and watches the time.  A worker answers its pages in order,
so the oldest unanswered page is the one in work.  When a worker dies or hangs, only that page can be to blame (after
SIGKILL, which may not be its fault, it is tried once more): the pages queued behind it go to other workers.
concurrent.futures.ProcessPoolExecutor loses every queued page when one page kills its worker, and takes 150 to 220 us
of the event loop a page against 40 (measured).

A worker that has done its share of pages, or has grown, says so with an answer, and is replaced.  So a leak of memory
is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, cast

from spiderling.base.errors import SpiderlingError
from spiderling.base.machine import running_time
from spiderling.text import Page
from spiderling.text.listing import Listing, unpack
from spiderling.text.page import read_page
from spiderling.workers.process import FRAME, PAGE, READY, WORN, DiedEarly, Task, WorkerConfig, frame, text_process

_START_TIMEOUT_S = 60.0
"""Seconds in which a worker must have loaded its models; chosen: loading takes about a second on an idle machine."""
_READ_BYTES = 1 << 18  # bytes of a worker's answers that are read at once; chosen: more than the answer to most pages


class WorkerCrash(SpiderlingError):
    """The page killed its worker, took too long, or its processing raised an exception."""


@dataclass(slots=True, eq=False)
class Job:
    """A page that waits for its result, and the future that gets it."""

    task: Task
    future: asyncio.Future[Page]
    retried: bool = False  # whether a worker was killed while it worked on this page


class Worker(asyncio.BufferedProtocol):
    """The parent's side of one worker process."""

    process: subprocess.Popen[bytes]

    def __init__(self, pool: WorkerPool) -> None:
        self.jobs: deque[Job] = deque()
        self._pool = pool
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._received = bytearray()  # answers as they arrive
        self._transport: asyncio.Transport | None = None
        self._spare: socket.socket | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self.is_worn = False  # whether it has said that it is; then it is to be replaced, and no page is to blame
        self._is_distrusted = False
        self._reason = "the text worker died"
        self._loop = asyncio.get_running_loop()
        self._running = running_time()
        self._ready: asyncio.Future[None] = self._loop.create_future()

    async def start(self) -> None:
        """Start the process and wait until its models are loaded."""
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = start_process(theirs)
        ours.setblocking(False)
        self._spare = ours.dup()
        try:
            await self._loop.create_unix_connection(lambda: self, sock=ours)
            assert self._transport
            self._transport.write(frame(READY, self._pool.config))
            async with asyncio.timeout(_START_TIMEOUT_S):
                await self._ready
        except TimeoutError:
            await self.kill()
            raise SpiderlingError(f"a text worker was not ready within {_START_TIMEOUT_S:.0f} s.") from None
        except BaseException:
            await self.kill()
            raise

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def send(self, job: Job) -> None:
        """Queue a page; if the worker was idle, the page's time begins now."""
        assert self._transport
        self.jobs.append(job)
        if len(self.jobs) == 1:
            self._set_deadline()
        self._transport.write(frame(PAGE, job.task))

    async def kill(self) -> None:
        """Kill the process and reap it."""
        self._stop_clock()
        if self._transport:
            self._transport.abort()
        self.process.kill()
        await self._loop.run_in_executor(None, self.process.wait)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Part of the protocol: take out the complete answers."""
        if self._is_distrusted:
            return
        self._received += self._buffer[:nbytes]
        start = 0
        answers = []
        with memoryview(self._received) as view:
            while start + FRAME.size <= len(view):
                length, kind = FRAME.unpack_from(view, start)
                end = start + FRAME.size + length
                if end > len(view):
                    break
                try:
                    answers.append((kind, read_page(view[start + FRAME.size : end])))
                except Exception as error:  # whatever pickle raises: a page may have taken the worker over
                    # nothing more is read from it; the page that it is at is the guilty one
                    self._is_distrusted = True
                    self._reason = f"the text worker sent what is no page ({error})"
                    if self._transport:
                        self._transport.abort()
                    break
                start = end
        del self._received[:start]
        for kind, value in answers:
            self._answer(kind, value)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self._read_rest()
        if not self._ready.done():
            self._ready.set_exception(DiedEarly())
        else:
            self._pool.worker_lost(self, self._reason)

    def _read_rest(self) -> None:
        """Read the answers that still lie in the socket: a failed write ends the connection before they are read.

        Their pages are done; the first page without an answer is the guilty one.
        """
        assert self._spare
        with self._spare as spare, contextlib.suppress(OSError):
            while number := spare.recv_into(self._buffer):
                self.buffer_updated(number)

    def _answer(self, kind: int, value: Any) -> None:
        if self._ready.cancelled():  # the pool is stopped, and waits for this worker no longer
            return
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
        if kind & WORN and self._transport:
            self.is_worn = True
            self._transport.abort()
        self._pool.dispatch()

    def _set_deadline(self) -> None:
        """Begin the time of the oldest page.  One timer serves all pages: it looks at the deadline when it is due."""
        self._deadline = self._running.now() + self._pool.page_timeout_s
        if self._timer is None:
            self._timer = self._loop.call_later(self._pool.page_timeout_s, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        left_s = self._deadline - self._running.now()
        if self.jobs and left_s > 0:
            self._timer = self._loop.call_later(left_s, self._check_deadline)
        elif self.jobs:
            self._reason = f"the page took longer than {self._pool.page_timeout_s:g} s"
            self.process.kill()  # the closed socket then reports the loss

    def _stop_clock(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None


def start_process(sock: socket.socket) -> subprocess.Popen[bytes]:
    """Start a worker that talks over *sock*, with this interpreter and import path, and one thread of numpy."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    environment["PYTHONSAFEPATH"] = "1"  # a spiderling in the working directory may be another one
    command = [sys.executable, "-m", "spiderling.workers.process", str(sock.fileno())]
    # a session of its own: Ctrl-C in the terminal is not for the workers
    return subprocess.Popen(
        command, env=environment, pass_fds=(sock.fileno(),), stdin=subprocess.DEVNULL, start_new_session=True
    )


__all__ = ["Task", "WorkerConfig", "WorkerCrash", "WorkerPool", "text_process"]

QUEUED_PER_WORKER = 3  # pages that a worker may hold, with the one in work; chosen: it never waits for the event loop
_MAX_FAILED_STARTS = 3  # failed starts in a row after which waiting pages fail; also the tries of `start`; chosen
_MAX_PAUSE_S = 60.0  # longest pause, in seconds, between two attempts to start a worker; chosen


class WorkerPool:
    """A fixed number of workers; every method belongs to one event loop."""

    def __init__(self, size: int, config: WorkerConfig, page_timeout_s: float) -> None:
        self._size = size
        self.config = config
        self.page_timeout_s = page_timeout_s
        self._workers: list[Worker] = []
        self._waiting: deque[Job] = deque()
        self._failed_starts = 0
        self._stopped = False
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def pids(self) -> list[int]:
        return [worker.process.pid for worker in self._workers]

    @property
    def queued(self) -> int:
        """Pages handed in and not yet done."""
        return len(self._waiting) + sum(len(worker.jobs) for worker in self._workers)

    async def start(self) -> None:
        """Start all workers; pages handed in before wait.  If one cannot start, raises SpiderlingError, as they do."""
        launches = (self._launch(_MAX_FAILED_STARTS) for _ in range(self._size))
        found = await asyncio.gather(*launches, return_exceptions=True)
        failed = next((error for error in found if isinstance(error, BaseException)), None)
        if failed is not None:
            await self.stop(failed)
            raise failed
        self.dispatch()

    def start_in_background(self, failed: Callable[[SpiderlingError], object]) -> None:
        """`start` in the background; *failed* is called with its error."""

        async def start() -> None:
            try:
                await self.start()
            except SpiderlingError as error:
                failed(error)

        self._spawn(start())

    async def process(self, task: Task) -> Page:
        """The Page of *task*; raises WorkerCrash when the page could not be processed."""
        if self._stopped:
            raise SpiderlingError("the text workers are closed.")
        job = Job(task, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self.dispatch()
        return await job.future

    async def read_listing(self, body: bytes, url: str) -> Listing:
        """What the sitemap or feed in *body* lists; raises WorkerCrash when it could not be read."""
        packed: Any = await self.process(Task(body, url, is_listing=True))
        try:
            return unpack(packed)
        except ValueError as error:
            raise WorkerCrash(f"{error} while processing {url}") from None

    async def stop(self, error: BaseException | None = None) -> None:
        """End all workers; pages still in work are cancelled, or end with *error*."""
        self._stopped = True
        tasks = self._tasks - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        workers = self._workers
        for job in [*self._waiting, *(job for worker in workers for job in worker.jobs)]:
            if error is None:
                job.future.cancel()
            elif not job.future.done():
                job.future.set_exception(error)
        self._waiting.clear()
        self._workers = []
        await asyncio.gather(*(worker.kill() for worker in workers))

    async def _launch(self, tries: int = 1) -> Worker:
        """A worker that is ready, as one of the pool's; *tries* starts, since somebody may kill one that starts."""
        for _ in range(tries - 1):
            with contextlib.suppress(DiedEarly):
                return await self._launch()
        worker = Worker(self)
        await worker.start()
        self._workers.append(worker)
        return worker

    def dispatch(self) -> None:
        """Give waiting pages to the workers with the shortest queues."""
        while self._waiting:
            shortest = QUEUED_PER_WORKER
            worker = None
            for one in self._workers:
                if len(one.jobs) < shortest and one.is_open:
                    shortest = len(one.jobs)
                    worker = one
            if worker is None:
                break
            job = self._waiting.popleft()
            if not job.future.done():  # its caller may have been cancelled
                worker.send(job)

    def worker_lost(self, worker: Worker, reason: str) -> None:
        """A process is gone: replace it; blame its first page, unless it was worn, and queue its others first."""
        if worker not in self._workers:
            return
        self._workers.remove(worker)
        self._spawn(self._replace())
        jobs = list(worker.jobs)
        worker.jobs.clear()
        guilty = 0 if worker.is_worn else 1
        self._spawn(self._convict(worker, reason, jobs[:guilty]))
        self._waiting.extendleft(reversed(jobs[guilty:]))
        self.dispatch()

    async def _convict(self, worker: Worker, reason: str, guilty: list[Job]) -> None:
        """Reap the process, whose exit status tells what ended it; then fail the *guilty* pages.

        SIGKILL proves little: a person may have sent it, the kernel for want of memory, or this process because the
        page took too long on a busy machine.  So it convicts a page only when it happens to the page a second time.
        """
        try:
            await worker.kill()
        finally:
            if worker.process.returncode == -signal.SIGPROF:
                reason = f"the page used more than {self.config.page_cpu_s:g} s of processor time"
            for job in guilty:
                if worker.process.returncode == -signal.SIGKILL and not job.retried:
                    job.retried = True
                    self._waiting.appendleft(job)
                elif not job.future.done():
                    job.future.set_exception(WorkerCrash(f"{reason} while processing {job.task.url}"))
            self.dispatch()

    async def _replace(self) -> None:
        """Start a worker; when starts keep failing, fail the waiting pages."""
        while not self._stopped:
            try:
                await self._launch()
            except (SpiderlingError, OSError) as error:
                self._failed_starts += 1
                if self._failed_starts >= _MAX_FAILED_STARTS and not self._workers:
                    self._fail_waiting(SpiderlingError(f"no text worker can be started: {error}"))
                await asyncio.sleep(min(_MAX_PAUSE_S, 0.1 * 2**self._failed_starts))
            else:
                self._failed_starts = 0
                self.dispatch()
                return

    def _fail_waiting(self, error: BaseException) -> None:
        while self._waiting:
            job = self._waiting.popleft()
            if not job.future.done():
                job.future.set_exception(error)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
