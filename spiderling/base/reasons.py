"""Every way a URL or a page can end, and every way a mention of a URL is refused.

An *end* belongs to a URL that the frontier had accepted (it was *discovered*):
``discovered = ends + waiting + in transit`` holds at every moment.  A *mention*
is refused before that and is counted apart.  The value of a Reason is its key in
the stats (``spiderling/end/<value>``, ``spiderling/mention/<value>``), in the
store and in the logs.

To add one: a member here, then return it or raise ``DropPage(Reason.X)`` (engine/outcomes.py) where it is decided.
Only a closed host's also needs ``CLOSED_STATES`` (frontier/hosts.py).
"""

from __future__ import annotations

from enum import Enum


class Reason(Enum):
    """One way to end, with the sentence that reports print for it."""

    help: str
    __hash__ = object.__hash__  # Enum's hashes the name at each call, and reasons are counted for every link

    def __new__(cls, key: str, help_text: str) -> Reason:
        member = object.__new__(cls)
        member._value_ = key
        member.help = help_text
        return member

    # refused mentions: the URL was never accepted; they stand before HOST_RETIRED
    BAD_URL = ("bad-url", "not an http(s) URL that can be fetched, or one with a user name in it")
    OUT_OF_SCOPE = ("out-of-scope", "outside the allowed top-level domains, or a file type without text")
    SEEN = ("seen", "already discovered")
    TOO_FAR = ("too-far", "its host is farther from the seeds than SPIDERLING_MAX_DISTANCE")
    TRAP = ("trap", "the URL looks generated without end: too long, too deep or repetitive")
    PORT_FORBIDDEN = ("port-forbidden", "its port is not one of SPIDERLING_PORTS")
    TOO_MANY_LINKS = ("too-many-links", "beyond 5,000 links of a page, or the limits of sitemaps; not looked at")
    CROSS_SUBMIT = ("cross-submit", "a URL of another host in a sitemap, or a sitemap of another host in robots.txt")
    TRAP_SECTION = ("trap-section", "in a part of its host whose pages have long said nothing new")
    TRAP_COPY = ("trap-copy", "linked by a page that says the same as too many others of its domain")
    UNPROMISING = ("unpromising", "the strategy follows no such link of such a page")
    TRAP_SUBDOMAINS = ("trap-subdomains", "a new name in a domain where made-up names all show the same page")

    # records of an archive that are no pages (docs/archive.md)
    REVISIT = ("revisit", "a record of an archive that repeats another one, and only refers to it")
    RECORD_STATUS = ("record-status", "a record of an archive with another HTTP status than 200")
    RECORD_KIND = ("record-kind", "a record of an archive that holds no answer of a server, or none that is read")
    DAMAGED = ("damaged", "a part of an archive that is broken, cut off, or no HTTP")

    # ends before a request
    HOST_RETIRED = ("host-retired", "its host gave too little text for the bytes it cost")
    HOST_SPENT = ("host-spent", "its host gave as much as SPIDERLING_MAX_HOST_DOCUMENTS or _BYTES lets it")
    HOST_BLOCKED = ("host-blocked", "its host was blocked by the user")
    HOST_FULL = ("host-full", "its host's queue was full")
    TRAPPED = ("trapped", "it waited in what turned out to be a trap: a fruitless part of its host, a made-up name")
    HOST_REFUSED = ("host-refused", "its host refuses us; its robots.txt is tried again after 1, 7 and 30 days")
    MIRROR = ("mirror", "its host shows the pages of another host under the same paths")
    MOVED = ("moved", "its host has another shard since scrapy reshard; here, or there before, it was known")
    DNS = ("dns", "the host name does not resolve")
    ADDRESS_FORBIDDEN = (
        "address-forbidden",
        "its host has no address that may be asked: SPIDERLING_CONTACT allows public, SPIDERLING_ALLOW_NETWORKS others",
    )
    ROBOTS_FORBIDDEN = ("robots-forbidden", "robots.txt forbids it")
    ROBOTS_UNREACHABLE = ("robots-unreachable", "robots.txt could not be fetched, so nothing is allowed")
    SITE_OPTED_OUT = ("site-opted-out", "the site's robots.txt, tdmrep.json or ai.txt refuses this use of it")
    CRAWL_DELAY = ("crawl-delay", "the site asks for a delay of more than 120 seconds")

    # ends of a request
    REDIRECTED = ("redirected", "the server sent us elsewhere; the target is a URL of its own")
    REDIRECT_LOOP = ("redirect-loop", "redirects without an end")
    HTTP_ERROR = ("http-error", "the server answered with an error status")
    PAYMENT_REQUIRED = ("payment-required", "the server wants to be paid for it (402)")
    UNAVAILABLE_FOR_LEGAL_REASONS = (
        "unavailable-for-legal-reasons",
        "the server may not give it, for legal reasons (451)",
    )
    CHALLENGED = ("challenged", "a service at the site's edge wants proof that we are no robot")
    NOT_TEXT = ("not-text", "the content type is not one that holds running text")
    TOO_BIG = ("too-big", "larger than SPIDERLING_MAX_BODY_BYTES, or a decompression bomb")
    TIMEOUT = ("timeout", "no complete answer in time")
    TOO_SLOW = ("too-slow", "the body came in slower than 100 bytes a second")
    BAD_HTTP = ("bad-http", "the answer is not HTTP, or a flood of headers")
    TLS = ("tls", "no TLS connection could be made; or no valid one, with DOWNLOAD_VERIFY_CERTIFICATES")
    CONNECTION = ("connection", "the connection was refused or broke off")
    ABANDONED = ("abandoned", "a component of the project dropped the request")

    # ends of a page
    UNDECODABLE = ("undecodable", "the bytes could not be decoded to text")
    WORKER_CRASH = ("worker-crash", "the page killed or hung a text worker")
    BOILERPLATE_ONLY = ("boilerplate-only", "no paragraph of running text")
    SCANNED = ("scanned", "a document without text, such as pictures of pages")
    NEEDS_SCRIPT = ("needs-script", "the page shows no text until a script has filled it, which is not run here")
    WRONG_LANGUAGE = ("wrong-language", "not in an accepted language")
    BAD_QUALITY = (
        "bad-quality",
        "outside of the ranges of SPIDERLING_QUALITY, such as too short or with too few function words",
    )
    NOINDEX = ("noindex", "the page asks not to be indexed, or not any more")
    OPTED_OUT = ("opted-out", "the page refuses text mining, or to be used for training")
    DUPLICATE = ("duplicate", "the same bytes or the same text were kept before")
    SOFT_NOT_FOUND = (
        "soft-not-found",
        "the same page as many others of its domain, but for numbers and words of its URL",
    )
    NEAR_DUPLICATE = ("near-duplicate", "nearly all of its text was kept before")
    DROPPED_BY_PIPELINE = ("dropped-by-pipeline", "a pipeline that is not ours dropped the item")
    ITEM_ERROR = ("item-error", "a pipeline raised an exception")
    SPIDER_ERROR = ("spider-error", "the spider's callback raised an exception")
    SITEMAP = ("sitemap", "a sitemap, no page: its URLs became links, if it could be read")
    INTERNAL_ERROR = ("internal-error", "an error of Spiderling's own; its traceback is in crawl.log")
    NO_PAGE = ("no-page", "handled by a callback that yielded no page, or by pipelines that made no document of it")
    KEPT = ("kept", "its text is in the corpus")
    TAKEN_DOWN = (
        "taken-down",
        "scrapy takedown took it, or its host, out of the crawl, and nothing of it is asked for",
    )

    @classmethod
    def of(cls, key: str) -> Reason:
        """The Reason with this key; raises KeyError if there is none."""
        return _BY_KEY[key]


_BY_KEY = {reason.value: reason for reason in Reason}
KEYS = frozenset(_BY_KEY)

_MEMBERS = list(Reason)
MENTIONS = frozenset(_MEMBERS[: _MEMBERS.index(Reason.HOST_RETIRED)])
"""Reasons that refuse a mention; all others are ends."""
