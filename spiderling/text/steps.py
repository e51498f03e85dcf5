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
    features: Features
    context: Context
    derived: Derive
    score: Score
    short_words: ShortWords


PYTHON = Steps(parse, features, context, derived, scored, short_words)
"""The specification of what the compiled functions do."""
