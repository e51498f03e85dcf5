"""TLS for a crawler: it accepts any certificate and notes its problems, or accepts only valid ones (``strict``).

An expired certificate makes no text worse, and many small sites have one some day.  The document's attribute ``tls``
names the problems that the server's own certificate shows.  Whether a chain leads to a trusted root is checked only
when ``strict``.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from datetime import UTC, datetime
from functools import lru_cache

from cryptography import x509
from scrapy.settings import BaseSettings

from spiderling.base.addresses import literal_address
from spiderling.base.errors import BadInput

FLAG = "tls-"
"""Prefix of the flags of a response that name a certificate's problems."""
_VERSIONS = {
    "TLSv1.0": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
"""The values of DOWNLOAD_TLS_MIN_VERSION and DOWNLOAD_TLS_MAX_VERSION."""


def context(settings: BaseSettings, strict: bool) -> ssl.SSLContext:
    """The context of all connections; *strict*, or DOWNLOAD_VERIFY_CERTIFICATES: only valid certificates pass.

    Scrapy's other settings for TLS, and SSLKEYLOGFILE, count as in its own handlers.  Raises BadInput.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if strict or settings.getbool("DOWNLOAD_VERIFY_CERTIFICATES"):
        made.load_default_certs()
    else:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    try:
        if lowest := settings.get("DOWNLOAD_TLS_MIN_VERSION"):
            made.minimum_version = _VERSIONS[lowest]
        if highest := settings.get("DOWNLOAD_TLS_MAX_VERSION"):
            made.maximum_version = _VERSIONS[highest]
    except KeyError as error:
        raise BadInput(
            f"DOWNLOAD_TLS_MIN_VERSION or _MAX_VERSION is {error}; write one of {', '.join(_VERSIONS)}."
        ) from None
    if ciphers := settings.get("DOWNLOADER_CLIENT_TLS_CIPHERS"):
        made.set_ciphers(ciphers)
    if key_log := os.environ.get("SSLKEYLOGFILE"):
        made.keylog_filename = key_log
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
