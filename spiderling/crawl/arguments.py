"""What the user says about a crawl, in settings and arguments of the spider.

It is read, checked and made into options; changed_options.py compares them with those the crawl was begun with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spiderling.base.addresses import AddressPolicy
from spiderling.base.errors import BadInput, JobdirError
from spiderling.base.option_values import PREFIX, parse_ports, parse_tlds, parse_traps, parse_watch, parse_yield_profile
from spiderling.base.options import Options
from spiderling.base.printing import nearest
from spiderling.base.urls import canonicalize
from spiderling.jobdir.sound_reading import noted
from spiderling.text.boilerplate.rules import parse_rules
from spiderling.text.quality import parse_quality

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.settings import BaseSettings


AUTO = "auto"
"""The number of shards that the machine calls for."""
JOB = "_job"
"""Argument that scrapyd gives to each spider: the jobid."""
_ARGUMENTS = {
    "lang": "LANG",
    "recognise": "RECOGNISE",
    "seen": "SEEN",
    "words": "MAX_WORDS",
    "tlds": "TLDS",
    "follow": "FOLLOW",
    "hosts": "ONLY_HOSTS",
    "strategy": "STRATEGY",
    "urls": "ARCHIVE_URLS",
    "watch": "WATCH",
}
"""Argument of the spider -> the option that it stands for."""
_PARSED = ("strategy", "estimators", "justext_preset", "quality")
"""Options that only the parts which use them understand.  Those take half a second to import."""
_DEFAULTS = Options()
_EXAMPLE = re.compile(r"(?:.*\.)?(?:example\.(?:com|net|org|edu)|example|invalid|localhost|test)")
"""Names at which nobody can be reached: those that documentation uses (RFC 2606, RFC 6761), and example.edu."""
_CONTACT = re.compile(r"[!-~]+@[!-~]+\.[!-~]+|https?://[!-~]+")


def options_of(settings: BaseSettings, spider: Spider) -> Options:
    """The options of a crawl: settings, and above them the spider's arguments."""
    values: dict[str, Any] = {key: settings[key] for key in settings if str(key).startswith(PREFIX)}
    values |= {
        PREFIX + option: getattr(spider, name) for name, option in _ARGUMENTS.items() if getattr(spider, name, "")
    }
    _refuse_unknown_arguments(spider)
    try:
        options = _checked(values)
    except BadInput as error:
        raise BadInput(_as_said(str(error), spider)) from None
    if not options.lang:
        raise BadInput(
            "no language is given: say -a lang=cs (codes or English names, several with commas); "
            "`scrapy train` makes a model for a language that is not bundled."
        )
    return options


def _checked(values: Mapping[str, Any]) -> Options:
    """The options in *values*, with those that only the parts which use them understand; no file is touched."""
    if str(values.get(f"{PREFIX}SHARDS")).strip() == AUTO:
        raise BadInput(f"only scrapy crawl starts shards by itself; {PREFIX}SHARDS={AUTO} cannot be used here.")
    options = Options.from_settings(values)
    if options.shards > 1 and not options.cluster:
        raise BadInput(
            f"{PREFIX}SHARDS is {options.shards}, but no Redis is given by which the shards find each other; add "
            f"-s {PREFIX}CLUSTER=redis://host:6379/0. Only scrapy crawl starts all of them by itself."
        )
    if not (options.hosts or options.nameservers or options.allow_networks):  # these may know names of their own
        parse_tlds(options.tlds, "TLDS", only_public=True)
        parse_tlds(options.prefer_tlds, "PREFER_TLDS", only_public=True)
    if all(getattr(options, name) == getattr(_DEFAULTS, name) for name in _PARSED):
        return options
    from spiderling.frontier.ranking.strategies import parse as parse_strategy
    from spiderling.frontier.ranking.worth import parse_weights
    from spiderling.text.boilerplate.rules import parse_rules
    from spiderling.text.quality import parse_quality

    parse_strategy(options.strategy)
    parse_weights(options.estimators)
    parse_rules(options.justext_preset)
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


