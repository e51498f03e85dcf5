"""Languages by their codes and names, their models, and their seeds."""

from __future__ import annotations

from spiderling.languages.registry import BIG_WEB_LANGUAGES as BIG_WEB_LANGUAGES
from spiderling.languages.registry import GROUPS as GROUPS
from spiderling.languages.registry import LanguageInfo as LanguageInfo
from spiderling.languages.registry import available as available
from spiderling.languages.registry import find_languages as find_languages
from spiderling.languages.registry import load as load
from spiderling.languages.registry import save as save
from spiderling.languages.registry import to_recognise as to_recognise
