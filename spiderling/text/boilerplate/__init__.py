"""Which blocks are running text: by rules, or by a learned model."""
