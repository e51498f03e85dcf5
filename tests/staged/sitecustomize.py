"""Python imports this first where it is on the path: it stops the process at a stage, until the test lets it go on.

STAGE is a module, which is stopped at before it is imported, or MODULE:NAME, a function that is stopped at when it is
called, or END, when Python drops its modules: it has no handlers of signals any more.  The file REACHED is made then,
and the process goes on when the file GO is there.
"""

import importlib.util
import os
import posix
import sys
import time
from pathlib import Path

STAGE, _, NAME = os.environ.get("STAGE", "").partition(":")


def stop() -> None:
    Path(os.environ["REACHED"]).touch()
    while not Path(os.environ["GO"]).exists():
        time.sleep(0.01)


class Finder:
    """Knows nothing of modules, but sees which is imported."""

    def find_spec(self, name, path=None, target=None):
        if name != STAGE:
            return None
        sys.meta_path.remove(self)
        if not NAME:
            stop()
            return None
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def wrapped(module):
            execute(module)
            *owners, last = NAME.split(".")
            owner = module
            for part in owners:
                owner = getattr(owner, part)
            function = getattr(owner, last)

            def stopped(*arguments, **named):
                stop()
                return function(*arguments, **named)

            setattr(owner, last, stopped)

        spec.loader.exec_module = wrapped
        return spec


class AtEnd:
    """Uses nothing but what it holds, since modules are emptied."""

    def __init__(self):
        self._files = os.environ["REACHED"], os.environ["GO"]
        self._flags = os.O_CREAT | os.O_WRONLY

    def __del__(self, stat=posix.stat, open_file=posix.open, sleep=time.sleep, error=OSError):
        reached, go = self._files
        open_file(reached, self._flags, 0o600)
        while True:
            try:
                stat(go)
                return
            except error:
                sleep(0.01)


if STAGE == "END":
    sys.at_end = AtEnd()  # Python empties sys itself; the garbage collector of a crawl leaves what is old alone
elif STAGE:
    sys.meta_path.insert(0, Finder())
