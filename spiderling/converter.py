"""Conversion of documents in a child process of its own, with limits of memory, processor, files and time.

The child is a fork of the text worker (everything is loaded already, a start costs a few
milliseconds), which either runs a function of text/documents.py or becomes an external
program.  Its answer is read as JSON or plain text and never unpickled: a parser that
was taken over by its document can lie about the document, and no more.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import select
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, NoReturn

from spiderling.filetypes import FILE_TYPES
from spiderling.text.documents import CONVERTERS, Document, DocumentError, from_text
from spiderling.text.html import Block

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

PROGRAMS: Mapping[str, Sequence[Sequence[str]]] = {
    "doc": (("catdoc", "-w", "-d", "utf-8"), ("antiword", "-w", "0", "-m", "UTF-8.txt", "-")),
    "rtf": (("catdoc", "-w", "-d", "utf-8"),),
    "ps": (("gs", "-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-sDEVICE=txtwrite", "-sOutputFile=-", "-"),),
}
"""External programs from standard input to UTF-8 text, the preferred one first."""
MAX_OUTPUT_BYTES = 50_000_000
_PROGRAM_FILE_BYTES = 50_000_000
_MIN_CPU_S = 1


@dataclass(frozen=True, slots=True)
class Limits:
    """What one conversion may use."""

    wall_s: float = 16.0
    cpu_s: float = 10.0
    memory_bytes: int = 1_000_000_000
    """Address space above that of the process it is forked from."""
    input_bytes: int = 20_000_000


def usable(kinds: Iterable[str]) -> tuple[frozenset[str], list[str]]:
    """Those of *kinds* that can be converted here, and a sentence for each that cannot."""
    missing = {kind: _missing(kind) for kind in sorted(kinds)}
    notices = [f"{kind} documents are left out: {why}." for kind, why in missing.items() if why]
    return frozenset(kind for kind, why in missing.items() if not why), notices


def _missing(kind: str) -> str:
    if kind == "pdf" and importlib.util.find_spec("pypdfium2") is None:
        return "the package pypdfium2 is not installed"
    if FILE_TYPES[kind].is_external and _program(kind) is None:
        return f"{' or '.join(command[0] for command in PROGRAMS[kind])} is not installed"
    return ""


def _program(kind: str) -> list[str] | None:
    for command in PROGRAMS[kind]:
        path = shutil.which(command[0])
        if path:
            return [path, *command[1:]]
    return None


def convert(kind: str, body: bytes, limits: Limits) -> Document | None:
    """The text of a document; None when it is broken, not supported, or reaches a limit."""
    if len(body) > limits.input_bytes:
        return None
    command = _program(kind) if FILE_TYPES[kind].is_external else None
    if command is None and kind not in CONVERTERS:
        return None
    if kind == "pdf":
        importlib.import_module("spiderling.text.pdf")  # once here, not in each child
    with tempfile.TemporaryFile() as source:
        if command is not None:
            source.write(body)
            source.seek(0)
        output = _run(kind, body, command, source, limits)
    if output is None:
        return None
    return from_text(output.decode("utf-8", "replace")) if command is not None else _parsed(output)


def _run(kind: str, body: bytes, command: list[str] | None, source: IO[bytes], limits: Limits) -> bytes | None:
    """What the child wrote; None unless it ended well."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(kind, body, command, source, writer, limits)
    os.close(writer)
    try:
        output = _read(reader, time.monotonic() + limits.wall_s)
    finally:
        os.close(reader)
        is_well = _reap(pid)
    return output if is_well else None


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


def _child(
    kind: str, body: bytes, command: list[str] | None, source: IO[bytes], writer: int, limits: Limits
) -> NoReturn:
    """The rest of a child's life."""
    status = 1
    try:
        _restrict(limits, 0 if command is None else _PROGRAM_FILE_BYTES)
        os.dup2(source.fileno(), 0)
        os.dup2(writer, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.closerange(3, 1024)
        if command is not None:
            os.execv(command[0], command)  # noqa: S606 - no shell is wanted
        data = memoryview(_packed(CONVERTERS[kind](body)))
        while data:
            data = data[os.write(1, data) :]
        status = 0
    except DocumentError:
        pass
    finally:
        os._exit(status)  # neither buffers nor handlers of the worker are the child's business


def _restrict(limits: Limits, file_bytes: int) -> None:
    for number in (signal.SIGALRM, signal.SIGXCPU, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, limits.wall_s)  # it holds even when the worker is gone
    cpu_s = max(_MIN_CPU_S, round(limits.cpu_s))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    memory_bytes = _address_space_bytes() + limits.memory_bytes
    ceiling = resource.getrlimit(resource.RLIMIT_AS)[1]
    if ceiling != resource.RLIM_INFINITY:
        memory_bytes = min(memory_bytes, ceiling)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def _address_space_bytes() -> int:
    try:
        with open("/proc/self/statm", "rb") as stream:
            return int(stream.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def _reap(pid: int) -> bool:
    """End the child if it has not ended; whether it ended well by itself."""
    for pause_s in (0.001, 0.01, 0.1):  # its output is closed: it is about to end by itself, or stuck
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(pause_s)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


def _packed(document: Document) -> bytes:
    blocks = [(block.text, block.heading, block.link_chars) for block in document.blocks]
    return json.dumps([document.title, document.meta, document.lang, blocks]).encode("ascii")


def _parsed(output: bytes) -> Document | None:
    """The document in a child's answer; None for an answer of another form."""
    try:
        title, meta, lang, blocks = json.loads(output)
        rows = [Block(str(text), bool(heading), int(link_chars)) for text, heading, link_chars in blocks if text]
        return Document(rows, str(title), {str(k): str(v) for k, v in meta.items()}, str(lang) if lang else None)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
