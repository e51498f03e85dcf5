"""Where seeds come from (``scrapy seeds``), and what they are worth (``scrapy seeds check``).

sources.py  sitemaps, Wikipedia, search services, Common Crawl: requests and answers, which hold URLs
spider.py   runs a source as a crawl of its own, and writes the file of seeds
check.py    a crawl of the seeds alone, and the table of what they gave
"""
