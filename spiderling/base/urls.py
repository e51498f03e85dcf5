"""Canonical form of a URL, the host record it belongs to, its 64-bit key, the shard that owns it, hashes of its words.

The canonical form is the WHATWG serialisation (https://url.spec.whatwg.org/, by
ada_url) without fragment, session ids and campaign parameters.  Two
URLs are the same when their canonical forms are: scheme, port and ``www.`` count.
Only the *host record* folds http, https, ports 80 and 443 and a leading ``www.``.

All hosts of a registrable domain are of one shard.  So what is measured or limited by domain (traps, shares of
the places, opt-outs) stays within one process, and so do most hosts that share an address.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import ada_url
import xxhash

if TYPE_CHECKING:
    import tldextract

CANONICAL_VERSION = 1
"""Changes with whatever changes the canonical form of a URL, the name of its host record, or its hash."""
PREFIXES = ("http://", "https://", "http://www.", "https://www.")
"""What stands before the host record's name in nearly all URLs; the prefixes at odd places are https."""
HASH_BITS = 40  # lower bits of a seen key, a hash of the URL; the 24 above them are the host's id
MAX_HOST_ID = (1 << 24) - 1
_HASH_MASK = (1 << HASH_BITS) - 1
_PREFIX_NUMBERS = {prefix: number for number, prefix in enumerate(PREFIXES)}
# a serialised URL is regular enough to be taken apart by one expression
_SERIALISED = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[^/?#:@]+)(:\d+)?(/[^?#]*)(\?[^#]*)?")
# most URLs are canonical but for fragment and query; the parser changes none that this matches, but for _needs_parser
_PLAIN = re.compile(
    r"(https?://)((?:www\.)?((?:[a-z0-9_-]{1,63}\.)+[a-z]{2,63}))(/[A-Za-z0-9_~!$&()*+,:=@/.%-]*)"
    r"(\?[A-Za-z0-9_~!$&()*+,:=@/.%?;-]*)?(?:#[!-~]*)?"
)
# session ids in the path: ';jsessionid=1' of Java servers, '/(S(1))' of ASP.NET without cookies
_SESSION_PATH = re.compile(
    r";(?:jsessionid|phpsessid|sid)=[^/?#;]*|/\((?:[A-Z]\([0-9a-z]{8,}\))+\)(?=/)", re.IGNORECASE
)
# session ids, then ids of campaigns and clicks, by the documentation of who appends them; parameters with a short name
# only if the value looks like an id
_DROPPED = (
    r"(?:phpsessid|jsessionid|sessionid|session_id|aspsessionid\w*|asp\.net_sessionid|cfid|cftoken|oscsid|zenid"
    r"|(?:utm|mtm|pk|piwik|matomo|hsa|vero|oly|fb_action)_\w+|_ga|_gl|_hsenc|_hsmi|__hs\w+|_openstat|dclid|epik"
    r"|fbclid|gbraid|gclid|gclsrc|igshid|li_fat_id|mc_[ce]id|mkt_tok|msclkid|rb_clickid|s_cid|srsltid|ttclid|twclid"
    r"|wbraid|wickedid|yclid|zanpid)(?:=|&|$)"
    r"|(?:s|sid|sess|session)=[0-9a-f]{16,}(?:&|$)"
)
_HAS_DROPPED = re.compile(rf"[?&](?:{_DROPPED})", re.IGNORECASE)
_DROPPED_PARAMETER = re.compile(_DROPPED, re.IGNORECASE)
_NAME = re.compile(r"(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}")


class CanonicalUrl(NamedTuple):
    """A URL that can be fetched, and its parts."""

    url: str
    name: str  # host name (or address literal) as it is resolved and sent, lower case
    host: str  # name of the host record: no ``www.``, and a port only if it is not 80 or 443
    origin: str  # scheme, name and port: what one robots.txt speaks for (RFC 9309)
    path: str  # path with query, as robots.txt rules see it

    @property
    def port(self) -> int:
        """The port that is connected to."""
        return port_of(self.origin, self.origin.startswith("https:"))


def canonicalize(url: str) -> CanonicalUrl | None:
    """The canonical form of an absolute http(s) URL; None for anything else. Never raises; idempotent.

    A URL with a user name is refused: it is private, or made to look like another host.
    """
    plain = _PLAIN.fullmatch(url)
    if plain is not None and not _needs_parser(url):
        scheme, name, host, path, search = plain.groups()
        if search is not None:
            path += clean_query(search)
        origin = scheme + name
        return CanonicalUrl(origin + path, name, host, origin, path)
    return _parse(url)


canonicalize_again = lru_cache(maxsize=4096)(canonicalize)
"""``canonicalize`` with a cache, for URLs of pages in work, which are asked for several times."""


def _needs_parser(url: str) -> bool:
    """Whether the parser may change *url*, although _PLAIN matches: dot segments, sessions, punycode, a long name."""
    return "/." in url or "/(" in url or "xn--" in url or len(url) > 250 or ("%2" in url and "%2e" in url.lower())


def _parse(url: str) -> CanonicalUrl | None:
    """``canonicalize`` by the parser, for any URL."""
    try:
        match = _SERIALISED.match(ada_url.normalize_url(url))
    except ValueError:
        return None
    if match is None:
        return None
    scheme, name, port, path, search = match.groups(default="")
    name = name.removesuffix(".")
    if not 0 < len(name) <= 253 or not (name.startswith("[") or _NAME.fullmatch(name)):
        return None
    if (";" in path or "/(" in path) and (shorter := _SESSION_PATH.sub("", path)) != path:
        return canonicalize(f"{scheme}://{name}{port}{shorter}{search}")  # what is left may hold '/./'
    path += clean_query(search)
    origin = f"{scheme}://{name}{port}"
    folded = name[4:] if name.startswith("www.") and name.count(".") > 1 else name
    host = folded if port in ("", ":80", ":443") else folded + port
    return CanonicalUrl(origin + path, name, host, origin, path)


def serialize(url: str) -> str | None:
    """The WHATWG serialisation of an absolute URL without its fragment: as a browser would ask for it."""
    try:
        return str(ada_url.normalize_url(url)).partition("#")[0]
    except ValueError:
        return None


def prefix_of(target: CanonicalUrl) -> int | None:
    """The place in PREFIXES of the prefix of *target*; None if the host record folds its port away."""
    return _PREFIX_NUMBERS.get(target.origin[: -len(target.host)])


def assemble(prefix: int, host: str, path: str) -> CanonicalUrl:
    """The URL of one of PREFIXES, a host record's name and a path in canonical form."""
    origin = PREFIXES[prefix] + host
    return CanonicalUrl(origin + path, name_of(origin), host, origin, path)


def name_of(origin: str) -> str:
    """The host name (or address literal) in an origin."""
    host = origin.partition("://")[2]
    return host.rpartition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]


