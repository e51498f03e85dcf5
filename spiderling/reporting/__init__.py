"""The status of a crawl as a page: served while it runs (live/), or saved as one file (`scrapy report`).

page.py              the page, with page.html, page.css, page.js, and what it advises to do next
summary.py           what a running crawl logs at its start, on the way and at its end
"""
