"""The Scrapy add-on, which sets what a crawl needs: ``ADDONS = {"spiderling.addon.SpiderlingAddon": 300}``.

settings.py holds what Scrapy reads before it loads add-ons: COMMANDS_MODULE, ASYNCIO_EVENT_LOOP and the reactor.  A
value that the user's project sets wins, except for COMPONENTS, without which there is no crawl.
"""

from __future__ import annotations

from typing import Any

from scrapy.settings import BaseSettings

COMPONENTS: dict[str, Any] = {
    "SCHEDULER": "spiderling.engine.scheduler.Scheduler",
    "LOG_FORMATTER": "spiderling.engine.log_format.QuietLogFormatter",
    # The frontier hands out only what is due.  Scrapy's slots, as its project template sets them, would delay that.
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
    "AUTOTHROTTLE_ENABLED": False,
    "ROBOTSTXT_OBEY": False,  # the frontier obeys it, before a request is made
}
DEFAULTS: dict[str, Any] = {
    "DOWNLOADER": "spiderling.engine.downloader.DirectDownloader",
    "ITEM_PROCESSOR": "spiderling.engine.fast_scrapy.PlainPipelines",
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
    "STATS_CLASS": "spiderling.engine.fast_scrapy.PlainStats",
    "STATS_DUMP": False,  # the summary at the end says what matters
    "USER_AGENT": "",
}
ENTRIES: dict[str, dict[str, Any]] = {
    "DOWNLOAD_HANDLERS": dict.fromkeys(("http", "https"), "spiderling.engine.download_handler.DownloadHandler"),
    "DOWNLOADER_MIDDLEWARES": {
        "spiderling.middlewares.limits.LimitsMiddleware": 100,
        "spiderling.middlewares.site_files.SiteFilesMiddleware": 900,
        "spiderling.middlewares.politeness.PolitenessMiddleware": 950,
        "scrapy.downloadermiddlewares.offsite.OffsiteMiddleware": None,
        "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
        "scrapy.downloadermiddlewares.downloadtimeout.DownloadTimeoutMiddleware": None,
        "scrapy.downloadermiddlewares.defaultheaders.DefaultHeadersMiddleware": None,
        "scrapy.downloadermiddlewares.useragent.UserAgentMiddleware": None,
    },
    "SPIDER_MIDDLEWARES": {
        "spiderling.middlewares.wakeup.WakeUp": 10,
        "spiderling.middlewares.exits.ExitsMiddleware": 990,
        "scrapy.spidermiddlewares.httperror.HttpErrorMiddleware": None,
        "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
        "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
    },
    "ITEM_PIPELINES": {
        "spiderling.pipelines.clean.CleanPipeline": 100,
        "spiderling.pipelines.language.LanguagePipeline": 200,
        "spiderling.pipelines.quality.QualityPipeline": 300,
        "spiderling.pipelines.dedup.DedupPipeline": 400,
        "spiderling.pipelines.corpus.CorpusPipeline": 500,
    },
    "FEED_EXPORTERS": {
        "prevertical": "spiderling.export.feeds.PrevertExporter",
        "parquet": "spiderling.export.feeds.ParquetExporter",
    },
    "EXTENSIONS": {
        "spiderling.extensions.lifecycle.Lifecycle": 10,
        "spiderling.extensions.yieldfeed.YieldFeed": 20,
        "spiderling.extensions.control.Control": 30,
        "spiderling.extensions.budget.Budget": 35,
        "spiderling.extensions.progress.Progress": 40,
        "spiderling.extensions.spiderstate.SpiderState": 0,
        "scrapy.extensions.spiderstate.SpiderState": None,
        "scrapy.extensions.logstats.LogStats": None,
    },
}
"""Entries of settings that are dicts; None switches a component off."""


class SpiderlingAddon:
    """Scrapy calls ``update_settings`` once, before it makes any component."""

    def update_settings(self, settings: BaseSettings) -> None:
        for name, value in COMPONENTS.items():
            settings.set(name, value, priority="project")
        for name, value in DEFAULTS.items():
            if settings.getpriority(name) == 0:
                settings.set(name, value, priority="addon")
        for name, ours in ENTRIES.items():
            theirs = settings[name]
            for key, value in ours.items():
                if key not in theirs:  # an entry that the user made himself stays
                    theirs.set(key, value, priority="addon")
