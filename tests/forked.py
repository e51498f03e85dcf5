"""``scrapy`` as a process that is forked from one which has imported everything: that saves a second of processor time.

The server is this file as a program. It has no thread and no event loop. For each command it forks a keeper, and the
keeper forks the command, tells its number, waits for it, and tells how it ended. Then the command sets up what a fresh
interpreter would have: arguments, environment, directory, import path, standard streams. It runs ``scrapy`` as
``python -m scrapy`` does, or another module. `test_console_script` compares the two for each command.

Its text workers are forked from it as well, with models that the server has loaded, which saves 0.7 s each; in
``make slow`` they are fresh processes.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import re
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

from example_counts import PROFILE

ROOT = Path(__file__).resolve().parents[1]
DEADLINE_S = 240
"""Seconds after which a process that has not ended is given up; it is generous, for the machine may be busy."""
_NUMBER = struct.Struct("!i")
_MAX_REQUEST_BYTES = 1_000_000


class Server:
    """The process that commands are forked from; it ends with the process that started it."""

    def __init__(self) -> None:
        self._requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._requests.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MAX_REQUEST_BYTES)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}  # numpy starts no threads
        command = [sys.executable, __file__, str(theirs.fileno())]
        with theirs:
            subprocess.Popen(
                command, cwd=ROOT, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip

    def start(
        self,
        arguments: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        streams: Sequence[IO[bytes]],
        module: str = "scrapy",
    ) -> Forked:
        """``python -m MODULE`` with *arguments*; *streams* are its standard input, output and error."""
        ours, theirs = socket.socketpair()
        request = {"module": module, "arguments": arguments, "cwd": str(cwd), "environment": dict(environment)}
        with theirs:
            descriptors = [theirs.fileno(), *(stream.fileno() for stream in streams)]
            socket.send_fds(self._requests, [json.dumps(request).encode()], descriptors)
        return Forked(ours)


class Forked:
    """A command that was forked; what is used of ``subprocess.Popen``."""

    def __init__(self, keeper: socket.socket) -> None:
        self._keeper = keeper
        self.pid = self._number()
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._keeper], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._keeper], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("scrapy", timeout or 0)
            self.returncode = self._number()
            self._keeper.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _number(self) -> int:
        return _NUMBER.unpack(self._keeper.recv(_NUMBER.size, socket.MSG_WAITALL))[0]


class Ended(NamedTuple):
    """A command that has ended."""

    code: int
    out: str  # standard output
    log: str  # standard error

    @property
    def refusal(self) -> str:
        """Why the command refused what it was given: the last line, and no output."""
        assert (self.code, self.out) == (1, ""), self
        assert "Traceback" not in self.log, self.log
        return re.sub(r"^scrapy \w+: ", "", self.log.splitlines()[-1])

    @property
    def errors(self) -> list[str]:
        """The messages logged as errors."""
        return re.findall(r"^\d{4}-\S+ \S+ \[[^]]+\] (?:ERROR|CRITICAL): (.*)$", self.log, re.MULTILINE)


@cache
def forks() -> Server:
    return Server()


def scrapy(
    *arguments: str,
    stdin: bytes = b"",
    cwd: Path = ROOT,
    preexec_fn: Callable[[], object] | None = None,
    fresh: bool = False,
    timeout_s: float = DEADLINE_S,
    module: str = "scrapy",
) -> Ended:
    """Run ``python -m MODULE`` with *arguments* in *cwd*, which is the project's directory unless told otherwise."""
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}
    with ExitStack() as stack:
        given, out, log = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        given.write(stdin)
        given.seek(0)
        process = start_scrapy(arguments, cwd, environment, (given, out, log), preexec_fn, fresh, module)
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        out.seek(0)
        log.seek(0)
        return Ended(code, out.read().decode(), log.read().decode("utf-8", "replace"))


def start_scrapy(
    arguments: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    streams: tuple[IO[bytes], IO[bytes], IO[bytes]],
    preexec_fn: Callable[[], object] | None = None,
    fresh: bool = False,
    module: str = "scrapy",
) -> Forked | subprocess.Popen[bytes]:
    """The process of ``python -m MODULE`` with *streams* as its standard input, output and error.

    It is forked from one that has imported everything, unless it must be *fresh* or runs *preexec_fn* first.
    """
    if not fresh and preexec_fn is None:
        return forks().start(arguments, cwd, environment, streams, module)
    stdin, stdout, stderr = streams
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments], cwd=cwd, env=environment, stdin=stdin, stdout=stdout,
        stderr=stderr, preexec_fn=preexec_fn, start_new_session=True,
    )  # fmt: skip


# -- the server's process


LAZY = ("scrapy.cmdline", "scrapy.crawler", "scrapy.core.engine", "justext.core", "lxml_html_clean", "numpy.ma",
        "requests", "twisted.internet.asyncioreactor", "uvloop")  # fmt: skip
"""What a crawl imports late."""
PARTS = ("commands", "core.downloader", "downloadermiddlewares", "extensions", "spidermiddlewares")
"""Packages of Scrapy whose modules are components."""


