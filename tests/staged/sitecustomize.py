"""Python imports this first where it is on the path: it stops the process at a stage, until the test lets it go on.

STAGE is a module, which is stopped at before it is imported, or MODULE:NAME, a function that is stopped at when it is
called.  The file REACHED is made then, and the process goes on when the file GO is there.
"""

import importlib.util
import os
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


if STAGE:
    sys.meta_path.insert(0, Finder())
