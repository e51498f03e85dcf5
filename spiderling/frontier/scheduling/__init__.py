"""Which host is asked next, and when."""
