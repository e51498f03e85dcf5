"""What every other part may use: options, reasons, URLs, addresses, links, errors, the outcome of a request."""
