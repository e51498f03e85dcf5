"""control.yaml of a crawl of shards: one text for all, which any of them takes from the file beside its directory.

A text that somebody has written into the file of any machine gets a number one above the highest that is known there,
and above what Redis has before it is published.  The highest number holds, and of two alike the text that sorts last.
So all shards agree, whatever the clocks say, and each writes what holds into the file of its machine.  A small file
beside it says which edition was last seen there by any shard of the machine: another text was written by a person.
"""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from spiderling.base.files import write_whole
from spiderling.cluster.content import Seal
from spiderling.jobdir.control_file import TEMPLATE, ControlFile, read_control, stamp_of

logger = logging.getLogger(__name__)

NAME = "control.yaml"
SEEN = ".control.yaml.seen"
"""Holds the number of the edition that was last seen and the digest of its text.  Who looks or writes locks it."""


class Edition(NamedTuple):
    """One text of control.yaml; of two, the greater one holds."""

    number: int
    text: str


FIRST = Edition(0, TEMPLATE)  # what holds until somebody has written anything


class CrawlControl:
    """The text that holds, as one shard knows it."""

    def __init__(self, directory: Path, newest: Edition) -> None:
        """*directory*: that of the crawl; *newest*: what is known from state and Redis."""
        self.newest = newest
        self.keep: Callable[[Edition], None] = lambda edition: None  # called with each new edition, for the state
        self.to_publish: Edition | None = None  # what Redis has to get: it was looked at, and had an older one
        self._is_new = False  # whether it was written here, and nobody knows of it
        self.path = directory / NAME
        self._seen = directory / SEEN
        self._stamp: tuple[object, ...] = ()
        self._given: Edition | None = None

    def merge(self, edition: Edition | None) -> None:
        """Take what stands in Redis; None: nothing that can be believed."""
        if edition == self.newest:
            self._is_new = False
        if edition is not None and edition > self.newest:
            is_later = self._is_new and self.newest.text != edition.text
            if edition.number == self.newest.number and not is_later:
                logger.warning(
                    "%s was changed in two places at once; now it is: %r. What was written elsewhere is lost: %r",
                    NAME,
                    edition.text,
                    self.newest.text,
                )
            self._take(Edition(edition.number + 1, self.newest.text) if is_later else edition)
        self.to_publish = None if edition == self.newest else self.newest

    def changed_text(self) -> str | None:
        """The text that holds, if that is another one than was last returned.

        Raises BadInput, OSError, StorageError or UnicodeDecodeError, once, if what somebody has written cannot be used.
        """
        stamp = (stamp_of(self.path), self.newest)
        if stamp != self._stamp:
            self._stamp = stamp
            self._stamp = (stamp_of(self.path), self.newest) if self._agree() else ()
        if self.newest == self._given:
            return None
        self._given = self.newest
        return self.newest.text

    def _agree(self) -> bool:
        """Make the file and the newest edition one; returns whether that was possible now."""
        with self._seen.open("a+") as seen:
            try:
                fcntl.flock(seen, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # another shard of this machine does that
                return False
            seen.seek(0)
            mark = seen.read()
            text = read_control(self.path) if self.path.exists() else None
            if text is not None and text != self.newest.text:
                number = _number_of(text, mark)
                if number is None:
                    ControlFile.parse(text)
                    self._take(Edition(self.newest.number + 1, text))
                    self._is_new = True
                elif Edition(number, text) > self.newest:  # another shard of this machine knows it already
                    self._take(Edition(number, text))
            if text != self.newest.text:
                write_whole(self.path, self.newest.text)
            if mark != _mark(self.newest):
                seen.seek(0)
                seen.truncate()
                seen.write(_mark(self.newest))
        return True

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Within the block no shard of this machine looks at the file; to be entered away from the event loop."""
        with self._seen.open("a") as seen:
            fcntl.flock(seen, fcntl.LOCK_EX)
            yield

    def _take(self, edition: Edition) -> None:
        self.newest = edition
        self.to_publish = None
        self.keep(edition)


def _mark(edition: Edition) -> str:
    return f"{edition.number} {sha256(edition.text.encode()).hexdigest()}"


def _number_of(text: str, mark: str) -> int | None:
    """The number of the edition with this *text*, by the *mark* of the last one; None: it is another one."""
    number = mark.partition(" ")[0]
    if number.isdecimal() and mark == _mark(Edition(int(number), text)):
        return int(number)
    return 0 if not mark and text == TEMPLATE else None


def open_edition(seal: Seal, data: bytes | None) -> Edition | None:
    """The edition in *data*; None if it holds none that can be believed."""
    with suppress(ValueError, TypeError):
        number, text = seal.open_json("control", data)
        return Edition(int(number), str(text))
    return None
