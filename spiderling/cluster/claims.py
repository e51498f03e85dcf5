"""Which shard a process is: before the crawl opens, it claims one that is free.

In Redis stand, for a crawl named by its languages and the last part of JOBDIR,

    spiderling:LANG:NAME:map       the shard map, which also stands in the state of each shard
    spiderling:CRAWL:claimed       number -> machine and JOBDIR of the shard, for ever
    spiderling:CRAWL:lease:N       who runs shard N now, and its status; it runs out by itself
    spiderling:CRAWL:files:N       the site files that shard N wants of others (cluster/site_files.py)
    spiderling:CRAWL:file:N:NUMBER one of them
    spiderling:CRAWL:totals        number -> what the shard has done (cluster/totals.py)
    spiderling:CRAWL:control       the text of control.yaml (cluster/crawl_control.py)
    spiderling:CRAWL:slots         address -> when other shards may start there (cluster/slots.py)
    spiderling:CRAWL:over          for a minute after the end

Redis may lose them all.  Shards that run put back what they know with each beat, so a process that finds nothing waits
for some beats before it begins a new crawl.
"""

from __future__ import annotations

import json
import logging
import secrets
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from redis.exceptions import AuthenticationError, BusyLoadingError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from spiderling import languages
from spiderling.base.clock import elapsed_s
from spiderling.base.errors import BadInput, JobdirError, NoFreeShard
from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.cluster.redis_connection import connected, place_of
from spiderling.cluster.shard_map import ShardMap
from spiderling.cluster.slots import BEGIN
from spiderling.cluster.suffix_list import take_up
from spiderling.cluster.totals import Said
from spiderling.jobdir.directory import is_in_use
from spiderling.jobdir.sound_reading import SoundConnection

logger = logging.getLogger(__name__)

BEAT_S = 1.0
"""Seconds between two renewals of a lease (chosen: one round trip)."""
LEASE_S = 10.0
"""Seconds after which a lease runs out that is not renewed; chosen: some beats may be late."""
LOOK_S = 3 * BEAT_S
"""Seconds for which a process looks for others before it begins a new crawl."""
PATIENCE_S = 30.0
"""Seconds for which a process that begins waits for a Redis that is away (chosen: it may be starting too)."""
MAP_KEY = "shard_map"
"""Key of the map in the table ``meta`` of a state."""
TOTALS_KEY = "shards_totals"
"""Key, in the same table, of what each shard is known to have done."""
CONTROL_KEY = "shards_control"
"""Key, in the same table, of number and text of control.yaml."""
CLAIMED_KEY = "shards_claimed"
"""Key, in the same table, of the numbers that are known to be claimed, and where."""
TOKEN_CHARS = 32
RENEW = """local held = redis.call('GET', KEYS[1])
if held and string.sub(held, 1, #ARGV[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1"""
"""Arguments: the token of who holds the lease, what stands in it then (it begins with the token), milliseconds."""
_FREE = """local held = redis.call('GET', KEYS[1])
if held and string.sub(held, 1, #ARGV[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end"""


class Keys(NamedTuple):
    """Names in Redis."""

    map: str
    crawl_id: str

    @property
    def claimed(self) -> str:
        return f"spiderling:{self.crawl_id}:claimed"

    @property
    def totals(self) -> str:
        return f"spiderling:{self.crawl_id}:totals"

    @property
    def control(self) -> str:
        return f"spiderling:{self.crawl_id}:control"

    @property
    def slots(self) -> str:
        return f"spiderling:{self.crawl_id}:slots"

    @property
    def over(self) -> str:
        return f"spiderling:{self.crawl_id}:over"

    def files(self, shard: int) -> str:
        """The files that *shard* wants."""
        return f"spiderling:{self.crawl_id}:files:{shard}"

    def file(self, shard: int, number: int) -> str:
        """The file that *shard* wants by that *number*."""
        return f"spiderling:{self.crawl_id}:file:{shard}:{number}"

    def lease(self, shard: int) -> str:
        """The lease of *shard*."""
        return f"spiderling:{self.crawl_id}:lease:{shard}"


class Claim(NamedTuple):
    """A shard that this process may run."""

    shard: int
    map: ShardMap
    keys: Keys
    token: bytes
    """Tells this process from all others; its lease begins with it."""
    place: str
    """Machine and JOBDIR."""
    directory: Path
    """Of the shard."""
    known: dict[str, str]
    """Number -> place of each shard that is known to be claimed."""
    totals: Said
    """What the state of the shard knows of what each has done."""
    control_here: str | None
    """Number and text of control.yaml, as the state knows them; None: it knows none."""
    control_there: bytes | None
    """The same in Redis, sealed."""


