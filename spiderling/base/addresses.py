"""Which IP addresses stand for a host name, which may be connected to, and lists of hosts and URLs.

Nothing here asks DNS.  A crawler follows URLs that strangers wrote, so it judges every address before it connects
(SSRF): only global unicast addresses and networks that the user lists may be fetched.
"""

from __future__ import annotations

import fnmatch
import ipaddress
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import ada_url

from spiderling.base.errors import BadInput
from spiderling.base.options import Options
from spiderling.base.terminal import entries_of
from spiderling.base.urls import PREFIXES, CanonicalUrl, canonicalize

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
_EXAMPLE = re.compile(r"(?:.*\.)?(?:example\.(?:com|net|org|edu)|example|invalid|localhost|test)")
"""Names at which nobody can be reached: those that documentation uses (RFC 2606, RFC 6761), and example.edu."""
_CONTACT = re.compile(r"[!-~]+@[!-~]+\.[!-~]+|https?://[!-~]+")

# IANA special-purpose registry (RFC 6890 and updates).  Written out because `ipaddress.is_global`
# differs between Python releases and does not cover the last entry.
_NOT_PUBLIC_V4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT; Alibaba's metadata
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local; metadata of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",  # IETF protocols; Oracle's metadata
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",  # multicast, reserved, broadcast
        "168.63.129.16/32",  # Azure's metadata, reachable from inside Azure only
    )
)
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_V6 = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # IETF protocols: Teredo, benchmarks, ORCHID
        "2001:db8::/32",
        "3fff::/20",
    )
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_REMEMBERED = 20_000  # addresses and names that are remembered (chosen); a request asks about its own several times


def literal_address(name: str) -> str | None:
    """The address that a browser connects to for a host name that *is* an address, else None.

    Covers the forms that hide one (WHATWG URL, "ends in a number"): ``2130706433``, ``0x7f.1``,
    ``0177.0.0.1``, full-width digits; IPv6 with or without brackets.
    """
    if ":" in name and not name.startswith("["):
        name = f"[{name}]"
    if not name or not _HOST.fullmatch(name):
        return None
    try:
        url = ada_url.URL(f"http://{name}/")
    except (ValueError, UnicodeError):
        return None
    if url.host_type == ada_url.HostType.DEFAULT:
        return None
    return str(ipaddress.ip_address(url.hostname.strip("[]")))


class Endpoint(NamedTuple):
    """Where a server listens."""

    address: str
    port: int | None = None  # None: no port is given, so the caller's default counts


class HostMap:
    """``SPIDERLING_HOSTS``: fixed addresses of host names, instead of DNS."""

    def __init__(self, option: str) -> None:
        """Read ``glob=address[:port]`` separated by commas; IPv6 addresses stand in brackets.

        Raises BadInput for the first part that cannot be read.
        """
        self.lookup = lru_cache(_REMEMBERED)(self._lookup)
        """Where a name is served: by an exact entry, else by the first glob that matches, else None."""
        self._exact: dict[str, Endpoint] = {}
        self._globs: list[tuple[re.Pattern[str], Endpoint]] = []
        for part in entries_of(option):
            glob, equals, target = (piece.strip() for piece in part.partition("="))
            name = glob.lower().rstrip(".").strip("[]")
            if not equals or not _GLOB.fullmatch(name):
                raise BadInput(f"SPIDERLING_HOSTS has {part!r}; write 'glob=address[:port]', such as *.test=127.0.0.1.")
            where = parse_endpoint(target, "SPIDERLING_HOSTS")
            if "*" in name or "?" in name:
                self._globs.append((re.compile(fnmatch.translate(name)), where))
            else:
                self._exact.setdefault(name, where)

    def _lookup(self, name: str) -> Endpoint | None:
        name = name.lower().rstrip(".").strip("[]")
        found = (where for pattern, where in self._globs if pattern.fullmatch(name))
        return self._exact.get(name) or next(found, None)


