"""Host names and their addresses: what is known, for how long, and which are wanted.

A name without a fresh address is never handed out.  Names are asked for when a host
comes to the workbench, so that the answer is there when the host is due.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from spiderling.base.options import Options
from spiderling.frontier.hosts import Host

DEAD_FOR_S = 3600.0
"""Seconds for which a name that does not resolve is not asked for again; chosen."""
_MAX_NAMES = 50_000
"""Names that are kept; of more, the older half goes unless a host waits for it.  Chosen."""


class NameStatus(Enum):
    FRESH = "fresh"
    UNKNOWN = "unknown"
    PAUSED = "paused"
    """The name servers failed; ask again at ``expires``."""
    DEAD = "dead"
    FORBIDDEN = "forbidden"


@dataclass(slots=True)
class Name:
    """What is known of one host name; ``address`` is the one that requests go to and whose turn they wait for."""

    status: NameStatus = NameStatus.UNKNOWN
    address: str = ""
    fallback: str = ""
    """An address of the other family, for when no connection can be made to the first."""
    expires: float = 0.0
    failures: int = 0
    hosts: set[Host] = field(default_factory=set)
    """Hosts that wait for the answer."""


class Names:
    """Addresses of names, with expiry; ``allows`` judges an address (SSRF guard)."""

    def __init__(self, options: Options, allows: Callable[[str], bool]) -> None:
        self._retries = options.retries
        self._retry_delay_s = options.retry_delay_s
        self._max_pause_s = options.max_snooze_s
        self._allows = allows
        self._names: dict[str, Name] = {}
        self._wanted: list[str] = []

    def lookup(self, name: str, now: float) -> Name:
        """What is known at *now*; an expired answer counts as UNKNOWN."""
        known = self._names.get(name)
        if known is None:
            return Name()
        if known.expires <= now and not known.hosts:
            known.status = NameStatus.UNKNOWN
        return known

    def want(self, name: str, host: Host) -> None:
        """Ask for *name* on behalf of *host*; several hosts share one question."""
        known = self._names.setdefault(name, Name())
        if not known.hosts:
            known.status = NameStatus.UNKNOWN
            self._wanted.append(name)
        known.hosts.add(host)

    def take_wanted(self) -> list[str]:
        """The names to be resolved now; each is given out once."""
        wanted = self._wanted
        self._wanted = []
        return wanted

    def resolved(self, name: str, addresses: tuple[str, ...], ttl_s: float, now: float) -> set[Host]:
        """Note the answer; returns the hosts that waited for it."""
        self._prune()
        known = self._names.setdefault(name, Name())
        allowed = [address for address in addresses if self._allows(address)]
        known.status = NameStatus.FRESH if allowed else NameStatus.FORBIDDEN
        known.address = allowed[0] if allowed else ""
        is_v6 = ":" in known.address
        known.fallback = next((address for address in allowed if (":" in address) != is_v6), "")
        known.expires = now + ttl_s
        known.failures = 0
        return _release(known)

    def unresolved(self, name: str, permanent: bool, now: float) -> set[Host]:
        """Note a failure: DEAD at once (*permanent*) or after the retries; returns the hosts that waited."""
        known = self._names.setdefault(name, Name())
        known.failures += 1
        if permanent or known.failures > self._retries:
            known.status = NameStatus.DEAD
            known.expires = now + DEAD_FOR_S
            known.failures = 0
        else:
            pause = min(self._retry_delay_s * 2.0 ** (known.failures - 1), self._max_pause_s)
            known.status = NameStatus.PAUSED
            known.expires = now + pause
        return _release(known)

    def fallback(self, name: str, address: str) -> str:
        """The address to try besides *address*, if that is the one that *name* is known by; '' for none."""
        known = self._names.get(name)
        return known.fallback if known is not None and known.address == address else ""

    def prefer_fallback(self, name: str, address: str) -> None:
        """Use the fallback from now on, if *name* is known by *address* and has one."""
        known = self._names.get(name)
        if known is not None and known.address == address and known.fallback:
            known.address, known.fallback = known.fallback, known.address

    def forget(self) -> None:
        """Let all answers expire."""
        for known in self._names.values():
            known.expires = 0.0

    def _prune(self) -> None:
        """If there are too many names, keep the newer half and those that hosts wait for."""
        if len(self._names) > _MAX_NAMES:
            names = list(self._names.items())
            newer = len(names) // 2
            self._names = {name: known for name, known in names[:newer] if known.hosts} | dict(names[newer:])


def _release(known: Name) -> set[Host]:
    waiting = known.hosts
    known.hosts = set()
    return waiting
