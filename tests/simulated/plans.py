"""What happens in a simulated history, drawn from its seed: sessions with faults, edits and options, and one without.

What is drawn by a Random of its own leaves the rest of a seed as it was, so that seeds that have found a fault still
meet it (test_simulated.py).
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import replace
from random import Random

from tests.simulated.bugs import Bug
from tests.simulated.crawl import SHORT, Act, Edit, Fault, Plan, Taken
from tests.simulated.limits import DRAWN
from tests.simulated.network import Away
from tests.simulated.orders import ORDERS
from tests.simulated.redis import TROUBLES

CODES = (0, 0, 0, 0, errno.ENOSPC, errno.EIO, errno.EMFILE, SHORT)
"""What a fault is: a kill in half of the cases."""
ERRORS = sorted({*CODES} - {0})
CONTROLS = (
    b"pause: true\n",
    b"pause: [\n",
    b"\xff\xfe",
    b"host_interval_s: 2\n",
    b"nonsense: 1\n",
    b"ip_interval_s: 0.5\n",
    b"block: " + b"[" * 5000,
    b"seeds: &all ['http://h0.test/0', 'http://nowhere/', 'x', *all]\n",
    b"seeds: ['http://h0.test/0', 'http://nowhere/', 'http://10.0.0.1/']\nblock_networks: ['10.0.0.0/8']\n",
    b"ask_again: [dns, connection, timeout, http-error]\n",
    b"reopen: [w1.test, h2.test]\nmax_pages: 12\n",
    b"pause: true\npause: false\nmax_pages: 1e400\n",
)
FIRST_OF_SHARDS = 1_000_000  # seeds from this one on are of crawls with shards
FIRST_OF_ARCHIVES = 2_000_000  # seeds from this one on are of crawls of archives
FIRST_OF_WIDER = 300_000  # of each million; seeds from this one on are drawn from more
FIRST_OF_LIMITED = 400_000  # of each million; from this one on half of the histories have limits made small
FIRST_OF_DECLARING = 500_000  # of each million but that of archives; from this one on sites and pages refuse
FIRST_OF_BROKEN = 600_000  # of each million; from this one on the crawl has bugs
YEARS_20_S = 6.3e8
DAY_S = 86400.0
CHANGES = (
    {"SPIDERLING_HOST_INTERVAL_S": 2.0},
    {"SPIDERLING_LINKS": "on"},
    {"SPIDERLING_WARC": "on"},
    {"SPIDERLING_TRAIL": "ends"},
    {"SPIDERLING_DURABILITY": "normal"},
    {"SPIDERLING_ACTIVE_HOSTS": 2},
    {"SPIDERLING_MAX_DOCUMENTS": 10},
    {"SPIDERLING_OPTOUTS": ""},
)
MORE_CHANGES = (
    {"CONCURRENT_REQUESTS": 1},
    {"SPIDERLING_DELAY_FACTOR": 0.0},
    {"SPIDERLING_DELAY_FACTOR": 50.0},
    {"SPIDERLING_MARGINAL_BYTES": 3000},
    {"SPIDERLING_MAX_DOWNLOADED_BYTES": 5000},
    {"SPIDERLING_MAX_HOST_BYTES": 2000},
    {"SPIDERLING_MAX_HOST_DOCUMENTS": 2},
    {"SPIDERLING_MAX_PAGES": 9},
    {"SPIDERLING_MAX_TIME_S": 12.0},
    {"SPIDERLING_MAX_WORDS": 400},
    {"SPIDERLING_OFFLINE_WAIT_S": 20.0},
    {"SPIDERLING_PREFER_TLDS": ""},
    {"SPIDERLING_PURPOSE": "research"},
    {"SPIDERLING_RANDOM_SEED": 7},
    {"SPIDERLING_STRATEGY": "bfs"},
    {"SPIDERLING_STRATEGY": "heidix"},
    {"SPIDERLING_STRATEGY": "random-walk:jump=0.3"},
    {"SPIDERLING_STRATEGY": "spiderling:thrift=6"},
    {"SPIDERLING_STRATEGY": "yield", "SPIDERLING_MIN_ACTIVE_HOSTS": 1},
    {"SPIDERLING_SURPLUS": "aside"},
    {"SPIDERLING_TRAIL": "off"},
    {"SPIDERLING_WARC": "zstd"},
)
HELD_BACK = {"SPIDERLING_MAX_HOST_BYTES", "SPIDERLING_MAX_HOST_DOCUMENTS"}
"""Options by which a session that ends may have left something for later ones."""
LEAVING_OUT = (
    {"SPIDERLING_FOLLOW": "host"},
    {"SPIDERLING_FOLLOW": "none"},
    {"SPIDERLING_MAX_DISTANCE": 0},
    {"SPIDERLING_MAX_HOST_QUEUE": 2},
    {"SPIDERLING_RETRIES": 0},
    {"SPIDERLING_TIMEOUT_S": 2.0},
    {"SPIDERLING_TLDS": "cz"},
    {"SPIDERLING_TRAPS": "standard,pages=3,copies=2"},
    {"SPIDERLING_YIELD_PROFILE": "0.9"},
)
"""Options by which a session leaves out what a later one does not ask for again."""


def planned(seed: int) -> list[Plan]:
    """Two or three sessions with faults, and one without."""
    rng = Random(f"plan {seed}")
    plans = [_faulty(rng) for _ in range(rng.randint(1, 3))]
    if has_shards(seed):
        plans = [_shared(rng, plan) for plan in plans]
    plans.append(Plan(rests_s=rng.choice((0.0, 5.0, 5000.0))))
    if rng.random() < 0.3 and not has_shards(seed):
        taken = _taken(rng)
        plans[-1 - (rng.random() < 0.3)].taken = taken
    if rng.random() < 0.1 and not has_shards(seed):
        revisits = _faulty(rng)
        stop = Edit(rng.uniform(100, 3000), "stop")  # revisits begin after 20 minutes
        rests_s = rng.choice((DAY_S, 20 * DAY_S))
        plans.insert(-1, replace(revisits, edits=(*revisits.edits, stop), recrawl="on", rests_s=rests_s))
    room = Random(f"room {seed}")
    if room.random() < 0.1:
        plan = room.choice(plans)
        plan.options = {**plan.options, "CONCURRENT_REQUESTS": 2}
    changes = Random(f"changes {seed}")  # one of its own: what came later leaves older seeds as they were
    if changes.random() < 0.25:
        plans = _changing(changes, plans, has_shards(seed))
    if is_wider(seed):
        plans = _widened(Random(f"wider {seed}"), plans, has_shards(seed))
    plans = _broken(seed, _limited(seed, _ordered(seed, plans)))
    if reads_archives(seed):
        plans = [replace(plan, recrawl="", changes=0, away=None) for plan in plans]
    strangers = Random(f"strangers {seed}")
    if has_shards(seed):
        plans = [*(_meddled(strangers, plan) for plan in plans[:-1]), plans[-1]]
    return [_visited(strangers, plan) for plan in plans]


def _ordered(seed: int, plans: list[Plan]) -> list[Plan]:
    """*plans* with orders of a person, where sites and pages refuse."""
    rng = Random(f"orders {seed}")
    for plan in plans if declares(seed) else ():
        if rng.random() < 0.3:
            plan.edits = (*plan.edits, Edit(rng.uniform(0, 15), "control", rng.choice([*ORDERS])))
    return plans


def _broken(seed: int, plans: list[Plan]) -> list[Plan]:
    """*plans*, of which most have a bug, which many never meet."""
    rng = Random(f"bugs {seed}")
    for plan in plans[:-1] if seed % FIRST_OF_SHARDS >= FIRST_OF_BROKEN else ():
        if rng.random() < 0.7:
            plan.bug = Bug(rng.random(), rng.choice((1, 1, rng.randint(1, 20), rng.randint(1, 200))))
    return plans


def _limited(seed: int, plans: list[Plan]) -> list[Plan]:
    """*plans*, in half of the cases with further limits made small, the same in all."""
    rng = Random(f"limits {seed}")
    if seed % FIRST_OF_SHARDS < FIRST_OF_LIMITED or rng.random() >= 0.5:
        return plans
    drawn = rng.sample(range(len(DRAWN)), rng.choice((1, 5, len(DRAWN))))
    return [replace(plan, limits=tuple(drawn)) for plan in plans]


def _widened(rng: Random, plans: list[Plan], is_shared: bool) -> list[Plan]:
    """*plans* with more options, another dedup in all sessions, take-downs of single pages, and other commands."""
    kinds = [*MORE_CHANGES, *LEAVING_OUT * (rng.random() < 0.2)]
    dedup = {"SPIDERLING_DEDUP": rng.choice(("near", "mark", "off"))} if rng.random() < 0.3 else {}
    for number, plan in enumerate(plans):
        if number < len(plans) - 1 and rng.random() < 0.6:
            for change in rng.sample(kinds, rng.choice((1, 1, 2, 5))):
                plan.options = {**plan.options, **change}
        plan.options = {**plan.options, **dedup}
        if plan.taken and rng.random() < 0.5:
            plan.taken = plan.taken._replace(page=rng.randrange(100))
    act = rng.choice(("rebuild", "reshard", "takeover", "takeover", "", ""))
    after = [number for number in range(1, len(plans)) if not any(plan.recrawl for plan in plans[:number])]
    if act == "reshard" and is_shared:
        plans[rng.choice(after)].act = Act(act, rng.choice((3, 4)), (_fault_of_act(rng),), rng.random() < 0.5)
    elif act == "rebuild" and not is_shared:
        plan = plans[rng.choice(after)]
        plan.act = Act(act, rng.random(), (_fault_of_act(rng),), rng.random() < 0.5)
        plan.rests_s = max(plan.rests_s, 100.0)  # a state that is made anew knows of no interval
    elif act == "takeover":
        plans = [replace(plan, snapshots="kept") for plan in plans]
        plan = plans[rng.randrange(1, len(plans))]
        plan.act = Act(act, rng.random(), (_fault_of_act(rng),), rng.random() < 0.5)
        plan.rests_s = max(plan.rests_s, 100.0)  # nor does a snapshot
    return plans


def is_wider(seed: int) -> bool:
    """Whether *seed* is drawn from more: seeds that have found a fault draw from what there was then."""
    return seed % FIRST_OF_SHARDS >= FIRST_OF_WIDER


def declares(seed: int) -> bool:
    """Whether sites and pages of the web of *seed* refuse the use of their texts."""
    return seed % FIRST_OF_SHARDS >= FIRST_OF_DECLARING and not reads_archives(seed)


def leaves_out(plans: Sequence[Plan], of_archives: bool) -> bool:
    """Whether a session of *plans* leaves out texts for good, the last one some for later.

    Archives are read once: what a budget of a host leaves out of them comes no more.
    """
    holding = plans if of_archives else plans[-1:]
    names = {name for options in LEAVING_OUT for name in options}
    is_rebuilt = any(plan.act and plan.act.what == "rebuild" for plan in plans)  # links of kept pages are lost then
    return (
        is_rebuilt
        or any(plan.bug for plan in plans)  # which may have ended a URL
        or any(not names.isdisjoint(plan.options) for plan in plans)
        or any(not HELD_BACK.isdisjoint(plan.options) for plan in holding)
    )


def _changing(rng: Random, plans: list[Plan], is_shared: bool) -> list[Plan]:
    """*plans* with recrawls of a web that has changed; of shards also with a take-down."""
    for _ in range(rng.choice((0, 1, 1, 2)) if is_shared else rng.choice((1, 1, 2))):
        plan = _faulty(rng)
        late = rng.choice((0, 200, 400, 10**9))  # calls after which its faults come; in a session are some 600
        faults = tuple(fault._replace(call=fault.call + late) for fault in plan.faults)
        edits = [edit for edit in plan.edits if edit.what not in ("stop", "kill") or rng.random() < 0.2]
        edits.append(Edit(rng.uniform(150, 400), rng.choice(("stop", "stop", "kill"))))  # revisits begin after 200 s
        rests_s = rng.choice((3 * DAY_S, 20 * DAY_S))
        plan = replace(plan, faults=faults, edits=tuple(edits), recrawl="on", rests_s=rests_s)
        plan.changes = rng.randrange(1, 10**6)
        plans.insert(-1, _shared(rng, plan) if is_shared else plan)
    if is_shared and rng.random() < 0.7:
        plans[rng.randrange(1, len(plans))].taken = _taken(rng, apart=rng.random() < 0.5)
    return plans


def _meddled(rng: Random, plan: Plan) -> Plan:
    """*plan*, in half of the cases with somebody who alters for a while what shards have in their Redis."""
    if rng.random() < 0.5:
        return plan
    begin_s, pause_s = rng.uniform(0, 10), rng.choice((0.07, 0.3, 2.0))
    edits = (Edit(begin_s + number * pause_s, "redis", "damaged") for number in range(rng.choice((1, 20, 100))))
    faults = plan.faults if rng.random() < 0.3 else ()  # else hardly a session lasts as long
    return replace(plan, edits=(*plan.edits, *edits), faults=faults)


def _visited(rng: Random, plan: Plan) -> Plan:
    """*plan*, in one case of six with a live page that is visited."""
    if rng.random() > 1 / 6:
        return plan
    visits = [
        Edit(rng.random() * rng.choice((4, 15, 60)), "visit", rng.random()) for _ in range(rng.choice((3, 9, 30)))
    ]
    return replace(plan, options={**plan.options, "SPIDERLING_PAGE": "127.0.0.1:0"}, edits=(*plan.edits, *visits))


def _taken(rng: Random, apart: bool = False) -> Taken:
    faults = (_fault_of_act(rng),)
    return Taken(rng.choice(("h0.test", "w1.test", "h2.test")), faults, rng.random() < 0.5, apart)


def _fault_of_act(rng: Random) -> Fault:
    """What ends a command."""
    return Fault(rng.choice((rng.randint(1, 60), rng.randint(1, 250))), rng.choice(CODES), rng.random() < 0.3)


def has_shards(seed: int) -> bool:
    """Whether the crawl of *seed* has two shards."""
    return FIRST_OF_SHARDS <= seed < FIRST_OF_ARCHIVES


def reads_archives(seed: int) -> bool:
    """Whether the crawl of *seed* reads archives in place of the web."""
    return seed >= FIRST_OF_ARCHIVES


def _shared(rng: Random, plan: Plan) -> Plan:
    """*plan* for shards: what happens to their Redis comes to it; its clock is no concern of theirs."""
    edits = [edit for edit in plan.edits if edit.what != "clock"]
    if rng.random() < 0.6:
        begin_s = rng.uniform(0, 15)
        edits.append(Edit(begin_s, "redis", rng.choice(TROUBLES)))
        edits.append(Edit(begin_s + rng.choice((0.5, 4.0, 30.0)), "redis", "back"))
    return replace(plan, edits=tuple(edits), is_older=False)


def _faulty(rng: Random) -> Plan:
    options: dict[str, object] = {}
    for _ in range(rng.choice((0, 0, 1, 2))):
        options |= rng.choice(CHANGES)
    faults: tuple[Fault, ...] = ()
    edits: list[Edit] = []
    kind = rng.random()
    after_s = rng.choice((0.0, 0.5, 3.0, 3.0, 12.0, 20.0)) + rng.random()
    if kind < 0.7:
        call = rng.choice((rng.randint(1, 25), rng.randint(20, 150), rng.randint(60, 700), rng.randint(60, 300)))
        code = rng.choice(CODES)
        faults = (Fault(call, code, code != 0 and rng.random() < 0.4),)
    elif kind < 0.9:
        edits.append(Edit(after_s, "stop"))
    else:
        edits.append(Edit(after_s, "kill"))
    if rng.random() < 0.3:
        edits.append(Edit(rng.uniform(0, 15), "control", rng.choice(CONTROLS)))
    if rng.random() < 0.2:
        edits.append(Edit(rng.uniform(0, 15), "clock", rng.choice((-YEARS_20_S, -60.0, 60.0, YEARS_20_S))))
    away = (
        Away(rng.uniform(0, 15), rng.choice((30.0, 100.0, 300.0)), rng.random() < 0.5) if rng.random() < 0.15 else None
    )
    if away and rng.random() < 0.7:
        faults, edits = (), []  # else hardly a session lasts as long
    is_cut = rng.random() < 0.5
    is_older = rng.random() < 0.1
    return Plan(options, faults, tuple(edits), is_cut, is_older, away, rng.choice((0.0, 1.0, 100.0, 1e5)))
