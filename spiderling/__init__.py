"""Spiderling: a crawler that builds a text corpus in a language you name.

Where to read on, in the order of a URL's life (docs/life-of-a-url.md):

    spiders/spiderling.py        reads seeds, yields pages
    engine/scheduler.py          opens the crawl; engine/dispatcher.py hands out its requests
    frontier/                    which URL is fetched next, and which host is left alone
    frontier/robots.py           whether robots.txt allows it, before it is handed out
    middlewares.py               check intervals and statuses; pass robots.txt and sitemaps to the frontier
    engine/download_handler.py   one request, with the client in fetch/
    workers/ text/               bytes to clean text, away from the event loop
    pipelines.py                 judge the page, render its document
    engine/dispatcher.py         reports to the frontier how the page ended
    crawl/checkpoint.py          writes text and state together
    archives/                    pages from WARC files instead of the web

A package imports only from those below it (tests/test_imports.py):

    commands
    seeding
    cli
    spiders
    middlewares  pipelines  extensions
    engine  live
    cluster
    crawl  export  reporting
    jobdir  workers  training
    languages  corpus  archives
    text  frontier  fetch
    base
"""

__version__ = "0.1.0"
