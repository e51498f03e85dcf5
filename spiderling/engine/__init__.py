"""Adapters between Scrapy's engine and the crawl: scheduler, download handler, downloader, outcomes."""
