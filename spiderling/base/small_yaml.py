"""YAML files that a person writes, read in bounded time: no file may hold a crawl up."""

from __future__ import annotations

from typing import Any

import yaml

from spiderling.base.errors import BadInput

MAX_DEPTH = 20
"""Levels of lists and mappings (chosen)."""
MAX_EVENTS = 200_000
"""Values, and starts and ends of lists and mappings (chosen: more take a second or longer to read)."""
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where libyaml is there


def read_yaml(text: str | bytes) -> Any:
    """The value in *text*; raises BadInput if it is no YAML, or has anchors, which can make a small file huge."""
    try:
        _refuse_endless(text)
        return yaml.load(text, _SafeLoader)  # noqa: S506 - the safe loader
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the latter two: impossible numbers and dates
        raise BadInput(f"it is no YAML: {' '.join(str(error).split())}") from error


def nodes_of(text: str) -> yaml.Node | None:
    """*text*, which `read_yaml` has read, as nodes that know their places."""
    return yaml.compose(text, _SafeLoader)


def _refuse_endless(text: str | bytes) -> None:
    depth = 0
    for number, event in enumerate(yaml.parse(text, _SafeLoader)):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise BadInput("anchors and aliases (& and *) are not read; write out what they stand for")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH or number > MAX_EVENTS:
            raise BadInput(f"it holds more than {MAX_DEPTH} lists in each other, or {MAX_EVENTS} entries")
