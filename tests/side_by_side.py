"""Tests in several processes, all forked from the one that has collected the tests.

    pytest --processes-a-core 3

So modules are imported and tests collected once, not in each process. A process stays with a file, whose fixtures it
has made. Files with whole crawls come first, since these mostly wait. At the end who has nothing left takes half of
what another has before it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import warnings
from collections import deque
from collections.abc import Iterable
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

import pytest

CRAWLING = {"Crawl", "refusal", "scrapy", "serving"}
"""Names of tests/conftest.py for what starts processes and waits for them."""
FORKS = get_context("fork")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--processes-a-core", type=int, default=0, metavar="NUMBER", help="run tests in processes side by side"
    )


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    a_core = session.config.getoption("processes_a_core")
    if not a_core or session.config.option.collectonly or session.testsfailed:
        return None
    Run(session).go(a_core * (os.cpu_count() or 1))
    return True


class Worker(NamedTuple):
    """A process that runs tests, as the main process knows it."""

    process: Any
    before_it: deque[int]
    """Indices of tests that are kept for it, all of one file."""
    given: deque[int]
    """Indices of the test that it runs and of the one after; fixtures are kept for the next one."""


class Run:
    """The main process: it hands out tests and logs their reports."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._files = files_in_order(session.items)
        self._workers: dict[Connection, Worker] = {}

    def go(self, number: int) -> None:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = place = tempfile.mkdtemp(prefix="tests-")
        for _ in range(min(number, len(self._files))):
            self._start(deque())
        try:
            while self._workers:
                for connection in wait(list(self._workers)):
                    assert isinstance(connection, Connection)
                    self._hear(connection)
        finally:
            for connection, worker in self._workers.items():
                connection.close()
                worker.process.join()
            if not self._session.testsfailed:
                shutil.rmtree(place, ignore_errors=True)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _start(self, before_it: deque[int]) -> None:
        ours, theirs = FORKS.Pipe()
        process = FORKS.Process(target=work, args=(self._session, theirs, [ours, *self._workers]))
        process.start()
        theirs.close()
        self._workers[ours] = Worker(process, before_it, deque())

    def _hear(self, connection: Connection) -> None:
        worker, config = self._workers[connection], self._session.config
        match received(connection):
            case None:
                self._died(self._workers.pop(connection))
            case "next", _:
                with contextlib.suppress(BrokenPipeError):  # it has died, and is heard next
                    connection.send(self._next(worker))
            case "report", data:
                report = config.hook.pytest_report_from_serializable(config=config, data=data)
                config.hook.pytest_runtest_logreport(report=report)
            case "warning", warning:
                config.hook.pytest_warning_recorded.call_historic(kwargs=warning)
            case "end", _:
                worker.process.join()
                del self._workers[connection]

    def _next(self, worker: Worker) -> int | None:
        """The index of a test for *worker*, None if there is none left; who asks has ended the first of two given."""
        if len(worker.given) == 2:
            worker.given.popleft()
        if self._session.shouldfail or self._session.shouldstop:
            return None
        if not worker.before_it:
            if self._files:
                worker.before_it.extend(self._files.popleft())
            else:
                longest = max((other.before_it for other in self._workers.values()), key=len)
                worker.before_it.extendleft(longest.pop() for _ in range((len(longest) + 1) // 2))
        if not worker.before_it:
            return None
        worker.given.append(worker.before_it.popleft())
        return worker.given[-1]

    def _died(self, worker: Worker) -> None:
        """The test that killed its process has failed; another process goes on with the others."""
        worker.process.join()
        if not worker.given:
            raise RuntimeError(f"a process of tests ended with {worker.process.exitcode} before its first one")
        item = self._session.items[worker.given.popleft()]
        why = f"its process ended with {worker.process.exitcode}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", why, "call")
        self._session.config.hook.pytest_runtest_logreport(report=report)
        self._start(worker.given + worker.before_it)


def received(connection: Connection) -> tuple[str, Any] | None:
    """What the process at the other end says, with a value; None if it has died."""
    with contextlib.suppress(EOFError, ConnectionResetError):
        return connection.recv()
    return None


def files_in_order(items: Iterable[pytest.Item]) -> deque[list[int]]:
    """Indices of the tests of each file; first those of files with whole crawls."""
    files: dict[Any, list[int]] = {}
    crawling = set()
    for index, item in enumerate(items):
        files.setdefault(item.path, []).append(index)
        module = item.getparent(pytest.Module)
        if module and CRAWLING & vars(module.obj).keys():
            crawling.add(item.path)
    return deque(files[path] for path in sorted(files, key=lambda path: path not in crawling))


# -- a process that runs tests


class Reporter:
    """Sends the main process what a single process would have printed."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config = config
        self._connection = connection
        self.is_on = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._connection.send(("report", data))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        if not self.is_on:
            return  # the main process has those of before
        one = warning_message
        plain = warnings.WarningMessage(str(one.message), one.category, one.filename, one.lineno)
        value = {"warning_message": plain, "when": when, "nodeid": nodeid, "location": location}
        self._connection.send(("warning", value))


def work(session: pytest.Session, connection: Connection, not_ours: Iterable[Connection]) -> None:
    for other in not_ours:
        other.close()
    plugins = session.config.pluginmanager
    for name in ("terminalreporter", "terminalprogress"):
        if plugins.has_plugin(name):
            plugins.unregister(name=name)
    capture = plugins.getplugin("capturemanager")
    assert capture is not None
    capture.stop_global_capturing()  # its files are those of the main process
    capture.start_global_capturing()
    capture.suspend_global_capture()
    reporter = Reporter(session.config, connection)
    plugins.register(reporter)
    reporter.is_on = True

    def following() -> pytest.Item | None:
        connection.send(("next", None))
        index = connection.recv()
        return None if index is None else session.items[index]

    item = following()
    try:
        while item is not None:
            nextitem = following()
            session.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            item = nextitem
    finally:
        plugins.getplugin("runner").pytest_sessionfinish(session)  # ends what fixtures have begun, also at Ctrl-C
    connection.send(("end", None))
