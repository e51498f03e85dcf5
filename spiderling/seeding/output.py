"""The file of seeds, one URL a line; each is appended when it is found, so a stop loses none."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from spiderling.base.errors import BadInput
from spiderling.base.urls import canonicalize, registrable_domain

_PLATFORMS = """
    amazon.com archive.org archive.ph archive.today bing.com bit.ly doi.org duckduckgo.com ebay.com facebook.com
    fandom.com flickr.com github.com goo.gl google.com imdb.com instagram.com issuu.com jstor.org linkedin.com
    mediawiki.org microsoft.com netflix.com orcid.org pinterest.com quora.com reddit.com scribd.com spotify.com
    t.co t.me telegram.me tiktok.com tripadvisor.com twitch.tv twitter.com viaf.org vimeo.com vk.com webcitation.org
    wikidata.org wikimedia.org wikipedia.org worldcat.org x.com yahoo.com yandex.ru youtu.be youtube.com
"""
PLATFORMS = frozenset(_PLATFORMS.split())
"""Registrable domains that everybody links to (aggregators, archives, shops, networks): no seeds for one language."""


class SeedFile:
    """Takes URLs and appends those that may be seeds."""

    def __init__(self, path: Path, per_host: int, homes: bool = False) -> None:
        """Raises BadInput when the file cannot be read or written.

        *per_host*: most URLs of one host, those in the file counted; *homes*: each host's home page in place of what
        was found on it.
        """
        self.path = path
        self.added = 0
        self._is_new = not path.exists()
        self._per_host = per_host
        self._homes = homes
        self._heading = ""
        self._known: set[str] = set()
        self._hosts: Counter[str] = Counter()
        try:
            with path.open("a+", encoding="utf-8") as file:
                file.seek(0)
                for line in file:
                    target = canonicalize(line.strip())
                    if target is not None:
                        self._known.add(target.url)
                        self._hosts[target.host] += 1
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise BadInput(f"{path} cannot be written ({error.strerror}); name another file with -o.") from None
        except UnicodeDecodeError:
            raise BadInput(f"{path} is not a text file in UTF-8; name another file with -o.") from None

    def close(self) -> None:
        """Close the file; a new one without a line goes, so that an error leaves none behind."""
        self._file.close()
        if self._is_new and not self.path.stat().st_size:
            self.path.unlink()

    @property
    def hosts(self) -> int:
        """Hosts in the file."""
        return len(self._hosts)

    def comment(self, text: str) -> None:
        """Begin a section; its heading is written with its first URL."""
        self._heading = f"# {text}\n"

    def add(self, url: str) -> bool:
        """Write *url*, unless it is no http(s) URL, known, a platform's, or its host has enough; True if written."""
        target = canonicalize(url)
        if target is not None and self._homes:
            target = canonicalize(f"{target.origin}/")
        if (
            target is None
            or target.url in self._known
            or self._hosts[target.host] >= self._per_host
            or registrable_domain(target.host) in PLATFORMS
        ):
            return False
        self._known.add(target.url)
        self._hosts[target.host] += 1
        self.added += 1
        self._file.write(f"{self._heading}{target.url}\n")
        self._file.flush()
        self._heading = ""
        return True
