"""Finds the blocks that are running text, by rules or by a learned model."""
