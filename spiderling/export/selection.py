"""Selects documents of a corpus by conditions on their attributes, and draws samples."""

from __future__ import annotations

import fnmatch
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta

import xxhash

from spiderling.base.errors import BadInput
from spiderling.base.printing import hint
from spiderling.export.formats import number

_CONDITION = re.compile(r"\s*([\w:.-]+?)\s*(<=|>=|!=|=|<|>)\s*(.*?)\s*", re.DOTALL)
_COMPARISONS: dict[str, Callable[[float | str, float | str], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d))?)?)?)?")
_AGE = re.compile(r"(\d{1,6})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_MOST_VALUES = 1000
"""Values of an attribute that are counted for a warning (chosen: bounds the memory)."""
_MOST_NAMED = 5
"""Values that a warning names (chosen)."""
SCARCE_WORDS = 100_000_000
"""Words of a corpus below which its language is scarce (chosen: those of Suchomel 2017 have 3 to 80 million)."""
_WORTH_A_WARNING = 0.02
"""Share of the words of a scarce language that a cut by distance may take without a warning (chosen)."""


def fetched(since: str, until: str, now: datetime) -> list[str]:
    """The conditions of documents that were fetched from *since* on and before *until*; "" for no bound.

    A bound is a year, month, day or minute in UTC, or an age before *now*, such as 30d.  Raises BadInput.
    """
    first = _bound(since, now)
    last = _bound(until, now)
    if first and last and first >= last:
        raise BadInput(f"no document is fetched since {since} and until {until}: documents before --until are taken.")
    return [f"crawl_date{sign}{bound}" for sign, bound in ((">=", first), ("<", last)) if bound]


def _bound(text: str, now: datetime) -> str:
    """*text* as the beginning of a ``crawl_date``, with at least its month, so that it is compared as text."""
    age = _AGE.fullmatch(text)
    match = _DATE.fullmatch(text)
    try:
        if age is not None:
            return f"{now.astimezone(UTC) - int(age[1]) * _UNITS[age[2]]:%Y-%m-%d %H:%M:%S}"
        if match is not None:
            year, month, day, hour, minute, second = (int(part) if part else None for part in match.groups())
            datetime(year or 0, month or 1, day or 1, hour or 0, minute or 0, second or 0)  # raises if there is none
    except (ValueError, OverflowError):
        match = None
    if text and match is None:
        raise BadInput(
            f"{text!r} is no date; write one as 2026-06, 2026-06-30 or '2026-06-30 18:00' (UTC), or 30d for an age."
        )
    return text.replace("T", " ") if len(text) != len("2026") else f"{text}-01"


class Condition:
    """``attribute OP value``.  ``=`` and ``!=`` compare with a list of patterns (commas, ``*``); ``< > <= >=`` compare
    numbers if the value is one, else texts.  A document without the attribute meets ``!=`` and no other condition.
    """

    def __init__(self, text: str) -> None:
        """Raises BadInput if *text* is no condition."""
        match = _CONDITION.fullmatch(text)
        if match is None or not match[3] or match[3][0] in "<>=":
            raise BadInput(
                f"{text!r} is no condition; write one as distance<=3, lang=cs,sk, host!=*.a.example or "
                f"crawl_date>=2026-01 (= != < <= > >= are known)."
            )
        self.text = text
        self.attribute, self._sign, self._value = match.groups()
        self._number = number(self._value)
        self.is_met_without = self._sign == "!="
        """Whether a document without the attribute meets it."""
        self.is_met = False
        """Whether any document that has the attribute met it."""
        self.others: Counter[str] = Counter()
        """Values of the attribute in documents before the first that met it."""
        self.names: dict[str, None] = {}
        """Attributes of documents, until one has the attribute."""

    def holds(self, attributes: Mapping[str, str]) -> bool:
        value = attributes.get(self.attribute)
        if value is None:
            if not self.others and not self.is_met:
                self.names |= dict.fromkeys(attributes)
            return self.is_met_without
        is_met = self._compares(value)
        self.is_met |= is_met
        if not self.is_met and (value in self.others or len(self.others) < _MOST_VALUES):
            self.others[value] += 1
        return is_met

    def _compares(self, value: str) -> bool:
        if self._sign in ("=", "!="):
            equal = any(fnmatch.fnmatchcase(value, wanted.strip()) for wanted in self._value.split(","))
            return equal is (self._sign == "=")
        if self._number is None:
            return _COMPARISONS[self._sign](value, self._value)
        theirs = number(value)
        return theirs is not None and _COMPARISONS[self._sign](theirs, self._number)


class Selection:
    """Conditions, all of which must hold, then a sample of the documents that meet them."""

    def __init__(
        self, conditions: Iterable[str] = (), max_distance: int | None = None, share: float = 1, seed: str = ""
    ) -> None:
        """*share*: size of the sample, which ids and *seed* determine; a smaller sample is part of a larger one.

        Raises BadInput.
        """
        if not 0 < share <= 1:
            raise BadInput(f"a sample of {share} cannot be drawn; give a share above 0 and up to 1, such as 0.01.")
        self.conditions = [Condition(text) for text in conditions]
        self._distance = None if max_distance is None else Condition(f"distance<={max_distance}")
        if self._distance is not None:
            self.conditions.append(self._distance)
        self._share = share
        self.seed = seed
        self.left_out: Counter[str] = Counter()
        """Condition, or "sample" -> number of documents that it left out."""
        self._words: Counter[tuple[str, bool]] = Counter()

    def takes(self, attributes: Mapping[str, str]) -> bool:
        """Whether the document with *attributes* is taken; if not, counts it in `left_out`."""
        failed = [condition for condition in self.conditions if not condition.holds(attributes)]
        if self._distance is not None and (not failed or failed == [self._distance]):
            self._words[attributes.get("lang", ""), bool(failed)] += int(number(attributes.get("words", "")) or 0)
        key = f"{self.seed}\n{attributes.get('id') or attributes.get('url', '')}".encode("utf-8", "replace")
        if not failed and xxhash.xxh3_64_intdigest(key) < self._share * 2**64:
            return True
        self.left_out[failed[0].text if failed else "sample"] += 1
        return False

    def described(self) -> dict[str, object]:
        """Conditions, sample and `left_out`, for the manifest."""
        conditions = [condition.text for condition in self.conditions]
        return {"where": conditions, "sample": self._share, "seed": self.seed, "left_out": dict(self.left_out)}

    def warnings(self) -> list[str]:
        """Warnings: conditions that no document met; cuts by distance in scarce languages (see Suchomel 2017)."""
        found = [_unmet(condition) for condition in self.conditions if not condition.is_met]
        for language in sorted({language for language, _ in self._words}):
            near = self._words[language, False]
            far = self._words[language, True]
            if near + far < SCARCE_WORDS and far > _WORTH_A_WARNING * (near + far):
                found.append(
                    f"The cut by distance takes {far:,} of {near + far:,} words of {language or 'no stated language'}: "
                    "with so little text, what it loses may be worth more than the spam that it keeps out."
                )
        return found


def _unmet(condition: Condition) -> str:
    if not condition.others:
        known = hint(condition.attribute, condition.names) if condition.names else "there is no document."
        met_by = "all meet" if condition.is_met_without else "none meets"
        return f"No document has the attribute {condition.attribute}, so {met_by} {condition.text}; {known}"
    values = ", ".join(f"{value} ({times:,})" for value, times in condition.others.most_common(_MOST_NAMED))
    return f"No document that has {condition.attribute} meets {condition.text}; they have, for example, {values}."
