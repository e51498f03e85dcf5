"""A crawl of several shards: processes that each own a part of the hosts, on one machine or many.

A shard is one process with one directory and one state.  It sends links to other shards' hosts through Redis, which may
lose everything at any time; `ShardExchange` says how each arrives exactly once all the same.

    exchange.py         one shard's side of the protocol: its messages with each other one, site files at others' hosts
    content.py          links and mentions for other shards: gathered, packed, sealed
    slots.py            the starts at addresses, reserved over all shards
    claims.py           which shard a process is, and whether it may join the crawl
    heartbeat.py        what shards publish each second, and make of it: totals of all, the end of the crawl
    shard.py            this process as one shard: from its claim to the end
    redis_transport.py  what stands in Redis, and how messages go through it
    launcher.py         all shards on this machine, started and ended together, with a Redis of their own

The protocol (exchange, content) is pure: no clock, and no I/O but through the store and the transport.  Nothing here is
imported by a crawl of one shard.
"""
