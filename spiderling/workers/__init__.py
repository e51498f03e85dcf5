"""Processes that turn bytes into text and convert documents, away from the event loop."""
