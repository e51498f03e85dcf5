"""What hosts cost and gave, and what other thresholds would have meant.

The measures are those of Suchomel & Pomikálek 2012.  Our kept bytes are measured after near-duplicates were removed.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from spiderling.base.option_values import YIELD_PROFILES
from spiderling.base.options import Options
from spiderling.base.terminal import with_progress
from spiderling.frontier.host_closing import threshold
from spiderling.frontier.hosts import HostState
from spiderling.frontier.strategies import parse
from spiderling.jobdir.as_text import Table
from spiderling.jobdir.shards import AnyCrawl

_Column: TypeAlias = "npt.NDArray[np.int64]"
_Mask: TypeAlias = "npt.NDArray[np.bool_]"


class Hosts(NamedTuple):
    """All hosts by column; bytes in UTF-8 as the yield rate has them (frontier/hosts.py)."""

    states: npt.NDArray[np.str_]
    pages: _Column
    downloaded_bytes: _Column
    kept_bytes: _Column
    parked: _Column

    @property
    def rates(self) -> npt.NDArray[np.float64]:
        """Yield rates; 0 where nothing was downloaded."""
        return self.kept_bytes / np.maximum(self.downloaded_bytes, 1)

    def in_state(self, state: HostState) -> _Mask:
        """Which hosts are in *state*."""
        return np.asarray(self.states == state.value)


class Profile(NamedTuple):
    """What a threshold function would have meant."""

    name: str
    factor: float
    retired: int
    """Hosts that are retired, if it is the one used; else those that would have been, by what they gave in all."""
    spared_share: float
    """Share of all downloaded bytes that came from these hosts after each could have been retired."""
    lost_share: float
    """Share of all kept bytes that came after that moment, if each host gave its text evenly."""
    more_bytes: float
    """Kept bytes to be expected of the parked URLs of retired hosts that it would let go on."""


def hosts_by_column(crawl: AnyCrawl) -> Hosts:
    """The hosts of *crawl*, of all its shards."""
    query = "SELECT state, pages, downloaded_bytes, kept_bytes, parked FROM host"
    number = sum(sum(part.hosts_by_state.values()) for part in crawl.parts)
    rows = [*with_progress(chain.from_iterable(part.newest().execute(query) for part in crawl.parts), "hosts", number)]
    states, *columns = zip(*rows, strict=True) if rows else [()] * 5
    return Hosts(np.array(states, str), *(np.array(column, np.int64) for column in columns))


def profiles(hosts: Hosts, options: Options) -> list[Profile]:
    """Each profile, the one used and a stricter one, from the mildest to the strictest."""
    factors = {name: factor or 0.0 for name, factor in YIELD_PROFILES.items()} | {"0.02": 0.02}
    factors[options.yield_profile] = options.yield_factor() or 0.0
    used = factors[used_profile(options)]
    return [_profile(hosts, options, name, factors[name], used) for name in sorted(factors, key=factors.__getitem__)]


def used_profile(options: Options) -> str:
    """The profile by which the crawl's strategy retires hosts; "off" for one that retires none."""
    return options.yield_profile if parse(options.strategy).retires else "off"


def _profile(hosts: Hosts, options: Options, name: str, factor: float, used_factor: float) -> Profile:
    pages = np.maximum(hosts.pages, 1)
    are = hosts.in_state(HostState.RETIRED)
    below = are
    if factor != used_factor:
        by_rule = retired_by(hosts, options, factor)
        below = are | by_rule if factor > used_factor else are & by_rule
    first = np.maximum(options.yield_min_bytes, hosts.downloaded_bytes * options.yield_min_pages / pages)
    after = np.where(below, 1 - np.minimum(1.0, first / np.maximum(hosts.downloaded_bytes, 1)), 0.0)
    return Profile(
        name,
        factor,
        int(below.sum()),
        float((after * hosts.downloaded_bytes).sum() / max(1, hosts.downloaded_bytes.sum())),
        float((after * hosts.kept_bytes).sum() / max(1, hosts.kept_bytes.sum())),
        float((hosts.kept_bytes / pages * hosts.parked)[are & ~below].sum()),
    )


def retired_by(hosts: Hosts, options: Options, factor: float) -> _Mask:
    """The hosts that t(n) of *factor* retires by what they gave in all; none for 0."""
    reached = (hosts.pages >= options.yield_min_pages) & (hosts.downloaded_bytes >= options.yield_min_bytes)
    limits = np.array([threshold(int(pages), factor) for pages in hosts.pages])
    return reached & (hosts.rates < limits) if factor else np.zeros(len(hosts.states), bool)


def profile_table(hosts: Hosts, options: Options) -> Table:
    used = used_profile(options)
    return Table(
        "What a stricter or milder threshold would have meant",
        [
            {
                "profile": f"{profile.name} (used)" if profile.name == used else profile.name,
                "factor_f": profile.factor,
                "hosts_retired": profile.retired,
                "%_of_download_spared": round(100 * profile.spared_share, 1),
                "%_of_text_lost": round(100 * profile.lost_share, 1),
                "more_MB_of_text": round(profile.more_bytes / 1e6, 2),
            }
            for profile in profiles(hosts, options)
        ],
        "The threshold is t(n) = f (log10 n - 1), where n is the number of a host's pages. The profile in use has the "
        "hosts that are retired now; the other rows are estimates from the hosts' totals: a retired host is taken to "
        "have given its text evenly, and the URLs parked with hosts that a milder profile lets go on to give as much "
        "as those before.",
    )


def threshold_table(hosts: Hosts) -> Table:
    """Table 1 of the paper: what the hosts above each yield rate cost and gave."""
    marks = [-1.0, 0.0, *(0.0001 * 2**step for step in range(13))]
    return Table(
        "What hosts above a yield rate cost and gave",
        [{"yield_rate_above": "any" if at < 0 else f"{at:g}", **_sums(hosts, hosts.rates > at)} for at in marks],
        "As Table 1 of Suchomel & Pomikálek 2012; there, the hosts above .0128 hold 74 % of the text for 7 % of the "
        "download.",
    )


def _sums(hosts: Hosts, chosen: _Mask) -> dict[str, float]:
    down = int(hosts.downloaded_bytes[chosen].sum())
    kept = int(hosts.kept_bytes[chosen].sum())
    return {
        "hosts": int(chosen.sum()),
        "down_MB": round(down / 1e6, 2),
        "kept_MB": round(kept / 1e6, 2),
        "yield_rate": round(kept / max(down, 1), 4),
        "%_of_downloaded": round(100 * down / max(1, int(hosts.downloaded_bytes.sum())), 1),
        "%_of_kept": round(100 * kept / max(1, int(hosts.kept_bytes.sum())), 1),
    }
