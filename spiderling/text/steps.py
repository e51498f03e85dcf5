"""The steps of the text chain that can be compiled, as one value."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spiderling.base.link_batch import Derive, Gather, columns_of, derived
from spiderling.text.boilerplate.context import Context, context
from spiderling.text.boilerplate.features import Features, features
from spiderling.text.html.blocks import Parsed
from spiderling.text.html.links import Resolve, resolve
from spiderling.text.html.parser import parse
from spiderling.text.language.function_words import ListWords, listed
from spiderling.text.language.known import ShortWords, short_words
from spiderling.text.language.scores import Score, scored
from spiderling.text.quality import Marks, marks
from spiderling.text.sketch import LongWords, long_words
from spiderling.text.spam import TopWord, top_word_share

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
    """Hashes, sections, words, forms and depths of the URLs of links that another shard has sent."""
    resolve: Resolve
    """The absolute URLs of a page's links."""
    gather: Gather
    """Links as the columns that the frontier takes."""
    score: Score
    """Texts as n-grams, with the score of each in each language."""
    short_words: ShortWords
    """How many short words of each text a language does not list, by which it is told from relatives."""
    listed: ListWords
    """Stop words and function words of the good text."""
    marks: Marks
    """Sentences, digits and symbols of the good text."""
    top_word: TopWord
    """Share of the most frequent word that is no stop word."""
    long_words: LongWords
    """The words of a page by which its sketch tells it from others."""


PYTHON = Steps(
    parse,
    features,
    context,
    derived,
    resolve,
    columns_of,
    scored,
    short_words,
    listed,
    marks,
    top_word_share,
    long_words,
)
"""The specification of what the compiled functions do."""