def port_of(origin: str, is_https: bool) -> int:
    """The port that is written in an origin or a host record's name, or else the scheme's."""
    written = origin.rpartition(":")[2]
    return int(written) if written.isdigit() else 443 if is_https else 80


def url_key(host_id: int, url: str, salt: bytes = b"") -> int:
    """The seen key: 24 bits of host id above 40 bits of hash; stable across processes and machines."""
    return key_of(host_id, url_hash(url, salt))


def key_of(host_id: int, digest: int) -> int:
    """The seen key of a URL with this `url_hash`; it fits a signed 64-bit integer."""
    key = host_id << HASH_BITS | digest
    return key - (1 << 64) if key >= 1 << 63 else key


def hash_in(key: int) -> int:
    """The `url_hash` of the URL with this seen key."""
    return key & _HASH_MASK


def url_hash(url: str, salt: bytes = b"") -> int:
    """The lower 40 bits of the seen key.

    *salt* tells apart requests for one URL (method and body; random for ``dont_filter``).
    The order of parameters does not count.
    """
    if "&" in url:
        address, _, query = url.partition("?")
        url = address + "?" + "&".join(sorted(query.split("&")))
    return xxhash.xxh3_64_intdigest(url.encode("utf-8", "surrogatepass") + salt) & _HASH_MASK


def origins_of(host: str) -> list[str]:
    """Every origin that may be folded into the host record *host*."""
    name = host
    port = ""
    if not host.endswith("]") and ":" in host:
        name, _, port = host.rpartition(":")
    ports = [":" + port] if port else ["", ":80", ":443"]
    return [f"{scheme}://{www}{name}{tail}" for scheme in ("http", "https") for www in ("", "www.") for tail in ports]


