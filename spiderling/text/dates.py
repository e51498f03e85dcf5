"""Reads dates as pages write them: ISO 8601, RFC 5322, numbers, and names of months in about 100 languages.

What may mean two days means none: ``3/4/2021``, or a name of a month that languages do not share, without a language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from importlib.resources import files
from operator import itemgetter

from spiderling.text.html.blocks import Block

_ISO = re.compile(
    r"(?P<year>(?:19|20)\d\d)-?(?P<month>0[1-9]|1[0-2])-?(?P<day>0[1-9]|[12]\d|3[01])"
    r"(?:[T ](?P<time>\d\d:\d\d(?::\d\d)?)(?:\.\d+)?(?P<zone>Z|[+-]\d\d:?\d\d)?)?(?!\d)"
)
_YEAR = re.compile(r"\d{4}")
_TEXT, _TAG = (itemgetter(Block._fields.index(name)) for name in ("text", "tag"))
_YEARS = range(1900, 2100)
_THAI_AHEAD = 543  # years by which the Thai calendar is ahead
_TOKEN = re.compile(r"\d+(?:\.\d+)*|[^\s\d.,;:()/|_’'ºª°-]+")
_NAMED = re.compile("de{0,2}me?y|me?de?e?y|ye?me?d")
"""Dates with the name of a month, each token a letter: day, month, year; e is a short word or the ending of a number,
as in 3 de abril or 1st."""
_SHORT = 3  # letters of such a word at most
_NUMBERS = re.compile(
    r"(?<!\d)(\d{1,4})\s?(?:([./-])|[年년]|(?<=\s)(?:tháng|thg)\s)\s?(\d{1,2})\s?"
    r"(?(2)\2|(?:[月월]|,?\s(?:năm\s)?))\s?(\d{1,4})(?!\d)"
)
"""Dates in numbers, with one sign between them, or as in East Asia and in Vietnamese."""
_IN_PATH = re.compile(r"/((?:19|20)\d\d)([/-]?)(0[1-9]|1[0-2])\2(0[1-9]|[12]\d|3[01])(?!\d)")
_MAX_CHARS = 100  # characters of a block that may be a date and little more; these two by benchmarks/text.py
_LONG = 120  # characters of a block with which a text begins
_BEFORE = 5  # blocks before the title among which its date may stand; chosen


def iso_date(text: str, language: str | None = None) -> str:
    """*text*, a date, as YYYY-MM-DD, with THH:MM[:SS][zone] if it gives a time by ISO 8601 or RFC 5322; else ''.

    The name of a month may be in *language*.
    """
    match = _ISO.match(text.strip())
    if match:
        time = f"T{match['time']}{match['zone'] or ''}" if match["time"] else ""
        return f"{match['year']}-{match['month']}-{match['day']}{time}"
    try:
        return parsedate_to_datetime(text[:60]).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return next(_days(text[:_MAX_CHARS], language), "")


def seconds_of(text: str) -> float | None:
    """The time that *text* gives, as in `iso_date`, in seconds since 1970; without a zone it is UTC, a day begins."""
    try:
        when = datetime.fromisoformat(iso_date(text))
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def day_in_address(url: str) -> str:
    """The day that the path of *url* names, as in /2021/04/03/; '' for none."""
    match = _IN_PATH.search(url)
    return f"{match[1]}-{match[3]}-{match[4]}" if match else ""


def shown_day(blocks: Sequence[Block], language: str | None) -> str:
    """The only day that short *blocks* name, from shortly before the title of a page to where its text begins; else ''.

    Headings count only if they are the title, since those of other articles may be dated.
    """
    tags = list(map(_TAG, blocks))
    title = tags.index("h1") if "h1" in tags else 0
    start = max(0, title - _BEFORE)
    end = next((place for place, text in enumerate(map(_TEXT, blocks)) if place > title and len(text) >= _LONG), None)
    found: set[str] = set()
    for place, (text, is_heading, *_) in enumerate(blocks[start:end], start):
        if len(text) <= _MAX_CHARS and (place == title or not is_heading) and _YEAR.search(text):
            found.update(_days(text, language))
    return found.pop() if len(found) == 1 else ""


def _days(text: str, language: str | None) -> Iterator[str]:
    """The days that *text* names."""
    text = text.casefold()
    months = _months(language)
    tokens = _TOKEN.findall(text)
    letters = "".join([_letter(token, months, language) for token in tokens])
    for match in _NAMED.finditer(letters):
        said = dict(zip(match[0], tokens[match.start() :], strict=False))
        with suppress(ValueError):  # there is no 31 February
            yield _iso(said["y"], months[said["m"]], int(said["d"]))
    for first, sign, second, third in _NUMBERS.findall(text):
        day, month, year = int(first), int(second), third
        if len(first) == 4:
            day, year = int(third), first
        elif sign in ("/", "-") and month > 12:
            day, month = month, day
        elif sign in ("/", "-") and day <= 12 and day != month:
            continue
        if _is_year(year, language):
            with suppress(ValueError):
                yield _iso(year, month, day)


def _letter(token: str, months: Mapping[str, int], language: str | None) -> str:
    """What a token may be in a date (_NAMED)."""
    if token[0].isdecimal():
        is_day = len(token) <= 2 and 1 <= int(token) <= 31
        return "d" if is_day else "y" if _is_year(token, language) else "-"
    return "m" if token in months else "e" if len(token) <= _SHORT else "-"


def _is_year(digits: str, language: str | None) -> bool:
    year = int(digits) if len(digits) == 4 and digits.isdecimal() else 0
    return year in _YEARS or (language == "th" and year - _THAI_AHEAD in _YEARS)


def _iso(year: str, month: int, day: int) -> str:
    """The day by ISO 8601; raises ValueError if there is no such day."""
    return date(int(year) - (0 if int(year) in _YEARS else _THAI_AHEAD), month, day).isoformat()


@lru_cache(maxsize=32)
def _months(language: str | None) -> Mapping[str, int]:
    """Name of a month in small letters -> its number: the names in *language*, and those that mean one month in all."""
    own: dict[str, int] = {}
    every: dict[str, set[int]] = {}
    for line in files("spiderling.text").joinpath("months.txt").read_text("utf-8").splitlines()[1:]:
        code, *months = line.split()
        for number, names in enumerate(months, 1):
            for name in names.split("/"):
                every.setdefault(name, set()).add(number)
                if code == language:
                    own[name] = number
    return {name: numbers.pop() for name, numbers in every.items() if len(numbers) == 1} | own
