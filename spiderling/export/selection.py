"""Selects documents of a corpus, and says to which part of the output each goes."""

from __future__ import annotations

import fnmatch
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import xxhash

from spiderling.base.errors import BadInput
from spiderling.base.extras import require
from spiderling.base.lists import DropList
from spiderling.export.formats import number

_CONDITION = re.compile(r"\s*([\w:.-]+?)\s*(<=|>=|!=|=|<|>)\s*(.*?)\s*", re.DOTALL)
_COMPARISONS: dict[str, Callable[[float | str, float | str], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_MOST_VALUES = 1000
"""Values of an attribute that are counted for a warning (chosen: bounds the memory)."""
_MOST_NAMED = 5
"""Values that a warning names (chosen)."""
SCARCE_WORDS = 100_000_000
"""Words of a corpus below which its language is scarce (chosen: those of Suchomel 2017 have 3 to 80 million)."""
_WORTH_A_WARNING = 0.02
"""Share of the words of a scarce language that a cut by distance may take without a warning (chosen)."""


class Condition:
    """``attribute OP value``.  ``=`` and ``!=`` compare with a list of patterns (commas, ``*``); ``< > <= >=`` compare
    numbers if the value is one, else texts.  As in SQL, a document without the attribute meets no condition on it.
    """

    def __init__(self, text: str) -> None:
        """Raises BadInput if *text* is no condition."""
        match = _CONDITION.fullmatch(text)
        if match is None or not match[3] or match[3][0] in "<>=":
            raise BadInput(f"{text!r} is no condition; write one as distance<=3, lang=cs,sk or crawl_date>=2026-01.")
        self.text = text
        self.attribute, self._sign, self._value = match.groups()
        self._number = number(self._value)
        self.is_met = False
        """Whether any document met it."""
        self.others: Counter[str] = Counter()
        """Values of the attribute in documents before the first that met it."""

    def holds(self, attributes: Mapping[str, str]) -> bool:
        value = attributes.get(self.attribute)
        if value is None:
            return False
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
        self._seed = seed
        self.left_out: Counter[str] = Counter()
        """Condition, or "sample" -> number of documents that it left out."""
        self._words: Counter[tuple[str, bool]] = Counter()

    def takes(self, attributes: Mapping[str, str]) -> bool:
        """Whether the document with *attributes* is taken; if not, counts it in `left_out`."""
        failed = [condition for condition in self.conditions if not condition.holds(attributes)]
        if self._distance is not None and (not failed or failed == [self._distance]):
            self._words[attributes.get("lang", ""), bool(failed)] += int(number(attributes.get("words", "")) or 0)
        key = f"{self._seed}\n{attributes.get('id') or attributes.get('url', '')}".encode("utf-8", "replace")
        if not failed and xxhash.xxh3_64_intdigest(key) < self._share * 2**64:
            return True
        self.left_out[failed[0].text if failed else "sample"] += 1
        return False

    def described(self) -> dict[str, object]:
        """Conditions, sample and `left_out`, for the manifest."""
        conditions = [condition.text for condition in self.conditions]
        return {"where": conditions, "sample": self._share, "seed": self._seed, "left_out": dict(self.left_out)}

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
        return f"No document has the attribute {condition.attribute}, so none meets {condition.text}."
    values = ", ".join(f"{value} ({times:,})" for value, times in condition.others.most_common(_MOST_NAMED))
    return f"No document meets {condition.text}; what they have as {condition.attribute} is, for example, {values}."


# -- parts


def _quality(attributes: Mapping[str, str]) -> str:
    """The part by badness; the limits: Schäfer et al. 2014 select up to 10, their program texrex keeps up to 35."""
    badness = number(attributes.get("badness", ""))
    if badness is None:
        return ""
    return "badness-to-10" if badness <= 10 else "badness-to-35" if badness <= 35 else "badness-above-35"


SPLITS: dict[str, Callable[[Mapping[str, str]], str]] = {
    "lang": lambda attributes: attributes.get("lang", ""),
    "tld": lambda attributes: attributes.get("tld", ""),
    "host": lambda attributes: attributes.get("host", ""),
    "distance": lambda attributes: f"distance-{attributes['distance']}" if "distance" in attributes else "",
    "date": lambda attributes: attributes.get("crawl_date", "")[:7],
    "quality": _quality,
}
"""Name of a split -> function from attributes to the part, "" for unknown; a part by date is a month."""
_MAX_PART_BYTES = 100
"""Bytes of a part's name in a file's name (chosen: file systems allow 255 bytes for all)."""


@dataclass(frozen=True)
class Plan:
    """Which documents an export writes, and into which files; raises BadInput if the format's package is missing."""

    out: Path
    """The file; with splits, its name is the pattern of the files' names."""
    format_name: str
    splits: tuple[str, ...] = ()
    """Keys of SPLITS, the first one outermost."""
    shard_bytes: int = 0
    """Bytes from which on another file follows; 0: no limit."""
    selection: Selection = field(default_factory=Selection)
    drop: DropList = field(default_factory=DropList)
    """Hosts and URLs whose documents are left out."""
    lists: Mapping[str, int] = field(default_factory=dict)
    """File with entries of `drop` -> number of its entries."""

    def __post_init__(self) -> None:
        if self.format_name == "parquet":
            require("parquet")

    def part_of(self, attributes: Mapping[str, str]) -> str:
        """The part of a document, as text for a file's name; "" without splits."""
        return ".".join(_safe(SPLITS[split](attributes)) for split in self.splits)

    def beside(self, ending: str) -> Path:
        """The path of the output with *ending* appended."""
        return self.out.with_name(self.out.name + ending)


def _safe(name: str) -> str:
    name = re.sub(r"[^\w.-]", "_", name) or "unknown"
    if len(name.encode()) > _MAX_PART_BYTES:
        return f"{name[:20]}-{xxhash.xxh3_64_hexdigest(name.encode())}"
    return name
