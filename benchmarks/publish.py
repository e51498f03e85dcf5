"""What makes a corpus fit to be published: personal data that is found, wrongly found and missed, and what that costs.

    python -m benchmarks.publish [--quick] [--data ../shared/data]

*personal data*: sentences in each language of WORDS (tests/quality/sentences.tsv) with made e-mail addresses, phone
numbers of the language's country, IBANs, cards and IP addresses between them, and as many numbers that are none: dates,
sums, versions, ISBNs, order numbers, UUIDs, coordinates, and IBANs and cards with a wrong digit.  Microseconds of CPU a
page are those of the bundled web's texts, with --data of real pages.  Peer: PhoneNumberMatcher of phonenumbers, which
finds phone numbers alone, with the same country.
"""

from __future__ import annotations

import io
import json
import random
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import phonenumbers

from benchmarks.common import ROOT, arguments, result, table
from benchmarks.equality import bundled_pages
from spiderling.base.files import zstd
from spiderling.corpus.segments import StoredDocument
from spiderling.export.national_numbers import luhn
from spiderling.export.personal_data import Found, PersonalData, find
from spiderling.text.html.parser import parse
from spiderling.text.prevertical import render

WORDS = {
    "bg": "тел.", "cs": "tel.", "de": "Telefon:", "el": "τηλ.", "en": "phone", "es": "teléfono", "et": "tel.",
    "fi": "puh.", "fr": "tél.", "hu": "telefon:", "it": "telefono", "ja": "電話", "lt": "tel.", "lv": "tel.",
    "nl": "tel.", "pl": "tel.", "pt": "telefone", "ro": "telefon", "ru": "телефон", "sk": "tel.", "sl": "tel.",
    "sv": "tel.", "tr": "telefon", "uk": "тел.",
}  # fmt: skip
"""Language -> the word before a phone number."""
REGIONS = {"cs": "CZ", "el": "GR", "en": "GB", "et": "EE", "ja": "JP", "sl": "SI", "sv": "SE", "uk": "UA"}
_KINDS = (phonenumbers.PhoneNumberType.FIXED_LINE, phonenumbers.PhoneNumberType.MOBILE)
_ACCOUNTS = {
    "AT": 16,
    "BE": 12,
    "CZ": 20,
    "DE": 18,
    "DK": 14,
    "ES": 20,
    "FI": 14,
    "HU": 24,
    "PL": 24,
    "PT": 21,
    "SK": 20,
}
_SENTENCES = 8  # of a document; after each stands something made


def digits(draw: random.Random, number: int) -> str:
    return "".join(draw.choices("0123456789", k=number))


def grouped(text: str) -> str:
    return " ".join(text[place : place + 4] for place in range(0, len(text), 4))


def phone(draw: random.Random, language: str) -> str:
    region = REGIONS.get(language, language.upper())
    while True:
        example = str(phonenumbers.example_number_for_type(region, draw.choice(_KINDS)).national_number)
        number = phonenumbers.parse(example[:-4] + digits(draw, 4), region)
        if phonenumbers.is_valid_number(number):
            form = draw.choice((phonenumbers.PhoneNumberFormat.NATIONAL, phonenumbers.PhoneNumberFormat.INTERNATIONAL))
            return str(phonenumbers.format_number(number, form))


def iban(draw: random.Random) -> str:
    country, chars = draw.choice(list(_ACCOUNTS.items()))
    account = digits(draw, chars)
    check = 98 - int(account + "".join(str(ord(char) - 55) for char in country) + "00") % 97
    return grouped(f"{country}{check:02d}{account}")


def card(draw: random.Random) -> str:
    start = draw.choice(("4", "51", "55", "6011")) + digits(draw, 15)
    return grouped(next(start[:15] + last for last in "0123456789" if luhn(start[:15] + last)))


def spoiled(number: str) -> str:
    """*number* with another last digit."""
    return number[:-1] + str((int(number[-1]) + 1) % 10)


MADE: dict[str, Callable[[random.Random], str]] = {
    "email": lambda draw: (
        f"{draw.choice(('jan.novak', 'info', 'a_b+c', 'o-brien'))}@{draw.choice(('posta.cz', 'mail.co.uk', 'x.org'))}"
    ),
    "iban": iban,
    "card": card,
    "ip": lambda draw: (
        f"{draw.randint(101, 126)}.{draw.randint(100, 255)}.{draw.randint(10, 255)}.{draw.randint(1, 255)}"
    ),
}
OTHERS: tuple[Callable[[random.Random], str], ...] = (
    lambda draw: f"{draw.randint(1, 28)}. {draw.randint(1, 12)}. {draw.randint(1900, 2026)}",
    lambda draw: (
        f"{draw.randint(1900, 2026)}-{draw.randint(1, 12):02d}-{draw.randint(1, 28):02d} {draw.randint(0, 23):02d}:30"
    ),
    lambda draw: f"{draw.randint(1900, 2000)}-{draw.randint(2000, 2026)}",
    lambda draw: f"{draw.randint(1, 99)} {digits(draw, 3)} {digits(draw, 3)}",
    lambda draw: f"{draw.randint(1, 99)},{digits(draw, 3)},{digits(draw, 3)}.{digits(draw, 2)}",
    lambda draw: f"ISBN 978-80-{digits(draw, 4)}-{digits(draw, 3)}-{digits(draw, 1)}",
    lambda draw: f"v{draw.randint(1, 20)}.{draw.randint(0, 30)}.{draw.randint(0, 99)}.{draw.randint(0, 999)}",
    lambda draw: digits(draw, draw.randint(7, 18)),
    lambda draw: str(uuid.UUID(int=draw.getrandbits(128))),
    lambda draw: f"{draw.randint(-90, 89)}.{digits(draw, 7)}, {draw.randint(-180, 179)}.{digits(draw, 7)}",
    lambda draw: f"No. {digits(draw, 4)}/{digits(draw, 4)}",
    lambda draw: f"19-{digits(draw, 10)}/0800",
    lambda draw: f"{draw.randint(0, 9)}.{digits(draw, 12)}",
    lambda draw: spoiled(iban(draw)),
    lambda draw: spoiled(card(draw)),
)


