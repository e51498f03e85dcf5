"""One crawl: its arguments, its resumption, its checkpoints and budgets."""
