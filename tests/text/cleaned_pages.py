"""What ``process`` makes of a page, with what most tests give it."""

from __future__ import annotations

from functools import cache

from spiderling.languages import load
from spiderling.text import LanguageModels, Page, TextOptions, process

CZECH = "Když se kočka vrátila domů, bylo už tma a všichni spali, jen pes seděl u dveří a čekal na ni. "
ENGLISH = "When the cat came home it was already dark and everybody was asleep, only the dog was waiting. "
GREEK = "Η γρήγορη καφέ αλεπού πηδάει πάνω από τον τεμπέλη σκύλο και φεύγει μακριά από το σπίτι της. "
URL = "http://h.test/a/b"


@cache
def known(codes: str) -> LanguageModels:
    return load(codes.split())


def cleaned(
    html: str | bytes, accepted: str = "cs", *, codes: str = "cs sk en de", url: str = URL,
    charset: str | None = None, encoding: str = "utf-8", refresh: str = "", **options: object,
) -> Page:  # fmt: skip
    """The page of *html*; *accepted* and *codes*: languages that are wanted and known, *options*: those of the text."""
    body = html if isinstance(html, bytes) else html.encode(encoding, "replace")
    wanted = TextOptions(tuple(accepted.split()), **options)  # type: ignore[arg-type]
    return process(body, url=url, http_charset=charset, refresh=refresh, models=known(codes), options=wanted)
