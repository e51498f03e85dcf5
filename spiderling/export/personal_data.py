"""Personal data in texts: finds e-mail addresses, phone numbers, accounts, cards, IP addresses and national numbers.

An export marks them or puts words in their place (docs/publish.md).  What is found is meant to be right: where the form
alone is not certain, a checksum must fit, and a word such as *Tel.* or *PESEL* must stand before.  The rules are those
of RFC 5322 in short, ISO 13616 (IBAN), ISO/IEC 7812 (cards), and of each state, as it publishes them.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from types import ModuleType
from typing import NamedTuple

import numpy as np

from spiderling.base.errors import BadInput
from spiderling.base.machine import require
from spiderling.base.urls import is_top_level_domain
from spiderling.corpus.segments import StoredDocument, unescape
from spiderling.export.national_numbers import SHAPE, is_national_number, luhn
from spiderling.languages import find_languages
from spiderling.text.prevertical import render_attributes
from spiderling.text.quality import count_words

_BEFORE_CHARS = 40  # characters before a number in which the word that names it is looked for; chosen
_REGIONS = {"UK": "GB", "SU": "RU"}  # top-level domain -> code of ISO 3166, where they differ
_TAGS = ("<p>", "<p ", "</p>", "</doc>")  # with which lines begin that are no text
_ESCAPE = re.compile("&(?:amp|lt|gt|quot);")
_IP_DIGITS = 9  # digits from which four numbers are an IP address and no version; chosen

_LIKELY = re.compile(r"[0-9](?:[A-Z .()/\xa0-]{0,3}[0-9]){6,}")  # what may be a number
_LIKELY_CHARS = 24  # characters from its first digit to its seventh, at most
_IPV4 = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_IPV6 = re.compile(r"[23][0-9a-fA-F]{3}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:/])")  # global unicast (RFC 4291, 2.4)
_IPV6_CHARS = 40  # characters of one, with what must not stand behind it, at most
_HEAD = re.compile(r"(?:[A-Z]{1,6}|\(?\+?\(?)\Z")  # what belongs to a number before its first digit
_WITHIN = re.compile(r"(?:[\w/=#;%~$€£@\\-]|[0-9][.,])\Z")  # what stands before a part of something longer
_TAIL = re.compile(r"[A-Z]?(?![^\W_]|[.,][0-9])")  # what belongs to it behind its last digit
_DATE = re.compile(
    r"(?:[0-9]{1,2}[ ./-]+){2}[0-9]{4}|[0-9]{4}(?:[./-][0-9]{2}){2}.*|(?:1[89]|20)[0-9]{2}[ /-]+(?:1[89]|20)[0-9]{2}"
)
_PIECE = re.compile(r"[0-9](?:(?! ?/ | - |[A-Z]).)*[0-9]")  # one of several numbers
_DOMAIN = re.compile(r"@(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}([^\W\d_]{2,24})(?![\w@]|[.:/-]\w)")
_LOCAL = re.compile(r"(?<![\w.%+/:@=-])[^\W_][\w.%+-]{0,63}\Z")
_NO_IP = re.compile(r"(?i)(?:\bv|ver|version\w*|release|firmware|build|section|§)\W{0,3}\Z")
_PHONE_WORD = re.compile(
    r"(?:\b(?:t[eé]l(?:s|f|fn|[eé]f\w*|[eé]ph\w*)?|tlf\w*|phones?|ph|fax|mob|mobi?le?n?|mobil\w*|gsm|cell|call|whatsapp"
    r"|viber|hotline|helpline|handy|fon|fono|cel|celular|m[oó]vil|infolink\w*|linka|kom|puh|puhelin\w*|matkap\w*|dial"
    r"|toll-free|тел\w*|факс|моб\w*|тлф|τηλ\w*|κιν\w*|φαξ|điện thoại|đt|โทร)\b"
    r"|☎|📞|📱|電話|电话|手机|手機|热线|传真|携帯|전화|휴대폰|팩스|هاتف|جوال|تلفن|फ़ोन|फोन|טלפון)[^\W\d_]?(?P<between>.*)\Z"
)
_OTHER_WORD = re.compile(r"[^\W\d_]{3,}")
_OTHER_WORDS = 2  # words between the one that says phone and the number, as in "Tel. (office hours): 5550100"; chosen
_FORMED = re.compile(r"\(0?[0-9]{2,5}\) ?[0-9]|0[0-9]+[ ./-]|[2-9][0-9]{2}([-.])[0-9]{3}\1[0-9]{4}$")
"""A phone number as it is written in its country, which needs no word: (0123) 456, 0123 456, 555-555-0100."""
_CARD_WORD = re.compile(r"(?i)visa|master ?card|amex|american express|\bkart|\bcard|tarjeta|carte|карт")
_IBAN = re.compile(r"(?<![^\W_])([A-Z]{2})[0-9]{2}(?=[ \xa0]?[A-Z0-9])")
_IBAN_CHARS = dict(
    re.findall(
        r"([A-Z]{2})([0-9]{2})",
        "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BR29 BY28 CH21 CY28 CZ24 DE22 DK18 EE20 ES24 FI18 FO18 FR27 GB22 GE22 "
        "GI23 GL18 GR27 HR21 HU28 IE22 IL23 IS26 IT27 KZ20 LI21 LT20 LU20 LV21 MC27 MD24 ME22 MK19 MT31 NL18 NO15 PL28 "
        "PT25 QA29 RO24 RS22 SA24 SE24 SI19 SK24 SM27 TR26 UA29 VA22 XK20",
    )
)
"""Country -> characters of an IBAN, by the registry of ISO 13616."""
_CARD = re.compile(
    r"4[0-9]{15}|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9].|[3-6]..|7[01].|720)[0-9]{12}|3[47][0-9]{13}|62[0-9]{14}"
    r"|6(?:011|5..|4[4-9].)[0-9]{12}|35(?:2[89]|[3-8].)[0-9]{12}|3(?:0[0-5]|[68].)[0-9]{11}"
)
"""Visa, Mastercard, American Express, UnionPay, Discover, JCB, Diners Club."""
_CARD_SHAPES = ("9999 9999 9999 9999", "9999-9999-9999-9999", "9999 999999 99999", "9999 999999 9999")


class Found(NamedTuple):
    """Personal data in characters *start* to *end* of a text."""

    start: int
    end: int
    kind: str  # email, phone, iban, card, ip or id


def find(text: str, tld: str = "", language: str = "") -> list[Found]:
    """The personal data in *text*, in order; its top-level domain and *language* say which states' numbers it names."""
    found = list(_emails(text)) if "@" in text else []
    found += _addresses(text) if "::" in text else []  # hardly one is written in full
    for match in _likely(text):
        found += filter(None, _numbers(text, match, _regions(tld, language)))
    found.sort()
    return [one for place, one in enumerate(found) if not place or one.start >= found[place - 1].end]


