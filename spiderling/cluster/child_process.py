"""A process that ends with this one, however this one ends."""

from __future__ import annotations

import ctypes
import os
import signal
from asyncio import create_subprocess_exec
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from typing import Any

_PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that a process gets when the thread that has started it ends."""
_NOT_BEGUN = 127
_libc = ctypes.CDLL(None)


async def start_child(command: Sequence[str], **streams: Any) -> Process:
    """Start *command* from the main thread; Ctrl-C of the terminal does not reach it.

    It is killed when this process ends.  A shard loses nothing by that but what was under way, and so does Redis.
    """
    bound = with_parent(signal.SIGKILL)
    return await create_subprocess_exec(*command, preexec_fn=bound, start_new_session=True, **streams)


def with_parent(number: int) -> Callable[[], None]:
    """The ``preexec_fn`` of a process that gets the signal *number* when the thread that starts it ends."""
    parent = os.getpid()

    def bind() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(_NOT_BEGUN)

    return bind


def how_ended(code: int) -> str:
    """How a process ended, by the *code* that asyncio gives.

    >>> how_ended(-9), how_ended(1)
    ('killed by SIGKILL', 'exit code 1')
    """
    try:
        return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
