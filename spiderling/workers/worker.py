"""The parent's side of one text worker: it starts the process, sends pages, reads answers and watches the time.

A worker answers its pages in order, so the oldest unanswered page is the one in work.  process.py is the other side.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import socket
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol, cast

from spiderling.base.errors import SpiderlingError
from spiderling.base.machine import running_time
from spiderling.text import Page
from spiderling.text.unpickling import read_page
from spiderling.workers.process import ANSWER, PAGE, READY, TASK, WORN, DiedEarly, Task, WorkerConfig

_START_TIMEOUT_S = 60.0
"""Seconds in which a worker must have loaded its models; chosen: loading takes about a second on an idle machine."""
_BUFFER_BYTES = 1 << 18
"""Bytes of a worker's answers that are read at once; chosen: more than the answer to most pages."""


class WorkerCrash(SpiderlingError):
    """The page killed its worker, took too long, or its processing raised an exception."""


@dataclass(slots=True, eq=False)
class Job:
    """A page that waits for its result, and the future that gets it."""

    task: Task
    future: asyncio.Future[Page]
    retried: bool = False
    """Whether a worker was killed while it worked on this page."""


class Owner(Protocol):
    """Is told what happens to a worker; the pool is one."""

    def dispatch(self) -> None:
        """A worker can take another page."""

    def worker_worn(self, worker: Worker) -> None:
        """The worker asks to be replaced; it goes on until the fresh one is ready."""

    def worker_lost(self, worker: Worker, reason: str) -> None:
        """The worker's process is gone; *reason* begins the message about its first page."""


class Worker(asyncio.BufferedProtocol):
    """The parent's side of one worker process."""

    process: subprocess.Popen[bytes]

    def __init__(self, config: WorkerConfig, page_timeout_s: float, owner: Owner) -> None:
        self.jobs: deque[Job] = deque()
        self._config = config
        self._page_timeout_s = page_timeout_s
        self._owner = owner
        self._buffer = bytearray(_BUFFER_BYTES)  # answers as they arrive
        self._filled = 0
        self._transport: asyncio.Transport | None = None
        self._spare: socket.socket | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._is_worn = False
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
            setup = pickle.dumps(self._config, 5)
            self._transport.write(TASK.pack(len(setup), 0, False) + setup)
            await asyncio.wait_for(self._ready, _START_TIMEOUT_S)
        except TimeoutError:
            await self.kill()
            raise SpiderlingError(f"a text worker was not ready within {_START_TIMEOUT_S:.0f} s.") from None
        except BaseException:
            await self.kill()
            raise

    @property
    def is_open(self) -> bool:
        """Whether pages can be sent."""
        return self._transport is not None and not self._transport.is_closing()

    def send(self, job: Job) -> None:
        """Queue a page; if the worker was idle, the page's time begins now."""
        assert self._transport
        self.jobs.append(job)
        if len(self.jobs) == 1:
            self._set_deadline()
        body, url, charset, refresh, is_listing = job.task
        address = f"{charset or ''}\n{refresh}\n{url}".encode("utf-8", "replace")
        self._transport.write(b"".join((TASK.pack(len(address), len(body), is_listing), address, body)))

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
        """Part of the protocol: the free part of the buffer, at least half of the usual size."""
        if len(self._buffer) - self._filled < _BUFFER_BYTES // 2:
            self._buffer = self._buffer[: self._filled] + bytearray(max(_BUFFER_BYTES, self._filled))
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Part of the protocol: take out the complete answers, and move the rest to the front of the buffer."""
        if self._is_distrusted:
            return
        self._filled += nbytes
        start = 0
        answers = []
        with memoryview(self._buffer) as view:
            while start + ANSWER.size <= self._filled:
                length, kind = ANSWER.unpack_from(view, start)
                end = start + ANSWER.size + length
                if end > self._filled:
                    break
                try:
                    answers.append((kind, read_page(view[start + ANSWER.size : end])))
                except Exception as error:  # whatever pickle raises: a page may have taken the worker over
                    # nothing more is read from it; the page that it is at is the guilty one
                    self._is_distrusted = True
                    self._reason = f"the text worker sent what is no page ({error})"
                    if self._transport:
                        self._transport.abort()
                    break
                start = end
            if start:
                view[: self._filled - start] = view[start : self._filled]
                self._filled -= start
        if not self._filled and len(self._buffer) > _BUFFER_BYTES:
            self._buffer = bytearray(_BUFFER_BYTES)
        for kind, value in answers:
            self._answer(kind, value)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self._read_rest()
        if not self._ready.done():
            self._ready.set_exception(DiedEarly())
        else:
            self._owner.worker_lost(self, self._reason)

    def _read_rest(self) -> None:
        """Read the answers that still lie in the socket: a failed write ends the connection before they are read.

        Their pages are done; the first page without an answer is the guilty one.
        """
        assert self._spare
        with self._spare as spare, contextlib.suppress(OSError):
            while number := spare.recv_into(self.get_buffer(-1)):
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
        if kind & WORN and not self._is_worn:
            self._is_worn = True
            self._owner.worker_worn(self)
        self._owner.dispatch()

    def _set_deadline(self) -> None:
        """Begin the time of the oldest page.  One timer serves all pages: it looks at the deadline when it is due."""
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
