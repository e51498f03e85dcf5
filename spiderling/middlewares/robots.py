"""Downloader middleware that takes robots.txt responses to the frontier, which judges by them.

The rules are applied when a URL is handed out (frontier/robots.py), so nothing is left
to be asked here; a robots.txt never reaches the spider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spiderling.crawl import fetch_of
from spiderling.middlewares.limits import asked_to_wait_s, redirect_target
from spiderling.outcomes import RobotsDone
from spiderling.scheduler import Scheduler

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class RobotsMiddleware:
    """Sits inside LimitsMiddleware, so that it sees every answer to a robots.txt request first."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> RobotsMiddleware:
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Response:
        fetch, scheduler = fetch_of(request), self._crawler.engine.scheduler
        if fetch is None or fetch.robots is None or not isinstance(scheduler, Scheduler):
            return response
        wait_s = asked_to_wait_s(response) or 0.0
        scheduler.settle_robots(fetch, response.status, response.body, redirect_target(response), wait_s)
        raise RobotsDone(f"robots.txt of {fetch.robots.origin}")
