"""Applies ``control.yaml`` of the crawl's directory whenever it changes; log and state note each change."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from scrapy.crawler import Crawler

from spiderling.base.addresses import IPNetwork
from spiderling.base.errors import BadInput
from spiderling.base.lists import HostList
from spiderling.base.option_values import YIELD_PROFILES, parse_yield_profile
from spiderling.base.reasons import Reason
from spiderling.base.small_yaml import read_yaml
from spiderling.base.urls import canonicalize
from spiderling.crawl.asking_again import MAY_BE_ASKED, ask_again
from spiderling.crawl.crawl import Crawl
from spiderling.engine.component import Extension
from spiderling.extensions.budget import stop_if_spent

logger = logging.getLogger(__name__)

_POLL_S = 2.0
"""Seconds between two looks at the file.  Chosen."""
_MAX_BYTES = 1_000_000
"""Bytes of the largest file that is read.  Chosen."""
TEMPLATE = """\
# Read again whenever it changes while the crawl runs; remove the leading "#" of what you need.
# block: ["ads.example.com", "*.shop.example"]   # no further request to these hosts
# block_networks: ["192.0.2.0/24"]               # ... nor to these addresses
# reopen: ["example.org"]                        # let a retired or blocked host go on
# ask_again: ["internal-error", "dns"]           # let URLs wait again that ended so, each end once
# seeds: ["https://example.org/"]                # further seeds
# host_interval_s: 10                            # seconds between two requests to a host
# ip_interval_s: 0.5                             # ... to an address
# yield_profile: permissive                      # off, permissive, normal, paper or a number
# max_pages: 100000                              # stop (to be resumed) after so many pages in all
# max_downloaded_mb: 50000                       # ... or megabytes
"""


@dataclass(frozen=True, slots=True)
class ControlFile:
    """The contents of ``control.yaml``; what is not given is None or empty."""

    block: list[str] = field(default_factory=list)
    block_networks: list[str] = field(default_factory=list)
    reopen: list[str] = field(default_factory=list)
    ask_again: list[str] = field(default_factory=list)
    seeds: list[str] = field(default_factory=list)
    host_interval_s: float | None = None
    ip_interval_s: float | None = None
    yield_profile: str | None = None
    max_pages: float | None = None
    max_downloaded_mb: float | None = None

    @classmethod
    def parse(cls, text: str) -> ControlFile:
        """Read *text*; raises BadInput that names the key and what it must be."""
        data = read_yaml(text) or {}
        if not isinstance(data, dict):
            raise BadInput("it must hold lines such as 'host_interval_s: 10'")
        known = {spec.name: spec for spec in fields(cls)}
        unknown = [str(key) for key in data if key not in known]
        if unknown:
            raise BadInput(f"there is no key {unknown[0]!r}; known are {', '.join(known)}")
        return cls(**{key: _checked(key, value) for key, value in data.items() if value is not None})


class Control(Extension):
    """Polls the file and applies what changed."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._stamp: tuple[int, int] | None = None
        self._applied = ControlFile()

    async def opened(self) -> None:
        crawl = self.crawl
        with crawl.errors.changing():
            if not crawl.jobdir.control.exists():
                crawl.jobdir.control.write_text(TEMPLATE, encoding="utf-8")
            await self._look()  # a crawl without URLs would end before the first poll
            stop_if_spent(self.dispatcher)  # a budget may be spent before the start
        self.repeat(self._look, _POLL_S, "control.yaml")

    async def _look(self) -> None:
        crawl = self.crawl
        path = crawl.jobdir.control
        try:
            status = path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if stamp == self._stamp:
                return
            self._stamp = stamp
            if status.st_size > _MAX_BYTES:
                raise BadInput(f"it is larger than {_MAX_BYTES} bytes")
            wanted = ControlFile.parse(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return
        except (BadInput, OSError, UnicodeDecodeError) as error:
            is_text = not isinstance(error, UnicodeDecodeError)
            why = (getattr(error, "strerror", None) or error) if is_text else "it is not UTF-8"
            logger.error("%s is left aside until it is mended: %s", path, why)
            return
        former = self._applied
        self._applied = wanted
        self._apply(crawl, former, wanted)
        self.dispatcher.wake()
        if crawl.archives is None:
            await ask_again(crawl, [Reason.of(key) for key in wanted.ask_again if key not in former.ask_again])
            self.dispatcher.wake()

    def _apply(self, crawl: Crawl, former: ControlFile, wanted: ControlFile) -> None:
        for key, new in asdict(wanted).items():
            if (old := getattr(former, key)) != new:
                crawl.note_event(f"control.yaml: {key}: {old!r} -> {new!r}")
        crawl.frontier.set_rates(
            crawl.options.host_interval_s if wanted.host_interval_s is None else wanted.host_interval_s,
            crawl.options.ip_interval_s if wanted.ip_interval_s is None else wanted.ip_interval_s,
        )
        crawl.frontier.host_closing.judge_by(wanted.yield_profile)
        self._apply_blocks(crawl, wanted)
        crawl.budgets.set_control_limits(wanted.max_pages, wanted.max_downloaded_mb)
        for url in wanted.seeds:
            if url not in former.seeds and crawl.archives is None:
                refusal = crawl.frontier.put_seed(url if "://" in url else f"http://{url}", crawl.clock.now())
                if refusal is not None:
                    logger.warning("control.yaml: the seed %r is left out: %s", url, refusal.help)
        for name in wanted.reopen:
            if name not in former.reopen:
                self._reopen(crawl, name)

    def _apply_blocks(self, crawl: Crawl, wanted: ControlFile) -> None:
        listed = crawl.blocked.holds
        named = _hosts(wanted.block)
        networks = _networks(wanted.block_networks)
        for host in crawl.frontier.host_closing.block_where(lambda name: listed(name) or named.holds(name)):
            crawl.note_event(f"blocked {host.name}")
        crawl.frontier.block_addresses(lambda address: any(ipaddress.ip_address(address) in net for net in networks))

    def _reopen(self, crawl: Crawl, name: str) -> None:
        target = canonicalize(name if "://" in name else f"http://{name}/")
        host = crawl.frontier.host(target.host) if target else None
        if host is None:
            logger.warning("control.yaml: reopen: this crawl knows no host %s", name)
        elif not host.is_closed:
            logger.warning("control.yaml: reopen: %s is not retired or blocked", name)
        else:
            number = crawl.frontier.host_closing.reopen_host(host, crawl.clock.now())
            crawl.note_event(f"reopened {host.name} with {number} URLs")


def _checked(key: str, value: Any) -> Any:
    if key in _LISTS:
        example, check = _LISTS[key]
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            raise BadInput(f'{key} is {value!r}; it must be a list such as ["{example}"]')
        check(value)
        return value
    if key == "yield_profile":
        profile = "off" if value is False else str(value)  # YAML reads a bare off as false
        try:
            parse_yield_profile(profile)
        except BadInput:
            raise BadInput(
                f"yield_profile is {value!r}; it must be one of {', '.join(YIELD_PROFILES)} or a number"
            ) from None
        return profile
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise BadInput(f"{key} is {value!r}; it must be a number from 0 upward")
    return float(value)


def _hosts(entries: list[str]) -> HostList:
    """The hosts that ``block`` names, in the syntax of host lists."""
    hosts = HostList()
    for entry in entries:
        if len(entry.split()) != 1 or not hosts.add_entry(entry):
            raise BadInput(f"block: {entry!r} names no host; write example.org, .example.org or *.example.org")
    return hosts


def _networks(entries: list[str]) -> list[IPNetwork]:
    try:
        return [ipaddress.ip_network(entry, strict=False) for entry in entries]
    except ValueError as error:
        raise BadInput(f"block_networks: {error}") from error


def _reasons(entries: list[str]) -> None:
    known = sorted(reason.value for reason in MAY_BE_ASKED)
    for entry in entries:
        if entry not in known:
            raise BadInput(f"ask_again: {entry!r} can not be asked again; these can: {', '.join(known)}")


_LISTS: dict[str, tuple[str, Callable[[list[str]], object]]] = {
    "block": ("example.org", _hosts),
    "block_networks": ("192.0.2.0/24", _networks),
    "reopen": ("example.org", list),
    "ask_again": ("dns", _reasons),
    "seeds": ("https://example.org/", list),
}
"""Key of a list -> an example of an entry, and what raises BadInput for a list that it cannot understand."""