def _likely(text: str) -> Iterator[re.Match[str]]:
    """What _LIKELY finds; it is tried only where seven digits are near, for most texts have none of these."""
    signs = np.frombuffer(text.encode("latin-1", "replace"), np.uint8)  # one for each character
    digits = np.flatnonzero(signs - 48 < 10)
    end = 0
    for start in digits[:-6][digits[6:] - digits[:-6] <= _LIKELY_CHARS].tolist():
        if start >= end and (match := _LIKELY.match(text, start)):
            end = match.end()
            yield match


@cache
def _regions(tld: str, language: str) -> tuple[str, ...]:
    """States by their ISO codes: that of the domain, else the first two where the language is at home."""
    phonenumbers = _phonenumbers()
    tlds: Sequence[str] = [tld]
    if tld.upper() not in phonenumbers.SUPPORTED_REGIONS and tld.upper() not in _REGIONS:
        try:
            tlds = find_languages(language)[0].tlds[:2]
        except BadInput:  # no model, or no language
            return ()
    return tuple(_REGIONS.get(name.upper(), name.upper()) for name in tlds)


def _phonenumbers() -> ModuleType:
    import phonenumbers  # large, and most runs do not need it

    return phonenumbers


def _emails(text: str) -> Iterator[Found]:
    for match in _DOMAIN.finditer(text):
        local = _LOCAL.search(text, max(0, match.start() - 65), match.start())
        if local and _is_top_level_domain(match[1].lower()):
            yield Found(local.start(), match.end(), "email")


