"""Reads pages from WARC files instead of the web (docs/archive.md).

sources.py   the files and URLs of ``-a warc=``, and their bytes from any offset on
members.py   decompresses them member by member; skips damage
records.py   turns WARC records into pages, or gives the Reason why one is no page
places.py    how far each archive is done: what a checkpoint stores
readers.py   threads that read several archives at a time
archives.py  the archives of a running crawl: pages in work, what is done
"""
