"""Which shard a process is: before the crawl opens, it claims one that is free.

A crawl is named by its languages and the last part of JOBDIR; `key_types` lists what it has in Redis.
Redis may lose them all.  Shards that run put back what they know with each beat, so a process that finds nothing waits
for some beats before it begins a new crawl.
"""

from __future__ import annotations

import json
import logging
import math
import os
import secrets
import socket
import stat
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from redis.backoff import ConstantBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from spiderling import languages
from spiderling.base.errors import BadInput, JobdirError, NoFreeShard, SpiderlingError
from spiderling.base.machine import elapsed_s
from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.base.urls import CANONICAL_VERSION
from spiderling.cluster.content import CODE_BYTES, CRAWL_ID_BYTES, VERSION, Seal
from spiderling.cluster.redis_transport import StrangeValues, connect, key_types, may_pass, mend, place_of
from spiderling.cluster.slots import BEGIN
from spiderling.frontier.storage.tables import SCHEMA_VERSION
from spiderling.jobdir.inspection import Inspection, holder_of
from spiderling.jobdir.snapshots import TAKEOVERS, snapshot_of, take_over
from spiderling.jobdir.state_reader import connected, telling_damage


@dataclass(frozen=True)
class ShardMap:
    """What all shards of a crawl have in common: who differs in anything here must not join.

    Hosts that nobody owns, or two own, would be the price of another number of shards or another list of public
    suffixes; URLs that are fetched twice that of another canonical form.
    """

    shards: int
    lang: str  # codes of the accepted languages
    dedup: str  # the option SPIDERLING_DEDUP
    crawl_id: str = field(default_factory=lambda: secrets.token_hex(CRAWL_ID_BYTES))
    """Tells the crawl from all others; hexadecimal."""
    wire: int = VERSION
    state: int = SCHEMA_VERSION
    canonical: int = CANONICAL_VERSION
    suffixes: str = field(default_factory=lambda: version("tldextract"))
    """Version of the package that brings the list of public suffixes."""
    url_parser: str = field(default_factory=lambda: version("ada-url"))
    """Version of the package that makes canonical forms."""

    def to_json(self) -> str:
        """The map as it stands in Redis and in each state."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> ShardMap:
        """The map in *text*, whose values are compared before they are used; raises BadInput if that is none."""
        try:
            values = json.loads(text)
            if values.keys() != {one.name for one in fields(cls)}:
                raise ValueError("other entries than those of a map")
            made = cls(**values)
            if len(bytes.fromhex(made.crawl_id)) != CRAWL_ID_BYTES:
                raise ValueError("an id that no crawl has")
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise BadInput(
                f"the map of the crawl's shards cannot be read ({error}): it is of another version of Spiderling, or "
                "somebody else writes to that Redis."
            ) from error
        return made

    def divided(self, shards: int) -> ShardMap:
        """That of the crawl when it is divided over so many *shards*: the same wherever it is made."""
        made_of = f"{self.crawl_id} {shards}".encode()
        return replace(self, shards=shards, crawl_id=blake2b(made_of, digest_size=CRAWL_ID_BYTES).hexdigest())

    def refuse_to_join(self, mine: ShardMap, where: str) -> None:
        """Raise BadInput if *mine*, made of this process's own options, does not fit this map, which stands *where*."""
        differences = [sentence for name, sentence in _DIFFERS.items() if getattr(self, name) != getattr(mine, name)]
        if differences:
            sentences = " ".join(differences).format(theirs=self, mine=mine)
            raise BadInput(f"this shard cannot join the crawl of {where}: {sentences}")


_DIFFERS = {
    "shards": "it has SPIDERLING_SHARDS={theirs.shards}, not {mine.shards}; scrapy reshard changes that.",
    "lang": "its language is {theirs.lang}, not {mine.lang}; give another Redis, or another number of its database.",
    "dedup": "it has SPIDERLING_DEDUP={theirs.dedup}, not {mine.dedup}.",
    "wire": "its messages have version {theirs.wire}, this Spiderling's {mine.wire}; stop all shards, upgrade all.",
    "state": "its states have schema {theirs.state}, this Spiderling's {mine.state}; stop all shards, upgrade all.",
    "canonical": "its URLs have canonical form {theirs.canonical}, ours {mine.canonical}; use its version.",
    "suffixes": "it has tldextract {theirs.suffixes}, not {mine.suffixes}; say: pip install "
    "tldextract=={theirs.suffixes}.",
    "url_parser": "it has ada-url {theirs.url_parser}, not {mine.url_parser}; say: pip install "
    "ada-url=={theirs.url_parser}",
}
"""What a map and a shard may differ in -> the sentence about it; the crawl's id is the map's alone."""

