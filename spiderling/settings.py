"""Scrapy settings of this project.  The add-on (addon.py) installs everything that belongs to a crawl.

Scrapy reads the three settings below the line before it loads add-ons, so a project of your own that uses the add-on
must copy them.
"""

from spiderling.base.terminal import end_at_signal

end_at_signal()  # of all that is ours, Scrapy's program reads this first

BOT_NAME = "spiderling"
SPIDER_MODULES = ["spiderling.spiders"]
NEWSPIDER_MODULE = "spiderling.spiders"
ADDONS = {"spiderling.addon.SpiderlingAddon": 300}

# Who crawls: an e-mail address or URL that site owners find in the User-Agent.  No public address
# is touched without it.
# SPIDERLING_CONTACT = "you@example.org"

# ----------------------------------------------------------------------------------------
COMMANDS_MODULE = "spiderling.commands"
TWISTED_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
ASYNCIO_EVENT_LOOP = "uvloop.Loop"