def documents(number: int) -> Iterator[tuple[str, str, list[Found]]]:
    """Language, text and what is in it, of *number* documents in each language."""
    draw = random.Random(1)
    lines = [line.split("\t") for line in (ROOT / "tests/quality/sentences.tsv").read_text("utf-8").splitlines()]
    for language, word in WORDS.items():
        sentences = [row[1] for row in lines if row[0] == language] or ["…"]
        for _ in range(number):
            text, made = "", []
            for place in range(_SENTENCES):
                kind = draw.choice(("phone", *MADE)) if place % 2 else ""
                value = (
                    phone(draw, language)
                    if kind == "phone"
                    else MADE[kind](draw)
                    if kind
                    else draw.choice(OTHERS)(draw)
                )
                text += f"{draw.choice(sentences)} {word if kind == 'phone' else ''} "
                if kind:
                    made.append(Found(len(text), len(text) + len(value), kind))
                text += f"{value}{draw.choice(('.', ',', ';', ''))}\n"
            yield language, text, made


def quality(number: int) -> Counter[str]:
    """Counts of what is right, wrong and missed, of all and by kind."""
    found: Counter[str] = Counter()
    for language, text, made in documents(number):
        ours = set(find(text, "", language))
        found.update({"right": len(ours & {*made}), "wrong": len(ours - {*made}), "missed": len({*made} - ours)})
        region = REGIONS.get(language, language.upper())
        theirs = {(one.start, one.end) for one in phonenumbers.PhoneNumberMatcher(text, region)}
        phones = {(one.start, one.end) for one in made if one.kind == "phone"}
        found.update({"phones": len(phones), "peer right": len(theirs & phones), "peer wrong": len(theirs - phones)})
        ours_phones = {(one.start, one.end) for one in ours if one.kind == "phone"}
        found.update({"phones right": len(ours_phones & phones), "phones wrong": len(ours_phones - phones)})
    return found


def texts(data: Path | None) -> list[str]:
    """The texts of pages, a paragraph a line."""
    if data is None:
        return ["\n".join(block.text for block in parse(body).blocks) for body in bundled_pages()]
    with zstd.ZstdFile(data / "wcxb-dev.jsonl.zst") as file:
        return [json.loads(line)["gold"] for line in io.TextIOWrapper(file, "utf-8")]


def microseconds(work: Callable[[Any], object], pages: Sequence[Any]) -> float:
    """CPU time of *work* for each of *pages*, the least of three runs."""
    took = []
    for _ in range(3):
        start = time.process_time()
        for page in pages:
            work(page)
        took.append(time.process_time() - start)
    return 1e6 * min(took) / len(pages)


def main() -> None:
    options = arguments(__doc__)
    found = quality(20 if options.quick else 200)
    pages = texts(options.data)
    attributes = {"url": "http://a.test/", "lang": "en", "tld": "com", "length": "1", "words": "1"}
    stored = [
        StoredDocument(attributes, render(attributes, [(line, ' class="good"') for line in text.split("\n") if line]))
        for text in pages
    ]
    cost = {mode: microseconds(PersonalData(mode).treated, stored) for mode in ("mark", "mask")}
    peer = microseconds(lambda text: list(phonenumbers.PhoneNumberMatcher(text, "US")), pages[::20])
    precision = found["right"] / (found["right"] + found["wrong"])
    recall = found["right"] / (found["right"] + found["missed"])
    table(
        ("personal data", "ours", "PhoneNumberMatcher"),
        [
            ("right of all", f"{recall:.3f}", ""),
            ("right of what was found", f"{precision:.3f}", ""),
            ("phone numbers found", found["phones right"] / found["phones"], found["peer right"] / found["phones"]),
            ("other numbers taken for phone numbers", found["phones wrong"], found["peer wrong"]),
            *((f"microseconds a page, {mode}", f"{took:.0f}", f"{peer:.0f}") for mode, took in cost.items()),
        ],
    )
    chars = sum(map(len, pages)) / len(pages)
    result(
        precision=precision, recall=recall, found=found["right"], languages=len(WORDS), us_mark=cost["mark"],
        us_mask=cost["mask"], peer_us=peer, pages=len(pages), chars_a_page=chars,
    )  # fmt: skip


if __name__ == "__main__":
    main()
