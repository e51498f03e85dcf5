"""The steps of the text chain that can be compiled, in Python and from the distribution spiderling-native.

That one imports nothing of ours: here it is given our tables and classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import xxhash

from spiderling.base import link_batch, urls
from spiderling.base.errors import BadInput
from spiderling.base.link_batch import Derive, Gather
from spiderling.text import fingerprints, language, ngrams, quality, words
from spiderling.text.boilerplate import features as features_module
from spiderling.text.boilerplate import model
from spiderling.text.boilerplate.features import Features
from spiderling.text.boilerplate.model import Context
from spiderling.text.fingerprints import LongWords
from spiderling.text.html import blocks, links, metadata, parser, zones
from spiderling.text.html.blocks import Parsed
from spiderling.text.html.links import Resolve
from spiderling.text.language import Score
from spiderling.text.quality import CountWordKinds, ListWords, Marks, TopWord
from spiderling.text.words import ShortWords

Parse = Callable[[str | bytes], Parsed]


class Steps(NamedTuple):
    """What `process` calls; spiderling-native has the same functions compiled, with equal results."""

    parse: Parse = parser.parse  # a page's markup into blocks, links and what its head says
    features: Features = features_module.features
    """What the boilerplate model's first network takes: a row of numbers for each block."""
    context: Context = model.context
    """What its second network takes: the same, and what the first said of what is around."""
    derived: Derive = link_batch.derived
    """Hashes, sections, words, forms and depths of the URLs of links that another shard has sent."""
    resolve: Resolve = links.resolve  # the absolute URLs of a page's links
    gather: Gather = link_batch.columns_of  # links as the columns that the frontier takes
    score: Score = language.scored  # texts as n-grams, with the score of each in each language
    short_words: ShortWords = words.short_words
    """How many short words of each text a language does not list, by which it is told from relatives."""
    listed: ListWords = quality.listed  # stop words and function words of the good text
    marks: Marks = quality.marks  # sentences, digits and symbols of the good text
    top_word: TopWord = quality.top_word_share  # share of the most frequent word that is no stop word
    word_kinds: CountWordKinds = quality.count_word_kinds  # letters of the clean text by scripts without spaces
    long_words: LongWords = fingerprints.long_words  # the words by which a page's sketch tells it from others


PYTHON = Steps()
"""The specification of what the compiled functions do."""


AUTO, NO, REQUIRED = "auto", "no", "required"  # values of SPIDERLING_COMPILED
INTERFACE = 5
"""Version of what the steps give and of the tables that they are given.  Whoever changes either raises this number and
that of the compiled steps (native/src/spiderling_native/__init__.py), which are not used where the two differ."""
_BUILD = "`make native` builds it"


class Choice(NamedTuple):
    """Which steps run, and why."""

    steps: Steps
    words: str  # for a person: "compiled (spiderling-native 1.0.0)", or "Python" and the reason


def choose(option: str = AUTO) -> Choice:
    """The steps by SPIDERLING_COMPILED; raises BadInput if the compiled ones are required and cannot run."""
    if option == NO:
        return Choice(PYTHON, "Python (SPIDERLING_COMPILED=no)")
    found = _compiled()
    if found.steps is PYTHON and option == REQUIRED:
        raise BadInput(f"SPIDERLING_COMPILED=required, but {found.words.removeprefix('Python: ')}.")
    return found


def _compiled() -> Choice:
    try:
        import spiderling_native
    except ModuleNotFoundError as error:
        if error.name != "spiderling_native":
            return Choice(PYTHON, f"Python: spiderling-native cannot be loaded ({error})")
        return Choice(PYTHON, f"Python: spiderling-native is not installed; {_BUILD}, and a release has its wheel")
    except ImportError as error:  # another lxml or another Python than it was built for
        return Choice(PYTHON, f"Python: spiderling-native cannot be loaded ({error}); {_BUILD} anew")
    if getattr(spiderling_native, "INTERFACE", None) != INTERFACE:
        return Choice(PYTHON, f"Python: spiderling-native was built for another version of Spiderling; {_BUILD} anew")
    return Choice(_steps(spiderling_native), f"compiled (spiderling-native {spiderling_native.__version__})")


def _steps(native: Any) -> Steps:
    """The steps of the module *native*, which reads tables and classes from our modules."""
    derive = native.Derived(link_batch, urls, xxhash.xxh3_64_intdigest)
    return Steps(
        parse=native.Parser(parser, blocks, metadata, zones),
        features=native.Features(features_module),
        context=native.Context(model),
        derived=derive,
        resolve=native.Resolved(links),
        gather=native.Gathered(derive, link_batch, urls, urls),
        score=native.Scored(language, ngrams),
        short_words=native.ShortWords(words, ngrams),
        listed=native.Listed(quality, ngrams),
        marks=native.Marks(quality),
        top_word=native.TopWord(quality),
        word_kinds=native.WordKinds(quality),
        long_words=native.LongWords(fingerprints),
    )
