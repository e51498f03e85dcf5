"""A crawl of shards is over when three whole looks find nothing to do, and not before."""

from __future__ import annotations

from spiderling.cluster.totals import LOOKS, WAIT_MISSING_S, Status, Termination


def statuses(beat: int, **changes: Status) -> dict[int, Status]:
    found = {shard: Status(beat, True, [0, 3] if shard == 0 else [2, 0], [0, 2] if shard == 0 else [3, 0])
             for shard in range(2)}  # fmt: skip
    return found | {int(name[1:]): status for name, status in changes.items()}


def looks(ending: Termination, *seen: dict[int, Status], now: float = 0.0) -> list[bool]:
    return [ending.is_reached(one, now) for one in seen]


def test_three_looks_at_new_statuses_end_it() -> None:
    assert looks(Termination(2), *(statuses(beat) for beat in range(LOOKS))) == [False] * (LOOKS - 1) + [True]


def test_a_status_that_stays_the_same_is_no_new_look() -> None:
    old = Status(0, True, [2, 0], [3, 0])
    assert not any(looks(Termination(2), *(statuses(beat, s1=old) for beat in range(9))))


def test_whoever_works_or_has_something_under_way_keeps_it_going() -> None:
    busy = [statuses(beat, s1=Status(beat, False, [2, 0], [3, 0])) for beat in range(9)]
    assert not any(looks(Termination(2), *busy))
    under_way = [statuses(beat, s0=Status(beat, True, [0, 4], [0, 2])) for beat in range(9)]
    assert not any(looks(Termination(2), *under_way))


def test_work_between_two_looks_begins_them_anew() -> None:
    more = {"s0": [0, 4], "s1": [4, 0]}
    later = [statuses(beat, s0=Status(beat, True, more["s0"], [0, 2]), s1=Status(beat, True, [2, 0], more["s1"]))
             for beat in range(2, 2 + LOOKS)]  # fmt: skip
    assert looks(Termination(2), statuses(0), statuses(1), *later) == [False] * (1 + LOOKS) + [True]


def test_a_missing_shard_is_waited_for_but_not_for_ever() -> None:
    alone = [{0: Status(beat, True, [0, 9], [0, 2])} for beat in range(9)]
    ending = Termination(2)
    assert not any(looks(ending, *alone))
    assert not ending.is_reached({0: Status(10, True, [0, 9], [0, 2])}, WAIT_MISSING_S - 1)
    assert ending.is_reached({0: Status(11, True, [0, 9], [0, 2])}, WAIT_MISSING_S)


def test_a_status_comes_back_from_its_bytes() -> None:
    status = Status(7, True, [0, 1 << 60], [5, 0])
    assert Status.from_bytes(status.to_bytes()) == status
