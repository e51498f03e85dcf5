"""The steps of the text chain that can be compiled, as one value."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spiderling.base.link_batch import Derive, derived
from spiderling.text.boilerplate.context import Context, context
from spiderling.text.boilerplate.features import Features, features
from spiderling.text.html.blocks import Parsed
from spiderling.text.html.parser import parse
from spiderling.text.language.known import ShortWords, short_words
from spiderling.text.language.scores import Score, scored

Parse = Callable[[str | bytes], Parsed]


class Steps(NamedTuple):
    """What `process` calls; compiled.py has the same functions compiled, with equal results."""

    parse: Parse
    """A page's markup into blocks, links and what its head says."""
    features: Features
    """What the boilerplate model's first network takes: a row of numbers for each block."""
    context: Context
    """What its second network takes: the same, and what the first one said of neighbours and enclosing elements."""
    derived: Derive
    """Hashes, sections, words, forms and depths of the URLs of links."""
    score: Score
    """Texts as n-grams, with the score of each in each language."""
    short_words: ShortWords
    """How many short words of each text a language does not list, by which it is told from relatives."""


PYTHON = Steps(parse, features, context, derived, scored, short_words)
"""The specification of what the compiled functions do."""
