"""Changes of URLs' states, and their counts."""
