"""Estimators of how much new text a link promises; each is a pure function of the link's Cues.

The idea is that of HeidiX' FocusedWalker (Schäfer et al. 2014, section 5), a container of pluggable estimators.  From
that paper are host yield, quality of the linking page, block of the link, and the language guessed from the URL.  The
others are our own.

An estimator returns -1 to 1, and 0 if it knows nothing.  worth.py adds them up with weights and makes the sum a rank.
An estimator has no branches, since it works on arrays, which have an entry for each link of a page.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from spiderling.base.errors import BadInput
from spiderling.base.printing import hint
from spiderling.base.reasons import Reason

_QUALITY = {
    Reason.KEPT: 1.0,
    Reason.BOILERPLATE_ONLY: 0.2,  # home pages and hubs lead to the articles
    Reason.NEEDS_SCRIPT: 0.2,
    Reason.WRONG_LANGUAGE: -1.0,
}
"""Quality of a page, as a cue for its links, by how the page ended (chosen)."""
_WORST_BADNESS = 40.0
"""Badness from which on a page counts as the worst (chosen)."""
BADNESS_STEP = _WORST_BADNESS / 10
"""Pages whose badness differs by less than this may count as alike: it moves the quality by .05 (chosen)."""
Signal: TypeAlias = Any
"""A number, or an array of numbers."""


@dataclass(slots=True)
class Cues:
    """What is known of a link before its URL is fetched."""

    same_host: Signal = False
    quality: Signal = 0.0
    """``page_quality`` of the linking page."""
    block: Signal = 0.0
    """1 in running text, else -1: the likelier case is taken as certain, as in Schäfer et al. 2014, Table 3."""
    host: Signal = 0.0
    """Yield rate of the target's host compared with the whole crawl's, -1 to 1."""
    trust: Signal = 0.0
    """How much is known of the target's host, 0 (nothing) to 1."""
    language: Signal = 0.0
    """Share of the target host's pages in a wanted language compared with the whole crawl's, -1 to 1."""
    section: Signal = 0.0
    """Yield rate of the target's section (first part of the path) compared with its host's, -1 to 1."""
    url: Signal = 0.0
    """The language guessed from the words of the URL, -1 to 1; the name of a known host counts less (url_words.py)."""
    said: Signal = 0
    """The language by hreflang: 1 a wanted one, -1 another one, 0 not given."""


def page_quality(reason: Reason, relevant: bool, badness: float) -> float:
    """Quality of a page, -1 (in another language) to 1 (text with usual function words), by how it ended."""
    quality = _QUALITY.get(reason, 0.2 if relevant else 0.0)
    return quality - 0.5 * min(badness / _WORST_BADNESS, 1.0) if reason is Reason.KEPT else quality


ESTIMATORS: dict[str, tuple[Callable[[Cues], Signal], float]] = {
    "host": (lambda cues: cues.host * cues.trust, 3.0),
    "language": (lambda cues: cues.language, 2.0),
    "section": (lambda cues: cues.section, 1.5),
    "page-inside": (lambda cues: cues.quality * cues.same_host, 0.7),
    "page-outside": (lambda cues: cues.quality * (1.0 - cues.trust) * (1.0 - cues.same_host), 1.5),
    "block": (lambda cues: cues.block, 0.8),
    "url": (lambda cues: cues.url, 1.5),
    "hreflang": (lambda cues: cues.said, 1.0),
}
"""Name -> estimator, and its weight in log-odds (chosen)."""
HIGHEST_WEIGHT = 8.0
"""The highest weight that a user may set (chosen)."""


def parse_weights(text: str) -> dict[str, float]:
    """The weights of a list such as ``host=3,section=0``; raises BadInput for anything else."""
    weights: dict[str, float] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, _, value = map(str.strip, part.partition("="))
        if name not in ESTIMATORS:
            raise BadInput(f"SPIDERLING_ESTIMATORS has {name!r}; {hint(name, ESTIMATORS)}")
        try:
            weights[name] = float(value)
        except ValueError:
            weights[name] = -1.0
        if not 0 <= weights[name] <= HIGHEST_WEIGHT:
            raise BadInput(
                f"SPIDERLING_ESTIMATORS has {part!r}; write a weight of 0 (off) to {HIGHEST_WEIGHT:g}, as {name}=1."
            )
    return weights
