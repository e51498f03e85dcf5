"""How many shards a machine runs, and what each of them may take of it.  Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from spiderling.base.errors import BadInput
from spiderling.base.option_values import PREFIX
from spiderling.base.options import LEAST_FILTER_BYTES, MOST_WORKERS, Options
from spiderling.base.owners import MAX_SHARDS
from spiderling.base.printing import counted

CORES_A_SHARD = 3
"""Chosen: a page takes 3 ms of the main process and 4 to 5 ms of a text worker (docs/performance.md), so two workers
keep one main process busy."""
KEY_BYTES = 12
"""Memory of a URL in an exact seen set, at most (the option max_exact_keys)."""
MOST_DEATHS = 3
"""Times that a process is started again within DEATHS_S (chosen: a cause that lasts shows by then)."""
DEATHS_S = 3600.0
"""Seconds; chosen: a crawl of weeks may lose a process now and then."""


class Machine(NamedTuple):
    """What all shards on a machine share."""

    cores: int
    memory_bytes: int


class Share(NamedTuple):
    """What one shard may take of its machine: values of the options of the same names."""

    workers: int
    dedup_bytes: int
    max_exact_keys: int
    dns_concurrency: int
    ramp_up_per_s: float

    def settings(self) -> dict[str, str]:
        """The options, as settings."""
        return {f"{PREFIX}{name.upper()}": f"{value}" for name, value in self._asdict().items()}


def shards_for(cores: int) -> int:
    """The number of shards that *cores* call for; 1: one process is enough.

    >>> [shards_for(cores) for cores in (1, 2, 5, 6, 32)]
    [1, 1, 1, 2, 10]
    """
    return min(MAX_SHARDS, max(1, cores // CORES_A_SHARD))


def divided(options: Options, given: Collection[str], shards: int, machine: Machine) -> list[Share]:
    """The share of each of *shards* on one *machine*; the *given* options hold for each shard as they are.

    Raises BadInput if what was given is more than the machine has, taken by all.
    """
    _refuse_excess(options, given, shards, machine)
    defaults = Options()
    workers = min(max(shards, machine.cores - shards), MOST_WORKERS * shards)
    part = Share(
        workers=0,
        dedup_bytes=max(LEAST_FILTER_BYTES, machine.memory_bytes // 4 // shards),
        max_exact_keys=max(1, defaults.max_exact_keys // shards),
        dns_concurrency=max(1, defaults.dns_concurrency // shards),
        ramp_up_per_s=max(1.0, defaults.ramp_up_per_s // shards),
    )
    own = {name: getattr(options, name) for name in part._fields if name in given}
    return [
        part._replace(**{"workers": workers // shards + (shard < workers % shards), **own}) for shard in range(shards)
    ]


def _refuse_excess(options: Options, given: Collection[str], shards: int, machine: Machine) -> None:
    """One text worker a shard is the least, so it is never too many."""
    most_workers = max(1, machine.cores // shards - 1)
    if "workers" in given and options.workers > most_workers:
        raise BadInput(
            f"{PREFIX}WORKERS is {options.workers} for each of {shards} shards, but main processes and text workers "
            f"together should be at most the {machine.cores} cores of this machine. Give at most {most_workers}, "
            "or none."
        )
    for name, unit in (("dedup_bytes", 1), ("max_exact_keys", KEY_BYTES)):
        value = getattr(options, name)
        if name in given and value * unit * shards > machine.memory_bytes:
            raise BadInput(
                f"{PREFIX}{name.upper()} is {value} for each of {shards} shards: together that takes "
                f"{value * unit * shards / 1e9:,.1f} GB, and this machine has {machine.memory_bytes / 1e9:,.1f} GB. "
                f"Give at most {machine.memory_bytes // shards // unit}, or none."
            )


def told(shares: Sequence[Share], machine: Machine) -> str:
    """What each shard gets, as part of a sentence."""
    workers = sorted({share.workers for share in shares})
    some = shares[0]
    processes = sum(share.workers + 1 for share in shares)
    too_many = f" ({processes} main processes and text workers, more than cores)" if processes > machine.cores else ""
    return (
        f"{counted(len(shares), 'shard')} on {counted(machine.cores, 'core')}{too_many}; each has "
        f"{' or '.join(map(str, workers))} text worker{'' if workers == [1] else 's'}, "
        f"{some.dedup_bytes / 1e6:,.0f} MB to know near-duplicates by, {some.max_exact_keys:,} exact keys, "
        f"{some.dns_concurrency} DNS queries at once"
    )


def worst(codes: Iterable[int]) -> int:
    """The exit code of a crawl whose processes ended with *codes*: an error (1) is worse than no network (3).

    A process that a signal ended, whose code is below 0, has failed.

    >>> worst([0, 3, 0]), worst([3, 1]), worst([0, -9]), worst([])
    (3, 1, 1, 0)
    """
    return max((code if code in (0, 3) else 1 for code in codes), key=[0, 3, 1].index, default=0)


def may_start_again(deaths: Sequence[float], now: float) -> bool:
    """Whether a process that died at these times, of which one is *now*, is started again."""
    return sum(now - death < DEATHS_S for death in deaths) <= MOST_DEATHS


def given_among(settings: Mapping[str, object]) -> set[str]:
    """The options of a share that the user has given; 0 stands for a default."""
    names = {name: settings.get(f"{PREFIX}{name.upper()}") for name in Share._fields}
    return {name for name, value in names.items() if value is not None and str(value).strip() not in ("", "0")}
