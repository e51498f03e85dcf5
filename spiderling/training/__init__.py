"""Makes models of languages from texts."""
