"""What the chain sees of one page (``scrapy page``)."""
