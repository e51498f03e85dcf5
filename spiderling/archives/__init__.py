"""Pages out of WARC files instead of the web; docs/archive.md says what is read, and how.

sources.py   which files and URLs are meant, and their bytes from any offset on
members.py   what is in them once decompressed, member by member; damage is passed over
records.py   WARC records to pages, or the Reason why they are none
places.py    how far each archive is done: what a checkpoint keeps
archives.py  all of it while the crawl runs: threads that read, pages in work, what is settled
"""
