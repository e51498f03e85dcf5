"""The compiled steps of the text chain: the distribution spiderling-native, if it is installed and fits this code.

It imports nothing of ours: here it is given our tables and classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import xxhash

from spiderling.base import link_batch, url_features, urls
from spiderling.base.errors import BadInput
from spiderling.text import ngrams, quality, sketch, spam
from spiderling.text.boilerplate import context, features
from spiderling.text.html import blocks, links, metadata, normal, parser, pieces, tags, zones
from spiderling.text.language import function_words, known, scores
from spiderling.text.steps import PYTHON, Parse, Steps

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
        context=native.Context(names=context.NAMES),
        derived=derive,
        resolve=native.Resolved(starts_of=links.starts_of, join=links.join),
        gather=_gather(native.Gathered, derive),
        score=_score(native.Scored),
        short_words=native.ShortWords(python=known.short_words, lower_letters=ngrams.letters_in_lower_case),
        listed=native.Listed(
            python=function_words.listed, kind=function_words.Listed, lower_letters=ngrams.letters_in_lower_case
        ),
        marks=_marks(native.Marks),
        top_word=native.TopWord(python=spam.top_word_share, max_chars=spam.TEXT_CHARS),
        long_words=native.LongWords(python=sketch.long_words, short_line=sketch.SHORT_WORDS),
    )


def _parser(kind: Callable[..., Parse]) -> Parse:
    """The twin of `parser.parse`."""
    return kind(
        python=parser.parse,
        kinds=tags.KINDS,
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
        normal_forms=normal.normal_forms,
        rubbish=pieces.RUBBISH,
        next_line=normal.NEXT_LINE,
        max_blocks=blocks.MAX_BLOCKS,
        max_block_chars=blocks.MAX_BLOCK_CHARS,
        max_links=blocks.MAX_LINKS,
        max_anchor_chars=blocks.MAX_ANCHOR_CHARS,
        max_elements=zones.MAX_ELEMENTS,
        max_depth=zones.MAX_DEPTH,
    )


def _features(kind: Callable[..., features.Features]) -> features.Features:
    """The twin of `features.features`."""
    return kind(
        names=features.NAMES,
        classes=features.classes().tobytes(),
        tag_columns=features.TAG_COLUMNS,
        last_tag=features.LAST_TAG,
        dividers=features.DIVIDERS,
        said=features.SAID,
        nothing=features.NOTHING_DECLARED,
        opening=features.opening_of,
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


def _score(kind: Callable[..., scores.Score]) -> scores.Score:
    """The twin of `scores.scored`."""
    return kind(
        python=scores.scored,
        kind=scores.Scored,
        lower_letters=ngrams.letters_in_lower_case,
        look_alikes=ngrams.LOOK_ALIKES.tolist(),
        order=ngrams.ORDER,
        log_units=scores.LOG_UNITS,
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
