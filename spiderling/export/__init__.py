"""A corpus as other programs want it: chosen, deduplicated, in other formats."""
