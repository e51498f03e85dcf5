"""A crawl of several shards: processes that each own a part of the hosts, on one machine or many.

A shard is one process with one directory and one state.  It writes what it finds of other shards' hosts as messages
into its own state, in the transaction that records the page.  Copies of the messages go through Redis, which may lose
everything at any time.  The receiver records a message's effects and its number in one transaction, and only then says
so; only then does the sender forget the message.  So nothing is lost, and nothing is taken twice.

    post_office.py      carries the messages while the crawl runs: one round after the other
    exchange.py         one shard's side of the protocol, for its frontier and for the transport
    gathering.py        what leaves this shard, until the next checkpoint
    lane.py             the messages to one other shard: written, sent, forgotten
    content.py          the links and mentions of a message, as bytes and back
    envelope.py         what makes a message one of this crawl: version, addresses, number, code of authenticity
    site_files.py       robots.txt and licences at hosts of other shards
    slots.py            the starts at addresses, reserved over all shards
    claims.py           which shard a process is
    totals.py           what all shards have done together
    crawl_control.py    control.yaml of the crawl: one text for all shards
    ending.py           when the crawl is over
    beat.py             what a shard says each second, and what it reads then
    others.py           what it makes of that
    shard.py            this process as one shard: from its claim to the end
    transport.py        what carries messages, as the protocol sees it
    redis_transport.py  the same over Redis
    launcher.py         all shards on this machine, started and ended together
    division.py         how many they are, and what each may take of the machine
    own_redis.py        the Redis that they have for themselves
    shard_process.py    one of them, as a process that is read
    child_process.py    a process that ends with the one that started it
    telling.py          what they do, told as one crawl
    key_file.py         the key by which the shards know each other
    suffix_list.py      the list of public suffixes that the crawl began with
    shard_map.py        what all shards of a crawl must have in common

The protocol (exchange, gathering, lane, content, envelope, site_files, totals) is pure: no clock, and no I/O but
through the store and the transport.  Nothing here is imported by a crawl of one shard.
"""
