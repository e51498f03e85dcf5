"""YAML files that a person writes, read in bounded time: no file may hold a crawl up."""

from __future__ import annotations

from typing import Any

import yaml

from spiderling.base.errors import BadInput
from spiderling.base.printing import shown

MAX_DEPTH = 20
"""Levels of lists and mappings (chosen)."""
MAX_DIGITS = 1000
"""Characters of a number (chosen: the time to read one to the base 60, such as 1:30, grows with their square)."""
MAX_EVENTS = 200_000
"""Values, and starts and ends of lists and mappings (chosen: more take a second or longer to read)."""
_OF_NUMBERS = "+-0123456789_:."
_SafeLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where libyaml is there


def read_yaml(text: str | bytes) -> Any:
    """The value in *text*; raises BadInput if it is no YAML, or has anchors, which can make a small file huge."""
    try:
        _refuse_endless(text)
        return yaml.load(text, _SafeLoader)  # noqa: S506 - the safe loader
    except BadInput:
        raise
    except Exception as error:  # PyYAML raises almost any for a scalar that its tag does not fit, as !!bool x
        raise BadInput(f"it is no YAML: {shown(' '.join(str(error).split()))[1:-1]}") from error


def nodes_of(text: str) -> yaml.Node | None:
    """*text*, which `read_yaml` has read, as nodes that know their places."""
    return yaml.compose(text, _SafeLoader)


def keys_of(text: str) -> list[str]:
    """The keys of the mapping in *text*, which `read_yaml` has read; one may stand there twice."""
    root = nodes_of(text)
    return [key.value for key, _ in root.value] if isinstance(root, yaml.MappingNode) else []


def _refuse_endless(text: str | bytes) -> None:
    depth = 0
    for number, event in enumerate(yaml.parse(text, _SafeLoader)):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise BadInput("anchors and aliases (& and *) are not read; write out what they stand for")
        if isinstance(event, yaml.ScalarEvent) and len(event.value) > MAX_DIGITS and not event.value.strip(_OF_NUMBERS):
            line = event.start_mark.line + 1  # type: ignore[union-attr]
            raise BadInput(f"line {line} has a number of more than {MAX_DIGITS} characters: {shown(event.value)}")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH or number > MAX_EVENTS:
            raise BadInput(f"it holds more than {MAX_DEPTH} lists in each other, or {MAX_EVENTS} entries")