class AddressPolicy:
    """``SPIDERLING_ALLOW_NETWORKS``: which addresses may be connected to."""

    def __init__(self, option: str = "", public: bool = True) -> None:
        """Read networks in CIDR form separated by commas; raises BadInput for the first that is no network.

        *public*: whether public addresses are allowed too; False for a crawl that names no contact.
        """
        self._public = public
        self.allows = lru_cache(_REMEMBERED)(self._allows)
        """Whether an address may be connected to; False for text that is no address.

        Allowed are listed networks and, if public addresses are allowed, global unicast addresses.
        """
        self._networks: list[IPNetwork] = []
        for part in entries_of(option):
            try:
                self._networks.append(ipaddress.ip_network(part))
            except ValueError as error:
                raise BadInput(
                    f"SPIDERLING_ALLOW_NETWORKS has {part!r}: {error}; write networks such as 127.0.0.0/8."
                ) from None

    def _allows(self, address: str) -> bool:
        parsed = _parse(address)
        if parsed is None:
            return False
        return (self._public and _is_public(parsed)) or any(parsed in network for network in self._networks)


def parse_endpoint(text: str, option: str) -> Endpoint:
    """Read ``address[:port]`` or ``[IPv6][:port]``; raises BadInput that names *option*."""
    match = _ENDPOINT.fullmatch(text)
    parsed = match and _parse(match["v6"] or match["v4"])
    port = int(match["port"]) if match and match["port"] else None
    if parsed is None or (port is not None and not 0 < port < 65536):
        raise BadInput(f"{option} has {text!r}; write address or address:port (1-65535), an IPv6 address in brackets.")
    return Endpoint(str(parsed), port)


_HOST = re.compile(r"\[[0-9A-Fa-f:.]+\]|[^\x00-\x20\x7f:/?#@\\\[\]]+")
_GLOB = re.compile(r"[^\s,=/@#\[\]\\]+")
_ENDPOINT = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<v4>[0-9.]+))(?::(?P<port>[0-9]{1,5}))?")


def _parse(address: str) -> IPAddress | None:
    """The value of *address*, for IPv4-mapped IPv6 that of the IPv4 address connected to; None if it is no address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return None
    return (parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None) or parsed


def _is_public(address: IPAddress) -> bool:
    """Whether *address* is global unicast; the IPv4 address in an IPv6 one (6to4, NAT64) is judged in its place."""
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_V4)
    if address in _NAT64:
        return _is_public(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    if address.sixtofour is not None:
        return _is_public(address.sixtofour)
    return address in _GLOBAL_V6 and not any(address in network for network in _NOT_PUBLIC_V6)


def addresses_of(options: Options, is_offline: bool) -> AddressPolicy:
    """Which addresses may be connected to; raises BadInput if public ones may, and nobody says whose crawl it is.

    *is_offline*: the crawl connects to none, so it needs no contact.
    """
    if not is_offline:
        if options.contact and not host_of_contact(options.contact):
            raise BadInput(
                f"SPIDERLING_CONTACT is {options.contact!r}; it must be an e-mail address or the URL of a page that "
                "says who crawls and how to reach them."
            )
        if _EXAMPLE.fullmatch(host_of_contact(options.contact)):
            raise BadInput(
                f"SPIDERLING_CONTACT is {options.contact!r}, an example; write your own e-mail address or URL, "
                "at which site owners can reach you."
            )
        if not options.contact and not options.allow_networks:
            raise BadInput(
                "no contact is given, and a crawl of public addresses must say whose it is: set SPIDERLING_CONTACT "
                "to an e-mail address or URL (-s SPIDERLING_CONTACT=you@your-domain)."
            )
    return AddressPolicy(options.allow_networks, public=bool(options.contact))


def host_of_contact(contact: str) -> str:
    """The host's name in an e-mail address or a URL; '' if it is neither."""
    if not _CONTACT.fullmatch(contact):
        return ""
    if "://" not in contact:
        return contact.rpartition("@")[2].lower().rstrip(".")
    target = canonicalize(contact)
    return target.name.rstrip(".") if target is not None else ""


