"""A crawl of several shards: processes that each own a part of the hosts, on one machine or many.

A shard is one process with one directory and one state.  It sends links to other shards' hosts through Redis, which may
lose everything at any time; `ShardExchange` says how each arrives exactly once all the same.

The protocol (exchange, content) is pure: no clock, and no I/O but through the store and the transport.  Nothing here is
imported by a crawl of one shard.
"""
