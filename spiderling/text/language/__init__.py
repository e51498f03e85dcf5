"""Finds the language of a text."""
