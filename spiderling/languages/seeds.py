"""Reads seeds from a file, the command line, or the language models."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from spiderling.base.errors import BadInput
from spiderling.base.terminal import count_of
from spiderling.base.urls import canonicalize
from spiderling.languages import LanguageInfo
from spiderling.languages.registry import Seed, seeds_in

logger = logging.getLogger(__name__)

MODEL_SEEDS = "the language models"  # where seeds are from if the user names none
FEW_HOSTS = 100  # seed hosts below which `few_hosts` warns; chosen
_WIKIS = {"nb": "no", "be-tarask": "be_x_old", "yue": "zh_yue"}
"""Language -> name of its Wikipedia's database, where it differs from the code."""
_MAX_REPORTED_LINES = 20  # bad lines of a file that are reported one by one; chosen
_OTHER_SCHEME = re.compile(r"[^/:]+:(?!\d+(?:/|$)|//)")  # ``mailto:`` and the like, but no port (``example.org:80``)


def read_seeds(argument: str) -> list[Seed]:
    """The seeds in *argument*: a file with one URL a line, or URLs.

    Lines without a URL are logged by number and left out.  Raises BadInput when the file
    cannot be read or is not text, or when no URL is left.
    """
    if "://" in argument:
        where = "-a seeds="
        lines = argument.replace(",", " ").split()
    else:
        where = argument
        lines = _read_lines(Path(argument))
    seeds = _valid(seeds_in(lines), where)
    if not seeds:
        raise BadInput(f"there is no seed URL in {where}; give a file with one URL a line, or URLs, with -a seeds=.")
    return seeds


def model_seeds(accepted: Sequence[LanguageInfo]) -> list[Seed]:
    """The seeds of the *accepted* languages' models; raises BadInput when there is none."""
    codes = ", ".join(info.code for info in accepted)
    found = (seed for info in accepted for seed in info.seeds())
    seeds = _valid(enumerate(found, 1), f"the model of {codes}")
    if not seeds:
        raise BadInput(
            f"the model of {codes} has no seed URLs; give a file with one URL a line, or URLs, with -a seeds=."
        )
    return seeds


def distances(seeds: Sequence[Seed]) -> Iterator[tuple[str, int]]:
    """(URL, distance) of each seed: 0, but 1 for an untrusted one if any is trusted (Suchomel & Pomikálek 2012)."""
    some = any(seed.trusted for seed in seeds)
    return ((seed.url, int(some and not seed.trusted)) for seed in seeds)


def few_hosts(urls: Sequence[str], code: str, interval_s: float) -> str:
    """A warning that politeness to few seed hosts makes the crawl slow, with a way to more; '' for enough hosts."""
    hosts = {target.host for target in map(canonicalize, urls) if target is not None}
    if len(hosts) >= FEW_HOSTS or interval_s <= 0:
        return ""
    dump = f"{_WIKIS.get(code, code)}wiki-latest-externallinks.sql.gz"
    return (
        f"{count_of(len(hosts), 'seed host')}, asked every {interval_s:g} s, can give at most "
        f"{len(hosts) / interval_s:.1f} pages/s until their links lead to others. More seeds: download "
        f"https://dumps.wikimedia.org/{dump.partition('-')[0]}/latest/{dump}, "
        f"then: scrapy seeds wikipedia {dump} -a lang={code} -o seeds.txt --per-host 1"
    )


def _read_lines(path: Path) -> list[str]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput(
            f"the seed file {path} cannot be read: {error.strerror}. Give a file with one URL a line, "
            "or URLs that begin with http:// or https://, with -a seeds=."
        ) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"the seed file {path} is not a text file in UTF-8 (line {line}); it must hold one URL a line. "
            "If it is in another encoding, convert it: iconv -f ISO-8859-2 -t UTF-8."
        ) from None
    if "\0" in text:
        raise BadInput(f"the seed file {path} is not a text file in UTF-8; it must hold one URL a line.")
    return text.splitlines()


def _valid(seeds: Iterable[tuple[int, Seed]], where: str) -> list[Seed]:
    """The seeds with a valid URL, each URL once and with a scheme; *where* names their source in the log."""
    valid: dict[str, Seed] = {}
    bad = 0
    for number, seed in seeds:
        text = seed.url
        url = text if "://" in text else f"http://{text}"
        if canonicalize(url) is None or " " in text or "." not in text or _OTHER_SCHEME.match(text):
            bad += 1
            if bad <= _MAX_REPORTED_LINES:
                logger.warning("%s, line %d is no http(s) URL and is left out: %.100r", where, number, text)
        else:
            valid.setdefault(url, seed._replace(url=url))
    if bad > _MAX_REPORTED_LINES:
        logger.warning("%s: %d lines in all were left out", where, bad)
    return list(valid.values())
