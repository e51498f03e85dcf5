"""Pages out of WARC files instead of the web; docs/archive.md says what is read, and how.

sources.py   which files and URLs are meant, and their bytes from any offset on
members.py   what is in them once decompressed, member by member; damage is passed over
records.py   WARC records to pages, or the Reason why they are none
places.py    how far each archive is done: what a checkpoint keeps
readers.py   threads that read some archives at a time
archives.py  all of it while the crawl runs: pages in work, what is settled
"""
