"""Finds the encoding of a page."""