def modules_in(room: str) -> list[str]:
    return [module.name for module in pkgutil.walk_packages(importlib.import_module(room).__path__, f"{room}.")]


def _import_all() -> None:
    """What commands and crawls import; the reactor is not among it, and no module starts a thread."""
    for name in (*LAZY, *modules_in("spiderling")):
        importlib.import_module(name)
    for name in chain.from_iterable(modules_in(f"scrapy.{part}") for part in PARTS):
        # Scrapy has some for packages that are not here, and some that it warns of
        with contextlib.suppress(ImportError, RuntimeError), warnings.catch_warnings(action="ignore"):
            importlib.import_module(name)
    importlib.import_module("spiderling.text.steps").choose()
    importlib.import_module("spiderling.base.urls").registrable_domain("a.cz")  # reads the list of suffixes
    assert "twisted.internet.reactor" not in sys.modules


def _load_models() -> None:
    """Load the models of a crawl in Czech, once for the text workers of all crawls."""
    languages = importlib.import_module("spiderling.languages")
    read, czech = languages.load, tuple(languages.to_recognise(languages.find_languages("cs")))
    models = read(czech)
    models.warm_up()
    languages.load = lambda codes, dirs="": models if (tuple(codes), dirs) == (czech, "") else read(codes, dirs)


def _next_command(requests: socket.socket) -> dict[str, Any] | None:
    """Forks for each request; returns the request in a command's process, and None in the server's at its end."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for keepers
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, _MAX_REQUEST_BYTES, 4)
        if not message:
            return None
        if os.fork() == 0:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number, descriptor in enumerate(descriptors[1:]):
                os.dup2(descriptor, number)
                os.close(descriptor)
            pid = os.fork()
            if pid == 0:
                os.close(descriptors[0])
                return dict(json.loads(message))
            _keep(socket.socket(fileno=descriptors[0]), pid)
        for descriptor in descriptors:
            os.close(descriptor)


def _keep(client: socket.socket, pid: int) -> None:
    """Tells the number of the command and how it ended; does not return."""
    os.setsid()
    os.closerange(0, 3)  # who reads the command's output sees its end
    try:
        client.sendall(_NUMBER.pack(pid))
        client.sendall(_NUMBER.pack(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
    finally:
        os._exit(0)


def _become(request: dict[str, Any], import_path: Sequence[str]) -> None:
    """Set up what a fresh interpreter has, and give constants the values that a test wants of them."""
    os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    given = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = [request["cwd"], *given, *import_path]
    sys.argv = [request["module"], *request["arguments"]]
    sys.orig_argv = [sys.executable, "-m", *sys.argv]
    encoding = os.environ.get("PYTHONIOENCODING")
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding)
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), encoding)
    errors = io.BufferedWriter(io.FileIO(2, "w", closefd=False))
    sys.stderr = io.TextIOWrapper(errors, encoding, "backslashreplace", line_buffering=True)
    for name, value in json.loads(os.environ.pop("CONSTANTS", "{}")).items():
        module = importlib.import_module(name.rpartition(".")[0])
        assert hasattr(module, name.rpartition(".")[2])
        setattr(module, name.rpartition(".")[2], value)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr
    if PROFILE == "few":
        importlib.import_module("spiderling.workers.pool").start_process = ForkedWorker


class ForkedWorker:
    """A text worker that is forked from its crawl; what is used of ``subprocess.Popen``."""

    def __init__(self, sock: socket.socket) -> None:
        self.returncode: int | None = None
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # that the crawl has threads
            self.pid = os.fork()
        if self.pid == 0:
            try:
                self._work(sock)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)

    def kill(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def _work(self, sock: socket.socket) -> None:
        """Leave the crawl's session, signals and files, and work as ``python -m spiderling.workers.process 3`` does."""
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(sock.fileno(), 3)
        os.closerange(4, 1 << 16)
        gc.enable()
        importlib.import_module("spiderling.workers.process").main(3)
        sys.stderr.flush()
        os._exit(0)


_codes: list[int] = []  # the exit code of a command that has ended


def _run(module: str) -> None:
    """As ``python -m MODULE`` does."""
    sys.modules.pop(f"{module}.__main__", None)
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            _codes.append((ended.code or 0) & 0xFF)
        raise
    _codes.append(0)


def _leave() -> None:
    """End without giving back what was imported: for that, each page of it would be copied, in 0.1 s."""
    with contextlib.suppress(OSError, ValueError):  # else Python tells that nobody reads
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        if _codes:
            os._exit(_codes[0])


if __name__ == "__main__":
    own_path = [entry for entry in sys.path[1:] if entry != str(ROOT)]
    atexit.register(_leave)  # before what is imported: it is the last to be called
    _import_all()
    if PROFILE == "few":
        _load_models()
    gc.collect()
    gc.freeze()
    wanted = _next_command(socket.socket(fileno=int(sys.argv[1])))
    if wanted is not None:
        _become(wanted, own_path)
        _run(wanted["module"])
