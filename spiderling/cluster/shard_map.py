"""What all shards of a crawl must have in common: who differs in anything here must not join.

Hosts that nobody owns, or two own, would be the price of another number of shards or another list of public suffixes;
URLs that are fetched twice that of another canonical form.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version

from spiderling.base.errors import BadInput
from spiderling.base.owners import MAX_SHARDS
from spiderling.base.urls import CANONICAL_VERSION, suffix_list_digest
from spiderling.cluster.envelope import CRAWL_ID_BYTES, VERSION
from spiderling.frontier.storage.tables import SCHEMA_VERSION


@dataclass(frozen=True)
class ShardMap:
    """One crawl of shards."""

    shards: int
    lang: str
    """Codes of the accepted languages."""
    dedup: str
    """The option SPIDERLING_DEDUP."""
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
        told = [sentence for name, sentence in _DIFFERS.items() if getattr(self, name) != getattr(mine, name)]
        if told:
            said = " ".join(told).format(theirs=self, mine=mine)
            raise BadInput(f"this shard cannot join the crawl of {where}: {said}")


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
"""What a map and a shard may differ in -> what is said of it; the crawl's id is the map's alone."""
