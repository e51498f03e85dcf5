"""Reads pages from WARC files instead of the web (docs/archive.md)."""
