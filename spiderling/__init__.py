"""Spiderling: a crawler that builds a text corpus in a language you name.

docs/life-of-a-url.md says where to read on, in the order of a URL's life.  A package imports only from those on floors
below its own (docs/architecture.svg, tests/test_imports.py).
"""

__version__ = "0.1.0"
