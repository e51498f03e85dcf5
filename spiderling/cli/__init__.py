"""What the commands share: their frame, how a spider is run for them, who starts all shards, one page examined."""
