"""Text workers: processes that run ``text/`` away from the event loop.

Each worker is ``python -m spiderling.workers FD`` on one end of a socket pair.  The
parent writes frames (length of the address part, length of the body, both parts);
the worker answers each, in order, with one frame (length, kind, pickled value), so
no numbers are needed: the oldest unanswered page is the one in work.  Therefore a
worker that dies or hangs convicts exactly that page; those queued behind it are
given to others.  Measured at a third of the cost of ProcessPoolExecutor, which
loses every queued page when one kills its worker (docs/sources.md).

A worker ends when its socket does, so it does not outlive a killed parent; it
ignores SIGINT and SIGTERM, because the parent still waits for its pages then.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import pickle
import resource
import signal
import socket
import struct
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from spiderling.errors import SpiderlingError

if TYPE_CHECKING:
    from collections.abc import Callable

    from spiderling.text import Page, TextOptions

QUEUED_PER_WORKER = 3
START_TIMEOUT_S = 60.0
_MAX_FAILED_STARTS = 3
_TASK = struct.Struct("!II")
_ANSWER = struct.Struct("!IB")
_READY, _PAGE, _ERROR = range(3)


class WorkerCrash(SpiderlingError):
    """The page killed its worker, took too long, or its processing raised an exception."""


class Task(NamedTuple):
    """A page to be processed."""

    body: bytes
    url: str
    http_charset: str | None = None


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What a worker needs to know; must be pickle-able."""

    options: TextOptions
    recognise: tuple[str, ...]
    """Codes of all languages to be told apart, the accepted ones among them."""
    models: str = ""
    """The option SPIDERLING_MODELS."""
    memory_bytes: int = 2_000_000_000
    """Address space of one worker."""
    process: str = "spiderling.workers:text_process"
    """module:function that makes a Page of a Task from this value: function(config) -> Callable[[Task], Page]."""


@dataclass(slots=True, eq=False)
class _Job:
    task: Task
    future: asyncio.Future[Page]


