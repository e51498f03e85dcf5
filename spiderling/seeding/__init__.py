"""Where seeds come from (``scrapy seeds``), and what they are worth (``scrapy seeds check``).

source.py       what a source is: it gives requests and gets answers, which hold URLs or lead to further requests
sitemap.py      robots.txt -> sitemaps -> URLs
wikipedia.py    what a Wikipedia links to: its API, or a dump
search.py       random words as queries to a search service
commoncrawl.py  hosts that Common Crawl has met: index server, or files
spider.py       runs a source as a crawl of its own, with robots.txt, politeness, retries and resumption
output.py       the file of seeds: appended to, each URL once, few of a host
check.py        a crawl of the seeds alone, and the table of what they gave
"""
