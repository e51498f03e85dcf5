"""The files that a crawl writes: segments, prevertical, links, WARC, and what knows near-duplicates."""
