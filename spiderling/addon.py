"""The Scrapy add-on, which sets what a crawl needs: ``ADDONS = {"spiderling.addon.SpiderlingAddon": 300}``.

settings.py holds what Scrapy reads before it loads add-ons: COMMANDS_MODULE, ASYNCIO_EVENT_LOOP and the reactor.  A
value that the user's project sets wins, except for COMPONENTS, without which there is no crawl.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any
from urllib.request import getproxies_environment

import scrapy
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings

from spiderling.base.terminal import runs_without_us

logger = logging.getLogger(__name__)

COMPONENTS: dict[str, Any] = {
    "SCHEDULER": "spiderling.engine.scheduler.Scheduler",
    "LOG_FORMATTER": "spiderling.extensions.lifecycle.ItemErrorFormatter",
    # The frontier hands out only what is due.  Scrapy's slots, as its project template sets them, would delay that.
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
    "AUTOTHROTTLE_ENABLED": False,
    "ROBOTSTXT_OBEY": False,  # the frontier obeys it, before a request is made
}
DEFAULTS: dict[str, Any] = {
    "CONCURRENT_REQUESTS": 500,
    # The limit holds for one response, which gives one item; a higher one starts idle tasks for each page.
    "CONCURRENT_ITEMS": 1,
    "SCRAPER_SLOT_MAX_ACTIVE_SIZE": 64_000_000,
    "COOKIES_ENABLED": False,
    "REFERER_ENABLED": False,
    "METAREFRESH_ENABLED": False,
    "HTTPPROXY_ENABLED": False,
    # The frontier does redirects and retries, the download handler does content encodings.
    "REDIRECT_ENABLED": False,
    "RETRY_ENABLED": False,
    "COMPRESSION_ENABLED": False,
    # Both let anybody with access to this machine's loopback interface run code in the crawler.
    "REMOTE_CONTROL_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "INFO",
    "STATS_DUMP": False,  # the summary at the end says what matters
    "USER_AGENT": "",
}
TRIED = ("2.19",)  # releases of Scrapy that all tests have passed with, without their last number
FAST = {"DOWNLOADER": "spiderling.engine.fast_scrapy.DirectDownloader"}
"""A part made for certain releases of Scrapy; without it a page takes about a sixth more of the main process."""
ENTRIES: dict[str, dict[str, Any]] = {
    "DOWNLOAD_HANDLERS": dict.fromkeys(("http", "https"), "spiderling.engine.download_handler.DownloadHandler"),
    "DOWNLOADER_MIDDLEWARES": {
        "spiderling.middlewares.LimitsMiddleware": 100,
        "spiderling.middlewares.ChallengesMiddleware": 890,
        "spiderling.middlewares.SiteFilesMiddleware": 900,
        "spiderling.middlewares.PolitenessMiddleware": 950,
        "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,
        "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
        "scrapy.downloadermiddlewares.downloadtimeout.DownloadTimeoutMiddleware": None,
        "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware": None,
        "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware": None,
    },
    "SPIDER_MIDDLEWARES": {
        "spiderling.middlewares.WakeUp": 10,
        "spiderling.middlewares.ExitsMiddleware": 990,
        "scrapy.spidermiddlewares.httperror.HttpErrorMiddleware": None,
        "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
        "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
    },
    "ITEM_PIPELINES": {
        "spiderling.pipelines.CleanPipeline": 100,
        "spiderling.pipelines.LanguagePipeline": 200,
        "spiderling.pipelines.QualityPipeline": 300,
        "spiderling.pipelines.DedupPipeline": 400,
        "spiderling.pipelines.CorpusPipeline": 500,
    },
    "EXTENSIONS": {
        "spiderling.extensions.lifecycle.Lifecycle": 10,
        "spiderling.extensions.control.Control": 30,
        "spiderling.extensions.control.FreeDisk": 33,
        "spiderling.extensions.control.BudgetCheck": 35,
        "spiderling.extensions.control.CoverageCheck": 36,
        "spiderling.extensions.lifecycle.Recrawls": 38,
        "spiderling.extensions.progress.Progress": 40,
        "spiderling.extensions.live_page.LivePage": 55,
        "spiderling.extensions.lifecycle.SpiderState": 0,
        "scrapy.extensions.spiderstate.SpiderState": None,
        "scrapy.extensions.logstats.LogStats": None,
    },
}
"""Entries of settings that are dicts; None switches a component off."""
WITHOUT_EFFECT = {
    "DOWNLOAD_DELAY": "SPIDERLING_HOST_INTERVAL_S",
    "CONCURRENT_REQUESTS_PER_DOMAIN": "one request at a time to a host",
    "AUTOTHROTTLE_ENABLED": "SPIDERLING_DELAY_FACTOR",
    "ROBOTSTXT_OBEY": "robots.txt is always obeyed",
    "ROBOTSTXT_USER_AGENT": "SPIDERLING_ROBOTS_AGENT",
    "HTTPPROXY_ENABLED": "no proxy can be used",
    "SCHEDULER": "the frontier takes its place",
    "DUPEFILTER_CLASS": "the frontier takes its place",
    "DNS_RESOLVER": "SPIDERLING_NAMESERVERS",
    "DOWNLOAD_MAXSIZE": "SPIDERLING_MAX_BODY_BYTES",
}
"""Settings of Scrapy that a crawl does not heed, and what holds instead."""
OF_COMPONENTS = {
    "Downloader": ("DOWNLOAD_SLOTS", "SPIDERLING_HOST_INTERVAL_S"),
    "DownloadTimeoutMiddleware": ("DOWNLOAD_TIMEOUT", "SPIDERLING_TIMEOUT_S"),
    "DefaultHeadersMiddleware": ("DEFAULT_REQUEST_HEADERS", "headers of a Request are sent"),
    "DepthMiddleware": ("DEPTH_LIMIT", "SPIDERLING_MAX_DISTANCE, in hosts"),
    "UrlLengthMiddleware": ("URLLENGTH_LIMIT", "500 characters"),
}
"""The same for settings that are heeded if the user's project brings their component, a class of Scrapy's, back."""


class SpiderlingAddon:
    """Scrapy calls the methods: once for all crawlers of a process, then for each before it makes any component."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> SpiderlingAddon:
        """Leave alone Scrapy's own spiders and the commands that begin no crawl, which need no language and JOBDIR."""
        if runs_without_us() or crawler.spidercls.__module__.startswith("scrapy."):
            crawler.settings.set("JOBDIR", None, priority="cmdline")
            raise NotConfigured
        return cls()

    def update_settings(self, settings: BaseSettings) -> None:
        for name in ENTRIES:
            _add(name, settings)
        ignored = list(_without_effect(settings))
        for name, value in COMPONENTS.items():
            settings.set(name, value, priority="cmdline")
        for name, value in (DEFAULTS | _fast(settings)).items():
            if settings.getpriority(name) == 0:
                settings.set(name, value, priority="addon")
        if ignored:
            logger.warning("Without effect in a crawl of Spiderling: %s", "; ".join(ignored))