_HOST_GLOB = re.compile(r"[a-z0-9*?._\[\]!-]+")


class HostPatterns:
    """Entries that name hosts; a look-up takes as many steps as the name has labels, and one for each glob.

    ``-a hosts=FILE`` (only these), ``SPIDERLING_BLOCK=FILE`` (never these), ``block`` in control.yaml and
    ``scrapy export --drop-host FILE`` take one entry a line; ``#`` begins a comment:

        example.org       that host (http, https and ``www.`` are one host)
        .example.org      that host and all below it, as squid writes it
        *.example.org     all below it; * and ? stand for any characters, [ab] for one of these
        http://a.org/x    the host of a URL
        0.0.0.0 ads.org   a hosts file: the name counts
    """

    def __init__(self) -> None:
        self._exact: dict[str, str] = {}  # name of a host record -> the entry that lists this host
        self._below: dict[str, str] = {}  # name of a host -> the entry that lists all hosts below it
        self._globs: list[tuple[re.Pattern[str], str]] = []

    def __bool__(self) -> bool:
        return bool(self._exact or self._below or self._globs)

    def add_entry(self, line: str) -> bool:
        """Add the hosts that *line* names; False if it names none."""
        entry = line.partition("#")[0].strip()
        words = entry.lower().split()
        if len(words) == 2 and literal_address(words[0]) is not None:
            words = words[1:]  # a line of a hosts file
        if len(words) != 1:
            return False
        name = words[0]
        is_pattern = "://" not in name and ("*" in name or "?" in name)
        return self._add_pattern(name, entry) if is_pattern else self._add_host(name, entry)

    def _add_host(self, name: str, entry: str) -> bool:
        target = canonicalize(name if "://" in name else f"http://{name.removeprefix('.')}/")
        if target is None:
            return False
        self._exact[target.host] = entry
        if name.startswith("."):
            self._below[target.host] = entry
        return True

    def _add_pattern(self, name: str, entry: str) -> bool:
        parent = _name_of_all_below(name)
        if parent is not None:
            self._below[parent] = entry  # the usual form, which needs no look at every glob
        elif _HOST_GLOB.fullmatch(name):
            self._globs.append((re.compile(fnmatch.translate(name)), entry))
        else:
            return False
        return True

    def entry_for(self, host: str) -> str | None:
        """The entry that lists the host record named *host*, with its port or for all ports; None if none does."""
        name = host if host.endswith("]") else host.partition(":")[0]
        found = self._exact.get(host) or self._exact.get(name)
        _, dot, parent = name.partition(".")
        while dot and found is None:
            found = self._below.get(parent)
            _, dot, parent = parent.partition(".")
        return found or next((entry for glob, entry in self._globs if glob.match(name)), None)

    def holds(self, host: str) -> bool:
        return self.entry_for(host) is not None


def _name_of_all_below(pattern: str) -> str | None:
    """``example.org`` for ``*.example.org``; None for a pattern that must be matched with each name."""
    target = canonicalize(f"http://{pattern[2:]}/") if pattern.startswith("*.") else None
    if target is None or target.path != "/" or target.host != target.origin.partition("://")[2]:
        return None
    is_name = ":" not in target.host and literal_address(target.host) is None  # 0.0.1 is read as an address
    return target.host if is_name else None


_ANY = "~any"  # stands for what * stands for, while the canonical form of a beginning is made


