"""One HTTP request: name resolution, TLS, connection, decoding, errors."""
