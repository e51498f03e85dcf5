"""What a person orders by control.yaml amid a simulated session, and whether the crawl obeys (docs/operate.md)."""

from __future__ import annotations

from typing import NamedTuple


class Order(NamedTuple):
    """What one text of control.yaml asks for."""

    pauses: bool = False
    blocks: str = ""  # a host
    host_interval_s: float = 0.0


ORDERS = {
    b"pause: true\n": Order(pauses=True),
    b"block: [h2.test]\n": Order(blocks="h2.test"),
    b"block: [nowhere.test, w1.test]\nask_again: [internal-error, dns]\n": Order(blocks="w1.test"),
    b"host_interval_s: 4\nreopen: [h0.test]\n": Order(host_interval_s=4.0),
}
TAKES_S = 4.0
"""Seconds until an order holds: it is looked for each 2 s, and a request that has left may look a name up; chosen."""
SPARE_S = 1e-3  # by which an interval may be short: what a float leaves out


class Orders:
    """The order that stands."""

    def __init__(self) -> None:
        self._order = Order()
        self._since = 0.0
        self._last: dict[str, float] = {}  # host -> when it was asked since the order holds

    def give(self, text: bytes, now: float) -> None:
        """*text* stands in control.yaml from now on."""
        self._order = ORDERS.get(text, Order())
        self._since = now + TAKES_S
        self._last.clear()

    def wrong(self, host: str, now: float) -> list[str]:
        """What is wrong with a request of *host*."""
        if now <= self._since:
            return []
        order = self._order
        after_s = now - self._last.get(host, -1e9)
        self._last[host] = now
        is_allowed = not order.pauses and order.blocks != host and after_s >= order.host_interval_s - SPARE_S
        return [] if is_allowed else [f"{host} was asked at {now:.3f}, after {after_s:.3f} s, though {order} holds"]
