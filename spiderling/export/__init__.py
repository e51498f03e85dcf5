"""A finished corpus for other programs: selected, deduplicated, in other formats."""