def directory_of(settings: BaseSettings, options: Options, suffix: str = "", job: str = "") -> Path:
    """JOBDIR, by default ``crawls/<lang><suffix>``, for a *job* of scrapyd ``crawls/<lang><suffix>-<job>``."""
    lang = options.lang.replace(",", "+").replace(" ", "")
    name = f"{lang}{suffix}{re.sub(r'[^A-Za-z0-9._-]', '_', f'-{job}') if job else ''}"
    return Path(settings.get("JOBDIR") or f"crawls/{name}")


def refuse_watch(options: Options, is_archive: bool) -> None:
    """Raises BadInput for a crawl that cannot be watched."""
    if not parse_watch(options.watch):
        return
    if is_archive:
        raise BadInput(f"pages of archives do not change: leave out {PREFIX}WATCH (-a watch=).")
    if options.trail == "off":
        raise BadInput(
            f"a watch takes from the trail what it is to look at, and {PREFIX}TRAIL is off: set it to full or ends, "
            f"or leave out {PREFIX}WATCH (-a watch=)."
        )


def addresses_of(options: Options, is_offline: bool) -> AddressPolicy:
    """Which addresses may be connected to; raises BadInput if public ones may, and nobody says whose crawl it is.

    *is_offline*: the crawl connects to none, so it needs no contact.
    """
    if not is_offline:
        if options.contact and not _host_of(options.contact):
            raise BadInput(
                f"SPIDERLING_CONTACT is {options.contact!r}; it must be an e-mail address or the URL of a page that "
                "says who crawls and how to reach them."
            )
        if _EXAMPLE.fullmatch(_host_of(options.contact)):
            raise BadInput(
                f"SPIDERLING_CONTACT is {options.contact!r}, an example; write your own e-mail address or URL, "
                "at which site owners can reach you."
            )
        if not options.contact and not options.allow_networks:
            raise BadInput(
                "no contact is given, and a crawl of public addresses must say whose it is: set SPIDERLING_CONTACT "
                "to an e-mail address or URL (-s SPIDERLING_CONTACT=you@your-domain)."
            )
    return AddressPolicy(options.allow_networks, public=bool(options.contact))


def _host_of(contact: str) -> str:
    """The host's name in an e-mail address or a URL; '' if it is neither."""
    if not _CONTACT.fullmatch(contact):
        return ""
    if "://" not in contact:
        return contact.rpartition("@")[2].lower().rstrip(".")
    target = canonicalize(contact)
    return target.name.rstrip(".") if target is not None else ""


_UNCHANGEABLE = ("lang", "yield_unit", "dedup", "shards")
"""Options that a resumed crawl must not change: they have judged what is kept already, or whose hosts it asks."""
_PARSERS: dict[str, Callable[[str], object]] = {
    "quality": parse_quality,
    "traps": parse_traps,
    "justext_preset": parse_rules,
    "ports": parse_ports,
    "yield_profile": parse_yield_profile,
}
"""Options that can be written in several ways -> what reads them."""


def compare_options(options: Options, meta: Mapping[str, str], directory: Path, from_archives: bool) -> list[str]:
    """A line 'name: old -> new' for each option that has changed; raises JobdirError for one that must not."""
    if meta and from_archives != noted(meta, "from_archives", from_archives):
        kinds = ("the web", "archives")
        raise JobdirError(
            f"the corpus in {directory} was begun from {kinds[not from_archives]}, not from {kinds[from_archives]}. "
            "Give another directory with -s JOBDIR=..."
        )
    former = noted(meta, "options", dict[str, object]())
    lines = []
    for name, value in options.on_record().items():
        old = former.get(name, value)
        if old == value or _means_the_same(name, old, value):
            continue
        if name in _UNCHANGEABLE:
            raise JobdirError(
                f"the crawl in {directory} was begun with {PREFIX}{name.upper()}={old!r}, not {value!r}. "
                "Resume it with the same value, or begin another with -s JOBDIR=..."
            )
        lines.append(f"{PREFIX}{name.upper()}: {old!r} -> {value!r}")
    return lines


def _means_the_same(name: str, old: object, value: str) -> bool:
    """Whether two texts of an option say the same in other words."""
    parse = _PARSERS.get(name)
    if parse is None or not isinstance(old, str):
        return False
    try:
        return parse(old) == parse(value)
    except BadInput:  # another version took the old one
        return False
