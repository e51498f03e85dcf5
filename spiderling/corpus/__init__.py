"""The files that a crawl writes (segments of prevertical, links, WARC), and its filter of near-duplicates."""
