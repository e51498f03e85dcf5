"""The status of a crawl as a page: served while it runs (live/), or saved as one file (`scrapy report`).

page.py              the page, with page.html, page.css, page.js
advice.py            what to do next; what hosts cost and gave
summary.py           what a running crawl logs at its start, on the way and at its end
about.py             the page for site owners at a crawler's contact address
"""
