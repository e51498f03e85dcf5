"""Acts while the network is away: holds failures back, pauses, probes, and at last stops the crawl.

frontier/reachability.py decides whose fault a failure was.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadTimeoutError,
    IgnoreRequest,
)

from spiderling.base.errors import NetworkAway
from spiderling.base.option_values import PREFIX
from spiderling.base.urls import CanonicalUrl, canonicalize
from spiderling.crawl.crawl import Crawl
from spiderling.engine.requests import PROBED
from spiderling.fetch.errors import NameNotFound, NameServerFailure, TooSlow, TransferCut
from spiderling.fetch.resolver import Resolution, Resolver
from spiderling.frontier import LONGEST_PAUSE_S, NetworkState, Trouble

logger = logging.getLogger(__name__)

_HELD_S = 1.0  # seconds between two looks whether the crawl goes on; chosen
_NAMED = 10  # most names in a message; chosen
_TROUBLES: tuple[tuple[type[BaseException], Trouble], ...] = (
    (NameNotFound, Trouble.NO_SUCH_NAME),
    (NameServerFailure, Trouble.NAME_SERVER),
    (CannotResolveHostError, Trouble.NAME_SERVER),
    (DownloadConnectionRefusedError, Trouble.CONNECTION),
    (DownloadTimeoutError, Trouble.TIMEOUT),
)


def trouble_of(error: BaseException | None, wire_bytes: int = 0) -> Trouble | None:
    """How the network failed; None for another error, and after bytes were received."""
    if wire_bytes or isinstance(error, TooSlow):
        return None
    return next((trouble for kind, trouble in _TROUBLES if isinstance(error, kind)), None)


class Offline:
    """Pauses one crawl while its network is away; the dispatcher owns it."""

    def __init__(
        self, crawler: Crawler, crawl: Crawl, resolver: Resolver, headers: dict[bytes, bytes], wake: Callable[[], None]
    ) -> None:
        """*headers* are sent with a probe; *wake* is called after each probe."""
        self._crawler = crawler
        self._crawl = crawl
        self._resolver = resolver
        self._headers = headers
        self._wake = wake
        self._known = crawl.frontier.reachability
        self._probing: asyncio.Task[None] | None = None
        self._is_said = False  # whether the log has last said that the network is away

    def failed(self, host: str, trouble: Trouble, begun: float, over: Callable[[bool], None]) -> None:
        """Report a failure of *host*; *over* is called, when the cause is known, with whether it was the host."""
        if self._crawl.stopping:
            over(False)
            return
        self._known.failed(host, trouble, begun, self._crawl.now(), over)
        self._wake()

    async def resolve(self, name: str) -> Resolution:
        """The addresses of *name*; notes that a name server answered, even if the name does not exist.

        Raises NameNotFound or NameServerFailure.
        """
        now = self._crawl.now
        begun = now()
        try:
            found = await self._resolver.resolve(name)
        except NameNotFound:
            self._known.name_answered(name, begun, now(), exists=False)
            raise
        if found.is_asked:
            self._known.name_answered(name, begun, now())
        return found

    async def is_theirs(self, host: str, trouble: Trouble, begun: float) -> bool:
        """Report a failure of *host*, and wait until it is known whether it was the host's fault."""
        known: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.failed(host, trouble, begun, lambda theirs: None if known.done() else known.set_result(theirs))
        return await known

    def look(self) -> None:
        """Pass on the causes that are known by now; when nothing answers, probe or stop the crawl."""
        if self._known.is_calm and not self._is_said:
            return
        network = self._known.look(self._crawl.frontier.host_states.at_work(), self._crawl.now())
        self._tell()
        self._log_change()
        if network is NetworkState.UNKNOWN_NAMES:
            names = self._known.failing(_NAMED)
            self._crawl.fail(
                NetworkAway(
                    f"nothing ever answered, and no such names are known: {names}. Check the seeds' names and the "
                    "network; the same command asks for them again."
                )
            )
        elif network is not NetworkState.THERE and (self._probing is None or self._probing.done()):
            self._probing = self._crawl.errors.watch_task(self._probe(), "probing the network")

    def end(self) -> None:
        """Let URLs whose failures are held back wait again, since the crawl is being stopped."""
        self._known.give_up()
        self._tell()
        if self._probing is not None:
            self._probing.cancel()

    def _tell(self) -> None:
        for over, is_theirs in self._known.decided():
            over(is_theirs)

    def _log_change(self) -> None:
        """Log once that the network is away, and once that it is there again."""
        is_away = self._known.network is NetworkState.AWAY
        if is_away == self._is_said or self._known.network is NetworkState.UNKNOWN_NAMES:
            return
        self._is_said = is_away
        if is_away:
            logger.warning(
                "The network seems to be away: %s (%s). The crawl pauses, keeps its URLs and goes on when anything "
                "answers; it stops after %g s (%sOFFLINE_WAIT_S)",
                self._crawl.frontier.network_trouble(),
                self._known.failing(_NAMED),
                self._crawl.options.offline_wait_s,
                PREFIX,
            )
        else:
            logger.info("The network is there again; the crawl goes on")

    async def _probe(self) -> None:
        """Probe until the network is there, or has been away for too long."""
        while not (self._is_there or self._crawl.stopping):
            if self._crawl.is_held:  # a probe is a request, and nobody waits for the network
                await asyncio.sleep(_HELD_S)
                self._known.away_since += _HELD_S
                continue
            left_s = LONGEST_PAUSE_S
            if self._known.network is NetworkState.AWAY:
                left_s = self._known.away_since + self._crawl.options.offline_wait_s - self._crawl.now()
            if left_s <= 0:
                standing = f"{self._crawl.frontier.network_trouble()} ({self._known.failing(_NAMED)})"
                waited = f"{PREFIX}OFFLINE_WAIT_S={self._crawl.options.offline_wait_s:g}"
                self._crawl.fail(
                    NetworkAway(
                        f"{standing}, for as long as {waited} allows. All URLs are kept; the same command goes on when "
                        "the network is there again."
                    )
                )
                return
            await asyncio.sleep(min(self._known.probe_in(self._crawl.now()), left_s))
            if not self._is_there and self._known.probe_in(self._crawl.now()) <= 0:
                await self._probe_one()

    async def _probe_one(self) -> None:
        origin = self._known.next_probe()
        now = self._crawl.now
        frontier = self._crawl.frontier
        target = canonicalize(origin + "/")
        host = frontier.host(target.host) if target is not None else None
        if host is not None and not frontier.probes.may_ask(host):
            self._known.forget(origin, now())
        elif target is None or not await self._ask(target):
            self._known.probe_later(now())
        else:
            self._known.probed(now())
        self._log_change()
        self._tell()
        self._wake()

    @property
    def _is_there(self) -> bool:
        return self._known.network is NetworkState.THERE

    async def _ask(self, target: CanonicalUrl) -> bool:
        """Resolve the name of *target*, then ask its host for its robots.txt, and note what answers.

        False: a host that did not fail is being asked already, or is not due for a minute; or the crawl is held.
        """
        now = self._crawl.now
        frontier = self._crawl.frontier
        self._resolver.forget()
        try:
            found = await self.resolve(target.name)
        except (NameNotFound, NameServerFailure):
            return True
        if self._known.has_told or self._is_there:
            return True
        address = next(filter(frontier.may_connect, found.addresses), None)
        host = frontier.host(target.host)
        if host is None or address is None:
            return True
        while wait_s := frontier.probes.due_in(host, address, now()):
            await asyncio.sleep(wait_s)
            host = frontier.host(target.host) or host  # a commit may have taken it from memory meanwhile
        if wait_s is None:
            return self._known.fails(host.name)
        if self._crawl.is_held:
            return False
        begun = now()
        frontier.probes.begin(host, address, begun)
        try:
            meta = {"address": address, "verbatim_url": True, PROBED: host}
            if await self._receives(Request(f"{target.origin}/robots.txt", headers=dict(self._headers), meta=meta)):
                self._known.host_answered(target.origin, begun, now())
        finally:
            frontier.probes.end(host, now())
        return True

    async def _receives(self, request: Request) -> bool:
        """Whether anything was received."""
        try:
            await self._crawler.engine.download_async(request)
        except IgnoreRequest:
            return True  # an answer that a middleware does not want
        except TransferCut:
            return False
        except Exception as error:
            return trouble_of(error, request.meta.get("wire_bytes") or 0) is None
        return True
