"""Text workers: a page costs only itself, whatever it does to its worker."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from conftest import DEADLINE_S, forks
from example_counts import PROFILE
from forked import Forked
from needs import needs

from spiderling.base import machine
from spiderling.base.errors import SpiderlingError
from spiderling.text import TextOptions
from spiderling.workers import pool as pool_module
from spiderling.workers.pool import QUEUED_PER_WORKER, Task, Worker, WorkerConfig, WorkerCrash, WorkerPool
from spiderling.workers.process import READY, frame

HERE = Path(__file__).parent
OPTIONS = TextOptions(("cs",))
FAKE = WorkerConfig(OPTIONS, ("cs",), process="made_workers:obedient")


def start_forked(sock: socket.socket) -> Forked:
    """A worker that is forked from a process which has imported everything: that saves 0.3 s of processor time."""
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    with open(os.devnull, "wb") as nothing:
        return forks().start([], HERE, environment, (sock, nothing, sys.stderr), "made_workers")


@pytest.fixture
def few_are_fresh(monkeypatch):
    if PROFILE == "few":
        monkeypatch.setattr(pool_module, "start_process", start_forked)


forked = pytest.mark.usefixtures("few_are_fresh")


@asynccontextmanager
async def working(workers=1, page_timeout_s=10.0, **changed):
    """A pool at work; *changed*: of what its workers are told."""
    pool = WorkerPool(workers, dataclasses.replace(FAKE, **changed), page_timeout_s)
    await pool.start()
    yield pool
    await pool.stop()


@pytest.fixture
async def pool(few_are_fresh):
    async with working(2, page_timeout_s=1.0) as pool:
        yield pool


@pytest.fixture
def started(monkeypatch):
    """The processes that pools have started."""
    processes, start = [], pool_module.start_process
    monkeypatch.setattr(pool_module, "start_process", lambda sock: processes.append(start(sock)) or processes[-1])
    return processes


def order(text: str) -> Task:
    return Task(text.encode(), f"http://127.0.0.1/{text.replace(' ', '-')}", "utf-8")


async def outcomes(pool: WorkerPool, orders: list[str]) -> list[str]:
    """The titles of the pages, 'crash' for a lost one."""
    answers = await asyncio.gather(*(pool.process(order(text)) for text in orders), return_exceptions=True)
    return [
        "crash" if isinstance(answer, WorkerCrash) else getattr(answer, "title", repr(answer)) for answer in answers
    ]


async def until(condition, seconds: float = DEADLINE_S) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "condition not met in time"
        await asyncio.sleep(0.01)


def is_settled() -> bool:
    """Whether the test is the event loop's only task: the pool starts, replaces and ends no worker."""
    return len(asyncio.all_tasks()) == 1


async def test_the_page_comes_back_with_its_task(pool):
    page = await pool.process(Task(b"x" * 300_000, "http://127.0.0.1/ž", "cp1250"))
    assert (len(page.title), page.canonical, page.html_lang) == (300_000, "http://127.0.0.1/ž", "cp1250")
    assert (await pool.process(Task(b"", "http://127.0.0.1/"))).html_lang is None


@forked
async def test_work_is_shared_and_the_rest_waits(monkeypatch):
    workers = []

    class Noted(Worker):
        def __init__(self, *parts):
            super().__init__(*parts)
            workers.append(self)

    monkeypatch.setattr("spiderling.workers.pool.Worker", Noted)
    async with working(2) as pool:
        running = [asyncio.ensure_future(pool.process(order("sleep 0.1"))) for _ in range(12)]
        await asyncio.sleep(0)  # each has begun, and no worker has had time to end
        assert pool.queued == 12
        assert all(len(worker.jobs) == QUEUED_PER_WORKER for worker in workers)
        pages = await asyncio.gather(*running)
        assert len({page.words for page in pages}) == 2
        assert pool.queued == 0


async def test_a_page_that_kills_its_worker_ends_alone(pool):
    orders = [f"page {i}" for i in range(40)]
    orders[3] = orders[20] = "die"
    expected = ["crash" if text == "die" else text for text in orders]
    assert await outcomes(pool, orders) == expected
    await until(lambda: len(pool.pids) == 2)


@forked
async def test_done_pages_are_never_taken_for_guilty():
    """The worker dies while its answers are unread, and the loop first finds out by writing to it."""
    async with working() as pool:
        first = [asyncio.ensure_future(pool.process(order(text))) for text in ("a", "die")]
        await asyncio.sleep(0)
        time.sleep(0.3)  # the loop must not read
        last = asyncio.ensure_future(pool.process(order("b")))
        a, die, b = await asyncio.gather(*first, last, return_exceptions=True)
    assert isinstance(die, WorkerCrash)
    assert (a.title, b.title) == ("a", "b")


