"""What happens to a URL, each time it changes its state."""