def _fast(settings: BaseSettings) -> dict[str, Any]:
    """FAST with a release of Scrapy that was tried; nothing with another one, or if the user names a downloader."""
    if not scrapy.__version__.startswith(tuple(f"{release}." for release in TRIED)):
        logger.warning(
            "Scrapy %s is none of those that Spiderling was tried with (%s): the crawl runs on Scrapy's own engine, "
            "and somewhat slower", scrapy.__version__, ", ".join(TRIED)
        )  # fmt: skip
        return {}
    return FAST if settings.getpriority("DOWNLOADER") == 0 else {}


def _add(name: str, settings: BaseSettings) -> None:
    """Add our entries to the setting *name*."""
    theirs = settings[name]
    for key, value in ENTRIES[name].items():
        if key not in theirs:  # an entry that the user made himself stays
            theirs.set(key, value, priority="addon")


def _without_effect(settings: BaseSettings) -> Iterator[str]:
    """The settings that the user has made in vain, each with what holds instead; a proxy in the environment too."""
    off = {part.rpartition(".")[2] for name, ours in ENTRIES.items() for part in ours if settings[name][part] is None}
    if settings.getpriority("DOWNLOADER") == 0:
        off.add("Downloader")
    instead = WITHOUT_EFFECT | dict(pair for part, pair in OF_COMPONENTS.items() if part in off)
    for name, ours in instead.items():
        if (settings.getpriority(name) or 0) > 0 and not (name == "ROBOTSTXT_OBEY" and settings.getbool(name)):
            yield f"{name} ({ours})"
    if getproxies_environment().keys() & {"http", "https", "all"}:
        yield "http_proxy in the environment (no proxy can be used)"
