"""Worth of a link: estimators of how much new text it promises, each a pure function of its Cues.

After the FocusedWalker of HeidiX (Schäfer et al. 2014, section 5), a container of pluggable
weight estimators: host yield, quality of the linking page, the block of the link and the
language guessed from the URL are the paper's, the others ours.  An estimator gives -1 to 1,
0 when it knows nothing; worth.py weighs them and makes a rank of the sum.  It is arithmetic
without branches, so that Cues of numbers give a number, and those of arrays (an entry for
each link of a page) an array.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from spiderling.base.errors import BadInput
from spiderling.base.hints import hint
from spiderling.base.reasons import Reason

_QUALITY = {
    Reason.KEPT: 1.0,
    Reason.DUPLICATE: 0.2,
    Reason.NEAR_DUPLICATE: 0.2,
    Reason.BAD_QUALITY: 0.2,
    Reason.BOILERPLATE_ONLY: 0.2,  # home pages and hubs lead to the articles
    Reason.WRONG_LANGUAGE: -1.0,
}
_WORST_BADNESS = 40.0
_USUAL_ANCHOR, _LONG_ANCHOR = 15, 60
ANCHORS = [0.0] + [max(-1.0, min(1.0, (n - _USUAL_ANCHOR) / (_LONG_ANCHOR - _USUAL_ANCHOR))) for n in range(1, 256)]
"""What the characters of a link's text, 255 at most, tell as a Cue."""
_FAR = 10
Signal: TypeAlias = Any
"""A number, or an array of numbers."""


@dataclass(slots=True)
class Cues:
    """What is known of a link before it is followed."""

    same_host: Signal = False
    quality: Signal = 0.0
    """Of the linking page, as ``page_quality`` has it."""
    distance: Signal = 0
    """Host hops of the linking page's host."""
    block: Signal = 0.0
    """Probability that the link stands in running text, 0 to 1."""
    anchor: Signal = 0.0
    """Length of its text, -1 to 1 (ANCHORS)."""
    host: Signal = 0.0
    """What the target's host has given for its bytes beside the whole crawl, -1 to 1 ..."""
    trust: Signal = 0.0
    """... and how far that is known, 0 (new host) to 1."""
    language: Signal = 0.0
    """How much oftener its host's pages were in a wanted language than those of the whole crawl, -1 to 1."""
    section: Signal = 0.0
    """The same of the target's path section beside its host."""
    repeats: Signal = 0.0
    """Share of that section's pages that repeated others, 0 to 1."""
    url: Signal = 0.0
    """What the words of the URL say of its language, those of a known host's name less (url_words.py), -1 to 1."""
    said: Signal = 0
    """What hreflang says: 1 a wanted language, -1 another one, 0 nothing."""


def page_quality(reason: Reason, relevant: bool, badness: float) -> float:
    """The quality of a page by how it ended: -1 in another language, 1 for text whose function words are as usual."""
    quality = _QUALITY.get(reason, 0.2 if relevant else 0.0)
    return quality - 0.5 * min(badness / _WORST_BADNESS, 1.0) if reason is Reason.KEPT else quality


def _stands_in_text(cues: Cues) -> Signal:
    """1 or -1: as in F14, Table 3, the likelier is taken for certain; how sure that makes is for the weight to say."""
    return 2.0 * (cues.block >= 0.5) - 1.0


ESTIMATORS: dict[str, tuple[Callable[[Cues], Signal], float]] = {
    "host": (lambda cues: cues.host * cues.trust, 3.0),
    "language": (lambda cues: cues.language, 2.0),
    "section": (lambda cues: cues.section, 1.5),
    "page-inside": (lambda cues: cues.quality * cues.same_host, 0.7),
    "page-outside": (lambda cues: cues.quality * (1.0 - cues.trust) * (1.0 - cues.same_host), 1.5),
    "block-inside": (lambda cues: _stands_in_text(cues) * cues.same_host, 0.8),
    "block-outside": (lambda cues: _stands_in_text(cues) * (1.0 - cues.same_host), 0.8),
    "anchor": (lambda cues: cues.anchor, 0.2),
    "url": (lambda cues: cues.url, 1.5),
    "hreflang": (lambda cues: cues.said, 1.0),
    "distance": (lambda cues: -min(cues.distance, _FAR) / _FAR, 0.3),
    "novelty": (lambda cues: -cues.repeats, 1.0),
}
"""Name -> estimator, and its weight before anything was learnt, in log-odds."""
OF_HOST = frozenset({"host", "language", "page-inside", "page-outside", "distance"})
"""Those that say the same of all links of a page to one host."""
HIGHEST_WEIGHT = 8.0


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
