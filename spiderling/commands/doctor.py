"""``scrapy doctor``: whether this machine and these settings are ready for a crawl, and what to do if they are not."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import scrapy
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from spiderling import __version__
from spiderling.base.addresses import HostMap, addresses_of, host_of_contact
from spiderling.base.errors import BadInput
from spiderling.base.machine import EXTRAS, RESERVED, descriptor_limit, missing, raise_descriptor_limit
from spiderling.base.options import Options
from spiderling.cli.command import SpiderlingCommand

_DNS_S = 0.7  # seconds that name servers are waited for; chosen: the whole takes less than two
_ANY_NAME = "example.org"  # a name that is always there (RFC 2606), for a crawl without a contact
_NOT_SET = 5  # TIME_ERROR of ntp_adjtime(3): no time server sets the clock


class Command(SpiderlingCommand):
    arguments = "[-s SPIDERLING_CONTACT=you@your-domain] [-s JOBDIR=DIR]"
    summary = "Say whether this machine and the settings are ready for a crawl"
    description = (
        "Look at versions, compiled steps, the packages that some commands need, the limit of open files, the disk, "
        "name servers, the clock and the contact, and say of each whether it is ok, or what to do. Nothing is sent but "
        "one question to the name servers, for the domain of the contact. Exit code 1 if anything is not ok. "
        "Example: scrapy doctor -s SPIDERLING_CONTACT=you@your-domain"
    )

    def work(self, args: list[str], opts: argparse.Namespace) -> Iterator[str]:
        if args:
            raise UsageError("doctor takes no arguments, but settings: scrapy doctor -s JOBDIR=crawls/cs")
        for name, words, advice in findings(self.given_settings):
            self.exitcode = 1 if advice else self.exitcode
            yield f"{'warning' if advice else 'ok':<9}{name:<16}{words}{advice and f': {advice}'}"


def findings(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """What was looked at, how it stands, and what to do, '' if it is ok; raises BadInput for a wrong option."""
    options = Options.from_settings(settings)
    asked = ThreadPoolExecutor(1).submit(lambda: asyncio.run(_asked(options)))  # while the text chain is imported
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    python = platform.python_version()
    yield "versions", f"Spiderling {__version__}, Scrapy {scrapy.__version__}, Python {python}, {system}", ""
    from spiderling.text.steps import PYTHON, choose

    choice = choose(options.compiled)
    yield "compiled steps", choice.words, "without them a page takes longer" if choice.steps is PYTHON else ""
    wanting = ", ".join(f"{module} ({extra})" for extra, (module, _) in EXTRAS.items() if missing(extra))
    yield "packages", f"not here, and needed for some commands: {wanting}" if wanting else "all are installed", ""
    raise_descriptor_limit()
    wanted = settings.getint("CONCURRENT_REQUESTS") * 4 // 3 + 2 * RESERVED
    is_enough = descriptor_limit() >= wanted
    yield "open files", f"at most {descriptor_limit():,}", "" if is_enough else f"say ulimit -n {wanted}"
    place = Path(settings.get("JOBDIR") or ".").absolute()
    place = next(each for each in (place, *place.parents) if each.exists())
    free = shutil.disk_usage(place).free
    is_enough = free >= options.min_free_bytes and os.access(place, os.W_OK)
    advice = "" if is_enough else "make room, or name a directory that can be written to by -s JOBDIR=DIR"
    yield "disk", f"{free / 1e9:,.1f} GB are free in {place}", advice
    yield "name servers", *asked.result()
    yield "clock", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), _clock_advice()
    try:
        addresses_of(options, is_offline=False)
        yield "contact", options.user_agent(), ""
    except BadInput as error:
        yield "contact", options.contact or "none", str(error)


async def _asked(options: Options) -> tuple[str, str]:
    """What name servers say, and what to do."""
    from spiderling.fetch.errors import NameNotFound, NameServerFailure
    from spiderling.fetch.resolver import Resolver

    name = host_of_contact(options.contact) or _ANY_NAME
    resolver = Resolver(options, HostMap(options.hosts))
    try:
        async with asyncio.timeout(_DNS_S):
            found = await resolver.resolve(name)
    except (NameNotFound, NameServerFailure, TimeoutError) as error:
        words = str(error) or f"no answer about {name} in {_DNS_S} s"
        return words, "look at /etc/resolv.conf, or name others by -s SPIDERLING_NAMESERVERS=ADDRESS"
    finally:
        await resolver.close()
    return f"{name} is {found.addresses[0]}", ""


def _clock_advice() -> str:
    if time.time() < os.path.getmtime(sys.executable):
        return "that is before this Python was made; set the clock, else no certificate is valid"
    adjtime = getattr(ctypes.CDLL(None), "ntp_adjtime", None)
    if adjtime and adjtime(ctypes.create_string_buffer(1024)) == _NOT_SET:  # an empty request changes nothing
        return "no time server sets it; start one, such as chrony or systemd-timesyncd"
    return ""
