"""Hands to a command of the user what somebody should know of the crawl (SPIDERLING_ALERT_COMMAND); off without one.

An alert that the command does not take is tried again, in order, and never harms the crawl.  Rates and thresholds are
for Prometheus (docs/live.md).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shlex
import shutil
import signal
import socket
import subprocess
from contextlib import suppress
from datetime import UTC, datetime

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from spiderling.base.option_values import PREFIX
from spiderling.base.terminal import count_of
from spiderling.engine.component import Extension, scheduler_of
from spiderling.reporting.summary import standing

logger = logging.getLogger(__name__)

LOOK_S = 10.0  # seconds between two looks at the crawl; chosen: an alert comes well within a minute
EVERY_S = 3600.0  # seconds within which a kind of trouble is told at most once
PAUSE_S = 60.0  # seconds until a command that has failed is tried again; chosen
LIMIT_S = 30.0  # seconds after which a command is killed
LAST_S = 30.0  # seconds for which the end of a crawl waits for its last alerts


class AlertWatch(Extension):
    """Looks for trouble every ten seconds, and tells how the crawl ends."""

    def __init__(self, crawler: Crawler) -> None:
        if not crawler.settings.get(f"{PREFIX}ALERT_COMMAND"):
            raise NotConfigured
        super().__init__(crawler)

    def opened(self) -> None:
        self._command = shlex.split(self.crawl.options.alert_command)
        if shutil.which(self._command[0]) is None:
            logger.warning("%sALERT_COMMAND: there is no program %s; alerts wait for it", PREFIX, self._command[0])
        self._errors_told = self.crawl.frontier.ledger.totals["internal_errors"]
        self._told: dict[str, float] = {}  # kind of trouble -> when it was told last
        self._waiting: list[dict[str, str]] = []  # alerts that the command has not taken, the oldest first
        self._delivery: asyncio.Task[None] | None = None  # hands them over, while there are any
        self.repeat(self._look, LOOK_S, "the alerts")

    def _look(self) -> None:
        """Tell of each trouble, unless one of its kind was told within the hour."""
        now = self.crawl.now()
        errors = self.crawl.frontier.ledger.totals["internal_errors"]
        for kind, text in self._troubles(errors - self._errors_told).items():
            if text and now - self._told.get(kind, -EVERY_S) >= EVERY_S:
                self._told[kind] = now
                self._tell(kind, text)
                if kind == "internal-errors":
                    self._errors_told = errors

    def _troubles(self, errors: int) -> dict[str, str]:
        """Kind -> what is wrong now and what to do; '' if all is well.  *errors*: internal ones, not told of yet."""
        crawl = self.crawl
        away = crawl.frontier.network_trouble()
        return {
            "network-gone": away
            and f"The network seems to be away: {away}. Look at the line and the name servers; the crawl keeps its "
            f"URLs, goes on when anything answers, and stops after {crawl.options.offline_wait_s:g} s.",
            "disk": f"The crawl is paused: less than {PREFIX}MIN_FREE_BYTES are free. Make room, and it goes on."
            if crawl.is_disk_full
            else "",
            "internal-errors": f"{count_of(errors, 'internal error')} ended single URLs or site files; the crawl goes "
            "on. crawl.log has a traceback of each kind: please report it."
            if errors
            else "",
        }

    def _tell(self, kind: str, text: str) -> None:
        place = self.crawl.jobdir.path.resolve()
        logger.info("Alert (%s): %s", kind, text)
        self._waiting.append(
            {
                "kind": kind,
                "text": f"{place.name}: {text}",
                "crawl": str(place),
                "machine": socket.gethostname(),
                "time": datetime.fromtimestamp(self.crawl.now(), UTC).isoformat(timespec="seconds"),
            }
        )
        if self._delivery is None or self._delivery.done():
            self._delivery = asyncio.ensure_future(self._deliver())

    async def closed(self, reason: str) -> None:
        """Tell how the crawl has ended, and give what waits a last chance."""
        self._look()
        if (error := scheduler_of(self._crawler).error) is not None:
            self._tell("failed", f"The crawl has stopped: {error}")
        else:
            said = standing(self.crawl, reason)
            is_budget = reason.startswith("budget") or reason == "marginal-yield"
            kind = "finished" if said.startswith("is finished") else "budget" if is_budget else "stopped"
            self._tell(kind, f"The crawl {said}")
        assert self._delivery is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_S):
                await self._delivery
        if self._waiting:
            logger.warning("%s could not be sent", count_of(len(self._waiting), "alert"))

    async def _deliver(self) -> None:
        """Hand over what waits, in order."""
        is_failing = False
        while self._waiting:
            why = await self._refusal(json.dumps(self._waiting[0]).encode())
            if not why:
                del self._waiting[0]
            elif not is_failing:
                logger.warning("%sALERT_COMMAND takes no alert, and is tried again: %s", PREFIX, why)
            is_failing = bool(why)
            if why:
                await asyncio.sleep(PAUSE_S)

    async def _refusal(self, data: bytes) -> str:
        """Why the command did not take *data* on its standard input; '' if it did.  Its errors go where ours go."""
        try:
            process = await asyncio.to_thread(
                subprocess.Popen,
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C does not reach it
            )
        except OSError as error:
            return f"{type(error).__name__}: {error}"
        try:
            await asyncio.to_thread(process.communicate, data, LIMIT_S)
        except subprocess.TimeoutExpired:
            return f"it ran for more than {LIMIT_S:g} s"
        finally:
            if process.poll() is None:  # also when the crawl ends meanwhile
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return f"it ended with exit code {process.returncode}" if process.returncode else ""
