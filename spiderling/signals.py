"""Signals that Spiderling sends through ``crawler.signals``, for extensions of users."""

host_retired = object()
"""``host_retired(host, spider)``: a host gave too little text and is not asked again.  *host* is its record
(frontier/hosts/host.py); do not change it."""

transfers_cut = object()
"""``transfers_cut()``: the time to finish transfers after a stop is over; the download handler ends them."""
