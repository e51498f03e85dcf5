"""Which encoding a page is in."""
