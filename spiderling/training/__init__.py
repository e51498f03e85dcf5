"""Makes models from texts: of languages, and of boilerplate."""
