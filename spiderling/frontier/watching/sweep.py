"""A sweep over all watched pages, block by block: which of them are most worth a look."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from spiderling.frontier.watching.answered import GONE_DAYS
from spiderling.frontier.watching.columns import ANNOUNCED, MISSED, OVER, PLANNED, Columns, hosts_of
from spiderling.frontier.watching.policy import Pages, Policy

MOST_PLANNED = 5_000
"""Looks that one sweep plans (chosen: 480,000 a day)."""
_FIRST = float(np.finfo(np.float64).max)


class Sweep:
    """Judges the pages as they stand when it begins."""

    def __init__(self, policy: Policy, columns: Columns, is_out_of_reach: Callable[[int], bool]) -> None:
        """*is_out_of_reach*: whether the host of this id is; its pages are not looked at."""
        columns.merge()
        self._policy = policy
        self._is_out_of_reach = is_out_of_reach
        self._blocks = (columns.rows[first:end] for first, end in columns.blocks())
        self._best: list[NDArray[np.float64]] = []
        """(keys, as the floats with their bits; indexes) of pages that are worth a look."""

    def judge_block(self, days: float) -> bool:
        """Judge the next block; returns whether there was one."""
        rows = next(self._blocks, None)
        if rows is not None:
            self._judge(rows, days)
        return rows is not None

    def best(self, number: int) -> list[int]:
        """The keys of the pages that are most worth it, best first."""
        keys: list[int] = np.ascontiguousarray(self._chosen(max(0, number))[0]).view(np.int64).tolist()
        return keys

    def _judge(self, rows: NDArray[np.void], days: float) -> None:
        hosts = hosts_of(rows)
        different, row = np.unique(hosts, return_inverse=True)
        is_out_of_reach = np.array([self._is_out_of_reach(int(host)) for host in different])
        is_candidate = ((rows["flags"] & (PLANNED | OVER)) == 0) & ~is_out_of_reach[row]
        if not is_candidate.any():
            return
        rows = rows[is_candidate]
        index = self._policy.worth(self._policy.tables(different.tolist()), pages_of(rows, row[is_candidate]), days)
        is_missed = (rows["flags"] & MISSED) > 0
        index[is_missed] = np.where(days - rows["last"][is_missed] >= GONE_DAYS, _FIRST, 0.0)
        is_worth = index > 0
        self._best.append(np.array([rows["key"][is_worth].view(np.int64).view(np.float64), index[is_worth]]))
        if sum(part.shape[1] for part in self._best) > 4 * MOST_PLANNED:
            self._best = [self._chosen(MOST_PLANNED)]

    def _chosen(self, number: int) -> NDArray[np.float64]:
        best = np.concatenate(self._best, axis=1) if self._best else np.empty((2, 0))
        return best[:, np.argsort(-best[1], kind="stable")[:number]]


def pages_of(rows: NDArray[np.void], row: NDArray[np.int64]) -> Pages:
    """The columns of *rows*, whose hosts have these rows in Tables."""
    return Pages(
        row,
        rows["kind"].astype(np.int64),
        rows["found_at"].astype(np.float64),
        rows["last"].astype(np.float64),
        (rows["flags"] & ANNOUNCED) > 0,
    )
