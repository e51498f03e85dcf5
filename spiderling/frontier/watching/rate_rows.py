"""What a watch has learnt of hosts, as rows of the table ``rate``; the row 0 is of all hosts."""

from __future__ import annotations

import zlib
from array import array
from dataclasses import astuple

from spiderling.base.errors import DamageError
from spiderling.frontier.watching.lastmod import Announcements
from spiderling.frontier.watching.policy import Policy

_DATES_BYTES = 8 * len(astuple(Announcements()))


def packed(policy: Policy, host: int) -> bytes:
    """The row of *host*."""
    dates = array("d", astuple(policy.dates.get(host, Announcements())))
    return zlib.compress(dates.tobytes() + policy.rates.sums(host))


def restore(policy: Policy, host: int, row: bytes) -> None:
    """Take up the row of *host*; raises DamageError for what ``packed`` cannot have made."""
    try:
        data = zlib.decompress(row)
        if host:
            policy.dates[host] = Announcements(*array("d", data[:_DATES_BYTES]))
        policy.rates.restore(host, data[_DATES_BYTES:])
    except (zlib.error, ValueError, TypeError) as error:
        raise DamageError(f"the rates of host {host} are damaged: {error}.") from None
