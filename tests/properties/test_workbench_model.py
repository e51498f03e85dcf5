"""The workbench against a naive model that looks at every host each time."""

from __future__ import annotations

from collections.abc import Callable

from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from spiderling.frontier.hosts import Host, HostStates
from spiderling.frontier.workbench import Workbench

ADDRESSES = ["", "10.0.0.1", "10.0.0.2", "::1"]
TIMES = st.integers(0, 40).map(lambda quarter: quarter / 4)


class Model:
    """Who stands where, and from when on each address may be used."""

    def __init__(self) -> None:
        self.places: dict[Host, str] = {}
        self.charged: dict[str, float] = {}

    def due(self, host: Host) -> float:
        return max(host.due, self.charged.get(self.places[host], 0.0))

    def next_due(self) -> float | None:
        return min((self.due(host) for host in self.places), default=None)


@settings(max_examples=examples(150))
@given(st.data())
def test_same_as_a_naive_model(data: st.DataObject) -> None:
    workbench, model, now = Workbench(), Model(), 0.0
    assert workbench.address("10.0.0.9").last_permitted == float("-inf")
    hosts = [Host(number, f"h{number}.cz", HostStates()) for number in range(6)]

    def add() -> None:
        host, address = data.draw(st.sampled_from(hosts)), data.draw(st.sampled_from(ADDRESSES))
        host.due = now + data.draw(TIMES)  # a charge that has passed may be forgotten
        model.places.pop(host, None)
        model.places[host] = address
        workbench.add_host(host, address)

    def remove() -> None:
        host = data.draw(st.sampled_from(hosts))
        model.places.pop(host, None)
        workbench.remove(host)

    def charge() -> None:
        address, due = data.draw(st.sampled_from(ADDRESSES)), now + data.draw(TIMES)
        model.charged[address] = max(due, model.charged.get(address, 0.0))
        workbench.postpone(address, due)

    def pop() -> None:
        expected = model.next_due()
        popped = workbench.pop(now)
        if expected is None or expected > now:
            assert popped is None
        else:
            assert popped is not None
            host, address = popped
            assert model.places[host] == address, "popped once, from where it was put last"
            assert model.due(host) == expected, "the one that has waited longest"
            del model.places[host]

    def forget() -> None:
        """After so many more addresses have come that it is worth while."""
        for number in range(1000):
            workbench.address(f"10.9.{number // 250}.{number % 250}").last_permitted = now
        workbench.forget_idle(now)

    def wait() -> None:
        nonlocal now
        now += data.draw(TIMES)

    steps: list[Callable[[], None]] = [add, add, remove, charge, pop, pop, forget, wait]
    for step in data.draw(st.lists(st.sampled_from(steps), min_size=10, max_size=60)):
        step()
        assert workbench.next_due() == model.next_due()
    now = 1e9
    left = {host for host, _ in iter(lambda: workbench.pop(now) or (None, ""), (None, ""))}
    assert left == model.places.keys()


def test_addresses_without_hosts_are_forgotten_after_their_interval_once_they_are_many() -> None:
    workbench, host = Workbench(), Host(1, "a.cz", HostStates())
    many = [f"10.1.{number // 250}.{number % 250}" for number in range(1000)]
    for address in (*many, "10.0.0.1"):
        workbench.address(address).last_permitted = 7.0
        workbench.postpone(address, 9.0)
    workbench.add_host(host, "10.0.0.1")
    workbench.forget_idle(8.0)
    assert workbench.address(many[0]).last_permitted == 7.0
    workbench.forget_idle(8.0)  # not looked through again before their number has doubled
    workbench.forget_idle(10.0)
    assert workbench.address(many[0]).last_permitted == 7.0
    for number in range(1100):
        workbench.postpone(f"10.2.{number // 250}.{number % 250}", 9.5)
    workbench.forget_idle(10.0)
    assert workbench.address(many[0]).last_permitted == float("-inf")
    assert workbench.next_due() == 9.0
    assert workbench.pop(9.0) == (host, "10.0.0.1")
