"""What ``control.yaml`` changes in a running crawl (jobdir/control_file.py has its form)."""

from __future__ import annotations

import ipaddress
import logging
from dataclasses import asdict

from spiderling.base.option_values import PREFIX
from spiderling.base.reasons import Reason
from spiderling.base.terminal import shown
from spiderling.base.urls import canonicalize
from spiderling.crawl.crawl import Crawl
from spiderling.jobdir.control_file import ControlFile, hosts_of, networks_of

logger = logging.getLogger(__name__)


def apply_control(crawl: Crawl, former: ControlFile, wanted: ControlFile) -> None:
    """Make *wanted* hold, where it differs from *former*; log and state note each change."""
    for key, new in asdict(wanted).items():
        if (old := getattr(former, key)) != new:
            crawl.note_event(f"control.yaml: {key}: {old!r} -> {new!r}")
    _pause(crawl, wanted.pause)
    own = crawl.options
    host_s = own.host_interval_s if wanted.host_interval_s is None else wanted.host_interval_s
    ip_s = own.ip_interval_s if wanted.ip_interval_s is None else wanted.ip_interval_s
    crawl.frontier.schedule.change_intervals(host_s, ip_s, crawl.now())
    crawl.frontier.host_closing.judge_by(wanted.yield_profile)
    _apply_blocks(crawl, wanted)
    crawl.budgets.set_control_limits(wanted.max_pages, wanted.max_downloaded_mb)
    for url in wanted.seeds:
        if url not in former.seeds and crawl.archives is None:
            refusal = crawl.frontier.put_seed(url if "://" in url else f"http://{url}", crawl.now())
            if refusal is not None:  # at each start those of before are seen
                level = logging.INFO if refusal is Reason.SEEN else logging.WARNING
                logger.log(level, "control.yaml: the seed %s is left out: %s", shown(url), refusal.help)
    for name in wanted.reopen:
        _reopen(crawl, name, former, wanted)


def _pause(crawl: Crawl, is_wanted: bool) -> None:
    if is_wanted and crawl.archives is not None:
        logger.warning("control.yaml: pause has no effect on a crawl of archives; Ctrl-C pauses it")
        return
    if is_wanted and not crawl.is_paused:
        logger.warning("The crawl is paused by control.yaml; it goes on when 'pause: true' is gone from there")
    crawl.is_paused = is_wanted


def _apply_blocks(crawl: Crawl, wanted: ControlFile) -> None:
    named = hosts_of(wanted.block)
    networks = networks_of(wanted.block_networks)
    for host in crawl.frontier.host_closing.block_where(lambda name: crawl.is_blocked(name) or named.holds(name)):
        crawl.note_event(f"blocked {host.name}")
    crawl.frontier.block_addresses(lambda address: any(ipaddress.ip_address(address) in net for net in networks))


def _reopen(crawl: Crawl, name: str, former: ControlFile, wanted: ControlFile) -> None:
    """Reopen the host *name*, if this is new or the file has blocked it until now; what is blocked stays so."""
    target = canonicalize(name if "://" in name else f"http://{name}/")
    record = target.host if target else ""
    if crawl.frontier.is_elsewhere(record):
        return
    is_listed = hosts_of(wanted.block).holds(record)
    is_blocked = is_listed or crawl.is_blocked(record)
    if name in former.reopen and (is_blocked or not hosts_of(former.block).holds(record)):
        return
    host = crawl.frontier.host(record)
    if host is None:
        logger.warning("control.yaml: reopen: this crawl knows no host %s", shown(name))
    elif crawl.taken_down.holds_host(record):
        logger.warning("control.yaml: reopen: %s was taken down, and stays so", shown(name))
    elif is_blocked:
        where = "under block: too" if is_listed else f"in {PREFIX}BLOCK"
        logger.warning("control.yaml: reopen: %s stands %s; take it out there first", shown(name), where)
    elif not host.is_closed:
        logger.info("control.yaml: reopen: %s is not retired or blocked", shown(name))
    else:
        number = crawl.frontier.host_closing.reopen_host(host, crawl.now())
        crawl.note_event(f"reopened {record} with {number} URLs")
