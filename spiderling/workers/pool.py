"""The pool of text workers: processes that run ``text/`` away from the event loop.

The pool gives each page to the worker with the shortest queue (worker.py is the parent's side of one worker,
process.py its inside).  When a worker dies or hangs, only the page that it was at can be to blame: the pages queued
behind that one go to other workers.  concurrent.futures.ProcessPoolExecutor loses every queued page when one page
kills its worker, and takes 150 to 220 us of the event loop a page against 40 (measured).

A worker that has done its share of pages, or has grown, says so with an answer, and works on until a fresh one is
ready.  So a leak of memory is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from spiderling.base.errors import SpiderlingError
from spiderling.text import Page
from spiderling.text.listing import Listing, unpacked
from spiderling.workers.process import DiedEarly, Task, WorkerConfig, text_process
from spiderling.workers.worker import Job, Worker, WorkerCrash

__all__ = ["Task", "WorkerConfig", "WorkerCrash", "WorkerPool", "text_process"]

QUEUED_PER_WORKER = 3
"""Pages that a worker may hold, the one in work among them; chosen: it never waits for the event loop."""
_MAX_FAILED_STARTS = 3
"""Failed starts in a row after which waiting pages fail; also the tries of `WorkerPool.start`; chosen."""
_MAX_PAUSE_S = 60.0
"""Longest pause, in seconds, between two attempts to start a worker; chosen."""


class WorkerPool:
    """A fixed number of workers; every method belongs to one event loop."""

    def __init__(self, size: int, config: WorkerConfig, page_timeout_s: float) -> None:
        self._size = size
        self._config = config
        self._page_timeout_s = page_timeout_s
        self._workers: list[Worker] = []
        self._leaving: list[Worker] = []
        self._waiting: deque[Job] = deque()
        self._failed_starts = 0
        self._stopped = False
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
        """Start all workers and return when they are ready; pages handed in before wait.

        Raises SpiderlingError with a worker's message when it cannot be started; the waiting pages fail with it too.
        """
        launches = [asyncio.ensure_future(self._launch(_MAX_FAILED_STARTS)) for _ in range(self._size)]
        try:
            await asyncio.wait(launches)
        except asyncio.CancelledError:
            for launch in launches:
                launch.cancel()  # has no effect on one that is over, whose worker `stop` must know of
            await asyncio.wait(launches)
            raise
        finally:
            over = [launch for launch in launches if launch.done() and not launch.cancelled()]
            self._workers = [launch.result() for launch in over if launch.exception() is None]
        failed = [error for launch in over if (error := launch.exception()) is not None]
        if failed:
            self._fail_waiting(failed[0])
            await self.stop()
            raise failed[0]
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
            return unpacked(packed)
        except ValueError as error:
            raise WorkerCrash(f"{error} while processing {url}") from None

    async def stop(self) -> None:
        """End all workers; pages still in work are cancelled."""
        self._stopped = True
        tasks = self._tasks - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        workers = [*self._workers, *self._leaving]
        for job in [*self._waiting, *(job for worker in workers for job in worker.jobs)]:
            job.future.cancel()
        self._waiting.clear()
        self._workers = []
        self._leaving = []
        await asyncio.gather(*(worker.kill() for worker in workers))

    async def _launch(self, tries: int = 1) -> Worker:
        """A worker that is ready; *tries* starts, since somebody may kill one that starts."""
        for _ in range(tries - 1):
            with contextlib.suppress(DiedEarly):
                return await self._launch()
        worker = Worker(self._config, self._page_timeout_s, self)
        await worker.start()
        return worker

    def dispatch(self) -> None:
        """Part of `Owner`: give waiting pages to the workers with the shortest queues, and end idle leaving workers."""
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
        if self._leaving:
            for idle in [worker for worker in self._leaving if not worker.jobs]:
                self._leaving.remove(idle)
                self._spawn(idle.kill())

    def worker_lost(self, worker: Worker, reason: str) -> None:
        """Part of `Owner`: replace the worker; blame its first page, queue its others before all waiting pages."""
        if worker in self._workers:
            self._workers.remove(worker)
            self._spawn(self._replace())
        elif worker in self._leaving:
            self._leaving.remove(worker)
        else:
            return
        jobs = list(worker.jobs)
        worker.jobs.clear()
        self._spawn(self._convict(worker, reason, jobs[:1]))
        self._waiting.extendleft(reversed(jobs[1:]))
        self.dispatch()

    def worker_worn(self, worker: Worker) -> None:
        """Part of `Owner`: start a replacement."""
        self._spawn(self._replace(worker))

    async def _convict(self, worker: Worker, reason: str, guilty: list[Job]) -> None:
        """Reap the process, whose exit status tells what ended it; then fail the *guilty* pages.

        SIGKILL proves little: a person may have sent it, the kernel for want of memory, or this process because the
        page took too long on a busy machine.  So it convicts a page only when it happens to the page a second time.
        """
        try:
            await worker.kill()
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

    async def _replace(self, worn: Worker | None = None) -> None:
        """Start a worker, in place of a *worn* one if given; when starts keep failing, fail the waiting pages."""
        while not self._stopped:
            try:
                fresh = await self._launch()
            except (SpiderlingError, OSError) as error:
                self._failed_starts += 1
                if self._failed_starts >= _MAX_FAILED_STARTS and not self._workers:
                    self._fail_waiting(SpiderlingError(f"no text worker can be started: {error}"))
                await asyncio.sleep(min(_MAX_PAUSE_S, 0.1 * 2**self._failed_starts))
            else:
                self._failed_starts = 0
                self._add_worker(fresh, worn)
                return

    def _add_worker(self, fresh: Worker, worn: Worker | None) -> None:
        if worn is None or worn in self._workers:
            self._workers.append(fresh)
        else:  # the worn one was lost in the meantime, which has started a replacement already
            self._spawn(fresh.kill())
        if worn in self._workers:
            self._workers.remove(worn)
            self._leaving.append(worn)
        self.dispatch()

    def _fail_waiting(self, error: BaseException) -> None:
        while self._waiting:
            job = self._waiting.popleft()
            if not job.future.done():
                job.future.set_exception(error)

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
