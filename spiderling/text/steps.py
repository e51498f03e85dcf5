"""The steps of the text chain that can be compiled, as one value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from spiderling.text.boilerplate.context import context
from spiderling.text.boilerplate.features import Array, Declared, features
from spiderling.text.html.blocks import Block, Parsed
from spiderling.text.html.parser import parse
from spiderling.text.html.zones import Inherited

Parse = Callable[[str | bytes], Parsed]
Features = Callable[[Sequence[Block], Inherited, Declared], Array]
Context = Callable[[Array, Array, Sequence[Block], Inherited], Array]


class Steps(NamedTuple):
    """What `process` calls; compiled.py has the same functions compiled, with equal results."""

    parse: Parse
    features: Features
    context: Context


PYTHON = Steps(parse, features, context)
"""The specification of what the compiled functions do."""