class Claims:
    """The claims of one crawl, as a process sees them that begins or ends."""

    def __init__(self, options: Options, directory: Path) -> None:
        """*directory*: JOBDIR; raises BadInput."""
        self.held_until = 0.0
        """Until when the lease was last known to be ours, by `elapsed_s`."""
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._options = options
        self._directory = directory
        self._place = f"{socket.gethostname()}:{directory.absolute()}"
        self._redis = connected(options.cluster, blocks=True)
        self._server = place_of(self._redis)

    def claim(self) -> Claim:
        """The shard whose directory is here first, else a free one; raises NoFreeShard, BadInput or JobdirError."""
        if (self._directory / "state").exists():
            raise JobdirError(
                f"{self._directory} holds a crawl without shards. Give another directory with -s JOBDIR=..."
            )
        end = time.monotonic() + PATIENCE_S
        is_told = False
        while True:
            try:
                return self._claim()
            except RedisError as error:
                is_away = isinstance(error, (RedisConnectionError, RedisTimeoutError, BusyLoadingError))
                if not is_away or isinstance(error, AuthenticationError) or time.monotonic() > end:
                    raise BadInput(
                        f"Redis at {self._server} cannot be used: {str(error).rstrip('.')}. Start it, or give another "
                        f"with -s {PREFIX}CLUSTER="
                    ) from error
                if not is_told:
                    logger.warning(
                        "Redis at %s does not answer (%s): waiting %g s for it.", self._server, error, PATIENCE_S
                    )
                is_told = True
            time.sleep(BEAT_S)

    def _claim(self) -> Claim:
        accepted = languages.find_languages(self._options.lang, self._options.models)
        codes = "+".join(info.code for info in accepted)
        here = self._here(self._options.shards)
        maps = {directory: self._map_in(directory) for directory in here.values()}
        take_up({directory: None if one is None else one.suffixes for directory, one in maps.items()})
        mine = ShardMap(self._options.shards, codes, self._options.dedup)
        key = f"spiderling:{codes}:{self._directory.absolute().name}:map"
        found = self._agreed(key, mine, list(maps.values()))
        keys = Keys(key, found.crawl_id)
        known = {number: place for directory in here.values() for number, place in self._claimed_in(directory).items()}
        for number, place in known.items():
            self._redis.hsetnx(keys.claimed, number, place)
        token = secrets.token_hex(TOKEN_CHARS // 2).encode()
        end = time.monotonic() + LEASE_S + BEAT_S  # until then, the lease of a killed shard has run out
        while (shard := self._leased(keys, token, mine.shards, ours := self._ours(keys, here))) is None:
            if time.monotonic() > end or not ours:
                raise NoFreeShard(
                    f"no shard is free: each of the {mine.shards} of the crawl at Redis {self._server} is at work, or "
                    "has its directory elsewhere. There is nothing to do for this process."
                )
            time.sleep(BEAT_S / 2)
        self._redis.delete(keys.over)
        known[str(shard)] = self._place
        directory = self._directory / name_of(shard)
        return Claim(
            shard,
            found,
            keys,
            token,
            self._place,
            directory,
            known,
            self._totals_in(directory),
            _meta(directory, CONTROL_KEY),
            self._redis.get(keys.control),
        )

    def _here(self, shards: int) -> dict[int, Path]:
        """The shards whose directories are here."""
        places = {shard: self._directory / name_of(shard) for shard in range(shards)}
        return {shard: place for shard, place in places.items() if _database(place).exists()}

    def _agreed(self, key: str, mine: ShardMap, kept: Sequence[ShardMap | None]) -> ShardMap:
        """The map of the crawl, which stands in Redis afterwards; *kept*: those of the states that are here."""
        for one in kept:
            if one is not None:
                one.refuse_to_join(mine, str(self._directory))
                mine = one
        is_known = any(one is not None for one in kept)
        end = time.monotonic() + (0 if is_known else LOOK_S)
        while (text := self._redis.get(key)) is None and time.monotonic() < end:
            time.sleep(BEAT_S / 4)
        if text is None:
            if self._redis.set(key, mine.to_json(), nx=True) and not is_known:
                self._redis.eval(BEGIN, 1, Keys(key, mine.crawl_id).slots)
                self._tell_others(mine.lang)
            text = self._redis.get(key) or mine.to_json()
        found = ShardMap.from_json(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
        found.refuse_to_join(mine, f"Redis at {self._server}")
        if is_known and found.crawl_id != mine.crawl_id:
            raise JobdirError(
                f"the shards in {self._directory} are of another crawl than that of the same name in Redis at "
                f"{self._server}. Give another directory with -s JOBDIR=..., or another database of Redis."
            )
        return found

    def _tell_others(self, codes: str) -> None:
        """Say which crawls of the same languages there are, since one was begun; perhaps one of them was meant."""
        names = {key.decode().split(":")[2] for key in self._redis.scan_iter(f"spiderling:{codes}:*:map", count=1000)}
        if others := sorted(names - {self._directory.absolute().name}):
            logger.warning(
                "A new crawl is begun at Redis %s, which also knows: %s. To join one of those, give a JOBDIR of that "
                "name.", self._server, ", ".join(others)
            )  # fmt: skip

    def _ours(self, keys: Keys, here: Iterable[int]) -> list[int]:
        """The numbers that belong to JOBDIR, be their directories made already or not."""
        claimed = self._redis.hgetall(keys.claimed).items()
        return sorted({*here, *(int(number) for number, place in claimed if place.decode() == self._place)})

    def _leased(self, keys: Keys, token: bytes, shards: int, ours: Sequence[int]) -> int | None:
        """The number of a shard whose lease is ours now; None if none is free."""
        for shard in (*ours, *(number for number in range(shards) if number not in ours)):
            # Redis may have lost the lease of a shard that is at work here. The lock is not tried while there is a
            # lease: its holder may be about to lock the directory, and would find it locked.
            if self._redis.exists(keys.lease(shard)) or is_in_use(self._directory / name_of(shard)):
                continue
            self.held_until = elapsed_s() + LEASE_S
            if not self._redis.set(keys.lease(shard), token, nx=True, px=int(LEASE_S * 1000)):
                continue
            if shard in ours or self._redis.hsetnx(keys.claimed, shard, self._place):
                self._redis.hset(keys.claimed, shard, self._place)  # its directory may have been moved
                return shard
            self._free(keys, shard, token)
        return None

    def begin_keeping(self, claim: Claim) -> None:
        """Renew the lease of *claim* in a thread: a crawl that is opened or closed blocks the event loop for long."""
        self._over.clear()
        self._thread = threading.Thread(target=self._keep, args=(claim,), daemon=True, name="lease")
        self._thread.start()

    def end_keeping(self) -> None:
        """Stop that thread."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _keep(self, claim: Claim) -> None:
        lease = claim.keys.lease(claim.shard)
        while not self._over.wait(BEAT_S):
            until = elapsed_s() + LEASE_S
            with suppress(RedisError):
                if self._redis.eval(RENEW, 1, lease, claim.token, claim.token, int(LEASE_S * 1000)):
                    self.held_until = until

    def give_back(self, claim: Claim) -> None:
        """Free the shard of *claim* again, since the crawl could not be opened or has ended."""
        self.end_keeping()
        with suppress(RedisError):
            if not _database(claim.directory).exists():
                self._redis.hdel(claim.keys.claimed, claim.shard)
            self._free(claim.keys, claim.shard, claim.token)
        self._redis.close()

    def _free(self, keys: Keys, shard: int, token: bytes) -> None:
        self._redis.eval(_FREE, 1, keys.lease(shard), token)

    @staticmethod
    def _map_in(directory: Path) -> ShardMap | None:
        text = _meta(directory, MAP_KEY)
        return None if text is None else ShardMap.from_json(text)

    @staticmethod
    def _claimed_in(directory: Path) -> dict[str, str]:
        return dict(json.loads(_meta(directory, CLAIMED_KEY) or "{}"))

    @staticmethod
    def _totals_in(directory: Path) -> Said:
        kept = json.loads(_meta(directory, TOTALS_KEY) or "{}")
        return {int(shard): Counter(totals) for shard, totals in kept.items()}


def name_of(shard: int) -> str:
    """The name of the directory of *shard*, within JOBDIR."""
    return f"shard-{shard:02}"


def _database(directory: Path) -> Path:
    return directory / "state" / "frontier.sqlite"


def _meta(directory: Path, key: str) -> str | None:
    """A value of the state in *directory*; None if it is not there, or the state cannot be read, as the crawl says."""
    with suppress(JobdirError):
        connection = SoundConnection(_database(directory))
        try:
            row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        finally:
            connection.close()
        return None if row is None else str(row[0])
    return None
