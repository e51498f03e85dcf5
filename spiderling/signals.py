"""Signals of our own, for extensions of users; all are sent through ``crawler.signals``.

``host_retired(host, spider)``: a host gave too little text and is not asked again;
*host* is its record (frontier/hosts/host.py), to be read only.

``transfers_cut()``: the time to finish transfers after a stop is over; the handler ends them.
"""

host_retired = object()

transfers_cut = object()
