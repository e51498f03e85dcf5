"""Which lines of single pages are made."""

from __future__ import annotations

import logging

import pytest

from spiderling.engine.log_format import is_heard


@pytest.fixture
def loggers():
    """A logger and the one above it, under a root of their own."""
    root = logging.RootLogger(logging.NOTSET)
    manager = logging.Manager(root)
    return manager.getLogger("a.b"), manager.getLogger("a"), root


def handler(level):
    made = logging.NullHandler()
    made.setLevel(level)
    return made


def test_a_line_is_made_if_a_handler_somewhere_takes_it(loggers):
    for logger in loggers:
        assert not is_heard(loggers[0]), "nobody listens yet"
        logger.addHandler(handler(logging.INFO))
        assert not is_heard(loggers[0])
        debug = handler(logging.DEBUG)
        logger.addHandler(debug)
        assert is_heard(loggers[0])
        logger.removeHandler(debug)


def test_levels_and_propagation_count_too(loggers):
    low, middle, root = loggers
    root.addHandler(handler(logging.DEBUG))
    assert is_heard(low)
    middle.setLevel(logging.INFO)
    assert not is_heard(low)
    low.setLevel(logging.DEBUG)
    assert is_heard(low), "its own level comes first"
    middle.propagate = False
    assert not is_heard(low)
