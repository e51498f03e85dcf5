"""The steps of the text chain that can be compiled, in Python and from the distribution spiderling-native.

That one imports nothing of ours: here it is given our tables and classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import xxhash

from spiderling.base import link_batch, url_features, urls
from spiderling.base.errors import BadInput
from spiderling.base.link_batch import Derive, Gather, columns_of, derived
from spiderling.text import fingerprints, language, ngrams, quality
from spiderling.text.boilerplate import features as features_module
from spiderling.text.boilerplate import model
from spiderling.text.boilerplate.features import Features, features
from spiderling.text.boilerplate.model import Context, context
from spiderling.text.fingerprints import LongWords, long_words
from spiderling.text.html import blocks, links, metadata, parser, zones
from spiderling.text.html.blocks import Parsed
from spiderling.text.html.links import Resolve, resolve
from spiderling.text.html.parser import parse
from spiderling.text.language import Score, scored
from spiderling.text.quality import ListWords, Marks, TopWord, listed, marks, top_word_share
from spiderling.text.words import ShortWords, short_words

Parse = Callable[[str | bytes], Parsed]


class Steps(NamedTuple):
    """What `process` calls; spiderling-native has the same functions compiled, with equal results."""

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


AUTO, NO, REQUIRED = "auto", "no", "required"
"""Values of SPIDERLING_COMPILED."""
INTERFACE = 1
"""Version of what the steps give and of the tables that they are given.  Whoever changes either raises this number and
that of the compiled steps (native/src/spiderling_native/__init__.py), which are not used where the two differ."""
_BUILD = "`make native` builds it"


class Choice(NamedTuple):
    """Which steps run, and why."""

    steps: Steps
    words: str
    """For a person: "compiled (spiderling-native 0.1)", or "Python" and the reason."""


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
        return Choice(PYTHON, f"Python: spiderling-native is not installed; {_BUILD}")
    except ImportError as error:  # another lxml or another Python than it was built for
        return Choice(PYTHON, f"Python: spiderling-native cannot be loaded ({error}); {_BUILD} anew")
    if getattr(spiderling_native, "INTERFACE", None) != INTERFACE:
        return Choice(PYTHON, f"Python: spiderling-native was built for another version of Spiderling; {_BUILD} anew")
    try:
        steps = _steps(spiderling_native)
    except (AttributeError, TypeError, ValueError) as error:  # one that lacks a step or makes it of other things
        return Choice(PYTHON, f"Python: spiderling-native was built for other steps ({error}); {_BUILD} anew")
    return Choice(steps, f"compiled (spiderling-native {spiderling_native.__version__})")


def _steps(native: Any) -> Steps:
    """The steps of the module *native*."""
    derive = _derived(native.Derived)
    return Steps(
        parse=_parser(native.Parser),
        features=_features(native.Features),
        context=native.Context(names=model.NAMES),
        derived=derive,
        resolve=native.Resolved(starts_of=links.starts_of, join=links.join),
        gather=_gather(native.Gathered, derive),
        score=_score(native.Scored),
        short_words=native.ShortWords(python=short_words, lower_letters=ngrams.letters_in_lower_case),
        listed=native.Listed(python=listed, kind=quality.Listed, lower_letters=ngrams.letters_in_lower_case),
        marks=_marks(native.Marks),
        top_word=native.TopWord(python=top_word_share, max_chars=quality.TEXT_CHARS),
        long_words=native.LongWords(python=long_words, short_line=fingerprints.SHORT_WORDS),
    )


def _parser(kind: Callable[..., Parse]) -> Parse:
    """The twin of `parser.parse`."""
    return kind(
        python=parser.parse,
        kinds=zones.TAG_KINDS,
        without_name=zones.WITHOUT_NAME,
        class_zone=zones.class_zone,
        name_zone=zones.name_zone,
        hides=zones.hides,
        hidden=zones.BITS["hidden"],
        inherited=zones.Inherited,
        block=blocks.Block,
        link=blocks.RawLink,
        parsed=blocks.Parsed,
        metadata=metadata.Metadata,
        meta_names=metadata.META_NAMES,
        normal_forms=blocks.normal_forms,
        rubbish=blocks.RUBBISH,
        next_line=blocks.NEXT_LINE,
        max_blocks=blocks.MAX_BLOCKS,
        max_block_chars=blocks.MAX_BLOCK_CHARS,
        max_links=blocks.MAX_LINKS,
        max_anchor_chars=blocks.MAX_ANCHOR_CHARS,
        max_elements=zones.MAX_ELEMENTS,
        max_depth=zones.MAX_DEPTH,
    )


def _features(kind: Callable[..., Features]) -> Features:
    """The twin of `features`."""
    return kind(
        names=features_module.NAMES,
        classes=features_module.classes().tobytes(),
        tag_columns=features_module.TAG_COLUMNS,
        last_tag=features_module.LAST_TAG,
        dividers=features_module.DIVIDERS,
        said=features_module.SAID,
        nothing=features_module.NOTHING_DECLARED,
        opening=features_module.opening_of,
    )


def _derived(kind: Callable[..., link_batch.Derive]) -> link_batch.Derive:
    """The twin of `link_batch.derived`."""
    return kind(
        digest=xxhash.xxh3_64_intdigest,
        url_hash=urls.url_hash,
        form_of=link_batch.form_of,
        hash_bits=urls.HASH_BITS,
        forms=link_batch.FORMS,
        repetitive=link_batch.REPETITIVE,
        words=link_batch.WORDS,
    )


def _gather(kind: Callable[..., link_batch.Gather], derive: link_batch.Derive) -> link_batch.Gather:
    """The twin of `link_batch.columns_of`."""
    return kind(
        derived=derive,
        kind=link_batch.LinkBatch,
        canonicalize=urls.canonicalize,
        clean_query=urls.clean_query,
        prefix_of=urls.prefix_of,
        words_of_name=url_features.words_of_name,
        prefixes=urls.PREFIXES,
        max_host=link_batch.MAX_HOST,
        flags=(link_batch.TEXT_BLOCK, link_batch.NOFOLLOW),
    )


def _score(kind: Callable[..., Score]) -> Score:
    """The twin of `scored`."""
    return kind(
        python=scored,
        kind=language.Scored,
        lower_letters=ngrams.letters_in_lower_case,
        look_alikes=ngrams.LOOK_ALIKES.tolist(),
        order=ngrams.ORDER,
        log_units=language.LOG_UNITS,
    )


def _marks(kind: Callable[..., quality.Marks]) -> quality.Marks:
    """The twin of `quality.marks`."""
    return kind(
        kinds=quality.kinds_of_characters().tobytes(),
        end=quality.END,
        following=quality.FOLLOWING,
        full_stop=quality.FULL_STOP,
        digit=quality.DIGIT,
        symbol=quality.SYMBOL,
    )
