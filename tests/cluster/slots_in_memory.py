"""What the script RESERVE does, in Python: test_slots.py compares the two."""

from __future__ import annotations


class SlotsInMemory:
    """The slots that Redis holds; times are microseconds of its clock."""

    def __init__(self) -> None:
        self.free: dict[str, int] = {}
        """Address -> from when on it is free to others; '' -> since when anything is known."""

    def begin(self, now: int) -> None:
        self.free.setdefault("", now)

    def reserve(self, now: int, arguments: tuple[int, int, int, str]) -> bytes:
        window, interval, horizon, slots = arguments
        words = slots.split(" ")
        latest = now + horizon + 2_000_000 + interval
        strange = sum(free > latest + 3_600_000_000 for free in self.free.values())
        self.free = {address: min(free, latest) for address, free in self.free.items()}
        since = self.free.get("", now + horizon + window + interval)
        self.free = {address: free for address, free in self.free.items() if free > now} | {"": max(since, now)}
        ours = set()
        told = [str(now), str(strange)]
        for address, after, last in zip(words[::3], words[1::3], words[2::3], strict=True):
            free = self.free.get(address, since)
            is_ours = address in ours or int(last) == free
            at = max(free - window if is_ours else free, since, now + int(after))
            if at > now + horizon:
                told.append("-")
                continue
            ours.add(address)
            self.free[address] = at + window + interval
            told.append(str(at))
        return " ".join(told).encode()
