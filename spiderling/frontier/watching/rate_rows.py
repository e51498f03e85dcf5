"""What a watch has learnt of hosts, as rows of the table ``rate``; the row 0 is of all hosts."""

from __future__ import annotations

import zlib
from array import array
from dataclasses import astuple

import numpy as np

from spiderling.base.errors import DamageError
from spiderling.frontier.watching.lastmod import Announcements
from spiderling.frontier.watching.policy import Policy
from spiderling.frontier.watching.rates import CLASSES, HALF_LIFE_DAYS

_DATES_BYTES = 8 * len(astuple(Announcements()))
_FORMER_BYTES = 8 * 4 * CLASSES
"""Of the sums, of a host too, when they were of eight bytes and weighed by the times of the looks."""


def packed(policy: Policy, host: int) -> bytes:
    """The row of *host*."""
    dates = array("d", astuple(policy.dates.get(host, Announcements()))).tobytes() if host else b""
    return zlib.compress(dates + policy.rates.sums(host))


def restore(policy: Policy, host: int, row: bytes) -> None:
    """Take up the row of *host*; raises DamageError for what ``packed`` cannot have made."""
    try:
        data = zlib.decompress(row)
        is_former = len(data) == _DATES_BYTES + _FORMER_BYTES
        begin = _DATES_BYTES if host or is_former else 0
        if host:
            policy.put_dates(host, Announcements(*array("d", data[:begin])))
        policy.rates.restore(host, _converted(host, data[begin:]) if is_former else data[begin:])
    except (zlib.error, ValueError, TypeError) as error:
        raise DamageError(f"the rates of host {host} are damaged: {error}.") from None


def _converted(host: int, sums: bytes) -> bytes:
    """What a former version knew: each look weighed 2 ** (its time / HALF_LIFE_DAYS), and so did the last one."""
    former = np.frombuffer(sums).reshape(4, CLASSES)
    weight = np.maximum(former[3], 1.0)
    today = np.vstack((former[:3] / weight, HALF_LIFE_DAYS * np.log2(weight)))
    return today.astype(np.float32 if host else np.float64).tobytes()
