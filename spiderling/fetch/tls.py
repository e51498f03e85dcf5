"""TLS for a crawler: it accepts any certificate and notes its problems, or accepts only valid ones (``strict``).

An expired certificate makes no text worse, and many small sites have one some day.  The document's attribute ``tls``
names the problems that the server's own certificate shows.  Whether a chain leads to a trusted root is checked only
when ``strict``.
"""

from __future__ import annotations

import ipaddress
import ssl
from datetime import UTC, datetime
from functools import lru_cache

from cryptography import x509
from scrapy.settings import BaseSettings
from scrapy.utils.ssl import _make_ssl_context

from spiderling.base.addresses import literal_address

FLAG = "tls-"
"""Prefix of the flags of a response that name a certificate's problems."""


def context(settings: BaseSettings, strict: bool) -> ssl.SSLContext:
    """The context of all connections; *strict*, or DOWNLOAD_VERIFY_CERTIFICATES: only valid certificates pass."""
    made = _make_ssl_context(settings)
    if strict:
        made.check_hostname = True
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_default_certs()
    return made


def problems(certificate: bytes, name: str) -> tuple[str, ...]:
    """The problems, at present, of a DER *certificate* shown for host *name*.

    Any of expired, not-yet-valid, self-signed, wrong-name (RFC 9525: only subjectAltName counts); or unreadable.
    """
    facts = _facts(certificate)
    if facts is None:
        return ("unreadable",)
    now = datetime.now(UTC)
    found = {
        "expired": facts.not_valid_after_utc < now,
        "not-yet-valid": facts.not_valid_before_utc > now,
        "self-signed": facts.subject == facts.issuer,
        "wrong-name": not _is_for(certificate, name),
    }
    return tuple(problem for problem, holds in found.items() if holds)


@lru_cache(maxsize=1024)
def _facts(certificate: bytes) -> x509.Certificate | None:
    try:
        facts = x509.load_der_x509_certificate(certificate)
        _ = facts.not_valid_after_utc, facts.not_valid_before_utc, facts.subject, facts.issuer  # parsed on access
    except ValueError:
        return None
    return facts


@lru_cache(maxsize=1024)
def _is_for(certificate: bytes, name: str) -> bool:
    facts = _facts(certificate)
    assert facts is not None
    try:
        names = facts.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound, x509.DuplicateExtension):
        return False
    address = literal_address(name)
    if address is not None:
        return ipaddress.ip_address(address) in names.get_values_for_type(x509.IPAddress)
    wanted = name.lower().rstrip(".")
    wildcard = "*." + wanted.partition(".")[2]
    return not {wanted, wildcard}.isdisjoint(given.lower() for given in names.get_values_for_type(x509.DNSName))
