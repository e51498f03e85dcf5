"""Reads pages from WARC files instead of the web (docs/archive.md).

sources.py   the files and URLs of ``-a warc=``, and their bytes from any offset on; how far each archive is
             done, which a checkpoint stores
records.py   decompresses them member by member, skips damage, and turns WARC records into pages, or gives the Reason
             why one is no page
archives.py  the archives of a running crawl: threads that read several at a time, pages in work, what is done
"""
