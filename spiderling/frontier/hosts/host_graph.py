"""Which host links to which, so that a shorter way to one host is passed on to all that it leads to.

Suchomel 2017 lowers the distance of a domain when a shorter way to it appears.  What that host links to is nearer then,
too, though its pages are not read again.  So each link from host to host is kept as an edge: once, and only while it
may still matter.  A host at distance 0 comes no nearer, nor does one that a link from distance 0 would reach no sooner.

Edges are whole numbers in sorted arrays, 8 bytes each, of which each is at least twice as long as the next one.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from spiderling.base.urls import MAX_HOST_ID
from spiderling.frontier.hosts.host import HostStates

_TARGET_SHIFT = 1
"""The lowest bit of an edge is its length: 1 hop for a link, 0 for a redirect."""
_SOURCE_SHIFT = 25
"""An edge is source id << 25 | target id << 1 | length."""


class HostGraph:
    """The edges between hosts, and the distances in *states* as far as edges shorten them."""

    def __init__(self, states: HostStates) -> None:
        self._states = states
        self._runs: list[NDArray[np.int64]] = []
        """All edges but the newest."""
        self._newest: defaultdict[int, set[int]] = defaultdict(set)
        """Source -> edges since the last ``drain``; some may be known."""

    def note(self, source: int, targets: Iterable[int], hops: int = 1) -> None:
        """A page of the host *source* leads to the hosts *targets*; the id 0, of unknown hosts, counts for none."""
        if source > 0 and self._states.distance(source):
            edges = source << _SOURCE_SHIFT | hops
            farther = self._states.farther(targets, hops)
            self._newest[source].update([edges | target << _TARGET_SHIFT for target in farther if target != source])

    def lower(self, host_id: int, distance: int) -> list[int]:
        """Lower the distance of a host to *distance*, and of all that it leads to; returns those that came nearer."""
        states = self._states
        lowered: list[int] = []
        if distance >= states.distance(host_id):
            return lowered
        ways = deque([(host_id, distance)])
        while ways:  # the shortest first, so that each host is passed once
            source, distance = ways.popleft()
            if distance >= states.distance(source):
                continue
            states.set_distance(source, distance)
            lowered.append(source)
            edges = self._from(source)
            for hops, put in ((0, ways.appendleft), (1, ways.append)):
                targets = edges[edges & 1 == hops] >> _TARGET_SHIFT & MAX_HOST_ID
                for target in states.farther(targets.tolist(), distance + hops):
                    put((target, distance + hops))
        return lowered

    def _from(self, source: int) -> NDArray[np.int64]:
        """The edges from *source*."""
        bounds = source << _SOURCE_SHIFT, source + 1 << _SOURCE_SHIFT
        parts = [run[slice(*np.searchsorted(run, bounds))] for run in self._runs]
        return np.concatenate([*parts, np.fromiter(self._newest.get(source, ()), np.int64)])

    def drain(self) -> list[int]:
        """The edges that are new since the last call."""
        edges = np.unique(np.fromiter((edge for of in self._newest.values() for edge in of), np.int64))
        self._newest.clear()
        for run in self._runs:
            at = np.minimum(np.searchsorted(run, edges), len(run) - 1)
            edges = edges[run[at] != edges]
        self._add(edges)
        new: list[int] = edges.tolist()
        return new

    def restore(self, edges: Iterable[int]) -> None:
        """Take up what was committed."""
        self._add(np.unique(np.fromiter(edges, np.int64)))

    def _add(self, run: NDArray[np.int64]) -> None:
        if not len(run):
            return
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")  # merges what is sorted
        self._runs.append(run)
