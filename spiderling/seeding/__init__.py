"""Where seeds come from (``scrapy seeds``), and what they are worth (``scrapy seeds check``).

sources.py  sitemaps, Wikipedia, Common Crawl: requests and answers, or files, which hold URLs
spider.py   runs a source as a crawl of its own and writes the file of seeds; checks seeds by a crawl of them alone
"""
