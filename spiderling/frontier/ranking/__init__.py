"""Which link is worth more: estimators, ranks and strategies."""