async def test_a_page_that_hangs_ends_alone(pool):
    start = time.monotonic()
    assert await outcomes(pool, ["a", "sleep 600", "b", "c", "d"]) == ["a", "crash", "b", "c", "d"]
    assert time.monotonic() - start > 0.9


@pytest.mark.slow
async def test_a_page_whose_worker_was_stopped_is_done_again(pool):
    """Nobody can tell that from a page that hangs, so a page is guilty when it takes too long a second time."""
    for pid in pool.pids:
        os.kill(pid, signal.SIGSTOP)
    assert await outcomes(pool, ["a", "b", "c", "d"]) == ["a", "b", "c", "d"]
    await until(lambda: len(pool.pids) == 2)


@forked
async def test_time_in_which_the_whole_process_was_stopped_is_no_time_of_the_page(monkeypatch):
    """Its worker is not even replaced; the clock goes on by ten minutes while nothing runs."""
    async with working(2, page_timeout_s=120.0) as pool:
        before, read, loop = pool.pids, time.clock_gettime, asyncio.get_running_loop()
        running = asyncio.ensure_future(outcomes(pool, ["sleep 0.5", "sleep 0.5"]))
        await asyncio.sleep(0.1)
        monkeypatch.setattr(machine.time, "clock_gettime", lambda clock: read(clock) + 600)
        monkeypatch.setattr(loop, "time", lambda: time.monotonic() + 600)
        assert await running == ["sleep 0.5", "sleep 0.5"]
        assert pool.pids == before


async def test_waiting_behind_others_is_not_hanging(pool):
    orders = ["sleep 0.4"] * 10  # 5 x 0.4 s a worker, more than the limit for one
    assert await outcomes(pool, orders) == orders


async def test_an_exception_or_too_much_memory_does_not_end_the_worker(pool):
    before = set(pool.pids)
    assert await outcomes(pool, ["raise", "eat 3000000000", "a"]) == ["crash", "crash", "a"]
    assert set(pool.pids) == before


@pytest.mark.slow
async def test_workers_killed_from_outside_under_load(pool):
    pages = [asyncio.ensure_future(pool.process(order("sleep 0.01"))) for _ in range(100)]
    for _ in range(4):
        await asyncio.sleep(0.1)
        # whatever the two workers hold: a page that is killed twice would be lost
        held = [page for page in pages if not page.done()][: 2 * QUEUED_PER_WORKER]
        os.kill(pool.pids[0], signal.SIGKILL)
        await asyncio.wait([*held, *pages[:1]])
        await until(lambda: len(pool.pids) == 2)
    assert {page.title for page in await asyncio.gather(*pages)} == {"sleep 0.01"}, "their pages are done again, once"


@pytest.mark.slow
async def test_a_page_whose_worker_is_killed_from_outside_time_and_again_ends_alone(pool):
    async def murder() -> None:
        while not hung.done():
            for pid in pool.pids:
                os.kill(pid, signal.SIGKILL)
            await asyncio.sleep(0.2)  # less than the page's time limit

    hung = asyncio.ensure_future(pool.process(order("sleep 60")))
    await asyncio.sleep(0.2)
    await asyncio.wait_for(murder(), DEADLINE_S)
    assert isinstance(hung.exception(), WorkerCrash)
    assert await outcomes(pool, ["a"]) == ["a"]


@forked
async def test_the_page_that_burns_processor_time_ends_alone_and_is_told_why():
    async with working(page_timeout_s=60, page_cpu_s=0.3) as pool:
        burn, a = await asyncio.gather(pool.process(order("burn")), pool.process(order("a")), return_exceptions=True)
        # what counts is a page's own time, and time on the processor only
        assert await outcomes(pool, ["sleep 0.5", "b"]) == ["sleep 0.5", "b"]
    assert isinstance(burn, WorkerCrash)
    assert str(burn) == "the page used more than 0.3 s of processor time while processing http://127.0.0.1/burn"
    assert a.title == "a"


@forked
@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"max_pages": 5}, "page"),
        pytest.param({"max_growth_bytes": 30_000_000}, "leak 10000000", marks=pytest.mark.slow),
    ],
)
async def test_a_worn_worker_is_replaced_and_no_page_is_lost(limits, text):
    async with working(**limits) as pool:
        pages = []
        for _ in range(6):
            before = pool.pids
            pages += await asyncio.gather(*(pool.process(order(text)) for _ in range(8)))
            await until(lambda before=before: pool.pids and pool.pids != before)
            assert len(pool.pids) == 1
        worn = {page.words for page in pages} - set(pool.pids)
        await until(is_settled)
    assert len(pages) == 48
    assert {page.title for page in pages} == {text}
    assert len(worn) >= 5
    for pid in worn:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_worker_within_its_share_stays(pool):
    before = pool.pids
    assert await outcomes(pool, ["leak 10000000"] * 20) == ["leak 10000000"] * 20
    assert pool.pids == before


