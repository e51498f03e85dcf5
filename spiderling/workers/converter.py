"""Converts each document in a child process with limits on memory, processor time, files and time.

The child is a fork of the text worker, where everything is loaded, so a start costs a few milliseconds.  Its answer is
read as JSON and never unpickled: a document that takes its parser over can lie about itself, and no more.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import select
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from spiderling.text.documents import ConvertedDocument, DocumentError, from_docx, from_epub, from_odt
from spiderling.text.html.blocks import Block

MAX_OUTPUT_BYTES = 50_000_000  # bytes that a child may write to its output; chosen
_MIN_CPU_S = 1  # least seconds of processor time that RLIMIT_CPU can express
LAST_S = 4.0  # seconds in which a child that has closed its output must end; chosen
_MAX_FILES = 1024  # a child closes the file descriptors from 3 to below this, the usual limit of a process


def _from_pdf(body: bytes) -> ConvertedDocument:
    from spiderling.text import pdf  # its library is large, and few crawls need it

    return pdf.convert(body)


CONVERTERS: Mapping[str, Callable[[bytes], ConvertedDocument]] = {
    "pdf": _from_pdf,
    "docx": from_docx,
    "odt": from_odt,
    "epub": from_epub,
}
"""Kind (base/media_types.py) -> function; each raises DocumentError and nothing else."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds what one conversion may use; each value is chosen."""

    wall_s: float = 16.0
    cpu_s: float = 10.0
    memory_bytes: int = 1_000_000_000  # address space above that of the process it is forked from


def convert(kind: str, body: bytes, limits: Limits) -> ConvertedDocument | None:
    """The text of a document; None when it is broken or reaches a limit."""
    if kind == "pdf":
        importlib.import_module("spiderling.text.pdf")  # once here, not in each child
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(kind, body, limits, writer)
    os.close(writer)
    output = None
    try:
        output = _read(reader, time.monotonic() + limits.wall_s)
    finally:
        os.close(reader)
        is_well = _reap(pid, has_closed=output is not None)
    return _parse(output) if is_well and output is not None else None


def _read(reader: int, deadline: float) -> bytes | None:
    output = bytearray()
    while len(output) <= MAX_OUTPUT_BYTES:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        piece = os.read(reader, 1 << 18)
        if not piece:
            return bytes(output)
        output += piece
    return None


def _child(kind: str, body: bytes, limits: Limits, writer: int) -> NoReturn:
    """In the child: convert with standard output to *writer*, and end."""
    status = 1
    try:
        os.dup2(writer, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        _restrict(limits)
        data = memoryview(_pack(CONVERTERS[kind](body)))
        while data:
            data = data[os.write(1, data) :]
        status = 0
    except DocumentError:
        pass
    finally:
        os._exit(status)  # without flushing buffers or calling handlers of the worker


def _restrict(limits: Limits) -> None:
    """In the child: no file stays open but its output, none can be written, and *limits* are obeyed."""
    for number in (signal.SIGALRM, signal.SIGXCPU, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, limits.wall_s)  # works even after the worker has died
    cpu_s = max(_MIN_CPU_S, round(limits.cpu_s))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit_address_space(memory_bytes(0) + limits.memory_bytes)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.closerange(3, _MAX_FILES)


def limit_address_space(most: int) -> None:
    """Limit this process to *most* bytes; it cannot raise a lower limit that it has already (ulimit -v)."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def memory_bytes(field: int) -> int:
    """Bytes of this process' address space (*field* 0) or resident memory (1) now; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as stream:
            return int(stream.read().split()[field]) * resource.getpagesize()
    except OSError:
        return 0


def _reap(pid: int, has_closed: bool) -> bool:
    """Wait for the child, or kill it if it does not end; return whether it ended well by itself.

    *has_closed*: whether it has closed its output; it then ends within seconds, even on a busy machine, or is stuck.
    """
    watched = os.pidfd_open(pid)
    ready, _, _ = select.select([watched], [], [], LAST_S if has_closed else 0.1)
    os.close(watched)
    if not ready:
        os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1] == 0


def _pack(document: ConvertedDocument) -> bytes:
    blocks = [(block.text, block.heading, block.link_chars) for block in document.blocks]
    return json.dumps([document.title, document.meta, document.lang, blocks]).encode("ascii")


def _parse(output: bytes) -> ConvertedDocument | None:
    """The document in a child's answer; None for an answer of another form."""
    try:
        title, meta, lang, blocks = json.loads(output)
        rows = [Block(str(text), bool(heading), int(link_chars)) for text, heading, link_chars in blocks if text]
        return ConvertedDocument(
            rows, str(title), {str(k): str(v) for k, v in meta.items()}, str(lang) if lang else None
        )
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
