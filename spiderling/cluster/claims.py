"""Which shard a process is: before the crawl opens, it claims one that is free.

What stands in Redis for a crawl, named by its languages and the last part of JOBDIR, `Keys` lists.
Redis may lose them all.  Shards that run put back what they know with each beat, so a process that finds nothing waits
for some beats before it begins a new crawl.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import stat
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from redis.exceptions import RedisError

from spiderling import languages
from spiderling.base.errors import BadInput, JobdirError, NoFreeShard
from spiderling.base.files import write_whole
from spiderling.base.machine import elapsed_s
from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.base.urls import (
    CANONICAL_VERSION,
    MAX_SHARDS,
    bundled_suffix_list,
    go_by_suffixes,
    suffix_list,
    suffix_list_digest,
)
from spiderling.cluster.content import CODE_BYTES, CRAWL_ID_BYTES, VERSION, Kind, Place, Refused, Seal
from spiderling.cluster.crawl_control import FIRST, Edition, open_edition
from spiderling.cluster.redis_transport import Keys, StrangeValues, connected, may_pass, mend, place_of
from spiderling.cluster.slots import BEGIN
from spiderling.cluster.totals import ShardTotals
from spiderling.frontier.storage.tables import SCHEMA_VERSION
from spiderling.jobdir.inspection import holder_of
from spiderling.jobdir.state_reader import SoundConnection


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
    suffixes: str = field(default_factory=suffix_list_digest)
    url_parser: str = field(default_factory=lambda: version("ada-url"))
    """Version of the package that makes canonical forms."""

    def to_json(self) -> str:
        """The map as it stands in Redis and in each state."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> ShardMap:
        """The map in *text*; raises BadInput if that is none."""
        try:
            values = json.loads(text)
            kinds = {one.name: int if one.type == "int" else str for one in fields(cls)}
            if values.keys() != kinds.keys() or any(type(values[name]) is not kind for name, kind in kinds.items()):
                raise ValueError("other entries than those of a map")
            made = cls(**values)
            if not 1 <= made.shards <= MAX_SHARDS or len(bytes.fromhex(made.crawl_id)) != CRAWL_ID_BYTES:
                raise ValueError("a number of shards or an id that none has")
        except (ValueError, AttributeError, TypeError, RecursionError) as error:
            raise BadInput(
                f"the map of the crawl's shards cannot be read ({error}): it is of another version of Spiderling, or "
                "somebody else writes to that Redis."
            ) from error
        return made

    def refuse_to_join(self, mine: ShardMap, where: str) -> None:
        """Raise BadInput if *mine*, made of this process's own options, does not fit this map, which stands *where*."""
        differences = [sentence for name, sentence in _DIFFERS.items() if getattr(self, name) != getattr(mine, name)]
        if differences:
            sentences = " ".join(differences).format(theirs=self, mine=mine)
            raise BadInput(f"this shard cannot join the crawl of {where}: {sentences}")


_DIFFERS = {
    "shards": "it has SPIDERLING_SHARDS={theirs.shards}, not {mine.shards}; that cannot change.",
    "lang": "its language is {theirs.lang}, not {mine.lang}; give another Redis, or another number of its database.",
    "dedup": "it has SPIDERLING_DEDUP={theirs.dedup}, not {mine.dedup}.",
    "wire": "its messages have version {theirs.wire}, this Spiderling's {mine.wire}; stop all shards, upgrade all.",
    "state": "its states have schema {theirs.state}, this Spiderling's {mine.state}; stop all shards, upgrade all.",
    "canonical": "its URLs have canonical form {theirs.canonical}, ours {mine.canonical}; use its version.",
    "suffixes": "it has another list of public suffixes; install the tldextract that its other machines have "
    "(`pip freeze | grep tldextract` there, `pip install tldextract==...` here).",
    "url_parser": "it has ada-url {theirs.url_parser}, not {mine.url_parser}; say: pip install "
    "ada-url=={theirs.url_parser}",
}
"""What a map and a shard may differ in -> the sentence about it; the crawl's id is the map's alone."""


logger = logging.getLogger(__name__)

_FILE = Path("state", "public_suffixes.dat")


def take_up(known: Mapping[Path, str | None]) -> None:
    """Go by the list of public suffixes that one of the shards *known* has kept.

    With another list, hosts would belong to other shards.  So each shard keeps the list with which the crawl began, and
    goes by it when a newer tldextract brings another one.  *known*: directory -> digest by the shard's map, if it has
    one.
    """
    bundled = suffix_list_digest(bundled_suffix_list())
    for directory, digest in known.items():
        path = directory / _FILE
        if digest in (None, bundled) or not path.is_file() or suffix_list_digest(path.read_bytes()) != digest:
            continue
        logger.info("The crawl goes by the list of public suffixes that it began with, in %s", path)
        go_by_suffixes(path)
        return
    go_by_suffixes(None)