@pytest.mark.slow
async def test_the_pages_behind_a_worn_worker_are_not_to_blame():
    async with working(max_pages=1) as pool:
        assert await outcomes(pool, ["a", "die", "b", "c"]) == ["a", "crash", "b", "c"]
        await until(is_settled)
        assert len(pool.pids) == 1


async def test_signals_are_left_to_the_parent(pool):
    before = pool.pids
    for pid in before:
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)
    assert await outcomes(pool, ["a", "b", "c"]) == ["a", "b", "c"]
    assert pool.pids == before


@forked
async def test_close_while_busy_ends_the_processes():
    pool = WorkerPool(2, FAKE, page_timeout_s=60)
    await pool.start()
    pids = pool.pids
    running = [asyncio.ensure_future(pool.process(order("sleep 30"))) for _ in range(10)]
    await asyncio.sleep(0.05)
    await pool.stop()
    assert all(
        isinstance(error, asyncio.CancelledError) for error in await asyncio.gather(*running, return_exceptions=True)
    )
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    with pytest.raises(SpiderlingError, match="closed"):
        await pool.process(order("a"))
    await pool.stop()


async def test_a_worker_that_is_ready_when_the_pool_is_stopped_is_no_error(monkeypatch):
    """It says so after its start was given up."""
    errors, ends = [], []

    def silent(sock):
        ends.append(sock.dup())
        return subprocess.Popen(["sleep", "600"])

    monkeypatch.setattr(pool_module, "start_process", silent)
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context))
    pool = WorkerPool(1, FAKE, page_timeout_s=60)
    pool.start_in_background(errors.append)
    await until(lambda: ends)
    await asyncio.sleep(0)
    stopping = asyncio.ensure_future(pool.stop())
    for _ in range(3):
        await asyncio.sleep(0)
    with contextlib.suppress(BrokenPipeError):  # Python 3.13 has closed the pool's end by now
        ends[0].sendall(frame(READY, None))
    await stopping
    assert errors == []


async def test_a_cancelled_caller_harms_nobody(pool):
    lost = asyncio.ensure_future(pool.process(order("sleep 0.1")))
    await asyncio.sleep(0.02)
    lost.cancel()
    assert await outcomes(pool, ["a", "b", "c", "d"]) == ["a", "b", "c", "d"]


@forked
@pytest.mark.parametrize(
    ("function", "message"),
    [("failing", "there is no model"), pytest.param("exiting", "died while it started", marks=pytest.mark.slow)],
)
async def test_a_worker_that_cannot_start_says_why(function, message):
    pool = WorkerPool(2, WorkerConfig(OPTIONS, ("cs",), process=f"made_workers:{function}"), 1.0)
    early = asyncio.ensure_future(pool.process(order("a")))
    with pytest.raises(SpiderlingError, match=message):
        await pool.start()
    assert pool.pids == []
    for page in (early, pool.process(order("b"))):
        with pytest.raises(SpiderlingError) as told:
            await page
        assert not isinstance(told.value, WorkerCrash)  # no page is guilty


@forked
async def test_a_worker_that_is_killed_while_it_starts_is_started_again(monkeypatch, started):
    """A person does it, or the kernel for want of memory; that says nothing of the model, and ends no crawl."""
    start = pool_module.start_process

    def killed_twice(sock):
        process = start(sock)
        if len(started) < 3:
            process.kill()
        return process

    monkeypatch.setattr(pool_module, "start_process", killed_twice)
    async with working() as pool:
        assert await outcomes(pool, ["a"]) == ["a"]
        assert len(started) == 3


def test_a_worker_whose_crawl_is_killed_ends_without_a_word():
    """What it still has to say is left in a buffer, whose end raised BrokenPipeError past the loop."""
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-m", "spiderling.workers.process", str(theirs.fileno())]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        process = subprocess.Popen(command, pass_fds=(theirs.fileno(),), stderr=subprocess.PIPE, env=environment)
    ours.sendall(frame(READY, FAKE))
    ours.close()
    assert process.communicate(timeout=DEADLINE_S)[1] == b""


