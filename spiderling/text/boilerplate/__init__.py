"""Which blocks are running text: rules, and a learned model."""
