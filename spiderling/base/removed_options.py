"""Removed options: what replaces each, and how a crawl that was begun with one goes on."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, NamedTuple

from spiderling.base.option_values import MOST_TRAP_PAGES, PREFIX, converted


class Fixed(NamedTuple):
    """An option that became a constant."""

    value: float | str
    """The constant."""
    reason: str
    """Why nobody has a reason to change it: the end of a sentence."""

    @property
    def shown(self) -> str:
        """The constant as a user writes it."""
        return self.value if isinstance(self.value, str) else f"{self.value:.10g}"


class Following(NamedTuple):
    """An option that is a share of another one now."""

    option: str
    """The field of Options that it follows."""
    share: float


class Merged(NamedTuple):
    """An option that became a part of another one."""

    option: str
    """The field of Options that holds the part now."""
    part: str
    """Format of the part, with the value at ``{}``."""
    default: float
    low: float = 0
    """Values below it are taken for it."""
    high: float = inf
    """Values above it are taken for it."""


FIXED = {
    "worker_pages": Fixed(10_000, "SPIDERLING_WORKER_GROWTH_BYTES renews a text worker that needs too much memory"),
    "max_path_depth": Fixed(30, "only traps have paths of more segments"),
    "dns_timeout_s": Fixed(3.0, "there are three attempts, and later ones wait longer"),
    "dns_min_ttl_s": Fixed(60.0, "a name with a shorter time would be asked for before nearly each request"),
    "dns_max_ttl_s": Fixed(3600.0, "addresses seldom change within an hour"),
    "dns_negative_s": Fixed(3600.0, "SPIDERLING_RETRIES says how often a name is asked for before it counts as dead"),
    "robots_stale_s": Fixed(2_592_000.0, "RFC 9309 names 30 days"),
    "max_redirects": Fixed(5, "RFC 9309 names five, and longer chains are loops or logins"),
    "max_links": Fixed(5000, "the parser takes no more links from a page"),
    "slow_window_s": Fixed(10.0, "SPIDERLING_MIN_BYTES_PER_S says what is slow"),
    "stop_timeout_s": Fixed(10.0, "what is cut off is fetched again when the crawl goes on"),
    "min_cosine": Fixed(0.5, "the method cosine is that of papers, which name this value"),
    "dedup_snapshot_s": Fixed(600.0, "a start after a kill reads the documents since the last snapshot again"),
    "crowd": Fixed("fixed", "SPIDERLING_ACTIVE_HOSTS says how many hosts are at work"),
    "learning": Fixed("off", "weights that a crawl learnt gave no more text than those that it begins with"),
    "checkpoint_pages": Fixed(256, "SPIDERLING_CHECKPOINT_S says how often checkpoints are made"),
}
"""Options that became constants."""
FOLLOWING = {"page_cpu_s": Following("page_timeout_s", 0.5)}
"""Options that follow another one."""
MERGED = {
    "min_page_bytes": Merged("quality", "page_bytes={}..", 0),
    "min_text_chars": Merged("quality", "text_chars={}..", 250),
    "max_badness": Merged("quality", "badness=..{}", 50.0),
    "min_stopword_share": Merged("quality", "stopword_share={}..", 0.05, high=1),
    "min_sentence_words": Merged("quality", "sentence_words={}..", 0.0),
    "max_sentence_words": Merged("quality", "sentence_words=..{}", 200.0, low=1),
    "max_repeated_share": Merged("quality", "repeated_share=..{}", 0.6, high=1),
    "max_digit_share": Merged("quality", "digit_share=..{}", 0.25, high=1),
    "max_symbol_share": Merged("quality", "symbol_share=..{}", 0.15, high=1),
    "min_good_share": Merged("quality", "good_share={}..", 0.0, high=1),
    "min_packed_share": Merged("quality", "packed_share={}..", 0.1, high=1),
    "max_top_word_share": Merged("quality", "top_word_share=..{}", 0.2, high=1),
    "max_outlinks": Merged("quality", "outlinks=..{}", 20),
    "trap_pages": Merged("traps", "pages={}", 20, high=MOST_TRAP_PAGES),
    "trap_copies": Merged("traps", "copies={}", 5),
    "trap_subdomains": Merged("traps", "subdomains={}", 10),
    "trap_mirror": Merged("traps", "mirror={}", 10),
}
"""Options that became a part of another one."""


REMOVED = frozenset((*FIXED, *FOLLOWING, *MERGED))


def translated(values: Mapping[str, Any]) -> dict[str, Any]:
    """*values* with each merged option moved into the option that holds it; other removed ones stay.

    The new form of any value is accepted.  Raises BadInput for a value that is no number.

    >>> translated({"retries": 2, "max_digit_share": 0.3, "max_badness": 50.0})
    {'retries': 2, 'quality': 'standard,digit_share=..0.3'}
    """
    found = {name: value for name, value in values.items() if name not in MERGED}
    for name, (option, part, default, low, high) in MERGED.items():
        value = values.get(name)
        value = default if value is None else converted(PREFIX + name.upper(), type(default), value)
        if value != default:
            value = min(max(value, low), high)
            written = value if isinstance(value, int) else f"{value:.15g}"
            found[option] = f"{found.get(option) or 'standard'},{part.format(written)}"
    return found


def refusal(values: Mapping[str, Any]) -> str:
    """What to write in place of the removed options among *values*; '' if there are none.

    Those that are None, which stands for the default, are no matter.  Raises BadInput for a value that is no number.
    """
    told: dict[str, list[str]] = {}
    for name in sorted(name for name, value in values.items() if value is not None):
        advice = _advice(name, values)
        if advice:
            told.setdefault(advice, []).append(PREFIX + name.upper())
    sentences = [
        f"there {'is no option' if len(names) == 1 else 'are no options'} {', '.join(names)} any more: {advice}"
        for advice, names in told.items()
    ]
    return " Also, ".join(sentences)


def _advice(name: str, values: Mapping[str, Any]) -> str | None:
    """What to do about the option *name*; None if it is no removed one."""
    if name in FIXED:
        return f"it is {FIXED[name].shown} now, since {FIXED[name].reason}; leave it out."
    if name in FOLLOWING:
        followed, share = FOLLOWING[name]
        return f"it is {share:g} times {PREFIX}{followed.upper()} now; leave it out, or change that one."
    if name not in MERGED:
        return None
    option = MERGED[name].option
    said = translated(values).get(option) or "standard"
    return f"write {PREFIX}{option.upper()}={said} instead."