_is_top_level_domain = cache(is_top_level_domain)


def _numbers(text: str, match: re.Match[str], regions: Sequence[str]) -> Iterator[Found | None]:
    """What a *match* of _LIKELY is: several numbers, one, or nothing."""
    start, end = match.span()
    around = text[max(0, start - 2) : end]
    heads = _IBAN.finditer(text, max(0, start - 12), end) if around != around.lower() else ()
    accounts = [_account(text, head) for head in heads]
    if any(accounts) or _DATE.fullmatch(match[0]):
        yield from accounts
    elif whole := _number(text, start, end, regions):
        yield whole
    else:
        pieces = [piece.span() for piece in _PIECE.finditer(text, start, end)]
        yield from (_number(text, *piece, regions) for piece in pieces if piece != match.span())


def _number(text: str, start: int, end: int, regions: Sequence[str]) -> Found | None:
    """What the number from *start* to *end* is, with the signs that belong to it."""
    before = text[max(0, text.rfind("\n", 0, start) + 1, start - _BEFORE_CHARS) : start]
    tail = _TAIL.match(text, end)
    head = _HEAD.search(before)
    if tail is None or head is None or _WITHIN.search(before[: head.start()]):
        return None
    number = text[start:end]
    found = Found(start - len(head[0]), tail.end(), "id")
    if is_national_number(text[found.start : found.end], before, regions):
        return found
    if tail[0] or head[0].isalpha():
        return None
    if _IPV4.fullmatch(number):
        is_version = len(number) < _IP_DIGITS + 3 or _NO_IP.search(before)
        return None if is_version or not _is_address(number) else Found(start, end, "ip")
    if _is_card(number, before):
        return Found(start, end, "card")
    return found._replace(kind="phone") if _is_phone(head[0] + number, before, regions) else None


def _account(text: str, head: re.Match[str]) -> Found | None:
    """The IBAN that begins with *head*."""
    size = _IBAN_CHARS.get(head[1], "0")
    match = re.compile(rf"(?:[ \xa0]?[0-9A-Z]){{{size}}}(?![^\W_])").match(text, head.start())
    if not match or not match[0]:
        return None
    account = re.sub(r"\s", "", match[0])
    is_right = int("".join(str(int(char, 36)) for char in account[4:] + account[:4])) % 97 == 1
    return Found(*match.span(), "iban") if is_right else None


def _addresses(text: str) -> Iterator[Found]:
    for at in (place.start() for place in re.finditer("::", text)):
        for match in _IPV6.finditer(text, max(0, at - _IPV6_CHARS), at + _IPV6_CHARS):
            is_whole = match.start() <= at < match.end()  # another one may be cut off there, and has its own place
            before = text[max(0, match.start() - 2) : match.start()]
            if is_whole and not _WITHIN.search(before) and _is_address(match[0]):
                yield Found(*match.span(), "ip")


