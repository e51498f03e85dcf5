"""What text workers do in tests of their pool; they import little, since so many of them are started."""

from __future__ import annotations

import os
import re
import time

from spiderling.base.errors import SpiderlingError
from spiderling.text import Page
from spiderling.workers.process import Task, WorkerConfig, main

LEAKED: list[bytes] = []


def obedient(config: WorkerConfig):
    """A worker that does what the page's body says."""

    def work(task: Task) -> Page:
        order, _, argument = task.body.partition(b" ")
        if order == b"die":
            os._exit(3)
        elif order == b"sleep":
            time.sleep(float(argument))
        elif order == b"raise":
            raise ValueError("bad page")
        elif order == b"eat":
            bytearray(int(argument))
        elif order == b"leak":
            LEAKED.append(b"x" * int(argument))
        elif order == b"burn":
            re.match("(a+)+$", "a" * 40 + "b")  # inside C code: no signal handler of Python's would run
        return Page(title=task.body.decode(), canonical=task.url, html_lang=task.http_charset, words=os.getpid())

    return work


def failing(config: WorkerConfig):
    raise SpiderlingError("there is no model")


def exiting(config: WorkerConfig):
    os._exit(1)


if __name__ == "__main__":
    main(0)
