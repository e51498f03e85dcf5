"""The frontier's counts: of URLs (*discovered = ends + waiting + in transit*), of refused mentions, and totals.

A retry is waiting or in transit; a purge counts each URL of the queue.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from spiderling.base.errors import DamageError
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier.hosts import HostState
from spiderling.frontier.storage.protocol import TICK_S, HistoryRow

if TYPE_CHECKING:
    from spiderling.frontier.storage.host_table import HostTable


_MAX_FACTS = 500
"""Facts that are counted by name (chosen); of further ones only the kind, since pages can name any licence."""


class Balance(NamedTuple):
    """The URLs that were discovered, and where they are."""

    discovered: int
    ended: int
    waiting: int
    in_transit: int

    @property
    def error(self) -> int:
        """discovered - ended - waiting - in transit; 0 unless there is a bug."""
        return self.discovered - self.ended - self.waiting - self.in_transit


class Ledger:
    """Counts of one crawl, over all its sessions."""

    def __init__(self, counts: dict[str, int] | None = None) -> None:
        self.ends: Counter[Reason] = Counter()
        self.refused_links: Counter[Reason] = Counter()
        self.totals: Counter[str] = Counter()
        """requests, pages, documents, words, and bytes: wire, downloaded, kept."""
        self.languages: Counter[str] = Counter()
        """Documents kept by language."""
        self.facts: Counter[str] = Counter()
        """Kept documents by what they are (``encoding/utf-8``, ``licence/...``), and words kept (``words/cs``)."""
        counts = counts or {}
        self.discovered = counts.get("discovered", 0)
        self.waiting = counts.get("waiting", 0)
        self.in_transit = 0
        self._by_reason = {"end": self.ends, "mention": self.refused_links}
        self._by_name = {"total": self.totals, "language": self.languages, "fact": self.facts}
        for key, value in counts.items():
            kind, _, name = key.partition("/")
            if kind in self._by_reason:
                self._by_reason[kind][_reason(name)] = value
            elif kind in self._by_name:
                self._by_name[kind][name] = value

    def discover(self, number: int = 1) -> None:
        self.discovered += number
        self.waiting += number

    def end_waiting(self, reason: Reason, number: int = 1) -> None:
        """*number* URLs end without being fetched."""
        self.waiting -= number
        self.ends[reason] += number

    def reopen_ended(self, reason: Reason, number: int) -> None:
        """*number* URLs that had ended as *reason* wait again."""
        self.waiting += number
        self.ends[reason] -= number

    def hand_out(self) -> None:
        self.waiting -= 1
        self.in_transit += 1

    def give_back(self) -> None:
        self.waiting += 1
        self.in_transit -= 1

    def end_in_transit(self, reason: Reason) -> None:
        self.in_transit -= 1
        self.ends[reason] += 1

    def count_outcome(self, outcome: Outcome) -> None:
        """Add the sizes of one outcome to the totals."""
        totals = self.totals
        totals["downloaded_bytes"] += outcome.body_bytes
        totals["kept_bytes"] += outcome.kept_bytes
        totals["pages"] += outcome.is_judged
        self._count_text(outcome)

    def count_look(self, outcome: Outcome) -> None:
        """Add those of a look: its documents are documents, its bytes are counted apart."""
        totals = self.totals
        totals["look_downloaded_bytes"] += outcome.body_bytes
        totals["look_kept_bytes"] += outcome.kept_bytes
        self._count_text(outcome)

    def _count_text(self, outcome: Outcome) -> None:
        totals = self.totals
        totals["wire_bytes"] += outcome.wire_bytes
        totals["words"] += outcome.words
        if outcome.links_cut:
            self.refused_links[Reason.TOO_MANY_LINKS] += outcome.links_cut
        if outcome.reason is Reason.KEPT:
            totals["documents"] += 1
            self.languages[outcome.language or ""] += 1
            self.facts[f"words/{outcome.language or ''}"] += outcome.words
            for fact in outcome.facts:
                is_known = fact in self.facts or len(self.facts) < _MAX_FACTS
                self.facts[fact if is_known else fact.partition("/")[0] + "/other"] += 1

    def forget_refused_links(self) -> None:
        """Count refused links from 0 on."""
        self.refused_links.clear()

    @property
    def balance(self) -> Balance:
        """The URLs discovered and where they are."""
        return Balance(self.discovered, self.ends.total(), self.waiting, self.in_transit)

    @property
    def yield_rate(self) -> float:
        """Kept bytes for each downloaded byte."""
        down = self.totals["downloaded_bytes"]
        return self.totals["kept_bytes"] / down if down else 0.0

    def counts(self) -> dict[str, int]:
        """All counts under one name space, for the store; what is in transit counts as waiting again."""
        counts = {f"{kind}/{reason.value}": n for kind, ends in self._by_reason.items() for reason, n in ends.items()}
        counts |= {f"{kind}/{name}": n for kind, totals in self._by_name.items() for name, n in totals.items()}
        return counts | {"discovered": self.discovered, "waiting": self.waiting + self.in_transit}


def _reason(key: str) -> Reason:
    try:
        return Reason.of(key)
    except KeyError:
        raise DamageError(f"the state counts URLs that ended as {key[:80]!r}, which is no way to end.") from None


def history_row(now: float, ledger: Ledger, hosts: HostTable) -> HistoryRow:
    """The crawl's totals at *now*."""
    states = hosts.states.hosts_by_state()
    totals = ledger.totals
    return HistoryRow(
        int(now // TICK_S),
        now,
        totals["time_s"],
        totals["pages"],
        totals["documents"],
        totals["words"],
        totals["downloaded_bytes"],
        totals["kept_bytes"],
        ledger.discovered,
        ledger.waiting + ledger.in_transit,
        len(hosts),
        hosts.states.at_work(),
        states.get(HostState.RETIRED, 0),
    )
