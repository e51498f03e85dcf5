"""National numbers of people, told by their form, their checksum and the word before them.

The rules are those that each state publishes.  Digits alone need their word, since other numbers look like them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import NamedTuple

SHAPE = dict.fromkeys(map(ord, "0123456789"), "9") | dict.fromkeys(range(ord("A"), ord("Z") + 1), "A") | {0xA0: " "}
"""For str.translate: the form of a number has 9 for each digit, and A for each capital letter."""


def _sum(weights: Sequence[int], number: str) -> int:
    return sum(weight * int(digit) for weight, digit in zip(weights, number, strict=False))


def _last(weights: Sequence[int], number: str, remainders: str = "01234567890") -> bool:
    """Whether the sign behind those with *weights* is that for the remainder of their sum by 11."""
    return remainders[_sum(weights, number) % 11] == number[len(weights)]


def luhn(number: str) -> bool:
    doubled = (int(digit) * by for digit, by in zip(number[::-1], cycle((1, 2)), strict=False))
    return sum(sum(divmod(digit, 10)) for digit in doubled) % 10 == 0


def _born(number: str) -> bool:
    """Whether it begins with a day as yymmdd; states add to month or day, for the sex or the century."""
    months = (int(number[2:4]) - more for more in (0, 20, 40, 50, 60, 70, 80))
    days = (int(number[4:6]) - more for more in (0, 40, 60))
    return any(1 <= month <= 12 for month in months) and any(1 <= day <= 31 for day in days)


def _reversed(number: str) -> str:
    """ddmmyy as yymmdd."""
    return number[4:6] + number[2:4] + number[:2]


def _finnish(number: str) -> bool:
    sign = "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(number[:6] + number[-4:-1]) % 31]
    return _born(_reversed(number)) and number[-1] == sign


def _spanish(number: str) -> bool:
    digits = number[:-1].translate(str.maketrans("XYZ", "012"))
    return digits.isdigit() and number[-1] == "TRWAGMYFPDXBNJZSQVHLCKE"[int(digits) % 23]


_ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
"""Values of letters, and of digits, at odd places of an Italian number."""


def _italian(number: str) -> bool:
    values = [int(char) if char.isdigit() else ord(char) - ord("A") for char in number]
    total = sum(_ODD[value] for value in values[0:15:2]) + sum(values[1:15:2])
    return number[8] in "ABCDEHLMPRST" and total % 26 == values[15]


def _german(number: str) -> bool:
    product = 10
    for digit in number[:10]:  # ISO 7064, mod 11,10
        product = ((product + int(digit)) % 10 or 10) * 2 % 11
    return (11 - product) % 10 == int(number[10])


def _baltic(number: str) -> bool:
    sums = (_sum(weights, number) % 11 for weights in ((1, 2, 3, 4, 5, 6, 7, 8, 9, 1), (3, 4, 5, 6, 7, 8, 9, 1, 2, 3)))
    return _born(number[1:]) and next((found for found in sums if found < 10), 0) == int(number[10])


def _turkish(number: str) -> bool:
    tenth = _sum((7, -1, 7, -1, 7, -1, 7, -1, 7), number) % 10
    return number[0] != "0" and tenth == int(number[9]) and _sum((1,) * 10, number) % 10 == int(number[10])


def _chinese(number: str) -> bool:
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    return number[6:8] in ("19", "20") and _born(number[8:]) and _last(weights, number, "10X98765432")


def _norwegian(number: str) -> bool:
    sums = ((3, 7, 6, 1, 8, 9, 4, 5, 2, 1), (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1))
    return all(_sum(weights, number) % 11 == 0 for weights in sums)


def _belgian(number: str) -> bool:
    return _born(number) and int(number[9:]) in (97 - int(century + number[:9]) % 97 for century in ("", "2"))


_CNP = (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)


class _Kind(NamedTuple):
    shapes: str  # forms, divided by |
    word: str  # pattern of the words of which one must stand before; '' if the form says enough
    regions: str  # states of which the text must be, by its domain or language; '' for any
    is_right: Callable[[str], bool]  # by the digits and letters


_KINDS = (
    _Kind("999999/9999", "", "CZ SK", lambda n: _born(n) and int(n) % 11 == 0),
    _Kind("99999999999", "pesel", "", lambda n: _born(n) and _sum((1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1), n) % 10 == 0),
    _Kind("AAAAAA99A99A999A", "", "", _italian),
    _Kind("99999999A|99999999-A|A9999999A|A-9999999-A", r"dni|nie|nif|d\.n\.i", "", _spanish),
    _Kind("9 99 99 99 999 999 99|" + "9" * 15, "", "", lambda n: n[0] in "12" and int(n[:13]) % 97 + int(n[13:]) == 97),
    _Kind("999999999", "bsn|burgerservice|sofi", "", lambda n: _sum((9, 8, 7, 6, 5, 4, 3, 2, -1), n) % 11 == 0),
    _Kind("999999-9999|99999999-9999", "", "SE", lambda n: _born(n[-10:]) and luhn(n[-10:])),
    _Kind("999999-9999", "", "FI", _finnish),
    _Kind("999999-999A|999999A999A|999999A9999", "", "", _finnish),
    _Kind("999.999.999-99", "", "", lambda n: _last(range(-10, -1), n) and _last(range(-11, -1), n)),  # Brazil
    _Kind("9999999999", "егн", "", lambda n: _born(n) and _last((2, 4, 8, 5, 10, 9, 7, 3, 6), n)),  # Bulgaria
    _Kind("9999999999999", "cnp", "", lambda n: _born(n[1:]) and _last(_CNP, n, "01234567891")),  # Romania
    _Kind("99999999999", "isikukood|asmens", "", _baltic),
    _Kind("99999999999", "kimlik|tckn", "", _turkish),
    _Kind("99999999999|99 999 999 999", "steuer-?id|identifikationsnummer|idnr", "", _german),
    _Kind("99999999999999999A|" + "9" * 18, "", "", _chinese),
    _Kind("99.99.99-999.99", "", "", _belgian),
    _Kind("999.9999.9999.99", "", "", lambda n: n[:3] == "756" and _sum((1, 3) * 7, n) % 10 == 0),  # Switzerland
    _Kind("999-999-999 99", "", "", lambda n: _sum(range(9, 0, -1), n) % 101 % 100 == int(n[9:])),  # Russia
    _Kind("999999 99999|99999999999", "f.dselsnummer|personnummer", "", _norwegian),
    _Kind("99999999999", "αμκα", "", lambda n: _born(_reversed(n)) and luhn(n)),  # Greece
)


def is_national_number(text: str, before: str, regions: Sequence[str]) -> bool:
    """Whether *text* is the number of a person; *before* stands before it, and *regions* are states it may be of."""
    kinds = _BY_SHAPE.get(text.translate(SHAPE))
    if not kinds:
        return False
    number = re.sub(r"[^0-9A-Z]", "", text)
    return any(
        (not kind.regions or any(region in kind.regions for region in regions))
        and re.search(rf"(?i)(?<![^\W_])(?:{kind.word})", before) is not None
        and kind.is_right(number)
        for kind in kinds
    )


_SHAPES = {shape for kind in _KINDS for shape in kind.shapes.split("|")}
_BY_SHAPE = {shape: [kind for kind in _KINDS if shape in kind.shapes.split("|")] for shape in _SHAPES}
