"""Applies ``control.yaml`` of the crawl's directory whenever it changes; log and state note each change."""

from __future__ import annotations

import ipaddress
import logging
import os
from dataclasses import asdict
from pathlib import Path

from scrapy.crawler import Crawler

from spiderling.base.errors import BadInput, StorageError
from spiderling.base.printing import shown
from spiderling.base.reasons import Reason
from spiderling.base.urls import canonicalize
from spiderling.crawl.crawl import Crawl
from spiderling.crawl.ended_urls import ask_again
from spiderling.engine.component import Extension
from spiderling.extensions.limits import stop_if_spent
from spiderling.jobdir.control_file import TEMPLATE, ControlFile, hosts_of, networks_of, read_control, stamp_of

logger = logging.getLogger(__name__)

_POLL_S = 2.0
"""Seconds between two looks at the file.  Chosen."""


class Control(Extension):
    """Polls the file and applies what changed."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._stamp: tuple[int, ...] = ()
        self._told = ""
        """Why the file is left aside, as the log has it."""
        self._applied = ControlFile()

    async def opened(self) -> None:
        crawl = self.crawl
        with crawl.errors.changing():
            if self.dispatcher.shard is None and not os.path.lexists(crawl.jobdir.control):
                crawl.jobdir.control.write_text(TEMPLATE, encoding="utf-8")
            await self._look()  # a crawl without URLs would end before the first poll
            stop_if_spent(self.dispatcher)  # a budget may be spent before the start
        self.repeat(self._look, _POLL_S, "control.yaml")

    async def _look(self) -> None:
        crawl = self.crawl
        shard = self.dispatcher.shard
        try:
            text = self._changed_text(crawl.jobdir.control) if shard is None else shard.control.changed_text()
            if text is None:
                return
            wanted = ControlFile.parse(text)
        except (BadInput, OSError, StorageError, UnicodeDecodeError) as error:
            is_text = not isinstance(error, UnicodeDecodeError)
            why = (getattr(error, "strerror", None) or error) if is_text else "it is not UTF-8"
            place = crawl.jobdir.control if shard is None else shard.control.path
            if str(why) != self._told:
                logger.error("%s is left aside until it is mended: %s", place, why)
            self._told = str(why)
            return
        self._told = ""
        former = self._applied
        self._applied = wanted
        self._apply(crawl, former, wanted)
        self.dispatcher.wake()
        if crawl.archives is None:
            await ask_again(crawl, [Reason.of(key) for key in wanted.ask_again if key not in former.ask_again])
            self.dispatcher.wake()

    def _changed_text(self, path: Path) -> str | None:
        """The text of the file at *path*; None if it is as it was, or missing."""
        stamp = stamp_of(path)
        if stamp == self._stamp:
            return None
        self._stamp = stamp
        return read_control(path) if stamp else None

    def _apply(self, crawl: Crawl, former: ControlFile, wanted: ControlFile) -> None:
        for key, new in asdict(wanted).items():
            if (old := getattr(former, key)) != new:
                crawl.note_event(f"control.yaml: {key}: {old!r} -> {new!r}")
        self._pause(crawl, wanted.pause)
        own = crawl.options
        host_s = own.host_interval_s if wanted.host_interval_s is None else wanted.host_interval_s
        ip_s = own.ip_interval_s if wanted.ip_interval_s is None else wanted.ip_interval_s
        crawl.frontier.schedule.change_intervals(host_s, ip_s, crawl.now())
        crawl.frontier.host_closing.judge_by(wanted.yield_profile)
        self._apply_blocks(crawl, wanted)
        crawl.budgets.set_control_limits(wanted.max_pages, wanted.max_downloaded_mb)
        for url in wanted.seeds:
            if url not in former.seeds and crawl.archives is None:
                refusal = crawl.frontier.put_seed(url if "://" in url else f"http://{url}", crawl.now())
                if refusal is not None:
                    logger.warning("control.yaml: the seed %s is left out: %s", shown(url), refusal.help)
        for name in wanted.reopen:
            if name not in former.reopen:
                self._reopen(crawl, name)

    def _pause(self, crawl: Crawl, is_wanted: bool) -> None:
        if is_wanted and crawl.archives is not None:
            logger.warning("control.yaml: pause has no effect on a crawl of archives; Ctrl-C pauses it")
            return
        if is_wanted and not crawl.is_paused:
            logger.warning("The crawl is paused by control.yaml; it goes on when 'pause: true' is gone from there")
        crawl.is_paused = is_wanted

    def _apply_blocks(self, crawl: Crawl, wanted: ControlFile) -> None:
        listed = crawl.blocked.holds
        named = hosts_of(wanted.block)
        networks = networks_of(wanted.block_networks)
        for host in crawl.frontier.host_closing.block_where(lambda name: listed(name) or named.holds(name)):
            crawl.note_event(f"blocked {host.name}")
        crawl.frontier.block_addresses(lambda address: any(ipaddress.ip_address(address) in net for net in networks))

    def _reopen(self, crawl: Crawl, name: str) -> None:
        target = canonicalize(name if "://" in name else f"http://{name}/")
        if target is not None and crawl.frontier.is_elsewhere(target.host):
            return
        host = crawl.frontier.host(target.host) if target else None
        if host is None:
            logger.warning("control.yaml: reopen: this crawl knows no host %s", shown(name))
        elif not host.is_closed:
            logger.warning("control.yaml: reopen: %s is not retired or blocked", shown(name))
        else:
            number = crawl.frontier.host_closing.reopen_host(host, crawl.now())
            crawl.note_event(f"reopened {host.name} with {number} URLs")
