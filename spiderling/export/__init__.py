"""Exports a finished corpus: selects, deduplicates, converts it."""
