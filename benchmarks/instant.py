"""Text workers that answer at once, for the cases `instant` and `long` of crawl.py: what is left is the main process.

A page's links are its own; its text, with all that was found in it, is that of one of the first pages, under digests
and shingles of its own, so that nothing is a duplicate.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from unittest import mock
from urllib.parse import urljoin

import numpy as np
import xxhash

from spiderling import pipelines
from spiderling.base.link_batch import Link, gathered
from spiderling.text import Page
from spiderling.text.shingles import Shingles
from spiderling.workers.process import Task, WorkerConfig, text_process

_TEMPLATES = 20
_HREF = re.compile(rb'href="([^"]+)"')


class InstantClean(pipelines.CleanPipeline):
    """Pipeline 100 with such workers."""

    async def open_spider(self) -> None:
        made = WorkerConfig.from_options
        with mock.patch.object(
            pipelines.WorkerConfig, "from_options", lambda *given: replace(made(*given), process=f"{__name__}:answers")
        ):
            await super().open_spider()


def answers(config: WorkerConfig) -> Callable[[Task], Page]:
    """The work of such a worker."""
    work, templates = text_process(config), list[Page]()

    def answer(task: Task) -> Page:
        if len(templates) < _TEMPLATES:
            templates.append(work(task))
            return templates[-1]
        digest = xxhash.xxh3_128(task.body + task.url.encode())
        number = digest.intdigest()
        template = templates[number % _TEMPLATES]
        drawn = np.random.default_rng(number).integers(1 << 63, size=len(template.shingles.hashes), dtype=np.uint64)
        return replace(
            template,
            batch=gathered(Link(urljoin(task.url, href.decode())) for href in _HREF.findall(task.body)),
            links=[],
            raw_digest=digest.digest(),
            text_digest=digest.digest()[::-1],
            sketch=number & (1 << 63) - 1,
            shingles=Shingles(drawn, template.shingles.counts, repeats=False),
        )

    return answer