class WorkerPool:
    """A fixed number of workers; every method belongs to one event loop."""

    def __init__(self, size: int, config: WorkerConfig, page_timeout_s: float) -> None:
        self._size = size
        self._config = config
        self._page_timeout_s = page_timeout_s
        self._workers: list[_Worker] = []
        self._waiting: deque[_Job] = deque()
        self._failed_starts = 0
        self._closed = False
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def pids(self) -> list[int]:
        """Process ids of the running workers."""
        return [worker.process.pid for worker in self._workers]

    @property
    def queued(self) -> int:
        """Pages handed in and not yet done."""
        return len(self._waiting) + sum(len(worker.jobs) for worker in self._workers)

    async def start(self) -> None:
        """Return when all workers are ready; raises SpiderlingError with the worker's message when one cannot be."""
        workers = await asyncio.gather(*(self._launch() for _ in range(self._size)), return_exceptions=True)
        self._workers = [worker for worker in workers if isinstance(worker, _Worker)]
        failed = [error for error in workers if isinstance(error, BaseException)]
        if failed:
            await self.close()
            raise failed[0]

    async def process(self, task: Task) -> Page:
        """The Page of *task*; raises WorkerCrash when the page could not be processed."""
        if self._closed:
            raise SpiderlingError("the text workers are closed.")
        job = _Job(task, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        self._dispatch()
        return await job.future

    async def close(self) -> None:
        """End all workers; pages still in work are cancelled."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for job in [*self._waiting, *(job for worker in self._workers for job in worker.jobs)]:
            job.future.cancel()
        self._waiting.clear()
        workers, self._workers = self._workers, []
        await asyncio.gather(*(worker.end() for worker in workers))

    async def _launch(self) -> _Worker:
        worker = _Worker(self._config, self._page_timeout_s, self._lost, self._dispatch)
        await worker.start()
        return worker

    def _dispatch(self) -> None:
        """Give waiting pages to the workers with the shortest queues."""
        while self._waiting:
            able = [worker for worker in self._workers if worker.is_open and len(worker.jobs) < QUEUED_PER_WORKER]
            if not able:
                return
            worker = min(able, key=lambda worker: len(worker.jobs))
            job = self._waiting.popleft()
            if not job.future.done():  # its caller may have been cancelled
                worker.send(job)

    def _lost(self, worker: _Worker, reason: str) -> None:
        """A worker is gone: its first page is guilty, the others are done again, first of all."""
        if worker not in self._workers:
            return
        self._workers.remove(worker)
        worker.process.kill()  # it may have closed its socket only
        jobs, worker.jobs = list(worker.jobs), deque()
        if jobs and not jobs[0].future.done():
            jobs[0].future.set_exception(WorkerCrash(f"{reason} while processing {jobs[0].task.url}"))
        self._waiting.extendleft(reversed(jobs[1:]))
        self._spawn(worker.end())
        self._spawn(self._replace())
        self._dispatch()

    async def _replace(self) -> None:
        """Start another worker; after some failures in a row, waiting pages are told why there is none."""
        while not self._closed:
            try:
                self._workers.append(await self._launch())
            except (SpiderlingError, OSError) as error:
                self._failed_starts += 1
                if self._failed_starts >= _MAX_FAILED_STARTS and not self._workers:
                    self._give_up(SpiderlingError(f"no text worker can be started: {error}"))
                await asyncio.sleep(min(60.0, 0.1 * 2**self._failed_starts))
            else:
                self._failed_starts = 0
                self._dispatch()
                return

    def _give_up(self, error: SpiderlingError) -> None:
        jobs = list(self._waiting)
        self._waiting.clear()
        for job in jobs:
            if not job.future.done():
                job.future.set_exception(error)

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Worker(asyncio.Protocol):
    """The parent's side of one worker process."""

    process: subprocess.Popen[bytes]

    def __init__(
        self,
        config: WorkerConfig,
        page_timeout_s: float,
        lost: Callable[[_Worker, str], None],
        idle: Callable[[], None],
    ) -> None:
        self.jobs: deque[_Job] = deque()
        self._config = config
        self._page_timeout_s = page_timeout_s
        self._lost = lost
        self._idle = idle
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._spare: socket.socket | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._reason = "the text worker died"
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()

    async def start(self) -> None:
        """Start the process and wait until its models are loaded."""
        ours, theirs = socket.socketpair()
        with theirs:
            self.process = _popen(theirs)
        ours.setblocking(False)
        self._spare = ours.dup()
        await self._loop.create_unix_connection(lambda: self, sock=ours)
        assert self._transport
        setup = pickle.dumps(self._config, 5)
        self._transport.write(_TASK.pack(len(setup), 0) + setup)
        try:
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
            self._restart_clock()
        address = f"{job.task.http_charset or ''} {job.task.url}".encode("utf-8", "replace")
        self._transport.write(b"".join((_TASK.pack(len(address), len(job.task.body)), address, job.task.body)))

    async def end(self) -> None:
        """Kill the process and reap it."""
        self._stop_clock()
        if self._transport:
            self._transport.abort()
        self.process.kill()
        await self._loop.run_in_executor(None, self.process.wait)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= _ANSWER.size:
            length, kind = _ANSWER.unpack_from(self._buffer)
            end = _ANSWER.size + length
            if len(self._buffer) < end:
                return
            with memoryview(self._buffer) as view:
                value = pickle.loads(view[_ANSWER.size : end])  # from our own process
            del self._buffer[:end]
            self._answer(kind, value)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self._read_rest()
        if not self._ready.done():
            self._ready.set_exception(SpiderlingError("a text worker died while it started; its messages are above."))
        else:
            self._lost(self, self._reason)

    def _read_rest(self) -> None:
        """A write that fails ends the connection before the answers sent until then were read: their
        pages are done, and the first without an answer is the guilty one."""
        assert self._spare
        with self._spare as spare, contextlib.suppress(OSError):
            while data := spare.recv(1 << 18):
                self.data_received(data)

    def _answer(self, kind: int, value: Any) -> None:
        if not self._ready.done():
            if kind == _READY:
                self._ready.set_result(None)
            else:
                self._ready.set_exception(SpiderlingError(str(value)))
            return
        job = self.jobs.popleft()
        self._stop_clock()
        if self.jobs and self.is_open:
            self._restart_clock()
        if kind == _PAGE and not job.future.done():
            job.future.set_result(value)
        elif not job.future.done():
            job.future.set_exception(WorkerCrash(f"{value} while processing {job.task.url}"))
        self._idle()

    def _restart_clock(self) -> None:
        self._stop_clock()
        self._timer = self._loop.call_later(self._page_timeout_s, self._overdue)

    def _stop_clock(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None

    def _overdue(self) -> None:
        self._reason = f"the page took longer than {self._page_timeout_s:g} s"
        self.process.kill()  # the closed socket then reports the loss


def _popen(sock: socket.socket) -> subprocess.Popen[bytes]:
    """The same interpreter with the same import path; one thread of numpy each."""
    path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "spiderling.workers", str(sock.fileno())]
    # a session of its own: Ctrl-C in the terminal is not for the workers
    return subprocess.Popen(
        command, env=environment, pass_fds=(sock.fileno(),), stdin=subprocess.DEVNULL, start_new_session=True
    )


def text_process(config: WorkerConfig) -> Callable[[Task], Page]:
    """The stock work of a worker: `spiderling.text.process` with the models loaded."""
    from spiderling.languages import load
    from spiderling.text import process

    models = load(config.recognise, config.models)
    models.warm_up()

    def work(task: Task) -> Page:
        return process(task.body, url=task.url, http_charset=task.http_charset, models=models, options=config.options)

    return work


def main(fd: int) -> None:
    """A worker's life: configuration, then one page after another until the socket ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with socket.socket(fileno=fd) as sock, sock.makefile("rwb", 1 << 20) as stream, contextlib.suppress(OSError):
        setup = _receive(stream)
        if setup is None:
            return
        try:
            config = pickle.loads(setup[0])
            resource.setrlimit(resource.RLIMIT_AS, (config.memory_bytes, config.memory_bytes))
            work = _function(config.process)(config)
        except Exception as error:
            _send(stream, _ERROR, str(error) or repr(error))
            return
        gc.freeze()  # models and modules live as long as the worker
        _send(stream, _READY, None)
        while (frame := _receive(stream)) is not None:
            _send(stream, *_attempt(work, *frame))


def _attempt(work: Callable[[Task], Page], address: bytes, body: bytes) -> tuple[int, Any]:
    """The page, or the exception's name: no page may end a worker that can go on."""
    charset, _, url = address.decode("utf-8").partition(" ")
    try:
        return _PAGE, work(Task(body, url, charset or None))
    except Exception as error:
        return _ERROR, f"{type(error).__name__}: {error}"


def _receive(stream: Any) -> tuple[bytes, bytes] | None:
    """One frame; None at the end of the socket."""
    head = stream.read(_TASK.size)
    if len(head) < _TASK.size:
        return None
    first, second = _TASK.unpack(head)
    address, body = stream.read(first), stream.read(second)
    return (address, body) if len(address) + len(body) == first + second else None


def _send(stream: Any, kind: int, value: Any) -> None:
    data = pickle.dumps(value, 5)
    stream.write(_ANSWER.pack(len(data), kind) + data)
    stream.flush()


def _function(name: str) -> Callable[[WorkerConfig], Callable[[Task], Page]]:
    module, _, function = name.partition(":")
    return cast("Callable[[WorkerConfig], Callable[[Task], Page]]", getattr(import_module(module), function))


if __name__ == "__main__":
    from spiderling import workers  # the module under its own name, which the pickles use

    workers.main(int(sys.argv[1]))
