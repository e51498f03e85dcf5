"""Converts documents that are no HTML pages to blocks of text."""
