"""What the user says about a crawl, in settings and arguments of the spider.

It is read, checked and made into options; crawl.py compares them with those that the crawl was begun with.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spiderling.base.errors import BadInput
from spiderling.base.option_values import PREFIX, convert_value, parse_recrawl, parse_tlds
from spiderling.base.options import Options
from spiderling.base.terminal import nearest

if TYPE_CHECKING:  # a crawl itself needs no Scrapy
    from scrapy import Spider
    from scrapy.settings import BaseSettings

AUTO = "auto"  # the number of shards that the machine calls for
_ARGUMENTS = {
    "lang": "LANG",
    "recognise": "RECOGNISE",
    "seen": "SEEN",
    "words": "MAX_WORDS",
    "coverage": "COVERAGE_SHARE",
    "tlds": "TLDS",
    "follow": "FOLLOW",
    "hosts": "ONLY_HOSTS",
    "strategy": "STRATEGY",
    "urls": "ARCHIVE_URLS",
    "recrawl": "RECRAWL",
}
"""Argument of the spider -> the option that it stands for."""
_PARSED = ("strategy", "quality")
"""Options that only the parts which use them understand.  Those take half a second to import."""
_DEFAULTS = Options()


def options_of(settings: BaseSettings, spider: Spider) -> Options:
    """The options of a crawl: settings, and above them the spider's arguments."""
    values: dict[str, Any] = {key: settings[key] for key in settings if str(key).startswith(PREFIX)}
    values |= {
        PREFIX + option: getattr(spider, name) for name, option in _ARGUMENTS.items() if getattr(spider, name, "")
    }
    _refuse_unknown_arguments(spider)
    try:
        options = _check(values)
    except BadInput as error:
        raise BadInput(_as_said(str(error), spider)) from None
    progress_s(settings)
    if not options.lang:
        raise BadInput(
            "no language is given: say -a lang=cs (codes or English names, several with commas); "
            "`scrapy train` makes a model for a language that is not bundled."
        )
    return options


def progress_s(settings: BaseSettings) -> float:
    """Seconds between two progress lines: Scrapy's LOGSTATS_INTERVAL; raises BadInput."""
    seconds: float = convert_value("LOGSTATS_INTERVAL", float, settings["LOGSTATS_INTERVAL"])
    if seconds < 1:
        raise BadInput(f"LOGSTATS_INTERVAL is {seconds:g}; it must be at least 1 second.")
    return seconds


def _check(values: Mapping[str, Any]) -> Options:
    """The options in *values*, with those that only the parts which use them understand; no file is touched."""
    if str(values.get(f"{PREFIX}SHARDS")).strip() == AUTO:
        raise BadInput(f"only scrapy crawl starts shards by itself; {PREFIX}SHARDS={AUTO} cannot be used here.")
    options = Options.from_settings(values)
    if options.shards > 1 and not options.cluster:
        raise BadInput(
            f"{PREFIX}SHARDS is {options.shards}, but no Redis is given by which the shards find each other; add "
            f"-s {PREFIX}CLUSTER=redis://host:6379/0. Only scrapy crawl starts all of them by itself."
        )
    if options.coverage_share and not options.coverage_lists:
        raise BadInput(
            f"{PREFIX}COVERAGE_SHARE needs lists of pages: give them with -s {PREFIX}COVERAGE_LISTS=FILE,FILE."
        )
    if options.coverage_lists and (options.shards > 1 or options.trail == "off"):
        raise BadInput(
            f"{PREFIX}COVERAGE_LISTS is for a crawl of one process that notes how its URLs ended. Of shards, "
            "`scrapy inspect JOBDIR --coverage FILE,FILE` tells it."
        )
    if not (options.hosts or options.nameservers or options.allow_networks):  # these may know names of their own
        parse_tlds(options.tlds, "TLDS", only_public=True)
        parse_tlds(options.prefer_tlds, "PREFER_TLDS", only_public=True)
    if all(getattr(options, name) == getattr(_DEFAULTS, name) for name in _PARSED):
        return options
    from spiderling.frontier.strategies import parse as parse_strategy
    from spiderling.text.quality import parse_quality

    parse_strategy(options.strategy)
    parse_quality(options.quality)
    return options


def _as_said(message: str, spider: Spider) -> str:
    """*message* about an option by the name that the user wrote: that of the argument, if it was one."""
    for name in getattr(spider, "arguments", ()):
        message = re.sub(rf"\b{PREFIX}{_ARGUMENTS.get(name, name.upper())}\b", f"-a {name}", message)
    return message


def _refuse_unknown_arguments(spider: Spider) -> None:
    """Raises BadInput for an argument that the spider does not declare as a class attribute: it is misspelt.

    Arguments of tools that start spiders, such as scrapyd's ``_job``, begin with an underscore and pass.
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
    lang = options.lang.replace(",", "+").replace(" ", "")
    return Path(settings.get("JOBDIR") or f"crawls/{lang}{suffix}")


def refuse_recrawl(options: Options, is_archive: bool) -> None:
    """Raises BadInput for a crawl whose pages cannot be revisited."""
    if not parse_recrawl(options.recrawl):
        return
    if is_archive:
        raise BadInput(f"pages of archives do not change: leave out {PREFIX}RECRAWL (-a recrawl=).")
    if options.trail == "off":
        raise BadInput(
            f"a recrawl takes from the trail what it is to revisit, and {PREFIX}TRAIL is off: set it to full or ends, "
            f"or leave out {PREFIX}RECRAWL (-a recrawl=)."
        )
