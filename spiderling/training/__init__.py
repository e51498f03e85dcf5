"""Makes models of languages and of boilerplate from texts."""
