"""A page, parsed: blocks of text, links and metadata."""