logger = logging.getLogger(__name__)

MIN_KEY_BYTES = 16  # the shortest key; chosen: 128 bits, as many as the code of a message has
_OPTION = f"{PREFIX}CLUSTER_KEY_FILE"
_MAKE = "head -c 32 /dev/urandom > cluster.key; chmod 600 cluster.key"


def read_key(path: str, url: str) -> bytes:
    """The key in the file *path*; b'' if none is given and none is needed for the Redis at *url*.

    None is needed for a Unix socket of this user, to which nobody else can give orders.  Raises BadInput.
    """
    if not path:
        if is_own_socket(url):
            return b""
        path_of_socket = urlsplit(url).path if urlsplit(url).scheme == "unix" else ""
        if path_of_socket and not Path(path_of_socket).exists():
            raise BadInput(
                f"there is no socket {path_of_socket}, at which Redis should listen: start Redis first, or mend "
                f"{PREFIX}CLUSTER."
            )
        raise BadInput(
            f"{_OPTION} is missing: whoever can write to that Redis could give this crawl orders. Make a key with "
            f"`{_MAKE}`, and give the same file to every shard; only for a Unix socket of yours none is needed."
        )
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            key = file.read(1 << 16)
    except OSError as error:
        raise BadInput(f"{_OPTION}: {path} cannot be read: {error.strerror}. Make it with `{_MAKE}`.") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise BadInput(f"{_OPTION}: others may read or change {path}; make a new key with `{_MAKE}`.")
    if len(key) < MIN_KEY_BYTES:
        raise BadInput(f"{_OPTION}: {path} has {len(key)} bytes, a key needs {MIN_KEY_BYTES}; make it with `{_MAKE}`.")
    return key


def is_own_socket(url: str) -> bool:
    """Whether *url* is that of a Unix socket which belongs to this user."""
    parts = urlsplit(url)
    try:
        found = os.stat(parts.path) if parts.scheme == "unix" else None
    except OSError:
        return False
    return found is not None and stat.S_ISSOCK(found.st_mode) and found.st_uid == os.getuid()


BEAT_S = 1.0  # seconds between two renewals of a lease; chosen: one round trip
LEASE_S = 10.0  # seconds after which a lease runs out that is not renewed; chosen: some beats may be late
LOOKS = 10  # times that a process which stands by looks for lost shards before it would take one over; chosen
POLL_S = 3 * BEAT_S  # seconds for which a process polls for others before it begins a new crawl
PATIENCE_S = 30.0
"""Seconds for which a process that begins waits for a Redis that is away (chosen: it may be starting too)."""
MAP_KEY = "shard_map"  # key of the map in the table ``meta`` of a state
PENDING = "reshard"  # key, in the same table, of the number of shards that the crawl is to have; 0: it has them
RECORDS_KEY = "shards_known"  # key, in the same table, of the record of each shard that is claimed (`open_records`)
TOKEN_CHARS = 32
_WITHOUT_END = -1  # what Redis says of a key that does not run out (PTTL)
RENEW = """local held = redis.call('GET', KEYS[1])
if held and not string.find(held, ARGV[1], 1, true) then return held end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])"""
"""Arguments: the token of who holds the lease, what stands in it then (the token too), and milliseconds.  Answers with
what stands there of somebody else."""
_FREE = """local held = redis.call('GET', KEYS[1])
if held and string.find(held, ARGV[1], 1, true) then redis.call('DEL', KEYS[1]) end"""

ShardTotals = dict[int, Counter[str]]  # shard -> what it has done


