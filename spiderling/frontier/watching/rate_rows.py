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
    dates = array("d", astuple(policy.dates.get(host, Announcements()))).tobytes() if host else b""
    return zlib.compress(dates + policy.rates.sums(host))


def restore(policy: Policy, host: int, row: bytes) -> None:
    """Take up the row of *host*; raises DamageError for what ``packed`` cannot have made."""
    try:
        data = zlib.decompress(row)
        begin = _DATES_BYTES if host else 0
        if host:
            policy.put_dates(host, Announcements(*array("d", data[:begin])))
        policy.rates.restore(host, data[begin:])
    except (zlib.error, ValueError, TypeError) as error:
        raise DamageError(f"the rates of host {host} are damaged: {error}.") from None
