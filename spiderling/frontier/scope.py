"""Whether a URL may be fetched at all, by top-level domain, port, file type and form (base/urls.py: scheme, name)."""

from __future__ import annotations

from spiderling.base import media_types
from spiderling.base.link_batch import KINDS, REPETITIVE, form_of
from spiderling.base.option_values import parse_ports, parse_tlds
from spiderling.base.options import Options
from spiderling.base.reasons import Reason
from spiderling.base.urls import CanonicalUrl, top_level_domain

MAX_PATH_DEPTH = 30
"""Segments of a path beyond which a URL is a trap; chosen."""


class Scope:
    """The rules of one crawl; ``refusal`` gives the Reason why a URL stays out, or None."""

    def __init__(self, options: Options) -> None:
        self._tlds = parse_tlds(options.tlds)
        self._preferred = parse_tlds(options.prefer_tlds, "PREFER_TLDS") if options.prefer_tlds else frozenset()
        documents = media_types.parse(options.documents)
        self.fetched = frozenset({0, *(number for number, kind in enumerate(KINDS) if kind in documents)})
        """Kinds of paths that may be fetched, as indices in KINDS."""
        self.max_chars = options.max_url_chars
        self._ports = parse_ports(options.ports)

    def allows_port(self, port: int) -> bool:
        """Whether connections to *port* may be made: a link must not make us talk to a mail server."""
        return self._ports is None or port in self._ports

    def prefers(self, host: str) -> bool:
        """Whether the host is under one of the preferred top-level domains."""
        return self._preferred is not None and top_level_domain(host) in self._preferred

    def refusal(self, url: CanonicalUrl) -> Reason | None:
        """Why *url* stays out: OUT_OF_SCOPE, TRAP or None."""
        kind, depth = form_of(url.path)
        return self.refusal_of_name(url.host) or self.refusal_of_form(kind, depth, len(url.url))

    def refusal_of_name(self, host: str) -> Reason | None:
        """OUT_OF_SCOPE for a host record under another top-level domain."""
        return Reason.OUT_OF_SCOPE if self._tlds is not None and top_level_domain(host) not in self._tlds else None

    def refusal_of_form(self, kind: int, depth: int, chars: int) -> Reason | None:
        """``refusal`` by the form and the depth of a path, and the length of the URL."""
        if kind & ~REPETITIVE not in self.fetched:
            return Reason.OUT_OF_SCOPE
        return Reason.TRAP if kind & REPETITIVE or depth > MAX_PATH_DEPTH or chars > self.max_chars else None
