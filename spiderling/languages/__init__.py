"""Languages by their codes and names, their models, and their seeds."""

from spiderling.languages.registry import (
    BIG_WEB_LANGUAGES,
    GROUPS,
    LanguageInfo,
    available,
    codes_of,
    find_languages,
    load,
    only_as_group,
    to_recognise,
)

__all__ = [
    "BIG_WEB_LANGUAGES", "GROUPS", "LanguageInfo", "available", "codes_of", "find_languages", "load", "only_as_group",
    "to_recognise",
]  # fmt: skip