def keep(directory: Path) -> None:
    """Keep the list that this process goes by in *directory*; raises StorageError."""
    path = directory / _FILE
    if not path.exists() or path.read_bytes() != suffix_list():
        write_whole(path, suffix_list().decode())


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
LOOK_S = 3 * BEAT_S  # seconds for which a process looks for others before it begins a new crawl
PATIENCE_S = 30.0
"""Seconds for which a process that begins waits for a Redis that is away (chosen: it may be starting too)."""
MAP_KEY = "shard_map"  # key of the map in the table ``meta`` of a state
TOTALS_KEY = "shards_totals"  # key, in the same table, of what each shard is known to have done
CONTROL_KEY = "shards_control"  # key, in the same table, of number and text of control.yaml
CLAIMED_KEY = "shards_claimed"  # key, in the same table, of the numbers that are known to be claimed, and where
TOKEN_CHARS = 32
_MAX_DIGITS = 5  # digits of the largest number of a shard
_WITHOUT_END = -1  # what Redis says of a key that does not run out (PTTL)
RENEW = """local held = redis.call('GET', KEYS[1])
if held and not string.find(held, ARGV[1], 1, true) and held ~= ARGV[4] then return held end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])"""
"""Arguments: the token of who holds the lease, what stands in it then (the token too), milliseconds, and what may be
replaced beside it.  Answers with what stands there of somebody else."""
_FREE = """local held = redis.call('GET', KEYS[1])
if held and string.find(held, ARGV[1], 1, true) then redis.call('DEL', KEYS[1]) end"""


class Claim(NamedTuple):
    """A shard that this process may run."""

    shard: int
    map: ShardMap
    keys: Keys
    seal: Seal
    token: bytes  # tells this process from all others; it stands in its lease
    directory: Path  # of the shard
    known: dict[str, str]  # number -> place of each shard that is known to be claimed
    totals: ShardTotals  # what the state of the shard knows of what each has done
    control: Edition  # the newest text of control.yaml that the state or Redis knows


