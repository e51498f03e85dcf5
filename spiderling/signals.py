"""Signals that Spiderling sends through ``crawler.signals``, for extensions of users.

``host_retired(host, spider)``: a host gave too little text and is not asked again.  Read *host*, its record
(frontier/hosts.py), but do not change it.

``transfers_cut()``: the time to finish transfers after a stop is over; the download handler ends them.
"""

host_retired = object()

transfers_cut = object()
