"""Spiderling: a crawler that builds a text corpus in a language you name.

Where to read on, in the order of a URL's life (docs/life-of-a-url.md):

    spiders/spiderling.py        seeds in, pages out
    engine/scheduler.py          translates between Scrapy's engine and the frontier
    frontier/                    which URL is fetched next, and which host is left alone
    middlewares/                 politeness, limits
    engine/download_handler.py   the request itself, by what stands in fetch/
    workers/ text/               bytes to clean text, away from the event loop
    pipelines/                   verdicts on a page; the corpus
    extensions/yieldfeed.py      what a page gave goes back to the frontier
    crawl/checkpoint.py          text and state are written together
    archives/                    the same out of WARC files instead of the web

A package imports only from those below it (tests/test_imports.py):

    commands
    seeding
    spiders
    middlewares  pipelines  extensions
    engine  reporting
    crawl  export  simulation
    jobdir  workers  training
    languages  corpus  archives
    text  frontier  fetch
    base
"""

__version__ = "0.1.0"
