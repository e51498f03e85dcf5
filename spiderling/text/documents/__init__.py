"""Documents that are no HTML pages, as blocks of text."""
