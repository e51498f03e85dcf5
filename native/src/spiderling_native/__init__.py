"""The compiled twin of spiderling's text chain: the same results to the last bit, in less time.

It imports nothing of spiderling, which hands in its tables and classes (spiderling/text/steps.py).
"""

from spiderling_native._context import Context
from spiderling_native._derived import Derived
from spiderling_native._features import Features
from spiderling_native._gathered import Gathered
from spiderling_native._language import Scored, ShortWords
from spiderling_native._parse import Parser
from spiderling_native._sax import self_test
from spiderling_native._signals import Listed, LongWords, Marks, TopWord, WordKinds
from spiderling_native._urls import Resolved

__all__ = [
    "INTERFACE",
    "Context",
    "Derived",
    "Features",
    "Gathered",
    "Listed",
    "LongWords",
    "Marks",
    "Parser",
    "Resolved",
    "Scored",
    "ShortWords",
    "TopWord",
    "WordKinds",
    "__version__",
]
__version__ = "1.0.0"
INTERFACE = 5
"""That of spiderling/text/steps.py with which these steps run; raised together with it."""

self_test()
