"""The frontier: which URL is fetched next, and which host is left alone.

Three levels, as in BUbiNG: URL -> host -> address.  A URL waits in the queue of its
host; hosts with work stand on the workbench under the address of their first URL,
ordered by the time at which both host and address are due.

States of a URL: *waiting* (in its host's queue), *in transit* (handed out by ``take``,
not yet reported), *ended* (with a Reason).  A mention that is refused never becomes
one of them.  ``discovered = ends + waiting + in transit`` always (ledger.py).

States of a host (hosts.py): resolving, ready, in process, snoozed, exhausted; and
closed ones that only a person reopens: retired, blocked, forbidden.

How a URL passes, and who decides:

    admission.py   scope.py, traps.py, seen.py      may it be discovered?
    strategies.py  priority.py, urlwords.py, worth.py: its rank in the queue, or that it is left out
    queues.py      entries.py                       where it waits: head in memory, chunks on disk, newest in a log
    schedule.py    names, workbench, backlog, crowd, holding, draws: when is its host looked at?
    hosttable.py   hosts.py                         hosts beyond the workbench's places, out of memory
    robots.py      is it allowed?
    sitemaps.py    what robots.txt names besides links
    frontier.py    put, take, may_start, report     the only door
    closing.py     yields.py: has the host earned its next request?
    books.py       ledger.py, journal.py, trail.py  every change of state, counted and kept
    store.py       state.py, rows.py, memory.py     what survives a kill

Nothing here reads a clock or does I/O, except store.py, and reading.py for people.
"""

from spiderling.frontier.frontier import Frontier
from spiderling.frontier.values import Fetch, Report

__all__ = ["Fetch", "Frontier", "Report"]