class Claim:
    """The shard of a crawl that this process may run, from ``take`` to ``give_back``."""

    shard: int
    map: ShardMap
    map_key: str  # where the map stands in Redis
    seal: Seal
    directory: Path  # of the shard

    def __init__(self, options: Options, directory: Path) -> None:
        """*directory*: JOBDIR; raises BadInput."""
        self.token = secrets.token_hex(TOKEN_CHARS // 2).encode()
        """Tells this process from all others; it stands in its lease."""
        self.places: dict[int, str] = {}  # where the directory of each shard is that is known to be claimed
        self.totals: ShardTotals = {}  # what Redis and the states here know of what each has done
        self.takes_over = options.takeover_s > 0  # whether this process may take a lost shard over by itself
        self._stands_by = False  # whether it has waited, while others were at work, for one of them to be lost
        self._saved: set[int] = set()  # shards whose directories are not here, and whose snapshots are there
        self.held_until = 0.0  # until when the lease was last known to be ours, by `elapsed_s`
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._options = options
        self._directory = directory
        self._place = f"{socket.gethostname()}:{directory.absolute()}"
        self._redis = connect(options.cluster, blocks=True)
        self._server = place_of(self._redis)
        self.strange = StrangeValues(self._server)
        self._key = b""

    def take(self, key: bytes = b"") -> None:
        """Take the shard whose directory is here first, else a free one; raises NoFreeShard, BadInput or JobdirError.

        *key*: that of the crawl, b'' if it has none.
        """
        self._key = key
        if (self._directory / "state").exists():
            raise JobdirError(
                f"{self._directory} holds a crawl without shards: divide it with scrapy reshard, or give another "
                "directory with -s JOBDIR=..."
            )
        patience = Retry(ConstantBackoff(BEAT_S), round(PATIENCE_S / BEAT_S), (RedisError,))
        first_refusal_at: float | None

        def may_try_again(error: Exception) -> bool:
            nonlocal first_refusal_at
            if first_refusal_at is None:  # what came before was no waiting for Redis
                first_refusal_at = elapsed_s()
            return may_pass(error) and elapsed_s() < first_refusal_at + PATIENCE_S

        try:
            while True:
                first_refusal_at = None
                if patience.call_with_retry(self._take, self._note_refused, may_try_again, with_failure_count=True):
                    return
                self._stand_by()
        except RedisError as error:
            raise BadInput(
                f"Redis at {self._server} cannot be used: {str(error).rstrip('.')}. Start or mend it, or give another "
                f"with -s {PREFIX}CLUSTER="
            ) from error

    def _note_refused(self, error: Exception, times: int) -> None:
        if times == 1:
            logger.warning("Redis at %s takes nothing (%s): waiting %g s for it.", self._server, error, PATIENCE_S)

    def _stand_by(self) -> None:
        if not self._stands_by:
            logger.info(
                "No shard is free: this process waits for one that shows no life for %g s.", self._options.takeover_s
            )
        self._stands_by = True
        time.sleep(max(BEAT_S, self._options.takeover_s / LOOKS))

    def _take(self) -> bool:
        """Returns whether there was a shard to take; if not, this process stands by."""
        shards = self._options.shards
        accepted = languages.find_languages(self._options.lang, self._options.models)
        codes = "+".join(info.code for info in accepted)
        places = {shard: self._directory / name_of(shard) for shard in range(shards)}
        here = {shard: place for shard, place in places.items() if _database(place).exists()}
        begun = next(filter(None, [_meta(place, PENDING) for place in here.values()]), 0)
        # that of a crawl of one process, which `reshard` has moved and not marked yet, has no map
        if begun or any(_meta(place, "options") and not _meta(place, MAP_KEY) for place in here.values()):
            raise JobdirError(
                f"the crawl in {self._directory} is being divided: end that with scrapy reshard {self._directory} "
                f"--shards {begun or shards}"
            )
        kept = filter(None, [_meta(place, MAP_KEY) for place in here.values()])
        kept_maps = [ShardMap.from_json(json.dumps(values)) for values in kept]
        self.map_key = f"spiderling:{codes}:{self._directory.absolute().name}:map"
        self.map = self._agree(ShardMap(shards, codes, self._options.dedup), kept_maps)
        self.seal = seal = self._seal_of(self.map)
        self._mend(key_types(seal, self.map_key, shards))
        for place in here.values():
            for number, (where, counts) in (_meta(place, RECORDS_KEY) or {}).items():
                shard = int(number)
                self.places[shard] = where
                done: Counter[str] = Counter(counts)
                self.totals[shard] = done | self.totals.get(shard, Counter())
        for shard in self.places.keys() - self._read_claims().keys():
            self._redis.hsetnx(
                seal.key("shards"), shard, seal_record(seal, shard, self.places[shard], self.totals.get(shard, {}))
            )
        self._saved = {shard for shard, place in places.items() if shard not in here and self._has_snapshot(place)}
        taken = self._wait_for_lease(here)
        if taken is None:
            return False
        self.shard = taken
        self.directory = places[self.shard]
        self._refuse_former()
        self.places[self.shard] = self._place
        formerly = [seal.key(self.shard, *other) for other in ((), *[(shard,) for shard in range(shards)])]
        self._redis.delete(seal.key("over"), *formerly)  # the latter: copies of messages, as version 1.0 kept them
        return True

    def _refuse_former(self) -> None:
        """Raise JobdirError if the shard was taken over since its directory here was in use."""
        taken_over = self.totals.get(self.shard, Counter())[TAKEOVERS]
        if _database(self.directory).exists() and taken_over > (_meta(self.directory, TAKEOVERS) or 0):
            self.give_back()
            raise JobdirError(
                f"shard {self.shard} was taken over from its snapshot: {self.directory} is older, and cannot go on."
            )

    def _has_snapshot(self, directory: Path) -> bool:
        """Whether there is a snapshot of the crawl's shard in *directory*."""
        root = self._options.snapshots
        found = _meta(snapshot_of(Path(root), directory, True), MAP_KEY) if root else None
        return found is not None and found.get("crawl_id") == self.map.crawl_id

    def open_snapshot(self) -> None:
        """Make the directory of a shard that was lost from its snapshot; raises SpiderlingError."""
        if _database(self.directory).exists() or not self._has_snapshot(self.directory):
            return
        snapshot = snapshot_of(Path(self._options.snapshots), self.directory, True)
        try:
            if not self.takes_over:
                raise JobdirError(f"{self.directory} is gone. Go on from its snapshot: scrapy takeover {snapshot} ...")
            logger.warning("Shard %d was %s.", self.shard, take_over(snapshot, self.directory, time.time()))
        except SpiderlingError:
            self.give_back()
            raise

    def _agree(self, mine: ShardMap, kept: Sequence[ShardMap]) -> ShardMap:
        """The map of the crawl, which stands in Redis afterwards; *kept*: those of the states that are here."""
        key = self.map_key
        for one in kept:
            one.refuse_to_join(mine, str(self._directory))
            mine = one
        is_known = bool(kept)
        end = time.monotonic() + (0 if is_known else POLL_S)
        self._mend({key: "string"})
        while (data := self._redis.get(key)) is None and time.monotonic() < end:
            time.sleep(BEAT_S / 4)
        if data is None:
            data = seal_map(mine, self._seal_of(mine))
            if self._redis.set(key, data, nx=True) and not is_known:
                self._redis.eval(BEGIN, 1, self._seal_of(mine).key("slots"))
                self._tell_others(mine.lang)
            data = self._redis.get(key) or data
        found = self._open_map(data, mine if is_known else None)
        if is_known and found.divided(mine.shards) == mine:  # Redis has the map of before scrapy reshard
            self._redis.set(key, seal_map(mine, self._seal_of(mine)))
            return mine
        found.refuse_to_join(mine, f"Redis at {self._server}")
        if is_known and found.crawl_id != mine.crawl_id:
            raise JobdirError(
                f"the shards in {self._directory} are of another crawl than that of the same name in Redis at "
                f"{self._server}. Give another directory with -s JOBDIR=..., or another database of Redis."
            )
        return found

    def _open_map(self, data: bytes, kept: ShardMap | None) -> ShardMap:
        """The map in *data*; raises BadInput if that is none, unless the crawl's own is *kept* here."""
        try:
            found = ShardMap.from_json(data[:-CODE_BYTES].decode("utf-8", "replace"))
            if seal_map(found, self._seal_of(found)) != data:
                raise BadInput(
                    f"this process has another key than the crawl at Redis {self._server}: give all of its shards the "
                    f"same file with {PREFIX}CLUSTER_KEY_FILE."
                )
        except BadInput as error:
            if kept is None:
                raise BadInput(f"{error} If no shard of it runs, delete {self.map_key} there.") from error
            self.strange.report(self.map_key)
            self._redis.set(self.map_key, seal_map(kept, self._seal_of(kept)))
            return kept
        return found

    def _seal_of(self, map_: ShardMap) -> Seal:
        return Seal(bytes.fromhex(map_.crawl_id), self._key, self.strange.report)

    def _mend(self, types: dict[str, str]) -> None:
        for thrown in mend(self._redis, types):
            self.strange.report(thrown.decode())

    def _read_claims(self) -> dict[int, str]:
        """Where each shard is that is claimed; what nobody of the crawl wrote there is thrown away."""
        key = self.seal.key("shards")
        places, totals, strange = open_records(self.seal, self._redis.hgetall(key))
        for shard, counts in totals.items():
            self.totals[shard] = counts | self.totals.get(shard, Counter())
        if strange:
            self._redis.hdel(key, *strange)
        return places

    def _tell_others(self, codes: str) -> None:
        """Say which crawls of the same languages there are, since one was begun; perhaps one of them was meant."""
        names = {key.decode().split(":")[2] for key in self._redis.scan_iter(f"spiderling:{codes}:*:map", count=1000)}
        if others := sorted(names - {self._directory.absolute().name}):
            logger.warning(
                "A new crawl is begun at Redis %s, which also knows: %s. To join one of those, give a JOBDIR of that "
                "name.", self._server, ", ".join(others)
            )  # fmt: skip

    def _wait_for_lease(self, here: Iterable[int]) -> int | None:
        """The number of a shard whose lease is ours now, None to stand by; *here*: those whose directories are."""
        end = none_lives_from = time.monotonic() + LEASE_S + BEAT_S  # the lease of a killed shard has run out by then
        silent: dict[int, float] = {}  # shard that was lost, for all that is known -> since when it shows no life
        patience_s = self._options.takeover_s or math.inf
        others = [shard for shard in range(self._options.shards) if shard not in self._saved]
        waited_for = self._saved if self.takes_over else set()  # else `open_snapshot` says what is to be done
        while True:
            claimed = self._read_claims()
            ours = sorted({*here, *(shard for shard, place in claimed.items() if place == self._place)} - waited_for)
            now = time.monotonic()
            living = {shard for shard in range(self._options.shards) if self._is_leased(shard)}
            if living:
                none_lives_from = now + LEASE_S + BEAT_S
            silent = {shard: silent.get(shard, now) for shard in self._saved - living}
            lost = [shard for shard, since in silent.items() if now - since >= patience_s]
            for known, new in ((ours, others), (lost, [])):
                if (shard := self._take_lease(known, new)) is not None:
                    return shard
            has_ended = self._stands_by and now > none_lives_from  # all of the crawl, which was not lost
            waits = bool(silent) and patience_s < math.inf and not has_ended
            unclaimed = {*others} - claimed.keys()  # Redis may have lost whose they are
            if not waits and (now > end or not (ours or unclaimed)):
                if living and self.takes_over and self._options.snapshots:
                    return None
                raise NoFreeShard(
                    f"no shard is free: each of the {self._options.shards} of the crawl at Redis {self._server} is at "
                    "work, or has its directory or snapshot elsewhere. There is nothing to do for this process."
                )
            time.sleep(BEAT_S / 2)

    def _take_lease(self, ours: Sequence[int], others: Sequence[int]) -> int | None:
        """Take the lease of one of *ours*, or of the *others* that nobody has claimed."""
        seal = self.seal
        for shard in (*ours, *(number for number in others if number not in ours)):
            # Redis may have lost the lease of a shard that is at work here. The lock is not tried while there is a
            # lease: its holder may be about to lock the directory, and would find it locked.
            if self._is_leased(shard) or holder_of(self._directory / name_of(shard)):
                continue
            self.held_until = elapsed_s() + LEASE_S
            lease = seal.seal(f"lease:{shard}", self.token)
            if self._redis.eval(RENEW, 1, seal.key("lease", shard), self.token, lease, int(LEASE_S * 1000)) is not None:
                continue
            record = seal_record(seal, shard, self._place, self.totals.get(shard, {}))
            if shard in ours or self._redis.hsetnx(seal.key("shards"), shard, record):
                self._redis.hset(seal.key("shards"), shard, record)  # its directory may have been moved
                return shard
            self._redis.eval(_FREE, 1, seal.key("lease", shard), self.token)
        return None

    def _is_leased(self, shard: int) -> bool:
        """Whether another process holds the lease of *shard*; one that no shard wrote, or that never ends, is none."""
        key = self.seal.key("lease", shard)
        lease = self._redis.get(key)
        if lease is None:
            return False
        holder = self.seal.open(f"lease:{shard}", lease)
        if holder is not None and holder.startswith(self.token):  # Redis did what it did not answer to
            return False
        if holder is not None and _WITHOUT_END < self._redis.pttl(key) <= LEASE_S * 1000:
            return True
        self.strange.report(key)
        self._redis.delete(key)
        return False

    def begin_keeping(self) -> None:
        """Renew the lease in a thread: a crawl that is opened or closed blocks the event loop for long."""
        self._over.clear()
        self._thread = threading.Thread(target=self._keep, daemon=True, name="lease")
        self._thread.start()

    def end_keeping(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _keep(self) -> None:
        lease = self.seal.seal(f"lease:{self.shard}", self.token)
        arguments = self.seal.key("lease", self.shard), self.token, lease, int(LEASE_S * 1000)
        while not self._over.wait(BEAT_S):
            until = elapsed_s() + LEASE_S
            with suppress(RedisError):
                if self._redis.eval(RENEW, 1, *arguments) is None:
                    self.held_until = until

    def give_back(self) -> None:
        """Free the shard again, since the crawl could not be opened or has ended."""
        self.end_keeping()
        with suppress(RedisError):
            if not _database(self.directory).exists():
                self._redis.hdel(self.seal.key("shards"), self.shard)
            self._redis.eval(_FREE, 1, self.seal.key("lease", self.shard), self.token)
        self._redis.close()


def seal_map(map_: ShardMap, seal: Seal) -> bytes:
    """*map_* as it stands in Redis."""
    return seal.seal("map", map_.to_json().encode())


def seal_record(seal: Seal, shard: int, place: str, totals: Mapping[str, int]) -> bytes:
    """What stands in Redis for a shard that is claimed: the *place* of its directory, and what it has done."""
    return seal.seal_json(f"shards {shard}", (place, totals))


def open_records(seal: Seal, found: Mapping[bytes, bytes]) -> tuple[dict[int, str], ShardTotals, list[bytes]]:
    """Places and totals of the shards that are claimed, by what was *found*; and the fields that nobody of us wrote."""
    places: dict[int, str] = {}
    totals: ShardTotals = {}
    strange: list[bytes] = []
    for name, data in found.items():
        try:
            place, counts = seal.open_json(f"shards {name.decode('ascii', 'replace')}", data)
            totals[int(name)] = Counter(counts)
            places[int(name)] = place
        except (ValueError, TypeError):
            strange.append(name)
    return places, totals, strange


def refuse_living(snapshot: Path, url: str) -> None:
    """Raise JobdirError if a process holds the lease of the shard of *snapshot* in the Redis at *url*; or BadInput."""
    with closing(Inspection(snapshot)) as crawl:
        shard = crawl.shard
    if shard is None or shard.number is None:
        return
    try:
        is_held = connect(url, blocks=True).exists(Seal(bytes.fromhex(shard.crawl), b"").key("lease", shard.number))
    except RedisError as error:
        raise BadInput(f"Redis at {PREFIX}CLUSTER cannot be asked whether the shard is lost: {error}.") from error
    if is_held:
        raise JobdirError(f"shard {shard.number} is at work: a process holds its lease.")


def name_of(shard: int) -> str:
    """The name of the directory of *shard*, within JOBDIR."""
    return f"shard-{shard:02}"


def _database(directory: Path) -> Path:
    return directory / "state" / "frontier.sqlite"


def _meta(directory: Path, key: str) -> Any:
    """A value of the state in *directory*; None if it is not there, or the state cannot be read, as the crawl says."""
    path = _database(directory)
    with suppress(JobdirError), closing(connected(path)) as connection, telling_damage(path):
        row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])
    return None