@pytest.mark.parametrize("allowed_mb", [1500, 60])
async def test_under_a_limit_of_memory_a_worker_works_or_says_what_it_needs(monkeypatch, allowed_mb):
    """A process cannot raise a limit (ulimit -v) that is lower than the worker's own."""
    popen = subprocess.Popen

    def limited(command, **rest):
        return popen(["bash", "-c", f'ulimit -v {allowed_mb}000; exec "$@"', "bash", *command], **rest)

    monkeypatch.setattr(pool_module.subprocess, "Popen", limited)
    with pytest.raises(SpiderlingError, match=r"ulimit -v") if allowed_mb == 60 else contextlib.nullcontext():
        async with working() as pool:
            assert await outcomes(pool, ["a"]) == ["a"]


@pytest.mark.slow
async def test_pages_wait_for_workers_that_are_started_aside():
    failures = []
    pool = WorkerPool(2, FAKE, 10)
    pool.start_in_background(failures.append)
    assert await outcomes(pool, ["a", "b", "c"]) == ["a", "b", "c"]
    await pool.stop()
    pool = WorkerPool(1, WorkerConfig(OPTIONS, ("cs",), process="made_workers:failing"), 10)
    pool.start_in_background(failures.append)
    with pytest.raises(SpiderlingError, match="there is no model"):
        await pool.process(order("a"))
    await asyncio.sleep(0)
    assert [str(error) for error in failures] == ["there is no model"]


@forked
@pytest.mark.parametrize("after_s", [0, 0.05])
async def test_a_pool_is_closed_while_it_starts(started, after_s):
    pool = WorkerPool(2, FAKE, 10)
    pool.start_in_background(pytest.fail)
    await asyncio.sleep(after_s)
    await pool.stop()
    assert pool.pids == []
    assert all(process.returncode is not None for process in started)


@forked
@pytest.mark.parametrize("turns", range(4))
async def test_a_pool_that_is_closed_when_its_workers_have_just_become_ready_leaves_none(monkeypatch, started, turns):
    """They were ready, and the pool had not taken them yet: nobody ended them."""
    ready, start = [], Worker.start

    async def start_and_count(worker):
        await start(worker)
        ready.append(worker)

    monkeypatch.setattr(Worker, "start", start_and_count)
    pool = WorkerPool(2, FAKE, 10)
    pool.start_in_background(pytest.fail)
    while len(ready) < 2:
        await asyncio.sleep(0)
    for _ in range(turns):
        await asyncio.sleep(0)
    await pool.stop()
    assert len(started) == 2 and all(process.returncode is not None for process in started)


@forked
async def test_a_worker_that_dies_before_the_others_are_ready_is_replaced(monkeypatch):
    """The pool took it for one at work, and had one worker less from then on."""
    begun, ready, may_start, start = [], [], asyncio.Event(), Worker.start

    async def start_in_turn(worker):
        begun.append(worker)
        if len(begun) == 2:
            await may_start.wait()
        await start(worker)
        ready.append(worker)

    monkeypatch.setattr(Worker, "start", start_in_turn)
    pool = WorkerPool(2, FAKE, 10)
    pool.start_in_background(pytest.fail)
    await until(lambda: ready)
    ready[0].process.kill()
    await until(lambda: not begun[0].is_open)
    may_start.set()
    await until(lambda: len(pool.pids) == 2 and is_settled())
    assert all(map(alive, pool.pids))
    await pool.stop()


SCRIPT = """
import asyncio
from spiderling.text import TextOptions
from spiderling.workers.pool import *
async def main():
    pool = WorkerPool(2, WorkerConfig(TextOptions(("cs",)), ("cs",), process="made_workers:obedient"), 60)
    await pool.start()
    print(*pool.pids, flush=True)
    await pool.process(Task(b"sleep 0.5", "http://127.0.0.1/"))
    await asyncio.sleep(60)
asyncio.run(main())
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{HERE}:{HERE.parent}"}


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@needs("/proc")  # to tell zombies from the living
def test_workers_do_not_outlive_a_killed_parent():
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, env=ENVIRONMENT)
    with process:
        pids = list(map(int, process.stdout.readline().split()))
        assert all(map(alive, pids))
        process.kill()
    end = time.monotonic() + DEADLINE_S
    while any(map(alive, pids)):
        assert time.monotonic() < end
        time.sleep(0.02)


@forked
async def test_answers_larger_than_the_buffer_and_many_small_ones():
    """Pages of all sizes come back whole and in order, however the socket cuts them up."""
    bodies = [b"x" * size for size in (1, 3_000_000, 0, 262_139, 10, 131_072, 700_000, *range(20))]
    async with working(page_timeout_s=30.0) as pool:
        pages = await asyncio.gather(*(pool.process(Task(body, "http://127.0.0.1/")) for body in bodies))
    assert [len(page.title) for page in pages] == [len(body) for body in bodies]
