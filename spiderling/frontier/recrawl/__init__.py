"""Looking again: which page that was fetched is worth another request."""
