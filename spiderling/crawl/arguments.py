"""What the user said of a crawl: the settings and the spider's arguments, as options and a directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spiderling.base.errors import BadInput
from spiderling.base.hints import nearest
from spiderling.base.option_values import PREFIX
from spiderling.base.options import Options
from spiderling.frontier.ranking.estimators import parse_weights
from spiderling.frontier.ranking.strategies import parse as parse_strategy
from spiderling.text.boilerplate.rules import parse_rules

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.settings import BaseSettings


_ARGUMENTS = {
    "lang": "LANG", "recognise": "RECOGNISE", "seen": "SEEN", "words": "MAX_WORDS", "tlds": "TLDS", "follow": "FOLLOW",
    "hosts": "ONLY_HOSTS", "strategy": "STRATEGY", "urls": "ARCHIVE_URLS",
}  # fmt: skip
"""Arguments of the spider that are options."""


def options_of(settings: BaseSettings, spider: Spider) -> Options:
    """The options of a crawl: settings, and above them the spider's arguments."""
    values: dict[str, Any] = {key: settings[key] for key in settings if str(key).startswith(PREFIX)}
    for name, option in _ARGUMENTS.items():
        if getattr(spider, name, None):
            values[PREFIX + option] = getattr(spider, name)
    _refuse_unknown_arguments(spider)
    options = Options.from_settings(values)
    if not options.lang:
        raise BadInput(
            "no language is given: say -a lang=cs (codes or English names, several with commas); "
            "`scrapy train` makes a model for a language that is not bundled."
        )
    _check_words_of_parts(options)
    return options


def _check_words_of_parts(options: Options) -> None:
    """Options in which only the part that uses them can find an error; raises BadInput before any file is touched."""
    parse_strategy(options.strategy)
    parse_weights(options.estimators)
    parse_rules(options.justext_preset)


def _refuse_unknown_arguments(spider: Spider) -> None:
    """An argument that the spider does not declare as a class attribute is a typing error.

    Those of tools that start spiders (scrapyd's ``_job``) begin with an underscore.
    """
    declared = sorted(declared_arguments(type(spider)))
    for name in getattr(spider, "arguments", ()):
        if not name.startswith("_") and name not in declared:
            near = nearest(name, declared)
            hint = f"did you mean -a {near[0]}=?" if near else f"known are {', '.join(declared)}."
            raise BadInput(f"the spider {spider.name} has no argument {name!r}; {hint}")


def declared_arguments(cls: type[Spider]) -> set[str]:
    """Names of the annotated class attributes with a text or a number: what ``-a`` may set."""
    annotated = {key for base in cls.__mro__ for key in vars(base).get("__annotations__", {})} - {"name"}
    return {key for key in annotated if isinstance(getattr(cls, key, None), (str, int, float))}


def directory_of(settings: BaseSettings, options: Options, suffix: str = "") -> Path:
    """JOBDIR, by default ``crawls/<lang><suffix>``."""
    return Path(settings.get("JOBDIR") or f"crawls/{options.lang.replace(',', '+').replace(' ', '')}{suffix}")
