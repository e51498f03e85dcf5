"""Corpus Factory (Kilgarriff, Reddy, Pomikálek & Avinesh 2010): random tuples of mid-frequency words as queries."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlencode

from scrapy.http import Request, Response

from spiderling.base.errors import BadInput, SpiderlingError
from spiderling.base.urls import canonicalize
from spiderling.seeding.source import Found

FIRST_RANK = 100
"""The words of the first ranks stand in every page, so they choose none (chosen)."""
LAST_RANK = 5000
"""Rarer words are often names or typing errors (chosen)."""
_MIN_WORDS = 50
"""Chosen: with fewer words the same queries come again and again."""
_MIN_CHARS = 3
"""Letters of a word in a query at the least; chosen."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


class SearxNG:
    """The JSON API of a SearXNG instance (https://docs.searxng.org/dev/search_api.html), asked by POST.

    The stock robots.txt of an instance forbids GET queries, and its ``search.formats`` must hold json.
    """

    def __init__(self, endpoint: str, language: str) -> None:
        target = canonicalize(endpoint)
        if target is None:
            raise BadInput(
                f"--endpoint is {endpoint!r}; give the address of a SearXNG instance, such as http://localhost:8080/search"
            )
        self._endpoint = target.url if target.path != "/" else f"{target.url}search"
        self._language = language

    def request(self, words: Sequence[str]) -> Request:
        """The query for pages with all *words*."""
        form = urlencode({"q": " ".join(words), "format": "json", "language": self._language})
        return Request(
            self._endpoint, method="POST", body=form, headers={"Content-Type": "application/x-www-form-urlencoded"}
        )

    def urls(self, response: Response) -> list[str]:
        """The URLs of an answer; raises SpiderlingError if it is a refusal."""
        if response.status == 403:
            raise SpiderlingError(
                f"{self._endpoint} refuses JSON (403): put json into search.formats of its settings.yml, or allow this "
                "machine in its limiter."
            )
        try:
            return [str(result["url"]) for result in json.loads(response.body)["results"]]
        except (ValueError, KeyError, TypeError):
            raise SpiderlingError(
                f"{self._endpoint} answered {response.status} with something that is no JSON of SearXNG; is it the "
                "address of its search?"
            ) from None


class SearchSource:
    """Queries of random words, the same for the same seed; what they find are the seeds."""

    retries = 5

    def __init__(self, engine: SearxNG, words: Sequence[str], queries: int, size: int, seed: int) -> None:
        """*size* words a query, 3 to 5 in the paper."""
        self.name = f"search, {queries} queries of {size} words, seed {seed}"
        self._engine = engine
        self._words = words
        self._queries = queries
        self._size = size
        self._seed = seed

    def tuples(self) -> list[tuple[str, ...]]:
        """The queries."""
        drawn = random.Random(self._seed)  # noqa: S311 - to be drawn again, not to be secret
        return [tuple(drawn.sample(self._words, self._size)) for _ in range(self._queries)]

    def requests(self) -> Iterator[Request]:
        return (self._engine.request(words) for words in self.tuples())

    def read(self, response: Response) -> Iterator[Found]:
        yield from self._engine.urls(response)


def middle_words(counts: Mapping[str, int]) -> list[str]:
    """The words of ranks 100 to 5000 with three letters or more; raises BadInput when there are too few."""
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    first = min(FIRST_RANK, len(ranked) // 4)
    words = [word for word in ranked[first:LAST_RANK] if len(word) >= _MIN_CHARS]
    if len(words) < _MIN_WORDS:
        raise BadInput(
            f"only {len(words)} words of middle frequency are known; give more text of the language with --text FILE."
        )
    return words


def words_of(path: Path) -> Counter[str]:
    """Word counts of a text in UTF-8; raises BadInput when it cannot be read."""
    try:
        return Counter(_WORD.findall(path.read_text(encoding="utf-8-sig").lower()))
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}); give a file of plain text with --text.") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not a text file in UTF-8; convert it first, e.g. with: iconv -t utf-8.") from None