def _is_address(text: str) -> bool:
    """Whether *text* is the public address of one machine."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return address.is_global and not address.is_multicast


def _is_card(text: str, before: str) -> bool:
    digits = re.sub(r"[ \xa0-]", "", text)
    if not _CARD.fullmatch(digits) or not luhn(digits):
        return False
    return text.translate(SHAPE) in _CARD_SHAPES or _CARD_WORD.search(before) is not None


def _is_phone(text: str, before: str, regions: Sequence[str | None]) -> bool:
    """Whether *text* is a number with its country, or one of *regions*, by a word before it or the usual form."""
    said = _PHONE_WORD.search(before.lower())
    is_named = said is not None and len(_OTHER_WORD.findall(said["between"])) <= _OTHER_WORDS
    is_international = "+" in text
    if text.startswith("00"):
        is_international = is_named or not text.isdigit()
        text = "+" + text[2:] if is_international else text
    if not (is_international or is_named or _FORMED.match(text)):
        return False
    is_said = is_international or is_named
    return any(_is_valid(text, region, is_said) for region in ((None,) if is_international else regions))


@lru_cache(maxsize=10_000)
def _is_valid(text: str, region: str | None, as_it_is: bool) -> bool:
    """Whether *text* is a phone number of *region*, if that is given, and *as_it_is* or written as usual there."""
    phonenumbers = _phonenumbers()
    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return False
    if not phonenumbers.is_valid_number(number):
        return False
    usual = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
    return as_it_is or re.findall(r"[0-9]+", usual) == re.findall(r"[0-9]+", text)


class PersonalData:
    """Marks personal data in documents or puts words in their place, and counts them."""

    def __init__(self, mode: str) -> None:
        """*mode* is 'mark' or 'mask'; raises BadInput without the package phonenumbers."""
        require("pii")
        self._mode = mode
        self._documents = 0
        self._found: Counter[str] = Counter()

    def treated(self, document: StoredDocument) -> StoredDocument:
        """*document* with the attribute ``pii``, or with ``<EMAIL>`` and the like in its title and text.

        It is searched as it stands in the file, which spares to divide it: nothing that is found needs an escape, and
        for those beside it their signs stand, in as many characters.
        """
        attributes = document.attributes
        where = (attributes.get("tld", ""), attributes.get("lang", ""))
        body = document.text.partition("\n")[2]
        plain = _ESCAPE.sub(lambda match: unescape(match[0]).rjust(len(match[0])), body) if "&" in body else body
        found = [one for one in find(plain, *where) if not body.startswith(_TAGS, body.rfind("\n", 0, one.start) + 1)]
        title = attributes.get("title", "")
        in_title = find(title, *where)
        if not found and not in_title:
            return document
        self._documents += 1
        self._found.update(one.kind for one in (*found, *in_title))
        if self._mode == "mark":
            changed = {"pii": " ".join(_spans(body, found))}
        else:
            body = _masked(body, found, "&lt;{}&gt;")
            clean = _text(body).removesuffix("\n")
            size = len(clean.encode())
            sizes = {"length": str(size), "words": str(count_words(clean, size))}
            changed = {"title": _masked(title, in_title, "<{}>"), "pii": ""}
            changed |= {name: value for name, value in sizes.items() if name in attributes}
        attributes = {name: value for name, value in (attributes | changed).items() if value}
        text = f"<doc{render_attributes(attributes)}>\n{body}"
        return document._replace(attributes=attributes, text=text)

    def counts(self) -> dict[str, object]:
        """For the manifest: how many documents had personal data, and how much of each kind there was."""
        return {"mode": self._mode, "documents": self._documents, "found": dict(self._found.most_common())}


def _masked(text: str, found: Sequence[Found], form: str) -> str:
    for one in reversed(found):
        text = text[: one.start] + form.format(one.kind.upper()) + text[one.end :]
    return text


def _text(body: str) -> str:
    """The text, a paragraph a line, of the elements in *body*."""
    lines = (line for line in body.split("\n") if not line.startswith(_TAGS))
    return unescape("\n".join(lines).replace("<lb/>", "\n"))


def _spans(body: str, found: Sequence[Found]) -> Iterator[str]:
    """What was *found* in *body*, by its places in the column ``text``."""
    start = read = 0
    for one in found:
        start += len(_text(body[read : one.start]))
        read = one.start
        yield f"{one.kind}:{start}:{start + one.end - one.start}"
