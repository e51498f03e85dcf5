"""Measurements; each script prints a table and, as its last line, ``RESULT {json}`` (see README.md)."""
