"""The commands.  Scrapy's program imports this package before it looks for the one that was named.

What it says of an unknown one names no other, and it asks no command.  So a mistyped one is told here.
"""

import sys
from pathlib import Path
from pkgutil import iter_modules

from spiderling.base.terminal import end_at_signal, restore_signals, runs_without_us

end_at_signal()  # the commands take a second to import

from spiderling.cli.command import refuse_unknown

NAMES = [module.name for module in iter_modules(__path__)]

if Path(sys.argv[0]).name == "scrapy" or Path(sys.argv[0]).parts[-2:] == ("scrapy", "__main__.py"):
    refuse_unknown(NAMES, __name__)
if runs_without_us():
    restore_signals()  # a shell goes on after Ctrl-C
