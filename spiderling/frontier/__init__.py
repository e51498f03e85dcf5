"""The frontier: which URL is fetched next, and which host is left alone.

Three levels, as in BUbiNG (Boldi et al. 2018): URL -> host -> address.  A URL waits in the queue of its
host; hosts with work stand on the workbench under the address of their first URL,
ordered by the time at which both host and address are due.

States of a URL: *waiting* (in its host's queue), *in transit* (handed out by ``take``,
not yet reported), *ended* (with a Reason).  A refused mention has none
of these states.  ``discovered = ends + waiting + in transit`` always (url_states.py).

States of a host (hosts.py): resolving, ready, in process, snoozed, exhausted; and closed
ones, in which none of its URLs is handed out: retired, spent, blocked, forbidden, mirror, refused.

How a URL passes, and who decides:

    frontier.py          the only door: put a URL, take the next fetch, ask whether it may start, report what came of it
    intake.py            how a URL becomes known: by the links of a page, sitemaps, archives
    admission.py         whether the user wants it at all
    traps.py             whether it belongs to a trap
    strategy.py          what it promises: strategies.py has those that one may choose, worth.py what the usual one
                         has learnt
    storage/queues.py    where it waits: the head in memory, chunks on disk, the newest in a log
    schedule.py          when its host is looked at: workbench.py has the order of hosts at work and the backlog,
                         intervals.py the pauses, throttle.py those of poor hosts
    next_fetch.py        which URL or file of its site a host fetches next
    robots.py            whether its site allows it, by its files and the licences that it names
    known_files.py       the files of sites, parsed once by site_files.py, and their records
    redirects.py         where a redirect leads, and with which cookies
    url_states.py        every change of a URL's state, with the ledger that counts them
    hosts.py             what is known of its host, in memory
    host_closing.py      retires and reopens hosts, by yield, by refusals and by what the user sets
    reachability.py      whether the hosts fail or the network, and asks hosts while it is away
    recrawl/            when a page that has ended is asked for again
    core.py              what these parts share, with the answers of the door; what belongs to other shards
    storage/             tables in memory, and what survives a kill

No module reads a clock.  Only storage/ does I/O.  What examines a state from outside stands in jobdir/.
"""

from spiderling.frontier.admission import PICKLED
from spiderling.frontier.core import Fetch, Report
from spiderling.frontier.frontier import Frontier
from spiderling.frontier.host_closing import threshold
from spiderling.frontier.hosts import Host, HostState, RobotsRequest, identity
from spiderling.frontier.intake import is_sitemap
from spiderling.frontier.reachability import LONGEST_PAUSE_S, NetworkState, Trouble
from spiderling.frontier.recrawl.pages import MAX_ETAG_BYTES, Validators
from spiderling.frontier.recrawl.recrawl import Revisit
from spiderling.frontier.redirects import MAX_COOKIES
from spiderling.frontier.site_files import MAX_FILE_BYTES, MAX_LICENCES, FileAnswer, parse_rules

__all__ = [
    "LONGEST_PAUSE_S", "MAX_COOKIES", "MAX_ETAG_BYTES", "MAX_FILE_BYTES", "MAX_LICENCES", "PICKLED", "Fetch",
    "FileAnswer", "Frontier", "Host", "HostState", "NetworkState", "Report", "Revisit", "RobotsRequest", "Trouble",
    "Validators", "identity", "is_sitemap", "parse_rules", "threshold",
]  # fmt: skip
