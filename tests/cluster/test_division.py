"""How a machine is divided among shards: everything fits, whatever the machine is like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spiderling.base.errors import BadInput
from spiderling.base.options import LEAST_FILTER_BYTES, MOST_WORKERS, Options
from spiderling.cluster.launcher import (
    DEATHS_S,
    MOST_DEATHS,
    Machine,
    Share,
    divided,
    given_among,
    may_start_again,
    shards_for,
    told,
    worst,
)

MACHINES = st.builds(Machine, st.integers(1, 512), st.integers(10**9, 10**13))
SHARDS = st.integers(1, 64)


@given(MACHINES)
def test_shards_and_workers_are_as_many_as_the_cores(machine: Machine) -> None:
    """But a machine of one core has a main process and a worker, as every crawl has."""
    shards = shards_for(machine.cores)
    shares = divided(Options(), (), shards, machine)
    assert len(shares) == shards
    assert sum(share.workers + 1 for share in shares) == max(2, machine.cores)
    assert max(share.workers for share in shares) - min(share.workers for share in shares) <= 1
    assert shards == 1 or min(share.workers for share in shares) >= 2
    assert "more than cores" not in told(shares, machine) or machine.cores == 1


@given(MACHINES, SHARDS)
def test_the_sum_of_the_defaults_is_what_one_crawl_takes(machine: Machine, shards: int) -> None:
    shares = divided(Options(), (), shards, machine)
    defaults = Options()
    assert all(share.workers >= 1 for share in shares)
    assert sum(share.workers for share in shares) == min(max(shards, machine.cores - shards), MOST_WORKERS * shards)
    assert sum(share.dedup_bytes for share in shares) <= max(machine.memory_bytes // 4, shards * LEAST_FILTER_BYTES)
    for name in ("max_exact_keys", "dns_concurrency", "ramp_up_per_s"):
        whole = getattr(defaults, name)
        assert whole - shards <= sum(getattr(share, name) for share in shares) <= max(whole, shards)
    Options.from_settings(shares[0].settings())  # each is within its bounds


@given(MACHINES, SHARDS, st.integers(1, 256))
def test_workers_that_were_given_hold_or_are_refused(machine: Machine, shards: int, workers: int) -> None:
    options = Options(workers=workers)
    try:
        shares = divided(options, {"workers"}, shards, machine)
    except BadInput:
        assert workers > 1 and shards * (workers + 1) > machine.cores
    else:
        assert workers == 1 or shards * (workers + 1) <= machine.cores
        assert {share.workers for share in shares} == {workers}


@pytest.mark.parametrize(("name", "fits", "excess"), [("dedup_bytes", 10**9, 10**9 + 1), ("max_exact_keys", 83, 10**8)])
def test_memory_that_was_given_fits_all_together(name: str, fits: int, excess: int) -> None:
    machine = Machine(8, 4 * 10**9)
    assert getattr(divided(Options(**{name: fits}), {name}, 4, machine)[3], name) == fits
    most = 4 * 10**9 // 4 // (1 if name == "dedup_bytes" else 12)
    with pytest.raises(BadInput, match=rf"for each of 4 shards: together .* Give at most {most}, or none\."):
        divided(Options(**{name: excess}), {name}, 4, machine)


def test_an_option_of_zero_is_not_given() -> None:
    settings = {"SPIDERLING_WORKERS": "0", "SPIDERLING_DEDUP_BYTES": None, "SPIDERLING_DNS_CONCURRENCY": 7}
    assert given_among(settings) == {"dns_concurrency"}
    share = divided(Options(dns_concurrency=7), {"dns_concurrency"}, 3, Machine(9, 10**10))[0]
    assert share.settings()["SPIDERLING_DNS_CONCURRENCY"] == "7" and share.workers == 2


def test_what_is_told() -> None:
    shares = divided(Options(), (), 5, Machine(16, 64 * 10**9))
    assert told(shares, Machine(16, 0)) == (
        "5 shards on 16 cores; each has 2 or 3 text workers, 3,200 MB to know near-duplicates by, 40,000,000 exact "
        "keys, 100 DNS queries at once"
    )
    crowd = divided(Options(), (), 4, Machine(2, 64 * 10**9))
    assert "4 shards on 2 cores (8 main processes and text workers, more than cores); each has 1 text worker," in told(
        crowd, Machine(2, 0)
    )


@given(st.lists(st.sampled_from([0, 1, 2, 3, -9, -15]), max_size=5))
def test_the_worst_exit_code(codes: list[int]) -> None:
    code = worst(codes)
    assert code == (0 if not any(codes) else 3 if set(codes) <= {0, 3} else 1)


@given(st.lists(st.floats(0, 10 * DEATHS_S), min_size=1, max_size=20).map(sorted))
def test_a_process_is_started_again_a_few_times_an_hour(deaths: list[float]) -> None:
    now = deaths[-1]
    lately = [death for death in deaths if now - death < DEATHS_S]
    assert may_start_again(deaths, now) == (len(lately) <= MOST_DEATHS)


def test_a_share_is_made_of_options() -> None:
    assert set(Share._fields) <= {*Options.__dataclass_fields__}
