"""What lies in a crawl's directory: looked at, checked, migrated and described, whether the crawl runs or not."""
