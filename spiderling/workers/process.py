"""The inside of a text worker: a process that turns one page after another into a `Page`.

It is started as ``python -m spiderling.workers.process FD``; FD is one end of a socket pair
whose other end `spiderling.workers.pool` holds.  Both send frames: FRAME (a length and a kind)
and a pickled value.  The worker is sent its configuration, then tasks.  It ends when its socket
does, so it does not outlive a killed parent.  It ignores SIGINT and SIGTERM, because the parent
waits for its pages even then.

A page that uses more than ``page_cpu_s`` of processor time ends the process by SIGPROF,
which neither Python code nor a C library can delay.
"""

from __future__ import annotations

import contextlib
import gc
import pickle
import pkgutil
import resource
import signal
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from spiderling.base import media_types
from spiderling.base.errors import SpiderlingError
from spiderling.base.options import Options
from spiderling.text import Page, TextOptions
from spiderling.text.listing import read_listing
from spiderling.text.steps import AUTO, choose
from spiderling.workers.converter import Limits, convert, limit_address_space, memory_bytes

PAGE_TIMEOUT_S = 20.0  # seconds that a page may be in work in a text worker; chosen: the largest takes about one
_CONVERSION_SHARE = 0.8  # share of PAGE_TIMEOUT_S for converting a document; the rest is for judging its text; chosen
CPU_SHARE = 0.5  # share of PAGE_TIMEOUT_S that a page may spend on the processor; chosen
_COLLECTED_PAGES = 50
"""Pages between two collections of garbage; chosen: at Python's own pace they take a fifth of the time."""
FRAME = struct.Struct("!IB")
READY = 0
PAGE = 1
ERROR = 2
WORN = 0x80  # bit of an answer's kind: the worker has done its share and asks to be replaced


class DiedEarly(SpiderlingError):
    """A worker's process ended before it was ready, and gave no reason."""

    def __init__(self) -> None:
        super().__init__(
            "a text worker died while it started; its messages are above. It needs 500 MB of address space "
            "(ulimit -v) and must not be killed."
        )


class Task(NamedTuple):
    """A page to be processed."""

    body: bytes
    url: str
    http_charset: str | None = None
    refresh: str = ""  # the header Refresh, by which a server says what <meta http-equiv=refresh> says
    is_listing: bool = False  # whether the body is a sitemap or feed; then the answer is that of `read_listing`


@dataclass(frozen=True, slots=True)
class WorkerConfig:
    """What a worker needs to know; sent to it pickled."""

    options: TextOptions
    recognise: tuple[str, ...]  # codes of all languages to be told apart, the accepted ones among them
    models: str = ""  # the option SPIDERLING_MODELS
    memory_bytes: int = 2_000_000_000  # bytes of address space of one worker
    page_cpu_s: float = 10.0  # seconds of processor time that one page may use
    max_pages: int = 100_000  # pages after which a worker asks to be replaced, which takes about a second
    max_growth_bytes: int = 500_000_000  # bytes by which its resident memory may grow before it asks for that too
    documents: tuple[str, ...] = ()  # kinds (base/media_types.py) that are converted; other bodies count as HTML
    document_wall_s: float = 16.0  # seconds in which a document must be converted
    compiled: str = AUTO  # the option SPIDERLING_COMPILED
    process: str = "spiderling.workers.process:text_process"
    """module:function; called with this value, it returns the function that makes a Page of a Task."""

    @classmethod
    def from_options(
        cls, options: Options, accepted: Sequence[str], recognise: Sequence[str], gathers_links: bool = True
    ) -> WorkerConfig:
        """The part of a crawl's options that concerns its workers."""
        return cls(
            TextOptions.from_options(options, accepted, gathers_links),
            tuple(recognise),
            options.models,
            page_cpu_s=CPU_SHARE * PAGE_TIMEOUT_S,
            documents=tuple(sorted(media_types.parse(options.documents))),
            document_wall_s=_CONVERSION_SHARE * PAGE_TIMEOUT_S,
            compiled=options.compiled,
        )


def text_process(config: WorkerConfig) -> Callable[[Task], Page]:
    """The usual work of a worker: convert a document, else call `spiderling.text.process`; the models are loaded."""
    from spiderling.languages import load
    from spiderling.text import process, process_document

    models = load(config.recognise, config.models)
    models.warm_up()
    steps = choose(config.compiled).steps

    limits = Limits(config.document_wall_s, config.page_cpu_s)

    def work(task: Task) -> Page:
        kind = media_types.of_content(task.body) if config.documents else None
        if kind in config.documents:
            document = convert(kind, task.body, limits)
            return process_document(document, kind, task.body, models=models, options=config.options)
        return process(
            task.body,
            url=task.url,
            http_charset=task.http_charset,
            refresh=task.refresh,
            models=models,
            options=config.options,
            steps=steps,
        )

    return work


def main(fd: int) -> None:
    """A worker's life: configuration, then one page after another until the socket ends."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    # the crawl may have been killed: then nobody reads what is left in the buffer
    with contextlib.suppress(OSError), socket.socket(fileno=fd) as sock, sock.makefile("rwb", 1 << 20) as stream:
        config: WorkerConfig | None = _receive(stream)
        if config is None:
            return
        try:
            limit_address_space(config.memory_bytes)
            work = pkgutil.resolve_name(config.process)(config)
        except Exception as error:
            _send(stream, ERROR, str(error) or repr(error))
            return
        # models and modules live as long as the worker, and the cycles that a page leaves are small and can wait
        gc.freeze()
        gc.disable()
        _send(stream, READY, None)
        _serve(stream, config, work)


def _serve(stream: Any, config: WorkerConfig, work: Callable[[Task], Page]) -> None:
    pages = 0
    max_bytes = (memory_bytes(1) or _peak_bytes()) + config.max_growth_bytes
    while (task := _receive(stream)) is not None:
        signal.setitimer(signal.ITIMER_PROF, config.page_cpu_s)
        kind, value = _attempt(work, task)
        signal.setitimer(signal.ITIMER_PROF, 0)
        pages += 1
        has_grown = _peak_bytes() > max_bytes and (memory_bytes(1) or _peak_bytes()) > max_bytes
        is_worn = pages >= config.max_pages or has_grown
        _send(stream, kind | WORN if is_worn else kind, value)
        if pages % _COLLECTED_PAGES == 0:
            gc.collect()


def _attempt(work: Callable[[Task], Page], task: Task) -> tuple[int, Any]:
    """The page or listing, or the exception as text: an exception does not end the worker."""
    try:
        return PAGE, read_listing(task.body, task.url) if task.is_listing else work(task)
    except Exception as error:
        return ERROR, f"{type(error).__name__}: {error}"


def frame(kind: int, value: Any) -> bytes:
    data = pickle.dumps(value, 5)
    return FRAME.pack(len(data), kind) + data


def _receive(stream: Any) -> Any:
    """The value of one frame; None at the end of the socket."""
    head = stream.read(FRAME.size)
    if len(head) < FRAME.size:
        return None
    length, _ = FRAME.unpack(head)
    data = stream.read(length)
    return pickle.loads(data) if len(data) == length else None  # noqa: S301 - from the crawl that started this process


def _send(stream: Any, kind: int, value: Any) -> None:
    stream.write(frame(kind, value))
    stream.flush()


def _peak_bytes() -> int:
    """The most bytes of resident memory up to now.  To ask for it takes a fiftieth of the time of `memory_bytes`."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    from spiderling.workers import process  # the module under its own name, which the pickles use

    process.main(int(sys.argv[1]))
