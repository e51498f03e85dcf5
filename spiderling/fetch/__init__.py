"""One HTTP request: names, TLS, the connection, decoding, and what may go wrong."""
