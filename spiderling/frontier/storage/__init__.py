"""The state of a crawl: tables in memory, and the store on disk."""
