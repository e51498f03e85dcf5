"""Downloader middleware: ends challenges, whatever their status; none is read as a page, and their cookies are lost."""

from __future__ import annotations

from scrapy import Request
from scrapy.http import Response

from spiderling.base.reasons import Reason
from spiderling.engine.component import Component
from spiderling.engine.outcomes import Refused
from spiderling.engine.requests import fetch_of
from spiderling.fetch.challenges import challenge_of
from spiderling.middlewares.limits import wants_status


class ChallengesMiddleware(Component):
    """Raises Refused for a challenge.  It stands nearer to the handler than Scrapy's CookiesMiddleware.

    An error status that request or spider takes (handle_httpstatus_list) goes on to the spider.
    """

    def process_response(self, request: Request, response: Response) -> Response:
        status = response.status
        if fetch_of(request) is None or (status >= 300 and wants_status(request, self._crawler.spider, status)):
            return response
        maker = challenge_of(status, response.headers, response.body)
        if maker:
            raise Refused(Reason.CHALLENGED, response, detail=maker)
        return response