class Claims:
    """The claims of one crawl, as a process sees them that begins or ends."""

    def __init__(self, options: Options, directory: Path) -> None:
        """*directory*: JOBDIR; raises BadInput."""
        self.held_until = 0.0  # until when the lease was last known to be ours, by `elapsed_s`
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._options = options
        self._directory = directory
        self._place = f"{socket.gethostname()}:{directory.absolute()}"
        self._redis = connected(options.cluster, blocks=True)
        self._server = place_of(self._redis)
        self.strange = StrangeValues(self._server)
        self._key = b""

    def claim(self, key: bytes = b"") -> Claim:
        """The shard whose directory is here first, else a free one; raises NoFreeShard, BadInput or JobdirError.

        *key*: that of the crawl, b'' if it has none.
        """
        self._key = key
        if (self._directory / "state").exists():
            raise JobdirError(
                f"{self._directory} holds a crawl without shards. Give another directory with -s JOBDIR=..."
            )
        end: float | None = None  # of its patience, which begins with the first refusal
        while True:
            try:
                return self._claim()
            except RedisError as error:
                if not may_pass(error) or (end is not None and time.monotonic() > end):
                    raise BadInput(
                        f"Redis at {self._server} cannot be used: {str(error).rstrip('.')}. Start or mend it, or give "
                        f"another with -s {PREFIX}CLUSTER="
                    ) from error
                if end is None:
                    end = time.monotonic() + PATIENCE_S
                    logger.warning(
                        "Redis at %s takes nothing (%s): waiting %g s for it.", self._server, error, PATIENCE_S
                    )
            time.sleep(BEAT_S)

    def _claim(self) -> Claim:
        accepted = languages.find_languages(self._options.lang, self._options.models)
        codes = "+".join(info.code for info in accepted)
        here = self._here(self._options.shards)
        maps = {directory: _map_in(directory) for directory in here.values()}
        take_up({directory: None if one is None else one.suffixes for directory, one in maps.items()})
        mine = ShardMap(self._options.shards, codes, self._options.dedup)
        key = f"spiderling:{codes}:{self._directory.absolute().name}:map"
        found = self._agreed(key, mine, list(maps.values()))
        keys = Keys(key, found.crawl_id)
        seal = self._seal_of(found)
        for thrown in mend(self._redis, keys.types(0, 1) | {keys.of("lease", n): "string" for n in range(mine.shards)}):
            self.strange.report(thrown.decode())
        known: dict[str, str] = {}
        for directory in here.values():
            known |= _meta(directory, CLAIMED_KEY) or {}
        claimed = self._claimed(keys, seal)
        for number in known.keys() - claimed.keys():
            self._redis.hsetnx(keys.of("claimed"), number, seal_claim(seal, number, known[number]))
        token = secrets.token_hex(TOKEN_CHARS // 2).encode()
        end = time.monotonic() + LEASE_S + BEAT_S  # until then, the lease of a killed shard has run out
        while (shard := self._leased(keys, seal, token, mine.shards, ours := self._ours(keys, seal, here))) is None:
            if time.monotonic() > end or not ours:
                raise NoFreeShard(
                    f"no shard is free: each of the {mine.shards} of the crawl at Redis {self._server} is at work, or "
                    "has its directory elsewhere. There is nothing to do for this process."
                )
            time.sleep(BEAT_S / 2)
        self._redis.delete(keys.of("over"))
        known[str(shard)] = self._place
        directory = self._directory / name_of(shard)
        kept = _meta(directory, CONTROL_KEY) or FIRST
        return Claim(
            shard,
            found,
            keys,
            seal,
            token,
            directory,
            known,
            {int(shard): Counter(totals) for shard, totals in (_meta(directory, TOTALS_KEY) or {}).items()},
            max(Edition(*kept), open_edition(seal, self._redis.get(keys.of("control"))) or FIRST),
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
        for thrown in mend(self._redis, {key: "string"}):
            self.strange.report(thrown.decode())
        while (data := self._redis.get(key)) is None and time.monotonic() < end:
            time.sleep(BEAT_S / 4)
        if data is None:
            if self._redis.set(key, seal_map(mine, self._seal_of(mine)), nx=True) and not is_known:
                self._redis.eval(BEGIN, 1, Keys(key, mine.crawl_id).of("slots"))
                self._tell_others(mine.lang)
            data = self._redis.get(key) or seal_map(mine, self._seal_of(mine))
        found = self._opened_map(data, mine if is_known else None, key)
        found.refuse_to_join(mine, f"Redis at {self._server}")
        if is_known and found.crawl_id != mine.crawl_id:
            raise JobdirError(
                f"the shards in {self._directory} are of another crawl than that of the same name in Redis at "
                f"{self._server}. Give another directory with -s JOBDIR=..., or another database of Redis."
            )
        return found

    def _opened_map(self, data: bytes, kept: ShardMap | None, key: str) -> ShardMap:
        """The map in *data*; raises BadInput if that is none, unless the crawl's own is *kept* here."""
        try:
            found = ShardMap.from_json(data[1:-CODE_BYTES].decode("utf-8", "replace"))
            if seal_map(found, self._seal_of(found)) != data:
                raise BadInput(
                    f"this process has another key than the crawl at Redis {self._server}: give all of its shards the "
                    f"same file with {PREFIX}CLUSTER_KEY_FILE. If nobody else has it, somebody has written there: "
                    f"delete {key}"
                )
        except BadInput:
            if kept is None:
                raise
            self.strange.report(key)
            self._redis.set(key, seal_map(kept, self._seal_of(kept)))
            return kept
        return found

    def _seal_of(self, map_: ShardMap) -> Seal:
        return Seal(bytes.fromhex(map_.crawl_id), self._key)

    def _claimed(self, keys: Keys, seal: Seal) -> dict[str, str]:
        """Number -> place of each shard that is claimed; what nobody of the crawl wrote there is thrown away."""
        claimed, strange = open_claims(seal, self._redis.hgetall(keys.of("claimed")))
        self.strange.report_refused(seal)
        if strange:
            self._redis.hdel(keys.of("claimed"), *strange)
        return claimed

    def _tell_others(self, codes: str) -> None:
        """Say which crawls of the same languages there are, since one was begun; perhaps one of them was meant."""
        names = {key.decode().split(":")[2] for key in self._redis.scan_iter(f"spiderling:{codes}:*:map", count=1000)}
        if others := sorted(names - {self._directory.absolute().name}):
            logger.warning(
                "A new crawl is begun at Redis %s, which also knows: %s. To join one of those, give a JOBDIR of that "
                "name.", self._server, ", ".join(others)
            )  # fmt: skip

    def _ours(self, keys: Keys, seal: Seal, here: Iterable[int]) -> list[int]:
        """The numbers that belong to JOBDIR, be their directories made already or not."""
        claimed = self._claimed(keys, seal).items()
        return sorted({*here, *(int(number) for number, place in claimed if place == self._place)})

    def _is_leased(self, key: str, place: Place, seal: Seal) -> bool:
        """Whether somebody holds the lease of that *key*; one that no shard wrote, or that never ends, is none."""
        lease = self._redis.get(key)
        if lease is None:
            return False
        with suppress(Refused):
            seal.open(place, lease)
            if _WITHOUT_END < self._redis.pttl(key) <= LEASE_S * 1000:
                return True
        seal.refused.add(place)
        self.strange.report_refused(seal)
        self._redis.delete(key)
        return False

    def _leased(self, keys: Keys, seal: Seal, token: bytes, shards: int, ours: Sequence[int]) -> int | None:
        """The number of a shard whose lease is ours now; None if none is free."""
        for shard in (*ours, *(number for number in range(shards) if number not in ours)):
            # Redis may have lost the lease of a shard that is at work here. The lock is not tried while there is a
            # lease: its holder may be about to lock the directory, and would find it locked.
            place = Place(Kind.STATUS, shard)
            if self._is_leased(keys.of("lease", shard), place, seal) or holder_of(self._directory / name_of(shard)):
                continue
            self.held_until = elapsed_s() + LEASE_S
            if not self._redis.set(keys.of("lease", shard), seal.seal(place, token), nx=True, px=int(LEASE_S * 1000)):
                continue
            claim = seal_claim(seal, shard, self._place)
            if shard in ours or self._redis.hsetnx(keys.of("claimed"), shard, claim):
                self._redis.hset(keys.of("claimed"), shard, claim)  # its directory may have been moved
                return shard
            self._free(keys, shard, token)
        return None

    def begin_keeping(self, claim: Claim) -> None:
        """Renew the lease of *claim* in a thread: a crawl that is opened or closed blocks the event loop for long."""
        self._over.clear()
        self._thread = threading.Thread(target=self._keep, args=(claim,), daemon=True, name="lease")
        self._thread.start()

    def end_keeping(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _keep(self, claim: Claim) -> None:
        lease = claim.keys.of("lease", claim.shard)
        value = claim.seal.seal(Place(Kind.STATUS, claim.shard), claim.token)
        while not self._over.wait(BEAT_S):
            until = elapsed_s() + LEASE_S
            with suppress(RedisError):
                if self._redis.eval(RENEW, 1, lease, claim.token, value, int(LEASE_S * 1000), b"") is None:
                    self.held_until = until

    def give_back(self, claim: Claim) -> None:
        """Free the shard of *claim* again, since the crawl could not be opened or has ended."""
        self.end_keeping()
        with suppress(RedisError):
            if not _database(claim.directory).exists():
                self._redis.hdel(claim.keys.of("claimed"), claim.shard)
            self._free(claim.keys, claim.shard, claim.token)
        self._redis.close()

    def _free(self, keys: Keys, shard: int, token: bytes) -> None:
        self._redis.eval(_FREE, 1, keys.of("lease", shard), token)


def seal_map(map_: ShardMap, seal: Seal) -> bytes:
    """*map_* as it stands in Redis."""
    return seal.seal(Place(Kind.MAP, 0), map_.to_json().encode())


def seal_claim(seal: Seal, number: int | str, place: str) -> bytes:
    """What stands in Redis for a shard that is claimed."""
    return seal.seal(Place(Kind.CLAIM, int(number)), place.encode("utf-8", "surrogateescape"))


def open_claims(seal: Seal, found: Mapping[bytes, bytes]) -> tuple[dict[str, str], list[bytes]]:
    """Number -> place of each shard that is claimed, by what was *found*; and the fields that nobody of us wrote."""
    claimed: dict[str, str] = {}
    strange: list[bytes] = []
    for number, data in found.items():
        try:
            place = Place(Kind.CLAIM, int(number) if len(number) <= _MAX_DIGITS else -1)
            claimed[number.decode()] = seal.open(place, data).decode("utf-8", "surrogateescape")
        except (Refused, ValueError, struct.error):
            strange.append(number)
    return claimed, strange


def name_of(shard: int) -> str:
    """The name of the directory of *shard*, within JOBDIR."""
    return f"shard-{shard:02}"


def _database(directory: Path) -> Path:
    return directory / "state" / "frontier.sqlite"


def _map_in(directory: Path) -> ShardMap | None:
    kept = _meta(directory, MAP_KEY)
    return None if kept is None else ShardMap.from_json(json.dumps(kept))


def _meta(directory: Path, key: str) -> Any:
    """A value of the state in *directory*; None if it is not there, or the state cannot be read, as the crawl says."""
    with suppress(JobdirError), closing(SoundConnection(_database(directory))) as connection:
        row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])
    return None
