"""The commands.  Scrapy's program imports this package before it looks for the one that was named."""

from pkgutil import iter_modules

from spiderling.base.terminal import end_at_signal, restore_signals, runs_without_us

end_at_signal()  # the commands take a second to import

NAMES = [module.name for module in iter_modules(__path__)]

if runs_without_us():
    restore_signals()  # a shell goes on after Ctrl-C
