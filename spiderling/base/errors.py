"""The errors that a user reads, as one small tree.

SpiderlingError        says what, where and what to do; shown without a traceback
  BadInput             an argument, option or file that cannot be used
  JobdirError          the crawl directory is locked, foreign, unwritable or of another crawl
  StorageError         the disk refused a write; the crawl stops, nothing acknowledged is lost
    DamageError        what was written cannot be read back as it was
  InternalError        Spiderling itself failed; the crawl stops, nothing acknowledged is lost
  NoFreeShard          all shards of the crawl are at work; nothing is left to do, and that is no failure
  Stopped              a signal came while the crawl was being opened; that is no failure
  NetworkAway          nothing answers; the crawl stops with exit code 3 and keeps its URLs
"""


class SpiderlingError(Exception):
    """Base class: ``str(error)`` is the whole message that the user reads."""


class BadInput(SpiderlingError):
    """An argument, an option or a file given by the user cannot be used."""


class JobdirError(SpiderlingError):
    """The crawl directory cannot be used by this crawl."""


class StorageError(SpiderlingError):
    """The store or a corpus segment could not be written or read."""


class DamageError(StorageError):
    """A part of the state, the corpus or other output is not as it was written."""


class InternalError(SpiderlingError):
    """An error of Spiderling's own from which the crawl cannot go on; what was acknowledged is safe."""


class NoFreeShard(SpiderlingError):
    """All shards of the crawl are at work, or live elsewhere."""


class Stopped(SpiderlingError):
    """A signal came while the crawl was being opened."""

    def __str__(self) -> str:
        return (
            "The crawl was stopped while it was being opened: nothing was asked for yet and nothing is lost; the same "
            "command goes on with it"
        )


class NetworkAway(SpiderlingError):
    """For too long nothing has answered, or no name was found."""