class DropList:
    """Hosts and URLs whose documents are dropped; http and https, and a leading ``www.``, make no difference."""

    def __init__(self, hosts: Iterable[str] = (), urls: Iterable[str] = ()) -> None:
        """*hosts* are entries of a HostPatterns; *urls* may end in ``*``.

        Raises BadInput for an entry that names no host or no URL.
        """
        self._hosts = HostPatterns()
        self._urls: dict[str, str] = {}
        self._beginnings: dict[str, str] = {}
        self._paths: dict[str, list[str]] = {}  # name of a host -> paths of its URLs; '*' for those that begin so
        self.idle: set[str] = set()  # entries that matched nothing up to now
        for entry in hosts:
            if not self._hosts.add_entry(entry):
                raise BadInput(f"{entry!r} in the list of hosts is no host name; write one a line, such as a.example.")
            self.idle.add(entry.partition("#")[0].strip())
        for entry in urls:
            beginning = entry.removesuffix("*")
            end = _ANY if entry != beginning else ""
            target = canonicalize(beginning + end)
            if target is None:
                raise BadInput(f"{entry!r} in the list of URLs is no http(s) URL; give each in full, with its scheme.")
            if not target.path.endswith(end):  # it would be a beginning of more than it says
                raise BadInput(
                    f"{entry!r} in the list of URLs: what stands last before * is no part of an address as a crawl "
                    "keeps it; end it with a part of a path, such as http://a.example/people/*"
                )
            (self._beginnings if end else self._urls)[_address(target).removesuffix(end)] = entry
            self._paths.setdefault(target.host, []).append("*" if end else target.path)
            self.idle.add(entry)

    def __bool__(self) -> bool:
        return bool(self._hosts or self._paths)

    def holds_host(self, host: str) -> bool:
        """Whether all of the host record's name *host* is listed."""
        return self._hosts.holds(host)

    def concerns(self, host: str) -> bool:
        """Whether the host record's name *host* or a URL of it is listed."""
        return host in self._paths or self._hosts.holds(host)

    def urls_of(self, host: str) -> list[str] | None:
        """The URLs of *host* that are listed, in their usual forms; None if they cannot be named one by one."""
        paths = self._paths.get(host, [])
        if self._hosts.holds(host) or "*" in paths:
            return None
        return [prefix + host + path for prefix in PREFIXES for path in paths]

    def rule_for(self, attributes: Mapping[str, str]) -> str | None:
        """The entry that drops the document; None if it may stay."""
        target = canonicalize(attributes.get("url", ""))
        return None if target is None else self.rule_of(target)

    def rule_of(self, target: CanonicalUrl) -> str | None:
        """The entry that lists *target*; None if none does."""
        address = _address(target)
        by_beginning = (entry for beginning, entry in self._beginnings.items() if address.startswith(beginning))
        rule = self._urls.get(address) or self._hosts.entry_for(target.host) or next(by_beginning, None)
        if rule is not None:
            self.idle.discard(rule)
        return rule


def _address(target: CanonicalUrl) -> str:
    return target.host + target.path


def read_host_list(path: str, option: str) -> HostPatterns:
    """The hosts in the file at *path*, none for ''; messages name *option*.

    Raises BadInput when it cannot be read or a line names no host.
    """
    hosts = HostPatterns()
    if not path:
        return hosts
    for number, entry in numbered_entries(path, f"{option}: the list"):
        if not hosts.add_entry(entry):
            raise BadInput(
                f"{option}: line {number} of {path} names no host: {entry[:100]!r}; write one host a line, such as "
                "example.org, .example.org (with all below it) or *.example.org."
            )
    if not hosts:
        raise BadInput(f"{option}: {path} names no host; write one a line, such as example.org.")
    return hosts


def numbered_entries(path: str, what: str = "the list") -> list[tuple[int, str]]:
    """The entries in the file at *path*, one a line, each with the number of its line; ``#`` begins a comment line.

    Raises BadInput if it cannot be read; the message calls it *what*.
    """
    try:
        lines = Path(path).expanduser().read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise BadInput(f"{what} {path} cannot be read: {reason}; it holds one entry a line.") from None
    entries = enumerate(map(str.strip, lines), 1)
    return [(number, entry) for number, entry in entries if entry and not entry.startswith("#")]


def read_list(path: str) -> list[str]:
    """The entries of a list, one a line; raises BadInput if it cannot be read."""
    return [entry for _, entry in numbered_entries(path)]
