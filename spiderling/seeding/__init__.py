"""Where seeds come from (``scrapy seeds``), and what they are worth (``scrapy seeds check``).

source.py     what a source is: requests out, URLs and further requests back
sitemap.py    robots.txt -> sitemaps -> URLs
wikipedia.py  what a Wikipedia links to: its API, or a dump
search.py     random words as queries to a search service (Corpus Factory)
commoncrawl.py  hosts that Common Crawl has met: index server, or files
spider.py     runs a source as a crawl of its own: robots.txt, politeness, retries and resumption are the crawl's
output.py     the file of seeds: appended to, each URL once, few of a host
check.py      a crawl of just the seeds, and the table of what they gave
"""