@lru_cache(maxsize=65536)
def registrable_domain(host: str) -> str:
    """eTLD+1 of a host record's name; the name itself if it has none.

    By the public suffix list that tldextract brings along, with its private part: sites on one blog platform are not
    one domain.
    """
    return _suffixes()(host.rsplit(":", 1)[0]).top_domain_under_public_suffix or host


@lru_cache(maxsize=1)
def _suffixes() -> tldextract.TLDExtract:
    import tldextract  # brings an HTTP client along; the text workers have no use for either

    return tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)


def is_top_level_domain(name: str) -> bool:
    """Whether *name*, in ASCII, is a top-level domain of that list."""
    return bool(_suffixes()(f"a.b.{name}").suffix)  # of some only the second level is listed, as *.ck


def top_level_domain(host: str) -> str:
    """The last label of a host record's name; empty for an address literal."""
    return _label_of(host[host.rfind(".") + 1 :])


@lru_cache(maxsize=4096)
def _label_of(end: str) -> str:
    label = end.partition(":")[0]
    return "" if label.isdigit() or "[" in end or "]" in end else label


def clean_query(search: str) -> str:
    """The query with its leading '?', without session ids and campaign parameters; '' when nothing is left."""
    if len(search) < 2:
        return ""
    if _HAS_DROPPED.search(search) is None:
        return search
    kept = [part for part in search[1:].split("&") if _DROPPED_PARAMETER.match(part) is None]
    return "?" + "&".join(kept) if any(kept) else ""


def domain_mark(name: str) -> int:
    """A hash of 16 bits, never 0, of the registrable domain of the host *name*."""
    return xxhash.xxh3_64_intdigest(registrable_domain(name).encode()) & 0xFFFF or 1


MAX_SHARDS = 1024  # chosen: one Redis has no time for more that work (docs/shards.md); a number fits two bytes


@lru_cache(maxsize=1 << 17)
def owner_of(host: str, shards: int) -> int:
    """The shard, 0 to *shards* - 1, of the host record's name *host*; an address literal is a domain of its own."""
    domain = registrable_domain(name_of(f"http://{host}"))
    return int(xxhash.xxh3_64_intdigest(domain.encode()) % shards)


def page_elsewhere(shard: int) -> int:
    """What stands in the URL log for a page of another shard: the key of no page, since no host has the id 0."""
    return shard + 1


def shard_of_page(page: int) -> int | None:
    """The shard that ``page_elsewhere`` stands for; None for the key of a page, and for 0, no page."""
    return page - 1 if 0 < page <= MAX_SHARDS else None


WORD_BITS = 16  # bits of a word's hash
OF_NAME = 2  # number of hashes of a host name: of its top-level domain and its first label
OF_PATH = 4  # number of hashes of a path: of its first words; 0 stands for a missing one
_MASK = (1 << WORD_BITS) - 1
_LETTERS = bytes(code if chr(code).isalpha() and code < 128 else 32 for code in range(256)).lower()
"""Translation of bytes: ASCII letters to lower case, all others to spaces."""
_SLASH = crc32(b"/")
_NONE = [0] * OF_PATH
_MAX_BYTES = 80  # bytes at the beginning of a path in which words are looked for (chosen)


def word_hash(word: str) -> int:
    """The hash of *word*, never 0: ``/word`` in a path or as a first label, ``.name`` for a top-level domain."""
    return crc32(word.encode()) & _MASK or 1


@lru_cache(maxsize=4096)
def words_of_name(name: str) -> tuple[int, int]:
    """Hashes of a host name's top-level domain, and of its first label if that may be a language's code (else 0)."""
    label = name.partition(".")[0]
    return word_hash(name[name.rfind(".") :]), word_hash("/" + label) if len(label) == 2 else 0


def words_of_path(path: bytes) -> list[int]:
    """Hashes of the first words of two letters or more in *path*."""
    found: list[int] = []
    for word in path[:_MAX_BYTES].translate(_LETTERS).split():
        if len(word) > 1:
            found.append(crc32(word, _SLASH) & _MASK or 1)
            if len(found) == OF_PATH:
                return found
    return found + _NONE[len(found) :]


def section_of(path: bytes) -> int:
    """A checksum of the first segment of a path; 0 when there is only one."""
    end = path.find(b"/", 1)
    return crc32(path[:end]) if end > 0 else 0
